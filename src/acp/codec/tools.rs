//! Decodes tool calls: announcements, updates, and the call in a permission request.
//!
//! ACP v1 tool-calls: in an update, absent and `null` mean unchanged; `content` and `locations` replace.
//! Codex, pi and Claude send the output of their commands only in `_meta`, as `terminal_info`, `terminal_output` (or
//! `terminal_output_delta`) and `terminal_exit`.
//! Invariant: unknown content is shown raw; unknown keys are stored in `extra`.

use serde_json::Value;

use crate::model::{
    AgentTerminal, ContentBlock, DiffChange, ExitInfo, FileDiff, Growing, Location, Patch, TerminalId,
    ToolCallId, ToolCallPatch, ToolContent, ToolStatus,
};

use super::content;
use super::decoder::Decoder;
use super::names::{
    TOOL_ID, TOOL_INPUT, TOOL_KINDS, TOOL_NAME, TOOL_OUTPUT, TOOL_STATUS, kind_of_tool, official,
};
use super::quirks::Quirk;
use super::value::{
    Object, first, first_text, list, object_with, raw, take, take_list, take_text, typed, whole,
};
use super::{input, names, patches, wrappers};

/// Decodes a tool call. `id`: that of a call without one.
pub fn decode(mut call: Object, is_announcement: bool, id: String, decoder: &mut Decoder) -> ToolCallPatch {
    let mut patch = ToolCallPatch::new(take_text(&mut call, TOOL_ID).unwrap_or(id).into());
    patch.is_announcement = is_announcement;

    decode_head(&mut call, &mut patch);
    patch.can_cancel = can_cancel(&call);
    if let Some(items) = take(&mut call, &["content"]) {
        patch.content = Patch::Set(decode_content(items, decoder));
    }
    if let Some(items) = take(&mut call, &["locations", "location"]) {
        patch.locations = Patch::Set(decode_locations(items, decoder));
    }
    decode_input(&mut call, &mut patch);
    decode_output(&mut call, &mut patch);
    decode_meta(&mut call, &mut patch);
    if !decoder.quirks.is_strict {
        wrappers::readable_title(&mut patch);
    }
    if is_announcement || decoder.quirks.has(Quirk::NO_TOOL_KINDS) {
        guess_kind(&mut patch);
    }
    if is_announcement && patch.title == Patch::Keep {
        let title = patch.name.as_set().cloned().unwrap_or_else(|| patch.id.as_str().to_owned());
        patch.title = Patch::Set(title);
    }

    call.retain(|_, value| !value.is_null());
    if !call.is_empty() {
        patch.extra = Some(raw(&Value::Object(call)));
    }
    patch
}

/// Whether a call, a terminal or a subagent can be stopped separately. Source: ACP v2 tool-calls, `capabilities.cancel`.
pub fn can_cancel(reported: &Object) -> Patch<bool> {
    match reported.get("capabilities") {
        None => Patch::Keep,
        Some(Value::Object(can)) => {
            Patch::Set(first(can, &["cancel"]).is_some_and(|marker| *marker != Value::Bool(false)))
        }
        Some(_) => Patch::Clear,
    }
}

fn decode_head(call: &mut Object, patch: &mut ToolCallPatch) {
    patch.title = Patch::from_option(take_text(call, &["title"]));
    patch.name = Patch::from_option(take_text(call, TOOL_NAME));
    let kind = take_text(call, &["kind"]).map(|word| official(TOOL_KINDS, &word));
    patch.kind = Patch::from_option(kind.map(|word| typed(word.into()).unwrap_or_default()));
    if let Some(word) = take_text(call, &["status"]) {
        match typed(official(TOOL_STATUS, &word).into()) {
            Ok(status) => patch.status = Patch::Set(status),
            Err(_) => {
                call.insert("status".to_owned(), word.into());
            }
        }
    }
}

