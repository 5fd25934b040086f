//! A key with its modifiers: parsing, display and matching.
//!
//! Terminals report the same key in several ways; a [`Chord`] is normalised, so that equal keys compare
//! equal. A letter without Ctrl, Alt or Super is stored in its case and without Shift; with one of them, in
//! lower case with a separate Shift; other characters never have Shift, because the character implies it.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A normalised key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chord {
    pub(super) code: KeyCode,
    pub(super) modifiers: KeyModifiers,
}

const KNOWN_MODIFIERS: KeyModifiers =
    KeyModifiers::SHIFT.union(KeyModifiers::CONTROL).union(KeyModifiers::ALT).union(KeyModifiers::SUPER);
const COMMANDING: KeyModifiers = KeyModifiers::CONTROL.union(KeyModifiers::ALT).union(KeyModifiers::SUPER);

/// Named keys: code, names in the configuration (the first one is written), name for display.
const NAMED: &[(KeyCode, &[&str], &str)] = &[
    (KeyCode::Enter, &["enter", "return"], "Enter"),
    (KeyCode::Esc, &["esc", "escape"], "Esc"),
    (KeyCode::Tab, &["tab"], "Tab"),
    (KeyCode::Backspace, &["backspace"], "Backspace"),
    (KeyCode::Delete, &["delete", "del"], "Delete"),
    (KeyCode::Insert, &["insert", "ins"], "Insert"),
    (KeyCode::Home, &["home"], "Home"),
    (KeyCode::End, &["end"], "End"),
    (KeyCode::PageUp, &["pageup", "page-up", "pgup"], "PageUp"),
    (KeyCode::PageDown, &["pagedown", "page-down", "pgdn", "pgdown"], "PageDown"),
    (KeyCode::Up, &["up"], "Up"),
    (KeyCode::Down, &["down"], "Down"),
    (KeyCode::Left, &["left"], "Left"),
    (KeyCode::Right, &["right"], "Right"),
    (KeyCode::Char(' '), &["space"], "Space"),
    (KeyCode::Char('+'), &["plus"], "+"),
    (KeyCode::Char('-'), &["minus"], "-"),
];

/// Modifiers: flag, names in the configuration, name for display; in the order in which they are written.
const MODIFIERS: &[(KeyModifiers, &[&str], &str)] = &[
    (KeyModifiers::CONTROL, &["ctrl", "control"], "Ctrl"),
    (KeyModifiers::ALT, &["alt", "option", "meta"], "Alt"),
    (KeyModifiers::SHIFT, &["shift"], "Shift"),
    (KeyModifiers::SUPER, &["super", "cmd", "win"], "Super"),
];

impl Chord {
    /// The key of an event. `None` for a release, an unsupported modifier, or a key without a code.
    pub fn of(event: &KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release || !KNOWN_MODIFIERS.contains(event.modifiers) {
            return None;
        }
        let mut modifiers = event.modifiers;
        // Old terminals send Alt+Shift+P as Esc P, so that only the case implies Shift. With Ctrl the case is
        // not reliable, because Caps Lock changes it too.
        if let KeyCode::Char(ch) = event.code
            && ch.is_uppercase()
            && modifiers.contains(KeyModifiers::ALT)
            && !modifiers.contains(KeyModifiers::CONTROL)
        {
            modifiers |= KeyModifiers::SHIFT;
        }
        Some(Self::normal(event.code, modifiers))
    }

