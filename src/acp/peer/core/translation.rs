//! Puts the translator of an agent with a dialect between the connection and the messages of the protocol.

use super::Peer;
use crate::acp::dialects::{self, Dialect, Translation};
use crate::acp::envelope::{self, Message};
use crate::model::{AgentInfo, AnomalyKind, CallError};

impl Peer {
    /// Decodes the response to `initialize`, and adds what is known of the system.
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

    pub fn on_message(&mut self, message: Message<'_>, text: &str) {
        let mut is_translated = false;
        self.translate(|dialect, out| is_translated = dialect.receive(&message, text, out));
        if !is_translated {
            self.on_translated(message, text);
        }
    }

    /// Has the translator do something, and handles what it passes on.
    pub fn translate(&mut self, work: impl FnOnce(&mut dyn Dialect, &mut Translation)) {
        let mut translation = Translation::new(self.now);
        work(self.dialect.as_mut(), &mut translation);
        for (id, (method, params)) in translation.to_agent {
            self.writer.request(id, method, &params);
        }
        for problem in translation.problems {
            self.anomaly(AnomalyKind::BadMessage, problem.to_owned());
        }
        for text in translation.to_parlor {
            if let Ok(message) = envelope::read(&text) {
                self.on_translated(message, &text);
            }
        }
    }

    pub fn notify(&self, message: Option<dialects::Method>) {
        if let Some((method, params)) = message {
            self.writer.notify(method, &params);
        }
    }
}
