//! How a question that the user did not open shows when its answers count.

use super::DialogFrame;
use crate::config::keymap::Context;
use crate::model::Action;
use crate::ui::frame_context::FrameContext;
use crate::ui::theme::Role;

impl DialogFrame<'_> {
    /// Sets the hints of a question that the user did not open, for the layer that has the keys, and dims its answers until
    /// they count.
    pub fn note_guard(&mut self, ctx: &FrameContext) {
        if !ctx.keys.is_guarded {
            return;
        }
        self.end_key = ctx.key(Context::Permission, Action::ScrollEnd);
        if ctx.keys.is_beside_draft {
            self.set_hints([
                ctx.hint(Context::Main, Action::AnswerRequest, "answer"),
                ctx.hint(Context::Permission, Action::Escape, escape_means(ctx)),
            ]);
            self.scroll_hint = None;
        } else if ctx.keys.waits_for_end {
            // The number of lines below is added.
            self.set_hints([ctx.hint(Context::Permission, Action::Escape, escape_means(ctx))]);
            self.scroll_hint = None;
        } else if !ctx.keys.takes_answers {
            let wait = (ctx.render.glyphs.ellipsis.to_owned(), "waiting for a pause in typing".to_owned());
            self.hints = vec![wait];
            self.scroll_hint = None;
        }
        if ctx.keys.is_beside_draft || !ctx.keys.takes_answers {
            // While only the end is missing, keys mark answers.
            let can_mark = ctx.keys.waits_for_end;
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
    let is_elsewhere = ctx.keys.is_beside_draft && ctx.keys.base != Context::Main;
    if is_elsewhere || ctx.keys.is_in_inbox {
        "back"
    } else if ctx.session.outbox.edited().is_some() && ctx.keys.is_beside_draft {
        "discard edit"
    } else {
        "reject"
    }
}
