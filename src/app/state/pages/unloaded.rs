//! Unloaded pages, which are only on disk, and the subjects in them, so that an update of those is not shown as
//! something new.
//!
//! Invariant: a page needs 16 bytes per subject that may still change, whatever the length of its id.

use super::{Page, PageKind};
use crate::app::Session;
use crate::app::state::session::index::Key;

/// A page that is only on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::app) struct Unloaded {
    /// The number of its first event.
    pub begin: i64,
    pub weight: usize,
    pub kind: PageKind,
    /// The subjects in it, by hash, with their turns.
    things: Box<[(u64, u32)]>,
}

impl Unloaded {
    /// A page that starts at this event, and the subjects in it.
    pub fn new(begin: i64, page: &Page, mut things: Vec<(u64, u32)>) -> Self {
        things.sort_unstable();
        Self { begin, weight: page.weight, kind: page.kind, things: things.into_boxed_slice() }
    }

    /// The turn of a subject in this page; the last one if several have the same id.
    fn turn_of(&self, hash: u64) -> Option<u32> {
        let end = self.things.partition_point(|(other, _)| *other <= hash);
        self.things.get(end.checked_sub(1)?).filter(|(other, _)| *other == hash).map(|(_, turn)| *turn)
    }
}

/// The turn of a subject that is only on disk, and the event number after its page.
pub(in crate::app) fn find(session: &Session, key: &Key<'_>) -> Option<(u32, i64)> {
    let mut behind = session.pages.book.earlier.as_ref().map(|earlier| earlier.before)?;
    let hash = key.hash();
    for page in session.pages.book.unloaded.iter().rev() {
        if let Some(turn) = page.turn_of(hash) {
            return Some((turn, behind));
        }
        behind = page.begin;
    }
    None
}
