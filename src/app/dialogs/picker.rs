//! Lists with a filter: how they are made and filtered.
//!
//! `rows` makes their rows, `pickers` opens them, `picks` has their keys. Invariant: `matches` is in step with `filter` and `rows`, and `selected` is a
//! place in `matches` unless they are empty.

use crate::app::state::fuzzy::{self, Texts};
use crate::app::{Effect, LineInput, Modal, Picker, PickerKind, PickerRow, PickerValue, State};
use crate::model::{LineEdit, PaletteCommand};

use super::rows;

/// A picker with these rows; the one in force is marked.
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
        shown_at: None,
    }
}

/// Puts a picker on top; one of the same kind is never there twice.
pub fn push(state: &mut State, picker: Picker) {
    state.modals.retain(|modal| !matches!(modal, Modal::Picker(other) if other.kind == picker.kind));
    state.modals.push(Modal::Picker(picker));
}

/// The filter of the top picker changes.
pub fn on_filter(state: &mut State, edit: &LineEdit, fx: &mut Vec<Effect>) {
    let Some(Modal::Picker(picker)) = state.modals.last_mut() else { return };
    if picker.filter.apply(edit) {
        refilter(picker, &state.setup.palette);
        preview(picker, fx);
    }
}

/// A theme is shown while it is only marked; `stack::close_top` takes that back.
pub fn preview(picker: &Picker, fx: &mut Vec<Effect>) {
    if picker.kind == PickerKind::Theme
        && let Some(PickerRow { value: PickerValue::Id(name), .. }) = marked_row(picker)
    {
        fx.push(Effect::SetTheme(name.clone()));
    }
}

/// Filters and orders the rows by what is typed.
pub fn refilter(picker: &mut Picker, palette: &[PaletteCommand]) {
    if picker.kind == PickerKind::Folder {
        // What is typed may be a path that no row has.
        picker.rows.retain(|row| row.group.is_some());
        picker.rows.extend(typed_row(&picker.filter.text));
    }
    // The heading above a row tells as much of it as its detail.
    let detail = |row: &PickerRow| match &row.group {
        Some(group) => format!("{} {group}", row.detail),
        None => row.detail.clone(),
    };
    let details: Vec<String> = picker.rows.iter().map(detail).collect();
    let texts = picker.rows.iter().zip(&details).map(|(row, detail)| Texts {
        label: &row.label,
        detail,
        synonyms: rows::synonyms(palette, row),
    });
    picker.matches = fuzzy::rank_texts(&picker.filter.text, texts);
    picker.selected = 0;
}

/// The selected row.
pub fn marked_row(picker: &Picker) -> Option<&PickerRow> {
    picker.matches.get(picker.selected).and_then(|row| picker.rows.get(*row))
}

/// The row for what was typed, if that can be a path.
fn typed_row(text: &str) -> Option<PickerRow> {
    let text = text.trim();
    let is_path = text.contains(['/', '\\']) || text.starts_with(['~', '.']);
    is_path.then(|| PickerRow {
        value: PickerValue::Id(text.to_owned()),
        label: text.to_owned(),
        detail: "typed path".to_owned(),
        right: String::new(),
        group: None,
        is_current: false,
    })
}
