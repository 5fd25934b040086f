//! The settings screen: the list of settings, the list of key bindings, and the dialogs that change them.
//!
//! A change is written to the configuration file, which is then read again like after a change by an editor: its values
//! apply in [`on_news`]. A value that lets agents do more is confirmed first.

use std::path::PathBuf;
use std::time::Instant;

use super::notice::notify;
use crate::app::lifecycle::call;
use crate::app::{
    AUTO_THEME, ConfigNews, Consequence, Cx, Effect, LineInput, MouseOwner, Question, State, UiRequest,
};
use crate::model::{
    Action, Applies, BindingRow, ConfigJob, Location, SettingChange, SettingKind, SettingRow, SettingValue,
    Severity,
};
use crate::ui::{App, KeyCapture, LineDialog, LinePurpose, Modal, PickerKind, PickerRow, PickerValue};

use super::{install, picker, rows};

/// The row of a word list that removes the setting.
const DEFAULT: &str = "default";

pub fn open(app: &mut App) {
    let mut settings = picker::new(PickerKind::Setting, "Settings", setting_rows(&app.state));
    settings.selected = 0;
    picker::push(app, settings);
}

pub fn open_bindings(app: &mut App) {
    let mut keys = picker::new(PickerKind::Binding, "Key bindings", binding_rows(&app.state));
    keys.selected = 0;
    picker::push(app, keys);
}

fn setting_rows(state: &State) -> Vec<PickerRow> {
    let row = |setting: &SettingRow| PickerRow {
        value: PickerValue::Id(setting.name.clone()),
        label: setting.name.clone(),
        detail: setting.shown.clone(),
        right: if setting.is_overridden {
            format!("{}, until you quit", setting.origin)
        } else {
            setting.origin.clone()
        },
        group: Some(setting.group.to_owned()),
        is_current: !setting.is_default,
    };
    state.setup.settings.iter().map(row).collect()
}

fn binding_rows(state: &State) -> Vec<PickerRow> {
    let row = |binding: &BindingRow| PickerRow {
        value: PickerValue::Id(format!("{} {}", binding.context, binding.action)),
        label: binding.text.to_owned(),
        detail: binding.labels.join(", "),
        right: if binding.is_changed { "changed".to_owned() } else { String::new() },
        group: Some(binding.title.to_owned()),
        is_current: binding.is_changed,
    };
    state.setup.bindings.iter().map(row).collect()
}

pub fn setting_of<'a>(state: &'a State, row: &PickerRow) -> Option<&'a SettingRow> {
    let PickerValue::Id(name) = &row.value else { return None };
    state.setup.settings.iter().find(|setting| setting.name == *name)
}

/// What a setting means and when it applies, in one or two sentences.
pub fn description(setting: &SettingRow) -> String {
    let unset = match setting.unset {
        "" => String::new(),
        unset => format!(" Not set: {unset}."),
    };
    let applies = match (setting.kind, setting.applies) {
        (SettingKind::File, _) => " Changed in the configuration file.",
        (_, Applies::Now) => "",
        (_, Applies::Later) => " Applies to agents and sessions that are started later.",
        (_, Applies::NextStart) => " Applies when parlor is started again.",
    };
    format!("{}.{unset}{applies}", setting.about)
}

/// Handles Enter in the list of settings, which stays open.
pub fn pick(app: &mut App, name: &str, cx: &mut Cx) {
    let Some(setting) = app.state.setup.settings.iter().find(|setting| setting.name == *name).cloned() else {
        return;
    };
    match setting.kind {
        SettingKind::Flag => {
            let value = match setting.value {
                Some(SettingValue::Flag(true)) => Some(SettingValue::Flag(false)),
                Some(_) if !setting.unset.is_empty() => None,
                _ => Some(SettingValue::Flag(true)),
            };
            change_value(&mut app.state, &setting, value, cx);
        }
        SettingKind::Word(choices) => open_choices(app, &setting, choices),
        SettingKind::Theme => app.state.ui_requests.push(UiRequest::Act(Action::OpenThemes)),
        SettingKind::Keys => open_bindings(app),
        SettingKind::Number(_) | SettingKind::Text => {
            let value = setting.value.as_ref().map(SettingValue::text).unwrap_or_default();
            let help = format!("{} Leave it empty to restore the default.", description(&setting));
            push_line(app, &setting.name, help, &value, LinePurpose::Setting(setting.name.clone()));
        }
        SettingKind::File => open_file(&mut app.state, setting.line, cx),
    }
}

