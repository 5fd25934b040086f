//! Updates dialogs after changes of the state they show.

use std::time::Instant;

use crate::app::{Effect, State};
use crate::guard::Input;

use super::{inbox, leave, question, requests};

/// Handles the arrival of a key or click. `input`: what it is for a question; `None`: one of its effects tells.
pub fn on_input(state: &mut State, input: Option<Input>, now: Instant, fx: &mut Vec<Effect>) {
    settle(state);
    state.last_input = Some(now);
    if let Some(input) = input {
        question::judge(state, input, now, fx);
    }
}

/// Resets `state.request_view` for another request, and tells the guard which question is on top. Idempotent; called
/// by `app::update` after every event.
pub fn settle(state: &mut State) {
    inbox::settle(state);
    requests::on_request_shown(state);
    requests::follow_call(state);
    leave::settle_question(state);
    question::settle(state);
}
