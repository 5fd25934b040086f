//! Answers to all questions, of agents and of parlor.
//!
//! Every front end uses [`answer`]. Invariant: a question is answered once; it is removed before its answer is carried
//! out.

use crate::core::state::question::{CLOSED, NO_SUCH_ANSWER};
use crate::core::{Consequence, Cx, Effect, QuestionId, State, UiRequest, UserAnswer};
use crate::guard;
use crate::model::{Action, StoreJob};

use super::{
    archive, auth, close, conn, install, open, project, requests, servers, spool, ssh_sign_in, templates,
};

/// Answers a question. Fails with a message for the user if it is not open, or does not have this answer.
pub fn answer(
    state: &mut State,
    id: QuestionId,
    answer: UserAnswer,
    cx: &mut Cx,
) -> Result<(), &'static str> {
    if let QuestionId::Agent(request_id) = id {
        return requests::answer_by_user(state, request_id, answer, cx);
    }
    let question = state.question(id).ok_or(CLOSED)?;
    let position = match answer {
        UserAnswer::Option(position) => position,
        UserAnswer::Values(_) => return Err(NO_SUCH_ANSWER),
        UserAnswer::Decline | UserAnswer::Dismiss => {
            dismiss(state, id, cx);
            return Ok(());
        }
    };
    let consequence = question.answers.get(position).ok_or(NO_SUCH_ANSWER)?.consequence.clone();
    state.questions.retain(|question| question.id != id);
    carry_out(state, consequence, cx);
    Ok(())
}

/// Closes a question of parlor with the answer that refuses, if it has one.
fn dismiss(state: &mut State, id: QuestionId, cx: &mut Cx) {
    let Some(position) = state.questions.iter().position(|question| question.id == id) else { return };
    let question = state.questions.remove(position);
    let refuses = |consequence: &Consequence| consequence.reach() == guard::Effect::Reject;
    let refusal = question.answers.into_iter().map(|answer| answer.consequence).find(refuses);
    if let Some(refusal) = refusal {
        carry_out(state, refusal, cx);
    }
}

/// Dismisses the questions of sessions that were closed.
pub(in crate::core) fn dismiss_orphans(state: &mut State, cx: &mut Cx) {
    if state.is_quitting {
        return;
    }
    let questions = state.questions.iter();
    let orphans = questions.filter(|question| !state.sessions.contains_key(&question.session));
    let ids: Vec<QuestionId> = orphans.map(|question| question.id).collect();
    for id in ids {
        dismiss(state, id, cx);
    }
}

fn carry_out(state: &mut State, consequence: Consequence, cx: &mut Cx) {
    match consequence {
        Consequence::Close => {}
        Consequence::Effect(effect) => cx.effects.push(*effect),
        Consequence::Quit => conn::quit(state, cx),
        Consequence::AskToQuit => cx.requests.push(UiRequest::Act(Action::Quit)),
        Consequence::ForceStop(id) => conn::force_stop(state, id, cx),
        Consequence::Restart(key) => conn::restart_agent(state, key, cx),
        Consequence::CloseSession(key) => close::close_session(state, key, cx),
        Consequence::Servers(folder, answer) => servers::answer_servers(state, &folder, answer, cx),
        Consequence::Project(answer) => project::answer_project(state, answer, cx),
        Consequence::Templates { session, answers, answer } => {
            templates::answer(state, session, answers, answer, cx);
        }
        Consequence::SignInToHost(id) => ssh_sign_in::sign_in_to_host(state, id, cx),
        Consequence::RunLogin(id, spec, env) => auth::run_login(state, id, &spec, &env, cx),
        Consequence::OpenListed(info, with_folders) => {
            super::from_list::open_listed(state, &info, with_folders, cx);
        }
        Consequence::Install(agent, scripts) => install::start(state, &agent, &scripts, cx),
        Consequence::StartAgent(spec) => install::begin(state, *spec, cx),
        Consequence::DeleteSession(id) => close::delete_session(state, id, cx),
        Consequence::DeleteSaved(uid, listed) => {
            cx.effects.push(Effect::Store(StoreJob::Delete { uid }));
            if let Some(id) = listed {
                close::delete_session(state, id, cx);
            }
        }
        Consequence::DeleteTurn(key, turn) => spool::delete_turn(state, key, turn, cx),
        Consequence::MoveAllTo(key, folder) => {
            archive::move_sessions(state, key, folder.clone(), cx);
            archive::go_on_in(state, key, folder, cx);
        }
        Consequence::GoOnIn(key, folder) => archive::go_on_in(state, key, folder, cx),
        Consequence::Fork(key, at) => open::fork_session(state, key, at, cx),
        Consequence::PassLimit(key, limit, prompt) => {
            super::budget::pass(state, key, &limit, prompt);
            super::turn::send_next(state, key, cx);
        }
        Consequence::Secrets(key, prompt, answer, hashes) => {
            super::secrets::decide(state, key, prompt, (answer, hashes), cx);
            super::turn::send_next(state, key, cx);
        }
        Consequence::AllowByRules(id, rules, scope) => super::by_rule::allow(state, id, (&rules, scope), cx),
        Consequence::ChoosePath(key, grant) => super::refused::ask_scope(state, key, &grant),
        Consequence::OpenPath(key, grant, scope) => {
            if super::refused::allow(state, key, (grant, scope), cx) {
                conn::restart_agent(state, key, cx);
            }
        }
        Consequence::CancelTurn(key) => super::turn::cancel_turn(state, key, cx),
        Consequence::ApproveAll(key, scope) => super::approve_all::start(state, key, scope),
        Consequence::Rewind(key, item, way) => cx.requests.push(UiRequest::Rewind(key, item, way)),
    }
}
