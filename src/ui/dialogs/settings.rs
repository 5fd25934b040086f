//! The settings screen: the list of settings, the list of key bindings, and the dialogs that change them.
//!
//! A change is written to the configuration file, which is then read again like after a change by an editor: its values
//! apply in [`on_news`]. A value that lets agents do more is confirmed first.

use std::path::PathBuf;
use std::time::Instant;

use super::notice::notify;
use crate::config::settings::{BUDGET, RULES, SANDBOX_RULES};
use crate::core::lifecycle::call;
use crate::core::{AUTO_THEME, ConfigNews, Consequence, Cx, Effect, MouseOwner, Question, State, UiRequest};
use crate::model::{
    Action, Applies, BindingRow, ConfigJob, Location, SettingChange, SettingKind, SettingRow, SettingValue,
    Severity,
};
use crate::ui::App;

use super::key_capture::{KeyCapture, change_keys};
use super::layer::Flow;
use super::line_dialog::{LineDialog, Purpose};
use super::picker::{List, Picker, PickerRow};
use super::{agents, themes};

/// The row of a word list that removes the setting.
const DEFAULT: &str = "default";

#[derive(Debug)]
pub struct Settings;

impl List for Settings {
    /// The name of the setting.
    type Item = String;

    fn pick(&mut self, name: String, app: &mut App, cx: &mut Cx) -> Flow {
        pick(app, &name, cx);
        Flow::Stay
    }

    fn verb(&self, _item: Option<&String>) -> &'static str {
        "change"
    }

    fn about(&self, state: &State, item: Option<&String>) -> Option<String> {
        let setting = item.and_then(|name| setting_named(state, name));
        Some(setting.map(description).unwrap_or_default())
    }
}

#[derive(Debug)]
pub struct SettingValues {
    /// The name of the setting.
    pub setting: String,
}

impl List for SettingValues {
    /// `None` removes the setting from the file.
    type Item = Option<&'static str>;

    fn pick(&mut self, word: Option<&'static str>, app: &mut App, cx: &mut Cx) -> Flow {
        let Some(setting) = setting_named(&app.state, &self.setting).cloned() else { return Flow::Close };
        let value = word.map(|word| match word.parse::<u64>() {
            Ok(number) => SettingValue::Number(number),
            Err(_) => SettingValue::Text(word.to_owned()),
        });
        change_value(&mut app.state, &setting, value, cx);
        Flow::Close
    }
}

/// An action in a context of the keymap.
type BindingId = (&'static str, &'static str);

/// All actions with their keys.
#[derive(Debug)]
pub struct Bindings;

impl List for Bindings {
    type Item = BindingId;

    fn pick(&mut self, id: BindingId, app: &mut App, _cx: &mut Cx) -> Flow {
        open_changes(app, id);
        Flow::Stay
    }

    fn verb(&self, _item: Option<&BindingId>) -> &'static str {
        "change"
    }
}

/// The ways to change the keys of an action.
#[derive(Debug)]
pub struct BindingChanges {
    pub binding: BindingId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindingChange {
    Replace,
    Add,
    Edit,
    Unbind,
    Reset,
}

impl List for BindingChanges {
    type Item = BindingChange;

    fn pick(&mut self, change: BindingChange, app: &mut App, cx: &mut Cx) -> Flow {
        let Some(binding) = binding_of(&app.state, self.binding).cloned() else { return Flow::Close };
        match change {
            BindingChange::Replace | BindingChange::Add => app.layers.push(KeyCapture {
                keeps: if change == BindingChange::Add { binding.keys.clone() } else { Vec::new() },
                binding,
                pressed: Vec::new(),
            }),
            BindingChange::Edit => {
                let help = "Keys, separated by commas, such as: alt+m, ctrl+x g, f2".to_owned();
                let keys = KeysText { context: binding.context, action: binding.action };
                let text = binding.keys.join(", ");
                app.layers.push(LineDialog::new(binding.text, help, &text, keys));
            }
            BindingChange::Unbind => cx.effects.push(change_keys(&binding, Some(Vec::new()))),
            BindingChange::Reset => cx.effects.push(change_keys(&binding, None)),
        }
        Flow::Close
    }
}

/// The value of a setting, by its name.
#[derive(Debug)]
struct SettingText(String);

impl Purpose for SettingText {
    fn verb(&self) -> &'static str {
        "save"
    }

