//! The layout of one item: pieces whose heights are known once drawn, drawn on demand.
//!
//! A long message consists of many pieces (its blocks), a long diff too, so that only the visible ones are drawn.
//! Pieces contain no text: they refer to the item. Heights stay when drawn lines are dropped.

use std::collections::HashMap;
use std::ops::Range;

use ratatui::style::Style;

use crate::core::{Item, ItemBody, MessagePart, Session, TurnEnd};
use crate::model::{ContentBlock, Gap, ResourceBody, TerminalId, ToolContent};
use crate::ui::diff::cache::{Diffs, Key};
use crate::ui::diff::{Layout as DiffColumns, counts_of};
use crate::ui::markdown::Markdown;
use crate::ui::picture;
use crate::ui::render_context::RenderContext;
use crate::ui::session_view::SessionView;
use crate::ui::terminal::Screen;
use crate::ui::text::Line;
use crate::ui::text::copy_hint::Mark;
use crate::ui::theme::Role;

use super::turn_end::TurnFacts;
use super::{block_lines, exact_lines, message, other, output, resource_line, tool};

/// Maximum width of an image in a prompt that is not opened. Its description fits.
const THUMBNAIL_COLS: u16 = 32;

const TEXT_PIECE_LINES: usize = 64;

/// Terminal emulators by terminal id.
pub(crate) type Screens = HashMap<TerminalId, Screen>;

pub(crate) struct Context<'a> {
    pub session: &'a Session,
    pub view: &'a SessionView,
    pub render: &'a RenderContext<'a>,
    pub cols: u16,
    pub screens: &'a mut Screens,
}

#[derive(Default)]
pub(crate) struct Layout {
    /// From top to bottom. The first one is the head.
    pub pieces: Vec<LineRun>,
    /// Whether the head shows a clock or a spinner.
    pub is_live: bool,
    /// Columns by which the whole item is indented (a subagent's call).
    pub indent: u16,
    pub(super) texts: Vec<TextPart>,
    /// The revision of the pictures when its pieces were drawn.
    pictures: u64,
    pub(super) diffs: Diffs,
    pub(super) diff_key: Key,
    /// Whether its changes are being compared: to be updated with the next frame.
    pub waits: bool,
    /// Whether the last piece is the end line of a turn.
    has_turn_end: bool,
}

/// A run of lines of an item.
pub(crate) struct LineRun {
    /// Whether a blank line precedes it.
    pub has_gap: bool,
    /// Columns by which it is indented.
    pub indent: u16,
    /// Number of lines, once drawn at this width.
    pub height: Option<usize>,
    pub source: Source,
    /// The drawn lines, while it is near the screen.
    pub lines: Option<Vec<Line<'static>>>,
}

pub(crate) enum Source {
    Ready,
    Markdown {
        text: usize,
        block: usize,
    },
    /// A part of a plain text, ending after a line break or at the end of the text.
    Plain {
        position: usize,
        bytes: Range<usize>,
    },
    /// A part of output or file text.
    Text {
        /// Index into the tool's content, or part of the message; `None`: the tool's output.
        position: Option<usize>,
        bytes: Range<usize>,
        role: Role,
    },
    /// Non-text content.
    Block {
        /// Part of the message, or index into the tool's content.
        position: usize,
    },
    Diff {
        diff: usize,
        rows: Range<usize>,
        columns: DiffColumns,
    },
    Terminal {
        id: TerminalId,
        lines: Range<usize>,
    },
}

/// A Markdown text of the item.
pub(crate) struct TextPart {
    pub markdown: Markdown,
    /// Part of the message, or index into the tool's content.
    pub position: usize,
    /// The style of plain text; `None`: that of the agent's messages.
    pub style: Option<Style>,
}

impl LineRun {
    pub fn ready(lines: Vec<Line<'static>>, indent: u16) -> Self {
        Self { has_gap: false, indent, height: Some(lines.len()), source: Source::Ready, lines: Some(lines) }
    }

    /// A run of lines drawn on demand.
    pub fn lazy(source: Source, indent: u16, has_gap: bool) -> Self {
        Self { has_gap, indent, height: None, source, lines: None }
    }
}

impl Layout {
    /// Updates the layout, reusing texts that only grew and unchanged diffs.
    pub fn update(&mut self, item: &Item, is_same_style: bool, context: &mut Context<'_>) {
        if std::mem::take(&mut self.has_turn_end) {
            self.pieces.pop();
        }
        if !is_same_style {
            self.pieces.clear();
        }
        if self.pictures != picture::rev() {
            self.pictures = picture::rev();
            for piece in self.pieces.iter_mut().filter(|piece| matches!(piece.source, Source::Block { .. })) {
                (piece.height, piece.lines) = (None, None);
            }
        }
        match &item.body {
            ItemBody::Message(message) => message::lay_out(self, item, message, context),
            ItemBody::Tool(tool) => tool::lay_out(self, item, tool, context),
            body => other::lay_out(self, item, body, context),
        }
        self.add_turn_end(item, context);
    }

