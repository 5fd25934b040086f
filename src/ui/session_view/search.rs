//! The search in a transcript: hits by item and the current hit, updated while text is streamed.
//!
//! It searches the source text in steps of bounded size: forward from the reader's position, then backward, so that
//! near hits are found first. Hits are stored as a count per item; their positions are computed for the one item that
//! needs them ([`hits`]). Keys are handled in `dialogs::search`, highlighting in `ui`.
//! Invariants: a step costs about [`STEP_BYTES`], whatever the size of the transcript; growing text is searched again
//! from its last complete line; the total is the number of hits in all texts searched so far.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};

use crate::model::ItemId;

use crate::core::{Item, ItemBody, LineInput, Mark, Rank, Session, Transcript};

mod pattern;
mod plain;
mod texts;

pub use pattern::{Counted, Pattern};
pub use texts::{Text, texts, title};

/// Bytes of text that a step searches.
pub const STEP_BYTES: usize = 1 << 20;

/// Cost of an item in addition to its text, in bytes of text.
const ITEM_COST: usize = 64;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Search {
    pub input: LineInput,
    pub is_regex: bool,
    /// The error in the regular expression.
    pub problem: Option<String>,
    /// Whether keys edit the query; otherwise they select items.
    pub is_typing: bool,
    /// The item that was opened to show a hit, and its fold state before.
    pub opened: Option<(ItemId, Option<bool>)>,
    pub is_timed: bool,
    pattern: Option<Pattern>,
    /// Hits by item, without zeros.
    counts: BTreeMap<Rank, usize>,
    total: usize,
    /// The current hit: its item, and its position among the item's hits.
    current: Option<(Rank, usize)>,
    /// The first and last item that the reader saw, or the one that the user went to.
    origin: (ItemId, ItemId),
    /// The changes up to this mark are known.
    seen: Option<Mark>,
    phase: Phase,
    at: Option<SearchCursor>,
    /// The open message and how far it was searched.
    growing: Option<SearchCursor>,
    dirty: BTreeSet<ItemId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    pub item: ItemId,
    /// Position among the item's hits, from 0.
    pub nth: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// Towards the end; holds the next item.
    Forward(ItemId),
    /// Towards the start; the item before this one is next.
    Backward(ItemId),
    #[default]
    Done,
}

/// A position in an item, and the hits up to there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SearchCursor {
    item: ItemId,
    part: usize,
    from: usize,
    count: usize,
}

impl Search {
    /// A search for the hit that is nearest to the items that the reader sees.
    pub fn new(reading: Option<(ItemId, ItemId)>) -> Self {
        Self { is_typing: true, origin: reading.unwrap_or((ItemId::HEAD, ItemId::HEAD)), ..Self::default() }
    }

    /// A search for any of these texts, without regard to case, that begins in this item.
    pub fn for_texts(texts: &[String], item: ItemId) -> Self {
        let mut search = Self::new(Some((item, item)));
        search.is_regex = texts.len() > 1;
        let query = match texts {
            [only] => only.clone(),
            several => several.iter().map(|text| regex::escape(text)).collect::<Vec<_>>().join("|"),
        };
        search.input = LineInput::new(&query);
        search.restart();
        search
    }

    /// The reader is here now; a changed query is looked for from here.
    pub fn set_reading(&mut self, reading: Option<(ItemId, ItemId)>) {
        self.origin = reading.unwrap_or(self.origin);
    }

    /// Reads the query anew and begins again, from where the reader was, or the user went to.
    pub fn restart(&mut self) {
        match Pattern::read(&self.input.text, self.is_regex) {
            Ok(pattern) => (self.pattern, self.problem) = (pattern, None),
            Err(problem) => (self.pattern, self.problem) = (None, Some(problem)),
        }
        self.counts.clear();
        self.total = 0;
        (self.at, self.growing, self.current) = (None, None, None);
        self.dirty.clear();
        self.phase = if self.pattern.is_some() { Phase::Forward(self.origin.0) } else { Phase::Done };
    }

    /// The query, if it is valid and not empty.
    pub fn pattern(&self) -> Option<&Pattern> {
        self.pattern.as_ref()
    }

