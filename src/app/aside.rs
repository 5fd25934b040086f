//! A history that is replayed for a session that stands on the screen already.
//!
//! Duty: plays it aside, so that nothing flickers, and then says what it means for what is shown: mostly nothing,
//! sometimes turns that were had elsewhere, seldom another history. Some agents answer first and replay then, or answer
//! in the middle of it, and some replay on a resume too: so it is over once it has told the last of what is shown and is
//! quiet then; one that breaks off before that is waited for longer. What the user sends waits for its end.
//! Not its duty: replays into an empty view (`updates`).
//! Ids of messages tell histories apart where there are any, else the texts of prompts: many agents give no ids, or
//! new ones, and some join all of a message.
//! Invariants: what is shown stays until something better is whole; nothing is shown twice.

use std::time::{Duration, Instant};

use crate::model::{MessageId, Note, Record, Role, SessionUpdate, Severity, StopReason};

use super::{
    Effect, ItemBody, Message, MessagePart, Replay, Session, SessionPhase, State, TimerId, TurnEnd, handover,
    keep, messages, restore, tools, turn, updates,
};

/// From this length on, a prompt may stand in a longer one: some agents put context around it.
const MIN_PART_CHARS: usize = 12;

/// How many prompts before the last must agree with it.
const AGREEING_PROMPTS: usize = 2;

/// A replay is over once nothing of it came for so long, and the agent has answered.
pub(super) const QUIET: Duration = Duration::from_millis(400);

/// How often it is looked at in vain before a replay that has not told the last of what is shown is given up: an agent
/// that reads its history from a slow disk pauses, and a prompt in such a pause would be mixed with the rest.
const PAUSES: u8 = 6;

/// The same for one that was asked for and has not begun when the agent has answered.
const LATE_PAUSES: u8 = 3;

/// How much of a message's end tells it again.
const TAIL_CHARS: usize = 32;

/// A message of the user that comes so long after the answer was said elsewhere, and begins no replay.
const LATEST_BEGIN: Duration = Duration::from_secs(5);

/// A replay beside the session.
#[derive(Debug, Clone, PartialEq)]
pub struct Aside {
    /// What was replayed.
    shadow: Session,
    /// Whether the agent was asked for it. Else only a message of the user begins it.
    is_expected: bool,
    /// Whether prompts wait for it.
    holds_prompts: bool,
    /// How far it was when it was last looked at.
    seen: u64,
    /// How often it was looked at since then.
    quiet_looks: u8,
    /// How the agent's last message ends that the replay is to tell; what it says of itself meanwhile is none.
    end: Option<String>,
    /// When the agent had answered.
    answered_at: Option<Instant>,
}

/// What a replayed history is to the one that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// It tells nothing new.
    Same,
    /// It goes on behind this turn of its own.
    Longer(u32),
    /// It ends before the shown one.
    Shorter,
    /// It tells nothing new, and not the turns that were cancelled.
    WithoutCancelled,
    /// It is another one, or knows more of a turn that was cut here.
    Other,
}

/// A place beside the session for a replay. Prompts wait for one that is expected.
pub(super) fn begin(session: &Session, is_expected: bool) -> Replay {
    let mut shadow = Session::new(session.key, session.place.clone());
    // Times in a replay mean nothing.
    shadow.ledger.replay = Replay::Running(Box::default());
    Replay::Aside(Box::new(Aside {
        shadow,
        is_expected,
        holds_prompts: is_expected,
        seen: 0,
        quiet_looks: 0,
        end: tails(session, session.turn_count - refused_turns(session)).pop(),
        answered_at: None,
    }))
}

/// Whether prompts are to wait, because they would be mixed with a replay.
pub(super) fn holds_prompts(session: &Session) -> bool {
    matches!(&session.ledger.replay, Replay::Aside(aside) if aside.holds_prompts)
}

/// Takes an update that makes items into the replay; gives it back if it belongs to none.
pub(super) fn take(
    session: &mut Session,
    update: SessionUpdate,
    now: Instant,
    fx: &mut Vec<Effect>,
) -> Option<SessionUpdate> {
    let (key, is_open) = (session.key, session.phase == SessionPhase::Ready);
    let Replay::Aside(aside) = &mut session.ledger.replay else {
        return Some(update);
    };
    let shadow = &mut aside.shadow;
    if (is_open || !aside.is_expected) && shadow.transcript.items().is_empty() {
        // What an agent says of itself after a load is no history; only a message of the user begins a late one.
        let is_late = aside.answered_at.is_some_and(|at| now.saturating_duration_since(at) > LATEST_BEGIN);
        if is_late || !is_from_user(&update) {
            return Some(update);
        }
        aside.holds_prompts = true;
        fx.push(Effect::Timer(TimerId::History(key), QUIET));
    }
    let record = Record::Update(update.clone());
    match update {
        SessionUpdate::Subagent(patch) => restore::on_subagent(shadow, patch, now),
        other => updates::apply_here(shadow, other, now, &mut Vec::new()),
    }
    keep::note(shadow, record);
    None
}

