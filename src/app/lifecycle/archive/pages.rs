//! Loads pages of a long session on demand: before, after and around those in memory.

use crate::app::recording::loading;
use crate::app::session::reveal;
use std::time::Instant;

use crate::app::lifecycle::call;
use crate::app::recording::restore;
use crate::app::session::{paging, replay_reconcile};
use crate::app::{Effect, State};
use crate::model::{EventPage, SessionKey};

use crate::app::Later;
use crate::app::recording::loading::load_earlier;

/// Finds an event in the transcript with the page around it.
pub(super) fn on_around(
    state: &mut State,
    key: SessionKey,
    window: Result<EventPage, String>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let found = match window {
        Ok(window) => state.sessions.get(&key).and_then(|session| restore::place_of(session, window, now)),
        Err(why) => {
            call::flash(state, why, fx);
            return;
        }
    };
    let searched = state.user.searched.take().unwrap_or_default();
    match found {
        Some(item) => {
            if let Some(session) = state.sessions.get_mut(&key).filter(|_| state.active == key) {
                reveal::show_found(session, item, &searched, fx);
            }
        }
        None => call::flash(state, "This location is no longer shown.", fx),
    }
}

/// A page of later events was read.
pub(super) fn on_later(
    state: &mut State,
    key: SessionKey,
    window: Result<EventPage, String>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(reading) = &mut session.read_only else { return };
    match window {
        Ok(window) => {
            let is_over = window.later_count == 0 || window.events.is_empty();
            let later = Later { from: window.next_seq, count: window.later_count, is_loading: false };
            reading.later = (!is_over).then_some(later);
            restore::append(session, window, now);
        }
        Err(why) => {
            if let Some(later) = &mut reading.later {
                later.is_loading = false;
            }
            call::flash(state, why, fx);
        }
    }
}

pub(super) fn on_earlier(
    state: &mut State,
    key: SessionKey,
    page: Result<EventPage, String>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(earlier) = &mut session.pages.book.earlier else { return };
    if !std::mem::take(&mut earlier.is_loading) {
        // It was requested for another history.
        return;
    }
    if paging::is_stale(session, page.as_ref().ok().map(|page| page.first_seq)) {
        return;
    }
    let page = match page {
        Ok(page) => page,
        Err(why) => {
            paging::read_failed(session);
            call::flash(state, why, fx);
            return;
        }
    };
    if !paging::insert(session, page, now) {
        load_earlier(state, key, fx);
        return;
    }
    replay_reconcile::on_earlier(session, now);
    loading::redo(state, key);
}
