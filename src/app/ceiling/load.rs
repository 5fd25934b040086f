//! Reads pages again that had gone.
//!
//! Duty: which events are asked for, and what their items mean for what is in memory. Not its duty: asking the store and
//! telling the user (`kept`).
//! Invariant: a page is asked for only when all that was kept late for it is on the disk.

use std::time::Instant;

use crate::app::{Effect, ItemBody, Session, State, kept, user};
use crate::model::{Action, EventPlace, ItemId, KeptEvent, SessionKey, StoreJob};

use super::{Orphan, Page, weight};

/// So much is read at once, if a page is not more.
const READ_BYTES: usize = 1 << 20;

/// So much is brought back for a list of all of a session; the rest is left out of it.
const MOST_BACK: usize = 256 << 20;

/// The job that reads what stood last before what is in memory; `None`: not now.
pub(in crate::app) fn earlier_job(session: &mut Session) -> Option<StoreJob> {
    let key = session.key;
    let earlier = session.ledger.earlier.as_mut().filter(|earlier| !earlier.is_loading)?;
    let pages = &mut session.pages;
    if pages.book.away_late > pages.written {
        // It is asked for again with the next frame.
        return None;
    }
    (earlier.is_loading, earlier.has_failed) = (true, false);
    let (uid, before) = (earlier.uid.clone(), earlier.before);
    let gone = &pages.book.gone;
    let mut bytes = 0;
    let fits = |page: &&super::Gone| {
        let fits = bytes == 0 || bytes + page.weight <= READ_BYTES;
        bytes += page.weight.max(1);
        fits
    };
    let count = gone.iter().rev().take_while(fits).count();
    let from = gone.len().checked_sub(count).and_then(|first| gone.get(first)).map(|page| page.begin);
    pages.book.reading = count;
    pages.book.is_stale = false;
    Some(StoreJob::Earlier { key, uid, before, from })
}

/// Whether what was read is without something that came late since it was asked for, or is of another history. Then it
/// is as if it had not been.
pub(in crate::app) fn is_stale(session: &mut Session, first_seq: Option<i64>) -> bool {
    let book = &mut session.pages.book;
    let first = book.gone.len().checked_sub(book.reading).and_then(|first| book.gone.get(first));
    let is_another = first_seq.is_some_and(|seq| first.is_none_or(|first| first.begin != seq));
    let is_stale = book.reading > 0 && (book.is_stale || is_another);
    if is_stale {
        book.reading = 0;
    }
    is_stale
}

/// Nothing could be read.
pub(in crate::app) fn read_failed(session: &mut Session) {
    session.pages.book.reading = 0;
    session.pages.redo = None;
    if let Some(earlier) = &mut session.ledger.earlier {
        earlier.has_failed = true;
    }
}

/// Whether the page that was asked for was in memory before: then it has all that happened to its items.
pub(in crate::app) fn is_own(session: &Session) -> bool {
    session.pages.book.reading > 0
}

/// The pages that were asked for came: how many events are left before them, or `None` for what a page of ours is not.
pub(in crate::app) fn on_page(session: &mut Session, first_seq: i64, told_left: u64) -> u64 {
    let book = &mut session.pages.book;
    let count = std::mem::take(&mut book.reading);
    if count == 0 {
        return told_left;
    }
    let (left, before) = session.ledger.earlier.as_ref().map_or((0, first_seq), |it| (it.count, it.before));
    book.gone.truncate(book.gone.len().saturating_sub(count));
    left.saturating_sub(u64::try_from(before - first_seq).unwrap_or(0))
}

/// Puts events behind those of a page, from its first one up to before the other, because what they are about may stand in
/// it; and takes out those that are about something else.
pub(in crate::app) fn place_orphans(
    session: &Session,
    events: &mut Vec<KeptEvent>,
    (first_seq, before): (i64, i64),
    is_own: bool,
) {
    let orphans = &session.pages.book.orphans;
    events.retain(|event| orphans.iter().all(|orphan| orphan.event != *event));
    let may_be_here =
        |orphan: &&Orphan| orphan.home.map_or(!is_own, |home| (first_seq..before).contains(&home));
    events.extend(orphans.iter().filter(may_be_here).map(|orphan| orphan.event.clone()));
}

/// These events are about something that does not stand in what was read from this event on. The others that were played
/// with it have found what they are about.
pub(in crate::app) fn add_orphans(session: &mut Session, left: Vec<KeptEvent>, first_seq: i64) {
    let orphans = &mut session.pages.book.orphans;
    for orphan in orphans.iter_mut().filter(|orphan| orphan.home.is_none()) {
        orphan.home = (!left.contains(&orphan.event)).then_some(first_seq);
    }
    let is_new = |event: &KeptEvent| orphans.iter().all(|known| known.event != *event);
    let new: Vec<KeptEvent> = left.into_iter().filter(is_new).collect();
    // They are played in the order in which they came.
    let at = orphans.partition_point(|orphan| orphan.part < first_seq);
    orphans.splice(at..at, new.into_iter().map(|event| Orphan { event, part: first_seq, home: None }));
}

