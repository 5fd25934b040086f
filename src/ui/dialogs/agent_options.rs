//! The lists of what an agent offers to choose: modes, models, options and their values.

use super::notice::notify;
use crate::core::lifecycle::operations;
use crate::core::state::lookup::{mode_option, model_option};
use crate::core::{Cx, State};
use crate::model::{ConfigChoice, ConfigKind, ConfigOption, ConfigValue, Mode, ModeId, Model, ModelId};
use crate::ui::App;

use super::layer::Flow;
use super::picker::{List, Picker, PickerRow};

#[derive(Debug)]
pub struct Modes;

impl List for Modes {
    type Item = ModeId;
    const SHOWS_DETAIL: bool = true;

    fn pick(&mut self, id: ModeId, app: &mut App, cx: &mut Cx) -> Flow {
        let active = app.state.active;
        operations::set_mode(&mut app.state, active, id, cx);
        Flow::Close
    }
}

/// The models of an agent without config options.
#[derive(Debug)]
pub struct Models;

impl List for Models {
    type Item = ModelId;
    const SHOWS_DETAIL: bool = true;

    fn pick(&mut self, id: ModelId, app: &mut App, cx: &mut Cx) -> Flow {
        let active = app.state.active;
        operations::set_model(&mut app.state, active, id, cx);
        Flow::Close
    }
}

#[derive(Debug)]
pub struct Options;

impl List for Options {
    /// The id of the option.
    type Item = String;
    const SHOWS_DETAIL: bool = true;
    const SHOWS_VALUES: bool = true;

    /// Toggles a boolean option; for others, a list of the values opens above this one.
    fn pick(&mut self, id: String, app: &mut App, cx: &mut Cx) -> Flow {
        match option(&app.state, &id).map(|option| &option.kind) {
            Some(ConfigKind::Boolean { current }) => {
                let value = ConfigValue::Bool(!current);
                let active = app.state.active;
                operations::set_option(&mut app.state, active, id, value, cx);
                Flow::Close
            }
            Some(ConfigKind::Select { .. }) => {
                open_values(app, &id);
                Flow::Stay
            }
            None => {
                notify(&mut app.state, "The agent no longer offers this option.", cx);
                Flow::Close
            }
        }
    }
}

#[derive(Debug)]
pub struct OptionValues {
    /// The id of the option.
    pub option: String,
}

impl List for OptionValues {
    type Item = String;
    const SHOWS_DETAIL: bool = true;

    fn pick(&mut self, value: String, app: &mut App, cx: &mut Cx) -> Flow {
        app.layers.close::<Picker<Options>>();
        let value = ConfigValue::Text(value);
        let active = app.state.active;
        operations::set_option(&mut app.state, active, self.option.clone(), value, cx);
        Flow::Close
    }
}

/// Opens the modes. Config options take precedence over the older list. Source: ACP v1 session-config-options.
pub fn open_modes(app: &mut App) {
    let Some(session) = app.state.active_session() else { return };
    if let Some(id) = mode_option(session).map(|option| option.id.clone()) {
        open_values(app, &id);
        return;
    }
    let row =
        |mode: &Mode, is_current| (row(&mode.name, mode.description.as_deref(), is_current), mode.id.clone());
    let modes = session.modes.iter();
    let rows = modes
        .flat_map(|modes| modes.available.iter().map(|mode| row(mode, mode.id == modes.current)))
        .collect();
    app.layers.open(Picker::new(Modes, "Modes", rows));
}

/// Opens the models, of the config option for them if there is one.
pub fn open_models(app: &mut App) {
    let Some(session) = app.state.active_session() else { return };
    if let Some(id) = model_option(session).map(|option| option.id.clone()) {
        open_values(app, &id);
        return;
    }
    let row = |model: &Model, is_current| {
        (row(&model.name, model.description.as_deref(), is_current), model.id.clone())
    };
    let models = session.models.iter();
    let rows = models
        .flat_map(|models| models.available.iter().map(|model| row(model, model.id == models.current)))
        .collect();
    app.layers.open(Picker::new(Models, "Models", rows));
}

pub fn open_options(app: &mut App) {
    let options = app.state.active_session().map(|session| session.options.as_slice()).unwrap_or_default();
    let row = |option: &ConfigOption| {
        let row = row(&option.name, option.description.as_deref(), false);
        (PickerRow { right: value_of(option), ..row }, option.id.clone())
    };
    let list = Picker::new(Options, "Options", options.iter().map(row).collect());
    app.layers.open(list);
}

fn open_values(app: &mut App, id: &str) {
    let Some(option) = option(&app.state, id) else { return };
    let rows = match &option.kind {
        ConfigKind::Boolean { .. } => Vec::new(),
        ConfigKind::Select { current, choices } => {
            let row = |choice: &ConfigChoice| {
                let row = row(&choice.name, choice.description.as_deref(), choice.value == *current);
                (PickerRow { group: choice.group.clone(), ..row }, choice.value.clone())
            };
            choices.iter().map(row).collect()
        }
    };
    let list = Picker::new(OptionValues { option: id.to_owned() }, option.name.clone(), rows);
    app.layers.open(list);
}

fn option<'a>(state: &'a State, id: &str) -> Option<&'a ConfigOption> {
    state.active_session()?.options.iter().find(|option| option.id == id)
}

fn row(label: &str, detail: Option<&str>, is_current: bool) -> PickerRow {
    PickerRow { detail: detail.unwrap_or_default().to_owned(), is_current, ..PickerRow::new(label) }
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
