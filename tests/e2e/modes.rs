//! Which modes of the terminal are left on, told from the bytes that were written.

use std::collections::{BTreeMap, BTreeSet};

/// What a program did to the modes of its terminal.
#[derive(Debug, Default)]
pub struct Modes {
    /// Private modes that were ever switched on, and whether each is on at the end.
    states: BTreeMap<u16, bool>,
    /// Keyboard flags (kitty protocol) on the stack, by screen; each screen has a stack of its own.
    flags: BTreeMap<bool, Vec<String>>,
    /// Keyboard flags that were ever asked for.
    pub asked_flags: BTreeSet<String>,
    /// Whether the cursor is hidden.
    is_cursor_hidden: bool,
}

impl Modes {
    /// Reads what was written, from the first byte to the last.
    pub fn of(raw: &[u8]) -> Self {
        let text = String::from_utf8_lossy(raw);
        let mut modes = Self::default();
        for sequence in text.split("\u{1b}[").skip(1) {
            let Some(end) = sequence.find(|letter: char| ('@'..='~').contains(&letter)) else { continue };
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

    /// Whether a private mode is on at the end.
    pub fn is_on(&self, mode: u16) -> bool {
        self.states.get(&mode) == Some(&true)
    }

    /// Whether a private mode was ever on.
    pub fn was_on(&self, mode: u16) -> bool {
        self.states.contains_key(&mode)
    }

    /// Everything that is not as a shell expects it.
    pub fn left(&self) -> Vec<String> {
        let mut left: Vec<String> =
            self.states.iter().filter(|(_, is_on)| **is_on).map(|(mode, _)| format!("mode {mode}")).collect();
        left.extend(self.flags.values().flatten().map(|flags| format!("keyboard flags {flags}")));
        if self.is_cursor_hidden {
            left.push("no cursor".to_owned());
        }
        left
    }
}

#[test]
fn what_is_left_on_is_found() {
    let left = |text: &str| Modes::of(text.as_bytes()).left();
    assert_eq!(left("\u{1b}[?1049h\u{1b}[>1u\u{1b}[?25lx\u{1b}[<1u\u{1b}[?1049l\u{1b}[?25h"), [""; 0]);
    assert_eq!(left("\u{1b}[?1049;2004h\u{1b}[?1049l"), ["mode 2004"]);
    assert_eq!(left("\u{1b}[?25l"), ["no cursor"]);
    // The flags belong to the alternate screen, so they must go before it does.
    assert_eq!(left("\u{1b}[?1049h\u{1b}[>1u\u{1b}[?1049l\u{1b}[<1u"), ["keyboard flags 1"]);
}
