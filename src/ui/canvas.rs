//! The screen: its cells, what stands beside them, and what its rows were drawn from.
//!
//! A [`Canvas`] holds the last frame. The next frame is drawn over it: rows of the transcript whose key is the same stay
//! as they are, rows that only moved are moved, and the chrome (everything around the transcript) stays while its key
//! is the same. Links and pictures are noted beside the cells, by row ([`RowNotes`]). The painter (`runtime::paint`)
//! skips the rows that stayed, lets the terminal scroll as the canvas did, and compares the cells of all other rows with
//! those on the terminal. The keys save drawing and the cells save bytes: neither can replace the other, but rows that
//! moved are searched for only once ([`scroll`]).
//! Invariants: a row that stays has the cells that drawing it would give; a frame in which something may lie above
//! the transcript keeps nothing, nor does the one after it.

use std::hash::{BuildHasher, Hash};
use std::ops::{Deref, DerefMut, Range};
use std::time::Instant;

use foldhash::quality::RandomState;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::text::{Line, put_text};

mod notes;
pub mod scroll;

pub use notes::RowNotes;
use scroll::Scroll;

/// The cells of a screen, which it can be used as, and all that is known of them.
#[derive(Debug, Default)]
pub struct Canvas {
    buf: Buffer,
    /// By row of the screen.
    notes: Vec<RowNotes>,
    /// The frame is on the screen.
    is_shown: bool,
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

/// The chrome of a frame.
#[derive(Debug, Clone, Copy)]
struct Chrome {
    key: u64,
    /// When it shows another time.
    until: Option<Instant>,
    cursor: Option<Position>,
}

impl Deref for Canvas {
    type Target = Buffer;

    fn deref(&self) -> &Buffer {
        &self.buf
    }
}

impl DerefMut for Canvas {
    fn deref_mut(&mut self) -> &mut Buffer {
        &mut self.buf
    }
}

impl Canvas {
    /// An empty canvas of so many columns and rows.
    pub fn new(cols: u16, rows: u16) -> Self {
        let notes = vec![RowNotes::default(); rows.into()];
        Self { buf: Buffer::empty(Rect::new(0, 0, cols, rows)), notes, ..Self::default() }
    }

    /// The cells alone.
    pub fn into_buffer(self) -> Buffer {
        self.buf
    }

    /// The last frame is on the screen: the next one may be drawn over it.
    pub fn set_shown(&mut self) {
        self.is_shown = true;
    }

    /// Whether a row has the cells of the frame before, after [`Canvas::scroll`].
    pub fn is_kept(&self, y: u16) -> bool {
        let is_transcript = (self.area.y..self.area.bottom()).contains(&y);
        if is_transcript { self.stays(y) } else { self.is_chrome_kept }
    }

    /// The rows that were moved before the frame was drawn.
    pub fn scroll(&self) -> Option<Scroll> {
        self.scroll
    }

    /// The links and pictures of a row.
    pub fn notes(&self, y: u16) -> Option<&RowNotes> {
        self.notes.get(usize::from(y))
    }

    /// Writes a line into cells, and notes what is more than cells. A picture that is too wide is left out.
    pub fn put_line(&mut self, mut x: u16, y: u16, line: &Line<'_>, cols: u16) {
        let end = x.saturating_add(cols).min(self.buf.area.right());
        for span in &line.spans {
            let from = x;
            let room = end.saturating_sub(x);
            x = put_text(&mut self.buf, x, y, &span.content, room, line.style.patch(span.style));
            let Some(notes) = self.notes.get_mut(usize::from(y)).filter(|_| x > from) else { continue };
            if span.tag.link != 0 {
                notes.links.push((from..x, span.tag.link));
            }
            if span.tag.picture != 0 && span.width() <= usize::from(room) {
                notes.pictures.push((from..x, span.tag.picture));
            }
        }
    }

    /// Empties an area: what is below a panel must not show through.
    pub fn blank(&mut self, area: Rect, style: Style) {
        let area = area.intersection(self.buf.area);
        for place in area.positions() {
            if let Some(cell) = self.buf.cell_mut(place) {
                cell.reset();
                cell.set_style(style);
            }
        }
        for notes in self.notes.iter_mut().skip(area.y.into()).take(area.height.into()) {
            notes.cut(&(area.x..area.right()));
        }
    }