    /// Parses `ctrl+shift+end`, `alt+enter`, `f1`, `?`, `G`. The error contains the problem and the fix.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (prefix, key) = match text.strip_suffix("++") {
            Some(prefix) => (prefix, "+"),
            None if text == "+" => ("", "+"),
            None => text.rsplit_once('+').unwrap_or(("", text)),
        };
        let mut modifiers = KeyModifiers::NONE;
        for word in prefix.split('+').filter(|word| !word.is_empty()) {
            let lower = word.trim().to_lowercase();
            let found = MODIFIERS.iter().find(|(_, names, _)| names.contains(&lower.as_str()));
            let Some((flag, _, _)) = found else {
                return Err(format!("unknown modifier `{word}`; use ctrl, alt, shift or super"));
            };
            modifiers |= *flag;
        }
        let code = parse_code(key.trim(), modifiers)?;
        if modifiers == KeyModifiers::CONTROL
            && let KeyCode::Char(ch) = code
        {
            // These have the same ASCII control code as another key, unless the terminal supports a newer
            // protocol.
            let twin = match ch {
                'i' => Some("tab"),
                'm' => Some("enter"),
                '[' => Some("esc"),
                _ => None,
            };
            if let Some(twin) = twin {
                return Err(format!(
                    "most terminals send the same code for ctrl+{ch} and {twin}; use another key, or \
                        bind {twin}"
                ));
            }
        }
        Ok(Self::normal(code, modifiers))
    }

    pub fn syntax(&self) -> String {
        let mut text = String::new();
        for (flag, names, _) in MODIFIERS {
            if self.modifiers.contains(*flag) {
                text.push_str(names.first().copied().unwrap_or_default());
                text.push('+');
            }
        }
        match (self.named(), self.code) {
            (Some((names, _)), _) => text.push_str(names.first().copied().unwrap_or_default()),
            (None, KeyCode::Char(ch)) => text.push(ch),
            (None, KeyCode::F(number)) => text.extend(["f", &number.to_string()]),
            (None, other) => text.push_str(&other.to_string().to_lowercase()),
        }
        text
    }

    /// The form for display: `Ctrl+P`, `Shift+Tab`, `?`.
    pub fn label(&self) -> String {
        let mut text = String::new();
        for (flag, _, label) in MODIFIERS {
            if self.modifiers.contains(*flag) {
                text.push_str(label);
                text.push('+');
            }
        }
        match (self.named(), self.code) {
            (Some((_, label)), _) => text.push_str(label),
            (None, KeyCode::Char(ch)) if self.modifiers.is_empty() => text.push(ch),
            (None, KeyCode::Char(ch)) => text.extend(ch.to_uppercase()),
            (None, KeyCode::F(number)) => text.extend(["F", &number.to_string()]),
            (None, other) => text.push_str(&other.to_string()),
        }
        text
    }

    /// Whether the key types a character in a text field.
    pub fn is_typing(&self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && !self.modifiers.intersects(COMMANDING)
    }

    pub fn cancels_sequence(&self) -> bool {
        self.code == KeyCode::Esc
    }

    pub fn typed(&self) -> Option<char> {
        match self.code {
            KeyCode::Char(ch) if self.is_typing() => Some(ch),
            _ => None,
        }
    }

    fn normal(code: KeyCode, modifiers: KeyModifiers) -> Self {
        let mut modifiers = modifiers & KNOWN_MODIFIERS;
        let code = match code {
            KeyCode::BackTab => {
                modifiers |= KeyModifiers::SHIFT;
                KeyCode::Tab
            }
            KeyCode::Char(ch) if modifiers.intersects(COMMANDING) => {
                if !ch.is_alphabetic() {
                    modifiers -= KeyModifiers::SHIFT;
                }
                KeyCode::Char(single(ch.to_lowercase(), ch))
            }
            KeyCode::Char(ch) => {
                let is_shifted = modifiers.contains(KeyModifiers::SHIFT);
                modifiers -= KeyModifiers::SHIFT;
                KeyCode::Char(if is_shifted { single(ch.to_uppercase(), ch) } else { ch })
            }
            other => other,
        };
        Self { code, modifiers }
    }

    fn named(&self) -> Option<(&'static [&'static str], &'static str)> {
        NAMED.iter().find(|(code, _, _)| *code == self.code).map(|(_, names, label)| (*names, *label))
    }
}

fn parse_code(key: &str, modifiers: KeyModifiers) -> Result<KeyCode, String> {
    let mut letters = key.chars();
    if let (Some(ch), None) = (letters.next(), letters.next()) {
        // `Ctrl+P` is the common spelling and does not include Shift.
        let is_commanded = modifiers.intersects(COMMANDING);
        return Ok(KeyCode::Char(if is_commanded { single(ch.to_lowercase(), ch) } else { ch }));
    }
    let lower = key.to_lowercase();
    if let Some((code, _, _)) = NAMED.iter().find(|(_, names, _)| names.contains(&lower.as_str())) {
        return Ok(*code);
    }
    match lower.strip_prefix('f').and_then(|number| number.parse::<u8>().ok()) {
        Some(number @ 1..=24) => Ok(KeyCode::F(number)),
        _ if key.is_empty() => Err("missing key; use for example ctrl+x".to_owned()),
        _ => Err(format!(
            "unknown key `{key}`; use a character, f1 to f24, or a name such as enter, pageup, space"
        )),
    }
}

/// The converted character, unless the conversion results in several.
fn single(mut changed: impl Iterator<Item = char>, ch: char) -> char {
    match (changed.next(), changed.next()) {
        (Some(other), None) => other,
        _ => ch,
    }
}

/// A key that types into a line of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypedKey {
    Character(char),
    Backspace,
}