fn decode_input(call: &mut Object, patch: &mut ToolCallPatch) {
    let Some(value) = take(call, TOOL_INPUT) else { return };
    let mut content = patch.content.as_set().into_iter().flatten();
    let has_diff = content.any(|item| matches!(item, ToolContent::Diff(_)));
    patch.input = Patch::Set(input::read(&value, patch.kind.as_set().copied(), has_diff));
    if patch.locations == Patch::Keep
        && let Some(object) = value.as_object()
        && let files @ [_, _, ..] = input::files(object).as_slice()
    {
        let positions = files.iter().map(|path| Location { path: path.clone(), line: None });
        patch.locations = Patch::Set(positions.collect());
    }
    patch.raw_input = Patch::Set(raw(&value));
}

fn decode_output(call: &mut Object, patch: &mut ToolCallPatch) {
    let Some(value) = take(call, TOOL_OUTPUT) else { return };
    patch.output_text = Patch::from_option(output_text(&value).map(Growing::from));
    patch.exit_code = Patch::from_option(exit_code(&value));
    if patch.status == Patch::Set(ToolStatus::Completed) && is_failure(&value) {
        patch.status = Patch::Set(ToolStatus::Failed);
    }
    patch.raw_output = Patch::Set(raw(&value));
}

/// Decodes the parent, terminals and tool name in `_meta`; the rest of `_meta` is stored in `extra`.
fn decode_meta(call: &mut Object, patch: &mut ToolCallPatch) {
    let Some(Value::Object(meta)) = call.get_mut("_meta") else { return };
    patch.terminals = take_terminals(meta, &patch.id);
    for news in &patch.terminals {
        if let AgentTerminal::Exit { status: ExitInfo { code: Some(code), .. }, .. } = news {
            patch.exit_code = Patch::Set(*code);
        }
    }
    if let Some(Value::Object(claude)) = meta.get_mut("claudeCode") {
        patch.parent = take_text(claude, &["parentToolUseId"]).map(ToolCallId::from);
        if patch.name == Patch::Keep {
            patch.name =
                Patch::from_option(claude.get("toolName").and_then(Value::as_str).map(str::to_owned));
        }
    }
    if patch.exit_code == Patch::Keep {
        patch.exit_code = Patch::from_option(first_code(meta, &["exit_code", "exitCode"]));
    }
    if meta.is_empty() {
        call.shift_remove("_meta");
    }
}

fn guess_kind(patch: &mut ToolCallPatch) {
    let of_title = || names::head_of_title(patch.title.as_set()?).map(|(head, _)| head);
    if patch.kind == Patch::Keep
        && let Some(kind) = patch.name.as_set().map(String::as_str).or_else(of_title).and_then(kind_of_tool)
    {
        patch.kind = Patch::Set(kind);
    }
}

pub fn decode_content(items: Value, decoder: &mut Decoder) -> Vec<ToolContent> {
    let items = list(items);
    let total = items.len();
    let mut unknown = 0;
    let mut content = Vec::new();
    for item in items {
        let decoded = decode_item(item, decoder);
        let is_unknown = |item: &ToolContent| {
            matches!(item, ToolContent::Unknown(_) | ToolContent::Block(ContentBlock::Unknown(_)))
        };
        unknown += usize::from(decoded.iter().any(is_unknown));
        content.extend(decoded);
    }
    decoder.report_lost("content", unknown, total, true);
    content
}

