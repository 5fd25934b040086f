//! Decodes the settings of an agent: modes, models, config options, slash commands.
//!
//! The legacy `models` list is decoded manually, because it is no longer part of the official types but still sent
//! by many agents. ACP v1 session-config-options: an option of an unknown type is ignored; it is counted as lost.

use agent_client_protocol_schema::v1 as schema;
use serde_json::{Value, json};

use crate::model::{
    AgentEvent, ConfigChoice, ConfigKind, ConfigOption, Mode, ModeId, Model, ModelId, Models, Modes,
    SessionReply, SlashCommand,
};

use super::value::{
    Object, fill, first, first_text, list, rename, report_lost, take, take_text, typed, typed_items,
};

const CURRENT_MODE: &[&str] = &["currentModeId", "current_mode_id", "modeId", "mode_id", "current", "mode"];
const CURRENT_MODEL: &[&str] =
    &["currentModelId", "current_model_id", "modelId", "model_id", "current", "model"];
const OPTIONS: &[&str] = &["configOptions", "config_options"];

/// Decodes the common fields of the responses to new, load, resume and fork.
pub(super) fn decode_session(result: &mut Object, out: &mut Vec<AgentEvent>) -> SessionReply {
    let mut reply = SessionReply::default();
    if let Some(reported) = take(result, &["modes", "modeState", "mode_state"]) {
        reply.modes = decode_modes(reported, out);
    }
    if let Some(reported) = take(result, &["models", "modelState", "model_state"]) {
        reply.models = decode_models(reported, out);
    }
    reply.options = decode_options(result, out).unwrap_or_default();
    reply
}

/// All config options of a message; `None`: the message has no list.
pub(super) fn decode_options(object: &mut Object, out: &mut Vec<AgentEvent>) -> Option<Vec<ConfigOption>> {
    let items = list(take(object, OPTIONS)?);
    let total = items.len();
    let options: Vec<ConfigOption> = items.into_iter().filter_map(|item| decode_option(item, out)).collect();
    report_lost("configOptions", total - options.len(), total, false, out);
    Some(options)
}

fn decode_option(item: Value, out: &mut Vec<AgentEvent>) -> Option<ConfigOption> {
    let Value::Object(mut option) = item else { return None };
    rename(&mut option, "id", &["configId", "config_id", "key"]);
    rename(&mut option, "currentValue", &["current_value", "value", "current"]);
    let id = first_text(&option, &["id"])?;
    fill(&mut option, "name", || id.into());
    if option.get("type").is_none_or(Value::is_null) {
        let guess = if option.contains_key("options") { "select" } else { "boolean" };
        option.insert("type".to_owned(), guess.into());
    }
    let is_boolean = option.get("type").and_then(Value::as_str) == Some("boolean");
    if is_boolean && let Some(word) = option.get("currentValue").and_then(Value::as_str) {
        let is_on = matches!(word, "true" | "on" | "yes" | "1");
        option.insert("currentValue".to_owned(), is_on.into());
    }
    // Choices are decoded individually: the official untagged list fails as a whole.
    let choices = take(&mut option, &["options", "choices", "values"]).map(list).unwrap_or_default();
    if !is_boolean {
        option.insert("options".to_owned(), json!([]));
        if let Some(current) = first_text(&option, &["currentValue"]) {
            option.insert("currentValue".to_owned(), current.into());
        }
    }
    let official: schema::SessionConfigOption = typed(Value::Object(option)).ok()?;
    let kind = match official.kind {
        schema::SessionConfigKind::Select(select) => ConfigKind::Select {
            current: select.current_value.to_string(),
            choices: decode_choices(choices, out),
        },
        schema::SessionConfigKind::Boolean(boolean) => ConfigKind::Boolean { current: boolean.current_value },
        _ => return None,
    };
    Some(ConfigOption {
        id: official.id.to_string(),
        name: official.name,
        description: official.description,
        category: official.category.and_then(|category| match serde_json::to_value(category) {
            Ok(Value::String(word)) => Some(word),
            _ => None,
        }),
        kind,
    })
}

/// Decodes choices: plain, in groups, or mixed.
fn decode_choices(items: Vec<Value>, out: &mut Vec<AgentEvent>) -> Vec<ConfigChoice> {
    let mut flat: Vec<(Option<String>, Value)> = Vec::new();
    for item in items {
        match item {
            Value::Object(mut group) if group.contains_key("options") => {
                let name = first_text(&group, &["name", "group", "groupId"]);
                let members = take(&mut group, &["options"]).map(list).unwrap_or_default();
                flat.extend(members.into_iter().map(|member| (name.clone(), member)));
            }
            other => flat.push((None, other)),
        }
    }
    let total = flat.len();
    let choices: Vec<ConfigChoice> =
        flat.into_iter().filter_map(|(group, item)| decode_choice(group, item)).collect();
    report_lost("options", total - choices.len(), total, false, out);
    choices
}

