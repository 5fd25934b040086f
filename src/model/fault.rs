//! Kinds of failures of a turn, each with its heading and the next step for the user.
//!
//! `core` classifies the errors. A failed tool call is not a failure of the turn: it is shown at the call, and
//! the turn continues.

use serde::{Deserialize, Serialize};

/// Shown when the user can resend a prompt that the agent may already have received.
pub const MAY_RUN_TWICE: &str = "The prompt may have been received; resending may run it twice.";

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The connection: a pipe, a socket, a server, or a missing response.
    Line,
    /// The agent sent an invalid message.
    Protocol,
    /// The agent returned an error, or something that it needs is missing.
    #[default]
    Agent,
    /// The agent or its service is busy; a retry may succeed.
    Busy,
    /// The agent cannot reach its service.
    Network,
    /// The agent's service does not accept the key or the account.
    Key,
    /// The prompt waits until the user has signed in.
    SignIn,
    Quota,
    /// The agent lost the session; it is reopened, or a new one is started, and the prompt is resent.
    Gone,
    /// The prompt was not sent, because the agent does not support it.
    Unsent,
}

impl FaultKind {
    pub const ALL: [Self; 10] = [
        Self::Line,
        Self::Protocol,
        Self::Agent,
        Self::Busy,
        Self::Network,
        Self::Key,
        Self::SignIn,
        Self::Quota,
        Self::Gone,
        Self::Unsent,
    ];

    pub fn heading(self) -> &'static str {
        match self {
            Self::Line => "The connection failed",
            Self::Protocol => "Invalid response from the agent",
            Self::Agent | Self::Busy => "The agent reported an error",
            Self::Network => "The agent cannot reach its service",
            Self::Key => "The agent's key or account was refused",
            Self::SignIn => "The prompt waits for the sign-in",
            Self::Quota => "The quota of the agent's account is used up",
            Self::Gone => "The agent no longer has this session",
            Self::Unsent => "The prompt was not sent",
        }
    }

    pub fn next(self) -> &'static str {
        match self {
            Self::Line => MAY_RUN_TWICE,
            Self::Protocol => "If the error persists, restart the agent.",
            Self::Agent => "Resend the prompt, or change it.",
            Self::Busy => "The error may be temporary. Resend the prompt.",
            Self::Network => "Check the network and the proxy, then resend the prompt.",
            Self::Key => "Sign in again or correct the key, then resend the prompt.",
            Self::SignIn => "It is sent after the sign-in.",
            Self::Quota => "Select another model or account, or wait, then resend the prompt.",
            Self::Gone => "The session is reopened. The prompt is resent if its history can be restored.",
            Self::Unsent => "Edit and resend the prompt. It is also in the prompt history.",
        }
    }

    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
