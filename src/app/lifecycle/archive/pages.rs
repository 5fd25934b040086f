//! Loads pages of a long session on demand: before, after and around those in memory.

use std::time::Instant;

use crate::app::lifecycle::call;
use crate::app::recording::{loading, restore};
use crate::app::session::{replay_reconcile, reveal};
use crate::app::{Effect, Later, State};
use crate::model::{EventPage, SessionKey};

/// Finds an event in the transcript with the page around it.
pub(super) fn on_around(
    state: &mut State,
    key: SessionKey,
    page: Result<EventPage, String>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let found = match page {
        Ok(page) => state.sessions.get(&key).and_then(|session| restore::position_of(session, page, now)),
        Err(why) => return call::flash(state, why, fx),
    };
    let searched = state.user.searched.take().unwrap_or_default();
    let Some(item) = found else { return call::flash(state, "Location not found in the transcript.", fx) };
    if let Some(session) = state.sessions.get_mut(&key).filter(|_| state.active == key) {
        reveal::show_found(session, item, &searched, fx);
    }
}

/// A page of later events was read.
pub(super) fn on_later(
    state: &mut State,
    key: SessionKey,
    page: Result<EventPage, String>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(reading) = &mut session.read_only else { return };
    match page {
        Ok(page) => {
            let is_over = page.later_count == 0 || page.events.is_empty();
            let later = Later { from: page.next_seq, count: page.later_count, is_loading: false };
            reading.later = (!is_over).then_some(later);
            restore::append(session, page, now);
        }
        Err(why) => {
            reading.later.iter_mut().for_each(|later| later.is_loading = false);
            call::flash(state, why, fx);
        }
    }
}

/// A page of earlier events was read.
pub(super) fn on_earlier(
    state: &mut State,
    key: SessionKey,
    page: Result<EventPage, String>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(earlier) = &mut session.pages.book.earlier else { return };
    // Otherwise it was requested for another history.
    if !std::mem::take(&mut earlier.is_loading) {
        return;
    }
    match page {
        Err(why) => {
            loading::read_failed(session);
            call::flash(state, why, fx);
        }
        Ok(page) => {
            if loading::insert(session, page, now) {
                replay_reconcile::on_earlier(session, now);
                loading::redo(state, key);
            }
        }
    }
}
