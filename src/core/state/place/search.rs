//! The search for the place.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::reply::{Gap, find};
use super::reply::{Line, Reply, Rest};
use super::wrappers::is_notes;
use super::{
    Chunk, MIN_STEPS, Place, Position, Record, RecordedTurn, ReplayedTurn, TurnEnd, prompt_of, spend, split,
};

/// The reply of a turn without one.
static NO_REPLY: Reply = Reply { lines: Vec::new(), texts: None, size: 0, gap: Gap::Line };

/// A replayed turn, and those after it that continue it.
#[derive(Debug)]
pub(super) struct Message<'a> {
    turn: usize,
    chunks: Vec<Chunk<'a>>,
    reply: Cow<'a, Reply>,
    ids: Vec<&'a str>,
    calls: Vec<&'a str>,
    /// Whether a recorded prompt may stand in it.
    is_known: bool,
}

/// A place in the replay: a message and one of its chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    message: usize,
    chunk: usize,
}

/// A comparison of the record with a replay.
pub(super) struct Search<'a> {
    record: &'a Record,
    replay: &'a [ReplayedTurn],
    pub(super) messages: Vec<Message<'a>>,
    /// The places of each prompt, sorted.
    found: Vec<(u64, Spot)>,
    /// The recorded turn, and the message, of each id; `None`: of several.
    recorded_ids: HashMap<&'a str, Option<usize>>,
    replayed_ids: HashMap<&'a str, Option<usize>>,
    pub(super) steps: Cell<usize>,
}

impl<'a> Search<'a> {
    pub(super) fn new(record: &'a Record, replay: &'a [ReplayedTurn]) -> Self {
        let lines = record.turns.iter().map(|turn| &turn.reply).chain(replay.iter().map(|turn| &turn.reply));
        let chunks: usize = replay.iter().map(|turn| turn.chunks.len()).sum();
        let steps = MIN_STEPS + 8 * (chunks + lines.map(|reply| reply.lines.len() + 1).sum::<usize>());
        let mut search = Self {
            record,
            replay,
            messages: Vec::with_capacity(replay.len()),
            found: Vec::new(),
            recorded_ids: HashMap::new(),
            replayed_ids: HashMap::new(),
            steps: Cell::new(steps),
        };
        replay.iter().enumerate().for_each(|(turn, replayed)| search.add(turn, replayed));
        search.found.sort_unstable();
        for (index, turn) in record.turns.iter().enumerate() {
            turn.ids.iter().for_each(|id| note_id(&mut search.recorded_ids, id, index));
        }
        search
    }

    /// Adds a replayed turn, or continues the one before.
    fn add(&mut self, turn: usize, replayed: &'a ReplayedTurn) {
        if replayed.is_continuation() {
            let Some(last) = self.messages.last_mut() else { return };
            if !replayed.reply.is_empty() {
                last.reply.to_mut().join(&replayed.reply);
            }
            last.ids.extend(replayed.ids.iter().map(String::as_str));
            last.calls.extend(replayed.calls.iter().map(String::as_str));
        } else {
            let chunks = split(&replayed.chunks);
            let starts = self.record.starts(&chunks, &self.steps);
            let message = self.messages.len();
            self.found
                .extend(starts.iter().map(|(prompt, chunk)| (*prompt, Spot { message, chunk: *chunk })));
            let ids = replayed.ids.iter().map(String::as_str).collect();
            let calls = replayed.calls.iter().map(String::as_str).collect();
            let is_known = !starts.is_empty();
            self.messages.push(Message {
                turn,
                chunks,
                reply: Cow::Borrowed(&replayed.reply),
                ids,
                calls,
                is_known,
            });
        }
        let message = self.messages.len() - 1;
        replayed.ids.iter().for_each(|id| note_id(&mut self.replayed_ids, id, message));
    }

    pub(super) fn place(&self) -> Option<Place> {
        self.continuation().or_else(|| self.sameness()).or_else(|| self.compaction())
    }

