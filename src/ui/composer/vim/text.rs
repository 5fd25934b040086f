//! A text with a cursor, and the steps that motions are made of.
//!
//! Positions are byte offsets on grapheme boundaries. The position of a line break, or of the end of the text, is the
//! one after the last character of its line.

use std::ops::Range;

use unicode_segmentation::GraphemeCursor;

use crate::model::chips;
use crate::ui::text::{boundary_before, width};

/// A text with a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    pub text: String,
    pub at: usize,
}

/// The result of a step over a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Inside,
    /// Moved to the end of the line, after its last character.
    ToEnd,
    OtherLine,
    /// At the start or the end of the text: not moved.
    Stuck,
}

/// The class of a blank, a line break, or the end of the text.
pub const BLANK: u32 = 0;
const PUNCTUATION: u32 = 1;
const WORD: u32 = 2;
const EMOJI: u32 = 3;

impl Text {
    /// The text in a range; empty if the range is invalid.
    pub fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    /// The same text without the characters of labels, in which nothing can be found.
    pub fn without_labels(&self) -> Self {
        let mut text = self.clone();
        for chip in chips(&self.text) {
            text.text.replace_range(chip.clone(), &"\u{1}".repeat(chip.len()));
        }
        text
    }

    pub fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at..).and_then(|rest| rest.chars().next())
    }

    /// The nearest grapheme boundary at or before a position; the start of the label that it is in.
    pub fn floor(&self, at: usize) -> usize {
        let at = boundary_before(&self.text, at);
        let start = self.line_start(at);
        let column = at - start;
        if let Some(chip) =
            chips(self.line(at)).into_iter().find(|chip| (chip.start + 1..chip.end).contains(&column))
        {
            return start + chip.start;
        }
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        match cursor.is_boundary(&self.text, 0) {
            Ok(false) => self.before(at),
            _ => at,
        }
    }

    /// The end of the next grapheme or label, also over a line break.
    pub fn after(&self, at: usize) -> usize {
        if let Some(chip) = self.chip_at(at, |chip| chip.start == at) {
            return chip.end;
        }
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        cursor.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
    }

    /// The start of the previous grapheme or label, also over a line break.
    pub fn before(&self, at: usize) -> usize {
        if let Some(chip) = self.chip_at(at, |chip| chip.end == at) {
            return chip.start;
        }
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        cursor.prev_boundary(&self.text, 0).ok().flatten().unwrap_or(0)
    }

    /// The label of an attachment beside this position, which is one character.
    fn chip_at(&self, at: usize, is_it: impl Fn(&Range<usize>) -> bool) -> Option<Range<usize>> {
        let (before, after) = self.text.split_at_checked(at)?;
        if !before.ends_with(']') && !after.starts_with('[') {
            return None;
        }
        let start = self.line_start(at);
        let chips = chips(self.slice(start..self.line_end(at))).into_iter();
        chips.map(|chip| start + chip.start..start + chip.end).find(is_it)
    }

    pub fn line_start(&self, at: usize) -> usize {
        self.slice(0..at).rfind('\n').map_or(0, |end| end + 1)
    }

    /// The end of the line with this position, before its line break.
    pub fn line_end(&self, at: usize) -> usize {
        self.slice(at..self.text.len()).find('\n').map_or(self.text.len(), |len| at + len)
    }

    pub fn line(&self, at: usize) -> &str {
        self.slice(self.line_start(at)..self.line_end(at))
    }

    pub fn is_first_line(&self, at: usize) -> bool {
        self.line_start(at) == 0
    }

    pub fn is_last_line(&self, at: usize) -> bool {
        self.line_end(at) == self.text.len()
    }

    /// Whether the position is after the last character of its line.
    pub fn is_line_end(&self, at: usize) -> bool {
        self.char_at(at).is_none_or(|ch| ch == '\n')
    }

    pub fn is_empty_line(&self, at: usize) -> bool {
        self.is_line_end(at) && self.line_start(at) == at
    }

    /// The start of the line that is a number of lines below (negative: above), limited to the text.
    pub fn line_beside(&self, at: usize, by: isize) -> usize {
        let mut start = self.line_start(at);
        for _ in 0..by.unsigned_abs() {
            if by < 0 && start > 0 {
                start = self.line_start(start - 1);
            } else if by > 0 && !self.is_last_line(start) {
                start = self.line_end(start) + 1;
            } else {
                break;
            }
        }
        start
    }

    /// The first character of the line that is not blank, otherwise the end of the line.
    pub fn first_nonblank(&self, at: usize) -> usize {
        let line = self.line(at);
        self.line_start(at) + line.len() - line.trim_start_matches([' ', '\t']).len()
    }

    /// The last character of the line; its start if the line is empty.
    pub fn last_char(&self, at: usize) -> usize {
        let (start, end) = (self.line_start(at), self.line_end(at));
        if start == end { start } else { self.before(end) }
    }

    /// The position on a character of the same line, if there is any.
    pub fn on_char(&self, at: usize) -> usize {
        let at = self.floor(at.min(self.text.len()));
        at.min(self.last_char(at))
    }

    pub fn column(&self, at: usize) -> usize {
        width(self.slice(self.line_start(at)..at))
    }

    /// The position in a line at a column on the screen, or the end of the line.
    pub fn at_column(&self, line: usize, column: usize) -> usize {
        let (mut at, end, mut seen) = (self.line_start(line), self.line_end(line), 0);
        while at < end {
            let next = self.after(at);
            seen += width(self.slice(at..next));
            if seen > column {
                break;
            }
            at = next;
        }
        at
    }

    /// The class of the character at a position: words consist of characters of one class. `is_big`: all characters that
    /// are not blank have the same class.
    pub fn class(&self, at: usize, is_big: bool) -> u32 {
        match self.char_at(at) {
            None | Some(' ' | '\t' | '\n') => BLANK,
            Some(_) if is_big => PUNCTUATION,
            Some(ch) => class(ch),
        }
    }

    /// Moves the cursor one character forward, over ends of lines.
    pub fn forward(&mut self) -> Step {
        match self.char_at(self.at) {
            None => Step::Stuck,
            Some('\n') => {
                self.at += 1;
                Step::OtherLine
            }
            Some(_) => {
                self.at = self.after(self.at);
                if self.is_line_end(self.at) { Step::ToEnd } else { Step::Inside }
            }
        }
    }

    /// Moves the cursor one character back; from the start of a line to the end of the one before.
    pub fn back(&mut self) -> Step {
        if self.at == 0 {
            return Step::Stuck;
        }
        let is_start = self.line_start(self.at) == self.at;
        self.at = if is_start { self.at - 1 } else { self.before(self.at) };
        if is_start { Step::OtherLine } else { Step::Inside }
    }

    pub fn replace(&mut self, range: Range<usize>, text: &str) {
        if self.text.get(range.clone()).is_some() {
            self.text.replace_range(range, text);
        }
    }
}

/// The class of a character, as in vim: scripts without blanks between words have classes of their own.
fn class(ch: char) -> u32 {
    match u32::from(ch) {
        0x3041..=0x309f => 0x3040,
        0x30a0..=0x30ff | 0x31f0..=0x31ff | 0xff66..=0xff9d => 0x30a0,
        0x3400..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff => 0x4e00,
        0xac00..=0xd7a3 => 0xac00,
        0x1f000..=0x1faff | 0x2600..=0x27bf => EMOJI,
        _ if ch == '_' || ch.is_alphanumeric() => WORD,
        _ => PUNCTUATION,
    }
}
