//! The panel beside the transcript on a wide screen: plan, changed files, queued prompts, context and cost.
//!
//! Shows what the session has; without any of it, the transcript has the full width.

use ratatui::layout::Rect;

use crate::model::Action;
use crate::ui::canvas::Canvas;
use crate::ui::render_context::cost_text;
use crate::ui::text::{Line, Span};

use super::cells::counts_line;
use super::changes::ChangesView;
use super::frame_context::FrameContext;
use super::hits::{Hit, HitMap};
use super::theme::Role;
use super::{plan, queue, status, text};
use crate::ui::text::counted;

/// Maximum width of the text.
const MAX_COLS: u16 = 72;

const FILES_MAX: usize = 12;

/// A part of the panel.
struct Section {
    lines: Vec<Line<'static>>,
    action: Action,
}

/// Whether the panel shows the steps of the plan, not only its state.
pub(super) fn has_steps(ctx: &FrameContext) -> bool {
    plan::is_there(ctx.view, ctx.session) && !ctx.view.is_plan_folded(ctx.session)
}

pub(super) fn is_there(ctx: &FrameContext, changes: &ChangesView) -> bool {
    let session = ctx.session;
    let has_items = !session.transcript.items().is_empty();
    let has_facts = changes.files().len() > 0 || session.usage.is_some() || session.outbox.queue_len() > 0;
    has_items && (has_facts || has_steps(ctx))
}

/// Draws the panel. Its left column is blank, because the transcript's scroll bar is next to it.
pub(super) fn draw(
    ctx: &FrameContext,
    changes: &ChangesView,
    keys: queue::Focused,
    area: Rect,
    buf: &mut Canvas,
    hits: &mut HitMap,
) {
    let inner = Rect { x: area.x + 2, width: area.width.saturating_sub(3).min(MAX_COLS), ..area };
    let sections: Vec<Section> =
        [queued(ctx, keys, inner.width), files(ctx, changes, inner.width), usage(ctx, inner.width)]
            .into_iter()
            .flatten()
            .collect();
    let mut y = inner.y;
    if plan::is_there(ctx.view, ctx.session) {
        let lines = plan::side_lines(ctx, inner.width);
        let others: usize = sections.iter().map(|section| section.lines.len() + 1).sum();
        // The plan is shortened first, but not below half of the panel.
        let rows = usize::from(inner.height);
        let height = (lines.len() + 1).min(rows.saturating_sub(others).max(rows / 2));
        let height = u16::try_from(height).unwrap_or(inner.height);
        plan::draw_side(ctx, &lines, Rect { y, height, ..inner }, buf, hits);
        y += height + 1;
    }
    for section in &sections {
        if y >= inner.bottom() {
            break;
        }
        hits.add(Rect { y, height: 1, ..inner }, Hit::Act(section.action));
        for line in section.lines.iter().take(usize::from(inner.bottom() - y)) {
            buf.put_line(inner.x, y, line, inner.width);
            y += 1;
        }
        y += 1;
    }
}

fn queued(ctx: &FrameContext, keys: queue::Focused, cols: u16) -> Option<Section> {
    let is_there = ctx.session.outbox.queue_len() > 0;
    is_there.then(|| Section { lines: queue::side_lines(ctx, keys, cols), action: Action::OpenQueue })
}

fn files(ctx: &FrameContext, changes: &ChangesView, cols: u16) -> Option<Section> {
    let count = changes.files().len();
    if count == 0 {
        return None;
    }
    let mut lines =
        vec![Line::from(ctx.span(Role::TextDim, counted(count, "file changed", "files changed")))];
    for (path, counts) in changes.files().take(FILES_MAX) {
        let counts = counts.map(|counts| counts_line(counts, &ctx.render)).unwrap_or_default();
        let room = usize::from(cols).saturating_sub(counts.width());
        let name = text::truncate_path(&ctx.render.path(path), room);
        let fill = " ".repeat(room.saturating_sub(text::width(&name)));
        let mut line = Line::from(ctx.span(Role::Text, name + &fill));
        line.spans.extend(counts.spans);
        lines.push(line);
    }
    lines.extend(more(ctx, count, FILES_MAX));
    Some(Section { lines, action: Action::OpenChanges })
}

fn usage(ctx: &FrameContext, cols: u16) -> Option<Section> {
    let usage = ctx.session.usage.as_ref()?;
    let mut line = status::context(ctx, usage.used_tokens, usage.size_tokens, u16::MAX);
    if let Some(cost) = &usage.cost {
        line.push_span(Span::styled(format!(" {} ", ctx.render.glyphs.dot), ctx.style(Role::TextDim)));
        line.push_span(ctx.span(Role::Status, cost_text(cost)));
    }
    let lines = text::wrap_line(&line, cols.max(8));
    Some(Section { lines, action: Action::OpenConnection })
}

/// The row for entries that do not fit.
fn more(ctx: &FrameContext, count: usize, max: usize) -> Option<Line<'static>> {
    let left = count.checked_sub(max).filter(|left| *left > 0)?;
    Some(Line::from(ctx.span(Role::TextDim, format!("{} {left} more", ctx.render.glyphs.fold))))
}

#[cfg(test)]
mod tests;