    fn accept(&self, text: &str, app: &mut App, cx: &mut Cx) -> Result<(), String> {
        let setting = setting_named(&app.state, &self.0).cloned();
        let setting = setting.ok_or_else(|| format!("unknown setting `{}`", self.0))?;
        let value = match setting.kind {
            _ if text.is_empty() => None,
            SettingKind::Number(min) => {
                let number = text.parse::<u64>().ok().filter(|number| *number >= min);
                let number = number.ok_or_else(|| format!("Enter an integer of at least {min}."))?;
                Some(SettingValue::Number(number))
            }
            _ => Some(SettingValue::Text(text.to_owned())),
        };
        change_value(&mut app.state, &setting, value, cx);
        Ok(())
    }
}

/// The keys of an action, as in the configuration.
#[derive(Debug)]
struct KeysText {
    context: &'static str,
    action: &'static str,
}

impl Purpose for KeysText {
    fn verb(&self) -> &'static str {
        "save"
    }

    fn accept(&self, text: &str, _app: &mut App, cx: &mut Cx) -> Result<(), String> {
        // The comma itself is a key, too.
        let keys = text.split(", ").map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned);
        let (context, action) = (self.context, self.action);
        let change = SettingChange::Keys { context, action, keys: Some(keys.collect()) };
        cx.effects.push(Effect::Configure(ConfigJob::Change(change)));
        Ok(())
    }
}

pub fn open(app: &mut App) {
    let mut list = Picker::new(Settings, "Settings", setting_rows(&app.state));
    list.view.selected = 0;
    app.layers.open(list);
}

pub fn open_bindings(app: &mut App) {
    let mut list = Picker::new(Bindings, "Key bindings", binding_rows(&app.state));
    list.view.selected = 0;
    app.layers.open(list);
}

fn setting_rows(state: &State) -> Vec<(PickerRow, String)> {
    let row = |setting: &SettingRow| {
        let row = PickerRow {
            detail: setting.shown.clone(),
            right: if setting.is_overridden {
                format!("{}, until you quit", setting.origin)
            } else {
                setting.origin.clone()
            },
            group: Some(setting.group.to_owned()),
            is_current: !setting.is_default,
            synonyms: setting.about.clone(),
            ..PickerRow::new(setting.name.as_str())
        };
        (row, setting.name.clone())
    };
    state.setup.settings.iter().map(row).collect()
}

fn binding_rows(state: &State) -> Vec<(PickerRow, BindingId)> {
    let row = |binding: &BindingRow| {
        let row = PickerRow {
            detail: binding.labels.join(", "),
            right: if binding.is_changed { "changed".to_owned() } else { String::new() },
            group: Some(binding.title.to_owned()),
            is_current: binding.is_changed,
            synonyms: format!("{} {}", binding.context, binding.action),
            ..PickerRow::new(binding.text)
        };
        (row, (binding.context, binding.action))
    };
    state.setup.bindings.iter().map(row).collect()
}

fn setting_named<'a>(state: &'a State, name: &str) -> Option<&'a SettingRow> {
    state.setup.settings.iter().find(|setting| setting.name == name)
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

