//! The ceiling: how much of a session's transcript is in memory; the rest is on the disk only.
//!
//! Duty: cuts a transcript into pages as it grows, marks the cuts in what is kept, lets the oldest pages go once the
//! store has written them (`trim`), and reads them again when they are looked at (`load`).
//! Not its duty: writing (`services::store`), making items of what was read (`restore`).
//! Pages can be read one by one because of one rule: what happens to an item is kept with the item's page, however late
//! it comes. So no page needs another one, whether it is in memory or not.
//! Invariants: nothing goes that is not on the disk; nothing that is open, marked, searched or read goes; an update costs
//! the same with a ceiling as without one, for items are looked at once for each page.

mod away;
mod load;
mod trim;
mod weight;

use std::collections::VecDeque;

use crate::model::{
    Action, AgentTerminal, EventPlace, ItemId, MarkPlace, Note, Record, SessionKey, SessionUpdate,
    ToolCallPatch,
};

use super::{Earlier, Effect, Replay, Session, State, Transcript, keep, kept, messages, tools};
use away::{Away, Key};

pub use load::ask_for_all;
pub(super) use load::{earlier_job, is_stale, on_page, put_in_front, read_failed, redo};
pub(super) use trim::settle;
pub(super) use weight::of_update as weight_of;

/// A ceiling has so many pages.
const PAGES: usize = 8;
/// The least and the most bytes of a page.
const LEAST_PAGE: usize = 16 << 10;
const MOST_PAGE: usize = 1 << 20;

/// What is known of the pages of a transcript.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pages {
    /// About how many bytes of items are to be in memory; 0: all.
    pub limit_bytes: usize,
    /// The last mark that was made, or late event that was kept.
    serial: u64,
    /// The last of them that is on the disk.
    written: u64,
    /// Whether the user was told that nothing can go.
    is_told: bool,
    /// Something happened that may let pages go.
    wants_trim: bool,
    /// Where the reader is, who left the end.
    reader: Option<ItemId>,
    /// What the user wished and waits for pages.
    redo: Option<Action>,
    /// The pages.
    book: Book,
}

/// Pages of one history: it begins anew with another one.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Book {
    /// Those that are complete and in memory, the oldest first.
    closed: VecDeque<Page>,
    /// What came since.
    open: Page,
    /// Those that are only on the disk, the oldest first.
    gone: Vec<Gone>,
    /// How many of these are being read.
    reading: usize,
    /// Something came late for one of them since it was asked for: what comes may be without it.
    is_stale: bool,
    /// What is in them, as far as it may still change.
    away: Away,
    /// The last late event that was kept for one of them.
    away_late: u64,
    /// Whether the first item is the line that says how much is above.
    has_head: bool,
}

/// What stood there before a history that is being replayed, to be restored if that fails.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Former {
    /// The items.
    pub(super) transcript: Transcript,
    /// Their pages.
    pub(super) book: Book,
    /// What is kept and was not shown.
    pub(super) earlier: Option<Earlier>,
}

/// A page in memory. It ends where the next one begins.
#[derive(Debug, Clone, PartialEq, Default)]
struct Page {
    /// Where it begins in what is kept; `None`: it is not known.
    begin: Option<EventPlace>,
    /// The place of its first item.
    first: usize,
    weight: usize,
    /// The last late event that was kept for it.
    late: u64,
    /// Whether not all of it could be kept.
    is_cut: bool,
}

/// A page on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gone {
    /// The number of its first event.
    begin: i64,
    weight: usize,
}

