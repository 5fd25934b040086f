//! Preserves the reading position when the width changes.
//!
//! A position is a row number, which depends on the width. The number of letters does not, so the first row
//! is restored from the number of letters before it in its piece. The count is stored until the user scrolls,
//! so that several changes of the width lead back to the original position.

use ratatui::layout::Rect;

use crate::core::Session;
use crate::ui::render_context::RenderContext;
use crate::ui::session_view::SessionView;
use crate::ui::text::Line;
use crate::ui::text::copy_hint;

use super::list::List;
use super::{Anchor, RowPosition, TranscriptView, text_cols};

/// The reading position and the number of letters before it, if the next frame has another width. Called
/// before that frame, while the rows of the last one are cached.
pub(super) fn before(
    session: &Session,
    session_view: &SessionView,
    view: &mut TranscriptView,
    render: &RenderContext<'_>,
    area: Rect,
) -> Option<(RowPosition, usize)> {
    let Anchor::At(position) = view.anchor else { return None };
    let cols = view.render.as_ref()?.cols;
    // The cached rows are outdated if items were inserted or removed before them.
    if text_cols(area) == cols || !view.cells.contains_key(&position.item) {
        return None;
    }
    match view.reading {
        Some((known, letters)) if known == position => Some((position, letters)),
        _ => List::new(session, session_view, view, render, cols)
            .letters_before(position)
            .map(|letters| (position, letters)),
    }
}

impl List<'_> {
    /// Number of letters in a piece above a row; `None` if the row is blank space before the piece.
    fn letters_before(&mut self, position: RowPosition) -> Option<usize> {
        let row = position.row.checked_sub(self.lines_before(position.item, position.piece))?;
        let lines =
            self.view.cells.get(&position.item)?.layout.pieces.get(position.piece)?.lines.as_deref()?;
        Some(lines.iter().take(row).map(letters).sum())
    }

    /// Scrolls to the row after this number of letters.
    pub(super) fn find_again(&mut self, (position, before): (RowPosition, usize)) {
        if position.item >= self.items.len() || position.piece >= self.pieces(position.item) {
            return;
        }
        self.draw_piece(position.item, position.piece);
        let blank = self.lines_before(position.item, position.piece);
        let piece =
            self.view.cells.get(&position.item).and_then(|cell| cell.layout.pieces.get(position.piece));
        let lines = piece.and_then(|piece| piece.lines.as_deref()).unwrap_or_default();
        let mut sum = 0;
        let row = lines.iter().position(|line| {
            sum += letters(line);
            sum > before
        });
        let row = row.unwrap_or(lines.len().saturating_sub(1));
        let position = RowPosition { row: blank + row, ..position };
        self.view.anchor = Anchor::At(position);
        self.view.reading = Some((position, before));
    }
}

/// Number of letters in a row that do not depend on wraps.
fn letters(line: &Line<'_>) -> usize {
    copy_hint::glyphs(line, false).filter(|glyph| !glyph.text.trim().is_empty()).count()
}
