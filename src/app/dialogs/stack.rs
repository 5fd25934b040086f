//! The stack of open dialogs: closing the top one, opening a page, scrolling.

use crate::app::{Effect, Modal, PickerKind, State, ViewCommand};
use crate::model::Action;

/// More lines than any dialog has: scrolls to its start or end.
pub const ALL_LINES: i32 = 1_000_000;

/// Closes the top dialog, and reverts a previewed theme.
pub fn close_top(state: &mut State, fx: &mut Vec<Effect>) {
    if let Some(Modal::Picker(picker)) = state.modals.pop()
        && picker.kind == PickerKind::Theme
    {
        fx.push(Effect::SetTheme(state.setup.theme_in_use().to_owned()));
    }
}

/// Opens a page, or closes it if it is on top; it is never open twice.
pub fn toggle_page(state: &mut State, page: Modal, fx: &mut Vec<Effect>) {
    let is_same = |modal: &Modal| std::mem::discriminant(modal) == std::mem::discriminant(&page);
    if state.modals.last().is_some_and(is_same) {
        close_top(state, fx);
        return;
    }
    state.modals.retain(|modal| !is_same(modal));
    state.modals.push(page);
}

/// Scrolls the body of the top dialog by lines (negative: up).
pub fn scroll(lines: i32, fx: &mut Vec<Effect>) {
    fx.push(Effect::View(ViewCommand::ScrollDialog(lines)));
}

/// Handles scroll actions. Returns whether it was one.
pub fn scroll_body(action: Action, fx: &mut Vec<Effect>) -> bool {
    match action {
        Action::PageUp => fx.push(Effect::View(ViewCommand::ScrollDialogPages(-1))),
        Action::PageDown => fx.push(Effect::View(ViewCommand::ScrollDialogPages(1))),
        Action::Scroll(lines) => scroll(i32::from(lines), fx),
        Action::ScrollTop => scroll(-ALL_LINES, fx),
        Action::ScrollEnd => scroll(ALL_LINES, fx),
        _ => return false,
    }
    true
}
