//! Whether a replay was dealt with as the user expects, judged by what parlor cannot know: which turn is which.

use std::collections::{BTreeMap, BTreeSet};

use super::agent::{CONTEXT, Id, Kind, NOTE, Piece, Sent, text_of};
use super::disk::Disk;
use super::life::{End, Life, Lived};
use crate::core::tests::recorder::items;
use crate::core::*;
use crate::model::*;

/// What was added to the record.
#[derive(Debug, Default)]
pub struct Added {
    /// The rest of the last turn.
    pub rest: Vec<Piece>,
    pub turns: Vec<Lived>,
}

/// How a replay went.
#[derive(Debug, Clone, Copy)]
pub struct Course<'a> {
    /// Whether parlor has lived until its end.
    pub is_whole: bool,
    pub pauses: bool,
    /// The turns that were replayed twice at any time.
    pub doubled: &'a BTreeSet<Id>,
}

/// A difference that was told.
#[derive(Debug, Clone, PartialEq)]
pub struct Reported {
    title: String,
    /// The turns of the agent that the record lacks, and those of them whose prompts it has.
    lacking: BTreeSet<Id>,
    alike: BTreeSet<Id>,
}

fn lines(text: &str) -> Vec<String> {
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(line).filter(|line| !line.is_empty()).collect()
}

fn history(sent: &[Sent]) -> Vec<&Sent> {
    sent.iter().filter(|sent| sent.kind != Kind::Setting).collect()
}

/// Updates as the store may have joined them.
fn joined<'a>(updates: impl IntoIterator<Item = &'a SessionUpdate>) -> Vec<SessionUpdate> {
    let mut all: Vec<SessionUpdate> = Vec::new();
    for update in updates {
        let last = all.last_mut();
        match update
            .appended_text()
            .and_then(|(role, message, more)| Some((last?.text_to_grow(role, message)?, more)))
        {
            Some((text, more)) => text.push_str(more),
            None => all.push(update.clone()),
        }
    }
    all
}

/// The text of the reply that was replayed for a turn.
fn replayed_text(history: &[&Sent], of: Id) -> String {
    let mut reply = Vec::new();
    for update in joined(history.iter().filter(|sent| sent.of == of).map(|sent| &sent.update)) {
        if let SessionUpdate::Chunk { role: Role::Agent, text, .. } = update {
            reply.push(Piece::Text(text));
        }
    }
    text_of(&reply)
}

fn prompt_of(history: &[&Sent], of: Id) -> String {
    let texts =
        history.iter().filter(|sent| sent.of == of && sent.kind == Kind::Prompt).filter_map(
            |sent| match &sent.update {
                SessionUpdate::Chunk { text, .. } => Some(text.as_str()),
                _ => None,
            },
        );
    let text = texts.collect::<String>();
    text.strip_prefix(CONTEXT).unwrap_or(&text).trim().to_owned()
}

/// Whether a replayed turn, which no recorded turn is, looks like this one: nobody who sees the texts could tell them
/// apart.
fn looks_like(lived: &[Lived], turn: &Lived, history: &[&Sent], of: Id) -> bool {
    if lived.iter().any(|turn| turn.id == of) {
        return false;
    }
    let (recorded, replayed) = (lines(&text_of(&turn.reply)), lines(&replayed_text(history, of)));
    let is_same = match turn.end {
        End::Good => recorded == replayed,
        End::Open | End::Taken => {
            replayed.is_empty()
                || recorded.iter().all(|line| replayed.iter().any(|other| other.starts_with(line.as_str())))
        }
    };
    turn.prompt.trim() == prompt_of(history, of) && is_same
}

fn lines_of(turn: &Lived) -> Vec<String> {
    lines(&text_of(&turn.reply))
}

/// The turns since the context was cleared.
fn branch(lived: &[Lived]) -> &[Lived] {
    let begin = lived.iter().rposition(|turn| turn.is_cleared).map_or(0, |at| at + 1);
    &lived[begin..]
}

