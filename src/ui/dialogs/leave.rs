//! Escape, Ctrl+C and Ctrl+Q: closing, cancelling, quitting.
//!
//! Invariants: each press has one effect; a press that closes or rejects something never also cancels the turn;
//! no press here allows a request.

use super::notice::notify;
use crate::core::state::lookup::first_request;
use crate::core::state::{FlashEnd, lookup, tab};
use std::time::{Duration, Instant};

use crate::core::lifecycle::operations;
use crate::core::{Consequence, Cx, Effect, Question, State, TimerId, Turn, UserAnswer};
use crate::model::{Action, Unsaved};
use crate::ui::App;

use super::{composer, is_beside_draft, jump, obstacle, queue, requests, rewind, search, stack, tab_dialogs};

/// How long the first of two presses counts.
const AGAIN: Duration = Duration::from_secs(1);
/// The question while no turn is running in several tabs.
const TABS_TITLE: &str = "Quit all tabs?";
/// The question while a turn is running.
const QUIT_TITLE: &str = "A turn is running. Quit?";
/// The question after that turn has ended, or everything was saved.
const IDLE_TITLE: &str = "Quit parlor?";
const QUIT_BODY: &str = "Quitting cancels the turn and stops the agent.";
const IDLE_BODY: &str = "No turn is running. Quitting stops the agent.";
/// The question while turns are running in several tabs.
const QUIT_ALL_TITLE: &str = "Turns are running. Quit?";

/// Closes the top dialog, otherwise leaves what has the keys beside a request, otherwise rejects the shown request,
/// otherwise closes the search, otherwise removes the filter of the transcript, otherwise leaves it, otherwise stops the user's command or cancels the turn, otherwise clears the selection.
///
/// A second press soon after a rejection cancels the turn, even if another request is shown by then:
/// a user who presses twice wants the agent to stop.
pub fn escape(app: &mut App, cx: &mut Cx) {
    let active = app.state.active;
    let may_close = app.guard.question().is_none() || app.guard.rejects();
    let last_escape = app.user.last_escape.take();
    if let Some(layer) = app.layers.last_mut() {
        // Returning from a part of it answers nothing.
        if !layer.leave_part() && may_close {
            stack::close_top(app, cx);
        }
    } else if is_within(app.user.last_reject, cx.now) && is_turn_in_full_run(&app.state) {
        app.user.last_reject = None;
        operations::cancel_turn(&mut app.state, active, cx);
    } else if is_beside_draft(app) && leave_view(app, cx) {
        // The request stays open.
    } else if first_request(&app.state).is_some() {
        if may_close {
            requests::answer(app, UserAnswer::Dismiss, cx);
            app.user.last_reject = Some(cx.now);
        }
    } else if composer::close_completions(app) || leave_view(app, cx) {
        // Closing the dialog is the only effect of this press.
    } else if let Some(conn) = app
        .state
        .active_session()
        .and_then(|session| session.conn)
        .filter(|conn| operations::running_sign_in(&app.state, *conn).is_some())
    {
        operations::cancel_sign_in(&mut app.state, conn, cx);
    } else if let Some(parent) = app.state.active_session().and_then(|session| session.parent) {
        tab_dialogs::show(app, parent, cx);
    } else if operations::stop_command(&mut app.state, active, cx) {
        // It was started after the turn.
    } else if is_turn_in_full_run(&app.state) {
        operations::cancel_turn(&mut app.state, active, cx);
    } else if app.shown_mut().selected.take().is_none()
        && let Some(session) = app.state.active_session()
    {
        let is_empty = session.draft.is_empty() && session.turn_count > 0;
        if session.turn.is_running() && is_cancel_overdue(&app.state) {
            // The user chose to wait earlier, and may not want to wait any longer.
            operations::cancel_turn(&mut app.state, active, cx);
        } else if app.state.active_session().is_some_and(|session| session.turn.is_running()) {
            let end = FlashEnd::Turn(app.state.active);
            notify(&mut app.state, "Waiting for the agent to stop.", cx);
            app.state.flash_end = end;
        } else if is_empty {
            list_prompts(app, last_escape, cx);
        }
    }
}

