//! Undo and redo of the prompt: each step is a replaced part of the text.
//!
//! The history compares the text with the last known one, so that it does not matter how the text was changed.

use std::ops::Range;

use crate::ui::text::{boundary_after, boundary_before};

/// Maximum number of steps, and of bytes in them.
const MAX_STEPS: usize = 500;
const MAX_BYTES: usize = 8 << 20;

#[derive(Debug, Clone, Default)]
pub(super) struct History {
    /// The last known text, and the cursor position in it.
    text: String,
    at: usize,
    undo: Vec<Step>,
    redo: Vec<Step>,
    /// Whether the last step is typed text that more letters are added to.
    is_typing: bool,
}

/// A change of the text.
#[derive(Debug, Clone)]
struct Step {
    start: usize,
    removed: String,
    inserted: String,
    /// The cursor position before it, and after it.
    from: usize,
    to: usize,
}

/// The text after undo or redo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Restored {
    pub text: String,
    /// The cursor position that belongs to the text.
    pub at: usize,
    /// The cursor position before the step.
    pub from: usize,
    /// Where the text differs from the one before.
    pub start: usize,
}

impl History {
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), at: text.len(), ..Self::default() }
    }

    /// Sets the cursor position before the next change. Letters typed at another place are a new step.
    pub fn place(&mut self, at: usize) {
        if self.at != at {
            self.is_typing = false;
        }
        self.at = at;
    }

    /// The last known text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Records the change to this text as one step, if there is one. A typed letter is added to the word before.
    pub fn record(&mut self, text: &str, at: usize) {
        let Some((old, new)) = difference(&self.text, text) else { return self.place(at) };
        let step = Step {
            start: old.start,
            removed: self.text.get(old.clone()).unwrap_or_default().to_owned(),
            inserted: text.get(new.clone()).unwrap_or_default().to_owned(),
            from: self.at,
            to: at,
        };
        self.text.replace_range(old, &step.inserted);
        self.at = at;
        self.redo.clear();
        let mut letters = step.inserted.chars();
        let ch = letters.next().filter(|_| letters.next().is_none() && step.removed.is_empty());
        let is_typing = std::mem::replace(&mut self.is_typing, ch.is_some());
        match self.undo.last_mut() {
            Some(last)
                if is_typing
                    && ch.is_some_and(|ch| !starts_word(&last.inserted, ch))
                    && last.start + last.inserted.len() == step.start =>
            {
                last.inserted.push_str(&step.inserted);
                last.to = at;
            }
            _ => self.undo.push(step),
        }
        let mut bytes: usize = self.undo.iter().map(|step| step.removed.len() + step.inserted.len()).sum();
        let surplus = self.undo.iter().position(|step| {
            let is_fine = bytes <= MAX_BYTES;
            bytes -= step.removed.len() + step.inserted.len();
            is_fine
        });
        let surplus = surplus.unwrap_or(0).max(self.undo.len().saturating_sub(MAX_STEPS));
        self.undo.drain(..surplus);
    }

    /// Undoes the last step.
    pub fn undo(&mut self) -> Option<Restored> {
        let step = self.undo.pop()?;
        let restored = self.replace(step.start, step.inserted.len(), &step.removed, step.from, step.from);
        self.redo.push(step);
        Some(restored)
    }

    /// Repeats the last undone step.
    pub fn redo(&mut self) -> Option<Restored> {
        let step = self.redo.pop()?;
        let restored = self.replace(step.start, step.removed.len(), &step.inserted, step.from, step.to);
        self.undo.push(step);
        Some(restored)
    }

    fn replace(&mut self, start: usize, len: usize, text: &str, from: usize, at: usize) -> Restored {
        self.is_typing = false;
        self.text.replace_range(start..start + len, text);
        self.at = at;
        Restored { text: self.text.clone(), at, from, start }
    }
}

/// Whether a letter typed after a text starts a new word.
fn starts_word(before: &str, ch: char) -> bool {
    !ch.is_whitespace() && before.ends_with(char::is_whitespace)
}

/// The smallest ranges in which two texts differ; `None` if they are equal.
pub(super) fn difference(old: &str, new: &str) -> Option<(Range<usize>, Range<usize>)> {
    if old == new {
        return None;
    }
    let same = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
    let start = boundary_before(old, same).min(boundary_before(new, same));
    let max = (old.len() - start).min(new.len() - start);
    let same = old.bytes().rev().zip(new.bytes().rev()).take(max).take_while(|(old, new)| old == new).count();
    let end = boundary_after(old, old.len() - same);
    let same = (old.len() - end).min(new.len() - boundary_after(new, new.len() - same));
    Some((start..old.len() - same, start..new.len() - same))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(history: &mut History, text: &str) {
        for ch in text.chars() {
            let now = format!("{}{ch}", history.text);
            history.record(&now, now.len());
        }
    }

    #[test]
    fn typed_words_are_one_step_each() {
        let mut history = History::default();
        typed(&mut history, "one two\nthree");
        let texts: Vec<String> = std::iter::from_fn(|| history.undo().map(|undone| undone.text)).collect();
        assert_eq!(texts, ["one two\n", "one ", ""]);
        let texts: Vec<String> = std::iter::from_fn(|| history.redo().map(|redone| redone.text)).collect();
        assert_eq!(texts, ["one ", "one two\n", "one two\nthree"]);
    }

    #[test]
    fn letters_at_another_place_are_another_step() {
        let mut history = History::default();
        typed(&mut history, "ab");
        history.place(0);
        history.record("xab", 1);
        let undone = history.undo().expect("a step");
        assert_eq!((undone.text.as_str(), undone.at, undone.start), ("ab", 0, 0));
        assert_eq!(history.undo().map(|undone| undone.text).as_deref(), Some(""));
        assert_eq!(history.undo(), None);
    }

    #[test]
    fn a_change_after_undo_ends_redo() {
        let mut history = History::new("one");
        history.record("one two", 7);
        history.undo();
        history.record("onex", 4);
        assert_eq!(history.redo(), None);
    }

    #[test]
    fn differences_are_at_character_boundaries() {
        for (old, new) in
            [("é", "è"), ("aé", "aéé"), ("日本", "本日"), ("", "ü"), ("ééé", "é"), ("\u{e9}", "\u{a9}")]
        {
            let (before, after) = difference(old, new).expect("different");
            let mut text = old.to_owned();
            text.replace_range(before, new.get(after).expect("boundaries"));
            assert_eq!(text, new);
        }
        assert_eq!(difference("one", "one"), None);
    }
}
