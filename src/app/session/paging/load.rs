//! Loads unloaded pages again.
//!
//! Determines which events to request, and merges the resulting items with those in memory. `archive` sends the
//! requests.
//! Invariant: a page is requested only when all late events of it are on disk.

use crate::app::session::paging;

use crate::app::{ItemBody, Session};
use crate::model::{EventPlace, ItemId, NoticeKind, StoreJob};

use crate::app::state::pages::edge::{Needs, Things};
use crate::app::state::pages::{Merge, Page, PageIndex, PageKind, index_range, unloaded, weight};

/// Number of bytes read at once, unless a page is larger.
const READ_BYTES: usize = 1 << 20;

/// The job that reads the events before those in memory; `None`: not now.
pub(in crate::app) fn earlier_job(session: &mut Session) -> Option<StoreJob> {
    let key = session.key;
    let pages = &mut session.pages;
    let PageIndex { closed, open, merge, unloaded, away_late, earlier, reading, asked } = &mut pages.book;
    let earlier = earlier.as_mut().filter(|earlier| !earlier.is_loading)?;
    let uid = earlier.uid.clone();
    if let Some(merge) = merge {
        let end = closed.get(merge.pages).unwrap_or(open).begin;
        let is_written = closed.iter().take(merge.pages).all(|page| page.late <= pages.written);
        // Otherwise it is requested again with the next frame.
        let Some(EventPlace::Seq(before)) = end.filter(|_| is_written) else { return None };
        (earlier.is_loading, earlier.has_failed) = (true, false);
        *asked = pages.serial;
        return Some(StoreJob::Earlier { key, uid, before, from: Some(merge.first_seq) });
    }
    if *away_late > pages.written {
        return None;
    }
    (earlier.is_loading, earlier.has_failed) = (true, false);
    let before = earlier.before;
    let kind = unloaded.last().map(|page| page.kind);
    let mut bytes = 0;
    let fits = |page: &&unloaded::Unloaded| {
        let fits = Some(page.kind) == kind && (bytes == 0 || bytes + page.weight <= READ_BYTES);
        bytes += page.weight.max(1);
        fits
    };
    let count = unloaded.iter().rev().take_while(fits).count();
    let from = unloaded.len().checked_sub(count).and_then(|first| unloaded.get(first)).map(|page| page.begin);
    (*reading, *asked) = (count, pages.serial);
    Some(StoreJob::Earlier { key, uid, before, from })
}

/// Whether a result lacks late events recorded since the request, or belongs to another history. It is then ignored.
pub(in crate::app) fn is_stale(session: &mut Session, first_seq: Option<i64>) -> bool {
    let book = &mut session.pages.book;
    if let Some(merge) = &book.merge {
        let is_another = first_seq.is_some_and(|seq| seq != merge.first_seq);
        return is_another || book.closed.iter().take(merge.pages).any(|page| page.late > book.asked);
    }
    let first = book.unloaded.len().checked_sub(book.reading).and_then(|first| book.unloaded.get(first));
    let is_another = first_seq.is_some_and(|seq| first.is_none_or(|first| first.begin != seq));
    let is_stale = book.reading > 0 && (book.away_late > book.asked || is_another);
    if is_stale {
        book.reading = 0;
    }
    is_stale
}

/// A read has failed.
pub(in crate::app) fn read_failed(session: &mut Session) {
    session.pages.book.reading = 0;
    session.pages.book.merge = None;
    session.pages.redo = None;
    if let Some(earlier) = &mut session.pages.book.earlier {
        earlier.has_failed = true;
    }
}

/// Where a loaded page belongs.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::app) struct Front {
    /// Number of events before it.
    pub left: u64,
    /// Whether it was in memory before, in the same state.
    pub is_own: bool,
    /// Whether events about subjects before it may be omitted from it.
    pub may_hide: bool,
    /// Whether the session ended with it when it was opened.
    pub is_end: bool,
    /// Number of pages in memory that it includes.
    pub replaced: usize,
}

