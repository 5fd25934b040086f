//! Aligns the items of matching turns.
//!
//! Messages are compared as streams of text per speaker, whatever their boundaries. Calls are matched by what they do,
//! then by their ids.
//! Invariant: text is searched within other text only up to a budget; after that only equal messages match.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::app::{Item, ItemBody, Message, MessagePart, ToolCall};
use crate::model::{Role, ToolCallId};

use super::{AlignedItem, MIN_PART_BYTES, text, turns};

/// Maximum number of bytes searched in one comparison.
const BUDGET: usize = 64 << 20;

/// Maximum length of an agent's reply to the context that it added.
const MAX_REPLY_TO_CONTEXT: usize = 200;

/// Compares items, group by group.
pub(super) struct Matcher<'a> {
    ours: &'a [Item],
    theirs: &'a [Item],
    /// Number of bytes of each recorded message that were replayed.
    matched_bytes: HashMap<usize, usize>,
    /// Length of the text of each recorded message.
    lengths: HashMap<usize, usize>,
    budget: usize,
}

enum Bit {
    /// This recorded item.
    Same(usize),
    /// Not recorded: the whole item, or these parts of it.
    New(Option<Vec<MessagePart>>),
}

/// The messages of a speaker, in order, and how far they were matched.
#[derive(Default)]
struct Stream {
    texts: Vec<(usize, String)>,
    by_text: HashMap<String, VecDeque<usize>>,
    /// The next message, and the number of its bytes that were matched.
    next: (usize, usize),
}

impl<'a> Matcher<'a> {
    /// A matcher of two lists.
    pub fn new(ours: &'a [Item], theirs: &'a [Item]) -> Self {
        Self { ours, theirs, matched_bytes: HashMap::new(), lengths: HashMap::new(), budget: BUDGET }
    }

    /// Adds the alignment of a group of turns.
    pub fn add(&mut self, ours: Range<usize>, theirs: Range<usize>, out: &mut Vec<AlignedItem>) {
        let (our_items, their_items) = (items(self.ours, &ours), items(self.theirs, &theirs));
        let mut bits: Vec<Vec<Bit>> = their_items.iter().map(|_| Vec::new()).collect();
        self.match_messages(&our_items, &their_items, &mut bits);
        match_calls(&our_items, &their_items, &mut bits);
        match_others(&our_items, &their_items, &mut bits);

        let mut told: HashMap<usize, usize> = HashMap::new();
        for ((their, _), bits) in their_items.iter().zip(&bits) {
            for bit in bits {
                if let Bit::Same(our) = bit {
                    told.entry(*our).or_insert(*their);
                }
            }
        }
        let is_answer =
            |item: &Item| matches!(&item.body, ItemBody::Message(message) if message.role == Role::Agent);
        let has_untold = our_items.iter().any(|(index, item)| is_answer(item) && !told.contains_key(index));
        let differs = has_untold && !their_items.is_empty();

        let mut next = ours.start;
        let mut waiting: Vec<AlignedItem> = Vec::new();
        let mut take_ours = |upto: usize, out: &mut Vec<AlignedItem>| {
            out.extend((next..upto).map(|item| AlignedItem::Ours { item, told: told.get(&item).copied() }));
            next = next.max(upto);
        };
        for ((their, item), bits) in their_items.iter().zip(bits) {
            for bit in bits {
                match bit {
                    Bit::Same(our) => {
                        // Items of the replay only are placed before the next common item.
                        take_ours(our, out);
                        out.append(&mut waiting);
                    }
                    Bit::New(parts) => {
                        waiting.push(AlignedItem::Theirs {
                            item: *their,
                            parts,
                            differs: differs && is_answer(item),
                        });
                    }
                }
            }
        }
        take_ours(ours.end, out);
        out.append(&mut waiting);
    }

