//! Scenes about work: plans, edits, commands, a subagent, failures.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::super::turn::{Choice, Step, Turn, text_content};
use super::Ending;
use crate::host::os::private;

/// The edited file before and after the change.
const OLD: &str =
    "fn greet(name: &str) {\n    println!(\"Hello, {name}\");\n}\n\nfn main() {\n    greet(\"world\");\n}\n";
const NEW: &str = "/// Prints a greeting for any time of day.\nfn greet(name: &str) {\n    println!(\"Good \
     day, {name}\");\n}\n\nfn main() {\n    greet(\"everyone\");\n}\n";

/// The script of `/run`: harmless, slow and colourful.
const SCRIPT: &str = "echo 'running 5 checks'; for i in 1 2 3 4 5; do printf '\\033[32mok\\033[0m check %s\\n' \"$i\"; sleep 0.3; done; printf '\\033[1m5 passed\\033[0m\\n'";

pub(super) fn plan(turn: &Turn) -> Step {
    let entries = [
        ("List the folder", "high"),
        ("Read the main file", "high"),
        ("Decide what to change", "medium"),
        ("Report the result", "low"),
    ];
    let show = |done: usize| -> Step {
        let entries: Vec<Value> = entries
            .iter()
            .enumerate()
            .map(|(at, (content, priority))| {
                let status = match at {
                    at if at < done => "completed",
                    at if at == done => "in_progress",
                    _ => "pending",
                };
                json!({"content": content, "priority": priority, "status": status})
            })
            .collect();
        turn.update(&json!({"sessionUpdate": "plan", "entries": entries}))
    };
    show(0)?;
    turn.pause(600)?;
    look_around(turn)?;
    show(1)?;
    turn.think("This is only a demo, so I read the folder and change nothing.")?;
    turn.pause(500)?;
    show(2)?;
    turn.pause(900)?;
    show(3)?;
    turn.say("All steps are done. No files were changed.\n")?;
    show(entries.len())?;
    if turn.client().has_plans {
        notes(turn)?;
    }
    Ok(())
}

/// Shows and removes a second plan with its own id.
fn notes(turn: &Turn) -> Step {
    let id = turn.new_id("notes");
    turn.send_update(&json!({"sessionUpdate": "plan_update", "plan": {
        "type": "markdown", "planId": id, "content": "A temporary note next to the plan.",
    }}))?;
    turn.pause(1500)?;
    turn.send_update(&json!({"sessionUpdate": "plan_removed", "planId": id}))
}

fn look_around(turn: &Turn) -> Step {
    let cwd = turn.cwd();
    let id = turn.tool(
        "List the folder",
        "search",
        json!({
            "locations": [{"path": cwd}], "rawInput": {"path": cwd},
        }),
    )?;
    turn.tool_update(&id, "in_progress", json!({}))?;
    turn.pause(300)?;
    let mut names: Vec<String> = fs::read_dir(&cwd)
        .map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    let count = names.len();
    let entries = if count == 1 { "entry" } else { "entries" };
    names.truncate(12);
    let text = if count == 0 { "(empty)".to_owned() } else { names.join("\n") };
    turn.tool_update(
        &id,
        "completed",
        json!({
            "title": format!("List the folder, {count} {entries}"), "content": [text_content(&text)],
        }),
    )?;
    let file = ["README.md", "readme.md", "Cargo.toml", "package.json", "Makefile"]
        .into_iter()
        .map(|name| cwd.join(name))
        .find(|path| path.is_file());
    match file {
        Some(file) => read_head(turn, &file),
        None => Ok(()),
    }
}

