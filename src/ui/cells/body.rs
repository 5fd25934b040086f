//! The content of a tool call in a dialog: the whole command, the whole change, and other content, as lines.
//!
//! `dialogs::permission` draws the rest of the dialog.
//! Invariant: only the visible lines of a long change are drawn.

use std::ops::Range;

use crate::ui::text::{Line, Span};

use crate::core::state::duplicate_diffs::KnownChanges;
use crate::core::{Session, ToolCall};
use crate::model::{
    AccessRecord, COMMAND_MAX_BYTES, ContentBlock, PlanBody, ResourceBody, ToolContent, ToolKind,
    WriteChange, approved_lines, command_in_title,
};
use crate::ui::diff::cache::{self, Diffs, Shown};
use crate::ui::diff::{Diff, FileStatus, Pages};
use crate::ui::render_context::RenderContext;
use crate::ui::text::copy_hint::Mark;
use crate::ui::text::{reveal_line, wrap_whole};
use crate::ui::theme::Role;

use super::unlisted_input::{TEXT_BYTES, UnlistedInput, VALUE_BYTES, text_lines};
use super::{block_lines, changes_of, file_status, hidden_changes, output, placed, tool};

/// The changes of a tool call; `None` while they are being compared. Cached.
pub(crate) fn diffs_of(tool: &ToolCall) -> Option<Diffs> {
    cache::diffs(&placed(tool, &changes_of(tool)), &Shown::default())
}

/// The variables of a command run through parlor, and the size of a write that is too large to be shown.
fn variable_lines(access: &AccessRecord, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
    let variables = access.command().into_iter().flat_map(|command| &command.env);
    let mut texts: Vec<String> =
        variables.map(|(name, value)| reveal_line(&format!("with {name}={value}"))).collect();
    if let Some(WriteChange { diff: None, size_bytes, .. }) = &access.change {
        texts.push(format!("{size_bytes} bytes, too large to display"));
    }
    texts.iter().flat_map(|text| text_lines(text, Role::Text, TEXT_BYTES, render, cols)).collect()
}

/// Lines that are drawn on demand.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolBody {
    parts: Vec<Part>,
    /// Whether the texts are still being compared.
    pub is_coming: bool,
    /// The first line with a change.
    pub first_change: Option<usize>,
    /// The names of the listed input values; may be empty.
    pub names: String,
    /// Whether the title is one of its parts, because it would not be shown whole elsewhere.
    pub shows_title: bool,
}

/// Whether the head of a dialog would show only a part of a call's title. A title that may be approved as a command has
/// to fit one row of a small screen.
fn has_long_title(tool: &ToolCall) -> bool {
    const ROW_BYTES: usize = 36;
    let may_be_command = matches!(tool.kind, ToolKind::Execute | ToolKind::Other);
    let rows = if may_be_command { 1 } else { 3 };
    let title = tool.title.trim();
    title.len() > rows * ROW_BYTES || title.contains(['\n', '\t']) || title.contains("  ")
}

/// Whether the command, which is shown whole, contains the title; agents shorten it.
pub(crate) fn is_in_command(tool: &ToolCall) -> bool {
    let title = tool.title.trim().trim_matches('`').trim_end_matches(['.', '…']);
    tool.input.command.as_ref().is_some_and(|command| command.contains(title))
}

/// Maximum number of lines of listed values above a change.
const LISTED_ABOVE: usize = 6;

/// A complete command, with hidden characters marked.
fn command_lines(command: &str, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
    const LEAD: u16 = 2;
    let dim = render.theme.style(Role::TextDim);
    let mut lines =
        text_lines(command, Role::Strong, COMMAND_MAX_BYTES, render, cols.saturating_sub(LEAD).max(4));
    for (index, line) in lines.iter_mut().enumerate() {
        line.spans.insert(0, Mark::APART.span(if index == 0 { "$ " } else { "  " }, dim));
    }
    lines
}

