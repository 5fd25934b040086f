//! The lists of agents: to start one, to install one, to hand a conversation over.
//!
//! `lifecycle::install` installs agents.

use super::notice::notify;
use crate::core::lifecycle::{install, operations};
use crate::core::{AgentChoice, Cx, Effect, SessionPhase, State, UiRequest};
use crate::model::{Action, ConfigJob, RegistryAgent};
use crate::ui::App;
use crate::ui::frame_context::FrameContext;

use super::layer::Flow;
use super::picker::{List, Picker, PickerRow};

/// A row of a list of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentItem {
    /// Continues the last session of the folder.
    ContinueLast,
    /// An agent, by name.
    Agent(String),
    /// An agent of the registry, by id.
    Install(String),
    FetchRegistry,
}

impl AgentItem {
    pub(super) fn is_agent(&self, name: Option<&str>) -> bool {
        matches!(self, Self::Agent(own) if Some(own.as_str()) == name)
    }
}

type Row = (PickerRow, AgentItem);

/// The agents for the active session.
#[derive(Debug)]
pub struct Agents;

impl List for Agents {
    type Item = AgentItem;

    const STAYS_WITH_TAB: bool = true;

    fn pick(&mut self, item: AgentItem, app: &mut App, cx: &mut Cx) -> Flow {
        match item {
            AgentItem::ContinueLast => {
                let command = UiRequest::Command(Action::ContinueLast, String::new());
                cx.requests.push(command);
            }
            AgentItem::Agent(name) => start(&mut app.state, &name, cx),
            // The list stays open, because the agent is not installed yet.
            AgentItem::Install(id) => {
                install::ask(&mut app.state, &id, None, cx);
                return Flow::Stay;
            }
            AgentItem::FetchRegistry => {
                notify(&mut app.state, "Fetching the registry", cx);
                cx.effects.push(Effect::ReadRegistry { refresh: true });
                return Flow::Stay;
            }
        }
        Flow::Close
    }

    fn verb(&self, item: Option<&AgentItem>) -> &'static str {
        match item {
            Some(AgentItem::Install(_)) => "install",
            Some(AgentItem::FetchRegistry) => "fetch",
            _ => "start",
        }
    }

    fn is_alone(&self, ctx: &FrameContext) -> bool {
        ctx.session.phase == SessionPhase::NoAgent
    }
}

/// The agents that can continue the shown conversation.
#[derive(Debug)]
pub struct HandOver;

impl List for HandOver {
    type Item = AgentItem;

    fn pick(&mut self, item: AgentItem, app: &mut App, cx: &mut Cx) -> Flow {
        let agents = &app.state.setup.agents;
        let choice = agents.iter().find(|choice| item.is_agent(Some(&choice.spec.name)));
        if let Some(spec) = choice.map(|choice| choice.spec.clone()) {
            let active = app.state.active;
            operations::hand_over(&mut app.state, active, spec, cx);
        }
        Flow::Close
    }

    fn verb(&self, _item: Option<&AgentItem>) -> &'static str {
        "hand over"
    }
}

/// Opens the list of agents, also when none was named at the start.
pub fn open(app: &mut App, cx: &mut Cx) {
    let last = app.state.setup.last_agent.as_deref();
    let mut list = Picker::new(Agents, "Select agent", all_rows(&app.state));
    if list.marked() == Some(&AgentItem::ContinueLast) {
        list.mark(is_agent);
    }
    let list = list.marking(|item| item.is_agent(last)).noting(note(&app.state));
    app.layers.open(list);
    search_again(&app.state, cx);
}

pub fn open_hand_over(app: &mut App, cx: &mut Cx) {
    if app.state.active_session().is_none_or(|session| session.turn_count == 0) {
        notify(&mut app.state, "Nothing to hand over yet.", cx);
        return;
    }
    let rows = agent_rows(&app.state);
    // The conversation is for another agent.
    let other = rows.iter().find(|(row, _)| !row.is_current).map(|(_, item)| item.clone());
    let list = Picker::new(HandOver, "Hand over conversation to", rows);
    let list = list.marking(|item| Some(item) == other.as_ref());
    let note = "Starts a new session, and sends the conversation with the first prompt.".to_owned();
    app.layers.open(list.noting(note));
}

/// Reads the registry and looks for agents again, for an open list.
pub fn search_again(state: &State, cx: &mut Cx) {
    cx.effects.push(Effect::Configure(ConfigJob::Reread));
    if state.registry.is_none() {
        cx.effects.push(Effect::ReadRegistry { refresh: false });
    }
}

