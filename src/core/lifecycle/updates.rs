//! Updates of sessions.
//!
//! Finds the session of an update and applies it. `messages`, `tools` and `terminals` have the details. An update may
//! be received before its session is known (then it waits), outside a turn, and after a cancel: all are applied, but do
//! not start or end a turn.

use crate::model::{
    AgentEvent, Bounded, Capacity, ConnId, ItemId, Note, Record, Role, SessionId, SessionKey, SessionUpdate,
    Severity, SubagentPatch,
};

use super::{budget, call, late, requests, spool, turn};
use crate::core::session::{apply, clear, messages, record};
use crate::core::state::lookup;
use crate::core::{Cx, Early, Event, ItemBody, Part, Replay, Session, SessionPhase, State, Turn};

/// Limit of updates per connection that wait for their session; the oldest are dropped.
const MAX_EARLY: Capacity = Capacity { items: 4_096, bytes: 16 << 20 };
/// Size of a waiting update in addition to its texts.
const EARLY_BYTES: usize = size_of::<(SessionId, SessionUpdate)>();
/// Maximum bytes of text joined to one waiting chunk.
const MAX_JOINED_BYTES: usize = 1 << 20;

pub(crate) fn on_update(state: &mut State, conn: ConnId, id: SessionId, update: SessionUpdate, cx: &mut Cx) {
    match lookup::session_by_id(state, conn, &id) {
        Some(key) => apply(state, conn, key, update, cx),
        None => save_early(state, conn, id, update),
    }
}

/// Whether an event only adds text to a running turn.
pub(crate) fn is_text_of_turn(state: &State, event: &Event) -> bool {
    let Event::Agent(conn, AgentEvent::Update(id, update)) = event else { return false };
    let Some((Role::Agent | Role::Thought, ..)) = update.appended_text() else { return false };
    let session = lookup::session_by_id(state, *conn, id).and_then(|key| state.sessions.get(&key));
    session.is_some_and(|session| session.turn.is_running())
}

/// Saves an update because some agents report a session before the response with its id.
fn save_early(state: &mut State, conn: ConnId, id: SessionId, update: SessionUpdate) {
    let Some(conn) = state.conns.get_mut(&conn).filter(|conn| conn.is_alive()) else { return };
    let early = &mut conn.early;
    if let Some((role, message, text)) = update.appended_text()
        && early.updates.grow_last(text.len(), |(last, waiting)| match waiting.text_to_grow(role, message) {
            Some(all) if *last == id && all.len() + text.len() <= MAX_JOINED_BYTES => {
                all.push_str(text);
                true
            }
            _ => false,
        })
    {
        return;
    }
    let bytes = EARLY_BYTES + id.as_str().len() + crate::model::weight::of_update(&update);
    let mut waiting = Err((id, update));
    while let Err(update) = waiting {
        waiting = early.updates.push(update, bytes);
        if waiting.is_err() {
            early.updates.pop();
            early.dropped_count += 1;
        }
    }
}

impl Default for Early {
    fn default() -> Self {
        Self { updates: Bounded::new(MAX_EARLY), requests: Vec::new(), dropped_count: 0 }
    }
}

/// The session is known now: applies its waiting updates in order.
pub(crate) fn replay_early(state: &mut State, conn: ConnId, key: SessionKey, id: &SessionId, cx: &mut Cx) {
    let Some(open) = state.conns.get_mut(&conn) else { return };
    if open.early.updates.is_empty() {
        requests::dispatch_early(state, conn, id, cx);
        return;
    }
    let dropped_count = std::mem::take(&mut open.early.dropped_count);
    let mine = open.early.updates.take_where(|(of, _)| of == id);
    if dropped_count > 0 {
        let title = format!("{dropped_count} early updates were dropped.");
        call::notice(state, key, Severity::Warning, title, None);
    }
    for (_, update) in mine {
        apply(state, conn, key, update, cx);
    }
    requests::dispatch_early(state, conn, id, cx);
}

pub(crate) fn apply(state: &mut State, conn: ConnId, key: SessionKey, update: SessionUpdate, cx: &mut Cx) {
    late::note_activity(state, key, cx.now);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let makes_items = makes_items(&update);
    let update = if session.turn.is_running() {
        update
    } else {
        match spool::take(session, update, cx) {
            Some(update) => update,
            None => return,
        }
    };
    if makes_items && matches!(session.turn, Turn::Idle) {
        note_outside_turn(session);
    }
    let Some(update) = messages::without_echo(session, update) else { return };
    if matches!(&update, SessionUpdate::Usage(usage) if clear::is_by_plan(session, usage)) {
        clear::mark(session);
    }
    let record = Record::Update(update.clone());
    let next = session.transcript.next_id();
    match update {
        SessionUpdate::Subagent(patch) => {
            if !on_subagent(state, conn, key, patch, cx) {
                return;
            }
        }
        other => apply::apply_here(session, other, cx),
    }
    count_calls(state, key, next);
    budget::count_calls(state, key, next);
    // After the update, because a message of a replayed history starts the turn it is counted in.
    if let Some(session) = state.sessions.get_mut(&key) {
        let lists_commands = matches!(record, Record::Update(SessionUpdate::Commands(_)));
        if !spool::is_repeated(session, &record) {
            record::note(session, record);
        }
        if lists_commands {
            turn::on_commands(state, key, cx);
        }
    }
}

