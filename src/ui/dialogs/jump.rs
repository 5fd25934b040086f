//! Jumps in the transcript: between prompts, calls or failures; and the outline, which lists them all.
//!
//! A jump starts at the selected item if that is on the screen, otherwise at the visible items; from the end of the
//! transcript the last one can be reached too. The target is selected, so that the next jump starts there.

use super::notice::notify;
use crate::core::lifecycle::operations;
use crate::core::state::outline::{Only, is_failure, is_running};
use crate::core::{Cx, Effect, Item, ItemBody, MessagePart, Session, ToolCall, TurnEnd, ViewCommand};
use crate::model::{Action, ItemId, Role, SessionKey, ToolKind, ToolStatus, pasted_label};
use crate::ui::App;
use crate::ui::cells::kind_word;
use crate::ui::session_view::SessionView;
use crate::ui::session_view::search::title;

use super::layer::Flow;
use super::picker::{List, Picker, PickerRow};

/// Maximum number of rows in the outline; the last ones are retained.
const MAX_ROWS: usize = 5_000;
/// Width of the column for the kind of an item.
pub(super) const KIND_COLS: usize = 8;
/// Maximum number of characters in a row.
const MAX_CHARS: usize = 160;

pub(super) const EMPTY: &str = "The transcript is empty.";

pub(super) type Row = (PickerRow, ItemId);

/// Items of the transcript.
#[derive(Debug)]
pub struct Outline;

impl List for Outline {
    type Item = ItemId;

    fn pick(&mut self, id: ItemId, app: &mut App, cx: &mut Cx) -> Flow {
        go_to(app, id, cx);
        Flow::Close
    }
}

/// The filters of the transcript, or none.
#[derive(Debug)]
pub struct Filters;

impl List for Filters {
    type Item = Option<Only>;

    fn pick(&mut self, only: Option<Only>, app: &mut App, _cx: &mut Cx) -> Flow {
        app.shown_mut().only = only;
        Flow::Close
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Prompt,
    Call,
    Failure,
}

/// Handles actions that jump. Returns whether it was one.
pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    let (stop, is_forward) = match action {
        Action::PreviousPrompt => (Stop::Prompt, false),
        Action::NextPrompt => (Stop::Prompt, true),
        Action::PreviousCall => (Stop::Call, false),
        Action::NextCall => (Stop::Call, true),
        Action::PreviousFailure => (Stop::Failure, false),
        Action::NextFailure => (Stop::Failure, true),
        Action::OpenOutline => {
            open_outline(app, cx);
            return true;
        }
        Action::OpenTasks => {
            open_list(app, "Running tasks", Outline, is_running, cx);
            return true;
        }
        Action::OpenFilter => {
            if !operations::waits_for_whole(&mut app.state, action) {
                open_filter(app);
            }
            return true;
        }
        _ => return false,
    };
    jump(app, stop, is_forward, action, cx);
    true
}

/// Selects an item and scrolls it to the top of the screen.
pub fn go_to(app: &mut App, id: ItemId, cx: &mut Cx) {
    if let Some(session) = app.state.active_session()
        && app.views.get_mut(session.key).select(session, id)
    {
        cx.effects.push(Effect::View(ViewCommand::ShowSelectedAtTop));
    }
}

/// Goes to an item that a search over all sessions found, and marks what was searched.
pub fn show_found(app: &mut App, key: SessionKey, id: ItemId, snippet: &str, cx: &mut Cx) {
    let Some(session) = app.state.sessions.get(&key) else { return };
    let view = app.views.get_mut(key);
    if view.select(session, id) {
        view.search_snippet(id, snippet);
        cx.effects.push(Effect::View(ViewCommand::ShowSelectedAtTop));
    }
}

fn jump(app: &mut App, stop: Stop, is_forward: bool, action: Action, cx: &mut Cx) {
    let Some(session) = app.state.active_session() else { return };
    let start = start(app.shown(), session, is_forward);
    let items = session.transcript.items();
    let is_stop = |item: &&Item| is_stop(item, stop);
    let target = if is_forward {
        let from = start.map_or(0, |position| position + 1);
        items.get(from..).unwrap_or_default().iter().find(is_stop)
    } else {
        let before = start.unwrap_or(items.len());
        items.get(..before).unwrap_or_default().iter().rev().find(is_stop)
    };
    if let Some(id) = target.map(|item| item.id) {
        go_to(app, id, cx);
        return;
    }
    if !is_forward && operations::waits_for_whole(&mut app.state, action) {
        return;
    }
    let what = match stop {
        Stop::Prompt => "prompt",
        Stop::Call => "tool call",
        Stop::Failure => "failure",
    };
    let position = if is_forward { "below" } else { "above" };
    notify(&mut app.state, format!("No {what} {position}."), cx);
}

/// The item where a jump starts; `None`: after the end, or before the start.
fn start(view: &SessionView, session: &Session, is_forward: bool) -> Option<usize> {
    let index = |id: ItemId| session.transcript.index_of(id);
    let marked = view.selected.and_then(index);
    let reading = view.reading.and_then(|(first, last)| Some((index(first)?, index(last)?)));
    let Some((first, last)) = reading else { return marked };
    if let Some(marked) = marked.filter(|marked| (first..=last).contains(marked)) {
        return Some(marked);
    }
    let is_at_end = last + 1 >= session.transcript.items().len();
    if is_forward || !is_at_end { Some(first) } else { None }
}

fn is_stop(item: &Item, stop: Stop) -> bool {
    if item.is_hidden() {
        return false;
    }
    match stop {
        Stop::Prompt => matches!(&item.body, ItemBody::Message(message) if message.role == Role::User),
        Stop::Call => matches!(item.body, ItemBody::Tool(_)),
        Stop::Failure => is_failure(&item.body),
    }
}

