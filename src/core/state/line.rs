//! A single line of text with a cursor, edited by graphemes.
//!
//! Invariants: no line breaks and no control characters; the cursor is at a grapheme boundary.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use crate::model::LineEdit;

/// A line of text with a cursor. Positions are bytes at grapheme boundaries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineInput {
    pub text: String,
    /// Position in bytes.
    pub cursor: usize,
}

impl LineInput {
    pub fn new(text: &str) -> Self {
        let text = as_one_line(text);
        Self { cursor: text.len(), text }
    }

    /// Applies an edit. Returns whether the text changed.
    pub fn apply(&mut self, edit: &LineEdit) -> bool {
        self.cursor = self.boundary_at_or_after(self.cursor);
        match edit {
            LineEdit::Insert(text) => {
                let text = as_one_line(text);
                self.text.insert_str(self.cursor, &text);
                // The inserted text may form a grapheme with the following text.
                self.cursor = self.boundary_at_or_after(self.cursor + text.len());
                !text.is_empty()
            }
            LineEdit::Backspace => self.remove_before(self.boundary_before()),
            LineEdit::DeleteWord => self.remove_before(self.word_before()),
            LineEdit::Delete => {
                let end = self.boundary_after();
                let is_change = end > self.cursor;
                self.text.replace_range(self.cursor..end, "");
                self.cursor = self.boundary_at_or_after(self.cursor);
                is_change
            }
            LineEdit::Clear => {
                let is_change = !self.text.is_empty();
                *self = Self::default();
                is_change
            }
            LineEdit::Left => self.move_to(self.boundary_before()),
            LineEdit::Right => self.move_to(self.boundary_after()),
            LineEdit::Home => self.move_to(0),
            LineEdit::End => self.move_to(self.text.len()),
        }
    }

    fn move_to(&mut self, position: usize) -> bool {
        self.cursor = position;
        false
    }

    fn remove_before(&mut self, start: usize) -> bool {
        let is_change = start < self.cursor;
        self.text.replace_range(start..self.cursor, "");
        self.cursor = self.boundary_at_or_after(start);
        is_change
    }

    fn boundary_before(&self) -> usize {
        let mut cursor = GraphemeCursor::new(self.cursor, self.text.len(), true);
        cursor.prev_boundary(&self.text, 0).ok().flatten().unwrap_or(0)
    }

    fn boundary_after(&self) -> usize {
        let mut cursor = GraphemeCursor::new(self.cursor, self.text.len(), true);
        cursor.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
    }

    /// The nearest boundary at or after `position`; also corrects an invalid cursor.
    fn boundary_at_or_after(&self, position: usize) -> usize {
        self.text
            .grapheme_indices(true)
            .map(|(start, _)| start)
            .find(|start| *start >= position)
            .unwrap_or(self.text.len())
    }

    fn word_before(&self) -> usize {
        let before = self.text.get(..self.cursor).unwrap_or_default();
        let trimmed = before.trim_end();
        trimmed.split_word_bound_indices().next_back().map_or(0, |(start, _)| start)
    }
}

/// Replaces line breaks and tabs of a paste by blanks and removes other control characters.
fn as_one_line(text: &str) -> String {
    let text = text.trim_matches(['\r', '\n']).replace("\r\n", " ");
    text.chars()
        .filter_map(|ch| match ch {
            '\n' | '\r' | '\t' => Some(' '),
            ch if ch.is_control() => None,
            ch => Some(ch),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, cursor: usize) -> LineInput {
        LineInput { text: text.to_owned(), cursor }
    }

    #[test]
    fn edits_by_grapheme() {
        let family = "👨‍👩‍👧";
        let mut input = LineInput::new("a");
        assert!(input.apply(&LineEdit::Insert(family.to_owned())));
        assert_eq!(input.cursor, 1 + family.len());
        assert!(!input.apply(&LineEdit::Left));
        assert_eq!(input.cursor, 1);
        assert!(input.apply(&LineEdit::Delete));
        assert_eq!(input, line("a", 1));
        assert!(input.apply(&LineEdit::Insert("e\u{301}".to_owned())));
        assert!(input.apply(&LineEdit::Backspace));
        assert_eq!(input, line("a", 1));
    }

    #[test]
    fn an_inserted_combining_mark_leaves_the_cursor_at_a_boundary() {
        let mut input = line("👨👧", 4);
        input.apply(&LineEdit::Insert("\u{200d}".to_owned()));
        assert_eq!(input.cursor, input.text.len());
    }

    #[test]
    fn removes_words_with_the_blanks_after_them() {
        let mut input = LineInput::new("one two  ");
        assert!(input.apply(&LineEdit::DeleteWord));
        assert_eq!(input, line("one ", 4));
        assert!(input.apply(&LineEdit::DeleteWord));
        assert_eq!(input, line("", 0));
        assert!(!input.apply(&LineEdit::DeleteWord));
    }

    #[test]
    fn the_cursor_stops_at_both_ends() {
        let mut input = LineInput::new("ab");
        for edit in [LineEdit::Right, LineEdit::End, LineEdit::Delete] {
            assert!(!input.apply(&edit));
            assert_eq!(input, line("ab", 2));
        }
        for edit in [LineEdit::Home, LineEdit::Left, LineEdit::Backspace] {
            assert!(!input.apply(&edit));
            assert_eq!(input, line("ab", 0));
        }
        assert!(input.apply(&LineEdit::Clear));
        assert!(!input.apply(&LineEdit::Clear));
    }

    #[test]
    fn a_paste_stays_on_one_line() {
        let mut input = LineInput::default();
        input.apply(&LineEdit::Insert("key\r\nwith\ttab\u{1b}\n".to_owned()));
        assert_eq!(input.text, "key with tab");
    }

    #[test]
    fn a_cursor_within_a_character_is_corrected() {
        let mut input = line("ä", 1);
        assert!(input.apply(&LineEdit::Backspace));
        assert_eq!(input, line("", 0));
        let mut input = line("ab", 99);
        input.apply(&LineEdit::Insert("c".to_owned()));
        assert_eq!(input, line("abc", 3));
    }
}
