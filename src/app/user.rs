//! The user's side of the app: actions, dialogs, pickers, forms, history, queue.

use std::time::Instant;

use crate::model::{Action, LineEdit};

use super::{Effect, State};

/// A wish of the user.
pub fn on_action(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, action, now, fx);
}

/// The prompt's text changed.
pub fn on_draft(state: &mut State, text: String, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, text, now, fx);
}

/// A line of text in the top dialog, or in the shown form, changes.
pub fn on_line(state: &mut State, edit: LineEdit, now: Instant, fx: &mut Vec<Effect>) {
    let _ = (state, edit, now, fx);
}

/// A key or click arrived, whatever it does.
pub fn on_input(state: &mut State, now: Instant) {
    state.last_input = Some(now);
}
