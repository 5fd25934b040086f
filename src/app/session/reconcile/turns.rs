//! Aligns turns.
//!
//! Turns with the same prompt and reply are anchors: equal starts and ends first, then turns that are unique on both
//! sides, in their longest common order. The gaps between anchors are small in practice, and are aligned by weights:
//! equal prompts, prompts within longer ones, several prompts joined to one. A turn with a prompt only is not an
//! anchor, because prompts often repeat; nor is a turn that was marked as missing in an earlier replay, so that the
//! same replay is aligned in the same way again.
//! Invariant: the work is bounded: gaps too long for weighing are aligned by equal prompts only.

use std::collections::HashMap;
use std::ops::Range;

use crate::app::{Item, ItemBody, Message, MessagePart};
use crate::model::{MessageId, Role};

use super::{MIN_PART_BYTES, text};

/// Maximum number of pairs of turns in a gap that are weighed.
const MAX_WEIGHED: usize = 1 << 14;

/// Maximum number of prompts joined to one.
const MAX_JOINED: usize = 8;

/// Maximum number of messages of a reply that are searched in another one.
const MAX_MESSAGES: usize = 3;

/// Maximum recursion depth of the search for anchors.
const MAX_DEPTH: u8 = 24;

/// The items from one prompt to the next.
#[derive(Debug, Default)]
pub(super) struct Turn<'a> {
    pub items: Range<usize>,
    /// The typed prompt; `None`: the items before the first prompt.
    pub prompt: Option<String>,
    /// All messages of the agent, joined.
    pub reply: String,
    /// The messages separately.
    messages: Vec<String>,
    /// Ids of the agent's messages.
    ids: Vec<&'a MessageId>,
    /// Its thoughts and tool calls.
    deeds: Vec<String>,
    /// Notices of the agent and of parlor.
    notices: Vec<&'a str>,
    /// Whether it was cancelled or has failed.
    pub has_bad_end: bool,
    /// Whether a notice marks it as missing in the agent's history.
    is_marked: bool,
}

impl Turn<'_> {
    /// Whether it is identified by more than its prompt, and was not missing in an earlier replay.
    fn is_anchor(&self) -> bool {
        !self.is_marked && (!self.reply.is_empty() || !self.deeds.is_empty())
    }
}

/// Matching turns; one side may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub ours: Range<usize>,
    pub theirs: Range<usize>,
}

/// The turns of a list of items.
pub(super) fn of(items: &[Item]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let begins = match &item.body {
            ItemBody::Message(message) if message.role == Role::User => text::prompt(&text_of(message)),
            _ => None,
        };
        if begins.is_some() || turns.is_empty() {
            turns.push(Turn { items: index..index, prompt: begins, ..Turn::default() });
        }
        if let Some(count) = super::not_replayed(item) {
            let above = turns.iter_mut().rev().filter(|turn| turn.prompt.is_some());
            above.take(count).for_each(|turn| turn.is_marked = true);
        }
        let Some(turn) = turns.last_mut() else { continue };
        turn.items.end = index + 1;
        match &item.body {
            ItemBody::Message(message) if message.role == Role::User => {}
            ItemBody::Message(message) => {
                let text = text::squeezed(&text_of(message));
                turn.ids.extend(&message.message);
                if message.role == Role::Thought {
                    turn.deeds.push(text);
                } else {
                    turn.reply.push_str(&text);
                    turn.messages.push(text);
                }
            }
            ItemBody::TurnEnd(_) => turn.has_bad_end = true,
            ItemBody::Notice { title, .. } => turn.notices.push(title),
            ItemBody::Answered { .. } => {}
            // Agents do not replay accesses through parlor, or which call they requested under another id.
            ItemBody::Tool(call) if call.is_own || call.from_ask_only => {}
            ItemBody::Tool(call) => turn.deeds.push(call.title.clone()),
            ItemBody::Compaction { summary, .. } => turn.deeds.push(summary.clone()),
            ItemBody::Subagent { title, .. } => turn.deeds.push(title.clone()),
            ItemBody::Raw { name, raw } => turn.deeds.push(format!("{name} {}", raw.0)),
        }
    }
    turns
}

