//! Where a history that an agent replays goes on after the record of a session.
//!
//! [`Record::place`] finds the last completed turn that is certainly in both, follows both to the record's end, and
//! tells what comes after. Text decides; ids of messages exclude places or choose among them. Replies are compared by
//! hashes of lines, so that the replayed text need not be in memory. Of eleven agents nine replay a reply exactly, one
//! omits a warning, and one adds a note: hence whole lines, at least half of them.
//! Invariants: what was taken is not taken again; where the text allows two places, there is none; a place costs time
//! linear in the number of turns and lines, and a comparison that would cost more ends without a place.

mod reply;
mod search;
mod wrappers;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;

pub use reply::{Reply, Rest, SEED, hashed};
use search::Search;
pub use wrappers::without_context;
use wrappers::{is_notes, is_wrapper, unwrapped};

/// Number of bytes of a prompt that are looked up before the rest of a user message is read.
const HEAD_BYTES: usize = 16;

/// Number of steps that a search may take besides those for each chunk and line.
const MIN_STEPS: usize = 1_000_000;

/// How a recorded turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TurnEnd {
    Completed,
    /// Failed, cancelled, or without a recorded end.
    #[default]
    Open,
    /// Taken from a replay. Counts as completed once another turn follows, because it may still grow.
    Taken,
}

/// A turn of the record. A prompt that was steered into a turn, or a message that the agent put into it, begins one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedTurn {
    pub number: u32,
    pub prompt: String,
    /// Texts and URIs of embedded resources, and what stands for content that is not text.
    pub embedded: Vec<String>,
    /// With texts, if the turn did not complete.
    pub reply: Reply,
    pub end: TurnEnd,
    /// Ids of the user message and of the messages of the reply, where the agent keeps them.
    pub ids: Vec<String>,
    pub calls: Vec<String>,
    /// Number of times that the prompt was sent before, without a reply.
    pub attempts: usize,
    /// The summary of the last compaction in it.
    pub summary: Reply,
}

/// A turn of a replay, which begins with a user message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplayedTurn {
    /// The chunks of the user message. Content that is not text has the same string as in [`RecordedTurn::embedded`].
    pub chunks: Vec<String>,
    /// With texts, if [`Record::needs_texts`] says so.
    pub reply: Reply,
    pub ids: Vec<String>,
    pub calls: Vec<String>,
}

impl ReplayedTurn {
    /// Whether it continues the turn before, because its user message is wrappers only. A prompt could look like a
    /// wrapper that is not a note: it has a reply.
    #[must_use]
    pub fn is_continuation(&self) -> bool {
        let is_silent = || self.reply.is_empty() || self.chunks.iter().all(|chunk| is_notes(chunk));
        !self.chunks.is_empty() && self.chunks.iter().all(is_wrapper) && is_silent()
    }

    /// The prompt of a turn that is taken from a chunk on, for [`RecordedTurn::prompt`]: without wrappers, which may
    /// be others in the next replay.
    #[must_use]
    pub fn prompt(&self, from: usize) -> String {
        let chunks = || self.chunks.iter().skip(from);
        if chunks().all(is_wrapper) {
            return chunks().map(String::as_str).collect();
        }
        chunks().map(|chunk| unwrapped(chunk).unwrap_or(Cow::Borrowed(chunk))).collect()
    }
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The replay has no user message.
    NoPrompts,
    /// No place is certain.
    NoPlace,
    Place(Place),
}

/// A place that is certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where the new part of the replay begins.
    pub next: Position,
    /// The rest of the reply of the record's last turn, which comes before the new part.
    pub rest: Option<Rest>,
    pub new_turns: usize,
    /// Numbers, from 1, of recorded turns since the place that the agent does not have. If the last turn that it has is
    /// followed by these only, and nothing is new, its history ends there.
    pub missing: Vec<usize>,
    /// Whether the replay has all of the record's last turn, which is complete: it may be over.
    pub is_at_end: bool,
}

impl Place {
    /// The number of the turn that the agent's history ends after, if `turns` recorded turns go on after it.
    #[must_use]
    pub fn ends_after(&self, turns: usize) -> Option<usize> {
        let tail =
            self.missing.iter().rev().zip((1..=turns).rev()).take_while(|(number, turn)| **number == *turn);
        let lost = tail.count();
        (self.new_turns == 0 && lost > 0).then(|| turns.saturating_sub(lost))
    }
}

/// A position in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub turn: usize,
    /// The chunk of its user message: 0, unless the new part begins within the message.
    pub chunk: usize,
}

/// The turns of a record, indexed by their prompts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    turns: Vec<RecordedTurn>,
    /// Hashes of prompts with text, of their first [`HEAD_BYTES`], and of what is embedded in them.
    prompts: HashSet<u64>,
    heads: HashSet<u64>,
    embedded: HashSet<u64>,
    /// Prompts of turns that did not complete.
    open: HashSet<u64>,
    /// The turns of each prompt, sorted.
    by_prompt: Vec<(u64, usize)>,
}

impl Record {
    pub fn turns(&self) -> &[RecordedTurn] {
        &self.turns
    }

    /// `turns`: those of the branch that counts, without prompts that were never sent.
    #[must_use]
    pub fn new(turns: Vec<RecordedTurn>) -> Self {
        let mut record = Self::default();
        record.prompts.reserve(turns.len());
        for (index, turn) in turns.iter().enumerate() {
            if let Some(prompt) = prompt_of(turn) {
                record
                    .heads
                    .extend(turn.prompt.trim().as_bytes().get(..HEAD_BYTES).map(|head| hashed(SEED, head)));
                record.prompts.insert(prompt);
                record.by_prompt.push((prompt, index));
            }
            record.embedded.extend(turn.embedded.iter().map(|text| hashed(SEED, text.trim().as_bytes())));
        }
        record.by_prompt.sort_unstable();
        record.turns = turns;
        let open = record.by_prompt.iter().filter(|(_, turn)| !record.is_completed(*turn));
        record.open = open.map(|(prompt, _)| *prompt).collect();
        record
    }

