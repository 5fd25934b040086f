//! Cells into bytes: only what differs from the screen, in few bytes.
//!
//! Duty: knows what the terminal shows, and writes the way from there to the next frame.
//! Not its duty: modes of the terminal and system calls (`tty`).
//! Enters: a buffer of cells. Leaves: one run of bytes, a synchronized update, or nothing when nothing changed.
//! Text that moved up or down is moved by the terminal itself (a scroll region), so that a new line of a
//! stream costs a line and not a screen.
//! Invariant: whatever was shown before, the terminal shows the next buffer afterwards.

use std::ops::Range;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect};

use crate::ui::picture::strip;
use crate::ui::{Moved, RowCache};

mod ansi_writer;
mod cell_key;

use ansi_writer::AnsiWriter;
use cell_key::{Packed, Packer};

/// Least cells that scrolling must save: below that, painting is as short.
const LEAST_SAVED_CELLS: usize = 60;

/// What the terminal shows, and the next frame.
pub struct Painter {
    next: Buffer,
    packer: Packer,
    shown: Vec<Packed>,
    /// What the buffer holds; between two frames, the same.
    packed: Vec<Packed>,
    /// The buffer holds the last frame.
    is_old: bool,
    /// Nothing is known of the terminal: all is painted.
    is_void: bool,
    cursor: Option<Position>,
    /// Rows that differ.
    changed: Vec<bool>,
    pen: AnsiWriter,
}

/// Rows that go up (or down, when negative) inside a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scroll {
    top: u16,
    /// Behind the last row.
    bottom: u16,
    rows: i32,
}

impl Painter {
    /// A painter of a screen of which nothing is known.
    pub fn new(cols: u16, rows: u16) -> Self {
        let area = Rect::new(0, 0, cols, rows);
        Self {
            next: Buffer::empty(area),
            packer: Packer::default(),
            shown: Vec::new(),
            packed: Vec::new(),
            is_old: false,
            is_void: true,
            cursor: None,
            changed: Vec::new(),
            pen: AnsiWriter::default(),
        }
    }

    /// The screen has another size now; all is painted anew if so.
    pub fn resize(&mut self, cols: u16, rows: u16) {
        let area = Rect::new(0, 0, cols, rows);
        if area != self.next.area {
            self.next.resize(area);
            self.packed.clear();
            (self.is_void, self.is_old) = (true, false);
        }
    }

    /// Nothing is known of the screen any more.
    pub fn clear(&mut self) {
        self.is_void = true;
    }

    /// Whether frames are synchronized updates, which they are until the terminal says that it knows none.
    pub fn synchronize(&mut self, does: bool) {
        self.pen.is_torn = !does;
    }

    /// The buffer for the next frame, and whether it holds what the last one left there; else its content is nothing.
    pub fn begin(&mut self) -> (&mut Buffer, bool) {
        (&mut self.next, std::mem::take(&mut self.is_old))
    }

    /// The bytes that bring the buffer onto the screen and the cursor to its place (`None`: hidden). Empty when
    /// the screen is like that already. Rows that are kept must not have been drawn into.
    pub fn finish(&mut self, cursor: Option<Position>, rows: &RowCache) -> &[u8] {
        self.pen.begin();
        let is_first = std::mem::take(&mut self.is_void);
        let count = self.next.content.len();
        if is_first {
            self.pen.clear_screen();
            self.shown.clear();
        }
        let knows_all = self.packed.len() == count;
        self.shown.resize(count, Packed::BLANK);
        self.packed.resize(count, Packed::BLANK);
        self.changed.clear();
        if let Some(moved) = rows.moved().filter(|_| knows_all) {
            self.shift_packed(moved);
        }
        for row in 0..self.next.area.height {
            let is_kept = knows_all && rows.is_kept(row);
            if !is_kept {
                self.pack_row(row);
            }
            let may_differ = !is_kept || is_first || rows.moved().is_some();
            self.changed.push(may_differ && self.row(&self.shown, row) != self.row(&self.packed, row));
        }
        if !is_first {
            self.scroll();
        }
        for row in 0..self.next.area.height {
            if self.changed.get(usize::from(row)).is_some_and(|changed| *changed) {
                self.paint_row(row);
            }
        }
        if is_first || self.cursor != cursor || !self.pen.is_empty() {
            self.pen.place_cursor(cursor);
        }
        self.cursor = cursor;
        self.keep_shown();
        self.is_old = true;
        self.pen.end()
    }

