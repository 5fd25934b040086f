//! Installs agents from the registry: the question, the progress, the outcome.
//!
//! Invariant: nothing is downloaded or run before the user has seen it and agreed.

use std::time::Instant;

use crate::core::{Consequence, Cx, Effect, Question, State, UiRequest};
use crate::escape::visible;
use crate::model::{AgentSpec, ConfigJob, CopyContent, CopyJob, RegistryAgent, RegistryIndex};

use super::call::flash;
use super::conn::start_agent;

/// Number of lines of the progress that are shown.
const LINES: usize = 6;

pub fn on_registry(state: &mut State, result: Result<RegistryIndex, String>, is_fetched: bool, cx: &mut Cx) {
    match result {
        Ok(index) => {
            if is_fetched {
                flash(state, format!("{} agents in the registry.", index.agents.len()), cx);
            }
            state.registry = Some(index);
        }
        Err(error) => flash(state, error, cx),
    }
    cx.requests.push(UiRequest::AgentsChanged);
    if let Some(id) = state.setup.install_first.take() {
        ask(state, &id, Some(cx.now), cx);
    }
}

/// Shows what installing an agent downloads and runs, and asks.
pub fn ask(state: &mut State, id: &str, asked_at: Option<Instant>, cx: &mut Cx) {
    let agent = state.registry.as_ref().and_then(|index| index.agents.iter().find(|agent| agent.id == id));
    let Some(agent) = agent.cloned() else {
        flash(state, "The registry does not have this agent. Fetch the registry.", cx);
        return;
    };
    if state.installing.is_some() {
        flash(state, "Another agent is being installed.", cx);
        return;
    }
    let mut body: Vec<String> = Vec::new();
    if !agent.description.is_empty() {
        body.push(visible(&agent.description).into_owned());
    }
    body.extend(agent.plan(&state.setup.agents_dir).iter().map(|line| visible(line).into_owned()));
    body.push("It runs with your permissions, like every program that you install.".to_owned());
    let title = format!("Install {} {}?", visible(&agent.title), visible(&agent.version));
    let install = Consequence::Install(Box::new(agent), Vec::new());
    let question = Question::new(title, body, [("Install", install), ("Do not install", Consequence::Close)]);
    state.ask(state.active, Question { asked_at, ..question });
}

pub fn start(state: &mut State, agent: &RegistryAgent, scripts: &[String], cx: &mut Cx) {
    if state.installing.is_some() {
        return;
    }
    state.installing = Some(Vec::new());
    cx.effects.push(Effect::InstallAgent { agent: Box::new(agent.clone()), scripts: scripts.to_vec() });
    let title = format!("Installing {}", visible(&agent.title));
    let cancel = [("Cancel", Consequence::effect(Effect::CancelInstall))];
    state.ask(state.active, Question::new(title, vec!["Starting".to_owned()], cancel));
}

pub fn on_progress(state: &mut State, line: &str) {
    let Some(lines) = &mut state.installing else { return };
    lines.push(visible(line).into_owned());
    lines.drain(..lines.len().saturating_sub(LINES));
    let lines = lines.clone();
    let is_progress =
        |question: &&mut Question| question.answers.iter().any(|answer| cancels(&answer.consequence));
    if let Some(progress) = state.questions.iter_mut().find(is_progress) {
        progress.body = lines;
    }
}

fn cancels(consequence: &Consequence) -> bool {
    matches!(consequence, Consequence::Effect(effect) if **effect == Effect::CancelInstall)
}

/// The installation has ended: starts the agent, or says what failed.
pub fn on_installed(
    state: &mut State,
    agent: &RegistryAgent,
    result: Result<(Box<AgentSpec>, Vec<String>), String>,
    cx: &mut Cx,
) {
    state.installing = None;
    state.withdraw(cancels);
    cx.effects.push(Effect::Configure(ConfigJob::Reread));
    let title = visible(&agent.title).into_owned();
    let (spec, skipped) = match result {
        Ok(done) => done,
        Err(error) => {
            let again = Consequence::Install(Box::new(agent.clone()), Vec::new());
            let copy = agent.install_line(&state.setup.agents_dir).map(|line| {
                let job = CopyJob { what: "the command".to_owned(), content: CopyContent::Text(line) };
                ("Copy the command", Consequence::effect(Effect::Copy(job)))
            });
            let answers = [("Close", Consequence::Close), ("Try again", again)].into_iter().chain(copy);
            let body = error.lines().map(|line| visible(line).into_owned()).collect();
            let question = Question::new(format!("{title} was not installed"), body, answers);
            state.ask(state.active, question.asked_at(cx.now));
            return;
        }
    };
    if skipped.is_empty() {
        flash(state, format!("{title} {} was installed.", agent.version), cx);
        begin(state, *spec, cx);
        return;
    }
    let names = visible(&skipped.join(", ")).into_owned();
    let run = Consequence::Install(Box::new(agent.clone()), skipped);
    let body = vec![
        format!("{title} was installed. These packages have install scripts, which were not run: {names}"),
        "It may not start without them. A script can do anything that you can.".to_owned(),
    ];
    let answers = [
        ("Start without them".to_owned(), Consequence::StartAgent(spec)),
        (format!("Run the scripts of {names}"), run),
    ];
    state.ask(state.active, Question::new("Run install scripts?", body, answers).asked_at(cx.now));
}

/// Marks the agent as the one last used in the folder.
pub fn remember(state: &mut State, name: &str) {
    let former = state.setup.last_agent.replace(name.to_owned());
    state.setup.used_agents.extend(former);
}

/// Starts an installed agent in the active session, unless another one runs there.
pub fn begin(state: &mut State, spec: AgentSpec, cx: &mut Cx) {
    let Some(session) = state.active_session() else { return };
    let (key, folder) = (session.key, session.workspace.cwd.clone());
    if session.turn_count > 0 {
        flash(state, format!("{} is installed. Open it in a new tab.", spec.shown_name()), cx);
        return;
    }
    cx.requests.push(UiRequest::CloseAgents);
    cx.effects.push(Effect::SaveAgentChoice { folder, agent: spec.name.clone() });
    remember(state, &spec.name);
    start_agent(state, key, spec, cx);
}
