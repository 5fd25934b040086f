//! Pickers: lists with a filter.
//!
//! A [`List`] says what is listed and what picking does, [`ListView`] has its rows, filter and selection.

mod draw;

use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};

use ratatui::layout::{Position, Rect};

use crate::config::keymap::Context;
use crate::core::{Cx, LineInput, State};
use crate::model::{Action, ConnId, LineEdit};
use crate::ui::App;
use crate::ui::canvas::Canvas;
use crate::ui::dialogs::layer::{Flow, Layer};
use crate::ui::dialogs::scroll;
use crate::ui::frame_context::FrameContext;
use crate::ui::view_state::ViewState;

pub use super::list::{ListView, PickerRow};

pub trait List: Debug + Sized + 'static {
    type Item: Debug + Clone + PartialEq + 'static;

    /// Whether the picker stays open for its tab while another tab is active.
    const STAYS_WITH_TAB: bool = false;
    /// Whether the rows below the list show the detail of the selected row, if details are truncated.
    const SHOWS_DETAIL: bool = false;
    /// Whether the texts at the right are values, which are truncated where other texts are omitted.
    const SHOWS_VALUES: bool = false;

    /// Handles the choice of a row.
    fn pick(&mut self, item: Self::Item, app: &mut App, cx: &mut Cx) -> Flow;

    /// What picking does, for the hint.
    fn verb(&self, _item: Option<&Self::Item>) -> &'static str {
        "select"
    }

    /// What the rows below the list say about the selected row.
    fn about(&self, _state: &State, _item: Option<&Self::Item>) -> Option<String> {
        None
    }

    /// Handles an action of its own.
    fn on_action(_picker: &mut Picker<Self>, _app: &mut App, _action: Action, _cx: &mut Cx) -> Flow {
        Flow::Pass
    }

    /// Called before the rows are filtered.
    fn on_filter(_picker: &mut Picker<Self>) {}

    /// Called after the user has changed the filter.
    fn on_filtered(picker: &mut Picker<Self>, app: &mut App, cx: &mut Cx) {
        Self::on_marked(picker, app, cx);
    }

    /// Called after the user has selected another row.
    fn on_marked(_picker: &mut Picker<Self>, _app: &mut App, _cx: &mut Cx) {}

    fn on_close(&self, _app: &mut App, _cx: &mut Cx) {}

    /// The agent that parlor opened it for, unless the user did.
    fn unasked_by(&self) -> Option<ConnId> {
        None
    }

    /// Whether it is drawn in the middle of an empty screen.
    fn is_alone(&self, _ctx: &FrameContext) -> bool {
        false
    }

    /// Hints for its own keys.
    fn hints(&self, _ctx: &FrameContext) -> Vec<(String, String)> {
        Vec::new()
    }

    fn draw(
        picker: &Picker<Self>,
        ctx: &FrameContext,
        view: &mut ViewState,
        area: Rect,
        buf: &mut Canvas,
    ) -> Option<Position> {
        draw_list(picker, ctx, view, area, buf)
    }
}

/// A list with a fuzzy filter.
#[derive(Debug)]
pub struct Picker<L: List> {
    pub list: L,
    /// What the rows of the view stand for, in the same order.
    items: Vec<L::Item>,
    pub view: ListView,
}

impl<L: List> Picker<L> {
    /// With the current row selected.
    pub fn new(list: L, title: impl Into<String>, rows: Vec<(PickerRow, L::Item)>) -> Self {
        let (rows, items): (Vec<PickerRow>, Vec<L::Item>) = rows.into_iter().unzip();
        let view = ListView {
            title: title.into(),
            matches: (0..rows.len()).collect(),
            selected: rows.iter().position(|row| row.is_current).unwrap_or(0),
            rows,
            ..ListView::default()
        };
        Self { list, items, view }
    }

    /// Shows a note below the rows.
    #[must_use]
    pub fn noting(mut self, note: impl Into<Option<String>>) -> Self {
        self.view.note = note.into();
        self
    }

    /// Selects the first row for which the condition holds, if there is one.
    #[must_use]
    pub fn marking(mut self, is_it: impl Fn(&L::Item) -> bool) -> Self {
        self.mark(is_it);
        self
    }

    pub fn mark(&mut self, is_it: impl Fn(&L::Item) -> bool) {
        let items = &self.items;
        let is_it = |row: &usize| items.get(*row).is_some_and(&is_it);
        if let Some(position) = self.view.matches.iter().position(is_it) {
            self.view.selected = position;
        }
    }

    pub fn marked(&self) -> Option<&L::Item> {
        self.items.get(*self.view.matches.get(self.view.selected)?)
    }

    pub fn items(&self) -> &[L::Item] {
        &self.items
    }

