//! A question of parlor with a few answers.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::config::keymap::Context;
use crate::core::{Answer, Consequence, Cx, Question, QuestionId, State, UserAnswer};
use crate::model::Action;
use crate::ui::App;
use crate::ui::frame_context::FrameContext;
use crate::ui::text::Span;
use crate::ui::theme::Role;

use super::dialog_frame::{DialogFrame, Row, choice, led, wrapped};
use super::layer::{Flow, Layer};
use super::list::moved;
use super::scroll::scroll_body;

/// The explanation of an answer stands below its label, behind the number.
const ABOUT_INDENT: u16 = 3;

#[derive(Debug, Clone, PartialEq)]
pub struct QuestionDialog {
    pub id: QuestionId,
    /// The position of the selected answer.
    pub marked: usize,
}

impl Layer for QuestionDialog {
    fn title(&self, state: &State) -> String {
        state.question(self.id).map(|question| question.title.clone()).unwrap_or_default()
    }

    fn context(&self) -> Context {
        Context::Choice
    }

    fn unasked_question(&self, state: &State) -> Option<u64> {
        state.question(self.id)?.asked_at?;
        let mut hasher = DefaultHasher::new();
        self.id.hash(&mut hasher);
        Some(hasher.finish())
    }

    fn on_action(&mut self, app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        let Some(question) = app.state.question(self.id) else { return Flow::Pass };
        let answers = &question.answers;
        let count = answers.len();
        self.marked = match action {
            Action::Up | Action::Left | Action::PreviousField => moved(self.marked, -1, count),
            Action::Down | Action::Right | Action::NextField => moved(self.marked, 1, count),
            Action::First => 0,
            Action::Last => count.saturating_sub(1),
            Action::Mark(position) => moved(usize::from(position), 0, count),
            Action::Choose(_) | Action::Accept | Action::Yes | Action::No => {
                let chosen = match action {
                    Action::Choose(position) => usize::from(position).checked_sub(1),
                    Action::Accept => Some(self.marked),
                    Action::Yes => only_action(answers),
                    _ => answers.iter().position(|answer| answer.consequence == Consequence::Close),
                };
                // It closes once the question is answered.
                if let Some(position) = chosen {
                    super::notice::answer(&mut app.state, self.id, UserAnswer::Option(position), cx);
                }
                return Flow::Stay;
            }
            _ => return scroll_body(action, cx),
        };
        Flow::Stay
    }

    /// A question that is still open is shown again by its tab.
    fn stays_with_tab(&self) -> bool {
        false
    }

    fn frame<'a>(&'a self, ctx: &'a FrameContext, cols: u16, _rows: u16) -> DialogFrame<'a> {
        let question = ctx.state.question(self.id);
        question.map(|question| frame(ctx, question, self.marked, cols)).unwrap_or_default()
    }
}

/// The answer for "yes": only if there is a single one besides closing.
fn only_action(answers: &[Answer]) -> Option<usize> {
    let mut actions =
        answers.iter().enumerate().filter(|(_, answer)| answer.consequence != Consequence::Close);
    let (position, _) = actions.next()?;
    actions.next().is_none().then_some(position)
}

fn frame(ctx: &FrameContext, question: &Question, marked: usize, cols: u16) -> DialogFrame<'static> {
    let is_alone = question.asked_at.is_some() && ctx.session.transcript.items().is_empty();
    let mut sheet = DialogFrame { is_alone, ..DialogFrame::default() };
    for paragraph in &question.body {
        if paragraph.trim().is_empty() {
            sheet.body.push(Row::default());
        }
        sheet.body.extend(wrapped(ctx, Role::Dialog, paragraph, cols));
    }
    for (index, answer) in question.answers.iter().enumerate() {
        let (label, about) = answer.label.split_once('\n').unwrap_or((&answer.label, ""));
        let rows = choice(ctx, index, label, index == marked, cols);
        let hit = rows.first().and_then(|row| row.hit);
        sheet.foot.extend(rows);
        let about = wrapped(ctx, Role::TextDim, about, cols.saturating_sub(ABOUT_INDENT));
        let about = led(about, Span::raw(" ".repeat(usize::from(ABOUT_INDENT))));
        sheet.foot.extend(about.into_iter().map(|row| Row { hit, ..row }));
    }
    sheet.set_hints([
        ctx.hint(Context::Choice, Action::Accept, "select"),
        ctx.hint(Context::Choice, Action::Escape, "close"),
        Some(ctx.updown("choose")),
    ]);
    sheet.scroll_hint = ctx.hint(Context::Choice, Action::PageDown, "scroll");
    if question.asked_at.is_some() {
        sheet.note_guard(ctx);
    }
    sheet
}