/// What a key types; `None` for all keys that need a binding.
pub fn typed_key(key: &KeyEvent) -> Option<TypedKey> {
    match key.code {
        KeyCode::Char(ch) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
            Some(TypedKey::Character(ch))
        }
        KeyCode::Backspace if key.modifiers.is_empty() => Some(TypedKey::Backspace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode, modifiers: KeyModifiers) -> Option<Chord> {
        Chord::of(&KeyEvent::new(code, modifiers))
    }

    #[test]
    fn parsed_keys_match_key_events() {
        let none = KeyModifiers::NONE;
        let shift = KeyModifiers::SHIFT;
        let ctrl = KeyModifiers::CONTROL;
        let alt = KeyModifiers::ALT;
        for (text, code, modifiers) in [
            ("enter", KeyCode::Enter, none),
            ("Alt+Enter", KeyCode::Enter, alt),
            ("ctrl+shift+end", KeyCode::End, ctrl | shift),
            ("f1", KeyCode::F(1), none),
            ("?", KeyCode::Char('?'), none),
            ("?", KeyCode::Char('?'), shift),
            ("shift+tab", KeyCode::BackTab, shift),
            ("shift+tab", KeyCode::BackTab, none),
            ("shift+tab", KeyCode::Tab, shift),
            ("ctrl+p", KeyCode::Char('p'), ctrl),
            ("Ctrl+P", KeyCode::Char('p'), ctrl),
            ("ctrl+p", KeyCode::Char('P'), ctrl),
            ("ctrl+shift+p", KeyCode::Char('P'), ctrl | shift),
            ("alt+shift+p", KeyCode::Char('P'), alt),
            ("G", KeyCode::Char('G'), shift),
            ("G", KeyCode::Char('g'), shift),
            ("shift+g", KeyCode::Char('G'), none),
            ("space", KeyCode::Char(' '), none),
            ("plus", KeyCode::Char('+'), shift),
            ("+", KeyCode::Char('+'), none),
            ("ctrl++", KeyCode::Char('+'), ctrl),
            ("ctrl+plus", KeyCode::Char('+'), ctrl),
            ("pgdn", KeyCode::PageDown, none),
        ] {
            assert_eq!(Some(Chord::parse(text).unwrap()), press(code, modifiers), "{text}");
        }
    }

    #[test]
    fn distinct_keys_are_not_equal() {
        let ctrl = KeyModifiers::CONTROL;
        assert_ne!(
            press(KeyCode::Char('g'), KeyModifiers::NONE),
            press(KeyCode::Char('G'), KeyModifiers::NONE)
        );
        assert_ne!(
            press(KeyCode::Char('p'), ctrl),
            press(KeyCode::Char('p'), ctrl | KeyModifiers::SHIFT),
            "if the terminal distinguishes them"
        );
    }

    #[test]
    fn releases_and_unknown_modifiers_never_match() {
        let mut event = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        event.kind = KeyEventKind::Repeat;
        assert!(Chord::of(&event).is_some());
        event.kind = KeyEventKind::Release;
        assert_eq!(Chord::of(&event), None);
        assert_eq!(press(KeyCode::Enter, KeyModifiers::HYPER), None);
    }

    #[test]
    fn syntax_and_label_can_be_parsed() {
        for text in
            ["ctrl+alt+shift+x", "f12", "?", "G", "plus", "ctrl+minus", "alt+pageup", "shift+tab", "space"]
        {
            let chord = Chord::parse(text).unwrap();
            assert_eq!(chord.syntax(), text);
            assert_eq!(Chord::parse(&chord.label()), Ok(chord), "labels are valid in the configuration");
        }
        assert_eq!(Chord::parse("ctrl+p").unwrap().label(), "Ctrl+P");
    }

    #[test]
    fn errors_contain_a_fix() {
        assert!(Chord::parse("crtl+x").unwrap_err().contains("use ctrl, alt, shift or super"));
        assert!(Chord::parse("ctrl+").unwrap_err().contains("missing"));
        assert!(Chord::parse("entr").unwrap_err().contains("unknown key `entr`"));
        assert!(Chord::parse("f25").is_err());
        assert!(Chord::parse("ctrl+i").unwrap_err().contains("tab"));
        assert!(Chord::parse("ctrl+m").unwrap_err().contains("enter"));
    }

    #[test]
    fn typing_keys_are_distinguished_from_commands() {
        assert!(Chord::parse("a").unwrap().is_typing());
        assert!(Chord::parse("space").unwrap().is_typing());
        assert!(!Chord::parse("alt+a").unwrap().is_typing());
        assert!(!Chord::parse("enter").unwrap().is_typing());
    }
}
