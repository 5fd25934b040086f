//! The page with the protocol log.
//!
//! Invariant: only visible lines are wrapped.

use ratatui::layout::{Position, Rect};

use crate::config::keymap::Context;
use crate::core::{Cx, LineInput, State};
use crate::model::{Action, LineEdit, byte_size};
use crate::ui::App;
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::FrameContext;
use crate::ui::hits::Hit;
use crate::ui::log::{LogDirection, LogLine};
use crate::ui::text;
use crate::ui::text::{Line, Span, counted};
use crate::ui::theme::Role;
use crate::ui::view_state::ViewState;

use super::changes::{draw_filter, draw_hints, draw_rules};
use super::layer::{Flow, Layer};
use super::scroll;

/// Maximum number of rows per line; for the rest, only the size is shown.
const MAX_ROWS: usize = 12;

#[derive(Debug, Default)]
pub struct LogPage {
    pub filter: LineInput,
}

impl Layer for LogPage {
    fn title(&self, _state: &State) -> String {
        "Protocol log".to_owned()
    }

    fn context(&self) -> Context {
        Context::Text
    }

    fn line(&self) -> Option<&LineInput> {
        Some(&self.filter)
    }

    fn on_line(&mut self, _app: &mut App, edit: &LineEdit, _cx: &mut Cx) {
        self.filter.apply(edit);
    }

    fn on_action(&mut self, _app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        scroll::on_page(action, Some(&mut self.filter), cx)
    }

    /// Draws the log on the full screen and returns the cursor position.
    fn draw(
        &self,
        ctx: &FrameContext,
        view: &mut ViewState,
        area: Rect,
        buf: &mut Canvas,
    ) -> Option<Position> {
        view.hits.add(area, Hit::Nothing);
        buf.blank(area, ctx.style(Role::Text));
        if area.height < 4 || area.width < 10 {
            return None;
        }
        let wanted = self.filter.text.trim().to_lowercase();
        let rows = usize::from(area.height.saturating_sub(4));
        let count = view.log.fitting(&wanted).len();
        view.log.below = view.log.below.min(count.saturating_sub(1));
        let last = count - view.log.below;

        // Wraps lines upwards from the last visible one until the screen is full.
        let mut shown: Vec<Vec<Line<'static>>> = Vec::new();
        let mut used = 0;
        for position in (0..last).rev() {
            let Some(index) = view.log.fitting(&wanted).get(position).copied() else { break };
            let Some(line) = view.log.lines.get(index) else { break };
            let drawn = lines(ctx, line, &wanted, area.width.saturating_sub(2));
            used += drawn.len();
            shown.push(drawn);
            if used >= rows {
                break;
            }
        }
        view.dialog.page = shown.len().max(1);
        let lines: Vec<Line<'static>> = shown.into_iter().rev().flatten().collect();
        let skip = lines.len().saturating_sub(rows);
        let mut y = area.y + 2;
        for line in lines.iter().skip(skip) {
            buf.put_line(area.x + 1, y, line, area.width.saturating_sub(2));
            y += 1;
        }
        if count == 0 {
            let why = if view.log.lines.is_empty() { "No messages yet." } else { "No matching lines." };
            buf.set_stringn(area.x + 1, y, why, usize::from(area.width) - 1, ctx.style(Role::TextDim));
        }
        draw_head(ctx, view, count, area, buf);
        Some(draw_foot(ctx, &self.filter, area, buf))
    }
}

fn draw_head(ctx: &FrameContext, view: &ViewState, fitting: usize, area: Rect, buf: &mut Canvas) {
    let title = "Protocol log";
    buf.set_string(area.x + 1, area.y, title, ctx.style(Role::DialogTitle));
    let all = view.log.lines.len();
    let mut count = if fitting < all {
        format!("{fitting} of {}", counted(all, "line", "lines"))
    } else {
        counted(all, "line", "lines")
    };
    if let Some(warnings) = ctx.protocol_warnings() {
        count = format!("{warnings} {} {count}", ctx.render.glyphs.dot);
    }
    if view.log.below > 0 {
        count = format!("{count} {} {} below", ctx.render.glyphs.dot, view.log.below);
    }
    let width = u16::try_from(text::width(&count)).unwrap_or(0);
    let x = area.right().saturating_sub(width + 1);
    if x > area.x + 18 {
        buf.set_string(x, area.y, count, ctx.style(Role::TextDim));
    }
    draw_rules(ctx, area, buf);
}