fn push_line(app: &mut App, title: &str, help: String, text: &str, purpose: LinePurpose) {
    app.modals.push(Modal::Line(LineDialog {
        title: title.to_owned(),
        help,
        input: LineInput::new(text),
        is_secret: false,
        problem: None,
        purpose,
    }));
}

fn open_choices(app: &mut App, setting: &SettingRow, choices: &[&str]) {
    let current = setting.value.as_ref().map(SettingValue::text);
    let row = |word: &str, detail: &str| PickerRow {
        detail: detail.to_owned(),
        is_current: current.as_deref() == Some(word),
        ..PickerRow::new(PickerValue::Id(word.to_owned()), word)
    };
    let mut all: Vec<PickerRow> = choices.iter().map(|word| row(word, "")).collect();
    if !choices.contains(&DEFAULT) {
        all.push(row(DEFAULT, "remove the setting from the file"));
    }
    let mut values = picker::new(PickerKind::SettingValue(setting.name.clone()), setting.name.clone(), all);
    values.note = Some(description(setting));
    picker::push(app, values);
}

pub fn pick_value(state: &mut State, name: &str, word: &str, cx: &mut Cx) {
    let Some(setting) = state.setup.settings.iter().find(|setting| setting.name == *name).cloned() else {
        return;
    };
    let is_word = matches!(setting.kind, SettingKind::Word(choices) if choices.contains(&word));
    let value = is_word.then(|| match word.parse::<u64>() {
        Ok(number) => SettingValue::Number(number),
        Err(_) => SettingValue::Text(word.to_owned()),
    });
    change_value(state, &setting, value, cx);
}

/// Handles the text of a setting; the error says what is wrong with it.
pub fn accept_text(state: &mut State, name: &str, text: &str, cx: &mut Cx) -> Result<(), String> {
    let setting = state.setup.settings.iter().find(|setting| setting.name == *name).cloned();
    let setting = setting.ok_or_else(|| format!("unknown setting `{name}`"))?;
    let value = match setting.kind {
        _ if text.is_empty() => None,
        SettingKind::Number(min) => {
            let number = text.parse::<u64>().ok().filter(|number| *number >= min);
            Some(SettingValue::Number(number.ok_or_else(|| format!("Enter an integer of at least {min}."))?))
        }
        _ => Some(SettingValue::Text(text.to_owned())),
    };
    change_value(state, &setting, value, cx);
    Ok(())
}

fn change_value(state: &mut State, setting: &SettingRow, value: Option<SettingValue>, cx: &mut Cx) {
    let widens = value.as_ref().is_some_and(|value| setting.widens(value));
    let change = SettingChange::Value { name: setting.name.clone(), value };
    if !widens {
        cx.effects.push(Effect::Configure(ConfigJob::Change(change)));
        return;
    }
    let text = if let SettingChange::Value { value: Some(value), .. } = &change {
        format!("{} = {}", setting.name, value.text())
    } else {
        setting.name.clone()
    };
    let allow = Consequence::effect(Effect::Configure(ConfigJob::Change(change)));
    let answers = [("Allow", allow), ("Cancel", Consequence::Close)];
    let question = Question::new("Let agents do more?", vec![text, description(setting)], answers);
    state.ask(state.active, question.marking_last());
}

fn open_file(state: &mut State, line: Option<usize>, cx: &mut Cx) {
    let path = state.setup.config_file.clone();
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    let line = line.and_then(|line| u32::try_from(line).ok());
    cx.effects.push(Effect::OpenFile { location: Location { path, line }, folder, editor: None });
}

fn binding_of<'a>(state: &'a State, id: &str) -> Option<&'a BindingRow> {
    let (context, action) = id.split_once(' ')?;
    state.setup.bindings.iter().find(|row| row.context == context && row.action == action)
}

/// Opens the ways to change the keys of an action.
pub fn pick_binding(app: &mut App, id: &str) {
    let Some(binding) = binding_of(&app.state, id).cloned() else { return };
    let row = |way: &str, label: &str, detail: &str| PickerRow {
        detail: detail.to_owned(),
        ..PickerRow::new(PickerValue::Id(way.to_owned()), label)
    };
    let mut ways = vec![
        row("replace", "Press new keys", "replaces the others"),
        row("add", "Press other keys", "adds them to the others"),
        row("edit", "Enter keys as text", "such as ctrl+x g"),
    ];
    if !binding.keys.is_empty() {
        ways.push(row("unbind", "Remove all keys", ""));
    }
    if binding.is_changed {
        ways.push(row("reset", "Restore the default keys", ""));
    }
    let title = format!("{}: {}", binding.title, binding.text);
    let mut picker = picker::new(PickerKind::BindingWay(id.to_owned()), title, ways);
    let keys = if binding.labels.is_empty() { "none".to_owned() } else { binding.labels.join(", ") };
    picker.note = Some(format!("Keys now: {keys}"));
    picker::push(app, picker);
}

