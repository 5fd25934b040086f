//! Timing of the first and last messages of a connection.
//!
//! Decides when `initialize` is sent to an agent that sends first, when it is retried, and how long an agent has
//! after a `shutdown` request. `core` writes the messages.
//! Invariant: every wait has a deadline.

use std::time::Duration;

use tokio::time::Instant;

/// How long the agent's first word is waited for.
const FIRST_WORD: Duration = Duration::from_millis(750);
/// Without any answer for so long, `initialize` is written once more: it may have come too early.
const SILENCE: Duration = Duration::from_secs(5);
/// How long the agent has to shut down.
const SHUTDOWN: Duration = Duration::from_secs(1);

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// `initialize`, for the first time.
    Greeting,
    /// `initialize` once more.
    Again,
    End,
}

/// What is waited for.
#[derive(Debug, Default)]
pub struct Handshake {
    waiting: Option<(Due, Instant)>,
}

impl Handshake {
    /// The agent runs and speaks first.
    pub fn wait_for_word(&mut self, now: Instant) {
        self.waiting = Some((Due::Greeting, now + FIRST_WORD));
    }

    /// `initialize` was written to an agent that may have been deaf.
    pub fn wait_for_answer(&mut self, now: Instant) {
        self.waiting = Some((Due::Again, now + SILENCE));
    }

    /// A `shutdown` request was written.
    pub fn wait_for_end(&mut self, now: Instant) {
        self.waiting = Some((Due::End, now + SHUTDOWN));
    }

    /// The agent said something: what is due at once.
    pub fn on_word(&mut self) -> Option<Due> {
        match self.waiting {
            Some((Due::Greeting, _)) => self.waiting.take().map(|(due, _)| due),
            Some((Due::Again, _)) => {
                self.waiting = None;
                None
            }
            _ => None,
        }
    }

    /// The end of the link makes all waiting idle.
    pub fn forget(&mut self) {
        self.waiting = None;
    }

    /// When something is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.map(|(_, at)| at)
    }

    /// What is due now.
    pub fn take_due(&mut self, now: Instant) -> Option<Due> {
        self.waiting.take_if(|(_, at)| *at <= now).map(|(due, _)| due)
    }
}