    /// Hits found so far.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether some text was not searched yet.
    pub fn is_pending(&self) -> bool {
        self.phase != Phase::Done || self.at.is_some() || !self.dirty.is_empty()
    }

    /// Whether the whole transcript was searched once, so that the total is complete.
    pub fn is_complete(&self) -> bool {
        self.phase == Phase::Done && self.at.is_none()
    }

    pub fn current(&self) -> Option<Hit> {
        self.current.map(|(rank, nth)| Hit { item: rank.item, nth })
    }

    /// The position of the current hit among all, from 1.
    pub fn ordinal(&self) -> Option<usize> {
        let (rank, nth) = self.current?;
        let before: usize = self.counts.range(..rank).map(|(_, count)| count).sum();
        Some(before + nth + 1)
    }

    pub fn count_in(&self, item: Rank) -> usize {
        self.counts.get(&item).copied().unwrap_or(0)
    }

    /// Moves to the next hit, after the last to the first.
    pub fn next(&mut self) {
        let Some((rank, nth)) = self.current else { return };
        if nth + 1 < self.count_in(rank) {
            self.go_to(Some((rank, nth + 1)));
            return;
        }
        let mut after = self.counts.range((Bound::Excluded(rank), Bound::Unbounded));
        let item = after.next().or_else(|| self.counts.iter().next());
        self.go_to(item.map(|(item, _)| (*item, 0)));
    }

    /// Moves to the previous hit, before the first to the last.
    pub fn previous(&mut self) {
        let Some((rank, nth)) = self.current else { return };
        if let Some(nth) = nth.checked_sub(1) {
            self.go_to(Some((rank, nth)));
            return;
        }
        let before = self.counts.range(..rank).next_back();
        let last = before.or_else(|| self.counts.iter().next_back());
        self.go_to(last.map(|(item, count)| (*item, count - 1)));
    }

    /// The user goes to a hit: a changed query is looked for from there.
    fn go_to(&mut self, hit: Option<(Rank, usize)>) {
        self.current = hit;
        if let Some((rank, _)) = hit {
            self.origin = (rank.item, rank.item);
        }
    }

    /// Notes what was added or edited; begins again if items have moved, because their ranks are others.
    pub fn follow(&mut self, transcript: &Transcript) {
        let Some(seen) = self.seen.replace(transcript.mark()) else { return };
        match transcript.changed_since(seen) {
            Some(items) if self.pattern.is_some() => self.dirty.extend(items),
            Some(_) => {}
            None => self.restart(),
        }
    }

    /// Searches some more text and sets the current hit if there is one.
    pub fn step(&mut self, session: &Session) {
        self.step_by(session, STEP_BYTES);
    }

    fn step_by(&mut self, session: &Session, mut budget: usize) {
        self.follow(&session.transcript);
        let Some(pattern) = self.pattern.take() else { return };
        while budget > 0 {
            let Some(cursor) = self.next_cursor(session) else { break };
            self.cursor(cursor, session, &pattern, &mut budget);
        }
        self.pattern = Some(pattern);
        self.find_current(session);
    }

    fn next_cursor(&mut self, session: &Session) -> Option<SearchCursor> {
        if let Some(cursor) = self.at.take() {
            return Some(cursor);
        }
        let start_of = |item| SearchCursor { item, part: 0, from: 0, count: 0 };
        if let Some(item) = self.dirty.pop_first() {
            let known = self.growing.filter(|cursor| cursor.item == item);
            return Some(known.unwrap_or_else(|| start_of(item)));
        }
        let items = session.transcript.items();
        match self.phase {
            Phase::Forward(item) => {
                let at = session.transcript.index_from(item);
                let next = items.get(at + 1).map(|next| next.id);
                self.phase = next.map_or(Phase::Backward(self.origin.0), Phase::Forward);
                items.get(at).map(|item| start_of(item.id)).or_else(|| self.next_cursor(session))
            }
            Phase::Backward(after) => {
                let before = session.transcript.index_from(after).checked_sub(1);
                let before = before.and_then(|at| items.get(at)).map(|item| item.id);
                self.phase = before.map_or(Phase::Done, Phase::Backward);
                before.map(start_of)
            }
            Phase::Done => None,
        }
    }

