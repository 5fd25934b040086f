//! Deleted text that can be inserted again, and edits of words.

use std::collections::VecDeque;
use std::ops::Range;

use super::Composer;
use super::vim::text::Text;
use crate::model::Action;

/// Maximum number of deletions, as in Emacs.
const MAX_KILLS: usize = 60;

#[derive(Debug, Clone, Default)]
pub(super) struct Kills {
    /// The newest first.
    texts: VecDeque<String>,
    /// The revision of the composer after the last deletion: the next one belongs to it if nothing happened between.
    killed: Option<u64>,
    /// The text inserted last, and the revision after that.
    yanked: Option<Yanked>,
}

#[derive(Debug, Clone)]
struct Yanked {
    rev: u64,
    range: Range<usize>,
    position: usize,
}

impl Composer {
    /// Stores the text that an edit has deleted, if it was a deletion of words or lines.
    pub(super) fn note_kill(&mut self, action: Action, before: &Text) {
        let is_back = match action {
            Action::DeleteWordBefore | Action::DeleteToLineStart => true,
            Action::DeleteWordAfter | Action::DeleteToLineEnd => false,
            _ => return,
        };
        let start = self.offset();
        let len = before.text.len().saturating_sub(self.text().len());
        let killed = before.slice(start..start + len).to_owned();
        if killed.is_empty() {
            return;
        }
        // The edit itself is followed by one revision.
        let joins = self.kills.killed == Some(self.rev);
        match self.kills.texts.front_mut().filter(|_| joins) {
            Some(last) if is_back => last.insert_str(0, &killed),
            Some(last) => last.push_str(&killed),
            None => self.kills.texts.push_front(killed),
        }
        self.kills.texts.truncate(MAX_KILLS);
        self.kills.killed = Some(self.rev + 1);
    }

    /// Whether the text deleted last was inserted just now, so that another one can replace it.
    pub(in crate::ui) fn has_yanked(&self) -> bool {
        self.kills.yanked.as_ref().is_some_and(|yanked| yanked.rev == self.rev)
    }

    /// Inserts the text deleted last.
    pub(super) fn yank(&mut self) -> bool {
        let Some(text) = self.kills.texts.front().cloned() else { return false };
        self.area.insert_str(&text);
        let end = self.offset();
        let range = end.saturating_sub(text.len())..end;
        self.kills.yanked = Some(Yanked { rev: self.rev + 1, range, position: 0 });
        true
    }

    /// Replaces the inserted text by that of the deletion before.
    pub(super) fn yank_pop(&mut self) -> bool {
        let Some(Yanked { range, position, .. }) = self.kills.yanked.clone().filter(|_| self.has_yanked())
        else {
            return false;
        };
        let position = (position + 1) % self.kills.texts.len().max(1);
        let Some(text) = self.kills.texts.get(position).cloned() else { return false };
        let range_after = range.start..range.start + text.len();
        let mut all = self.text();
        all.replace_range(range, &text);
        self.show(&all, range_after.end);
        self.kills.yanked = Some(Yanked { rev: self.rev + 1, range: range_after, position });
        true
    }

    /// Changes the case of the rest of the word, or of the next one, and moves the cursor after it. Labels are not words.
    pub(super) fn change_case(&mut self, action: Action) -> bool {
        let all = Text { text: self.text(), at: self.offset() };
        let text = all.without_labels();
        let rest = text.slice(text.at..text.text.len());
        let Some(start) = rest.find(char::is_alphanumeric).map(|start| text.at + start) else { return false };
        let word = text.slice(start..text.text.len());
        let word = word.get(..word.find(|ch: char| !ch.is_alphanumeric()).unwrap_or(word.len()));
        let word = word.unwrap_or_default();
        let changed = match action {
            Action::UppercaseWord => word.to_uppercase(),
            Action::LowercaseWord => word.to_lowercase(),
            _ => {
                let mut letters = word.chars();
                let first = letters.next().into_iter().flat_map(char::to_uppercase);
                first.collect::<String>() + &letters.as_str().to_lowercase()
            }
        };
        let (end, is_change) = (start + changed.len(), changed != word);
        let range = start..start + word.len();
        let mut all = all.text;
        all.replace_range(range, &changed);
        self.show(&all, end);
        is_change
    }

    /// Swaps the characters before and after the cursor; at the end of a line the two before it.
    pub(super) fn transpose(&mut self) -> bool {
        let mut text = Text { text: self.text(), at: self.offset() };
        let line = text.line_start(text.at);
        let middle = if text.is_line_end(text.at) && text.at > line { text.before(text.at) } else { text.at };
        if middle <= line || text.is_line_end(middle) {
            return false;
        }
        let (start, end) = (text.before(middle), text.after(middle));
        let swapped = format!("{}{}", text.slice(middle..end), text.slice(start..middle));
        let is_change = text.slice(start..end) != swapped;
        text.replace(start..end, &swapped);
        self.show(&text.text, end);
        is_change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(composer: &mut Composer, actions: &[Action]) -> String {
        for action in actions {
            composer.act(*action, false);
        }
        composer.text()
    }

    #[test]
    fn deletions_in_sequence_are_inserted_as_one() {
        use Action::{DeleteToLineEnd, DeleteToLineStart, DeleteWordBefore, LineStart, Yank};
        let mut composer = Composer::default();
        composer.set_text("one two three");
        assert_eq!(act(&mut composer, &[DeleteWordBefore, DeleteWordBefore]), "one ");
        assert_eq!(act(&mut composer, &[LineStart, Yank]), "two threeone ");
        assert_eq!(act(&mut composer, &[DeleteToLineEnd, DeleteToLineStart]), "");
        assert_eq!(act(&mut composer, &[Yank]), "two threeone ");
    }

    #[test]
    fn earlier_deletions_replace_the_inserted_one() {
        use Action::{DeleteWordBefore, LineEnd, LineStart, Undo, Yank, YankPop};
        let mut composer = Composer::default();
        composer.set_text("one two");
        assert_eq!(act(&mut composer, &[YankPop]), "one two", "nothing was inserted");
        act(&mut composer, &[DeleteWordBefore, LineStart, LineEnd, DeleteWordBefore]);
        assert_eq!(act(&mut composer, &[Yank]), "one ");
        assert!(composer.has_yanked());
        assert_eq!(act(&mut composer, &[YankPop]), "two");
        assert_eq!(act(&mut composer, &[YankPop]), "one ");
        assert_eq!(act(&mut composer, &[LineStart, YankPop]), "one ", "the cursor was moved");
        assert!(!composer.has_yanked());
        assert_eq!(act(&mut composer, &[Undo]), "two");
    }

    #[test]
    fn words_change_their_case() {
        use Action::{CapitalizeWord, DraftStart, LowercaseWord, UppercaseWord};
        let mut composer = Composer::default();
        composer.set_text("ünder WORLD, tHREE");
        let text = act(&mut composer, &[DraftStart, UppercaseWord, LowercaseWord, CapitalizeWord]);
        assert_eq!(text, "ÜNDER world, Three");
        assert_eq!(composer.act(UppercaseWord, false), Some(false), "no word follows");
    }

    #[test]
    fn characters_are_transposed_by_grapheme() {
        use Action::{CursorLeft, DraftStart, Transpose};
        let mut composer = Composer::default();
        composer.set_text("ae\u{301}b");
        assert_eq!(act(&mut composer, &[Transpose]), "abe\u{301}");
        assert_eq!(act(&mut composer, &[CursorLeft, Transpose]), "ae\u{301}b");
        assert_eq!(act(&mut composer, &[DraftStart, Transpose]), "ae\u{301}b");
    }
}
