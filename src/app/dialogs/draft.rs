//! Replaces the draft in the state and in the view.

use crate::app::lifecycle::operations;
use crate::app::{App, Effect, Session, ViewCommand};

pub fn set_draft(app: &mut App, text: String, fx: &mut Vec<Effect>) {
    if let Some(session) = app.state.sessions.get_mut(&app.state.active) {
        session.draft.clone_from(&text);
        app.user.completion = 0;
        app.user.dismissed = None;
        fx.push(Effect::View(ViewCommand::SetDraft(text)));
    }
}

pub fn restore(app: &mut App, fx: &mut Vec<Effect>) {
    let draft = app.state.active_session().map(|session| session.draft.clone()).unwrap_or_default();
    set_draft(app, draft, fx);
}

/// Replaces the draft with an earlier prompt, as an edit that can be undone, and adds the old draft to the history.
pub fn recall(app: &mut App, text: String, fx: &mut Vec<Effect>) {
    let Some(session) = app.state.sessions.get_mut(&app.state.active) else { return };
    leave_history(session, fx);
    let draft = std::mem::take(&mut session.draft);
    operations::remember(session, &draft, fx);
    set_draft(app, text, fx);
}

/// Stops browsing the history, and adds the draft from before to it.
pub(super) fn leave_history(session: &mut Session, fx: &mut Vec<Effect>) {
    session.history_index = None;
    let stash = std::mem::take(&mut session.history_stash);
    operations::remember(session, &stash, fx);
}
