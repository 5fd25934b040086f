//! The cells of the screen, and what its rows were drawn from.
//!
//! A [`Canvas`] holds the last frame. The next frame is drawn over it: rows of the transcript whose key is the same stay
//! as they are, rows that only moved are moved, and the chrome (everything around the transcript) stays while its key
//! is the same. The painter (`runtime::paint`) skips the rows that stayed, lets the terminal scroll as the canvas did,
//! and compares the cells of all other rows with those on the terminal. The keys save drawing and the cells save bytes:
//! neither can replace the other, but rows that moved are searched for only once ([`scroll`]).
//! Invariants: a row that stays has the cells that drawing it would give; a frame in which something may lie above
//! the transcript keeps nothing, nor does the one after it.

use std::hash::{BuildHasher, Hash};

use foldhash::quality::RandomState;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect};
use std::time::Instant;

pub mod scroll;

use scroll::Scroll;

/// The cells of a screen, and what they were drawn from.
#[derive(Debug, Default)]
pub struct Canvas {
    /// The cells.
    pub buf: Buffer,
    pub(super) rows: RowCache,
    is_shown: bool,
}

impl Canvas {
    /// An empty canvas of so many columns and rows.
    pub fn new(cols: u16, rows: u16) -> Self {
        Self { buf: Buffer::empty(Rect::new(0, 0, cols, rows)), ..Self::default() }
    }

    /// The last frame is on the screen: the next one may be drawn over it.
    pub fn set_shown(&mut self) {
        self.is_shown = true;
    }

    /// Begins a frame; whether it is drawn over the one on the screen.
    pub(super) fn take_shown(&mut self) -> bool {
        std::mem::take(&mut self.is_shown)
    }

    /// Whether a row has the cells of the frame before, after [`Canvas::scroll`].
    pub fn is_kept(&self, y: u16) -> bool {
        self.rows.is_kept(y)
    }

    /// The rows that were moved before the frame was drawn.
    pub fn scroll(&self) -> Option<Scroll> {
        self.rows.scroll
    }
}

/// The chrome of a frame.
#[derive(Debug, Clone, Copy)]
struct Chrome {
    key: u64,
    /// When it shows another time.
    until: Option<Instant>,
    cursor: Option<Position>,
}

/// The rows of the last frame, and what becomes of them.
#[derive(Debug, Default)]
pub struct RowCache {
    hasher: RandomState,
    /// What the rows of the transcript's area were drawn from; empty: nothing is known.
    keys: Vec<u64>,
    area: Rect,
    /// What all rows depend on; `None`: nothing of this frame is to be kept.
    ground: Option<u64>,
    blank: Cell,
    is_keeping: bool,
    /// By row of the area.
    stays: Vec<bool>,
    scroll: Option<Scroll>,
    chrome: Option<Chrome>,
    is_chrome_kept: bool,
}

impl RowCache {
    /// Begins a frame with the area of the transcript, which has the width of the screen wherever rows are kept.
    /// `ground` is what all rows depend on (`None`: something else is drawn over them). Unless rows of the last frame
    /// can be kept, everything becomes blank.
    pub(super) fn begin(
        &mut self,
        buf: &mut Buffer,
        blank: Cell,
        area: Rect,
        (ground, is_shown): (Option<u64>, bool),
    ) {
        let area = area.intersection(buf.area);
        self.stays.clear();
        self.scroll = None;
        self.is_chrome_kept = false;
        let is_same = blank == self.blank && area == self.area;
        self.is_keeping =
            is_shown && is_same && ground.is_some() && ground == self.ground && !self.keys.is_empty();
        (self.area, self.ground, self.blank) = (area, ground, blank);
        if !self.is_keeping {
            self.clear(buf);
        }
    }

    /// Nothing is to be kept of this frame: what lies in the area does not depend on its rows alone.
    pub(super) fn refuse(&mut self, buf: &mut Buffer) {
        if std::mem::take(&mut self.is_keeping) {
            self.clear(buf);
        }
        self.ground = None;
        self.keys.clear();
    }

    fn clear(&mut self, buf: &mut Buffer) {
        buf.content.fill(self.blank.clone());
        self.chrome = None;
    }

    /// The key of a row: of all that it is drawn from, beside what the whole frame depends on.
    pub(super) fn key(&self, row: impl Hash) -> u64 {
        self.hasher.hash_one(row)
    }

    /// Takes the keys of all rows of the area, from top to bottom, moves what only moved, and makes blank what is to
    /// be drawn.
    pub(super) fn settle(&mut self, mut keys: Vec<u64>, buf: &mut Buffer) {
        keys.truncate(self.area.height.into());
        let before = std::mem::take(&mut self.keys);
        if self.is_keeping {
            let found = scroll::find(&before, &keys);
            if let Some(found) = found {
                let scroll = found.from(self.area.y);
                scroll.shift(&mut buf.content, buf.area.width);
                self.scroll = Some(scroll);
            }
            let was = |row: usize| found.map_or(Some(row), |found| found.source(row));
            self.stays.extend(
                (0..).zip(&keys).map(|(row, key)| was(row).and_then(|row| before.get(row)) == Some(key)),
            );
            for (y, _) in (self.area.y..).zip(&self.stays).filter(|(_, stays)| !**stays) {
                fill(buf, y..y + 1, &self.blank);
            }
        }
        if self.ground.is_some() {
            self.keys = keys;
        }
    }

    /// Keeps the chrome of the last frame, if it was drawn from the same and shows the time of `now`; returns where its
    /// cursor is. Else it is to be drawn, on blanks, and noted by [`RowCache::note_chrome`].
    pub(super) fn keep_chrome(
        &mut self,
        key: u64,
        now: Instant,
        buf: &mut Buffer,
    ) -> Option<Option<Position>> {
        let kept = self.chrome.filter(|chrome| {
            self.is_keeping && chrome.key == key && chrome.until.is_none_or(|until| now < until)
        });
        self.is_chrome_kept = kept.is_some();
        if kept.is_none() && self.is_keeping {
            fill(buf, buf.area.y..self.area.y, &self.blank);
            fill(buf, self.area.bottom()..buf.area.bottom(), &self.blank);
        }
        kept.map(|chrome| chrome.cursor)
    }

    /// The chrome was drawn: from what, until when it shows the time, and where its cursor is.
    pub(super) fn note_chrome(&mut self, key: u64, until: Option<Instant>, cursor: Option<Position>) {
        self.chrome = Some(Chrome { key, until, cursor });
    }

    /// Whether a row of the area stays as it is.
    pub(super) fn stays(&self, y: u16) -> bool {
        let row = y.checked_sub(self.area.y);
        row.and_then(|row| self.stays.get(usize::from(row))).is_some_and(|stays| *stays)
    }

    fn is_kept(&self, y: u16) -> bool {
        let is_transcript = (self.area.y..self.area.bottom()).contains(&y);
        if is_transcript { self.stays(y) } else { self.is_chrome_kept }
    }
}

fn fill(buf: &mut Buffer, rows: std::ops::Range<u16>, blank: &Cell) {
    let offset = |y: u16| usize::from(y - buf.area.y) * usize::from(buf.area.width);
    let cells = offset(rows.start)..offset(rows.end);
    buf.content.get_mut(cells).unwrap_or_default().fill(blank.clone());
}

#[cfg(test)]
mod tests;
