//! A connection whose messages come from a protocol log: the same tables and decoder, without a link.
//!
//! A request of the app waits until the log has the same request, and then gets its id.

use tokio::time::Instant;

use super::{Asked, Peer, Phase};
use crate::acp::codec::{Quirk, RequestKind};
use crate::model::{AgentEvent, AskId, Call, SessionId};

/// Requests that the log does not have yet get ids from here on.
const UNCLAIMED: u64 = 1 << 40;

impl Peer {
    /// Starts like [`Peer::start`], but without a link, so that nothing is written.
    pub fn start_replay(&mut self, now: Instant) {
        self.now = now;
        self.calls.number_from(UNCLAIMED);
        self.events.push(AgentEvent::Started { pid: None });
        if self.codec.has(Quirk::SpeaksFirst) {
            self.handshake.wait_for_message(now);
        } else {
            self.greet(now);
        }
    }

    /// Assigns the id of a logged request to the app's request with the same method and session. Returns false if there
    /// is none.
    pub fn claim(&mut self, id: u64, method: &str, session: Option<&str>, now: Instant) -> bool {
        if method == "initialize" && matches!(self.phase, Phase::Starting) && self.calls.first_id().is_none()
        {
            self.handshake.forget();
            self.greet(now);
        }
        let same = |own: &str| own == method || reopens(own) && reopens(method);
        let unclaimed =
            || self.calls.waiting().filter(|(own, pending)| *own > UNCLAIMED && same(pending.method));
        let in_session =
            unclaimed().find(|(_, pending)| session.is_some() && session_of(&pending.asked) == session);
        match in_session.or_else(|| unclaimed().next()).map(|(own, _)| own) {
            Some(own) => {
                self.calls.renumber(own, id);
                true
            }
            // `initialize` may be written twice with one id.
            None => self.calls.waiting().any(|(own, pending)| own == id && pending.method == method),
        }
    }

    /// The open request of the agent with this id.
    pub fn open_ask(&self, wire_id: &str) -> Option<(AskId, RequestKind)> {
        self.asks.find(wire_id)
    }

    /// The session of the running prompt with this id.
    pub fn prompt_session(&self, id: u64) -> Option<SessionId> {
        let (_, pending) = self.calls.waiting().find(|(own, _)| *own == id)?;
        match &pending.asked {
            Asked::Call { call: Call::Prompt(session, _), .. } => Some(session.clone()),
            _ => None,
        }
    }
}

/// Whether a method opens an existing session. Which of these methods is called depends on the data of the client.
fn reopens(method: &str) -> bool {
    matches!(method, "session/load" | "session/resume" | "unstable_resumeSession")
}

fn session_of(asked: &Asked) -> Option<&str> {
    let Asked::Call { call, .. } = asked else { return None };
    match call {
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