fn is_from_user(update: &SessionUpdate) -> bool {
    matches!(
        update,
        SessionUpdate::Chunk { role: Role::User, .. }
            | SessionUpdate::Block { role: Role::User, .. }
            | SessionUpdate::Message { role: Role::User, .. }
    )
}

/// The call that opens the session was answered: the rest of the replay, or all of it, may still come.
pub(super) fn on_answered(session: &mut Session, now: Instant, fx: &mut Vec<Effect>) {
    let key = session.key;
    if let Replay::Aside(aside) = &mut session.ledger.replay {
        aside.answered_at = Some(now);
        aside.seen = aside.shadow.transcript.revision();
        aside.holds_prompts |= !aside.shadow.transcript.items().is_empty();
        if aside.holds_prompts {
            fx.push(Effect::Timer(TimerId::History(key), QUIET));
        }
    }
}

/// Looks whether the replay has come to its end.
pub(super) fn on_timer(state: &mut State, key: crate::model::SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Replay::Aside(aside) = &mut session.ledger.replay else { return };
    let so_far = aside.shadow.transcript.revision();
    let is_news = std::mem::replace(&mut aside.seen, so_far) != so_far;
    aside.quiet_looks = if is_news { 0 } else { aside.quiet_looks.saturating_add(1) };
    let (looks, has_begun) = (aside.quiet_looks, !aside.shadow.transcript.items().is_empty());
    let is_expected = aside.is_expected;
    let enough = match &session.ledger.replay {
        Replay::Aside(aside)
            if has_begun && !has_told_the_end(session, &aside.shadow, aside.end.as_deref()) =>
        {
            PAUSES
        }
        _ if !has_begun && is_expected => LATE_PAUSES,
        _ => 1,
    };
    if looks < enough {
        fx.push(Effect::Timer(TimerId::History(key), QUIET));
        return;
    }
    let Replay::Aside(aside) = &mut session.ledger.replay else { return };
    if aside.shadow.transcript.items().is_empty() {
        // It may still begin, but nothing waits for it any more.
        aside.holds_prompts = false;
    } else {
        settle(session, now);
    }
    turn::go_on(state, key, now, fx);
}

/// The replay is over, or a prompt is about to be sent: what was replayed is put where it belongs.
pub(super) fn settle(session: &mut Session, now: Instant) {
    let Replay::Aside(aside) = std::mem::take(&mut session.ledger.replay) else {
        return;
    };
    let mut shadow = aside.shadow;
    if shadow.transcript.items().is_empty() {
        return;
    }
    messages::close(&mut shadow, now);
    tools::close_open(&mut shadow, crate::model::ToolStatus::Completed, now);
    match relation(session, &shadow) {
        Relation::Same => {}
        Relation::Longer(turn) => append(session, shadow, turn),
        Relation::Other => replace(session, shadow),
        Relation::Shorter => {
            let detail = "It may not know the last of what stands above.";
            warn(session, "The agent's own record of this session ends earlier.", detail);
        }
        Relation::WithoutCancelled => {
            let detail = "It may not know what was said and done in them.";
            warn(session, "The agent's own record leaves out turns that you cancelled.", detail);
        }
    }
}

/// Says what the agent may not know, unless that was the last thing that was said.
fn warn(session: &mut Session, title: &str, detail: &str) {
    let (severity, title, detail) = (Severity::Warning, title.to_owned(), Some(detail.to_owned()));
    let body = ItemBody::Notice { severity, title: title.clone(), detail: detail.clone() };
    if session.transcript.items().last().is_some_and(|last| last.body == body) {
        return;
    }
    keep::note(session, Record::Notice { severity, title, detail });
    session.transcript.push(session.turn_count, body);
}

fn relation(shown: &Session, told: &Session) -> Relation {
    let theirs = prompts(told);
    if theirs.is_empty() {
        return Relation::Same;
    }
    let all = told_prompts(shown);
    if all.is_empty() && refused_turns(shown) > 0 {
        return Relation::Same;
    }
    let found = relation_of(shown, &all, told, &theirs);
    let Some(kept) = without_cancelled(shown, &all).filter(|_| found == Relation::Other) else {
        return found;
    };
    match relation_of(shown, &kept, told, &theirs) {
        Relation::Same => Relation::WithoutCancelled,
        found => found,
    }
}

