//! Lists with a filter: how they open, are walked, filtered and picked from.
//!
//! What stands in them is `rows`. Invariant: `matches` is in step with `filter` and `rows`, and `selected` is a
//! place in `matches` unless they are empty.

use crate::app::state::modal;
use std::time::Instant;

use crate::app::lifecycle::operations;
use crate::app::lifecycle::tabs::open_dialog;
use crate::app::state::modal::offered_row;
use crate::app::{Effect, LineInput, Modal, Picker, PickerKind, PickerRow, PickerValue, State};
use crate::model::{
    Action, AuthKind, ConfigKind, ConfigValue, ConnId, LineEdit, ModeId, ModelId, SessionKey,
};

use super::{choice, copy, jump, leave, line_dialog, on_command, on_open, providers, rows, say, tabs};
use crate::app::state::fuzzy;

/// Rows that a page key moves by.
const PAGE_ROWS: isize = 10;

/// Opens the picker of agents (called by the agent's side when none was named).
pub fn open_agents(state: &mut State) {
    let mut picker = new(PickerKind::Agent, "Select agent", modal::agent_rows(state));
    let last = state.setup.last_agent.as_deref();
    let is_last =
        |row: &PickerRow| matches!(&row.value, PickerValue::Id(name) if Some(name.as_str()) == last);
    if let Some(place) = picker.rows.iter().position(is_last) {
        picker.selected = place;
    }
    if let Some(last) = operations::last_session(state) {
        picker.rows.insert(0, offered_row(last));
        picker.matches = (0..picker.rows.len()).collect();
        picker.selected += 1;
    }
    if picker.rows.is_empty() {
        picker.note = Some("No agents found. Add one to config.toml, or pass a command.".to_owned());
    }
    push(state, picker);
}

/// Opens the picker of ways to sign in to this agent (called when a call was answered with "sign in first").
pub fn open_sign_in(state: &mut State, conn: ConnId) {
    let mut picker = sign_in(state, conn);
    picker.is_by_itself = true;
    push(state, picker);
}

/// The same for a session that may be in another tab: then it waits there.
pub fn open_sign_in_of(state: &mut State, key: SessionKey, conn: ConnId) {
    let mut picker = sign_in(state, conn);
    picker.is_by_itself = true;
    open_dialog(state, key, Modal::Picker(picker));
}

/// The picker of ways to sign in to this agent.
pub fn sign_in(state: &State, conn: ConnId) -> Picker {
    let mut picker = new(PickerKind::SignIn, "Sign in", rows::sign_ins(state, conn));
    picker.conn = Some(conn);
    if picker.rows.is_empty() {
        picker.note = Some(
            "The agent has no sign-in method. Sign in with its own command, then restart it.".to_owned(),
        );
    }
    picker
}

/// The picker of agents that the shown conversation can be handed over to.
pub fn open_hand_over(state: &mut State, fx: &mut Vec<Effect>) {
    if state.active_session().is_none_or(|session| session.turn_count == 0) {
        say(state, "Nothing to hand over yet.", fx);
        return;
    }
    let mut picker = new(PickerKind::HandOver, "Hand over conversation to", modal::agent_rows(state));
    picker.note = Some("Starts a new session. The conversation is sent with the first prompt.".to_owned());
    push(state, picker);
}

/// Opens the list of permissions that can be revoked.
pub fn open_grants(state: &mut State) {
    let mut picker = new(PickerKind::Grant, "Saved permissions", rows::grants(state));
    picker.note = Some(if picker.rows.is_empty() {
        "No saved permissions.".to_owned()
    } else {
        "Select a permission to revoke it.".to_owned()
    });
    push(state, picker);
}

/// A picker with these rows; the one in force is marked.
pub fn new(kind: PickerKind, title: impl Into<String>, rows: Vec<PickerRow>) -> Picker {
    Picker {
        kind,
        title: title.into(),
        matches: (0..rows.len()).collect(),
        selected: rows.iter().position(|row| row.is_current).unwrap_or(0),
        rows,
        filter: LineInput::default(),
        note: None,
        conn: None,
        is_by_itself: false,
        shown_at: None,
    }
}

/// Puts a picker on top; one of the same kind is never there twice.
pub fn push(state: &mut State, picker: Picker) {
    state.modals.retain(|modal| !matches!(modal, Modal::Picker(other) if other.kind == picker.kind));
    state.modals.push(Modal::Picker(picker));
}

/// The filter of the top picker changes.
pub fn on_filter(state: &mut State, edit: &LineEdit, fx: &mut Vec<Effect>) {
    let Some(Modal::Picker(picker)) = state.modals.last_mut() else { return };
    if picker.filter.apply(edit) {
        refilter(picker);
        preview(picker, fx);
    }
}

