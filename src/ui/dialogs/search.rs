//! The search in the transcript: its input line, moving between matches, opening the item that hides one.
//!
//! `session_view::search` finds the matches in steps. Each key runs one step, and a timer without delay runs the
//! others, so that no key has to wait for a long transcript.
//! Invariants: an item opened to show a match is folded again when the next match is in another item; closing the
//! search does not scroll.

use std::time::Duration;

use super::layer::Flow;
use super::notice::notify;
use crate::core::{Cx, Effect, ItemBody, Session, TimerId, ViewCommand};
use crate::model::{Action, LineEdit, SessionKey, ToolKind};
use crate::ui::App;
use crate::ui::session_view::SessionView;
use crate::ui::session_view::fold::can_fold;
use crate::ui::session_view::search::{Hit, Search, hits, texts};

use super::items;

/// How often new text of a running turn is searched.
const CHANGED_AFTER: Duration = Duration::from_millis(100);

/// Opens the input line, or moves the focus back to it.
pub fn open(app: &mut App) {
    let view = app.shown_mut();
    if let Some(search) = &mut view.search {
        search.is_typing = true;
        search.set_reading(view.reading);
        return;
    }
    // A match can be in any item, so the filter is removed.
    view.only = None;
    view.search = Some(Box::new(Search::new(view.reading)));
}

/// Closes the search. Returns whether it was open.
pub fn close(app: &mut App) -> bool {
    app.shown_mut().search.take().is_some()
}

/// Whether the input line has the focus when no dialog is open.
pub fn is_typing(app: &App) -> bool {
    app.shown().search.as_ref().is_some_and(|search| search.is_typing)
}

/// Handles an action of the input line. Returns whether it was one.
pub fn on_action(app: &mut App, action: Action, cx: &mut Cx) -> Flow {
    match action {
        Action::Accept if app.user.is_browsing => stop_typing(app),
        Action::Accept | Action::Down | Action::NextHit => walk(app, Search::next, cx),
        Action::Up | Action::PreviousHit => walk(app, Search::previous, cx),
        // The focus moves to the transcript, where letters move between matches.
        Action::NextField | Action::Browse => {
            app.user.is_browsing = true;
            stop_typing(app);
        }
        Action::ToggleRegex => {
            change(app, cx, |search| {
                search.is_regex = !search.is_regex;
                true
            });
        }
        Action::Left => on_line(app, &LineEdit::Left, cx),
        Action::Right => on_line(app, &LineEdit::Right, cx),
        _ => return Flow::Pass,
    }
    Flow::Stay
}

/// Moves to the next or the previous match.
pub fn step(app: &mut App, is_forward: bool, cx: &mut Cx) {
    walk(app, if is_forward { Search::next } else { Search::previous }, cx);
}

/// Handles a change of the query.
pub fn on_line(app: &mut App, edit: &LineEdit, cx: &mut Cx) {
    change(app, cx, |search| search.input.apply(edit));
}

pub fn on_timer(app: &mut App, key: SessionKey, cx: &mut Cx) {
    if let Some(search) = &mut app.views.get_mut(key).search {
        search.is_timed = false;
    }
    look(app, key, cx);
}

/// Sets the timer while some text is not yet searched. Called at the end of each update.
pub fn set_timer(app: &mut App, cx: &mut Cx) {
    let key = app.state.active;
    let Some(session) = app.state.sessions.get(&key) else { return };
    let Some(search) = &mut app.views.get_mut(key).search else { return };
    search.follow(&session.transcript);
    if search.is_pending() && !search.is_timed {
        search.is_timed = true;
        let after = if search.is_complete() { CHANGED_AFTER } else { Duration::ZERO };
        cx.effects.push(Effect::Timer(TimerId::Search(key), after));
    }
}

fn stop_typing(app: &mut App) {
    if let Some(search) = &mut app.shown_mut().search {
        search.is_typing = false;
    }
}

fn change(app: &mut App, cx: &mut Cx, change: impl FnOnce(&mut Search) -> bool) {
    let Some(search) = &mut app.shown_mut().search else { return };
    if change(search) {
        search.restart();
        look(app, app.state.active, cx);
    }
}

/// Runs one step, and shows the first match when it is found.
fn look(app: &mut App, key: SessionKey, cx: &mut Cx) {
    let Some(session) = app.state.sessions.get(&key) else { return };
    let Some(search) = &mut app.views.get_mut(key).search else { return };
    let before = search.current();
    search.step(session);
    if before.is_none() && search.current().is_some() && key == app.state.active {
        reveal(app, cx);
    }
}

fn walk(app: &mut App, step: impl FnOnce(&mut Search), cx: &mut Cx) {
    let Some(search) = &mut app.shown_mut().search else {
        notify(&mut app.state, "Search first.", cx);
        return;
    };
    step(search);
    reveal(app, cx);
}

/// Opens the item of the current match if it hides the match, and scrolls to the match.
fn reveal(app: &mut App, cx: &mut Cx) {
    let key = app.state.active;
    let Some(session) = app.state.sessions.get(&key) else { return };
    let view = app.views.get_mut(key);
    let Some(search) = &mut view.search else { return };
    let Some(hit) = search.current() else { return };
    if let Some((id, was_open)) = search.opened.take_if(|(id, _)| *id != hit.item) {
        view.set_open(id, was_open);
    }
    if is_covered(view, session, hit, app.shows_thoughts) {
        let was_open = view.item(hit.item).is_open;
        view.set_open(hit.item, Some(true));
        if let Some(search) = &mut view.search {
            search.opened.get_or_insert((hit.item, was_open));
        }
    }
    cx.effects.push(Effect::View(ViewCommand::ShowHit));
}

/// Whether a match can be hidden although its item is on the screen.
fn is_covered(view: &SessionView, session: &Session, hit: Hit, shows_thoughts: bool) -> bool {
    let Some(item) = session.transcript.get(hit.item) else { return false };
    let can_open = can_fold(&item.body) || matches!(item.body, ItemBody::TurnEnd(_));
    if !can_open || view.item(item.id).is_open == Some(true) {
        return false;
    }
    if let ItemBody::Message(_) = item.body {
        return !items::is_item_open(item, view, session, shows_thoughts);
    }
    let Some(pattern) = view.search.as_ref().and_then(|search| search.pattern()) else { return false };
    let position = hits(pattern, item, session).into_iter().nth(hit.nth);
    let is_head =
        position.is_some_and(|(part, _)| texts(item, session).get(part).is_some_and(|text| text.is_head));
    // Reads and searches can share one line that does not name all of them.
    let may_share =
        matches!(&item.body, ItemBody::Tool(tool) if matches!(tool.kind, ToolKind::Read | ToolKind::Search));
    !is_head || may_share
}