fn draw_foot(ctx: &FrameContext, filter: &LineInput, area: Rect, buf: &mut Canvas) -> Position {
    let hints = [
        ctx.hint(Context::Text, Action::Escape, "close"),
        ctx.hint(Context::Text, Action::PageUp, "scroll back"),
    ];
    let width = draw_hints(ctx, &hints, area.width / 2, area, buf);
    let room = area.width.saturating_sub(width + 4);
    draw_filter(ctx, filter, "type to filter", (area, room), buf)
}

/// A log line, wrapped: time, direction, text.
fn lines(ctx: &FrameContext, line: &LogLine, wanted: &str, cols: u16) -> Vec<Line<'static>> {
    let (mark, mark_role, role) = match line.direction {
        LogDirection::ToAgent => (ctx.marks.to_agent, Role::Accent, Role::Text),
        LogDirection::FromAgent => (ctx.marks.from_agent, Role::Success, Role::Text),
        LogDirection::Stderr => (ctx.render.glyphs.warn, Role::Warning, Role::TextDim),
    };
    let time = clock(line.time_ms);
    let lead = text::width(&time) + 3;
    let room = cols.saturating_sub(u16::try_from(lead).unwrap_or(0)).max(4);
    // A line may have megabytes, so only the visible part is processed.
    let max_chars = usize::from(room) * MAX_ROWS;
    let cut: String = line.text.chars().take(max_chars).collect();
    let is_cut = cut.len() < line.text.len();
    let source = Line::from(highlighted(ctx, &text::one_line(&cut), wanted, role));
    let mut rows = text::hard_wrap(&source, room);
    if is_cut || rows.len() > MAX_ROWS {
        rows.truncate(MAX_ROWS);
        let size = byte_size(u64::try_from(line.text.len()).unwrap_or(u64::MAX));
        rows.push(Line::from(ctx.span(Role::TextDim, format!("{} {size} in total", ctx.render.glyphs.fold))));
    }
    for (index, row) in rows.iter_mut().enumerate() {
        if index == 0 {
            row.spans.insert(0, ctx.span(mark_role, format!(" {mark} ")));
            row.spans.insert(0, ctx.span(Role::TextDim, time.clone()));
        } else {
            row.spans.insert(0, Span::raw(" ".repeat(lead)));
        }
    }
    rows
}

/// The text with the matches of the filter highlighted.
fn highlighted(ctx: &FrameContext, line: &str, wanted: &str, role: Role) -> Vec<Span<'static>> {
    // If the length in bytes differs in lower case, nothing is highlighted.
    let lower = line.to_lowercase();
    if wanted.is_empty() || lower.len() != line.len() {
        return vec![ctx.span(role, line.to_owned())];
    }
    let mut spans = Vec::new();
    let mut rest = 0;
    for (at, found) in lower.match_indices(wanted) {
        let (Some(before), Some(hit)) = (line.get(rest..at), line.get(at..at + found.len())) else {
            continue;
        };
        spans.push(ctx.span(role, before.to_owned()));
        spans.push(ctx.span(Role::Match, hit.to_owned()));
        rest = at + found.len();
    }
    spans.push(ctx.span(role, line.get(rest..).unwrap_or_default().to_owned()));
    spans
}

/// Formats `3:07.042`: minutes, seconds, milliseconds.
fn clock(time_ms: u64) -> String {
    format!("{:>2}:{:02}.{:03}", time_ms / 60_000, time_ms / 1000 % 60, time_ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_minutes_and_seconds() {
        assert_eq!(clock(42), " 0:00.042");
        assert_eq!(clock(187_042), " 3:07.042");
    }
}
