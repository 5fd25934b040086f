//! The keys of pickers, and the effects of picking a row.

use super::notice::notify;
use crate::app::lifecycle::{install, operations};
use crate::app::{AUTO_THEME, Cx, Effect, State, UiRequest};
use crate::model::{
    Action, AuthKind, ConfigJob, ConfigKind, ConfigValue, ConnId, LineEdit, ModeId, ModelId, SettingChange,
    SettingValue,
};
use crate::ui::dialogs::modal::moved;
use crate::ui::{App, Modal, PickerKind, PickerRow, PickerValue};

use super::{
    copy, draft, history, jump, line_dialog, on_open, picker, pickers, providers, rewind, rows, settings,
    stack, tabs,
};

/// Rows moved by a page key.
const PAGE_ROWS: isize = 10;

pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    let Some(Modal::Picker(picker)) = app.modals.last_mut() else { return false };
    let count = picker.matches.len();
    let last = count.saturating_sub(1);
    let position = match action {
        Action::Accept => {
            pick(app, cx);
            return true;
        }
        Action::Choose(digit) => {
            picker::on_filter(app, &LineEdit::Insert(digit.to_string()), cx);
            return true;
        }
        Action::ToggleChoice => {
            picker::on_filter(app, &LineEdit::Insert(" ".to_owned()), cx);
            return true;
        }
        Action::Left | Action::Right => {
            picker.filter.apply(if action == Action::Left { &LineEdit::Left } else { &LineEdit::Right });
            return true;
        }
        Action::NextScope | Action::ReadSession if matches!(picker.kind, PickerKind::History { .. }) => {
            if action == Action::NextScope {
                history::toggle(app, cx);
            } else {
                history::open_session(app, cx);
            }
            return true;
        }
        Action::OpenPalette if picker.kind == PickerKind::Palette => {
            stack::close_top(app, cx);
            return true;
        }
        Action::Up | Action::PreviousField => picker.selected.checked_sub(1).unwrap_or(last),
        Action::Down | Action::NextField if picker.selected >= last => 0,
        Action::Down | Action::NextField => picker.selected + 1,
        Action::PageUp => moved(picker.selected, -PAGE_ROWS, count),
        Action::PageDown => moved(picker.selected, PAGE_ROWS, count),
        Action::Scroll(lines) => moved(picker.selected, isize::from(lines), count),
        Action::First => 0,
        Action::Last => last,
        Action::Mark(position) => moved(usize::from(position), 0, count),
        _ => return stack::scroll_body(action, cx),
    };
    if picker.selected != position {
        picker.selected = position;
        picker::preview(picker, &app.state.setup, cx);
    }
    true
}

fn pick(app: &mut App, cx: &mut Cx) {
    let Some(Modal::Picker(picker)) = app.modals.last() else { return };
    let Some(value) = picker::marked_row(picker).map(|row| row.value.clone()) else { return };
    // The list stays open, because the agent is not installed yet.
    match &value {
        PickerValue::Install(id) => return install::ask(&mut app.state, id, None, cx),
        PickerValue::FetchRegistry => {
            notify(&mut app.state, "Fetching the registry", cx);
            return cx.effects.push(Effect::ReadRegistry { refresh: true });
        }
        _ => {}
    }
    let (kind, conn) = (picker.kind.clone(), picker.conn);
    // These lists stay open, to change several values.
    match (&kind, &value) {
        (PickerKind::Setting, PickerValue::Id(name)) => return settings::pick(app, name, cx),
        (PickerKind::Binding, PickerValue::Id(id)) => return settings::pick_binding(app, id),
        _ => {}
    }
    app.modals.pop();
    let key = app.state.active;
    match (kind, value) {
        (_, PickerValue::Action(action)) => {
            app.state.ui_requests.push(UiRequest::Command(action, String::new()));
        }
        (_, PickerValue::Target(target)) => on_open(&mut app.state, target, cx),
        (PickerKind::Rewind, PickerValue::Item(id)) => rewind::choose(&mut app.state, id),
        (_, PickerValue::Item(id)) => jump::go_to(&mut app.state, id, cx),
        (_, PickerValue::Only(only)) => {
            if let Some(session) = app.state.sessions.get_mut(&key) {
                session.only = only;
            }
        }
        (PickerKind::Agent, PickerValue::Id(name)) => pick_agent(&mut app.state, &name, cx),
        (_, PickerValue::Copy(source)) => copy::copy(&mut app.state, Some(source), cx),
        (_, PickerValue::Install(_) | PickerValue::FetchRegistry)
        | (
            PickerKind::Palette
            | PickerKind::Copy
            | PickerKind::Outline
            | PickerKind::Rewind
            | PickerKind::History { .. }
            | PickerKind::Only
            | PickerKind::Setting
            | PickerKind::Binding
            | PickerKind::Location,
            PickerValue::Id(_),
        ) => {}
        (PickerKind::TabAgent(folder), PickerValue::Id(name)) => {
            tabs::pick_agent(&mut app.state, folder, &name, cx);
        }
        (PickerKind::Folder, PickerValue::Id(text)) => tabs::pick_folder(&app.state, text, cx),
        (PickerKind::Mode, PickerValue::Id(id)) => {
            operations::set_mode(&mut app.state, key, ModeId::from(id), cx);
        }
        (PickerKind::Model, PickerValue::Id(id)) => {
            operations::set_model(&mut app.state, key, ModelId::from(id), cx);
        }
        (PickerKind::Option, PickerValue::Id(id)) => pick_option(app, id, cx),
        (PickerKind::OptionValue(id), PickerValue::Id(value)) => {
            app.modals
                .retain(|modal| !matches!(modal, Modal::Picker(below) if below.kind == PickerKind::Option));
            operations::set_option(&mut app.state, key, id, ConfigValue::Text(value), cx);
        }
        (PickerKind::Theme, PickerValue::Id(name)) => {
            app.state.setup.theme.clone_from(&name);
            cx.effects.push(Effect::SetTheme(app.state.setup.theme_in_use().to_owned()));
            let value = Some(SettingValue::Text(name));
            let change = SettingChange::Value { name: "theme".to_owned(), value };
            cx.effects.push(Effect::Configure(ConfigJob::Change(change)));
        }
        (PickerKind::SettingValue(name), PickerValue::Id(word)) => {
            settings::pick_value(&mut app.state, &name, &word, cx);
        }
        (PickerKind::BindingWay(id), PickerValue::Id(way)) => settings::pick_way(app, &id, &way, cx),
        (PickerKind::HandOver, PickerValue::Id(name)) => {
            let choice = app.state.setup.agents.iter().find(|choice| choice.spec.name == name);
            if let Some(spec) = choice.map(|choice| choice.spec.clone()) {
                operations::hand_over(&mut app.state, key, spec, cx);
            }
        }
        (_, PickerValue::Prompt(prompt)) => draft::recall(app, prompt.text, cx),
        (PickerKind::Grant, PickerValue::Id(id)) => {
            operations::revoke(&mut app.state, &id, cx);
            notify(&mut app.state, "Permission revoked.", cx);
            pickers::open_grants(app);
        }
        (PickerKind::SignIn, PickerValue::Id(id)) => pick_sign_in(app, conn, &id, cx),
        (PickerKind::Provider, PickerValue::Id(id)) => {
            if let Some(conn) = conn {
                providers::pick(app, conn, &id);
            }
        }
        (PickerKind::ProviderApi(id), PickerValue::Id(api)) => {
            if let Some(conn) = conn {
                providers::pick_api(app, conn, id, api, cx);
            }
        }
    }
}