/// Checks the events that were added while a history was replayed.
pub fn added(
    lived: &[Lived],
    sent: &[Sent],
    rows: &[RecordedEvent],
    course: Course<'_>,
) -> Result<Added, String> {
    let Course { is_whole, pauses, doubled } = course;
    let history = history(sent);
    let mut added = Added::default();
    let (mut rest, mut new, mut number) = (Vec::new(), Vec::new(), None);
    for row in rows {
        match &row.record {
            Record::Notice { kind: NoticeKind::Rest { .. }, .. } => {}
            Record::Notice { kind: NoticeKind::Taken(_), .. } => number = number.or(Some(row.turn)),
            Record::Update(update) if number.is_some() => new.push(update),
            Record::Update(update) => rest.push(update),
            other => return Err(format!("something else was recorded: {other:?}")),
        }
    }
    let new = joined(new);
    let known = |id: Id| lived.iter().any(|turn| turn.id == id);
    // During a pause of the replay, known turns that come last may seem to be missing.
    let end = history.iter().rposition(|sent| !known(sent.of)).map_or(0, |at| at + 1);
    let is_new_part = |begin: usize| {
        let part = |end: usize| joined(history[begin..end.max(begin)].iter().map(|sent| &sent.update));
        let whole = part(history.len());
        whole == new || (!is_whole || pauses) && is_begin(&new, &whole) || pauses && part(end) == new
    };
    // The smallest part is preferred, which begins after the last turn that is known.
    let after_known =
        history.iter().rposition(|sent| known(sent.of) && !is_note(sent)).map_or(0, |at| at + 1);
    let begin = if new.is_empty() {
        history.len()
    } else {
        // A message that the agent put into a turn of which the rest is missing looks like a prompt.
        let last = branch(lived).last().filter(|last| last.end != End::Good);
        let is_of_last = |sent: &Sent| is_inner(sent) && last.is_some_and(|last| last.id == sent.of);
        let within = (0..after_known).rev().filter(|at| is_of_last(history[*at]));
        let first = if pauses { 0 } else { after_known };
        let unknown = (first..history.len()).filter(|at| !known(history[*at].of));
        let begins = unknown.chain(within).find(|begin| is_new_part(*begin));
        begins.ok_or_else(|| {
            let doubled = (0..after_known).rev().find(|begin| is_new_part(*begin));
            format!(
                "{}: {new:#?}",
                if doubled.is_some() {
                    "known turns were added again"
                } else {
                    "what was added is not the end of the history"
                }
            )
        })?
    };
    if !new.is_empty() {
        if let Some(skipped) = history[after_known..begin.max(after_known)].iter().find(|sent| {
            !is_note(sent) && !branch(lived).iter().any(|turn| looks_like(lived, turn, &history, sent.of))
        }) {
            return Err(format!("turn {} was passed over", skipped.of));
        }
        let is_had = |turn: &Lived| {
            let is_like = |sent: &&Sent| looks_like(lived, turn, &history, sent.of);
            // What a pause cuts off may be what looks like it.
            let first = if pauses { 0 } else { after_known };
            history[..begin].iter().any(|sent| sent.of == turn.id)
                || history[first..begin.max(first)].iter().any(is_like)
        };
        if let Some(lost) =
            branch(lived).iter().rev().take_while(|turn| !is_had(turn)).find(|turn| turn.end != End::Open)
        {
            return Err(format!("turns were added after turn {}, which the agent does not have", lost.id));
        }
    }
    added.rest = pieces(rest);
    if !added.rest.is_empty() {
        let Some(last) = branch(lived).last() else { return Err("a rest of nothing was added".to_owned()) };
        let whole = [last.reply.clone(), added.rest.clone()].concat();
        let whole = lines(&joined_text(&whole));
        let is_of = |sent: &&&Sent| {
            let text = lines(&replayed_text(&history, sent.of));
            let is_it = sent.of == last.id || last.prompt.trim() == prompt_of(&history, sent.of);
            is_it && (text.windows(whole.len()).any(|run| run == whole) || !is_whole)
        };
        if !doubled.contains(&last.id) && (last.end == End::Good || !history.iter().any(|sent| is_of(&sent)))
        {
            return Err(format!(
                "the rest {:?} does not belong to turn {} {:?}",
                added.rest, last.id, last.reply
            ));
        }
    }
    let number = number.unwrap_or_default();
    added.turns = turns(&history[begin..], &new, number);
    added.turns.retain(|turn| !known(turn.id));
    Ok(added)
}

fn text_len(update: &SessionUpdate) -> usize {
    update.appended_text().map_or(0, |(_, _, text)| text.len())
}

fn is_begin(begin: &[SessionUpdate], all: &[SessionUpdate]) -> bool {
    let Some((last, head)) = begin.split_last() else { return true };
    let text = |update: &SessionUpdate| update.appended_text().map(|(role, _, text)| (role, text.to_owned()));
    all.len() >= begin.len()
        && all[..head.len()] == *head
        && match (text(last), text(&all[head.len()])) {
            (Some((role, last)), Some((other, text))) => role == other && text.starts_with(&last),
            _ => *last == all[head.len()],
        }
}

