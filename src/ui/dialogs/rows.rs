//! The rows of each picker, made from the state.

use crate::app::state::fuzzy::{self, Texts};
use crate::app::{AUTO_THEME, ListedGrant, Setup, State, granted};
use crate::model::{Action, AuthKind, ConfigKind, ConfigOption, ConnId};
use crate::ui::{PickerKind, PickerRow, PickerValue};

use super::obstacle;

/// The heading of the commands that fit the moment.
const NOW: &str = "Now";

/// Commands of the palette that make sense now, in their groups; those that fit the moment come first.
pub fn palette(state: &State) -> Vec<PickerRow> {
    let now = obstacle::fitting(state);
    let rank = |action: Action| now.iter().position(|fitting| *fitting == action).unwrap_or(now.len());
    let mut offered: Vec<_> = state.setup.palette.iter().collect();
    offered.sort_by_key(|command| (rank(command.action), command.group));
    let starts_agent = state.active_session().is_some_and(|session| session.read_only.is_some());
    offered
        .into_iter()
        .filter(|command| obstacle::obstacle(state, command.action).is_none())
        .map(|command| {
            let starts = starts_agent && command.action == Action::RestartAgent;
            let group = if now.contains(&command.action) { NOW } else { command.group.title() };
            PickerRow {
                right: command.keys.clone(),
                group: Some(group.to_owned()),
                ..PickerRow::new(
                    PickerValue::Action(command.action),
                    if starts { "Start agent" } else { &command.text },
                )
            }
        })
        .collect()
}

pub fn synonyms<'a>(setup: &'a Setup, kind: &PickerKind, row: &'a PickerRow) -> &'a str {
    match &row.value {
        PickerValue::Action(action) => {
            let command = setup.palette.iter().find(|command| command.action == *action);
            command.map_or("", |command| command.synonyms)
        }
        PickerValue::Id(name) if *kind == PickerKind::Setting => {
            let setting = setup.settings.iter().find(|setting| setting.name == *name);
            setting.map_or("", |setting| setting.about.as_str())
        }
        PickerValue::Id(id) if *kind == PickerKind::Binding => id,
        _ => "",
    }
}

pub fn used_synonyms(state: &State, row: &PickerRow, filter: &str) -> String {
    let synonyms = synonyms(&state.setup, &PickerKind::Palette, row);
    let texts = Texts { label: &row.label, synonyms, ..Texts::default() };
    fuzzy::used_synonyms(filter, texts).join(", ")
}

/// Granted permissions: those of the active session, then permanent ones.
pub fn grants(state: &State) -> Vec<PickerRow> {
    let row = |granted: &ListedGrant<'_>| PickerRow {
        detail: granted.agent.to_owned(),
        right: granted
            .folder
            .map_or_else(|| "for this session".to_owned(), |folder| folder.display().to_string()),
        ..PickerRow::new(PickerValue::Id(granted.id()), granted.grant.description())
    };
    granted(state).iter().map(row).collect()
}

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

pub fn options(state: &State) -> Vec<PickerRow> {
    let options = state.active_session().map(|session| session.options.as_slice()).unwrap_or_default();
    let row = |option: &ConfigOption| PickerRow {
        right: value_of(option),
        ..id_row(&option.id, &option.name, option.description.as_deref(), false)
    };
    options.iter().map(row).collect()
}

pub fn values(option: &ConfigOption) -> Vec<PickerRow> {
    let ConfigKind::Select { current, choices } = &option.kind else { return Vec::new() };
    let row = |choice: &crate::model::ConfigChoice| PickerRow {
        group: choice.group.clone(),
        ..id_row(&choice.value, &choice.name, choice.description.as_deref(), choice.value == *current)
    };
    choices.iter().map(row).collect()
}

/// `auto`, then the dark themes, then the light ones.
pub fn themes(state: &State) -> Vec<PickerRow> {
    let setup = &state.setup;
    let row = |name: &str| id_row(name, name, None, name == setup.theme);
    let auto = PickerRow { right: setup.auto_theme.clone(), ..row(AUTO_THEME) };
    let of = |is_dark, group: &str| {
        let themes = setup.themes.iter().filter(move |theme| theme.is_dark == is_dark);
        themes
            .map(|theme| PickerRow { group: Some(group.to_owned()), ..row(&theme.name) })
            .collect::<Vec<_>>()
    };
    [auto].into_iter().chain(of(true, "Dark")).chain(of(false, "Light")).collect()
}

pub fn sign_ins(state: &State, conn: ConnId) -> Vec<PickerRow> {
    let info = state.conns.get(&conn).and_then(|conn| conn.info.as_ref());
    let methods = info.map(|info| info.auth_methods.as_slice()).unwrap_or_default();
    let row = |method: &crate::model::AuthMethod| PickerRow {
        right: match &method.kind {
            AuthKind::Agent => String::new(),
            AuthKind::Terminal(_) => "in terminal".to_owned(),
            AuthKind::EnvVar { .. } | AuthKind::ApiKey => "API key".to_owned(),
        },
        ..id_row(&method.id, &method.name, method.description.as_deref(), false)
    };
    methods.iter().map(row).collect()
}

fn id_row(id: &str, label: &str, detail: Option<&str>, is_current: bool) -> PickerRow {
    PickerRow {
        detail: detail.unwrap_or_default().to_owned(),
        is_current,
        ..PickerRow::new(PickerValue::Id(id.to_owned()), label)
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
