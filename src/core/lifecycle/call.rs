//! Calls to agents, and helpers shared by the modules of this layer.
//!
//! Assigns numbers to calls and remembers them until their response, so that a response is used once; responds to
//! requests; sets messages in the status line; adds notices to transcripts.
//! Invariant: calls are sent only to a connection that is ready.

use std::time::Duration;

use crate::model::{
    AgentCommand, Call, CallTag, ConnId, NoticeKind, Purpose, RequestId, Response, SessionId, SessionKey,
    Setting, Severity,
};

use crate::core::session::record;
use crate::core::state::FlashEnd;
use crate::core::{ConnPhase, Cx, Effect, State, TimerId, Wanted};

/// Time for which a message is shown in the status line.
const FLASH_TIME: Duration = Duration::from_secs(6);

/// Time after which prompts no longer wait for the confirmation of a change.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Calls the agent; `None` if it is not ready.
pub(in crate::core) fn call(
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

/// Requests another setting or title of a session from the agent. Returns the number of the call.
pub(in crate::core) fn request_change(
    state: &mut State,
    (conn, id): (ConnId, SessionId),
    key: SessionKey,
    wanted: Wanted,
    cx: &mut Cx,
) -> Option<u64> {
    let (purpose, request) = match wanted.clone() {
        Wanted::Title(title) => (Purpose::SetTitle(key), Call::SetTitle(id, title)),
        Wanted::Setting(Setting::Mode(mode)) => (Purpose::SetMode(key), Call::SetMode(id, mode)),
        Wanted::Setting(Setting::Model(model)) => (Purpose::SetModel(key), Call::SetModel(id, model)),
        Wanted::Setting(Setting::Option(option, value)) => {
            (Purpose::SetOption(key), Call::SetOption(id, option, value))
        }
    };
    let number = call(state, conn, purpose, request, cx)?;
    if matches!(wanted, Wanted::Setting(_)) {
        cx.effects.push(Effect::Timer(TimerId::SettingOverdue(key), ANSWER_LIMIT));
    }
    if let Some(session) = state.sessions.get_mut(&key) {
        session.settings.request(number, wanted);
    }
    Some(number)
}

/// Responds to a request of the agent, unless that was done already. Returns whether it was open.
pub(in crate::core) fn respond(
    state: &mut State,
    conn: ConnId,
    request_id: RequestId,
    response: Response,
    cx: &mut Cx,
) -> bool {
    let open = state.conns.get_mut(&conn);
    let was_open = open.is_some_and(|conn| conn.open_requests.remove(&request_id).is_some());
    if was_open {
        cx.effects.push(Effect::Send(conn, AgentCommand::Respond(request_id, response)));
    }
    was_open
}

/// Shows a short message in the status line for a while.
pub(in crate::core) fn flash(state: &mut State, text: impl Into<String>, cx: &mut Cx) {
    flash_until(state, text, FlashEnd::Time, cx);
}

/// The same for a message that something makes untrue.
pub(in crate::core) fn flash_until(state: &mut State, text: impl Into<String>, end: FlashEnd, cx: &mut Cx) {
    state.set_flash(text.into(), end);
    cx.effects.push(Effect::Timer(TimerId::Flash, FLASH_TIME));
}

pub(crate) fn notice(
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
pub(in crate::core) fn close_session(state: &mut State, agent: ConnId, id: SessionId, cx: &mut Cx) {
    if state.conns.get(&agent).is_some_and(|conn| conn.capabilities().can_close) {
        call(state, agent, Purpose::CloseSession(id.clone()), Call::CloseSession(id), cx);
    }
}
