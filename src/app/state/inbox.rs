//! The inbox: everything that waits for the user, in all tabs.
//!
//! Requests of agents, sign-ins, questions of parlor, failures, and turns that ended in a tab that was not active;
//! oldest first. It is computed from the sessions on demand. `dialogs::inbox` handles selection and keys.

use std::time::Instant;

use crate::model::{ConnId, RequestId, SessionKey};

use super::tab;
use crate::app::{SessionPhase, State, UnseenKind};

/// An entry of the inbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    pub key: SessionKey,
    pub since: Instant,
    pub what: WaitingFor,
}

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitingFor {
    Ask(ConnId, RequestId),
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

/// All entries, oldest first.
pub fn waiting(state: &State) -> Vec<Waiting> {
    let mut all = Vec::new();
    for session in tab::tabs(state) {
        let mut add = |since, what| all.push(Waiting { key: session.key, since, what });
        for open in &session.requests {
            add(open.since, WaitingFor::Ask(open.conn, open.request_id));
        }
        if let Some(since) =
            session.start.sign_in_since().filter(|_| session.phase == SessionPhase::NeedsSignIn)
        {
            add(since, WaitingFor::SignIn);
        }
        if let Some((title, since)) = tab::shelved_dialog(session) {
            add(since, WaitingFor::Question(title.to_owned()));
        }
        if let Some(unseen) = &session.unseen {
            let what = match &unseen.what {
                UnseenKind::Finished => WaitingFor::Result,
                UnseenKind::Stopped(why) => WaitingFor::Stopped(why.clone()),
                UnseenKind::Failed(why) => WaitingFor::Failure(why.clone()),
            };
            add(unseen.since, what);
        }
    }
    all.sort_by_key(|waiting| waiting.since);
    all
}

/// Number of entries of the tabs that are not active: blocking ones and others.
pub fn count_after(state: &State) -> (usize, usize) {
    let front = tab::front(state);
    let after = waiting(state).into_iter().filter(|waiting| waiting.key != front);
    after.fold((0, 0), |(blocking, others), waiting| {
        if waiting.what.is_blocking() { (blocking + 1, others) } else { (blocking, others + 1) }
    })
}
