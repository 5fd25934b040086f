//! Decodes terminal input into keys, pastes and responses to queries.
//!
//! Without this, responses would look like keys with Alt. An input sequence may arrive in several reads with pauses
//! (ssh, tmux, a busy machine), so an incomplete one waits until its [`Decoder::deadline`]; then the reader calls
//! [`Decoder::give_up`].
//! Invariants: the result does not depend on how the bytes were split into reads while no deadline passes; buffered
//! input is bounded.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use super::TtyEvent;
use crate::runtime::clipboard::terminal::ClipboardPacket;

/// Timeout of an incomplete sequence that could also be a key: Esc, Alt+[.
pub const KEY_WAIT: Duration = Duration::from_millis(50);

/// Timeout of any other incomplete sequence: a response, a key with parameters, a character.
pub const REST_WAIT: Duration = Duration::from_secs(1);

/// Timeout of an incomplete paste; without it, a lost end would block the keyboard.
pub const PASTE_WAIT: Duration = Duration::from_secs(3);

/// Timeout of an incomplete part of the clipboard, which may be megabytes over a slow connection.
const CLIPBOARD_WAIT: Duration = Duration::from_secs(10);

/// Maximum length of a part of the clipboard in bytes. The protocol allows 4 KiB before base64.
const CLIPBOARD_MAX_BYTES: usize = 256 << 10;

/// Start of a response about the clipboard (OSC 5522).
const CLIPBOARD_START: &[u8] = b"\x1b]5522;";

/// Maximum length of another response in bytes.
const ANSWER_MAX_BYTES: usize = 4096;

/// Maximum length of a key or mouse sequence in bytes.
const KEY_MAX_BYTES: usize = 64;

/// Maximum length of a paste in bytes; a longer one is split.
const PASTE_MAX_BYTES: usize = 4 << 20;

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Decodes a stream of bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The incomplete sequence, or the text of the incomplete paste.
    bytes: Vec<u8>,
    is_pasting: bool,
    /// Time of the last byte.
    fed: Option<Instant>,
}

enum Found {
    Open,
    /// A complete sequence without meaning for parlor.
    Nothing,
    /// A string that is too long; the rest of it is skipped.
    TooLong,
    This(TtyEvent),
}

impl Decoder {
    /// Decodes bytes that arrived at `now`.
    pub fn feed(&mut self, bytes: &[u8], now: Instant, out: &mut Vec<TtyEvent>) {
        self.fed = Some(now);
        for byte in bytes {
            if self.is_pasting {
                self.on_paste(*byte, out);
            } else {
                self.on_byte(*byte, out);
            }
        }
    }

    /// The deadline of the incomplete sequence; `None`: there is none.
    pub fn deadline(&self) -> Option<Instant> {
        let wait = match *self.bytes {
            _ if self.is_pasting => PASTE_WAIT,
            [] => return None,
            [0x1b] | [0x1b, _] | [0x1b, 0x1b, _] => KEY_WAIT,
            _ if self.bytes.starts_with(CLIPBOARD_START) => CLIPBOARD_WAIT,
            _ => REST_WAIT,
        };
        self.fed.map(|fed| fed + wait)
    }

    /// Decodes the incomplete sequence as keys, because its deadline has passed.
    pub fn give_up(&mut self, out: &mut Vec<TtyEvent>) {
        if std::mem::take(&mut self.is_pasting) {
            if !self.bytes.is_empty() {
                self.deliver_paste(self.bytes.len(), out);
            }
            self.bytes.clear();
            return;
        }
        let mut bytes = self.drop_sequence(out);
        if bytes.starts_with(b"\x1b\x1b") {
            out.push(escape());
            bytes.remove(0);
        }
        match *bytes {
            [0x1b] => out.push(escape()),
            [0x1b, ch @ b' '..=b'~'] => {
                let key = KeyEvent::new(KeyCode::Char(char::from(ch)), KeyModifiers::ALT);
                out.push(TtyEvent::Input(Event::Key(key)));
            }
            _ => {}
        }
    }

