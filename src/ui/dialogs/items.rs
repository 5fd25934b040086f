//! Selecting, opening and folding items of the transcript.

use super::notice::notify;
use crate::core::lifecycle::operations;
use crate::core::{Consequence, Cx, Effect, Item, ItemBody, Question, Session, ViewCommand};
use crate::model::{
    Action, DiffChange, DiffPosition, FileDiff, Fold, Gap, ItemId, Location, NoticeKind, Role, Target,
};
use crate::ui::App;
use crate::ui::session_view::SessionView;
use crate::ui::session_view::fold::{can_fold, fold_of, is_long_prompt};

use super::inspect::InspectPage;
use super::obstacle::NOTHING_TO_FOLD;
use super::{open, tab_dialogs};

/// Maximum number of places that are offered.
const MAX_LOCATIONS: usize = 9;

/// Whether an item is shown completely: the user's choice, otherwise the folding rules.
pub fn is_item_open(item: &Item, view: &SessionView, session: &Session, shows_thoughts: bool) -> bool {
    view.item(item.id).is_open.unwrap_or_else(|| match &item.body {
        ItemBody::Message(message) => match message.role {
            Role::Thought => shows_thoughts,
            Role::SubagentMessage => false,
            Role::User => !is_long_prompt(message),
            Role::Agent => true,
        },
        ItemBody::Tool(call) => fold_of(view, session, item, call) == Fold::Open,
        ItemBody::Compaction { .. } | ItemBody::Raw { .. } => false,
        ItemBody::TurnEnd(_)
        | ItemBody::Notice { .. }
        | ItemBody::Subagent { .. }
        | ItemBody::Answered { .. } => true,
    })
}

/// Handles actions on items. Returns whether it was one.
pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> bool {
    match action {
        Action::SelectPrevious => select(app, Step::Back, cx),
        Action::SelectNext => select(app, Step::On, cx),
        Action::ToggleFold => {
            let item = foldable_item(app);
            match item.map(|item| item.id) {
                Some(id) => {
                    if app.state.flash.as_deref() == Some(NOTHING_TO_FOLD) {
                        app.state.clear_flash();
                    }
                    toggle(app, id, cx);
                }
                None => notify(&mut app.state, NOTHING_TO_FOLD, cx),
            }
        }
        Action::ToggleItem(id) => toggle(app, id, cx),
        Action::ToggleAllFolds => toggle_all(app),
        Action::InspectItem => inspect(app, cx),
        Action::OpenLocation => open_location(app, cx),
        Action::ToggleContext => toggle_context(app, cx),
        Action::OpenGap => notify(&mut app.state, "No collapsed diff lines on screen.", cx),
        Action::OpenThisGap(id, gap) => open_gap(app, id, gap),
        _ => return false,
    }
    true
}