    /// A replay that ends with the summary of the record's last compaction has nothing new. Claude Code appends the end
    /// of the last reply, without its prompt.
    fn compaction(&self) -> Option<Place> {
        let turns = &self.record.turns;
        let summary = &turns.last().filter(|turn| !turn.summary.is_empty())?.summary;
        let has_summary = |message: &usize| self.is_part(summary, Spot { message: *message, chunk: 0 });
        let mut summaries = (0..self.messages.len()).filter(has_summary);
        let (Some(found), None) = (summaries.next(), summaries.next()) else { return None };
        let last = self.messages.get(found).filter(|_| found + 1 == self.messages.len())?;
        let known = turns.iter().rev().map(|turn| &turn.reply).find(|reply| !reply.is_empty());
        let is_known = last.reply.is_empty()
            || known.is_some_and(|known| find(&last.reply.lines, &known.lines, |_| true).is_some());
        let has_call = |call: &&str| turns.iter().any(|turn| turn.calls.iter().any(|known| known == call));
        (is_known && last.calls.iter().all(has_call)).then(|| self.nothing_new())
    }

    fn nothing_new(&self) -> Place {
        let next = Position { turn: self.replay.len(), chunk: 0 };
        Place { next, rest: None, new_turns: 0, missing: Vec::new(), is_at_end: false }
    }

    /// A replay of the same turns, from the first to the last, has nothing new, even if text cannot tell them apart.
    fn sameness(&self) -> Option<Place> {
        let mut next = Spot { message: 0, chunk: 0 };
        for (index, turn) in self.record.turns.iter().enumerate() {
            let (after, reply) = self.run(turn, next)?;
            let is_same = if self.record.is_completed(index) {
                self.agree(&turn.reply, reply)
            } else {
                turn.reply.lines == reply.lines
            };
            if !is_same {
                return None;
            }
            next = after;
        }
        (next.message == self.messages.len()).then(|| self.nothing_new())
    }

    /// Where the replay goes on after a turn that is certainly in both.
    fn continuation(&self) -> Option<Place> {
        let (first, mut next) = self.anchor()?;
        let turns = &self.record.turns;
        // From there to the end of the record, turn by turn.
        let (mut missing, mut doubtful, mut left_out) = (Vec::new(), Vec::new(), HashSet::<&Line>::new());
        let (mut last, mut has_unanswered) = (None, false);
        for (index, turn) in turns.iter().enumerate().skip(first) {
            let is_completed = self.record.is_completed(index);
            let Some((after, reply)) = self.run(turn, next) else {
                // Turns that the agent certainly had may be missing only if nothing is taken.
                if (is_completed || turn.end == TurnEnd::Taken) && next.message < self.messages.len() {
                    return None;
                }
                missing.push(index);
                continue;
            };
            // What was taken went to the end of a user message.
            let is_joined = turn.end == TurnEnd::Taken && after.chunk > 0;
            let is_unanswered = self.is_unanswered(index, next);
            has_unanswered |= is_unanswered;
            if is_joined
                || !is_unanswered && !self.is_compatible(index, reply, false)
                || self.is_excluded(turn, next.message)
            {
                return None;
            }
            if turn.reply.lines != reply.lines && (is_completed || reply.is_empty()) {
                let mut shown: HashMap<_, usize> = HashMap::new();
                reply.lines.iter().for_each(|line| *shown.entry(line).or_default() += 1);
                left_out.extend(turn.reply.lines.iter().filter(|line| match shown.get_mut(line) {
                    Some(count) if *count > 0 => {
                        *count -= 1;
                        false
                    }
                    _ => true,
                }));
            }
            // A turn that did not complete may be another than this, unless its reply is the same or a turn that did
            // complete follows.
            if is_completed {
                doubtful.clear();
            } else if reply.size != turn.reply.size || after.chunk > 0 {
                doubtful.push(index);
            }
            last = Some((index, next.message, reply));
            next = after;
        }
        let (last, message, reply) = last?;
        let is_last = last + 1 == turns.len();
        let recorded = &turns.get(last)?.reply;
        // A turn that did not complete may have got the rest of its reply only as the record's last: else it may be
        // another.
        let is_like_missing = || {
            let prompt = turns.get(last).and_then(prompt_of);
            missing.iter().any(|index| *index > last && turns.get(*index).and_then(prompt_of) == prompt)
        };
        if !is_last && !self.record.is_completed(last) && (reply.size > recorded.size || is_like_missing()) {
            return None;
        }
        // What seemed to be missing or is doubtful, a turn or a line of a reply, must not stand in what seems new.
        let is_new = |index: &usize| self.is_after(*index, next);
        let mut new_lines = self.messages.iter().skip(next.message).flat_map(|message| &message.reply.lines);
        if missing.iter().chain(&doubtful).any(is_new) || new_lines.any(|line| left_out.contains(line)) {
            return None;
        }
        if self.is_repeated(next) || self.is_within(last, message, next) {
            return None;
        }
        let rest = if is_last && !self.record.is_completed(last) && !reply.is_empty() {
            self.rest(message, turns.get(last)?, reply.end_of(recorded, false)?)
        } else {
            None
        };
        if has_unanswered && (rest.is_some() || next.message < self.messages.len()) {
            return None;
        }
        let mut rest_lines = rest.iter().flat_map(|rest| reply.lines.iter().skip(rest.lines));
        if rest_lines.any(|line| left_out.contains(line)) {
            return None;
        }
        let position = self.messages.get(next.message).map_or(
            Position { turn: self.replay.len(), chunk: 0 },
            |message| {
                // Notes that agents put before a prompt are about the turn before.
                let mut chunks = message.chunks.iter().skip(next.chunk);
                let chunk = chunks.find(|chunk| !is_notes(chunk.raw)).filter(|_| message.chunks.len() > 1);
                Position { turn: message.turn, chunk: chunk.map_or(0, |chunk| chunk.index) }
            },
        );
        // Agents replay a summary instead of the command for it.
        let is_compaction = |turn: &RecordedTurn| !turn.summary.is_empty() && turn.reply.is_empty();
        if missing.iter().all(|index| turns.get(*index).is_some_and(is_compaction)) {
            missing.clear();
        }
        Some(Place {
            next: position,
            rest,
            new_turns: self.messages.len() - next.message,
            missing: missing.iter().map(|index| index + 1).collect(),
            is_at_end: is_last && turns.get(last)?.end == TurnEnd::Completed && reply.size >= recorded.size,
        })
    }

