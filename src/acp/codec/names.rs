//! Tables that map non-standard names of agents to the official ones.
//!
//! Invariant: an official name always maps to itself, so the tables cannot affect conforming agents.

use crate::model::ToolKind;

use super::value::{Object, first_text};

/// Rows of an official name and the non-standard names for it.
pub type Table = &'static [(&'static str, &'static [&'static str])];

pub const UPDATES: Table = &[
    ("agent_message_chunk", &["agent_message", "agent_message_delta", "agent_message_text_update"]),
    ("agent_thought_chunk", &["agent_thought", "agent_thought_text_update"]),
    ("user_message_chunk", &["user_message"]),
];
pub const SESSION_ID: &[&str] = &["sessionId", "session_id"];
pub const NEW_SESSION_ID: &[&str] = &["sessionId", "session_id", "id"];
pub const UPDATE_KIND: &[&str] = &["sessionUpdate", "session_update", "type", "event"];
pub const MESSAGE_ID: &[&str] = &["messageId", "message_id"];
pub const MESSAGE_CONTENT: &[&str] = &["content", "text", "delta", "value", "message"];
pub const TOOL_ID: &[&str] = &["toolCallId", "tool_call_id", "id", "call_id", "tool_use_id"];
pub const TOOL_NAME: &[&str] = &["name", "tool", "toolName", "tool_name"];
pub const TOOL_INPUT: &[&str] = &["rawInput", "raw_input", "input", "args", "arguments", "params"];
pub const TOOL_OUTPUT: &[&str] = &["rawOutput", "raw_output", "output", "result"];
pub const TOOL_KINDS: Table = &[("edit", &["write"])];
/// Substrings of a tool's name that imply its kind, in order of precedence.
const TOOL_NAME_KINDS: &[(ToolKind, &[&str])] = &[
    (ToolKind::Think, &["todo"]),
    (ToolKind::Execute, &["bash", "shell", "exec", "command", "terminal"]),
    (ToolKind::Fetch, &["web", "fetch"]),
    (ToolKind::Search, &["grep", "glob", "search", "find"]),
    (ToolKind::Edit, &["edit", "write", "patch", "replace"]),
    (ToolKind::Delete, &["delete", "remove"]),
    (ToolKind::Move, &["rename", "move"]),
    (ToolKind::Read, &["read", "view", "list"]),
    (ToolKind::Think, &["think", "task"]),
];
pub const TOOL_STATUS: Table = &[
    ("pending", &["queued", "waiting"]),
    ("in_progress", &["running", "started", "active"]),
    ("completed", &["success", "succeeded", "done", "complete", "finished", "ok"]),
    ("failed", &["error", "errored", "failure", "rejected", "denied"]),
    ("cancelled", &["canceled", "aborted", "interrupted"]),
];
pub const PLAN_STATUS: Table = &[
    ("pending", &["todo", "open", "queued"]),
    ("in_progress", &["running", "active", "current", "doing", "started"]),
    ("completed", &["done", "complete", "finished", "success", "skipped", "cancelled", "canceled"]),
];
pub const PLAN_PRIORITY: Table =
    &[("high", &["critical", "urgent"]), ("medium", &["normal", "default"]), ("low", &["minor"])];
pub const STOP_REASONS: Table = &[
    ("end_turn", &["stop", "done", "end", "complete", "completed", "finished", "success"]),
    ("max_tokens", &["length", "max_token"]),
    ("max_turn_requests", &["max_turns", "max_requests"]),
    ("refusal", &["refused"]),
    ("cancelled", &["canceled", "cancel", "aborted", "interrupted"]),
];
pub const PERMISSION_KINDS: Table = &[
    ("allow_once", &["allow", "approve", "accept", "yes"]),
    ("allow_always", &["allow_session", "allow_for_session", "always_allow", "approve_always"]),
    ("reject_once", &["reject", "deny", "decline", "no", "cancel"]),
    ("reject_always", &["deny_always", "always_reject", "always_deny"]),
];

/// The official name of a word, or the word itself. Case, dashes and spaces do not matter: `In Progress`, `inProgress`.
pub fn official(table: Table, word: &str) -> String {
    let word = snake(word);
    let row = table.iter().find(|(_, others)| others.contains(&word.as_str()));
    row.map_or(word, |(name, _)| (*name).to_owned())
}

pub fn kind_of_tool(name: &str) -> Option<ToolKind> {
    let name = name.to_lowercase();
    let row = TOOL_NAME_KINDS.iter().find(|(_, parts)| parts.iter().any(|part| name.contains(part)));
    row.map(|(kind, _)| *kind)
}

/// The session id under one of these keys, or in `session.id`.
pub fn session_id(object: &Object, keys: &[&str]) -> Option<String> {
    first_text(object, keys).or_else(|| first_text(object.get("session")?.as_object()?, &["id"]))
}

