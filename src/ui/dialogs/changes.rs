//! The dialog of all changes: the shown file, and the filter.
//!
//! The view handles rows: moves between hunks are sent to it.

use crate::app::state::changes::{ChangedFile, changed_files, first_line};
use crate::app::{Cx, Effect, ViewCommand};
use crate::model::{Action, LineEdit, Location, Target};
use crate::ui::dialogs::modal::moved;
use crate::ui::{App, ChangesDialog, Modal};

use super::{open, stack};

/// The files that match the filter: the path contains each of its words.
pub fn shown_files<'f>(files: &'f [ChangedFile], dialog: &ChangesDialog) -> Vec<&'f ChangedFile> {
    let filter = dialog.filter.text.to_lowercase();
    let fits = |file: &&ChangedFile| {
        let path = file.path.to_string_lossy().to_lowercase();
        filter.split_whitespace().all(|word| path.contains(word))
    };
    files.iter().filter(fits).collect()
}

pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    let files = changed_files(&app.state, app.state.active);
    let Some(Modal::Changes(dialog)) = app.modals.last_mut() else { return false };
    let shown = shown_files(&files, dialog);
    let count = shown.len();
    // The list may have changed since the last key.
    dialog.selected = dialog.selected.min(count.saturating_sub(1));
    match action {
        Action::NextField => dialog.selected = moved(dialog.selected, 1, count),
        Action::PreviousField => dialog.selected = moved(dialog.selected, -1, count),
        Action::Mark(position) => dialog.selected = moved(usize::from(position), 0, count),
        Action::NextHunk => cx.effects.push(Effect::View(ViewCommand::JumpHunk(1))),
        Action::PreviousHunk => cx.effects.push(Effect::View(ViewCommand::JumpHunk(-1))),
        Action::Filter => dialog.is_filtering = true,
        Action::ToggleContext => dialog.shows_context = !dialog.shows_context,
        // While the filter is edited, the arrow keys select files.
        Action::Up if dialog.is_filtering => dialog.selected = moved(dialog.selected, -1, count),
        Action::Down if dialog.is_filtering => dialog.selected = moved(dialog.selected, 1, count),
        Action::Accept if dialog.is_filtering => dialog.is_filtering = false,
        Action::Accept => {
            if let Some(file) = shown.get(dialog.selected) {
                let line = file.parts.first().and_then(first_line);
                open::on_open(&mut app.state, Target::File(Location { path: file.path.clone(), line }), cx);
            }
        }
        Action::Up => stack::scroll(-1, cx),
        Action::Down => stack::scroll(1, cx),
        Action::First => stack::scroll(-stack::ALL_LINES, cx),
        Action::Last => stack::scroll(stack::ALL_LINES, cx),
        _ => return stack::scroll_body(action, cx),
    }
    true
}

/// Edits the filter; the first matching file is shown.
pub fn on_line(dialog: &mut ChangesDialog, edit: &LineEdit) {
    if dialog.is_filtering && dialog.filter.apply(edit) {
        dialog.selected = 0;
    }
}

/// Clears and closes the filter if it is in use. Returns whether it was.
pub fn leave_filter(app: &mut App) -> bool {
    let Some(Modal::Changes(dialog)) = app.modals.last_mut() else { return false };
    let was_used = dialog.is_filtering || !dialog.filter.text.is_empty();
    if was_used {
        dialog.filter = crate::app::LineInput::default();
        dialog.is_filtering = false;
        dialog.selected = 0;
    }
    was_used
}
