//! What the screen has room for.

use crate::core::OutputRoom;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiffLayout {
    /// Side by side from 120 columns on, if that suits the diff.
    #[default]
    Auto,
    /// Side by side wherever two columns fit.
    SideBySide,
    Unified,
}

/// What the screen has room for, and what it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    pub diffs: DiffRoom,
    pub output: OutputRoom,
    pub fits_plan: bool,
    pub shows_steps: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffRoom {
    /// Only one column fits.
    OneColumn,
    /// Two columns fit, but one is easier to read.
    Narrow,
    /// Two columns fit well.
    Wide,
}

impl DiffRoom {
    pub fn of(is_side_by_side: impl Fn(DiffLayout) -> bool) -> Self {
        match () {
            () if is_side_by_side(DiffLayout::Auto) => Self::Wide,
            () if is_side_by_side(DiffLayout::SideBySide) => Self::Narrow,
            () => Self::OneColumn,
        }
    }
}
