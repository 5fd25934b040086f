//! The history that an agent replays for a session that has a record.
//!
//! It goes to a spool in the store, beside the record. Once the call that opens the session was answered and nothing
//! follows for a while, `place` finds where the history continues the record; what comes after a certain place is
//! appended to the record, and anything else is told in one line. Ends with the first prompt.
//! Invariants: what is recorded never changes because of a replay; nothing is appended twice.

mod append;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::call;
use crate::core::session::recorded_turns::recorded_turns;
use crate::core::state::place::{self, Outcome, Place};
use crate::core::state::replay::{self, Replay, Spool, Taking};
use crate::core::{Cx, Effect, Item, ItemBody, Session, SessionPhase, State, TimerId};
use crate::model::{
    ItemId, Note, NoticeKind, Record, RecordedEvent, Role, SessionKey, SessionUpdate, Severity, StoreJob,
    ToolCallId, ToolStatus,
};

/// Time without updates after which a replay is complete, once the agent has responded.
pub(in crate::core) const QUIET: Duration = Duration::from_millis(500);

/// Texts that have fewer bytes in common may be equal by chance.
const MIN_BEGIN_BYTES: usize = 16;

/// What is said when the user does not wait for the history.
pub(super) const SENT_EARLY: &str =
    "Sent before the agent's history was complete. New turns of it may be missing here.";

/// The session is about to be opened by a call after which the agent may replay its history.
pub(super) fn begin(state: &mut State, key: SessionKey, is_expected: bool) {
    receive(state, key, |spool| Replay::Beside(Box::new(Spool::new(spool, is_expected))));
}

/// The same for an empty record, which takes the history as a whole.
pub(super) fn begin_whole(state: &mut State, key: SessionKey) {
    receive(state, key, Replay::Armed);
}

fn receive(state: &mut State, key: SessionKey, replay: impl FnOnce(SessionKey) -> Replay) {
    state.next.session += 1;
    let spool = SessionKey(state.next.session);
    if let Some(session) = state.sessions.get_mut(&key) {
        end(session);
        session.replay = replay(spool);
    }
}

pub(in crate::core) fn end(session: &mut Session) {
    if let Replay::Beside(spool) = &session.replay {
        if spool.has_begun() {
            session.recorder.note_in_spool(spool.key, Note::Closed);
        }
        session.replay = Replay::None;
    }
}

/// Takes an update for the spool if it belongs to the history; otherwise returns it.
pub(super) fn take(session: &mut Session, update: SessionUpdate, cx: &mut Cx) -> Option<SessionUpdate> {
    let is_report = matches!(&session.replay, Replay::Beside(spool) if spool.is_quiet)
        && is_same_report(session, &update);
    let is_part = match &session.replay {
        Replay::Beside(spool) if !spool.is_over && !is_of_session(&update) => {
            let is_going_on =
                if spool.has_begun() { !spool.is_quiet || !spool.is_at_end } else { !spool.is_answered };
            !is_of_added_call(spool, &update)
                && (is_report
                    || is_going_on
                    || continues(session, spool, &update)
                    || is_recorded(session, &update))
        }
        _ => false,
    };
    if !is_part {
        return Some(update);
    }
    let key = session.key;
    if matches!(&session.replay, Replay::Beside(spool) if !spool.has_begun()) {
        take_record(session);
    }
    let Replay::Beside(spool) = &mut session.replay else { return Some(update) };
    if !spool.has_begun() {
        session.recorder.note_in_spool(spool.key, Note::Spool { of: key });
    }
    spool.is_late |= !spool.has_begun() && spool.is_answered;
    spool.seen += 1;
    let unit = if is_report { spool.unit } else { spool.add(&update) };
    // What comes late is compared after the next pause.
    if spool.is_answered && (spool.is_quiet || spool.seen == 1) {
        spool.is_quiet = false;
        cx.effects.push(Effect::Timer(TimerId::History(key), QUIET));
    }
    let record = Box::new(Record::Update(update));
    session.recorder.note_in_spool(spool.key, Note::Event { turn: unit, record });
    None
}

