//! Pages that are only on the disk, and what is in them: an update of that must not look like something new.
//!
//! Invariant: a page costs 16 bytes for each thing in it that may still change, however long its name is.

use super::{Page, PageKind};
use crate::app::Session;
use crate::app::state::session::index::Key;

/// A page on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::app) struct Gone {
    /// The number of its first event.
    pub begin: i64,
    pub weight: usize,
    /// How it is to be played.
    pub kind: PageKind,
    /// What is in it, by hash, with its turn.
    things: Box<[(u64, u32)]>,
}

impl Gone {
    /// A page from its first event, and the turns of what is in it.
    pub fn new(begin: i64, page: &Page, mut things: Vec<(u64, u32)>) -> Self {
        things.sort_unstable();
        Self { begin, weight: page.weight, kind: page.kind, things: things.into_boxed_slice() }
    }

    /// The turn of a thing that is in this page; the last one, if several had its name.
    fn turn_of(&self, hash: u64) -> Option<u32> {
        let end = self.things.partition_point(|(other, _)| *other <= hash);
        self.things.get(end.checked_sub(1)?).filter(|(other, _)| *other == hash).map(|(_, turn)| *turn)
    }
}

/// The turn of a thing that is on the disk only, and the number behind its page.
pub(in crate::app) fn find(session: &Session, key: &Key<'_>) -> Option<(u32, i64)> {
    let mut behind = session.pages.book.earlier.as_ref().map(|earlier| earlier.before)?;
    let hash = key.hash();
    for page in session.pages.book.gone.iter().rev() {
        if let Some(turn) = page.turn_of(hash) {
            return Some((turn, behind));
        }
        behind = page.begin;
    }
    None
}
