//! What gets the keys: the top dialog, otherwise the shown request, otherwise composer and transcript.

use crate::config::keymap::Context;
use crate::core::state::lookup::first_request;
use crate::core::{LineInput, OpenRequestKind};
use crate::model::ElicitationMode;
use crate::ui::App;

use super::search;

/// The context of the keymap for what has the keyboard focus, without regard to the grace period (see
/// [`super::takes_input`]).
pub fn focus(app: &App) -> Context {
    if let Some(layer) = app.layers.last() {
        return layer.context();
    }
    match first_request(&app.state).map(|open| &open.kind) {
        None => base_focus(app),
        Some(OpenRequestKind::Permission { .. } | OpenRequestKind::Access(_)) => Context::Permission,
        Some(OpenRequestKind::Elicitation(request)) => match request.mode {
            ElicitationMode::Form { .. } => Context::Form,
            ElicitationMode::Url { .. } => Context::Choice,
        },
    }
}

/// Whether a dialog or a request is above composer and transcript.
pub fn has_dialog(app: &App) -> bool {
    !app.layers.is_empty() || first_request(&app.state).is_some()
}

/// The focus when no dialog is open.
pub fn base_focus(app: &App) -> Context {
    if app.state.active_session().is_some_and(|session| session.typing().is_some()) {
        Context::Terminal
    } else if search::is_typing(app) {
        Context::Search
    } else if app.user.is_browsing {
        Context::Browse
    } else {
        Context::Main
    }
}

/// The input line that has the focus, if there is one. The composer is not included: its text belongs to the view.
pub fn line_input(app: &App) -> Option<&LineInput> {
    if let Some(layer) = app.layers.last() {
        return layer.line();
    }
    match focus(app) {
        Context::Form => {
            let form = app.request_view.form.as_ref().filter(|form| !form.is_review)?;
            let field = form.fields.get(app.request_view.selected)?;
            field.takes_text().then_some(&field.input)
        }
        Context::Search => app.shown().search.as_ref().map(|search| &search.input),
        _ => None,
    }
}

/// Whether the top dialog is the inbox, the only one with the keys of a request.
pub fn is_in_inbox(app: &App) -> bool {
    app.layers.last().is_some_and(|layer| layer.context() == Context::Permission)
}
