//! The list of files and links to open, taken from the selected item, otherwise from the last items.

use super::notice::notify;
use crate::core::{Cx, Item, ItemBody, Session};
use crate::model::{Action, ContentBlock, Location, Target, ToolContent};
use std::sync::LazyLock;

use regex::Regex;

use crate::ui::App;
use crate::ui::session_view::SessionView;
use crate::ui::session_view::search::texts;
use crate::ui::text::locations::find;

use super::layer::Flow;
use super::open::on_open;
use super::picker::{List, Picker, PickerRow};

/// Maximum number of places in one item.
const MAX_LOCATIONS: usize = 200;
/// The targets of Markdown links.
static LINKS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\]\(<?([^\s()<>]+)").ok());
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
    let rows = rows(app.shown(), session);
    let is_selected = app.shown().selected.is_some();
    if rows.is_empty() {
        let text = if is_selected {
            "The selected item has no file or link."
        } else {
            "The transcript above has no file or link."
        };
        notify(&mut app.state, text, cx);
        return true;
    }
    let title = if is_selected { "Open from selected item" } else { "Open" };
    app.layers.open(Picker::new(Locations, title, rows));
    true
}

/// The places without repetition, those of the latest item first.
fn rows(view: &SessionView, session: &Session) -> Vec<(PickerRow, Target)> {
    let items = session.transcript.items();
    let selected = view.selected.and_then(|id| session.transcript.get(id));
    let last = view.reading.and_then(|(_, last)| session.transcript.index_of(last));
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

/// The distinct places in an item, in order.
pub fn of_item(item: &Item, session: &Session) -> Vec<Target> {
    let mut all: Vec<Target> = Vec::new();
    if let ItemBody::Tool(tool) = &item.body {
        let location = |path: &std::path::Path, line| Target::File(Location { path: path.to_owned(), line });
        all.extend(tool.locations.iter().map(|at| location(&at.path, at.line)));
        all.extend(tool.diffs().map(|diff| location(&diff.path, None)));
        for content in &tool.content {
            if let ToolContent::Block(ContentBlock::ResourceLink(link)) = content {
                all.extend(Target::of_link(&link.uri));
            }
        }
    }
    for text in texts(item, session) {
        if let (Some(links), ItemBody::Message(_)) = (LINKS.as_ref(), &item.body) {
            let targets = links.captures_iter(&text.text).filter_map(|found| found.get(1));
            all.extend(targets.filter_map(|target| Target::of_link(target.as_str())).take(MAX_LOCATIONS));
        }
        for line in text.text.lines() {
            all.extend(find(line).into_iter().map(|(_, target)| target));
            if all.len() > MAX_LOCATIONS {
                break;
            }
        }
    }
    let mut once: Vec<Target> = Vec::new();
    for target in all {
        let target = absolute(target, session);
        if !once.contains(&target) && once.len() < MAX_LOCATIONS {
            once.push(target);
        }
    }
    once
}

/// Resolves a relative path against the session's folder.
fn absolute(target: Target, session: &Session) -> Target {
    match target {
        Target::File(location) => {
            let path = session.workspace.folder().join(&location.path);
            // Drops `./` within the path.
            Target::File(Location { path: path.components().collect(), line: location.line })
        }
        url @ Target::Url(_) => url,
    }
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
