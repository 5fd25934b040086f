//! The page with the protocol log.

use ratatui::layout::{Position, Rect};

use crate::config::keymap::Context;
use crate::core::{Cx, LineInput, State};
use crate::model::{Action, LineEdit};
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::FrameContext;
use crate::ui::view_state::ViewState;
use crate::ui::{App, log};

use super::layer::{Flow, Layer};
use super::scroll;

#[derive(Debug, Default)]
pub struct LogPage {
    pub filter: LineInput,
}

impl Layer for LogPage {
    fn title(&self, _state: &State) -> String {
        "Protocol log".to_owned()
    }

    fn context(&self) -> Context {
        Context::Text
    }

    fn line(&self) -> Option<&LineInput> {
        Some(&self.filter)
    }

    fn on_line(&mut self, _app: &mut App, edit: &LineEdit, _cx: &mut Cx) {
        self.filter.apply(edit);
    }

    fn on_action(&mut self, _app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        scroll::on_page(action, Some(&mut self.filter), cx)
    }

    fn draw(
        &self,
        ctx: &FrameContext,
        view: &mut ViewState,
        area: Rect,
        buf: &mut Canvas,
    ) -> Option<Position> {
        log::draw(ctx, &self.filter, view, area, buf)
    }
}
