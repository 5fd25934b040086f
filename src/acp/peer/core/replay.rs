//! Replays a protocol log through a `Peer`: requests are matched and messages decoded as on a live connection, but
//! nothing is sent.
//!
//! A request of the app waits until the log has the same request, and then gets its id.

use tokio::time::Instant;

use super::{Peer, Phase};
use crate::acp::codec::RequestKind;
use crate::acp::peer::calls::Pending;
use crate::model::{AgentEvent, Call, RequestId, SessionId};

/// Ids above this belong to requests that are not matched with a logged one yet.
const FIRST_TEMPORARY_ID: u64 = 1 << 40;

impl Peer {
    /// Starts like [`Peer::start`], but without a link, so that nothing is written.
    pub fn start_replay(&mut self, now: Instant) {
        self.now = now;
        self.calls.number_from(FIRST_TEMPORARY_ID);
        self.events.push(AgentEvent::Started { pid: None });
        self.begin_handshake(now);
    }

    /// Assigns the id of a logged request to the app's one with the same method and session; false if there is none.
    pub fn match_logged_request(
        &mut self,
        id: u64,
        method: &str,
        session: Option<&str>,
        now: Instant,
    ) -> bool {
        if method == "initialize" && matches!(self.phase, Phase::Starting) && self.calls.first_id().is_none()
        {
            self.handshake.forget();
            self.greet(now);
        }
        let same = |other: &str| other == method || reopens(other) && reopens(method);
        let unmatched = || {
            self.calls.waiting().filter(|(own, pending)| *own > FIRST_TEMPORARY_ID && same(pending.method))
        };
        let in_session = unmatched().find(|(_, pending)| session.is_some() && session_of(pending) == session);
        match in_session.or_else(|| unmatched().next()).map(|(own, _)| own) {
            Some(own) => {
                self.calls.renumber(own, id);
                if let Some(dialect) = &mut self.dialect {
                    dialect.renumber(own, id);
                }
                true
            }
            // The log may contain `initialize` twice with the same id.
            None => self.calls.waiting().any(|(own, pending)| own == id && pending.method == method),
        }
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
