//! Requests of the agent that wait for the user: permissions, elicitations, files and commands.
//!
//! Manages the queue of each session, and the responses. `Conn::open_requests` holds every unanswered request;
//! `call::respond` is the only function that responds and removes it, so no request is answered twice. `callbacks`
//! handles files and commands, `dialogs` shows requests. Requests of a subagent are in the queue of its top-level
//! session.

mod decisions;
mod early;
mod elicitations;
mod ruled;
pub mod saved;

use std::time::Instant;

use crate::model::{
    AgentRequest, ConnId, Decider, ItemId, PermissionKind, PermissionRequest, Record, RequestId, Response,
    RpcError, SessionId, SessionKey,
};

use decisions::note_decision;
pub(in crate::core) use early::{dispatch_early, refuse_early};
use elicitations::on_elicitation;
pub(in crate::core) use elicitations::on_page_done;
pub use ruled::risks;
pub(super) use ruled::{position_to_allow, ruling_of, suggested_for};

use super::{call, callbacks, late, policy, spool, tabs};
use crate::core::session::{diffs, record, tools};
use crate::core::state::question::{CLOSED, NO_SUCH_ANSWER};
use crate::core::state::{FlashEnd, lookup, tab};
use crate::core::{
    AccessChoice, AccessRequest, AccessWork, Cx, Decision, ItemBody, OpenRequest, OpenRequestKind,
    RequestClass, State, Turn, UserAnswer,
};

pub(in crate::core) fn on_request(
    state: &mut State,
    conn: ConnId,
    request_id: RequestId,
    request: AgentRequest,
    cx: &mut Cx,
) {
    let is_quitting = state.is_quitting;
    let Some(open) = state.conns.get_mut(&conn) else { return };
    if open.open_requests.contains_key(&request_id) {
        return;
    }
    open.open_requests.insert(request_id, class_of(&request));
    if is_quitting || !open.is_alive() {
        let class = class_of(&request);
        call::respond(state, conn, request_id, unavailable_response(&class), cx);
        return;
    }
    if let Some(request) = early::keep(state, conn, request_id, request) {
        dispatch(state, conn, request_id, request, cx);
    }
}

fn dispatch(state: &mut State, conn: ConnId, request_id: RequestId, request: AgentRequest, cx: &mut Cx) {
    match request {
        AgentRequest::Permission(request) => on_permission(state, conn, request_id, request, cx),
        AgentRequest::Elicitation(request) => on_elicitation(state, conn, request_id, request, cx),
        other => callbacks::on_request(state, conn, request_id, other, cx),
    }
}

fn class_of(request: &AgentRequest) -> RequestClass {
    match request {
        AgentRequest::Permission(_) => RequestClass::Permission,
        AgentRequest::Elicitation(_) => RequestClass::Elicitation,
        AgentRequest::ReadFile { .. } | AgentRequest::WriteFile { .. } => {
            RequestClass::File(SessionKey::default())
        }
        AgentRequest::TerminalCreate { .. } => RequestClass::TerminalCreate(Box::default()),
        AgentRequest::TerminalWait(_) => RequestClass::TerminalWait,
        AgentRequest::TerminalOutput(_)
        | AgentRequest::TerminalKill(_)
        | AgentRequest::TerminalRelease(_) => RequestClass::TerminalOutput,
    }
}

/// The response to a request that will not be handled.
fn unavailable_response(class: &RequestClass) -> Response {
    match class {
        RequestClass::Permission => Response::PermissionCancelled,
        RequestClass::Elicitation => Response::ElicitationCancelled,
        _ => Response::Error(RpcError::new(
            RpcError::INTERNAL,
            "parlor is shutting down and accepts no more requests",
        )),
    }
}

fn cancelled(class: &RequestClass) -> Response {
    match class {
        RequestClass::Permission => Response::PermissionCancelled,
        RequestClass::Elicitation => Response::ElicitationCancelled,
        _ => Response::Error(RpcError::new(RpcError::CANCELLED, "the request was cancelled")),
    }
}

/// The session of a request: the one that it names, or the only one of its connection. `None`: it is refused, and the
/// user is told. Never a guess: the answer and the policy are those of the session.
pub(in crate::core) fn route(
    state: &mut State,
    conn: ConnId,
    id: Option<&SessionId>,
    cx: &mut Cx,
) -> Option<SessionKey> {
    let found = match id {
        Some(id) => lookup::session_by_id(state, conn, id),
        None => match lookup::sessions_of(state, conn, false).as_slice() {
            [only] => Some(*only),
            _ => None,
        },
    };
    if found.is_none() {
        let agent = state.conns.get(&conn).map(|conn| conn.spec.shown_name().to_owned()).unwrap_or_default();
        call::flash(state, format!("{agent}: refused a request for a session that is not open."), cx);
    }
    found
}

