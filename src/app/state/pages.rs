//! The pages of a transcript: which are in memory, their sizes and dependencies.
//!
//! `session::paging` updates them with the transcript, `recording` unloads them and loads them again.

pub(in crate::app) mod edge;
pub(in crate::app) mod unloaded;
pub(in crate::app) mod weight;

use std::collections::VecDeque;
use std::ops::Range;

use crate::model::{Action, EventPlace, ItemId, MarkPlace};

use crate::app::{Earlier, Transcript};
use edge::Needs;
use unloaded::Unloaded;

/// Number of pages that fit into the memory limit.
pub(in crate::app) const PAGES: usize = 8;

/// Minimum and maximum size of a page in bytes.
pub(in crate::app) const LEAST_PAGE: usize = 16 << 10;

pub(in crate::app) const MOST_PAGE: usize = 1 << 20;

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
    /// Complete pages in memory, oldest first.
    pub(in crate::app) closed: VecDeque<Page>,
    /// The incomplete page at the end.
    pub(in crate::app) open: Page,
    /// Unloaded pages, oldest first.
    pub(in crate::app) unloaded: Vec<Unloaded>,
    /// Number of unloaded pages that are being read.
    pub(in crate::app) reading: usize,
    /// The last late event when pages were requested: the result may lack later ones.
    pub(in crate::app) asked: u64,
    /// The last late event of an unloaded page.
    pub(in crate::app) away_late: u64,
    /// The page that is read again together with pages in memory.
    pub(in crate::app) merge: Option<Merge>,
    /// The recorded events before the first page in memory.
    pub(in crate::app) earlier: Option<Earlier>,
}

/// The items before a history that is being replayed, to be restored if that fails.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Former {
    pub(in crate::app) transcript: Transcript,
    pub(in crate::app) book: PageIndex,
}

/// A page in memory. It ends where the next one begins.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::app) struct Page {
    /// Its start in the record; `None`: not known.
    pub(in crate::app) begin: Option<EventPlace>,
    /// Its first item, or the one before which it began.
    pub(in crate::app) first: ItemId,
    pub(in crate::app) weight: usize,
    /// The number of the last late event recorded for it.
    pub(in crate::app) late: u64,
    /// Whether it could not be recorded completely.
    pub(in crate::app) is_cut: bool,
    pub(in crate::app) kind: PageKind,
    /// Its dependencies on pages that were not read yet.
    pub(in crate::app) needs: Needs,
}

/// How a page is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::app) struct PageKind {
    /// Whether events about subjects in unread pages are omitted.
    pub(in crate::app) hides: bool,
    /// Whether the session ended with it when it was opened.
    pub(in crate::app) is_end: bool,
}

/// A page that pages in memory depend on: they are read again and replayed as one.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::app) struct Merge {
    /// The number of the page's first event.
    pub(in crate::app) first_seq: i64,
    /// Number of events before it.
    pub(in crate::app) left: u64,
    /// Number of pages in memory that belong to it.
    pub(in crate::app) pages: usize,
}

impl Pages {
    /// No pages, with this limit.
    pub(in crate::app) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, ..Self::default() }
    }

    /// Whether a part of the transcript is only on disk.
    pub(in crate::app) fn has_unloaded(&self) -> bool {
        !self.book.unloaded.is_empty()
    }

    /// Approximate size of the items in memory in bytes.
    pub fn weight(&self) -> usize {
        self.book.closed.iter().map(|page| page.weight).sum::<usize>() + self.book.open.weight
    }

    /// Whether pages were unloaded, and less than half of the limit is free.
    pub fn is_full(&self) -> bool {
        self.has_unloaded() && self.weight() >= self.limit_bytes / 2
    }

    /// The index of the page of an item, counted from the first in memory.
    pub fn page_of(&self, transcript: &Transcript, item: ItemId) -> usize {
        let item = transcript.rank(item);
        self.book.closed.iter().take_while(|page| transcript.rank(page.first) <= item).count()
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
        std::mem::take(&mut self.book)
    }

    pub(in crate::app) fn page_bytes(&self) -> usize {
        (self.limit_bytes / PAGES).clamp(LEAST_PAGE, MOST_PAGE)
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

pub(in crate::app) fn place_marks(book: &mut PageIndex, marks: &[MarkPlace]) {
    for place in marks {
        let mut before: Option<&mut Page> = None;
        for page in book.closed.iter_mut().chain([&mut book.open]) {
            if page.begin == Some(EventPlace::Mark(place.mark)) {
                page.begin = Some(EventPlace::Seq(place.seq));
                if let Some(before) = before {
                    before.is_cut |= !place.is_whole;
                }
                break;
            }
            before = Some(page);
        }
    }
}
