//! Version 2 of the protocol (draft): the differences from version 1.
//!
//! Decodes the parts of messages that version 1 does not have. The user enables version 2 per agent, and the agent may
//! respond with version 1.
//! Source: ACP v2 (draft), schema feature `unstable_protocol_v2`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::model::{AgentCapabilities, AgentTerminal, Patch, SessionId, TerminalId, ToolCallPatch};

use super::decoder::TurnNews;
use super::replies;
use super::value::{Object, fill, first_text, into_object, take, take_text};
use super::{initialize, tools};

/// Agents with sessions can list, resume and close them; loading is resuming with a replay.
pub fn add_capabilities(can: &mut AgentCapabilities, reported: &Object) {
    if let Some(session) = reported.get("session").and_then(Value::as_object) {
        (can.can_load, can.can_resume, can.can_list, can.can_close) = (true, true, true, true);
        can.mcp_stdio_off = !initialize::has(session.get("mcp"), &["stdio"]);
        can.can_log_out = reported.get("auth").is_some_and(Value::is_object);
    }
}

/// Decodes a `state_update`. In all states except `idle` the turn is running.
pub fn state(session: SessionId, update: &mut Object) -> Option<TurnNews> {
    if first_text(update, &["state"])? != "idle" {
        return Some(TurnNews::Went(session));
    }
    Some(TurnNews::Ended(session, replies::decode_turn(update)))
}

/// Clears the fields of a call that were `null`.
pub fn clear(patch: &mut ToolCallPatch, nulls: &[String]) {
    for name in nulls {
        match name.as_str() {
            "title" => patch.title = Patch::Clear,
            "name" => patch.name = Patch::Clear,
            "kind" => patch.kind = Patch::Clear,
            "content" => patch.content = Patch::Clear,
            "locations" => patch.locations = Patch::Clear,
            "rawInput" => (patch.raw_input, patch.input) = (Patch::Clear, Patch::Clear),
            "rawOutput" => (patch.raw_output, patch.output_text) = (Patch::Clear, Patch::Clear),
            _ => {}
        }
    }
}

/// Decodes `terminal_update` (its output replaces the previous one) or `terminal_output_chunk`; `None`: invalid.
pub fn terminal(update: &Object, is_whole: bool) -> Option<Vec<AgentTerminal>> {
    let id = TerminalId::from(first_text(update, &["terminalId"])?);
    // Each chunk is encoded separately.
    let bytes = |part: &Object| STANDARD.decode(first_text(part, &["data"]).unwrap_or_default()).ok();
    if !is_whole {
        return Some(vec![AgentTerminal::Bytes { id, bytes: bytes(update)?, is_whole }]);
    }
    let (command, cwd) = (first_text(update, &["command"]), first_text(update, &["cwd"]).map(Into::into));
    let can_cancel = tools::can_cancel(update);
    let mut news = vec![AgentTerminal::About { id: id.clone(), command, cwd, can_cancel }];
    let output = match update.get("output") {
        Some(Value::Null) => Some(Vec::new()),
        Some(Value::Object(output)) => Some(bytes(output)?),
        _ => None,
    };
    news.extend(output.map(|bytes| AgentTerminal::Bytes { id: id.clone(), bytes, is_whole }));
    if let Some(Value::Object(exit)) = update.get("exitStatus") {
        news.push(AgentTerminal::Exit { id, status: tools::exit_info(exit) });
    }
    Some(news)
}

/// Converts the `subject` of a permission request to the `toolCall` of version 1; returns its description as a note.
pub fn take_subject(params: &mut Object) -> Option<String> {
    if !params.contains_key("subject") || params.contains_key("toolCall") {
        return None;
    }
    let (title, mut note) = (take_text(params, &["title"]), take_text(params, &["description"]));
    let mut subject = take(params, &["subject"]).map(into_object).unwrap_or_default();
    let mut call = Object::new();
    match first_text(&subject, &["type"]).as_deref() {
        Some("tool_call") => {
            call = take(&mut subject, &["toolCall"]).map(into_object).unwrap_or_default();
            let named = first_text(&call, &["title"]);
            if named.is_some() && named != title {
                note = match (&title, note) {
                    (Some(title), Some(note)) => Some(format!("{title}\n{note}")),
                    (title, note) => title.clone().or(note),
                };
            }
        }
        kind => {
            if kind == Some("command") {
                call.extend(take(&mut subject, &["toolCallId"]).map(|id| ("toolCallId".to_owned(), id)));
                call.insert("kind".to_owned(), "execute".into());
                subject.shift_remove("type");
            }
            if !subject.is_empty() {
                call.insert("rawInput".to_owned(), subject.into());
            }
        }
    }
    fill(&mut call, "title", || title.into());
    params.insert("toolCall".to_owned(), call.into());
    note
}
