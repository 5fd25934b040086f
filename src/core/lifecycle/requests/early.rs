//! Requests for a session that is being created wait for its id.

use super::dispatch;
use crate::core::state::lookup;
use crate::core::{Conn, Cx, State};
use crate::model::{AgentRequest, ConnId, Purpose, RequestId, SessionId};

/// Maximum number of requests of a connection that wait for their session.
const MAX_EARLY: usize = 64;

/// Keeps a request whose session is being created. Returns any other request.
pub(super) fn keep(
    state: &mut State,
    conn: ConnId,
    request_id: RequestId,
    request: AgentRequest,
) -> Option<AgentRequest> {
    let Some(id) = session_of(&request).cloned() else { return Some(request) };
    let is_known = lookup::session_by_id(state, conn, &id).is_some();
    let Some(open) = state.conns.get_mut(&conn).filter(|conn| !is_known && is_opening(conn)) else {
        return Some(request);
    };
    if open.early.requests.len() >= MAX_EARLY {
        return Some(request);
    }
    open.early.requests.push((id, request_id, request));
    None
}

/// Handles the requests that waited for this session, which is open now.
pub(in crate::core) fn dispatch_early(state: &mut State, conn: ConnId, id: &SessionId, cx: &mut Cx) {
    let Some(open) = state.conns.get_mut(&conn) else { return };
    let (mine, others) = std::mem::take(&mut open.early.requests).into_iter().partition(|(of, ..)| of == id);
    open.early.requests = others;
    dispatch_all(state, conn, mine, cx);
}

/// Refuses the requests that wait for sessions of this connection which will not be opened. Called after every event.
pub(in crate::core) fn refuse_early(state: &mut State, cx: &mut Cx) {
    let is_over = |conn: &&Conn| !conn.early.requests.is_empty() && !is_opening(conn);
    let over: Vec<ConnId> = state.conns.values().filter(is_over).map(|conn| conn.id).collect();
    for conn in over {
        let Some(open) = state.conns.get_mut(&conn) else { continue };
        let waiting = std::mem::take(&mut open.early.requests);
        dispatch_all(state, conn, waiting, cx);
    }
}

fn dispatch_all(
    state: &mut State,
    conn: ConnId,
    waiting: Vec<(SessionId, RequestId, AgentRequest)>,
    cx: &mut Cx,
) {
    for (_, request_id, request) in waiting {
        dispatch(state, conn, request_id, request, cx);
    }
}

/// Whether a session of this connection is being created, so that its id may become known.
fn is_opening(conn: &Conn) -> bool {
    let opens = |purpose: &Purpose| {
        matches!(purpose, Purpose::NewSession(_) | Purpose::LoadSession(_) | Purpose::ForkSession(_))
    };
    conn.open_calls.values().any(|tag| opens(&tag.purpose))
}

fn session_of(request: &AgentRequest) -> Option<&SessionId> {
    match request {
        AgentRequest::Permission(request) => request.session.as_ref(),
        AgentRequest::Elicitation(request) => request.session.as_ref(),
        AgentRequest::ReadFile { session, .. }
        | AgentRequest::WriteFile { session, .. }
        | AgentRequest::TerminalCreate { session, .. } => session.as_ref(),
        AgentRequest::TerminalOutput(_)
        | AgentRequest::TerminalWait(_)
        | AgentRequest::TerminalKill(_)
        | AgentRequest::TerminalRelease(_) => None,
    }
}
