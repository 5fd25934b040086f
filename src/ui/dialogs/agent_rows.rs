//! The agents to choose from, as rows of a list.

use crate::app::{AgentChoice, State};

use crate::model::{Action, ArchiveRow};
use crate::ui::{PickerRow, PickerValue};

pub(in crate::ui) fn offered_row(row: &ArchiveRow) -> PickerRow {
    PickerRow {
        detail: row.agent.clone(),
        right: row.when.clone(),
        group: Some("Last session in this folder".to_owned()),
        ..PickerRow::new(PickerValue::Action(Action::ContinueLast), format!("Resume “{}”", row.name()))
    }
}

/// The agents of the picker, grouped by source.
pub fn agent_rows(state: &State) -> Vec<PickerRow> {
    let current = state.conn_of(state.active).map(|conn| conn.spec.name.as_str());
    let last = state.setup.last_agent.as_deref();
    let row = |choice: &AgentChoice| PickerRow {
        value: PickerValue::Id(choice.spec.name.clone()),
        label: choice.title.clone(),
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
    };
    state.setup.agents.iter().map(row).collect()
}

pub(in crate::ui) fn group_of(source: &str) -> String {
    match source {
        "found" => "Found on this machine".to_owned(),
        other => {
            let mut letters = other.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
        }
    }
}
