//! Reads parts of a session that are only on disk, and merges their items with those in memory.
//!
//! Invariant: a page is requested only when all late events of it are on disk.

use std::time::Instant;

use crate::app::session::play::{self, Bounds, Played};
use crate::app::session::{paging, record};
use crate::app::state::pages::edge::Things;
use crate::app::state::pages::{Page, PageIndex, Request, index_range, weight};
use crate::app::{Earlier, Effect, ItemBody, Replay, Session, State, UiRequest};
use crate::model::{
    Action, EventPage, EventPosition, ItemId, MarkPosition, NoticeKind, SessionKey, StoreJob,
};

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

/// Number of bytes read at once, unless a page is larger.
const READ_BYTES: usize = 1 << 20;

/// The job that reads the events before those in memory; `None`: not now.
pub(in crate::app) fn earlier_job(session: &mut Session) -> Option<StoreJob> {
    let (key, written, asked) = (session.key, session.pages.written, session.pages.serial);
    let book = &mut session.pages.book;
    let earlier = book.earlier.as_ref().filter(|earlier| !earlier.is_loading)?;
    let request = book.request.clone().unwrap_or_else(|| next_request(book, earlier));
    let is_written = book.closed.range(request.pages.clone()).all(|page| page.late <= written);
    // Otherwise it is requested again with the next frame.
    let end = Some(request.pages.end).filter(|end| *end > book.unloaded);
    let before = end.map_or(Some(earlier.before), |end| book.page(end).seq()).filter(|_| is_written)?;
    let (from, uid) = (request.from, earlier.uid.clone());
    book.request = Some(Request { asked, ..request });
    let earlier = book.earlier.as_mut()?;
    (earlier.is_loading, earlier.has_failed) = (true, false);
    Some(StoreJob::Earlier { key, uid, before, from })
}

/// The last unloaded pages, otherwise a part before all pages.
fn next_request(book: &PageIndex, earlier: &Earlier) -> Request {
    let end = book.unloaded;
    let kind = |page: &Page| (page.needs.hides, page.is_end);
    let last = end.checked_sub(1).map(|last| kind(book.page(last)));
    let mut bytes = 0;
    let fits = |page: &&Page| {
        let fits = Some(kind(page)) == last && (bytes == 0 || bytes + page.weight <= READ_BYTES);
        bytes += page.weight.max(1);
        fits
    };
    let start = end - book.closed.range(..end).rev().take_while(fits).count();
    let from = book.page(start).seq().filter(|_| start < end);
    let count = from.map(|from| u64::try_from(earlier.before - from).unwrap_or(0));
    let left = count.map(|count| earlier.count.saturating_sub(count));
    Request { pages: start..end, from, left, asked: 0 }
}

/// Whether a result lacks late events recorded since the request, or belongs to another history. It is then ignored.
pub(in crate::app) fn is_stale(session: &Session, first_seq: Option<i64>) -> bool {
    let book = &session.pages.book;
    let Some(request) = &book.request else { return true };
    let is_another = first_seq.zip(request.from).is_some_and(|(first, from)| first != from);
    is_another || book.closed.range(request.pages.clone()).any(|page| page.late > request.asked)
}

/// A read has failed.
pub(in crate::app) fn read_failed(session: &mut Session) {
    session.pages.book.request = None;
    session.pages.redo = None;
    if let Some(earlier) = &mut session.pages.book.earlier {
        earlier.has_failed = true;
    }
}

/// A part that was read.
struct Part {
    session: Session,
    played: Played,
    first_seq: i64,
    /// Number of events before it.
    left: u64,
    /// Whether the session ended with it when it was opened.
    is_end: bool,
}

/// Inserts the events that were read after the line with the number of earlier ones. Returns whether it could:
/// otherwise items in memory depend on them, and both are read again.
pub(in crate::app) fn insert(session: &mut Session, page: EventPage, now: Instant) -> bool {
    let Some(request) = session.pages.book.request.take() else { return true };
    let EventPage { events, first_seq, left_out_count, .. } = page;
    let book = &session.pages.book;
    let (is_own, pages) = (book.unloaded > 0, request.pages);
    let mut known = book.closed.range(pages.clone());
    let may_hide = !is_own || known.clone().any(|page| page.needs.hides);
    let is_end = known.any(|page| page.is_end);
    let left = if events.is_empty() { 0 } else { request.left.unwrap_or(left_out_count) };
    let later = session.read_only.as_ref().and_then(|reading| reading.later.as_ref());
    let later_count = later.map_or(0, |later| later.count);
    let last_turn = events.iter().map(|event| event.turn).max();
    let bounds = Bounds {
        is_cut: left > 0 && may_hide,
        is_over: !is_end && last_turn.is_some_and(|turn| is_over_behind(session, turn, pages.end)),
        goes_on: is_end && later.is_some(),
        is_continued: false,
    };
    let mut part = Session::new(session.key, session.workspace.clone());
    let played = play::play_to(&mut part, events, None, bounds, now);
    let replaced = if is_own { 0 } else { pages.end };
    if !is_own && let Some(count) = dependent_pages(session, &part, &played.things, left == 0, replaced) {
        session.pages.book.request =
            Some(Request { pages: 0..count, from: Some(first_seq), left: Some(left), asked: 0 });
        return false;
    }
    if is_own {
        session.pages.book.closed.drain(pages.clone());
        session.pages.book.unloaded = pages.start;
    }
    put(session, Part { session: part, played, first_seq, left, is_end }, replaced);
    if replaced > 0 && is_end && session.pages.later_line.take().is_some() {
        record::push_later(session, later_count);
    }
    session.transcript.set_head(record::earlier_label(left));
    let earlier = session.pages.book.earlier.take().filter(|_| left > 0);
    session.pages.book.earlier = earlier.map(|earlier| Earlier { before: first_seq, count: left, ..earlier });
    true
}

