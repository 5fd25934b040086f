//! Selects and plays the scene for a prompt.
//!
//! A scene is a function over a [`Turn`]; it ends at the next step once the turn is cancelled.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::offers;
use super::turn::{Step, Stop, Turn};

mod job;
mod talk;
mod tour;
mod work;

#[derive(Debug)]
pub(super) enum Ending {
    Done,
    /// With a stop reason other than `end_turn`.
    Stopped(&'static str),
    /// With an error response: its message and data.
    Failed(String, Value),
}

/// Plays the scene of a prompt. Returns the result of `session/prompt`, or the message and data of its error.
pub(super) fn play(turn: &Turn, params: &Value) -> Result<Value, (String, Value)> {
    let prompt = Prompt::read(params);
    let before = turn.live.state().saved.counter;
    take_prompt(turn, &prompt);
    let reason = match scene(turn, &prompt) {
        Ok(Ending::Done) => "end_turn",
        Ok(Ending::Stopped(reason)) => reason,
        Ok(Ending::Failed(message, data)) => return Err((message, data)),
        Err(Stop) => "cancelled",
    };
    let steps = turn.live.state().saved.counter - before;
    let input = 300 + u64::try_from(prompt.text.len() / 4).unwrap_or_default();
    let output = steps * 180;
    // After a cancel no step runs, and the usage does not matter.
    let _ = turn.count_usage(input + output);
    Ok(json!({
        "stopReason": reason,
        "usage": {"totalTokens": input + output, "inputTokens": input, "outputTokens": output},
    }))
}

struct Prompt {
    text: String,
    blocks: Vec<Value>,
}

impl Prompt {
    fn read(params: &Value) -> Self {
        let blocks = params.get("prompt").and_then(Value::as_array).cloned().unwrap_or_default();
        let texts: Vec<&str> =
            blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
        Self { text: texts.join("\n").trim().to_owned(), blocks: blocks.clone() }
    }

    fn command(&self) -> Option<(&str, &str)> {
        let rest = self.text.strip_prefix('/')?;
        let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        Some((name, argument.trim()))
    }

    /// Descriptions of the blocks other than text.
    fn attachments(&self) -> Vec<String> {
        self.blocks
            .iter()
            .filter_map(|block| match block.get("type").and_then(Value::as_str)? {
                "image" => Some("an image".to_owned()),
                "audio" => Some("audio".to_owned()),
                "resource_link" => {
                    let name = block.get("name").and_then(Value::as_str).unwrap_or("something");
                    Some(format!("a link to `{name}`"))
                }
                "resource" => {
                    let uri = block.pointer("/resource/uri").and_then(Value::as_str).unwrap_or("somewhere");
                    Some(format!("the contents of `{uri}`"))
                }
                _ => None,
            })
            .collect()
    }
}

/// Records the prompt in the history, and titles the session after its first prompt.
fn take_prompt(turn: &Turn, prompt: &Prompt) {
    let message = turn.new_id("prompt");
    for block in &prompt.blocks {
        turn.record(&json!({"sessionUpdate": "user_message_chunk", "messageId": message, "content": block}));
    }
    let is_untitled = turn.live.state().saved.title.is_none();
    if is_untitled && !prompt.text.is_empty() {
        let line = prompt.text.lines().next().unwrap_or_default().trim_start_matches('/');
        let title: String = line.chars().take(60).collect();
        turn.agent.give_title(&turn.live, &title);
    }
    turn.save();
}

fn scene(turn: &Turn, prompt: &Prompt) -> Step<Ending> {
    let (name, argument) = prompt.command().unwrap_or_else(|| (guess(turn, &prompt.text), ""));
    match name {
        "tour" => tour::begin(turn)?,
        "next" => tour::next(turn)?,
        "fix" => job::fix(turn)?,
        "plan" => work::plan(turn)?,
        "edit" => work::edit(turn)?,
        "run" => work::run(turn)?,
        "team" => work::team(turn)?,
        "ask" => talk::ask(turn, argument)?,
        "long" => talk::long(turn, argument)?,
        "think" => talk::think(turn)?,
        "image" => talk::image(turn)?,
        "usage" => talk::usage(turn)?,
        "modes" => talk::modes(turn)?,
        "notice" | "notices" => talk::notice(turn)?,
        "compact" => talk::compact(turn)?,
        "title" => talk::title(turn, argument)?,
        "help" => help(turn)?,
        "fail" => return work::fail(turn, argument),
        "" => welcome(turn, prompt)?,
        unknown => {
            let text = format!(
                "Unknown command `/{unknown}`. `/help` lists all commands; `/tour` is a good start.\n"
            );
            turn.say(&text)?;
        }
    }
    Ok(Ending::Done)
}

/// The scene for a free text; `""` if none matches.
fn guess(turn: &Turn, text: &str) -> &'static str {
    let text = text.to_lowercase();
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_on_tour = turn.live.state().saved.tour > 0;
    if is_on_tour && words.len() <= 3 {
        let on = ["next", "go", "yes", "ok", "okay", "more", "continue", "weiter", "sure"];
        if words.iter().any(|word| on.contains(word)) {
            return "next";
        }
    }
    let scenes: &[(&str, &[&str])] = &[
        ("tour", &["tour", "start", "begin"]),
        ("help", &["help", "commands"]),
        ("plan", &["plan"]),
        ("fix", &["fix", "bug", "wrong", "broken"]),
        ("edit", &["edit", "change", "write"]),
        ("run", &["run", "command", "terminal", "shell"]),
        ("ask", &["ask", "question"]),
        ("long", &["long", "markdown", "table"]),
        ("think", &["think", "thought", "thoughts"]),
        ("image", &["image", "picture"]),
        ("usage", &["usage", "cost", "tokens", "context"]),
        ("modes", &["mode", "modes", "model", "models", "options"]),
        ("fail", &["fail", "error"]),
    ];
    scenes
        .iter()
        .find(|(_, names)| words.iter().any(|word| names.contains(word)))
        .map_or("", |(scene, _)| scene)
}

fn welcome(turn: &Turn, prompt: &Prompt) -> Step {
    let with = prompt.attachments();
    if !with.is_empty() {
        turn.say(&format!("Received with your prompt: {}. ", with.join(", ")))?;
    }
    turn.think("This prompt is not one of my commands. I should explain what I can do.")?;
    turn.say(
        "I am parlor's built-in demo agent. I follow a script: no account, no network, no real model. I use \
         the same protocol as real agents, so parlor works the same way with them.\n\n\
         - `/tour`: a guided tour in five steps\n\
         - `/fix`: a complete task, from plan to test run\n\
         - `/edit`, `/run` and `/ask`: permissions, terminals and questions\n\
         - `/help`: all commands\n\n\
         Type `/` to choose a command from a list.\n",
    )
}

fn help(turn: &Turn) -> Step {
    let mut text = String::from("| Command | Description |\n|---|---|\n");
    for (name, description, hint) in offers::COMMANDS {
        let hint = hint.map(|hint| format!(" *{hint}*")).unwrap_or_default();
        let _ = writeln!(text, "| `/{name}`{hint} | {description} |");
    }
    text.push_str("\nPlain text works too, for example \"show me a plan\" or \"run something\".\n");
    turn.say(&text)
}