fn is_of_added_call(spool: &Spool, update: &SessionUpdate) -> bool {
    matches!(update, SessionUpdate::Tool(patch) if !patch.is_announcement && spool.added_calls.contains(&patch.id))
}

/// Whether an update after the replay belongs to it: it begins with a user message, or what it is about was replayed.
fn continues(session: &Session, spool: &Spool, update: &SessionUpdate) -> bool {
    match update {
        SessionUpdate::Tool(patch) => spool.knows(&patch.id) && session.tool_by_id(&patch.id).is_none(),
        update => update.is_from_user(),
    }
}

/// Whether an update begins an item that is recorded: an agent may replay no prompts, or pause.
fn is_recorded(session: &Session, update: &SessionUpdate) -> bool {
    if session.loading.is_some() {
        return true;
    }
    if let SessionUpdate::Tool(patch) = update {
        return patch.is_announcement && session.tool_by_id(&patch.id).is_some();
    }
    let Some((role @ (Role::Agent | Role::Thought), _, text)) = update.appended_text() else { return false };
    // The rest of a live message needs no search.
    if session.open_message.is_some() {
        return false;
    }
    let begins = |item: &Item| match &item.body {
        ItemBody::Message(message) if message.role == role => {
            let known = message.parts.first().and_then(|part| part.text()).unwrap_or_default();
            known == text || text.len() >= MIN_BEGIN_BYTES && known.starts_with(text)
        }
        _ => false,
    };
    session.transcript.items().iter().any(begins)
}

/// Whether a notice or a failed call is recorded: an agent may report on each start, after the replay, that a server could
/// not be started. The call has another id then.
fn is_same_report(session: &Session, update: &SessionUpdate) -> bool {
    let mut items = session.transcript.items().iter().map(|item| &item.body);
    match update {
        SessionUpdate::Notice { severity, title, description, .. } => items.any(|body| {
            matches!(body, ItemBody::Notice { severity: known, title: text, detail, .. }
                if (severity, title, description) == (known, text, detail))
        }),
        SessionUpdate::Tool(patch)
            if patch.is_announcement && patch.status.as_set() == Some(&ToolStatus::Failed) =>
        {
            items.any(|body| {
                matches!(body, ItemBody::Tool(call)
                    if patch.title.as_set() == Some(&call.title)
                        && patch.content.as_set() == Some(&call.content)
                        && call.status == ToolStatus::Failed)
            })
        }
        _ => false,
    }
}

/// Whether an update concerns the session as a whole. It applies at once, also during a replay.
pub(super) fn is_of_session(update: &SessionUpdate) -> bool {
    matches!(
        update,
        SessionUpdate::Commands(_)
            | SessionUpdate::Mode(_)
            | SessionUpdate::Model(_)
            | SessionUpdate::Options(_)
            | SessionUpdate::Info { .. }
            | SessionUpdate::Usage(_)
            | SessionUpdate::Plan(_)
            | SessionUpdate::PlanRemoved(_)
    )
}

/// Whether the agent reports what is already recorded, so that it is not recorded again.
pub(super) fn is_repeated(session: &Session, record: &Record) -> bool {
    let is_before = matches!(&session.replay, Replay::Beside(spool) if !spool.is_over);
    is_before && matches!(record, Record::Update(update) if is_of_session(update))
}

/// A request names this call: shows what was replayed of it.
pub(super) fn show_call(session: &mut Session, call: &ToolCallId, now: Instant) {
    let Replay::Beside(spool) = &mut session.replay else { return };
    if spool.is_over {
        return;
    }
    for update in spool.take_call(call) {
        append::append(session, update, now);
    }
}

/// The call that opens the session was answered; the rest of the replay, or all of it, may follow.
pub(super) fn on_answered(session: &mut Session, cx: &mut Cx) {
    session.recorder.end_diversion(true);
    match &mut session.replay {
        Replay::None => {}
        Replay::Armed(_) | Replay::Running(_) => session.replay = Replay::None,
        Replay::Beside(spool) => {
            spool.is_answered = true;
            spool.checked = spool.seen;
            if spool.has_begun() || spool.is_expected {
                cx.effects.push(Effect::Timer(TimerId::History(session.key), QUIET));
            } else {
                spool.is_quiet = true;
            }
        }
    }
}

