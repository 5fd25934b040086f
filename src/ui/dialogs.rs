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
pub(in crate::ui) mod modal;
mod notice;
mod obstacle;
mod open;
mod picker;
mod pickers;
mod picks;
mod providers;
mod question;
mod queue;
mod refresh;
mod requests;
mod rewind;
mod rows;
mod search;
mod session_rows;
mod sessions;
pub mod settings;
mod slash;
mod stack;
mod tab_dialogs;
pub(super) mod tabs;
#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests;
mod validate;

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
pub use inbox::{is_whole as is_attention_whole, rows as attention_rows};
pub use items::is_item_open;
pub use mentions::{on_argument, on_found, on_mention, on_mentionable, on_symbols_found};
pub use obstacle::obstacle;
pub use open::on_open;
pub use pickers::{open_agents, open_sign_in, open_sign_in_of};
pub use picks::on_theme;
pub use question::{
    has_keys, is_beside_draft, is_closed, is_full_screen, on_backspace, on_letter, show_left_keys,
    takes_answers, takes_answers_from, takes_input, waits_for_end,
};
pub use refresh::{on_frame, on_input, refresh};
pub use requests::on_request_shown;
pub use rows::used_synonyms;
pub use search::{on_timer as on_search_timer, search_of, set_timer as set_search_timer};
pub use sessions::on_news as on_sessions_news;
pub use slash::argument_hint;
pub use validate::{field_hint, shown_value};

use crate::model::{Action, LineEdit, SessionKey};

use super::{App, Modal, PickerKind};
use crate::app::lifecycle::operations;
use crate::app::{Cx, Effect, QuestionId, UiRequest, UserAnswer, ViewCommand};

/// Opens requested dialogs, and runs delayed actions.
pub fn serve(app: &mut App, cx: &mut Cx) {
    tab_dialogs::follow(app, cx);
    while !app.state.ui_requests.is_empty() {
        for request in std::mem::take(&mut app.state.ui_requests) {
            match request {
                UiRequest::AgentForPrompt | UiRequest::SignIn { session: None, .. }
                    if !app.modals.is_empty() => {}
                UiRequest::AgentPicker | UiRequest::AgentForPrompt => open_agents(app),
                UiRequest::FindAgents => install::search_again(&app.state, cx),
                UiRequest::SignIn { conn, session: None } => open_sign_in(app, conn),
                UiRequest::SignIn { conn, session: Some(key) } => open_sign_in_of(app, key, conn),
                UiRequest::CloseAgents => pickers::close_agents(app),
                UiRequest::AgentsChanged => install::refresh_agents(app),
                UiRequest::AgentsUsed(last) => pickers::on_agents_used(app, last.as_deref()),
                UiRequest::LastSessionFound => pickers::on_last_session(app),
                UiRequest::SessionsChanged => session_rows::refresh(app),
                UiRequest::SavedTitle(uid, title, owes) => {
                    session_rows::on_title(app, &uid, title.as_deref(), owes);
                }
                UiRequest::SavedGone(uid) => {
                    session_rows::change(app, |dialog| dialog.saved.retain(|row| row.uid != uid));
                }
                UiRequest::Rewind(key, item, way) => rewind::go_back(app, key, item, way, cx),
                UiRequest::Act(action) => on_action(app, action, cx),
                UiRequest::Command(action, filter) => {
                    on_command(app, action, cx);
                    if !filter.is_empty()
                        && matches!(app.modals.last(), Some(Modal::Picker(_) | Modal::Sessions(_)))
                    {
                        on_line(app, LineEdit::Insert(filter), cx);
                    }
                }
            }
            tab_dialogs::follow(app, cx);
        }
    }
}

pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) {
    refresh(app);
    let shown = app.state.active;
    let is_usual = app.state.is_quitting || question::on_action(app, action, cx);
    match action {
        _ if !is_usual => {}
        Action::Redraw => cx.effects.push(Effect::View(ViewCommand::Redraw)),
        _ if app.state.is_quitting => {}
        Action::Suspend => cx.effects.push(Effect::Suspend),
        Action::Quit => leave::quit(&mut app.state, cx),
        Action::ClearOrQuit => leave::interrupt(app, cx),
        Action::Escape => leave::escape(app, cx),
        // The mouse wheel scrolls at any time.
        Action::Scroll(lines) if is_beside_draft(app) => stack::scroll(i32::from(lines), cx),
        _ if is_beside_draft(app) => beside_request(app, action, cx),
        _ => route(app, action, cx),
    }
    tab_dialogs::follow(app, cx);
    show_other_draft(app, shown, cx);
    refresh(app);
}

/// Each session has a separate draft, which the composer must show once another session is active.
fn show_other_draft(app: &mut App, shown: SessionKey, cx: &mut Cx) {
    if app.state.active != shown {
        composer::show_draft(app, cx);
    }
}

/// Runs the draft as a command of the user's shell.
pub fn on_command_line(app: &mut App, text: &str, cx: &mut Cx) {
    composer::on_command_line(app, text, cx);
    refresh(app);
}