impl Pages {
    /// Without a page, with this ceiling.
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, ..Self::default() }
    }

    /// Whether some of what was shown is on the disk only.
    pub(super) fn has_gone(&self) -> bool {
        !self.book.gone.is_empty()
    }

    /// How many bytes of items are in memory, about.
    pub fn weight(&self) -> usize {
        self.book.closed.iter().map(|page| page.weight).sum::<usize>() + self.book.open.weight
    }

    /// Whether some of it had to go, and not much room is left.
    pub fn is_full(&self) -> bool {
        self.has_gone() && self.weight() >= self.limit_bytes / 2
    }

    /// Where the reader is known to be: the page of an item, counted from the first in memory.
    pub fn page_of(&self, item: ItemId) -> usize {
        let item = index(item);
        self.book.closed.iter().take_while(|page| page.first <= item).count()
    }

    /// Where the reader was when that was told last.
    pub fn reader(&self) -> Option<ItemId> {
        self.reader
    }

    /// The reader left the end, or follows it again.
    pub(super) fn set_reader(&mut self, reader: Option<ItemId>) {
        self.reader = reader;
        self.wants_trim = true;
    }

    /// What kept pages here, a search or a list of items, may be gone.
    pub(super) fn look_again(&mut self) {
        self.wants_trim = true;
    }

    /// Another history begins.
    pub(super) fn forget(&mut self) -> Book {
        self.redo = None;
        std::mem::take(&mut self.book)
    }

    /// The history from before comes back.
    pub(super) fn take_back(&mut self, book: Book) {
        self.book = book;
    }

    fn page_bytes(&self) -> usize {
        (self.limit_bytes / PAGES).clamp(LEAST_PAGE, MOST_PAGE)
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// All places follow when items come or go in front of them.
    pub(super) fn shift(&mut self, moved: impl Fn(usize) -> usize) {
        self.reader = self.reader.map(|item| ItemId(moved(index(item)) as u64));
        for page in self.book.closed.iter_mut().chain([&mut self.book.open]) {
            page.first = moved(page.first);
        }
    }

    /// The place behind the page of an item that is not in the last page, if its page can be told.
    fn behind(&mut self, item: usize) -> Option<(EventPlace, &mut Page)> {
        let Book { closed, open, .. } = &mut self.book;
        if item >= open.first {
            return None;
        }
        let place = closed.iter().rposition(|page| page.first <= item)?;
        let end = closed.get(place + 1).unwrap_or(open).begin?;
        closed.get_mut(place).map(|page| (end, page))
    }
}

/// What was made of kept events is in memory: it is a page of its own.
pub(super) fn on_restored(session: &mut Session, first_seq: i64, end_seq: i64, has_head: bool) {
    let count = session.transcript.items().len();
    let first = usize::from(has_head);
    let weight = weight::of_items(session, first..count);
    let begin = Some(EventPlace::Seq(first_seq));
    let page = Page { begin, first, weight, ..Page::default() };
    let open = Page { begin: Some(EventPlace::Seq(end_seq)), first: count, ..Page::default() };
    session.pages.book = Book { closed: [page].into(), open, has_head, ..Book::default() };
}

/// More was read behind what is in memory, up to the event of this number.
pub(super) fn on_appended(session: &mut Session, end_seq: i64) {
    let first = session.transcript.items().len();
    session.pages.book.open = Page { begin: Some(EventPlace::Seq(end_seq)), first, ..Page::default() };
}

/// What stands here was copied: where it is kept is not known.
pub(super) fn on_copied(session: &mut Session) {
    let first = session.transcript.items().len();
    let book = Book { closed: [Page::default()].into(), ..Book::default() };
    session.pages.book = Book { open: Page { first, ..Page::default() }, ..book };
}

/// Something is about to be kept. What concerns an item of an earlier page is kept there, and taken; the rest is given
/// back, to be kept behind all that came before.
pub(super) fn divert(session: &mut Session, record: Record) -> Option<Record> {
    if session.pages.limit_bytes == 0 {
        return Some(record);
    }
    if session.pages.book.open.begin.is_none() {
        let mark = session.pages.next_serial();
        session.pages.book.open.begin = Some(EventPlace::Mark(mark));
        session.ledger.keeping.notes.push(Note::Mark(mark));
    }
    let mut record = record;
    if let Record::Update(SessionUpdate::Tool(patch)) = &mut record {
        keep_terminals_apart(session, patch);
    }
    let item = item_of(session, &record);
    if let Some(item) = item
        && session.pages.behind(index(item)).is_some()
    {
        keep_late(session, item, record);
        return None;
    }
    session.pages.book.open.weight += weight::of_record(&record);
    Some(record)
}

