//! Closes and deletes sessions, and shows others.
//!
//! `dialogs::sessions` asks for confirmation, `conn` ends processes.
//! Invariants: only advertised methods are called; there is always an active session; the requests of a closed session
//! are answered and its commands ended. Source: ACP v1 session-close, session-delete.

use crate::model::{Call, CallError, ConnId, Decider, Purpose, Reply, SessionId, SessionKey, TerminalJob};

use super::{call, conn, requests, shell, tabs, turn};
use crate::core::recording::recorder;
use crate::core::state::{lookup, tab, texts};
use crate::core::{ConnPhase, Cx, Effect, State, UiRequest};

/// Closes a session with its subagents: cancels its turn, notifies the agent if supported, and stops an agent without
/// other sessions. The last session stays.
pub fn close_session(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let key = lookup::root_of(state, key);
    let Some(next) = neighbour(state, key) else {
        call::flash(state, "This is the only session. Start another one first, or quit.", cx);
        return;
    };
    let family: Vec<SessionKey> =
        state.sessions.keys().copied().filter(|other| lookup::root_of(state, *other) == key).collect();
    turn::abandon(state, key, Decider::SessionClosed, cx);
    let agent = state.sessions.get(&key).and_then(|session| session.conn);
    for member in &family {
        requests::clear_session(state, *member, cx);
        if let Some(agent) = agent {
            release_commands(state, agent, *member, cx);
        }
    }
    let closed = state.sessions.get(&key).and_then(|session| session.id.clone());
    if let (Some(agent), Some(id)) = (agent, closed) {
        call::close_session(state, agent, id, cx);
    }
    for member in &family {
        if let Some(session) = state.sessions.get(member) {
            shell::close(session, cx);
        }
        recorder::close(state, *member, cx);
        state.sessions.remove(member);
    }
    if family.contains(&state.active) {
        tabs::activate(state, next);
    }
    if let Some(agent) = agent
        && lookup::sessions_of(state, agent, true).is_empty()
    {
        conn::retire(state, agent, false, cx);
    }
    cx.requests.push(UiRequest::SessionsChanged);
}

/// Deletes a session of the agent. An open session must be closed first, because the protocol does not specify its
/// state after that.
pub fn delete_session(state: &mut State, id: SessionId, cx: &mut Cx) {
    let root = lookup::root_of(state, state.active);
    let Some((agent, caps)) =
        state.conn_of(root).filter(|conn| conn.phase == ConnPhase::Ready).map(|c| (c.id, c.capabilities()))
    else {
        call::flash(state, crate::core::state::texts::NOT_READY, cx);
        return;
    };
    if !caps.can_delete {
        call::flash(state, "This agent cannot delete sessions.", cx);
    } else if lookup::session_by_id(state, agent, &id).is_some() {
        call::flash(state, "This session is open. Close it first.", cx);
    } else {
        call::call(state, agent, Purpose::DeleteSession(id.clone()), Call::DeleteSession(id), cx);
    }
}

/// The response to `session/delete`.
pub(in crate::core) fn on_deleted(
    state: &mut State,
    conn: ConnId,
    id: &SessionId,
    result: Result<Reply, CallError>,
    cx: &mut Cx,
) {
    match result {
        Ok(_) => {
            if let Some(conn) = state.conns.get_mut(&conn) {
                conn.listing.sessions.retain(|info| info.id != *id);
            }
            cx.requests.push(UiRequest::SessionsChanged);
            call::flash(state, "Session deleted by the agent.", cx);
        }
        Err(error) => {
            call::flash(state, format!("Delete failed: {}", texts::error_text(&error)), cx);
        }
    }
}

/// The session to activate after this one is closed: the previous one, otherwise the next one.
fn neighbour(state: &State, key: SessionKey) -> Option<SessionKey> {
    let rank = state.sessions.get(&key)?.rank;
    let others = || tab::tabs(state).filter(|session| session.key != key);
    others().rfind(|session| session.rank < rank).or_else(|| others().next()).map(|session| session.key)
}

fn release_commands(state: &mut State, agent: ConnId, key: SessionKey, cx: &mut Cx) {
    let Some(conn) = state.conns.get_mut(&agent) else { return };
    let (released, remaining) =
        std::mem::take(&mut conn.terminals).into_iter().partition(|(_, of)| *of == key);
    conn.terminals = remaining;
    let released: std::collections::BTreeMap<_, _> = released;
    cx.effects.extend(released.into_keys().map(|terminal| Effect::Terminal(TerminalJob::Release(terminal))));
}
