//! The dialog for a form of the agent.

use ratatui::layout::{Position, Rect};

use super::super::dialog_frame::{DialogFrame, DialogPosition, Row, Size, input, led, wrapped};
use super::super::fields::{FieldState, FormState};
use super::super::permission::place_in_queue;
use crate::config::keymap::Context;
use crate::model::{Action, FieldKind, FormField};
use crate::ui::canvas::Canvas;
use crate::ui::dialogs::{field_hint, shown_value};
use crate::ui::frame_context::FrameContext;
use crate::ui::hits::Hit;
use crate::ui::text;
use crate::ui::text::{Line, Span};
use crate::ui::theme::Role;
use crate::ui::view_state::ViewState;

const INDENT: u16 = 2;

/// Draws the form. `about` contains the agent's explanations.
#[allow(clippy::too_many_arguments, reason = "the parts of a form are separate fields of the protocol")]
pub fn draw(
    ctx: &FrameContext,
    title: Option<&str>,
    about: &[Option<&str>],
    fields: &[FormField],
    view: &mut ViewState,
    area: Rect,
    buf: &mut Canvas,
) -> Option<Position> {
    let is_full = ctx.keys.is_full_screen;
    let position = DialogPosition::new(area, Size::Small, is_full);
    let cols = position.cols();
    let heading = title.map(text::one_line).filter(|title| !title.is_empty());
    let mut sheet = DialogFrame {
        title: heading.unwrap_or_else(|| format!("Question from {}", ctx.agent())),
        tag: place_in_queue(ctx),
        ..DialogFrame::default()
    };
    // A long message scrolls with the fields, so that they remain reachable.
    for paragraph in about.iter().flatten().filter(|text| !text.trim().is_empty()) {
        sheet.body.extend(wrapped(ctx, Role::Dialog, paragraph, cols));
    }
    let fresh;
    let form = if let Some(form) = &ctx.request_view.form {
        form
    } else {
        fresh = FormState::new(fields);
        &fresh
    };
    let selected = ctx.request_view.selected;
    for (index, field) in form.fields.iter().enumerate() {
        if !sheet.body.is_empty() {
            sheet.body.push(Row::default());
        }
        if form.is_review {
            sheet.body.extend(reviewed(ctx, field, cols));
        } else {
            let marks = match form.is_one_question() {
                true if form.fields.len() == 1 => Marks::Numbers,
                true => Marks::Selection,
                false => Marks::Checks,
            };
            let mut shown = rows(ctx, field, index == selected, marks, cols);
            let mark = u16::try_from(index).ok().map(Action::Mark).map(Hit::Act);
            shown.iter_mut().filter(|row| row.hit.is_none()).for_each(|row| row.hit = mark);
            sheet.body.extend(shown);
        }
    }
    let accepts = if form.sends_from(selected) { "send" } else { "continue" };
    if form.is_review {
        sheet.foot = wrapped(ctx, Role::TextStrong, &format!("Sent to {}.", ctx.agent()), cols);
    }
    // Its fields get keys only after the user moved there.
    let is_beside = ctx.keys.is_beside_draft;
    let is_entered = !ctx.keys.is_closed || form.is_one_question();
    let accepts = if is_entered { accepts } else { "fill in" };
    if !is_entered || is_beside {
        sheet.set_hints([
            ctx.hint(Context::Form, Action::Accept, accepts).filter(|_| !is_beside),
            ctx.hint(Context::Main, Action::AnswerRequest, "fill in").filter(|_| is_beside),
            ctx.hint(Context::Form, Action::Escape, "cancel"),
            ctx.hint(Context::Form, Action::Decline, "decline"),
        ]);
        return sheet.draw(ctx, position, view, buf);
    }
    sheet.set_hints([
        ctx.hint(Context::Form, Action::Accept, accepts),
        ctx.hint(Context::Form, Action::Escape, "cancel"),
        ctx.hint(Context::Form, Action::PreviousField, "back").filter(|_| form.is_review),
        ctx.hint(Context::Form, Action::NextField, "next field")
            .filter(|_| form.fields.len() > 1 && !form.is_review),
        ctx.hint(Context::Form, Action::ToggleChoice, "select").filter(|_| {
            let takes_marks = form.fields.get(selected).is_some_and(|field| !field.takes_text());
            takes_marks && !form.is_review && !form.is_one_question()
        }),
        ctx.hint(Context::Form, Action::Decline, "decline"),
        form.fields.iter().find(|field| field.is_secret).and_then(|field| {
            let does = if field.is_revealed { "hide secrets" } else { "show secrets" };
            ctx.hint(Context::Form, Action::ToggleSecret, does)
        }),
    ]);
    // Otherwise the body follows the selected field.
    sheet.scroll_hint = ctx.hint(Context::Form, Action::PageDown, "scroll").filter(|_| form.is_review);
    sheet.draw(ctx, position, view, buf)
}

