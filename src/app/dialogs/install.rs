//! Installing agents from the registry: the rows of the list, the question, the progress, the outcome.
//!
//! Invariant: nothing is downloaded or run before the user has seen it and agreed.

use std::time::Instant;

use super::notice::notify;
use crate::app::lifecycle::operations;
use crate::app::state::agent_rows::{agent_rows, offered_row};
use crate::app::{
    Choice, ChoiceDialog, ChoiceOutcome, Effect, Modal, PickerKind, PickerRow, PickerValue, State,
};
use crate::escape::visible;
use crate::model::{AgentSpec, ConfigJob, CopyContent, CopyJob, RegistryAgent, RegistryIndex};

use super::picker;

/// Number of lines of the progress that are shown.
const LINES: usize = 6;

/// Reads the registry and looks for agents again, for an open list.
pub fn search_again(state: &State, fx: &mut Vec<Effect>) {
    fx.push(Effect::Configure(ConfigJob::Reread));
    if state.registry.is_none() {
        fx.push(Effect::ReadRegistry { refresh: false });
    }
}

/// Agents that can be installed, and the row that fetches the registry.
pub fn rows(state: &State) -> Vec<PickerRow> {
    let Some(index) = &state.registry else { return Vec::new() };
    let is_here = |agent: &RegistryAgent| {
        let ids = state.setup.agents.iter().filter_map(|choice| choice.registry_id.as_deref());
        ids.into_iter().any(|id| id == agent.id)
    };
    let group = format!("Install from the {}", index.origin);
    let agents = index.agents.iter().filter(|agent| agent.source.is_some() && !is_here(agent));
    let row = |agent: &RegistryAgent| PickerRow {
        detail: match &agent.quarantine {
            Some(why) => format!("withdrawn: {why}"),
            None => agent.description.clone(),
        },
        right: index.needs(agent).unwrap_or_default().to_owned(),
        group: Some(group.clone()),
        ..PickerRow::new(PickerValue::Install(agent.id.clone()), agent.title.as_str())
    };
    let refresh = PickerRow {
        detail: "Fetches the current list from the internet".to_owned(),
        group: Some(group.clone()),
        ..PickerRow::new(PickerValue::FetchRegistry, "Fetch the registry")
    };
    agents.map(row).chain([refresh]).collect()
}

/// The note below the list of agents.
pub fn note(state: &State) -> Option<String> {
    let has_agents = state.setup.agents.iter().any(|agent| agent.source != "built in");
    (!has_agents).then(|| "No agent was found on this machine. Install one, or try the demo.".to_owned())
}

/// Shows in the open list which agents there are now.
pub fn refresh_agents(state: &mut State) {
    let mut rows = agent_rows(state);
    if let Some(last) = operations::last_session(state) {
        rows.insert(0, offered_row(last));
    }
    rows.extend(self::rows(state));
    let note = note(state);
    let is_list =
        |modal: &&mut Modal| matches!(modal, Modal::Picker(picker) if picker.kind == PickerKind::Agent);
    if let Some(Modal::Picker(picker)) = state.modals.iter_mut().find(is_list) {
        picker.note = note;
        picker::replace_rows(picker, &state.setup, rows);
    }
}

pub fn on_registry(
    state: &mut State,
    result: Result<RegistryIndex, String>,
    is_fetched: bool,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    match result {
        Ok(index) => {
            if is_fetched {
                notify(state, format!("{} agents in the registry.", index.agents.len()), fx);
            }
            state.registry = Some(index);
        }
        Err(error) => notify(state, error, fx),
    }
    refresh_agents(state);
    if let Some(id) = state.setup.install_first.take() {
        ask(state, &id, Some(now), fx);
    }
}

/// Shows what installing an agent downloads and runs, and asks.
pub fn ask(state: &mut State, id: &str, opened_by_itself: Option<Instant>, fx: &mut Vec<Effect>) {
    let agent = state.registry.as_ref().and_then(|index| index.agents.iter().find(|agent| agent.id == id));
    let Some(agent) = agent.cloned() else {
        notify(state, "The registry does not have this agent. Fetch the registry.", fx);
        return;
    };
    if state.installing.is_some() {
        notify(state, "Another agent is being installed.", fx);
        return;
    }
    let mut body: Vec<String> = Vec::new();
    if !agent.description.is_empty() {
        body.push(visible(&agent.description).into_owned());
    }
    body.extend(agent.plan(&state.setup.agents_dir).iter().map(|line| visible(line).into_owned()));
    body.push("It runs with your permissions, like every program that you install.".to_owned());
    let choices = vec![
        Choice {
            label: "Install".to_owned(),
            outcome: ChoiceOutcome::Install(Box::new(agent.clone()), Vec::new()),
        },
        Choice { label: "Do not install".to_owned(), outcome: ChoiceOutcome::Close },
    ];
    state.modals.push(Modal::Choice(ChoiceDialog {
        title: format!("Install {} {}?", visible(&agent.title), visible(&agent.version)),
        body,
        choices,
        selected: 0,
        opened_by_itself,
    }));
}

