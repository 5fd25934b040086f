//! The rows of a list with a filter.
//!
//! Invariant: `matches` is always computed from the current `filter` and `rows`, and `selected` is an index into
//! `matches` unless that is empty.

use crate::core::LineInput;
use crate::core::state::fuzzy::{self, Texts};
use crate::model::Action;

/// Rows moved by a page key.
const PAGE_ROWS: isize = 10;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PickerRow {
    pub label: String,
    /// Shown dimmed after the label, and matched.
    pub detail: String,
    /// Shown at the right: a key or a state.
    pub right: String,
    /// Group heading, shown where it changes.
    pub group: Option<String>,
    pub is_current: bool,
    /// Other words by which the filter finds it.
    pub synonyms: String,
}

impl PickerRow {
    /// A row with only a label.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }
}

/// The rows of a list, its filter and its selection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListView {
    pub title: String,
    pub rows: Vec<PickerRow>,
    pub filter: LineInput,
    /// Indices into `rows` that match the filter, best first.
    pub matches: Vec<usize>,
    /// The selected row, an index into `matches`.
    pub selected: usize,
    /// A line at the bottom: why it is empty, how many rows are hidden, that it is loading.
    pub note: Option<String>,
}

impl ListView {
    /// Filters and ranks the rows, and selects the first.
    pub fn refilter(&mut self) {
        // The heading above a row describes it as much as its detail.
        let detail = |row: &PickerRow| match &row.group {
            Some(group) => format!("{} {group}", row.detail),
            None => row.detail.clone(),
        };
        let details: Vec<String> = self.rows.iter().map(detail).collect();
        let texts = self.rows.iter().zip(&details);
        let texts = texts.map(|(row, detail)| Texts { label: &row.label, detail, synonyms: &row.synonyms });
        self.matches = fuzzy::rank_texts(&self.filter.text, texts);
        self.selected = 0;
    }

    /// The row of a match.
    pub fn row(&self, position: usize) -> Option<&PickerRow> {
        self.rows.get(*self.matches.get(position)?)
    }

    pub fn marked(&self) -> Option<&PickerRow> {
        self.row(self.selected)
    }

    /// Where an action moves the selection to, if it moves it.
    pub fn target(&self, action: Action) -> Option<usize> {
        target(action, self.selected, self.matches.len())
    }
}

/// Where an action moves a selection in a list, if it moves it. One step beyond an end leads to the other.
pub fn target(action: Action, selected: usize, count: usize) -> Option<usize> {
    let last = count.saturating_sub(1);
    match action {
        Action::Up | Action::PreviousField if selected == 0 => Some(last),
        Action::Down | Action::NextField if selected >= last => Some(0),
        _ => stepped(action, selected, count),
    }
}

/// Where an action moves a selection, if it moves it. The selection stops at the ends.
pub fn stepped(action: Action, selected: usize, count: usize) -> Option<usize> {
    Some(match action {
        Action::Up | Action::PreviousField => moved(selected, -1, count),
        Action::Down | Action::NextField => moved(selected, 1, count),
        Action::PageUp => moved(selected, -PAGE_ROWS, count),
        Action::PageDown => moved(selected, PAGE_ROWS, count),
        Action::Scroll(lines) => moved(selected, isize::from(lines), count),
        Action::First => 0,
        Action::Last => count.saturating_sub(1),
        Action::Mark(position) => moved(usize::from(position), 0, count),
        _ => return None,
    })
}

/// An index moved by a number of rows, limited to the list.
pub fn moved(position: usize, by: isize, count: usize) -> usize {
    position.saturating_add_signed(by).min(count.saturating_sub(1))
}