/// Actions in the top picker.
pub fn on_action(state: &mut State, action: Action, now: Instant, fx: &mut Vec<Effect>) -> bool {
    let Some(Modal::Picker(picker)) = state.modals.last_mut() else { return false };
    let count = picker.matches.len();
    let last = count.saturating_sub(1);
    let place = match action {
        Action::Accept => {
            pick(state, now, fx);
            return true;
        }
        Action::Choose(digit) => {
            on_filter(state, &LineEdit::Insert(digit.to_string()), fx);
            return true;
        }
        Action::ToggleChoice => {
            on_filter(state, &LineEdit::Insert(" ".to_owned()), fx);
            return true;
        }
        Action::Left | Action::Right => {
            picker.filter.apply(if action == Action::Left { &LineEdit::Left } else { &LineEdit::Right });
            return true;
        }
        Action::OpenPalette if picker.kind == PickerKind::Palette => {
            leave::close_top(state, fx);
            return true;
        }
        Action::Up | Action::PreviousField => picker.selected.checked_sub(1).unwrap_or(last),
        Action::Down | Action::NextField if picker.selected >= last => 0,
        Action::Down | Action::NextField => picker.selected + 1,
        Action::PageUp => super::moved(picker.selected, -PAGE_ROWS, count),
        Action::PageDown => super::moved(picker.selected, PAGE_ROWS, count),
        Action::Scroll(lines) => super::moved(picker.selected, isize::from(lines), count),
        Action::First => 0,
        Action::Last => last,
        Action::Mark(place) => super::moved(usize::from(place), 0, count),
        _ => return choice::scroll_body(action, fx),
    };
    if picker.selected != place {
        picker.selected = place;
        preview(picker, fx);
    }
    true
}

/// A theme is shown while it is only marked; `leave::close_top` takes that back.
fn preview(picker: &Picker, fx: &mut Vec<Effect>) {
    if picker.kind == PickerKind::Theme
        && let Some(PickerRow { value: PickerValue::Id(name), .. }) = marked_row(picker)
    {
        fx.push(Effect::SetTheme(name.clone()));
    }
}

/// The theme that suits the terminal is known.
pub fn on_theme(state: &mut State, name: String, fx: &mut Vec<Effect>) {
    state.setup.theme.clone_from(&name);
    fx.push(Effect::SetTheme(name));
}

/// Filters and orders the rows by what is typed.
pub fn refilter(picker: &mut Picker) {
    if picker.kind == PickerKind::Folder {
        // What is typed may be a path that no row has.
        picker.rows.retain(|row| row.group.is_some());
        picker.rows.extend(tabs::typed_row(&picker.filter.text));
    }
    // The heading above a row tells as much of it as its detail.
    let detail = |row: &PickerRow| match &row.group {
        Some(group) => format!("{} {group}", row.detail),
        None => row.detail.clone(),
    };
    let details: Vec<String> = picker.rows.iter().map(detail).collect();
    let texts = picker.rows.iter().zip(&details).map(|(row, detail)| (row.label.as_str(), detail.as_str()));
    picker.matches = fuzzy::rank(&picker.filter.text, texts);
    picker.selected = 0;
}

fn marked_row(picker: &Picker) -> Option<&PickerRow> {
    picker.matches.get(picker.selected).and_then(|row| picker.rows.get(*row))
}

