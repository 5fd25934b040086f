//! Timing of the first and last messages of a connection.
//!
//! Decides when `initialize` is sent to an agent that sends first, when it is retried, and how long an agent has
//! after a `shutdown` request. `core` writes the messages.
//! Invariant: every wait has a deadline.

use std::time::Duration;

use tokio::time::Instant;

/// How long parlor waits for the agent's first message.
const FIRST_WORD: Duration = Duration::from_millis(750);
/// Without a message for this long, `initialize` is sent again, because the first one may have been lost.
const SILENCE: Duration = Duration::from_secs(5);
/// How long parlor waits for the agent to shut down.
const SHUTDOWN: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Send `initialize` for the first time.
    Greeting,
    /// Send `initialize` again.
    Again,
    End,
}

/// The action that is scheduled.
#[derive(Debug, Default)]
pub struct Handshake {
    waiting: Option<(Due, Instant)>,
}

impl Handshake {
    /// Schedules `initialize` for an agent that sends the first message.
    pub fn wait_for_message(&mut self, now: Instant) {
        self.waiting = Some((Due::Greeting, now + FIRST_WORD));
    }

    /// Schedules a second `initialize` for an agent that may have missed the first one.
    pub fn wait_for_response(&mut self, now: Instant) {
        self.waiting = Some((Due::Again, now + SILENCE));
    }

    /// Schedules the end after a `shutdown` request.
    pub fn wait_for_end(&mut self, now: Instant) {
        self.waiting = Some((Due::End, now + SHUTDOWN));
    }

    /// Handles a message of the agent; returns the action that is due immediately.
    pub fn on_message(&mut self) -> Option<Due> {
        match self.waiting {
            Some((Due::Greeting, _)) => self.waiting.take().map(|(due, _)| due),
            Some((Due::Again, _)) => {
                self.waiting = None;
                None
            }
            _ => None,
        }
    }

    /// Cancels the scheduled action.
    pub fn forget(&mut self) {
        self.waiting = None;
    }

    /// When the scheduled action is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.map(|(_, at)| at)
    }

    pub fn take_due(&mut self, now: Instant) -> Option<Due> {
        self.waiting.take_if(|(_, at)| *at <= now).map(|(due, _)| due)
    }
}