    /// Searches an item from a position until its end or the end of the budget.
    fn cursor(&mut self, mut cursor: SearchCursor, session: &Session, pattern: &Pattern, budget: &mut usize) {
        let Some(item) = session.transcript.get(cursor.item) else { return };
        *budget = budget.saturating_sub(ITEM_COST);
        let all = texts(item, session);
        let last = all.len().saturating_sub(1);
        let mut open = 0;
        for (part, text) in all.iter().enumerate().skip(cursor.part) {
            if part > cursor.part {
                (cursor.part, cursor.from) = (part, 0);
            }
            let mut end = slice_end(&text.text, cursor.from, *budget);
            let mut counted = pattern.count(&text.text, cursor.from, end);
            if end < text.text.len() && counted.resume <= cursor.from {
                // The line is longer than a step; a smaller part would leave its matches undecided.
                end = text.text.len();
                counted = pattern.count(&text.text, cursor.from, end);
            }
            *budget = budget.saturating_sub(end.saturating_sub(cursor.from));
            cursor.count += counted.decided;
            cursor.from = counted.resume;
            if end < text.text.len() {
                self.at = Some(cursor);
                return;
            }
            if part == last {
                open = counted.open;
            } else {
                cursor.count += counted.open;
            }
        }
        self.set_count(session.transcript.rank(cursor.item), cursor.count + open);
        // Its text only grows at the end, so that the next pass can start where this one ended.
        if matches!(&item.body, ItemBody::Message(message) if message.is_open) {
            self.growing = Some(cursor);
        } else if self.growing.is_some_and(|known| known.item == cursor.item) {
            self.growing = None;
        }
    }

    fn set_count(&mut self, item: Rank, count: usize) {
        let before = if count == 0 { self.counts.remove(&item) } else { self.counts.insert(item, count) };
        self.total = self.total + count - before.unwrap_or(0);
    }

    /// Keeps the current hit one that exists, or finds the one that is nearest to what the reader sees, as soon as no
    /// other can be nearer.
    fn find_current(&mut self, session: &Session) {
        if let Some((item, nth)) = self.current {
            let count = self.count_in(item);
            if count > 0 {
                self.current = Some((item, nth.min(count - 1)));
                return;
            }
            self.current = None;
        }
        let (first, last) = (session.transcript.rank(self.origin.0), session.transcript.rank(self.origin.1));
        let index = |rank: Rank| session.transcript.index_from(rank.item);
        let below = self.counts.range(first..).next().map(|(rank, _)| *rank);
        let above = self.counts.range(..first).next_back().map(|(rank, count)| (*rank, count - 1));
        let rows_below = below.map(|rank| index(rank).saturating_sub(index(last)));
        let rows_above = above.map(|(rank, _)| index(first).saturating_sub(index(rank)));
        // How many items above the screen were looked at.
        let top = match self.phase {
            Phase::Forward(_) => index(first),
            Phase::Backward(after) => session.transcript.index_from(after),
            Phase::Done => 0,
        };
        let in_work = usize::from(self.at.is_some());
        let seen_above =
            if self.is_complete() { usize::MAX } else { index(first).saturating_sub(top + in_work) };
        let below = below.map(|rank| (rank, 0));
        self.current = match (rows_below, rows_above) {
            (Some(rows), None) if rows == 0 || rows <= seen_above => below,
            (Some(below_rows), Some(above_rows)) if below_rows <= above_rows => below,
            (_, Some(_)) if !matches!(self.phase, Phase::Forward(_)) => above,
            _ => None,
        };
    }
}

/// The hits of an item: index into [`texts()`], and the range in that text.
pub fn hits(pattern: &Pattern, item: &Item, session: &Session) -> Vec<(usize, Range<usize>)> {
    let all = texts(item, session);
    let each = all.iter().enumerate();
    each.flat_map(|(part, text)| pattern.matches(&text.text).into_iter().map(move |range| (part, range)))
        .collect()
}

/// The end of a slice of about `budget` bytes: after a line, or at the end.
fn slice_end(text: &str, from: usize, budget: usize) -> usize {
    let max = from.saturating_add(budget);
    if max >= text.len() {
        return text.len();
    }
    let after = text.as_bytes().get(max..).unwrap_or_default();
    memchr::memchr(b'\n', after).map_or(text.len(), |at| max + at + 1)
}

#[cfg(test)]
mod tests;