fn pick(state: &mut State, now: Instant, fx: &mut Vec<Effect>) {
    let Some(Modal::Picker(picker)) = state.modals.last() else { return };
    let Some(value) = marked_row(picker).map(|row| row.value.clone()) else { return };
    let (kind, conn) = (picker.kind.clone(), picker.conn);
    state.modals.pop();
    let key = state.active;
    match (kind, value) {
        (_, PickerValue::Action(action)) => on_command(state, action, now, fx),
        (_, PickerValue::Target(target)) => on_open(state, target, fx),
        (_, PickerValue::Item(id)) => jump::go_to(state, id, fx),
        (_, PickerValue::Only(only)) => {
            if let Some(session) = state.sessions.get_mut(&key) {
                session.only = only;
            }
        }
        (PickerKind::Agent, PickerValue::Id(name)) => pick_agent(state, &name, now, fx),
        (_, PickerValue::Copy(source)) => copy::copy(state, Some(source), fx),
        (
            PickerKind::Palette
            | PickerKind::Copy
            | PickerKind::Outline
            | PickerKind::Only
            | PickerKind::Place,
            PickerValue::Id(_),
        ) => {}
        (PickerKind::TabAgent(folder), PickerValue::Id(name)) => {
            tabs::pick_agent(state, folder, &name, now, fx);
        }
        (PickerKind::Folder, PickerValue::Id(text)) => tabs::pick_folder(state, text, fx),
        (PickerKind::Mode, PickerValue::Id(id)) => {
            operations::set_mode(state, key, ModeId::from(id), now, fx);
        }
        (PickerKind::Model, PickerValue::Id(id)) => {
            operations::set_model(state, key, ModelId::from(id), now, fx);
        }
        (PickerKind::Option, PickerValue::Id(id)) => pick_option(state, id, now, fx),
        (PickerKind::OptionValue(id), PickerValue::Id(value)) => {
            state
                .modals
                .retain(|modal| !matches!(modal, Modal::Picker(below) if below.kind == PickerKind::Option));
            operations::set_option(state, key, id, ConfigValue::Text(value), now, fx);
        }
        (PickerKind::Theme, PickerValue::Id(name)) => {
            state.setup.theme.clone_from(&name);
            say(
                state,
                format!("Applies until you quit. To save it, set theme = \"{name}\" in config.toml."),
                fx,
            );
            fx.push(Effect::SetTheme(name));
        }
        (PickerKind::HandOver, PickerValue::Id(name)) => {
            let choice = state.setup.agents.iter().find(|choice| choice.spec.name == name);
            if let Some(spec) = choice.map(|choice| choice.spec.clone()) {
                operations::hand_over(state, key, spec, now, fx);
            }
        }
        (PickerKind::Grant, PickerValue::Id(id)) => {
            operations::revoke(state, &id, fx);
            say(state, "Permission revoked.", fx);
            open_grants(state);
        }
        (PickerKind::SignIn, PickerValue::Id(id)) => pick_sign_in(state, conn, &id, now, fx),
        (PickerKind::Provider, PickerValue::Id(id)) => {
            if let Some(conn) = conn {
                providers::pick(state, conn, &id);
            }
        }
        (PickerKind::ProviderApi(id), PickerValue::Id(api)) => {
            if let Some(conn) = conn {
                providers::pick_api(state, conn, id, api, fx);
            }
        }
    }
}

fn pick_agent(state: &mut State, name: &str, now: Instant, fx: &mut Vec<Effect>) {
    let Some(choice) = state.setup.agents.iter().find(|choice| choice.spec.name == name) else { return };
    let spec = choice.spec.clone();
    let Some(session) = state.active_session() else { return };
    let folder = session.place.cwd.clone();
    fx.push(Effect::SaveAgentChoice { folder, agent: spec.name.clone() });
    state.setup.last_agent = Some(spec.name.clone());
    operations::start_agent(state, state.active, spec, now, fx);
}

/// A switch is turned over; for the rest a second picker shows the values, above this one.
fn pick_option(state: &mut State, id: String, now: Instant, fx: &mut Vec<Effect>) {
    let option =
        state.active_session().and_then(|session| session.options.iter().find(|option| option.id == id));
    match option.map(|option| &option.kind) {
        Some(ConfigKind::Boolean { current }) => {
            let value = ConfigValue::Bool(!current);
            operations::set_option(state, state.active, id, value, now, fx);
        }
        Some(ConfigKind::Select { .. }) => {
            let mut options = new(PickerKind::Option, "Options", rows::options(state));
            let is_this = |row: &PickerRow| row.value == PickerValue::Id(id.clone());
            options.selected = options.rows.iter().position(is_this).unwrap_or(0);
            push(state, options);
            open_values(state, &id);
        }
        None => say(state, "The agent no longer offers this option.", fx),
    }
}

/// Opens the values of a select option.
pub fn open_values(state: &mut State, id: &str) {
    let option =
        state.active_session().and_then(|session| session.options.iter().find(|option| option.id == id));
    if let Some(option) = option {
        let picker = new(PickerKind::OptionValue(id.to_owned()), option.name.clone(), rows::values(option));
        push(state, picker);
    }
}

fn pick_sign_in(state: &mut State, conn: Option<ConnId>, id: &str, now: Instant, fx: &mut Vec<Effect>) {
    let Some(conn) = conn else { return };
    let methods = state.conns.get(&conn).and_then(|conn| conn.info.as_ref()).map(|info| &info.auth_methods);
    let Some(method) = methods.into_iter().flatten().find(|method| method.id == id).cloned() else { return };
    if let Some(refusal) = operations::variables_refused(state, conn, &method) {
        operations::tell_refusal(state, conn, &refusal, None, fx);
        return;
    }
    match method.kind {
        AuthKind::EnvVar { vars, .. } => {
            line_dialog::open_auth_vars(state, conn, id.to_owned(), Vec::new(), vars, now, fx);
        }
        AuthKind::Agent | AuthKind::Terminal(_) => operations::sign_in(state, conn, id, Vec::new(), now, fx),
    }
}
