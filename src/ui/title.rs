//! The title line: agent, model and mode on the left; folder and branch on the right.
//!
//! On narrow screens, the session's title is removed first, then folder and model. Agent and mode remain
//! longest, because the mode determines what happens without confirmation.

use ratatui::layout::Rect;

use crate::app::SessionPhase;
use crate::model::Action;
use crate::ui::canvas::Canvas;
use crate::ui::text::{Line, Span};

use super::frame_context::{FrameContext, line_width};
use super::text;
use super::theme::Role;
use super::view_state::{Hit, HitMap};

/// Minimum width of the folder.
const LEAST_FOLDER: usize = 10;

/// Minimum screen width that reserves space for the session's title.
const TITLE_COLS: u16 = 100;

/// Minimum and maximum width of the session's title, and maximum width of a model's or mode's name.
const LEAST_TITLE: usize = 8;
const MOST_TITLE: usize = 40;
const MOST_NAME: usize = 28;

/// Draws the title line.
pub(super) fn draw(scene: &FrameContext, area: Rect, buf: &mut Canvas, hits: &mut HitMap) {
    let room = usize::from(area.width).saturating_sub(2);
    let mut left = parts(scene, area.width);
    while left.len() > 1 && cols(&left) > room {
        left.remove(1);
    }
    let git = branch(scene);
    let git_cols = git.as_ref().map_or(0, line_width);
    let folder_cols = text::width(&scene.folder());
    let others = cols(&left) + 3 + 2 + folder_cols + if git_cols > 0 { git_cols + 2 } else { 0 };
    let wide_room = if area.width >= TITLE_COLS { MOST_TITLE } else { 0 };
    let title_room = room.saturating_sub(others).min(MOST_TITLE).max(wide_room);
    if let Some(title) = own_title(scene).filter(|_| title_room >= LEAST_TITLE && !left.is_empty()) {
        let text = text::truncate(&title, title_room);
        left.insert(1, Part { text, role: Role::Title, action: Some(Action::RenameSession) });
    }
    // The folder gets the remaining space; the branch is not shown without it.
    let apart = 2;
    let free = room.saturating_sub(cols(&left) + apart);
    let folder_room = free.saturating_sub(if git_cols > 0 { git_cols + 2 } else { 0 });
    let mut right = Line::default();
    if folder_room >= LEAST_FOLDER {
        let path = text::truncate_path(&scene.folder(), folder_room);
        right.push_span(scene.span(Role::Title, path));
        if let Some(git) = git {
            right.push_span(Span::raw("  "));
            right.spans.extend(git.spans);
        }
    } else if git_cols > 0 && free >= git_cols {
        right = git.unwrap_or_default();
    }

    let mut x = area.x + 1;
    for (index, part) in left.iter().enumerate() {
        if index > 0 {
            let dot = format!(" {} ", scene.look.glyphs.dot);
            x = text::put_text(buf, x, area.y, &dot, area.right() - x, scene.style(Role::TextDim));
        }
        let from = x;
        let most = usize::from(area.right().saturating_sub(x + 1));
        let shown = text::truncate(&part.text, most);
        x = text::put_text(
            buf,
            x,
            area.y,
            &shown,
            area.right().saturating_sub(x + 1),
            scene.style(part.role),
        );
        if let Some(action) = part.action {
            hits.add(Rect { x: from, y: area.y, width: x - from, height: 1 }, Hit::Act(action));
        }
    }
    let width = u16::try_from(line_width(&right)).unwrap_or(0);
    if width > 0 && x + width < area.right() {
        buf.put_line(area.right() - 1 - width, area.y, &right, width);
    }
}

/// A name in the title.
struct Part {
    text: String,
    role: Role,
    action: Option<Action>,
}

/// The names from left to right; the second one is removed first.
fn parts(scene: &FrameContext, width: u16) -> Vec<Part> {
    let part = |text: &str, role, action| Part { text: text::truncate(text, MOST_NAME), role, action };
    if scene.session.phase == SessionPhase::NoAgent {
        return vec![part("parlor", Role::TextStrong, Some(Action::OpenAgents))];
    }
    let mut parts = vec![part(&scene.agent(), Role::TextStrong, Some(Action::OpenConnection))];
    if let Some(model) = scene.model().filter(|_| width >= 60) {
        parts.push(part(&model, Role::Title, Some(Action::OpenModels)));
    }
    if let Some(mode) = scene.mode() {
        parts.push(part(&mode, mode_role(&mode), Some(Action::OpenModes)));
    }
    parts
}

/// The colour of a mode by what its name says about requests: few or no requests are a warning.
fn mode_role(name: &str) -> Role {
    let name = name.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if says(&["bypass", "yolo", "full access", "danger", "never ask", "don't ask", "autopilot"]) {
        Role::Error
    } else if says(&["accept", "auto", "approve"]) {
        Role::Warning
    } else if says(&["plan", "read"]) {
        Role::Accent
    } else {
        Role::Title
    }
}

/// The session's title, if it has an agent and a title.
fn own_title(scene: &FrameContext) -> Option<String> {
    let title = scene.session.title.as_deref().map(text::one_line);
    title.filter(|title| !title.is_empty() && scene.session.phase != SessionPhase::NoAgent)
}

fn cols(parts: &[Part]) -> usize {
    let names: usize = parts.iter().map(|part| text::width(&part.text)).sum();
    names + parts.len().saturating_sub(1) * 3
}

/// The branch, with a star for uncommitted changes.
fn branch(scene: &FrameContext) -> Option<Line<'static>> {
    let git = scene.session.git.as_ref()?;
    let name = text::truncate(&text::one_line(&git.branch), MOST_NAME);
    let mut line = Line::from(scene.span(Role::Title, format!("{} {name}", scene.marks.branch)));
    if git.is_dirty {
        line.push_span(scene.span(Role::Warning, "*"));
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_coloured_by_what_they_ask() {
        for (names, role) in [
            (["Bypass permissions", "YOLO", "Full Access"], Role::Error),
            (["Accept edits", "Auto Edit", "Auto review"], Role::Warning),
            (["Plan", "Plan Mode", "Read-only"], Role::Accent),
            (["Manual", "Default", "Ask first"], Role::Title),
        ] {
            for name in names {
                assert_eq!(mode_role(name), role, "{name}");
            }
        }
    }
}
