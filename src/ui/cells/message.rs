//! Messages: the user's as plain text, the agent's as Markdown, thoughts and messages of subagents folded.

use crate::ui::text::{Line, Span};

use crate::core::{Item, Message, MessagePart};
use crate::model::{ContentBlock, Role as Speaker, byte_size, pasted_label};
use crate::ui::markdown::Markdown;
use crate::ui::render_context::{RenderContext, duration, with_commas};
use crate::ui::session_view::SessionView;
use crate::ui::session_view::fold::{are_long, is_long_prompt};
use crate::ui::text::copy_hint::Mark;
use crate::ui::text::{boundary_after, one_line, truncate, width};
use crate::ui::theme::Role;

use super::layout::{Context, Layout, LineRun, Source, TextPart, resource_pieces};
use super::{head_of, plain_lines};

/// Lines of a streamed thought that are shown.
const THOUGHT_TAIL_LINES: usize = 3;

/// Lines of a folded long prompt at its start and end, and maximum bytes of each.
const PROMPT_HEAD_LINES: usize = 12;
const PROMPT_TAIL_LINES: usize = 4;
const PROMPT_END_BYTES: usize = 4 * 1024;
/// Lines, or bytes, of a prompt per piece.
const PROMPT_PIECE_LINES: usize = 64;
const PROMPT_PIECE_BYTES: usize = 8 * 1024;

/// Lays a message out, reusing the layout of texts that only grew.
pub(super) fn lay_out(layout: &mut Layout, item: &Item, message: &Message, context: &mut Context<'_>) {
    layout.is_live = false;
    // Messages of subagents stand below their item, as their calls do.
    let is_of_child = message.role == Speaker::SubagentMessage && context.session.parent.is_none();
    layout.indent = if is_of_child { 2 } else { 0 };
    match message.role {
        Speaker::User => lay_out_user(layout, item, message, context),
        Speaker::Agent => lay_out_parts(layout, message, 0, 0),
        Speaker::Thought | Speaker::SubagentMessage => lay_out_thought(layout, item, message, context),
    }
}

fn lay_out_user(layout: &mut Layout, item: &Item, message: &Message, context: &Context<'_>) {
    layout.pieces.clear();
    let cols = context.cols;
    let is_long = is_long_prompt(message);
    for (position, part) in message.parts.iter().enumerate() {
        match part {
            MessagePart::Text(text) | MessagePart::Block(ContentBlock::Text(text))
                if is_long && context.view.item(item.id).is_open == Some(true) =>
            {
                let mut from = 0;
                while from < text.len() {
                    let to = after_lines(text, from, PROMPT_PIECE_LINES);
                    layout.pieces.push(LineRun::lazy(Source::Plain { position, bytes: from..to }, 0, false));
                    from = to;
                }
            }
            MessagePart::Text(text) if position == 0 && !message.pasted.is_empty() => {
                let text = message.with_labels(position, text, pasted_label);
                let lines = if are_long([text.as_str()]) {
                    ends_of(&text, context.render, cols)
                } else {
                    vec![plain_lines(&text, Role::User, context.render, cols)]
                };
                layout.pieces.extend(lines.into_iter().map(|lines| LineRun::ready(lines, 0)));
            }
            MessagePart::Text(text) | MessagePart::Block(ContentBlock::Text(text)) if is_long => {
                for lines in ends_of(text, context.render, cols) {
                    layout.pieces.push(LineRun::ready(lines, 0));
                }
            }
            MessagePart::Text(text) | MessagePart::Block(ContentBlock::Text(text)) => {
                layout.pieces.push(LineRun::ready(plain_lines(text, Role::User, context.render, cols), 0));
            }
            MessagePart::Block(block) => {
                layout.pieces.push(LineRun::lazy(Source::Block { position }, 0, false));
                // Files that the user attached are shown without their content.
                if !message.is_local {
                    layout.pieces.extend(resource_pieces(block, position, 0));
                }
            }
        }
    }
}

