//! The composer: draft, prompt history of the folder, completion of slash commands.
//!
//! The text area belongs to the view: its text is set by [`ViewCommand::SetDraft`], and each change is reported to
//! [`on_draft`]. Only sending a prompt scrolls the transcript.

use std::time::Instant;

use super::notice::notify;
use crate::core::lifecycle::operations;
use crate::core::{Cx, Effect, Session, SessionPhase, ViewCommand};
use crate::model::{Action, PromptId, SessionKey};
use crate::ui::App;

use super::completion::{Completion, CompletionKind};
use super::draft::leave_history;
pub use super::draft::set_draft;
use super::list::moved;
use super::{agents, mentions, obstacle, queue, sign_in, slash};

/// Maximum number of stashed drafts of a session.
const MAX_STASHED: usize = 50;

/// The files that match a mention, or the slash commands and templates that match the draft, best first; empty if there
/// is nothing to complete.
pub fn completions(app: &App) -> Vec<Completion> {
    let Some(session) = app.state.active_session() else { return Vec::new() };
    // While the user browses the history, the arrow keys move through it.
    if app.shown().history_index.is_some() || app.user.dismissed.as_ref() == Some(&session.draft) {
        return Vec::new();
    }
    if let Some(files) = mentions::completions(app) {
        return files;
    }
    let Some(typed) = typed_command(session) else { return Vec::new() };
    slash::completions(&app.state, session, typed)
}

/// The selected completion, an index into [`completions`].
pub fn selected_completion(app: &App) -> usize {
    app.user.completion.min(completions(app).len().saturating_sub(1))
}

pub fn on_draft(app: &mut App, text: String, cx: &mut Cx) {
    let Some(session) = app.state.active_session() else { return };
    if session.draft == text {
        return;
    }
    if app.shown().history_index.is_some_and(|index| from_end(session, index) != Some(&text)) {
        leave_history(app, app.state.active, cx);
    }
    let Some(session) = app.state.sessions.get_mut(&app.state.active) else { return };
    let is_slash = |draft: &str| draft.starts_with('/');
    let begins_slash = is_slash(&text) && (!is_slash(&session.draft) || !session.templates.is_loaded);
    let is_first_key = session.draft.is_empty();
    session.draft = text;
    if is_first_key {
        let key = app.state.active;
        operations::on_first_key(&mut app.state, key, cx);
    }
    app.user.completion = 0;
    app.user.dismissed = None;
    if begins_slash {
        operations::load_templates(&app.state, app.state.active, cx);
    }
    // Two presses of Ctrl+C count only without typing between them.
    app.state.last_interrupt = None;
    app.guard.release();
}

/// Handles an action of the composer. Returns whether it was one.
pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    match action {
        Action::Submit | Action::Accept => submit(app, cx),
        // The view inserts the line break.
        Action::NewLine => {}
        Action::HistoryPrevious | Action::Up => {
            if !walk_completions(app, -1) && !edit_queued(app, cx) {
                history_previous(app, cx);
            }
        }
        Action::HistoryNext | Action::Down => {
            if !walk_completions(app, 1) && !queue::edit_other(app, 1, cx) {
                history_next(app, cx);
            }
        }
        Action::Complete | Action::NextField => complete(app, cx),
        Action::SendNow | Action::Steer => send_at_once(app, action, cx),
        Action::StashDraft => stash(app, cx),
        Action::FullComposer => cx.effects.push(Effect::View(ViewCommand::ToggleFullComposer)),
        Action::EditDraft => {
            if let Some(session) = app.state.active_session() {
                let (text, folder) = (session.draft.clone(), session.workspace.cwd.clone());
                cx.effects.push(Effect::EditDraft { session: session.key, text, folder });
            }
        }
        Action::Mark(position) => {
            walk_completions(app, isize::try_from(position).unwrap_or_default() - selected(app));
        }
        _ => return false,
    }
    true
}

/// Closes the completions. Returns whether there were any.
pub fn close_completions(app: &mut App) -> bool {
    if completions(app).is_empty() {
        return false;
    }
    app.user.dismissed = app.state.active_session().map(|session| session.draft.clone());
    true
}