    /// Replaces the rows; the selection stays on its item.
    pub fn set_rows(&mut self, rows: Vec<(PickerRow, L::Item)>) {
        let marked = self.marked().cloned();
        (self.view.rows, self.items) = rows.into_iter().unzip();
        self.view.refilter();
        if let Some(marked) = marked {
            self.mark(|item| *item == marked);
        }
    }

    /// Replaces the rows by those that were already filtered.
    pub fn set_found(&mut self, rows: Vec<(PickerRow, L::Item)>) {
        (self.view.rows, self.items) = rows.into_iter().unzip();
        self.show_all();
    }

    /// Shows all rows, whatever the filter is.
    pub fn show_all(&mut self) {
        self.view.matches = (0..self.view.rows.len()).collect();
        self.view.selected = self.view.selected.min(self.view.rows.len().saturating_sub(1));
    }

    /// Adds a row, which is shown once the rows are filtered again.
    pub fn push_row(&mut self, row: PickerRow, item: L::Item) {
        self.view.rows.push(row);
        self.items.push(item);
    }

    /// Removes the rows for which the condition does not hold; the others are shown once they are filtered again.
    pub fn retain_rows(&mut self, keeps: impl Fn(&PickerRow) -> bool) {
        let rows = std::mem::take(&mut self.view.rows).into_iter();
        let rows = rows.zip(std::mem::take(&mut self.items));
        (self.view.rows, self.items) = rows.filter(|(row, _)| keeps(row)).unzip();
    }

    pub fn set_filter(&mut self, filter: LineInput) {
        self.view.filter = filter;
        self.refilter();
    }

    pub fn refilter(&mut self) {
        L::on_filter(self);
        self.view.refilter();
    }
}

impl<L: List> Layer for Picker<L> {
    fn title(&self, _state: &State) -> String {
        self.view.title.clone()
    }

    fn context(&self) -> Context {
        Context::List
    }

    fn line(&self) -> Option<&LineInput> {
        Some(&self.view.filter)
    }

    fn list(&self) -> Option<&ListView> {
        Some(&self.view)
    }

    fn list_mut(&mut self) -> Option<&mut ListView> {
        Some(&mut self.view)
    }

    fn unasked_question(&self, _state: &State) -> Option<u64> {
        let conn = self.list.unasked_by()?;
        let mut hasher = DefaultHasher::new();
        (&self.view.title, conn, self.view.rows.len()).hash(&mut hasher);
        Some(hasher.finish())
    }

    fn on_line(&mut self, app: &mut App, edit: &LineEdit, cx: &mut Cx) {
        if self.view.filter.apply(edit) {
            self.refilter();
            L::on_filtered(self, app, cx);
        }
    }

    fn on_action(&mut self, app: &mut App, action: Action, cx: &mut Cx) -> Flow {
        match action {
            Action::Accept => {
                let Some(item) = self.marked().cloned() else { return Flow::Stay };
                return self.list.pick(item, app, cx);
            }
            Action::Choose(digit) => self.on_line(app, &LineEdit::Insert(digit.to_string()), cx),
            Action::ToggleChoice => self.on_line(app, &LineEdit::Insert(" ".to_owned()), cx),
            Action::Left | Action::Right => {
                let edit = if action == Action::Left { LineEdit::Left } else { LineEdit::Right };
                self.view.filter.apply(&edit);
            }
            _ => match self.view.target(action) {
                Some(target) if target != self.view.selected => {
                    self.view.selected = target;
                    L::on_marked(self, app, cx);
                }
                Some(_) => {}
                None => {
                    return match L::on_action(self, app, action, cx) {
                        Flow::Pass => scroll::scroll_body(action, cx),
                        flow => flow,
                    };
                }
            },
        }
        Flow::Stay
    }

    fn on_close(&self, app: &mut App, cx: &mut Cx) {
        self.list.on_close(app, cx);
    }

    fn stays_with_tab(&self) -> bool {
        L::STAYS_WITH_TAB
    }

    fn draw(
        &self,
        ctx: &FrameContext,
        view: &mut ViewState,
        area: Rect,
        buf: &mut Canvas,
    ) -> Option<Position> {
        L::draw(self, ctx, view, area, buf)
    }
}

/// Draws a picker as a list only.
pub fn draw_list<L: List>(
    picker: &Picker<L>,
    ctx: &FrameContext,
    view: &mut ViewState,
    area: Rect,
    buf: &mut Canvas,
) -> Option<Position> {
    let style = draw::Style {
        verb: picker.list.verb(picker.marked()),
        about: picker.list.about(ctx.state, picker.marked()),
        shows_detail: L::SHOWS_DETAIL,
        is_alone: picker.list.is_alone(ctx),
        shows_values: L::SHOWS_VALUES,
        hints: picker.list.hints(ctx),
    };
    draw::draw(ctx, &picker.view, style, view, area, buf)
}
