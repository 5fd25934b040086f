//! Cells: how items of the transcript look.
//!
//! Duty: turns an item into pieces that can be drawn one by one (`cells::layout`), and offers what dialogs need
//! of a tool call. Not its duty: which pieces are on the screen, and keeping them (`transcript`).
//! Rules of folding live in `cells::tool`. All text goes through `text::sanitize` or the terminal emulator.

use std::cell::RefCell;
use std::rc::Rc;

use ratatui::text::{Line, Span};

use crate::app::repeats::repeats;
use crate::app::{Item, Session, ToolCall};
use crate::model::{ContentBlock, DiffChange, DiffPlace, FileDiff, Gap, ToolContent, ToolKind};

use super::diff::{Diff, Fate, Layout as DiffColumns};
use super::look::{Look, with_commas};
use super::picture::{self, base64_bytes};
use super::text::{sanitize, wrap_line, wrap_prefixed};
use super::theme::Role;

pub(crate) mod layout;
mod message;
mod other;
mod output;
mod tool;

pub(crate) use tool::{diff_head, is_groupable, title};

/// Most lines of raw JSON that are shown.
const RAW_LINES_MAX: usize = 40;

/// Diffs of this many tool calls are kept for dialogs.
const MEMO_MAX: usize = 4;

/// The word for a kind.
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

/// Lines that a tool call adds and removes. Cheap when asked again.
pub fn diff_counts(tool: &ToolCall) -> (usize, usize) {
    diffs_of(tool).iter().fold((0, 0), |sum, diff| (sum.0 + diff.added, sum.1 + diff.removed))
}

/// What the only change of a tool call does to its file; `None` if there are more, or none.
pub fn sole_fate(tool: &ToolCall) -> Option<Fate> {
    match diffs_of(tool).as_slice() {
        [only] => Some(only.fate),
        _ => None,
    }
}

/// All that a permission dialog should show of a tool call: the whole command, the whole change, other content;
/// the input as it came when there is nothing else. Every line fits `cols`.
pub fn tool_body(tool: &ToolCall, session: &Session, look: &Look<'_>, cols: u16) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    if let Some(command) = &tool.input.command {
        out.extend(tool::command_lines(command, look, cols));
        if let Some(cwd) = &tool.input.cwd {
            let text = format!("in {}", super::text::show_path(cwd, look.folder));
            out.extend(wrap_line(&Line::styled(text, look.theme.style(Role::TextDim)), cols));
        }
    }
    if let Some(description) = &tool.input.description {
        out.extend(plain_lines(description, Role::TextDim, look, cols));
    }
    let diffs = diffs_of(tool);
    if !diffs.is_empty() {
        // The dialog of an edit says above it what happens to the only file.
        let is_told_above = tool.kind == ToolKind::Edit && diffs.len() == 1;
        out.extend(drawn_diffs(&diffs, is_told_above, look, cols));
    }
    for content in &tool.content {
        match content {
            // The command stands above already.
            ToolContent::Block(ContentBlock::Text(text)) if output::is_command(tool, text) => {}
            ToolContent::Block(ContentBlock::Text(text)) if repeats(text, tool.diffs()) => {}
            ToolContent::Block(block) => out.extend(block_lines(block, look, cols)),
            ToolContent::Terminal(id) => {
                if let Some(view) = session.terminals.get(id) {
                    let lines = super::terminal::tail_of(&view.output, view.is_ours, 200).0;
                    out.extend(tool::output_rows(lines, look, cols));
                }
            }
            ToolContent::Unknown(raw) => out.extend(raw_lines(&raw.0, look, cols)),
            ToolContent::Diff(_) => {}
        }
    }
    if out.is_empty() {
        for url in tool.input.url.iter().chain(&tool.input.query) {
            out.extend(plain_lines(url, Role::Text, look, cols));
        }
    }
    if out.is_empty()
        && let Some(raw) = &tool.raw_input
    {
        out.extend(raw_lines(&raw.0, look, cols));
    }
    out
}

/// What tells two lists of changes apart without reading them: where their texts lie, in memory and in the
/// file.
pub(crate) type DiffKey = (Shown, Vec<([usize; 4], Option<DiffPlace>)>);

/// Which unchanged lines of changes are shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shown {
    /// All of them.
    pub is_whole: bool,
    /// Those of these gaps.
    pub gaps: Vec<Gap>,
}