/// Clears the draft and adds it to the history; the view can undo that. Returns whether there was any text.
pub fn clear(app: &mut App, cx: &mut Cx) -> bool {
    if queue::leave_edit(app, cx) {
        return true;
    }
    leave_history(app, app.state.active, cx);
    let Some(session) = app.state.sessions.get_mut(&app.state.active) else { return false };
    if session.draft.is_empty() {
        return false;
    }
    let text = std::mem::take(&mut session.draft);
    operations::remember(session, &text, cx);
    app.user.completion = 0;
    app.user.dismissed = None;
    cx.effects.push(Effect::View(ViewCommand::ClearDraft));
    notify(&mut app.state, "Draft cleared. It is in the prompt history.", cx);
    true
}

/// Puts the draft aside; an empty one is replaced by the draft stashed last.
fn stash(app: &mut App, cx: &mut Cx) {
    let Some(session) = app.state.sessions.get_mut(&app.state.active) else { return };
    if session.outbox.edited().is_some() {
        return notify(&mut app.state, "Finish editing the queued prompt first.", cx);
    }
    leave_history(app, app.state.active, cx);
    let Some(session) = app.state.sessions.get_mut(&app.state.active) else { return };
    if session.draft.trim().is_empty() {
        let Some(text) = session.stash.pop() else {
            return notify(&mut app.state, "No stashed prompts.", cx);
        };
        set_draft(app, text, cx);
        return notify(&mut app.state, "Prompt restored.", cx);
    }
    let text = std::mem::take(&mut session.draft);
    // The history has it after a restart.
    operations::remember(session, &text, cx);
    session.stash.push(text);
    if session.stash.len() > MAX_STASHED {
        session.stash.remove(0);
    }
    set_draft(app, String::new(), cx);
    notify(&mut app.state, "Prompt stashed. It is restored after the next prompt.", cx);
}

/// Replaces the draft that was opened in an editor. If it has changed since then, that text is added to the history.
pub fn on_draft_edited(
    app: &mut App,
    key: SessionKey,
    before: &str,
    edited: Result<Option<String>, String>,
    cx: &mut Cx,
) {
    let text = match edited {
        Ok(Some(text)) => text,
        Ok(None) => return,
        Err(why) => return notify(&mut app.state, format!("{why} The prompt is unchanged."), cx),
    };
    let Some(session) = app.state.sessions.get_mut(&key) else { return };
    if session.draft != before {
        let newer = session.draft.clone();
        operations::remember(session, &newer, cx);
    }
    leave_history(app, key, cx);
    let Some(session) = app.state.sessions.get_mut(&key) else { return };
    session.draft.clone_from(&text);
    if key == app.state.active {
        app.user.completion = 0;
        app.user.dismissed = None;
        cx.effects.push(Effect::View(ViewCommand::SetDraft(text)));
    }
}

/// Shows the draft of the active session, with its own undo history.
pub fn show_draft(app: &mut App, cx: &mut Cx) {
    let draft = app.state.active_session().map(|session| session.draft.clone()).unwrap_or_default();
    app.user.completion = 0;
    app.user.dismissed = None;
    cx.effects.push(Effect::View(ViewCommand::ShowDraft(app.state.active, draft)));
}

/// Sends the draft, or the edited or last queued prompt: next, or into the running turn.
fn send_at_once(app: &mut App, action: Action, cx: &mut Cx) {
    let is_command = |session: &Session| session.outbox.edited().is_none() && session.draft.starts_with('!');
    if let Some(why) = obstacle::obstacle(&app.state, action) {
        notify(&mut app.state, why, cx);
    } else if app.state.active_session().is_some_and(is_command) {
        notify(&mut app.state, "Shell commands are not sent to the agent.", cx);
    } else if let Some(id) = queue_draft(app, cx) {
        queue::send(app, action, id, cx);
    }
}

/// Queues the draft, or ends the edit of a queued prompt. Returns that prompt, or the last queued one; `None` if nothing
/// is left to do.
fn queue_draft(app: &mut App, cx: &mut Cx) -> Option<PromptId> {
    let session = app.state.active_session()?;
    if session.outbox.edited().is_some() {
        return queue::finish_edit(app, cx);
    }
    let mut min = 1;
    if !session.draft.trim().is_empty() {
        // A prompt that is sent at once, or a command, is not queued.
        min = session.outbox.queue_len() + 1;
        submit(app, cx);
    }
    let session = app.state.active_session()?;
    session.outbox.last().filter(|_| session.outbox.queue_len() >= min).map(|prompt| prompt.id)
}