    /// Whether the last message of the agent among these items was replayed completely.
    pub fn has_end(&self, range: Range<usize>) -> bool {
        let of_agent = |position: &usize| {
            let message = self.ours.get(*position).and_then(message_of);
            message.is_some_and(|message| message.role == Role::Agent)
        };
        let last =
            range.rev().filter(of_agent).find_map(|position| Some((position, *self.lengths.get(&position)?)));
        last.is_none_or(|(position, length)| {
            self.matched_bytes.get(&position).copied().unwrap_or(0) >= length
        })
    }

    fn match_messages(
        &mut self,
        ours: &[(usize, &'a Item)],
        theirs: &[(usize, &'a Item)],
        bits: &mut [Vec<Bit>],
    ) {
        let mut streams: HashMap<Role, Stream> = HashMap::new();
        let mut prompts: VecDeque<usize> = VecDeque::new();
        for (index, item) in ours {
            let Some(message) = message_of(item) else { continue };
            if message.role == Role::User {
                prompts.extend(text::prompt(&turns::text_of(message)).map(|_| *index));
                continue;
            }
            let squeezed = text::squeezed(&turns::text_of(message));
            if !squeezed.is_empty() {
                self.lengths.insert(*index, squeezed.len());
                streams.entry(message.role).or_default().push(*index, squeezed);
            }
        }
        let is_same_turn = !ours.is_empty();
        let (mut has_context, mut has_prompt) = (false, false);
        let mut last_prompt = None;
        for ((_, item), bits) in theirs.iter().zip(bits) {
            let Some(message) = message_of(item) else { continue };
            let all = turns::text_of(message);
            if message.role == Role::User {
                let is_prompt = text::prompt(&all).is_some();
                (has_context, has_prompt) = (has_context || !is_prompt, has_prompt || is_prompt);
                if !is_prompt {
                    continue;
                }
                if is_same_turn {
                    // Matching turns have the same prompts, however they are worded.
                    last_prompt = prompts.pop_front().or(last_prompt);
                    bits.extend(last_prompt.map(Bit::Same));
                } else {
                    bits.push(Bit::New(None));
                }
                continue;
            }
            *bits = self.bits_of(message, &all, ours, &mut streams);
            let is_reply = has_context && !has_prompt && all.len() <= MAX_REPLY_TO_CONTEXT;
            let is_new = matches!(bits.as_slice(), [Bit::New(None)]);
            if is_new && ((is_reply && message.role == Role::Agent) || text::is_calls(&all)) {
                bits.clear();
            }
        }
    }

    fn bits_of(
        &mut self,
        message: &Message,
        all: &str,
        ours: &[(usize, &Item)],
        streams: &mut HashMap<Role, Stream>,
    ) -> Vec<Bit> {
        let whole = text::squeezed(all);
        let (new_blocks, with_block) = compare_blocks(message, ours);
        if whole.is_empty() {
            let new = (!new_blocks.is_empty()).then_some(Bit::New(None));
            return with_block.map(Bit::Same).into_iter().chain(new).collect();
        }
        let own = streams.entry(message.role).or_default();
        let mut found = own.find(&whole, &mut self.budget);
        if matches!(found.as_slice(), [Found::New(_)]) {
            // Thoughts that became part of the reply, or the reverse.
            let other = streams.values_mut().find_map(|stream| stream.take_equal(&whole));
            found = other.map_or(found, |index| vec![Found::Same(index, whole.len())]);
        }
        if matches!(found.as_slice(), [Found::New(_)]) {
            return vec![Bit::New(None)];
        }
        let mut bits = Vec::new();
        for found in found {
            match found {
                Found::Same(index, bytes) => {
                    *self.matched_bytes.entry(index).or_default() += bytes;
                    bits.push(Bit::Same(index));
                }
                Found::New(part) => {
                    let new = all.get(text::range_in(all, &part)).unwrap_or_default();
                    if !text::is_calls(new) {
                        bits.push(Bit::New(Some(vec![MessagePart::Text(new.to_owned())])));
                    }
                }
            }
        }
        if !new_blocks.is_empty() {
            bits.push(Bit::New(Some(new_blocks)));
        }
        bits
    }
}

/// The blocks of a message that are not recorded, and a recorded message with one of the others.
fn compare_blocks(message: &Message, ours: &[(usize, &Item)]) -> (Vec<MessagePart>, Option<usize>) {
    let (mut new, mut known) = (Vec::new(), None);
    for block in message.parts.iter().filter(|part| matches!(part, MessagePart::Block(_))) {
        let has_it = |item: &Item| {
            message_of(item).is_some_and(|ours| ours.role == message.role && ours.parts.contains(block))
        };
        match ours.iter().find(|(_, item)| has_it(item)) {
            Some((index, _)) => known = known.or(Some(*index)),
            None => new.push(block.clone()),
        }
    }
    (new, known)
}

enum Found {
    /// This number of bytes of a recorded item.
    Same(usize, usize),
    /// Not recorded.
    New(Range<usize>),
}

impl Stream {
    fn push(&mut self, index: usize, text: String) {
        self.by_text.entry(text.clone()).or_default().push_back(self.texts.len());
        self.texts.push((index, text));
    }

    /// The unmatched rest of a recorded message.
    fn rest(&self, position: usize) -> Option<(usize, &str)> {
        let (index, text) = self.texts.get(position)?;
        let from = if position == self.next.0 { self.next.1 } else { 0 };
        Some((*index, text.get(from..).unwrap_or_default()))
    }

    /// Advances by this number of bytes of a message.
    fn go_behind(&mut self, position: usize, bytes: usize) {
        let from = if position == self.next.0 { self.next.1 } else { 0 };
        self.next = (position, from + bytes);
    }

    /// An unmatched message with exactly this text.
    fn take_equal(&mut self, text: &str) -> Option<usize> {
        let position = self.by_text.get_mut(text).and_then(VecDeque::pop_front)?;
        self.texts.get(position).map(|(index, _)| *index)
    }

    /// Matches a replayed text.
    fn find(&mut self, text: &str, budget: &mut usize) -> Vec<Found> {
        let is_long = text.len() >= MIN_PART_BYTES;
        // The usual case: the next message, or a part of it.
        for position in [self.next.0, self.next.0 + 1] {
            if let Some((index, rest)) = self.rest(position)
                && rest.starts_with(text)
            {
                if rest.len() == text.len() {
                    self.forget(position);
                }
                self.go_behind(position, text.len());
                return vec![Found::Same(index, text.len())];
            }
        }
        if let Some(position) = self.by_text.get_mut(text).and_then(VecDeque::pop_front)
            && let Some((index, _)) = self.texts.get(position)
        {
            let index = *index;
            if position >= self.next.0 {
                self.go_behind(position, text.len());
            }
            return vec![Found::Same(index, text.len())];
        }
        if is_long && let Some(found) = self.find_within(text, budget) {
            return vec![found];
        }
        let found = self.find_joined(text, budget);
        // A part that was inserted earlier is a separate message.
        let known = |part: Found| match part {
            Found::New(range) => {
                let part = text.get(range.clone()).unwrap_or_default();
                self.take_equal(part).map_or(Found::New(range), |index| Found::Same(index, part.len()))
            }
            same @ Found::Same(..) => same,
        };
        found.into_iter().map(known).collect()
    }

    fn forget(&mut self, position: usize) {
        if let Some((_, text)) = self.texts.get(position)
            && let Some(positions) = self.by_text.get_mut(text)
        {
            positions.retain(|known| *known != position);
        }
    }

    /// Finds a text within a recorded message.
    fn find_within(&mut self, text: &str, budget: &mut usize) -> Option<Found> {
        for position in self.next.0..self.texts.len() {
            let (index, rest) = self.rest(position)?;
            *budget = budget.checked_sub(rest.len())?;
            if let Some(at) = rest.find(text) {
                self.go_behind(position, at + text.len());
                return Some(Found::Same(index, text.len()));
            }
        }
        None
    }

    /// Finds several consecutive recorded messages in a text.
    fn find_joined(&mut self, text: &str, budget: &mut usize) -> Vec<Found> {
        let mut found = Vec::new();
        let mut at = 0;
        for position in self.next.0..self.texts.len() {
            let rest = text.get(at..).unwrap_or_default();
            let Some((index, ours)) = self.rest(position) else { break };
            if rest.is_empty() || ours.is_empty() {
                continue;
            }
            let Some(left) = budget.checked_sub(rest.len()) else { break };
            *budget = left;
            let from = if rest.starts_with(ours) {
                Some(0)
            } else {
                rest.find(ours).filter(|_| ours.len() >= MIN_PART_BYTES)
            };
            let is_begun = !found.is_empty() || rest.len() >= MIN_PART_BYTES;
            let (skipped, taken) = match from {
                Some(from) => (from, ours.len()),
                // The message continues in the next replayed one.
                None if is_begun && ours.starts_with(rest) => (0, rest.len()),
                None => continue,
            };
            if skipped > 0 {
                found.push(Found::New(at..at + skipped));
            }
            found.push(Found::Same(index, taken));
            at += skipped + taken;
            if taken == ours.len() {
                self.forget(position);
            }
            self.go_behind(position, taken);
        }
        if at < text.len() {
            found.push(Found::New(at..text.len()));
        }
        found
    }
}

fn items<'a>(items: &'a [Item], range: &Range<usize>) -> Vec<(usize, &'a Item)> {
    range.clone().zip(items.get(range.clone()).unwrap_or_default()).collect()
}

fn message_of(item: &Item) -> Option<&Message> {
    match &item.body {
        ItemBody::Message(message) => Some(message),
        _ => None,
    }
}

fn calls<'a>(items: &[(usize, &'a Item)]) -> Vec<(usize, &'a ToolCall)> {
    let call = |(index, item): &(usize, &'a Item)| match &item.body {
        ItemBody::Tool(call) if !call.is_own => Some((*index, &**call)),
        _ => None,
    };
    items.iter().filter_map(call).collect()
}

