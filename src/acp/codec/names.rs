//! Tables that map non-standard names of agents to the official ones.
//!
//! Invariant: an official name always maps to itself, so the tables cannot affect conforming agents.

/// Rows of (non-standard name, official name).
pub(in crate::acp) type Table = &'static [(&'static str, &'static str)];

pub(in crate::acp) const UPDATES: Table = &[
    ("agent_message", "agent_message_chunk"),
    ("agent_message_delta", "agent_message_chunk"),
    ("agent_message_text_update", "agent_message_chunk"),
    ("agent_thought", "agent_thought_chunk"),
    ("agent_thought_text_update", "agent_thought_chunk"),
    ("user_message", "user_message_chunk"),
    ("commands_update", "available_commands_update"),
    ("mode_update", "current_mode_update"),
    ("model_update", "current_model_update"),
    ("config_options_update", "config_option_update"),
];

/// Keys of a session id; `session.id` is checked after them.
pub(in crate::acp) const SESSION_ID: &[&str] = &["sessionId", "session_id"];
pub(in crate::acp) const NEW_SESSION_ID: &[&str] = &["sessionId", "session_id", "id"];
pub(in crate::acp) const UPDATE_KIND: &[&str] = &["sessionUpdate", "session_update", "type", "event"];
pub(in crate::acp) const MESSAGE_ID: &[&str] = &["messageId", "message_id"];
pub(in crate::acp) const MESSAGE_CONTENT: &[&str] = &["content", "text", "delta", "value", "message"];

pub(in crate::acp) const TOOL_ID: &[&str] = &["toolCallId", "tool_call_id", "id", "call_id", "tool_use_id"];
/// Keys of a tool's programmatic name.
pub(in crate::acp) const TOOL_NAME: &[&str] = &["name", "tool", "toolName", "tool_name"];
pub(in crate::acp) const TOOL_INPUT: &[&str] =
    &["rawInput", "raw_input", "input", "args", "arguments", "params"];
pub(in crate::acp) const TOOL_OUTPUT: &[&str] = &["rawOutput", "raw_output", "output", "result"];

pub(in crate::acp) const TOOL_KINDS: Table = &[
    ("write", "edit"),
    ("create", "edit"),
    ("patch", "edit"),
    ("remove", "delete"),
    ("rename", "move"),
    ("grep", "search"),
    ("glob", "search"),
    ("find", "search"),
    ("bash", "execute"),
    ("shell", "execute"),
    ("command", "execute"),
    ("terminal", "execute"),
    ("run", "execute"),
    ("thinking", "think"),
    ("web", "fetch"),
    ("web_search", "fetch"),
    ("plan", "switch_mode"),
];

/// Substrings of a tool's name that imply its kind, in order of precedence.
pub(in crate::acp) const TOOL_NAME_KINDS: Table = &[
    ("todo", "think"),
    ("bash", "execute"),
    ("shell", "execute"),
    ("exec", "execute"),
    ("command", "execute"),
    ("terminal", "execute"),
    ("web", "fetch"),
    ("fetch", "fetch"),
    ("grep", "search"),
    ("glob", "search"),
    ("search", "search"),
    ("find", "search"),
    ("edit", "edit"),
    ("write", "edit"),
    ("patch", "edit"),
    ("replace", "edit"),
    ("delete", "delete"),
    ("remove", "delete"),
    ("rename", "move"),
    ("move", "move"),
    ("read", "read"),
    ("view", "read"),
    ("list", "read"),
    ("think", "think"),
    ("task", "think"),
];

pub(in crate::acp) const TOOL_STATUS: Table = &[
    ("queued", "pending"),
    ("waiting", "pending"),
    ("running", "in_progress"),
    ("started", "in_progress"),
    ("active", "in_progress"),
    ("success", "completed"),
    ("succeeded", "completed"),
    ("done", "completed"),
    ("complete", "completed"),
    ("finished", "completed"),
    ("ok", "completed"),
    ("error", "failed"),
    ("errored", "failed"),
    ("failure", "failed"),
    ("rejected", "failed"),
    ("denied", "failed"),
    ("canceled", "cancelled"),
    ("aborted", "cancelled"),
    ("interrupted", "cancelled"),
];

pub(in crate::acp) const PLAN_STATUS: Table = &[
    ("todo", "pending"),
    ("open", "pending"),
    ("queued", "pending"),
    ("running", "in_progress"),
    ("active", "in_progress"),
    ("current", "in_progress"),
    ("doing", "in_progress"),
    ("started", "in_progress"),
    ("done", "completed"),
    ("complete", "completed"),
    ("finished", "completed"),
    ("success", "completed"),
    ("skipped", "completed"),
    ("cancelled", "completed"),
    ("canceled", "completed"),
];