/// Sends the draft; `operations` queues it if it cannot be sent yet. A partly typed command is completed first. An edited
/// prompt returns to its place in the queue.
fn submit(app: &mut App, cx: &mut Cx) {
    let Some(session) = app.state.active_session() else { return };
    if app.user.attaching == Some(session.key) {
        return notify(
            &mut app.state,
            "Reading the mentioned session. Send the prompt when it is attached.",
            cx,
        );
    }
    if session.outbox.edited().is_some() {
        if is_completed_by_enter(app, cx.now) {
            complete(app, cx);
            return;
        }
        let key = session.key;
        queue::finish_edit(app, cx);
        // The turn may have ended during the edit.
        operations::send_next(&mut app.state, key, cx);
        return;
    }
    let key = session.key;
    let text = session.draft.clone();
    if !is_completed_by_enter(app, cx.now)
        && let Some((action, filter)) = slash::command(&app.state, &text)
    {
        if slash::is_possible(&mut app.state, action, cx) {
            set_draft(app, String::new(), cx);
            slash::run(&mut app.state, action, filter, cx);
        }
        return;
    }
    let Some(session) = app.state.active_session() else { return };
    // An empty draft sends the queued prompts. A subagent's session takes no prompts, so its draft stays.
    if text.trim().is_empty() || session.parent.is_some() {
        if text.trim().is_empty() && is_answered_by_a_list(app, cx) {
            return;
        }
        let Some(session) = app.state.active_session() else { return };
        let is_used = session.outbox.queue_len() > 0 || session.budget.paused.is_some();
        if !text.trim().is_empty() || is_used {
            operations::submit(&mut app.state, key, text, cx);
        }
        return;
    }
    if is_completed_by_enter(app, cx.now) {
        complete(app, cx);
        return;
    }
    if let Some(why) = operations::password_obstacle(&app.state, key) {
        return notify(&mut app.state, why, cx);
    }
    leave_history(app, app.state.active, cx);
    app.shown_mut().selected = None;
    set_draft(app, String::new(), cx);
    operations::submit(&mut app.state, key, text, cx);
    let stashed = app.state.sessions.get_mut(&key).filter(|session| session.draft.is_empty());
    if let Some(text) = stashed.and_then(|session| session.stash.pop()) {
        set_draft(app, text, cx);
    }
    cx.effects.push(Effect::View(ViewCommand::ScrollEnd));
}

/// Runs the command in the composer: `!` and a command line, or `!!` if its output goes into the next prompt. `text` is
/// what the user sees there.
pub fn on_command_line(app: &mut App, text: &str, cx: &mut Cx) {
    let Some(line) = text.strip_prefix('!') else { return };
    let attaches = line.starts_with('!');
    let line = line.strip_prefix('!').unwrap_or(line).trim().to_owned();
    let Some(session) = app.state.sessions.get_mut(&app.state.active).filter(|_| !app.state.is_quitting)
    else {
        return;
    };
    let key = session.key;
    if session.outbox.edited().is_some() {
        // A queued prompt is sent to the agent.
        submit(app, cx);
    } else if let Some(why) = operations::shell_obstacle(session) {
        notify(&mut app.state, why, cx);
    } else if line.is_empty() {
        notify(&mut app.state, "Type a command after the exclamation mark.", cx);
    } else {
        leave_history(app, app.state.active, cx);
        if let Some(session) = app.state.sessions.get_mut(&key) {
            operations::remember(session, text, cx);
        }
        app.shown_mut().selected = None;
        set_draft(app, String::new(), cx);
        operations::run_command(&mut app.state, key, line, attaches, cx);
        cx.effects.push(Effect::View(ViewCommand::ScrollEnd));
    }
}

/// Whether the selected completion continues the draft, or the user has selected it. A word of another command is never
/// replaced.
fn is_completed_by_enter(app: &App, now: Instant) -> bool {
    if mentions::current(app).is_some() {
        return !completions(app).is_empty();
    }
    let Some(session) = app.state.active_session() else { return false };
    let Some(typed) = typed_command(session) else { return false };
    // The agent may have a command with exactly this name.
    let is_unlisted = session.outbox.commands_until().is_some_and(|until| now < until);
    let may_be_of_agent =
        session.commands.is_empty() && (is_unlisted || session.phase != SessionPhase::Ready);
    let marked = completions(app).into_iter().nth(selected_completion(app));
    let continues =
        |name: &str| name.split(':').any(|part| part.starts_with(typed)) || name.starts_with(typed);
    marked.is_some_and(|marked| {
        let is_chosen = app.user.completion > 0 || marked.kind == CompletionKind::Review;
        let is_own = marked.kind == CompletionKind::Own;
        marked.name != typed && (is_chosen || continues(&marked.name) && !(is_own && may_be_of_agent))
    })
}

