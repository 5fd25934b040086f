//! Cells into bytes: only what differs from the screen, in few bytes.
//!
//! The painter knows what the terminal shows. It is given a canvas, and writes the bytes that bring it onto the screen:
//! one synchronized update, or nothing when nothing has changed. What the canvas kept is not looked at. Text that
//! moved is moved by the terminal too (a scroll region), so that a new line of a stream costs a line and not a screen.
//! Invariant: whatever was shown before, the terminal shows the canvas afterwards.

use std::ops::Range;

use ratatui::buffer::Cell;
use ratatui::layout::Position;

use crate::ui::picture::strip;
use crate::ui::{Canvas, RowNotes, Scroll, scroll};

mod ansi_writer;
mod cell_key;

use ansi_writer::AnsiWriter;
use cell_key::{Packed, Packer};

/// What the terminal shows, and the next frame.
pub struct Painter {
    canvas: Canvas,
    packer: Packer,
    shown: Vec<Packed>,
    /// The rows of the frame that were drawn; all others are of earlier frames.
    packed: Vec<Packed>,
    /// By row: it was drawn.
    drawn: Vec<bool>,
    /// Nothing is known of the terminal: all is painted.
    is_void: bool,
    cursor: Option<Position>,
    pen: AnsiWriter,
}

impl Painter {
    /// A painter of a screen of which nothing is known.
    pub fn new(cols: u16, rows: u16) -> Self {
        Self {
            canvas: Canvas::new(cols, rows),
            packer: Packer::default(),
            shown: Vec::new(),
            packed: Vec::new(),
            drawn: Vec::new(),
            is_void: true,
            cursor: None,
            pen: AnsiWriter::default(),
        }
    }

    /// The screen has another size now; all is painted anew if so.
    pub fn resize(&mut self, cols: u16, rows: u16) {
        if (cols, rows) != (self.cols(), self.rows()) {
            self.canvas = Canvas::new(cols, rows);
            self.is_void = true;
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

    /// What the next frame is drawn on.
    pub fn canvas(&mut self) -> &mut Canvas {
        &mut self.canvas
    }

    /// The bytes that bring the canvas onto the screen and the cursor to its place (`None`: hidden). Empty when
    /// the screen is like that already.
    pub fn finish(&mut self, cursor: Option<Position>) -> &[u8] {
        self.pen.begin();
        let is_first = std::mem::take(&mut self.is_void);
        let count = self.canvas.content.len();
        if is_first {
            self.pen.clear_screen();
            self.shown.clear();
        }
        self.shown.resize(count, Packed::BLANK);
        self.packed.resize(count, Packed::BLANK);
        self.drawn.clear();
        for row in 0..self.rows() {
            let is_drawn = is_first || !self.canvas.is_kept(row);
            self.drawn.push(is_drawn);
            if is_drawn {
                self.pack_row(row);
            }
        }
        // A canvas of which nothing was kept has not looked for rows that moved.
        let is_whole = !is_first && self.drawn.iter().all(|is_drawn| *is_drawn);
        let found = if is_whole { self.find_scroll() } else { None };
        if let Some(scroll) = self.canvas.scroll().filter(|_| !is_first).or(found) {
            self.pen.scroll(scroll.top, scroll.bottom, scroll.up);
            // What comes in is blank, in the plain style that is set at the begin of a frame.
            scroll.shift(&mut self.shown, self.canvas.area.width).fill(Packed::BLANK);
        }
        for row in 0..self.rows() {
            if self.drawn.get(usize::from(row)).is_some_and(|is_drawn| *is_drawn)
                && self.row(&self.shown, row) != self.row(&self.packed, row)
            {
                self.paint_row(row);
                self.note_shown(row);
            }
        }
        if is_first || self.cursor != cursor || !self.pen.is_empty() {
            self.pen.place_cursor(cursor);
        }
        self.cursor = cursor;
        self.canvas.set_shown();
        self.pen.end()
    }

    fn cols(&self) -> u16 {
        self.canvas.area.width
    }

    fn rows(&self) -> u16 {
        self.canvas.area.height
    }

    fn pack_row(&mut self, row: u16) {
        let place = self.place(row);
        let cells = self.canvas.content.get(place.clone()).unwrap_or_default();
        let packed = self.packed.get_mut(place).unwrap_or_default();
        for (packed, cell) in packed.iter_mut().zip(cells) {
            *packed = self.packer.pack(cell);
        }
        let Some(notes) = self.canvas.notes(row) else { return };
        for (cols, number) in &notes.links {
            for packed in packed.iter_mut().take(cols.end.into()).skip(cols.start.into()) {
                packed.link(*number);
            }
        }
        for (cols, number) in notes.pictures.iter().filter(|(_, number)| strip::text_of(*number).is_some()) {
            let mut picture = packed.iter_mut().take(cols.end.into()).skip(cols.start.into());
            if let Some(first) = picture.next() {
                *first = Packed::picture(*number);
            }
            picture.for_each(|packed| *packed = Packed::COVERED);
        }
    }

    /// What was painted is what is shown.
    fn note_shown(&mut self, row: u16) {
        let place = self.place(row);
        let (shown, packed) = (self.shown.get_mut(place.clone()), self.packed.get(place));
        if let (Some(shown), Some(packed)) = (shown, packed) {
            shown.copy_from_slice(packed);
        }
    }

    /// Where a row's cells are.
    fn place(&self, row: u16) -> Range<usize> {
        let cols = usize::from(self.cols());
        usize::from(row) * cols..(usize::from(row) + 1) * cols
    }

    fn row<'a, T>(&self, cells: &'a [T], row: u16) -> &'a [T] {
        cells.get(self.place(row)).unwrap_or_default()
    }

