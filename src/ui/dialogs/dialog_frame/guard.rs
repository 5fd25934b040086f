//! How a question that the user did not open shows when its answers count.

use super::DialogFrame;
use crate::config::keymap::Context;
use crate::model::Action;
use crate::ui::dialogs;
use crate::ui::frame_context::FrameContext;
use crate::ui::theme::Role;

impl DialogFrame<'_> {
    /// Sets the hints of a question that the user did not open, for the layer that has the keys, and dims its answers until
    /// they count.
    pub fn note_guard(&mut self, ctx: &FrameContext) {
        if ctx.app.guard.question().is_none() {
            return;
        }
        self.end_key = ctx.key(Context::Permission, Action::ScrollEnd);
        if dialogs::is_beside_draft(ctx.app) {
            self.set_hints([
                ctx.hint(Context::Main, Action::AnswerRequest, "answer"),
                ctx.hint(Context::Permission, Action::Escape, escape_means(ctx)),
            ]);
            self.scroll_hint = None;
        } else if dialogs::waits_for_end(ctx.app, ctx.render.now) {
            // The number of lines below is added.
            self.set_hints([ctx.hint(Context::Permission, Action::Escape, escape_means(ctx))]);
            self.scroll_hint = None;
        } else if !dialogs::takes_answers(ctx.app, ctx.render.now) {
            let wait = (ctx.render.glyphs.ellipsis.to_owned(), "waiting for a pause in typing".to_owned());
            self.hints = vec![wait];
            self.scroll_hint = None;
        }
        if dialogs::is_beside_draft(ctx.app) || !dialogs::takes_answers(ctx.app, ctx.render.now) {
            // While only the end is missing, keys mark answers.
            let can_mark = dialogs::waits_for_end(ctx.app, ctx.render.now);
            for row in &mut self.foot {
                row.is_selected &= can_mark;
                for span in &mut row.line.spans {
                    span.style = ctx.style(Role::TextDim);
                }
            }
        }
    }
}

/// In the inbox, Escape returns to the list.
pub fn escape_means(ctx: &FrameContext) -> &'static str {
    let is_elsewhere = dialogs::is_beside_draft(ctx.app) && dialogs::base_focus(ctx.app) != Context::Main;
    if is_elsewhere || dialogs::is_in_inbox(ctx.app) {
        "back"
    } else if ctx.session.outbox.edited().is_some() && dialogs::is_beside_draft(ctx.app) {
        "discard edit"
    } else {
        "reject"
    }
}