fn is_cancelling(state: &State, key: SessionKey) -> bool {
    let root = lookup::root_of(state, key);
    state.sessions.get(&root).is_some_and(|session| matches!(session.turn, Turn::Cancelling { .. }))
}

fn on_permission(
    state: &mut State,
    conn: ConnId,
    request_id: RequestId,
    request: PermissionRequest,
    cx: &mut Cx,
) {
    let Some(key) = route(state, conn, request.session.as_ref(), cx) else {
        call::respond(state, conn, request_id, Response::PermissionCancelled, cx);
        return;
    };
    let is_cancelled = is_cancelling(state, key);
    let Some(tool) = place_call(state, key, &request, cx) else {
        call::respond(state, conn, request_id, Response::PermissionCancelled, cx);
        return;
    };
    let kind = OpenRequestKind::Permission { request, tool };
    if is_cancelled {
        // Source: ACP v1 prompt-turn, Cancellation. One agent sends requests 25 ms after the cancel.
        note_decision(
            state,
            lookup::root_of(state, key),
            &kind,
            &Decision::Cancelled(Decider::TurnCancelled),
            cx.now,
        );
        call::respond(state, conn, request_id, Response::PermissionCancelled, cx);
        return;
    }
    let root = lookup::root_of(state, key);
    if !ruled::answer_by_rule(state, (conn, request_id), (key, root), &kind, cx) {
        enqueue(state, key, OpenRequest { conn, request_id, kind, since: cx.now }, cx);
    }
}

/// Merges the request's call with the known one. A subagent's call is copied to the transcript with the question; the
/// copy is removed once it is answered.
fn place_call(
    state: &mut State,
    key: SessionKey,
    request: &PermissionRequest,
    cx: &mut Cx,
) -> Option<ItemId> {
    let root = lookup::root_of(state, key);
    let session = state.sessions.get_mut(&key)?;
    spool::show_call(session, &request.tool.id, cx.now);
    let position = tools::upsert(session, request.tool.clone(), tools::Origin::Ask, cx.now);
    diffs::locate(session, position, cx);
    let asked = Record::Asked { tool: Box::new(request.tool.clone()), options: request.options.clone() };
    record::note(session, asked);
    if root == key {
        return Some(position);
    }
    let mut copy = session.tool_call(position)?.clone();
    copy.from_ask_only = true;
    copy.decision = None;
    let session = state.sessions.get_mut(&root)?;
    let copy = session.transcript.push(session.turn_count, ItemBody::Tool(Box::new(copy)));
    diffs::locate(session, copy, cx);
    Some(copy)
}

/// The policy asks the user about a file or command.
pub(in crate::core) fn on_access(
    state: &mut State,
    (conn, request_id): (ConnId, RequestId),
    key: SessionKey,
    open: AccessRequest,
    cx: &mut Cx,
) {
    if is_cancelling(state, key) || !state.sessions.contains_key(&key) {
        let error = RpcError::new(RpcError::CANCELLED, "the request was cancelled");
        call::respond(state, conn, request_id, Response::Error(error), cx);
        return;
    }
    let kind = OpenRequestKind::Access(Box::new(open));
    enqueue(state, key, OpenRequest { conn, request_id, kind, since: cx.now }, cx);
}

/// Notes which turns wait for the user.
pub(in crate::core) fn note_waits(state: &mut State, now: Instant) {
    let is_new = |session: &&crate::core::Session| session.wait.is_open() == session.requests.is_empty();
    let changed: Vec<SessionKey> =
        state.sessions.values().filter(is_new).map(|session| session.key).collect();
    for key in changed {
        if let Some(session) = state.sessions.get_mut(&key) {
            session.wait.follow(!session.requests.is_empty(), now);
        }
    }
}

fn enqueue(state: &mut State, key: SessionKey, request: OpenRequest, cx: &mut Cx) {
    let root = lookup::root_of(state, key);
    let text = match &request.kind {
        OpenRequestKind::Permission { .. } => "permission required.",
        OpenRequestKind::Elicitation(_) => "question to answer.",
        OpenRequestKind::Access(_) => "file or command permission required.",
    };
    let is_child_shown = state.active != root && tab::front(state) == root;
    let Some(session) = state.sessions.get_mut(&root) else { return };
    session.requests.push_back(request);
    if is_child_shown {
        let name = session.title.clone().unwrap_or_else(|| "The session".to_owned());
        call::flash_until(state, format!("{name}: answer required."), FlashEnd::Answer(root), cx);
    }
    tabs::announce(state, root, text, cx);
}

