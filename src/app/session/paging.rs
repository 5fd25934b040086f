//! The memory limit of a transcript: pages that exceed it are only on disk.
//!
//! Splits a transcript into pages as it grows, marks their starts in the record, and assigns each event to a page.
//! `trim` unloads the oldest pages once the store has written them, and `loading` reads them again on demand.
//! Pages can be read separately because an event of an item is recorded with the item's page, however late it is
//! received. Pages of a reopened session that depend on each other are read again as one (`edge`).
//! Invariants: only what is on disk is unloaded; open, selected, searched or visible items stay; items are inspected
//! once per page, so that the cost of an update does not depend on the limit.

use std::ops::Range;

use crate::app::state::pages::edge::Needs;
use crate::app::state::pages::{Page, PageIndex, weight};
use crate::app::state::session::index::Key;
use crate::app::{Earlier, ItemBody, Session};
use crate::model::{EventPosition, ItemId, Note, Record, SessionUpdate, ToolCallPatch};

pub(in crate::app) use crate::app::state::pages::weight::of_update as weight_of;

/// Approximate size of all items of a session in bytes.
pub(in crate::app) fn weight_of_items(session: &Session) -> usize {
    weight::of_items(session, ItemId::HEAD, session.transcript.next_id())
}

/// Items from `first` on were restored: they are a page.
pub(in crate::app) fn on_restored(
    session: &mut Session,
    first: ItemId,
    (first_seq, end_seq): (i64, i64),
    needs: Needs,
    earlier: Option<Earlier>,
) {
    let open = open_at(session, Some(end_seq));
    let weight = weight::of_items(session, first, open.first);
    let begin = Some(EventPosition::Seq(first_seq));
    let page = Page { begin, first, weight, is_end: true, needs, ..Page::default() };
    session.pages.book = PageIndex::of(page, open, earlier);
}

/// Later events were loaded after those in memory, up to this number.
pub(in crate::app) fn on_appended(session: &mut Session, end_seq: i64, needs: Needs) {
    let open = open_at(session, Some(end_seq));
    let book = &mut session.pages.book;
    book.open = open;
    if let Some(page) = book.closed.back_mut().filter(|_| book.earlier.is_some()) {
        page.needs.extend(needs);
    }
}

/// The items were copied from another session. Their record is that of `source`, so they stay in memory.
pub(in crate::app) fn on_copied(session: &mut Session, source: &Session) {
    let copied = Page { first: ItemId::HEAD, is_cut: true, ..Page::default() };
    let open = open_at(session, None);
    session.pages.book = PageIndex::of(copied, open, source.pages.book.earlier.clone());
}

/// The page that begins after the last item.
fn open_at(session: &Session, seq: Option<i64>) -> Page {
    Page { begin: seq.map(EventPosition::Seq), first: session.transcript.next_id(), ..Page::default() }
}

/// Records an event of an item on an earlier page with that page; otherwise returns the record, to be recorded at the
/// end.
pub(in crate::app) fn divert(
    session: &mut Session,
    item: Option<ItemId>,
    mut record: Record,
) -> Option<Record> {
    if session.pages.limit_bytes == 0 {
        return Some(record);
    }
    if session.pages.book.open.begin.is_none() {
        let mark = session.pages.next_serial();
        session.pages.book.open.begin = Some(EventPosition::Mark(mark));
        session.recorder.note(Note::Mark(mark));
    }
    if let Record::Update(SessionUpdate::Tool(patch)) = &mut record {
        keep_terminals_apart(session, patch);
    }
    let record = match item {
        Some(item) => keep_late(session, item, record)?,
        None => record,
    };
    session.pages.book.open.weight += weight::of_record(&record);
    Some(record)
}

/// Records updates of terminals that an earlier page shows with that page.
fn keep_terminals_apart(session: &mut Session, patch: &mut ToolCallPatch) {
    let own = session.tool_by_id(&patch.id);
    for update in std::mem::take(&mut patch.terminals) {
        let shown = session.index.terminal(update.id()).filter(|shown| Some(*shown) != own);
        let record = Record::Update(SessionUpdate::Terminal(update));
        let rest = match shown {
            Some(item) => keep_late(session, item, record),
            None => Some(record),
        };
        if let Some(Record::Update(SessionUpdate::Terminal(update))) = rest {
            patch.terminals.push(update);
        }
    }
}

