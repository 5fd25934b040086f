//! Handles the user's actions: dialogs, pickers, forms, completion, history, queue.
//!
//! `core::lifecycle::operations` acts on agents, `config::keymap` maps keys to actions, `ui` owns scrolling and the text area. The
//! effect of an action depends on the layer with the focus: the top dialog, otherwise the shown request of the agent,
//! otherwise prompt and transcript. Which one is computed by [`focus()`], not stored.
//! Invariants: a question that the user did not open is answered only through [`crate::guard`]; closing a dialog does
//! not also cancel a turn; an answer that allows something permanently is never the default.

mod agent_options;
mod agents;
mod allow_rule;
mod attachments;
mod changes;
mod choice;
mod commands;
mod completion;
mod composer;
mod connection;
mod copy;
mod delete_turn;
mod dialog_frame;
mod draft;
mod draw;
mod fields;
mod focus;
mod form;
mod grants;
mod help;
mod history;
mod inbox;
mod inspect;
mod items;
mod jump;
mod key_capture;
mod layer;
mod leave;
mod line_dialog;
mod list;
mod locations;
mod log_page;
mod mentions;
mod notice;
mod obstacle;
mod open;
mod options;
mod palette;
mod permission;
mod picker;
mod providers;
mod question;
mod queue;
mod reason;
mod refresh;
mod request_view;
mod requests;
mod review;
mod rewind;
mod scroll;
mod search;
mod sessions;
mod settings;
mod sign_in;
mod slash;
mod stack;
mod tab_dialogs;
mod tabs;
#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests;
mod themes;
mod titles;
mod undo;
mod validate;
mod worktrees;

pub use crate::core::state::fuzzy::rank;
pub use agent_options::{OptionValues, Options};
pub use agents::{AgentItem, Agents, agent_rows, open as open_agents};
pub use attachments::{on_drop_read, on_dropped, on_image, on_session_attached};
pub use changes::{ChangesDialog, shown_files};
pub use choice::QuestionDialog;
pub use commands::is_allowed_during_request;
pub use completion::{Completion, CompletionKind};
pub use composer::{completions, on_draft, on_draft_edited, selected_completion, show_draft};
pub use connection::ConnectionPage;
pub use copy::{CopySource, on_copied};
pub use draw::{AnchoredRequest, draw};
pub use fields::{FieldState, FormState};
pub use focus::{base_focus, focus, has_dialog, is_in_inbox, line_input};
pub use help::HelpPage;
pub use history::on_found as on_prompts_found;
pub use inbox::InboxDialog;
pub use inspect::InspectPage;
pub use items::is_item_open;
pub use key_capture::{KeyCapture, on_captured, on_capturing};
pub use layer::{Layer, Layers, PlainPage};
pub use line_dialog::{LineDialog, Purpose};
pub use log_page::LogPage;
pub use mentions::{MentionList, on_argument, on_found, on_mention, on_mentionable, on_symbols_found};
pub use notice::notify;
pub use obstacle::obstacle;
pub use open::on_open;
pub use options::label as option_label;
pub use permission::{question as question_of, rejected};
pub use permission::{risk_texts, rule_note};
pub use picker::{ListView, Picker, PickerRow};
pub use question::{
    has_keys, is_beside_draft, is_closed, is_full_screen, on_backspace, on_character, show_left_keys,
    takes_answers, takes_answers_from, takes_input, waits_for_end,
};
pub use queue::QueueDialog;
pub use refresh::{on_frame, on_input, refresh};
pub use request_view::RequestView;
pub use requests::on_request_shown;
pub use rewind::Rewind;
pub use search::{on_timer as on_search_timer, set_timer as set_search_timer};
pub use sessions::{SessionEntry, SessionsDialog, on_news as on_sessions_news};
pub use settings::{Bindings, Settings, on_news as on_config};
pub use slash::argument_hint;
pub use tabs::{on_folder_found, on_folders};
pub use themes::on_terminal_theme;
pub use validate::{field_hint, shown_value};
pub use worktrees::on_worktrees;

use crate::core::lifecycle::operations;
use crate::model::{Action, LineEdit, SessionKey};

use crate::config::keymap::Context;

use super::App;
use crate::core::{Cx, Effect, UiRequest, ViewCommand};
use layer::{Flow, with_top};

