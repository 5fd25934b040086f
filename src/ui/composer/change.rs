//! Changes of the whole text, undo and redo.
//!
//! The undo steps are recorded in [`super::history`], one per session, because the text area has one step per character
//! and loses them when the text is replaced.

use std::collections::BTreeMap;
use std::ops::Range;

use tui_textarea::{CursorMove, DataCursor};

use super::history::{History, difference};
use super::vim::restored;
use super::{Composer, chips, clean, text_area};
use crate::model::SessionKey;

/// The history of the shown session, and those of the others.
#[derive(Debug, Clone, Default)]
pub(super) struct Histories {
    pub current: History,
    of: Option<SessionKey>,
    others: BTreeMap<SessionKey, History>,
}

impl Composer {
    /// Replaces the text as one undo step, and moves the cursor to its end.
    pub fn set_text(&mut self, text: &str) {
        let text = clean(text);
        self.change(&text, text.len());
    }

    /// Clears the text as one undo step.
    pub fn clear(&mut self) {
        self.set_text("");
        self.start_typing();
    }

    /// Replaces a byte range of the text as one undo step, and moves the cursor to its end.
    pub fn replace_range(&mut self, range: Range<usize>, text: &str) {
        let mut all = self.text();
        let text = clean(text);
        if all.get(range.clone()).is_some() {
            let end = range.start + text.len();
            all.replace_range(range, &text);
            self.change(&all, end);
        }
    }

    pub fn show_session(&mut self, key: SessionKey, text: &str) {
        if self.histories.of != Some(key) {
            self.commit();
            let current = std::mem::take(&mut self.histories.current);
            if let Some(former) = self.histories.of.replace(key) {
                self.histories.others.insert(former, current);
            }
            let known = self.histories.others.remove(&key);
            self.histories.current = known.unwrap_or_else(|| History::new(text));
            self.start_typing();
        }
        if self.text() != text || self.histories.current.text() != text {
            let text = clean(text);
            self.show(&text, text.len());
            self.forget();
            self.commit();
        }
    }

    /// Discards the histories of closed sessions.
    pub fn retain_sessions(&mut self, is_open: impl Fn(SessionKey) -> bool) {
        self.histories.others.retain(|key, _| is_open(*key));
    }

    /// Replaces the text as one undo step of its own.
    pub(super) fn change(&mut self, text: &str, at: usize) {
        self.commit();
        self.show(text, at);
        self.forget();
        self.commit();
    }

    /// Records what was changed since the last step, unless insert mode collects it.
    pub(super) fn record(&mut self) {
        if !self.vim.as_ref().is_some_and(super::vim::Vim::is_inserting) {
            self.commit();
        }
    }

    /// Records what was changed since the last step.
    pub(super) fn commit(&mut self) {
        let at = self.offset();
        let text = self.text();
        self.histories.current.record(&text, at);
    }

    /// Undoes or repeats steps. Returns whether the text changed.
    pub(super) fn undo(&mut self, times: usize, is_redo: bool) -> bool {
        self.commit();
        let history = &mut self.histories.current;
        let last = (0..times).map_while(|_| if is_redo { history.redo() } else { history.undo() }).last();
        let Some(last) = last else { return false };
        match &self.vim {
            Some(vim) if !vim.is_inserting() => {
                let now = restored(last);
                self.show(&now.text, now.at);
            }
            _ => self.show(&last.text, last.at),
        }
        self.forget();
        true
    }

