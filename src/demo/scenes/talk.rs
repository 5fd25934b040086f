//! Scenes about messages: questions, long answers, images, and information about the session.

use serde_json::{Value, json};

use super::super::picture::evening;
use super::super::turn::{Step, Turn};

const ESSAY: &str = "# Brewing tea

A sample answer that shows how parlor renders *Markdown*.

## Ingredients

1. Water, **just below boiling**
2. Leaves
   - black, for breakfast
   - green, for the afternoon
3. Time: ~~one minute~~ three minutes

> Brewing time changes the taste more than the amount of leaves does.

## Brewing times

| Tea | Water | Time | Taste |
|---|---:|---:|---|
| green | 75 °C | 2 min | fresh and grassy |
| oolong | 90 °C | 3 min | roasted, with a hint of honey and flowers |
| black | 98 °C | 4 min | strong and malty |
| 白茶 | 80 °C | 5 min | light and sweet 🍵 |

## Code

```rust
fn minutes(leaf: &str) -> Option<u32> {
    match leaf {
        \"green\" => Some(2),
        \"oolong\" => Some(3),
        \"black\" => Some(4),
        _ => None, // unknown tea
    }
}
```

```sh
kettle --on && sleep 180 && pour   # example only
```

Text can contain `code`, a [link](https://agentclientprotocol.com), and long lines, which are wrapped between \
words at the width of the screen and are wrapped again when the size of the terminal changes.

---

End of the sample.
";

/// Asks the user with a form, a web page, or otherwise a permission request.
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
            "mode": "form", "message": "A few questions about your tea. Your answers stay on this machine.",
            "requestedSchema": {"type": "object", "title": "Tea", "required": ["kind"], "properties": {
                "kind": {"type": "string", "title": "Kind", "default": "green", "oneOf": [
                    {"const": "green", "title": "Green"}, {"const": "black", "title": "Black"},
                    {"const": "none", "title": "Coffee instead"},
                ]},
                "cups": {"type": "integer", "title": "Cups", "minimum": 1, "maximum": 9, "default": 2},
                "extras": {"type": "array", "title": "With", "items": {
                    "type": "string", "enum": ["milk", "sugar", "lemon"],
                }},
                "name": {"type": "string", "title": "Name", "maxLength": 40,
                    "description": "Optional: a name for the cup"},
                "hurry": {"type": "boolean", "title": "To go", "default": false},
            }},
        }),
    )?;
    match answer {
        Err(why) => turn.say(&format!("Could not ask the question: {why}\n")),
        Ok(answer) => match answer.get("action").and_then(Value::as_str) {
            Some("accept") => turn.say(&serve(answer.get("content").unwrap_or(&Value::Null))),
            Some("decline") => turn.say("You declined to answer.\n"),
            _ => turn.say("You closed the form, so I continue without an answer.\n"),
        },
    }
}

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
    let end = if hurry { "In a cup to go." } else { "Enjoy!" };
    format!("{cups} of {kind}{with}{name}. {end}\n")
}

fn ask_link(turn: &Turn) -> Step {
    let id = turn.new_id("page");
    let answer = turn.request(
        "elicitation/create",
        json!({
            "mode": "url", "elicitationId": id, "url": "https://agentclientprotocol.com/",
            "message": "Open the home page of the Agent Client Protocol? No data is sent.",
        }),
    )?;
    match answer.ok().as_ref().and_then(|answer| answer.get("action")).and_then(Value::as_str) {
        Some("accept") => {
            turn.pause(800)?;
            turn.agent.peer.notify("elicitation/complete", &json!({"elicitationId": id}));
            turn.say("You accepted. A real agent would now wait until you finish in the browser.\n")
        }
        _ => turn.say(
            "You declined, so the page was not opened. Agents cannot open pages without your consent.\n",
        ),
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
        Some("tea") => turn.say("You chose tea.\n"),
        Some("coffee") => turn.say("You chose coffee.\n"),
        _ => turn.say("Neither.\n"),
    }
}

