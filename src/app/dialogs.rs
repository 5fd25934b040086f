//! Handles the user's actions: dialogs, pickers, forms, completion, history, queue.
//!
//! `app::operations` acts on agents, `config::keymap` maps keys to actions, `ui` owns scrolling and the text area. The
//! effect of an action depends on the layer with the focus: the top dialog, otherwise the shown request of the agent,
//! otherwise prompt and transcript. The layer is computed by [`focus()`], not stored.
//! Invariants: a question that the user did not open is answered only through [`crate::guard`]; closing a dialog does
//! not also cancel a turn; an answer that allows something permanently is never the default.

mod agent_rows;
mod attachments;
mod changes;
mod choice;
mod commands;
mod completion;
mod composer;
mod copy;
mod delete_turn;
mod draft;
mod focus;
mod form;
mod history;
mod inbox;
mod install;
mod items;
mod jump;
mod leave;
mod line_dialog;
mod locations;
mod mentions;
pub(in crate::app) mod modal;
mod notice;
mod obstacle;
mod open;
mod picker;
mod pickers;
mod picks;
mod providers;
mod question;
mod queue;
mod requests;
mod rewind;
mod rows;
mod search;
mod session_rows;
mod sessions;
pub mod settings;
mod settle;
mod slash;
mod stack;
pub(super) mod tabs;
#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests;
mod validate;

pub use super::title_of;
pub use crate::app::state::fuzzy::rank;
pub use agent_rows::agent_rows;
pub use attachments::{on_drop_read, on_dropped, on_image, on_session_attached};
pub use changes::shown_files;
pub use commands::is_allowed_during_request;
pub use completion::{Completion, CompletionKind};
pub use composer::{completions, on_draft, on_draft_edited, selected_completion, show_draft};
pub use copy::on_copied;
pub use focus::{Focus, base_focus, focus, line_input};
pub use history::on_found as on_prompts_found;
pub use inbox::{is_whole as is_attention_whole, marked_request, rows as attention_rows};
pub use items::is_item_open;
pub use mentions::{on_argument, on_found, on_mention, on_mentionable, on_symbols_found};
pub use obstacle::obstacle;
pub use open::on_open;
pub use pickers::{open_agents, open_sign_in, open_sign_in_of};
pub use picks::on_theme;
pub use question::{
    answer_line, has_keys, is_beside_draft, is_closed, is_full_screen, on_backspace, on_letter,
    show_left_keys, takes_answers, takes_answers_from, takes_input, waits_for_end,
};
pub use requests::on_request_shown;
pub use rows::used_synonyms;
pub use search::{on_timer as on_search_timer, search_of, settle as settle_search};
pub use sessions::on_news as on_sessions_news;
pub use settle::{on_frame, on_input, settle};
pub use slash::argument_hint;
pub use validate::{field_hint, shown_value};

use std::time::Instant;

use crate::model::{Action, ItemId, LineEdit, SessionKey};

use super::{Effect, Modal, PickerKind, State, UiRequest, ViewCommand};

/// Opens requested dialogs, and runs delayed actions.
pub fn serve(state: &mut State, now: Instant, fx: &mut Vec<Effect>) {
    tabs::follow(state, fx);
    while !state.ui_requests.is_empty() {
        for request in std::mem::take(&mut state.ui_requests) {
            match request {
                UiRequest::AgentForPrompt | UiRequest::SignIn { session: None, .. }
                    if !state.modals.is_empty() => {}
                UiRequest::AgentPicker | UiRequest::AgentForPrompt => open_agents(state),
                UiRequest::FindAgents => install::search_again(state, fx),
                UiRequest::SignIn { conn, session: None } => open_sign_in(state, conn),
                UiRequest::SignIn { conn, session: Some(key) } => open_sign_in_of(state, key, conn),
                UiRequest::CloseAgents => pickers::close_agents(state),
                UiRequest::AgentsChanged => install::refresh_agents(state),
                UiRequest::AgentsUsed(last) => pickers::on_agents_used(state, last.as_deref()),
                UiRequest::LastSessionFound => pickers::on_last_session(state),
                UiRequest::SessionsChanged => session_rows::refresh(state),
                UiRequest::SavedTitle(uid, title, owes) => {
                    session_rows::on_title(state, &uid, title.as_deref(), owes);
                }
                UiRequest::SavedGone(uid) => {
                    session_rows::change(state, |dialog| dialog.saved.retain(|row| row.uid != uid));
                }
                UiRequest::Rewind(key, item, way) => rewind::go_back(state, key, item, way, now, fx),
                UiRequest::Act(action) => on_action(state, action, now, fx),
                UiRequest::Command(action, filter) => {
                    on_command(state, action, now, fx);
                    if !filter.is_empty()
                        && matches!(state.modals.last(), Some(Modal::Picker(_) | Modal::Sessions(_)))
                    {
                        on_line(state, LineEdit::Insert(filter), fx);
                    }
                }
            }
            tabs::follow(state, fx);
        }
    }
}

