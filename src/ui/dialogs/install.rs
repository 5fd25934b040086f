//! The agents that can be installed, as rows of the list of agents; `lifecycle::install` installs them.

use crate::app::lifecycle::operations;
use crate::app::{Cx, Effect, State};
use crate::model::{ConfigJob, RegistryAgent};
use crate::ui::{App, Modal, PickerKind, PickerRow, PickerValue};

use super::agent_rows::{agent_rows, offered_row};
use super::picker;

/// Reads the registry and looks for agents again, for an open list.
pub fn search_again(state: &State, cx: &mut Cx) {
    cx.effects.push(Effect::Configure(ConfigJob::Reread));
    if state.registry.is_none() {
        cx.effects.push(Effect::ReadRegistry { refresh: false });
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
pub fn refresh_agents(app: &mut App) {
    let mut rows = agent_rows(&app.state);
    if let Some(last) = operations::last_session(&app.state) {
        rows.insert(0, offered_row(last));
    }
    rows.extend(self::rows(&app.state));
    let note = note(&app.state);
    let is_list =
        |modal: &&mut Modal| matches!(modal, Modal::Picker(picker) if picker.kind == PickerKind::Agent);
    if let Some(Modal::Picker(picker)) = app.modals.iter_mut().find(is_list) {
        picker.note = note;
        picker::replace_rows(picker, &app.state.setup, rows);
    }
}