    /// Looks for rows that moved by their cells.
    fn find_scroll(&self) -> Option<Scroll> {
        let differs = |row: &u16| self.row(&self.shown, *row) != self.row(&self.packed, *row);
        (0..self.rows()).filter(differs).nth(scroll::LEAST_MOVED)?;
        let hashes = |cells| (0..self.rows()).map(|row| hash(self.row(cells, row))).collect::<Vec<_>>();
        let scroll = scroll::find(&hashes(&self.shown), &hashes(&self.packed))?;
        // Not all terminals move pictures along with text.
        let has_picture = |cells: &[Packed]| {
            (scroll.top..scroll.bottom).any(|row| self.row(cells, row).contains(&Packed::COVERED))
        };
        (!has_picture(&self.shown) && !has_picture(&self.packed)).then_some(scroll)
    }

    fn paint_row(&mut self, row: u16) {
        let (shown, packed) = (self.row(&self.shown, row), self.row(&self.packed, row));
        let cells: &[Cell] = self.row(&self.canvas.content, row);
        let nothing = RowNotes::default();
        let notes = self.canvas.notes(row).unwrap_or(&nothing);
        let mut pen = std::mem::take(&mut self.pen);
        // Up to where cells are painted although they seem to be right: half of a wide one stood there.
        let mut forced = 0;
        let mut x = 0;
        while let (Some(old), Some(new), Some(cell)) = (shown.get(x), packed.get(x), cells.get(x)) {
            let width = new.width();
            // A row of a picture is painted as a whole.
            let is_broken = new.is_picture() && is_broken(shown, packed, x + width);
            if (x < forced || old != new || is_broken) && *new != Packed::COVERED {
                pen.cell((to_u16(x), row), cell, to_u16(width), cells, notes);
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

/// Tells rows apart. Two rows that seem equal and are not cost bytes and nothing else: what differs after the scroll is
/// painted.
fn hash(row: &[Packed]) -> u64 {
    // The last column belongs to the scroll bar, which goes its own way.
    let row = row.get(..row.len().saturating_sub(1)).unwrap_or_default();
    row.iter().fold(0, |hash, cell| cell.mix_into(hash))
}

fn to_u16(value: usize) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
