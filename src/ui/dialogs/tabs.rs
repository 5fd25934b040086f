//! Tab actions: switching tabs, and choosing the agent and folder of a new one.
//!
//! A folder is picked from recently used ones, or typed. The runtime checks whether a typed folder exists; until then
//! nothing changes.

use super::notice::notify;
use crate::app::state::tab;
use std::path::{Path, PathBuf};

use crate::app::lifecycle::operations;
use crate::app::lifecycle::tabs;
use crate::app::{Cx, Effect, LineInput, State};
use crate::model::{Action, SessionKey};
use crate::ui::{App, Modal, PickerKind, PickerRow, PickerValue};

use super::{agent_rows, picker, tab_dialogs};

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

/// Opens the agent picker for a new tab in this folder; its last row opens the folder picker.
fn open_agents(app: &mut App, folder: PathBuf) {
    let mut agents = agent_rows::agent_rows(&app.state);
    for row in &mut agents {
        row.is_current = false;
    }
    // An agent that was given as a command is in no list.
    let current = app.state.conn_of(tab::front(&app.state)).map(|conn| conn.spec.name.clone());
    let is_listed =
        |name: &String| agents.iter().any(|row| matches!(&row.value, PickerValue::Id(id) if id == name));
    if let Some(name) = current.filter(|name| !is_listed(name)) {
        agents.insert(0, PickerRow::new(PickerValue::Id(name.clone()), name));
    }
    agents.push(PickerRow {
        group: Some("Other".to_owned()),
        ..PickerRow::new(PickerValue::Action(Action::NewTabElsewhere), "Other folder")
    });
    let title = match folder.file_name() {
        Some(name) => format!("New tab in {}", name.display()),
        None => format!("New tab in {}", folder.display()),
    };
    let last = app.state.conn_of(tab::front(&app.state)).map(|conn| conn.spec.name.clone());
    let last = last.or_else(|| app.state.setup.last_agent.clone());
    let mut agents = picker::new(PickerKind::TabAgent(folder), title, agents);
    let is_last =
        |row: &PickerRow| matches!(&row.value, PickerValue::Id(name) if Some(name) == last.as_ref());
    agents.selected = agents.rows.iter().position(is_last).unwrap_or(0);
    picker::push(app, agents);
}

pub fn pick_agent(state: &mut State, folder: PathBuf, name: &str, cx: &mut Cx) {
    let listed = state.setup.agents.iter().map(|choice| &choice.spec);
    let mut known = listed.chain(state.conns.values().map(|conn| &conn.spec));
    let Some(spec) = known.find(|spec| spec.name == name).cloned() else { return };
    cx.effects.push(Effect::SaveAgentChoice { folder: folder.clone(), agent: spec.name.clone() });
    operations::open_tab(state, folder, spec, cx);
}

fn open_folders(app: &mut App, cx: &mut Cx) {
    push_folders(app, LineInput::default(), None);
    cx.effects.push(Effect::ListFolders);
}

fn push_folders(app: &mut App, filter: LineInput, note: Option<String>) {
    let mut known: Vec<PathBuf> = Vec::new();
    for session in tab::tabs(&app.state) {
        if !known.contains(&session.workspace.cwd) {
            known.push(session.workspace.cwd.clone());
        }
    }
    let rows = known.iter().map(|folder| folder_row(folder, "Open tabs")).collect();
    let mut folders = picker::new(PickerKind::Folder, "New tab in folder", rows);
    folders.note = note.or_else(|| Some("Or type a path, for example ~/code/shop or ../lib.".to_owned()));
    folders.filter = filter;
    picker::refilter(&mut folders, &app.state.setup);
    picker::push(app, folders);
}

fn folder_row(folder: &Path, group: &str) -> PickerRow {
    let path = folder.display().to_string();
    PickerRow { group: Some(group.to_owned()), ..PickerRow::new(PickerValue::Id(path.clone()), path) }
}

pub fn on_folders(app: &mut App, folders: &[PathBuf]) {
    for modal in &mut app.modals {
        let Modal::Picker(picker) = modal else { continue };
        if picker.kind != PickerKind::Folder {
            continue;
        }
        for folder in folders {
            let row = folder_row(folder, "Recent");
            if !picker.rows.iter().any(|known| known.value == row.value) {
                picker.rows.push(row);
            }
        }
        let marked = picker.selected;
        picker::refilter(picker, &app.state.setup);
        picker.selected = marked.min(picker.matches.len().saturating_sub(1));
    }
}

/// A folder was picked or typed: checks whether it exists.
pub fn pick_folder(state: &State, text: String, cx: &mut Cx) {
    cx.effects.push(Effect::FindFolder { text, base: front_folder(state) });
}

/// The result of the check: continues with the agent, or shows the error to enter another folder.
pub fn on_folder_found(app: &mut App, text: &str, found: Result<PathBuf, String>) {
    match found {
        Ok(folder) => open_agents(app, folder),
        Err(why) => push_folders(app, LineInput::new(text), Some(why)),
    }
}
