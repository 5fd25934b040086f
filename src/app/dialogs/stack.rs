//! The stack of open dialogs: closing the top one, opening a page, scrolling.

use std::time::Instant;

use crate::app::lifecycle::operations;
use crate::app::state::{lookup, tab};
use crate::app::{Effect, Modal, PickerKind, Question, QuestionId, State, ViewCommand};
use crate::model::Action;

/// More lines than any dialog has: scrolls to its start or end.
pub const ALL_LINES: i32 = 1_000_000;

/// Closes the top dialog: dismisses a question, and reverts a previewed theme.
pub fn close_top(state: &mut State, now: Instant, fx: &mut Vec<Effect>) {
    match state.modals.pop() {
        Some(Modal::Question(id, _)) => operations::dismiss_question(state, id, now, fx),
        Some(Modal::Picker(picker)) if picker.kind == PickerKind::Theme => {
            fx.push(Effect::SetTheme(state.setup.theme_in_use().to_owned()));
        }
        _ => {}
    }
}

/// Shows the questions of the active tab, on top of other dialogs in the order in which they were asked; removes those
/// that are no longer open.
pub fn show_questions(state: &mut State) {
    let front = tab::front(state);
    let is_shown = |question: &&Question| lookup::root_of(state, question.session) == front;
    let open: Vec<(QuestionId, usize)> =
        state.questions.iter().filter(is_shown).map(|question| (question.id, question.first)).collect();
    let shown = |modal: &Modal| match modal {
        Modal::Question(id, _) => Some(*id),
        _ => None,
    };
    state.modals.retain(|modal| shown(modal).is_none_or(|id| open.iter().any(|(open, _)| *open == id)));
    for (id, first) in open {
        if !state.modals.iter().any(|modal| shown(modal) == Some(id)) {
            state.modals.push(Modal::Question(id, first));
        }
    }
}

/// Opens a page, or closes it if it is on top; it is never open twice.
pub fn toggle_page(state: &mut State, page: Modal) {
    let is_same = |modal: &Modal| std::mem::discriminant(modal) == std::mem::discriminant(&page);
    if state.modals.last().is_some_and(is_same) {
        state.modals.pop();
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