/// The agent has cancelled a request, which is still answered. A file or command in progress is answered with its
/// result.
pub(in crate::core) fn on_withdrawn(state: &mut State, conn: ConnId, request_id: RequestId, cx: &mut Cx) {
    let Some(class) = state.conns.get(&conn).and_then(|conn| conn.open_requests.get(&request_id)).cloned()
    else {
        return;
    };
    let taken = take(state, conn, request_id);
    let is_early = state.conns.get_mut(&conn).is_some_and(|open| {
        let before = open.early.requests.len();
        open.early.requests.retain(|(_, waiting, _)| *waiting != request_id);
        open.early.requests.len() < before
    });
    let was_waiting = taken.is_some() || is_early;
    if let Some((key, kind)) = taken {
        note_decision(state, key, &kind, &Decision::Cancelled(Decider::Agent), cx.now);
    }
    for session in state.sessions.values_mut() {
        session.terminal_waits.retain(|(of, waiting, _)| (*of, *waiting) != (conn, request_id));
    }
    if was_waiting || class == RequestClass::TerminalWait {
        call::respond(state, conn, request_id, cancelled(&class), cx);
    }
}

fn take(state: &mut State, conn: ConnId, request_id: RequestId) -> Option<(SessionKey, OpenRequestKind)> {
    state.sessions.values_mut().find_map(|session| {
        let position =
            session.requests.iter().position(|open| open.conn == conn && open.request_id == request_id)?;
        session.requests.remove(position).map(|open| (session.key, open.kind))
    })
}

/// Answers all requests of the session that wait for the user or a file.
pub(in crate::core) fn cancel_all(state: &mut State, key: SessionKey, by: Decider, cx: &mut Cx) {
    callbacks::stop_files(state, key, false, cx);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let open = std::mem::take(&mut session.requests);
    for OpenRequest { conn, request_id, kind, .. } in open {
        let class = match &kind {
            OpenRequestKind::Permission { .. } => RequestClass::Permission,
            OpenRequestKind::Elicitation(_) => RequestClass::Elicitation,
            OpenRequestKind::Access(open) => match &open.work {
                AccessWork::File(_) => RequestClass::File(key),
                AccessWork::Run(..) => RequestClass::TerminalCreate(Box::default()),
            },
        };
        note_decision(state, key, &kind, &Decision::Cancelled(by), cx.now);
        call::respond(state, conn, request_id, cancelled(&class), cx);
    }
}

/// Answers all requests of a session that is being removed.
pub(in crate::core) fn clear_session(state: &mut State, key: SessionKey, cx: &mut Cx) {
    cancel_all(state, key, Decider::SessionClosed, cx);
    let waits = state
        .sessions
        .get_mut(&key)
        .map(|session| std::mem::take(&mut session.terminal_waits))
        .unwrap_or_default();
    for (conn, request_id, _) in waits {
        call::respond(state, conn, request_id, cancelled(&RequestClass::TerminalWait), cx);
    }
}

/// Removes all requests of a connection, which cannot or need not be answered.
pub(in crate::core) fn drop_all(state: &mut State, conn: ConnId, by: Decider, now: Instant) {
    let mut dropped = Vec::new();
    for session in state.sessions.values_mut() {
        session.terminal_waits.retain(|(of, _, _)| *of != conn);
        let (of_conn, others): (Vec<_>, _) =
            std::mem::take(&mut session.requests).into_iter().partition(|open| open.conn == conn);
        session.requests = Vec::into(others);
        dropped.extend(of_conn.into_iter().map(|open| (session.key, open.kind)));
    }
    for (key, kind) in dropped {
        note_decision(state, key, &kind, &Decision::Cancelled(by), now);
    }
}

/// Answers all requests of a connection that is being released.
pub(in crate::core) fn answer_all(state: &mut State, conn: ConnId, by: Decider, cx: &mut Cx) {
    drop_all(state, conn, by, cx.now);
    if let Some(open) = state.conns.get_mut(&conn) {
        open.files.clear();
    }
    let open: Vec<(RequestId, RequestClass)> = state
        .conns
        .get(&conn)
        .map(|conn| {
            conn.open_requests.iter().map(|(request_id, class)| (*request_id, class.clone())).collect()
        })
        .unwrap_or_default();
    for (request_id, class) in open {
        call::respond(state, conn, request_id, unavailable_response(&class), cx);
    }
}