pub(in crate::acp) const PLAN_PRIORITY: Table = &[
    ("critical", "high"),
    ("urgent", "high"),
    ("normal", "medium"),
    ("default", "medium"),
    ("minor", "low"),
];

pub(in crate::acp) const STOP_REASONS: Table = &[
    ("stop", "end_turn"),
    ("done", "end_turn"),
    ("end", "end_turn"),
    ("complete", "end_turn"),
    ("completed", "end_turn"),
    ("finished", "end_turn"),
    ("success", "end_turn"),
    ("length", "max_tokens"),
    ("max_token", "max_tokens"),
    ("max_turns", "max_turn_requests"),
    ("max_requests", "max_turn_requests"),
    ("refused", "refusal"),
    ("canceled", "cancelled"),
    ("cancel", "cancelled"),
    ("aborted", "cancelled"),
    ("interrupted", "cancelled"),
];

pub(in crate::acp) const PERMISSION_KINDS: Table = &[
    ("allow", "allow_once"),
    ("approve", "allow_once"),
    ("accept", "allow_once"),
    ("yes", "allow_once"),
    ("allow_session", "allow_always"),
    ("allow_for_session", "allow_always"),
    ("always_allow", "allow_always"),
    ("approve_always", "allow_always"),
    ("reject", "reject_once"),
    ("deny", "reject_once"),
    ("decline", "reject_once"),
    ("no", "reject_once"),
    ("cancel", "reject_once"),
    ("deny_always", "reject_always"),
    ("always_reject", "reject_always"),
    ("always_deny", "reject_always"),
];

/// The official name of a word; a word that is not in the table is assumed to be official. Case, dashes and spaces do
/// not matter: `inProgress` and `In Progress` become `in_progress`.
pub(in crate::acp) fn official(table: Table, word: &str) -> String {
    let word = snake(word);
    table.iter().find(|(other, _)| *other == word).map_or(word, |(_, name)| (*name).to_owned())
}

pub(in crate::acp) fn kind_of_tool(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    TOOL_NAME_KINDS.iter().find(|(part, _)| name.contains(part)).map(|(_, kind)| *kind)
}

/// Splits a title that begins with a tool name, such as `ReadFile: a.rs` or `Shell`.
pub(in crate::acp) fn head_of_title(title: &str) -> Option<(&str, &str)> {
    let (head, rest) = title.split_once(": ").unwrap_or((title, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (!head.is_empty() && head.chars().all(is_name)).then_some((head, rest))
}

fn snake(word: &str) -> String {
    let mut snake = String::with_capacity(word.len() + 2);
    let mut follows_small = false;
    for letter in word.trim().chars() {
        match letter {
            '-' | ' ' | '_' => snake.push('_'),
            _ if letter.is_uppercase() => {
                if follows_small {
                    snake.push('_');
                }
                snake.extend(letter.to_lowercase());
            }
            _ => snake.push(letter),
        }
        follows_small = letter.is_lowercase() || letter.is_ascii_digit();
    }
    snake
}

/// The start of a line that reports a changed mode in the agent's text. Source: gemini, after "allow for this session".
pub(in crate::acp) const MODE_LINE: &str = "[MODE_UPDATE] ";

/// Removes such lines from a text and returns their modes.
pub(in crate::acp) fn take_modes(text: &mut String) -> Vec<String> {
    let mut modes = Vec::new();
    if text.contains(MODE_LINE) {
        let mode_of = |line: &str| {
            let word = line.trim().strip_prefix(MODE_LINE)?;
            let is_id = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-');
            (!word.is_empty() && word.chars().all(is_id)).then(|| word.to_owned())
        };
        let lines = text.split_inclusive('\n').filter(|line| {
            let mode = mode_of(line);
            let is_text = mode.is_none();
            modes.extend(mode);
            is_text
        });
        *text = lines.collect();
    }
    modes
}

/// Whether a user message is a placeholder for the result of a tool call, which is sent separately. Source: gemini
/// replays `[Function Response: NAME]` for each of its calls, usually after them; live sessions do not have it.
pub(in crate::acp) fn is_result_of_call(text: &str) -> bool {
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
        .map(|name| kind_of_tool(name).unwrap_or("none"));
        let wanted = [
            "execute", "read", "edit", "edit", "search", "search", "fetch", "fetch", "think", "think",
            "think",
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
            for (other, name) in table {
                assert_ne!(other, name);
                assert_eq!(official(table, name), *name, "{other} maps to another synonym");
            }
        }
    }
}