impl Shown {
    /// What the user wants to see of an item's changes.
    pub fn of(item: &Item) -> Self {
        Self { is_whole: item.shows_context, gaps: item.open_gaps.clone() }
    }
}

pub(crate) fn diff_key(tool: &ToolCall, changes: &[&FileDiff], shown: Shown) -> DiffKey {
    let place = |text: &str| (text.as_ptr() as usize, text.len());
    let of = |change: &&FileDiff| {
        let (a, b) = match &change.change {
            DiffChange::Texts { old, new } => (old.as_deref().map_or((0, 0), place), place(new)),
            DiffChange::Patch(text) => (place(text), (0, 0)),
        };
        ([a.0, a.1, b.0, b.1], tool.place_of(change).cloned())
    };
    (shown, changes.iter().map(of).collect())
}

/// The changes that a tool call tells: in its content, else in its input; the same one only once.
pub(crate) fn changes_of(tool: &ToolCall) -> Vec<&FileDiff> {
    let mut changes: Vec<&FileDiff> = Vec::new();
    let told = tool.content.iter().filter_map(|content| match content {
        ToolContent::Diff(diff) => Some(diff),
        _ => None,
    });
    for change in told {
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    if changes.is_empty() {
        changes.extend(&tool.input.diffs);
    }
    changes
}

/// The changes of a call, ready to be drawn.
pub(crate) fn compute(tool: &ToolCall, changes: &[&FileDiff], shown: &Shown) -> Vec<Diff> {
    let mut out: Vec<Diff> = Vec::new();
    for change in changes {
        let place = tool.place_of(change);
        let index = u32::try_from(out.len()).unwrap_or(u32::MAX);
        let of_this = shown.gaps.iter().filter(|gap| gap.change == index);
        let open: Vec<u32> = of_this.map(|gap| gap.line).collect();
        out.extend(if shown.is_whole {
            Diff::of_whole(change, place)
        } else {
            Diff::of_open(change, place, &open)
        });
    }
    out
}

type Memo = Vec<(DiffKey, Rc<Vec<Diff>>)>;

thread_local! {
    static MEMO: RefCell<Memo> = const { RefCell::new(Vec::new()) };
}

/// The computed changes of a tool call. Kept for the last few calls; a kept diff holds the texts that its key
/// points to, so no other text can lie at the same place.
fn diffs_of(tool: &ToolCall) -> Rc<Vec<Diff>> {
    let changes = changes_of(tool);
    let key = diff_key(tool, &changes, Shown::default());
    MEMO.with_borrow_mut(|memo| {
        if let Some((_, known)) = memo.iter().find(|(known, _)| *known == key) {
            return Rc::clone(known);
        }
        let diffs = Rc::new(compute(tool, &changes, &Shown::default()));
        if memo.len() >= MEMO_MAX {
            memo.remove(0);
        }
        memo.push((key, Rc::clone(&diffs)));
        diffs
    })
}

/// Most rows of a change that a dialog draws; it says how many it leaves out.
const DIALOG_MOST_ROWS: usize = 20_000;

/// Whole changes, as far as a dialog can show them.
fn drawn_diffs(diffs: &[Diff], is_told_above: bool, look: &Look<'_>, cols: u16) -> Vec<Line<'static>> {
    let columns = DiffColumns::choose(look.diff_layout, cols);
    let mut lines = Vec::new();
    let mut left = DIALOG_MOST_ROWS;
    for diff in diffs {
        let is_plain = diff.fate != Fate::Binary && diff.moved_from.is_none();
        if diffs.len() > 1 || (tool::needs_head(diff) && !(is_told_above && is_plain)) {
            lines.push(tool::diff_head(diff, look, cols));
        }
        let rows = diff.len(columns);
        if rows <= left {
            lines.extend(diff.draw_all(columns, look, cols));
        } else {
            lines.extend(diff.draw(0..left, columns, look, cols));
            let more = format!("{} {} more lines", look.glyphs.fold, with_commas(rows - left));
            lines.push(Line::styled(more, look.theme.style(Role::Warning)));
        }
        left = left.saturating_sub(rows);
    }
    lines
}

/// Plain text with its own line breaks, in one style.
pub(crate) fn plain_lines(text: &str, role: Role, look: &Look<'_>, cols: u16) -> Vec<Line<'static>> {
    exact_lines(text.trim_end_matches(['\n', '\r']), role, look, cols)
}

/// The same with the blank lines at its end.
pub(crate) fn exact_lines(text: &str, role: Role, look: &Look<'_>, cols: u16) -> Vec<Line<'static>> {
    let style = look.theme.style(role);
    let text = sanitize(text);
    let mut out = Vec::new();
    for line in text.split('\n') {
        let line = super::text::expand_tabs(line, 0);
        let spans = super::text::link::linkify(vec![Span::styled(line.into_owned(), style)], look.folder);
        out.extend(wrap_line(&Line::from(spans), cols));
    }
    out
}

/// JSON that parlor does not read, as it came, grey.
pub(crate) fn raw_lines(raw: &str, look: &Look<'_>, cols: u16) -> Vec<Line<'static>> {
    let room = usize::from(cols) * RAW_LINES_MAX * 4;
    let end = (0..=room.min(raw.len())).rev().find(|at| raw.is_char_boundary(*at)).unwrap_or(0);
    let mut lines = plain_lines(raw.get(..end).unwrap_or_default(), Role::RawItem, look, cols);
    if lines.len() > RAW_LINES_MAX || end < raw.len() {
        lines.truncate(RAW_LINES_MAX);
        lines.push(Line::styled(look.glyphs.ellipsis, look.theme.style(Role::RawItem)));
    }
    lines
}

/// A content block that is drawn in whole: text as Markdown, anything else as what it is.
pub(crate) fn block_lines(block: &ContentBlock, look: &Look<'_>, cols: u16) -> Vec<Line<'static>> {
    match block {
        ContentBlock::Text(text) => {
            let mut markdown = super::markdown::Markdown::of(text);
            let mut out = Vec::new();
            for index in 0..markdown.blocks().len() {
                if markdown.blocks().get(index).is_some_and(|block| block.has_gap) {
                    out.push(Line::default());
                }
                out.extend(markdown.draw(index, text, look, cols));
            }
            out
        }
        ContentBlock::Image { data, mime_type, uri } => {
            picture::lines(data, mime_type, uri.as_deref().unwrap_or_default(), look, cols)
        }
        ContentBlock::Audio { data, mime_type } => {
            vec![media_line("sound", mime_type, base64_bytes(data), "", look, cols)]
        }
        ContentBlock::ResourceLink(link) => {
            let name = link.title.as_deref().unwrap_or(&link.name);
            let mut spans = vec![Span::styled(super::text::one_line(name), look.theme.style(Role::Link))];
            let mut more = vec![super::text::one_line(&link.uri)];
            more.extend(link.mime_type.as_deref().map(super::text::one_line));
            more.extend(link.size_bytes.map(super::look::size));
            let dot = look.glyphs.dot;
            let text = format!(" {dot} {}", more.join(&format!(" {dot} ")));
            spans.push(Span::styled(text, look.theme.style(Role::TextDim)));
            let mut lines = wrap_prefixed(&Line::from(spans), cols, &[], &[Span::raw("  ")]);
            if let Some(description) = &link.description {
                lines.extend(plain_lines(description, Role::TextDim, look, cols));
            }
            lines
        }
        ContentBlock::Resource { uri, mime_type, body } => {
            let kind = mime_type.as_deref().unwrap_or("text");
            match body {
                crate::model::ResourceBody::Text(text) => {
                    let mut lines = vec![media_line("resource", kind, text.len() as u64, uri, look, cols)];
                    lines.extend(plain_lines(text, Role::TextDim, look, cols));
                    lines
                }
                crate::model::ResourceBody::Blob(data) if kind.starts_with("image/") => {
                    picture::lines(data, kind, uri, look, cols)
                }
                crate::model::ResourceBody::Blob(data) => {
                    vec![media_line("resource", kind, base64_bytes(data), uri, look, cols)]
                }
            }
        }
        ContentBlock::Unknown(raw) => raw_lines(&raw.0, look, cols),
    }
}

/// A placeholder for what cannot be shown as text: what it is, its type and size, its name.
fn media_line(what: &str, kind: &str, bytes: u64, name: &str, look: &Look<'_>, cols: u16) -> Line<'static> {
    let dot = look.glyphs.dot;
    let name =
        if name.is_empty() { String::new() } else { format!(" {dot} {}", super::text::one_line(name)) };
    let kind = super::text::one_line(kind);
    let text = format!("{what} {dot} {kind} {dot} {}{name}", super::look::size(bytes));
    Line::styled(super::text::truncate(&text, usize::from(cols)), look.theme.style(Role::TextDim))
}

#[cfg(test)]
mod tests;
