//! Updates dialogs after changes of the state they show.

use std::time::Instant;

use crate::app::State;

use super::{grace, inbox, leave, requests};

/// Handles the arrival of a key or click, with or without an effect.
pub fn on_input(state: &mut State, now: Instant) {
    settle(state, now);
    grace::unlock(state, now);
}

/// Sets the time at which dialogs appeared, and resets `state.request_view` for another request. Idempotent; called by
/// `app::update` after every event.
pub fn settle(state: &mut State, now: Instant) {
    inbox::settle(state);
    requests::on_request_shown(state, now);
    requests::follow_call(state, now);
    leave::settle_question(state);
    grace::stamp(state, now);
}