/// All text of a message.
pub(super) fn text_of(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        MessagePart::Text(text) => Some(text.as_str()),
        MessagePart::Block(_) => None,
    });
    texts.collect()
}

/// The items of adjacent turns.
pub(super) fn items_of(turns: &[Turn<'_>], range: &Range<usize>) -> Range<usize> {
    let behind = turns.last().map_or(0, |last| last.items.end);
    let start = turns.get(range.start).map_or(behind, |first| first.items.start);
    let end = turns.get(range.end).map_or(behind, |next| next.items.start);
    start..end.max(start)
}

/// Aligns turns. The groups hold all recorded ones, and the replayed ones to compare, both in order.
pub(super) fn align(ours: &[Turn<'_>], theirs: &[Turn<'_>], is_whole: bool) -> Vec<Group> {
    let theirs_end = theirs.len() - repeated(ours, theirs);
    let has_lead = |turns: &[Turn<'_>]| usize::from(turns.first().is_some_and(|turn| turn.prompt.is_none()));
    let (our_start, their_start) = (has_lead(ours), has_lead(theirs));
    // The start of a replay belongs to the start of the record.
    let lead = Group { ours: 0..our_start, theirs: 0..if is_whole { their_start } else { 0 } };
    let rest = Group { ours: our_start..ours.len(), theirs: their_start..theirs_end };

    // By whole turn, by prompt and reply, by prompt: each pass leaves gaps for the next one.
    let mut matched = Vec::new();
    let mut gaps = vec![rest];
    for way in [Key::All, Key::Reply, Key::Prompt] {
        let mut ids = HashMap::new();
        let keys = (number(ours, &mut ids, way, usize::MAX), number(theirs, &mut ids, way, usize::MAX - 1));
        let mut search = Search { keys: [&keys.0, &keys.1], pairs: Vec::new(), rest: Vec::new() };
        for gap in gaps {
            if way != Key::All && is_small(&gap) {
                weigh(ours, theirs, &gap, &mut matched);
            } else {
                search.anchor(gap, MAX_DEPTH, is_whole);
            }
        }
        matched.append(&mut search.pairs);
        gaps = search.rest;
    }
    for gap in gaps.iter().filter(|gap| is_small(gap)) {
        weigh(ours, theirs, gap, &mut matched);
    }
    matched.sort_by_key(|group| group.ours.start);

    let mut groups = vec![lead];
    let (mut our_next, mut their_next) = (our_start, their_start);
    let end = Group { ours: ours.len()..ours.len(), theirs: theirs_end..theirs_end };
    // Turns before the first common one may be recorded but not in memory.
    let mut is_known = is_whole;
    for group in matched.into_iter().chain([end]) {
        groups.push(Group { ours: our_next..group.ours.start, theirs: their_next..their_next });
        if is_known {
            let only = (their_next..group.theirs.start).filter(|position| !is_repetition(theirs, *position));
            groups.extend(only.map(|position| Group {
                ours: group.ours.start..group.ours.start,
                theirs: position..position + 1,
            }));
        }
        is_known = true;
        (our_next, their_next) = (group.ours.end, group.theirs.end);
        groups.push(group);
    }
    groups.retain(|group| !group.ours.is_empty() || !group.theirs.is_empty());
    groups
}

fn is_small(gap: &Group) -> bool {
    gap.ours.len().saturating_mul(gap.theirs.len()) <= MAX_WEIGHED
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    All,
    Reply,
    Prompt,
}

/// Number of turns at the end of a replay that repeat all of it: some agents replay twice.
fn repeated(ours: &[Turn<'_>], theirs: &[Turn<'_>]) -> usize {
    let half = theirs.len() / 2;
    let is_same = |(one, other): (&Turn<'_>, &Turn<'_>)| {
        one.prompt == other.prompt && one.reply == other.reply && one.deeds == other.deeds
    };
    let is_twice = half >= 2
        && theirs.len().is_multiple_of(2)
        && ours.len() <= half
        && theirs.iter().zip(theirs.iter().skip(half)).all(is_same);
    if is_twice { half } else { 0 }
}

/// Whether a prompt was sent twice and one turn of it is recorded: the agent has nothing for this one.
fn is_repetition(theirs: &[Turn<'_>], position: usize) -> bool {
    let is_empty = |turn: &&Turn<'_>| turn.messages.is_empty() && turn.deeds.is_empty();
    let Some(turn) = theirs.get(position).filter(|turn| turn.prompt.is_some()).filter(is_empty) else {
        return false;
    };
    let is_same = |other: Option<&Turn<'_>>| other.is_some_and(|other| other.prompt == turn.prompt);
    is_same(theirs.get(position + 1))
        || is_same(position.checked_sub(1).and_then(|before| theirs.get(before)))
}

/// Assigns equal turns equal numbers, and turns that are not anchors a common one.
fn number<'a>(
    turns: &'a [Turn<'a>],
    ids: &mut HashMap<TurnKey<'a>, usize>,
    way: Key,
    none: usize,
) -> Vec<usize> {
    let key = |turn: &'a Turn<'a>| -> TurnKey<'a> {
        let reply = if way == Key::Prompt { "" } else { turn.reply.as_str() };
        (turn.prompt.as_deref(), reply, if way == Key::All { &turn.deeds } else { &[] })
    };
    turns
        .iter()
        .map(|turn| {
            if way == Key::All && !turn.is_anchor() {
                return none;
            }
            let next = ids.len();
            *ids.entry(key(turn)).or_insert(next)
        })
        .collect()
}

