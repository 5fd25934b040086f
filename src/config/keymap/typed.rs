//! The bytes that a terminal sends for a key, for commands that the user types into.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::chord::Chord;
use crate::model::TerminalInput;

/// The input of a key; `None` if terminals send nothing for it.
pub fn encode(key: &KeyEvent) -> Option<TerminalInput> {
    let modifiers = key.modifiers & (KeyModifiers::SHIFT | KeyModifiers::ALT | KeyModifiers::CONTROL);
    let code = |text: &str| Some(TerminalInput::Bytes(text.as_bytes().to_vec()));
    // Source: xterm, ctlseqs: "Modified Keys".
    let number = 1
        + u8::from(modifiers.contains(KeyModifiers::SHIFT))
        + 2 * u8::from(modifiers.contains(KeyModifiers::ALT))
        + 4 * u8::from(modifiers.contains(KeyModifiers::CONTROL));
    let cursor = |last: char| match number {
        1 => u8::try_from(last).ok().map(TerminalInput::Cursor),
        _ => code(&format!("\x1b[1;{number}{last}")),
    };
    let tilde = |first: u8| match number {
        1 => code(&format!("\x1b[{first}~")),
        _ => code(&format!("\x1b[{first};{number}~")),
    };
    match key.code {
        KeyCode::Up => cursor('A'),
        KeyCode::Down => cursor('B'),
        KeyCode::Right => cursor('C'),
        KeyCode::Left => cursor('D'),
        KeyCode::Home => cursor('H'),
        KeyCode::End => cursor('F'),
        KeyCode::Insert => tilde(2),
        KeyCode::Delete => tilde(3),
        KeyCode::PageUp => tilde(5),
        KeyCode::PageDown => tilde(6),
        KeyCode::F(location @ 1..=4) => {
            let last = char::from(b'P' + location - 1);
            if number == 1 { code(&format!("\x1bO{last}")) } else { cursor(last) }
        }
        KeyCode::F(location) => {
            let first = [15, 17, 18, 19, 20, 21, 23, 24].get(usize::from(location).checked_sub(5)?)?;
            tilde(*first)
        }
        KeyCode::Enter => Some(alt(modifiers, "\r")),
        KeyCode::Tab if modifiers.contains(KeyModifiers::SHIFT) => code("\x1b[Z"),
        KeyCode::BackTab => code("\x1b[Z"),
        KeyCode::Tab => Some(alt(modifiers, "\t")),
        KeyCode::Backspace if modifiers.contains(KeyModifiers::CONTROL) => Some(alt(modifiers, "\x08")),
        KeyCode::Backspace => Some(alt(modifiers, "\x7f")),
        KeyCode::Esc => Some(alt(modifiers, "\x1b")),
        KeyCode::Char(ch) if modifiers.contains(KeyModifiers::CONTROL) => {
            let byte = match ch.to_ascii_lowercase() {
                ch @ 'a'..='z' => u8::try_from(ch).ok()? & 0x1f,
                ' ' | '@' | '2' => 0,
                '[' | '3' => 0x1b,
                '\\' | '4' => 0x1c,
                ']' | '5' => 0x1d,
                '^' | '6' => 0x1e,
                '_' | '-' | '/' | '7' => 0x1f,
                '?' | '8' => 0x7f,
                _ => return None,
            };
            Some(alt(modifiers, &char::from(byte).to_string()))
        }
        KeyCode::Char(ch) => {
            let plain = KeyEvent { modifiers: key.modifiers - KeyModifiers::ALT, ..*key };
            let ch = Chord::of(&plain).and_then(|chord| chord.typed()).unwrap_or(ch);
            Some(alt(modifiers, &ch.to_string()))
        }
        _ => None,
    }
}

fn alt(modifiers: KeyModifiers, text: &str) -> TerminalInput {
    let lead = if modifiers.contains(KeyModifiers::ALT) { "\x1b" } else { "" };
    TerminalInput::Bytes(format!("{lead}{text}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sent_as_by_a_terminal() {
        let bytes = |text: &str| Some(TerminalInput::Bytes(text.as_bytes().to_vec()));
        let none = KeyModifiers::NONE;
        for (code, modifiers, expected) in [
            (KeyCode::Char('ä'), none, bytes("ä")),
            (KeyCode::Char('a'), KeyModifiers::SHIFT, bytes("A")),
            (KeyCode::Char('c'), KeyModifiers::CONTROL, bytes("\x03")),
            (KeyCode::Char(' '), KeyModifiers::CONTROL, bytes("\0")),
            (KeyCode::Char('b'), KeyModifiers::ALT, bytes("\x1bb")),
            (KeyCode::Enter, none, bytes("\r")),
            (KeyCode::Backspace, none, bytes("\x7f")),
            (KeyCode::Esc, none, bytes("\x1b")),
            (KeyCode::BackTab, KeyModifiers::SHIFT, bytes("\x1b[Z")),
            (KeyCode::Up, none, Some(TerminalInput::Cursor(b'A'))),
            (KeyCode::Left, KeyModifiers::CONTROL, bytes("\x1b[1;5D")),
            (KeyCode::Delete, none, bytes("\x1b[3~")),
            (KeyCode::PageUp, KeyModifiers::SHIFT, bytes("\x1b[5;2~")),
            (KeyCode::F(1), none, bytes("\x1bOP")),
            (KeyCode::F(12), none, bytes("\x1b[24~")),
            (KeyCode::CapsLock, none, None),
        ] {
            assert_eq!(encode(&KeyEvent::new(code, modifiers)), expected, "{code:?} {modifiers:?}");
        }
    }
}
