//! Requests pages of a transcript that are not in memory.
//!
//! `restore` inserts the items of the result.

use crate::model::{Action, MarkPlace, SessionKey, StoreJob};

use crate::app::session::paging;
use crate::app::{Effect, ItemBody, Replay, State, UiRequest};

/// The store has written everything up to `serial`.
pub(in crate::app) fn on_written(
    state: &mut State,
    key: SessionKey,
    upto: u64,
    marks: &[MarkPlace],
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.pages.written = session.pages.written.max(upto);
    session.pages.book.place_marks(marks);
    if let Replay::Running(former) = &mut session.replay {
        former.book.place_marks(marks);
    }
    session.pages.wants_trim = true;
    // It had to wait until late events were on disk.
    if session.pages.redo.is_some() {
        load_earlier(state, key, fx);
    }
}

/// A page was loaded: links subagents to their items, and runs the delayed action of the user.
pub(in crate::app) fn redo(state: &mut State, key: SessionKey) {
    let children: Vec<_> = state
        .sessions
        .values()
        .filter(|session| session.parent == Some(key))
        .filter_map(|session| Some((session.id.clone()?, session.key)))
        .collect();
    let Some(session) = state.sessions.get_mut(&key) else { return };
    for (id, child) in children {
        if let Some(place) = session.index.subagent(&id) {
            session.transcript.edit(place, |item| {
                if let ItemBody::Subagent { key, .. } = &mut item.body {
                    *key = key.or(Some(child));
                }
            });
        }
    }
    let Some(action) = session.pages.redo.take() else { return };
    if state.active == key {
        state.ui_requests.push(UiRequest::Act(action));
    }
}

/// Loads the unloaded items that an action needs. The action is repeated with each page, until this returns that it
/// need not wait.
pub fn ask_for_all(state: &mut State, action: Action, fx: &mut Vec<Effect>) -> bool {
    let key = state.active;
    let Some(session) = state.sessions.get_mut(&key) else { return false };
    let limit = session.pages.limit_bytes;
    let is_much = session.pages.weight() > limit.saturating_add(MOST_BACK);
    if !session.pages.has_unloaded() || is_much {
        return false;
    }
    session.pages.redo = Some(action);
    load_earlier(state, key, fx);
    true
}

/// Maximum number of bytes loaded for a list of the whole session; the rest is omitted from it.
pub(in crate::app) const MOST_BACK: usize = 256 << 20;

/// Requests the previous page, if there is one.
pub fn load_earlier(state: &mut State, key: SessionKey, fx: &mut Vec<Effect>) {
    fx.extend(state.sessions.get_mut(&key).and_then(paging::earlier_job).map(Effect::Store));
}

/// Requests the next page, if there is one.
pub fn load_later(state: &mut State, key: SessionKey, fx: &mut Vec<Effect>) {
    if let Some(reading) = state.sessions.get_mut(&key).and_then(|session| session.read_only.as_mut())
        && let Some(later) = reading.later.as_mut().filter(|later| !later.is_loading)
    {
        later.is_loading = true;
        fx.push(Effect::Store(StoreJob::Later { key, uid: reading.uid.clone(), from: later.from }));
    }
}
