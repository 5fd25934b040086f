//! Pickers: lists with a filter.
//!
//! `rows` creates their rows, `pickers` opens them, `picks` handles their keys. Invariant: `matches` is always
//! computed from the current `filter` and `rows`, and `selected` is an index into `matches` unless that is empty.

use crate::app::state::fuzzy::{self, Texts};
use crate::app::{Cx, Effect, LineInput, Setup};
use crate::model::LineEdit;
use crate::ui::{App, Modal, Picker, PickerKind, PickerRow, PickerValue};

use super::rows;

/// Creates a picker with the active row selected.
pub fn new(kind: PickerKind, title: impl Into<String>, rows: Vec<PickerRow>) -> Picker {
    Picker {
        kind,
        title: title.into(),
        matches: (0..rows.len()).collect(),
        selected: rows.iter().position(|row| row.is_current).unwrap_or(0),
        rows,
        filter: LineInput::default(),
        note: None,
        conn: None,
        is_by_itself: false,
    }
}

/// Opens a picker and closes an open one of the same kind.
pub fn push(app: &mut App, picker: Picker) {
    app.modals.retain(|modal| !matches!(modal, Modal::Picker(other) if other.kind == picker.kind));
    app.modals.push(Modal::Picker(picker));
}

/// Handles a change of the top picker's filter.
pub fn on_filter(app: &mut App, edit: &LineEdit, cx: &mut Cx) {
    let Some(Modal::Picker(picker)) = app.modals.last_mut() else { return };
    if picker.filter.apply(edit) {
        refilter(picker, &app.state.setup);
        preview(picker, &app.state.setup, cx);
    }
}

/// Previews the selected theme; `stack::close_top` reverts the preview.
pub fn preview(picker: &Picker, setup: &Setup, cx: &mut Cx) {
    if picker.kind == PickerKind::Theme
        && let Some(PickerRow { value: PickerValue::Id(name), .. }) = marked_row(picker)
    {
        cx.effects.push(Effect::SetTheme(setup.theme_named(name).to_owned()));
    }
}

/// Filters and ranks the rows.
pub fn refilter(picker: &mut Picker, setup: &Setup) {
    if picker.kind == PickerKind::Folder {
        // The filter may be a path without a row.
        picker.rows.retain(|row| row.group.is_some());
        picker.rows.extend(typed_row(&picker.filter.text));
    }
    // The heading above a row describes it as much as its detail.
    let detail = |row: &PickerRow| match &row.group {
        Some(group) => format!("{} {group}", row.detail),
        None => row.detail.clone(),
    };
    let details: Vec<String> = picker.rows.iter().map(detail).collect();
    let texts = picker.rows.iter().zip(&details).map(|(row, detail)| Texts {
        label: &row.label,
        detail,
        synonyms: rows::synonyms(setup, &picker.kind, row),
    });
    picker.matches = fuzzy::rank_texts(&picker.filter.text, texts);
    picker.selected = 0;
}

/// Replaces the rows; the selection stays on its value.
pub fn replace_rows(picker: &mut Picker, setup: &Setup, rows: Vec<PickerRow>) {
    let marked = marked_row(picker).map(|row| row.value.clone());
    picker.rows = rows;
    refilter(picker, setup);
    let is_marked =
        |row: &usize| picker.rows.get(*row).is_some_and(|row| Some(&row.value) == marked.as_ref());
    picker.selected = picker.matches.iter().position(is_marked).unwrap_or(0);
}

pub fn marked_row(picker: &Picker) -> Option<&PickerRow> {
    picker.matches.get(picker.selected).and_then(|row| picker.rows.get(*row))
}

/// A row for the typed path, if the filter can be a path.
fn typed_row(text: &str) -> Option<PickerRow> {
    let text = text.trim();
    let is_path = text.contains(['/', '\\']) || text.starts_with(['~', '.']);
    is_path.then(|| PickerRow {
        detail: "typed path".to_owned(),
        ..PickerRow::new(PickerValue::Id(text.to_owned()), text)
    })
}
