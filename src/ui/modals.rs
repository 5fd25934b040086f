//! Dialogs: selects the top one and draws it.
//!
//! Turns the top dialog, otherwise the first open request, into a [`dialog_frame::DialogFrame`] and draws it.
//! `input` handles keys, and `app` choices.
//!
//! Invariants: only the top dialog is drawn; its choices are always visible, and its body scrolls.

mod connection;
mod dialog_frame;
mod form;
mod help;
mod inbox;
mod inspect;
mod options;
mod permission;
mod picker;
mod sessions;
mod small;
mod themes;

pub(in crate::ui) use dialog_frame::{draw_bar, typed_line};
pub(in crate::ui) use options::label as option_label;
pub(in crate::ui) use permission::question as question_of;

use ratatui::layout::{Position, Rect};

use crate::app::{OpenRequest, OpenRequestKind, Session, State};
use crate::model::ElicitationMode;
use crate::ui::canvas::Canvas;
use crate::ui::dialogs::{self};
use crate::ui::{App, LineDialog, LinePurpose, Modal, PickerKind};

use super::changes;
use super::frame_context::FrameContext;
use super::log;
use super::text;
use super::transcript;
use dialog_frame::{DialogFrame, DialogPosition, Size};

use super::view_state::{DialogId, ViewState};

/// A request is drawn over the screen if the transcript is smaller.
const ANCHOR_COLS: u16 = 60;
const ANCHOR_ROWS: u16 = 11;

/// Draws the top dialog, if there is one, and returns the cursor position in it.
pub(super) fn draw(
    ctx: &FrameContext,
    view: &mut ViewState,
    area: Rect,
    buf: &mut Canvas,
) -> Option<Position> {
    if let Some((session, request, _)) = rejected(ctx) {
        view.show_dialog(DialogId::Ask(request.request_id));
        return permission::draw(&ctx.of(session), request, view, area, buf);
    }
    if let Some(modal) = ctx.app.modals.last() {
        view.show_dialog(DialogId::Modal(ctx.app.modals.len(), heading(ctx.state, modal)));
        let small = DialogPosition::new(area, Size::Small, false);
        let large = DialogPosition::new(area, Size::Large, false);
        let (frame, position) = match modal {
            Modal::Question(id, marked) => {
                let frame = ctx
                    .state
                    .question(*id)
                    .map(|question| small::question_frame(ctx, question, *marked, small.cols()));
                (frame.unwrap_or_default(), small)
            }
            Modal::Capture(capture) => (small::capture_frame(ctx, capture, small.cols()), small),
            Modal::Queue { selected } => (small::queue_frame(ctx, *selected, small.cols()), small),
            Modal::Line(dialog) => (small::line_frame(ctx, dialog, small.cols()), small),
            Modal::Help { filter } => (help::frame(ctx, filter, large.cols(), area.height), large),
            Modal::Connection(conn) => (connection::frame(ctx, *conn, large.cols()), large),
            Modal::Inspect(item) => {
                let ctx = ctx.of(asked_session(ctx.app).unwrap_or(ctx.session));
                return inspect::frame(&ctx, *item, large.cols()).draw(&ctx, large, view, buf);
            }
            Modal::Picker(picker) if picker.kind == PickerKind::Theme => {
                return themes::draw(ctx, picker, view, area, buf);
            }
            Modal::Picker(picker) => return picker::draw(ctx, picker, view, area, buf),
            Modal::Log { filter } => return log::draw(ctx, filter, view, area, buf),
            Modal::Changes(dialog) => return changes::draw(ctx, dialog, view, area, buf),
            Modal::Attention(_) => return inbox::draw(ctx, view, area, buf),
            Modal::Sessions(dialog) => return sessions::draw(ctx, dialog, view, area, buf),
        };
        return frame.draw(ctx, position, view, buf);
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
    permission::draw(ctx, request, view, area, buf)
}

/// A request of the agent at the bottom of the transcript.
pub(super) struct AnchoredRequest<'s> {
    frame: DialogFrame<'s>,
    position: DialogPosition,
}