/// Handles the choice of a way to change the keys of an action.
pub fn pick_way(app: &mut App, id: &str, way: &str, cx: &mut Cx) {
    let Some(binding) = binding_of(&app.state, id).cloned() else { return };
    match way {
        "replace" | "add" => app.modals.push(Modal::Capture(KeyCapture {
            keeps: if way == "add" { binding.keys.clone() } else { Vec::new() },
            binding,
            pressed: Vec::new(),
        })),
        "edit" => {
            let help = "Keys, separated by commas, such as: alt+m, ctrl+x g, f2".to_owned();
            let purpose = LinePurpose::Keys { context: binding.context, action: binding.action };
            push_line(app, binding.text, help, &binding.keys.join(", "), purpose);
        }
        "unbind" => cx.effects.push(change_keys(&binding, Some(Vec::new()))),
        _ => cx.effects.push(change_keys(&binding, None)),
    }
}

fn change_keys(binding: &BindingRow, keys: Option<Vec<String>>) -> Effect {
    let (context, action) = (binding.context, binding.action);
    Effect::Configure(ConfigJob::Change(SettingChange::Keys { context, action, keys }))
}

pub fn accept_keys(context: &'static str, action: &'static str, text: &str, cx: &mut Cx) {
    // The comma itself is a key, too.
    let keys = text.split(", ").map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned).collect();
    let change = SettingChange::Keys { context, action, keys: Some(keys) };
    cx.effects.push(Effect::Configure(ConfigJob::Change(change)));
}

/// Handles a key of the sequence that is being captured.
pub fn on_capturing(app: &mut App, key: String) {
    if let Some(Modal::Capture(capture)) = app.modals.last_mut() {
        capture.pressed.push(key);
    }
}

/// Handles captured keys. `taken`: the keys among them that have another meaning, and that meaning.
pub fn on_captured(app: &mut App, keys: String, label: &str, taken: Option<(String, String)>, cx: &mut Cx) {
    let Some(Modal::Capture(_)) = app.modals.last() else { return };
    let Some(Modal::Capture(KeyCapture { binding, mut keeps, .. })) = app.modals.pop() else { return };
    if keeps.contains(&keys) {
        notify(&mut app.state, format!("{label} is already bound to it."), cx);
        return;
    }
    keeps.push(keys);
    let Effect::Configure(job) = change_keys(&binding, Some(keeps)) else { return };
    let Some((old, taken)) = taken.filter(|(_, taken)| taken != binding.text) else {
        cx.effects.push(Effect::Configure(job));
        return;
    };
    let body = vec![format!("{old} is bound to: {taken}. {label} will be bound to: {}.", binding.text)];
    let answers = [("Rebind", Consequence::effect(Effect::Configure(job))), ("Cancel", Consequence::Close)];
    app.state.ask(app.state.active, Question::new("Rebind key?", body, answers));
}

/// Applies a configuration that was read again, and reports the outcome.
pub fn on_news(app: &mut App, news: ConfigNews, cx: &mut Cx) {
    let active = app.state.active;
    let ConfigNews { setup, changed, held, problems, change } = news;
    let has = |name: &str| changed.contains(&name);
    if let Some(new) = setup {
        let setup = &mut app.state.setup;
        if has("theme") {
            setup.theme.clone_from(&new.theme);
        }
        setup.themes = new.themes;
        setup.agents = new.agents;
        setup.mcp_servers = new.mcp_servers;
        setup.callbacks = new.callbacks;
        setup.policy = new.policy;
        setup.handover_bytes = new.handover_bytes;
        setup.palette = new.palette;
        setup.settings = new.settings;
        setup.bindings = new.bindings;
        if has("ui.mouse") {
            setup.mouse = new.mouse;
            app.mouse = new.mouse;
            cx.effects.push(Effect::CaptureMouse(new.mouse == MouseOwner::Parlor));
        }
        if setup.folds != new.folds {
            setup.folds = new.folds;
            for session in app.state.sessions.values_mut() {
                session.folds = new.folds;
            }
        }
        install::refresh_agents(app);
        let is_choosing =
            |modal: &Modal| matches!(modal, Modal::Picker(picker) if picker.kind == PickerKind::Theme);
        let themes = rows::themes(&app.state);
        if let Some(Modal::Picker(picker)) = app.modals.iter_mut().find(|modal| is_choosing(modal)) {
            picker::replace_rows(picker, &app.state.setup, themes);
        } else {
            // Also after a change of its file.
            cx.effects.push(Effect::SetTheme(app.state.setup.theme_in_use().to_owned()));
        }
    }
    for problem in problems {
        call::notice(
            &mut app.state,
            active,
            Severity::Warning,
            "The configuration has a problem.",
            Some(problem),
        );
    }
    match change {
        Some((change, Ok(()))) => say_changed(&mut app.state, &change, cx),
        Some((change, Err(why))) => report_failure(&mut app.state, &change, &why, cx),
        None if !changed.is_empty() => {
            let names = match changed.as_slice() {
                [.., _, _, _, _] => format!("{} settings changed", changed.len()),
                names => format!("{} changed", names.join(", ")),
            };
            let text = format!("{}: {names}", file_name(&app.state));
            notify(&mut app.state, text, cx);
        }
        None => {}
    }
    if !held.is_empty() {
        ask_for_held(&mut app.state, &held, cx.now);
    }
    refresh(app);
}

