//! The search over a transcript.
//!
//! Duty: how many hits each item has, which hit is the current one, keeping both true while text comes in.
//! Not its duty: keys and the line that is typed into (`user::search`), marking cells and scrolling (`ui`).
//! It works on the source text, in steps of a bounded size: forward from where the reader is, then backward from
//! there, so that what is near is found first. Hits are kept as a count for each item; their places are looked up
//! again in the one item that needs them ([`hits`]).
//! Invariants: a step costs about [`STEP_BYTES`], whatever the transcript holds; a text that grows is looked at
//! from its last complete line only; the total is the number of hits in all texts looked at so far.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::model::ItemId;

use super::{Item, ItemBody, LineInput, Session};

mod pattern;
mod plain;
mod texts;

pub use pattern::{Counted, Pattern};
pub use texts::{Text, texts, title};

/// How much text a step looks at.
pub const STEP_BYTES: usize = 1 << 20;

/// How many pages of what is kept, but not shown, are read for a search before the user is asked: each stays in memory.
pub const MOST_PAGES: u8 = 4;

/// What an item costs beside its text, in bytes of text.
const ITEM_COST: usize = 64;

/// A search in one transcript.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Search {
    /// What is typed.
    pub input: LineInput,
    /// Whether it is a regular expression.
    pub is_regex: bool,
    /// What is wrong with the regular expression.
    pub problem: Option<String>,
    /// Whether keys go into the line; else they walk the items.
    pub is_typing: bool,
    /// The item that was opened to show its hit, and how it was before.
    pub opened: Option<(ItemId, Option<bool>)>,
    /// Whether a timer is set for the next step.
    pub is_timed: bool,
    /// How many pages of what is kept, but not shown, may still be read for it.
    pub pages_left: u8,
    pattern: Option<Pattern>,
    /// Hits by item; none is 0.
    counts: BTreeMap<usize, usize>,
    total: usize,
    current: Option<Hit>,
    /// Where the reader was.
    from: usize,
    phase: Phase,
    /// The item that is being looked at.
    at: Option<Look>,
    /// The open message, as far as it was looked at.
    growing: Option<Look>,
    /// Items that changed since they were looked at.
    dirty: BTreeSet<usize>,
}

/// A hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// In this item.
    pub item: ItemId,
    /// Which of the item's hits, from 0.
    pub nth: usize,
}

/// How far the first look is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// Towards the end; this item is next.
    Forward(usize),
    /// Towards the beginning; the item before this one is next.
    Backward(usize),
    /// All was looked at once.
    #[default]
    Done,
}

/// A place in an item, and what was found up to there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    item: usize,
    part: usize,
    from: usize,
    count: usize,
}

impl Search {
    /// A search that begins at the item that the reader sees.
    pub fn new(reading: Option<ItemId>) -> Self {
        Self { is_typing: true, from: reading.map_or(0, index), pages_left: MOST_PAGES, ..Self::default() }
    }

    /// Reads the query anew and begins again. The current hit is looked for from where it was.
    pub fn restart(&mut self, reading: Option<ItemId>) {
        if let Some(hit) = self.current {
            self.from = index(hit.item);
        } else if let Some(item) = reading {
            self.from = index(item);
        }
        match Pattern::read(&self.input.text, self.is_regex) {
            Ok(pattern) => (self.pattern, self.problem) = (pattern, None),
            Err(problem) => (self.pattern, self.problem) = (None, Some(problem)),
        }
        self.counts.clear();
        self.total = 0;
        (self.at, self.growing, self.current) = (None, None, None);
        self.dirty.clear();
        self.phase = if self.pattern.is_some() { Phase::Forward(self.from) } else { Phase::Done };
    }

    /// The query, if it can be searched for.
    pub fn pattern(&self) -> Option<&Pattern> {
        self.pattern.as_ref()
    }

    /// Hits found so far.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether texts are left that were not looked at.
    pub fn is_pending(&self) -> bool {
        self.phase != Phase::Done || self.at.is_some() || !self.dirty.is_empty()
    }

    /// Whether the transcript was looked at in whole once, so that the total is more than a beginning.
    pub fn is_complete(&self) -> bool {
        self.phase == Phase::Done && self.at.is_none()
    }

    /// The current hit.
    pub fn current(&self) -> Option<Hit> {
        self.current
    }