fn pieces(updates: Vec<&SessionUpdate>) -> Vec<Piece> {
    let of = |update: SessionUpdate| match update {
        SessionUpdate::Chunk { role: Role::Thought, text, .. } => Piece::Thought(text),
        SessionUpdate::Chunk { text, .. } => Piece::Text(text),
        SessionUpdate::Tool(patch) => Piece::Call(patch.id.as_str().to_owned()),
        other => Piece::Text(format!("{other:?}")),
    };
    joined(updates).into_iter().map(of).collect()
}

/// The text of a reply whose last part may go on within a line.
fn joined_text(reply: &[Piece]) -> String {
    let texts = reply.iter().map(|piece| match piece {
        Piece::Text(text) => text.as_str(),
        Piece::Thought(_) | Piece::Call(_) => "\n",
    });
    texts.collect()
}

/// The turns of a new part, as far as it was recorded.
fn turns(part: &[&Sent], recorded: &[SessionUpdate], number: u32) -> Vec<Lived> {
    let mut turns: Vec<Lived> = Vec::new();
    if recorded.is_empty() {
        return turns;
    }
    let (mut number, mut was_user) = (number, false);
    let mut left: usize = recorded.iter().map(text_len).sum();
    for sent in part.iter().filter(|sent| !is_note(sent)) {
        let mut update = sent.update.clone();
        let len = text_len(&update);
        if let SessionUpdate::Chunk { text, .. } = &mut update {
            text.truncate(left);
        }
        if left == 0 && len > 0 {
            break;
        }
        left = left.saturating_sub(len);
        let is_user = sent.update.is_from_user();
        number += u32::from(is_user && !was_user);
        was_user = is_user;
        if turns.last().is_none_or(|turn| turn.id != sent.of) {
            let (id, prompt, end) = (sent.of, prompt_of(part, sent.of), End::Taken);
            turns.push(Lived { id, prompt, reply: Vec::new(), end, number, is_cleared: false });
        }
        if let (Some(turn), Kind::Reply) = (turns.last_mut(), sent.kind) {
            turn.reply.extend(pieces(vec![&update]));
        }
    }
    turns
}

