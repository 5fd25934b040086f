//! Cells as numbers, which are faster to compare and smaller than cells.

use std::hash::{BuildHasher, RandomState};

use ratatui::buffer::{Cell, CellDiffOption};
use ratatui::style::Color;

use super::ansi_writer::named_index;
use crate::ui::text::grapheme_width;

/// Longest symbol that is stored unchanged.
const PLAIN_BYTES: usize = 7;

/// A packed cell. Cells that look the same are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed {
    symbol: u64,
    colors: u64,
    rest: u64,
}

impl Packed {
    /// A blank in the terminal's default colors.
    pub const BLANK: Self = Self { symbol: b' ' as u64, colors: 0, rest: 1 << 56 };

    /// A cell covered by a picture or something else: it is not painted, but its successor always is.
    pub const COVERED: Self = Self { symbol: u64::MAX, colors: 0, rest: 1 << 56 };

    pub fn picture(number: u32) -> Self {
        Self { symbol: u64::MAX - 1, colors: number.into(), rest: 1 << 56 }
    }

    /// Whether a row of a picture starts here.
    pub fn is_picture(self) -> bool {
        self.symbol == u64::MAX - 1
    }

    /// Sets the link, whose number has at most 24 bits.
    pub fn link(&mut self, number: u32) {
        self.rest |= u64::from(number);
    }

    /// Number of columns, at least one.
    #[inline]
    pub fn width(self) -> usize {
        usize::from(self.rest.to_be_bytes()[0])
    }

    #[inline]
    pub fn mix_into(self, hash: u64) -> u64 {
        let value = self.symbol ^ self.colors.rotate_left(23) ^ self.rest.rotate_left(43);
        (hash.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95)
    }
}

#[derive(Default)]
pub(super) struct Packer {
    hasher: RandomState,
}

impl Packer {
    #[inline]
    pub fn pack(&self, cell: &Cell) -> Packed {
        let colors = color(cell.fg) << 32 | color(cell.bg);
        let style = u64::from(cell.modifier.bits()) << 32;
        let bytes = cell.symbol().as_bytes();
        if let ([ch], CellDiffOption::None) = (bytes, cell.diff_option) {
            return Packed { symbol: u64::from(*ch), colors, rest: 1 << 56 | style };
        }
        if cell.diff_option == CellDiffOption::Skip {
            return Packed::COVERED;
        }
        let width = u8::try_from(grapheme_width(cell.symbol())).unwrap_or(u8::MAX).max(1);
        let symbol = if bytes.len() <= PLAIN_BYTES {
            bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        } else {
            // The hash is keyed, so that an agent cannot create colliding clusters.
            self.hasher.hash_one(bytes) | 0xff << 56
        };
        Packed { symbol, colors, rest: u64::from(width) << 56 | style }
    }
}

#[inline]
fn color(color: Color) -> u64 {
    match color {
        Color::Reset => 0,
        Color::Rgb(r, g, b) => 1 << 24 | u64::from(r) << 16 | u64::from(g) << 8 | u64::from(b),
        Color::Indexed(index) => 2 << 24 | u64::from(index),
        named => 3 << 24 | u64::from(named_index(named)),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::CellWidth as _;
    use ratatui::style::{Modifier, Style};

    use super::*;

    #[test]
    fn cells_that_look_different_differ() {
        let packer = Packer::default();
        let styles = [
            Style::new(),
            Style::new().fg(Color::Black),
            Style::new().bg(Color::Black),
            Style::new().fg(Color::Indexed(0)),
            Style::new().fg(Color::Rgb(0, 0, 0)),
            Style::new().bg(Color::Rgb(0, 0, 1)),
            Style::new().add_modifier(Modifier::BOLD),
            Style::new().add_modifier(Modifier::CROSSED_OUT),
        ];
        let symbols = [" ", "a", "b", "日", "e\u{301}", "👩‍👩‍👧", "👩‍👩‍👦", "🧑🏽‍🚀", "🧑🏿‍🚀"];
        let mut cells = Vec::new();
        for symbol in symbols {
            for style in styles {
                let mut cell = Cell::default();
                cell.set_symbol(symbol).set_style(style);
                cells.push(cell);
            }
        }
        for (a, one) in cells.iter().enumerate() {
            for (b, other) in cells.iter().enumerate() {
                assert_eq!(packer.pack(one) == packer.pack(other), a == b, "{one:?} {other:?}");
            }
            assert_eq!(packer.pack(one).width(), usize::from(one.cell_width()));
        }
        assert_eq!(packer.pack(&Cell::EMPTY), Packed::BLANK);
    }
}