/// Handles an edit of the line in the top dialog, or in the shown form.
#[expect(clippy::needless_pass_by_value, reason = "reducers take what happened as a whole")]
pub fn on_line(app: &mut App, edit: LineEdit, cx: &mut Cx) {
    refresh(app);
    if app.state.is_quitting {
        return;
    }
    if focus(app) == Focus::Search || is_beside_draft(app) {
        search::on_line(app, &edit, cx);
        return;
    }
    match app.modals.last_mut() {
        Some(Modal::Picker(picker)) if matches!(picker.kind, PickerKind::History { .. }) => {
            history::on_filter(app, &edit, cx);
        }
        Some(Modal::Picker(_)) => picker::on_filter(app, &edit, cx),
        Some(Modal::Help { filter } | Modal::Log { filter }) => {
            filter.apply(&edit);
        }
        Some(Modal::Line(dialog)) => {
            if dialog.input.apply(&edit) {
                dialog.problem = None;
            }
        }
        Some(Modal::Changes(dialog)) => changes::on_line(dialog, &edit),
        Some(Modal::Sessions(_)) => sessions::on_line(app, &edit, cx),
        Some(
            Modal::Question(..)
            | Modal::Capture(_)
            | Modal::Queue { .. }
            | Modal::Connection(_)
            | Modal::Inspect(_)
            | Modal::Attention(_),
        ) => {}
        None => form::on_line(app, &edit),
    }
}

/// Answers a question, or shows why this is not possible.
pub fn answer(app: &mut App, id: QuestionId, answer: UserAnswer, cx: &mut Cx) {
    if let Err(why) = operations::answer(&mut app.state, id, answer, cx) {
        notice::notify(&mut app.state, why, cx);
    }
}

/// Passes the action to the layer with the focus; an action unknown to it may still be a command.
fn route(app: &mut App, action: Action, cx: &mut Cx) {
    let top = focus(app);
    if matches!(top, Focus::Main | Focus::Browse | Focus::Terminal) {
        on_session(app, action, cx);
        return;
    }
    let scrolls = matches!(action, Action::ScrollTop | Action::ScrollEnd) && asks(top);
    let said = if scrolls { action } else { in_a_dialog(action) };
    let is_done = match top {
        Focus::Picker => picks::on_action(app, said, cx),
        Focus::Sessions => sessions::on_action(app, said, cx),
        Focus::Choice => choice::on_choice(app, said, cx),
        Focus::Queue => queue::on_action(app, said, cx),
        Focus::Help | Focus::Log | Focus::Connection => choice::on_page(app, said, cx),
        Focus::Changes => changes::on_action(app, said, cx),
        Focus::Line => line_dialog::on_action(app, said, cx),
        Focus::Permission | Focus::Access | Focus::Url => requests::on_options(app, said, cx),
        Focus::Form => form::on_action(app, said, cx),
        Focus::Search => search::on_action(app, said, cx),
        Focus::Attention => inbox::on_action(app, said, cx),
        Focus::Main | Focus::Browse | Focus::Terminal | Focus::Capture => true,
    };
    if !is_done && !(asks(top) && (items::on_action(app, action, cx) || copy::on_action(app, action, cx))) {
        commands::on_action(app, action, cx);
    }
}

/// Whether the layer is a question with a text to scroll.
fn asks(top: Focus) -> bool {
    matches!(top, Focus::Permission | Focus::Access | Focus::Url | Focus::Choice | Focus::Attention)
}

/// A click on a question that the user did not open.
pub fn on_click(app: &mut App, action: Option<Action>, cx: &mut Cx) {
    refresh(app);
    if question::on_click(app, action, cx)
        && let Some(action) = action
    {
        route(app, action, cx);
    }
    refresh(app);
}

/// Handles an action while a request is shown and the composer or the search has the keys.
fn beside_request(app: &mut App, action: Action, cx: &mut Cx) {
    if base_focus(app) != Focus::Search {
        on_session(app, action, cx);
    } else if !search::on_action(app, in_a_dialog(action), cx) {
        commands::on_action(app, action, cx);
    }
}

/// A command from the palette applies to the session, even if a request waits that the palette covered.
fn on_command(app: &mut App, action: Action, cx: &mut Cx) {
    let is_of_program = matches!(
        action,
        Action::Redraw | Action::Suspend | Action::Quit | Action::ClearOrQuit | Action::Escape
    );
    if is_of_program || !app.modals.is_empty() {
        on_action(app, action, cx);
    } else {
        let shown = app.state.active;
        on_session(app, action, cx);
        show_other_draft(app, shown, cx);
    }
}

fn on_session(app: &mut App, action: Action, cx: &mut Cx) {
    if !composer::on_action(app, action, cx)
        && !attachments::on_action(app, action, cx)
        && !items::on_action(app, action, cx)
        && !copy::on_action(app, action, cx)
    {
        commands::on_action(app, action, cx);
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
pub fn send_requests(app: &mut App, cx: &mut Cx) {
    sessions::refresh_preview(app, cx);
    history::free_prompts(app, cx);
}
