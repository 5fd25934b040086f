//! The inbox, and answering a permission in it.
//!
//! Up and down move the selection, and Enter activates the tab; a key or a digit expands the request, with the keys of
//! its dialog except that Escape returns to the list.
//! Invariant: a request is answered only where it is expanded.

use crate::app::Cx;
use crate::app::state::inbox::{Waiting, waiting};
use crate::model::Action;
use crate::ui::dialogs::modal::moved;
use crate::ui::{App, InboxDialog, Modal};

use super::{requests, stack, tab_dialogs};

/// Rows moved by a page key.
const PAGE_ROWS: isize = 10;

/// Opens the inbox, or closes it if it is on top.
pub fn open(app: &mut App) {
    stack::toggle_page(app, Modal::Attention(InboxDialog::default()));
    refresh(app);
}

/// Keeps the selection on its entry; if that was removed, selects its neighbour.
pub fn refresh(app: &mut App) {
    let Some(Modal::Attention(_)) = app.modals.last() else { return };
    let rows = waiting(&app.state);
    let Some(Modal::Attention(dialog)) = app.modals.last_mut() else { return };
    let known = dialog
        .marked
        .as_ref()
        .and_then(|(key, what)| rows.iter().position(|row| row.key == *key && row.what == *what));
    if known.is_none() {
        dialog.is_whole = false;
    }
    dialog.position = known.unwrap_or(dialog.position).min(rows.len().saturating_sub(1));
    dialog.marked = rows.into_iter().nth(dialog.position).map(|row| (row.key, row.what));
}

/// Whether the selected request is expanded.
pub fn is_whole(app: &App) -> bool {
    matches!(app.modals.last(), Some(Modal::Attention(dialog)) if dialog.is_whole)
}

/// Returns from the expanded request to the list. Returns whether it was expanded.
pub fn leave_whole(app: &mut App) -> bool {
    match app.modals.last_mut() {
        Some(Modal::Attention(dialog)) => std::mem::take(&mut dialog.is_whole),
        _ => false,
    }
}

pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    if is_whole(app) {
        return action == Action::Left && leave_whole(app) || requests::on_options(app, action, cx);
    }
    let count = waiting(&app.state).len();
    let Some(Modal::Attention(dialog)) = app.modals.last_mut() else { return false };
    let position = match action {
        Action::Accept => {
            go(app, cx);
            return true;
        }
        Action::FullScreen | Action::Right | Action::ToggleChoice | Action::Choose(_) => {
            let can = app.marked_request().is_some();
            if let Some(Modal::Attention(dialog)) = app.modals.last_mut() {
                dialog.is_whole = can;
            }
            return true;
        }
        Action::Up | Action::PreviousField => moved(dialog.position, -1, count),
        Action::Down | Action::NextField => moved(dialog.position, 1, count),
        Action::PageUp => moved(dialog.position, -PAGE_ROWS, count),
        Action::PageDown => moved(dialog.position, PAGE_ROWS, count),
        Action::Scroll(lines) => moved(dialog.position, isize::from(lines.signum()), count),
        Action::First => 0,
        Action::Last => count.saturating_sub(1),
        Action::Mark(position) => moved(usize::from(position), 0, count),
        _ => return false,
    };
    dialog.position = position;
    dialog.marked = None;
    refresh(app);
    true
}

fn go(app: &mut App, cx: &mut Cx) {
    let Some(Modal::Attention(InboxDialog { marked, .. })) = app.modals.pop() else { return };
    if let Some((key, _)) = marked {
        tab_dialogs::show(app, key, cx);
    }
}

pub fn rows(app: &App) -> (Vec<Waiting>, usize) {
    let position = match app.modals.last() {
        Some(Modal::Attention(dialog)) => dialog.position,
        _ => 0,
    };
    (waiting(&app.state), position)
}
