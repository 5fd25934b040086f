//! The first and last messages of a connection: `initialize`, its retries, and `shutdown`.
//!
//! Invariant: every wait has a deadline.

use std::time::Duration;

use tokio::time::Instant;

use super::{Peer, Phase};
use crate::acp::peer::messages::{self, excerpt, is_about_form};
use crate::model::{AgentEvent, AnomalyKind, CallError, RpcError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Send `initialize` for the first time; until then, parlor waits for the agent's first message.
    Greeting,
    /// Send `initialize` again: without a message for this long, the first one may have been lost.
    Again,
    /// End the connection: the agent does not shut down.
    End,
}

impl Peer {
    pub fn schedule(&mut self, due: Due, now: Instant) {
        let delay = match due {
            Due::Greeting => Duration::from_millis(750),
            Due::Again => Duration::from_secs(5),
            Due::End => Duration::from_secs(1),
        };
        self.due = Some((due, now + delay));
    }

    pub fn begin_handshake(&mut self, now: Instant) {
        if self.dialect.speaks_first() {
            self.schedule(Due::Greeting, now);
        } else {
            self.greet(now);
        }
    }

    pub fn greet(&mut self, now: Instant) {
        if self.initialize(0, now) {
            if self.dialect.speaks_first() {
                self.schedule(Due::Again, now);
            }
        } else {
            let error = "initialize is not supported for this agent.".to_owned();
            self.fail(CallError::Malformed { error });
        }
    }

    pub fn on_initialized(&mut self, outcome: Result<&str, &str>) {
        let now = self.now;
        let error = match outcome {
            Ok(result) => match self.read_info(result) {
                Ok(mut info) => {
                    info.last_session = self.last_session.take();
                    self.events.push(AgentEvent::Ready(Box::new(info)));
                    self.phase = Phase::Ready;
                    for command in std::mem::take(&mut self.waiting) {
                        self.write_command(command, now);
                    }
                    return;
                }
                Err(error) => error,
            },
            Err(error) => {
                let error = self.codec.error(error);
                let refused = self.codec.refused_version(&error);
                let is_final = refused.is_some() && error.code == RpcError::UNSUPPORTED_VERSION;
                self.refused = self.refused.take().or(refused);
                if !is_final && is_about_form(&error) && self.initialize(self.attempt.saturating_add(1), now)
                {
                    let why = excerpt(&error.message);
                    let text = format!("Retried initialize in another form after an error: {why}");
                    self.anomaly(AnomalyKind::Dialect, text);
                    return;
                }
                self.refused.take().unwrap_or_else(|| messages::call_error(error))
            }
        };
        self.fail(error);
    }

    /// Sends `initialize` in form `attempt`; `false` if there is no such form.
    fn initialize(&mut self, attempt: u8, now: Instant) -> bool {
        let Some((method, params)) = self.initialize_form(attempt) else { return false };
        let id = self.calls.next_id();
        self.attempt = attempt;
        self.calls.add(id, None, method, now);
        self.writer.request(id, method, &params);
        true
    }

    /// Sends `initialize` again with the same id, for agents that missed the first one.
    pub fn greet_again(&mut self) {
        if let (Some(id), Some((method, params))) = (self.calls.first_id(), self.initialize_form(0))
            && matches!(self.phase, Phase::Starting)
        {
            self.writer.request(id, method, &params);
        }
    }

    pub fn fail(&mut self, error: CallError) {
        self.events.push(AgentEvent::InitializeFailed(error.clone()));
        self.drop_waiting(&error);
        self.phase = Phase::Failed(error);
    }
}