/// Updates the rows of open lists; the selection stays on its row.
fn refresh(app: &mut App) {
    let lists =
        [(PickerKind::Setting, setting_rows(&app.state)), (PickerKind::Binding, binding_rows(&app.state))];
    for (kind, rows) in lists {
        let open = app.modals.iter_mut().find_map(|modal| match modal {
            Modal::Picker(picker) if picker.kind == kind => Some(picker),
            _ => None,
        });
        let Some(open) = open else { continue };
        let marked = picker::marked_row(open).map(|row| row.value.clone());
        open.rows = rows;
        picker::refilter(open, &app.state.setup);
        let is_marked =
            |at: &usize| open.rows.get(*at).is_some_and(|row| Some(&row.value) == marked.as_ref());
        open.selected = open.matches.iter().position(is_marked).unwrap_or(0);
    }
}

fn file_name(state: &State) -> String {
    let name = state.setup.config_file.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn say_changed(state: &mut State, change: &SettingChange, cx: &mut Cx) {
    let file = file_name(state);
    let text = match change {
        SettingChange::Value { name, value } => {
            let setting = state.setup.settings.iter().find(|setting| setting.name == *name);
            match setting {
                Some(setting) if setting.is_overridden => {
                    format!("{name} was saved to {file}. The project overrides it from the next start on.")
                }
                _ if name == "theme" => {
                    format!("Theme: {}", value.as_ref().map_or(AUTO_THEME.to_owned(), SettingValue::text))
                }
                Some(setting) if setting.origin == "command line" => {
                    format!("{name} was saved to {file}. The command line overrides it in this run.")
                }
                Some(setting) => format!("{name} = {}, saved to {file}", setting.shown),
                None => format!("{name} was saved to {file}."),
            }
        }
        SettingChange::Keys { context, action, .. } => {
            let row = binding_of(state, &format!("{context} {action}"));
            let keys = row.map(|row| row.labels.join(", ")).filter(|keys| !keys.is_empty());
            let text = row.map_or(*action, |row| row.text);
            format!("{text}: {}, saved to {file}", keys.as_deref().unwrap_or("no key"))
        }
    };
    notify(state, text, cx);
}

fn report_failure(state: &mut State, change: &SettingChange, why: &str, cx: &mut Cx) {
    let detail = format!("{}: {why}", state.setup.config_file.display());
    if matches!(change, SettingChange::Value { name, .. } if name == "theme") {
        let title = "The theme was not saved and applies until you quit.";
        call::notice(state, state.active, Severity::Warning, title, Some(detail));
        return;
    }
    notify(state, format!("{} was not changed.", change.name()), cx);
    let title = format!("{} was not changed", change.name());
    state.ask(state.active, Question::new(title, vec![detail], [("Close", Consequence::Close)]));
}

/// Asks whether values of the changed file that let agents do more apply.
fn ask_for_held(state: &mut State, held: &[&'static str], now: Instant) {
    let file = file_name(state);
    let mut body = vec![format!("{file} was changed. These settings let agents do more:")];
    for name in held {
        let setting = state.setup.settings.iter().find(|setting| setting.name == *name);
        let widening = setting.and_then(|setting| setting.widening).unwrap_or_default();
        let about = setting.map(description).unwrap_or_default();
        body.push(format!("{name} = {widening}: {about}"));
    }
    body.push("Until you apply them, the former values stay.".to_owned());
    let apply = Consequence::effect(Effect::Configure(ConfigJob::Accept));
    let answers = [("Apply", apply), ("Keep the former values", Consequence::Close)];
    let question = Question::new("Apply changed permissions?", body, answers);
    state.ask(state.active, question.marking_last().asked_at(now));
}
