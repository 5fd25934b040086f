//! Reads pages again that had gone.
//!
//! Duty: which events are asked for, and what their items mean for what is in memory. Not its duty: asking the store and
//! telling the user (`kept`).
//! Invariant: a page is asked for only when all that was kept late for it is on the disk.

use std::time::Instant;

use crate::app::{Effect, ItemBody, Session, State, kept, user};
use crate::model::{Action, EventPlace, ItemId, SessionKey, StoreJob};

use super::{Page, weight};

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

/// The pages that were asked for came: how many events are left before them, or `None` for what a page of ours is not.
pub(in crate::app) fn on_page(session: &mut Session, first_seq: i64, told_left: u64) -> u64 {
    let book = &mut session.pages.book;
    let count = std::mem::take(&mut book.reading);
    if count == 0 {
        return told_left;
    }
    let (left, before) = session.ledger.earlier.as_ref().map_or((0, first_seq), |it| (it.count, it.before));
    book.gone.truncate(book.gone.len().saturating_sub(count));
    book.away.bring_back(first_seq);
    left.saturating_sub(u64::try_from(before - first_seq).unwrap_or(0))
}

/// Items of a page, made by a session of their own, are in memory again behind the first line: what points to them
/// there does so here.
pub(in crate::app) fn put_in_front(session: &mut Session, before: Session, first_seq: i64) {
    let items = before.transcript.into_items();
    let by = items.len();
    let turns: Vec<u32> = items.iter().map(|item| item.turn).collect();
    session.transcript.insert(1, items);
    session.shift_places(1, by);
    let here = |id: ItemId| ItemId(id.0 + 1);
    let turn_of = |id: ItemId| turns.get(super::index(id)).copied();
    for (id, place) in before.tools.into_iter().chain(before.ledger.former_tools) {
        let of = turn_of(place);
        if of == Some(session.turn_count) {
            session.tools.entry(id).or_insert(here(place));
        } else if of.map(|turn| turn + 1) == Some(session.turn_count) {
            session.ledger.former_tools.entry(id).or_insert(here(place));
        }
    }
    for (id, view) in before.terminals {
        session.terminals.entry(id).or_insert(view);
    }
    let ledger = &mut session.ledger;
    for (id, place) in before.ledger.compactions {
        ledger.compactions.entry(id).or_insert(here(place));
    }
    for (id, place) in before.ledger.subagents {
        ledger.subagents.entry(id).or_insert(here(place));
    }
    for (id, place) in before.ledger.shown_by {
        ledger.shown_by.entry(id).or_insert(here(place));
    }
    let weight = weight::of_items(session, 1..1 + by);
    let book = &mut session.pages.book;
    book.has_head = true;
    book.closed.push_front(Page {
        begin: Some(EventPlace::Seq(first_seq)),
        first: 1,
        weight,
        ..Page::default()
    });
    session.pages.wants_trim = true;
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
