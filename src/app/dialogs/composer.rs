//! The prompt: draft, history of the folder, completion of slash commands.
//!
//! The text area is the view's own; what is to stand in it leaves as [`ViewCommand::SetDraft`], and each
//! change comes back through [`on_draft`]. Nothing here scrolls the transcript but sending a prompt.

use std::time::Instant;

use crate::app::lifecycle::operations;
use crate::app::{Effect, Session, SessionPhase, State, ViewCommand};
use crate::model::Action;

use super::{grace, items, moved, picker, pickers, say, slash};
use crate::app::state::fuzzy;

/// Most completions that are offered; some agents tell thousands of commands, and more letters find the rest.
const MOST_COMPLETIONS: usize = 200;

/// A slash command that fits what is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Name without the slash.
    pub name: String,
    pub description: String,
    /// What to type behind it; `None` when it takes nothing.
    pub hint: Option<String>,
}

/// The slash commands to offer for the draft, best first, those of parlor after those of the agent; empty when there
/// is nothing to complete.
pub fn completions(state: &State) -> Vec<Completion> {
    let Some(session) = state.active_session() else { return Vec::new() };
    let Some(typed) = typed_command(session) else { return Vec::new() };
    // While the history is walked, the arrow keys belong to it.
    if session.history_index.is_some() || state.user.dismissed.as_ref() == Some(&session.draft) {
        return Vec::new();
    }
    let rows = session.commands.iter().map(|command| (command.name.as_str(), command.description.as_str()));
    let mut places = fuzzy::rank(typed, rows);
    // What is typed out in full comes first, whatever the scores say.
    places.sort_by_key(|place| session.commands.get(*place).is_none_or(|command| command.name != typed));
    let mut offered: Vec<Completion> = places
        .into_iter()
        .take(MOST_COMPLETIONS)
        .filter_map(|place| session.commands.get(place))
        .map(|command| Completion {
            name: command.name.clone(),
            description: command.description.clone(),
            hint: command.hint.clone(),
        })
        .collect();
    let own = slash::completions(state, typed).into_iter();
    offered.extend(own.map(|(name, text)| Completion {
        name: name.to_owned(),
        description: format!("parlor: {text}"),
        hint: None,
    }));
    offered.sort_by_key(|offer| offer.name != typed);
    offered
}

/// The marked completion, a place in [`completions`].
pub fn selected_completion(state: &State) -> usize {
    state.user.completion.min(completions(state).len().saturating_sub(1))
}

/// The prompt's text changed.
pub fn on_draft(state: &mut State, text: String, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&state.active) else { return };
    if session.draft == text {
        return;
    }
    if session.history_index.is_some_and(|index| from_end(session, index) != Some(&text)) {
        leave_history(session, fx);
    }
    session.draft = text;
    state.user.completion = 0;
    state.user.dismissed = None;
    // Two presses of Ctrl+C count only when nothing is typed between them.
    state.last_interrupt = None;
    // The next letter of a prompt must not answer a dialog.
    state.user.unlocked = None;
    state.ask_view.is_focused = false;
}

/// Actions of the prompt. Returns whether it was one.
pub fn on_action(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) -> bool {
    match action {
        Action::Submit | Action::Accept => submit(state, now, fx),
        // The view puts the line break in.
        Action::NewLine => {}
        Action::HistoryPrevious | Action::Up => {
            if !walk_completions(state, -1) {
                history_previous(state, fx);
            }
        }
        Action::HistoryNext | Action::Down => {
            if !walk_completions(state, 1) {
                history_next(state, fx);
            }
        }
        Action::Complete | Action::NextField => complete(state, fx),
        Action::Mark(place) => {
            walk_completions(state, isize::try_from(place).unwrap_or_default() - selected(state));
        }
        _ => return false,
    }
    true
}

/// Closes the offered completions. Returns whether there were any.
pub fn close_completions(state: &mut State) -> bool {
    if completions(state).is_empty() {
        return false;
    }
    state.user.dismissed = state.active_session().map(|session| session.draft.clone());
    true
}

/// Empties the prompt; its text goes to the history, and the view can undo it. Returns whether there was anything in it.
pub fn clear(state: &mut State, fx: &mut Vec<Effect>) -> bool {
    let Some(session) = state.sessions.get_mut(&state.active) else { return false };
    leave_history(session, fx);
    if session.draft.is_empty() {
        return false;
    }
    let text = std::mem::take(&mut session.draft);
    operations::remember(session, &text, fx);
    state.user.completion = 0;
    state.user.dismissed = None;
    fx.push(Effect::View(ViewCommand::ClearDraft));
    say(state, "Draft cleared. It is in the prompt history.", fx);
    true
}

/// Puts a text into the prompt.
pub fn set_draft(state: &mut State, text: String, fx: &mut Vec<Effect>) {
    if let Some(session) = state.sessions.get_mut(&state.active) {
        session.draft.clone_from(&text);
        state.user.completion = 0;
        state.user.dismissed = None;
        fx.push(Effect::View(ViewCommand::SetDraft(text)));
    }
}

/// Puts a prompt of the history into the composer; the draft becomes a part of the history.
pub fn recall(state: &mut State, text: String, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&state.active) else { return };
    leave_history(session, fx);
    let draft = std::mem::take(&mut session.draft);
    operations::remember(session, &draft, fx);
    set_draft(state, text, fx);
}