/// Records an event of an item with its page, unless that is the last page: then the record is returned.
pub(in crate::app) fn keep_late(session: &mut Session, item: ItemId, record: Record) -> Option<Record> {
    let book = &session.pages.book;
    let Some(at) = book.index_of(&session.transcript, item) else { return Some(record) };
    let Some(before) = book.page(at + 1).begin else { return Some(record) };
    let Some(turn) = session.transcript.get(item).map(|item| item.turn) else { return Some(record) };
    // A permission request of this page must not be matched with later ones.
    let record = match record {
        Record::Asked(patch) => {
            let patch = ToolCallPatch { is_assumed: true, is_announcement: false, ..*patch };
            Record::Update(SessionUpdate::Tool(Box::new(patch)))
        }
        record => record,
    };
    note_late(session, at, before, turn, record);
    None
}

/// Records an event with this page, which ends there.
fn note_late(session: &mut Session, at: usize, before: EventPosition, turn: u32, record: Record) {
    let serial = session.pages.next_serial();
    if let Some(page) = session.pages.book.closed.get_mut(at) {
        page.late = serial;
        page.weight += weight::of_record(&record);
    }
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
    let pages = book.closed.range_mut(book.unloaded..).chain([&mut book.open]);
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
    let Page { first, weight, .. } = session.pages.book.open;
    // Text appended to a message belongs to the page of the message.
    let is_within = session.open_message.is_some_and(|open| open < item);
    if weight >= session.pages.page_bytes() && !is_within && item > first {
        let mark = session.pages.next_serial();
        let next = Page { begin: Some(EventPosition::Mark(mark)), first: item, ..Page::default() };
        let full = std::mem::replace(&mut session.pages.book.open, next);
        let weight = weight::of_items(session, first, item);
        session.pages.book.closed.push_back(Page { weight, ..full });
        session.recorder.note(Note::Mark(mark));
        session.pages.wants_trim = true;
    }
    session.pages.book.open.weight += weight::ITEM;
}

/// Records an update of a subject that is only on disk; other updates are returned.
pub(in crate::app) fn take_late(session: &mut Session, mut update: SessionUpdate) -> Option<SessionUpdate> {
    if session.pages.book.unloaded == 0 {
        return Some(update);
    }
    let Some((turn, at)) = page_on_disk(session, &update) else {
        if let SessionUpdate::Tool(patch) = &mut update {
            let updates = std::mem::take(&mut patch.terminals).into_iter().map(SessionUpdate::Terminal);
            let rest = updates.filter_map(|update| take_late(session, update));
            patch.terminals.extend(rest.filter_map(|update| match update {
                SessionUpdate::Terminal(update) => Some(update),
                _ => None,
            }));
        }
        return Some(update);
    };
    let before = session.pages.book.page(at + 1).begin?;
    note_late(session, at, before, turn, Record::Update(update));
    None
}

/// The turn of the subject of an update, and the index of its page, if that is only on disk.
fn page_on_disk(session: &Session, update: &SessionUpdate) -> Option<(u32, usize)> {
    let key = Key::of_update(update)?;
    // A call announced in another turn is a different call.
    let is_announced = matches!(update, SessionUpdate::Tool(patch) if patch.is_announcement);
    let is_it = |turn: u32| turn == session.turn_count || !is_announced;
    session.pages.book.find_unloaded(&key).filter(|(turn, _)| is_it(*turn) && !session.has(&key))
}

/// The item that an event refers to, if any.
pub(in crate::app) fn item_of(session: &Session, record: &Record) -> Option<ItemId> {
    session.item_of(&Key::of(record)?)
}

/// Removes the index entries of these items and returns their hashes with their turns, ordered.
pub(in crate::app) fn take_things(session: &mut Session, range: Range<usize>) -> Box<[(u64, u32)]> {
    let transcript = &session.transcript;
    let items = transcript.items().get(range.clone()).unwrap_or_default();
    let mut things: Vec<(u64, u32)> = items
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::Message(message) => {
                Some((Key::Message(message.role, message.message.as_ref()?).hash(), item.turn))
            }
            _ => None,
        })
        .collect();
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
    things.sort_unstable();
    things.into()
}
