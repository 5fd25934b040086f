//! Decodes terminals of the agent that are described in `_meta` of a tool call.
//!
//! Codex, pi and Claude send the output of their commands only as `terminal_info`, `terminal_output` (or
//! `terminal_output_delta`) and `terminal_exit`.

use serde_json::Value;

use crate::model::{AgentTerminal, ExitInfo, TerminalId, ToolCallId};

use super::value::{Object, first, first_text, list, take, whole};

const INFO: &[&str] = &["terminal_info", "terminalInfo"];
const OUTPUT: &[&str] = &["terminal_output", "terminalOutput"];
const DELTA: &[&str] = &["terminal_output_delta", "terminalOutputDelta"];
const EXIT: &[&str] = &["terminal_exit", "terminalExit"];
const ID: &[&str] = &["terminal_id", "terminalId", "id"];

/// Removes the terminal events from `_meta`. A row without an id belongs to the call's own terminal.
pub fn take_news(meta: &mut Object, call: &ToolCallId) -> Vec<AgentTerminal> {
    let mut news = Vec::new();
    for (id, row) in rows(meta, INFO, call) {
        news.push(AgentTerminal::Info { id, cwd: first_text(&row, &["cwd"]).map(Into::into) });
    }
    for keys in [OUTPUT, DELTA] {
        for (id, row) in rows(meta, keys, call) {
            if let Some(data) = first_text(&row, &["data", "output", "delta"]) {
                news.push(AgentTerminal::Output { id, data });
            }
        }
    }
    for (id, row) in rows(meta, EXIT, call) {
        news.push(AgentTerminal::Exit { id, status: exit_info(&row) });
    }
    news
}

pub fn exit_info(row: &Object) -> ExitInfo {
    let code = first(row, &["exit_code", "exitCode"]).and_then(whole);
    ExitInfo { code: code.and_then(|code| i32::try_from(code).ok()), signal: first_text(row, &["signal"]) }
}

fn rows(meta: &mut Object, keys: &[&str], call: &ToolCallId) -> Vec<(TerminalId, Object)> {
    let rows = take(meta, keys).map(list).unwrap_or_default();
    rows.into_iter()
        .filter_map(|row| match row {
            Value::Object(row) => {
                let id = first_text(&row, ID).map_or_else(|| TerminalId(call.0.clone()), TerminalId::from);
                Some((id, row))
            }
            Value::String(data) => {
                let row = Object::from_iter([("data".to_owned(), Value::String(data))]);
                Some((TerminalId(call.0.clone()), row))
            }
            _ => None,
        })
        .collect()
}
