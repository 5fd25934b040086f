//! Cells: the appearance of transcript items.
//!
//! Lays an item out in pieces that can be drawn separately (`cells::layout`), and provides parts of tool calls to
//! dialogs. `transcript` decides which pieces are on the screen. `cells::tool` applies the folding rules. All text
//! passes through `text::sanitize` or the terminal emulator.

use std::collections::HashSet;

use crate::ui::text::{Line, Span};

use crate::core::ToolCall;
use crate::model::{AccessRecord, CHANGES_MAX, ContentBlock, FileDiff, Target, ToolKind, byte_size};

use super::diff::cache::Placed;
use super::picture::{self, base64_bytes};
use super::render_context::RenderContext;
use super::text::copy_hint::Mark;
use super::text::{self, boundary_before, sanitize, wrap_line, wrap_prefixed};
use super::theme::Role;

mod body;
mod failure_summary;
mod file_status;
pub(crate) mod layout;
mod message;
mod other;
mod output;
mod tool;
mod turn_end;
pub(crate) mod unlisted_input;

pub(crate) use body::{ToolBody, diffs_of, is_in_command};
pub(crate) use file_status::{counts_line, diff_head};
pub(crate) use tool::{comparing, indent, is_asked_first, is_groupable, title};

/// Maximum number of lines of raw JSON that are shown.
const RAW_LINES_MAX: usize = 40;

/// Bytes that are shown of a text expected to be short.
const SHORT_BYTES: usize = 16 * 1024;

pub fn kind_word(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "run",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "mode",
        ToolKind::Other => "tool",
    }
}

pub(crate) fn changes_of(tool: &ToolCall) -> Vec<&FileDiff> {
    let mut seen = HashSet::new();
    tool.diffs().filter(|change| seen.insert(*change)).take(CHANGES_MAX).collect()
}

/// The number of changes of a tool call that are not shown.
pub(crate) fn hidden_changes(tool: &ToolCall) -> usize {
    let count = tool.diffs().count();
    if count <= CHANGES_MAX {
        0
    } else {
        tool.diffs().collect::<HashSet<_>>().len().saturating_sub(CHANGES_MAX)
    }
}

/// Who allowed the accesses through parlor, and the folder and variables of commands.
pub(crate) fn access_lines(tool: &ToolCall, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for access in &tool.accesses {
        lines.extend(plain_lines(&access.description(), Role::TextDim, render, cols));
        lines.extend(access_details(access, render, cols));
    }
    lines
}

/// Commands run through parlor for a call that does not show them.
pub(crate) fn hidden_commands(tool: &ToolCall, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
    let commands = tool.accesses.iter().filter_map(AccessRecord::command);
    let unlisted = commands.filter(|command| tool.input.command.as_ref() != Some(&command.line));
    unlisted
        .flat_map(|command| plain_lines(&format!("$ {}", command.line), Role::TextDim, render, cols))
        .collect()
}

/// The folder and variables of a command, where they are not the default.
fn access_details(access: &AccessRecord, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
    let Some(command) = access.command() else { return Vec::new() };
    let mut lines = Vec::new();
    if command.cwd != render.folder {
        let text = format!("in {}", render.path(&command.cwd));
        lines.extend(plain_lines(&text, Role::TextDim, render, cols));
    }
    for (name, value) in &command.env {
        lines.extend(plain_lines(&format!("with {name}={value}"), Role::TextDim, render, cols));
    }
    lines
}

pub(crate) fn placed<'t>(tool: &'t ToolCall, changes: &[&'t FileDiff]) -> Vec<Placed<'t>> {
    changes.iter().map(|change| (*change, tool.position_of(change))).collect()
}

pub(crate) fn plain_lines(
    text: &str,
    role: Role,
    render: &RenderContext<'_>,
    cols: u16,
) -> Vec<Line<'static>> {
    exact_lines(text.trim_end_matches(['\n', '\r']), role, render, cols)
}

/// The start of an error or a note, and how much of a very long one is omitted.
pub(crate) fn short_lines(
    text: &str,
    role: Role,
    render: &RenderContext<'_>,
    cols: u16,
) -> Vec<Line<'static>> {
    let head = head_of(text);
    let mut lines = plain_lines(head, role, render, cols);
    if head.len() < text.len() {
        let left = byte_size((text.len() - head.len()) as u64);
        let count_text = format!("{} {left} more", render.glyphs.fold);
        lines.push(Mark::NO_LINE.row(Line::styled(count_text, render.theme.style(Role::TextDim))));
    }
    lines
}

/// The start of a text expected to be short.
fn head_of(text: &str) -> &str {
    text.get(..boundary_before(text, SHORT_BYTES)).unwrap_or_default()
}

pub(crate) fn exact_lines(
    text: &str,
    role: Role,
    render: &RenderContext<'_>,
    cols: u16,
) -> Vec<Line<'static>> {
    let style = render.theme.style(role);
    let text = sanitize(text);
    let mut out = Vec::new();
    for line in text.split('\n') {
        let mut spans = Vec::new();
        text::tabbed(line, 0, text::TAB_COLS, style, &mut spans);
        let spans = text::link::linkify(spans, render.folder);
        out.extend(wrap_line(&Line::from(spans), cols));
    }
    out
}