    /// Whether a turn after a place may be one that is before it too, because an agent may replay turns twice.
    fn is_repeated(&self, next: Spot) -> bool {
        // The last reply may still grow.
        let may_be = |known: &Reply, spot: Spot| {
            let (reply, is_last) = (self.reply_at(spot), spot.message + 1 == self.messages.len());
            known.lines == reply.lines || is_last && reply.may_begin(known)
        };
        let live = self.record.turns.iter().rposition(|turn| turn.end == TurnEnd::Completed);
        let is_recorded = |index: usize, turn: &RecordedTurn, spot: Spot, reply: &Reply, has_all: bool| {
            let whole = self.reply_at(spot);
            !self.is_excluded(turn, spot.message)
                && (may_be(&turn.reply, spot)
                    || turn.reply.is_empty() && reply.is_empty()
                    || if self.record.is_completed(index) {
                        self.agree(&turn.reply, whole)
                    } else {
                        // What is open since the last live turn may have been missing before.
                        let is_missing = !has_all && live.is_none_or(|live| live < index);
                        (is_missing || !turn.reply.is_empty())
                            && spend(&self.steps, turn.reply.lines.len() + whole.lines.len() + 1)
                            && whole.end_of(&turn.reply, true).is_some()
                    })
        };
        let mut new = self.found.iter().filter(|(_, spot)| *spot >= next);
        new.any(|(prompt, spot)| {
            let (known, found) = (all_of(&self.record.by_prompt, *prompt), all_of(&self.found, *prompt));
            let turns = known.iter().take_while(|_| spend(&self.steps, 1));
            let turns = turns.filter_map(|(_, index)| Some((*index, self.record.turns.get(*index)?)));
            let runs = turns.filter_map(|(index, turn)| Some((index, turn, self.run(turn, *spot)?.1)));
            let mut runs = runs.peekable();
            if runs.peek().is_none() {
                return false;
            }
            let before = found.get(..found.partition_point(|(_, other)| *other < next)).unwrap_or_default();
            let has_all = before.len() >= known.len();
            let mut before = before.iter().take_while(|_| spend(&self.steps, 1));
            runs.any(|(index, turn, reply)| is_recorded(index, turn, *spot, reply, has_all))
                || before.any(|(_, other)| {
                    other.message != spot.message
                        && may_be(self.reply_at(*other), *spot)
                        && !self.has_other_id(other.message, spot.message)
                })
        })
    }

    /// Whether two messages are not the same, because one has an id that is recorded, and the other has other ids.
    fn has_other_id(&self, one: usize, other: usize) -> bool {
        let ids = |message: usize| self.messages.get(message).map_or(&[][..], |message| &message.ids);
        let (one, other) = (ids(one), ids(other));
        !other.is_empty()
            && one.iter().any(|id| self.recorded_ids.contains_key(id))
            && !one.iter().any(|id| other.contains(id))
    }

