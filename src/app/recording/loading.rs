//! Reads pages of a session that are only on disk, and inserts their items before those in memory.
//!
//! Invariant: a page is requested only when all late events of it are on disk.

use std::time::Instant;

use crate::app::session::{play, record};
use crate::app::state::pages::{Page, weight};
use crate::app::{Earlier, Effect, ItemBody, Replay, Session, State, UiRequest};
use crate::model::{Action, EventPage, ItemId, MarkPosition, SessionKey, StoreJob, Subjects};

/// The store has written everything up to `serial`.
pub(in crate::app) fn on_written(
    state: &mut State,
    key: SessionKey,
    upto: u64,
    marks: &[MarkPosition],
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.pages.written = session.pages.written.max(upto);
    session.pages.book.set_positions(marks);
    if let Replay::Running(former) = &mut session.replay {
        former.book.set_positions(marks);
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
        if let Some(position) = session.index.subagent(&id) {
            session.transcript.edit(position, |item| {
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
    fx.extend(state.sessions.get_mut(&key).and_then(earlier_job).map(Effect::Store));
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

/// The job that reads the page before those in memory; `None`: not now.
pub(in crate::app) fn earlier_job(session: &mut Session) -> Option<StoreJob> {
    let (key, written, asked) = (session.key, session.pages.written, session.pages.serial);
    let book = &mut session.pages.book;
    // Otherwise it is requested again with the next frame.
    let from = book.last_unloaded().filter(|page| page.late <= written)?.seq()?;
    let earlier = book.earlier.as_mut().filter(|earlier| !earlier.is_loading)?;
    (earlier.is_loading, earlier.has_failed) = (true, false);
    book.asked = asked;
    Some(StoreJob::Earlier { key, uid: earlier.uid.clone(), from, before: earlier.before })
}

/// A read has failed.
pub(in crate::app) fn read_failed(session: &mut Session) {
    session.pages.redo = None;
    if let Some(earlier) = &mut session.pages.book.earlier {
        earlier.has_failed = true;
    }
}

/// Inserts the items of a page that was read, after the line with the number of earlier ones. Returns whether it is
/// current: otherwise it lacks late events recorded since the request, or belongs to another history.
pub(in crate::app) fn insert(session: &mut Session, page: EventPage, now: Instant) -> bool {
    let EventPage { events, first_seq, .. } = page;
    let book = &session.pages.book;
    if !book.last_unloaded().is_some_and(|page| page.seq() == Some(first_seq) && page.late <= book.asked) {
        return false;
    }
    let mut part = Session::new(session.key, session.workspace.clone());
    play::play_to(&mut part, events, None, now);
    let items = part.transcript.items();
    let (first, count) = (items.first().map(|item| item.id), items.len());
    let offset = session.transcript.prepend(part.transcript);
    let here = |id: ItemId| ItemId(id.0 + offset);
    let transcript = &session.transcript;
    let behind = transcript.items().get(count + usize::from(transcript.has_head()));
    let behind = behind.map_or(transcript.next_id(), |item| item.id);
    let is_current = |id| transcript.get(id).is_some_and(|item| item.turn == session.turn_count);
    session.index.add_earlier(part.index.moved(here), is_current);
    for (id, view) in part.terminals {
        session.terminals.entry(id).or_insert(view);
    }
    if let Some(search) = &mut session.search {
        search.look_before(behind);
    }
    let first = first.map_or(behind, here);
    let weight = weight::of_items(session, first, behind);
    let book = &mut session.pages.book;
    book.unloaded -= 1;
    if let Some(page) = book.closed.get_mut(book.unloaded) {
        (page.first, page.weight, page.subjects) = (first, weight, Subjects::default());
    }
    let left = book.closed.front().and_then(Page::seq).map_or(0, |begin| first_seq.abs_diff(begin));
    let earlier = book.earlier.take().filter(|_| book.unloaded > 0);
    book.earlier = earlier.map(|earlier| Earlier { before: first_seq, count: left, ..earlier });
    session.transcript.set_head(record::earlier_label(left));
    session.pages.wants_trim = true;
    true
}