/// Checks what is shown after a replay. Returns what was told.
pub fn check_shown<D: Disk>(
    life: &mut Life<D>,
    sent: &[Sent],
    rows: &[RecordedEvent],
    before: &[Lived],
    added: &Added,
) -> Result<Option<Reported>, String> {
    let history = history(sent);
    let shown = life.shown();
    let is_reported = |item: &&String| item.starts_with("notice Info: The agent's history");
    let is_unanswered = |item: &&String| item.starts_with("notice Warning: The agent has not answered");
    let reported: Vec<String> = shown.iter().filter(is_reported).cloned().collect();
    let plain: Vec<String> =
        shown.iter().filter(|item| !is_reported(item) && !is_unanswered(item)).cloned().collect();
    let (plain, restored) = (merged(plain), merged(restored(life.bench().disk.rows())));
    if plain != restored {
        return Err(format!("the record is not what is shown:\n{restored:#?}\n{plain:#?}"));
    }
    once(&plain, &life.doubled)?;
    if !history.is_empty() {
        let spool = match &life.bench().session().replay {
            Replay::Beside(spool) => spool.uid.clone(),
            other => return Err(format!("no spool: {other:?}")),
        };
        let Some(uid) = spool else { return Err("the spool has no id".to_owned()) };
        let events = life.bench().disk.spool(&uid);
        let updates = events.iter().filter_map(|event| match &event.record {
            Record::Update(update) => Some(update),
            _ => None,
        });
        if joined(updates) != joined(history.iter().map(|sent| &sent.update)) {
            return Err("the spool is not what was replayed".to_owned());
        }
    }
    let known = |id: Id| before.iter().any(|turn| turn.id == id);
    let after_known = history.iter().rposition(|sent| known(sent.of)).map_or(0, |at| at + 1);
    let is_like_known = |sent: &&Sent| {
        let (prompt, text) = (prompt_of(&history, sent.of), lines(&replayed_text(&history, sent.of)));
        let is_recorded = |turn: &Lived| match prompt.strip_prefix(turn.prompt.trim()) {
            Some("") => lines_of(turn).starts_with(&text),
            rest => rest.is_some(),
        };
        let is_replayed = |other: &&Sent| {
            prompt_of(&history, other.of) == prompt && lines(&replayed_text(&history, other.of)) == text
        };
        before.iter().any(is_recorded) || history[..after_known].iter().any(is_replayed)
    };
    let is_certain = is_certain(before, &history) && !history[after_known..].iter().any(is_like_known);
    if is_certain && history.len() > after_known && added.turns.is_empty() && life.doubled.is_empty() {
        return Err(format!("turn {} was not added, though its place is certain", history[after_known].of));
    }
    let is_in_branch = |id: Id| branch(before).iter().any(|turn| turn.id == id);
    let lacking: BTreeSet<Id> = history.iter().map(|sent| sent.of).filter(|id| !is_in_branch(*id)).collect();
    let is_same = history.iter().all(|sent| known(sent.of));
    for row in life.bench().disk.rows().iter().skip(rows.len()) {
        if let Record::Notice { kind: NoticeKind::Taken(count), .. } = &row.record {
            life.counted += *count;
        }
    }
    let counted = std::mem::take(&mut life.counted);
    if !life.pauses {
        check_count(&history, added, counted)?;
    }
    let Some(last) = reported.last() else { return Ok(None) };
    if reported.len() > 1 {
        return Err(format!("several differences are told: {reported:?}"));
    }
    if life.doubled.is_empty() {
        let number = |prompt: &str| {
            let items = life.bench.as_ref().map_or(&[][..], |bench| bench.session().transcript.items());
            let is_it = |item: &&Item| match &item.body {
                ItemBody::Message(message) if message.role == Role::User => {
                    message.parts.iter().any(|part| part.text().is_some_and(|text| text.contains(prompt)))
                }
                _ => false,
            };
            items.iter().filter(is_it).map(|item| item.turn as usize).collect()
        };
        check_reported(last, before, &history, after_known, &lacking, number)?;
    }
    if is_same && is_whole_replay(before, &history) {
        return Err(format!("told without a difference: {last}"));
    }
    let is_alike = |id: &Id| before.iter().any(|turn| turn.prompt.trim() == prompt_of(&history, *id));
    let alike = lacking.iter().copied().filter(is_alike).collect();
    let reported = Reported { title: last.clone(), lacking, alike };
    // Only a later replay may show for certain that the last turn was made elsewhere.
    let is_again = life.reported.as_ref() == Some(&reported) && life.doubled.is_empty();
    let is_allowed = reported.title.contains("could not be matched") && !life.was_repeated;
    if is_again && !is_allowed {
        return Err(format!("told again: {reported:?}"));
    }
    life.was_repeated = is_again;
    Ok(Some(reported))
}

fn check_count(history: &[&Sent], added: &Added, counted: usize) -> Result<(), String> {
    let Some(first) = added.turns.first() else { return Ok(()) };
    let begin = history
        .iter()
        .rposition(|sent| !added.turns.iter().any(|turn| turn.id == sent.of))
        .map_or(0, |at| at + 1);
    let mut messages = 0;
    let mut is_in = false;
    for sent in &history[begin..] {
        let is_user = sent.update.is_from_user();
        if is_user && !is_in && !is_note(sent) {
            (is_in, messages) = (true, messages + 1);
        }
        if !is_user {
            is_in = false;
        }
    }
    if messages != counted {
        return Err(format!("{counted} turns were counted of {messages} from turn {} on", first.id));
    }
    Ok(())
}

/// Whether an update is what known agents add.
fn is_note(sent: &Sent) -> bool {
    matches!(&sent.update, SessionUpdate::Chunk { text, .. } if text == NOTE || text == CONTEXT)
}

/// Whether an update is a message that the agent put into a turn.
fn is_inner(sent: &Sent) -> bool {
    sent.kind == Kind::Wrapper && !is_note(sent)
}

/// Whether the place of a history is certain: the last turn has a prompt and a reply of its own, and is replayed once.
fn is_certain(lived: &[Lived], history: &[&Sent]) -> bool {
    let Some(last) = branch(lived).last().filter(|last| last.end == End::Good) else { return false };
    let is_own = last.prompt.contains(&last.id.to_string());
    let reply = lines(&text_of(&last.reply));
    let is_whole = lines(&replayed_text(history, last.id)) == reply;
    let firsts = history.windows(2).filter(|pair| pair[0].of != last.id && pair[1].of == last.id).count();
    let begins = firsts + usize::from(history.first().is_some_and(|sent| sent.of == last.id));
    let has_prompt = history.iter().any(|sent| sent.of == last.id && sent.kind == Kind::Prompt);
    let is_split = history.iter().any(|sent| sent.of == last.id && is_inner(sent));
    is_own && is_whole && !is_split && !reply.is_empty() && begins == 1 && has_prompt
}

