//! What a tab shows that the user has not seen, or has to answer.

use std::time::Instant;

use crate::model::RequestId;

/// An event that the user has not seen, because another tab is active or the terminal does not have the focus.
#[derive(Debug, Clone, PartialEq)]
pub struct Unseen {
    pub what: UnseenKind,
    pub since: Instant,
}

/// The kind of an unseen event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnseenKind {
    Finished,
    /// A turn stopped early: at a limit, or because the agent refused; the reason as the start of a sentence.
    Stopped(String),
    /// A turn failed, or the agent exited; in one sentence.
    Failed(String),
}

/// The kind of an entry of the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitingFor {
    Ask(RequestId),
    SignIn,
    Question(String),
    Failure(String),
    /// A turn that stopped early; the reason as the start of a sentence.
    Stopped(String),
    Result,
}

impl WaitingFor {
    /// Whether the session cannot continue without the user.
    pub fn is_blocking(&self) -> bool {
        matches!(self, Self::Ask(..) | Self::SignIn | Self::Question(_))
    }
}
