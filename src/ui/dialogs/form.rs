//! Forms of the agent: moving between fields, filling them in, reviewing, sending.
//!
//! `state.request_view.selected` is the field with the focus. Enter moves to the next field; on the last one the form is
//! validated, shown for review, and sent by another Enter. A form with one field, or with one question and a comment,
//! is sent without a review, because it is completely visible.

mod draw;

use crate::core::{Cx, Effect, FormValues, UserAnswer, ViewCommand};
use crate::model::{Action, FieldKind, LineEdit};
use crate::ui::App;

use super::layer::Flow;
use super::list::moved;
use super::scroll;
use super::{requests, validate};

use super::fields::{FieldState, FormState};
pub(super) use draw::draw;

/// Edits the text of the field with the focus.
pub fn on_line(app: &mut App, edit: &LineEdit) {
    let Some((form, selected)) = open_form(app) else { return };
    if form.is_review {
        return;
    }
    if let Some(field) = form.fields.get_mut(*selected)
        && field.takes_text()
        && field.input.apply(edit)
    {
        field.problem = None;
    }
}

pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> Flow {
    match action {
        Action::Decline => {
            requests::answer(app, UserAnswer::Decline, cx);
            return Flow::Stay;
        }
        Action::FullScreen => {
            app.request_view.is_full_screen = !app.request_view.is_full_screen;
            return Flow::Stay;
        }
        Action::ToggleSecret => {
            if let Some((form, _)) = open_form(app) {
                let is_revealed = !form.fields.iter().any(|field| field.is_revealed);
                form.fields.iter_mut().for_each(|field| field.is_revealed = is_revealed && field.is_secret);
            }
            return Flow::Stay;
        }
        Action::PageUp | Action::PageDown | Action::Scroll(_) => return scroll::scroll_body(action, cx),
        Action::Accept => {
            finish(app, cx);
            return Flow::Stay;
        }
        _ => {}
    }
    let Some((form, selected)) = open_form(app) else { return Flow::Pass };
    if form.is_review {
        return on_review(form, action, cx);
    }
    if on_field(form, selected, action) { Flow::Stay } else { Flow::Pass }
}

/// Enter: submits the form if it is complete.
fn finish(app: &mut App, cx: &mut Cx) {
    if let Some(values) = accept(app) {
        requests::answer(app, UserAnswer::Values(values), cx);
    }
}

fn on_review(form: &mut FormState, action: Action, cx: &mut Cx) -> Flow {
    match action {
        Action::Up => cx.effects.push(Effect::View(ViewCommand::ScrollDialog(-1))),
        Action::Down => cx.effects.push(Effect::View(ViewCommand::ScrollDialog(1))),
        Action::PreviousField | Action::Left | Action::Edit | Action::Mark(_) => form.is_review = false,
        Action::NextField | Action::Right | Action::First | Action::Last | Action::Choose(_) => {}
        _ => return Flow::Pass,
    }
    Flow::Stay
}

fn on_field(form: &mut FormState, selected: &mut usize, action: Action) -> bool {
    let count = form.fields.len();
    let is_question = form.is_one_question();
    let Some(field) = form.fields.get_mut(*selected) else { return false };
    match action {
        Action::NextField => leave_field(field, selected, 1, count),
        Action::PreviousField => leave_field(field, selected, -1, count),
        Action::Up | Action::Down => {
            let by = if action == Action::Up { -1 } else { 1 };
            if !move_choice(field, by, is_question) {
                leave_field(field, selected, by, count);
            }
        }
        Action::Left | Action::Right => {
            let (edit, by) = if action == Action::Left { (LineEdit::Left, -1) } else { (LineEdit::Right, 1) };
            if field.takes_text() {
                field.input.apply(&edit);
            } else if matches!(field.field.kind, FieldKind::Boolean { .. }) {
                toggle(field);
            } else {
                move_choice(field, by, is_question);
            }
        }
        Action::First | Action::Last if field.takes_text() => {
            field.input.apply(if action == Action::First { &LineEdit::Home } else { &LineEdit::End });
        }
        Action::First => *selected = 0,
        Action::Last => *selected = count.saturating_sub(1),
        Action::Choose(digit) => choose(field, digit),
        Action::ToggleChoice => toggle(field),
        Action::Mark(position) => *selected = moved(usize::from(position), 0, count),
        _ => return false,
    }
    true
}

/// Validates the field, so that a problem is shown there, and moves on.
fn leave_field(field: &mut FieldState, selected: &mut usize, by: isize, count: usize) {
    field.problem = validate::check(field).err();
    *selected = moved(*selected, by, count);
}