    /// Whether what follows a place may be the rest of the turn before it, with a message that the agent put into that:
    /// it has an id that is recorded there and was not replayed there, or all of the recorded text.
    fn is_within(&self, last: usize, replayed: usize, next: Spot) -> bool {
        let (Some(turn), Some(replayed), Some(message)) =
            (self.record.turns.get(last), self.messages.get(replayed), self.messages.get(next.message))
        else {
            return false;
        };
        let is_left = |id: &&str, known: &[String], shown: &[&str]| {
            known.iter().any(|known| known == id) && !shown.contains(id)
        };
        let has_id = message.calls.iter().any(|call| is_left(call, &turn.calls, &replayed.calls))
            || message.ids.iter().any(|id| is_left(id, &turn.ids, &replayed.ids));
        let is_unanswered = replayed.reply.is_empty() && !turn.reply.is_empty();
        has_id || is_unanswered && message.reply.end_of(&turn.reply, false).is_some()
    }

    /// The reply to a user message, no matter which of the prompts in it.
    fn reply_at(&self, spot: Spot) -> &Reply {
        self.messages.get(spot.message).map_or(&NO_REPLY, |message| &*message.reply)
    }

    /// The last completed turn that is found exactly once on each side: by its prompt, or, where that is repeated, by
    /// an id or by prompt and reply together.
    fn anchor(&self) -> Option<(usize, Spot)> {
        let record = self.record;
        for (index, turn) in record.turns.iter().enumerate().rev() {
            if !record.is_completed(index) || !spend(&self.steps, 1) {
                continue;
            }
            let Some(prompt) = prompt_of(turn) else { continue };
            let (same, found) = (all_of(&record.by_prompt, prompt), all_of(&self.found, prompt));
            let there = |(_, spot): &&(u64, Spot)| {
                self.run(turn, *spot).is_some_and(|(_, reply)| self.is_compatible(index, reply, false))
            };
            if same.len() == 1 && found.len() == 1 {
                if found.iter().any(|(_, spot)| self.is_unanswered(index, *spot)) {
                    continue;
                }
                return found.first().filter(there).map(|(_, spot)| (index, *spot));
            }
            if let Some(message) = self.message_by_id(index, turn) {
                let mut spots = found.iter().filter(|(_, spot)| spot.message == message).filter(there);
                if let (Some((_, spot)), None) = (spots.next(), spots.next()) {
                    return Some((index, *spot));
                }
            }
            // A warning may make one of two equal replies disagree: what is related may be the same.
            let is_alike = |(_, other): &&(u64, usize)| {
                let reply = record.turns.get(*other).map_or(&NO_REPLY, |turn| &turn.reply);
                *other == index || !record.is_completed(*other) || self.is_related(reply, &turn.reply)
            };
            if turn.reply.is_empty() || found.is_empty() || same.iter().filter(is_alike).take(2).count() > 1 {
                continue;
            }
            let may_be = |(_, spot): &&(u64, Spot)| {
                self.run(turn, *spot).is_some() && self.is_related(&turn.reply, self.reply_at(*spot))
            };
            let mut spots = found.iter().filter(may_be);
            if let (Some(found), None) = (spots.next(), spots.next())
                && there(&found)
            {
                return Some((index, found.1));
            }
        }
        None
    }

    /// Matches the prompt of a turn, and attempts to send it that are joined with it: where the replay goes on behind it,
    /// and the reply.
    fn run(&self, turn: &RecordedTurn, spot: Spot) -> Option<(Spot, &Reply)> {
        let mut found = self.run_once(turn, spot)?;
        for _ in 0..turn.attempts {
            let Some(again) = self.run_once(turn, found.0).filter(|_| found.0.message == spot.message) else {
                break;
            };
            found = again;
        }
        Some(found)
    }