/// Opens requested dialogs, and runs delayed actions.
pub fn serve(app: &mut App, cx: &mut Cx) {
    tab_dialogs::follow(app, cx);
    while !cx.requests.is_empty() {
        for request in std::mem::take(&mut cx.requests) {
            match request {
                UiRequest::AgentForPrompt | UiRequest::SignIn { session: None, .. }
                    if !app.layers.is_empty() => {}
                UiRequest::AgentPicker | UiRequest::AgentForPrompt => agents::open(app, cx),
                UiRequest::SignIn { conn, session } => sign_in::open_unasked(app, session, conn),
                UiRequest::CloseAgents => app.layers.close::<Picker<Agents>>(),
                UiRequest::AgentsChanged | UiRequest::LastSessionFound => agents::refresh(app),
                UiRequest::AgentsUsed(last) => agents::on_used(app, last.as_deref()),
                UiRequest::SessionsChanged => sessions::rows::refresh(app),
                UiRequest::SavedTitle(uid, title, owes) => {
                    sessions::rows::on_title(app, &uid, title.as_deref(), owes);
                }
                UiRequest::SavedGone(uid) => {
                    sessions::rows::change(app, |dialog| dialog.saved.retain(|row| row.uid != uid));
                }
                UiRequest::Undo(key) => {
                    undo::open(app, key);
                    review::open(app, key);
                    review::open_held(app, key, cx.now);
                }
                UiRequest::Rewind(key, item, way) => rewind::go_back(app, key, item, way, cx),
                UiRequest::DraftChanged(key) if key != app.state.active => {}
                UiRequest::DraftChanged(_) => draft::restore(app, cx),
                UiRequest::ShowFound { session, item, snippet } => {
                    jump::show_found(app, session, item, &snippet, cx);
                }
                UiRequest::Act(action) => on_action(app, action, cx),
                UiRequest::Command(Action::NewWorktree, name) => {
                    let name = Some(name).filter(|name| !name.is_empty());
                    operations::new_worktree(&mut app.state, name, cx);
                }
                UiRequest::Command(action, filter) => {
                    on_command(app, action, cx);
                    let is_list =
                        |layer: &dyn Layer| matches!(layer.context(), Context::List | Context::Sessions);
                    if !filter.is_empty() && app.layers.last().is_some_and(is_list) {
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
        Action::Scroll(lines) if is_beside_draft(app) => scroll::scroll(i32::from(lines), cx),
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
    if focus(app) == Context::Search || is_beside_draft(app) {
        search::on_line(app, &edit, cx);
    } else if !app.layers.is_empty() {
        with_top(app, |layer, app| {
            layer.on_line(app, &edit, cx);
            Flow::Stay
        });
    } else {
        form::on_line(app, &edit);
    }
}

/// Passes the action to what has the focus; an action unknown to it may still be a command.
fn route(app: &mut App, action: Action, cx: &mut Cx) {
    let top = focus(app);
    if matches!(top, Context::Main | Context::Browse | Context::Terminal) {
        on_session(app, action, cx);
        return;
    }
    // A question, whose text scrolls.
    let asks = matches!(top, Context::Permission | Context::Choice);
    let scrolls = asks && matches!(action, Action::ScrollTop | Action::ScrollEnd);
    let said = if scrolls { action } else { in_a_dialog(action) };
    let flow = with_top(app, |layer, app| layer.on_action(app, said, cx));
    let flow = flow.unwrap_or_else(|| match top {
        Context::Form => form::on_action(app, said, cx),
        Context::Search => search::on_action(app, said, cx),
        _ => requests::on_options(app, said, cx),
    });
    if flow == Flow::Pass
        && !(asks && (items::on_action(app, action, cx) || copy::on_action(app, action, cx)))
    {
        commands::on_action(app, action, cx);
    }
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
    if base_focus(app) != Context::Search {
        on_session(app, action, cx);
    } else if search::on_action(app, in_a_dialog(action), cx) == Flow::Pass {
        commands::on_action(app, action, cx);
    }
}

/// A command from the palette applies to the session, even if a request waits that the palette covered.
fn on_command(app: &mut App, action: Action, cx: &mut Cx) {
    let is_of_program = matches!(
        action,
        Action::Redraw | Action::Suspend | Action::Quit | Action::ClearOrQuit | Action::Escape
    );
    if is_of_program || !app.layers.is_empty() {
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