/// Checks whether the replay has paused.
pub(in crate::core) fn on_timer(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Replay::Beside(spool) = &mut session.replay else { return };
    if spool.is_over {
        return;
    }
    if std::mem::replace(&mut spool.checked, spool.seen) != spool.seen {
        cx.effects.push(Effect::Timer(TimerId::History(key), QUIET));
        return;
    }
    spool.is_quiet = true;
    compare(session);
}

pub(super) fn on_whole(session: &mut Session) {
    take_record(session);
    compare(session);
}

/// Keeps the record for the comparison, once it is read.
fn take_record(session: &mut Session) {
    if session.loading.is_some() {
        return;
    }
    let record = place::Record::new(recorded_turns(session));
    if let Replay::Beside(spool) = &mut session.replay {
        spool.record = Some(Arc::new(record));
    }
}

/// Compares the replay with the record, and appends what comes after it or tells the difference.
fn compare(session: &mut Session) {
    let Replay::Beside(spool) = &mut session.replay else { return };
    if spool.is_over || !spool.is_quiet || !spool.has_begun() || spool.taking.is_some() {
        return;
    }
    let Some(record) = &spool.record else { return };
    let outcome = record.place(&spool.turns);
    spool.is_at_end = matches!(&outcome, Outcome::Place(place) if place.is_at_end && place.new_turns == 0);
    let difference = difference(record, spool, &outcome);
    let hash = difference.as_ref().map(|(hash, _)| *hash);
    if spool.reported.as_ref().is_none_or(|(_, reported)| Some(*reported) != hash) {
        take_back(session);
    }
    if hash.is_some_and(|hash| session.recorder.was_reported(hash)) {
        return;
    }
    match (outcome, difference) {
        (Outcome::Place(place), _) if is_new(&place) => start_taking(session, &place),
        (Outcome::NoPlace, Some((hash, title))) => {
            tell(session, &[hash_of_kind(NO_PLACE), hash], title);
        }
        (_, Some((hash, title))) => tell(session, &[hash], title),
        _ => {}
    }
}

fn is_new(place: &Place) -> bool {
    place.new_turns > 0 || place.rest.is_some()
}

/// Says how the agent's history differs, once for each difference.
fn tell(session: &mut Session, differences: &[u64], title: String) {
    session.recorder.tell(differences);
    let (kind, severity) = (NoticeKind::HistoryDiffers, Severity::Info);
    let item =
        session.transcript.push(session.turn_count, ItemBody::Notice { kind, severity, title, detail: None });
    if let (Replay::Beside(spool), Some(difference)) = (&mut session.replay, differences.last()) {
        spool.reported = Some((item, *difference));
    }
}

/// Removes the line about a difference that what was replayed since has changed.
fn take_back(session: &mut Session) {
    let Replay::Beside(spool) = &mut session.replay else { return };
    let Some((item, _)) = spool.reported.take() else { return };
    session.transcript.remove(item);
}

/// Remembers the difference as told, so that it is not told or added at the next start. `has_all`: also one that would
/// add something.
fn note_reported(session: &mut Session, has_all: bool) {
    let Replay::Beside(spool) = &session.replay else { return };
    let Some(record) = &spool.record else { return };
    let outcome = record.place(&spool.turns);
    let is_new = matches!(&outcome, Outcome::Place(place) if is_new(place));
    if let Some((hash, _)) = difference(record, spool, &outcome).filter(|_| has_all || !is_new) {
        session.recorder.tell(&[hash]);
    }
}

/// The kind of a difference without a certain place.
const NO_PLACE: u8 = 1;

fn hash_of_kind(kind: u8) -> u64 {
    place::hashed(place::SEED, &[kind])
}

