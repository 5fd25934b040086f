//! What waits for the user in all tabs.
//!
//! Duty: the list, oldest first: requests of agents, sign-ins, questions of parlor's own, failures, and turns that
//! have ended while another tab was in front. It is made of the sessions whenever it is wanted, and kept nowhere.
//! Not its duty: which row is marked and what a key does there (`dialogs::inbox`).

use std::time::Instant;

use crate::model::{AskId, ConnId, SessionKey};

use super::tab;
use crate::app::{SessionPhase, State, UnseenKind};

/// Something that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// The session with the tab.
    pub key: SessionKey,
    /// Since when.
    pub since: Instant,
    pub what: WaitingFor,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitingFor {
    /// An answer to a request of the agent.
    Ask(ConnId, AskId),
    SignIn,
    /// An answer to a question of parlor's own; its heading.
    Question(String),
    /// A look at what failed; in one sentence.
    Failure(String),
    /// A look at what a turn came to that stopped before it was done; why, as the beginning of a sentence.
    Stopped(String),
    /// A look at what a turn came to.
    Result,
}

impl WaitingFor {
    /// Whether nothing goes on before the user has done something.
    pub fn is_blocking(&self) -> bool {
        matches!(self, Self::Ask(..) | Self::SignIn | Self::Question(_))
    }
}

/// All that waits, the oldest first.
pub fn waiting(state: &State) -> Vec<Waiting> {
    let mut all = Vec::new();
    for session in tab::tabs(state) {
        let mut add = |since, what| all.push(Waiting { key: session.key, since, what });
        for open in &session.asks {
            add(open.since, WaitingFor::Ask(open.conn, open.ask));
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

/// How much waits in the tabs behind the front: what nothing goes on without, and what only wants a look.
pub fn count_behind(state: &State) -> (usize, usize) {
    let front = tab::front(state);
    let behind = waiting(state).into_iter().filter(|waiting| waiting.key != front);
    behind.fold((0, 0), |(blocking, others), waiting| {
        if waiting.what.is_blocking() { (blocking + 1, others) } else { (blocking, others + 1) }
    })
}
