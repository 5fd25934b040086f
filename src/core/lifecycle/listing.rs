//! The agent's list of sessions, and the status of one of them.
//!
//! Requests the list page by page and joins the pages; `modal::sessions` shows it, `open` opens a session.
//! Invariants: a list belongs to one connection ([`Listing`] is part of [`Conn`]), and a page to the request that it
//! answers: a late page of an earlier request is dropped. Only advertised methods are called. Every list ends: a cursor
//! is used once, and pages and rows are limited.

use crate::core::Listing;

use crate::model::{Call, CallError, ConnId, Purpose, Reply, SessionId};

use super::call;
use crate::core::state::{lookup, texts};
use crate::core::{Conn, ConnPhase, Cx, State, UiRequest};

/// Maximum number of rows of an agent's list.
const MAX_LISTED: usize = 5_000;
/// Maximum number of pages that are requested.
const MAX_PAGES: usize = 500;

/// Requests the agent's sessions; the dialog is filled with the response.
pub fn list_sessions(state: &mut State, cx: &mut Cx) {
    let root = lookup::root_of(state, state.active);
    let folder = state.sessions.get(&root).map(|session| session.workspace.folder().to_owned());
    let conn = state.conn_of(root).filter(|conn| conn.phase == ConnPhase::Ready).map(|conn| conn.id);
    let Some(conn) = conn.and_then(|conn| state.conns.get_mut(&conn)) else {
        call::flash(state, crate::core::state::texts::NOT_READY, cx);
        return;
    };
    conn.listing = Listing { folder, ..Listing::default() };
    let (conn, can_list) = (conn.id, conn.capabilities().can_list);
    cx.requests.push(UiRequest::SessionsChanged);
    if can_list {
        ask_for_page(state, conn, None, cx);
    } else {
        call::flash(state, "This agent cannot list its sessions.", cx);
    }
}

fn ask_for_page(state: &mut State, conn: ConnId, cursor: Option<String>, cx: &mut Cx) {
    let cwd = state.conns.get(&conn).and_then(|conn| conn.listing.folder.clone());
    let number = call::call(state, conn, Purpose::ListSessions, Call::ListSessions { cwd, cursor }, cx);
    if let Some(conn) = state.conns.get_mut(&conn) {
        conn.listing.open_call = number;
    }
}

/// Handles a page of a connection's list, the response to this call.
pub(in crate::core) fn on_list(
    state: &mut State,
    conn: ConnId,
    number: u64,
    result: Result<Reply, CallError>,
    cx: &mut Cx,
) {
    let is_shown = state.conn_of(lookup::root_of(state, state.active)).is_some_and(|shown| shown.id == conn);
    let Some(listing) = state.conns.get_mut(&conn).map(|conn| &mut conn.listing) else { return };
    if listing.open_call.take_if(|open| *open == number).is_none() {
        return;
    }
    match result {
        Ok(Reply::Sessions { sessions, next_cursor }) => {
            for info in sessions {
                let room = listing.sessions.len() < MAX_LISTED;
                if room && !listing.sessions.iter().any(|known| known.id == info.id) {
                    listing.sessions.push(info);
                }
            }
            let has_room = listing.sessions.len() < MAX_LISTED && listing.cursors.len() < MAX_PAGES;
            let next = next_cursor.filter(|cursor| has_room && listing.cursors.insert(cursor.clone()));
            cx.requests.push(UiRequest::SessionsChanged);
            if next.is_some() {
                ask_for_page(state, conn, next, cx);
            }
        }
        _ if !is_shown => {}
        Ok(_) => call::flash(state, "The agent's session list could not be read. See the protocol log.", cx),
        Err(error) => {
            let text = format!("Session list unavailable: {}", texts::error_text(&error));
            call::flash(state, text, cx);
        }
    }
}

/// Asks the agent whether it has a listed session in memory, if supported; one request at a time.
pub fn request_status(state: &mut State, id: SessionId, cx: &mut Cx) {
    let root = lookup::root_of(state, state.active);
    let is_asking =
        |conn: &Conn| conn.open_calls.values().any(|tag| matches!(tag.purpose, Purpose::SessionStatus(_)));
    let conn = state.conn_of(root).filter(|conn| conn.capabilities().tells_status && !is_asking(conn));
    if let Some(conn) = conn.map(|conn| conn.id) {
        call::call(state, conn, Purpose::SessionStatus(id.clone()), Call::SessionStatus(id), cx);
    }
}

/// A missing status means `false`. Source: `session/status` (unstable).
pub(crate) fn on_status(
    state: &mut State,
    conn: ConnId,
    id: &SessionId,
    result: &Result<Reply, CallError>,
    cx: &mut Cx,
) {
    let is_live = matches!(result, Ok(Reply::SessionStatus { is_live: true }));
    let listed = state.conns.get_mut(&conn).map(|conn| &mut conn.listing.sessions);
    for info in listed.into_iter().flatten().filter(|info| info.id == *id) {
        info.is_live = Some(is_live);
    }
    cx.requests.push(UiRequest::SessionsChanged);
}