/// A call may bring news of a terminal that an item of an earlier page shows: they are kept there.
fn keep_terminals_apart(session: &mut Session, patch: &mut ToolCallPatch) {
    let own = tools::by_id(session, &patch.id);
    for news in std::mem::take(&mut patch.terminals) {
        let shown = session.ledger.shown_by.get(news.id()).copied().filter(|shown| Some(*shown) != own);
        match shown.filter(|shown| session.pages.behind(index(*shown)).is_some()) {
            Some(item) => keep_late(session, item, Record::Update(SessionUpdate::Terminal(news))),
            None => patch.terminals.push(news),
        }
    }
}

/// Keeps what happened to an item of an earlier page with that page; nothing if it is one of the last page.
pub(super) fn keep_late(session: &mut Session, item: ItemId, record: Record) {
    let serial = session.pages.serial + 1;
    let Some((before, page)) = session.pages.behind(index(item)) else { return };
    page.late = serial;
    page.weight += weight::of_record(&record);
    session.pages.serial = serial;
    let turn = session.turn_count;
    session.ledger.keeping.notes.push(Note::Late { serial, before, turn, record: Box::new(record) });
}

/// Whether an item belongs to a page that is complete.
pub(super) fn is_behind(session: &Session, item: ItemId) -> bool {
    session.pages.limit_bytes > 0 && index(item) < session.pages.book.open.first
}

/// Keeps what happened to an item with its page.
pub(super) fn keep_with(session: &mut Session, item: ItemId, record: Record) {
    if session.pages.limit_bytes > 0 && session.pages.behind(index(item)).is_some() {
        keep_late(session, item, record);
    } else {
        keep::note(session, record);
    }
}

/// Something is kept behind the last event of a turn, whose items end before this place: its page stays in memory until
/// that is on the disk.
pub(super) fn keep_inserted(session: &mut Session, end: usize, record: &Record) -> u64 {
    let serial = session.pages.next_serial();
    let book = &mut session.pages.book;
    let pages = book.closed.iter_mut().chain([&mut book.open]);
    if let Some(page) = pages.take_while(|page| page.first < end).last() {
        page.late = serial;
        page.weight += weight::of_record(record);
    }
    serial
}

/// An item came at this place, and what tells of it is not kept yet: if the page is full, the next one begins here.
pub(super) fn on_pushed(session: &mut Session, at: usize) {
    if session.pages.limit_bytes == 0 {
        return;
    }
    let is_full = session.pages.book.open.weight >= session.pages.page_bytes();
    // What is appended to a message belongs to the page of the message.
    let is_within = session.ledger.open_message.is_some_and(|open| index(open) < at);
    if is_full && !is_within && at > session.pages.book.open.first {
        cut(session, at);
    }
    session.pages.book.open.weight += weight::ITEM;
}

/// A page ends in front of this item.
fn cut(session: &mut Session, at: usize) {
    let first = session.pages.book.open.first;
    let weight = weight::of_items(session, first..at);
    let mark = session.pages.next_serial();
    let book = &mut session.pages.book;
    let next = Page { begin: Some(EventPlace::Mark(mark)), first: at, ..Page::default() };
    let full = std::mem::replace(&mut book.open, next);
    book.closed.push_back(Page { weight, ..full });
    session.ledger.keeping.notes.push(Note::Mark(mark));
    session.pages.wants_trim = true;
}

/// An update of something that is on the disk only is kept there, and taken.
pub(super) fn take_late(session: &mut Session, update: SessionUpdate) -> Option<SessionUpdate> {
    if session.pages.book.gone.is_empty() {
        return Some(update);
    }
    let mut update = update;
    if let SessionUpdate::Tool(patch) = &mut update
        && away_of_call(session, patch).is_none()
    {
        for news in std::mem::take(&mut patch.terminals) {
            let left = take_late(session, SessionUpdate::Terminal(news));
            patch.terminals.extend(left.and_then(|left| match left {
                SessionUpdate::Terminal(news) => Some(news),
                _ => None,
            }));
        }
    }
    let Some(behind) = away_of(session, &update) else { return Some(update) };
    let serial = session.pages.next_serial();
    session.pages.book.away_late = serial;
    session.pages.book.is_stale = true;
    let (turn, before) = (session.turn_count, EventPlace::Seq(behind));
    let record = Box::new(Record::Update(update));
    session.ledger.keeping.notes.push(Note::Late { serial, before, turn, record });
    None
}