/// Leaves what has the keys beside the prompt, one thing at a time.
fn leave_view(app: &mut App, cx: &mut Cx) -> bool {
    search::close(app) || jump::show_all(app) || stop_browsing(app) || queue::leave_edit(app, cx)
}

/// Lists the prompts at the second press of Escape without another effect; announces that at the first.
fn list_prompts(app: &mut App, last_escape: Option<Instant>, cx: &mut Cx) {
    if is_within(last_escape, cx.now) {
        app.state.clear_flash();
        match obstacle::obstacle(&app.state, Action::Rewind) {
            Some(why) => notify(&mut app.state, why, cx),
            None => rewind::open(app, cx),
        }
        return;
    }
    app.user.last_escape = Some(cx.now);
    app.state.set_flash("Press again to go back to an earlier prompt".to_owned(), FlashEnd::Time);
    cx.effects.push(Effect::Timer(TimerId::Flash, AGAIN));
}

/// Clears the composer, otherwise cancels the turn; a second press within a second quits.
pub fn interrupt(app: &mut App, cx: &mut Cx) {
    let active = app.state.active;
    if is_within(app.state.last_interrupt, cx.now) {
        // The turn of this tab was cancelled by the first press, or is meant to end.
        let is_other =
            |session: &crate::core::Session| session.key != app.state.active && session.turn.is_running();
        if app.state.sessions.values().any(is_other) || loses_turns(&app.state).is_some() {
            quit(&mut app.state, cx);
        } else {
            operations::quit(&mut app.state, cx);
        }
        return;
    }
    let is_early = app.guard.question().is_some() && !app.guard.rejects();
    if is_early || is_beside_draft(app) {
        // The composer still has the focus.
        if composer::clear(app, cx) || operations::stop_command(&mut app.state, active, cx) {
            return;
        }
        cancel_if_running(&mut app.state, cx);
    } else if !app.layers.is_empty() {
        stack::close_top(app, cx);
    } else if first_request(&app.state).is_some() {
        if is_turn_in_full_run(&app.state) {
            operations::cancel_turn(&mut app.state, active, cx);
        } else {
            requests::answer(app, UserAnswer::Dismiss, cx);
        }
    } else if search::close(app)
        || stop_browsing(app)
        || composer::clear(app, cx)
        || operations::stop_command(&mut app.state, active, cx)
    {
        return;
    } else {
        cancel_if_running(&mut app.state, cx);
    }
    app.state.last_interrupt = Some(cx.now);
    app.state.set_flash("Press again to quit".to_owned(), FlashEnd::Time);
    cx.effects.push(Effect::Timer(TimerId::QuitWindow, AGAIN));
    cx.effects.push(Effect::Timer(TimerId::Flash, AGAIN));
}

/// Quits; asks for confirmation if a turn is running in any session, if turns are not saved, or if several tabs are open
/// that are not restored.
pub fn quit(state: &mut State, cx: &mut Cx) {
    let front = tab::front(state);
    let is_shown = |question: &Question| lookup::root_of(state, question.session) == front;
    let is_asked = state.questions.iter().any(|question| is_quit_question(question) && is_shown(question));
    if is_asked || running_turns(state) == 0 && !loses_tabs(state) && loses_turns(state).is_none() {
        operations::quit(state, cx);
        return;
    }
    let (title, body) = quit_text(state);
    // One that was left open in another tab.
    state.withdraw(|consequence| *consequence == Consequence::Quit);
    let answers = [("Quit", Consequence::Quit), ("Keep working", Consequence::Close)];
    state.ask(state.active, Question::new(title, body, answers).marking_last());
}

/// Updates the question when the turn ends or a queued prompt starts another. The dialog stays open, because a
/// `y` typed at that moment must not go into the composer.
pub fn refresh_question(state: &mut State) {
    let Some(position) = state.questions.iter().position(is_quit_question) else { return };
    let (title, body) = quit_text(state);
    if let Some(question) = state.questions.get_mut(position) {
        (question.title, question.body) = (title, body);
    }
}