pub fn on_action(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) {
    settle(state);
    let shown = state.active;
    let is_usual = state.is_quitting || question::on_action(state, action, now, fx);
    match action {
        _ if !is_usual => {}
        Action::Redraw => fx.push(Effect::View(ViewCommand::Redraw)),
        _ if state.is_quitting => {}
        Action::Suspend => fx.push(Effect::Suspend),
        Action::Quit => leave::quit(state, now, fx),
        Action::ClearOrQuit => leave::interrupt(state, now, fx),
        Action::Escape => leave::escape(state, now, fx),
        // The mouse wheel scrolls at any time.
        Action::Scroll(lines) if is_beside_draft(state) => stack::scroll(i32::from(lines), fx),
        _ if is_beside_draft(state) => beside_request(state, action, now, fx),
        _ => route(state, action, now, fx),
    }
    tabs::follow(state, fx);
    show_other_draft(state, shown, fx);
    settle(state);
}

/// Each session has a separate draft, which the composer must show once another session is active.
fn show_other_draft(state: &mut State, shown: SessionKey, fx: &mut Vec<Effect>) {
    if state.active != shown {
        composer::show_draft(state, fx);
    }
}

/// Runs the draft as a command of the user's shell.
pub fn on_command_line(state: &mut State, text: &str, now: Instant, fx: &mut Vec<Effect>) {
    composer::on_command_line(state, text, now, fx);
    settle(state);
}

/// Handles an edit of the line in the top dialog, or in the shown form.
#[expect(clippy::needless_pass_by_value, reason = "reducers take what happened as a whole")]
pub fn on_line(state: &mut State, edit: LineEdit, fx: &mut Vec<Effect>) {
    settle(state);
    if state.is_quitting {
        return;
    }
    if focus(state) == Focus::Search || is_beside_draft(state) {
        search::on_line(state, &edit, fx);
        return;
    }
    match state.modals.last_mut() {
        Some(Modal::Picker(picker)) if matches!(picker.kind, PickerKind::History { .. }) => {
            history::on_filter(state, &edit, fx);
        }
        Some(Modal::Picker(_)) => picker::on_filter(state, &edit, fx),
        Some(Modal::Help { filter } | Modal::Log { filter }) => {
            filter.apply(&edit);
        }
        Some(Modal::Line(dialog)) => {
            if dialog.input.apply(&edit) {
                dialog.problem = None;
            }
        }
        Some(Modal::Changes(dialog)) => changes::on_line(dialog, &edit),
        Some(Modal::Sessions(_)) => sessions::on_line(state, &edit, fx),
        Some(
            Modal::Question(..)
            | Modal::Capture(_)
            | Modal::Queue { .. }
            | Modal::Connection(_)
            | Modal::Inspect(_)
            | Modal::Attention(_),
        ) => {}
        None => form::on_line(state, &edit),
    }
}

/// Sets the items on the screen, before an action that depends on them.
pub fn on_reading(state: &mut State, first: ItemId, last: ItemId) {
    if let Some(session) = state.sessions.get_mut(&state.active) {
        session.reading = Some((first, last));
    }
}