    /// Matches a prompt with a run of whole chunks. One that is followed by another in one user message has no reply.
    fn run_once(&self, turn: &RecordedTurn, spot: Spot) -> Option<(Spot, &Reply)> {
        let message = self.messages.get(spot.message)?;
        let mut rest = turn.prompt.trim();
        let (has_text, mut is_begun) = (!rest.is_empty(), false);
        if !has_text && spot.chunk > 0 {
            return None;
        }
        let mut embedded: Vec<&str> = turn.embedded.iter().map(|text| text.trim()).collect();
        for (index, chunk) in message.chunks.iter().enumerate().skip(spot.chunk) {
            if let Some(after) = chunk.texts().find_map(|text| strip(rest, text, is_begun)) {
                (rest, is_begun) = (after, true);
            } else if chunk.is_empty() && (rest.is_empty() || !is_begun || !chunk.raw.trim().is_empty()) {
                // Passed over.
            } else if let Some(at) = embedded.iter().position(|text| *text == chunk.raw.trim()) {
                embedded.swap_remove(at);
            } else if rest.is_empty() && has_text {
                // Within a line, chunks are parts of one text.
                let before = index.checked_sub(1).and_then(|before| message.chunks.get(before));
                let is_within_line =
                    chunk.raw.starts_with(' ') || before.is_some_and(|chunk| chunk.raw.ends_with(' '));
                return (!is_within_line).then_some((Spot { chunk: index, ..spot }, &NO_REPLY));
            } else {
                return None;
            }
        }
        rest.is_empty().then_some((Spot { message: spot.message + 1, chunk: 0 }, &*message.reply))
    }

    /// Whether a completed turn was replayed without its reply, because agents that report an error as a reply may not
    /// store it. Its prompt must be unique, because another turn may be without a reply too.
    fn is_unanswered(&self, index: usize, spot: Spot) -> bool {
        let Some(turn) = self.record.turns.get(index) else { return false };
        let is_single = |prompt: u64| {
            all_of(&self.record.by_prompt, prompt).len() == 1 && all_of(&self.found, prompt).len() == 1
        };
        let has_no_reply = |(after, reply): (Spot, &Reply)| after.chunk == 0 && reply.is_empty();
        self.record.is_completed(index)
            && !turn.reply.is_empty()
            && prompt_of(turn).is_some_and(is_single)
            && self.run(turn, spot).is_some_and(has_no_reply)
    }

    /// Whether a replayed reply may be that of a turn. `unknown`: the answer where a text was not kept.
    fn is_compatible(&self, index: usize, reply: &Reply, unknown: bool) -> bool {
        let Some(turn) = self.record.turns.get(index) else { return false };
        if self.record.is_completed(index) {
            return self.agree(&turn.reply, reply);
        }
        let is_affordable = spend(&self.steps, turn.reply.lines.len() + reply.lines.len() + 1);
        reply.is_empty() && turn.end == TurnEnd::Open
            || is_affordable && reply.end_of(&turn.reply, unknown).is_some()
    }

    /// Whether one reply is a run of whole lines of the other, and at least half of it.
    fn agree(&self, one: &Reply, other: &Reply) -> bool {
        2 * one.size.min(other.size) >= one.size.max(other.size) && self.is_related(one, other)
    }

    /// Whether one reply is a run of whole lines of the other. Nothing is related to nothing only.
    fn is_related(&self, one: &Reply, other: &Reply) -> bool {
        let (short, long) = if one.size > other.size { (other, one) } else { (one, other) };
        let is_affordable = spend(&self.steps, 1 + short.lines.len() + long.lines.len());
        if short.is_empty() {
            return long.is_empty();
        }
        is_affordable && find(&short.lines, &long.lines, |_| true).is_some()
    }

    /// The message that has an id of a recorded turn, if the id is of these two only.
    fn message_by_id(&self, index: usize, turn: &RecordedTurn) -> Option<usize> {
        let mut ids = turn.ids.iter().filter(|id| self.recorded_ids.get(id.as_str()) == Some(&Some(index)));
        ids.find_map(|id| self.replayed_ids.get(id.as_str()).copied().flatten())
    }

    /// Whether ids say that a turn is not this message, because another one has its id.
    fn is_excluded(&self, turn: &RecordedTurn, message: usize) -> bool {
        let Some(own) = self.messages.get(message).map(|message| &message.ids).filter(|ids| !ids.is_empty())
        else {
            return false;
        };
        let is_other = |id: &String| {
            let turns = self.recorded_ids.get(id.as_str()).copied().flatten();
            turns.is_some()
                && self.replayed_ids.get(id.as_str()).copied().flatten().is_some_and(|at| at != message)
        };
        !turn.ids.iter().any(|id| own.contains(&id.as_str())) && turn.ids.iter().any(is_other)
    }

