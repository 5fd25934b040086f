//! Timing of the first and last messages of a connection.
//!
//! Decides when `initialize` is sent to an agent that sends first, when it is retried, and how long an agent has
//! after a `shutdown` request. `core` writes the messages.
//! Invariant: every wait has a deadline.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Send `initialize` for the first time; until then, parlor waits for the agent's first message.
    Greeting,
    /// Send `initialize` again: without a message for this long, the first one may have been lost.
    Again,
    /// End the connection: the agent does not shut down.
    End,
}

impl Due {
    fn delay(self) -> Duration {
        match self {
            Self::Greeting => Duration::from_millis(750),
            Self::Again => Duration::from_secs(5),
            Self::End => Duration::from_secs(1),
        }
    }
}

#[derive(Debug, Default)]
pub struct Handshake {
    pub waiting: Option<(Due, Instant)>,
}

impl Handshake {
    pub fn schedule(&mut self, due: Due, now: Instant) {
        self.waiting = Some((due, now + due.delay()));
    }

    /// Handles a message of the agent; returns the action that is due immediately.
    pub fn on_message(&mut self) -> Option<Due> {
        let (due, _) = self.waiting.take_if(|(due, _)| *due != Due::End)?;
        (due == Due::Greeting).then_some(due)
    }

    pub fn take_due(&mut self, now: Instant) -> Option<Due> {
        self.waiting.take_if(|(_, at)| *at <= now).map(|(due, _)| due)
    }
}
