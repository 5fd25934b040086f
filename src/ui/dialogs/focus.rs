//! Which layer gets the keys: the top dialog, otherwise the shown request, otherwise composer and transcript.

use crate::app::state::lookup::first_request;
use crate::app::{LineInput, OpenRequestKind};
use crate::model::ElicitationMode;
use crate::ui::{App, Modal};

use super::search;

/// A layer that can have the keyboard focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Focus {
    Main,
    /// The transcript only: letters are commands.
    Browse,
    Terminal,
    Search,
    Picker,
    Sessions,
    /// A choice between a few actions.
    Choice,
    /// The next key is bound to an action.
    Capture,
    Queue,
    Help,
    Log,
    /// Read-only details of the connection or an item.
    Connection,
    Changes,
    Line,
    Permission,
    Form,
    /// A page the agent asks to open.
    Url,
    /// A file or command that needs the user's permission.
    Access,
    /// The open requests of all tabs.
    Attention,
}

/// The layer with the keyboard focus, without regard to the grace period (see [`super::takes_input`]).
pub fn focus(app: &App) -> Focus {
    match app.modals.last() {
        Some(Modal::Picker(_)) => Focus::Picker,
        Some(Modal::Sessions(_)) => Focus::Sessions,
        Some(Modal::Question(..)) => Focus::Choice,
        Some(Modal::Capture(_)) => Focus::Capture,
        Some(Modal::Queue { .. }) => Focus::Queue,
        Some(Modal::Help { .. }) => Focus::Help,
        Some(Modal::Log { .. }) => Focus::Log,
        Some(Modal::Connection(_) | Modal::Inspect(_)) => Focus::Connection,
        Some(Modal::Changes(_)) => Focus::Changes,
        Some(Modal::Line(_)) => Focus::Line,
        Some(Modal::Attention(_)) => Focus::Attention,
        None => match first_request(&app.state).map(|open| &open.kind) {
            None => base_focus(app),
            Some(OpenRequestKind::Permission { .. }) => Focus::Permission,
            Some(OpenRequestKind::Access(_)) => Focus::Access,
            Some(OpenRequestKind::Elicitation(request)) => match request.mode {
                ElicitationMode::Form { .. } => Focus::Form,
                ElicitationMode::Url { .. } => Focus::Url,
            },
        },
    }
}

impl Focus {
    /// Whether the layer is a dialog above composer and transcript.
    pub fn is_dialog(self) -> bool {
        !matches!(self, Self::Main | Self::Browse | Self::Terminal | Self::Search)
    }
}

/// The layer with the focus when no dialog is open.
pub fn base_focus(app: &App) -> Focus {
    if app.state.active_session().is_some_and(|session| session.typing().is_some()) {
        Focus::Terminal
    } else if search::is_typing(&app.state) {
        Focus::Search
    } else if app.user.is_browsing {
        Focus::Browse
    } else {
        Focus::Main
    }
}

/// The input line of the focused layer, if it has one. The composer is not included: its text belongs to the view.
pub fn line_input(app: &App) -> Option<&LineInput> {
    match app.modals.last() {
        Some(Modal::Picker(picker)) => Some(&picker.filter),
        Some(Modal::Help { filter } | Modal::Log { filter }) => Some(filter),
        Some(Modal::Changes(dialog)) => dialog.is_filtering.then_some(&dialog.filter),
        Some(Modal::Line(dialog)) => Some(&dialog.input),
        Some(Modal::Sessions(dialog)) => Some(&dialog.filter),
        None if focus(app) == Focus::Form => {
            let form = app.request_view.form.as_ref().filter(|form| !form.is_review)?;
            let field = form.fields.get(app.request_view.selected)?;
            field.takes_text().then_some(&field.input)
        }
        None if focus(app) == Focus::Search => search::search_of(&app.state).map(|search| &search.input),
        Some(
            Modal::Question(..)
            | Modal::Capture(_)
            | Modal::Queue { .. }
            | Modal::Connection(_)
            | Modal::Inspect(_)
            | Modal::Attention(_),
        )
        | None => None,
    }
}
