//! Calls to agents, and helpers shared by the modules of this layer.
//!
//! Assigns numbers to calls and remembers them until their response, so that a response is used once; sets messages in
//! the status line; adds notices to transcripts.
//! Invariant: calls are sent only to a connection that is ready.

use std::time::Duration;

use crate::model::{
    AgentCommand, Call, CallTag, ConnId, NoticeKind, Purpose, SessionId, SessionKey, Severity,
};

use crate::app::session::record;
use crate::app::state::FlashEnd;
use crate::app::{ConnPhase, Cx, Effect, State, TimerId};

/// Time for which a message is shown in the status line.
const FLASH_TIME: Duration = Duration::from_secs(6);

/// Calls the agent; `None` if it is not ready.
pub(in crate::app) fn call(
    state: &mut State,
    conn: ConnId,
    purpose: Purpose,
    call: Call,
    cx: &mut Cx,
) -> Option<u64> {
    let open = state.conns.get_mut(&conn).filter(|conn| conn.phase == ConnPhase::Ready)?;
    state.next.call += 1;
    let number = state.next.call;
    let tag = CallTag { number, purpose };
    open.open_calls.insert(number, tag.clone());
    cx.effects.push(Effect::Send(conn, AgentCommand::Call(tag, call)));
    Some(number)
}

/// Shows a short message in the status line for a while.
pub(in crate::app) fn flash(state: &mut State, text: impl Into<String>, cx: &mut Cx) {
    flash_until(state, text, FlashEnd::Time, cx);
}

/// The same for a message that something makes untrue.
pub(in crate::app) fn flash_until(state: &mut State, text: impl Into<String>, end: FlashEnd, cx: &mut Cx) {
    state.set_flash(text.into(), end);
    cx.effects.push(Effect::Timer(TimerId::Flash, FLASH_TIME));
}

pub(in crate::app) fn notice(
    state: &mut State,
    key: SessionKey,
    severity: Severity,
    title: impl Into<String>,
    detail: Option<String>,
) {
    if let Some(session) = state.sessions.get_mut(&key) {
        record::notice(session, NoticeKind::Other, severity, title.into(), detail);
    }
}

/// Closes a session of the agent, if the agent supports that.
pub(in crate::app) fn close_session(state: &mut State, agent: ConnId, id: SessionId, cx: &mut Cx) {
    if state.conns.get(&agent).is_some_and(|conn| conn.capabilities().can_close) {
        call(state, agent, Purpose::CloseSession(id.clone()), Call::CloseSession(id), cx);
    }
}
