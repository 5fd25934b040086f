//! The stack of open dialogs: closing the top, opening a page once, scrolling what is on top.

use crate::app::{Effect, Modal, PickerKind, State, ViewCommand};
use crate::model::Action;

/// Lines that are more than any dialog has: to its end, or its beginning.
pub const ALL_LINES: i32 = 1_000_000;

/// Closes the top dialog, and takes back what it only tried.
pub fn close_top(state: &mut State, fx: &mut Vec<Effect>) {
    if let Some(Modal::Picker(picker)) = state.modals.pop()
        && picker.kind == PickerKind::Theme
    {
        fx.push(Effect::SetTheme(state.setup.theme.clone()));
    }
}

/// Opens a page, or closes it where it is on top already; it is never there twice.
pub fn toggle_page(state: &mut State, page: Modal, fx: &mut Vec<Effect>) {
    let is_same = |modal: &Modal| std::mem::discriminant(modal) == std::mem::discriminant(&page);
    if state.modals.last().is_some_and(is_same) {
        close_top(state, fx);
        return;
    }
    state.modals.retain(|modal| !is_same(modal));
    state.modals.push(page);
}

/// Scrolls the body of the top dialog by so many lines (negative: up).
pub fn scroll(lines: i32, fx: &mut Vec<Effect>) {
    fx.push(Effect::View(ViewCommand::ScrollDialog(lines)));
}

/// Scrolls by what the action says, if it is about that.
pub fn scroll_body(action: Action, fx: &mut Vec<Effect>) -> bool {
    match action {
        Action::PageUp => fx.push(Effect::View(ViewCommand::ScrollDialogPages(-1))),
        Action::PageDown => fx.push(Effect::View(ViewCommand::ScrollDialogPages(1))),
        Action::Scroll(lines) => scroll(i32::from(lines), fx),
        _ => return false,
    }
    true
}