/// How the agent's history differs, and what identifies that difference in any later replay. It is saved, so the hash
/// must stay the same.
fn difference(record: &place::Record, spool: &Spool, outcome: &Outcome) -> Option<(u64, String)> {
    let turns = record.turns();
    let hash_of = |kind: u8, replayed: &[usize]| {
        let turns = replayed.iter().filter_map(|turn| spool.turns.get(*turn));
        let prompts: BTreeSet<String> = turns.map(|turn| turn.prompt(0)).collect();
        prompts.iter().fold(hash_of_kind(kind), |hash, prompt| {
            place::hashed(place::hashed(hash, prompt.trim().as_bytes()), &[0])
        })
    };
    let unrecorded = |end: usize| record.unrecorded(spool.turns.get(..end).unwrap_or_default());
    match outcome {
        // Output that is the same on each start, such as a warning, is no history.
        Outcome::NoPrompts if spool.is_late => None,
        Outcome::NoPrompts => {
            let title = "The agent's history has no prompts, so it was not compared with this record.";
            Some((hash_of(0, &[]), title.to_owned()))
        }
        Outcome::NoPlace => {
            let title = "The agent's history could not be matched with this record.";
            // A turn made elsewhere in the meantime is a new difference.
            let others = unrecorded(spool.turns.len());
            let is_last = |turn: &&usize| **turn + 1 == spool.turns.len();
            Some((
                hash_of(NO_PLACE, others.last().filter(is_last).map_or(&[], std::slice::from_ref)),
                title.to_owned(),
            ))
        }
        Outcome::Place(place) if is_new(place) => {
            let rest = place.rest.as_ref().map(|rest| rest.turn);
            let new = rest.into_iter().chain(place.next.turn..spool.turns.len());
            let new = new.filter_map(|turn| spool.turns.get(turn));
            let hash = new.fold(place::hashed(place::SEED, &[2]), |hash, turn| {
                let hash = place::hashed(hash, turn.prompt(0).trim().as_bytes());
                place::hashed(hash, &turn.reply.digest().to_le_bytes())
            });
            Some((hash, String::new()))
        }
        Outcome::Place(place) => {
            let last = place.ends_after(turns.len()).and_then(|last| turns.get(last.checked_sub(1)?));
            if let Some(last) = last {
                let hash = place::hashed(hash_of(3, &[]), &last.number.to_le_bytes());
                return Some((hash, format!("The agent's history ends after turn {}.", last.number)));
            }
            let others = unrecorded(place.next.turn);
            let title = match others.len() {
                0 => return None,
                1 => "The agent's history has 1 turn that this record lacks.".to_owned(),
                count => format!("The agent's history has {count} turns that this record lacks."),
            };
            Some((hash_of(4, &others), title))
        }
    }
}

/// Has the store confirm that the spool is on disk, to read the part after the place.
fn start_taking(session: &mut Session, place: &Place) {
    let Replay::Beside(spool) = &mut session.replay else { return };
    let unit = |turn: usize| spool.units.get(turn).copied();
    let new = unit(place.next.turn).map_or(spool.unit + 1, |unit| {
        unit.saturating_add(u32::try_from(place.next.chunk).unwrap_or(u32::MAX))
    });
    let from = place.rest.as_ref().and_then(|rest| unit(rest.turn)).unwrap_or(new);
    spool.sync += 1;
    let (rest, turns, end) = (place.rest.clone(), place.new_turns, spool.unit + 1);
    spool.taking = Some(Taking { from, new, end, rest, turns, is_asked: false });
    session.recorder.note_in_spool(spool.key, Note::Sync(spool.sync));
}

fn owner_of(state: &State, is_it: impl Fn(&Spool) -> bool) -> Option<SessionKey> {
    let of = |session: &Session| matches!(&session.replay, Replay::Beside(spool) if is_it(spool));
    state.sessions.values().find(|session| of(session)).map(|session| session.key)
}

fn spool_of(state: &mut State, spool: SessionKey) -> Option<(SessionKey, &mut Spool)> {
    let key = owner_of(state, |it| it.key == spool)?;
    match &mut state.sessions.get_mut(&key)?.replay {
        Replay::Beside(spool) => Some((key, spool)),
        _ => None,
    }
}

