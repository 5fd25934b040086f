//! Client side of the `OpenOxide` protocol, version "0.1".
//!
//! Encodes `initialize` and the calls, and converts events without an ACP equivalent; `updates` decodes the other
//! events, and `quirks` selects the protocol. Its documentation does not specify `session/resume`, so several forms
//! are tried in order.

use serde_json::{Value, json};

use crate::model::{AgentCapabilities, Call, WireSpec};

use super::decoder_state::DecoderState;
use super::names::{TOOL_ID, TOOL_OUTPUT};
use super::value::{Object, first_text, rename, take, take_text};
use super::{content, output};

/// Names of its events.
const EVENTS: &[&str] =
    &["text_delta", "thinking_delta", "tool_use", "tool_result", "diff_block", "plan_step", "error", "done"];

/// Boolean capabilities that only this protocol has.
const CAPABILITIES: &[&str] =
    &["file_read", "file_write", "terminal_exec", "web_search", "session_fork", "streaming"];

pub(super) fn initialize() -> (&'static str, String) {
    let params = json!({
        "protocolVersion": "0.1",
        "clientInfo": {"name": "parlor", "version": env!("CARGO_PKG_VERSION")},
        "capabilities": {"diff_rendering": true, "terminal_display": true, "slash_commands": true},
    });
    ("initialize", params.to_string())
}

/// Encodes a call in form number `form`; `None`: the protocol has no such call or form.
pub(super) fn call(call: &Call, form: u8, wire: &WireSpec) -> Option<(&'static str, Value)> {
    let is_first = form == 0;
    match call {
        Call::NewSession(workspace) if is_first => {
            let mut config = Object::new();
            if let Some(model) = &wire.model {
                config.insert("model".to_owned(), model.as_str().into());
            }
            if let Some(commits) = wire.auto_commits {
                config.insert("auto_commits".to_owned(), commits.into());
            }
            let mut params = json!({"workingDir": workspace.folder().to_string_lossy()});
            if !config.is_empty()
                && let Some(params) = params.as_object_mut()
            {
                params.insert("config".to_owned(), config.into());
            }
            Some(("session/create", params))
        }
        Call::ResumeSession(id, workspace) => {
            let (id, folder) = (id.as_str(), workspace.folder().to_string_lossy());
            let params = match form {
                0 => json!({"session_id": id, "sessionId": id, "workingDir": folder}),
                1 => json!({"session_id": id}),
                2 => json!({"sessionId": id}),
                _ => return None,
            };
            Some(("session/resume", params))
        }
        Call::ForkSession(id, _, turns) if is_first => {
            // A fork starts at the last turn.
            let turn = turns.saturating_sub(1).saturating_add(wire.first_turn);
            Some(("session/fork", json!({"source_session_id": id.as_str(), "branch_at_turn": turn})))
        }
        Call::Prompt(id, blocks) if is_first => {
            let can = AgentCapabilities::default();
            let content: Vec<Value> = blocks
                .iter()
                .map(|block| serde_json::to_value(content::encode(block, &can)).unwrap_or_default())
                .collect();
            Some(("prompt/send", json!({"session_id": id.as_str(), "content": content})))
        }
        _ => None,
    }
}

/// The event in a method name: `text_delta`, `event/text_delta`, `session/text_delta`.
pub(super) fn event_of_method(method: &str) -> Option<&'static str> {
    event(method.rsplit('/').next().unwrap_or(method))
}

/// The event in a message: `type` or `event` of the object, or of the object under `event` or `update`.
pub(super) fn event_inside(object: &Object) -> Option<&'static str> {
    first_text(object, &["type", "event"]).and_then(|name| event(&name)).or_else(|| {
        ["event", "update"].iter().find_map(|key| event(object.get(*key)?.get("type")?.as_str()?))
    })
}

fn event(name: &str) -> Option<&'static str> {
    EVENTS.iter().find(|known| **known == name).copied()
}

/// Whether a response to `initialize` is of this protocol; official fields rule it out.
pub(super) fn is_spoken_in(result: &Object) -> bool {
    if result.contains_key("agentCapabilities") || result.contains_key("agentInfo") {
        return false;
    }
    let has_old_version = result
        .get("protocolVersion")
        .and_then(Value::as_str)
        .is_some_and(|version| version.starts_with("0."));
    let told = result.get("capabilities").and_then(Value::as_object);
    let has_own_capabilities =
        told.is_some_and(|told| CAPABILITIES.iter().any(|key| told.contains_key(*key)));
    has_old_version || has_own_capabilities || result.contains_key("serverInfo")
}

/// The agent's capabilities: it can always resume, and fork if it says so.
pub(super) fn capabilities(told: &Object) -> AgentCapabilities {
    AgentCapabilities {
        can_resume: true,
        can_fork: told.get("session_fork").and_then(Value::as_bool).unwrap_or(false),
        can_fork_at_turn: told.get("session_fork").and_then(Value::as_bool).unwrap_or(false),
        ..AgentCapabilities::default()
    }
}

/// Converts `tool_result` to a `tool_call_update`.
pub(super) fn tool_result(mut result: Object) -> Object {
    let is_failed = result.get("is_error") == Some(&Value::Bool(true))
        || result.get("isError") == Some(&Value::Bool(true))
        || result.get("success") == Some(&Value::Bool(false))
        || result.get("error").is_some_and(|error| !error.is_null() && *error != Value::Bool(false));
    if result.get("status").is_none_or(Value::is_null) {
        let status = if is_failed { "failed" } else { "completed" };
        result.insert("status".to_owned(), status.into());
    }
    let payload = take(&mut result, &["content"])
        .or_else(|| take(&mut result, TOOL_OUTPUT))
        .or_else(|| take(&mut result, &["error"]));
    match payload {
        Some(Value::Array(items)) if items.iter().all(|item| item.get("type").is_some()) => {
            result.insert("content".to_owned(), items.into());
        }
        Some(payload) => {
            if let Some(text) = output::text(&payload) {
                let item = json!({"type": "content", "content": {"type": "text", "text": text}});
                result.insert("content".to_owned(), vec![item].into());
            }
            result.insert("rawOutput".to_owned(), payload);
        }
        None => {}
    }
    result
}

/// Converts `diff_block` to a completed edit. The agent has already made the change, so no permission is requested.
pub(super) fn diff_block(mut block: Object, memory: &mut DecoderState) -> Option<Object> {
    rename(&mut block, "path", &["file_path", "file"]);
    let path = first_text(&block, &["path"])?;
    let diff = take(&mut block, &["unified_diff", "unifiedDiff", "diff", "patch"])?;
    let id = take_text(&mut block, TOOL_ID).unwrap_or_else(|| memory.make_id("diff"));
    let call = json!({
        "toolCallId": id,
        "title": format!("Edit {path}"),
        "kind": "edit",
        "status": "completed",
        "content": [{"type": "diff", "path": path, "diff": diff}],
        "locations": [{"path": path}],
    });
    match call {
        Value::Object(call) => Some(call),
        _ => None,
    }
}
