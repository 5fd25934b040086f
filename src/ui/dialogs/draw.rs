//! Draws the top dialog, otherwise the first open request.
//!
//! Invariants: only the top dialog is drawn; its choices are always visible, and its body scrolls.

use ratatui::layout::{Position, Rect};

use crate::core::OpenRequestKind;
use crate::model::ElicitationMode;
use crate::ui::App;
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::FrameContext;
use crate::ui::view_state::{DialogId, ViewState};
use crate::ui::{text, transcript};

use super::dialog_frame::{DialogFrame, DialogPosition};
use super::permission::rejected;
use super::{form, permission};

/// A request is drawn over the screen if the transcript is smaller.
const ANCHOR_COLS: u16 = 60;
const ANCHOR_ROWS: u16 = 11;

/// Draws the top dialog, if there is one, and returns the cursor position in it.
pub fn draw(
    app: &App,
    ctx: &FrameContext,
    view: &mut ViewState,
    area: Rect,
    buf: &mut Canvas,
) -> Option<Position> {
    if let Some((session, request, reason)) = rejected(app) {
        view.show_dialog(DialogId::Ask(request.request_id));
        return permission::draw(&ctx.of(session), request, Some(reason), view, area, buf);
    }
    if let Some(layer) = app.layers.last() {
        view.show_dialog(DialogId::Layer(app.layers.len(), text::one_line(&layer.title(ctx.state))));
        return layer.draw(ctx, view, area, buf);
    }
    let Some(request) = ctx.session.requests.front() else {
        view.hide_dialog();
        return None;
    };
    view.show_dialog(DialogId::Ask(request.request_id));
    if let OpenRequestKind::Elicitation(request) = &request.kind
        && let ElicitationMode::Form { title, description, fields } = &request.mode
    {
        let about = [Some(request.message.as_str()), description.as_deref()];
        return form::draw(ctx, title.as_deref(), &about, fields, view, area, buf);
    }
    permission::draw(ctx, request, None, view, area, buf)
}

/// A request of the agent at the bottom of the transcript.
pub struct AnchoredRequest<'s> {
    frame: DialogFrame<'s>,
    position: DialogPosition,
}

impl<'s> AnchoredRequest<'s> {
    /// Prepares the request that is shown, unless it needs the whole screen or a dialog is open. `pane` is the area of
    /// the transcript.
    pub fn new(app: &'s App, ctx: &'s FrameContext, view: &mut ViewState, pane: Rect) -> Option<Self> {
        let rejected = rejected(app).filter(|(session, _, _)| session.key == ctx.session.key);
        let dialogs = app.layers.len() - usize::from(rejected.is_some());
        let request = ctx.session.requests.front().filter(|_| dialogs == 0)?;
        if ctx.keys.is_full_screen || pane.width < ANCHOR_COLS || pane.height < ANCHOR_ROWS {
            return None;
        }
        view.show_dialog(DialogId::Ask(request.request_id));
        let reason = rejected.map(|(_, _, reason)| reason);
        // Its right edge is that of the transcript's text.
        let position =
            DialogPosition::anchored(Rect { width: pane.width.min(transcript::FULL_COLS), ..pane });
        Some(Self { frame: permission::frame(ctx, request, reason, view, position)?, position })
    }

    pub fn rows(&self) -> u16 {
        self.frame.height(self.position)
    }

    /// Draws it, and returns the cursor position in it.
    pub fn draw(self, ctx: &FrameContext, view: &mut ViewState, buf: &mut Canvas) -> Option<Position> {
        self.frame.draw(ctx, self.position, view, buf)
    }
}
