//! Detects terminal modes that are still enabled, from the written bytes.

use std::collections::{BTreeMap, BTreeSet};

/// The terminal modes that a program has changed.
#[derive(Debug, Default)]
pub struct Modes {
    /// Private modes that were ever enabled, and whether each is enabled at the end.
    states: BTreeMap<u16, bool>,
    /// Private modes as they were saved (XTSAVE).
    saved: BTreeMap<u16, bool>,
    /// The stack of keyboard flags (kitty protocol), by screen; each screen has a separate stack.
    flags: BTreeMap<bool, Vec<String>>,
    /// Keyboard flags that were ever requested.
    pub asked_flags: BTreeSet<String>,
    is_cursor_hidden: bool,
    /// Whether modified keys are reported (XTMODKEYS).
    pub reports_modified_keys: bool,
}

impl Modes {
    /// Parses the written bytes.
    pub fn of(raw: &[u8]) -> Self {
        let text = String::from_utf8_lossy(raw);
        let mut modes = Self::default();
        for sequence in text.split("\u{1b}[").skip(1) {
            let Some(end) = sequence.find(|ch: char| ('@'..='~').contains(&ch)) else { continue };
            let (parameters, last) = (&sequence[..end], &sequence[end..=end]);
            modes.take(parameters, last);
        }
        modes
    }

    fn take(&mut self, parameters: &str, last: &str) {
        let is_alternate = self.is_on(1049);
        match (parameters.chars().next(), last) {
            (Some('?'), "h" | "l") => {
                for mode in parameters[1..].split(';').filter_map(|mode| mode.parse::<u16>().ok()) {
                    if mode == 25 {
                        self.is_cursor_hidden = last == "l";
                    } else if last == "h" || self.states.contains_key(&mode) {
                        self.states.insert(mode, last == "h");
                    }
                }
            }
            (Some('?'), "s" | "r") => {
                for mode in parameters[1..].split(';').filter_map(|mode| mode.parse::<u16>().ok()) {
                    if last == "s" {
                        self.saved.insert(mode, self.is_on(mode));
                    } else if let Some(was_on) = self.saved.get(&mode) {
                        self.states.insert(mode, *was_on);
                    }
                }
            }
            (Some('>'), "m") => self.reports_modified_keys = parameters == ">4;1",
            (Some('>'), "u") => {
                self.asked_flags.insert(parameters[1..].to_owned());
                self.flags.entry(is_alternate).or_default().push(parameters[1..].to_owned());
            }
            (Some('<'), "u") => {
                for _ in 0..parameters[1..].parse().unwrap_or(1) {
                    self.flags.entry(is_alternate).or_default().pop();
                }
            }
            _ => {}
        }
    }

    /// Whether a private mode is enabled at the end.
    pub fn is_on(&self, mode: u16) -> bool {
        self.states.get(&mode) == Some(&true)
    }

    /// Whether a private mode was ever enabled.
    pub fn was_on(&self, mode: u16) -> bool {
        self.states.contains_key(&mode)
    }

    /// Everything that differs from the default state.
    pub fn left(&self) -> Vec<String> {
        let mut left: Vec<String> =
            self.states.iter().filter(|(_, is_on)| **is_on).map(|(mode, _)| format!("mode {mode}")).collect();
        left.extend(self.flags.values().flatten().map(|flags| format!("keyboard flags {flags}")));
        if self.reports_modified_keys {
            left.push("reports of modified keys".to_owned());
        }
        if self.is_cursor_hidden {
            left.push("no cursor".to_owned());
        }
        left
    }
}

#[test]
fn enabled_modes_are_found() {
    let left = |text: &str| Modes::of(text.as_bytes()).left();
    assert_eq!(left("\u{1b}[?1049h\u{1b}[>1u\u{1b}[?25lx\u{1b}[<1u\u{1b}[?1049l\u{1b}[?25h"), [""; 0]);
    assert_eq!(left("\u{1b}[?1049;2004h\u{1b}[?1049l"), ["mode 2004"]);
    assert_eq!(left("\u{1b}[?25l"), ["no cursor"]);
    assert_eq!(left("\u{1b}[?1036s\u{1b}[?1036h"), ["mode 1036"]);
    assert_eq!(left("\u{1b}[?1036s\u{1b}[?1036h\u{1b}[?1036r"), [""; 0]);
    assert_eq!(left("\u{1b}[>4;1m\u{1b}[m"), ["reports of modified keys"]);
    assert_eq!(left("\u{1b}[>4;1m\u{1b}[>4m"), [""; 0]);
    // The flags belong to the alternate screen, so they must be reset before it is left.
    assert_eq!(left("\u{1b}[?1049h\u{1b}[>1u\u{1b}[?1049l\u{1b}[<1u"), ["keyboard flags 1"]);
}