/// Reads a few lines, through the client if it supports that.
fn read_head(turn: &Turn, file: &Path) -> Step {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let id = turn.tool(
        &format!("Read {name}"),
        "read",
        json!({
            "locations": [{"path": file, "line": 1}], "rawInput": {"path": file, "limit": 5},
        }),
    )?;
    let text = if turn.client().can_read {
        let range = json!({"path": file, "line": 1, "limit": 5});
        turn.request("fs/read_text_file", range)?.and_then(|answer| {
            let content = answer.get("content").and_then(Value::as_str);
            content.map(ToOwned::to_owned).ok_or_else(|| "the response has no content".to_owned())
        })
    } else {
        fs::read_to_string(file)
            .map(|text| text.split_inclusive('\n').take(5).collect())
            .map_err(|error| error.to_string())
    };
    match text {
        Ok(text) => turn.tool_update(&id, "completed", json!({"content": [text_content(&text)]})),
        Err(why) => turn.tool_update(&id, "failed", json!({"content": [text_content(&why)]})),
    }
}

/// Edits a file in the scratch folder, with permission.
pub(super) fn edit(turn: &Turn) -> Step {
    let path = match turn.scratch().and_then(|dir| prepare(&dir)) {
        Ok(path) => path,
        Err(error) => {
            return turn.say(&format!("Could not create a scratch folder for the edit: {error}.\n"));
        }
    };
    let old = fs::read_to_string(&path).unwrap_or_default();
    let new = if old == NEW { OLD } else { NEW };
    turn.say(&format!(
        "The edit is made in a scratch folder, `{}`. Your files are not changed.\n\n",
        path.parent().unwrap_or(&path).display()
    ))?;
    let text = match change(turn, &path, &old, new)? {
        Change::Written => "Done. The greeting is changed. Run `/edit` again to revert it.\n".to_owned(),
        Change::Not(Choice::Forbidden) => "The mode is *Plan only*, so the edit was not made.\n".to_owned(),
        Change::Not(_) => "You rejected the edit, so nothing was written.\n".to_owned(),
        Change::Failed(why) => format!("Could not write the file: {why}\n"),
    };
    turn.say(&text)
}

/// The result of an edit.
pub(super) enum Change {
    Written,
    /// The user or the mode rejected it.
    Not(Choice),
    /// The file could not be written; contains the error.
    Failed(String),
}

/// Shows an edit, requests permission and writes it.
pub(super) fn change(turn: &Turn, path: &Path, old: &str, new: &str) -> Step<Change> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let title = format!("Edit {name}");
    let details = json!({
        "locations": [{"path": path, "line": 1}], "rawInput": {"path": path},
        "content": [{"type": "diff", "path": path, "oldText": old, "newText": new}],
    });
    let id = turn.tool(&title, "edit", details.clone())?;
    let mut call = json!({"toolCallId": id, "title": title, "kind": "edit", "status": "pending"});
    if let (Some(fields), Some(details)) = (call.as_object_mut(), details.as_object()) {
        fields.extend(details.clone());
    }
    let choice = turn.may("edit", &call, "Always allow edits")?;
    if choice != Choice::Allowed {
        refused(turn, &id, choice)?;
        return Ok(Change::Not(choice));
    }
    turn.tool_update(&id, "in_progress", json!({}))?;
    turn.pause(400)?;
    // Writes directly: the scratch folder is outside the session's folders, so the client would ask a second
    // time.
    match private::replace(path, new.as_bytes()).map_err(|error| error.to_string()) {
        Ok(()) => {
            turn.tool_update(&id, "completed", json!({}))?;
            Ok(Change::Written)
        }
        Err(why) => {
            turn.tool_update(&id, "failed", json!({"rawOutput": {"error": why}}))?;
            Ok(Change::Failed(why))
        }
    }
}

fn refused(turn: &Turn, id: &str, choice: Choice) -> Step {
    let why = if choice == Choice::Forbidden { "plan mode" } else { "rejected by the user" };
    turn.tool_update(id, "failed", json!({"rawOutput": {"error": why}}))
}

/// Creates the file for the edit if it does not exist.
fn prepare(dir: &Path) -> std::io::Result<std::path::PathBuf> {
    let path = dir.join("greeting.rs");
    if !path.exists() {
        private::replace(&path, OLD.as_bytes())?;
    }
    Ok(path)
}

