//! The rows of each picker, made from the state.

use crate::app::{ListedGrant, PickerRow, PickerValue, State, granted};
use crate::model::{Action, AuthKind, ConfigKind, ConfigOption, ConnId};

use super::obstacle;

/// Commands of the palette that make sense now.
pub fn palette(state: &State) -> Vec<PickerRow> {
    let mut offered: Vec<_> = state.setup.palette.iter().collect();
    offered.sort_by_key(|(action, ..)| palette_rank(*action));
    offered
        .into_iter()
        .filter(|(action, ..)| obstacle::obstacle(state, *action).is_none())
        .map(|(action, label, keys)| PickerRow {
            value: PickerValue::Action(*action),
            label: label.clone(),
            detail: String::new(),
            right: keys.clone(),
            group: None,
            is_current: false,
        })
        .collect()
}

/// Commands that start or change work are first, then changes of the view, then rarely used ones.
fn palette_rank(action: Action) -> u8 {
    match action {
        Action::OpenModels
        | Action::OpenModes
        | Action::NextMode
        | Action::OpenOptions
        | Action::OpenAgents
        | Action::OpenSessions
        | Action::ContinueLast
        | Action::NewSession
        | Action::OpenSignIn
        | Action::OpenQueue
        | Action::KillCommand => 0,
        Action::ScrollTop | Action::ScrollEnd | Action::Redraw | Action::Suspend | Action::Quit => 2,
        _ => 1,
    }
}

/// Granted permissions: those of the active session, then permanent ones.
pub fn grants(state: &State) -> Vec<PickerRow> {
    let row = |granted: &ListedGrant<'_>| PickerRow {
        value: PickerValue::Id(granted.id()),
        label: granted.grant.words(),
        detail: granted.agent.to_owned(),
        right: granted
            .folder
            .map_or_else(|| "for this session".to_owned(), |folder| folder.display().to_string()),
        group: None,
        is_current: false,
    };
    granted(state).iter().map(row).collect()
}

/// Modes of the session.
pub fn modes(state: &State) -> Vec<PickerRow> {
    let Some(modes) = state.active_session().and_then(|session| session.modes.as_ref()) else {
        return Vec::new();
    };
    let row = |mode: &crate::model::Mode| {
        id_row(mode.id.as_str(), &mode.name, mode.description.as_deref(), mode.id == modes.current)
    };
    modes.available.iter().map(row).collect()
}

/// Models of agents without config options.
pub fn models(state: &State) -> Vec<PickerRow> {
    let Some(models) = state.active_session().and_then(|session| session.models.as_ref()) else {
        return Vec::new();
    };
    let row = |model: &crate::model::Model| {
        id_row(model.id.as_str(), &model.name, model.description.as_deref(), model.id == models.current)
    };
    models.available.iter().map(row).collect()
}

/// Config options with their values.
pub fn options(state: &State) -> Vec<PickerRow> {
    let options = state.active_session().map(|session| session.options.as_slice()).unwrap_or_default();
    let row = |option: &ConfigOption| PickerRow {
        right: value_of(option),
        ..id_row(&option.id, &option.name, option.description.as_deref(), false)
    };
    options.iter().map(row).collect()
}

/// Values of a select option, in their groups.
pub fn values(option: &ConfigOption) -> Vec<PickerRow> {
    let ConfigKind::Select { current, choices } = &option.kind else { return Vec::new() };
    let row = |choice: &crate::model::ConfigChoice| PickerRow {
        group: choice.group.clone(),
        ..id_row(&choice.value, &choice.name, choice.description.as_deref(), choice.value == *current)
    };
    choices.iter().map(row).collect()
}

/// Themes.
pub fn themes(state: &State) -> Vec<PickerRow> {
    state.setup.themes.iter().map(|name| id_row(name, name, None, *name == state.setup.theme)).collect()
}

/// Sign-in methods of an agent.
pub fn sign_ins(state: &State, conn: ConnId) -> Vec<PickerRow> {
    let info = state.conns.get(&conn).and_then(|conn| conn.info.as_ref());
    let methods = info.map(|info| info.auth_methods.as_slice()).unwrap_or_default();
    let row = |method: &crate::model::AuthMethod| PickerRow {
        right: match &method.kind {
            AuthKind::Agent => String::new(),
            AuthKind::Terminal(_) => "in terminal".to_owned(),
            AuthKind::EnvVar { .. } => "API key".to_owned(),
        },
        ..id_row(&method.id, &method.name, method.description.as_deref(), false)
    };
    methods.iter().map(row).collect()
}

fn id_row(id: &str, label: &str, detail: Option<&str>, is_current: bool) -> PickerRow {
    PickerRow {
        value: PickerValue::Id(id.to_owned()),
        label: label.to_owned(),
        detail: detail.unwrap_or_default().to_owned(),
        right: String::new(),
        group: None,
        is_current,
    }
}

fn value_of(option: &ConfigOption) -> String {
    match &option.kind {
        ConfigKind::Boolean { current: true } => "on".to_owned(),
        ConfigKind::Boolean { current: false } => "off".to_owned(),
        ConfigKind::Select { current, choices } => {
            let chosen = choices.iter().find(|choice| choice.value == *current);
            chosen.map_or(current, |choice| &choice.name).clone()
        }
    }
}