/// Reopens the list of agents or sign-in methods if the session needs a choice and Escape closed the list.
/// Returns whether the session needs one.
fn is_answered_by_a_list(app: &mut App, cx: &mut Cx) -> bool {
    let Some((phase, conn)) = app.state.active_session().map(|session| (session.phase.clone(), session.conn))
    else {
        return false;
    };
    match (phase, conn) {
        (SessionPhase::NoAgent, _) => agents::open(app, cx),
        (SessionPhase::NeedsSignIn, Some(conn))
            if operations::running_sign_in(&app.state, conn).is_some() =>
        {
            notify(&mut app.state, "Sign-in in progress.", cx);
        }
        (SessionPhase::NeedsSignIn, Some(conn)) => {
            sign_in::open(app, conn);
        }
        _ => return false,
    }
    true
}

fn complete(app: &mut App, cx: &mut Cx) {
    let mut offered = completions(app);
    let position = selected_completion(app);
    if position >= offered.len() {
        return;
    }
    let chosen = offered.swap_remove(position);
    match chosen.kind {
        CompletionKind::Review => {
            operations::review_templates(&mut app.state, cx.now);
            // The user opened it, with the start of a command in the prompt.
            app.user.enters_question = true;
            return;
        }
        kind if !kind.is_command() => return mentions::insert(app, chosen, cx),
        _ => {}
    }
    let blank = if chosen.hint.is_some() { " " } else { "" };
    let text = format!("/{}{blank}", chosen.name);
    set_draft(app, text.clone(), cx);
    // The name is complete: the list closes, so that Enter sends the draft.
    app.user.dismissed = Some(text);
}

fn walk_completions(app: &mut App, by: isize) -> bool {
    let count = completions(app).len();
    if count == 0 {
        return false;
    }
    app.user.completion = moved(app.user.completion.min(count - 1), by, count);
    true
}

fn selected(app: &App) -> isize {
    isize::try_from(selected_completion(app)).unwrap_or_default()
}

/// Edits the last queued prompt if the composer is empty, and the one before if one is being edited. Returns whether
/// there was one.
fn edit_queued(app: &mut App, cx: &mut Cx) -> bool {
    let Some(session) = app.state.active_session() else { return false };
    if session.outbox.edited().is_some() {
        return queue::edit_other(app, -1, cx);
    }
    let is_free = session.draft.is_empty() && app.shown().history_index.is_none();
    let last = session.outbox.last().filter(|last| is_free && !last.is_steering());
    let Some(last) = last.map(|prompt| prompt.id) else { return false };
    queue::edit(app, last, cx);
    true
}

fn history_previous(app: &mut App, cx: &mut Cx) {
    let Some(session) = app.state.sessions.get_mut(&app.state.active) else { return };
    let view = app.views.get_mut(session.key);
    let mut index = view.history_index.map_or(0, |index| index + 1);
    // A prompt equal to the draft is skipped, because the key would seem to have no effect.
    while from_end(session, index).is_some_and(|text| *text == session.draft) {
        index += 1;
    }
    let Some(text) = from_end(session, index).cloned() else { return };
    if view.history_index.is_none() {
        view.history_stash = std::mem::take(&mut session.draft);
    }
    view.history_index = Some(index);
    set_draft(app, text, cx);
}

fn history_next(app: &mut App, cx: &mut Cx) {
    let Some(session) = app.state.active_session() else { return };
    let view = app.views.get_mut(session.key);
    let Some(mut index) = view.history_index else { return };
    let text = loop {
        let Some(newer) = index.checked_sub(1) else {
            view.history_index = None;
            break std::mem::take(&mut view.history_stash);
        };
        index = newer;
        if let Some(text) = from_end(session, index).filter(|text| **text != session.draft).cloned() {
            view.history_index = Some(index);
            break text;
        }
    };
    set_draft(app, text, cx);
}

fn from_end(session: &Session, index: usize) -> Option<&String> {
    session.history.iter().nth_back(index)
}

/// The typed part of a command's name, if the draft is a slash and one word.
fn typed_command(session: &Session) -> Option<&str> {
    session.draft.strip_prefix('/').filter(|typed| !typed.contains(char::is_whitespace))
}