/// Whether a turn that continues on the page with this index ended successfully there: calls left open before are then
/// considered completed.
fn is_over_behind(session: &Session, turn: u32, behind: usize) -> bool {
    let book = &session.pages.book;
    let mut pages = book.closed.range(behind..);
    if session.turn_count <= turn && !pages.any(|page| page.needs.ended_turn >= turn) {
        return false;
    }
    let from = if behind > book.unloaded { book.page(behind).first } else { ItemId::HEAD };
    let items = session.transcript.items().iter().skip(session.transcript.index_from(from));
    let mut of_turn = items.filter(|item| item.turn == turn && item.id != ItemId::HEAD);
    !of_turn.any(|item| match &item.body {
        ItemBody::TurnEnd(_) => true,
        ItemBody::Notice { kind, .. } => *kind == NoticeKind::TurnCut,
        _ => false,
    })
}

/// The number of pages in memory up to the last one that depends on a part, in which `replaced` pages are included.
/// `None`: no other page depends on it.
fn dependent_pages(
    session: &Session,
    part: &Session,
    things: &Things,
    is_first: bool,
    replaced: usize,
) -> Option<usize> {
    let closed = &session.pages.book.closed;
    let start = |page: &Page| session.transcript.index_from(page.first);
    let next = closed.get(replaced).and_then(|page| session.transcript.items().get(start(page)));
    // A repeated notice is counted.
    let is_repeated =
        part.transcript.items().last().zip(next).is_some_and(|(last, next)| {
            matches!(last.body, ItemBody::Notice { .. }) && last.body == next.body
        });
    let pages = closed.iter().enumerate().skip(replaced);
    let mut dependent =
        pages.filter(|(at, page)| page.needs.are_in(things, is_first) || (is_repeated && *at == replaced));
    let count = dependent.next_back()?.0 + 1;
    // Parts that could not be recorded would be lost.
    (!closed.range(..count).any(|page| page.is_cut)).then_some(count)
}

/// Inserts the items of a part, which replace those of the first pages, and updates all references to them.
fn put(session: &mut Session, part: Part, replaced: usize) {
    let Part { session: before, played: Played { needs, .. }, first_seq, left, is_end } = part;
    let first = before.transcript.items().first().map(|item| item.id);
    let own = session.transcript.items().iter().find(|item| item.id != ItemId::HEAD).map(|item| item.id);
    let mut behind = own.unwrap_or(session.transcript.next_id());
    let offset = if replaced > 0 {
        let from = session.pages.book.page(0).first;
        behind = session.pages.book.page(replaced).first;
        drop(paging::take_things(session, index_range(&session.transcript, from, behind)));
        session.pages.book.closed.drain(..replaced);
        session.transcript.replace(from, behind, before.transcript)
    } else {
        session.transcript.prepend(before.transcript)
    };
    let here = |id: ItemId| ItemId(id.0 + offset);
    for (id, view) in before.terminals {
        if replaced > 0 && session.index.terminal(&id).is_none() {
            session.terminals.remove(&id);
        }
        session.terminals.entry(id).or_insert(view);
    }
    let transcript = &session.transcript;
    let is_current = |id| transcript.get(id).is_some_and(|item| item.turn == session.turn_count);
    for (earlier, later) in session.index.add_earlier(before.index.moved(here), is_current) {
        join(session, earlier, later);
    }
    match &mut session.search {
        Some(search) if replaced > 0 => search.restart(),
        Some(search) => search.look_before(behind),
        None => {}
    }
    let first = first.map_or(behind, here);
    let weight = weight::of_items(session, first, behind);
    let begin = Some(EventPosition::Seq(first_seq));
    let page = Page { begin, first, weight, is_end, needs, ..Page::default() };
    let book = &mut session.pages.book;
    book.closed.insert(book.unloaded, page);
    if left == 0 {
        book.closed.iter_mut().for_each(|page| page.needs.clear());
    }
    session.pages.wants_trim = true;
}

/// Merges an item with a later one of the same subject, which was loaded first.
fn join(session: &mut Session, position: ItemId, later: ItemId) {
    let Some(body) = session.transcript.get(later).map(|later| later.body.clone()) else { return };
    session.transcript.edit(position, |item| match (&mut item.body, body) {
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