fn decode_choice(group: Option<String>, item: Value) -> Option<ConfigChoice> {
    let item = match item {
        Value::Object(mut choice) => {
            rename(&mut choice, "value", &["id", "const"]);
            rename(&mut choice, "name", &["label", "title"]);
            let value = first_text(&choice, &["value"])?;
            choice.insert("value".to_owned(), value.clone().into());
            fill(&mut choice, "name", || value.into());
            Value::Object(choice)
        }
        Value::String(value) => json!({"value": value, "name": value}),
        other => other,
    };
    let choice: schema::SessionConfigSelectOption = typed(item).ok()?;
    Some(ConfigChoice {
        value: choice.value.to_string(),
        name: choice.name,
        description: choice.description,
        group,
    })
}

fn decode_modes(modes: Value, out: &mut Vec<AgentEvent>) -> Option<Modes> {
    let Value::Object(mut modes) = modes else { return None };
    let items = take(&mut modes, &["availableModes", "available_modes", "available", "modes"]).map(list)?;
    let available: Vec<Mode> = typed_items::<schema::SessionMode>(items, "availableModes", out, |item| {
        shape_named(item, &["modeId", "mode_id"])
    })
    .into_iter()
    .map(|mode| Mode { id: ModeId(mode.id.0), name: mode.name, description: mode.description })
    .collect();
    let current = current_mode(&modes).or_else(|| available.first().map(|mode| mode.id.clone()))?;
    Some(Modes { current, available })
}

fn decode_models(models: Value, out: &mut Vec<AgentEvent>) -> Option<Models> {
    let (mut models, items) = match models {
        Value::Array(items) => (Object::new(), items),
        Value::Object(mut models) => {
            let items = take(&mut models, &["availableModels", "available_models", "available", "models"]);
            (models, items.map(list)?)
        }
        _ => return None,
    };
    let total = items.len();
    let available: Vec<Model> = items
        .into_iter()
        .filter_map(|item| match shape_named(item, &["modelId", "model_id"]) {
            Value::Object(mut model) => Some(Model {
                id: ModelId::from(take_text(&mut model, &["id"])?),
                name: take_text(&mut model, &["name"])?,
                description: take_text(&mut model, &["description"]),
            }),
            _ => None,
        })
        .collect();
    report_lost("availableModels", total - available.len(), total, false, out);
    let current = take_text(&mut models, CURRENT_MODEL)
        .map(ModelId::from)
        .or_else(|| available.first().map(|model| model.id.clone()))?;
    Some(Models { current, available })
}

/// An entry with `id` and `name`; a string is used for both.
fn shape_named(item: Value, ids: &[&str]) -> Value {
    match item {
        Value::Object(mut entry) => {
            rename(&mut entry, "id", ids);
            rename(&mut entry, "name", &["title", "label"]);
            if let Some(id) = first_text(&entry, &["id"]) {
                fill(&mut entry, "name", || id.into());
            }
            Value::Object(entry)
        }
        Value::String(id) => json!({"id": id, "name": id}),
        other => other,
    }
}

pub(super) fn current_mode(object: &Object) -> Option<ModeId> {
    first_text(object, CURRENT_MODE).map(ModeId::from)
}

pub(super) fn current_model(object: &Object) -> Option<ModelId> {
    first_text(object, CURRENT_MODEL).map(ModelId::from)
}

/// All slash commands, without their slash.
pub(in crate::acp) fn decode_commands(items: Vec<Value>, out: &mut Vec<AgentEvent>) -> Vec<SlashCommand> {
    typed_items::<schema::AvailableCommand>(items, "availableCommands", out, shape_command)
        .into_iter()
        .map(|command| SlashCommand {
            name: command.name,
            description: command.description,
            hint: match command.input {
                Some(schema::AvailableCommandInput::Unstructured(input)) => Some(input.hint),
                _ => None,
            },
        })
        .collect()
}

fn shape_command(item: Value) -> Value {
    let mut command = match item {
        Value::Object(command) => command,
        Value::String(name) => Object::from_iter([("name".to_owned(), name.into())]),
        other => return other,
    };
    rename(&mut command, "name", &["command"]);
    if let Some(name) = command.get("name").and_then(Value::as_str) {
        let name = name.trim_start_matches('/').to_owned();
        command.insert("name".to_owned(), name.into());
    }
    fill(&mut command, "description", || "".into());
    let hint = match first(&command, &["input"]) {
        Some(Value::String(hint)) => Some(hint.clone()),
        Some(_) => None,
        None => first_text(&command, &["hint", "argumentHint"]),
    };
    if let Some(hint) = hint {
        command.insert("input".to_owned(), json!({ "hint": hint }));
    }
    Value::Object(command)
}