/// Items of a page, made by a session of their own, are in memory again behind the first line: what points to them
/// there does so here.
pub(in crate::app) fn put_in_front(session: &mut Session, before: Session, first_seq: i64) {
    let behind = session.transcript.items().iter().find(|item| item.id != ItemId::HEAD);
    let behind = behind.map_or(session.transcript.next_id(), |item| item.id);
    let offset = session.transcript.prepend(before.transcript);
    let here = |id: ItemId| ItemId(id.0 + offset);
    let turn_of = |id: ItemId, session: &Session| session.transcript.get(id).map(|item| item.turn);
    for (id, place) in before.tools.into_iter().chain(before.ledger.former_tools) {
        let place = here(place);
        if session.tools.contains_key(&id) {
            continue;
        }
        let is_of_now = turn_of(place, session) == Some(session.turn_count);
        let known = if is_of_now { &mut session.tools } else { &mut session.ledger.former_tools };
        known.entry(id).or_insert(place);
    }
    for (id, view) in before.terminals {
        session.terminals.entry(id).or_insert(view);
    }
    for (id, place) in before.ledger.shown_by {
        session.ledger.shown_by.entry(id).or_insert(here(place));
    }
    for (id, place) in before.ledger.compactions {
        let later = session.ledger.compactions.insert(id, here(place));
        join(session, here(place), later);
    }
    for (id, place) in before.ledger.subagents {
        let later = session.ledger.subagents.insert(id, here(place));
        join(session, here(place), later);
    }
    if let Some(search) = &mut session.search {
        search.look_before(behind);
    }
    let first = session.transcript.items().iter().find(|item| item.id != ItemId::HEAD);
    let first = first.map_or(behind, |item| item.id);
    let weight = weight::of_items(session, first, behind);
    let begin = Some(EventPlace::Seq(first_seq));
    session.pages.book.closed.push_front(Page { begin, first, weight, ..Page::default() });
    session.pages.wants_trim = true;
}

/// What was read before the page that it stands in looked like another thing.
fn join(session: &mut Session, place: ItemId, later: Option<ItemId>) {
    let Some(later) = later.and_then(|id| session.transcript.get(id)) else { return };
    let (later, body) = (later.id, later.body.clone());
    session.transcript.edit(place, |item| match (&mut item.body, body) {
        (
            ItemBody::Compaction { status, summary, error, .. },
            ItemBody::Compaction { status: new_status, summary: new_summary, error: new_error, .. },
        ) => {
            *status = new_status;
            if !new_summary.is_empty() {
                *summary = new_summary;
            }
            *error = new_error.or(error.take());
        }
        (
            ItemBody::Subagent { key, title, description, state, .. },
            ItemBody::Subagent {
                key: new_key,
                title: new_title,
                description: new_description,
                state: new_state,
                ..
            },
        ) => {
            *key = new_key.or(*key);
            if !new_title.is_empty() {
                *title = new_title;
            }
            *description = new_description.or(description.take());
            *state = new_state.or(state.take());
        }
        _ => {}
    });
    session.transcript.remove(later);
}

/// A page is in memory again: helpers are known by their items, and what the user wished is done.
pub(in crate::app) fn redo(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let children: Vec<_> = state
        .sessions
        .values()
        .filter(|session| session.parent == Some(key))
        .filter_map(|session| Some((session.id.clone()?, session.key)))
        .collect();
    let Some(session) = state.sessions.get_mut(&key) else { return };
    for (id, child) in children {
        if let Some(place) = session.ledger.subagents.get(&id).copied() {
            session.transcript.edit(place, |item| {
                if let ItemBody::Subagent { key, .. } = &mut item.body {
                    *key = key.or(Some(child));
                }
            });
        }
    }
    let Some(action) = session.pages.redo.take() else { return };
    if state.active == key {
        user::on_action(state, action, now, fx);
    }
}

/// What the user wishes needs items that had gone: they are read, and then it is done: the action comes again
/// with each page, until this returns that it need not wait.
pub fn ask_for_all(state: &mut State, action: Action, fx: &mut Vec<Effect>) -> bool {
    let key = state.active;
    let Some(session) = state.sessions.get_mut(&key) else { return false };
    let limit = session.pages.limit_bytes;
    let is_much = session.pages.weight() > limit.saturating_add(MOST_BACK);
    if !session.pages.has_gone() || is_much {
        return false;
    }
    session.pages.redo = Some(action);
    kept::load_earlier(state, key, fx);
    true
}
