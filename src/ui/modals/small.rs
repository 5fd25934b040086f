//! Small dialogs: a question with a few answers, the queue, a text input.

use super::dialog_frame::{DialogFrame, Row, choice, input, spread, wrapped};
use super::permission;
use crate::app::Question;
use crate::config::keymap::Context;
use crate::config::keymap::sequence::{MAX_KEYS, Sequence};
use crate::model::Action;
use crate::ui::frame_context::{FrameContext, counted};
use crate::ui::hits::Hit;
use crate::ui::text;
use crate::ui::text::{Line, Span};
use crate::ui::theme::Role;
use crate::ui::{KeyCapture, LineDialog, dialogs};

/// The title of the dialog that waits for keys.
pub(super) const CAPTURE_TITLE: &str = "Press keys";

/// The explanation of an answer stands below its label, behind the number.
const ABOUT_INDENT: u16 = 3;

pub(super) fn question_frame(
    ctx: &FrameContext,
    question: &Question,
    marked: usize,
    cols: u16,
) -> DialogFrame<'static> {
    let mut sheet = DialogFrame { title: text::one_line(&question.title), ..DialogFrame::default() };
    sheet.is_alone = question.asked_at.is_some() && ctx.session.transcript.items().is_empty();
    for paragraph in &question.body {
        if paragraph.trim().is_empty() {
            sheet.body.push(Row::default());
        }
        sheet.body.extend(wrapped(ctx, Role::Modal, paragraph, cols));
    }
    for (index, answer) in question.answers.iter().enumerate() {
        let (label, about) = answer.label.split_once('\n').unwrap_or((&answer.label, ""));
        let rows = choice(ctx, index, label, index == marked, cols);
        let hit = rows.first().and_then(|row| row.hit);
        sheet.foot.extend(rows);
        let about = wrapped(ctx, Role::TextDim, about, cols.saturating_sub(ABOUT_INDENT));
        sheet.foot.extend(about.into_iter().filter(|_| answer.label.contains('\n')).map(|mut row| {
            row.line.spans.insert(0, Span::raw(" ".repeat(usize::from(ABOUT_INDENT))));
            Row { hit, ..row }
        }));
    }
    sheet.set_hints([
        ctx.hint(Context::Choice, Action::Accept, "select"),
        ctx.hint(Context::Choice, Action::Escape, "close"),
        Some(ctx.updown("choose")),
    ]);
    sheet.scroll_hint = ctx.hint(Context::Choice, Action::PageDown, "scroll");
    if question.asked_at.is_some() {
        permission::note_guard(ctx, &mut sheet);
    }
    sheet
}

pub(super) fn capture_frame(ctx: &FrameContext, capture: &KeyCapture, cols: u16) -> DialogFrame<'static> {
    let mut sheet = DialogFrame { title: CAPTURE_TITLE.to_owned(), ..DialogFrame::default() };
    let binding = &capture.binding;
    sheet.body = wrapped(ctx, Role::Modal, &format!("{}: {}", binding.title, binding.text), cols);
    if !binding.labels.is_empty() {
        let keys = binding.labels.join(", ");
        let fate = if capture.keeps.is_empty() { "Replaces" } else { "In addition to" };
        sheet.body.extend(wrapped(ctx, Role::TextDim, &format!("{fate}: {keys}"), cols));
    }
    let cancel = ctx.hint(Context::Choice, Action::Escape, "cancel");
    sheet.hints = cancel.into_iter().collect();
    if let Ok(keys) = Sequence::parse(&capture.pressed.join(" ")) {
        sheet.body.push(Line::default().into());
        let pressed = [ctx.span(Role::Modal, "Pressed: "), ctx.span(Role::KeyHint, keys.label())];
        sheet.body.push(Line::from(pressed.to_vec()).into());
        let taken = Context::named(binding.context).and_then(|context| ctx.keymap.taken_by(context, &keys));
        if let Some((old, meaning)) = taken.filter(|(_, meaning)| meaning != binding.text) {
            sheet.body.extend(wrapped(ctx, Role::Warning, &format!("{old} is bound to: {meaning}"), cols));
        }
        // These keys are fixed, because all others can be bound.
        sheet.hints.insert(0, ("Enter".to_owned(), "bind".to_owned()));
        if keys.chords().len() < MAX_KEYS {
            sheet.body.extend(wrapped(ctx, Role::TextDim, "Press another key for a sequence.", cols));
        }
    }
    sheet
}

pub(super) fn queue_frame(ctx: &FrameContext, selected: usize, cols: u16) -> DialogFrame<'static> {
    let outbox = &ctx.session.outbox;
    let count = outbox.queue_len();
    let mut sheet =
        DialogFrame { title: "Queued prompts".to_owned(), tag: count.to_string(), ..DialogFrame::default() };
    for (index, prompt) in outbox.queue().map(|prompt| &prompt.text).enumerate() {
        let rest = prompt.trim().lines().count().saturating_sub(1);
        let first = text::one_line(prompt.trim().lines().next().unwrap_or_default());
        let more = match rest {
            0 => String::new(),
            rest => format!(" {}", counted(rest, "more line", "more lines")),
        };
        let number = ctx.span(Role::Accent, format!("{:<3}", index + 1));
        let left = vec![number, ctx.span(Role::Modal, first)];
        let line = spread(left, Line::from(ctx.span(Role::TextDim, more)), cols);
        let hit = u16::try_from(index).ok().map(Action::Mark).map(Hit::Act);
        sheet.body.push(Row { line, hit, is_selected: index == selected, ..Row::default() });
    }
    if count == 0 {
        let why = "No queued prompts. Prompts sent during a turn are queued here.";
        sheet.body = wrapped(ctx, Role::TextDim, why, cols);
    }
    let is_running = ctx.session.turn.is_running();
    let can_steer = dialogs::obstacle(ctx.state, Action::Steer).is_none();
    sheet.set_hints([
        ctx.hint(Context::Queue, Action::Edit, "edit"),
        ctx.hint(Context::Queue, Action::SendNow, "send now"),
        ctx.hint(Context::Queue, Action::Steer, "send into the turn").filter(|_| can_steer && is_running),
        ctx.hint(Context::Queue, Action::Remove, "remove"),
        ctx.hint(Context::Queue, Action::Escape, "close"),
        ctx.hint(Context::Queue, Action::MoveUp, "move up").filter(|_| count > 1),
    ]);
    sheet
}

/// A text input; a secret shows only its length.
pub(super) fn line_frame(ctx: &FrameContext, dialog: &LineDialog, cols: u16) -> DialogFrame<'static> {
    let mut sheet = DialogFrame { title: text::one_line(&dialog.title), ..DialogFrame::default() };
    sheet.head = wrapped(ctx, Role::Modal, &dialog.help, cols);
    sheet.foot.push(input(ctx, &dialog.input, "", dialog.is_secret, cols));
    if let Some(problem) = &dialog.problem {
        sheet.foot.extend(wrapped(ctx, Role::Error, problem, cols));
    }
    sheet.set_hints([
        ctx.hint(Context::Line, Action::Accept, dialog.purpose.accepts()),
        ctx.hint(Context::Line, Action::Escape, "close"),
    ]);
    sheet
}
