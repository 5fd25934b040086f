//! Dialogs without a list: questions with a few answers, and pages to read.

use std::time::Instant;

use crate::app::lifecycle::operations;
use crate::app::state::modal::moved;
use crate::app::{Choice, ChoiceOutcome, Effect, LineInput, Modal, State};
use crate::model::{Action, LineEdit, StoreJob, Target};

use super::stack::{ALL_LINES, close_top, scroll, scroll_body};
use super::{install, leave, open, rewind, templates};

/// Handles an action in a question with a few answers.
pub fn on_choice(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) -> bool {
    let Some(Modal::Choice(dialog)) = state.modals.last_mut() else { return false };
    let count = dialog.choices.len();
    let chosen = match action {
        Action::Choose(position) => usize::from(position).checked_sub(1),
        Action::Accept => Some(dialog.selected),
        Action::Yes => only_action(&dialog.choices),
        Action::No => dialog.choices.iter().position(|choice| choice.outcome == ChoiceOutcome::Close),
        Action::Up | Action::Left | Action::PreviousField => {
            dialog.selected = moved(dialog.selected, -1, count);
            return true;
        }
        Action::Down | Action::Right | Action::NextField => {
            dialog.selected = moved(dialog.selected, 1, count);
            return true;
        }
        Action::First => {
            dialog.selected = 0;
            return true;
        }
        Action::Last => {
            dialog.selected = count.saturating_sub(1);
            return true;
        }
        Action::Mark(position) => {
            dialog.selected = moved(usize::from(position), 0, count);
            return true;
        }
        _ => return scroll_body(action, fx),
    };
    let outcome =
        chosen.and_then(|position| dialog.choices.get(position)).map(|choice| choice.outcome.clone());
    if let Some(outcome) = outcome {
        close_top(state, fx);
        carry_out(state, &outcome, now, fx);
    } else if count == 0 {
        close_top(state, fx);
    }
    true
}

/// Handles an action in help, log and connection details, some of which have a filter.
pub fn on_page(state: &mut State, action: Action, fx: &mut Vec<Effect>) -> bool {
    match action {
        Action::Up => scroll(-1, fx),
        Action::Down => scroll(1, fx),
        Action::First => scroll(-ALL_LINES, fx),
        Action::Last => scroll(ALL_LINES, fx),
        Action::Left => edit_filter(state, &LineEdit::Left),
        Action::Right => edit_filter(state, &LineEdit::Right),
        Action::Choose(digit) => edit_filter(state, &LineEdit::Insert(digit.to_string())),
        Action::Accept | Action::NextField | Action::PreviousField => {}
        _ => return scroll_body(action, fx),
    }
    true
}

pub fn help() -> Modal {
    Modal::Help { filter: LineInput::default() }
}

pub fn log() -> Modal {
    Modal::Log { filter: LineInput::default() }
}

/// The choice for "yes": only if there is a single one besides closing.
fn only_action(choices: &[Choice]) -> Option<usize> {
    let is_deed = |choice: &Choice| choice.outcome != ChoiceOutcome::Close;
    let position = choices.iter().position(is_deed)?;
    (choices.iter().filter(|choice| is_deed(choice)).count() == 1).then_some(position)
}

fn edit_filter(state: &mut State, edit: &LineEdit) {
    if let Some(Modal::Help { filter } | Modal::Log { filter }) = state.modals.last_mut() {
        filter.apply(edit);
    }
}

fn carry_out(state: &mut State, outcome: &ChoiceOutcome, now: Instant, fx: &mut Vec<Effect>) {
    match outcome {
        ChoiceOutcome::Close => {}
        ChoiceOutcome::Quit => operations::quit(state, now, fx),
        ChoiceOutcome::AskToQuit => leave::quit(state, now, fx),
        ChoiceOutcome::ForceStop(conn) => operations::force_stop(state, *conn, now, fx),
        ChoiceOutcome::Restart(key) => operations::restart_agent(state, *key, now, fx),
        ChoiceOutcome::AnswerServers(folder, answer) => {
            operations::answer_servers(state, folder, *answer, now, fx);
        }
        ChoiceOutcome::AnswerProject(answer) => operations::answer_project(state, *answer, now, fx),
        ChoiceOutcome::AnswerTemplates { session, answers, answer } => {
            templates::answer(state, *session, answers, *answer, fx);
        }
        ChoiceOutcome::SignInToHost(conn) => operations::sign_in_to_host(state, *conn, fx),
        ChoiceOutcome::RunLogin(conn, spec, env) => operations::run_login(state, *conn, spec, env, fx),
        ChoiceOutcome::OpenListed { info, with_folders } => {
            operations::open_listed(state, info, *with_folders, now, fx);
        }
        ChoiceOutcome::CloseSession(key) => operations::close_session(state, *key, now, fx),
        ChoiceOutcome::OpenFile(position) => open::on_open(state, Target::File(position.clone()), fx),
        ChoiceOutcome::Configure(job) => fx.push(Effect::Configure(job.clone())),
        ChoiceOutcome::OpenUrl(url) => fx.push(Effect::OpenUrl(url.clone())),
        ChoiceOutcome::Copy(job) => fx.push(Effect::Copy(job.clone())),
        ChoiceOutcome::Install(agent, scripts) => install::start(state, agent, scripts, fx),
        ChoiceOutcome::CancelInstall => fx.push(Effect::CancelInstall),
        ChoiceOutcome::StartAgent(spec) => install::begin(state, spec.as_ref().clone(), now, fx),
        ChoiceOutcome::DeleteSession(id) => operations::delete_session(state, id.clone(), fx),
        ChoiceOutcome::DeleteSaved { uid, listed } => {
            fx.push(Effect::Store(StoreJob::Delete { uid: uid.clone() }));
            if let Some(id) = listed {
                operations::delete_session(state, id.clone(), fx);
            }
        }
        ChoiceOutcome::DeleteTurn(key, turn) => operations::delete_turn(state, *key, *turn, fx),
        ChoiceOutcome::MoveAllTo(key, folder) => {
            operations::move_sessions(state, *key, folder.clone(), fx);
            operations::go_on_in(state, *key, folder.clone(), now, fx);
        }
        ChoiceOutcome::GoOnIn(key, folder) => operations::go_on_in(state, *key, folder.clone(), now, fx),
        ChoiceOutcome::Export(uid, form) => {
            let folder = state.setup.export_folder.clone();
            fx.push(Effect::Store(StoreJob::Export { uid: uid.clone(), form: *form, folder }));
        }
        ChoiceOutcome::Rewind(key, item, way) => rewind::go_back(state, *key, *item, *way, now, fx),
        ChoiceOutcome::Fork(key, at) => operations::fork_session(state, *key, *at, now, fx),
    }
}
