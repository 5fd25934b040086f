//! Rows of images that a terminal draws from an escape sequence (iTerm2, sixel).
//!
//! Such a row is a span of blanks with the id of the sequence in its tag. The canvas notes it beside the cells, and the
//! painter sends the whole sequence or nothing.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use ratatui::buffer::Cell;

use crate::ui::text::copy_hint::Mark;
use crate::ui::text::{Line, PICTURE_PLACEHOLDER, Span};

#[derive(Default)]
struct Table {
    strips: HashMap<u32, Arc<str>>,
    last: u32,
}

thread_local! {
    static TABLE: RefCell<Table> = RefCell::default();
}

/// Stores the sequence of a row; returns its id.
pub(super) fn keep(text: Arc<str>) -> u32 {
    TABLE.with_borrow_mut(|table| {
        table.last = table.last.wrapping_add(1).max(1);
        table.strips.insert(table.last, text);
        table.last
    })
}

pub(super) fn drop(number: u32) {
    TABLE.with_borrow_mut(|table| table.strips.remove(&number));
}

pub(super) fn row(number: u32, cols: u16) -> Line<'static> {
    let mut span = Span::raw(" ".repeat(cols.into()));
    span.tag.picture = number;
    Mark::NO_LINE.row(Line::from(span))
}

/// Whether a cell is part of an image that consists of characters.
pub fn is_part(cell: &Cell) -> bool {
    cell.symbol().starts_with(['▀', '▄', PICTURE_PLACEHOLDER])
}

/// The escape sequence of a row.
pub fn text_of(number: u32) -> Option<Arc<str>> {
    TABLE.with_borrow(|table| table.strips.get(&number).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::canvas::Canvas;
    use crate::ui::text::{sanitize, width};

    #[test]
    fn a_row_is_as_wide_as_its_picture_and_leads_to_what_is_sent() {
        let number = keep("\u{1b}Pq#0\u{1b}\\".into());
        assert_eq!(row(number, 5).width(), 5);
        let noted = |cols| {
            let mut canvas = Canvas::new(12, 2);
            canvas.put_line(3, 1, &row(number, 5), cols);
            canvas.notes(1).map(|notes| notes.pictures.clone())
        };
        assert_eq!(noted(9), Some(vec![(3..8, number)]));
        assert_eq!(noted(4), Some(Vec::new()), "beyond the edge");
        assert_eq!(text_of(number).as_deref(), Some("\u{1b}Pq#0\u{1b}\\"));
        drop(number);
        assert_eq!(text_of(number), None);
    }

    #[test]
    fn agents_cannot_write_image_characters() {
        assert_eq!(sanitize(&format!("a{PICTURE_PLACEHOLDER}b")), "a\u{fffd}b");
        assert_eq!(width(&PICTURE_PLACEHOLDER.to_string()), 1);
    }
}
