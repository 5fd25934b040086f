//! Which layer has the keys: the top dialog, else the shown request, else prompt and transcript.

use crate::app::{LineInput, Modal, OpenRequestKind, State};
use crate::model::ElicitationMode;

use super::{first_ask, search};

/// A layer that takes keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Focus {
    /// Prompt and transcript.
    Main,
    /// The transcript alone: letters are commands.
    Browse,
    /// The line of the search.
    Search,
    /// A list with a filter.
    Picker,
    Sessions,
    /// A few ways to go on.
    Choice,
    /// The prompts that wait.
    Queue,
    /// The keys.
    Help,
    /// The wire.
    Log,
    /// Facts to read: about the connection, or an item as it came.
    Connection,
    /// All changes of the session.
    Changes,
    /// A line to be given.
    Line,
    Permission,
    /// A form of the agent.
    Form,
    /// A page that the agent wants visited.
    Url,
    /// A file or command that the policy asks about.
    Access,
    /// What waits in all tabs.
    Attention,
}

/// The layer that takes keys now, apart from the grace period (see [`super::takes_input`]).
pub fn focus(state: &State) -> Focus {
    match state.modals.last() {
        Some(Modal::Picker(_)) => Focus::Picker,
        Some(Modal::Sessions(_)) => Focus::Sessions,
        Some(Modal::Choice(_)) => Focus::Choice,
        Some(Modal::Queue { .. }) => Focus::Queue,
        Some(Modal::Help { .. }) => Focus::Help,
        Some(Modal::Log { .. }) => Focus::Log,
        Some(Modal::Connection(_) | Modal::Inspect(_)) => Focus::Connection,
        Some(Modal::Changes(_)) => Focus::Changes,
        Some(Modal::Line(_)) => Focus::Line,
        Some(Modal::Attention(_)) => Focus::Attention,
        None => match first_ask(state).map(|open| &open.kind) {
            None => base_focus(state),
            Some(OpenRequestKind::Permission { .. }) => Focus::Permission,
            Some(OpenRequestKind::Access(_)) => Focus::Access,
            Some(OpenRequestKind::Elicitation(ask)) => match ask.mode {
                ElicitationMode::Form { .. } => Focus::Form,
                ElicitationMode::Url { .. } => Focus::Url,
            },
        },
    }
}

impl Focus {
    /// Whether it is a dialog, above prompt and transcript.
    pub fn is_dialog(self) -> bool {
        !matches!(self, Self::Main | Self::Browse | Self::Search)
    }
}

/// What has the keys below all dialogs.
pub fn base_focus(state: &State) -> Focus {
    if search::is_typing(state) {
        Focus::Search
    } else if state.user.is_browsing {
        Focus::Browse
    } else {
        Focus::Main
    }
}

/// The line that letters go into now, if the layer has one; the prompt is the view's own and not meant.
pub fn line_input(state: &State) -> Option<&LineInput> {
    match state.modals.last() {
        Some(Modal::Picker(picker)) => Some(&picker.filter),
        Some(Modal::Help { filter } | Modal::Log { filter }) => Some(filter),
        Some(Modal::Changes(dialog)) => dialog.is_filtering.then_some(&dialog.filter),
        Some(Modal::Line(dialog)) => Some(&dialog.input),
        Some(Modal::Sessions(dialog)) => Some(&dialog.filter),
        None if focus(state) == Focus::Form => {
            let form = state.ask_view.form.as_ref().filter(|form| !form.is_review)?;
            let field = form.fields.get(state.ask_view.selected)?;
            field.takes_text().then_some(&field.input)
        }
        None if focus(state) == Focus::Search => search::search_of(state).map(|search| &search.input),
        Some(
            Modal::Choice(_)
            | Modal::Queue { .. }
            | Modal::Connection(_)
            | Modal::Inspect(_)
            | Modal::Attention(_),
        )
        | None => None,
    }
}
