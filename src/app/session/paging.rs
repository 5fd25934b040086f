//! The memory limit of a transcript: pages that exceed it are only on disk.
//!
//! Splits a transcript into pages as it grows, marks their starts in the record, and assigns each event to a page.
//! `trim` unloads the oldest pages once the store has written them, and `load` reads them again on demand.
//! Pages can be read separately because an event of an item is recorded with the item's page, however late it is
//! received. Pages of a reopened session that depend on each other are read again as one (`edge`).
//! Invariants: only what is on disk is unloaded; open, selected, searched or visible items stay; items are inspected
//! once per page, so that the cost of an update does not depend on the limit.

mod load;

use crate::app::ItemBody;
use crate::app::state::pages::{Page, PageIndex, PageKind, unloaded, weight};
use std::ops::Range;

use crate::model::{EventPlace, ItemId, Note, Record, SessionUpdate, ToolCallPatch};

use crate::app::state::session::index::Key;
use crate::app::{Earlier, Session};

pub(in crate::app) use crate::app::state::pages::edge::Needs;
pub(in crate::app) use crate::app::state::pages::weight::of_update as weight_of;
pub(in crate::app) use load::{
    Front, earlier_job, is_over_behind, is_stale, on_page, put_in_front, read_failed, wait_for_both,
};

/// The end of the page of an item that is not on the last page, if known.
fn behind(session: &mut Session, item: ItemId) -> Option<(EventPlace, &mut Page)> {
    let transcript = &session.transcript;
    let item = transcript.rank(item);
    let PageIndex { closed, open, .. } = &mut session.pages.book;
    if item >= transcript.rank(open.first) {
        return None;
    }
    let place = closed.partition_point(|page| transcript.rank(page.first) <= item).checked_sub(1)?;
    let end = closed.get(place + 1).unwrap_or(open).begin?;
    closed.get_mut(place).map(|page| (end, page))
}

/// Approximate size of all items of a session in bytes.
pub(in crate::app) fn weight_of_items(session: &Session) -> usize {
    let first = session.transcript.items().first().map_or(session.transcript.next_id(), |item| item.id);
    weight::of_items(session, first, session.transcript.next_id())
}

/// Restored items are in memory: they are a page.
pub(in crate::app) fn on_restored(
    session: &mut Session,
    first: ItemId,
    (first_seq, end_seq): (i64, i64),
    needs: Needs,
    earlier: Option<Earlier>,
) {
    let next = session.transcript.next_id();
    let weight = weight::of_items(session, first, next);
    let begin = Some(EventPlace::Seq(first_seq));
    let kind = PageKind { hides: needs.hides, is_end: true };
    let page = Page { begin, first, weight, kind, needs, ..Page::default() };
    let open = Page { begin: Some(EventPlace::Seq(end_seq)), first: next, ..Page::default() };
    session.pages.book = PageIndex { closed: [page].into(), open, earlier, ..PageIndex::default() };
}

/// Later events were loaded after those in memory, up to this number.
pub(in crate::app) fn on_appended(session: &mut Session, end_seq: i64, needs: Needs) {
    if let Some(page) = session.pages.book.closed.back_mut().filter(|_| session.pages.book.earlier.is_some())
    {
        page.kind.hides |= needs.hides;
        page.needs.extend(needs);
    }
    let first = session.transcript.next_id();
    session.pages.book.open = Page { begin: Some(EventPlace::Seq(end_seq)), first, ..Page::default() };
}

/// The items were copied: their places in the record are not known.
pub(in crate::app) fn on_copied(session: &mut Session, source: &Session) {
    let copied = Page { first: ItemId::HEAD, ..Page::default() };
    let open = Page { first: session.transcript.next_id(), ..Page::default() };
    let earlier = source.pages.book.earlier.clone();
    session.pages.book = PageIndex { closed: [copied].into(), open, earlier, ..PageIndex::default() };
}

/// Records an event of an item on an earlier page with that page; otherwise returns the record, to be recorded at the
/// end.
pub(in crate::app) fn divert(session: &mut Session, item: Option<ItemId>, record: Record) -> Option<Record> {
    if session.pages.limit_bytes == 0 {
        return Some(record);
    }
    if session.pages.book.open.begin.is_none() {
        let mark = session.pages.next_serial();
        session.pages.book.open.begin = Some(EventPlace::Mark(mark));
        session.recorder.note(Note::Mark(mark));
    }
    let mut record = record;
    if let Record::Update(SessionUpdate::Tool(patch)) = &mut record {
        keep_terminals_apart(session, patch);
    }
    if let Some(item) = item
        && behind(session, item).is_some()
    {
        keep_late(session, item, record);
        return None;
    }
    session.pages.book.open.weight += weight::of_record(&record);
    Some(record)
}

/// Records updates of terminals that an earlier page shows with that page.
fn keep_terminals_apart(session: &mut Session, patch: &mut ToolCallPatch) {
    let own = session.tool_by_id(&patch.id);
    for update in std::mem::take(&mut patch.terminals) {
        let shown = session.index.terminal(update.id()).filter(|shown| Some(*shown) != own);
        match shown.filter(|shown| behind(session, *shown).is_some()) {
            Some(item) => keep_late(session, item, Record::Update(SessionUpdate::Terminal(update))),
            None => patch.terminals.push(update),
        }
    }
}

