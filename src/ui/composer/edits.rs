//! Actions that edit the prompt or move its cursor.
//!
//! Invariant: the cursor moves over graphemes and labels, although the text area counts characters.

use tui_textarea::{CursorMove, DataCursor};
use unicode_segmentation::UnicodeSegmentation;

use super::Composer;
use super::chips::Side;
use super::vim::text::Text;
use crate::model::Action;

impl Composer {
    /// Runs an action that edits the text or moves the cursor; `selects`: a motion also selects. Returns whether the
    /// text changed; `None` if it is another action.
    pub(in crate::ui) fn act(&mut self, action: Action, selects: bool) -> Option<bool> {
        let motion = match action {
            Action::CursorLeft => Some(CursorMove::Back),
            Action::CursorRight => Some(CursorMove::Forward),
            Action::HistoryPrevious if selects => Some(CursorMove::Up),
            Action::HistoryNext if selects => Some(CursorMove::Down),
            Action::WordLeft => Some(CursorMove::WordBack),
            Action::WordRight => Some(CursorMove::WordForward),
            Action::LineStart => Some(CursorMove::Head),
            Action::LineEnd => Some(CursorMove::End),
            Action::ParagraphUp => Some(CursorMove::ParagraphBack),
            Action::ParagraphDown => Some(CursorMove::ParagraphForward),
            Action::DraftStart => Some(CursorMove::Jump(0, 0)),
            Action::DraftEnd => Some(CursorMove::Bottom),
            _ => None,
        };
        let before = Text { text: self.text(), at: self.offset() };
        let is_change = if let Some(motion) = motion {
            self.travel(motion, selects);
            false
        } else {
            match action {
                Action::DeleteBefore => self.erase(-1),
                Action::DeleteAfter => self.erase(1),
                Action::DeleteWordBefore => self.erase_word(CursorMove::WordBack),
                Action::DeleteWordAfter => self.erase_word(CursorMove::WordForward),
                Action::DeleteToLineStart => self.area.delete_line_by_head(),
                Action::DeleteToLineEnd => self.area.delete_line_by_end(),
                Action::Yank => self.yank(),
                Action::YankPop => self.yank_pop(),
                Action::Transpose => self.transpose(),
                Action::UppercaseWord | Action::LowercaseWord | Action::CapitalizeWord => {
                    self.change_case(action)
                }
                Action::Undo => return Some(self.undo(1, false)),
                Action::Redo => return Some(self.undo(1, true)),
                _ => return None,
            }
        };
        self.note_kill(action, &before);
        self.forget();
        Some(is_change)
    }

    /// Moves the cursor; by characters, to the next or previous grapheme boundary.
    fn travel(&mut self, motion: CursorMove, selects: bool) {
        if !selects {
            self.area.cancel_selection();
        } else if !self.area.is_selecting() {
            self.area.start_selection();
        }
        if matches!(motion, CursorMove::WordBack | CursorMove::WordForward) {
            return self.travel_word(motion);
        }
        let steps = match motion {
            CursorMove::Back => self.before(),
            CursorMove::Forward => self.after(),
            _ => 1,
        };
        for _ in 0..steps.max(1) {
            self.area.move_cursor(motion);
        }
        self.leave_chip(if motion == CursorMove::Up { Side::Start } else { Side::End });
        if motion == CursorMove::Bottom {
            self.area.move_cursor(CursorMove::End);
        }
    }

    /// Deletes the grapheme or label before or after the cursor, or the selected text.
    pub(super) fn erase(&mut self, direction: i8) -> bool {
        if !self.area.is_selecting() && self.erase_chip(direction > 0) {
            return true;
        }
        // The text area deletes the selected text instead of one character.
        let chars = if self.area.is_selecting() {
            1
        } else if direction < 0 {
            self.before()
        } else {
            self.after()
        };
        let mut is_change = false;
        for _ in 0..chars.max(1) {
            is_change |= if direction < 0 { self.area.delete_char() } else { self.area.delete_next_char() };
        }
        is_change
    }

    /// Replaces the backslash before the cursor with a line break, for terminals that do not report Shift+Enter. Returns
    /// whether there was one.
    pub(in crate::ui) fn break_at_backslash(&mut self) -> bool {
        let DataCursor(row, col) = self.area.cursor();
        if col.checked_sub(1).and_then(|before| self.line(row).chars().nth(before)) != Some('\\') {
            return false;
        }
        self.erase(-1);
        self.new_line();
        true
    }

    /// Number of chars in the grapheme or label before the cursor; 0 at the start of a line.
    pub(super) fn before(&self) -> usize {
        let DataCursor(row, col) = self.area.cursor();
        let head: String = self.line(row).chars().take(col).collect();
        let grapheme = || head.graphemes(true).next_back().map_or(0, |last| last.chars().count());
        self.chip_beside(false).unwrap_or_else(grapheme)
    }

    fn after(&self) -> usize {
        let DataCursor(row, col) = self.area.cursor();
        let tail: String = self.line(row).chars().skip(col).collect();
        let grapheme = || tail.graphemes(true).next().map_or(0, |first| first.chars().count());
        self.chip_beside(true).unwrap_or_else(grapheme)
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::*;

    fn type_character(composer: &mut Composer, ch: char) {
        composer.on_key(&KeyEvent::new(KeyCode::Char(ch), KeyModifiers::NONE));
    }

    fn typed(text: &str) -> Composer {
        let mut composer = Composer::default();
        text.chars().for_each(|ch| type_character(&mut composer, ch));
        composer
    }

    #[test]
    fn a_motion_that_selects_marks_text_for_deletion() {
        let mut composer = typed("one two");
        composer.insert("👨‍👩‍👧");
        composer.act(Action::LineStart, true);
        assert_eq!(composer.act(Action::DeleteBefore, false), Some(true));
        assert_eq!(composer.text(), "");
        assert_eq!(composer.act(Action::Yank, false), Some(false), "the selection is not the deleted text");
    }

    #[test]
    fn draft_and_paragraph_motions_reach_the_ends() {
        let mut composer = Composer::default();
        composer.set_text("one\ntwo\n\nthree");
        composer.act(Action::DraftStart, false);
        type_character(&mut composer, 'a');
        composer.act(Action::ParagraphDown, false);
        composer.act(Action::LineStart, false);
        type_character(&mut composer, 'b');
        composer.act(Action::DraftEnd, false);
        type_character(&mut composer, 'c');
        assert_eq!(composer.text(), "aone\ntwo\n\nbthreec");
    }

    #[test]
    fn replaced_text_is_restored_by_undo() {
        let mut composer = typed("old");
        composer.set_text("new\ntext");
        assert_eq!(composer.text(), "new\ntext");
        composer.act(Action::Undo, false);
        assert_eq!(composer.text(), "old");
    }
}