/// A content block for review: plain text, and the address of a link beside its name.
fn judged_lines(
    block: &ContentBlock,
    max_bytes: usize,
    render: &RenderContext<'_>,
    cols: u16,
) -> Vec<Line<'static>> {
    let text = |text: &str, role| text_lines(text, role, max_bytes, render, cols);
    match block {
        ContentBlock::Text(source) => text(source, Role::Text),
        ContentBlock::ResourceLink(link) => {
            let mut lines = text(link.title.as_deref().unwrap_or(&link.name), Role::TextStrong);
            lines.extend(text(&link.uri, Role::Link));
            lines.extend(link.description.iter().flat_map(|about| text(about, Role::TextDim)));
            lines
        }
        ContentBlock::Resource { uri, body: ResourceBody::Text(source), .. } => {
            let mut lines = text(uri, Role::Link);
            lines.extend(text(source, Role::TextDim));
            lines
        }
        ContentBlock::Unknown(raw) => text(&raw.0, Role::RawItem),
        ContentBlock::Image { uri, .. } => {
            let mut lines = uri.iter().flat_map(|uri| text(uri, Role::Link)).collect::<Vec<_>>();
            lines.extend(block_lines(block, render, cols));
            lines
        }
        ContentBlock::Resource { uri, body: ResourceBody::Blob(_), .. } => {
            let mut lines = text(uri, Role::Link);
            lines.extend(block_lines(block, render, cols));
            lines
        }
        ContentBlock::Audio { .. } => block_lines(block, render, cols),
    }
}

#[derive(Debug, Clone)]
enum Part {
    Lines(Vec<Line<'static>>),
    Diff { diffs: Diffs, index: usize, pages: Pages },
}

impl From<Vec<Line<'static>>> for ToolBody {
    fn from(lines: Vec<Line<'static>>) -> Self {
        Self { parts: vec![Part::Lines(lines)], ..Self::default() }
    }
}

impl ToolBody {
    /// The content of a tool call in a permission dialog: the recognized parts of its input, its changes and other
    /// content, and all other input values by name. Text of the agent is plain, with hidden characters marked. Every
    /// line fits `cols`.
    pub fn of(tool: &ToolCall, session: &Session, render: &RenderContext<'_>, cols: u16) -> Self {
        let mut this = Self::default();
        let mut lines = Vec::new();
        let in_title = command_in_title(tool.kind, &tool.title, &tool.content, &tool.input);
        this.shows_title = in_title.is_some();
        if !this.shows_title && has_long_title(tool) && !is_in_command(tool) {
            this.shows_title = true;
            // A command stays last, because its end has to be seen.
            let max_bytes = if tool.input.command.is_some() { VALUE_BYTES } else { TEXT_BYTES };
            lines.extend(text_lines(&tool.title, Role::Text, max_bytes, render, cols));
        }
        if let Some(command) = tool.input.command.as_ref().or(in_title.as_ref()) {
            lines.extend(command_lines(command, render, cols));
            if let Some(cwd) = &tool.input.cwd {
                let text = format!("in {}", render.exact_path(cwd));
                lines.extend(wrap_whole(&Line::styled(text, render.theme.style(Role::TextDim)), cols));
            }
        }
        if let Some(description) = &tool.input.description {
            lines.extend(text_lines(description, Role::TextDim, TEXT_BYTES, render, cols));
        }
        for access in &tool.accesses {
            lines.extend(variable_lines(access, render, cols));
        }
        this.push(std::mem::take(&mut lines));
        let known = KnownChanges::new(render.folder, changes_of(tool).into_iter());
        let unlisted = UnlistedInput::of(tool, &known);
        let listed = unlisted.lines(render, cols);
        // A few values go above a change; many would push it away.
        let is_short = listed.len() <= LISTED_ABOVE;
        if is_short {
            this.push(listed.clone());
        }
        if let Some(diffs) = diffs_of(tool) {
            this.add_diffs(&diffs, tool.kind, render, cols);
        } else {
            this.is_coming = true;
            this.push(vec![tool::comparing(render)]);
        }
        match hidden_changes(tool) {
            0 => {}
            hidden => {
                let text = format!("{} {hidden} more changes. They are not approved.", render.glyphs.warn);
                this.push(wrap_whole(&Line::styled(text, render.theme.style(Role::Warning)), cols));
            }
        }
        if !is_short {
            this.push(listed);
        }
        let is_command = !approved_lines(tool.kind, &tool.title, &tool.content, &tool.input).is_empty();
        let max_bytes = if is_command { COMMAND_MAX_BYTES } else { TEXT_BYTES };
        for content in &tool.content {
            match content {
                // The command is shown above.
                ToolContent::Block(ContentBlock::Text(text)) if output::is_command(tool, text) => {}
                ToolContent::Block(ContentBlock::Text(text)) if known.repeats(text) => {}
                ToolContent::Block(block) => lines.extend(judged_lines(block, max_bytes, render, cols)),
                ToolContent::Terminal(id) => {
                    if let Some(view) = session.terminals.get(id) {
                        let tail = crate::ui::terminal::tail_of(&view.output, view.is_ours, 200).0;
                        lines.extend(output::rows(tail, render, cols));
                    }
                }
                ToolContent::Unknown(raw) => {
                    lines.extend(text_lines(&raw.0, Role::RawItem, TEXT_BYTES, render, cols));
                }
                ToolContent::Diff(_) => {}
            }
        }
        if !session.asked_plans(tool).is_empty() {
            lines.push(Line::styled("Plan of the session:", render.theme.style(Role::TextDim)));
        }
        for plan in session.asked_plans(tool) {
            let texts: Vec<&str> = match &plan.body {
                PlanBody::Entries(steps) => steps.iter().map(|step| step.content.as_str()).collect(),
                PlanBody::Markdown(text) | PlanBody::File(text) => vec![text],
            };
            let lead = if matches!(plan.body, PlanBody::Entries(_)) { 2 } else { 0 };
            for text in texts {
                let mut step =
                    text_lines(text, Role::Text, TEXT_BYTES, render, cols.saturating_sub(lead).max(4));
                for (row, line) in step.iter_mut().enumerate().filter(|_| lead > 0) {
                    let mark = if row == 0 { render.glyphs.dot } else { " " };
                    line.spans.insert(0, Span::styled(format!("{mark} "), render.theme.style(Role::TextDim)));
                }
                lines.extend(step);
            }
        }
        this.push(lines);
        // Values at the top are visible, unless the dialog begins at a change.
        if !unlisted.is_empty() && (!is_short || this.first_change.is_some()) {
            this.names = unlisted.names();
        }
        this
    }