    /// Brings the text area to a text and a cursor position. Only the part that differs is replaced, so that it does not
    /// scroll.
    pub(super) fn show(&mut self, text: &str, at: usize) {
        let old = self.area.lines().join("\n");
        self.labels = chips::shown_labels(text);
        let at = self.without_ids(text.get(..at).unwrap_or(text)).len();
        let text = &self.without_ids(text);
        self.area.cancel_selection();
        if let Some((range, new)) = difference(&old, text) {
            let (from, to) = (jump(&old, range.start), jump(&old, range.end));
            if let Some((from, to)) = from.zip(to) {
                self.area.move_cursor(from);
                if !range.is_empty() {
                    self.area.start_selection();
                    self.area.move_cursor(to);
                }
                self.area.insert_str(text.get(new).unwrap_or_default());
            } else {
                // The text area cannot select more than 65,535 characters of a line.
                self.area = text_area(text.split('\n').map(str::to_owned).collect());
            }
        }
        if let Some(jump) = jump(text, at) {
            self.area.move_cursor(jump);
        } else {
            self.area.move_cursor(CursorMove::Bottom);
            self.area.move_cursor(CursorMove::End);
        }
    }

    /// The byte offset of the cursor.
    pub(in crate::ui) fn offset(&self) -> usize {
        let DataCursor(row, col) = self.area.cursor();
        let lines = self.area.lines();
        let start: usize = lines.iter().take(row).map(|line| self.with_ids(line).len() + 1).sum();
        let line = self.line(row);
        let before = line.get(..chips::byte_at(line, col)).unwrap_or_default();
        start + self.with_ids(before).len()
    }
}

/// Moves the cursor to a byte offset of the text; `None`: the text area cannot count that far.
fn jump(text: &str, at: usize) -> Option<CursorMove> {
    let head = text.get(..at)?;
    let row = head.matches('\n').count();
    let col = head.rsplit('\n').next().unwrap_or_default().chars().count();
    Some(CursorMove::Jump(u16::try_from(row).ok()?, u16::try_from(col).ok()?))
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::*;
    use crate::model::Action;

    fn typed(composer: &mut Composer, text: &str) {
        for ch in text.chars() {
            composer.on_key(&KeyEvent::new(KeyCode::Char(ch), KeyModifiers::NONE));
        }
    }

    fn undo(composer: &mut Composer) -> String {
        composer.act(Action::Undo, false);
        composer.text()
    }

    #[test]
    fn each_replacement_of_the_text_is_one_undo_step() {
        let mut composer = Composer::default();
        typed(&mut composer, "one");
        composer.clear();
        composer.set_text("from\nhistory");
        composer.replace_range(0..4, "@file.rs");
        composer.set_text("from the editor");
        composer.set_text("");
        assert_eq!(undo(&mut composer), "from the editor");
        assert_eq!(undo(&mut composer), "@file.rs\nhistory");
        assert_eq!(undo(&mut composer), "from\nhistory");
        assert_eq!(undo(&mut composer), "");
        assert_eq!(undo(&mut composer), "one");
        assert_eq!(undo(&mut composer), "");
        for expected in ["one", "", "from\nhistory"] {
            assert_eq!(composer.act(Action::Redo, false), Some(true));
            assert_eq!(composer.text(), expected);
        }
    }

    #[test]
    fn each_session_has_its_undo_history() {
        let mut composer = Composer::default();
        composer.show_session(SessionKey(1), "");
        typed(&mut composer, "one");
        composer.show_session(SessionKey(2), "two");
        assert_eq!(composer.act(Action::Undo, false), Some(false), "the other session's text");
        typed(&mut composer, "x");
        composer.show_session(SessionKey(1), "one");
        assert_eq!(undo(&mut composer), "");
        composer.show_session(SessionKey(2), "changed");
        assert_eq!(undo(&mut composer), "twox");
        assert_eq!(undo(&mut composer), "two");
        composer.retain_sessions(|key| key == SessionKey(2));
        composer.show_session(SessionKey(1), "one");
        assert_eq!(composer.act(Action::Undo, false), Some(false));
    }

    #[test]
    fn lines_longer_than_the_text_area_can_select_are_replaced() {
        let mut composer = Composer::default();
        let long = "x".repeat(70_000);
        composer.set_text(&long);
        typed(&mut composer, "y");
        assert_eq!(composer.text().len(), 70_001);
        assert!(composer.text().ends_with("xy"));
        composer.clear();
        assert_eq!(undo(&mut composer).len(), 70_001);
    }
}
