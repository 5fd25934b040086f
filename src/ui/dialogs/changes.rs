//! The dialog of all changes: the shown file, and the filter.
//!
//! The view handles rows: moves between hunks are sent to it.

use ratatui::layout::{Position, Rect};

use crate::config::keymap::Context;
use crate::core::state::changes::{ChangedFile, changed_files, first_line};
use crate::core::{Cx, Effect, LineInput, State, ViewCommand};
use crate::model::{Action, LineEdit, Location, Target};
use crate::ui::canvas::Canvas;
use crate::ui::frame_context::FrameContext;
use crate::ui::view_state::ViewState;
use crate::ui::{App, changes};

use super::layer::{Flow, Layer};
use super::list::moved;
use super::{open, scroll};

/// The files that match the filter: the path contains each of its words.
pub fn shown_files<'f>(files: &'f [ChangedFile], dialog: &ChangesDialog) -> Vec<&'f ChangedFile> {
    let filter = dialog.filter.text.to_lowercase();
    let fits = |file: &&ChangedFile| {
        let path = file.path.to_string_lossy().to_lowercase();
        filter.split_whitespace().all(|word| path.contains(word))
    };
    files.iter().filter(fits).collect()
}

/// The view of all changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChangesDialog {
    /// The shown file, an index into those that match the filter.
    pub selected: usize,
    pub filter: LineInput,
    /// Whether typed letters edit the filter.
    pub is_filtering: bool,
    /// Whether all known unchanged lines are shown.
    pub shows_context: bool,
}

impl Layer for ChangesDialog {
    fn title(&self, _state: &State) -> String {
        "Changes".to_owned()
    }

    /// While the filter is edited, its keys are those of a list.
    fn context(&self) -> Context {
        if self.is_filtering { Context::List } else { Context::Changes }
    }

    fn line(&self) -> Option<&LineInput> {
        self.is_filtering.then_some(&self.filter)
    }

    /// Edits the filter; the first matching file is shown.
    fn on_line(&mut self, _app: &mut App, edit: &LineEdit, _cx: &mut Cx) {
        if self.is_filtering && self.filter.apply(edit) {
            self.selected = 0;
        }
    }

    fn leave_part(&mut self) -> bool {
        let was_used = self.is_filtering || !self.filter.text.is_empty();
        if was_used {
            self.filter = LineInput::default();
            self.is_filtering = false;
            self.selected = 0;
        }
        was_used
    }

    fn on_action(&mut self, app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        let files = changed_files(&app.state, app.state.active);
        let shown = shown_files(&files, self);
        let count = shown.len();
        // The list may have changed since the last key.
        self.selected = self.selected.min(count.saturating_sub(1));
        match action {
            Action::NextField => self.selected = moved(self.selected, 1, count),
            Action::PreviousField => self.selected = moved(self.selected, -1, count),
            Action::Mark(position) => self.selected = moved(usize::from(position), 0, count),
            Action::NextHunk => cx.effects.push(Effect::View(ViewCommand::JumpHunk(1))),
            Action::PreviousHunk => cx.effects.push(Effect::View(ViewCommand::JumpHunk(-1))),
            Action::Filter => self.is_filtering = true,
            Action::ToggleContext => self.shows_context = !self.shows_context,
            // While the filter is edited, the arrow keys select files.
            Action::Up if self.is_filtering => self.selected = moved(self.selected, -1, count),
            Action::Down if self.is_filtering => self.selected = moved(self.selected, 1, count),
            Action::Accept if self.is_filtering => self.is_filtering = false,
            Action::Accept => {
                if let Some(file) = shown.get(self.selected) {
                    let line = file.parts.first().and_then(first_line);
                    let location = Location { path: file.path.clone(), line };
                    open::on_open(&mut app.state, Target::File(location), cx);
                }
            }
            _ => return scroll::scroll_page(action, cx),
        }
        Flow::Stay
    }

    fn draw(
        &self,
        ctx: &FrameContext,
        view: &mut ViewState,
        area: Rect,
        buf: &mut Canvas,
    ) -> Option<Position> {
        changes::draw(ctx, self, view, area, buf)
    }
}
