//! The screen: its cells, links and pictures, and the keys that its rows were drawn from.
//!
//! A [`Canvas`] holds the last frame. The next frame is drawn over it: rows of the transcript with the same key stay,
//! moved rows are moved, and the chrome (everything around the transcript) stays while its key is the same. Links and
//! pictures are stored by row in addition to the cells ([`RowNotes`]). The painter (`runtime::paint`) skips the rows
//! that stayed, scrolls the terminal as the canvas did, and compares the cells of all other rows with those on the
//! terminal. The keys save drawing and the cells save bytes; moved rows are searched only once ([`scroll`]).
//! Invariants: a row that stays has the cells that drawing it would give; a frame in which something may cover the
//! transcript reuses nothing, nor does the frame after it.

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

/// The cells of a screen with their links, pictures and keys. Derefs to the buffer.
#[derive(Debug, Default)]
pub struct Canvas {
    buf: Buffer,
    notes: Vec<RowNotes>,
    is_shown: bool,
    hasher: RandomState,
    /// The keys of the rows of the transcript's area; empty: not known.
    keys: Vec<u64>,
    area: Rect,
    /// The key that all rows depend on; `None`: the frame must not be reused.
    ground: Option<u64>,
    blank: Cell,
    is_keeping: bool,
    stays: Vec<bool>,
    scroll: Option<Scroll>,
    chrome: Option<Chrome>,
    is_chrome_kept: bool,
}

#[derive(Debug, Clone, Copy)]
struct Chrome {
    key: u64,
    /// When a time that it shows changes.
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
    pub fn new(cols: u16, rows: u16) -> Self {
        let notes = vec![RowNotes::default(); rows.into()];
        Self { buf: Buffer::empty(Rect::new(0, 0, cols, rows)), notes, ..Self::default() }
    }

    pub fn into_buffer(self) -> Buffer {
        self.buf
    }

    /// The last frame is on the screen: the next one may be drawn over it.
    pub fn set_shown(&mut self) {
        self.is_shown = true;
    }

    /// Whether a row has the cells of the previous frame, after [`Canvas::scroll`].
    pub fn is_saved(&self, y: u16) -> bool {
        let is_transcript = (self.area.y..self.area.bottom()).contains(&y);
        if is_transcript { self.stays(y) } else { self.is_chrome_kept }
    }

    /// The move of rows before the frame was drawn.
    pub fn scroll(&self) -> Option<Scroll> {
        self.scroll
    }

    pub fn notes(&self, y: u16) -> Option<&RowNotes> {
        self.notes.get(usize::from(y))
    }

    /// Writes a line into cells, with its links and pictures. Pictures that do not fit are omitted.
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

    /// Clears an area so that content below a panel does not show through.
    pub fn blank(&mut self, area: Rect, style: Style) {
        let area = area.intersection(self.buf.area);
        for position in area.positions() {
            if let Some(cell) = self.buf.cell_mut(position) {
                cell.reset();
                cell.set_style(style);
            }
        }
        for notes in self.notes.iter_mut().skip(area.y.into()).take(area.height.into()) {
            notes.cut(&(area.x..area.right()));
        }
    }

    pub(super) fn remove_pictures(&mut self, rows: Range<u16>) {
        for notes in self.notes.iter_mut().take(rows.end.into()).skip(rows.start.into()) {
            notes.pictures.clear();
        }
    }

    /// Begins a frame with the area of the transcript, which must have the width of the screen for rows to be reused.
    /// `ground` is the key that all rows depend on (`None`: something else is drawn over them). Clears the screen
    /// unless rows of the last frame can be reused.
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

    /// Marks the frame as not reusable: the area does not depend on its rows alone.
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

    /// The key of a row: a hash of its content, except for what the whole frame depends on.
    pub(super) fn key(&self, row: impl Hash) -> u64 {
        self.hasher.hash_one(row)
    }

    /// Sets the keys of all rows of the area, from top to bottom, moves the rows that only moved, and clears the rows
    /// to draw.
    pub(super) fn set_keys(&mut self, mut keys: Vec<u64>) {
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

    /// Whether the chrome of the last frame is reused, because its key and the times it shows are the same. Otherwise
    /// it must be drawn on blanks, and noted by [`Canvas::note_chrome`].
    pub(super) fn keeps_chrome(&mut self, key: u64, now: Instant) -> bool {
        let is_same = |chrome: &Chrome| chrome.key == key && chrome.until.is_none_or(|until| now < until);
        self.is_chrome_kept = self.is_keeping && self.chrome.as_ref().is_some_and(is_same);
        if self.is_keeping && !self.is_chrome_kept {
            self.fill(0..self.area.y);
            self.fill(self.area.bottom()..self.buf.area.height);
        }
        self.is_chrome_kept
    }

    pub(super) fn chrome_cursor(&self) -> Option<Position> {
        self.chrome.and_then(|chrome| chrome.cursor)
    }

    /// Sets the key of the drawn chrome, when a time that it shows changes, and its cursor position.
    pub(super) fn note_chrome(&mut self, key: u64, until: Option<Instant>, cursor: Option<Position>) {
        self.chrome = Some(Chrome { key, until, cursor });
    }

    /// Whether a row of the area is reused.
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