/// A long reply; with a number, this many lines.
pub(super) fn long(turn: &Turn, lines: &str) -> Step {
    let Ok(lines) = lines.parse::<usize>() else { return turn.say(ESSAY) };
    let essay: Vec<&str> = ESSAY.lines().collect();
    let text: Vec<&str> = essay.iter().copied().cycle().take(lines.min(100_000)).collect();
    turn.say(&format!("{}\n", text.join("\n")))
}

pub(super) fn think(turn: &Turn) -> Step {
    turn.think(
        "Thoughts can be much longer than the answer, so they are folded by default. This one has two \
         paragraphs to show how a longer thought wraps and folds.\n\n\
         Now I can write a short answer.",
    )?;
    turn.say("My thoughts are folded above. Open them to read the details.\n")
}

pub(super) fn image(turn: &Turn) -> Step {
    turn.say("An image, generated by the demo agent:\n\n")?;
    let message = turn.new_id("message");
    turn.update(&json!({"sessionUpdate": "agent_message_chunk", "messageId": message, "content": {
        "type": "image", "mimeType": "image/png", "data": evening(),
    }}))?;
    turn.update(&json!({"sessionUpdate": "agent_message_chunk", "messageId": message, "content": {
        "type": "resource_link", "uri": "https://agentclientprotocol.com/", "name": "Agent Client Protocol",
        "description": "The protocol specification",
    }}))?;
    turn.update(&json!({"sessionUpdate": "agent_message_chunk", "messageId": message, "content": {
        "type": "resource", "resource": {
            "uri": "demo://note.md", "mimeType": "text/markdown", "text": "A file embedded in the message.",
        },
    }}))?;
    turn.say("The message also contains a link and an embedded file.\n")
}

pub(super) fn usage(turn: &Turn) -> Step {
    turn.say("The status line shows the context size and the cost. These numbers are simulated.\n\n")?;
    for _ in 0..5 {
        turn.count_usage(1500)?;
        turn.pause(400)?;
    }
    turn.say("Choose another model and run `/usage` again to compare. `/compact` frees context.\n")
}

pub(super) fn modes(turn: &Turn) -> Step {
    turn.say(&format!(
        "The mode is `{}`, the model is `{}`.\n\n\
         - **Mode**: whether I ask before edits and commands\n\
         - **Model**: the context size and the simulated cost\n\
         - **Speed**: how fast I answer\n\
         - **Thoughts**: whether I show thoughts before answers\n\n\
         Change them in the command palette. Changes take effect immediately, even during a turn.\n",
        turn.mode(),
        turn.model()
    ))
}

pub(super) fn notice(turn: &Turn) -> Step {
    turn.notice("info", "An info notice.", "Notices are not part of the conversation.")?;
    turn.pause(700)?;
    turn.notice("warning", "A warning.", "This is only an example.")?;
    turn.pause(700)?;
    turn.notice("error", "An error.", "This is only an example.")?;
    turn.say("I sent an info, a warning and an error notice.\n")
}

pub(super) fn compact(turn: &Turn) -> Step {
    if turn.client().has_compaction {
        let id = turn.new_id("compaction");
        turn.update(&json!({
            "sessionUpdate": "compaction_update", "compactionId": id, "status": "in_progress",
        }))?;
        for piece in ["The user ", "tried the commands ", "of the demo agent."] {
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
    turn.live.state().saved.used_tokens = 1200;
    turn.count_usage(300)?;
    turn.say("The context was compacted: a summary replaces the earlier messages.\n")
}

pub(super) fn title(turn: &Turn, title: &str) -> Step {
    if title.is_empty() {
        return turn.say("Usage: `/title Fix the receipt`\n");
    }
    let title: String = title.chars().take(100).collect();
    turn.agent.give_title(&turn.live, &title);
    turn.say("The title was set.\n")
}
