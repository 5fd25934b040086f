//! Brings dialogs up to date with the state that they show.

use std::time::Instant;

use crate::app::State;

use super::{asks, grace, inbox, leave};

/// A key or click arrived, whatever it does.
pub fn on_input(state: &mut State, now: Instant) {
    settle(state, now);
    grace::unlock(state, now);
}

/// Stamps dialogs that appeared, and makes `state.ask_view` fresh for another ask. Idempotent; `app::update`
/// calls it at the end of every update, whatever the event was.
pub fn settle(state: &mut State, now: Instant) {
    inbox::settle(state);
    asks::on_ask_shown(state, now);
    asks::follow_call(state, now);
    leave::settle_question(state);
    grace::stamp(state, now);
}