    fn pack_row(&mut self, row: u16) {
        let place = self.place(row);
        let cells = self.next.content.get(place.clone()).unwrap_or_default();
        let packed = self.packed.get_mut(place).unwrap_or_default();
        for (packed, cell) in packed.iter_mut().zip(cells) {
            *packed = self.packer.pack(cell);
        }
    }

    /// Follows rows that were moved in the buffer.
    fn shift_packed(&mut self, moved: Moved) {
        let rows = self.place(moved.top).start..self.place(moved.bottom).start;
        let by = moved.up.unsigned_abs() as usize * usize::from(self.next.area.width);
        let Some(cells) = self.packed.get_mut(rows).filter(|cells| by <= cells.len()) else { return };
        if moved.up > 0 { cells.rotate_left(by) } else { cells.rotate_right(by) }
    }

    /// What was painted is what is shown.
    fn keep_shown(&mut self) {
        for (row, _) in (0..).zip(&self.changed).filter(|(_, changed)| **changed) {
            let place = self.place(row);
            let (shown, packed) = (self.shown.get_mut(place.clone()), self.packed.get(place));
            if let (Some(shown), Some(packed)) = (shown, packed) {
                shown.copy_from_slice(packed);
            }
        }
    }

    /// Where a row's cells are.
    fn place(&self, row: u16) -> Range<usize> {
        let cols = usize::from(self.next.area.width);
        usize::from(row) * cols..(usize::from(row) + 1) * cols
    }

    fn row<'a, T>(&self, cells: &'a [T], row: u16) -> &'a [T] {
        cells.get(self.place(row)).unwrap_or_default()
    }

    fn is_covered(&self, cells: &[Packed], row: u16) -> bool {
        self.row(cells, row).contains(&Packed::COVERED)
    }

    /// Lets the terminal move what only moved.
    fn scroll(&mut self) {
        let first = self.changed.iter().position(|changed| *changed);
        let last = self.changed.iter().rposition(|changed| *changed);
        let (Some(first), Some(last)) = (first, last) else { return };
        // Two or three rows are painted as fast.
        if self.changed.iter().filter(|changed| **changed).count() < 4 {
            return;
        }
        let (from, to) = (to_u16(first), to_u16(last + 1));
        let prints = |cells| (from..to).map(|row| Print::of(self.row(cells, row))).collect::<Vec<_>>();
        // Not all terminals move pictures along with text.
        if (from..to).any(|row| self.is_covered(&self.shown, row) || self.is_covered(&self.packed, row)) {
            return;
        }
        let Some(scroll) = find_scroll(&prints(&self.shown), &prints(&self.packed), from) else { return };
        self.pen.scroll(scroll.top, scroll.bottom, scroll.rows);
        let moved = usize::from(scroll.top)..usize::from(scroll.bottom);
        self.changed.get_mut(moved).unwrap_or_default().fill(true);
        let cols = usize::from(self.next.area.width);
        let region = usize::from(scroll.top) * cols..usize::from(scroll.bottom) * cols;
        let Some(region) = self.shown.get_mut(region) else { return };
        let moved = (scroll.rows.unsigned_abs() as usize * cols).min(region.len());
        // What comes in is blank, in the plain style that is set at the begin of a frame.
        let blank = if scroll.rows > 0 {
            region.rotate_left(moved);
            region.len() - moved..region.len()
        } else {
            region.rotate_right(moved);
            0..moved
        };
        region.get_mut(blank).unwrap_or_default().fill(Packed::BLANK);
    }

    fn paint_row(&mut self, row: u16) {
        let (shown, packed) = (self.row(&self.shown, row), self.row(&self.packed, row));
        let cells: &[Cell] = self.row(&self.next.content, row);
        let mut pen = std::mem::take(&mut self.pen);
        // Up to where cells are painted although they seem to be right: half of a wide one stood there.
        let mut forced = 0;
        let mut x = 0;
        while let (Some(old), Some(new), Some(cell)) = (shown.get(x), packed.get(x), cells.get(x)) {
            let width = new.width();
            // A row of a picture is painted as a whole.
            let is_broken = strip::is_head(cell) && is_broken(shown, packed, x + width);
            if (x < forced || old != new || is_broken) && *new != Packed::COVERED {
                pen.cell(to_u16(x), row, cell, to_u16(width), cells);
                for (under, old) in shown.iter().enumerate().skip(x).take(width) {
                    let end = under + old.width();
                    if end > x + width {
                        forced = forced.max(end);
                    }
                }
            }
            x += width;
        }
        self.pen = pen;
    }
}

