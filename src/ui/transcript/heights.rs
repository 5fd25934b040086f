//! Heights of items for the scroll bar: measured if they were drawn, otherwise estimated.
//!
//! Returns the rows above any position and the total, in logarithmic time, without layout. `paint` draws the
//! bar.
//!
//! An estimate is a number of rows and of bytes of text, so that a new width only changes the divisor; a
//! measured height is stored as the difference to its estimate, and dropped when the width changes. Items far
//! from the screen may change unnoticed: their estimate is corrected when they become visible.
//!
//! Invariants: the cost of a frame depends on the screen and on the number of new items.

use std::collections::HashMap;

use crate::core::{Item, ItemBody, MessagePart, Session, ToolCall};
use crate::model::{DiffChange, Fold, Role, ToolContent};
use crate::ui::cells::layout::{Layout, Source};
use crate::ui::session_view::SessionView;
use crate::ui::session_view::fold::fold_of;

/// Number of items at the end that are estimated again in each frame, because they change often.
const LIVE_ITEMS: usize = 16;
/// Rows of a folded call's change or output.
const PREVIEW_ROWS: usize = 13;
/// Average fraction of the width that prose fills.
const PROSE_FILL: (usize, usize) = (3, 4);
/// Items with more pieces are measured by the extent of their source.
const COUNTED_PIECES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Guess {
    rows: usize,
    bytes: usize,
}

#[derive(Default)]
pub(super) struct Heights {
    guesses: Vec<Guess>,
    rows: Sums,
    bytes: Sums,
    /// Measured minus estimated rows, for items that were drawn at this width.
    measured: HashMap<usize, i64>,
    corrections: Sums,
    cols: u16,
}

impl Heights {
    /// Updates the estimates: adds new items, and repeats the last ones. `guess` returns rows and bytes.
    pub fn follow(&mut self, count: usize, cols: u16, guess: impl Fn(usize) -> (usize, usize)) {
        if count < self.guesses.len() {
            *self = Self::default();
        }
        if cols != self.cols {
            self.cols = cols;
            for (item, difference) in std::mem::take(&mut self.measured) {
                self.corrections.add(item, -difference);
            }
        }
        let known = self.guesses.len();
        for item in known.saturating_sub(LIVE_ITEMS)..count {
            let (rows, bytes) = guess(item);
            self.set(item, Guess { rows, bytes });
        }
    }

    /// Clears all heights, because other items are shown.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn measure(&mut self, item: usize, rows: usize) {
        let difference = signed(rows) - signed(self.guessed(item));
        let before = self.measured.insert(item, difference).unwrap_or(0);
        self.corrections.add(item, difference - before);
    }

    pub fn of(&self, item: usize) -> usize {
        let rows = signed(self.guessed(item)) + self.measured.get(&item).copied().unwrap_or(0);
        usize::try_from(rows).unwrap_or(0)
    }

    /// Rows of all items before this one.
    pub fn before(&self, item: usize) -> usize {
        let bytes = usize::try_from(self.bytes.before(item)).unwrap_or(0);
        let rows = self.rows.before(item) + self.corrections.before(item) + signed(bytes / self.fill());
        usize::try_from(rows).unwrap_or(0)
    }

    pub fn total(&self) -> usize {
        self.before(self.guesses.len())
    }

    fn set(&mut self, item: usize, guess: Guess) {
        let before = self.guesses.get(item).copied().unwrap_or_default();
        if item >= self.guesses.len() {
            self.guesses.resize(item + 1, Guess::default());
        } else if guess == before {
            return;
        }
        if let Some(known) = self.guesses.get_mut(item) {
            *known = guess;
        }
        self.rows.add(item, signed(guess.rows) - signed(before.rows));
        self.bytes.add(item, signed(guess.bytes) - signed(before.bytes));
        // The measurement belongs to the previous contents.
        if let Some(difference) = self.measured.remove(&item) {
            self.corrections.add(item, -difference);
        }
    }

    fn guessed(&self, item: usize) -> usize {
        let guess = self.guesses.get(item).copied().unwrap_or_default();
        guess.rows + guess.bytes / self.fill()
    }

    fn fill(&self) -> usize {
        (usize::from(self.cols) * PROSE_FILL.0 / PROSE_FILL.1).max(1)
    }
}

/// Prefix sums in logarithmic time (a binary indexed tree).
#[derive(Default)]
struct Sums {
    tree: Vec<i64>,
}

impl Sums {
    fn add(&mut self, item: usize, value: i64) {
        while self.tree.len() <= item {
            // A new node contains the sum of those below it.
            let node = self.tree.len() + 1;
            let first = node - (node & node.wrapping_neg());
            let sum = self.before(node - 1) - self.before(first);
            self.tree.push(sum);
        }
        let mut node = item + 1;
        while let Some(sum) = self.tree.get_mut(node - 1) {
            *sum += value;
            node += node & node.wrapping_neg();
        }
    }

    /// The sum of all values before this one.
    fn before(&self, item: usize) -> i64 {
        let mut node = item.min(self.tree.len());
        let mut sum = 0;
        while node > 0 {
            sum += self.tree.get(node - 1).copied().unwrap_or(0);
            node &= node - 1;
        }
        sum
    }
}

