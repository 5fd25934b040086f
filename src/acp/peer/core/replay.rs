//! Replays a protocol log through a `Peer`: nothing is sent.
//!
//! A request of the app is matched with the same request in the log, whose id may differ.

use tokio::time::Instant;

use super::{Peer, Phase};
use crate::acp::codec::RequestKind;
use crate::acp::peer::calls::Pending;
use crate::model::{AgentEvent, Call, RequestId, SessionId};

impl Peer {
    /// Starts like [`Peer::start`], but without a link, so that nothing is written.
    pub fn start_replay(&mut self, now: Instant) {
        self.now = now;
        self.events.push(AgentEvent::Started { pid: None });
        self.begin_handshake(now);
    }

    /// The id of a request of the app with the same method as a logged one, and if possible the same session.
    pub fn find_logged_request(
        &mut self,
        method: &str,
        session: Option<&str>,
        is_free: impl Fn(u64) -> bool,
        now: Instant,
    ) -> Option<u64> {
        if method == "initialize" && matches!(self.phase, Phase::Starting) && self.calls.first_id().is_none()
        {
            self.due = None;
            self.greet(now);
        }
        let same = |other: &str| other == method || reopens(other) && reopens(method);
        let free = || self.calls.waiting().filter(|(own, pending)| is_free(*own) && same(pending.method));
        let in_session = free().find(|(_, pending)| session.is_some() && session_of(pending) == session);
        in_session.or_else(|| free().next()).map(|(own, _)| own)
    }

    pub fn waits_for(&self, id: u64, method: Option<&str>) -> bool {
        let is_it = |pending: &Pending| method.is_none_or(|method| pending.method == method);
        self.calls.waiting().any(|(own, pending)| own == id && is_it(pending))
    }

    pub fn open_request(&self, wire_id: &str) -> Option<(RequestId, RequestKind)> {
        self.requests.find(wire_id)
    }

    pub fn prompt_session(&self, id: u64) -> Option<SessionId> {
        let (_, pending) = self.calls.waiting().find(|(own, _)| *own == id)?;
        match &pending.call {
            Some((_, Call::Prompt(session, _))) => Some(session.clone()),
            _ => None,
        }
    }
}

/// Whether a method opens an existing session. parlor selects one by what it has saved, which a replay does not have.
fn reopens(method: &str) -> bool {
    matches!(method, "session/load" | "session/resume" | "unstable_resumeSession")
}

fn session_of(pending: &Pending) -> Option<&str> {
    match &pending.call.as_ref()?.1 {
        Call::Prompt(session, _)
        | Call::LoadSession(session, _)
        | Call::ResumeSession(session, _)
        | Call::SetMode(session, _)
        | Call::SetModel(session, _)
        | Call::SetOption(session, ..)
        | Call::ForkSession(session, ..) => Some(session.as_str()),
        _ => None,
    }
}
