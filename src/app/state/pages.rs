//! The pages of a transcript as data: which of them are in memory, what each holds, and what it depends on.
//!
//! `session::paging` keeps them in step with the transcript, `recording` lets them go and reads them again.

pub(in crate::app) mod edge;
pub(in crate::app) mod gone;
pub(in crate::app) mod weight;

use std::collections::VecDeque;
use std::ops::Range;

use crate::model::{Action, EventPlace, ItemId, MarkPlace};

use crate::app::{Earlier, Transcript};
use edge::Needs;
use gone::Gone;

/// A ceiling has so many pages.
pub(in crate::app) const PAGES: usize = 8;

/// The least and the most bytes of a page.
pub(in crate::app) const LEAST_PAGE: usize = 16 << 10;

pub(in crate::app) const MOST_PAGE: usize = 1 << 20;

/// What is known of the pages of a transcript.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pages {
    /// About how many bytes of items are to be in memory; 0: all.
    pub limit_bytes: usize,
    /// The last mark that was made, or late event that was kept.
    pub(in crate::app) serial: u64,
    /// The last of them that is on the disk.
    pub(in crate::app) written: u64,
    /// Whether the user was told that nothing can go.
    pub(in crate::app) is_told: bool,
    /// Something happened that may let pages go.
    pub(in crate::app) wants_trim: bool,
    /// Where the reader is, who left the end.
    pub(in crate::app) reader: Option<ItemId>,
    /// The line below all items that says how much of a session that is only read is not shown.
    pub(in crate::app) later_line: Option<ItemId>,
    /// What the user wished and waits for pages.
    pub(in crate::app) redo: Option<Action>,
    /// The pages.
    pub(in crate::app) book: PageIndex,
}

/// Pages of one history: it begins anew with another one.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::app) struct PageIndex {
    /// Those that are complete and in memory, the oldest first.
    pub(in crate::app) closed: VecDeque<Page>,
    /// What came since.
    pub(in crate::app) open: Page,
    /// Those that are only on the disk, the oldest first.
    pub(in crate::app) gone: Vec<Gone>,
    /// How many of these are being read.
    pub(in crate::app) reading: usize,
    /// The last late event that was kept when pages were asked for: what comes may be without later ones.
    pub(in crate::app) asked: u64,
    /// The last late event that was kept for one of them.
    pub(in crate::app) away_late: u64,
    /// What is read again as one page.
    pub(in crate::app) merge: Option<Merge>,
    /// The recorded events before the first page in memory.
    pub(in crate::app) earlier: Option<Earlier>,
}

/// What stood there before a history that is being replayed, to be restored if that fails.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Former {
    /// The items.
    pub(in crate::app) transcript: Transcript,
    /// Their pages.
    pub(in crate::app) book: PageIndex,
}

/// A page in memory. It ends where the next one begins.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::app) struct Page {
    /// Where it begins in what is kept; `None`: it is not known.
    pub(in crate::app) begin: Option<EventPlace>,
    /// Its first item, or that before which it began.
    pub(in crate::app) first: ItemId,
    pub(in crate::app) weight: usize,
    /// The last late event that was kept for it.
    pub(in crate::app) late: u64,
    /// Whether not all of it could be kept.
    pub(in crate::app) is_cut: bool,
    /// How it is to be played.
    pub(in crate::app) kind: PageKind,
    /// What of it depends on pages that were not read yet.
    pub(in crate::app) needs: Needs,
}

/// How a page is to be played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::app) struct PageKind {
    /// Events are left out that are about something in pages that were not read yet.
    pub(in crate::app) hides: bool,
    /// The session ended with it when it was opened.
    pub(in crate::app) is_end: bool,
}

/// A page that what is in memory depends on: both are read again, and played as one.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::app) struct Merge {
    /// The number of the page's first event.
    pub(in crate::app) first_seq: i64,
    /// How many events stand before it.
    pub(in crate::app) left: u64,
    /// So many pages in memory belong to it.
    pub(in crate::app) pages: usize,
}

impl Pages {
    /// Without a page, with this ceiling.
    pub(in crate::app) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, ..Self::default() }
    }

    /// Whether some of what was shown is on the disk only.
    pub(in crate::app) fn has_gone(&self) -> bool {
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
    pub fn page_of(&self, transcript: &Transcript, item: ItemId) -> usize {
        let item = transcript.rank(item);
        self.book.closed.iter().take_while(|page| transcript.rank(page.first) <= item).count()
    }

    /// The recorded events before the first item in memory.
    pub fn earlier(&self) -> Option<&Earlier> {
        self.book.earlier.as_ref()
    }

    /// Where the reader was when that was told last.
    pub fn reader(&self) -> Option<ItemId> {
        self.reader
    }

    /// The reader left the end, or follows it again.
    pub(in crate::app) fn set_reader(&mut self, reader: Option<ItemId>) {
        self.reader = reader;
        self.wants_trim = true;
    }

    /// What kept pages here, a search or a list of items, may be gone.
    pub(in crate::app) fn look_again(&mut self) {
        self.wants_trim = true;
    }

    /// Another history begins.
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

/// The indices of items from the first up to before the other.
pub(in crate::app) fn index_range(transcript: &Transcript, first: ItemId, behind: ItemId) -> Range<usize> {
    transcript.index_from(first)..transcript.index_from(behind)
}

pub(in crate::app) fn place_marks(book: &mut PageIndex, marks: &[MarkPlace]) {
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