    fn on_byte(&mut self, byte: u8, out: &mut Vec<TtyEvent>) {
        if self.bytes == b"\x1b\x1b" && !matches!(byte, b'[' | b'O' | 0x1b) {
            self.bytes.pop();
            out.push(escape());
        }
        if byte == 0x1b && !self.bytes.is_empty() && !is_string(&self.bytes) {
            // Starts another sequence, or is Alt with one. Esc twice is not Alt+Esc.
            if self.bytes != b"\x1b" {
                self.give_up(out);
            }
        } else if is_broken_string(&self.bytes, byte) {
            // A key inside a response means that the end of the response was lost.
            if self.drop_sequence(out).last() == Some(&0x1b) {
                self.bytes.push(0x1b);
                return self.on_byte(byte, out);
            }
        }
        self.bytes.push(byte);
        // Esc before a key: Alt, as sent by iTerm2 and rxvt. Before anything else, it was pressed alone.
        let has_alt = self.bytes.starts_with(b"\x1b\x1b");
        let sequence = self.bytes.get(usize::from(has_alt)..).unwrap_or_default();
        let is_paste = sequence == PASTE_START;
        let mut found = if is_paste { Found::Nothing } else { find(sequence) };
        if has_alt {
            match &mut found {
                Found::Open => {}
                Found::This(TtyEvent::Input(Event::Key(key))) => key.modifiers |= KeyModifiers::ALT,
                Found::Nothing | Found::TooLong | Found::This(_) => out.push(escape()),
            }
        }
        match found {
            Found::Open => return,
            Found::Nothing => self.is_pasting = is_paste,
            Found::This(reported) => out.push(reported),
            Found::TooLong => {
                self.drop_sequence(out);
                // A string without meaning.
                self.bytes.extend([0x1b, b'X', byte]);
                return;
            }
        }
        self.bytes.clear();
    }

    /// Removes the incomplete sequence. A part of the clipboard that is missing is reported.
    fn drop_sequence(&mut self, out: &mut Vec<TtyEvent>) -> Vec<u8> {
        if self.bytes.starts_with(CLIPBOARD_START) {
            out.push(TtyEvent::Clipboard(ClipboardPacket::BROKEN));
        }
        std::mem::take(&mut self.bytes)
    }

    fn on_paste(&mut self, byte: u8, out: &mut Vec<TtyEvent>) {
        self.bytes.push(byte);
        if byte == b'~' && self.bytes.ends_with(PASTE_END) {
            self.is_pasting = false;
            // Empty if the clipboard contains an image.
            let text = self.bytes.len() - PASTE_END.len();
            self.deliver_paste(text, out);
            self.bytes.clear();
        } else if self.bytes.len() >= PASTE_MAX_BYTES + PASTE_END.len() {
            // Neither the start of the end marker nor an incomplete character is delivered.
            let known = self.bytes.get(..PASTE_MAX_BYTES).unwrap_or_default();
            let text = match std::str::from_utf8(known) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => PASTE_MAX_BYTES,
            };
            self.deliver_paste(text, out);
            self.bytes.drain(..text);
        }
    }

    fn deliver_paste(&self, len: usize, out: &mut Vec<TtyEvent>) {
        let text = self.bytes.get(..len).unwrap_or_default();
        out.push(TtyEvent::Input(Event::Paste(String::from_utf8_lossy(text).into_owned())));
    }
}

fn escape() -> TtyEvent {
    TtyEvent::Input(Event::Key(KeyCode::Esc.into()))
}

/// Whether an incomplete sequence is a string: OSC, DCS, APC, PM, SOS.
fn is_string(bytes: &[u8]) -> bool {
    matches!(bytes, [0x1b, b']' | b'P' | b'_' | b'^' | b'X', _, ..])
}

/// Whether a byte cannot continue the incomplete string.
fn is_broken_string(bytes: &[u8], byte: u8) -> bool {
    is_string(bytes)
        && match bytes.last() {
            Some(0x1b) => byte != b'\\',
            _ => byte < b' ' && !matches!(byte, 0x07 | 0x1b),
        }
}