/// Splits a title that begins with a tool name, such as `ReadFile: a.rs` or `Shell`.
pub fn head_of_title(title: &str) -> Option<(&str, &str)> {
    let (head, rest) = title.split_once(": ").unwrap_or((title, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (!head.is_empty() && head.chars().all(is_name)).then_some((head, rest))
}

fn snake(word: &str) -> String {
    let mut snake = String::with_capacity(word.len() + 2);
    let mut follows_small = false;
    for ch in word.trim().chars() {
        match ch {
            '-' | ' ' | '_' => snake.push('_'),
            _ if ch.is_uppercase() => {
                if follows_small {
                    snake.push('_');
                }
                snake.extend(ch.to_lowercase());
            }
            _ => snake.push(ch),
        }
        follows_small = ch.is_lowercase() || ch.is_ascii_digit();
    }
    snake
}

/// The start of a line that reports a changed mode in the agent's text. Source: gemini, after "allow for this session".
pub const MODE_LINE: &str = "[MODE_UPDATE] ";

pub fn take_modes(text: &mut String) -> Vec<String> {
    let mode_of = |line: &str| {
        let word = line.trim().strip_prefix(MODE_LINE)?;
        let is_id = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-');
        (!word.is_empty() && word.chars().all(is_id)).then(|| word.to_owned())
    };
    let modes: Vec<String> = text.lines().filter_map(mode_of).collect();
    if !modes.is_empty() {
        *text = text.split_inclusive('\n').filter(|line| mode_of(line).is_none()).collect();
    }
    modes
}

/// Whether a user message is a placeholder for the result of a tool call, which is sent separately. Source: gemini
/// replays `[Function Response: NAME]` for each of its calls, usually after them; live sessions do not have it.
pub fn is_result_of_call(text: &str) -> bool {
    let name = text.trim().strip_prefix("[Function Response: ").and_then(|rest| rest.strip_suffix(']'));
    let is_of_name = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | '-' | '.');
    name.is_some_and(|name| !name.is_empty() && name.chars().all(is_of_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn official_names_are_unchanged_and_synonyms_ignore_case() {
        for (table, words) in [
            (TOOL_STATUS, &["pending", "in_progress", "completed", "failed"][..]),
            (TOOL_KINDS, &["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]),
            (PLAN_STATUS, &["pending", "in_progress", "completed"]),
            (STOP_REASONS, &["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]),
            (PERMISSION_KINDS, &["allow_once", "allow_always", "reject_once", "reject_always"]),
            (UPDATES, &["plan", "tool_call", "tool_call_update", "usage_update", "current_mode_update"]),
        ] {
            for word in words {
                assert_eq!(official(table, word), *word);
            }
        }
        assert_eq!(official(TOOL_STATUS, "inProgress"), "in_progress");
        assert_eq!(official(TOOL_STATUS, "Running"), "in_progress");
        assert_eq!(official(STOP_REASONS, "endTurn"), "end_turn");
        assert_eq!(official(STOP_REASONS, "EndTurn"), "end_turn");
        assert_eq!(official(PERMISSION_KINDS, "allow-always"), "allow_always");
    }

    #[test]
    fn tool_names_are_split_from_titles() {
        assert_eq!(head_of_title("ReadFile: a b.rs"), Some(("ReadFile", "a b.rs")));
        assert_eq!(head_of_title("Shell"), Some(("Shell", "")));
        assert_eq!(head_of_title("run_commands: {\"a\": 1}"), Some(("run_commands", "{\"a\": 1}")));
        assert_eq!(head_of_title("Read the file: a"), None);
        assert_eq!(head_of_title(""), None);
    }

    #[test]
    fn kinds_are_read_from_the_names_of_tools() {
        let kinds = [
            "Shell",
            "ReadFile",
            "StrReplaceFile",
            "WriteFile",
            "Glob",
            "Grep",
            "FetchURL",
            "SearchWeb",
            "Task",
            "Think",
            "SetTodoList",
        ]
        .map(|name| kind_of_tool(name).unwrap());
        let wanted = [
            ToolKind::Execute,
            ToolKind::Read,
            ToolKind::Edit,
            ToolKind::Edit,
            ToolKind::Search,
            ToolKind::Search,
            ToolKind::Fetch,
            ToolKind::Fetch,
            ToolKind::Think,
            ToolKind::Think,
            ToolKind::Think,
        ];
        assert_eq!(kinds, wanted);
    }

    #[test]
    fn lines_with_a_mode_are_removed_from_a_text() {
        let taken = |text: &str| {
            let mut text = text.to_owned();
            let modes = take_modes(&mut text);
            (modes, text)
        };
        assert_eq!(taken("[MODE_UPDATE] autoEdit"), (vec!["autoEdit".to_owned()], String::new()));
        let (modes, text) = taken("Done.\n[MODE_UPDATE] plan\nNext.");
        assert_eq!((modes, text.as_str()), (vec!["plan".to_owned()], "Done.\nNext."));
        for text in ["see [MODE_UPDATE] plan", "[MODE_UPDATE] two words", "[MODE_UPDATE] ", "text"] {
            assert_eq!(taken(text), (Vec::new(), text.to_owned()));
        }
    }

    #[test]
    fn every_row_maps_to_an_official_name() {
        for table in
            [UPDATES, TOOL_KINDS, TOOL_STATUS, PLAN_STATUS, PLAN_PRIORITY, STOP_REASONS, PERMISSION_KINDS]
        {
            for (name, others) in table {
                assert!(!others.contains(name));
                assert_eq!(official(table, name), *name, "{others:?} map to another synonym");
            }
        }
    }
}
