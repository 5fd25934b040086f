//! What a terminal sends, cut into keys and answers.
//!
//! Answers to questions look like keys pressed together with Alt to who does not know them: here they are told apart
//! and never typed. What does not end is given up after a moment by the caller ([`Decoder::give_up`]).

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use super::Told;

/// The longest answer that is read; no terminal has more to say to parlor's questions.
const ANSWER_MAX_BYTES: usize = 4096;

/// Cuts bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
}

/// What the bytes so far are.
enum Found {
    /// The beginning of something.
    Open,
    /// Nothing that matters here.
    Nothing,
    /// This.
    This(Told),
}

impl Decoder {
    /// Takes bytes. `has_more`: others are there to be read, so what seems to be an Esc may begin something else.
    pub fn feed(&mut self, bytes: &[u8], has_more: bool, out: &mut Vec<Told>) {
        for (index, byte) in bytes.iter().enumerate() {
            // Esc twice in a row is no Alt+Esc: the first stands for itself.
            if *byte == 0x1b && self.bytes == [0x1b] {
                out.push(Told::Input(Event::Key(KeyCode::Esc.into())));
                self.bytes.clear();
            }
            self.bytes.push(*byte);
            if self.bytes == [0x1b] && (has_more || index + 1 < bytes.len()) {
                continue;
            }
            match find(&self.bytes) {
                Found::Open => {}
                Found::Nothing => self.bytes.clear(),
                Found::This(told) => {
                    out.push(told);
                    self.bytes.clear();
                }
            }
        }
    }

    /// Whether something has begun that should go on soon.
    pub fn is_waiting(&self) -> bool {
        // A paste may come slowly.
        !self.bytes.is_empty() && !self.bytes.starts_with(b"\x1b[200~")
    }

    /// Nothing more came: what could have been the beginning of something was a key of its own.
    pub fn give_up(&mut self, out: &mut Vec<Told>) {
        match *std::mem::take(&mut self.bytes) {
            [0x1b] => out.push(Told::Input(Event::Key(KeyCode::Esc.into()))),
            [0x1b, letter @ b' '..=b'~'] => {
                let key = KeyEvent::new(KeyCode::Char(char::from(letter)), KeyModifiers::ALT);
                out.push(Told::Input(Event::Key(key)));
            }
            _ => {}
        }
    }
}

fn find(bytes: &[u8]) -> Found {
    match bytes {
        // Strings: OSC, DCS, APC, PM, SOS.
        [0x1b, kind @ (b']' | b'P' | b'_' | b'^' | b'X'), rest @ ..] => find_string(*kind, rest),
        // Control sequences that are no input have a private mark; `<` is the mouse's.
        [0x1b, b'[', mark @ (b'?' | b'>' | b'='), rest @ ..] => match rest.split_last() {
            Some((end @ 0x40..=0x7e, parameters)) => find_report(*mark, parameters, *end),
            _ if bytes.len() > ANSWER_MAX_BYTES => Found::Nothing,
            _ => Found::Open,
        },
        // The size of a cell begins as the key Page Down with a modifier does, and ends in another letter.
        [0x1b, b'[', b'6', b';', size @ .., b't'] => {
            cell_size(size).map_or(Found::Nothing, |(cols, rows)| Found::This(Told::CellSize(cols, rows)))
        }
        [0x1b, b'[', b'6', b';', size @ ..]
            if size.len() < 16 && size.iter().all(|byte| byte.is_ascii_digit() || *byte == b';') =>
        {
            Found::Open
        }
        _ => match terminput::Event::parse_from(bytes) {
            Ok(None) => Found::Open,
            Ok(Some(event)) => terminput_crossterm::to_crossterm(event)
                .map_or(Found::Nothing, |event| Found::This(Told::Input(event))),
            Err(_) => Found::Nothing,
        },
    }
}

fn find_string(kind: u8, rest: &[u8]) -> Found {
    let body = match rest {
        [body @ .., 0x07] | [body @ .., 0x1b, b'\\'] => body,
        _ if rest.len() > ANSWER_MAX_BYTES => return Found::Nothing,
        _ => return Found::Open,
    };
    let told = match kind {
        b']' => body.strip_prefix(b"11;").and_then(colour_of).map(Told::Background),
        b'_' => body.strip_prefix(b"Gi=").and_then(kitty_question).map(Told::Kitty),
        b'P' => body.strip_prefix(b">|").map(|name| Told::Name(String::from_utf8_lossy(name).into_owned())),
        _ => None,
    };
    told.map_or(Found::Nothing, Found::This)
}

/// The question that kitty's graphics answer well: `31;OK`. Source: kitty graphics protocol, querying support.
fn kitty_question(answer: &[u8]) -> Option<u32> {
    let (number, word) = std::str::from_utf8(answer).ok()?.split_once(';')?;
    number.parse().ok().filter(|_| word == "OK")
}

/// The points of a cell, across and down: `height;width`. Source: xterm, window manipulation, report 16.
fn cell_size(answer: &[u8]) -> Option<(u16, u16)> {
    let (height, width) = std::str::from_utf8(answer).ok()?.split_once(';')?;
    let size = (width.parse().ok()?, height.parse().ok()?);
    (1..=512).contains(&size.0).then_some(size).filter(|size| (1..=512).contains(&size.1))
}

/// DECRPM: `CSI ? mode ; value $ y`. 0: not known, 1: set, 2: reset, 3: always set, 4: always reset.
fn find_report(mark: u8, parameters: &[u8], end: u8) -> Found {
    match (mark, parameters, end) {
        (b'?', [b'2', b'0', b'2', b'6', b';', value, b'$'], b'y') => {
            Found::This(Told::Synchronizes(matches!(value, b'1'..=b'3')))
        }
        // DA1; 4 stands for sixel.
        (b'?', attributes, b'c') => {
            let has_sixel = attributes.split(|byte| *byte == b';').skip(1).any(|attribute| attribute == b"4");
            Found::This(Told::Sixel(has_sixel))
        }
        _ => Found::Nothing,
    }
}

/// Reads `rgb:rrrr/gggg/bbbb` (1 to 4 digits each, as X11 writes colours) and `#rrggbb`.
fn colour_of(text: &[u8]) -> Option<[u8; 3]> {
    let text = std::str::from_utf8(text).ok()?;
    let parts: Vec<&str> = match text.strip_prefix('#') {
        Some(digits) if digits.len() == 6 && digits.is_ascii() => {
            vec![digits.get(..2)?, digits.get(2..4)?, digits.get(4..)?]
        }
        Some(_) => return None,
        None => {
            text.strip_prefix("rgb:").or_else(|| text.strip_prefix("rgba:"))?.split('/').take(3).collect()
        }
    };
    let part = |index: usize| {
        let digits = parts.get(index).filter(|digits| (1..=4).contains(&digits.len()))?;
        let value = u32::from_str_radix(digits, 16).ok()?;
        u8::try_from(value * 255 / ((1 << (4 * digits.len())) - 1)).ok()
    };
    Some([part(0)?, part(1)?, part(2)?])
}

#[cfg(test)]
mod tests;
