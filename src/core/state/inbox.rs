//! The inbox: everything that waits for the user, in all tabs.
//!
//! Requests of agents, sign-ins, questions of parlor, failures, and turns that ended in a tab that was not active;
//! oldest first. It is computed from the sessions on demand. `dialogs::inbox` handles selection and keys.

use std::time::Instant;

use crate::model::SessionKey;

use super::tab;
use super::unseen::{UnseenKind, WaitingFor};
use crate::core::{SessionPhase, State};

/// An entry of the inbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    pub key: SessionKey,
    pub since: Instant,
    pub what: WaitingFor,
}

/// All entries, oldest first.
pub fn waiting(state: &State) -> Vec<Waiting> {
    let mut all = Vec::new();
    for session in tab::tabs(state) {
        let mut add = |since, what| all.push(Waiting { key: session.key, since, what });
        for open in &session.requests {
            add(open.since, WaitingFor::Ask(open.request_id));
        }
        if let Some(since) =
            session.start.sign_in_since().filter(|_| session.phase == SessionPhase::NeedsSignIn)
        {
            add(since, WaitingFor::SignIn);
        }
        if let Some((title, since)) = tab::background_question(state, session.key) {
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