/// Puts the active session's own draft into the composer.
pub fn show_draft(state: &mut State, fx: &mut Vec<Effect>) {
    let draft = state.active_session().map(|session| session.draft.clone()).unwrap_or_default();
    set_draft(state, draft, fx);
}

/// Sends the prompt; `operations` queues it if it cannot be sent yet. A partly typed command is completed first.
fn submit(state: &mut State, now: Instant, fx: &mut Vec<Effect>) {
    let Some(session) = state.active_session() else { return };
    let key = session.key;
    let text = session.draft.clone();
    if !is_completed_by_enter(state)
        && let Some((action, filter)) = slash::command(state, &text)
    {
        if slash::is_possible(state, action, fx) {
            set_draft(state, String::new(), fx);
            slash::run(state, action, filter, now, fx);
        }
        return;
    }
    let Some(session) = state.active_session() else { return };
    // An empty prompt sends what waits; that of a subagent's session goes nowhere, and stays.
    if text.trim().is_empty() || session.parent.is_some() {
        if text.trim().is_empty() && is_answered_by_a_list(state, fx) {
            return;
        }
        let Some(session) = state.active_session() else { return };
        if !text.trim().is_empty() || !session.queue.is_empty() {
            operations::submit(state, key, text, now, fx);
        }
        return;
    }
    if is_completed_by_enter(state) {
        complete(state, fx);
        return;
    }
    if let Some(session) = state.sessions.get_mut(&key) {
        leave_history(session, fx);
    }
    items::clear_mark(state);
    set_draft(state, String::new(), fx);
    operations::submit(state, key, text, now, fx);
    fx.push(Effect::View(ViewCommand::ScrollEnd));
}

/// Whether a completion is marked that differs from what is typed.
fn is_completed_by_enter(state: &State) -> bool {
    let Some(typed) = state.active_session().and_then(typed_command) else { return false };
    let marked = completions(state).into_iter().nth(selected_completion(state));
    marked.is_some_and(|marked| marked.name != typed)
}

/// Opens the list of agents, or of ways to sign in, where the session waits for a choice: Escape closed it, and
/// without this only the palette leads back. Returns whether it does wait for one.
fn is_answered_by_a_list(state: &mut State, fx: &mut Vec<Effect>) -> bool {
    let Some((phase, conn)) = state.active_session().map(|session| (session.phase.clone(), session.conn))
    else {
        return false;
    };
    match (phase, conn) {
        (SessionPhase::NoAgent, _) => pickers::open_agents(state),
        (SessionPhase::NeedsSignIn, Some(conn)) if operations::running_sign_in(state, conn).is_some() => {
            say(state, "Sign-in in progress.", fx);
        }
        (SessionPhase::NeedsSignIn, Some(conn)) => {
            let methods = pickers::sign_in(state, conn);
            picker::push(state, methods);
        }
        _ => return false,
    }
    true
}

fn complete(state: &mut State, fx: &mut Vec<Effect>) {
    let mut offered = completions(state);
    let place = selected_completion(state);
    if place >= offered.len() {
        grace::focus_request(state);
        return;
    }
    let chosen = offered.swap_remove(place);
    let blank = if chosen.hint.is_some() { " " } else { "" };
    let text = format!("/{}{blank}", chosen.name);
    set_draft(state, text.clone(), fx);
    // It is complete: the list goes, so that Enter sends.
    state.user.dismissed = Some(text);
}

fn walk_completions(state: &mut State, by: isize) -> bool {
    let count = completions(state).len();
    if count == 0 {
        return false;
    }
    state.user.completion = moved(state.user.completion.min(count - 1), by, count);
    true
}

fn selected(state: &State) -> isize {
    isize::try_from(selected_completion(state)).unwrap_or_default()
}

fn history_previous(state: &mut State, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&state.active) else { return };
    let mut index = session.history_index.map_or(0, |index| index + 1);
    // What stands in the prompt already would look like a key that does nothing.
    while from_end(session, index).is_some_and(|text| *text == session.draft) {
        index += 1;
    }
    let Some(text) = from_end(session, index).cloned() else { return };
    if session.history_index.is_none() {
        session.history_stash = std::mem::take(&mut session.draft);
    }
    session.history_index = Some(index);
    set_draft(state, text, fx);
}

fn history_next(state: &mut State, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&state.active) else { return };
    let Some(mut index) = session.history_index else { return };
    let text = loop {
        let Some(newer) = index.checked_sub(1) else {
            session.history_index = None;
            break std::mem::take(&mut session.history_stash);
        };
        index = newer;
        if let Some(text) = from_end(session, index).filter(|text| **text != session.draft).cloned() {
            session.history_index = Some(index);
            break text;
        }
    };
    set_draft(state, text, fx);
}

fn from_end(session: &Session, index: usize) -> Option<&String> {
    session.history.iter().nth_back(index)
}

/// Ends the walk through the history; the draft from before it becomes a part of it.
fn leave_history(session: &mut Session, fx: &mut Vec<Effect>) {
    session.history_index = None;
    let stash = std::mem::take(&mut session.history_stash);
    operations::remember(session, &stash, fx);
}

/// What is typed of a command's name: the draft is a slash and one word.
fn typed_command(session: &Session) -> Option<&str> {
    session.draft.strip_prefix('/').filter(|typed| !typed.contains(char::is_whitespace))
}