    /// Adds the end line of the turn, if this is its last item and its head does not contain it.
    fn add_turn_end(&mut self, item: &Item, context: &Context<'_>) {
        let is_bad_end = match &item.body {
            ItemBody::TurnEnd(TurnEnd::Stopped { .. }) => return,
            ItemBody::TurnEnd(_) => true,
            _ => false,
        };
        let Some(end) = &item.end else { return };
        let facts = TurnFacts::of(item, end, context);
        self.waits = facts.waits || (self.waits && matches!(item.body, ItemBody::Tool(_)));
        let Some(summary) = facts.line(context.render, is_bad_end) else { return };
        let line = Mark::NO_LINE.row(Line::styled(summary, context.render.theme.style(Role::TextDim)));
        let mut run = LineRun::ready(vec![line], if is_bad_end { 2 } else { 0 });
        run.has_gap = !is_bad_end;
        self.pieces.push(run);
        self.has_turn_end = true;
    }

    /// Draws the head again, because its clock or spinner changed.
    pub fn refresh_head(&mut self, item: &Item, context: &mut Context<'_>) {
        let line = match &item.body {
            ItemBody::Tool(tool) => {
                let counts = self.counts();
                tool::head(item.id, tool, counts, context, context.cols.saturating_sub(self.indent))
            }
            ItemBody::Message(message) => {
                let is_whole = message::is_whole(item, message, context.view, context.render);
                message::thought_head(
                    message,
                    is_whole,
                    context.render,
                    context.cols.saturating_sub(self.indent),
                )
            }
            body => other::head(body, context),
        };
        if let Some(head) = self.pieces.first_mut() {
            head.lines = Some(vec![line]);
        }
    }

    /// Number of lines added and removed by all diffs.
    pub fn counts(&self) -> (usize, usize) {
        counts_of(&self.diffs)
    }

    /// Rows of a piece with its gap; draws it if they are not known.
    pub fn height(&mut self, index: usize, item: &Item, context: &mut Context<'_>) -> usize {
        if self.pieces.get(index).is_some_and(|piece| piece.height.is_none()) {
            self.draw(index, item, context);
        }
        self.pieces.get(index).map_or(0, |piece| piece.height.unwrap_or(0) + usize::from(piece.has_gap))
    }

    /// Draws the lines of a piece if needed.
    pub fn draw(&mut self, index: usize, item: &Item, context: &mut Context<'_>) {
        let indent = self.indent;
        let Some(piece) = self.pieces.get_mut(index) else { return };
        if piece.lines.is_some() {
            return;
        }
        let cols = context.cols.saturating_sub(indent + piece.indent).max(8);
        let render = context.render;
        let lines = match &piece.source {
            Source::Ready => Vec::new(),
            Source::Markdown { text, block } => match self.texts.get_mut(*text) {
                Some(part) => {
                    let mut lines = part.markdown.draw(*block, text_at(item, part.position), render, cols);
                    if let Some(style) = part.style {
                        restyle(&mut lines, render.theme.style(Role::Agent), style);
                    }
                    lines
                }
                None => Vec::new(),
            },
            Source::Plain { position, bytes } => {
                let text = text_at(item, *position).get(bytes.clone()).unwrap_or_default();
                exact_lines(text.strip_suffix('\n').unwrap_or(text), Role::User, render, cols)
            }
            Source::Text { position, bytes, role } => {
                let text = output_at(item, *position);
                let part = text.get(bytes.clone()).unwrap_or_default();
                let mut lines = match role {
                    Role::Terminal => output::rows(output::text_lines(part), render, cols),
                    _ => exact_lines(part.strip_suffix('\n').unwrap_or(part), *role, render, cols),
                };
                let is_inside = text.get(..bytes.start).is_some_and(|before| !before.ends_with('\n'));
                if let Some(first) = lines.first_mut().filter(|_| bytes.start > 0 && is_inside) {
                    *first = Mark::JOINED.row(std::mem::take(first));
                }
                lines
            }
            Source::Block { position } => {
                match block_at(item, *position) {
                    // Its text has separate pieces.
                    Some(ContentBlock::Resource { uri, mime_type, body: ResourceBody::Text(text) }) => {
                        vec![resource_line(uri, mime_type.as_deref(), text, render, cols)]
                    }
                    Some(block) if block.is_picture() && is_thumbnail(context.view, item) => {
                        block_lines(block, render, cols.min(THUMBNAIL_COLS))
                    }
                    Some(block) => block_lines(block, render, cols),
                    None => Vec::new(),
                }
            }
            Source::Diff { diff, rows, columns } => {
                let diff = self.diffs.get(*diff);
                diff.map(|diff| diff.draw(rows.clone(), *columns, render, cols)).unwrap_or_default()
            }
            Source::Terminal { id, lines } => {
                let screen = context.screens.get(id);
                let lines = screen.map(|screen| screen.history(lines.clone()).cloned().collect());
                output::rows(lines.unwrap_or_default(), render, cols)
            }
        };
        piece.height = Some(lines.len());
        piece.lines = Some(lines);
    }

