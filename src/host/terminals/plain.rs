//! Converts terminal output of a command to plain text for the agent.
//!
//! Removes escape sequences, converts line ends to `\n`, and applies carriage returns as a terminal would (progress
//! bars), so that only the last state of a line remains. Bytes may be split anywhere. Cursor movements between
//! lines end the line.

use super::ring::Ring;

/// Maximum length of a line; longer ones are split, and the parts can no longer be overwritten.
const MAX_LINE_CHARS: usize = 16 << 10;

/// Maximum length of a title or other string sequence before it is treated as unterminated.
const MAX_STRING_CHARS: usize = 4096;

/// Maximum length of the parameters of a sequence.
const MAX_PARAM_CHARS: usize = 32;

/// The state between two reads.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// Bytes of an incomplete character.
    carry: Vec<u8>,
    mode: Mode,
    line: Vec<char>,
    column: usize,
}

#[derive(Debug, Default)]
enum Mode {
    #[default]
    Text,
    Escape,
    Control(String),
    /// In a string (title, link, device control), with its length.
    Skip(usize),
    /// After an escape in a string.
    SkipEscape,
}

impl Plain {
    /// Processes bytes, and appends complete lines to the ring.
    pub(super) fn feed(&mut self, bytes: &[u8], out: &mut Ring) {
        let mut all = std::mem::take(&mut self.carry);
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => return self.text(text, out),
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    self.text(std::str::from_utf8(good).unwrap_or_default(), out);
                    let Some(len) = error.error_len() else {
                        self.carry = bad.to_vec();
                        return;
                    };
                    self.step(char::REPLACEMENT_CHARACTER, out);
                    rest = bad.get(len..).unwrap_or_default();
                }
            }
        }
    }

    /// The incomplete line, including the bytes of an incomplete character.
    pub(super) fn unfinished(&self) -> String {
        let mut text: String = self.line.iter().collect();
        if !self.carry.is_empty() {
            text.push_str(&String::from_utf8_lossy(&self.carry));
        }
        text
    }

    fn text(&mut self, text: &str, out: &mut Ring) {
        for c in text.chars() {
            self.step(c, out);
        }
    }

    #[expect(clippy::match_same_arms, reason = "the order of the arms is their precedence")]
    fn step(&mut self, c: char, out: &mut Ring) {
        self.mode = match (std::mem::take(&mut self.mode), c) {
            (Mode::SkipEscape, '\\') | (Mode::Skip(_), '\x07' | '\u{9c}') => Mode::Text,
            // Cancels any sequence.
            (_, '\x18' | '\x1a') => Mode::Text,
            (Mode::Skip(_), '\x1b') => Mode::SkipEscape,
            (Mode::Skip(len), _) if len < MAX_STRING_CHARS => Mode::Skip(len + 1),
            (_, '\x1b') => Mode::Escape,
            (Mode::Escape | Mode::SkipEscape, '[') => Mode::Control(String::new()),
            (Mode::Escape | Mode::SkipEscape, ']' | 'P' | 'X' | '^' | '_') => Mode::Skip(0),
            // Intermediate bytes: the final one follows.
            (Mode::Escape | Mode::SkipEscape, ' '..='/') => Mode::Escape,
            (Mode::Escape | Mode::SkipEscape, c) if c >= ' ' => Mode::Text,
            (Mode::Control(params), '@'..='~') => {
                self.control(&params, c, out);
                Mode::Text
            }
            (Mode::Control(mut params), ' '..='?') => {
                if params.len() < MAX_PARAM_CHARS {
                    params.push(c);
                }
                Mode::Control(params)
            }
            (Mode::Text, '\u{9b}') => Mode::Control(String::new()),
            (Mode::Text, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => Mode::Skip(0),
            (Mode::Text | Mode::Skip(_), c) => {
                self.put(c, out);
                Mode::Text
            }
            // A control character inside a sequence has its usual effect; anything else ends the sequence.
            (mode, c) => {
                self.put(c, out);
                if c < ' ' { mode } else { Mode::Text }
            }
        };
    }

    fn put(&mut self, c: char, out: &mut Ring) {
        match c {
            '\n' | '\x0b' | '\x0c' => self.end_line(out),
            '\r' => self.column = 0,
            '\x08' => self.column = self.column.saturating_sub(1),
            '\t' => self.write('\t', out),
            c if c.is_control() => {}
            c => self.write(c, out),
        }
    }

    fn write(&mut self, c: char, out: &mut Ring) {
        if self.column > self.line.len() {
            self.line.resize(self.column, ' ');
        }
        match self.line.get_mut(self.column) {
            Some(old) => *old = c,
            None => self.line.push(c),
        }
        self.column += 1;
        if self.column >= MAX_LINE_CHARS {
            self.give_line(out);
        }
    }

    fn end_line(&mut self, out: &mut Ring) {
        self.line.push('\n');
        self.give_line(out);
    }

    fn give_line(&mut self, out: &mut Ring) {
        out.push(&self.line.drain(..).collect::<String>());
        self.column = 0;
    }

    /// Executes a control sequence. Private ones (with `?` and similar) change no text.
    fn control(&mut self, params: &str, last: char, out: &mut Ring) {
        if params.starts_with(['?', '<', '=', '>']) {
            return;
        }
        let mut numbers = params.split(';').map(|number| number.parse::<usize>().ok());
        let first = numbers.next().flatten();
        let second = numbers.next().flatten();
        let count = first.unwrap_or(1).max(1);
        match last {
            'C' | 'a' => self.go(self.column.saturating_add(count)),
            'D' => self.column = self.column.saturating_sub(count),
            'G' | '`' => self.go(count - 1),
            'K' => match first.unwrap_or(0) {
                0 => self.line.truncate(self.column),
                1 => self.blank(self.column.saturating_add(1)),
                _ => self.line.clear(),
            },
            'X' => {
                let end = self.column.saturating_add(count).min(self.line.len());
                for cell in self.line.iter_mut().take(end).skip(self.column) {
                    *cell = ' ';
                }
            }
            'P' => {
                let from = self.column.min(self.line.len());
                let to = from.saturating_add(count).min(self.line.len());
                self.line.drain(from..to);
            }
            'A' | 'B' | 'E' | 'F' | 'H' | 'd' | 'f' | 'e' => {
                if !self.line.is_empty() {
                    self.end_line(out);
                }
                let column = match last {
                    'H' | 'f' => second.unwrap_or(1).max(1) - 1,
                    _ => 0,
                };
                self.go(column);
            }
            'J' if first.unwrap_or(0) >= 2 && !self.line.is_empty() => self.end_line(out),
            _ => {}
        }
    }

    fn go(&mut self, column: usize) {
        self.column = column.min(MAX_LINE_CHARS - 1);
    }

    fn blank(&mut self, until: usize) {
        for cell in self.line.iter_mut().take(until) {
            *cell = ' ';
        }
    }
}
