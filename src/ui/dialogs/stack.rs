//! The stack of open dialogs: closing the top one, showing questions.

use crate::core::state::{lookup, tab};
use crate::core::{Cx, Question, QuestionId, UserAnswer};
use crate::ui::App;

use super::choice::QuestionDialog;

/// Closes the top dialog: dismisses a question, and reverts a previewed theme.
pub fn close_top(app: &mut App, cx: &mut Cx) {
    let question = app.layers.top::<QuestionDialog>().map(|dialog| dialog.id);
    if let Some(layer) = app.layers.pop() {
        layer.on_close(app, cx);
    }
    if let Some(id) = question {
        super::notice::answer(&mut app.state, id, UserAnswer::Dismiss, cx);
    }
}

/// Shows the questions of the active tab, on top of other dialogs in the order in which they were asked; removes those
/// that are no longer open.
pub fn show_questions(app: &mut App) {
    let front = tab::front(&app.state);
    let is_shown = |question: &&Question| lookup::root_of(&app.state, question.session) == front;
    let open: Vec<(QuestionId, usize)> =
        app.state.questions.iter().filter(is_shown).map(|question| (question.id, question.first)).collect();
    app.layers.retain::<QuestionDialog>(|dialog| open.iter().any(|(open, _)| *open == dialog.id));
    for (id, marked) in open {
        if !app.layers.all::<QuestionDialog>().any(|dialog| dialog.id == id) {
            app.layers.push(QuestionDialog { id, marked });
        }
    }
}
