//! The inbox, and answering a permission in it.
//!
//! Up and down move the selection, and Enter activates the tab; a key or a digit expands the request, with the keys of
//! its dialog except that Escape returns to the list.
//! Invariant: a request is answered only where it is expanded.

mod draw;

use ratatui::layout::{Position, Rect};

use crate::config::keymap::Context;
use crate::core::state::inbox::waiting;
use crate::core::state::unseen::WaitingFor;
use crate::core::{Cx, OpenRequest, OpenRequestKind, State};
use crate::model::{Action, SessionKey};
use crate::ui::App;
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::FrameContext;
use crate::ui::view_state::ViewState;

use super::layer::{Flow, Layer};
use super::list::{moved, stepped};
use super::{requests, tab_dialogs};

/// The selection in the inbox.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InboxDialog {
    /// The selected entry, by identity because the list changes; `None`: the list is empty.
    pub marked: Option<(SessionKey, WaitingFor)>,
    pub position: usize,
    /// Whether the selected request is shown completely.
    pub is_whole: bool,
}

impl Layer for InboxDialog {
    fn title(&self, _state: &State) -> String {
        draw::TITLE.to_owned()
    }

    fn context(&self) -> Context {
        Context::Permission
    }

    fn request<'a>(&self, state: &'a State) -> Option<Option<(SessionKey, &'a OpenRequest)>> {
        Some(self.answerable(state))
    }

    /// Returns from the expanded request to the list.
    fn leave_part(&mut self) -> bool {
        std::mem::take(&mut self.is_whole)
    }

    fn on_action(&mut self, app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        if self.is_whole {
            return if action == Action::Left && self.leave_part() {
                Flow::Stay
            } else {
                requests::on_options(app, action, cx)
            };
        }
        let count = waiting(&app.state).len();
        self.position = match action {
            Action::Accept => {
                if let Some((key, _)) = self.marked {
                    tab_dialogs::show(app, key, cx);
                }
                return Flow::Close;
            }
            Action::FullScreen | Action::Right | Action::ToggleChoice | Action::Choose(_) => {
                self.is_whole = self.answerable(&app.state).is_some();
                return Flow::Stay;
            }
            Action::Scroll(lines) => moved(self.position, isize::from(lines.signum()), count),
            _ => match stepped(action, self.position, count) {
                Some(position) => position,
                None => return Flow::Pass,
            },
        };
        self.marked = None;
        self.refresh(&app.state);
        Flow::Stay
    }

    fn stays_with_tab(&self) -> bool {
        false
    }

    fn draw(
        &self,
        ctx: &FrameContext,
        view: &mut ViewState,
        area: Rect,
        buf: &mut Canvas,
    ) -> Option<Position> {
        draw::draw(ctx, self, view, area, buf)
    }
}

impl InboxDialog {
    /// The request that is selected, if it can be answered here.
    pub fn answerable<'a>(&self, state: &'a State) -> Option<(SessionKey, &'a OpenRequest)> {
        let (key, what) = self.marked.as_ref()?;
        let WaitingFor::Ask(id) = what else { return None };
        let (_, open) = state.open_request(*id)?;
        let is_simple = matches!(open.kind, OpenRequestKind::Permission { .. } | OpenRequestKind::Access(_));
        is_simple.then_some((*key, open))
    }

    /// Keeps the selection on its entry; if that was removed, selects its neighbour.
    fn refresh(&mut self, state: &State) {
        let rows = waiting(state);
        let known = self
            .marked
            .as_ref()
            .and_then(|(key, what)| rows.iter().position(|row| row.key == *key && row.what == *what));
        if known.is_none() {
            self.is_whole = false;
        }
        self.position = known.unwrap_or(self.position).min(rows.len().saturating_sub(1));
        self.marked = rows.into_iter().nth(self.position).map(|row| (row.key, row.what));
    }
}

/// Opens the inbox, or closes it if it is on top.
pub fn open(app: &mut App) {
    app.layers.toggle(InboxDialog::default());
    refresh(app);
}

/// Shows what waits now, if the inbox is on top.
pub fn refresh(app: &mut App) {
    if let Some(dialog) = app.layers.top_mut::<InboxDialog>() {
        dialog.refresh(&app.state);
    }
}
