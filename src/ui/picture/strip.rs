//! Rows of images that a terminal draws from an escape sequence (iTerm2, sixel).
//!
//! Such a row is a head, which carries the id of the sequence, followed by covered cells. Both are
//! private-use characters, which an agent cannot write (`text::sanitize` removes them), so that a row is laid
//! out as text; the painter sends the sequence of the head.
//!
//! Invariants: on the screen, a head has all of its covered cells, or neither is present ([`mend`]).

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

use crate::ui::text::copy_hint::Mark;

/// The first cell of an image row.
pub const HEAD: char = '\u{10fff0}';
/// A cell that is painted by the head before it.
pub const COVERED: char = '\u{10fff1}';
/// The placeholder of kitty images. Source: kitty graphics protocol, Unicode placeholders.
pub const PLACEHOLDER: char = '\u{10eeee}';

const HEAD_TEXT: &str = "\u{10fff0}";
const COVERED_TEXT: &str = "\u{10fff1}";

#[derive(Default)]
struct Table {
    strips: HashMap<u32, (Arc<str>, u16)>,
    last: u32,
}

thread_local! {
    static TABLE: RefCell<Table> = RefCell::default();
}

/// Whether a character is part of an image.
pub fn is_of_picture(letter: char) -> bool {
    matches!(letter, HEAD | COVERED | PLACEHOLDER)
}

/// Stores the sequence of a row; returns its id.
pub(super) fn keep(text: Arc<str>, cols: u16) -> u32 {
    TABLE.with_borrow_mut(|table| {
        // The id is encoded in a 24-bit colour.
        table.last = table.last % 0x00ff_ffff + 1;
        table.strips.insert(table.last, (text, cols));
        table.last
    })
}

pub(super) fn drop(number: u32) {
    TABLE.with_borrow_mut(|table| table.strips.remove(&number));
}

/// The cells of a row.
pub(super) fn row(number: u32, cols: u16) -> Line<'static> {
    let style = Style::new().fg(Color::from_u32(number));
    let covered = COVERED_TEXT.repeat(usize::from(cols.saturating_sub(1)));
    Mark::NO_LINE.row(Line::from(vec![Span::styled(HEAD_TEXT, style), Span::styled(covered, style)]))
}

/// Whether a cell is painted by a head before it.
pub fn is_covered(cell: &Cell) -> bool {
    cell.symbol() == COVERED_TEXT
}

/// Whether a cell is the head of an image row.
pub fn is_head(cell: &Cell) -> bool {
    cell.symbol() == HEAD_TEXT
}

/// Whether a cell is part of an image of any kind.
pub fn is_part(cell: &Cell) -> bool {
    cell.symbol().starts_with(['▀', '▄', HEAD, COVERED, PLACEHOLDER])
}

/// The escape sequence of a head cell.
pub fn of(cell: &Cell) -> Option<Arc<str>> {
    found(cell).map(|(text, _)| text)
}

fn found(cell: &Cell) -> Option<(Arc<str>, u16)> {
    if !is_head(cell) {
        return None;
    }
    let Color::Rgb(r, g, b) = cell.fg else { return None };
    let number = u32::from_be_bytes([0, r, g, b]);
    TABLE.with_borrow(|table| table.strips.get(&number).cloned())
}

/// Whether such a row was ever created.
pub fn is_used() -> bool {
    TABLE.with_borrow(|table| table.last != 0)
}

/// Removes image rows that are partly covered by a dialog or cut at the edge, because a part of a row cannot
/// be painted.
pub fn mend(buf: &mut Buffer) {
    if !is_used() {
        return;
    }
    let width = usize::from(buf.area.width).max(1);
    for row in buf.content.chunks_mut(width) {
        let mut x = 0;
        while let Some(cell) = row.get(x) {
            if !is_head(cell) && !is_covered(cell) {
                x += 1;
                continue;
            }
            let cols = found(cell).map(|(_, cols)| usize::from(cols));
            let run = row.get(x + 1..).unwrap_or_default().iter().take_while(|cell| is_covered(cell)).count();
            if cols != Some(run + 1) {
                for cell in row.iter_mut().skip(x).take(run + 1) {
                    cell.set_symbol(" ");
                    cell.fg = Color::Reset;
                }
            }
            x += run + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;
    use crate::ui::text::{put_line, sanitize, width};

    fn screen(number: u32, cols: u16) -> Buffer {
        let mut buf = Buffer::empty(Rect::new(0, 0, 12, 2));
        put_line(&mut buf, 3, 1, &row(number, cols), 9);
        buf
    }

    #[test]
    fn rows_have_the_width_of_the_image_and_resolve_to_their_sequence() {
        let number = keep("\u{1b}Pq#0\u{1b}\\".into(), 5);
        assert_eq!(row(number, 5).width(), 5);
        let mut buf = screen(number, 5);
        mend(&mut buf);
        assert_eq!(of(&buf[(3, 1)]).as_deref(), Some("\u{1b}Pq#0\u{1b}\\"));
        assert!(is_covered(&buf[(7, 1)]) && !is_covered(&buf[(8, 1)]));
        drop(number);
        assert_eq!(of(&buf[(3, 1)]), None);
    }

    #[test]
    fn incomplete_rows_are_removed() {
        let number = keep("data".into(), 5);
        for hidden in 3..8 {
            let mut buf = screen(number, 5);
            buf[(hidden, 1)].set_symbol("x");
            mend(&mut buf);
            let rest: String = (0..12).map(|x| buf[(x, 1)].symbol().to_owned()).collect();
            assert_eq!(rest.trim(), "x", "without column {hidden}");
        }
        let mut cut = Buffer::empty(Rect::new(0, 0, 6, 1));
        put_line(&mut cut, 3, 0, &row(number, 5), 3);
        mend(&mut cut);
        assert!(cut.content.iter().all(|cell| cell.symbol() == " "), "cut at the edge");
    }

    #[test]
    fn agents_cannot_write_image_characters() {
        for letter in [HEAD, COVERED, PLACEHOLDER] {
            assert_eq!(sanitize(&format!("a{letter}b")), "a\u{fffd}b");
            assert_eq!(width(&letter.to_string()), 1);
        }
    }
}
