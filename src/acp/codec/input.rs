//! Finds well-known values in the raw input of a tool call, whose keys differ between agents.
//!
//! Invariant: values found here never replace values from official fields.

use std::path::PathBuf;

use serde_json::Value;

use crate::model::input_keys::{COMMAND, CWD, DESCRIPTION, NEW, OLD, PATCH, PATH, QUERY, SHELLS, URL, WHOLE};
use crate::model::{Body, DiffChange, FileDiff, ToolInput, ToolKind};

use super::patches;
use super::value::{Object, first, first_text, items};

const EDITS: &[&str] = &["edits", "replacements", "changes"];
const COMMANDS: &[&str] = &["commands", "cmds"];
const FILES: &[&str] = &["files", "paths", "file_paths", "filePaths"];
const EDITOR_WORDS: &[&str] = &["view", "create", "str_replace", "insert", "undo_edit"];

/// Finds the values. `has_diff`: the content already contains the change.
pub fn read(raw: &Value, kind: Option<ToolKind>, has_diff: bool) -> ToolInput {
    let mut facts = ToolInput::default();
    match raw {
        Value::Object(object) => read_object(object, kind, has_diff, &mut facts),
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            // Some agents send the arguments as JSON in a string.
            Ok(Value::Object(object)) => read_object(&object, kind, has_diff, &mut facts),
            _ if patches::is_patch(text) && !has_diff => facts.diffs = patches::split(text, None),
            _ if kind == Some(ToolKind::Execute) => facts.command = Some(text.clone()),
            _ => {}
        },
        Value::Array(items) if kind == Some(ToolKind::Execute) => facts.command = command_of_list(items),
        _ => {}
    }
    facts
}

fn read_object(object: &Object, kind: Option<ToolKind>, has_diff: bool, facts: &mut ToolInput) {
    facts.command = command(object);
    let is_command = facts.command.is_some();
    facts.cwd = if is_command { first_text(object, CWD).map(PathBuf::from) } else { None };
    facts.path = if is_command { None } else { first_text(object, PATH).map(PathBuf::from) };
    if let (None, [only]) = (&facts.path, files(object).as_slice()) {
        facts.path = Some(only.clone());
    }
    facts.query = if is_command { None } else { first_text(object, QUERY) };
    facts.url = first_text(object, URL).filter(|url| url.contains("://") && !url.starts_with("file:"));
    facts.description = first_text(object, DESCRIPTION);
    if !has_diff {
        facts.diffs = diffs(object, kind);
        if facts.path.is_none()
            && let [only] = facts.diffs.as_slice()
        {
            facts.path = Some(only.path.clone());
        }
    }
    if !facts.diffs.is_empty() {
        // The search text is then the old text of an edit, and `command` may hold the patch.
        facts.query = None;
        if facts.command.as_deref().is_some_and(patches::is_patch) {
            facts.command = None;
        }
    }
}

pub fn files(object: &Object) -> Vec<PathBuf> {
    let path = |item: &Value| match item {
        Value::Object(item) => first_text(item, PATH),
        item => item.as_str().map(str::to_owned),
    };
    items(first(object, FILES)).filter_map(path).map(PathBuf::from).collect()
}

fn command(object: &Object) -> Option<String> {
    if let Some(Value::Array(lines)) = first(object, COMMANDS) {
        let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
        return (!lines.is_empty()).then(|| lines.join("\n"));
    }
    match first(object, COMMAND)? {
        Value::String(line) if line.is_empty() => None,
        Value::String(line) if EDITOR_WORDS.contains(&line.as_str()) && first(object, PATH).is_some() => None,
        Value::String(line) => match object.get("args").and_then(Value::as_array) {
            Some(args) if !args.is_empty() => {
                let parts = std::iter::once(line.as_str()).chain(args.iter().filter_map(Value::as_str));
                Some(shell_words::join(parts))
            }
            _ => Some(line.clone()),
        },
        Value::Array(items) => command_of_list(items),
        _ => None,
    }
}

/// `["bash", "-lc", "make test"]` becomes `make test`; other lists are quoted for a shell.
fn command_of_list(items: &[Value]) -> Option<String> {
    let parts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
    match parts.as_slice() {
        [] => None,
        [shell, "-c" | "-lc" | "-ic", line]
            if SHELLS.contains(&shell.rsplit('/').next().unwrap_or(shell)) =>
        {
            Some((*line).to_owned())
        }
        parts => Some(shell_words::join(parts)),
    }
}

fn diffs(object: &Object, kind: Option<ToolKind>) -> Vec<FileDiff> {
    let path = first_text(object, PATH);
    let mut named = PATCH.iter().chain(COMMAND).filter_map(|key| object.get(*key)?.as_str());
    let whole = named.find(|text| patches::is_patch(text) || (path.is_some() && text.starts_with("@@")));
    // `["apply_patch", "*** Begin Patch…"]`
    let mut parts = items(first(object, COMMAND)).filter_map(Value::as_str);
    if let Some(text) = whole.or_else(|| parts.find(|word| patches::is_patch(word))) {
        return patches::split(text, path.as_deref());
    }
    if let Some(Value::Object(changes)) = object.get("changes") {
        return changes.iter().filter_map(|(path, change)| change_of(path, change)).collect();
    }
    let Some(path) = path else { return Vec::new() };
    if let Some(diff) = replacement(&path, object) {
        return vec![diff];
    }
    if let Some(Value::Array(edits)) = first(object, EDITS) {
        return edits.iter().filter_map(|edit| replacement(&path, edit.as_object()?)).collect();
    }
    let may_write = matches!(kind, None | Some(ToolKind::Edit | ToolKind::Other));
    match first_string(object, WHOLE) {
        Some(text) if may_write => vec![texts(&path, None, text)],
        _ => Vec::new(),
    }
}

