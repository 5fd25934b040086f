//! Detects the start and the end of turns.
//!
//! A turn ends with the response to its prompt or, in version 2, with a state: there the response only says that the
//! prompt was accepted, and the agent may also work without a prompt.
//! Invariant: in version 2 a state counts once; its repetition changes nothing.

use super::Peer;
use crate::acp::peer::calls::{CONFIRMED_TIME, Pending, REPEATED_TIME};
use crate::model::{AgentEvent, Call, CallError, Reply, SessionId, StopReason};

/// Maximum number of sessions whose state is remembered; others are taken to be idle.
const MAX_BUSY: usize = 1024;

impl Peer {
    pub fn on_busy(&mut self, session: SessionId) {
        self.reports_work = true;
        let is_news = self.busy.len() < MAX_BUSY && self.busy.insert(session.clone());
        let opens = |call: &Call| matches!(call, Call::LoadSession(id, _) | Call::ResumeSession(id, _) if *id == session);
        if self.calls.find_prompt(&session).is_some() {
            self.calls.note_work(&session);
        } else if is_news && self.calls.find(|_, call| opens(call)).is_none() {
            self.events.push(AgentEvent::TurnBegan(session));
        }
    }

    /// The agent does not work. Before a prompt was accepted this is about earlier work, as it is if it did not work
    /// before; but some agents only report the end, or accept a prompt at the end of its turn.
    pub fn on_idle(&mut self, session: SessionId, outcome: Result<Reply, CallError>) {
        let was_busy = self.busy.remove(&session);
        let reports_work = self.reports_work;
        let prompt = self.calls.prompt(&session);
        let is_end = prompt.is_some_and(|prompt| {
            if was_busy { prompt.is_answered } else { !reports_work && prompt.has_output }
        });
        if is_end {
            self.end_turn(&session, outcome);
        } else if was_busy && prompt.is_some_and(|prompt| prompt.has_news) {
            self.calls.presume_idle(&session, (Box::new(outcome), CONFIRMED_TIME), self.now);
        } else if was_busy {
            self.events.push(AgentEvent::TurnEnded(session, outcome));
        } else {
            let time = if reports_work { REPEATED_TIME } else { CONFIRMED_TIME };
            self.calls.presume_idle(&session, (Box::new(outcome), time), self.now);
        }
    }

    fn end_turn(&mut self, session: &SessionId, outcome: Result<Reply, CallError>) {
        if let Some(Pending { call: Some((tag, _)), .. }) = self.calls.end_prompt(session) {
            self.events.push(AgentEvent::Replied(tag, outcome));
        }
    }

    /// A call has its outcome. If it has ended a session, the end of the turn may be lost with the session.
    pub fn on_closed(&mut self, call: &Call, reply: &Result<Reply, CallError>) {
        let (Call::CloseSession(session) | Call::DeleteSession(session)) = call else { return };
        let outcome = match reply {
            Ok(_) => Ok(Reply::TurnEnded { reason: StopReason::Cancelled, usage: None }),
            Err(error @ (CallError::Undelivered { .. } | CallError::TimedOut(_))) => Err(error.clone()),
            // The session goes on.
            Err(_) => return,
        };
        self.busy.remove(session);
        self.end_turn(session, outcome);
    }

    /// A prompt has failed. Returns whether the agent works all the same, on that prompt or of its own accord.
    pub fn works_on(&mut self, session: &SessionId, error: &CallError) -> bool {
        if matches!(error, CallError::Undelivered { .. } | CallError::NotSent { .. }) {
            return self.busy.contains(session);
        }
        // What the agent reported of a rejected prompt is not about the next one.
        self.busy.remove(session);
        false
    }
}