/// Moves the selection among the choices. Returns false at either end, and if there are none.
///
/// `only_marks`: selects without choosing, because moving over the answers to the comment field is not an answer.
fn move_choice(field: &mut FieldState, by: isize, only_marks: bool) -> bool {
    let position = field.choice.checked_add_signed(by).filter(|position| *position < field.choice_count());
    let Some(position) = position else { return false };
    field.choice = position;
    // One of several: the selected one is chosen, like a radio button.
    if matches!(field.field.kind, FieldKind::Choice { .. }) && !only_marks {
        check_only(field, position);
    }
    true
}

fn choose(field: &mut FieldState, digit: u8) {
    let Some(position) = usize::from(digit).checked_sub(1) else {
        if field.takes_text() {
            field.input.apply(&LineEdit::Insert(digit.to_string()));
        }
        return;
    };
    match field.field.kind {
        FieldKind::Text { .. } | FieldKind::Number { .. } => {
            field.input.apply(&LineEdit::Insert(digit.to_string()));
            field.problem = None;
        }
        FieldKind::Boolean { .. } if position < 2 => field.checked = vec![position == 0],
        FieldKind::Choice { .. } if position < field.choice_count() => {
            field.choice = position;
            check_only(field, position);
        }
        FieldKind::Choices { .. } if position < field.choice_count() => {
            field.choice = position;
            toggle(field);
        }
        FieldKind::Boolean { .. } | FieldKind::Choice { .. } | FieldKind::Choices { .. } => {}
    }
}

fn toggle(field: &mut FieldState) {
    let marked = field.choice;
    match field.field.kind {
        FieldKind::Text { .. } => {
            field.input.apply(&LineEdit::Insert(" ".to_owned()));
        }
        FieldKind::Number { .. } => {}
        FieldKind::Boolean { .. } => field.checked = vec![field.checked.first() != Some(&true)],
        FieldKind::Choice { .. } => {
            let was_chosen = field.checked.get(marked) == Some(&true);
            if was_chosen && !field.field.is_required {
                field.checked.fill(false);
            } else {
                check_only(field, marked);
            }
        }
        FieldKind::Choices { .. } => {
            if let Some(is_chosen) = field.checked.get_mut(marked) {
                *is_chosen = !*is_chosen;
            }
        }
    }
    field.problem = None;
}

fn check_only(field: &mut FieldState, position: usize) {
    for (at, is_chosen) in field.checked.iter_mut().enumerate() {
        *is_chosen = at == position;
    }
    field.problem = None;
}

/// Enter: moves to the next field or to the review, or returns the values to send.
fn accept(app: &mut App) -> Option<FormValues> {
    let (form, selected) = open_form(app)?;
    if form.is_review {
        return send(form, selected);
    }
    let is_question = form.is_one_question();
    let sends = form.sends_from(*selected);
    if let Some(field) = form.fields.get_mut(*selected) {
        // Enter chooses the selected answer if one is required.
        let is_choice = matches!(field.field.kind, FieldKind::Choice { .. });
        let is_open = field.field.is_required && !field.checked.contains(&true);
        if is_choice && (is_question || is_open) {
            check_only(field, field.choice);
        }
        field.problem = validate::check(field).err();
        if field.problem.is_some() {
            return None;
        }
    }
    if !sends && *selected + 1 < form.fields.len() {
        *selected += 1;
        return None;
    }
    let values = send(form, selected)?;
    form.is_review = !sends;
    sends.then_some(values)
}

/// The values if all are valid; otherwise the first invalid field gets the focus.
fn send(form: &mut FormState, selected: &mut usize) -> Option<FormValues> {
    let mut values = Vec::new();
    let mut first_problem = None;
    for (position, field) in form.fields.iter_mut().enumerate() {
        match validate::check(field) {
            Ok(value) => {
                field.problem = None;
                values.extend(value.map(|value| (field.field.key.clone(), value)));
            }
            Err(problem) => {
                field.problem = Some(problem);
                first_problem.get_or_insert(position);
            }
        }
    }
    match first_problem {
        None => Some(values),
        Some(position) => {
            form.is_review = false;
            *selected = position;
            None
        }
    }
}

/// The shown form, and the field with the focus.
fn open_form(app: &mut App) -> Option<(&mut FormState, &mut usize)> {
    let view = &mut app.request_view;
    view.form.as_mut().map(|form| (form, &mut view.selected))
}