fn open_outline(app: &mut App, cx: &mut Cx) {
    if !operations::waits_for_whole(&mut app.state, Action::OpenOutline) {
        open_list(app, "Outline", Outline, |_| true, cx);
    }
}

pub fn is_prompt(item: &Item) -> bool {
    is_stop(item, Stop::Prompt)
}

/// Opens a list of the items that fit, with the one at the reader's position selected.
fn open_list(app: &mut App, title: &str, list: Outline, is_wanted: fn(&Item) -> bool, cx: &mut Cx) {
    let Some(session) = app.state.active_session() else { return };
    let Some((rows, note)) = item_rows(app.shown(), session, is_wanted) else {
        notify(&mut app.state, EMPTY, cx);
        return;
    };
    let nearest = nearest(&rows, app.shown(), session);
    let mut list = Picker::new(list, title, rows).noting(note);
    list.view.selected = nearest;
    app.layers.open(list);
}

/// The rows of the last items that fit, and a note if there are more; `None`: there is none.
pub(super) fn item_rows(
    view: &SessionView,
    session: &Session,
    is_wanted: fn(&Item) -> bool,
) -> Option<(Vec<Row>, Option<String>)> {
    let items = session.transcript.items().iter().rev().filter(|item| is_wanted(item));
    let mut rows: Vec<Row> = items.filter_map(|item| row(item, view, session)).take(MAX_ROWS + 1).collect();
    let is_cut = rows.len() > MAX_ROWS;
    rows.truncate(MAX_ROWS);
    rows.reverse();
    let note = is_cut.then(|| format!("Showing the last {MAX_ROWS}. Use search to find others."));
    (!rows.is_empty()).then_some((rows, note))
}

fn open_filter(app: &mut App) {
    let Some(session) = app.state.active_session() else { return };
    let row = |only: Option<Only>, label: String, count: usize| {
        let is_current = app.shown().only == only;
        (PickerRow { right: count.to_string(), is_current, ..PickerRow::new(label) }, only)
    };
    let items = session.transcript.items();
    let seen = || items.iter().filter(|item| !item.is_hidden());
    let mut rows = vec![row(None, "all items".to_owned(), seen().count())];
    for only in Only::ALL {
        let count = seen().filter(|item| only.shows(item)).count();
        rows.push(row(Some(only), format!("only {}", only.label()), count));
    }
    app.layers.open(Picker::new(Filters, "Show", rows));
}

/// Clears the filter of the transcript. Returns whether there was one.
pub fn show_all(app: &mut App) -> bool {
    app.shown_mut().only.take().is_some()
}

/// The row at the reader's position: the last one that is not below it.
fn nearest(rows: &[Row], view: &SessionView, session: &Session) -> usize {
    let end = || start(view, session, true).filter(|_| view.reading.is_none());
    let position = start(view, session, false).or_else(end);
    let Some(position) = position else { return rows.len().saturating_sub(1) };
    let index = |id: ItemId| session.transcript.index_of(id);
    rows.iter().rposition(|(_, id)| index(*id) <= Some(position)).unwrap_or(0)
}

/// The row of a prompt, an edit, a command, a failure, or of what is running.
fn row(item: &Item, view: &SessionView, session: &Session) -> Option<Row> {
    if item.is_hidden() {
        return None;
    }
    let (kind, text) = match &item.body {
        ItemBody::Message(message) if message.role == Role::User => {
            let text = message.parts.iter().enumerate().find_map(|(part, text)| match text {
                MessagePart::Text(text) if !text.trim().is_empty() => Some((part, text)),
                _ => None,
            });
            let text = text.map(|(part, text)| message.with_labels(part, text, pasted_label));
            ("prompt", text.unwrap_or_else(|| "(no text)".to_owned()))
        }
        ItemBody::Tool(tool) => (call_word(tool)?, title(tool, session.workspace.folder()).into_owned()),
        ItemBody::Subagent { title, .. } if is_running(item) => ("task", title.clone()),
        ItemBody::TurnEnd(TurnEnd::Failed { error, .. }) => ("end", error.clone()),
        ItemBody::TurnEnd(TurnEnd::AgentDied { cause, .. }) => ("end", format!("Agent exited: {cause}")),
        ItemBody::TurnEnd(TurnEnd::Stopped { .. }) if is_failure(&item.body) => {
            ("end", "Turn cut short".to_owned())
        }
        ItemBody::Notice { title, .. } if is_failure(&item.body) => ("error", title.clone()),
        ItemBody::Compaction { error, .. } if is_failure(&item.body) => {
            ("error", error.clone().unwrap_or_else(|| "Context compaction failed".to_owned()))
        }
        _ => return None,
    };
    let text = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let text: String = text.chars().take(MAX_CHARS).collect();
    let row = PickerRow {
        right: if is_failure(&item.body) { "failed".to_owned() } else { String::new() },
        is_current: view.selected == Some(item.id),
        ..PickerRow::new(format!("{kind:<KIND_COLS$}{text}"))
    };
    Some((row, item.id))
}

/// The label of a call in the outline; reads and searches are omitted unless they failed.
fn call_word(tool: &ToolCall) -> Option<&'static str> {
    let word = match tool.kind {
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move | ToolKind::Execute => kind_word(tool.kind),
        _ if tool.diffs().next().is_some() => "edit",
        _ if tool.status == ToolStatus::Failed || !tool.status.is_final() => "call",
        _ => return None,
    };
    Some(word)
}
