//! Decodes the settings of an agent: modes, models, config options, slash commands.
//!
//! The legacy `models` list is no longer part of the official types but still sent by many agents. ACP v1
//! session-config-options: an option of an unknown type is ignored; it is counted as lost.

use serde_json::Value;

use crate::model::{
    ConfigChoice, ConfigKind, ConfigOption, Mode, Model, Models, Modes, SessionId, SessionReply,
    SessionUpdate, SlashCommand,
};

use super::decoder::Decoder;
use super::value::{Object, first_text, list, object_with, take, take_list, take_text, text};

pub const CURRENT_MODE: &[&str] = &["currentModeId", "modeId", "current", "mode"];
pub const CURRENT_MODEL: &[&str] = &["currentModelId", "modelId", "current", "model"];
/// Keys of the state, of its list, of the id of an entry, and of the current id.
const MODE_KEYS: [&[&str]; 4] =
    [&["modes", "modeState"], &["availableModes", "modes"], &["id", "modeId"], CURRENT_MODE];
const MODEL_KEYS: [&[&str]; 4] =
    [&["models", "modelState"], &["availableModels", "models"], &["id", "modelId"], CURRENT_MODEL];

/// Decodes what the responses to new, load, resume and fork have in common. Version 2 sends slash commands with them.
pub fn decode_session(session: &SessionId, result: &mut Object, decoder: &mut Decoder) -> SessionReply {
    if let Some(items) = take(result, &["availableCommands"]) {
        let commands = decode_commands(list(items), decoder);
        decoder.push(session, SessionUpdate::Commands(commands));
    }

    let mode = |(id, name, description): Named| Mode { id: id.into(), name, description };
    let model = |(id, name, description): Named| Model { id: id.into(), name, description };
    let modes = decode_state(result, &MODE_KEYS, mode, decoder);
    let models = decode_state(result, &MODEL_KEYS, model, decoder);
    SessionReply {
        modes: modes.map(|(current, available)| Modes { current: current.into(), available }),
        models: models.map(|(current, available)| Models { current: current.into(), available }),
        options: decode_options(result, decoder).unwrap_or_default(),
        ..SessionReply::default()
    }
}

pub fn decode_options(object: &mut Object, decoder: &mut Decoder) -> Option<Vec<ConfigOption>> {
    let items = list(take(object, &["configOptions", "config_options"])?);
    let total = items.len();
    let options: Vec<_> = items.into_iter().filter_map(|item| decode_option(item, decoder)).collect();
    decoder.report_lost("configOptions", total - options.len(), total, false);
    Some(options)
}

fn decode_option(item: Value, decoder: &mut Decoder) -> Option<ConfigOption> {
    let Value::Object(mut option) = item else { return None };
    let id = first_text(&option, &["id", "configId", "config_id", "key"])?;
    let current = take(&mut option, &["currentValue", "current_value", "value", "current"])?;
    let kind = match first_text(&option, &["type"])?.as_str() {
        "select" => {
            let choices = take_list(&mut option, &["options", "choices", "values"]);
            ConfigKind::Select { current: text(&current)?, choices: decode_choices(choices, decoder) }
        }
        "boolean" => ConfigKind::Boolean { current: current.as_bool()? },
        _ => return None,
    };
    Some(ConfigOption {
        name: take_text(&mut option, &["name"]).unwrap_or_else(|| id.clone()),
        id,
        description: take_text(&mut option, &["description"]),
        category: option.get("category").and_then(Value::as_str).map(str::to_owned),
        kind,
    })
}

fn decode_choices(choices: Vec<Value>, decoder: &mut Decoder) -> Vec<ConfigChoice> {
    let mut flat: Vec<(Option<String>, Value)> = Vec::new();
    for item in choices {
        match item {
            Value::Object(mut group) if group.contains_key("options") => {
                let name = first_text(&group, &["name", "group", "groupId"]);
                let members = take_list(&mut group, &["options"]);
                flat.extend(members.into_iter().map(|member| (name.clone(), member)));
            }
            other => flat.push((None, other)),
        }
    }
    decoder.items(flat, "options", |(group, item)| {
        let (value, name, description) =
            decode_named(item, &["value", "id", "const"], &["name", "label", "title"])?;
        Some(ConfigChoice { value, name, description, group })
    })
}

/// Id, name and description.
type Named = (String, String, Option<String>);

/// Decodes an entry of a list; a string is used as id and name.
fn decode_named(item: Value, ids: &[&str], names: &[&str]) -> Option<Named> {
    let mut entry = object_with(item, "id")?;
    let id = first_text(&entry, ids)?;
    let name = take_text(&mut entry, names).unwrap_or_else(|| id.clone());
    Some((id, name, take_text(&mut entry, &["description"])))
}

/// Decodes the id of the current mode or model, by default the first, and all of them.
fn decode_state<T>(
    result: &mut Object,
    [states, lists, ids, current]: &[&[&str]; 4],
    entry: impl FnMut(Named) -> T,
    decoder: &mut Decoder,
) -> Option<(String, Vec<T>)> {
    let Value::Object(mut state) = take(result, states)? else { return None };
    let entries = list(take(&mut state, lists)?);
    let available =
        decoder.items(entries, lists.first()?, |item| decode_named(item, ids, &["name", "title", "label"]));
    let current = first_text(&state, current).or_else(|| Some(available.first()?.0.clone()))?;
    Some((current, available.into_iter().map(entry).collect()))
}

pub fn decode_commands(commands: Vec<Value>, decoder: &mut Decoder) -> Vec<SlashCommand> {
    decoder.items(commands, "availableCommands", |item| {
        let mut command = object_with(item, "name")?;
        let name = take_text(&mut command, &["name", "command"])?.trim_start_matches('/').to_owned();
        let hint = command.get("input").and_then(|input| text(input.get("hint")?));
        let description = take_text(&mut command, &["description"]).unwrap_or_default();
        Some(SlashCommand { name, description, hint })
    })
}