fn replacement(path: &str, object: &Object) -> Option<FileDiff> {
    let (old, new) = (first_string(object, OLD)?, first_string(object, NEW)?);
    Some(texts(path, (!old.is_empty()).then_some(old), new))
}

/// Decodes a row of `changes: {PATH: {type, content | unified_diff}}`.
fn change_of(path: &str, change: &Value) -> Option<FileDiff> {
    let change = change.as_object()?;
    let string = |keys: &[&str]| first_string(change, keys);
    if let Some(patch) = string(&["unified_diff", "diff", "patch"]) {
        return Some(FileDiff { path: path.into(), change: DiffChange::Patch(patch.into()) });
    }
    let text = string(&["content", "new_content"])?;
    match string(&["type"]) {
        Some("delete") => Some(texts(path, Some(text), "")),
        _ => Some(texts(path, string(&["old_content"]), text)),
    }
}

fn first_string<'a>(object: &'a Object, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| object.get(*key)?.as_str())
}

fn texts(path: &str, old: Option<&str>, new: &str) -> FileDiff {
    FileDiff { path: path.into(), change: DiffChange::Texts { old: old.map(Body::from), new: new.into() } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts(raw: &Value) -> ToolInput {
        read(raw, None, false)
    }

    #[test]
    fn commands_are_strings_or_lists() {
        let line = facts(&json!({"command": "make test", "cwd": "/w", "description": "Run the tests"}));
        assert_eq!(line.command.as_deref(), Some("make test"));
        assert_eq!(line.cwd, Some("/w".into()));
        assert_eq!(line.description.as_deref(), Some("Run the tests"));
        assert_eq!(
            facts(&json!({"command": ["/bin/bash", "-lc", "ls | wc"]})).command.as_deref(),
            Some("ls | wc")
        );
        assert_eq!(facts(&json!({"cmd": ["git", "log", "a b"]})).command.as_deref(), Some("git log 'a b'"));
        assert_eq!(
            facts(&json!({"command": "git", "args": ["status"]})).command.as_deref(),
            Some("git status")
        );
        assert_eq!(read(&json!("ls"), Some(ToolKind::Execute), false).command.as_deref(), Some("ls"));
    }

    #[test]
    fn lists_of_commands_and_files_are_decoded() {
        assert_eq!(facts(&json!({"commands": ["make", "ls"]})).command.as_deref(), Some("make\nls"));
        assert_eq!(facts(&json!({"commands": []})).command, None);
        let several = json!({"files": [{"path": "/w/a"}, "/w/b", 3]});
        assert_eq!(files(several.as_object().unwrap()), [PathBuf::from("/w/a"), "/w/b".into()]);
        assert_eq!(facts(&several).path, None);
        assert_eq!(facts(&json!({"files": [{"path": "/w/a"}]})).path, Some("/w/a".into()));
    }

    #[test]
    fn paths_queries_and_urls_are_found_under_common_keys() {
        for key in ["path", "file_path", "filePath", "absolute_path", "target_file", "notebook_path"] {
            assert_eq!(facts(&json!({key: "/w/a.rs"})).path, Some("/w/a.rs".into()), "{key}");
        }
        let search = facts(&json!({"pattern": "fn main", "path": "/w/src"}));
        assert_eq!(search.query.as_deref(), Some("fn main"));
        assert_eq!(search.path, Some("/w/src".into()));
        assert_eq!(
            facts(&json!({"url": "https://example.org/x"})).url.as_deref(),
            Some("https://example.org/x")
        );
        assert_eq!(facts(&json!({"uri": "file:///w/a"})).url, None);
    }

    #[test]
    fn changes_are_found_in_the_input() {
        let whole = facts(&json!({"file_path": "/w/n.txt", "content": "new\n"}));
        assert_eq!(whole.diffs, [texts("/w/n.txt", None, "new\n")]);
        let snippet =
            facts(&json!({"path": "/w/n.txt", "old_str": "a", "new_str": "b", "command": "str_replace"}));
        assert_eq!(snippet.diffs, [texts("/w/n.txt", Some("a"), "b")]);
        assert_eq!(snippet.command, None);
        let several = facts(&json!({"file_path": "/w/n", "edits": [
            {"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": ""}]}));
        assert_eq!(several.diffs, [texts("/w/n", Some("a"), "b"), texts("/w/n", Some("c"), "")]);
        let patch =
            facts(&json!({"input": "*** Begin Patch\n*** Update File: x.rs\n@@\n-a\n+b\n*** End Patch"}));
        assert_eq!(patch.path, Some("x.rs".into()));
        assert_eq!(patch.diffs.len(), 1);
        let changes = facts(&json!({"changes": {
            "/w/a": {"type": "add", "content": "1"},
            "/w/b": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-1\n+2\n", "move_path": null},
            "/w/c": {"type": "delete", "content": "gone"}}}));
        assert_eq!(changes.diffs.len(), 3);
        assert_eq!(changes.diffs.last(), Some(&texts("/w/c", Some("gone"), "")));
    }

    #[test]
    fn read_tools_and_existing_diffs_yield_no_change() {
        let raw = json!({"path": "/w/n.txt", "content": "text"});
        assert!(read(&raw, Some(ToolKind::Read), false).diffs.is_empty());
        assert!(read(&raw, Some(ToolKind::Edit), true).diffs.is_empty());
        assert_eq!(facts(&json!({})), ToolInput::default());
        assert_eq!(facts(&json!("{\"path\": \"/w/")), ToolInput::default());
    }
}
