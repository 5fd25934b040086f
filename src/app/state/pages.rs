//! The pages of a transcript: which are in memory, and their sizes.
//!
//! `session::paging` updates them with the transcript, `recording` unloads them and loads them again.

pub(in crate::app) mod weight;

use std::collections::VecDeque;
use std::ops::Range;

use crate::model::{Action, EventPosition, ItemId, MarkPosition, Subjects};

use crate::app::state::session::index::Key;
use crate::app::{Earlier, Transcript};

/// Number of pages that fit into the memory limit.
const PAGES: usize = 8;

/// Minimum and maximum size of a page in bytes.
const LEAST_PAGE: usize = 16 << 10;

const MOST_PAGE: usize = 1 << 20;

/// The paging state of a transcript.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pages {
    /// Approximate limit of the items in memory in bytes; 0: no limit.
    pub limit_bytes: usize,
    /// Number of the last page mark or late event.
    pub(in crate::app) serial: u64,
    /// The last of these numbers that is on disk.
    pub(in crate::app) written: u64,
    /// Whether the user was notified that nothing can be unloaded.
    pub(in crate::app) is_told: bool,
    /// Whether pages may have become unloadable.
    pub(in crate::app) wants_trim: bool,
    /// The item the reader sees, if not at the end.
    pub(in crate::app) reader: Option<ItemId>,
    /// The line below all items of a read-only session with the number of events not shown.
    pub(in crate::app) later_line: Option<ItemId>,
    /// The user's action that waits for pages.
    pub(in crate::app) redo: Option<Action>,
    pub(in crate::app) book: PageIndex,
}

/// The pages of one history; replaced with another history.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::app) struct PageIndex {
    /// Complete pages, oldest first.
    pub(in crate::app) closed: VecDeque<Page>,
    /// The first of them, by number, are only on disk.
    pub(in crate::app) unloaded: usize,
    /// The incomplete page at the end.
    pub(in crate::app) open: Page,
    /// The last late event when a page was requested: the result may lack later ones.
    pub(in crate::app) asked: u64,
    /// The recorded events before the first page in memory.
    pub(in crate::app) earlier: Option<Earlier>,
}

/// The items before a history that is being replayed, to be restored if that fails.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Former {
    pub(in crate::app) transcript: Transcript,
    pub(in crate::app) book: PageIndex,
}

/// A page. It ends where the next one begins.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::app) struct Page {
    /// Its start in the record; `None`: not known.
    pub(in crate::app) begin: Option<EventPosition>,
    /// Its first item; if it has none, the next item when it began; `HEAD` while it is only on disk.
    pub(in crate::app) first: ItemId,
    pub(in crate::app) weight: usize,
    /// The number of the last late event recorded for it.
    pub(in crate::app) late: u64,
    /// Whether it could not be recorded completely.
    pub(in crate::app) is_cut: bool,
    /// While it is only on disk, its subjects: an update of them is not something new.
    pub(in crate::app) subjects: Subjects,
}

impl Page {
    /// The number of its first event, if known.
    pub(in crate::app) fn seq(&self) -> Option<i64> {
        match self.begin? {
            EventPosition::Seq(seq) => Some(seq),
            EventPosition::Mark(_) => None,
        }
    }

    /// The turn of a subject in this unloaded page; the last one if several have the same id.
    fn turn_of(&self, hash: u64) -> Option<u32> {
        let end = self.subjects.partition_point(|(other, _)| *other <= hash);
        self.subjects.get(end.checked_sub(1)?).filter(|(other, _)| *other == hash).map(|(_, turn)| *turn)
    }
}

impl PageIndex {
    /// The last page that is only on disk.
    pub(in crate::app) fn last_unloaded(&self) -> Option<&Page> {
        self.closed.get(self.unloaded.checked_sub(1)?)
    }

    /// The page with this index; the last one is open.
    pub(in crate::app) fn page(&self, at: usize) -> &Page {
        self.closed.get(at).unwrap_or(&self.open)
    }

