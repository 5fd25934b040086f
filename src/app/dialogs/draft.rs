//! Replaces the draft in the state and in the view.

use crate::app::{Effect, State, ViewCommand};

/// Replaces the draft.
pub fn set_draft(state: &mut State, text: String, fx: &mut Vec<Effect>) {
    if let Some(session) = state.sessions.get_mut(&state.active) {
        session.draft.clone_from(&text);
        state.user.completion = 0;
        state.user.dismissed = None;
        fx.push(Effect::View(ViewCommand::SetDraft(text)));
    }
}

/// Shows the draft that the state has.
pub fn restore(state: &mut State, fx: &mut Vec<Effect>) {
    let draft = state.active_session().map(|session| session.draft.clone()).unwrap_or_default();
    set_draft(state, draft, fx);
}
