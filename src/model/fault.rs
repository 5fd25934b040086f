//! Classes of failure, so that each is told with its own remedy.
//!
//! Duty: the classes, the heading of each, and what to do next; what a second sending may do. Not its duty: which error
//! is of which class (`app`).
//! A failed tool is one more class; it is told at its call, and the agent goes on by itself.

use serde::{Deserialize, Serialize};

/// Said wherever a prompt is offered to be sent again whose answer was lost, not the prompt.
pub const MAY_RUN_TWICE: &str = "The prompt may have been received; resending may run it twice.";

/// Which part failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The way to the agent: a pipe, a socket, a server, or no answer at all.
    Line,
    /// What the agent said is not the protocol.
    Protocol,
    /// The agent refused, or what it needs is missing.
    #[default]
    Agent,
    /// The agent or the service behind it is busy; the same may succeed a little later.
    Busy,
    /// The agent has lost the session; it is opened again, and the prompt sent once more.
    Gone,
    /// Nothing was sent, because the agent cannot take it.
    Unsent,
}

impl FaultKind {
    /// All classes.
    pub const ALL: [Self; 6] =
        [Self::Line, Self::Protocol, Self::Agent, Self::Busy, Self::Gone, Self::Unsent];

    /// What failed, as a heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Line => "The connection failed",
            Self::Protocol => "Invalid response from the agent",
            Self::Agent | Self::Busy => "The agent reported an error",
            Self::Gone => "The agent no longer has this session",
            Self::Unsent => "The prompt was not sent",
        }
    }

    /// What to do after a turn that failed so.
    pub fn next(self) -> &'static str {
        match self {
            Self::Line => MAY_RUN_TWICE,
            Self::Protocol => "If the error persists, restart the agent.",
            Self::Agent => "Fix the prompt or the agent's setup. See the protocol log for details.",
            Self::Busy => "The error may be temporary. Resend the prompt.",
            Self::Gone => "The prompt is resent when the session is reopened.",
            Self::Unsent => "Edit and resend the prompt. It is also in the prompt history.",
        }
    }

    /// Whether it is what an error is taken for of which nothing is known.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether sending the same prompt once more may help.
    pub fn may_pass(self) -> bool {
        matches!(self, Self::Line | Self::Busy)
    }
}