/// Runs a command in a terminal of the client, or simulates one.
pub(super) fn run(turn: &Turn) -> Step {
    let dir = turn.scratch().unwrap_or_else(|_| turn.cwd());
    let text = match command(turn, "Run example checks", SCRIPT, &dir)? {
        Run::Ended(Some(0)) => {
            "The command finished. Its output stays in the transcript after the terminal is closed.\n"
                .to_owned()
        }
        Run::Ended(Some(code)) => format!("The command failed with exit code {code}.\n"),
        Run::Ended(None) => "The command was stopped.\n".to_owned(),
        Run::Not(Choice::Forbidden) => "The mode is *Plan only*, so the command was not run.\n".to_owned(),
        Run::Not(_) => "You rejected the command, so it was not run.\n".to_owned(),
        Run::Failed(why) => format!("Could not start the command: {why}\n"),
        Run::NoTerminal(id) => return pretend(turn, &id),
    };
    turn.say(&text)
}

/// The result of a command.
pub(super) enum Run {
    /// It ended, with this exit code if it has one.
    Ended(Option<i64>),
    /// The user or the mode rejected it.
    Not(Choice),
    /// It did not start; contains the error.
    Failed(String),
    /// It is permitted, but the client has no terminals. The call is still open.
    NoTerminal(String),
}

/// Requests permission for a shell command and runs it in a terminal of the client.
pub(super) fn command(turn: &Turn, title: &str, script: &str, dir: &Path) -> Step<Run> {
    let input = json!({"command": script, "cwd": dir});
    let id = turn.tool(title, "execute", json!({"rawInput": input}))?;
    let call = json!({
        "toolCallId": id, "title": title, "kind": "execute", "rawInput": input,
        "content": [text_content(&format!("```sh\n{script}\n```"))],
    });
    let choice = turn.may("run", &call, "Always allow commands")?;
    if choice != Choice::Allowed {
        refused(turn, &id, choice)?;
        return Ok(Run::Not(choice));
    }
    if !turn.client().has_terminals {
        return Ok(Run::NoTerminal(id));
    }
    let create = json!({"command": "sh", "args": ["-c", script], "cwd": dir, "outputByteLimit": 64 << 10});
    let created = turn.request("terminal/create", create)?.and_then(|answer| {
        let terminal = answer.get("terminalId").and_then(Value::as_str);
        terminal.map(ToOwned::to_owned).ok_or_else(|| "the response has no terminal id".to_owned())
    });
    let terminal = match created {
        Ok(terminal) => terminal,
        Err(why) => {
            turn.tool_update(&id, "failed", json!({"content": [text_content(&why)]}))?;
            return Ok(Run::Failed(why));
        }
    };
    let outcome = watch(turn, &id, &terminal);
    // Also releases after a cancel, which kills the command; the response is not needed.
    let release = json!({"sessionId": turn.live.id, "terminalId": terminal});
    drop(turn.agent.peer.request(&turn.live.id, "terminal/release", &release));
    outcome.map(Run::Ended)
}

/// Shows the terminal in the call, waits for the exit and reads the output. Returns the exit code, if any.
fn watch(turn: &Turn, id: &str, terminal: &str) -> Step<Option<i64>> {
    let shown = json!({"content": [{"type": "terminal", "terminalId": terminal}]});
    turn.tool_update(id, "in_progress", shown)?;
    let named = json!({"terminalId": terminal});
    let exit = turn.request("terminal/wait_for_exit", named.clone())?;
    let output = turn.request("terminal/output", named)?;
    let code = exit.ok().and_then(|exit| exit.get("exitCode").and_then(Value::as_i64));
    let output = output.ok().and_then(|read| read.get("output").and_then(Value::as_str).map(str::to_owned));
    let text = text_content(&format!("```\n{}\n```", output.unwrap_or_default().trim_end()));
    let status = if code == Some(0) { "completed" } else { "failed" };
    turn.tool_update(id, status, json!({"rawOutput": {"exitCode": code}}))?;
    // Terminals do not exist in a replay, so the history has the text instead.
    turn.record(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "content": [text]}));
    Ok(code)
}

