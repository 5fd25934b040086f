//! Scrolling the body of the top dialog.

use crate::core::{Cx, Effect, LineInput, ViewCommand};
use crate::model::{Action, LineEdit};

use super::layer::Flow;

/// More lines than any dialog has: scrolls to its start or end.
const ALL_LINES: i32 = 1_000_000;

/// Scrolls the body of the top dialog by lines (negative: up).
pub fn scroll(lines: i32, cx: &mut Cx) {
    cx.effects.push(Effect::View(ViewCommand::ScrollDialog(lines)));
}

/// Handles an action that scrolls.
pub fn scroll_body(action: Action, cx: &mut Cx) -> Flow {
    match action {
        Action::PageUp => cx.effects.push(Effect::View(ViewCommand::ScrollDialogPages(-1))),
        Action::PageDown => cx.effects.push(Effect::View(ViewCommand::ScrollDialogPages(1))),
        Action::Scroll(lines) => scroll(i32::from(lines), cx),
        Action::ScrollTop => scroll(-ALL_LINES, cx),
        Action::ScrollEnd => scroll(ALL_LINES, cx),
        _ => return Flow::Pass,
    }
    Flow::Stay
}

/// Handles an action that scrolls where the arrow keys scroll, too.
pub fn scroll_page(action: Action, cx: &mut Cx) -> Flow {
    match action {
        Action::Up => scroll(-1, cx),
        Action::Down => scroll(1, cx),
        Action::First => scroll(-ALL_LINES, cx),
        Action::Last => scroll(ALL_LINES, cx),
        _ => return scroll_body(action, cx),
    }
    Flow::Stay
}

/// Handles an action in a page to read, which may have a filter.
pub fn on_page(action: Action, filter: Option<&mut LineInput>, cx: &mut Cx) -> Flow {
    let edit = match action {
        Action::Left => LineEdit::Left,
        Action::Right => LineEdit::Right,
        Action::Choose(digit) => LineEdit::Insert(digit.to_string()),
        Action::Accept | Action::NextField | Action::PreviousField => return Flow::Stay,
        _ => return scroll_page(action, cx),
    };
    if let Some(filter) = filter {
        filter.apply(&edit);
    }
    Flow::Stay
}