/// The number behind the page on the disk that has what an update is about.
fn away_of(session: &Session, update: &SessionUpdate) -> Option<i64> {
    let away = &session.pages.book.away;
    match update {
        SessionUpdate::Tool(patch) => away_of_call(session, patch),
        SessionUpdate::Compaction { id, .. } | SessionUpdate::CompactionChunk { id, .. }
            if !session.ledger.compactions.contains_key(id) =>
        {
            away.get(&Key::Compaction(id), |_| true)
        }
        SessionUpdate::Subagent(patch) if !session.ledger.subagents.contains_key(&patch.session) => {
            away.get(&Key::Subagent(&patch.session), |_| true)
        }
        // One that begins anew is another one.
        SessionUpdate::Terminal(news)
            if !session.terminals.contains_key(news.id()) && !matches!(news, AgentTerminal::Info { .. }) =>
        {
            away.get(&Key::Terminal(news.id()), |_| true)
        }
        SessionUpdate::Message { role, message, .. } if messages::find(session, *role, message).is_none() => {
            away.get(&Key::Message(*role, message), |_| true)
        }
        _ => None,
    }
}

fn away_of_call(session: &Session, patch: &ToolCallPatch) -> Option<i64> {
    if tools::by_id(session, &patch.id).is_some() {
        return None;
    }
    let turn = session.turn_count;
    let fits = |of: u32| of == turn || (of + 1 == turn && !patch.is_announcement);
    session.pages.book.away.get(&Key::Tool(&patch.id), fits)
}

/// The item that an event is about, where it names one.
fn item_of(session: &Session, record: &Record) -> Option<ItemId> {
    match record {
        Record::Update(SessionUpdate::Tool(patch)) | Record::Asked(patch) => tools::by_id(session, &patch.id),
        Record::Decided { tool, .. } | Record::Located { tool, .. } => tools::by_id(session, tool),
        Record::Command { terminal, .. } => session.ledger.shown_by.get(terminal).copied(),
        Record::Update(SessionUpdate::Terminal(news)) => session.ledger.shown_by.get(news.id()).copied(),
        Record::Update(SessionUpdate::Compaction { id, .. } | SessionUpdate::CompactionChunk { id, .. }) => {
            session.ledger.compactions.get(id).copied()
        }
        Record::Update(SessionUpdate::Subagent(patch)) => {
            session.ledger.subagents.get(&patch.session).copied()
        }
        Record::Update(SessionUpdate::Message { role, message, .. }) => {
            messages::find(session, *role, message)
        }
        _ => None,
    }
}

/// The store has written what was handed over, up to here.
pub(super) fn on_written(
    state: &mut State,
    key: SessionKey,
    upto: u64,
    marks: &[MarkPlace],
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.pages.written = session.pages.written.max(upto);
    place_marks(&mut session.pages.book, marks);
    if let Replay::Running(former) = &mut session.ledger.replay {
        place_marks(&mut former.book, marks);
    }
    session.pages.wants_trim = true;
    // It had to wait until what came late was on the disk.
    if session.pages.redo.is_some() && session.pages.book.reading == 0 {
        kept::load_earlier(state, key, fx);
    }
}

fn place_marks(book: &mut Book, marks: &[MarkPlace]) {
    for told in marks {
        let mut before: Option<&mut Page> = None;
        for page in book.closed.iter_mut().chain([&mut book.open]) {
            if page.begin == Some(EventPlace::Mark(told.mark)) {
                page.begin = Some(EventPlace::Seq(told.seq));
                if let Some(before) = before {
                    before.is_cut |= !told.is_whole;
                }
                break;
            }
            before = Some(page);
        }
    }
}

fn index(item: ItemId) -> usize {
    usize::try_from(item.0).unwrap_or(usize::MAX)
}
