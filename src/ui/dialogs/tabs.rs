//! Tab actions: switching tabs, and choosing the agent and folder of a new one.
//!
//! A folder is picked from recently used ones, or typed. The runtime checks whether a typed folder exists; until then
//! nothing changes.

use super::notice::notify;
use crate::core::state::tab;
use std::path::{Path, PathBuf};

use crate::core::lifecycle::operations;
use crate::core::lifecycle::tabs;
use crate::core::{Cx, Effect, LineInput, State};
use crate::model::{Action, SessionKey};
use crate::ui::App;

use super::agents::{self, AgentItem};
use super::layer::Flow;
use super::picker::{List, Picker, PickerRow};
use super::tab_dialogs;

/// Handles tab actions. Returns whether it was one.
pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    match action {
        Action::NewTab => {
            let folder = front_folder(&app.state);
            open_agents(app, folder);
        }
        Action::NewTabElsewhere => open_folders(app, cx),
        Action::NextTab => step(app, 1, cx),
        Action::PreviousTab => step(app, -1, cx),
        Action::MoveTabLeft => tabs::move_front(&mut app.state, false),
        Action::MoveTabRight => tabs::move_front(&mut app.state, true),
        Action::FormerTab => {
            let former = app.user.former_tab.filter(|key| app.state.sessions.contains_key(key));
            match former.filter(|key| *key != tab::front(&app.state)) {
                Some(key) => tab_dialogs::show(app, key, cx),
                None => notify(&mut app.state, "No previous tab.", cx),
            }
        }
        Action::ShowTab(position) => show_at(app, position, cx),
        _ => return false,
    }
    true
}

fn keys(state: &State) -> Vec<SessionKey> {
    tab::tabs(state).map(|session| session.key).collect()
}

fn step(app: &mut App, by: isize, cx: &mut Cx) {
    let keys = keys(&app.state);
    let front = tab::front(&app.state);
    let position = keys.iter().position(|key| *key == front).unwrap_or(0);
    let count = isize::try_from(keys.len()).unwrap_or(1).max(1);
    let next = isize::try_from(position).unwrap_or(0).saturating_add(by).rem_euclid(count);
    if let Some(key) = usize::try_from(next).ok().and_then(|next| keys.get(next)) {
        tab_dialogs::show(app, *key, cx);
    }
}

fn show_at(app: &mut App, position: u8, cx: &mut Cx) {
    let keys = keys(&app.state);
    if let Some(key) = usize::from(position).checked_sub(1).and_then(|position| keys.get(position)) {
        tab_dialogs::show(app, *key, cx);
        return;
    }
    let text = match keys.len() {
        1 => "Only 1 tab open.".to_owned(),
        count => format!("Only {count} tabs open."),
    };
    notify(&mut app.state, text, cx);
}

fn front_folder(state: &State) -> PathBuf {
    let front = state.sessions.get(&tab::front(state));
    front.map_or_else(|| state.setup.folder.clone(), |session| session.workspace.cwd.clone())
}

/// What the list of agents for a new tab offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TabChoice {
    Agent(AgentItem),
    OtherFolder,
}

/// The agents for a new tab in this folder.
#[derive(Debug)]
pub struct TabAgents {
    pub folder: PathBuf,
}

impl List for TabAgents {
    type Item = TabChoice;

    fn pick(&mut self, item: TabChoice, app: &mut App, cx: &mut Cx) -> Flow {
        match item {
            TabChoice::Agent(agent) => open_tab(&mut app.state, self.folder.clone(), &agent, cx),
            TabChoice::OtherFolder => open_folders(app, cx),
        }
        Flow::Close
    }

    fn verb(&self, _item: Option<&TabChoice>) -> &'static str {
        "start"
    }
}