/// Prompt, reply and tool calls.
type TurnKey<'a> = (Option<&'a str>, &'a str, &'a [String]);

struct Search<'a> {
    keys: [&'a [usize]; 2],
    pairs: Vec<Group>,
    rest: Vec<Group>,
}

impl Search<'_> {
    fn is_same(&self, ours: usize, theirs: usize) -> bool {
        let [our_keys, their_keys] = self.keys;
        matches!((our_keys.get(ours), their_keys.get(theirs)), (Some(one), Some(other)) if one == other)
    }

    fn pair(&mut self, ours: usize, theirs: usize) {
        self.pairs.push(Group { ours: ours..ours + 1, theirs: theirs..theirs + 1 });
    }

    /// Aligns equal turns of a gap. Agents lose turns from the end or the start; where only the end of the record is
    /// given, the ends are compared first.
    fn anchor(&mut self, gap: Group, depth: u8, from_start: bool) {
        let Group { mut ours, mut theirs } = gap;
        for is_start in [from_start, !from_start] {
            while !ours.is_empty() && !theirs.is_empty() {
                let (one, other) =
                    if is_start { (ours.start, theirs.start) } else { (ours.end - 1, theirs.end - 1) };
                if !self.is_same(one, other) {
                    break;
                }
                self.pair(one, other);
                if is_start {
                    (ours.start, theirs.start) = (one + 1, other + 1);
                } else {
                    (ours.end, theirs.end) = (one, other);
                }
            }
        }
        if ours.is_empty() || theirs.is_empty() {
            return;
        }
        let unique = if depth == 0 { Vec::new() } else { self.unique(&ours, &theirs) };
        if unique.is_empty() {
            self.rest.push(Group { ours, theirs });
            return;
        }
        let (mut our_next, mut their_next) = (ours.start, theirs.start);
        for (one, other) in unique {
            self.anchor(Group { ours: our_next..one, theirs: their_next..other }, depth - 1, from_start);
            self.pair(one, other);
            (our_next, their_next) = (one + 1, other + 1);
        }
        self.anchor(
            Group { ours: our_next..ours.end, theirs: their_next..theirs.end },
            depth - 1,
            from_start,
        );
    }

    /// Turns that are unique on both sides, in their longest common order.
    fn unique(&self, ours: &Range<usize>, theirs: &Range<usize>) -> Vec<(usize, usize)> {
        let [our_keys, their_keys] = self.keys;
        // By key: number and last position on each side.
        let mut seen: HashMap<usize, [(u32, usize); 2]> = HashMap::new();
        for (side, (keys, range)) in [(our_keys, ours), (their_keys, theirs)].into_iter().enumerate() {
            for position in range.clone() {
                if let Some(seen) =
                    keys.get(position).and_then(|key| seen.entry(*key).or_default().get_mut(side))
                {
                    *seen = (seen.0 + 1, position);
                }
            }
        }
        let mut pairs: Vec<(usize, usize)> = seen
            .into_values()
            .filter(|[one, other]| one.0 == 1 && other.0 == 1)
            .map(|[one, other]| (one.1, other.1))
            .collect();
        pairs.sort_unstable();
        longest_order(&pairs)
    }
}

