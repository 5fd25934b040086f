//! The dialog with a single line to type.

use std::fmt::Debug;

use crate::config::keymap::Context;
use crate::core::{Cx, LineInput, State};
use crate::model::{Action, LineEdit, RequestId, SessionKey};
use crate::ui::App;
use crate::ui::frame_context::FrameContext;
use crate::ui::theme::Role;

use super::dialog_frame::{DialogFrame, input, wrapped};
use super::layer::{Flow, Layer};
use super::scroll;

/// What the line is for.
pub trait Purpose: Debug + 'static {
    /// What Enter does, for the hint.
    fn verb(&self) -> &'static str;

    /// Handles the text, without blanks at its ends. The error says why it is not valid; the dialog then stays open.
    fn accept(&self, text: &str, app: &mut App, cx: &mut Cx) -> Result<(), String>;

    /// The request that is rejected with the text, which is shown above the line.
    fn rejected(&self) -> Option<(SessionKey, RequestId)> {
        None
    }
}

#[derive(Debug)]
pub struct LineDialog {
    pub title: String,
    pub help: String,
    pub input: LineInput,
    pub is_secret: bool,
    /// Why the input is not valid.
    pub problem: Option<String>,
    purpose: Box<dyn Purpose>,
}

impl LineDialog {
    pub fn new(title: impl Into<String>, help: impl Into<String>, text: &str, purpose: impl Purpose) -> Self {
        Self {
            title: title.into(),
            help: help.into(),
            input: LineInput::new(text),
            is_secret: false,
            problem: None,
            purpose: Box::new(purpose),
        }
    }

    /// Whether the text is masked.
    #[must_use]
    pub fn hiding(mut self, is_secret: bool) -> Self {
        self.is_secret = is_secret;
        self
    }

    /// The request that is rejected with the text, if it is for that.
    pub fn rejected(&self) -> Option<(SessionKey, RequestId)> {
        self.purpose.rejected()
    }
}

impl Layer for LineDialog {
    fn title(&self, _state: &State) -> String {
        self.title.clone()
    }

    fn context(&self) -> Context {
        Context::Line
    }

    fn line(&self) -> Option<&LineInput> {
        Some(&self.input)
    }

    fn on_line(&mut self, _app: &mut App, edit: &LineEdit, _cx: &mut Cx) {
        if self.input.apply(edit) {
            self.problem = None;
        }
    }

    fn on_action(&mut self, app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        let edit = match action {
            Action::Accept => {
                let text = self.input.text.trim().to_owned();
                return match self.purpose.accept(&text, app, cx) {
                    Ok(()) => Flow::Close,
                    Err(problem) => {
                        self.problem = Some(problem);
                        Flow::Stay
                    }
                };
            }
            Action::Left => LineEdit::Left,
            Action::Right => LineEdit::Right,
            Action::First => LineEdit::Home,
            Action::Last => LineEdit::End,
            Action::Choose(digit) => LineEdit::Insert(digit.to_string()),
            Action::Up | Action::Down | Action::NextField | Action::PreviousField => return Flow::Stay,
            _ => return scroll::scroll_body(action, cx),
        };
        self.input.apply(&edit);
        Flow::Stay
    }

    fn frame<'a>(&'a self, ctx: &'a FrameContext, cols: u16, _rows: u16) -> DialogFrame<'a> {
        frame(ctx, self, cols)
    }
}

/// A text input; a secret shows only its length.
pub(super) fn frame(ctx: &FrameContext, dialog: &LineDialog, cols: u16) -> DialogFrame<'static> {
    let head = wrapped(ctx, Role::Dialog, &dialog.help, cols);
    let mut sheet = DialogFrame { head, ..DialogFrame::default() };
    sheet.foot.push(input(ctx, &dialog.input, "", dialog.is_secret, cols));
    if let Some(problem) = &dialog.problem {
        sheet.foot.extend(wrapped(ctx, Role::Error, problem, cols));
    }
    sheet.set_hints([
        ctx.hint(Context::Line, Action::Accept, dialog.purpose.verb()),
        ctx.hint(Context::Line, Action::Escape, "close"),
    ]);
    sheet
}