fn pick_agent(state: &mut State, name: &str, cx: &mut Cx) {
    let Some(choice) = state.setup.agents.iter().find(|choice| choice.spec.name == name) else { return };
    let spec = choice.spec.clone();
    let Some(session) = state.active_session() else { return };
    let folder = session.workspace.cwd.clone();
    cx.effects.push(Effect::SaveAgentChoice { folder, agent: spec.name.clone() });
    install::remember(state, &spec.name);
    operations::start_agent(state, state.active, spec, cx);
}

/// Toggles a boolean option; for others a second picker with the values opens.
fn pick_option(app: &mut App, id: String, cx: &mut Cx) {
    let active = app.state.active;
    let option =
        app.state.active_session().and_then(|session| session.options.iter().find(|option| option.id == id));
    match option.map(|option| &option.kind) {
        Some(ConfigKind::Boolean { current }) => {
            let value = ConfigValue::Bool(!current);
            operations::set_option(&mut app.state, active, id, value, cx);
        }
        Some(ConfigKind::Select { .. }) => {
            let mut options = picker::new(PickerKind::Option, "Options", rows::options(&app.state));
            let is_this = |row: &PickerRow| row.value == PickerValue::Id(id.clone());
            options.selected = options.rows.iter().position(is_this).unwrap_or(0);
            picker::push(app, options);
            pickers::open_values(app, &id);
        }
        None => notify(&mut app.state, "The agent no longer offers this option.", cx),
    }
}

fn pick_sign_in(app: &mut App, conn: Option<ConnId>, id: &str, cx: &mut Cx) {
    let Some(conn) = conn else { return };
    let methods =
        app.state.conns.get(&conn).and_then(|conn| conn.info.as_ref()).map(|info| &info.auth_methods);
    let Some(method) = methods.into_iter().flatten().find(|method| method.id == id).cloned() else { return };
    if let Some(refusal) = operations::variables_refused(&app.state, conn, &method) {
        operations::report_refusal(&mut app.state, conn, &refusal, None, cx);
        return;
    }
    match method.kind {
        AuthKind::EnvVar { vars, .. } => {
            line_dialog::open_auth_vars(app, conn, id.to_owned(), Vec::new(), vars, cx);
        }
        AuthKind::ApiKey => line_dialog::open_api_key(app, conn, &method),
        AuthKind::Agent | AuthKind::Terminal(_) => {
            operations::sign_in(&mut app.state, conn, id, Vec::new(), cx);
        }
    }
}

/// Sets the theme that matches the terminal, and applies it unless another one is chosen or being chosen.
pub fn on_theme(app: &mut App, name: String, cx: &mut Cx) {
    app.state.setup.auto_theme.clone_from(&name);
    let is_choosing =
        |modal: &Modal| matches!(modal, Modal::Picker(picker) if picker.kind == PickerKind::Theme);
    if app.state.setup.theme == AUTO_THEME && !app.modals.iter().any(is_choosing) {
        cx.effects.push(Effect::SetTheme(name));
    }
}