    /// Removes the pictures of these rows.
    pub(super) fn remove_pictures(&mut self, rows: Range<u16>) {
        for notes in self.notes.iter_mut().take(rows.end.into()).skip(rows.start.into()) {
            notes.pictures.clear();
        }
    }

    /// Begins a frame with the area of the transcript, which has the width of the screen wherever rows are kept.
    /// `ground` is what all rows depend on (`None`: something else is drawn over them). Unless rows of the last frame
    /// can be kept, everything becomes blank.
    pub(super) fn begin(&mut self, blank: Cell, area: Rect, ground: Option<u64>) {
        let area = area.intersection(self.buf.area);
        self.stays.clear();
        self.scroll = None;
        self.is_chrome_kept = false;
        let is_same = blank == self.blank && area == self.area;
        self.is_keeping = std::mem::take(&mut self.is_shown)
            && is_same
            && ground.is_some()
            && ground == self.ground
            && !self.keys.is_empty();
        (self.area, self.ground, self.blank) = (area, ground, blank);
        if !self.is_keeping {
            self.clear();
        }
    }

    /// Nothing is to be kept of this frame: what lies in the area does not depend on its rows alone.
    pub(super) fn refuse(&mut self) {
        if std::mem::take(&mut self.is_keeping) {
            self.clear();
        }
        self.ground = None;
        self.keys.clear();
    }

    fn clear(&mut self) {
        self.fill(0..self.buf.area.height);
        self.chrome = None;
    }

    /// The key of a row: of all that it is drawn from, beside what the whole frame depends on.
    pub(super) fn key(&self, row: impl Hash) -> u64 {
        self.hasher.hash_one(row)
    }

    /// Takes the keys of all rows of the area, from top to bottom, moves what only moved, and makes blank what is to
    /// be drawn.
    pub(super) fn settle(&mut self, mut keys: Vec<u64>) {
        keys.truncate(self.area.height.into());
        let before = std::mem::take(&mut self.keys);
        if self.is_keeping {
            // Not all terminals move pictures along with text.
            let has_pictures = self.notes.iter().any(|notes| !notes.pictures.is_empty());
            let found = if has_pictures { None } else { scroll::find(&before, &keys) };
            if let Some(found) = found {
                let scroll = found.from(self.area.y);
                scroll.shift(&mut self.buf.content, self.buf.area.width);
                scroll.shift(&mut self.notes, 1);
                self.scroll = Some(scroll);
            }
            let was = |row: usize| found.map_or(Some(row), |found| found.source(row));
            self.stays.extend(
                (0..).zip(&keys).map(|(row, key)| was(row).and_then(|row| before.get(row)) == Some(key)),
            );
            for y in self.area.y..self.area.bottom() {
                if !self.stays(y) {
                    self.fill(y..y + 1);
                }
            }
        }
        if self.ground.is_some() {
            self.keys = keys;
        }
    }

    /// Keeps the chrome of the last frame, if it was drawn from the same and shows the time of `now`. Else it is to be
    /// drawn, on blanks, and noted by [`Canvas::note_chrome`].
    pub(super) fn keeps_chrome(&mut self, key: u64, now: Instant) -> bool {
        let is_same = |chrome: &Chrome| chrome.key == key && chrome.until.is_none_or(|until| now < until);
        self.is_chrome_kept = self.is_keeping && self.chrome.as_ref().is_some_and(is_same);
        if self.is_keeping && !self.is_chrome_kept {
            self.fill(0..self.area.y);
            self.fill(self.area.bottom()..self.buf.area.height);
        }
        self.is_chrome_kept
    }

    /// Where the cursor of the chrome is.
    pub(super) fn chrome_cursor(&self) -> Option<Position> {
        self.chrome.and_then(|chrome| chrome.cursor)
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

    fn fill(&mut self, rows: Range<u16>) {
        let rows = usize::from(rows.start)..usize::from(rows.end);
        let cols = usize::from(self.buf.area.width);
        let cells = self.buf.content.get_mut(rows.start * cols..rows.end * cols).unwrap_or_default();
        cells.fill(self.blank.clone());
        self.notes.get_mut(rows).unwrap_or_default().iter_mut().for_each(RowNotes::clear);
    }
}

#[cfg(test)]
mod tests;
