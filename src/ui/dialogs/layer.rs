//! Dialogs as layers above the transcript: what every dialog can do, and the stack of the open ones.

use std::any::Any;
use std::fmt::Debug;

use ratatui::layout::{Position, Rect};

use crate::config::keymap::Context;
use crate::core::{Cx, LineInput, OpenRequest, State};
use crate::model::{Action, LineEdit, SessionKey};
use crate::ui::App;
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::FrameContext;
use crate::ui::text;
use crate::ui::view_state::ViewState;

use super::dialog_frame::{DialogFrame, DialogPosition, Size};
use super::list::ListView;

/// What happens to a dialog after an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Stay,
    Close,
    /// It stays open, and leaves the action to the session.
    Pass,
}

/// A page as text. Each answer has its label, and what it does.
pub struct PlainPage {
    pub text: String,
    pub answers: Vec<(String, Vec<Action>)>,
}

/// An open dialog: its data, keys and drawing.
///
/// While a dialog handles a key it is not on the stack, so that it can open others above its own place.
pub trait Layer: Any + Debug {
    fn title(&self, state: &State) -> String;

    /// The context of the keymap in which its keys are looked up.
    fn context(&self) -> Context;

    fn on_action(&mut self, app: &mut App, action: Action, cx: &mut Cx) -> Flow;

    /// The text that typed keys edit, if there is one.
    fn line(&self) -> Option<&LineInput> {
        None
    }

    /// Handles an edit of [`Self::line`].
    fn on_line(&mut self, _app: &mut App, _edit: &LineEdit, _cx: &mut Cx) {}

    fn list(&self) -> Option<&ListView> {
        None
    }

    /// The page as text with numbered answers, for plain text mode.
    fn plain(&self) -> Option<PlainPage> {
        None
    }

    fn list_mut(&mut self) -> Option<&mut ListView> {
        None
    }

    /// The id of its question, if parlor opened it and not the user; [`crate::guard`] then decides which keys answer it.
    fn unasked_question(&self, _state: &State) -> Option<u64> {
        None
    }

    /// The request of an agent that it lets the user answer, with its session; the outer `None`: it has nothing to do with
    /// requests.
    fn request<'a>(&self, _state: &'a State) -> Option<Option<(SessionKey, &'a OpenRequest)>> {
        None
    }

    /// Handles Escape inside the dialog, such as by clearing its filter. If it returns `false`, the dialog closes.
    fn leave_part(&mut self) -> bool {
        false
    }

    /// Called when the dialog is closed without a choice, by Escape or because another tab is shown.
    fn on_close(&self, _app: &mut App, _cx: &mut Cx) {}

    /// Whether it stays open for its tab while another tab is active.
    fn stays_with_tab(&self) -> bool {
        true
    }

    fn size(&self) -> Size {
        Size::Small
    }

    /// What it shows below its title at this inner width and screen height.
    fn frame<'a>(&'a self, _ctx: &'a FrameContext, _cols: u16, _rows: u16) -> DialogFrame<'a> {
        DialogFrame::default()
    }

    /// Draws it, and returns the cursor position in it.
    fn draw(
        &self,
        ctx: &FrameContext,
        view: &mut ViewState,
        area: Rect,
        buf: &mut Canvas,
    ) -> Option<Position> {
        let position = DialogPosition::new(area, self.size(), false);
        let mut frame = self.frame(ctx, position.cols(), area.height);
        frame.title = text::one_line(&self.title(ctx.state));
        frame.draw(ctx, position, view, buf)
    }
}

/// The open dialogs, the top one last.
#[derive(Debug, Default)]
pub struct Layers(Vec<Box<dyn Layer>>);

impl Layers {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn last(&self) -> Option<&dyn Layer> {
        self.0.last().map(Box::as_ref)
    }

    pub fn last_mut(&mut self) -> Option<&mut (dyn Layer + 'static)> {
        self.0.last_mut().map(Box::as_mut)
    }

    /// The top dialog, if it is of this type.
    pub fn top<L: Layer>(&self) -> Option<&L> {
        of(self.0.last()?.as_ref())
    }

    pub fn top_mut<L: Layer>(&mut self) -> Option<&mut L> {
        of_mut(self.0.last_mut()?.as_mut())
    }

    /// The dialog below the top one.
    pub fn below(&self) -> Option<&dyn Layer> {
        self.0.iter().rev().nth(1).map(Box::as_ref)
    }

    /// The dialogs of this type, from the bottom.
    pub fn all<L: Layer>(&self) -> impl Iterator<Item = &L> {
        self.0.iter().filter_map(|layer| of(layer.as_ref()))
    }

    /// The lowest dialog of this type.
    pub fn find_mut<L: Layer>(&mut self) -> Option<&mut L> {
        self.0.iter_mut().find_map(|layer| of_mut(layer.as_mut()))
    }

    pub fn has<L: Layer>(&self) -> bool {
        self.all::<L>().next().is_some()
    }

    pub fn push(&mut self, layer: impl Layer) {
        self.0.push(Box::new(layer));
    }

    /// Opens a dialog, and closes others of its type.
    pub fn open<L: Layer>(&mut self, layer: L) {
        self.close::<L>();
        self.push(layer);
    }

    /// Opens a dialog, or closes it if one of its type is on top.
    pub fn toggle<L: Layer>(&mut self, layer: L) {
        if self.top::<L>().is_some() {
            self.0.pop();
        } else {
            self.open(layer);
        }
    }

    pub fn pop(&mut self) -> Option<Box<dyn Layer>> {
        self.0.pop()
    }

    /// Closes the dialogs of this type.
    pub fn close<L: Layer>(&mut self) {
        self.retain::<L>(|_| false);
    }

    /// Closes the dialogs of this type for which the condition does not hold.
    pub fn retain<L: Layer>(&mut self, keeps: impl Fn(&L) -> bool) {
        self.0.retain(|layer| of(layer.as_ref()).is_none_or(&keeps));
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes out all dialogs, from the bottom.
    pub(super) fn take(&mut self) -> Vec<Box<dyn Layer>> {
        std::mem::take(&mut self.0)
    }

    /// Puts a dialog below those that were opened while it was taken out.
    fn put_back(&mut self, place: usize, layer: Box<dyn Layer>) {
        self.0.insert(place.min(self.0.len()), layer);
    }
}

impl FromIterator<Box<dyn Layer>> for Layers {
    fn from_iter<I: IntoIterator<Item = Box<dyn Layer>>>(layers: I) -> Self {
        Self(layers.into_iter().collect())
    }
}

#[cfg(test)]
impl<L: Layer> From<L> for Layers {
    fn from(layer: L) -> Self {
        Self(vec![Box::new(layer)])
    }
}

fn of<L: Layer>(layer: &dyn Layer) -> Option<&L> {
    let layer: &dyn Any = layer;
    layer.downcast_ref()
}

fn of_mut<L: Layer>(layer: &mut dyn Layer) -> Option<&mut L> {
    let layer: &mut dyn Any = layer;
    layer.downcast_mut()
}

/// Passes a call to the top dialog, and closes the dialog if the call says so. `None`: no dialog is open.
pub fn with_top(app: &mut App, call: impl FnOnce(&mut dyn Layer, &mut App) -> Flow) -> Option<Flow> {
    let mut layer = app.layers.pop()?;
    let (place, tab) = (app.layers.len(), app.user.shown_tab);
    let flow = call(layer.as_mut(), app);
    // Another tab has other dialogs.
    if flow != Flow::Close && app.user.shown_tab == tab {
        app.layers.put_back(place, layer);
    }
    Some(flow)
}