/// Opens the agent picker for a new tab in this folder; its last row opens the folder picker.
fn open_agents(app: &mut App, folder: PathBuf) {
    let mut agents = agents::agent_rows(&app.state);
    for (row, _) in &mut agents {
        row.is_current = false;
    }
    // An agent that was given as a command is in no list.
    let current = app.state.conn_of(tab::front(&app.state)).map(|conn| conn.spec.name.clone());
    let is_listed = |name: &String| agents.iter().any(|(_, item)| item.is_agent(Some(name)));
    if let Some(name) = current.clone().filter(|name| !is_listed(name)) {
        agents.insert(0, (PickerRow::new(name.as_str()), AgentItem::Agent(name)));
    }
    let other = PickerRow { group: Some("Other".to_owned()), ..PickerRow::new("Other folder") };
    let agents = agents.into_iter().map(|(row, item)| (row, TabChoice::Agent(item)));
    let rows = agents.chain([(other, TabChoice::OtherFolder)]).collect();
    let title = match folder.file_name() {
        Some(name) => format!("New tab in {}", name.display()),
        None => format!("New tab in {}", folder.display()),
    };
    let last = current.or_else(|| app.state.setup.last_agent.clone());
    let is_last =
        |item: &TabChoice| matches!(item, TabChoice::Agent(agent) if agent.is_agent(last.as_deref()));
    app.layers.open(Picker::new(TabAgents { folder }, title, rows).marking(is_last));
}

fn open_tab(state: &mut State, folder: PathBuf, agent: &AgentItem, cx: &mut Cx) {
    let listed = state.setup.agents.iter().map(|choice| &choice.spec);
    let mut known = listed.chain(state.conns.values().map(|conn| &conn.spec));
    let Some(spec) = known.find(|spec| agent.is_agent(Some(&spec.name))).cloned() else { return };
    cx.effects.push(Effect::SaveAgentChoice { folder: folder.clone(), agent: spec.name.clone() });
    operations::open_tab(state, folder, spec, cx);
}

/// Folders for a new tab.
#[derive(Debug)]
pub struct Folders;

impl List for Folders {
    /// The path.
    type Item = String;

    fn pick(&mut self, text: String, app: &mut App, cx: &mut Cx) -> Flow {
        cx.effects.push(Effect::FindFolder { text, base: front_folder(&app.state) });
        Flow::Close
    }

    /// The filter may be a path without a row.
    fn on_filter(picker: &mut Picker<Self>) {
        picker.retain_rows(|row| row.group.is_some());
        let text = picker.view.filter.text.trim().to_owned();
        if text.contains(['/', '\\']) || text.starts_with(['~', '.']) {
            let row = PickerRow { detail: "typed path".to_owned(), ..PickerRow::new(text.as_str()) };
            picker.push_row(row, text);
        }
    }
}

fn open_folders(app: &mut App, cx: &mut Cx) {
    let note = "Or type a path, for example ~/code/shop or ../lib.".to_owned();
    push_folders(app, LineInput::default(), note);
    cx.effects.push(Effect::ListFolders);
}

fn push_folders(app: &mut App, filter: LineInput, note: String) {
    let mut known: Vec<PathBuf> = Vec::new();
    for session in tab::tabs(&app.state) {
        if !known.contains(&session.workspace.cwd) {
            known.push(session.workspace.cwd.clone());
        }
    }
    let rows = known.iter().map(|folder| folder_row(folder, "Open tabs")).collect();
    let mut list = Picker::new(Folders, "New tab in folder", rows).noting(note);
    list.set_filter(filter);
    app.layers.open(list);
}

fn folder_row(folder: &Path, group: &str) -> (PickerRow, String) {
    let path = folder.display().to_string();
    (PickerRow { group: Some(group.to_owned()), ..PickerRow::new(path.as_str()) }, path)
}

/// Adds folders that were used recently to the open list.
pub fn on_folders(app: &mut App, folders: &[PathBuf]) {
    let Some(list) = app.layers.find_mut::<Picker<Folders>>() else { return };
    for folder in folders {
        let (row, path) = folder_row(folder, "Recent");
        if !list.items().contains(&path) {
            list.push_row(row, path);
        }
    }
    let selected = list.view.selected;
    list.refilter();
    list.view.selected = selected.min(list.view.matches.len().saturating_sub(1));
}

/// The result of the check: continues with the agent, or shows the error to enter another folder.
pub fn on_folder_found(app: &mut App, text: &str, found: Result<PathBuf, String>) {
    match found {
        Ok(folder) => open_agents(app, folder),
        Err(why) => push_folders(app, LineInput::new(text), why),
    }
}