/// The prompts of the turns that were not cancelled, if others were: some agents keep nothing of these.
fn without_cancelled(session: &Session, all: &[Prompt]) -> Option<Vec<Prompt>> {
    let is_end = |body: &ItemBody| {
        matches!(body, ItemBody::TurnEnd(TurnEnd::Stopped { reason: StopReason::Cancelled, .. }))
    };
    let ends = session.transcript.items().iter().filter(|item| is_end(&item.body));
    let turns: Vec<u32> = ends.map(|item| item.turn).collect();
    let kept: Vec<Prompt> = all.iter().filter(|prompt| !turns.contains(&prompt.turn)).cloned().collect();
    (kept.len() < all.len() && !kept.is_empty()).then_some(kept)
}

fn relation_of(shown: &Session, ours: &[Prompt], told: &Session, theirs: &[Prompt]) -> Relation {
    let Some(last) = ours.len().checked_sub(1) else {
        return Relation::Other;
    };
    let places: Vec<usize> = (0..theirs.len()).filter(|place| agree(ours, last, theirs, *place)).collect();
    // The same prompt may come several times in a row; a history that is shown whole counts them.
    let is_whole = shown.ledger.earlier.is_none();
    let place = places.iter().find(|place| is_whole && **place == last).or(places.last()).copied();
    let Some(place) = place else {
        let end = theirs.len() - 1;
        let is_shorter = (0..last).any(|place| agree(ours, place, theirs, end));
        return if is_shorter { Relation::Shorter } else { Relation::Other };
    };
    let (Some(our_turn), Some(their_turn)) =
        (ours.get(last).map(|ours| ours.turn), theirs.get(place).map(|theirs| theirs.turn))
    else {
        return Relation::Other;
    };
    let (our_part, their_part) = (size(shown, our_turn), size(told, their_turn));
    if was_cut(shown, our_turn) && (their_part.0 > our_part.0 || their_part.1 > our_part.1) {
        return Relation::Other;
    }
    if place + 1 < theirs.len() { Relation::Longer(their_turn) } else { Relation::Same }
}

/// Whether a replay has told the last turn that is shown, up to the end of what the agent said in it.
fn has_told_the_end(shown: &Session, told: &Session, end: Option<&str>) -> bool {
    let (all, theirs) = (told_prompts(shown), prompts(told));
    if all.is_empty() {
        return true;
    }
    let kept = without_cancelled(shown, &all);
    let told_in = |ours: &Vec<Prompt>| {
        let last = ours.len().checked_sub(1)?;
        let place = (0..theirs.len()).rev().find(|place| agree(ours, last, &theirs, *place))?;
        theirs.get(place).map(|prompt| prompt.turn)
    };
    let Some(their_turn) = told_in(&all).or_else(|| kept.as_ref().and_then(told_in)) else { return false };
    let Some(end) = end else { return true };
    tails(told, their_turn).iter().any(|tail| tail.ends_with(end) || end.ends_with(tail.as_str()))
}

/// How the agent's messages of a turn end, without white space.
fn tails(session: &Session, turn: u32) -> Vec<String> {
    let of_turn = session.transcript.items().iter().filter(|item| item.turn == turn);
    let messages = of_turn.filter_map(|item| match &item.body {
        ItemBody::Message(message) if message.role == Role::Agent => Some(message),
        _ => None,
    });
    let tail = |message: &Message| {
        let text = texts(message).collect::<String>();
        let signs = text.chars().rev().filter(|sign| !sign.is_whitespace()).take(TAIL_CHARS);
        signs.collect::<Vec<char>>().into_iter().rev().collect::<String>()
    };
    messages.map(tail).filter(|tail| !tail.is_empty()).collect()
}

/// A prompt with what tells its turn again.
#[derive(Clone)]
struct Prompt {
    turn: u32,
    /// Its words, white space made even.
    words: String,
    /// Ids of what the agent said in the turn. Ids of calls are no help: some agents count them anew in each turn.
    messages: Vec<MessageId>,
}

/// Whether two places hold the same prompt, and those before them do too.
fn agree(ours: &[Prompt], our_place: usize, theirs: &[Prompt], their_place: usize) -> bool {
    (0..=AGREEING_PROMPTS).all(|back| {
        let ours = our_place.checked_sub(back).and_then(|place| ours.get(place));
        let theirs = their_place.checked_sub(back).and_then(|place| theirs.get(place));
        match (ours, theirs) {
            (Some(ours), Some(theirs)) => is_same_prompt(ours, theirs),
            // One of the two histories does not reach back that far.
            _ => back > 0,
        }
    })
}