fn decode_item(item: Value, decoder: &mut Decoder) -> Vec<ToolContent> {
    let mut item = match item {
        Value::Object(item) => item,
        Value::String(text) => {
            decoder.learn(Quirk::BARE_TOOL_CONTENT);
            return vec![ToolContent::Block(ContentBlock::Text(text.into()))];
        }
        other => return vec![ToolContent::Unknown(raw(&other))],
    };
    let kind = item.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        "diff" if item.contains_key("changes") => patches::of_changes(item),
        "diff" => vec![match decode_diff(&item) {
            Some(diff) => ToolContent::Diff(diff),
            None => ToolContent::Unknown(raw(&Value::Object(item))),
        }],
        "terminal" => {
            vec![match first_text(&item, TERMINAL_ID) {
                Some(id) => ToolContent::Terminal(id.into()),
                None => ToolContent::Unknown(raw(&Value::Object(item))),
            }]
        }
        "content" => match take(&mut item, &["content"]) {
            // Some agents send a list of blocks.
            Some(inner) => content::decode_many(inner).into_iter().map(ToolContent::Block).collect(),
            None => vec![ToolContent::Unknown(raw(&Value::Object(item)))],
        },
        kind => {
            let is_bare = content::BLOCK_TYPES.contains(&kind);
            match content::decode(Value::Object(item)) {
                ContentBlock::Unknown(raw) if !is_bare => vec![ToolContent::Unknown(raw)],
                block => {
                    decoder.learn(Quirk::BARE_TOOL_CONTENT);
                    vec![ToolContent::Block(block)]
                }
            }
        }
    }
}

fn decode_diff(item: &Object) -> Option<FileDiff> {
    let string = |key: &str| item.get(key).and_then(Value::as_str);
    let path = string("path")?.into();
    let (old, new) = (string("oldText"), string("newText"));
    let patch = || ["unified_diff", "diff", "patch"].iter().find_map(|key| string(key));
    let change = match new.is_none().then(patch).flatten() {
        Some(patch) => DiffChange::Patch(patch.into()),
        // For a change that empties a file, some agents omit the new text.
        None => DiffChange::Texts { old: old.map(Into::into), new: new.or(old.and(Some("")))?.into() },
    };
    Some(FileDiff { path, change })
}

fn decode_locations(locations: Value, decoder: &mut Decoder) -> Vec<Location> {
    decoder.items(list(locations), "locations", |item| {
        let mut location = object_with(item, "path")?;
        let path = take_text(&mut location, &["path", "file_path", "filePath", "file", "uri"])?;
        let line = first(&location, &["line", "lineNumber", "line_number", "startLine"]);
        let line = line.and_then(|line| u32::try_from(line.as_u64()?).ok());
        Some(Location { path: path.into(), line: line.filter(|line| *line > 0) })
    })
}

const TERMINAL_ID: &[&str] = &["terminal_id", "terminalId", "id"];
const TERMINAL_EVENTS: [&str; 4] =
    ["terminal_info", "terminal_output", "terminal_output_delta", "terminal_exit"];

/// Removes the terminal events from `_meta`. A row without an id belongs to the call's own terminal.
fn take_terminals(meta: &mut Object, call: &ToolCallId) -> Vec<AgentTerminal> {
    let mut news = Vec::new();
    for name in TERMINAL_EVENTS {
        for row in take_list(meta, &[name]) {
            let Some(row) = object_with(row, "data") else { continue };
            let id = first_text(&row, TERMINAL_ID).map_or(TerminalId(call.0.clone()), TerminalId::from);
            let text = |keys: &[&str]| first_text(&row, keys);
            news.extend(match name {
                "terminal_info" => Some(AgentTerminal::Info { id, cwd: text(&["cwd"]).map(Into::into) }),
                "terminal_exit" => Some(AgentTerminal::Exit { id, status: exit_info(&row) }),
                _ => text(&["data", "output", "delta"]).map(|data| AgentTerminal::Output { id, data }),
            });
        }
    }
    news
}

pub fn exit_info(row: &Object) -> ExitInfo {
    ExitInfo { code: first_code(row, &["exit_code", "exitCode"]), signal: first_text(row, &["signal"]) }
}

fn first_code(object: &Object, keys: &[&str]) -> Option<i32> {
    i32::try_from(keys.iter().filter_map(|key| object.get(*key)).find_map(whole)?).ok()
}

/// Keys of the output text, in order of preference.
const OUTPUT_TEXT: &[&str] =
    &["formatted_output", "aggregated_output", "output", "text", "content", "result", "message", "error"];
