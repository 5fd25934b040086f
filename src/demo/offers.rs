//! What the demo agent offers: commands, modes, models and options.

use serde_json::{Value, json};

use super::session::Kept;

/// A slash command: name, what it does, hint for its argument.
pub(super) const COMMANDS: &[(&str, &str, Option<&str>)] = &[
    ("tour", "A short walk through everything, step by step", None),
    ("fix", "Fix a small bug in a scratch folder: plan, read, edit, run", None),
    ("plan", "Make a plan and work it off", None),
    ("edit", "Change a file in a scratch folder, after asking you", None),
    ("run", "Run a harmless command in a terminal", None),
    ("ask", "Ask you something", Some("link, for a page to open")),
    ("long", "A long answer with headings, a table and code", Some("number of lines")),
    ("think", "Think aloud before the answer", None),
    ("image", "Send a small picture and a link", None),
    ("fail", "Fail, as agents do", Some("tool, refusal or tokens")),
    ("usage", "Show context and cost move", None),
    ("modes", "Explain modes, models and options", None),
    ("notice", "Send notices", None),
    ("compact", "Compact the context", None),
    ("team", "Work with a helper of its own", None),
    ("title", "Give this session a title", Some("the title")),
    ("help", "All commands, and those for testing", None),
    ("stream", "For testing: chunks as fast as they go", Some("how many")),
    ("flood", "For testing: updates until you cancel", None),
    ("hang", "For testing: no answer, no cancel", None),
    ("crash", "For testing: end with code 3", None),
    ("garbage", "For testing: noise on the wire", None),
];

/// A mode: id, name, what it means.
const MODES: &[(&str, &str, &str)] = &[
    ("ask", "Ask first", "Asks before it edits or runs anything"),
    ("auto", "Go ahead", "Edits and runs without asking"),
    ("plan", "Plan only", "Changes nothing, only says what it would do"),
];

/// A model: id, name, what it is, its context, its price per 1000 tokens in US dollars. None of them exists.
const MODELS: &[(&str, &str, &str, u64, f64)] = &[
    ("chatty", "Chatty", "Friendly, and a little long", 32_000, 0.002),
    ("terse", "Terse", "Says the same in fewer words", 32_000, 0.001),
    ("careful", "Careful", "Thinks twice, costs more", 200_000, 0.02),
];

/// How it talks: id, name, milliseconds between chunks.
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

/// Size of the context in tokens, and the price per 1000 tokens.
pub(super) fn model_size_and_price(id: &str) -> (u64, f64) {
    MODELS.iter().find(|(model, ..)| *model == id).map_or((32_000, 0.002), |model| (model.3, model.4))
}

/// Milliseconds between chunks: the natural speed is about 60 chunks a second.
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

pub(super) fn modes(kept: &Kept) -> Value {
    let modes: Vec<Value> = MODES
        .iter()
        .map(|(id, name, description)| json!({"id": id, "name": name, "description": description}))
        .collect();
    json!({"currentModeId": kept.mode, "availableModes": modes})
}

pub(super) fn models(kept: &Kept) -> Value {
    let models: Vec<Value> = MODELS
        .iter()
        .map(|(id, name, description, ..)| json!({"modelId": id, "name": name, "description": description}))
        .collect();
    json!({"currentModelId": kept.model, "availableModels": models})
}

/// All options with their values. A boolean one only for a client that knows it.
pub(super) fn options(kept: &Kept, with_boolean: bool) -> Vec<Value> {
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
            "description": "What it may do without asking", "currentValue": kept.mode, "options": modes}),
        json!({"id": "model", "name": "Model", "category": "model", "type": "select",
        "description": "Who talks. None of them is real", "currentValue": kept.model, "options": [
            {"group": "quick", "name": "Quick", "options": among(&["chatty", "terse"])},
            {"group": "slow", "name": "Slow", "options": among(&["careful"])},
        ]}),
        json!({"id": "speed", "name": "Speed", "category": "model_config", "type": "select",
            "description": "How fast it talks", "currentValue": kept.speed, "options": speeds}),
    ];
    if with_boolean {
        options.push(json!({"id": "thoughts", "name": "Thoughts", "category": "thought_level",
            "type": "boolean", "description": "Whether it thinks aloud", "currentValue": kept.has_thoughts}));
    }
    options
}