/// Items, with adjacent messages of the agent as one.
fn merged(items: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for item in items {
        match (all.last_mut(), item.strip_prefix("agent \"")) {
            (Some(last), Some(text)) if last.starts_with("agent ") => {
                last.pop();
                last.push_str(text);
            }
            _ => all.push(item),
        }
    }
    all
}

/// Whether each turn of the record is replayed once, in order, as it is.
fn is_whole_replay(lived: &[Lived], history: &[&Sent]) -> bool {
    let mut ids: Vec<Id> = history.iter().map(|sent| sent.of).collect();
    ids.dedup();
    let turns = branch(lived);
    let is_as_it_is = |turn: &Lived| {
        lines(&text_of(&turn.reply)) == lines(&replayed_text(history, turn.id))
            && turn.prompt.trim() == prompt_of(history, turn.id)
    };
    ids == turns.iter().map(|turn| turn.id).collect::<Vec<_>>()
        && turns.iter().all(is_as_it_is)
        && history.iter().any(|sent| sent.kind == Kind::Prompt)
        && !history.iter().any(|sent| is_inner(sent))
}

/// Checks the numbers of a line that tells a difference.
fn check_reported(
    reported: &str,
    lived: &[Lived],
    history: &[&Sent],
    after_known: usize,
    lacking: &BTreeSet<Id>,
    numbers: impl Fn(&str) -> Vec<usize>,
) -> Result<(), String> {
    let number =
        || reported.split(|sign: char| !sign.is_ascii_digit()).find_map(|part| part.parse::<usize>().ok());
    let turns = branch(lived);
    if reported.contains("ends after turn") {
        let is_had = |turn: &Lived| {
            let is_like = |sent: &&Sent| looks_like(lived, turn, history, sent.of);
            history.iter().any(|sent| sent.of == turn.id) || history[after_known..].iter().any(is_like)
        };
        let last = turns.iter().rposition(is_had);
        // A message that the agent put into a turn has a number of its own.
        let next =
            |last: usize| turns.get(last + 1).map(|turn| numbers(turn.prompt.trim())).unwrap_or_default();
        let is_number = |last: usize| {
            let (reported, own) = (number().unwrap_or(0), numbers(turns[last].prompt.trim()));
            own.iter().any(|own| {
                reported == *own || reported > *own && next(last).iter().any(|next| reported < *next)
            })
        };
        let is_end = |last: usize| {
            last + 1 == turns.len() && !turns[..last].iter().any(|turn| turn.prompt == turns[last].prompt)
        };
        if last.is_none_or(|last| !is_number(last) || is_end(last)) {
            return Err(format!("{reported}, but it is {last:?} of {turns:#?}"));
        }
    } else if reported.contains("that this record lacks") {
        let mut ids: Vec<Id> = history[..after_known].iter().map(|sent| sent.of).collect();
        ids.dedup();
        let messages = history[..after_known].windows(2).filter(|pair| {
            (lacking.contains(&pair[0].of) || is_inner(pair[0]))
                && pair[0].update.is_from_user()
                && !pair[1].update.is_from_user()
        });
        if number().is_none_or(|count| count > messages.count()) {
            return Err(format!("{reported}, but it lacks {lacking:?} of {ids:?}"));
        }
    }
    Ok(())
}

/// Checks that nothing is shown twice: all texts with a number are of one turn.
fn once(shown: &[String], doubled: &BTreeSet<Id>) -> Result<(), String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for item in shown {
        for word in ["answer ", "second line ", "thought ", "prompt ", "remark ", "do call-"] {
            for (at, _) in item.match_indices(word) {
                let number: String = item[at + word.len()..]
                    .chars()
                    .take_while(|sign| sign.is_ascii_digit() || *sign == '.')
                    .collect();
                let id = number.split('.').next().and_then(|id| id.parse::<Id>().ok());
                if id.is_some_and(|id| !doubled.contains(&id)) {
                    *counts.entry(format!("{word}{number}")).or_default() += 1;
                }
            }
        }
    }
    match counts.iter().find(|(_, count)| **count > 1) {
        Some((text, count)) => Err(format!("{text:?} is shown {count} times: {shown:#?}")),
        None => Ok(()),
    }
}

fn restored(rows: Vec<RecordedEvent>) -> Vec<String> {
    let mut session = Session::new(super::disk::KEY, SessionWorkspace::default());
    restore(
        &mut session,
        RecordedSession { events: rows, ..RecordedSession::default() },
        std::time::Instant::now(),
    );
    items(&session)
}