    /// The same, comparing changes synchronously.
    pub fn whole(tool: &ToolCall, session: &Session, render: &RenderContext<'_>, cols: u16) -> Self {
        cache::compute_now(&placed(tool, &changes_of(tool)), &Shown::default());
        Self::of(tool, session, render, cols)
    }

    fn push(&mut self, lines: Vec<Line<'static>>) {
        if !lines.is_empty() {
            self.parts.push(Part::Lines(lines));
        }
    }

    fn add_diffs(&mut self, diffs: &Diffs, kind: ToolKind, render: &RenderContext<'_>, cols: u16) {
        // The head of the dialog already describes the change of the only file.
        let is_reported_above = |diff: &Diff| {
            let is_plain = diff.is_text && diff.status != FileStatus::Binary && diff.moved_from.is_none();
            kind == ToolKind::Edit && diffs.len() == 1 && is_plain
        };
        for (index, diff) in diffs.iter().enumerate() {
            let columns = diff.layout(render.diff_layout, cols);
            if diffs.len() > 1 || (file_status::needs_head(diff) && !is_reported_above(diff)) {
                self.push(file_status::whole_head(diff, render, cols));
            }
            if !diff.is_empty() {
                let pages = Pages::of(diff, columns, cols, true);
                if self.first_change.is_none() {
                    let row = diff.hunks(columns).first().copied();
                    self.first_change = row.map(|row| self.len() + pages.line_of(row));
                }
                self.parts.push(Part::Diff { diffs: Diffs::clone(diffs), index, pages });
            }
        }
    }

    pub fn len(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }

    pub fn lines(&mut self, range: Range<usize>, render: &RenderContext<'_>) -> Vec<Line<'static>> {
        let mut out = Vec::new();
        let mut begin = 0;
        for part in &mut self.parts {
            let len = part.len();
            let from = range.start.max(begin);
            let to = range.end.min(begin + len);
            if from < to {
                out.extend(part.lines(from - begin..to - begin, render));
            }
            begin += len;
        }
        out
    }
}

impl Part {
    fn len(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.len(),
            Self::Diff { pages, .. } => pages.len(),
        }
    }

    fn lines(&mut self, range: Range<usize>, render: &RenderContext<'_>) -> Vec<Line<'static>> {
        match self {
            Self::Lines(lines) => lines.get(range).unwrap_or_default().to_vec(),
            Self::Diff { diffs, index, pages } => {
                diffs.get(*index).map(|diff| pages.lines(diff, range, render)).unwrap_or_default()
            }
        }
    }
}
