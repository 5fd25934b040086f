//! Dialogs without a list: questions with a few answers, and pages to read.

use crate::app::{Answer, Consequence, Cx, LineInput, UserAnswer};
use crate::model::{Action, LineEdit};
use crate::ui::dialogs::modal::moved;
use crate::ui::{App, Modal};

use super::stack::{ALL_LINES, scroll, scroll_body};

/// Handles an action in a question with a few answers.
pub fn on_choice(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    let Some(Modal::Question(id, marked)) = app.modals.last_mut() else { return false };
    let id = *id;
    let Some(question) = app.state.questions.iter().find(|question| question.id == id) else { return false };
    let answers = &question.answers;
    let to = match action {
        Action::Up | Action::Left | Action::PreviousField => moved(*marked, -1, answers.len()),
        Action::Down | Action::Right | Action::NextField => moved(*marked, 1, answers.len()),
        Action::First => 0,
        Action::Last => answers.len().saturating_sub(1),
        Action::Mark(position) => moved(usize::from(position), 0, answers.len()),
        Action::Choose(_) | Action::Accept | Action::Yes | Action::No => {
            let chosen = match action {
                Action::Choose(position) => usize::from(position).checked_sub(1),
                Action::Accept => Some(*marked),
                Action::Yes => only_action(answers),
                _ => answers.iter().position(|answer| answer.consequence == Consequence::Close),
            };
            if let Some(position) = chosen {
                super::answer(app, id, UserAnswer::Option(position), cx);
            }
            return true;
        }
        _ => return scroll_body(action, cx),
    };
    *marked = to;
    true
}

/// Handles an action in help, log and connection details, some of which have a filter.
pub fn on_page(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    match action {
        Action::Up => scroll(-1, cx),
        Action::Down => scroll(1, cx),
        Action::First => scroll(-ALL_LINES, cx),
        Action::Last => scroll(ALL_LINES, cx),
        Action::Left => edit_filter(app, &LineEdit::Left),
        Action::Right => edit_filter(app, &LineEdit::Right),
        Action::Choose(digit) => edit_filter(app, &LineEdit::Insert(digit.to_string())),
        Action::Accept | Action::NextField | Action::PreviousField => {}
        _ => return scroll_body(action, cx),
    }
    true
}

pub fn help() -> Modal {
    Modal::Help { filter: LineInput::default() }
}

pub fn log() -> Modal {
    Modal::Log { filter: LineInput::default() }
}

/// The answer for "yes": only if there is a single one besides closing.
fn only_action(answers: &[Answer]) -> Option<usize> {
    let mut actions =
        answers.iter().enumerate().filter(|(_, answer)| answer.consequence != Consequence::Close);
    let (position, _) = actions.next()?;
    actions.next().is_none().then_some(position)
}

fn edit_filter(app: &mut App, edit: &LineEdit) {
    if let Some(Modal::Help { filter } | Modal::Log { filter }) = app.modals.last_mut() {
        filter.apply(edit);
    }
}