impl<'s> AnchoredRequest<'s> {
    /// Prepares the request that is shown, unless it needs the whole screen or a dialog is open. `pane` is the area of
    /// the transcript.
    pub fn new(ctx: &'s FrameContext, view: &mut ViewState, pane: Rect) -> Option<Self> {
        let is_rejected = rejected(ctx).is_some_and(|(session, _, _)| session.key == ctx.session.key);
        let dialogs = ctx.app.modals.len() - usize::from(is_rejected);
        let request = ctx.session.requests.front().filter(|_| dialogs == 0)?;
        if dialogs::is_full_screen(ctx.app) || pane.width < ANCHOR_COLS || pane.height < ANCHOR_ROWS {
            return None;
        }
        view.show_dialog(DialogId::Ask(request.request_id));
        // Its right edge is that of the transcript's text.
        let position =
            DialogPosition::anchored(Rect { width: pane.width.min(transcript::FULL_COLS), ..pane });
        Some(Self { frame: permission::frame(ctx, request, view, position)?, position })
    }

    pub fn rows(&self) -> u16 {
        self.frame.height(self.position)
    }

    /// Draws it, and returns the cursor position in it.
    pub fn draw(self, ctx: &FrameContext, view: &mut ViewState, buf: &mut Canvas) -> Option<Position> {
        self.frame.draw(ctx, self.position, view, buf)
    }
}

/// The request that is being rejected with a reason, its session, and the input of the reason.
fn rejected<'s>(ctx: &FrameContext<'s>) -> Option<(&'s Session, &'s OpenRequest, &'s LineDialog)> {
    let Some(Modal::Line(dialog)) = ctx.app.modals.last() else { return None };
    let LinePurpose::Reason { session, request_id } = &dialog.purpose else { return None };
    let session = ctx.state.sessions.get(session)?;
    let request = session.requests.iter().find(|open| open.request_id == *request_id)?;
    Some((session, request, dialog))
}

/// The session of the request in the top dialog, if it was opened from the inbox.
fn asked_session(app: &App) -> Option<&Session> {
    let below = app.modals.get(app.modals.len().checked_sub(2)?)?;
    let Modal::Attention(dialog) = below else { return None };
    let (key, _) = dialog.marked.as_ref()?;
    app.state.sessions.get(key)
}

/// `1 of 3` if more requests are open; in the inbox after the tab.
fn place_in_queue(ctx: &FrameContext) -> String {
    let requests = &ctx.session.requests;
    let shown = rejected(ctx).map(|(_, open, _)| open.request_id).or(ctx.app.request_view.request_id);
    let position = requests.iter().position(|open| Some(open.request_id) == shown).unwrap_or(0);
    let place = (requests.len() > 1).then(|| format!("{} of {}", position + 1, requests.len()));
    let is_in_inbox = matches!(ctx.app.modals.last(), Some(Modal::Attention(_)));
    let tab = is_in_inbox.then(|| inbox::tab_of(ctx, ctx.session.key));
    tab.into_iter().chain(place).collect::<Vec<_>>().join(", ")
}

fn heading(state: &State, modal: &Modal) -> String {
    match modal {
        Modal::Picker(picker) => text::one_line(&picker.title),
        Modal::Question(id, _) => {
            state.question(*id).map(|question| text::one_line(&question.title)).unwrap_or_default()
        }
        Modal::Capture(_) => small::CAPTURE_TITLE.to_owned(),
        Modal::Line(line) => text::one_line(&line.title),
        Modal::Sessions(_) => "Sessions".to_owned(),
        Modal::Queue { .. } => "Queued prompts".to_owned(),
        Modal::Help { .. } => "Key bindings".to_owned(),
        Modal::Log { .. } => "Protocol log".to_owned(),
        Modal::Connection(_) => "Connection".to_owned(),
        Modal::Inspect(_) => "Raw tool call".to_owned(),
        Modal::Changes(_) => "Changes".to_owned(),
        Modal::Attention(_) => inbox::TITLE.to_owned(),
    }
}
