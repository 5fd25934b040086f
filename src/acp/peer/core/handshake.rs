//! The first and last messages of a connection: `initialize`, its retries, and `shutdown`.
//!
//! Invariant: every wait has a deadline.

use std::time::Duration;

use tokio::time::Instant;

use super::{Peer, Phase, excerpt};
use crate::acp::codec::decode_error;
use crate::acp::codec::initialize::required_version;
use crate::acp::dialects;
use crate::acp::transport::{UNDELIVERED, UNSENT};
use crate::model::{AgentEvent, AgentInfo, AnomalyKind, CallError, RpcError};

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

    /// A message has arrived: sends `initialize` if it still waits, and does not repeat it.
    pub fn greet_if_due(&mut self, now: Instant) {
        if let Some((Due::Greeting, _)) = self.due.take_if(|(due, _)| *due != Due::End) {
            self.greet(now);
        }
    }

    pub fn greet(&mut self, now: Instant) {
        self.initialize(0, now);
        if self.dialect.speaks_first() {
            self.schedule(Due::Again, now);
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
                let error = decode_error(error);
                let theirs = required_version(&error).filter(|_| self.spec.wire.protocol < 2);
                let refused = theirs.map(|theirs| CallError::OtherVersion { theirs });
                let is_final = refused.is_some() && error.code == RpcError::UNSUPPORTED_VERSION;
                self.refused = self.refused.take().or(refused);
                if !is_final && is_about_form(&error) && self.initialize(self.attempt.saturating_add(1), now)
                {
                    let why = excerpt(&error.message);
                    let text = format!("Retried initialize in another form after an error: {why}");
                    self.anomaly(AnomalyKind::Dialect, text);
                    return;
                }
                self.refused.take().unwrap_or_else(|| call_error(error))
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

    pub fn read_info(&mut self, result: &str) -> Result<AgentInfo, CallError> {
        if self.dialect.is_official()
            && let Some(dialect) = dialects::recognized(result, &self.spec)
        {
            self.dialect = dialect;
        }
        let translated = self.dialect.initialized(result);
        let mut info = self.codec.on_initialize(translated.as_deref().unwrap_or(result))?;
        self.dialect.describe(&mut info);
        self.codec.can = info.capabilities;
        Ok(info)
    }

    /// The form of `initialize` with this number. An own form of the agent is first; if it is unknown, `OpenOxide`'s is last.
    pub fn initialize_form(&self, attempt: u8) -> Option<(&'static str, String)> {
        let name = self.dialect.client_name();
        let official = |attempt| self.codec.initialize(attempt, name);
        match (self.dialect.initialize(), attempt.checked_sub(1)) {
            (Some(own), None) => Some(own),
            (Some(_), Some(attempt)) => official(attempt),
            (None, previous) => official(attempt).or_else(|| {
                let is_next = self.dialect.is_official() && official(previous?).is_some();
                (is_next && !self.spec.wire.is_strict).then(dialects::openoxide::initialize)
            }),
        }
    }

    pub fn fail(&mut self, error: CallError) {
        self.events.push(AgentEvent::InitializeFailed(error.clone()));
        self.drop_waiting(&error);
        self.phase = Phase::Failed(error);
    }
}

/// Source: JSON-RPC 2.0, error codes.
pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;

/// Whether another form of `initialize` may help.
pub fn is_about_form(error: &RpcError) -> bool {
    matches!(
        error.code,
        RpcError::UNSUPPORTED_VERSION
            | PARSE_ERROR
            | INVALID_REQUEST
            | RpcError::METHOD_NOT_FOUND
            | RpcError::INVALID_PARAMS
    ) || error.message.to_ascii_lowercase().contains("version")
}

/// The error of a call: from the agent, or from the transport in its place.
pub fn call_error(error: RpcError) -> CallError {
    match error.data.as_ref().map(|data| &*data.0) {
        Some(UNDELIVERED) => CallError::Undelivered { error: error.message },
        Some(UNSENT) => CallError::NotSent { error: error.message },
        _ => CallError::Agent(error),
    }
}
