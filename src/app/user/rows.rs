//! The rows of each picker, made from the state.

use crate::app::{ItemBody, MessagePart, PickerRow, PickerValue, Session, State, call};
use crate::model::{Action, AuthKind, ConfigKind, ConfigOption, ConnId, Role, SessionInfo};

use super::commands;

/// Agents that can be chosen, by where they come from.
pub fn agents(state: &State) -> Vec<PickerRow> {
    let current = state.conn_of(state.active).map(|conn| conn.spec.name.as_str());
    let last = state.setup.last_agent.as_deref();
    let row = |choice: &crate::app::AgentChoice| PickerRow {
        value: PickerValue::Id(choice.spec.name.clone()),
        label: choice.title.clone(),
        // Where this program itself lies tells nobody anything.
        detail: match choice.source.as_str() {
            "built in" => "a tour, no account needed".to_owned(),
            _ => choice.spec.command_line(),
        },
        right: if last == Some(choice.spec.name.as_str()) {
            "last used here".to_owned()
        } else {
            String::new()
        },
        group: Some(group_of(&choice.source)),
        is_current: current == Some(choice.spec.name.as_str()),
    };
    state.setup.agents.iter().map(row).collect()
}

/// Commands of the palette that make sense now.
pub fn palette(state: &State) -> Vec<PickerRow> {
    let mut offered: Vec<_> = state.setup.palette.iter().collect();
    offered.sort_by_key(|(action, ..)| palette_rank(*action));
    offered
        .into_iter()
        .filter(|(action, ..)| commands::obstacle(state, *action).is_none())
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

/// What begins or changes the work comes first, then what changes the view, then what is seldom wished.
fn palette_rank(action: Action) -> u8 {
    match action {
        Action::OpenModels
        | Action::OpenModes
        | Action::NextMode
        | Action::OpenOptions
        | Action::OpenAgents
        | Action::OpenSessions
        | Action::NewSession
        | Action::OpenSignIn
        | Action::OpenQueue
        | Action::KillCommand => 0,
        Action::ScrollTop | Action::ScrollEnd | Action::Redraw | Action::Suspend | Action::Quit => 2,
        _ => 1,
    }
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

/// Models of the legacy list.
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

/// Sessions that are open here, each with its subagents behind it, then the others that the agent listed.
pub fn sessions(state: &State) -> Vec<PickerRow> {
    let open = |session: &Session| PickerRow {
        value: PickerValue::Open(session.key),
        label: match session.parent {
            Some(_) => format!("  subagent · {}", session_title(session)),
            None => session_title(session),
        },
        detail: session.place.cwd.display().to_string(),
        right: open_state(session).to_owned(),
        group: Some("Open here".to_owned()),
        is_current: session.key == state.active,
    };
    let mut here: Vec<&Session> = state.sessions.values().collect();
    here.sort_by_key(|session| (call::root_of(state, session.key), session.key));
    let conn = state.active_session().and_then(|session| session.conn);
    let is_open = |info: &SessionInfo| {
        state.sessions.values().any(|session| session.conn == conn && session.id.as_ref() == Some(&info.id))
    };
    let kept = |info: &SessionInfo| PickerRow {
        right: info.updated_at.as_deref().map(short_time).unwrap_or_default(),
        group: Some("Kept by the agent".to_owned()),
        ..id_row(
            info.id.as_str(),
            info.title.as_deref().filter(|title| !title.trim().is_empty()).unwrap_or("Untitled"),
            Some(&info.cwd.display().to_string()),
            false,
        )
    };
    let kept = state.listed.iter().filter(|info| !is_open(info)).map(kept);
    here.into_iter().map(open).chain(kept).collect()
}

/// What a session is called: its title, else its first prompt, else that it is new.
pub fn session_title(session: &Session) -> String {
    title_of(session).unwrap_or_else(|| "New session".to_owned())
}

/// A session's title, else its first prompt.
pub fn title_of(session: &Session) -> Option<String> {
    let title = session.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    let first = || {
        session.transcript.items().iter().find_map(|item| match &item.body {
            ItemBody::Message(message) if message.role == Role::User => {
                message.parts.iter().find_map(|part| match part {
                    MessagePart::Text(text) => text.lines().find(|line| !line.trim().is_empty()),
                    MessagePart::Block(_) => None,
                })
            }
            _ => None,
        })
    };
    title.or_else(first).map(str::to_owned)
}

/// What goes on in a session, where that matters to the choice.
fn open_state(session: &Session) -> &'static str {
    if !session.asks.is_empty() {
        "waits for you"
    } else if session.turn.is_running() {
        "working"
    } else if session.has_background_news {
        "news"
    } else {
        ""
    }
}

/// Ways to sign in to an agent.
pub fn sign_ins(state: &State, conn: ConnId) -> Vec<PickerRow> {
    let info = state.conns.get(&conn).and_then(|conn| conn.info.as_ref());
    let methods = info.map(|info| info.auth_methods.as_slice()).unwrap_or_default();
    let row = |method: &crate::model::AuthMethod| PickerRow {
        right: match &method.kind {
            AuthKind::Agent => String::new(),
            AuthKind::Terminal { .. } => "in the terminal".to_owned(),
            AuthKind::EnvVar { .. } => "by a key".to_owned(),
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

fn group_of(source: &str) -> String {
    match source {
        "found" => "Found on this machine".to_owned(),
        other => {
            let mut letters = other.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
        }
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

/// `2026-11-20T14:03:22Z` is shown as `2026-11-20 14:03`; what has another form is shown as it came.
fn short_time(text: &str) -> String {
    match text.split_once('T') {
        Some((date, time)) if date.len() == 10 => {
            format!("{date} {}", time.chars().take(5).collect::<String>())
        }
        _ => text.to_owned(),
    }
}