/// Whether an update is part of the history, not only a setting.
fn makes_items(update: &SessionUpdate) -> bool {
    matches!(
        update,
        SessionUpdate::Chunk { .. }
            | SessionUpdate::Block { .. }
            | SessionUpdate::Message { .. }
            | SessionUpdate::Tool(_)
            | SessionUpdate::Compaction { .. }
            | SessionUpdate::CompactionChunk { .. }
            | SessionUpdate::Subagent(_)
    )
}

/// Handles updates outside a turn: a replay of the history, or background activity.
fn note_outside_turn(session: &mut Session) {
    match &session.replay {
        Replay::Armed(spool) => begin_replay(session, *spool),
        Replay::Running(_) => {}
        Replay::None | Replay::Beside(_) => {
            let is_open = session.phase == SessionPhase::Ready && session.parent.is_none();
            session.has_background_news |= is_open && session.turn_count > 0;
        }
    }
}

/// The history replaces the items, which are saved until the replay was successful.
fn begin_replay(session: &mut Session, spool: SessionKey) {
    let transcript = session.transcript.take();
    session.forget_positions();
    session.terminals.retain(|_, view| view.is_ours);
    session.turn_count = 0;
    session.resume.begin_replay();
    session.replay = Replay::Running(Box::new(transcript));
    session.recorder.note_in_spool(spool, Note::Spool { of: session.key });
    session.recorder.diverted = Some(spool);
}

/// A child session: an item in its parent's transcript, and a separate session for its updates. Returns whether it is
/// valid.
fn on_subagent(
    state: &mut State,
    conn: ConnId,
    parent: SessionKey,
    patch: SubagentPatch,
    cx: &mut Cx,
) -> bool {
    let id = patch.session.clone();
    let child = match lookup::session_by_id(state, conn, &id) {
        // A session cannot be its own child, nor that of its descendants.
        Some(known) if lookup::root_of(state, parent) == known || known == parent => return false,
        Some(known) => known,
        None => adopt(state, conn, parent, &id),
    };
    let Some(session) = state.sessions.get_mut(&parent) else {
        return false;
    };
    apply::note_part(session, Part::Child(id.clone()), &patch.can_cancel);
    let new_title = patch.title.clone();
    let position = apply::on_subagent(session, patch, cx.now);
    session.transcript.edit(position, |item| {
        if let ItemBody::Subagent { key, .. } = &mut item.body {
            *key = Some(child);
        }
    });
    if let Some(session) = state.sessions.get_mut(&child) {
        new_title.apply(&mut session.title);
    }
    replay_early(state, conn, child, &id, cx);
    true
}

/// Updates the number of tool calls of a child session in its parent's transcript, if there is an item since `next`.
fn count_calls(state: &mut State, child: SessionKey, next: ItemId) {
    let Some(session) = state.sessions.get(&child).filter(|it| it.transcript.next_id() > next) else {
        return;
    };
    let Some((parent, id)) = session.parent.zip(session.id.clone()) else { return };
    let count =
        session.transcript.items().iter().filter(|item| matches!(item.body, ItemBody::Tool(_))).count();
    let Some(session) = state.sessions.get_mut(&parent) else { return };
    let Some(item) = session.index.subagent(&id) else { return };
    session.transcript.edit(item, |item| {
        if let ItemBody::Subagent { calls, .. } = &mut item.body {
            *calls = count.max(*calls);
        }
    });
}

/// The child's session: the one from before a restart, or a new one.
fn adopt(state: &mut State, conn: ConnId, parent: SessionKey, id: &SessionId) -> SessionKey {
    let known = state
        .sessions
        .values()
        .find(|session| session.parent == Some(parent) && session.id.as_ref() == Some(id))
        .map(|session| session.key);
    let position = state.sessions.get(&parent).map(|session| session.workspace.clone());
    let key = known.unwrap_or_else(|| state.add_session());
    if let Some(session) = state.sessions.get_mut(&key) {
        session.parent = Some(parent);
        session.conn = Some(conn);
        session.id = Some(id.clone());
        session.phase = SessionPhase::Ready;
        session.workspace = position.unwrap_or_else(|| session.workspace.clone());
    }
    key
}
