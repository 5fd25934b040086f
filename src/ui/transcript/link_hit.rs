//! The link under the mouse.
//!
//! Reads the drawn row on demand, so that frames have no cost.

use ratatui::layout::Position;

use crate::model::Target;
use crate::ui::text::link;

use super::TranscriptView;

impl TranscriptView {
    /// The link target at a position of the last frame.
    pub fn target_at(&self, at: Position) -> Option<Target> {
        let area = self.select.area;
        if !area.contains(at) {
            return None;
        }
        let seen = self.select.seen.get(usize::from(at.y - area.y))?;
        let col = usize::from(at.x.checked_sub(seen.x)?);
        let piece = self.cells.get(&seen.item)?.layout.pieces.get(seen.piece)?;
        let line = piece.lines.as_ref()?.get(seen.row?)?;
        let mut end = 0;
        let span = line.spans.iter().find(|span| {
            end += span.width();
            col < end
        })?;
        link::target(span.tag.link)
    }
}
