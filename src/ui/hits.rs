//! The areas of the screen that react to clicks.

use ratatui::layout::{Position, Rect};

use crate::model::Action;

/// The action of a click.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hit {
    Act(Action),
    /// Selects the row with this index, then runs the action.
    MarkAnd(u16, Action),
    /// Expands or folds the item with its header there.
    Transcript,
    Composer,
    /// A mouse event for the program in this area.
    Terminal(Rect),
    /// No action; covers the areas below.
    Nothing,
}

/// Clickable areas; later ones are on top.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct HitMap {
    areas: Vec<(Rect, Hit)>,
}

impl HitMap {
    pub fn add(&mut self, area: Rect, hit: Hit) {
        self.areas.push((area, hit));
    }

    #[cfg(test)]
    pub(super) fn count_rows(&self) -> usize {
        self.areas.iter().filter(|(_, hit)| matches!(hit, Hit::MarkAnd(..))).count()
    }

    pub fn at(&self, position: Position) -> Option<(Rect, Hit)> {
        self.areas.iter().rev().find(|(area, _)| area.contains(position)).copied()
    }

    pub(super) fn clear(&mut self) {
        self.areas.clear();
    }
}
