//! The title line: agent and session on the left; folder and branch on the right.
//!
//! On narrow screens, the session's title is removed first, then the folder.

use ratatui::layout::Rect;

use crate::core::SessionPhase;
use crate::model::Action;
use crate::ui::canvas::Canvas;
use crate::ui::text::{Line, Span};

use super::frame_context::FrameContext;
use super::hits::{Hit, HitMap};
use super::text;
use super::theme::Role;

/// Minimum width of the folder.
const MIN_FOLDER: usize = 10;

/// Minimum screen width that reserves space for the session's title.
const TITLE_COLS: u16 = 100;

/// Minimum and maximum width of the session's title, and maximum width of the agent's name and the branch.
const MIN_TITLE: usize = 12;
const MAX_TITLE: usize = 40;
const MAX_NAME: usize = 28;

/// Draws the title line. `names_session`: the session's title is not shown elsewhere.
pub(super) fn draw(ctx: &FrameContext, names_session: bool, area: Rect, buf: &mut Canvas, hits: &mut HitMap) {
    let room = usize::from(area.width).saturating_sub(2);
    let mut left = vec![agent(ctx)];
    let git = branch(ctx);
    let git_cols = git.as_ref().map_or(0, Line::width);
    let folder_cols = text::width(&ctx.folder());
    let others = cols(&left) + 3 + 2 + folder_cols + if git_cols > 0 { git_cols + 1 } else { 0 };
    let wide_room = if area.width >= TITLE_COLS { MAX_TITLE } else { 0 };
    let title_room = room.saturating_sub(others).min(MAX_TITLE).max(wide_room);
    if let Some(title) = own_title(ctx).filter(|_| names_session && title_room >= MIN_TITLE) {
        let text = text::truncate(&title, title_room);
        left.insert(1, Part { text, role: Role::Title, action: Some(Action::RenameSession) });
    }
    // The folder gets the remaining space; the branch is not shown without it.
    let apart = 2;
    let free = room.saturating_sub(cols(&left) + apart);
    let folder_room = free.saturating_sub(if git_cols > 0 { git_cols + 1 } else { 0 });
    let mut right = Line::default();
    if folder_room >= MIN_FOLDER {
        let path = text::truncate_path(&ctx.folder(), folder_room);
        right.push_span(ctx.span(Role::Title, path));
        if let Some(git) = git {
            right.push_span(Span::raw(" "));
            right.spans.extend(git.spans);
        }
    } else if git_cols > 0 && free >= git_cols {
        right = git.unwrap_or_default();
    }

    let mut x = area.x + 1;
    for (index, part) in left.iter().enumerate() {
        if index > 0 {
            let dot = format!(" {} ", ctx.render.glyphs.dot);
            x = text::put_text(buf, x, area.y, &dot, area.right() - x, ctx.style(Role::TextDim));
        }
        let from = x;
        let max = usize::from(area.right().saturating_sub(x + 1));
        let shown = text::truncate(&part.text, max);
        x = text::put_text(buf, x, area.y, &shown, area.right().saturating_sub(x + 1), ctx.style(part.role));
        if let Some(action) = part.action {
            hits.add(Rect { x: from, y: area.y, width: x - from, height: 1 }, Hit::Act(action));
        }
    }
    let width = u16::try_from(right.width()).unwrap_or(0);
    if width > 0 && x + width < area.right() {
        buf.put_line(area.right() - 1 - width, area.y, &right, width);
    }
}

struct Part {
    text: String,
    role: Role,
    action: Option<Action>,
}

fn agent(ctx: &FrameContext) -> Part {
    let (name, action) = match ctx.session.phase {
        SessionPhase::NoAgent => ("parlor".to_owned(), Action::OpenAgents),
        _ => (ctx.agent(), Action::OpenConnection),
    };
    Part { text: text::truncate(&name, MAX_NAME), role: Role::TextStrong, action: Some(action) }
}

/// The session's title, if it has an agent and a title.
fn own_title(ctx: &FrameContext) -> Option<String> {
    let title = ctx.session.title.as_deref().map(text::one_line);
    title.filter(|title| !title.is_empty() && ctx.session.phase != SessionPhase::NoAgent)
}

fn cols(parts: &[Part]) -> usize {
    let names: usize = parts.iter().map(|part| text::width(&part.text)).sum();
    names + parts.len().saturating_sub(1) * 3
}

/// The branch in brackets, with a star for uncommitted changes.
fn branch(ctx: &FrameContext) -> Option<Line<'static>> {
    let git = ctx.session.git.as_ref()?;
    let name = text::truncate(&text::one_line(&git.branch), MAX_NAME);
    let mut line = Line::from(ctx.span(Role::Title, format!("({name}")));
    if git.is_dirty {
        line.push_span(ctx.span(Role::Warning, "*"));
    }
    line.push_span(ctx.span(Role::Title, ")"));
    Some(line)
}
