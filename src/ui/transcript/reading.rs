//! Keeps the text being read on the screen when the width changes.
//!
//! A place is counted in rows, which another width makes anew. Letters stay, so the first row is found again by how many
//! letters of its piece stand before it. The count is stored until the reader scrolls: several changes of the width in a
//! row lead back to where the first one began.

use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::app::Session;
use crate::ui::render_context::RenderContext;
use crate::ui::text::copy_hint;

use super::list::List;
use super::{Anchor, LEFT_COLS, Place, RIGHT_COLS, TranscriptView};

/// The place that is read and the letters before it, when the next frame has another width. Called before that frame
/// begins, while the rows of the last one are there.
pub(super) fn before(
    session: &Session,
    view: &mut TranscriptView,
    look: &RenderContext<'_>,
    area: Rect,
) -> Option<(Place, usize)> {
    let Anchor::At(place) = view.anchor else { return None };
    let cols = view.look.as_ref()?.cols;
    // Where items came or went in front, nothing of the last frame is there.
    if area.width == cols + LEFT_COLS + RIGHT_COLS || !view.cells.contains_key(&place.item) {
        return None;
    }
    match view.reading {
        Some((known, letters)) if known == place => Some((place, letters)),
        _ => List::new(session, view, look, cols).letters_before(place).map(|letters| (place, letters)),
    }
}

impl List<'_> {
    /// Letters of a piece above a row of it; `None` where the row is a blank before the piece.
    fn letters_before(&mut self, place: Place) -> Option<usize> {
        let row = place.row.checked_sub(self.lines_before(place.item, place.piece))?;
        let lines = self.view.cells.get(&place.item)?.layout.pieces.get(place.piece)?.lines.as_deref()?;
        Some(lines.iter().take(row).map(letters).sum())
    }

    /// Scrolls to the row that holds the letter after so many.
    pub(super) fn find_again(&mut self, (place, before): (Place, usize)) {
        if place.item >= self.items.len() || place.piece >= self.pieces(place.item) {
            return;
        }
        self.draw_piece(place.item, place.piece);
        let blank = self.lines_before(place.item, place.piece);
        let piece = self.view.cells.get(&place.item).and_then(|cell| cell.layout.pieces.get(place.piece));
        let lines = piece.and_then(|piece| piece.lines.as_deref()).unwrap_or_default();
        let mut sum = 0;
        let row = lines.iter().position(|line| {
            sum += letters(line);
            sum > before
        });
        let row = row.unwrap_or(lines.len().saturating_sub(1));
        let place = Place { row: blank + row, ..place };
        self.view.anchor = Anchor::At(place);
        self.view.reading = Some((place, before));
    }
}

/// Letters of a row that no wrap adds or takes away.
fn letters(line: &Line<'_>) -> usize {
    copy_hint::glyphs(line, false).filter(|glyph| !glyph.text.trim().is_empty()).count()
}