pub(super) fn on_kept_as(state: &mut State, spool: SessionKey, uid: String) {
    if let Some((_, spool)) = spool_of(state, spool) {
        spool.uid = Some(uid);
    }
}

/// The store has written everything up to a request to confirm it.
pub(super) fn on_written(state: &mut State, spool: SessionKey, upto: u64, cx: &mut Cx) {
    let Some((key, spool)) = spool_of(state, spool) else { return };
    spool.written = spool.written.max(upto);
    if let (Some(taking), Some(uid)) = (&mut spool.taking, &spool.uid)
        && spool.written == spool.sync
        && !std::mem::replace(&mut taking.is_asked, true)
    {
        cx.effects.push(Effect::Store(StoreJob::ReadSpool { key, uid: uid.clone(), from: taking.from }));
    }
}

/// A part of the spool was read: appends it to the record.
pub(super) fn on_read(
    state: &mut State,
    key: SessionKey,
    from: u32,
    events: Result<Vec<RecordedEvent>, String>,
    now: Instant,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Replay::Beside(spool) = &mut session.replay else { return };
    let Some(taking) = spool.taking.take_if(|taking| taking.is_asked && taking.from == from) else { return };
    if spool.is_over {
        return;
    }
    match events {
        Err(why) => {
            let title = "The end of the agent's history could not be read.".to_owned();
            session
                .transcript
                .push(session.turn_count, ItemBody::notice(Severity::Warning, title, Some(why)));
        }
        Ok(events) => {
            let next = session.transcript.next_id();
            append::put(session, taking, events, now);
            take_record(session);
            // The last turn may still grow, so its place may be uncertain now.
            note_reported(session, session.transcript.next_id() == next);
        }
    }
    compare(session);
}

/// A prompt was sent, or the agent began a turn of its own: from now on, everything is live.
pub(super) fn prompt_sent(session: &mut Session) {
    if let Replay::Beside(spool) = &mut session.replay {
        spool.is_over = true;
        spool.taking = None;
        spool.record = None;
        spool.turns = Vec::new();
    }
}

/// Sends what waits for the history at once. Returns whether it did wait for that.
pub(super) fn stop_waiting(state: &mut State, key: SessionKey) -> bool {
    let is_waiting = holds_prompts(state, key);
    if let Some(session) = state.sessions.get_mut(&key).filter(|_| is_waiting) {
        prompt_sent(session);
    }
    is_waiting
}

/// Whether the session is open, and prompts wait for the agent's history.
pub(super) fn holds_prompts(state: &State, key: SessionKey) -> bool {
    let session = state.sessions.get(&key);
    session.is_some_and(|session| session.phase == SessionPhase::Ready && replay::holds_prompts(session))
}

/// Shows the history that the agent replayed for the active session.
pub fn show_history(state: &mut State, cx: &mut Cx) {
    let Some(session) = state.active_session() else { return };
    let uid = match &session.replay {
        Replay::Beside(spool) => spool.uid.clone(),
        _ => None,
    };
    let Some(uid) = uid else {
        return call::flash(state, "The agent has not sent its history of this session.", cx);
    };
    let folder = state.setup.folder.clone();
    cx.effects.push(Effect::Store(StoreJob::Open { uid, takes: false, at: None, folder }));
}

/// Keeps the agent's history that is open in the active tab as a session of its own.
pub fn keep_history(state: &mut State, cx: &mut Cx) {
    let reading = state.active_session().and_then(|session| session.read_only.as_ref());
    let uid = reading.map(|reading| reading.uid.clone());
    let owner = uid.and_then(|uid| owner_of(state, |spool| spool.uid.as_ref() == Some(&uid)));
    state.next.session += 1;
    let next = SessionKey(state.next.session);
    let Some(session) = owner.and_then(|key| state.sessions.get_mut(&key)) else {
        return call::flash(state, "This is not an agent's history. Open one first.", cx);
    };
    let title = format!("{} (agent's history)", crate::core::session_title(session));
    let Replay::Beside(spool) = &mut session.replay else { return };
    // What the agent replays from now on must not be written into a session that may be continued.
    let mut rest = Spool::new(next, false);
    (rest.is_answered, rest.is_quiet, rest.is_over) = (true, true, spool.is_over);
    let former = std::mem::replace(&mut **spool, rest);
    session.recorder.note_in_spool(former.key, Note::KeepSpool { title: title.clone() });
    session.recorder.note_in_spool(former.key, Note::Closed);
    call::flash(state, format!("Saved as session: {title}"), cx);
}