/// Records an event of an item on an earlier page; nothing if it is on the last page.
pub(in crate::app) fn keep_late(session: &mut Session, item: ItemId, record: Record) {
    let serial = session.pages.serial + 1;
    let Some(turn) = session.transcript.get(item).map(|item| item.turn) else { return };
    let Some((before, page)) = behind(session, item) else { return };
    // A permission request of this page must not be matched with later ones.
    let record = match record {
        Record::Asked(patch) => {
            let patch = ToolCallPatch { is_assumed: true, is_announcement: false, ..*patch };
            Record::Update(SessionUpdate::Tool(Box::new(patch)))
        }
        record => record,
    };
    page.late = serial;
    page.weight += weight::of_record(&record);
    session.pages.serial = serial;
    session.recorder.note(Note::Late { serial, before, turn, record: Box::new(record) });
}

/// Whether an item is on a complete page.
pub(in crate::app) fn is_behind(session: &Session, item: ItemId) -> bool {
    let transcript = &session.transcript;
    session.pages.limit_bytes > 0 && transcript.rank(item) < transcript.rank(session.pages.book.open.first)
}

/// Records an insertion after the last event of a turn whose items end before this index: its page stays in memory
/// until the insertion is on disk.
pub(in crate::app) fn keep_inserted(session: &mut Session, end: usize, record: &Record) -> u64 {
    let serial = session.pages.next_serial();
    let transcript = &session.transcript;
    let book = &mut session.pages.book;
    let pages = book.closed.iter_mut().chain([&mut book.open]);
    if let Some(page) = pages.take_while(|page| transcript.index_from(page.first) < end).last() {
        page.late = serial;
        page.weight += weight::of_record(record);
    }
    serial
}

/// An item was added, and its event is not recorded yet: if the page is full, the next one begins here.
pub(in crate::app) fn on_pushed(session: &mut Session, item: ItemId) {
    if session.pages.limit_bytes == 0 {
        return;
    }
    let is_full = session.pages.book.open.weight >= session.pages.page_bytes();
    // Text appended to a message belongs to the page of the message.
    let is_within = session.open_message.is_some_and(|open| open < item);
    if is_full && !is_within && item > session.pages.book.open.first {
        cut(session, item);
    }
    session.pages.book.open.weight += weight::ITEM;
}

/// Ends a page before this item.
fn cut(session: &mut Session, item: ItemId) {
    let weight = weight::of_items(session, session.pages.book.open.first, item);
    let mark = session.pages.next_serial();
    let book = &mut session.pages.book;
    let next = Page { begin: Some(EventPlace::Mark(mark)), first: item, ..Page::default() };
    let full = std::mem::replace(&mut book.open, next);
    book.closed.push_back(Page { weight, ..full });
    session.recorder.note(Note::Mark(mark));
    session.pages.wants_trim = true;
}

/// Records an update of a subject that is only on disk; other updates are returned.
pub(in crate::app) fn take_late(session: &mut Session, update: SessionUpdate) -> Option<SessionUpdate> {
    if session.pages.book.unloaded.is_empty() {
        return Some(update);
    }
    let place = away_of(session, &update);
    let Some((turn, behind)) = place else {
        let mut update = update;
        if let SessionUpdate::Tool(patch) = &mut update {
            for update in std::mem::take(&mut patch.terminals) {
                if let Some(SessionUpdate::Terminal(update)) =
                    take_late(session, SessionUpdate::Terminal(update))
                {
                    patch.terminals.push(update);
                }
            }
        }
        return Some(update);
    };
    let serial = session.pages.next_serial();
    session.pages.book.away_late = serial;
    let before = EventPlace::Seq(behind);
    let record = Box::new(Record::Update(update));
    session.recorder.note(Note::Late { serial, before, turn, record });
    None
}

/// The turn of the subject of an update, and the event number after its page on disk.
fn away_of(session: &Session, update: &SessionUpdate) -> Option<(u32, i64)> {
    let key = Key::of_update(update)?;
    // A call announced in another turn is a different call.
    let is_announced = matches!(update, SessionUpdate::Tool(patch) if patch.is_announcement);
    let is_it = |turn: u32| turn == session.turn_count || !is_announced;
    unloaded::find(session, &key).filter(|(turn, _)| is_it(*turn) && !session.has(&key))
}

/// The item that an event refers to, if any.
pub(in crate::app) fn item_of(session: &Session, record: &Record) -> Option<ItemId> {
    session.item_of(&Key::of(record)?)
}

/// Removes the index entries of the items in this range and returns their hashes.
pub(in crate::app) fn take_things(session: &mut Session, range: Range<usize>) -> Vec<(u64, u32)> {
    let mut things = Vec::new();
    let transcript = &session.transcript;
    for item in transcript.items().get(range.clone()).unwrap_or_default() {
        if let ItemBody::Message(message) = &item.body
            && let Some(id) = &message.message
        {
            things.push((Key::Message(message.role, id).hash(), item.turn));
        }
    }
    let terminals = &mut session.terminals;
    session.index.retain(|key, at| {
        let item = transcript.index_of(at).filter(|index| range.contains(index));
        let Some(item) = item.and_then(|index| transcript.items().get(index)) else { return true };
        things.push((key.hash(), item.turn));
        if let Key::Terminal(id) = key {
            terminals.remove(id);
        }
        false
    });
    things
}
