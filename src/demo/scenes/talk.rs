//! Scenes in which the agent talks: questions, long answers, pictures, facts about the session.

use serde_json::{Value, json};

use super::super::picture::evening;
use super::super::turn::{Step, Turn};

const ESSAY: &str = "# On tea

A short piece about nothing much, so that you can look at *how* text is shown.

## What you need

1. Water, **just off the boil**
2. Leaves
   - black, for the morning
   - green, for the afternoon
3. Time: ~~one minute~~ three

> Tea is a work of art and needs a master hand to bring out its noblest qualities, wrote someone who had
> plenty of both.

## How long

| leaf | water | time | taste |
|---|---:|---:|---|
| green | 75 °C | 2 min | grass after rain |
| oolong | 90 °C | 3 min | warm toast, a little honey, and something nobody can name |
| black | 98 °C | 4 min | the morning itself |
| 白茶 | 80 °C | 5 min | almost nothing, very good 🍵 |

## In code

```rust
/// How long to wait for a leaf, in minutes.
fn minutes(leaf: &str) -> Option<u32> {
    match leaf {
        \"green\" => Some(2),
        \"oolong\" => Some(3),
        \"black\" => Some(4),
        _ => None, // ask someone who knows
    }
}
```

```sh
kettle --on && sleep 180 && pour   # do not run this
```