fn find(bytes: &[u8]) -> Found {
    match bytes {
        // The latter starts F1 to F4 of Konsole.
        [0x1b] | [0x1b, b'O', b'2'..=b'8'] => Found::Open,
        // Strings: OSC, DCS, APC, PM, SOS.
        [0x1b, kind @ (b']' | b'P' | b'_' | b'^' | b'X'), rest @ ..] => {
            let is_clipboard = bytes.starts_with(CLIPBOARD_START);
            find_string(*kind, rest, if is_clipboard { CLIPBOARD_MAX_BYTES } else { ANSWER_MAX_BYTES })
        }
        // Control sequences with a private marker are not keys, except `<` for the mouse.
        [0x1b, b'[', mark @ (b'?' | b'>' | b'='), rest @ ..] => match rest.split_last() {
            Some((end @ 0x40..=0x7e, parameters)) => find_report(*mark, parameters, *end),
            _ if bytes.len() > ANSWER_MAX_BYTES => Found::Nothing,
            _ => Found::Open,
        },
        // The response with the cell size starts like the key Page Down with a modifier, and ends with another letter.
        [0x1b, b'[', b'6', b';', size @ .., b't'] => {
            cell_size(size).map_or(Found::Nothing, |(cols, rows)| Found::This(TtyEvent::CellSize(cols, rows)))
        }
        [0x1b, b'[', b'6', b';', size @ ..]
            if size.len() < 16 && size.iter().all(|byte| byte.is_ascii_digit() || *byte == b';') =>
        {
            Found::Open
        }
        // The position of the cursor after an ambiguous character at the start of the second row. F3 with a modifier has
        // another row.
        [0x1b, b'[', b'2', b';', col @ (b'2' | b'3'), b'R'] => {
            Found::This(TtyEvent::AmbiguousWidth(u16::from(col - b'1')))
        }
        _ => match terminput::Event::parse_from(&as_xterm(bytes)) {
            Ok(None) if bytes.len() > KEY_MAX_BYTES => Found::Nothing,
            Ok(None) => Found::Open,
            Ok(Some(event)) => terminput_crossterm::to_crossterm(event)
                .map_or(Found::Nothing, |event| Found::This(TtyEvent::Input(event))),
            Err(_) => Found::Nothing,
        },
    }
}

/// Converts the keys of other terminals to those that the parser reads. Others are returned unchanged.
fn as_xterm(bytes: &[u8]) -> Cow<'_, [u8]> {
    let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<u32>().ok();
    let sequence = match bytes {
        // rxvt: arrows with Shift and with Ctrl; other keys with Shift, Ctrl, and both.
        [0x1b, b'[', arrow @ b'a'..=b'd'] => Some(format!("1;2{}", char::from(arrow.to_ascii_uppercase()))),
        [0x1b, b'O', arrow @ b'a'..=b'd'] => Some(format!("1;5{}", char::from(arrow.to_ascii_uppercase()))),
        [0x1b, b'[', key @ .., last @ (b'$' | b'^' | b'@')] => {
            let modifiers = match last {
                b'$' => 2,
                b'^' => 5,
                _ => 6,
            };
            number(key).map(|key| format!("{key};{modifiers}~"))
        }
        // Konsole: F1 to F4 with modifiers.
        [0x1b, b'O', modifiers @ b'2'..=b'8', key @ b'P'..=b'S'] => {
            Some(format!("1;{}{}", char::from(*modifiers), char::from(*key)))
        }
        // XTMODKEYS: modifiers and character, of which Shift is part.
        [0x1b, b'[', b'2', b'7', b';', rest @ .., b'~'] => {
            let mut numbers = rest.split(|byte| *byte == b';').filter_map(number);
            let pair = numbers.next().zip(numbers.next());
            pair.map(|(modifiers, key)| {
                let ch = char::from_u32(key).unwrap_or_default();
                format!("{};{modifiers}u", u32::from(ch.to_ascii_lowercase()))
            })
        }
        // The kitty protocol, report alternate keys: the parser would replace Shift with the shifted form of a letter
        // (`CSI 99:67;6u` is Ctrl+Shift+C), which does not distinguish Ctrl+C.
        [0x1b, b'[', key @ .., b'u'] => std::str::from_utf8(key).ok().and_then(without_shifted_letter),
        _ => None,
    };
    sequence.map_or(Cow::Borrowed(bytes), |sequence| Cow::Owned(format!("\x1b[{sequence}").into_bytes()))
}