/// The first and the last lines of a long text, and the number of lines between them.
fn ends_of(text: &str, render: &RenderContext<'_>, cols: u16) -> Vec<Vec<Line<'static>>> {
    let text = text.trim_end_matches('\n');
    let head = after_lines(text, 0, PROMPT_HEAD_LINES).min(PROMPT_END_BYTES);
    let head = boundary_after(text, head);
    let mut tail = text.len();
    for _ in 0..PROMPT_TAIL_LINES {
        tail = text.get(..tail).and_then(|before| before.rfind('\n')).unwrap_or(head).max(head);
    }
    let tail = tail.max(text.len().saturating_sub(PROMPT_END_BYTES));
    let tail = boundary_after(text, tail);
    let [first, left_out, last] =
        [text.get(..head), text.get(head..tail), text.get(tail..)].map(Option::unwrap_or_default);
    let draw = |text: &str| plain_lines(text, Role::User, render, cols);
    if left_out.trim().is_empty() {
        return vec![draw(text)];
    }
    let count = left_out.trim_matches('\n').bytes().filter(|byte| *byte == b'\n').count() + 1;
    let gap = if count > 1 {
        format!("{} {} lines", render.glyphs.fold, with_commas(count))
    } else {
        format!("{} {} more", render.glyphs.fold, byte_size(left_out.len() as u64))
    };
    let gap = Line::from(Mark::GAP.span(gap, render.theme.style(Role::TextDim)));
    vec![draw(first), vec![gap], draw(last.strip_prefix('\n').unwrap_or(last))]
}

/// The position after `count` lines from `from`, or earlier if they are very long.
pub(super) fn after_lines(text: &str, from: usize, count: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let known = rest.as_bytes().get(..=PROMPT_PIECE_BYTES).unwrap_or(rest.as_bytes());
    let mut ends = memchr::memchr_iter(b'\n', known).map(|at| at + 1);
    let to = from + ends.nth(count - 1).unwrap_or(rest.len());
    if to - from <= PROMPT_PIECE_BYTES {
        return to;
    }
    let max = from + PROMPT_PIECE_BYTES;
    let line = text
        .get(from..to)
        .and_then(|lines| lines.bytes().take(PROMPT_PIECE_BYTES).rposition(|it| it == b'\n'));
    let to = line.map_or(max, |at| from + at + 1);
    boundary_after(text, to)
}

/// Lays out the blocks of all texts, from piece `first` on, reusing unchanged ones.
fn lay_out_parts(layout: &mut Layout, message: &Message, first: usize, indent: u16) {
    let mut at = first;
    let mut texts = 0;
    for (position, part) in message.parts.iter().enumerate() {
        match part {
            MessagePart::Text(source) => {
                if layout.texts.get(texts).is_none_or(|text| text.position != position) {
                    layout.texts.truncate(texts);
                    layout.texts.push(TextPart { markdown: Markdown::default(), position, style: None });
                    layout.pieces.truncate(at);
                }
                let is_last = position + 1 == message.parts.len();
                let Some(text) = layout.texts.get_mut(texts) else { break };
                let saved = text.markdown.update(source, !is_last || !message.is_open);
                let blocks = text.markdown.blocks();
                if saved < blocks.len() {
                    layout.pieces.truncate(at + saved);
                }
                // There may be fewer pieces than blocks: they were dropped with the old width.
                for (block, facts) in blocks.iter().enumerate().skip(layout.pieces.len().saturating_sub(at)) {
                    let has_gap = facts.has_gap || (block == 0 && at > first);
                    let source = Source::Markdown { text: texts, block };
                    layout.pieces.push(LineRun::lazy(source, indent, has_gap));
                }
                at += blocks.len();
                texts += 1;
            }
            MessagePart::Block(block) => {
                let is_there = |piece: &LineRun| matches!(piece.source, Source::Block { position: at } if at == position);
                if !layout.pieces.get(at).is_some_and(is_there) {
                    layout.pieces.truncate(at);
                    layout.pieces.push(LineRun::lazy(Source::Block { position }, indent, at > first));
                    layout.pieces.extend(resource_pieces(block, position, indent));
                }
                let is_of_it = |piece: &&LineRun| matches!(piece.source, Source::Text { position: Some(of), .. } if of == position);
                at += 1;
                at += layout.pieces.iter().skip(at).take_while(is_of_it).count();
            }
        }
    }
    layout.texts.truncate(texts);
    layout.pieces.truncate(at);
}

/// Whether all text of a thought is shown.
pub(super) fn is_whole(
    item: &Item,
    message: &Message,
    view: &SessionView,
    render: &RenderContext<'_>,
) -> bool {
    view.item(item.id).is_open.unwrap_or(render.shows_thoughts && message.role == Speaker::Thought)
}

fn lay_out_thought(layout: &mut Layout, item: &Item, message: &Message, context: &Context<'_>) {
    let is_whole = is_whole(item, message, context.view, context.render);
    if is_whole && !matches!(layout.pieces.first(), Some(piece) if matches!(piece.source, Source::Ready)) {
        layout.pieces.clear();
        layout.texts.clear();
    }
    let head = LineRun::ready(
        vec![thought_head(message, is_whole, context.render, context.cols.saturating_sub(layout.indent))],
        0,
    );
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
        let style = context.render.theme.style(Role::Thought);
        for text in &mut layout.texts {
            text.style = Some(style);
        }
    } else {
        layout.texts.clear();
        if message.is_open && message.role == Speaker::Thought {
            let lines = thought_tail(message, context.render, context.cols.saturating_sub(2));
            layout.pieces.push(LineRun::ready(lines, 2));
        }
    }
}