    /// The place of the current hit among all, from 1.
    pub fn ordinal(&self) -> Option<usize> {
        let hit = self.current?;
        let before: usize = self.counts.range(..index(hit.item)).map(|(_, count)| count).sum();
        Some(before + hit.nth + 1)
    }

    /// How many hits an item has.
    pub fn count_in(&self, item: ItemId) -> usize {
        self.counts.get(&index(item)).copied().unwrap_or(0)
    }

    /// To the next hit; behind the last one comes the first.
    pub fn next(&mut self) {
        let Some(hit) = self.current else { return };
        let at = index(hit.item);
        if hit.nth + 1 < self.count_in(hit.item) {
            self.current = Some(Hit { nth: hit.nth + 1, ..hit });
            return;
        }
        let mut behind = self.counts.range(at + 1..);
        let item = behind.next().or_else(|| self.counts.iter().next()).map(|(item, _)| *item);
        self.current = item.map(|item| Hit { item: id(item), nth: 0 });
    }

    /// To the hit before; before the first one comes the last.
    pub fn previous(&mut self) {
        let Some(hit) = self.current else { return };
        if let Some(nth) = hit.nth.checked_sub(1) {
            self.current = Some(Hit { nth, ..hit });
            return;
        }
        let before = self.counts.range(..index(hit.item)).next_back();
        let last = before.or_else(|| self.counts.iter().next_back());
        self.current = last.map(|(item, count)| Hit { item: id(*item), nth: count - 1 });
    }

    /// Items were put in front of those from this place on; they are looked at last.
    pub fn shift(&mut self, from: usize, by: usize) {
        let moved = |item: usize| if item >= from { item + by } else { item };
        self.counts = std::mem::take(&mut self.counts).into_iter().map(|(at, n)| (moved(at), n)).collect();
        self.dirty = std::mem::take(&mut self.dirty).into_iter().map(moved).collect();
        self.from = moved(self.from);
        if let Some(hit) = &mut self.current {
            hit.item = id(moved(index(hit.item)));
        }
        if let Some((item, _)) = &mut self.opened {
            *item = id(moved(index(*item)));
        }
        for look in self.at.iter_mut().chain(self.growing.iter_mut()) {
            look.item = moved(look.item);
        }
        if self.pattern.is_some() {
            self.phase = match self.phase {
                Phase::Forward(item) => Phase::Forward(moved(item)),
                Phase::Backward(item) => Phase::Backward(moved(item)),
                Phase::Done => Phase::Backward(from + by),
            };
        }
    }

    /// Whether all was looked at, and nothing was found.
    pub fn is_without_hits(&self) -> bool {
        self.pattern.is_some() && self.phase == Phase::Done && self.at.is_none() && self.total == 0
    }

    /// Whether the current hit is the first of all.
    pub fn is_at_first(&self) -> bool {
        let first = self.counts.keys().next().map(|item| id(*item));
        self.current.is_some_and(|hit| hit.nth == 0 && Some(hit.item) == first)
    }

    /// Whether the current hit is the last of all.
    pub fn is_at_last(&self) -> bool {
        let last = self.counts.iter().next_back();
        self.current
            .zip(last)
            .is_some_and(|(hit, (item, count))| hit.nth + 1 == *count && hit.item == id(*item))
    }

    /// These items changed.
    pub fn on_changed(&mut self, items: impl IntoIterator<Item = ItemId>) {
        if self.pattern.is_some() {
            self.dirty.extend(items.into_iter().map(index));
        }
    }

    /// Looks at some more text. Then the current hit is there, if there is any.
    pub fn step(&mut self, session: &Session) {
        self.step_by(session, STEP_BYTES);
    }

    fn step_by(&mut self, session: &Session, mut budget: usize) {
        let Some(pattern) = self.pattern.take() else { return };
        while budget > 0 {
            let Some(look) = self.next_look(session) else { break };
            self.look(look, session, &pattern, &mut budget);
        }
        self.pattern = Some(pattern);
        self.settle();
    }