    /// The complete pages in memory.
    pub(in crate::app) fn loaded(&self) -> impl Iterator<Item = &Page> {
        self.closed.range(self.unloaded..)
    }

    /// The turn of a subject that is only on disk, and the index of its page.
    pub(in crate::app) fn find_unloaded(&self, key: &Key<'_>) -> Option<(u32, usize)> {
        let hash = key.hash();
        let mut pages = self.closed.range(..self.unloaded).enumerate().rev();
        pages.find_map(|(at, page)| Some((page.turn_of(hash)?, at)))
    }

    /// The number of pages that begin at or before an item.
    fn count_upto(&self, transcript: &Transcript, item: ItemId) -> usize {
        let item = transcript.rank(item);
        self.closed.partition_point(|page| transcript.rank(page.first) <= item)
    }

    /// The index of the complete page in memory that contains an item.
    pub(in crate::app) fn index_of(&self, transcript: &Transcript, item: ItemId) -> Option<usize> {
        let is_closed = transcript.rank(item) < transcript.rank(self.open.first);
        let at = self.count_upto(transcript, item).checked_sub(1);
        at.filter(|at| is_closed && *at >= self.unloaded)
    }

    /// Sets the numbers of marks that were written.
    pub(in crate::app) fn set_positions(&mut self, marks: &[MarkPosition]) {
        for position in marks {
            let mut before: Option<&mut Page> = None;
            for page in self.closed.range_mut(self.unloaded..).chain([&mut self.open]) {
                if page.begin == Some(EventPosition::Mark(position.mark)) {
                    page.begin = Some(EventPosition::Seq(position.seq));
                    if let Some(before) = before {
                        before.is_cut |= !position.is_whole;
                    }
                    break;
                }
                before = Some(page);
            }
        }
    }
}

impl Pages {
    /// No pages, with this limit.
    pub(in crate::app) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, ..Self::default() }
    }

    /// Whether a part of the transcript is only on disk.
    pub(in crate::app) fn has_unloaded(&self) -> bool {
        self.book.unloaded > 0
    }

    /// Approximate size of the items in memory in bytes.
    pub fn weight(&self) -> usize {
        self.book.loaded().map(|page| page.weight).sum::<usize>() + self.book.open.weight
    }

    /// Whether pages were unloaded, and less than half of the limit is free.
    pub fn is_full(&self) -> bool {
        self.has_unloaded() && self.limit_bytes > 0 && self.weight() >= self.limit_bytes / 2
    }

    /// Identifies the page of an item.
    pub fn page_of(&self, transcript: &Transcript, item: ItemId) -> usize {
        self.book.count_upto(transcript, item)
    }

    /// The recorded events before the first item in memory.
    pub fn earlier(&self) -> Option<&Earlier> {
        self.book.earlier.as_ref()
    }

    /// The last reported position of the reader.
    pub fn reader(&self) -> Option<ItemId> {
        self.reader
    }

    /// The reader left the end of the transcript, or returned to it.
    pub(in crate::app) fn set_reader(&mut self, reader: Option<ItemId>) {
        self.reader = reader;
        self.wants_trim = true;
    }

    /// A search or list that prevented unloading may have been closed.
    pub(in crate::app) fn look_again(&mut self) {
        self.wants_trim = true;
    }

    /// Returns the pages because another history begins.
    pub(in crate::app) fn forget(&mut self) -> PageIndex {
        self.redo = None;
        let mut book = std::mem::take(&mut self.book);
        // The response is not for the history that follows.
        book.earlier.iter_mut().for_each(|earlier| earlier.is_loading = false);
        book
    }

    pub(in crate::app) fn page_bytes(&self) -> usize {
        match self.limit_bytes {
            0 => MOST_PAGE,
            limit => (limit / PAGES).clamp(LEAST_PAGE, MOST_PAGE),
        }
    }

    pub(in crate::app) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }
}

/// The indices of the items from `first` up to (not including) `behind`.
pub(in crate::app) fn index_range(transcript: &Transcript, first: ItemId, behind: ItemId) -> Range<usize> {
    transcript.index_from(first)..transcript.index_from(behind)
}
