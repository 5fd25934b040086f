//! Commands, modes, models and options of the demo agent.

use serde_json::{Value, json};

use super::session::Kept;

/// A slash command: name, description, hint for its argument.
pub(super) const COMMANDS: &[(&str, &str, Option<&str>)] = &[
    ("tour", "Take a guided tour in five steps", None),
    ("fix", "Fix a small bug in a scratch folder: plan, read, edit, run", None),
    ("plan", "Make a plan and follow it", None),
    ("edit", "Edit a file in a scratch folder, with permission", None),
    ("run", "Run a harmless command in a terminal", None),
    ("ask", "Ask questions in a form", Some("link: open a web page instead")),
    ("long", "Show Markdown: headings, a table, code", Some("number of lines")),
    ("think", "Think before answering", None),
    ("image", "Send an image, a link and a file", None),
    ("fail", "Show how failures look", Some("tool, refusal or tokens")),
    ("usage", "Update the context size and cost", None),
    ("modes", "Show modes, models and options", None),
    ("notice", "Send an info, a warning and an error notice", None),
    ("compact", "Compact the context", None),
    ("team", "Run a subagent", None),
    ("title", "Set the session title", Some("title")),
    ("help", "List all commands", None),
];

/// A mode: id, name, description.
const MODES: &[(&str, &str, &str)] = &[
    ("ask", "Ask first", "Asks before edits and commands"),
    ("auto", "Auto", "Edits and runs without asking"),
    ("plan", "Plan only", "Plans without making changes"),
];

/// A model: id, name, description, context size, price per 1000 tokens in US dollars. All are fictional.
const MODELS: &[(&str, &str, &str, u64, f64)] = &[
    ("chatty", "Chatty", "Friendly and detailed", 32_000, 0.002),
    ("terse", "Terse", "Short answers", 32_000, 0.001),
    ("careful", "Careful", "Large context, higher cost", 200_000, 0.02),
];

/// The output speed: id, name, milliseconds between chunks.
const SPEEDS: &[(&str, &str, u64)] =
    &[("calm", "Calm", 40), ("natural", "Natural", 16), ("brisk", "Brisk", 4)];

pub(super) fn is_mode(id: &str) -> bool {
    MODES.iter().any(|(mode, ..)| *mode == id)
}

pub(super) fn is_model(id: &str) -> bool {
    MODELS.iter().any(|(model, ..)| *model == id)
}

pub(super) fn is_speed(id: &str) -> bool {
    SPEEDS.iter().any(|(speed, ..)| *speed == id)
}

/// Context size in tokens, and price per 1000 tokens.
pub(super) fn model_size_and_price(id: &str) -> (u64, f64) {
    MODELS.iter().find(|(model, ..)| *model == id).map_or((32_000, 0.002), |model| (model.3, model.4))
}

/// Milliseconds between chunks; the natural speed is about 60 chunks per second.
pub(super) fn chunk_ms(speed: &str) -> u64 {
    SPEEDS.iter().find(|(id, ..)| *id == speed).map_or(16, |speed| speed.2)
}

pub(super) fn commands_update() -> Value {
    let commands: Vec<Value> = COMMANDS
        .iter()
        .map(|(name, description, hint)| match hint {
            Some(hint) => json!({"name": name, "description": description, "input": {"hint": hint}}),
            None => json!({"name": name, "description": description}),
        })
        .collect();
    json!({"sessionUpdate": "available_commands_update", "availableCommands": commands})
}

pub(super) fn modes(saved: &Kept) -> Value {
    let modes: Vec<Value> = MODES
        .iter()
        .map(|(id, name, description)| json!({"id": id, "name": name, "description": description}))
        .collect();
    json!({"currentModeId": saved.mode, "availableModes": modes})
}

pub(super) fn models(saved: &Kept) -> Value {
    let models: Vec<Value> = MODELS
        .iter()
        .map(|(id, name, description, ..)| json!({"modelId": id, "name": name, "description": description}))
        .collect();
    json!({"currentModelId": saved.model, "availableModels": models})
}

/// All options with their values; the boolean one only for a client that supports it.
pub(super) fn options(saved: &Kept, with_boolean: bool) -> Vec<Value> {
    let choice = |value: &str, name: &str, description: &str| json!({"value": value, "name": name, "description": description});
    let modes: Vec<Value> = MODES.iter().map(|(id, name, text)| choice(id, name, text)).collect();
    let among = |wanted: &[&str]| -> Vec<Value> {
        MODELS
            .iter()
            .filter(|(id, ..)| wanted.contains(id))
            .map(|(id, name, text, ..)| choice(id, name, text))
            .collect()
    };
    let speeds: Vec<Value> = SPEEDS.iter().map(|(id, name, _)| json!({"value": id, "name": name})).collect();
    let mut options = vec![
        json!({"id": "mode", "name": "Mode", "category": "mode", "type": "select",
            "description": "Actions allowed without asking", "currentValue": saved.mode, "options": modes}),
        json!({"id": "model", "name": "Model", "category": "model", "type": "select",
        "description": "Simulated models with different context size and cost", "currentValue": saved.model, "options": [
            {"group": "quick", "name": "Quick", "options": among(&["chatty", "terse"])},
            {"group": "slow", "name": "Slow", "options": among(&["careful"])},
        ]}),
        json!({"id": "speed", "name": "Speed", "category": "model_config", "type": "select",
            "description": "Speed of the answers", "currentValue": saved.speed, "options": speeds}),
    ];
    if with_boolean {
        options.push(json!({"id": "thoughts", "name": "Thoughts", "category": "thought_level",
            "type": "boolean", "description": "Show thoughts before answers", "currentValue": saved.has_thoughts}));
    }
    options
}
