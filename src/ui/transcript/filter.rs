//! Which items are shown while only a part of the transcript is.
//!
//! Duty: the list of them, kept so that no frame walks over what is left out; where the reader was before. Not its
//! duty: what belongs to a part (`app::outline`).
//! What changes far above the end while the list stands may be missing from it until it is made anew.

use crate::app::Item;
use crate::app::outline::Only;

use super::Anchor;

/// Items at the end that are looked at again when something changed.
const LIVE_ITEMS: usize = 256;

/// A part of the transcript.
pub(super) struct Filter {
    pub only: Only,
    /// Where the reader was.
    pub back: Anchor,
    /// The items of it, in order.
    shown: Vec<usize>,
    /// How many items were looked at.
    seen: usize,
    revision: u64,
}

impl Filter {
    pub fn new(only: Only, items: &[Item], revision: u64, back: Anchor) -> Self {
        let mut this = Self { only, back, shown: Vec::new(), seen: 0, revision };
        this.look(items, 0);
        this
    }

    /// Follows the transcript.
    pub fn follow(&mut self, items: &[Item], revision: u64) {
        if revision != self.revision {
            self.revision = revision;
            self.look(items, self.seen.min(items.len()).saturating_sub(LIVE_ITEMS));
        }
    }

    fn look(&mut self, items: &[Item], from: usize) {
        self.shown.truncate(self.shown.partition_point(|item| *item < from));
        let found = items.iter().enumerate().skip(from).filter(|(_, item)| self.only.shows(item));
        self.shown.extend(found.map(|(index, _)| index));
        self.seen = items.len();
    }

    /// Whether an item is shown.
    pub fn has(&self, item: usize) -> bool {
        self.shown.binary_search(&item).is_ok()
    }

    /// The next item that is shown.
    pub fn after(&self, item: usize) -> Option<usize> {
        self.shown.get(self.shown.partition_point(|shown| *shown <= item)).copied()
    }

    /// The item before that is shown.
    pub fn before(&self, item: usize) -> Option<usize> {
        let place = self.shown.partition_point(|shown| *shown < item);
        self.shown.get(place.checked_sub(1)?).copied()
    }
}