pub fn start(state: &mut State, agent: &RegistryAgent, scripts: &[String], fx: &mut Vec<Effect>) {
    if state.installing.is_some() {
        return;
    }
    state.installing = Some(Vec::new());
    fx.push(Effect::InstallAgent { agent: Box::new(agent.clone()), scripts: scripts.to_vec() });
    state.modals.push(Modal::Choice(ChoiceDialog {
        title: format!("Installing {}", visible(&agent.title)),
        body: vec!["Starting".to_owned()],
        choices: vec![Choice { label: "Cancel".to_owned(), outcome: ChoiceOutcome::CancelInstall }],
        selected: 0,
        opened_by_itself: None,
    }));
}

pub fn on_progress(state: &mut State, line: &str) {
    let Some(lines) = &mut state.installing else { return };
    lines.push(visible(line).into_owned());
    lines.drain(..lines.len().saturating_sub(LINES));
    let lines = lines.clone();
    if let Some(Modal::Choice(dialog)) = state.modals.iter_mut().find(|modal| is_progress(modal)) {
        dialog.body = lines;
    }
}

fn is_progress(modal: &Modal) -> bool {
    let Modal::Choice(dialog) = modal else { return false };
    dialog.choices.iter().any(|choice| choice.outcome == ChoiceOutcome::CancelInstall)
}

/// The installation has ended: starts the agent, or says what failed.
pub fn on_installed(
    state: &mut State,
    agent: &RegistryAgent,
    result: Result<(Box<AgentSpec>, Vec<String>), String>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    state.installing = None;
    state.modals.retain(|modal| !is_progress(modal));
    fx.push(Effect::Configure(ConfigJob::Reread));
    let title = visible(&agent.title).into_owned();
    let (spec, skipped) = match result {
        Ok(done) => done,
        Err(error) => {
            let again = ChoiceOutcome::Install(Box::new(agent.clone()), Vec::new());
            let copy = agent.install_line(&state.setup.agents_dir).map(|line| Choice {
                label: "Copy the command".to_owned(),
                outcome: ChoiceOutcome::Copy(CopyJob {
                    what: "the command".to_owned(),
                    content: CopyContent::Text(line),
                }),
            });
            let first = [
                Choice { label: "Close".to_owned(), outcome: ChoiceOutcome::Close },
                Choice { label: "Try again".to_owned(), outcome: again },
            ];
            state.modals.push(Modal::Choice(ChoiceDialog {
                title: format!("{title} was not installed"),
                body: error.lines().map(|line| visible(line).into_owned()).collect(),
                choices: first.into_iter().chain(copy).collect(),
                selected: 0,
                opened_by_itself: Some(now),
            }));
            return;
        }
    };
    if skipped.is_empty() {
        notify(state, format!("{title} {} was installed.", agent.version), fx);
        begin(state, *spec, now, fx);
        return;
    }
    let names = visible(&skipped.join(", ")).into_owned();
    let run = ChoiceOutcome::Install(Box::new(agent.clone()), skipped);
    state.modals.push(Modal::Choice(ChoiceDialog {
        title: "Run install scripts?".to_owned(),
        body: vec![
            format!(
                "{title} was installed. These packages have install scripts, which were not run: {names}"
            ),
            "It may not start without them. A script can do anything that you can.".to_owned(),
        ],
        choices: vec![
            Choice { label: "Start without them".to_owned(), outcome: ChoiceOutcome::StartAgent(spec) },
            Choice { label: format!("Run the scripts of {names}"), outcome: run },
        ],
        selected: 0,
        opened_by_itself: Some(now),
    }));
}

/// Marks the agent as the one last used in the folder.
pub fn remember(state: &mut State, name: &str) {
    let former = state.setup.last_agent.replace(name.to_owned());
    state.setup.used_agents.extend(former);
}

/// Starts an installed agent in the active session, unless another one runs there.
pub fn begin(state: &mut State, spec: AgentSpec, now: Instant, fx: &mut Vec<Effect>) {
    let Some(session) = state.active_session() else { return };
    let (key, folder) = (session.key, session.workspace.cwd.clone());
    if session.turn_count > 0 {
        notify(state, format!("{} is installed. Open it in a new tab.", spec.shown_name()), fx);
        return;
    }
    state.modals.retain(|modal| !matches!(modal, Modal::Picker(picker) if picker.kind == PickerKind::Agent));
    fx.push(Effect::SaveAgentChoice { folder, agent: spec.name.clone() });
    remember(state, &spec.name);
    operations::start_agent(state, key, spec, now, fx);
}