fn signed(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Estimated rows and bytes of an item's text, without reading it.
pub(super) fn guess(
    item: &Item,
    view: &SessionView,
    session: &Session,
    shows_thoughts: bool,
) -> (usize, usize) {
    let (rows, bytes) = guess_body(item, view, session, shows_thoughts);
    (rows + if item.end.is_some() { 2 } else { 0 }, bytes)
}

fn guess_body(item: &Item, view: &SessionView, session: &Session, shows_thoughts: bool) -> (usize, usize) {
    let is_open = view.item(item.id).is_open;
    match &item.body {
        ItemBody::Message(message) => {
            let is_folded = match message.role {
                Role::Thought => !is_open.unwrap_or(shows_thoughts),
                Role::SubagentMessage => is_open != Some(true),
                Role::User | Role::Agent => false,
            };
            if is_folded {
                return (1, 0);
            }
            let bytes = message.parts.iter().map(|part| match part {
                MessagePart::Text(text) => text.len(),
                MessagePart::Block(_) => 0,
            });
            (1 + message.parts.len(), bytes.sum())
        }
        ItemBody::Tool(call) => guess_call(call, fold_of(view, session, item, call)),
        ItemBody::Compaction { summary, .. } if is_open == Some(true) => (1, summary.len()),
        ItemBody::Raw { raw, .. } if is_open == Some(true) => (1, raw.0.len().min(40 * 80)),
        _ => (1, 0),
    }
}

fn guess_call(call: &ToolCall, fold: Fold) -> (usize, usize) {
    // Lines of code and output are short.
    let lines = |bytes: usize| bytes / 30;
    let of_change = |change: &DiffChange| match change {
        DiffChange::Texts { old: None, new } => lines(new.len()),
        // Most lines of a file are unchanged.
        DiffChange::Texts { old: Some(old), new } => 8 + lines(old.len().abs_diff(new.len())),
        DiffChange::Patch(text) => lines(text.len()),
    };
    let changes: usize = call.diffs().map(|diff| of_change(&diff.change)).sum();
    let output = call.output_text.as_ref().map_or(0, |text| lines(text.len()));
    let blocks = call.content.iter().map(|content| match content {
        ToolContent::Block(crate::model::ContentBlock::Text(text)) => lines(text.len()),
        ToolContent::Terminal(_) => PREVIEW_ROWS,
        _ => 0,
    });
    let all = changes + output.max(blocks.sum());
    match fold {
        Fold::Closed => (1, 0),
        Fold::Preview => (1 + all.min(PREVIEW_ROWS), 0),
        Fold::Open => (1 + all, 0),
    }
}

/// Rows of an item before a position, and in total, as far as known without drawing; `None` if it has too
/// many pieces to count.
pub(super) fn counted(
    layout: &Layout,
    position: (usize, usize),
    gap: usize,
) -> Option<(usize, Option<usize>)> {
    if layout.pieces.len() > COUNTED_PIECES {
        return None;
    }
    let rows = |index: usize| -> Option<usize> {
        let piece = layout.pieces.get(index)?;
        Some(piece.height? + usize::from(piece.has_gap) + if index == 0 { gap } else { 0 })
    };
    let mut before = 0;
    for index in 0..position.0 {
        before += rows(index)?;
    }
    let mut all = Some(before);
    for index in position.0..layout.pieces.len() {
        all = all.zip(rows(index)).map(|(all, rows)| all + rows);
    }
    Some((before + position.1, all))
}

/// The position of a row in its item as a fraction, by the source offset of its piece.
#[allow(clippy::cast_precision_loss, reason = "a scroll bar has few rows")]
pub(super) fn fraction(layout: &Layout, (piece, row): (usize, usize), text_bytes: usize) -> f64 {
    let pieces = layout.pieces.len().max(1);
    let of = |part: usize, all: usize| part as f64 / all.max(1) as f64;
    let Some(found) = layout.pieces.get(piece) else { return 1.0 };
    let inside = of(row, found.height.unwrap_or(row + 1)).min(1.0);
    match &found.source {
        Source::Markdown { text, block } => {
            let block = layout.text(*text).and_then(|part| part.markdown.blocks().get(*block));
            let (start, end) = block.map_or((0, 0), |block| (block.start, block.end));
            of(start, text_bytes) + inside * of(end - start, text_bytes)
        }
        _ => (piece as f64 + inside) / pieces as f64,
    }
    .min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_sums_match_a_list() {
        let mut sums = Sums::default();
        let mut list = vec![0_i64; 100];
        for step in 0..1000_usize {
            let (item, value) = (step * 37 % 100, i64::try_from(step % 13).unwrap() - 4);
            sums.add(item, value);
            list[item] += value;
            let before = step * 7 % 101;
            assert_eq!(sums.before(before), list[..before].iter().sum::<i64>(), "step {step}");
        }
    }

    #[test]
    fn measurements_replace_estimates_until_the_width_changes() {
        let mut heights = Heights::default();
        let guess = |item: usize| (1, if item == 3 { 3000 } else { 0 });
        heights.follow(10, 80, guess);
        assert_eq!((heights.total(), heights.before(3), heights.of(3)), (10 + 50, 3, 51));
        heights.measure(3, 70);
        assert_eq!((heights.of(3), heights.before(4), heights.total()), (70, 73, 79));
        heights.measure(3, 60);
        assert_eq!(heights.total(), 69);
        heights.follow(10, 40, guess);
        assert_eq!(heights.of(3), 101, "half the width, twice the height");
        heights.follow(12, 40, guess);
        assert_eq!(heights.total(), 112);
        heights.follow(2, 40, guess);
        assert_eq!(heights.total(), 2, "the transcript was replaced");
    }

    #[test]
    fn only_the_last_items_are_estimated_per_frame() {
        let mut heights = Heights::default();
        heights.follow(10_000, 80, |_| (1, 0));
        let calls = std::cell::Cell::new(0);
        heights.follow(10_001, 80, |_| {
            calls.set(calls.get() + 1);
            (2, 0)
        });
        assert_eq!(calls.get(), LIVE_ITEMS + 1);
        assert_eq!(heights.total(), 10_001 + LIVE_ITEMS + 1);
    }
}
