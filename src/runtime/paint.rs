//! Converts a canvas to bytes for the terminal: only what differs from the screen.
//!
//! The painter tracks what the terminal shows. It writes the bytes that bring a canvas onto the screen: one
//! synchronized update if the terminal supports it, or nothing if nothing changed. Rows that the canvas reused are skipped. Moved text is scrolled
//! by the terminal (a scroll region), so that a new line of a stream costs a line and not a screen.
//! Invariant: whatever was shown before, the terminal shows the canvas afterwards.

use std::ops::Range;

use ratatui::buffer::Cell;
use ratatui::layout::Position;
use ratatui::style::Modifier;

use crate::ui::picture::strip;
use crate::ui::{Canvas, RowNotes, Scroll, scroll};

mod ansi_writer;
mod cell_key;

use ansi_writer::AnsiWriter;
use cell_key::{Packed, Packer};

/// The state of the terminal, and the next frame.
pub struct Painter {
    canvas: Canvas,
    packer: Packer,
    shown: Vec<Packed>,
    /// The rows drawn in this frame; others are from earlier frames.
    packed: Vec<Packed>,
    drawn: Vec<bool>,
    /// The content of the terminal is unknown: everything is painted.
    is_void: bool,
    cursor: Option<Position>,
    writer: AnsiWriter,
}

impl Painter {
    /// A painter for a screen with unknown content.
    pub fn new(cols: u16, rows: u16) -> Self {
        Self {
            canvas: Canvas::new(cols, rows),
            packer: Packer::default(),
            shown: Vec::new(),
            packed: Vec::new(),
            drawn: Vec::new(),
            is_void: true,
            cursor: None,
            writer: AnsiWriter::default(),
        }
    }

    /// Sets the size of the screen; a new size repaints everything.
    pub fn resize(&mut self, cols: u16, rows: u16) {
        if (cols, rows) != (self.cols(), self.rows()) {
            self.canvas = Canvas::new(cols, rows);
            self.is_void = true;
        }
    }

    /// The content of the screen is unknown, so the next frame repaints everything.
    pub fn clear(&mut self) {
        self.is_void = true;
    }

    /// Sets whether frames are synchronized updates; not until the terminal has confirmed that it supports them.
    pub fn synchronize(&mut self, does: bool) {
        self.writer.synchronizes = does;
    }

    pub fn use_italics(&mut self, does: bool) {
        self.writer.omitted.set(Modifier::ITALIC, !does);
    }

    pub fn canvas(&mut self) -> &mut Canvas {
        &mut self.canvas
    }

    /// The bytes that bring the canvas onto the screen and the cursor to its position (`None`: hidden). Empty if the
    /// screen is already up to date.
    pub fn finish(&mut self, cursor: Option<Position>) -> &[u8] {
        self.writer.begin();
        let is_first = std::mem::take(&mut self.is_void);
        let count = self.canvas.content.len();
        if is_first {
            self.writer.clear_screen();
            self.shown.clear();
        }
        self.shown.resize(count, Packed::BLANK);
        self.packed.resize(count, Packed::BLANK);
        self.drawn.clear();
        for row in 0..self.rows() {
            let is_drawn = is_first || !self.canvas.is_saved(row);
            self.drawn.push(is_drawn);
            if is_drawn {
                self.pack_row(row);
            }
        }
        // A canvas without reused rows has not searched for moved rows.
        let is_whole = !is_first && self.drawn.iter().all(|is_drawn| *is_drawn);
        let found = if is_whole { self.find_scroll() } else { None };
        if let Some(scroll) = self.canvas.scroll().filter(|_| !is_first).or(found) {
            self.writer.scroll(scroll.top, scroll.bottom, scroll.up);
            // New rows are blank, in the plain style that is set at the start of a frame.
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
        if is_first || self.cursor != cursor || !self.writer.is_empty() {
            self.writer.place_cursor(cursor);
        }
        self.cursor = cursor;
        self.canvas.set_shown();
        self.writer.end()
    }

    fn cols(&self) -> u16 {
        self.canvas.area.width
    }

    fn rows(&self) -> u16 {
        self.canvas.area.height
    }

    fn pack_row(&mut self, row: u16) {
        let position = self.place(row);
        let cells = self.canvas.content.get(position.clone()).unwrap_or_default();
        let packed = self.packed.get_mut(position).unwrap_or_default();
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

    /// Updates the state of the terminal after painting a row.
    fn note_shown(&mut self, row: u16) {
        let position = self.place(row);
        let (shown, packed) = (self.shown.get_mut(position.clone()), self.packed.get(position));
        if let (Some(shown), Some(packed)) = (shown, packed) {
            shown.copy_from_slice(packed);
        }
    }

    fn place(&self, row: u16) -> Range<usize> {
        let cols = usize::from(self.cols());
        usize::from(row) * cols..(usize::from(row) + 1) * cols
    }

    fn row<'a, T>(&self, cells: &'a [T], row: u16) -> &'a [T] {
        cells.get(self.place(row)).unwrap_or_default()
    }

    /// Searches for moved rows by their cells.
    fn find_scroll(&self) -> Option<Scroll> {
        let differs = |row: &u16| self.row(&self.shown, *row) != self.row(&self.packed, *row);
        (0..self.rows()).filter(differs).nth(scroll::MIN_MOVED)?;
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
        let mut writer = std::mem::take(&mut self.writer);
        // Cells up to here are painted even if they seem right: half of a wide one was there.
        let mut forced = 0;
        let mut x = 0;
        while let (Some(old), Some(new), Some(cell)) = (shown.get(x), packed.get(x), cells.get(x)) {
            let width = new.width();
            // A row of a picture is painted as a whole.
            let is_broken = new.is_picture() && is_broken(shown, packed, x + width);
            if (x < forced || old != new || is_broken) && *new != Packed::COVERED {
                writer.cell((to_u16(x), row), cell, to_u16(width), cells, notes);
                for (under, old) in shown.iter().enumerate().skip(x).take(width) {
                    let end = under + old.width();
                    if end > x + width {
                        forced = forced.max(end);
                    }
                }
            }
            x += width;
        }
        self.writer = writer;
    }
}

/// Whether other cells are shown among those that a row of a picture covers.
fn is_broken(shown: &[Packed], packed: &[Packed], from: usize) -> bool {
    let cells = packed.iter().zip(shown).skip(from);
    cells.take_while(|(new, _)| **new == Packed::COVERED).any(|(_, old)| *old != Packed::COVERED)
}

/// A hash to compare rows. A collision only costs bytes: differences are painted after the scroll.
fn hash(row: &[Packed]) -> u64 {
    // The last column belongs to the scroll bar.
    let row = row.get(..row.len().saturating_sub(1)).unwrap_or_default();
    row.iter().fold(0, |hash, cell| cell.mix_into(hash))
}

fn to_u16(value: usize) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