/// What a call does: its title and input.
type Deed<'a> = (&'a str, Option<&'a str>);

fn deed(call: &ToolCall) -> Deed<'_> {
    (&call.title, call.raw_input.as_ref().map(|raw| &*raw.0))
}

/// Calls match if they do the same, and have the same id where several do; otherwise if they have the same id, or the
/// same title; otherwise if the same number of one kind is left on both sides.
fn match_calls(ours: &[(usize, &Item)], theirs: &[(usize, &Item)], bits: &mut [Vec<Bit>]) {
    let ours = calls(ours);
    if ours.is_empty() && calls(theirs).is_empty() {
        return;
    }
    let mut is_taken = vec![false; ours.len()];
    let mut left: Vec<(usize, &ToolCall)> = theirs
        .iter()
        .enumerate()
        .filter_map(|(position, (_, item))| match &item.body {
            ItemBody::Tool(call) => Some((position, &**call)),
            _ => None,
        })
        .collect();

    // Each pass visits calls in order, and matches each recorded one once.
    let mut take = |positions: Option<&mut VecDeque<usize>>| -> Option<usize> {
        let positions = positions?;
        while let Some(position) = positions.pop_front() {
            if let Some(taken) = is_taken.get_mut(position).filter(|taken| !**taken) {
                *taken = true;
                return Some(position);
            }
        }
        None
    };
    let mut same = |position: usize, our: usize| {
        if let (Some(bits), Some((index, _))) = (bits.get_mut(position), ours.get(our)) {
            bits.push(Bit::Same(*index));
        }
    };
    let mut by_both: HashMap<(&ToolCallId, Deed<'_>), VecDeque<usize>> = HashMap::new();
    let mut by_deed: HashMap<Deed<'_>, VecDeque<usize>> = HashMap::new();
    let mut by_id: HashMap<&ToolCallId, VecDeque<usize>> = HashMap::new();
    let mut by_title: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (position, (_, call)) in ours.iter().enumerate() {
        by_both.entry((&call.id, deed(call))).or_default().push_back(position);
        by_deed.entry(deed(call)).or_default().push_back(position);
        by_id.entry(&call.id).or_default().push_back(position);
        by_title.entry(&call.title).or_default().push_back(position);
    }
    for way in 0..4 {
        for (position, call) in std::mem::take(&mut left) {
            let positions = match way {
                0 => by_both.get_mut(&(&call.id, deed(call))),
                1 => by_deed.get_mut(&deed(call)).filter(|_| !call.title.is_empty()),
                2 => by_id.get_mut(&call.id),
                _ => by_title.get_mut(call.title.as_str()).filter(|_| !call.title.is_empty()),
            };
            match take(positions) {
                Some(our) => same(position, our),
                None => left.push((position, call)),
            }
        }
    }
    let rest: Vec<usize> =
        (0..ours.len()).filter(|position| is_taken.get(*position) == Some(&false)).collect();
    let is_like = |our: usize, call: &ToolCall| {
        ours.get(our).is_some_and(|(_, ours)| {
            let has_other_input =
                ours.raw_input.is_some() && call.raw_input.is_some() && ours.raw_input != call.raw_input;
            let is_named = ours.name.is_some() && ours.name == call.name;
            let is_titled = ours.title.contains(&call.title) || call.title.contains(&ours.title);
            ours.kind == call.kind && !has_other_input && (is_named || is_titled)
        })
    };
    let is_pair =
        rest.len() == left.len() && rest.iter().zip(&left).all(|(our, (_, call))| is_like(*our, call));
    for (nth, (position, _)) in left.iter().enumerate() {
        let Some(bits) = bits.get_mut(*position) else { continue };
        let our = rest.get(nth).filter(|_| is_pair).and_then(|our| ours.get(*our));
        bits.push(our.map_or(Bit::New(None), |(index, _)| Bit::Same(*index)));
    }
}

/// Other items match if their content is equal.
fn match_others(ours: &[(usize, &Item)], theirs: &[(usize, &Item)], bits: &mut [Vec<Bit>]) {
    let mut known: HashMap<String, VecDeque<usize>> = HashMap::new();
    for (index, item) in ours {
        for key in keys_of(&item.body) {
            known.entry(key).or_default().push_back(*index);
        }
    }
    let mut taken = Vec::new();
    for ((_, item), bits) in theirs.iter().zip(bits) {
        let keys = keys_of(&item.body);
        if keys.is_empty() {
            continue;
        }
        let mut found = None;
        for key in keys {
            while let Some(index) =
                known.get_mut(&key).filter(|_| found.is_none()).and_then(VecDeque::pop_front)
            {
                found = (!taken.contains(&index)).then_some(index);
            }
        }
        taken.extend(found);
        bits.push(found.map_or(Bit::New(None), Bit::Same));
    }
}

/// Keys that identify such an item, the most specific first.
fn keys_of(body: &ItemBody) -> Vec<String> {
    match body {
        ItemBody::Message(_) | ItemBody::Tool(_) | ItemBody::TurnEnd(_) | ItemBody::Answered { .. } => {
            Vec::new()
        }
        ItemBody::Notice { severity, title, detail, kind: _ } => {
            vec![format!("notice {severity:?} {title}\n{}", detail.as_deref().unwrap_or_default())]
        }
        ItemBody::Compaction { id, summary, .. } => {
            let summary = (!summary.is_empty()).then(|| format!("summary {summary}"));
            [format!("compaction {id}")].into_iter().chain(summary).collect()
        }
        ItemBody::Subagent { session, title, .. } => {
            let title = (!title.is_empty()).then(|| format!("title {title}"));
            [format!("subagent {session}")].into_iter().chain(title).collect()
        }
        ItemBody::Raw { name, raw } => vec![format!("raw {name} {}", raw.0)],
    }
}