fn quit_text(state: &State) -> (String, Vec<String>) {
    let has_tabs = has_tabs(state);
    let (title, consequence) = match running_turns(state) {
        0 if has_tabs => {
            (TABS_TITLE, "No turn is running. Quitting stops the agents of all tabs.".to_owned())
        }
        0 => (IDLE_TITLE, IDLE_BODY.to_owned()),
        1 if has_tabs => {
            (QUIT_TITLE, "Quitting cancels the turn and stops the agents of all tabs.".to_owned())
        }
        1 => (QUIT_TITLE, QUIT_BODY.to_owned()),
        count => {
            (QUIT_ALL_TITLE, format!("Quitting cancels {count} turns and stops the agents of all tabs."))
        }
    };
    if let Some((what, unsaved)) = loses_turns(state) {
        let fate = match &unsaved.folder {
            Some(folder) => format!(
                "On quit, parlor writes a file to {} that `parlor sessions import` reads.",
                folder.display()
            ),
            None => "They cannot be written to a file either. They are lost if you quit now.".to_owned(),
        };
        let is_more = has_tabs || running_turns(state) > 0;
        let next = is_more.then_some(consequence);
        return (
            format!("{what} Quit?"),
            [format!("Cannot save: {}.", unsaved.why), fate].into_iter().chain(next).collect(),
        );
    }
    let fate = if loses_tabs(state) {
        "Their sessions are not saved."
    } else {
        "`parlor --continue` reopens the tabs."
    };
    let next = has_tabs.then(|| fate.to_owned());
    (title.to_owned(), std::iter::once(consequence).chain(next).collect())
}

fn has_tabs(state: &State) -> bool {
    tab::tabs(state).nth(1).is_some()
}

/// What cannot be saved now. In plain-text mode, parlor does not ask: a script cannot answer.
fn loses_turns(state: &State) -> Option<(String, &Unsaved)> {
    let what = lookup::unsaved(state, None).filter(|_| !state.setup.is_plain)?;
    Some((what, state.unsaved.as_ref()?))
}

/// Whether `--continue` does not bring everything back: nothing is saved, or saving fails.
fn loses_tabs(state: &State) -> bool {
    has_tabs(state) && (!state.setup.saves_sessions || state.unsaved.is_some())
}

fn is_quit_question(question: &Question) -> bool {
    question.answers.iter().any(|answer| answer.consequence == Consequence::Quit)
}

fn running_turns(state: &State) -> usize {
    state.sessions.values().filter(|session| session.turn.is_running()).count()
}

/// Moves the focus to the transcript, or back to the composer.
pub fn turn_browsing(app: &mut App, cx: &mut Cx) {
    if !stop_browsing(app) {
        app.user.is_browsing = true;
        super::items::mark_something(app, cx);
    }
}

/// Moves the focus back to the composer. Returns whether it was elsewhere.
pub fn stop_browsing(app: &mut App) -> bool {
    if std::mem::take(&mut app.user.is_browsing) {
        app.shown_mut().selected = None;
        return true;
    }
    false
}

fn cancel_if_running(state: &mut State, cx: &mut Cx) {
    if obstacle::can_cancel(state) {
        operations::cancel_turn(state, state.active, cx);
    }
}

/// Whether a turn is running and not yet cancelled.
fn is_turn_in_full_run(state: &State) -> bool {
    state.active_session().is_some_and(|session| matches!(session.turn, Turn::Running { .. }))
}

/// Whether the agent has not responded to a cancellation for a long time.
fn is_cancel_overdue(state: &State) -> bool {
    state
        .active_session()
        .is_some_and(|session| matches!(session.turn, Turn::Cancelling { is_overdue: true, .. }))
}

fn is_within(before: Option<Instant>, now: Instant) -> bool {
    before.is_some_and(|before| now.saturating_duration_since(before) <= AGAIN)
}