A word in `code`, a [link](https://agentclientprotocol.com), and a line that is long enough to wrap on any \
screen, because sooner or later one comes, and it should break between words and not in the middle of one.

---

That is all there is to say about tea.
";

/// Asks the user: a form, a page, or a permission request as the last resort.
pub(super) fn ask(turn: &Turn, how: &str) -> Step {
    let client = turn.client();
    if how == "link" && client.has_urls {
        return ask_link(turn);
    }
    if !client.has_forms {
        return ask_by_permission(turn);
    }
    let answer = turn.request(
        "elicitation/create",
        json!({
            "mode": "form", "message": "A few questions about tea. Nothing of it leaves this machine.",
            "requestedSchema": {"type": "object", "title": "Tea", "required": ["kind"], "properties": {
                "kind": {"type": "string", "title": "Which kind", "default": "green", "oneOf": [
                    {"const": "green", "title": "Green"}, {"const": "black", "title": "Black"},
                    {"const": "none", "title": "Coffee, please"},
                ]},
                "cups": {"type": "integer", "title": "How many cups", "minimum": 1, "maximum": 9, "default": 2},
                "extras": {"type": "array", "title": "With", "items": {
                    "type": "string", "enum": ["milk", "sugar", "lemon"],
                }},
                "name": {"type": "string", "title": "For whom", "maxLength": 40,
                    "description": "A name for the cup, if you like"},
                "hurry": {"type": "boolean", "title": "In a hurry", "default": false},
            }},
        }),
    )?;
    match answer {
        Err(why) => turn.say(&format!("The question could not be asked: {why}\n")),
        Ok(answer) => match answer.get("action").and_then(Value::as_str) {
            Some("accept") => turn.say(&serve(answer.get("content").unwrap_or(&Value::Null))),
            Some("decline") => turn.say("You would rather not say. That is an answer too.\n"),
            _ => turn.say("You closed the question. I go on without an answer.\n"),
        },
    }
}

/// The answer to a filled-in form.
fn serve(form: &Value) -> String {
    let kind = match form.get("kind").and_then(Value::as_str) {
        Some("none") => "coffee",
        Some("black") => "black tea",
        _ => "green tea",
    };
    let cups = form.get("cups").and_then(Value::as_i64).unwrap_or(1);
    let cups = if cups == 1 { "One cup".to_owned() } else { format!("{cups} cups") };
    let extras: Vec<&str> = form
        .get("extras")
        .and_then(Value::as_array)
        .map(|extras| extras.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let with = if extras.is_empty() { String::new() } else { format!(" with {}", extras.join(" and ")) };
    let name = form.get("name").and_then(Value::as_str).map(str::trim).filter(|name| !name.is_empty());
    let name = name.map(|name| format!(" for {name}")).unwrap_or_default();
    let hurry = form.get("hurry").and_then(Value::as_bool).unwrap_or(false);
    let end = if hurry { "Careful, it is hot." } else { "Take your time." };
    format!("{cups} of {kind}{with}{name}. {end}\n")
}

fn ask_link(turn: &Turn) -> Step {
    let id = turn.new_id("page");
    let answer = turn.request(
        "elicitation/create",
        json!({
            "mode": "url", "elicitationId": id, "url": "https://agentclientprotocol.com/",
            "message": "The protocol has a home page. Shall it be opened? Nothing is sent there.",
        }),
    )?;
    match answer.ok().as_ref().and_then(|answer| answer.get("action")).and_then(Value::as_str) {
        Some("accept") => {
            turn.pause(800)?;
            turn.agent.peer.notify("elicitation/complete", &json!({"elicitationId": id}));
            turn.say("Good. A real agent would now wait until you are done there.\n")
        }
        _ => turn.say("Then not. An agent must not open pages by itself.\n"),
    }
}

fn ask_by_permission(turn: &Turn) -> Step {
    let id = turn.tool("Tea or coffee?", "other", json!({}))?;
    let answer = turn.request(
        "session/request_permission",
        json!({"toolCall": {"toolCallId": id, "title": "Tea or coffee?"}, "options": [
            {"optionId": "tea", "name": "Tea", "kind": "allow_once"},
            {"optionId": "coffee", "name": "Coffee", "kind": "allow_once"},
            {"optionId": "neither", "name": "Neither", "kind": "reject_once"},
        ]}),
    )?;
    turn.tool_update(&id, "completed", json!({}))?;
    let chosen = answer.ok().and_then(|a| a.pointer("/outcome/optionId")?.as_str().map(str::to_owned));
    match chosen.as_deref() {
        Some("tea") => turn.say("Tea it is.\n"),
        Some("coffee") => turn.say("Coffee it is.\n"),
        _ => turn.say("Neither. Water is good too.\n"),
    }
}

/// A long answer; with a number, that many lines.
pub(super) fn long(turn: &Turn, lines: &str) -> Step {
    let Ok(lines) = lines.parse::<usize>() else { return turn.say(ESSAY) };
    let essay: Vec<&str> = ESSAY.lines().collect();
    let text: Vec<&str> = essay.iter().copied().cycle().take(lines.min(100_000)).collect();
    turn.say(&format!("{}\n", text.join("\n")))
}

pub(super) fn think(turn: &Turn) -> Step {
    turn.think(
        "The question is what to think about. A thought should be longer than the answer, so that folding \
         it is worth something. Let me count: one line is not enough, two are a beginning, and with three \
         there is something to fold.\n\nHaving thought so much, the answer can be short.",
    )?;
    turn.say("I thought about it. The answer is three.\n")
}

pub(super) fn image(turn: &Turn) -> Step {
    turn.say("A picture of an evening that never was:\n\n")?;
    let message = turn.new_id("message");
    turn.update(&json!({"sessionUpdate": "agent_message_chunk", "messageId": message, "content": {
        "type": "image", "mimeType": "image/png", "data": evening(),
    }}))?;
    turn.update(&json!({"sessionUpdate": "agent_message_chunk", "messageId": message, "content": {
        "type": "resource_link", "uri": "https://agentclientprotocol.com/", "name": "Agent Client Protocol",
        "description": "Where the protocol is written down",
    }}))?;
    turn.update(&json!({"sessionUpdate": "agent_message_chunk", "messageId": message, "content": {
        "type": "resource", "resource": {
            "uri": "demo://note.md", "mimeType": "text/markdown", "text": "A note that came *inside* the message.",
        },
    }}))?;
    turn.say("It was made of hills and numbers. A link and a note came with it.\n")
}

pub(super) fn usage(turn: &Turn) -> Step {
    turn.say("Watch the numbers in the status line. They are made up, but they move.\n\n")?;
    for _ in 0..5 {
        turn.count_usage(1500)?;
        turn.pause(400)?;
    }
    turn.say("A bigger model costs more: try another one, and `/usage` again. `/compact` makes room.\n")
}

pub(super) fn modes(turn: &Turn) -> Step {
    turn.say(&format!(
        "The mode is `{}`, the model is `{}`.\n\n\
         - **Mode** decides whether I ask before edits and commands\n\
         - **Model** decides the size of the context and what it pretends to cost\n\
         - **Speed** decides how fast I talk\n\
         - **Thoughts** decides whether I think aloud\n\n\
         Change them in the palette (Ctrl+P). They take effect at once, also while I talk.\n",
        turn.mode(),
        turn.model()
    ))
}

pub(super) fn notice(turn: &Turn) -> Step {
    turn.notice("info", "A piece of news.", "Notices are for the moment and no part of the conversation.")?;
    turn.pause(700)?;
    turn.notice("warning", "A warning.", "Nothing is wrong, this only shows what it looks like.")?;
    turn.pause(700)?;
    turn.notice("error", "An error.", "Nothing is wrong here either.")?;
    turn.say("Those were three notices, of three kinds.\n")
}

pub(super) fn compact(turn: &Turn) -> Step {
    if turn.client().has_compaction {
        let id = turn.new_id("compaction");
        turn.update(&json!({
            "sessionUpdate": "compaction_update", "compactionId": id, "status": "in_progress",
        }))?;
        for piece in ["We talked ", "about tea, ", "sheep ", "and a greeting."] {
            turn.pause(400)?;
            turn.update(&json!({
                "sessionUpdate": "compaction_summary_chunk", "compactionId": id,
                "content": {"type": "text", "text": piece},
            }))?;
        }
        turn.update(&json!({
            "sessionUpdate": "compaction_update", "compactionId": id, "status": "completed",
        }))?;
    }
    turn.live.state().kept.used_tokens = 1200;
    turn.count_usage(300)?;
    turn.say("The context is small again. I keep a summary and forget the rest.\n")
}

pub(super) fn title(turn: &Turn, title: &str) -> Step {
    if title.is_empty() {
        return turn.say("Say which: `/title About tea`.\n");
    }
    let title: String = title.chars().take(100).collect();
    turn.agent.give_title(&turn.live, &title);
    turn.say("The session has its title.\n")
}