/// Passes the action to the layer with the focus; an action unknown to it may still be a command.
fn route(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) {
    let top = focus(state);
    if matches!(top, Focus::Main | Focus::Browse | Focus::Terminal) {
        on_session(state, action, now, fx);
        return;
    }
    let scrolls = matches!(action, Action::ScrollTop | Action::ScrollEnd) && asks(top);
    let said = if scrolls { action } else { in_a_dialog(action) };
    let is_done = match top {
        Focus::Picker => picks::on_action(state, said, now, fx),
        Focus::Sessions => sessions::on_action(state, said, now, fx),
        Focus::Choice => choice::on_choice(state, said, now, fx),
        Focus::Queue => queue::on_action(state, said, now, fx),
        Focus::Help | Focus::Log | Focus::Connection => choice::on_page(state, said, fx),
        Focus::Changes => changes::on_action(state, said, fx),
        Focus::Line => line_dialog::on_action(state, said, now, fx),
        Focus::Permission | Focus::Access | Focus::Url => requests::on_options(state, said, now, fx),
        Focus::Form => form::on_action(state, said, now, fx),
        Focus::Search => search::on_action(state, said, fx),
        Focus::Attention => inbox::on_action(state, said, now, fx),
        Focus::Main | Focus::Browse | Focus::Terminal | Focus::Capture => true,
    };
    if !is_done && !(asks(top) && (items::on_action(state, action, fx) || copy::on_action(state, action, fx)))
    {
        commands::on_action(state, action, now, fx);
    }
}

/// Whether the layer is a question with a text to scroll.
fn asks(top: Focus) -> bool {
    matches!(top, Focus::Permission | Focus::Access | Focus::Url | Focus::Choice | Focus::Attention)
}

/// A click on a question that the user did not open.
pub fn on_click(state: &mut State, action: Option<Action>, now: Instant, fx: &mut Vec<Effect>) {
    settle(state);
    if question::on_click(state, action, now, fx)
        && let Some(action) = action
    {
        route(state, action, now, fx);
    }
    settle(state);
}

/// Handles an action while a request is shown and the composer or the search has the keys.
fn beside_request(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) {
    if base_focus(state) != Focus::Search {
        on_session(state, action, now, fx);
    } else if !search::on_action(state, in_a_dialog(action), fx) {
        commands::on_action(state, action, now, fx);
    }
}

/// A command from the palette applies to the session, even if a request waits that the palette covered.
fn on_command(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) {
    let is_of_program = matches!(
        action,
        Action::Redraw | Action::Suspend | Action::Quit | Action::ClearOrQuit | Action::Escape
    );
    if is_of_program || !state.modals.is_empty() {
        on_action(state, action, now, fx);
    } else {
        let shown = state.active;
        on_session(state, action, now, fx);
        show_other_draft(state, shown, fx);
    }
}

fn on_session(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) {
    if !composer::on_action(state, action, now, fx)
        && !attachments::on_action(state, action, fx)
        && !items::on_action(state, action, fx)
        && !copy::on_action(state, action, fx)
    {
        commands::on_action(state, action, now, fx);
    }
}

/// The equivalent of an action of the main screen in dialogs.
fn in_a_dialog(action: Action) -> Action {
    match action {
        Action::Submit => Action::Accept,
        Action::HistoryPrevious | Action::SelectPrevious => Action::Up,
        Action::HistoryNext | Action::SelectNext => Action::Down,
        Action::Complete => Action::NextField,
        Action::ScrollPageUp => Action::PageUp,
        Action::ScrollPageDown => Action::PageDown,
        Action::ScrollTop => Action::First,
        Action::ScrollEnd => Action::Last,
        Action::ScrollLineUp => Action::Scroll(-1),
        Action::ScrollLineDown => Action::Scroll(1),
        other => other,
    }
}

/// Sends pending requests of the lists of sessions and prompts. Called at the end of each update.
pub fn settle_sessions(state: &mut State, fx: &mut Vec<Effect>) {
    sessions::settle(state, fx);
    history::settle(state, fx);
}