/// The longest subsequence of the pairs, sorted by their first position, that is also sorted by the second one.
fn longest_order(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The last pair of the best subsequence of each length, and the predecessor of each pair.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    let second = |index: &usize| pairs.get(*index).map_or(0, |pair| pair.1);
    for (index, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| second(end) < pair.1);
        if let Some(before) = before.get_mut(index) {
            *before = length.checked_sub(1).and_then(|last| ends.get(last)).copied();
        }
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut order = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        order.extend(pairs.get(index));
        next = before.get(index).copied().flatten();
    }
    order.reverse();
    order
}

/// A step of an alignment: the number of turns of each side.
type Step = (usize, usize);

/// Aligns the turns of a small gap with the highest sum of weights.
fn weigh(ours: &[Turn<'_>], theirs: &[Turn<'_>], gap: &Group, matched: &mut Vec<Group>) {
    let (height, width) = (gap.ours.len(), gap.theirs.len());
    if height == 0 || width == 0 {
        return;
    }
    // For each position the best sum from there on, and the first step to it.
    let mut best: Vec<(usize, Step)> = vec![(0, (0, 0)); (height + 1) * (width + 1)];
    let at = |one: usize, other: usize| one * (width + 1) + other;
    for one in (0..=height).rev() {
        for other in (0..=width).rev() {
            if one == height || other == width {
                continue;
            }
            let rest = |step: Step| best.get(at(one + step.0, other + step.1)).map_or(0, |(sum, _)| *sum);
            let (our, their) = (gap.ours.start + one, gap.theirs.start + other);
            let mut found = (0, (1, 0));
            let mut offer = |weight: usize, step: Step| {
                let sum = weight + rest(step);
                if sum > found.0 {
                    found = (sum, step);
                }
            };
            if let (Some(our), Some(their)) = (ours.get(our), theirs.get(their)) {
                let weight = weight(our, their);
                if weight > 0 {
                    offer(weight, (1, 1));
                }
                let joined =
                    joined_in(their, ours.get(gap.ours.start + one..gap.ours.end).unwrap_or_default());
                if joined > 1 {
                    offer(16 * joined, (joined, 1));
                }
                let joined =
                    joined_in(our, theirs.get(gap.theirs.start + other..gap.theirs.end).unwrap_or_default());
                if joined > 1 {
                    offer(16 * joined, (1, joined));
                }
            }
            offer(0, (1, 0));
            offer(0, (0, 1));
            if let Some(position) = best.get_mut(at(one, other)) {
                *position = found;
            }
        }
    }
    let (mut one, mut other) = (0, 0);
    while one < height && other < width {
        let (_, step) = best.get(at(one, other)).copied().unwrap_or_default();
        if step.0 > 0 && step.1 > 0 {
            let (our, their) = (gap.ours.start + one, gap.theirs.start + other);
            matched.push(Group { ours: our..our + step.0, theirs: their..their + step.1 });
        }
        (one, other) = (one + step.0.max(usize::from(step.1 == 0)), other + step.1);
    }
}

