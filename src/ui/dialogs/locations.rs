//! The list of files and links to open, taken from the selected item, otherwise from the last items.

use super::notice::notify;
use crate::core::state::locations::of_item;
use crate::core::{Cx, Session};
use crate::model::{Action, Target};
use crate::ui::App;

use super::layer::Flow;
use super::open::on_open;
use super::picker::{List, Picker, PickerRow};

/// The most places to list.
const MAX_ROWS: usize = 200;
/// The number of items to search, from the bottom of the screen upwards, if none is selected.
const MAX_ITEMS: usize = 200;

/// Files and links of the transcript.
#[derive(Debug)]
pub struct Locations;

impl List for Locations {
    type Item = Target;

    fn pick(&mut self, target: Target, app: &mut App, cx: &mut Cx) -> Flow {
        on_open(&mut app.state, target, cx);
        Flow::Close
    }
}

/// Opens the list. Returns whether the action was handled.
pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    if action != Action::OpenPlaces {
        return false;
    }
    let Some(session) = app.state.active_session() else { return true };
    let rows = rows(session);
    if rows.is_empty() {
        let text = if session.selected.is_some() {
            "The selected item has no file or link."
        } else {
            "The transcript above has no file or link."
        };
        notify(&mut app.state, text, cx);
        return true;
    }
    let title = if session.selected.is_some() { "Open from selected item" } else { "Open" };
    app.layers.open(Picker::new(Locations, title, rows));
    true
}

/// The places without repetition, those of the latest item first.
fn rows(session: &Session) -> Vec<(PickerRow, Target)> {
    let items = session.transcript.items();
    let selected = session.selected.and_then(|id| session.transcript.get(id));
    let last = session.reading.and_then(|(_, last)| session.transcript.index_of(last));
    let end = last.map_or(items.len(), |last| last.saturating_add(1).min(items.len()));
    let searched: Vec<_> = match selected {
        Some(item) => vec![item],
        None => items.get(..end).unwrap_or_default().iter().rev().take(MAX_ITEMS).collect(),
    };
    let mut targets: Vec<Target> = Vec::new();
    for item in searched {
        for target in of_item(item, session) {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        if targets.len() >= MAX_ROWS {
            break;
        }
    }
    targets.truncate(MAX_ROWS);
    targets.into_iter().map(|target| row(target, session)).collect()
}

fn row(target: Target, session: &Session) -> (PickerRow, Target) {
    let (label, right) = match &target {
        Target::Url(url) => (url.clone(), "link"),
        Target::File(location) => {
            let path =
                location.path.strip_prefix(session.workspace.folder()).unwrap_or(&location.path).display();
            (location.line.map_or_else(|| path.to_string(), |line| format!("{path}:{line}")), "file")
        }
    };
    (PickerRow { right: right.to_owned(), ..PickerRow::new(label) }, target)
}
