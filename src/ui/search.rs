//! The search bar below the transcript: the query, the number of matches, and key hints. `transcript::find`
//! highlights the matches.

use ratatui::layout::{Position, Rect};

use crate::config::keymap::Context;
use crate::model::Action;
use crate::ui::canvas::Canvas;
use crate::ui::session_view::search::Search;
use crate::ui::text::Line;

use super::frame_context::FrameContext;
use super::hits::{Hit, HitMap};
use super::text;
use super::theme::Role;

pub(super) fn is_there(ctx: &FrameContext) -> bool {
    ctx.view.search.is_some()
}

/// Draws the search bar; returns the cursor position if it has the focus.
pub(super) fn draw(ctx: &FrameContext, area: Rect, buf: &mut Canvas, hits: &mut HitMap) -> Option<Position> {
    let search = ctx.view.search.as_deref()?;
    let has_keys = !ctx.keys.is_in_dialog;
    hits.add(area, Hit::Act(Action::OpenSearch));
    let count = count(ctx, search);
    let label = if search.is_regex { "regex " } else { "find " };
    let start = area.x + 1;
    let (x, _) = buf.set_stringn(start, area.y, label, label.len(), ctx.style(Role::Accent));
    let room = usize::from(area.right().saturating_sub(x + 1));
    let count_cols = count.width();
    // The query gets at least half of the line.
    let room = room.saturating_sub(count_cols + 2).max(room / 2);
    let (cursor_col, query_cols) = draw_query(ctx, search, Rect { x, width: to_u16(room), ..area }, buf);
    let mut right = area.right().saturating_sub(to_u16(count_cols) + 1).max(x + to_u16(query_cols) + 1);
    buf.put_line(right, area.y, &count, area.right().saturating_sub(right + 1));
    let free = usize::from(right).saturating_sub(usize::from(x) + query_cols + 4);
    let hints = if has_keys { hints(ctx, search) } else { Vec::new() };
    let line = ctx.hints(&hints, free);
    right = right.saturating_sub(to_u16(line.width()) + 2);
    buf.put_line(right, area.y, &line, to_u16(free));
    search.is_typing.then(|| Position::new(x + to_u16(cursor_col), area.y))
}

/// Draws the query, scrolled so that the cursor is visible. Returns the cursor column and the width.
fn draw_query(ctx: &FrameContext, search: &Search, area: Rect, buf: &mut Canvas) -> (usize, usize) {
    let room = usize::from(area.width).saturating_sub(1);
    let input = &search.input;
    if input.text.is_empty() {
        let hint = text::truncate("type to search", room);
        buf.set_stringn(area.x, area.y, &hint, room, ctx.style(Role::Placeholder));
        return (0, text::width(&hint));
    }
    let show = |part: &str| text::sanitize(part).replace(['\n', '\t'], " ");
    let cursor = input.cursor.min(input.text.len());
    let head = text::truncate_start(&show(input.text.get(..cursor).unwrap_or(&input.text)), room);
    let at = text::width(&head);
    let tail = text::truncate(&show(input.text.get(cursor..).unwrap_or_default()), room.saturating_sub(at));
    let all = format!("{head}{tail}");
    text::put_text(buf, area.x, area.y, &all, area.width.saturating_sub(1), ctx.style(Role::Composer));
    (at, text::width(&all))
}

/// `3 of 17`, an error, or "no match"; followed by an ellipsis while the search is running.
fn count(ctx: &FrameContext, search: &Search) -> Line<'static> {
    if let Some(problem) = &search.problem {
        return ctx.span(Role::Warning, text::truncate(&text::one_line(problem), 40)).into();
    }
    if search.pattern().is_none() {
        return Line::default();
    }
    let is_reading = ctx.session.loading.as_ref().is_some_and(|loading| !loading.has_failed);
    let more = if search.is_complete() && !is_reading { "" } else { ctx.render.glyphs.ellipsis };
    match (search.ordinal(), search.total()) {
        (Some(ordinal), total) => ctx.span(Role::Text, format!("{ordinal} of {total}{more}")).into(),
        (None, _) if search.is_complete() && !is_reading => ctx.span(Role::Warning, "no match").into(),
        (None, _) => ctx.span(Role::TextDim, format!("searching{more}")).into(),
    }
}

fn hints(ctx: &FrameContext, search: &Search) -> Vec<(String, String)> {
    let context = if search.is_typing { Context::Search } else { Context::Browse };
    let next = if search.is_typing { Action::Accept } else { Action::NextHit };
    let does = if search.is_typing && ctx.keys.is_browsing { "browse matches" } else { "next" };
    let has_hits = search.total() > 0;
    let hints = [
        ctx.hint(context, next, does).filter(|_| has_hits),
        ctx.hint(context, Action::PreviousHit, "previous").filter(|_| has_hits),
        ctx.hint(context, Action::Escape, "close"),
        ctx.hint(context, Action::ToggleRegex, if search.is_regex { "literal" } else { "regex" }),
    ];
    hints.into_iter().flatten().collect()
}

fn to_u16(value: usize) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}