    /// Whether a turn that seemed to be missing may stand after a place: as a turn, as lines of a user message, or,
    /// where text cannot tell, with its embedded resources or its reply.
    fn is_after(&self, index: usize, next: Spot) -> bool {
        let Some(turn) = self.record.turns.get(index) else { return false };
        let is_turn = |spot: Spot| {
            let _ = spend(&self.steps, 1);
            let is_same = |reply: &Reply| {
                self.is_compatible(index, reply, true)
                    || !self.record.is_completed(index) && turn.reply.lines.starts_with(&reply.lines)
            };
            self.run(turn, spot).is_some_and(|(_, reply)| is_same(reply))
        };
        let is_embedded =
            |chunk: &Chunk<'_>| turn.embedded.iter().any(|text| text.trim() == chunk.raw.trim());
        let has_embedded = |spot: Spot| {
            let message = self.messages.get(spot.message);
            message.is_some_and(|message| message.chunks.iter().skip(spot.chunk).any(is_embedded))
        };
        let has_reply = |spot: Spot| {
            let reply = self.reply_at(spot);
            !turn.reply.is_empty() && !reply.is_empty() && self.is_compatible(index, reply, true)
        };
        let later = (next.message + 1..self.messages.len()).map(|message| Spot { message, chunk: 0 });
        let mut new = std::iter::once(next).chain(later);
        let Some(prompt) = prompt_of(turn) else {
            return new.any(|spot| has_embedded(spot) || has_reply(spot) || is_turn(spot));
        };
        let mut lines = Reply::default();
        lines.push(&turn.prompt);
        let found = all_of(&self.found, prompt).iter().map(|(_, spot)| *spot);
        found.filter(|spot| *spot >= next).any(is_turn)
            || new.any(|spot| self.is_part(&lines, spot))
            || next.chunk > 0 && has_embedded(next)
    }

    /// Whether lines are a part of a user message, and not all of it.
    fn is_part(&self, lines: &Reply, spot: Spot) -> bool {
        let Some(message) = self.messages.get(spot.message) else { return false };
        let mut whole = Reply::default();
        for chunk in message.chunks.iter().skip(spot.chunk) {
            let is_affordable = spend(&self.steps, chunk.raw.len());
            whole.push(if is_affordable { chunk.raw } else { "" });
            whole.push("\n");
        }
        whole.lines.len() > lines.lines.len() && find(&lines.lines, &whole.lines, |_| true).is_some()
    }

    /// The rest of a reply behind its recorded part.
    fn rest(&self, message: usize, known: &RecordedTurn, (lines, chars): (usize, usize)) -> Option<Rest> {
        let message = self.messages.get(message)?;
        let reply = &message.reply;
        let has_call = |call: &&str| known.calls.iter().any(|known| known == call);
        let is_end = reply.lines.len() == lines + 1
            && reply.lines.last().is_some_and(|line| usize::try_from(line.len).is_ok_and(|len| len == chars));
        let turn = message.turn;
        let has_all = is_end && message.calls.iter().all(has_call);
        (!has_all).then_some(Rest { turn, lines, chars, at: (0, 0), gap: Gap::Line })
    }

    /// The replayed turns that are not recorded. Agents change prompts, so no line of the reply may be recorded either.
    pub(super) fn unrecorded(&self) -> Vec<usize> {
        let known: HashSet<_> = self.record.turns.iter().flat_map(|turn| &turn.reply.lines).collect();
        let is_other = |message: &&Message<'_>| {
            let is_wrapper = message.chunks.iter().all(Chunk::is_empty);
            !message.is_known
                && !is_wrapper
                && !message.reply.is_empty()
                && message.reply.lines.iter().all(|line| !known.contains(line))
        };
        self.messages.iter().filter(is_other).map(|message| message.turn).collect()
    }
}

/// The pairs of a sorted list that begin with a hash.
fn all_of<T>(list: &[(u64, T)], hash: u64) -> &[(u64, T)] {
    let end = list.partition_point(|(other, _)| *other <= hash);
    let begin = list.partition_point(|(other, _)| *other < hash);
    list.get(begin..end).unwrap_or_default()
}

fn note_id<'a>(ids: &mut HashMap<&'a str, Option<usize>>, id: &'a str, owner: usize) {
    let known = ids.entry(id).or_insert(Some(owner));
    *known = known.filter(|known| *known == owner);
}

/// The rest of a prompt after a text, without regard to white space at the ends of the prompt.
fn strip<'a>(prompt: &'a str, text: &str, is_begun: bool) -> Option<&'a str> {
    let text = if is_begun { text } else { text.trim_start() };
    if prompt.is_empty() || text.is_empty() && !is_begun {
        return None;
    }
    prompt.strip_prefix(text).or_else(|| (prompt == text.trim_end()).then_some(""))
}