/// JSON that parlor does not parse, unchanged and dimmed.
pub(crate) fn raw_lines(raw: &str, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
    let room = usize::from(cols) * RAW_LINES_MAX * 4;
    let end = boundary_before(raw, room);
    let mut lines = plain_lines(raw.get(..end).unwrap_or_default(), Role::RawItem, render, cols);
    if lines.len() > RAW_LINES_MAX || end < raw.len() {
        lines.truncate(RAW_LINES_MAX);
        lines.push(Line::styled(render.glyphs.ellipsis, render.theme.style(Role::RawItem)));
    }
    lines
}

/// A complete content block: text as Markdown, anything else as a description.
pub(crate) fn block_lines(block: &ContentBlock, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
    match block {
        ContentBlock::Text(text) => {
            let mut markdown = super::markdown::Markdown::of(text);
            let mut out = Vec::new();
            for index in 0..markdown.blocks().len() {
                if markdown.blocks().get(index).is_some_and(|block| block.has_gap) {
                    out.push(Line::default());
                }
                out.extend(markdown.draw(index, text, render, cols));
            }
            out
        }
        ContentBlock::Image { data, mime_type, uri } => {
            picture::lines(data, mime_type, uri.as_deref().unwrap_or_default(), render, cols)
        }
        ContentBlock::Audio { data, mime_type } => {
            vec![media_line("sound", mime_type, base64_bytes(data), "", render, cols)]
        }
        ContentBlock::ResourceLink(link) => {
            let name = link.title.as_deref().unwrap_or(&link.name);
            // A link that cannot be opened is not styled as one.
            let target = Target::of_link(&link.uri);
            let role = if target.is_some() { Role::Link } else { Role::TextStrong };
            let number = target.map_or(0, |target| text::link::number_of(&target, render.folder));
            let name = Span::styled(text::one_line(name), render.theme.style(role));
            let mut spans = vec![name.linked(number)];
            let mut more = vec![text::one_line(&link.uri)];
            more.extend(link.mime_type.as_deref().map(text::one_line));
            more.extend(link.size_bytes.map(byte_size));
            let dot = render.glyphs.dot;
            let text = format!(" {dot} {}", more.join(&format!(" {dot} ")));
            let more = Span::styled(text, render.theme.style(Role::TextDim));
            spans.extend(text::link::linkify(vec![more], render.folder));
            let mut lines = wrap_prefixed(&Line::from(spans), cols, &[], &[Span::raw("  ")]);
            if let Some(description) = &link.description {
                lines.extend(plain_lines(description, Role::TextDim, render, cols));
            }
            lines
        }
        ContentBlock::Resource { uri, mime_type, body } => {
            let kind = mime_type.as_deref().unwrap_or("text");
            match body {
                crate::model::ResourceBody::Text(text) => {
                    let mut lines = vec![resource_line(uri, mime_type.as_deref(), text, render, cols)];
                    lines.extend(plain_lines(text, Role::TextDim, render, cols));
                    lines
                }
                crate::model::ResourceBody::Blob(data) if kind.starts_with("image/") => {
                    picture::lines(data, kind, uri, render, cols)
                }
                crate::model::ResourceBody::Blob(data) => {
                    vec![media_line("resource", kind, base64_bytes(data), uri, render, cols)]
                }
            }
        }
        ContentBlock::Unknown(raw) => raw_lines(&raw.0, render, cols),
    }
}

/// The line above the text of a resource.
pub(crate) fn resource_line(
    uri: &str,
    kind: Option<&str>,
    text: &str,
    render: &RenderContext<'_>,
    cols: u16,
) -> Line<'static> {
    match Target::of_link(uri) {
        Some(Target::File(position)) => {
            let text = format!(
                "{} {} {}",
                render.path(&position.path),
                render.glyphs.dot,
                byte_size(text.len() as u64)
            );
            Line::styled(text::truncate(&text, usize::from(cols)), render.theme.style(Role::TextDim))
        }
        _ => media_line("resource", kind.unwrap_or("text"), text.len() as u64, uri, render, cols),
    }
}

/// A placeholder for non-text content: kind, media type and size, name.
fn media_line(
    what: &str,
    kind: &str,
    bytes: u64,
    name: &str,
    render: &RenderContext<'_>,
    cols: u16,
) -> Line<'static> {
    let dot = render.glyphs.dot;
    let name = if name.is_empty() { String::new() } else { format!(" {dot} {}", text::one_line(name)) };
    let kind = text::one_line(kind);
    let text = format!("{what} {dot} {kind} {dot} {}{name}", byte_size(bytes));
    Line::styled(text::truncate(&text, usize::from(cols)), render.theme.style(Role::TextDim))
}

#[cfg(test)]
mod tests;