/// The last lines of a thought, read from its end only.
fn thought_tail(message: &Message, render: &RenderContext<'_>, cols: u16) -> Vec<Line<'static>> {
    let Some(MessagePart::Text(text)) = message.parts.last() else { return Vec::new() };
    let room = usize::from(cols) * (THOUGHT_TAIL_LINES + 1) * 4;
    let from = boundary_after(text, text.len().saturating_sub(room));
    let tail = text.get(from..).unwrap_or_default();
    // A line truncated at its start would rewrap with each chunk.
    let tail = match tail.find('\n') {
        Some(at) if from > 0 && tail.len() - at > usize::from(cols) => tail.get(at + 1..).unwrap_or_default(),
        _ => tail,
    };
    let mut lines = plain_lines(tail, Role::Thought, render, cols.max(8));
    lines.retain(|line| line.width() > 0);
    lines.split_off(lines.len().saturating_sub(THOUGHT_TAIL_LINES))
}

/// `thought for 4 s`, or `thinking` while it is streamed.
pub(super) fn thought_head(
    message: &Message,
    is_whole: bool,
    render: &RenderContext<'_>,
    cols: u16,
) -> Line<'static> {
    let dim = render.theme.style(Role::TextDim);
    if !matches!(message.role, Speaker::Thought | Speaker::SubagentMessage) {
        return Line::default();
    }
    let what = if message.role == Speaker::SubagentMessage { "subagent message" } else { "thought" };
    if message.is_open && message.role == Speaker::Thought {
        let time = render.now.saturating_duration_since(message.began);
        let mark = Mark::APART.span(render.spinner(), render.theme.style(Role::Running));
        let text =
            if time.as_secs() > 0 { format!(" thinking {}", duration(time)) } else { " thinking".to_owned() };
        return Line::from(vec![mark, Span::styled(text, dim)]);
    }
    let text = match message.took {
        Some(took) if took.as_secs() > 0 && message.role == Speaker::Thought => {
            format!(" {what} for {}", duration(took))
        }
        _ => {
            // The first line is shown only as long as the text below does not contain it.
            let text = message.parts.iter().filter(|_| !is_whole).find_map(|part| match part {
                MessagePart::Text(text) => head_of(text).lines().find(|line| !line.trim().is_empty()),
                MessagePart::Block(_) => None,
            });
            let text = one_line(text.unwrap_or_default());
            let lead = format!(" {what} {} ", render.glyphs.dot);
            let room = usize::from(cols).saturating_sub(width(render.glyphs.thought) + width(&lead));
            lead + &truncate(text.trim_matches(['*', '#', ' ']), room)
        }
    };
    let text = text.trim_end_matches([' ', '·', '.']).to_owned();
    Line::from(vec![Mark::APART.span(render.glyphs.thought, dim), Span::styled(text, dim)])
}