    /// Where to go on.
    fn next_look(&mut self, session: &Session) -> Option<Look> {
        if let Some(look) = self.at.take() {
            return Some(look);
        }
        let fresh = |item| Look { item, part: 0, from: 0, count: 0 };
        if let Some(item) = self.dirty.pop_first() {
            let known = self.growing.filter(|look| look.item == item);
            return Some(known.unwrap_or_else(|| fresh(item)));
        }
        let count = session.transcript.items().len();
        match self.phase {
            Phase::Forward(item) if item < count => {
                self.phase = Phase::Forward(item + 1);
                Some(fresh(item))
            }
            Phase::Forward(_) => {
                self.phase = Phase::Backward(self.from.min(count));
                self.next_look(session)
            }
            Phase::Backward(0) => {
                self.phase = Phase::Done;
                None
            }
            Phase::Backward(behind) => {
                self.phase = Phase::Backward(behind - 1);
                Some(fresh(behind - 1))
            }
            Phase::Done => None,
        }
    }

    /// Looks at an item, from a place in it on, until it or the budget ends.
    fn look(&mut self, mut look: Look, session: &Session, pattern: &Pattern, budget: &mut usize) {
        let Some(item) = session.transcript.items().get(look.item) else { return };
        *budget = budget.saturating_sub(ITEM_COST);
        let all = texts(item, session);
        let last = all.len().saturating_sub(1);
        let mut open = 0;
        for (part, text) in all.iter().enumerate().skip(look.part) {
            if part > look.part {
                (look.part, look.from) = (part, 0);
            }
            let mut end = slice_end(&text.text, look.from, *budget);
            let mut counted = pattern.count(&text.text, look.from, end);
            if end < text.text.len() && counted.resume <= look.from {
                // Lines longer than a step: less than the rest would decide nothing.
                end = text.text.len();
                counted = pattern.count(&text.text, look.from, end);
            }
            *budget = budget.saturating_sub(end.saturating_sub(look.from));
            look.count += counted.decided;
            look.from = counted.resume;
            if end < text.text.len() {
                self.at = Some(look);
                return;
            }
            if part == last {
                open = counted.open;
            } else {
                look.count += counted.open;
            }
        }
        self.set_count(look.item, look.count + open);
        // Its text only grows at the end, so that the next look begins where this one ended.
        if matches!(&item.body, ItemBody::Message(message) if message.is_open) {
            self.growing = Some(look);
        } else if self.growing.is_some_and(|known| known.item == look.item) {
            self.growing = None;
        }
    }

    fn set_count(&mut self, item: usize, count: usize) {
        let before = if count == 0 { self.counts.remove(&item) } else { self.counts.insert(item, count) };
        self.total = self.total + count - before.unwrap_or(0);
    }

    /// Keeps the current hit one that exists, or finds the first: the next from the reader on, else the nearest
    /// before.
    fn settle(&mut self) {
        if let Some(hit) = self.current {
            let count = self.count_in(hit.item);
            if count > 0 {
                self.current = Some(Hit { nth: hit.nth.min(count - 1), ..hit });
                return;
            }
            self.current = None;
        }
        let behind = self.counts.range(self.from..).next().map(|(item, _)| Hit { item: id(*item), nth: 0 });
        let is_forward = matches!(self.phase, Phase::Forward(_));
        let before = || {
            let found = self.counts.range(..self.from).next_back();
            found.map(|(item, count)| Hit { item: id(*item), nth: count - 1 })
        };
        self.current = behind.or_else(|| if is_forward { None } else { before() });
    }
}

/// The hits of an item: which text of [`texts`], and where in it.
pub fn hits(pattern: &Pattern, item: &Item, session: &Session) -> Vec<(usize, Range<usize>)> {
    let all = texts(item, session);
    let each = all.iter().enumerate();
    each.flat_map(|(part, text)| pattern.matches(&text.text).into_iter().map(move |range| (part, range)))
        .collect()
}

/// Where a slice of about so many bytes ends: behind a line, or at the end.
fn slice_end(text: &str, from: usize, budget: usize) -> usize {
    let most = from.saturating_add(budget);
    if most >= text.len() {
        return text.len();
    }
    let behind = text.as_bytes().get(most..).unwrap_or_default();
    memchr::memchr(b'\n', behind).map_or(text.len(), |at| most + at + 1)
}

fn index(item: ItemId) -> usize {
    usize::try_from(item.0).unwrap_or(usize::MAX)
}

fn id(item: usize) -> ItemId {
    ItemId(item as u64)
}

#[cfg(test)]
mod tests;