    /// Whether the reply to a replayed user message is compared with one that did not complete: then it keeps texts.
    #[must_use]
    pub fn needs_texts(&self, chunks: &[String]) -> bool {
        let chunks = split(chunks);
        let is_open = |(prompt, _): &(u64, usize)| self.open.contains(prompt);
        let may_be_empty = || chunks.iter().all(|chunk| self.is_optional(chunk));
        may_be_empty() || self.starts(&chunks, &Cell::new(MIN_STEPS)).iter().any(is_open)
    }

    /// Finds where the replay goes on after the record.
    #[must_use]
    pub fn place(&self, replay: &[ReplayedTurn]) -> Outcome {
        let search = Search::new(self, replay);
        if search.messages.is_empty() {
            return Outcome::NoPrompts;
        }
        let place = search.place().filter(|_| search.steps.get() > 0);
        place.map_or(Outcome::NoPlace, Outcome::Place)
    }

    /// The replayed turns of which the record has neither the prompt nor a line of the reply.
    #[must_use]
    pub fn unrecorded(&self, replay: &[ReplayedTurn]) -> Vec<usize> {
        Search::new(self, replay).unrecorded()
    }

    fn is_completed(&self, index: usize) -> bool {
        match self.turns.get(index).map(|turn| turn.end) {
            Some(TurnEnd::Completed) => true,
            Some(TurnEnd::Taken) => index + 1 < self.turns.len(),
            Some(TurnEnd::Open) | None => false,
        }
    }

    /// Whether a chunk may stand beside the text of a prompt.
    fn is_optional(&self, chunk: &Chunk<'_>) -> bool {
        chunk.is_empty() || self.embedded.contains(&hashed(SEED, chunk.raw.trim().as_bytes()))
    }

    /// The prompts that may be runs of whole chunks, each with its first chunk.
    fn starts(&self, chunks: &[Chunk<'_>], steps: &Cell<usize>) -> Vec<(u64, usize)> {
        let (mut found, mut open) = (Vec::new(), Vec::new());
        for start in 0..chunks.len() {
            let first = found.len();
            let mut current = Some((Run::default(), start));
            while let Some((run, at)) = current.take().or_else(|| open.pop())
                && let Some(chunk) = chunks.get(at)
                && spend(steps, 1)
            {
                let is_last = at + 1 == chunks.len();
                if at > start && !is_last && self.is_optional(chunk) {
                    open.push((run, at + 1));
                }
                for text in chunk.texts() {
                    let next = run.with(text, &self.heads);
                    if next.hash != run.hash
                        && self.prompts.contains(&next.hash)
                        && !found.iter().skip(first).any(|(other, _)| *other == next.hash)
                    {
                        found.push((next.hash, start));
                    }
                    if next.len > 0 && !next.is_other && !is_last {
                        open.push((next, at + 1));
                    }
                }
            }
        }
        found
    }
}

/// The text of adjacent chunks, without white space at its ends.
#[derive(Debug, Clone, Copy)]
struct Run {
    hash: u64,
    /// The hash and number of bytes with the white space at the end.
    whole: u64,
    len: usize,
    /// Whether no prompt of at least [`HEAD_BYTES`] begins like this.
    is_other: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self { hash: SEED, whole: SEED, len: 0, is_other: false }
    }
}

impl Run {
    fn with(mut self, text: &str, heads: &HashSet<u64>) -> Self {
        let text = if self.len == 0 { text.trim_start() } else { text };
        let visible = text.trim_end().len();
        for (at, byte) in text.bytes().enumerate() {
            self.whole = hashed(self.whole, &[byte]);
            self.len += 1;
            if at + 1 == visible {
                self.hash = self.whole;
            }
            if self.len == HEAD_BYTES {
                self.is_other = !heads.contains(&self.whole);
            }
            if self.is_other && at + 1 < visible {
                self.hash = SEED;
                break;
            }
        }
        self
    }
}

/// A chunk of a replayed user message.
#[derive(Debug)]
struct Chunk<'a> {
    index: usize,
    raw: &'a str,
    unwrapped: Option<Cow<'a, str>>,
}

impl Chunk<'_> {
    fn texts(&self) -> impl Iterator<Item = &str> {
        [Some(self.raw), self.unwrapped.as_deref().filter(|text| !text.is_empty())].into_iter().flatten()
    }

    /// Whether it is white space or a wrapper only.
    fn is_empty(&self) -> bool {
        self.unwrapped.as_deref().unwrap_or(self.raw).trim().is_empty()
    }
}

fn split(chunks: &[String]) -> Vec<Chunk<'_>> {
    chunks.iter().enumerate().map(|(index, raw)| Chunk { index, raw, unwrapped: unwrapped(raw) }).collect()
}

/// The hash of a prompt, if it has text.
fn prompt_of(turn: &RecordedTurn) -> Option<u64> {
    let text = turn.prompt.trim().as_bytes();
    (!text.is_empty()).then(|| hashed(SEED, text))
}

/// Takes steps; `false`: too few are left.
fn spend(steps: &Cell<usize>, count: usize) -> bool {
    steps.set(steps.get().saturating_sub(count));
    steps.get() > 0
}

#[cfg(test)]
mod tests;
