//! The stack of open dialogs: closing the top one, opening a page, scrolling.

use crate::app::state::{lookup, tab};
use crate::app::{Cx, Effect, Question, QuestionId, UserAnswer, ViewCommand};
use crate::model::Action;
use crate::ui::{App, Modal, PickerKind};

/// More lines than any dialog has: scrolls to its start or end.
pub const ALL_LINES: i32 = 1_000_000;

/// Closes the top dialog: dismisses a question, and reverts a previewed theme.
pub fn close_top(app: &mut App, cx: &mut Cx) {
    match app.modals.pop() {
        Some(Modal::Question(id, _)) => super::answer(app, id, UserAnswer::Dismiss, cx),
        Some(Modal::Picker(picker)) if picker.kind == PickerKind::Theme => {
            cx.effects.push(Effect::SetTheme(app.state.setup.theme_in_use().to_owned()));
        }
        _ => {}
    }
}

/// Shows the questions of the active tab, on top of other dialogs in the order in which they were asked; removes those
/// that are no longer open.
pub fn show_questions(app: &mut App) {
    let front = tab::front(&app.state);
    let is_shown = |question: &&Question| lookup::root_of(&app.state, question.session) == front;
    let open: Vec<(QuestionId, usize)> =
        app.state.questions.iter().filter(is_shown).map(|question| (question.id, question.first)).collect();
    let shown = |modal: &Modal| match modal {
        Modal::Question(id, _) => Some(*id),
        _ => None,
    };
    app.modals.retain(|modal| shown(modal).is_none_or(|id| open.iter().any(|(open, _)| *open == id)));
    for (id, first) in open {
        if !app.modals.iter().any(|modal| shown(modal) == Some(id)) {
            app.modals.push(Modal::Question(id, first));
        }
    }
}

/// Opens a page, or closes it if it is on top; it is never open twice.
pub fn toggle_page(app: &mut App, page: Modal) {
    let is_same = |modal: &Modal| std::mem::discriminant(modal) == std::mem::discriminant(&page);
    if app.modals.last().is_some_and(is_same) {
        app.modals.pop();
        return;
    }
    app.modals.retain(|modal| !is_same(modal));
    app.modals.push(page);
}

/// Scrolls the body of the top dialog by lines (negative: up).
pub fn scroll(lines: i32, cx: &mut Cx) {
    cx.effects.push(Effect::View(ViewCommand::ScrollDialog(lines)));
}

/// Handles scroll actions. Returns whether it was one.
pub fn scroll_body(action: Action, cx: &mut Cx) -> bool {
    match action {
        Action::PageUp => cx.effects.push(Effect::View(ViewCommand::ScrollDialogPages(-1))),
        Action::PageDown => cx.effects.push(Effect::View(ViewCommand::ScrollDialogPages(1))),
        Action::Scroll(lines) => scroll(i32::from(lines), cx),
        Action::ScrollTop => scroll(-ALL_LINES, cx),
        Action::ScrollEnd => scroll(ALL_LINES, cx),
        _ => return false,
    }
    true
}
