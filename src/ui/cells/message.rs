//! Messages: the user's as plain text, the agent's as Markdown, thoughts and letters of subagents folded.

use ratatui::text::{Line, Span};

use crate::app::{Item, Message, MessagePart};
use crate::model::{ContentBlock, Role as Speaker};
use crate::ui::look::{Look, duration};
use crate::ui::markdown::{Markdown, PROSE_COLS};
use crate::ui::text::mark::Mark;
use crate::ui::text::one_line;
use crate::ui::theme::Role;

use super::layout::{Context, Layout, Piece, Source, TextPart};
use super::plain_lines;

/// Lines of a thought that are shown while it streams.
const THOUGHT_TAIL_LINES: usize = 3;

/// Lays a message out. Texts that only grew keep what is known of them.
pub(super) fn lay_out(layout: &mut Layout, item: &Item, message: &Message, context: &mut Context<'_>) {
    layout.is_live = false;
    match message.role {
        Speaker::User => lay_out_user(layout, message, context),
        Speaker::Agent => lay_out_parts(layout, message, 0, 0),
        Speaker::Thought | Speaker::Letter => lay_out_thought(layout, item, message, context),
    }
}

fn lay_out_user(layout: &mut Layout, message: &Message, context: &Context<'_>) {
    layout.pieces.clear();
    let cols = context.cols.min(PROSE_COLS);
    for (place, part) in message.parts.iter().enumerate() {
        let piece = match part {
            MessagePart::Text(text) | MessagePart::Block(ContentBlock::Text(text)) => {
                Piece::ready(plain_lines(text, Role::User, context.look, cols), 0)
            }
            MessagePart::Block(_) => Piece::lazy(Source::Block { place }, 0, false),
        };
        layout.pieces.push(piece);
    }
}

/// Pieces for the blocks of all texts, from piece `first` on. Those that are as before are kept.
fn lay_out_parts(layout: &mut Layout, message: &Message, first: usize, indent: u16) {
    let mut at = first;
    let mut texts = 0;
    for (place, part) in message.parts.iter().enumerate() {
        match part {
            MessagePart::Text(source) => {
                if layout.texts.get(texts).is_none_or(|text| text.place != place) {
                    layout.texts.truncate(texts);
                    layout.texts.push(TextPart { markdown: Markdown::default(), place, style: None });
                    layout.pieces.truncate(at);
                }
                let is_last = place + 1 == message.parts.len();
                let Some(text) = layout.texts.get_mut(texts) else { break };
                let kept = text.markdown.update(source, !is_last || !message.is_open);
                let blocks = text.markdown.blocks();
                if kept < blocks.len() {
                    layout.pieces.truncate(at + kept);
                }
                // Pieces may be fewer than the blocks that are kept: they were dropped with the old width.
                for (block, facts) in blocks.iter().enumerate().skip(layout.pieces.len().saturating_sub(at)) {
                    let has_gap = facts.has_gap || (block == 0 && at > first);
                    let source = Source::Markdown { text: texts, block };
                    layout.pieces.push(Piece::lazy(source, indent, has_gap));
                }
                at += blocks.len();
                texts += 1;
            }
            MessagePart::Block(_) => {
                let is_there =
                    |piece: &Piece| matches!(piece.source, Source::Block { place: at } if at == place);
                if !layout.pieces.get(at).is_some_and(is_there) {
                    layout.pieces.truncate(at);
                    layout.pieces.push(Piece::lazy(Source::Block { place }, indent, at > first));
                }
                at += 1;
            }
        }
    }
    layout.texts.truncate(texts);
    layout.pieces.truncate(at);
}

fn lay_out_thought(layout: &mut Layout, item: &Item, message: &Message, context: &Context<'_>) {
    let is_whole = item.is_open.unwrap_or(context.look.shows_thoughts && message.role == Speaker::Thought);
    if is_whole && !matches!(layout.pieces.first(), Some(piece) if matches!(piece.source, Source::Ready)) {
        layout.pieces.clear();
        layout.texts.clear();
    }
    let head = Piece::ready(vec![thought_head(message, context.look)], 0);
    layout.is_live = message.is_open && message.role == Speaker::Thought;
    if is_whole && layout.texts.is_empty() {
        layout.pieces.clear();
    }
    match layout.pieces.first_mut() {
        Some(first) if is_whole => *first = head,
        _ => {
            layout.pieces.clear();
            layout.pieces.push(head);
        }
    }
    if is_whole {
        lay_out_parts(layout, message, 1, 2);
        let style = context.look.theme.style(Role::Thought);
        for text in &mut layout.texts {
            text.style = Some(style);
        }
    } else {
        layout.texts.clear();
        if message.is_open && message.role == Speaker::Thought {
            let lines = thought_tail(message, context.look, context.cols.min(PROSE_COLS).saturating_sub(2));
            layout.pieces.push(Piece::ready(lines, 2));
        }
    }
}

/// The last lines of a thought, read from its end only.
fn thought_tail(message: &Message, look: &Look<'_>, cols: u16) -> Vec<Line<'static>> {
    let Some(MessagePart::Text(text)) = message.parts.last() else { return Vec::new() };
    let room = usize::from(cols) * (THOUGHT_TAIL_LINES + 1) * 4;
    let from = text.len().saturating_sub(room);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let tail = text.get(from..).unwrap_or_default();
    // A line that is cut in front would wrap anew with each chunk.
    let tail = match tail.find('\n') {
        Some(at) if from > 0 && tail.len() - at > usize::from(cols) => tail.get(at + 1..).unwrap_or_default(),
        _ => tail,
    };
    let mut lines = plain_lines(tail, Role::Thought, look, cols.max(8));
    lines.retain(|line| line.width() > 0);
    lines.split_off(lines.len().saturating_sub(THOUGHT_TAIL_LINES))
}

/// `thought for 4 s`, or `thinking` while it goes on.
pub(super) fn thought_head(message: &Message, look: &Look<'_>) -> Line<'static> {
    let dim = look.theme.style(Role::TextDim);
    if !matches!(message.role, Speaker::Thought | Speaker::Letter) {
        return Line::default();
    }
    let what = if message.role == Speaker::Letter { "between agents" } else { "thought" };
    if message.is_open && message.role == Speaker::Thought {
        let time = look.now.saturating_duration_since(message.began);
        let mark = Mark::APART.span(look.spinner(), look.theme.style(Role::Running));
        let text =
            if time.as_secs() > 0 { format!(" thinking {}", duration(time)) } else { " thinking".to_owned() };
        return Line::from(vec![mark, Span::styled(text, dim)]);
    }
    let text = match message.took {
        Some(took) if took.as_secs() > 0 && message.role == Speaker::Thought => {
            format!(" {what} for {}", duration(took))
        }
        _ => {
            let text = message.parts.iter().find_map(|part| match part {
                MessagePart::Text(text) => text.lines().find(|line| !line.trim().is_empty()),
                MessagePart::Block(_) => None,
            });
            let text = one_line(text.unwrap_or_default());
            let text = crate::ui::text::truncate(text.trim_matches(['*', '#', ' ']), 60);
            format!(" {what} {} {text}", look.glyphs.dot)
        }
    };
    let text = text.trim_end_matches([' ', '·', '.']).to_owned();
    Line::from(vec![Mark::APART.span(look.glyphs.thought, dim), Span::styled(text, dim)])
}