/// The marks of the choices of a field.
#[derive(Clone, Copy)]
enum Marks {
    /// Their numbers, which answer as in permission requests.
    Numbers,
    /// The selected choice is the answer while the field has the focus.
    Selection,
    Checks,
}

/// A field: name, value, help text or error.
fn rows(ctx: &FrameContext, state: &FieldState, is_focused: bool, marks: Marks, cols: u16) -> Vec<Row> {
    let field = &state.field;
    let mut name = vec![
        ctx.span(Role::Accent, if is_focused { ctx.render.glyphs.arrow } else { " " }),
        Span::raw(" "),
        ctx.span(if is_focused { Role::TextStrong } else { Role::Dialog }, text::one_line(&field.title)),
    ];
    if !field.is_required {
        name.push(ctx.span(Role::TextDim, "  optional"));
    }
    let mut rows: Vec<Row> = text::wrap_line(&Line::from(name), cols).into_iter().map(Row::from).collect();
    let room = cols.saturating_sub(INDENT).max(8);
    let mut inside = Vec::new();
    match &field.kind {
        FieldKind::Text { .. } | FieldKind::Number { .. } => {
            let mut row =
                input(ctx, &state.input, &field_hint(field).unwrap_or_default(), state.is_masked(), room);
            row.cursor = row.cursor.filter(|_| is_focused);
            inside.push(row);
        }
        FieldKind::Choice { choices, .. } | FieldKind::Choices { choices, .. } => {
            let is_single = matches!(field.kind, FieldKind::Choice { .. });
            for (index, one) in choices.iter().enumerate() {
                let is_checked = match marks {
                    Marks::Selection if is_focused => index == state.choice,
                    _ => state.checked.get(index).copied().unwrap_or(false),
                };
                let mark = match index + 1 {
                    number @ 1..10 if matches!(marks, Marks::Numbers) => number.to_string(),
                    _ => check(ctx, is_checked, is_single).to_owned(),
                };
                let detail = one.description.as_deref().map(text::one_line).unwrap_or_default();
                let label = text::one_line(&one.title);
                // An empty circle is no answer, so it is fainter than a full one.
                let has_mark = is_checked || matches!(marks, Marks::Numbers);
                let role = if has_mark { Role::Accent } else { Role::TextDim };
                let mut spans = vec![ctx.span(role, format!("{mark} ")), ctx.span(Role::Dialog, label)];
                if !detail.is_empty() {
                    spans.push(ctx.span(Role::TextDim, format!("  {detail}")));
                }
                let is_selected = is_focused && index == state.choice;
                let act = u8::try_from(index + 1).ok().map(Action::Choose).filter(|_| is_focused);
                let hit = act.map(Hit::Act);
                for line in text::wrap_line(&Line::from(spans), room) {
                    inside.push(Row { line, hit, is_selected, ..Row::default() });
                }
            }
        }
        FieldKind::Boolean { .. } => {
            let is_on = state.checked.first().copied();
            let label = match is_on {
                Some(true) => "yes",
                Some(false) => "no",
                None => "not set",
            };
            let mark = check(ctx, is_on == Some(true), false);
            let spans = vec![ctx.span(Role::Accent, format!("{mark} ")), ctx.span(Role::Dialog, label)];
            let hit = is_focused.then_some(Hit::Act(Action::ToggleChoice));
            inside.push(Row { line: Line::from(spans), hit, is_selected: is_focused, ..Row::default() });
        }
    }
    if let Some(help) = field.description.as_deref().filter(|_| is_focused) {
        inside.extend(wrapped(ctx, Role::TextDim, help, room));
    }
    if let Some(problem) = &state.problem {
        inside.extend(wrapped(ctx, Role::Error, problem, room));
    }
    rows.extend(led(inside, Span::raw(" ".repeat(usize::from(INDENT)))));
    rows
}

fn reviewed(ctx: &FrameContext, state: &FieldState, cols: u16) -> Vec<Row> {
    let value = shown_value(state);
    let mut rows = wrapped(ctx, Role::TextDim, &text::one_line(&state.field.title), cols);
    if value.is_empty() {
        rows.extend(wrapped(ctx, Role::TextDim, "empty", cols));
    } else {
        rows.extend(wrapped(ctx, Role::Dialog, &value, cols));
    }
    if let Some(problem) = &state.problem {
        rows.extend(wrapped(ctx, Role::Error, problem, cols));
    }
    rows
}

fn check(ctx: &FrameContext, is_on: bool, is_single: bool) -> &'static str {
    let glyphs = ctx.render.glyphs;
    match (is_on, is_single) {
        (true, true) => ctx.marks.current,
        (false, true) => glyphs.pending,
        (true, false) => glyphs.task_done,
        (false, false) => glyphs.task_open,
    }
}