/// Answers an open request as the user decided.
pub(super) fn answer_by_user(
    state: &mut State,
    request_id: RequestId,
    answer: UserAnswer,
    cx: &mut Cx,
) -> Result<(), &'static str> {
    let (key, OpenRequest { conn, kind, .. }) = state.open_request(request_id).ok_or(CLOSED)?;
    let (key, conn, kind) = (key, *conn, kind.clone());
    late::note_activity(state, key, cx.now);
    let position = match &answer {
        UserAnswer::Option(position) => Some(*position),
        UserAnswer::Values(_) if !matches!(kind, OpenRequestKind::Elicitation(_)) => {
            return Err(NO_SUCH_ANSWER);
        }
        UserAnswer::Values(_) | UserAnswer::Decline | UserAnswer::Dismiss => None,
    };
    match kind {
        OpenRequestKind::Permission { request, tool } => {
            answer_permission(state, (conn, request_id), key, request, tool, position, cx)
        }
        OpenRequestKind::Access(open) => answer_access(state, (conn, request_id), key, &open, position, cx),
        OpenRequestKind::Elicitation(request) => {
            elicitations::answer_by_user(state, (conn, request_id), key, &request, answer, cx)
        }
    }
}

/// `None` rejects: with the agent's option that rejects once if there is one, otherwise the request is cancelled.
fn answer_permission(
    state: &mut State,
    (conn, request_id): (ConnId, RequestId),
    key: SessionKey,
    request: PermissionRequest,
    tool: ItemId,
    position: Option<usize>,
    cx: &mut Cx,
) -> Result<(), &'static str> {
    let chosen = match position {
        Some(_) if request.options.is_empty() => {
            return Err("The agent offers no options. The request can only be rejected.");
        }
        Some(position) if request.is_ambiguous(position) => {
            return Err("This option cannot be sent: duplicate id.");
        }
        Some(position) => Some(request.options.get(position).ok_or(NO_SUCH_ANSWER)?),
        None => request.refusal().and_then(|position| request.options.get(position)),
    };
    let (decision, reply) = match chosen {
        Some(chosen) => (
            Decision::Chosen {
                name: chosen.name.clone(),
                kind: Some(chosen.kind),
                is_allow: chosen.kind.is_allow(),
                rule: None,
            },
            Response::Selected(chosen.id.clone()),
        ),
        None => (Decision::Cancelled(Decider::User), Response::PermissionCancelled),
    };
    take(state, conn, request_id);
    if let Some(chosen) = chosen.filter(|chosen| chosen.kind.is_allow()) {
        let is_always = chosen.kind == PermissionKind::AllowAlways;
        let session = state.sessions.get(&key);
        if let Some(call) = session.and_then(|session| session.tool_call(tool).cloned()) {
            policy::note_approval(state, key, conn, &call, is_always);
        }
    }
    note_decision(state, key, &OpenRequestKind::Permission { request, tool }, &decision, cx.now);
    call::respond(state, conn, request_id, reply, cx);
    Ok(())
}

fn answer_access(
    state: &mut State,
    (conn, request_id): (ConnId, RequestId),
    key: SessionKey,
    open: &AccessRequest,
    position: Option<usize>,
    cx: &mut Cx,
) -> Result<(), &'static str> {
    let choice = match position {
        Some(position) => *open.choices().get(position).ok_or(NO_SUCH_ANSWER)?,
        None => AccessChoice::Refuse,
    };
    take(state, conn, request_id);
    callbacks::on_answered(state, (conn, request_id), open, choice, Decider::User, cx);
    if matches!(choice, AccessChoice::Longer(_) | AccessChoice::AllCommands) {
        answer_same(state, key, conn, open, choice, cx);
    }
    Ok(())
}

/// Answers other waiting requests that the new grant covers.
fn answer_same(
    state: &mut State,
    key: SessionKey,
    conn: ConnId,
    granted: &AccessRequest,
    choice: AccessChoice,
    cx: &mut Cx,
) {
    let is_same = |open: &&OpenRequest| match &open.kind {
        OpenRequestKind::Access(other) if open.conn == conn => match choice {
            AccessChoice::AllCommands => other.offers_all_commands,
            _ => granted.grant.is_some() && other.grant == granted.grant,
        },
        _ => false,
    };
    let Some(session) = state.sessions.get(&key) else { return };
    let same: Vec<OpenRequest> = session.requests.iter().filter(is_same).cloned().collect();
    for OpenRequest { request_id, kind, .. } in same {
        if let OpenRequestKind::Access(open) = kind {
            take(state, conn, request_id);
            callbacks::on_answered(state, (conn, request_id), &open, choice, Decider::Rule, cx);
        }
    }
}