fn pick(app: &mut App, name: &str, cx: &mut Cx) {
    let Some(setting) = setting_named(&app.state, name).cloned() else { return };
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
        SettingKind::Theme => cx.requests.push(UiRequest::Act(Action::OpenThemes)),
        SettingKind::Keys => open_bindings(app),
        SettingKind::Number(_) | SettingKind::Text => {
            let value = setting.value.as_ref().map(SettingValue::text).unwrap_or_default();
            let help = format!("{} Leave it empty to restore the default.", description(&setting));
            let name = setting.name.as_str();
            app.layers.push(LineDialog::new(name, help, &value, SettingText(name.to_owned())));
        }
        SettingKind::File => open_file(&mut app.state, setting.line, cx),
    }
}

fn open_choices(app: &mut App, setting: &SettingRow, choices: &[&'static str]) {
    let current = setting.value.as_ref().map(SettingValue::text);
    let row = |word: &&'static str| {
        let is_current = current.as_deref() == Some(*word);
        (PickerRow { is_current, ..PickerRow::new(*word) }, Some(*word))
    };
    let mut rows: Vec<_> = choices.iter().map(row).collect();
    if !choices.contains(&DEFAULT) {
        let detail = "remove the setting from the file".to_owned();
        let is_current = current.as_deref() == Some(DEFAULT);
        rows.push((PickerRow { detail, is_current, ..PickerRow::new(DEFAULT) }, None));
    }
    let list = Picker::new(SettingValues { setting: setting.name.clone() }, setting.name.clone(), rows);
    app.layers.open(list.noting(description(setting)));
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

fn binding_of(state: &State, (context, action): BindingId) -> Option<&BindingRow> {
    state.setup.bindings.iter().find(|row| row.context == context && row.action == action)
}

/// Opens the ways to change the keys of an action.
fn open_changes(app: &mut App, id: BindingId) {
    let Some(binding) = binding_of(&app.state, id).cloned() else { return };
    let row = |change, label: &str, detail: &str| {
        (PickerRow { detail: detail.to_owned(), ..PickerRow::new(label) }, change)
    };
    let mut rows = vec![
        row(BindingChange::Replace, "Press new keys", "replaces the others"),
        row(BindingChange::Add, "Press other keys", "adds them to the others"),
        row(BindingChange::Edit, "Enter keys as text", "such as ctrl+x g"),
    ];
    if !binding.keys.is_empty() {
        rows.push(row(BindingChange::Unbind, "Remove all keys", ""));
    }
    if binding.is_changed {
        rows.push(row(BindingChange::Reset, "Restore the default keys", ""));
    }
    let title = format!("{}: {}", binding.title, binding.text);
    let keys = if binding.labels.is_empty() { "none".to_owned() } else { binding.labels.join(", ") };
    let list = Picker::new(BindingChanges { binding: id }, title, rows);
    app.layers.open(list.noting(format!("Keys now: {keys}")));
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
        setup.sandbox = new.sandbox;
        setup.undo = new.undo;
        setup.rules = new.rules;
        setup.budget = new.budget;
        setup.handover_bytes = new.handover_bytes;
        setup.palette = new.palette;
        setup.settings = new.settings;
        setup.bindings = new.bindings;
        if has("ui.mouse") {
            setup.mouse = new.mouse;
            app.mouse = new.mouse;
            cx.effects.push(Effect::CaptureMouse(new.mouse == MouseOwner::Parlor));
        }
        setup.folds = new.folds;
        agents::refresh(app);
        themes::on_config(app, cx);
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
    let (settings, bindings) = (setting_rows(&app.state), binding_rows(&app.state));
    if let Some(list) = app.layers.find_mut::<Picker<Settings>>() {
        list.set_rows(settings);
    }
    if let Some(list) = app.layers.find_mut::<Picker<Bindings>>() {
        list.set_rows(bindings);
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
            let row = binding_of(state, (context, action));
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
        let what = match *name {
            RULES => Some("the rules allow more, or deny or ask less (see `parlor policy list`)"),
            BUDGET => Some("limits were removed or changed"),
            SANDBOX_RULES => Some("agents that are started later can read, write or connect to more"),
            _ => None,
        };
        if let Some(what) = what {
            body.push(format!("{name}: {what}"));
            continue;
        }
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