/// Whether this stored session is the history of an agent that is not kept.
pub(super) fn is_spool(state: &State, uid: &str) -> bool {
    owner_of(state, |spool| spool.uid.as_deref() == Some(uid)).is_some()
}

/// Removes turns that were taken from the agent's history: those after the selected marker, otherwise after the last one.
pub fn put_back(state: &mut State, selected: Option<ItemId>, cx: &mut Cx) {
    let Some(session) = state.active_session() else { return };
    if session.turn.is_running() || session.loading.is_some() {
        return call::flash(state, "Wait until the turn has ended.", cx);
    }
    let items = session.transcript.items();
    let is_marker = |item: &Item| matches!(item.body, ItemBody::Notice { kind: NoticeKind::Taken(_), .. });
    let selected = selected.and_then(|id| session.transcript.index_of(id));
    let selected = selected.filter(|at| items.get(*at).is_some_and(is_marker));
    let Some(at) = selected.or_else(|| items.iter().rposition(is_marker)) else {
        return call::flash(state, "No turns of the agent's history were added here.", cx);
    };
    // The turn of the marker is a recorded one.
    let first = items.get(at).map(|item| item.turn + 1);
    let is_sent = |item: &&Item| matches!(&item.body, ItemBody::Message(message) if message.is_local);
    let end = items.iter().skip(at).find(is_sent).map_or(session.turn_count + 1, |item| item.turn);
    let (Some(first), Some(uid)) = (first, session.recorder.saved_as().map(str::to_owned)) else { return };
    cx.effects.push(Effect::Store(StoreJob::ForgetTurns { key: session.key, uid, turns: first..end }));
}

/// The id of the record from which a turn can be deleted now, or why it cannot be.
pub fn deletable(state: &State, key: SessionKey, turn: u32) -> Result<String, &'static str> {
    let session = state.sessions.get(&key).ok_or("The session is closed.")?;
    let uid = session.recorder.saved_as().ok_or("This session is not saved, or is read-only here.")?;
    match turn {
        _ if session.turn.is_running() => Err("Wait until the turn has ended."),
        _ if session.loading.is_some() => Err("Wait until the session is loaded."),
        0 => Err("No turn to delete."),
        _ => Ok(uid.to_owned()),
    }
}

pub fn delete_turn(state: &mut State, key: SessionKey, turn: u32, cx: &mut Cx) {
    match deletable(state, key, turn) {
        Ok(uid) => cx.effects.push(Effect::Store(StoreJob::ForgetTurns { key, uid, turns: turn..turn + 1 })),
        Err(why) => call::flash(state, why, cx),
    }
}

/// Turns were removed from the record.
pub(super) fn on_forgotten(
    state: &mut State,
    key: SessionKey,
    turns: Range<u32>,
    result: Result<(), String>,
    cx: &mut Cx,
) {
    if let Err(why) = result {
        return call::flash(state, format!("Not removed: {why}"), cx);
    }
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.transcript.remove_turns(&turns);
    let transcript = &session.transcript;
    let is_there = |id: &ItemId| transcript.index_of(*id).is_some();
    session.index.retain(|item| is_there(&item));
    session.open_message = session.open_message.filter(is_there);
    take_record(session);
    // They are not added again as long as neither side changes.
    note_reported(session, true);
    let folder = session.workspace.cwd.clone();
    for session in state.sessions.values_mut().filter(|session| session.workspace.cwd == folder) {
        session.history.clear();
        cx.effects.push(Effect::LoadHistory { session: session.key, folder: folder.clone() });
    }
    call::flash(state, "Removed from the record. The agent still has its own history.", cx);
}
