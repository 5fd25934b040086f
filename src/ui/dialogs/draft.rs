//! Replaces the draft in the state and in the view.

use crate::core::lifecycle::operations;
use crate::core::{Cx, Effect, ViewCommand};
use crate::model::SessionKey;
use crate::ui::App;

pub fn set_draft(app: &mut App, text: String, cx: &mut Cx) {
    if let Some(session) = app.state.sessions.get_mut(&app.state.active) {
        session.draft.clone_from(&text);
        app.user.completion = 0;
        app.user.dismissed = None;
        cx.effects.push(Effect::View(ViewCommand::SetDraft(text)));
    }
}

pub fn restore(app: &mut App, cx: &mut Cx) {
    let draft = app.state.active_session().map(|session| session.draft.clone()).unwrap_or_default();
    set_draft(app, draft, cx);
}

/// Replaces the draft with an earlier prompt, as an edit that can be undone, and adds the old draft to the history.
pub fn recall(app: &mut App, text: String, cx: &mut Cx) {
    leave_history(app, app.state.active, cx);
    let Some(session) = app.state.sessions.get_mut(&app.state.active) else { return };
    let draft = std::mem::take(&mut session.draft);
    operations::remember(session, &draft, cx);
    set_draft(app, text, cx);
}

/// Stops browsing the history, and adds the draft from before to it.
pub(super) fn leave_history(app: &mut App, key: SessionKey, cx: &mut Cx) {
    let view = app.views.get_mut(key);
    view.history_index = None;
    let stash = std::mem::take(&mut view.history_stash);
    if let Some(session) = app.state.sessions.get_mut(&key) {
        operations::remember(session, &stash, cx);
    }
}