/// Whether something else stands among the cells that a row of a picture covers.
fn is_broken(shown: &[Packed], packed: &[Packed], from: usize) -> bool {
    let cells = packed.iter().zip(shown).skip(from);
    cells.take_while(|(new, _)| **new == Packed::COVERED).any(|(_, old)| *old != Packed::COVERED)
}

/// What the terminal may move between two frames that differ in these rows, the first of which is `from`; `None`:
/// nothing worth it.
fn find_scroll(old: &[Print], new: &[Print], from: u16) -> Option<Scroll> {
    let count = i32::try_from(new.len()).unwrap_or(0);
    let mut best: Option<(usize, Scroll)> = None;
    let most = count * 2 / 3;
    for rows in (-most..=most).filter(|rows| *rows != 0) {
        let mut saved = 0;
        let mut span: Option<(i32, i32)> = None;
        for to_row in 0.max(-rows)..count.min(count - rows) {
            let (Some(a), Some(b)) = (at(old, to_row + rows), at(new, to_row)) else { continue };
            // Rows that are right where they are would have to be painted again.
            let stays = at(old, to_row).is_some_and(|stays| stays == b);
            if a == b && !stays {
                saved += b.cells;
                span = Some((span.map_or(to_row, |(top, _)| top), to_row));
            }
        }
        let Some((top, last)) = span else { continue };
        let (top, bottom) = if rows > 0 { (top, last + rows + 1) } else { (top + rows, last + 1) };
        let broken: usize = (top..bottom)
            .filter(|row| at(old, *row) == at(new, *row) && at(old, *row + rows) != at(new, *row))
            .filter_map(|row| at(new, row).map(|print| print.cells))
            .sum();
        let saved = saved.saturating_sub(broken);
        if saved >= LEAST_SAVED_CELLS && best.is_none_or(|(most, _)| saved > most) {
            let place = |row: i32| from + u16::try_from(row).unwrap_or_default();
            best = Some((saved, Scroll { top: place(top), bottom: place(bottom), rows }));
        }
    }
    best.map(|(_, scroll)| scroll)
}

fn at(prints: &[Print], row: i32) -> Option<&Print> {
    usize::try_from(row).ok().and_then(|row| prints.get(row))
}

/// Tells rows apart, and how much there is to paint of one. Two rows that seem equal and are not cost bytes and
/// nothing else: what differs after the scroll is painted.
#[derive(PartialEq, Eq)]
struct Print {
    hash: u64,
    cells: usize,
}

impl Print {
    fn of(row: &[Packed]) -> Self {
        // The last column belongs to the scroll bar, which goes its own way.
        let row = row.get(..row.len().saturating_sub(1)).unwrap_or_default();
        let mut print = Self { hash: 0, cells: 0 };
        for cell in row {
            print.hash = cell.mix_into(print.hash);
            print.cells += usize::from(!cell.is_blank());
        }
        print
    }
}

fn to_u16(value: usize) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