/// Shows in the open list which agents there are now.
pub fn refresh(app: &mut App) {
    let (rows, note) = (all_rows(&app.state), note(&app.state));
    if let Some(list) = app.layers.find_mut::<Picker<Agents>>() {
        list.set_rows(rows);
        list.view.note = note;
    }
}

/// Shows which agents were used before, and marks the last one unless the user has marked another.
pub fn on_used(app: &mut App, last: Option<&str>) {
    refresh(app);
    if let Some(list) = app.layers.find_mut::<Picker<Agents>>()
        && list.marked() == list.items().iter().find(|item| is_agent(item))
        && list.view.filter.text.is_empty()
    {
        list.mark(|item| item.is_agent(last));
    }
}

fn is_agent(item: &AgentItem) -> bool {
    matches!(item, AgentItem::Agent(_))
}

/// The agents, grouped by source.
pub fn agent_rows(state: &State) -> Vec<Row> {
    let current = state.conn_of(state.active).map(|conn| conn.spec.name.as_str());
    let last = state.setup.last_agent.as_deref();
    let row = |choice: &AgentChoice| {
        let row = PickerRow {
            // The path of parlor itself is of no use to the user.
            detail: match choice.source.as_str() {
                "built in" => "demo, no account needed".to_owned(),
                // The path of an installed program says nothing.
                "installed" => choice.version.clone(),
                _ => choice.spec.command_line(),
            },
            right: match choice.spec.name.as_str() {
                name if last == Some(name) => "last used here",
                name if state.setup.used_agents.contains(name) => "used before",
                _ => "",
            }
            .to_owned(),
            group: Some(group_of(&choice.source)),
            is_current: current == Some(choice.spec.name.as_str()),
            ..PickerRow::new(choice.title.as_str())
        };
        (row, AgentItem::Agent(choice.spec.name.clone()))
    };
    state.setup.agents.iter().map(row).collect()
}

fn start(state: &mut State, name: &str, cx: &mut Cx) {
    let Some(choice) = state.setup.agents.iter().find(|choice| choice.spec.name == name) else { return };
    let spec = choice.spec.clone();
    let Some(session) = state.active_session() else { return };
    let folder = session.workspace.cwd.clone();
    cx.effects.push(Effect::SaveAgentChoice { folder, agent: spec.name.clone() });
    install::remember(state, &spec.name);
    operations::start_agent(state, state.active, spec, cx);
}

/// The last session of the folder, the agents, and those that can be installed.
fn all_rows(state: &State) -> Vec<Row> {
    let offer = operations::last_session(state).map(|row| {
        let offer = PickerRow {
            detail: row.agent.clone(),
            right: row.when.clone(),
            group: Some("Last session in this folder".to_owned()),
            ..PickerRow::new(format!("Resume “{}”", row.name()))
        };
        (offer, AgentItem::ContinueLast)
    });
    offer.into_iter().chain(agent_rows(state)).chain(registry_rows(state)).collect()
}

/// Agents that can be installed, and the row that fetches the registry.
fn registry_rows(state: &State) -> Vec<Row> {
    let Some(index) = &state.registry else { return Vec::new() };
    let is_here = |agent: &RegistryAgent| {
        let ids = state.setup.agents.iter().filter_map(|choice| choice.registry_id.as_deref());
        ids.into_iter().any(|id| id == agent.id)
    };
    let group = format!("Install from the {}", index.origin);
    let agents = index.agents.iter().filter(|agent| agent.source.is_some() && !is_here(agent));
    let row = |agent: &RegistryAgent| {
        let row = PickerRow {
            detail: match &agent.quarantine {
                Some(why) => format!("withdrawn: {why}"),
                None => agent.description.clone(),
            },
            right: index.needs(agent).unwrap_or_default().to_owned(),
            group: Some(group.clone()),
            ..PickerRow::new(agent.title.as_str())
        };
        (row, AgentItem::Install(agent.id.clone()))
    };
    let refresh = PickerRow {
        detail: "Fetches the current list from the internet".to_owned(),
        group: Some(group.clone()),
        ..PickerRow::new("Fetch the registry")
    };
    agents.map(row).chain([(refresh, AgentItem::FetchRegistry)]).collect()
}

/// The note below the list of agents.
fn note(state: &State) -> Option<String> {
    let has_agents = state.setup.agents.iter().any(|agent| agent.source != "built in");
    (!has_agents).then(|| "No agent was found on this machine. Install one, or try the demo.".to_owned())
}

fn group_of(source: &str) -> String {
    match source {
        "found" => "Found on this machine".to_owned(),
        other => {
            let mut letters = other.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
        }
    }
}