fn without_shifted_letter(text: &str) -> Option<String> {
    let (key, rest) = text.split_once(':')?;
    let (shifted, rest) = rest.split_at(rest.find([':', ';'])?);
    let is_letter = char::from_u32(shifted.parse().ok()?)?.is_alphabetic();
    is_letter.then(|| format!("{key}{rest}u"))
}

/// Decodes a string with a maximum length, or finds that it is incomplete.
fn find_string(kind: u8, rest: &[u8], max: usize) -> Found {
    let body = match rest {
        [body @ .., 0x07] | [body @ .., 0x1b, b'\\'] => body,
        _ if rest.len() > max => return Found::TooLong,
        _ => return Found::Open,
    };
    let reported = match kind {
        b']' => match body.strip_prefix(b"5522;") {
            Some(part) => ClipboardPacket::parse(part).map(TtyEvent::Clipboard),
            None => body.strip_prefix(b"11;").and_then(colour_of).map(TtyEvent::Background),
        },
        b'_' => body.strip_prefix(b"Gi=").and_then(kitty_question).map(TtyEvent::Kitty),
        b'P' => {
            body.strip_prefix(b">|").map(|name| TtyEvent::Name(String::from_utf8_lossy(name).into_owned()))
        }
        _ => None,
    };
    reported.map_or(Found::Nothing, Found::This)
}

/// The number of a successful kitty graphics query: `31;OK`. Source: kitty graphics protocol, querying support.
fn kitty_question(answer: &[u8]) -> Option<u32> {
    let (number, word) = std::str::from_utf8(answer).ok()?.split_once(';')?;
    number.parse().ok().filter(|_| word == "OK")
}

/// Width and height of a cell in pixels, from `height;width`. Source: xterm, window manipulation, report 16.
fn cell_size(answer: &[u8]) -> Option<(u16, u16)> {
    let (height, width) = std::str::from_utf8(answer).ok()?.split_once(';')?;
    let size = (width.parse().ok()?, height.parse().ok()?);
    (1..=512).contains(&size.0).then_some(size).filter(|size| (1..=512).contains(&size.1))
}

/// DECRPM: `CSI ? mode ; value $ y`. 0: unknown, 1: set, 2: reset, 3: always set, 4: always reset. A mode that cannot be
/// changed does not synchronize frames.
fn find_report(mark: u8, parameters: &[u8], end: u8) -> Found {
    match (mark, parameters, end) {
        (b'?', [b'2', b'0', b'2', b'6', b';', value, b'$'], b'y') => {
            Found::This(TtyEvent::Synchronizes(matches!(value, b'1' | b'2')))
        }
        // Paste events, of which only the requests that they require are used.
        (b'?', [b'5', b'5', b'2', b'2', b';', value, b'$'], b'y') => {
            Found::This(TtyEvent::HasClipboard(matches!(value, b'1'..=b'3')))
        }
        (b'?', b"997;1" | b"997;2", b'n') => Found::This(TtyEvent::IsDark(parameters.ends_with(b"1"))),
        // DA1; 4 is sixel.
        (b'?', attributes, b'c') => {
            let has_sixel = attributes.split(|byte| *byte == b';').skip(1).any(|attribute| attribute == b"4");
            Found::This(TtyEvent::Sixel(has_sixel))
        }
        _ => Found::Nothing,
    }
}

/// Parses `rgb:rrrr/gggg/bbbb` (1 to 4 digits each, as in X11) and `#rrggbb`.
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
