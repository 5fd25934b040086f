//! Where changes are compared: small ones at once, larger ones by whoever has a thread to spare.
//!
//! Duty: gives the diffs of a list of changes, keeps the last ones, holds the orders that `runtime::compare` takes.
//! Not its duty: comparing (`diff`), threads (`runtime`).
//! Invariant: while a frame is drawn nothing is compared that could be noticed.

use std::cell::RefCell;
use std::sync::Arc;

use crate::app::Item;
use crate::model::{DiffChange, DiffPlace, FileDiff, Gap};

use super::Diff;

/// Texts of no more bytes are compared at once,
const QUICK_BYTES: usize = 256 * 1024;
/// if no more lines lie between the first and the last difference. Most edits are far below both.
const QUICK_LINES: usize = 500;
/// Diffs of so many lists of changes are kept for those who ask in each frame.
const KEPT_MAX: usize = 16;
/// So many orders may wait. Older ones are for what is on the screen no more; who still wants them orders again.
const ORDERS_MAX: usize = 64;

/// Diffs that several may show.
pub(crate) type Diffs = Arc<Vec<Diff>>;

/// A change, and where it stands in its file.
pub(crate) type Placed<'a> = (&'a FileDiff, Option<&'a DiffPlace>);

/// Which unchanged lines of changes are shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shown {
    pub is_whole: bool,
    pub gaps: Vec<Gap>,
}

impl Shown {
    /// What the user wants to see of an item's changes.
    pub fn of(item: &Item) -> Self {
        Self { is_whole: item.shows_context, gaps: item.open_gaps.clone() }
    }
}

/// What tells two lists of changes apart without reading them: where their texts lie, in memory and in the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Key {
    shown: Shown,
    texts: Vec<([usize; 4], Option<DiffPlace>)>,
}

impl Key {
    /// The key of these changes in this form.
    pub fn of(changes: &[Placed<'_>], shown: &Shown) -> Self {
        let place = |text: &str| (text.as_ptr() as usize, text.len());
        let of = |(change, at): &Placed<'_>| {
            let (a, b) = match &change.change {
                DiffChange::Texts { old, new } => (old.as_deref().map_or((0, 0), place), place(new)),
                DiffChange::Patch(text) => (place(text), (0, 0)),
            };
            ([a.0, a.1, b.0, b.1], at.cloned())
        };
        Self { shown: shown.clone(), texts: changes.iter().map(of).collect() }
    }
}

/// Changes that are to be compared. It shares the texts, so that none of them can go while it waits.
#[derive(Debug, Clone)]
pub struct Wanted {
    key: Key,
    changes: Vec<(FileDiff, Option<DiffPlace>)>,
}

impl Wanted {
    /// Compares them. May take a while.
    #[must_use]
    pub fn compare(self) -> Compared {
        let changes: Vec<Placed<'_>> =
            self.changes.iter().map(|(change, place)| (change, place.as_ref())).collect();
        let diffs = compute(&changes, &self.key.shown);
        Compared { wanted: self, diffs }
    }
}

/// Changes that were compared.
#[derive(Debug)]
pub struct Compared {
    wanted: Wanted,
    diffs: Vec<Diff>,
}

#[derive(Default)]
struct DiffCache {
    /// The last ones that were asked for, the latest last. A kept diff holds the texts that its key points to, so no
    /// other text can lie at the same place.
    kept: Vec<(Key, Diffs)>,
    orders: Vec<Wanted>,
    /// What somebody compares right now.
    taken: Option<Key>,
}

thread_local! {
    static DESK: RefCell<DiffCache> = RefCell::default();
}

