//! Pickers that are opened from several places: agents, sign-in methods, permissions, values of an option.

use super::notice::notify;
use crate::app::lifecycle::operations;
use crate::app::state::{lookup, tab};
use crate::app::{Cx, State, UiRequest};
use crate::model::{ConnId, SessionKey};
use crate::ui::{App, Modal, Picker, PickerKind, PickerRow, PickerValue};

use super::agent_rows::{agent_rows, offered_row};
use super::{install, picker, rows};

/// Opens the picker of agents, also when none was named at the start.
pub fn open_agents(app: &mut App) {
    let mut picker = picker::new(PickerKind::Agent, "Select agent", agent_rows(&app.state));
    let last = app.state.setup.last_agent.as_deref();
    let is_last =
        |row: &PickerRow| matches!(&row.value, PickerValue::Id(name) if Some(name.as_str()) == last);
    if let Some(position) = picker.rows.iter().position(is_last) {
        picker.selected = position;
    }
    if let Some(last) = operations::last_session(&app.state) {
        picker.rows.insert(0, offered_row(last));
        picker.matches = (0..picker.rows.len()).collect();
        picker.selected += 1;
    }
    picker.rows.extend(install::rows(&app.state));
    picker.matches = (0..picker.rows.len()).collect();
    picker.note = install::note(&app.state);
    picker::push(app, picker);
    app.state.ui_requests.push(UiRequest::FindAgents);
}

/// Opens the picker of sign-in methods of this agent, also after it answers that sign-in is required.
pub fn open_sign_in(app: &mut App, conn: ConnId) {
    let mut picker = sign_in(&app.state, conn);
    picker.is_by_itself = true;
    picker::push(app, picker);
}

/// Opens the picker of sign-in methods for a session; in another tab it opens when that tab is shown.
pub fn open_sign_in_of(app: &mut App, key: SessionKey, conn: ConnId) {
    let mut picker = sign_in(&app.state, conn);
    picker.is_by_itself = true;
    let root = lookup::root_of(&app.state, key);
    if root == tab::front(&app.state) {
        app.modals.push(Modal::Picker(picker));
    } else {
        app.background.entry(root).or_default().modals.push(Modal::Picker(picker));
    }
}

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
pub fn open_hand_over(app: &mut App, cx: &mut Cx) {
    if app.state.active_session().is_none_or(|session| session.turn_count == 0) {
        notify(&mut app.state, "Nothing to hand over yet.", cx);
        return;
    }
    let mut picker = picker::new(PickerKind::HandOver, "Hand over conversation to", agent_rows(&app.state));
    // The conversation is for another agent.
    picker.selected = picker.rows.iter().position(|row| !row.is_current).unwrap_or(0);
    picker.note = Some("Starts a new session, and sends the conversation with the first prompt.".to_owned());
    picker::push(app, picker);
}

pub fn open_grants(app: &mut App) {
    let mut picker = picker::new(PickerKind::Grant, "Saved permissions", rows::grants(&app.state));
    picker.note = Some(if picker.rows.is_empty() {
        "No saved permissions.".to_owned()
    } else {
        "Select a permission to revoke it.".to_owned()
    });
    picker::push(app, picker);
}

pub fn open_values(app: &mut App, id: &str) {
    let option =
        app.state.active_session().and_then(|session| session.options.iter().find(|option| option.id == id));
    if let Some(option) = option {
        let picker =
            picker::new(PickerKind::OptionValue(id.to_owned()), option.name.clone(), rows::values(option));
        picker::push(app, picker);
    }
}

pub fn close_agents(app: &mut App) {
    app.modals.retain(|modal| !matches!(modal, Modal::Picker(picker) if picker.kind == PickerKind::Agent));
}

/// Shows which agents were used before, and marks one unless the user has marked another.
pub fn on_agents_used(app: &mut App, last: Option<&str>) {
    let rows = agent_rows(&app.state);
    let Some(picker) = agents_picker(app) else { return };
    let is_untouched = picker.selected == 0 && picker.filter.text.is_empty();
    // The rows must be the same except for their usage, because the matches are retained.
    if picker.rows.len() != rows.len() {
        return;
    }
    picker.rows = rows;
    let is_last = |row: &PickerRow| matches!(&row.value, PickerValue::Id(id) if Some(id.as_str()) == last);
    if let Some(position) = picker.rows.iter().position(is_last).filter(|_| is_untouched) {
        picker.selected = position;
    }
}

/// Offers the last session of the folder in the list of agents.
pub fn on_last_session(app: &mut App) {
    let Some(offer) = operations::last_session(&app.state).map(offered_row) else { return };
    let Some(picker) = agents_picker(app) else { return };
    let marked = picker.matches.get(picker.selected).copied();
    let is_filtered = !picker.filter.text.is_empty();
    picker.rows.insert(0, offer);
    for position in &mut picker.matches {
        *position += 1;
    }
    if !is_filtered {
        picker.matches.insert(0, 0);
    }
    // The selection stays on its row.
    let position = marked.and_then(|row| picker.matches.iter().position(|position| *position == row + 1));
    picker.selected = position.unwrap_or(0);
}

fn agents_picker(app: &mut App) -> Option<&mut Picker> {
    app.modals.iter_mut().find_map(|modal| match modal {
        Modal::Picker(picker) if picker.kind == PickerKind::Agent => Some(picker),
        _ => None,
    })
}
