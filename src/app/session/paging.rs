//! The memory limit of a transcript: pages that exceed it are only on disk.
//!
//! Splits a transcript into pages as it grows, marks their starts in the record, and assigns each event to a page.
//! `trim` unloads the oldest pages once the store has written them, and `loading` reads them again on demand.
//! Pages can be read separately because an event of an item is recorded with the item's page, however late it is
//! received, also if the page was never loaded.
//! Invariants: only what is on disk is unloaded; open, selected, searched or visible items stay; items are inspected
//! once per page, so that the cost of an update does not depend on the limit.

use std::collections::VecDeque;
use std::ops::Range;

use crate::app::state::pages::{Page, PageIndex, index_range, weight};
use crate::app::state::session::index::Key;
use crate::app::{Earlier, Item, ItemBody, Session};
use crate::model::{
    EventPosition, ItemId, Note, Patch, Record, RecordedPage, SessionUpdate, Subjects, ToolCallId,
    ToolCallPatch,
};

pub(in crate::app) use crate::app::state::pages::weight::of_update as weight_of;

/// Approximate size of all items of a session in bytes.
pub(in crate::app) fn weight_of_items(session: &Session) -> usize {
    weight::of_items(session, ItemId::HEAD, session.transcript.next_id())
}

/// Items from `first` on were restored or added at the end: they are the open page, which starts with this event.
pub(in crate::app) fn open_page(session: &mut Session, first: ItemId, seq: i64) {
    let weight = weight::of_items(session, first, session.transcript.next_id());
    let begin = Some(EventPosition::Seq(seq));
    session.pages.book.open = Page { begin, first, weight, ..Page::default() };
}

/// These pages of a record are only on disk, before the event with this number.
pub(in crate::app) fn on_disk(session: &mut Session, uid: String, pages: Vec<RecordedPage>, before: i64) {
    let page = |RecordedPage { seq, subjects }| {
        let begin = Some(EventPosition::Seq(seq));
        Page { begin, first: ItemId::HEAD, subjects, ..Page::default() }
    };
    let closed: VecDeque<Page> = pages.into_iter().map(page).collect();
    let first = closed.front().and_then(Page::seq);
    let count = first.map(|first| u64::try_from(before - first).unwrap_or(0));
    let earlier = |count| Earlier { uid, before, count, is_loading: false, has_failed: false };
    let earlier = count.map(earlier);
    session.pages.book = PageIndex { unloaded: closed.len(), closed, earlier, ..PageIndex::default() };
}

/// The items were copied from another session. Their record is that of `source`, so they stay in memory.
pub(in crate::app) fn on_copied(session: &mut Session, source: &Session) {
    let PageIndex { closed, unloaded, earlier, .. } = &source.pages.book;
    let copied = Page { first: ItemId::HEAD, is_cut: true, ..Page::default() };
    session.pages.book = PageIndex {
        closed: closed.range(..*unloaded).cloned().chain([copied]).collect(),
        unloaded: *unloaded,
        open: Page { first: session.transcript.next_id(), ..Page::default() },
        earlier: earlier.clone(),
        asked: 0,
    };
}

/// Starts a page in the record. Returns its position.
fn mark(session: &mut Session, end: ItemId) -> EventPosition {
    let mark = session.pages.next_serial();
    let first = session.pages.book.closed.back().map_or(end, |page| page.first);
    let subjects = subjects(session, &index_range(&session.transcript, first, end));
    session.recorder.note(Note::Mark { mark, subjects });
    EventPosition::Mark(mark)
}

/// Records an event of an item on an earlier page with that page; otherwise returns the record, to be recorded at the
/// end.
pub(in crate::app) fn divert(
    session: &mut Session,
    item: Option<ItemId>,
    mut record: Record,
) -> Option<Record> {
    if session.pages.book.open.begin.is_none() {
        let first = session.pages.book.open.first;
        session.pages.book.open.begin = Some(mark(session, first));
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

/// Records the assumed end of a call, if the end of the turn is recorded on a later page.
pub(in crate::app) fn keep_end(session: &mut Session, item: ItemId) {
    if let Some(call) = session.tool_call(item) {
        let mut patch = ToolCallPatch::new(call.id.clone());
        (patch.status, patch.is_assumed) = (Patch::Set(call.status), true);
        drop(keep_late(session, item, Record::Update(SessionUpdate::Tool(Box::new(patch)))));
    }
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
    transcript.rank(item) < transcript.rank(session.pages.book.open.first)
}

/// The indices of the items on the page of this item, in the record of which an insertion beside it belongs.
pub(in crate::app) fn page_range(session: &Session, item: ItemId) -> Range<usize> {
    let (book, transcript) = (&session.pages.book, &session.transcript);
    match book.index_of(transcript, item) {
        Some(at) => index_range(transcript, book.page(at).first, book.page(at + 1).first),
        None => transcript.index_from(book.open.first)..transcript.items().len(),
    }
}

/// An item was added, and its event is not recorded yet: if the page is full, the next one begins here.
pub(in crate::app) fn on_pushed(session: &mut Session, item: ItemId) {
    let Page { first, weight, .. } = session.pages.book.open;
    // Text appended to a message belongs to the page of the message.
    let is_within = session.open_message.is_some_and(|open| open < item);
    if weight >= session.pages.page_bytes() && !is_within && item > first {
        let weight = weight::of_items(session, first, item);
        let full = std::mem::take(&mut session.pages.book.open);
        session.pages.book.closed.push_back(Page { weight, ..full });
        let begin = Some(mark(session, item));
        session.pages.book.open = Page { begin, first: item, ..Page::default() };
        session.pages.wants_trim = true;
        let range = index_range(&session.transcript, first, item);
        let items = session.transcript.items().get(range).unwrap_or_default().iter();
        // Another call with the same id began after the end of the turn.
        let is_last = |id: &ToolCallId, item: &Item| session.index.tool(id) == Some(item.id);
        let is_assumed = |item: &&Item| matches!(&item.body, ItemBody::Tool(call) if call.is_status_assumed && is_last(&call.id, item));
        let assumed: Vec<ItemId> = items.filter(is_assumed).map(|item| item.id).collect();
        for call in assumed {
            keep_end(session, call);
        }
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

/// The subjects of these items.
fn subjects(session: &Session, range: &Range<usize>) -> Subjects {
    let transcript = &session.transcript;
    let items = transcript.items().get(range.clone()).unwrap_or_default();
    let messages = items.iter().filter_map(|item| match &item.body {
        ItemBody::Message(message) => {
            Some((Key::Message(message.role, message.message.as_ref()?).hash(), item.turn))
        }
        _ => None,
    });
    let others = session.index.entries().filter_map(|(key, at)| {
        let at = transcript.index_of(at).filter(|index| range.contains(index))?;
        Some((key.hash(), transcript.items().get(at)?.turn))
    });
    let mut subjects: Vec<(u64, u32)> = messages.chain(others).collect();
    subjects.sort_unstable();
    subjects.into()
}

/// Removes the index entries of these items and returns their subjects.
pub(in crate::app) fn take_subjects(session: &mut Session, range: &Range<usize>) -> Subjects {
    let subjects = subjects(session, range);
    let (transcript, terminals) = (&session.transcript, &mut session.terminals);
    session.index.retain(|key, at| {
        let is_there = transcript.index_of(at).is_some_and(|index| range.contains(&index));
        if is_there && let Key::Terminal(id) = key {
            terminals.remove(id);
        }
        !is_there
    });
    subjects
}