/// How likely two turns are the same; 0: they are not.
fn weight(our: &Turn<'_>, their: &Turn<'_>) -> usize {
    // Of similar turns, one that was missing in an earlier replay is the one that is missing now.
    (2 * likeness(our, their)).saturating_sub(usize::from(our.is_marked))
}

/// The same without regard to earlier replays.
fn likeness(our: &Turn<'_>, their: &Turn<'_>) -> usize {
    let (Some(one), Some(other)) = (&our.prompt, &their.prompt) else { return 0 };
    if our.ids.iter().any(|id| their.ids.contains(id)) {
        return 12;
    }
    let has_both = !our.reply.is_empty() && !their.reply.is_empty();
    let is_related = has_both && is_related(our, their);
    if one == other {
        let does_same = our.deeds.iter().any(|deed| !deed.is_empty() && their.deeds.contains(deed))
            || has_part_of(&our.deeds, &their.deeds)
            || has_part_of(&their.deeds, &our.deeds)
            || their.notices.iter().any(|notice| our.notices.contains(notice));
        let weight = match (is_related, has_both) {
            (true, _) => 10,
            (false, true) => 6,
            (false, false) => 8,
        };
        return weight + if does_same { 3 } else { 0 };
    }
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let is_part = short.len() >= MIN_PART_BYTES && long.contains(short.as_str());
    if is_part && is_related {
        9
    } else if our.reply.len() >= MIN_PART_BYTES && our.reply == their.reply {
        7
    } else if is_part && our.reply.is_empty() {
        // The recorded reply has nothing to compare.
        5
    } else {
        0
    }
}

/// Whether one of the first of these texts, or the last, is part of one of the first of the others.
fn has_part_of(parts: &[String], texts: &[String]) -> bool {
    let mut parts = parts.iter().take(MAX_MESSAGES).chain(parts.last());
    parts.any(|part| {
        let mut texts = texts.iter().take(MAX_MESSAGES).chain(texts.last());
        part.len() >= MIN_PART_BYTES && texts.any(|text| text.contains(part.as_str()))
    })
}

/// Whether two replies overlap: one starts or ends with the other, or contains a message of it.
fn is_related(our: &Turn<'_>, their: &Turn<'_>) -> bool {
    let has_message_of = |reply: &str, turn: &Turn<'_>| {
        let is_within =
            |message: &&String| message.len() >= MIN_PART_BYTES && reply.contains(message.as_str());
        turn.messages.iter().take(MAX_MESSAGES).chain(turn.messages.last()).any(|message| is_within(&message))
    };
    is_end_of(&our.reply, &their.reply)
        || is_end_of(&their.reply, &our.reply)
        || has_message_of(&our.reply, their)
        || has_message_of(&their.reply, our)
}

/// Whether a text starts or ends with another one.
fn is_end_of(long: &str, short: &str) -> bool {
    long.starts_with(short) || long.ends_with(short)
}

/// Number of these turns' prompts, from the first on, that make up the whole prompt of one turn; 0: they do not.
fn joined_in(turn: &Turn<'_>, parts: &[Turn<'_>]) -> usize {
    let Some(mut rest) = turn.prompt.as_deref().filter(|prompt| !prompt.is_empty()) else { return 0 };
    for (count, part) in parts.iter().take(MAX_JOINED).enumerate() {
        let Some(behind) = part
            .prompt
            .as_deref()
            .filter(|prompt| !prompt.is_empty())
            .and_then(|prompt| rest.strip_prefix(prompt))
        else {
            return 0;
        };
        if behind.is_empty() {
            return count + 1;
        }
        rest = behind;
    }
    0
}