fn pretend(turn: &Turn, id: &str) -> Step {
    let mut output = String::from("running 5 checks\n");
    for n in 1..=5 {
        let _ = writeln!(output, "ok check {n}");
        let text = text_content(&format!("```\n{output}```"));
        turn.tool_update(id, "in_progress", json!({"content": [text]}))?;
        turn.pause(300)?;
    }
    turn.tool_update(id, "completed", json!({"rawOutput": {"exitCode": 0}}))?;
    turn.say("Terminals are disabled in this client, so this output is simulated.\n")
}

/// Runs a subagent in a child session if the client supports that, otherwise as a tool call.
pub(super) fn team(turn: &Turn) -> Step {
    if !turn.client().has_subagents {
        let id =
            turn.tool("Subagent: look for typos", "other", json!({"rawInput": {"task": "look for typos"}}))?;
        turn.tool_update(&id, "in_progress", json!({}))?;
        turn.pause(1200)?;
        turn.tool_update(&id, "completed", json!({"content": [text_content("No typos found.")]}))?;
        return turn.say("The subagent found no typos. (This client shows subagents as tool calls.)\n");
    }
    let child = format!("{}-{}", turn.live.id, turn.new_id("helper"));
    let peer = &turn.agent.peer;
    turn.send_update(&json!({
        "sessionUpdate": "subagent_update", "sessionId": child, "title": "Typo check",
        "description": "Checks the files for typos", "state": {"state": "running"},
    }))?;
    let pieces = ["Reading the first file. ", "Reading the second file. ", "No typos found."];
    for (number, piece) in (1..).zip(pieces) {
        turn.pause(500)?;
        peer.update(
            &child,
            &json!({
                "sessionUpdate": "agent_message_chunk", "messageId": format!("{child}-1"),
                "content": {"type": "text", "text": piece},
            }),
        );
        if number < pieces.len() {
            peer.update(
                &child,
                &json!({
                    "sessionUpdate": "tool_call", "toolCallId": format!("{child}-{number}"),
                    "title": format!("File {number}"), "kind": "read", "status": "completed",
                }),
            );
        }
    }
    turn.send_update(&json!({
        "sessionUpdate": "subagent_update", "sessionId": child, "state": {"state": "idle"},
    }))?;
    turn.say("The subagent found no typos.\n")
}

/// Fails in the requested way.
pub(super) fn fail(turn: &Turn, how: &str) -> Step<Ending> {
    match how {
        "refusal" => {
            turn.say("This turn ends with a refusal: the agent declines the prompt.\n")?;
            return Ok(Ending::Stopped("refusal"));
        }
        "tokens" => {
            turn.say("This turn ends at the token limit: the answer stops in the middle of a")?;
            return Ok(Ending::Stopped("max_tokens"));
        }
        _ => {}
    }
    turn.say("I am going to read a file that does not exist.\n\n")?;
    let missing = turn.cwd().join("missing-file.txt");
    let id = turn.tool(
        "Read missing-file.txt",
        "read",
        json!({
            "locations": [{"path": missing}], "rawInput": {"path": missing},
        }),
    )?;
    turn.tool_update(&id, "in_progress", json!({}))?;
    turn.pause(400)?;
    turn.tool_update(
        &id,
        "failed",
        json!({
            "content": [text_content("No such file.")],
        }),
    )?;
    if how == "tool" {
        turn.say("The tool call failed. The turn continues.\n")?;
        return Ok(Ending::Done);
    }
    turn.say("The tool call failed. Next, the whole turn fails; the session stays usable.\n")?;
    let details = "This is an example. Send another prompt, or try again.";
    Ok(Ending::Failed("Simulated failure".to_owned(), json!({"details": details})))
}
