//! Reads the whole record of a session of which only the end is shown, and puts it in the place of that end.
//!
//! All events are applied to a separate session, in order, because later ones may change the items of earlier ones. Ids
//! of items are assigned from the end, so that what is on the screen keeps its place.

use crate::core::recording::restore;
use crate::core::session::play;
use crate::core::state::recorded::{Loading, Playing};
use crate::core::{Cx, Effect, ItemBody, Session, State, UiRequest};
use crate::model::{Action, EventPage, ItemId, SessionKey, StoreJob};

/// The line above the end of a session while the rest is read.
const READING: &str = "Reading the earlier part of the session…";

/// Requests the whole record of a session that was just restored from its end. `at`: the event to show.
pub(in crate::core) fn begin(
    session: &mut Session,
    uid: &str,
    before: i64,
    came_from: Option<&(String, String)>,
    (at, searched): (Option<i64>, &str),
    cx: &mut Cx,
) {
    session.transcript.set_head(READING.to_owned());
    let mut whole = Session::new(session.key, session.workspace.clone());
    restore::say_origin(&mut whole, came_from);
    session.loading = Some(Loading {
        whole: Box::new(whole),
        playing: Playing::new(cx.now),
        end: session.transcript.next_id(),
        found: None,
        searched: searched.to_owned(),
        redo: None,
        unreadable_count: 0,
        has_failed: false,
    });
    cx.effects.push(Effect::Store(StoreJob::Load { key: session.key, uid: uid.to_owned(), before, at }));
}

/// Whether an action that needs the whole session waits until it is read.
pub fn waits_for_whole(state: &mut State, action: Action) -> bool {
    let loading = state.sessions.get_mut(&state.active).and_then(|session| session.loading.as_mut());
    let Some(loading) = loading.filter(|loading| !loading.has_failed) else { return false };
    loading.redo = Some(action);
    true
}

/// A part of the record was read, or could not be read.
pub(crate) fn on_loaded(state: &mut State, key: SessionKey, page: Result<EventPage, String>, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(loading) = session.loading.as_mut().filter(|loading| !loading.has_failed) else { return };
    match page {
        Err(why) => {
            loading.has_failed = true;
            session.transcript.set_head(format!("The earlier part of the session could not be read: {why}"));
        }
        Ok(EventPage { events, mark, unreadable_count, is_last }) => {
            loading.unreadable_count += unreadable_count;
            let found = play::feed(&mut loading.whole, &mut loading.playing, events, mark);
            loading.found = found.or(loading.found);
            if is_last {
                finish(state, key, cx);
            }
        }
    }
}

/// Puts the whole session in the place of its end.
fn finish(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let children: Vec<_> = state
        .sessions
        .values()
        .filter(|session| session.parent == Some(key))
        .filter_map(|session| Some((session.id.clone()?, session.key)))
        .collect();
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(loading) = session.loading.take() else { return };
    let Loading { mut whole, playing, end, found, searched, redo, unreadable_count, .. } = loading;
    play::finish(&mut whole, &playing);
    let whole = *whole;
    let offset = session.transcript.replace_before(end, whole.transcript);
    let here = |id: ItemId| ItemId(id.0 + offset);
    let transcript = &session.transcript;
    session.index.retain(|item| transcript.rank(item) >= transcript.rank(end));
    let is_current = |id| transcript.get(id).is_some_and(|item| item.turn == session.turn_count);
    session.index.add_earlier(whole.index.moved(here), is_current);
    session.terminals.extend(whole.terminals);
    if session.plans.is_empty() {
        session.plans = whole.plans;
    }
    session.turn_usage = session.turn_usage.or(whole.turn_usage);
    session.resume.adopt_handover(whole.resume);
    session.undo.add_earlier(whole.undo);
    for (id, child) in children {
        if let Some(position) = session.index.subagent(&id) {
            session.transcript.edit(position, |item| {
                if let ItemBody::Subagent { key, .. } = &mut item.body {
                    *key = key.or(Some(child));
                }
            });
        }
    }
    restore::say_unreadable(session, unreadable_count);
    if let Some(found) = found.map(here) {
        cx.requests.push(UiRequest::ShowFound { session: key, item: found, snippet: searched });
    }
    if let Some(action) = redo.filter(|_| state.active == key) {
        cx.requests.push(UiRequest::Act(action));
    }
}
