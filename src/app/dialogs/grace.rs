//! The grace period: a dialog that opened without a user action must not be answered by a key meant for the prompt.
//!
//! A dialog gets keys after [`QUIET`] without input, and keeps them unless its content changes. While there is a draft,
//! keys go to the composer until the user moves them to the request ([`switch_keys`]).
//!
//! [`unlock`] runs before the action of the same key, and would overwrite the time of the key before it. Therefore it
//! decides whether the dialog gets the key, and stores the decision as the time at which the dialog appeared.

use std::time::{Duration, Instant};

use crate::app::{Modal, State};

use super::first_request;

/// Time without input before a dialog gets keys.
const QUIET: Duration = Duration::from_millis(500);

/// Whether the top layer gets keys now; otherwise they go to the composer. The result is the same before and after
/// [`on_input`](super::on_input) has handled the key.
pub fn takes_input(state: &State, now: Instant) -> bool {
    is_over(state, appeared(state), now)
}

/// Whether a request is shown and the composer has the keys: there is a draft, or the user moved them there.
pub fn is_beside_draft(state: &State) -> bool {
    matches!(appeared(state), Appeared::BesideDraft)
}

/// Whether a request beside a draft may be rejected: there was no input for a while.
fn may_be_rejected(state: &State, now: Instant) -> bool {
    let is_quiet = |since| now.saturating_duration_since(quiet_since(state, since)) >= QUIET;
    is_beside_draft(state) && state.request_view.shown_at.is_some_and(is_quiet)
}

/// Moves the keys from the composer to the shown request, or back. Returns whether there is one.
pub fn switch_keys(state: &mut State) -> bool {
    if !state.modals.is_empty() || first_request(state).is_none() {
        return false;
    }
    let to_request = is_beside_draft(state);
    state.request_view.has_keys = Some(to_request);
    state.user.unlocked = state.request_view.shown_at.filter(|_| to_request);
    true
}

/// Whether keys are typed into a terminal.
fn is_in_terminal(state: &State) -> bool {
    state.active_session().is_some_and(|session| session.typing().is_some())
}

/// Whether the active session has a draft.
pub fn has_draft(state: &State) -> bool {
    state.active_session().is_some_and(|session| !session.draft.is_empty())
}

/// Whether the shown request may be answered now. This differs from [`takes_input`] in the inbox only, which the user
/// opened: there, only answers have to wait.
pub fn takes_answers(state: &State, now: Instant) -> bool {
    is_over(state, may_be_answered_since(state), now)
}

/// When the grace period of the top layer ends without further input; `None` if it has no grace period now.
pub fn takes_input_from(state: &State) -> Option<Instant> {
    match appeared(state) {
        Appeared::ByUser | Appeared::Unseen | Appeared::BesideDraft => None,
        Appeared::At(since) if state.user.unlocked == Some(since) => None,
        Appeared::At(since) => Some(quiet_since(state, since) + QUIET),
    }
}

/// When the shown request accepts answers without further input; `None` if it has no grace period now.
pub fn takes_answers_from(state: &State) -> Option<Instant> {
    match may_be_answered_since(state) {
        Appeared::At(since) if state.user.unlocked != Some(since) => Some(quiet_since(state, since) + QUIET),
        _ => None,
    }
}

fn quiet_since(state: &State, since: Instant) -> Instant {
    state.last_input.map_or(since, |last| last.max(since))
}

fn may_be_answered_since(state: &State) -> Appeared {
    match state.modals.last() {
        Some(Modal::Attention(_)) => state.request_view.shown_at.map_or(Appeared::Unseen, Appeared::At),
        _ => appeared(state),
    }
}

fn is_over(state: &State, appeared: Appeared, now: Instant) -> bool {
    match appeared {
        Appeared::ByUser => true,
        Appeared::Unseen | Appeared::BesideDraft => false,
        Appeared::At(since) => {
            state.user.unlocked == Some(since)
                || now.saturating_duration_since(quiet_since(state, since)) >= QUIET
        }
    }
}

/// Handles a key: a dialog that gets keys keeps them, however fast more of them follow.
pub fn unlock(state: &mut State, now: Instant) {
    if let Appeared::At(since) = may_be_answered_since(state)
        && takes_answers(state, now)
    {
        state.user.unlocked = Some(since);
    }
    state.user.may_reject = may_be_rejected(state, now);
    state.last_input = Some(now);
}

/// Notes when dialogs and requests appeared.
pub fn stamp(state: &mut State, now: Instant) {
    let is_covered = !matches!(state.modals.last(), None | Some(Modal::Attention(_)));
    if let Some(Modal::Picker(picker)) = state.modals.last_mut()
        && picker.is_by_itself
    {
        picker.shown_at.get_or_insert(now);
    }
    if is_covered {
        // The grace period restarts when the dialog above it closes.
        state.request_view.shown_at = None;
    } else if state.request_view.request_id.is_some() {
        state.request_view.shown_at.get_or_insert(now);
    }
}

/// How the top layer appeared.
#[derive(Clone, Copy)]
enum Appeared {
    /// The user opened it.
    ByUser,
    /// Without a user action, and it has not been drawn yet.
    Unseen,
    /// Without a user action, at this time.
    At(Instant),
    /// Without a user action, beside a draft, which gets the keys.
    BesideDraft,
}

fn appeared(state: &State) -> Appeared {
    let by_itself = match state.modals.last() {
        Some(Modal::Choice(dialog)) => dialog.opened_by_itself.map(Some),
        Some(Modal::Picker(picker)) => picker.is_by_itself.then_some(picker.shown_at),
        Some(_) => None,
        None if !state
            .request_view
            .has_keys
            .unwrap_or_else(|| !has_draft(state) && !is_in_terminal(state)) =>
        {
            return first_request(state).map_or(Appeared::ByUser, |_| Appeared::BesideDraft);
        }
        None => first_request(state).map(|_| state.request_view.shown_at),
    };
    match by_itself {
        None => Appeared::ByUser,
        Some(None) => Appeared::Unseen,
        Some(Some(since)) => Appeared::At(since),
    }
}