/// The requested pages were read, or a page with `left_count` events before it according to the store.
pub(in crate::app) fn on_page(session: &mut Session, first_seq: i64, left_count: u64) -> Front {
    let book = &mut session.pages.book;
    if let Some(Merge { left, pages, .. }) = book.merge.take() {
        let is_end = book.closed.iter().take(pages).any(|page| page.kind.is_end);
        return Front { left, is_own: false, may_hide: true, is_end, replaced: pages };
    }
    let count = std::mem::take(&mut book.reading);
    let Some(kind) = book.unloaded.last().map(|page| page.kind).filter(|_| count > 0) else {
        return Front { left: left_count, may_hide: true, ..Front::default() };
    };
    let (left, before) = book.earlier.as_ref().map_or((0, first_seq), |it| (it.count, it.before));
    book.unloaded.truncate(book.unloaded.len().saturating_sub(count));
    let left = left.saturating_sub(u64::try_from(before - first_seq).unwrap_or(0));
    Front { left, is_own: true, may_hide: kind.hides, is_end: kind.is_end, replaced: 0 }
}

/// Whether a turn that continues after a page ended successfully there: calls left open are then considered completed.
pub(in crate::app) fn is_over_behind(session: &Session, turn: u32, front: Front) -> bool {
    let PageIndex { closed, open, .. } = &session.pages.book;
    let mut behind = closed.iter().skip(front.replaced);
    if front.is_end
        || !(session.turn_count > turn || behind.clone().any(|page| page.needs.ended_turn >= turn))
    {
        return false;
    }
    let from = if front.replaced > 0 { behind.next().unwrap_or(open).first } else { ItemId::HEAD };
    let items = session.transcript.items().iter().skip(session.transcript.index_from(from));
    let mut of_turn = items.filter(|item| item.turn == turn && item.id != ItemId::HEAD);
    !of_turn.any(|item| match &item.body {
        ItemBody::TurnEnd(_) => true,
        ItemBody::Notice { kind, .. } => *kind == NoticeKind::TurnCut,
        _ => false,
    })
}

/// Whether pages in memory depend on a loaded page, so that they are read again together.
pub(in crate::app) fn wait_for_both(
    session: &mut Session,
    things: &Things,
    last: Option<&ItemBody>,
    first_seq: i64,
    Front { left, replaced, .. }: Front,
) -> bool {
    let transcript = &session.transcript;
    let closed = &session.pages.book.closed;
    let start = |page: &Page| transcript.index_from(page.first);
    let behind = closed.get(replaced).map(start);
    let next = behind.and_then(|index| transcript.items().get(index)).map(|item| &item.body);
    // A repeated notice is counted.
    let is_repeated = matches!(last, Some(ItemBody::Notice { .. })) && last == next;
    let depends =
        |page: &Page| page.needs.are_in(things, left == 0) || (is_repeated && Some(start(page)) == behind);
    let Some(last) = closed.iter().rposition(depends).filter(|last| *last >= replaced) else { return false };
    // Parts that could not be recorded would be lost.
    if closed.iter().take(last + 1).any(|page| page.is_cut) {
        return false;
    }
    session.pages.book.merge = Some(Merge { first_seq, left, pages: last + 1 });
    true
}

/// Inserts the items of a loaded page after the first line, and updates all references to them.
pub(in crate::app) fn put_in_front(
    session: &mut Session,
    before: Session,
    first_seq: i64,
    front: Front,
    needs: Needs,
) {
    let Front { replaced, is_end, left, .. } = front;
    let first = before.transcript.items().first().map(|item| item.id);
    let items = session.transcript.items().iter().map(|item| item.id);
    let mut behind = items.into_iter().find(|id| *id != ItemId::HEAD).unwrap_or(session.transcript.next_id());
    let offset = if let Some(from) = session.pages.book.closed.front().filter(|_| replaced > 0) {
        let from = from.first;
        behind = session.pages.book.closed.get(replaced).unwrap_or(&session.pages.book.open).first;
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
    let begin = Some(EventPlace::Seq(first_seq));
    let kind = PageKind { hides: needs.hides, is_end };
    session.pages.book.closed.push_front(Page { begin, first, weight, kind, needs, ..Page::default() });
    if left == 0 {
        session.pages.book.closed.iter_mut().for_each(|page| page.needs.clear());
    }
    session.pages.wants_trim = true;
}

/// Merges an item with a later one of the same subject, which was loaded first.
fn join(session: &mut Session, place: ItemId, later: ItemId) {
    let Some(later) = session.transcript.get(later) else { return };
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