const EXIT_CODE: &[&str] =
    &["exit_code", "exitCode", "exit_status", "exitStatus", "returncode", "returnCode", "exit"];
const MAX_DEPTH: u8 = 4;

/// The text of an output: a string, the text under a common key, or the texts of a list of blocks.
pub fn output_text(output: &Value) -> Option<String> {
    text_within(output, MAX_DEPTH).filter(|text| !text.is_empty())
}

fn text_within(output: &Value, depth: u8) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match output {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().filter_map(|item| text_within(item, depth)).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        Value::Object(object) => {
            let found = |key: &&str| text_within(object.get(*key)?, depth).filter(|text| !text.is_empty());
            // The two streams take precedence over `output`, which may only be a summary of them.
            let (whole, rest) = OUTPUT_TEXT.split_at(2);
            whole.iter().find_map(found).or_else(|| streams(object)).or_else(|| rest.iter().find_map(found))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn streams(object: &Object) -> Option<String> {
    let stream = |key: &str| object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (stream("stdout"), stream("stderr")) {
        (None, None) => None,
        (Some(only), None) | (None, Some(only)) => Some(only.to_owned()),
        (Some(out), Some(err)) if out.ends_with('\n') => Some(format!("{out}{err}")),
        (Some(out), Some(err)) => Some(format!("{out}\n{err}")),
    }
}

fn exit_code(output: &Value) -> Option<i32> {
    let object = output.as_object()?;
    first_code(object, EXIT_CODE).or_else(|| {
        let parts = ["metadata", "exitStatus", "exit_status"];
        parts.iter().find_map(|key| first_code(object.get(*key)?.as_object()?, EXIT_CODE))
    })
}

/// Whether the output reports a failure, regardless of the call's status.
fn is_failure(output: &Value) -> bool {
    if let Value::Array(parts) = output {
        return !parts.is_empty() && parts.iter().all(is_failure);
    }
    let Some(object) = output.as_object() else { return false };
    let has_error = object.get("error").is_some_and(|error| match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
    object.get("success") == Some(&Value::Bool(false)) && has_error
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_found_under_common_keys() {
        for (output, expected) in [
            (json!("plain"), Some("plain")),
            (json!({"stdout": "a\n", "stderr": "b"}), Some("a\nb")),
            (json!({"stdout": "a", "stderr": "b", "output": "short"}), Some("a\nb")),
            (json!({"formatted_output": "f", "stdout": "raw"}), Some("f")),
            (json!({"formatted_output": "", "aggregated_output": "agg"}), Some("agg")),
            (json!({"output": {"text": "deep"}}), Some("deep")),
            (json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]), Some("one\ntwo")),
            (json!([{"type": "content", "content": {"type": "text", "text": "in"}}]), Some("in")),
            (json!({"error": {"message": "bad"}, "success": false}), Some("bad")),
            (json!({"exit_code": 0}), None),
            (json!({"stdout": "", "stderr": ""}), None),
            (json!(null), None),
        ] {
            assert_eq!(output_text(&output).as_deref(), expected, "{output}");
        }
    }

    #[test]
    fn exit_codes_and_failures_are_found_in_the_output() {
        assert_eq!(exit_code(&json!({"exit_code": 3})), Some(3));
        assert_eq!(exit_code(&json!({"exitCode": "1"})), Some(1));
        assert_eq!(exit_code(&json!({"output": "x", "metadata": {"exit": 2}})), Some(2));
        assert_eq!(exit_code(&json!({"exitStatus": {"exitCode": 7}})), Some(7));
        assert_eq!(exit_code(&json!("exit_code 3")), None);
        assert!(is_failure(&json!({"success": false, "error": "no such file"})));
        assert!(!is_failure(&json!({"success": true, "error": null})));
        let failed = json!({"success": false, "error": "exit code 3"});
        assert!(is_failure(&json!([failed])));
        assert!(!is_failure(&json!([failed, {"success": true}])) && !is_failure(&json!([])));
    }
}
