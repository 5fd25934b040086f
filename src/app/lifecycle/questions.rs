//! Answers to the questions of parlor.
//!
//! Invariant: a question is answered once; it is removed before its answer is carried out.

use std::time::Instant;

use crate::app::state::question::{Consequence, QuestionId};
use crate::app::{Effect, State, UiRequest};
use crate::guard;
use crate::model::{Action, StoreJob};

use super::{archive, auth, close, conn, install, open, project, servers, spool, ssh_sign_in, templates};

/// Answers a question. Returns whether it was open and has this answer.
pub fn answer(
    state: &mut State,
    id: QuestionId,
    position: usize,
    now: Instant,
    fx: &mut Vec<Effect>,
) -> bool {
    let Some(answer) = state.question(id).and_then(|question| question.answers.get(position)) else {
        return false;
    };
    let consequence = answer.consequence.clone();
    state.questions.retain(|question| question.id != id);
    carry_out(state, consequence, now, fx);
    true
}

/// Closes a question without an answer, which is the one that refuses.
pub fn dismiss(state: &mut State, id: QuestionId, now: Instant, fx: &mut Vec<Effect>) {
    let Some(position) = state.questions.iter().position(|question| question.id == id) else { return };
    let question = state.questions.remove(position);
    let refuses = |consequence: &Consequence| consequence.reach() == guard::Effect::Reject;
    let refusal = question.answers.into_iter().map(|answer| answer.consequence).find(refuses);
    if let Some(refusal) = refusal {
        carry_out(state, refusal, now, fx);
    }
}

/// Dismisses the questions of sessions that were closed.
pub(in crate::app) fn dismiss_orphans(state: &mut State, now: Instant, fx: &mut Vec<Effect>) {
    if state.is_quitting {
        return;
    }
    let questions = state.questions.iter();
    let orphans = questions.filter(|question| !state.sessions.contains_key(&question.session));
    let ids: Vec<QuestionId> = orphans.map(|question| question.id).collect();
    for id in ids {
        dismiss(state, id, now, fx);
    }
}

fn carry_out(state: &mut State, consequence: Consequence, now: Instant, fx: &mut Vec<Effect>) {
    match consequence {
        Consequence::Close => {}
        Consequence::Effect(effect) => fx.push(*effect),
        Consequence::Quit => conn::quit(state, now, fx),
        Consequence::AskToQuit => state.ui_requests.push(UiRequest::Act(Action::Quit)),
        Consequence::ForceStop(id) => conn::force_stop(state, id, now, fx),
        Consequence::Restart(key) => conn::restart_agent(state, key, now, fx),
        Consequence::CloseSession(key) => close::close_session(state, key, now, fx),
        Consequence::Servers(folder, answer) => servers::answer_servers(state, &folder, answer, now, fx),
        Consequence::Project(answer) => project::answer_project(state, answer, now, fx),
        Consequence::Templates { session, answers, answer } => {
            templates::answer(state, session, answers, answer, fx);
        }
        Consequence::SignInToHost(id) => ssh_sign_in::sign_in_to_host(state, id, fx),
        Consequence::RunLogin(id, spec, env) => auth::run_login(state, id, &spec, &env, fx),
        Consequence::OpenListed(info, with_folders) => {
            super::from_list::open_listed(state, &info, with_folders, now, fx);
        }
        Consequence::Install(agent, scripts) => install::start(state, &agent, &scripts, fx),
        Consequence::StartAgent(spec) => install::begin(state, *spec, now, fx),
        Consequence::DeleteSession(id) => close::delete_session(state, id, fx),
        Consequence::DeleteSaved(uid, listed) => {
            fx.push(Effect::Store(StoreJob::Delete { uid }));
            if let Some(id) = listed {
                close::delete_session(state, id, fx);
            }
        }
        Consequence::DeleteTurn(key, turn) => spool::delete_turn(state, key, turn, fx),
        Consequence::MoveAllTo(key, folder) => {
            archive::move_sessions(state, key, folder.clone(), fx);
            archive::go_on_in(state, key, folder, now, fx);
        }
        Consequence::GoOnIn(key, folder) => archive::go_on_in(state, key, folder, now, fx),
        Consequence::Fork(key, at) => open::fork_session(state, key, at, now, fx),
        Consequence::Rewind(key, item, way) => state.ui_requests.push(UiRequest::Rewind(key, item, way)),
    }
}
