//! The agent's own list of its sessions, and what it says of one of them.
//!
//! Duty: asks for it page by page, and joins the pages. Not its duty: what is shown of it (`modal::sessions`), opening
//! one (`open`).
//! Invariants: what the agent does not advertise is not called; a list that turns in a circle ends.

use std::time::Instant;

use crate::model::{Call, CallError, Purpose, Reply, SessionId};

use super::{Conn, ConnPhase, Effect, State, call, user, words};

/// Most rows that are kept of an agent's list.
const MOST_LISTED: usize = 5_000;

/// Asks the agent for its sessions; the picker is filled when they come.
pub fn list_sessions(state: &mut State, _now: Instant, fx: &mut Vec<Effect>) {
    state.listed.clear();
    user::on_sessions_listed(state);
    ask_for_page(state, None, fx);
}

fn ask_for_page(state: &mut State, cursor: Option<String>, fx: &mut Vec<Effect>) {
    let root = call::root_of(state, state.active);
    let Some(conn) = state.conn_of(root).filter(|conn| conn.phase == ConnPhase::Ready) else {
        call::flash(state, "The agent is not ready. Try again when it is.", fx);
        return;
    };
    let (conn, can_list) = (conn.id, conn.capabilities().can_list);
    if !can_list {
        call::flash(state, "This agent does not list its sessions.", fx);
        return;
    }
    let cwd = state.sessions.get(&root).map(|session| session.place.folder().to_owned());
    call::call(state, conn, Purpose::ListSessions, Call::ListSessions { cwd, cursor }, fx);
}

/// A page of the list. A page that brings nothing new ends it, so that a cursor that turns in a circle does.
pub(super) fn on_list(state: &mut State, result: Result<Reply, CallError>, fx: &mut Vec<Effect>) {
    match result {
        Ok(Reply::Sessions { sessions, next_cursor }) => {
            let before = state.listed.len();
            for info in sessions {
                if !state.listed.iter().any(|known| known.id == info.id) {
                    state.listed.push(info);
                }
            }
            user::on_sessions_listed(state);
            let has_more = state.listed.len() > before && state.listed.len() < MOST_LISTED;
            if next_cursor.is_some() && has_more {
                ask_for_page(state, next_cursor, fx);
            }
        }
        Ok(_) => call::flash(state, "The agent's list could not be read. The log shows it.", fx),
        Err(error) => {
            let text = format!("No list of sessions: {}", words::error_text(&error));
            call::flash(state, text, fx);
        }
    }
}

/// Asks the agent whether it has a listed session in memory, if it tells that; one question at a time.
pub fn ask_status(state: &mut State, id: SessionId, fx: &mut Vec<Effect>) {
    let root = call::root_of(state, state.active);
    let is_asking =
        |conn: &Conn| conn.open_calls.values().any(|tag| matches!(tag.purpose, Purpose::SessionStatus(_)));
    let conn = state.conn_of(root).filter(|conn| conn.capabilities().tells_status && !is_asking(conn));
    if let Some(conn) = conn.map(|conn| conn.id) {
        call::call(state, conn, Purpose::SessionStatus(id.clone()), Call::SessionStatus(id), fx);
    }
}

/// What the agent does not say is taken for no. Source: `session/status` (unstable).
pub(super) fn on_status(state: &mut State, id: &SessionId, result: &Result<Reply, CallError>) {
    let is_live = matches!(result, Ok(Reply::SessionStatus { is_live: true }));
    for info in state.listed.iter_mut().filter(|info| info.id == *id) {
        info.is_live = Some(is_live);
    }
    user::on_sessions_listed(state);
}