/// The diffs of changes. `None`: they are being compared, ask again in a later frame.
pub(crate) fn diffs(changes: &[Placed<'_>], shown: &Shown) -> Option<Diffs> {
    find(changes, shown, changes.iter().all(|(change, _)| is_quick(change)))
}

/// The same for what need not be there at once: nothing is compared now.
pub(crate) fn diffs_later(changes: &[Placed<'_>], shown: &Shown) -> Option<Diffs> {
    find(changes, shown, false)
}

/// Compares changes now, for those who cannot ask again. May take a while.
pub(crate) fn settle(changes: &[Placed<'_>], shown: &Shown) {
    find(changes, shown, true);
}

fn find(changes: &[Placed<'_>], shown: &Shown, at_once: bool) -> Option<Diffs> {
    let key = Key::of(changes, shown);
    DESK.with_borrow_mut(|desk| {
        if let Some(at) = desk.kept.iter().position(|(known, _)| *known == key) {
            let found = desk.kept.remove(at);
            let diffs = Arc::clone(&found.1);
            desk.kept.push(found);
            return Some(diffs);
        }
        if at_once {
            let diffs = Arc::new(compute(changes, shown));
            desk.keep(key, Arc::clone(&diffs));
            return Some(diffs);
        }
        let is_known = desk.taken.as_ref() == Some(&key) || desk.orders.iter().any(|order| order.key == key);
        if !is_known {
            if desk.orders.len() >= ORDERS_MAX {
                desk.orders.remove(0);
            }
            let changes = changes.iter().map(|(change, place)| ((*change).clone(), place.cloned())).collect();
            desk.orders.push(Wanted { key, changes });
        }
        None
    })
}

/// What is to be compared next: what was asked for last. `None` also while something is.
pub fn take_wanted() -> Option<Wanted> {
    DESK.with_borrow_mut(|desk| {
        if desk.taken.is_some() {
            return None;
        }
        let wanted = desk.orders.pop()?;
        desk.taken = Some(wanted.key.clone());
        Some(wanted)
    })
}

/// Changes were compared: who asks for them now gets them.
pub fn put(compared: Compared) {
    DESK.with_borrow_mut(|desk| {
        desk.taken = None;
        desk.keep(compared.wanted.key, Arc::new(compared.diffs));
    });
}

/// What was taken will never come.
pub fn give_up() {
    DESK.with_borrow_mut(|desk| desk.taken = None);
}

impl DiffCache {
    fn keep(&mut self, key: Key, diffs: Diffs) {
        if self.kept.len() >= KEPT_MAX {
            self.kept.remove(0);
        }
        self.kept.push((key, diffs));
    }
}

fn compute(changes: &[Placed<'_>], shown: &Shown) -> Vec<Diff> {
    let mut out: Vec<Diff> = Vec::new();
    for (change, place) in changes {
        let index = u32::try_from(out.len()).unwrap_or(u32::MAX);
        let of_this = shown.gaps.iter().filter(|gap| gap.change == index);
        let open: Vec<u32> = of_this.map(|gap| gap.line).collect();
        out.extend(if shown.is_whole {
            Diff::of_whole(change, *place)
        } else {
            Diff::of_open(change, *place, &open)
        });
    }
    out
}

/// Whether nobody notices that a change is compared.
fn is_quick(change: &FileDiff) -> bool {
    let (old, new) = match &change.change {
        // A patch is only read.
        DiffChange::Patch(text) => return text.len() <= QUICK_BYTES,
        DiffChange::Texts { old, new } => (old.as_deref().unwrap_or_default().as_bytes(), new.as_bytes()),
    };
    if old.len() + new.len() > QUICK_BYTES {
        return false;
    }
    if old.is_empty() || new.is_empty() {
        return true;
    }
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let lines =
        |text: &[u8]| memchr::memchr_iter(b'\n', text.get(..text.len() - tail).unwrap_or_default()).count();
    lines(old) + lines(new) <= QUICK_LINES
}

/// Compares all that was ordered.
#[cfg(test)]
pub(crate) fn work_off() -> usize {
    let mut count = 0;
    while let Some(wanted) = take_wanted() {
        put(wanted.compare());
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(old: &str, new: &str) -> FileDiff {
        let change = DiffChange::Texts { old: Some(Arc::from(old)), new: Arc::from(new) };
        FileDiff { path: "a.txt".into(), change }
    }

    fn lines(word: &str, count: usize) -> String {
        (0..count).map(|at| format!("{word} {at}\n")).collect::<Vec<_>>().concat()
    }

    fn of(change: &FileDiff) -> Option<Diffs> {
        diffs(&[(change, None)], &Shown::default())
    }

    #[test]
    fn a_small_edit_of_a_long_file_is_there_at_once() {
        let old = lines("line", 10_000);
        let edit = change(&old, &old.replace("line 5000\n", "line five thousand\nand one more\n"));
        let found = of(&edit).unwrap();
        assert_eq!((found[0].added, found[0].removed), (2, 1));
        assert!(Arc::ptr_eq(&found, &of(&edit).unwrap()), "it is not compared again");
        assert!(take_wanted().is_none());
    }

    #[test]
    fn a_large_one_is_ordered_once_and_comes_when_it_was_compared() {
        let large = change(&lines("old", 10_000), &lines("new", 10_000));
        assert!(of(&large).is_none());
        assert!(of(&large).is_none());
        let wanted = take_wanted().unwrap();
        assert!(of(&large).is_none(), "somebody is at it");
        assert!(take_wanted().is_none(), "one at a time");
        put(wanted.compare());
        assert_eq!(of(&large).unwrap()[0].added, 10_000);
        assert_eq!(work_off(), 0);
    }

    #[test]
    fn the_last_asked_is_compared_first_and_a_lost_one_is_ordered_again() {
        let edits: Vec<FileDiff> =
            (0..=ORDERS_MAX).map(|at| change(&lines("old", 600 + at), &lines("new", 600))).collect();
        for edit in &edits {
            assert!(of(edit).is_none());
        }
        let wanted = take_wanted().unwrap();
        assert_eq!(wanted.changes[0].0, edits[ORDERS_MAX]);
        give_up();
        assert!(of(&edits[ORDERS_MAX]).is_none());
        assert!(of(&edits[0]).is_none(), "it was let go");
        assert_eq!(take_wanted().unwrap().changes[0].0, edits[0]);
    }

    #[test]
    fn what_need_not_be_there_at_once_never_is() {
        let small = change("a\n", "b\n");
        assert!(diffs_later(&[(&small, None)], &Shown::default()).is_none());
        assert_eq!(work_off(), 1);
        assert!(diffs_later(&[(&small, None)], &Shown::default()).is_some());
    }
}
