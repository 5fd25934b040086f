//! Pickers that are opened from several places: agents, sign-in methods, permissions, values of an option.

use crate::app::lifecycle::operations;
use crate::app::lifecycle::tabs::open_dialog;
use crate::app::state::modal::{agent_rows, offered_row};
use crate::app::{Effect, InstallHint, Modal, Picker, PickerKind, PickerRow, PickerValue, State};
use crate::model::{ConnId, SessionKey};

use super::{picker, rows, say};

/// Opens the picker of agents, also when none was named at the start.
pub fn open_agents(state: &mut State) {
    let mut picker = picker::new(PickerKind::Agent, "Select agent", agent_rows(state));
    let last = state.setup.last_agent.as_deref();
    let is_last =
        |row: &PickerRow| matches!(&row.value, PickerValue::Id(name) if Some(name.as_str()) == last);
    if let Some(position) = picker.rows.iter().position(is_last) {
        picker.selected = position;
    }
    if let Some(last) = operations::last_session(state) {
        picker.rows.insert(0, offered_row(last));
        picker.matches = (0..picker.rows.len()).collect();
        picker.selected += 1;
    }
    // Agents may have been added to the configuration meanwhile.
    let has_agents = state.setup.agents.iter().any(|agent| agent.source != "built in");
    if !state.setup.installs.is_empty() && !has_agents {
        picker.rows.extend(state.setup.installs.iter().map(install_row));
        picker.matches = (0..picker.rows.len()).collect();
        picker.note =
            Some("No agent was found. Copy a command, run it in a shell, and restart parlor.".to_owned());
    } else if picker.rows.is_empty() {
        picker.note = Some("No agents found. Add one to config.toml, or pass a command.".to_owned());
    }
    picker::push(state, picker);
}

fn install_row(hint: &InstallHint) -> PickerRow {
    PickerRow {
        detail: hint.line.clone(),
        group: Some("Install an agent".to_owned()),
        ..PickerRow::new(PickerValue::Install(hint.line.clone()), hint.title.as_str())
    }
}

/// Opens the picker of sign-in methods of this agent, also after it answers that sign-in is required.
pub fn open_sign_in(state: &mut State, conn: ConnId) {
    let mut picker = sign_in(state, conn);
    picker.is_by_itself = true;
    picker::push(state, picker);
}

/// Opens the picker of sign-in methods for a session; in another tab it opens when that tab is shown.
pub fn open_sign_in_of(state: &mut State, key: SessionKey, conn: ConnId) {
    let mut picker = sign_in(state, conn);
    picker.is_by_itself = true;
    open_dialog(state, key, Modal::Picker(picker));
}

/// The picker of sign-in methods of this agent.
pub fn sign_in(state: &State, conn: ConnId) -> Picker {
    let mut picker = picker::new(PickerKind::SignIn, "Sign in", rows::sign_ins(state, conn));
    picker.conn = Some(conn);
    if picker.rows.is_empty() {
        picker.note = Some(
            "The agent has no sign-in method. Sign in with its own command, then restart it.".to_owned(),
        );
    }
    picker
}

/// The picker of agents that can continue the shown conversation.
pub fn open_hand_over(state: &mut State, fx: &mut Vec<Effect>) {
    if state.active_session().is_none_or(|session| session.turn_count == 0) {
        say(state, "Nothing to hand over yet.", fx);
        return;
    }
    let mut picker = picker::new(PickerKind::HandOver, "Hand over conversation to", agent_rows(state));
    picker.note = Some("Starts a new session, and sends the conversation with the first prompt.".to_owned());
    picker::push(state, picker);
}

/// Opens the list of granted permissions.
pub fn open_grants(state: &mut State) {
    let mut picker = picker::new(PickerKind::Grant, "Saved permissions", rows::grants(state));
    picker.note = Some(if picker.rows.is_empty() {
        "No saved permissions.".to_owned()
    } else {
        "Select a permission to revoke it.".to_owned()
    });
    picker::push(state, picker);
}

/// Opens the picker of an option's values.
pub fn open_values(state: &mut State, id: &str) {
    let option =
        state.active_session().and_then(|session| session.options.iter().find(|option| option.id == id));
    if let Some(option) = option {
        let picker =
            picker::new(PickerKind::OptionValue(id.to_owned()), option.name.clone(), rows::values(option));
        picker::push(state, picker);
    }
}
