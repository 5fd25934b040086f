//! Decodes tool calls: announcements, updates, and the call in a permission request.
//!
//! Produces one patch per message, with values found in the raw input, raw output and `_meta`; `app` merges it with
//! the call. ACP v1 tool-calls: in an update, absent and `null` mean unchanged; `content` and `locations` replace.
//! Invariant: unknown content is shown raw; unknown keys are stored in `extra`.

use std::path::PathBuf;

use serde_json::Value;

use crate::model::{
    AgentEvent, ContentBlock, DiffChange, FileDiff, Growing, Location, Patch, ToolCallId, ToolCallPatch,
    ToolContent, ToolStatus,
};

use super::content;
use super::names::{
    TOOL_ID, TOOL_INPUT, TOOL_KINDS, TOOL_NAME, TOOL_OUTPUT, TOOL_STATUS, kind_of_tool, official,
};
use super::quirks::{Quirk, Quirks};
use super::value::{
    Object, fill, first, first_text, items, list, raw, rename, report_lost, take, take_text, typed, whole,
};
use super::{input, names, output, patches, terminals, wrappers};

/// Decodes a tool call. `fallback`: the id of a call without one.
pub fn decode(
    mut call: Object,
    is_announcement: bool,
    fallback: ToolCallId,
    quirks: &mut Quirks,
    out: &mut Vec<AgentEvent>,
) -> ToolCallPatch {
    let id = take_text(&mut call, TOOL_ID).map_or(fallback, ToolCallId::from);
    let mut patch = ToolCallPatch::new(id);
    patch.is_announcement = is_announcement;

    decode_head(&mut call, &mut patch);
    patch.can_cancel = can_cancel(&call);
    if let Some(items) = take(&mut call, &["content"]) {
        patch.content = Patch::Set(decode_content(items, quirks, out));
    }
    if let Some(items) = take(&mut call, &["locations", "location"]) {
        patch.locations = Patch::Set(decode_locations(items, out));
    }
    decode_input(&mut call, &mut patch);
    decode_output(&mut call, &mut patch);
    decode_meta(&mut call, &mut patch);
    if !quirks.is_strict() {
        wrappers::readable_title(&mut patch);
    }
    if is_announcement || quirks.has(Quirk::NoToolKinds) {
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

/// Whether a call or a terminal can be stopped separately. Source: ACP v2 tool-calls, `capabilities.cancel`.
pub fn can_cancel(reported: &Object) -> Patch<bool> {
    match reported.get("capabilities") {
        None => Patch::Keep,
        Some(Value::Object(can)) => Patch::Set(can.get("cancel").is_some_and(Value::is_object)),
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
    let has_diff = patch
        .content
        .as_set()
        .is_some_and(|content| content.iter().any(|item| matches!(item, ToolContent::Diff(_))));
    let kind = patch.kind.as_set().copied();
    patch.input = Patch::Set(input::read(&value, kind, has_diff));
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
    patch.output_text = Patch::from_option(output::text(&value).map(Growing::from));
    patch.exit_code = Patch::from_option(output::exit_code(&value));
    if patch.status == Patch::Set(ToolStatus::Completed) && output::is_failure(&value) {
        patch.status = Patch::Set(ToolStatus::Failed);
    }
    patch.raw_output = Patch::Set(raw(&value));
}

/// Decodes the parent, terminals and tool name in `_meta`; the rest of `_meta` is stored in `extra`.
fn decode_meta(call: &mut Object, patch: &mut ToolCallPatch) {
    let Some(Value::Object(meta)) = call.get_mut("_meta") else { return };
    patch.terminals = terminals::take_news(meta, &patch.id);
    for news in &patch.terminals {
        if let crate::model::AgentTerminal::Exit { status, .. } = news
            && let Some(code) = status.code
        {
            patch.exit_code = Patch::Set(code);
        }
    }
    if let Some(Value::Object(claude)) = meta.get_mut("claudeCode") {
        patch.parent = take_text(claude, &["parentToolUseId"]).map(ToolCallId::from);
        if patch.name == Patch::Keep
            && let Some(name) = claude.get("toolName").and_then(Value::as_str)
        {
            patch.name = Patch::Set(name.to_owned());
        }
    }
    if patch.parent.is_none() {
        let keys = &["parentToolCallId", "parentToolUseId", "parent_tool_call_id"];
        patch.parent = take_text(meta, keys).map(ToolCallId::from);
    }
    if patch.exit_code == Patch::Keep {
        let code = meta.get("exit_code").or_else(|| meta.get("exitCode")).and_then(whole);
        patch.exit_code = Patch::from_option(code.and_then(|code| i32::try_from(code).ok()));
    }
    if meta.is_empty() {
        call.shift_remove("_meta");
    }
}

/// Adds the kind if the name or the start of the title implies one.
fn guess_kind(patch: &mut ToolCallPatch) {
    let of_title = || names::head_of_title(patch.title.as_set()?).map(|(head, _)| head);
    if patch.kind == Patch::Keep
        && let Some(kind) = patch.name.as_set().map(String::as_str).or_else(of_title).and_then(kind_of_tool)
    {
        patch.kind = Patch::Set(kind);
    }
}

pub fn decode_content(items: Value, quirks: &mut Quirks, out: &mut Vec<AgentEvent>) -> Vec<ToolContent> {
    let items = list(items);
    let total = items.len();
    let mut unknown = 0;
    let content: Vec<ToolContent> = items
        .into_iter()
        .flat_map(|item| {
            let decoded = decode_item(item, quirks, out);
            unknown += usize::from(decoded.iter().any(is_unknown));
            decoded
        })
        .collect();
    report_lost("content", unknown, total, true, out);
    content
}

fn is_unknown(item: &ToolContent) -> bool {
    matches!(item, ToolContent::Unknown(_) | ToolContent::Block(ContentBlock::Unknown(_)))
}

fn decode_item(item: Value, quirks: &mut Quirks, out: &mut Vec<AgentEvent>) -> Vec<ToolContent> {
    let mut item = match item {
        Value::Object(item) => item,
        Value::String(text) => {
            quirks.learn(Quirk::BareToolContent, out);
            return vec![ToolContent::Block(ContentBlock::Text(text.into()))];
        }
        other => return vec![ToolContent::Unknown(raw(&other))],
    };
    let kind = item.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        "diff" if item.contains_key("changes") => patches::of_changes(item),
        "diff" => decode_diff(item),
        "terminal" => {
            let keys = &["terminalId", "terminal_id", "id"];
            vec![match first_text(&item, keys) {
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
                    quirks.learn(Quirk::BareToolContent, out);
                    vec![ToolContent::Block(block)]
                }
            }
        }
    }
}

/// A diff: two texts, or a unified diff.
fn decode_diff(mut item: Object) -> Vec<ToolContent> {
    rename(&mut item, "path", &["file_path", "filePath", "file"]);
    rename(&mut item, "oldText", &["old_text", "oldString", "old"]);
    rename(&mut item, "newText", &["new_text", "newString", "new"]);
    if !item.get("newText").is_some_and(Value::is_string)
        && let Some(Value::String(text)) = take(&mut item, &["unified_diff", "unifiedDiff", "diff", "patch"])
    {
        let path = item.get("path").and_then(Value::as_str);
        if let Some(path) = path {
            let change = DiffChange::Patch(text.into());
            return vec![ToolContent::Diff(FileDiff { path: PathBuf::from(path), change })];
        }
        let files = patches::split(&text, None);
        if !files.is_empty() {
            return files.into_iter().map(ToolContent::Diff).collect();
        }
        item.insert("diff".to_owned(), text.into());
    }
    if item.get("oldText").is_some_and(Value::is_string) {
        // For a change that empties a file, some agents omit the new text.
        fill(&mut item, "newText", || "".into());
    }
    let string = |key: &str| item.get(key).and_then(Value::as_str);
    let (Some(path), Some(new)) = (string("path"), string("newText")) else {
        return vec![ToolContent::Unknown(raw(&Value::Object(item)))];
    };
    let change = DiffChange::Texts { old: string("oldText").map(Into::into), new: new.into() };
    vec![ToolContent::Diff(FileDiff { path: path.into(), change })]
}

fn decode_locations(locations: Value, out: &mut Vec<AgentEvent>) -> Vec<Location> {
    items(list(locations), "locations", out, |item| match item {
        Value::Object(mut location) => {
            let path = take_text(&mut location, &["path", "file_path", "filePath", "file", "uri"])?;
            let line = first(&location, &["line", "lineNumber", "line_number", "startLine"]);
            let line = line.and_then(|line| u32::try_from(line.as_u64()?).ok());
            Some(Location { path: path.into(), line: line.filter(|line| *line > 0) })
        }
        Value::String(path) => Some(Location { path: path.into(), line: None }),
        _ => None,
    })
}