/// Selects an item on the screen, if none is selected.
pub fn mark_something(app: &mut App, cx: &mut Cx) {
    if app.shown().selected.is_none() {
        select(app, Step::Back, cx);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Back,
    On,
}

/// Moves the selection over visible items; without one it starts at the end of the screen.
fn select(app: &mut App, step: Step, cx: &mut Cx) {
    let Some(session) = app.state.active_session() else { return };
    let view = app.views.get_mut(session.key);
    let items = session.transcript.items();
    let only = view.only;
    let seen = |item: &&Item| !item.is_hidden() && only.is_none_or(|only| only.shows(item));
    let marked = view.selected.and_then(|id| session.transcript.index_of(id));
    let (before, behind) = if let Some(position) = marked {
        (items.get(..position).unwrap_or_default(), items.get(position + 1..).unwrap_or_default())
    } else {
        // Without a selection it starts with the last item on the screen.
        let last = view.reading.and_then(|(_, last)| session.transcript.index_of(last));
        let end = last.map_or(items.len(), |last| last.saturating_add(1).min(items.len()));
        (items.get(..end).unwrap_or_default(), [].as_slice())
    };
    let next = if step == Step::Back || marked.is_none() {
        before.iter().rev().find(seen)
    } else {
        behind.iter().find(seen)
    };
    let Some(next) = next.map(|item| item.id).or(view.selected) else { return };
    view.selected = Some(next);
    cx.effects.push(Effect::View(ViewCommand::ShowSelected));
}

/// Opens or folds an item. That of a subagent shows the subagent's session, and the line about a different history
/// opens that history.
fn toggle(app: &mut App, id: ItemId, cx: &mut Cx) {
    let is_difference =
        |item: &Item| matches!(item.body, ItemBody::Notice { kind: NoticeKind::HistoryDiffers, .. });
    if app.state.active_session().and_then(|session| session.transcript.get(id)).is_some_and(is_difference) {
        operations::show_history(&mut app.state, cx);
        return;
    }
    let child = app.state.active_session().and_then(|session| match &session.transcript.get(id)?.body {
        ItemBody::Subagent { key, .. } => key.filter(|key| app.state.sessions.contains_key(key)),
        _ => None,
    });
    if let Some(child) = child {
        tab_dialogs::show(app, child, cx);
        return;
    }
    if let Some(session) = app.state.active_session()
        && let Some(item) = session.transcript.get(id)
    {
        let is_open = is_item_open(item, app.shown(), session, app.shows_thoughts);
        app.shown_mut().set_open(id, Some(!is_open));
    }
}

/// Toggles the unchanged lines of the selected change, or of the last one.
fn toggle_context(app: &mut App, cx: &mut Cx) {
    let has_changes =
        |item: &Item| matches!(&item.body, ItemBody::Tool(call) if call.diffs().next().is_some());
    let Some(id) = marked_or_last(app, has_changes).map(|item| item.id) else {
        notify(&mut app.state, "No diff to expand.", cx);
        return;
    };
    app.shown_mut().edit(id, |item| {
        item.shows_context = !item.shows_context;
        item.open_gaps.clear();
        if item.shows_context {
            item.is_open = Some(true);
        }
    });
}

fn open_gap(app: &mut App, id: ItemId, gap: Gap) {
    app.shown_mut().edit(id, |item| {
        if !item.open_gaps.contains(&gap) {
            item.open_gaps.push(gap);
        }
        // In a preview they might be after its end.
        item.is_open = Some(true);
    });
}

/// The selected item if the condition holds, or, without a selection, the last such item.
fn marked_or_last(app: &App, is_one: impl Fn(&Item) -> bool) -> Option<&Item> {
    let session = app.state.active_session()?;
    let is_one = |item: &&Item| !item.is_hidden() && is_one(item);
    match app.shown().selected {
        Some(id) => session.transcript.get(id).filter(is_one),
        None => session.transcript.items().iter().rev().find(is_one),
    }
}

fn inspect(app: &mut App, cx: &mut Cx) {
    let has_raw = |item: &Item| matches!(item.body, ItemBody::Tool(_) | ItemBody::Raw { .. });
    match marked_or_last(app, has_raw).map(|item| item.id) {
        Some(item) => app.layers.push(InspectPage { session: app.state.active, item }),
        None => notify(&mut app.state, "Select a tool call first.", cx),
    }
}

/// Opens the location of a call. If there are several, the user selects one.
fn open_location(app: &mut App, cx: &mut Cx) {
    let has_positions = |item: &Item| !locations_of(item).is_empty();
    let positions = marked_or_last(app, has_positions).map(locations_of).unwrap_or_default();
    let state = &mut app.state;
    match positions.as_slice() {
        [] => notify(state, "Select a tool call with a file first.", cx),
        [only] => open::on_open(state, Target::File(only.clone()), cx),
        _ => {
            let folder = state
                .active_session()
                .map(|session| session.workspace.folder().to_owned())
                .unwrap_or_default();
            let label = |position: &Location| {
                let line = position.line.map(|line| format!(":{line}")).unwrap_or_default();
                let path = position.path.strip_prefix(&folder).unwrap_or(&position.path);
                format!("{}{line}", path.display())
            };
            let mut answers = Vec::new();
            for position in positions.iter().take(MAX_LOCATIONS) {
                match open::opened(state, position.clone()) {
                    Ok(Some(effect)) => answers.push((label(position), Consequence::effect(effect))),
                    Ok(None) => {}
                    Err(why) => return notify(state, why, cx),
                }
            }
            state.ask(state.active, Question::new("Open which location?", Vec::new(), answers));
        }
    }
}

fn lines_before(change: &DiffChange) -> u32 {
    let DiffChange::Texts { old: Some(old), new } = change else { return 0 };
    let same = old.lines().zip(new.lines()).take_while(|(before, after)| before == after).count();
    if old == new { 0 } else { u32::try_from(same).unwrap_or(0) }
}

/// The locations of a call: of its changes, and its reported locations, each file once.
fn locations_of(item: &Item) -> Vec<Location> {
    let ItemBody::Tool(call) = &item.body else { return Vec::new() };
    let line = |diff: &FileDiff| {
        let start = match call.position_of(diff)? {
            DiffPosition::Lines(starts) => starts.iter().flatten().map(|start| start.line).min()?,
            DiffPosition::Whole => 1,
            DiffPosition::Gone | DiffPosition::Unreadable => return None,
        };
        Some(start.saturating_add(lines_before(&diff.change)))
    };
    let of_diffs = call.diffs().map(|diff| Location { path: diff.path.clone(), line: line(diff) });
    let of_input = call.input.path.iter().map(|path| Location { path: path.clone(), line: None });
    let mut positions: Vec<Location> = Vec::new();
    for position in of_diffs.chain(call.locations.iter().cloned()).chain(of_input) {
        match positions.iter_mut().find(|known| known.path == position.path) {
            Some(known) => known.line = known.line.or(position.line),
            None => positions.push(position),
        }
    }
    positions
}

/// Folds everything if anything foldable is open, otherwise opens everything.
fn toggle_all(app: &mut App) {
    let Some(session) = app.state.active_session() else { return };
    let view = app.views.get_mut(session.key);
    let foldable = || session.transcript.items().iter().filter(|item| can_fold(&item.body));
    let is_any_open = foldable().any(|item| is_item_open(item, view, session, app.shows_thoughts));
    for item in foldable() {
        view.set_open(item.id, Some(!is_any_open));
    }
}

/// Hides all thoughts if one is shown in the active session, otherwise shows them. Replaces earlier choices for single
/// thoughts.
pub(super) fn toggle_thoughts(app: &mut App) {
    let App { state, views, shows_thoughts, .. } = app;
    let is_thought =
        |item: &Item| matches!(&item.body, ItemBody::Message(message) if message.role == Role::Thought);
    let is_any_open = state.active_session().map_or(*shows_thoughts, |session| {
        let mut thoughts = session.transcript.items().iter().filter(|item| is_thought(item)).peekable();
        match thoughts.peek() {
            Some(_) => {
                thoughts.any(|item| is_item_open(item, views.get(session.key), session, *shows_thoughts))
            }
            None => *shows_thoughts,
        }
    });
    *shows_thoughts = !is_any_open;
    for (key, session) in state.sessions.iter() {
        let view = views.get_mut(*key);
        for item in session.transcript.items().iter().filter(|item| is_thought(item)) {
            if view.item(item.id).is_open.is_some() {
                view.set_open(item.id, None);
            }
        }
    }
}

/// The item that one key folds: the selected one, otherwise the last one that can be folded.
pub(super) fn foldable_item(app: &App) -> Option<&Item> {
    marked_or_last(app, |item| can_fold(&item.body))
}