    /// Number of lines in memory of a piece.
    pub fn built(&self, index: usize) -> usize {
        self.pieces.get(index).and_then(|piece| piece.lines.as_ref()).map_or(0, Vec::len)
    }

    pub fn ready_lines(&self) -> usize {
        let ready = self.pieces.iter().filter(|piece| matches!(piece.source, Source::Ready));
        ready.filter_map(|piece| piece.lines.as_ref()).map(Vec::len).sum()
    }

    pub fn is_gap(&self, piece: usize, line: usize) -> bool {
        let lines = self.pieces.get(piece).and_then(|piece| piece.lines.as_deref());
        lines.and_then(|lines| lines.get(line)).is_some_and(is_gap)
    }

    pub fn gap_at(&self, piece: usize, line: usize) -> Option<Gap> {
        let piece = self.pieces.get(piece)?;
        let lines = piece.lines.as_deref()?;
        let Source::Diff { diff, rows, columns } = &piece.source else { return None };
        let position = lines.get(..line)?.iter().filter(|line| is_gap(line)).count();
        let gaps = self.diffs.get(*diff)?.gaps(rows.clone(), *columns);
        let line = lines.get(line).filter(|line| is_gap(line)).and(gaps.get(position))?;
        Some(Gap { change: u32::try_from(*diff).ok()?, line: *line })
    }

    /// Maximum number of columns by which its tables can be scrolled.
    pub fn sideways(&self) -> u16 {
        self.texts.iter().map(|text| text.markdown.sideways()).max().unwrap_or(0)
    }

    pub fn text(&self, index: usize) -> Option<&TextPart> {
        self.texts.get(index)
    }

    /// Drops the lines of a piece that can be drawn again; its height stays.
    pub fn drop_lines_of(&mut self, index: usize) {
        if let Some(piece) = self.pieces.get_mut(index)
            && !matches!(piece.source, Source::Ready)
        {
            piece.lines = None;
        }
    }

    /// Whether the pieces contain lines of a terminal.
    pub fn has_terminal(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece.source, Source::Terminal { .. }))
    }
}

/// The source of a Markdown text of an item.
fn text_at(item: &Item, position: usize) -> &str {
    match &item.body {
        ItemBody::Message(message) => {
            message.parts.get(position).and_then(MessagePart::text).unwrap_or_default()
        }
        ItemBody::Tool(tool) => match tool.content.get(position) {
            Some(ToolContent::Block(ContentBlock::Text(text))) => text,
            _ => "",
        },
        ItemBody::Compaction { summary, .. } => summary,
        _ => "",
    }
}

fn output_at(item: &Item, position: Option<usize>) -> &str {
    let text = match (&item.body, position) {
        (ItemBody::Tool(tool), None) => tool.output_text.as_deref(),
        (_, Some(position)) => match block_at(item, position) {
            Some(
                ContentBlock::Text(text) | ContentBlock::Resource { body: ResourceBody::Text(text), .. },
            ) => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    };
    text.unwrap_or_default()
}

/// Pieces for a part of a text that starts at `from`.
pub(super) fn text_pieces(
    text: &str,
    from: usize,
    position: Option<usize>,
    role: Role,
    indent: u16,
) -> Vec<LineRun> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let to = message::after_lines(text, at, TEXT_PIECE_LINES);
        let source = Source::Text { position, bytes: from + at..from + to, role };
        pieces.push(LineRun::lazy(source, indent, false));
        at = to;
    }
    pieces
}

/// Pieces for the text of a resource, below its description.
pub(super) fn resource_pieces(block: &ContentBlock, position: usize, indent: u16) -> Vec<LineRun> {
    let ContentBlock::Resource { body: ResourceBody::Text(text), .. } = block else { return Vec::new() };
    text_pieces(text.trim_end_matches(['\n', '\r']), 0, Some(position), Role::TextDim, indent)
}

fn is_gap(line: &Line<'_>) -> bool {
    line.spans.first().is_some_and(|span| span.tag.mark.has(Mark::GAP))
}

/// Whether the images of the item are small: it is the user's prompt, and not opened.
fn is_thumbnail(view: &SessionView, item: &Item) -> bool {
    view.item(item.id).is_open != Some(true)
        && matches!(&item.body, ItemBody::Message(message) if message.is_local)
}

fn block_at(item: &Item, position: usize) -> Option<&ContentBlock> {
    match &item.body {
        ItemBody::Message(message) => match message.parts.get(position) {
            Some(MessagePart::Block(block)) => Some(block),
            _ => None,
        },
        ItemBody::Tool(tool) => match tool.content.get(position) {
            Some(ToolContent::Block(block)) => Some(block),
            _ => None,
        },
        _ => None,
    }
}

fn restyle(lines: &mut [Line<'static>], from: Style, to: Style) {
    for span in lines.iter_mut().flat_map(|line| line.spans.iter_mut()) {
        if span.style == from {
            span.style = to;
        } else if span.style.bg == from.bg {
            span.style = span.style.patch(Style { bg: None, ..to });
        }
    }
}