fn is_same_prompt(one: &Prompt, other: &Prompt) -> bool {
    if one.messages.iter().any(|id| other.messages.contains(id)) {
        return true;
    }
    let (one, other) = (&one.words, &other.words);
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    short == long || (short.chars().count() >= MIN_PART_CHARS && long.contains(short.as_str()))
}

/// How many turns at the end the agent refused, because it had lost the session: no record of its own has them.
fn refused_turns(session: &Session) -> u32 {
    u32::from(session.ledger.unsent.is_some() && session.turn_count > 0)
}

/// The user's messages that the agent may know.
fn told_prompts(session: &Session) -> Vec<Prompt> {
    let last = session.turn_count - refused_turns(session);
    prompts(session).into_iter().filter(|prompt| prompt.turn <= last).collect()
}

/// The user's messages, in order.
fn prompts(session: &Session) -> Vec<Prompt> {
    let mut found: Vec<Prompt> = Vec::new();
    for item in session.transcript.items() {
        let ItemBody::Message(message) = &item.body else { continue };
        if message.role == Role::User {
            let text = texts(message).collect::<Vec<_>>().join("\n");
            let words: Vec<&str> = handover::without_context(&text).split_whitespace().collect();
            // What an agent put in front of the first prompt is no prompt.
            if !words.is_empty() || text.trim().is_empty() {
                found.push(Prompt { turn: item.turn, words: words.join(" "), messages: Vec::new() });
            }
        } else if let (Some(id), Some(prompt)) = (&message.message, found.last_mut())
            && prompt.turn == item.turn
        {
            prompt.messages.push(id.clone());
        }
    }
    found
}

fn texts(message: &Message) -> impl Iterator<Item = &str> {
    message.parts.iter().filter_map(|part| match part {
        MessagePart::Text(text) => Some(text.as_str()),
        MessagePart::Block(_) => None,
    })
}

fn was_cut(session: &Session, turn: u32) -> bool {
    session.transcript.items().iter().rev().take_while(|item| item.turn >= turn).any(|item| {
        match &item.body {
            ItemBody::TurnEnd(TurnEnd::AgentDied { .. }) => true,
            ItemBody::Notice { title, .. } => title == restore::CUT,
            _ => false,
        }
    })
}

/// How many bytes the agent said in a turn, and how many calls it made.
fn size(session: &Session, turn: u32) -> (usize, usize) {
    let items = session.transcript.items().iter().rev().skip_while(|item| item.turn > turn);
    items.take_while(|item| item.turn == turn).fold((0, 0), |(bytes, calls), item| match &item.body {
        ItemBody::Message(message) if message.role == Role::Agent => {
            (bytes + texts(message).map(str::len).sum::<usize>(), calls)
        }
        ItemBody::Tool(_) => (bytes, calls + 1),
        _ => (bytes, calls),
    })
}

/// Adds the turns behind `after`: they were had elsewhere.
fn append(session: &mut Session, shadow: Session, after: u32) {
    let base = session.turn_count;
    let moved = |turn: u32| base + (turn - after);
    let mut places = std::collections::HashMap::new();
    for item in shadow.transcript.items().iter().filter(|item| item.turn > after) {
        let place = session.transcript.push(moved(item.turn), item.body.clone());
        places.insert(item.id, place);
    }
    session.turn_count = moved(shadow.turn_count);
    session.ledger.former_tools = std::mem::take(&mut session.tools);
    session.tools =
        shadow.tools.into_iter().filter_map(|(id, place)| Some((id, *places.get(&place)?))).collect();
    session.terminals.extend(shadow.terminals);
    let notes = shadow.ledger.keeping.notes.into_iter().filter_map(|note| match note {
        Note::Event { turn, record } if turn > after => Some(Note::Event { turn: moved(turn), record }),
        _ => None,
    });
    session.ledger.keeping.notes.extend(notes);
}

/// Shows the replayed history instead.
fn replace(session: &mut Session, shadow: Session) {
    drop(session.transcript.take());
    session.forget_places();
    session.turn_count = 0;
    keep::note(session, Record::Replaced);
    for item in shadow.transcript.items() {
        session.transcript.push(item.turn, item.body.clone());
    }
    session.turn_count = shadow.turn_count;
    // The items stand at the same places, so what points to them still does.
    session.tools = shadow.tools;
    session.terminals.extend(shadow.terminals);
    let ledger = shadow.ledger;
    session.ledger.former_tools = ledger.former_tools;
    session.ledger.shown_by = ledger.shown_by;
    session.ledger.compactions = ledger.compactions;
    session.ledger.subagents = ledger.subagents;
    session.ledger.keeping.notes.extend(ledger.keeping.notes);
}
