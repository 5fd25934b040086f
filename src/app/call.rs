//! Calls to an agent, and small things that all parts of the agent's side need.
//!
//! Duty: gives each call its number and remembers it until its reply, so that a reply is used once; the
//! short message of the status line; notices in a transcript.
//! Invariant: nothing is sent to a connection that is not ready.

use std::time::Duration;

use crate::model::{AgentCommand, Call, CallTag, ConnId, Purpose, Record, SessionId, SessionKey, Severity};

use super::{ConnPhase, Effect, ItemBody, State, TimerId, recorder, restore};

/// How long the short message of the status line stays.
const FLASH_TIME: Duration = Duration::from_secs(6);

/// Calls the agent; `None` if it cannot be called now.
pub(super) fn call(
    state: &mut State,
    conn: ConnId,
    purpose: Purpose,
    call: Call,
    fx: &mut Vec<Effect>,
) -> Option<u64> {
    let open = state.conns.get_mut(&conn).filter(|conn| conn.phase == ConnPhase::Ready)?;
    state.next.call += 1;
    let number = state.next.call;
    let tag = CallTag { number, purpose };
    open.open_calls.insert(number, tag.clone());
    fx.push(Effect::Send(conn, AgentCommand::Call(tag, call)));
    Some(number)
}

/// Shows a short message in the status line for a while.
pub(super) fn flash(state: &mut State, text: impl Into<String>, fx: &mut Vec<Effect>) {
    state.flash = Some(text.into());
    fx.push(Effect::Timer(TimerId::Flash, FLASH_TIME));
}

/// Puts a word to the user into a transcript.
pub(super) fn notice(
    state: &mut State,
    key: SessionKey,
    severity: Severity,
    title: impl Into<String>,
    detail: Option<String>,
) {
    if let Some(session) = state.sessions.get_mut(&key) {
        let title = title.into();
        recorder::note(session, Record::Notice { severity, title: title.clone(), detail: detail.clone() });
        let body = ItemBody::Notice { severity, title, detail };
        restore::push_line(session, body);
    }
}

/// The session that the agent of this connection calls by this id.
pub(super) fn session_by_id(state: &State, conn: ConnId, id: &SessionId) -> Option<SessionKey> {
    state
        .sessions
        .values()
        .find(|session| session.conn == Some(conn) && session.id.as_ref() == Some(id))
        .map(|session| session.key)
}

/// The sessions of a connection; `with_children`: its subagents' too.
pub(super) fn sessions_of(state: &State, conn: ConnId, with_children: bool) -> Vec<SessionKey> {
    state
        .sessions
        .values()
        .filter(|session| session.conn == Some(conn) && (with_children || session.parent.is_none()))
        .map(|session| session.key)
        .collect()
}

/// The session that a subagent's session belongs to in the end; the session itself if it is nobody's child.
pub(super) fn root_of(state: &State, key: SessionKey) -> SessionKey {
    let mut root = key;
    // Parents are older than their children, so the keys fall and the walk ends.
    while let Some(parent) = state.sessions.get(&root).and_then(|session| session.parent)
        && parent < root
    {
        root = parent;
    }
    root
}
