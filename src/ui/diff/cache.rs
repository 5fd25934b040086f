//! Computes and caches diffs: small changes immediately, large ones on another thread.
//!
//! `diffs` returns cached results or queues a job, which `runtime::compare` runs.
//!
//! Invariants: drawing a frame never blocks on comparing large texts.

use std::cell::RefCell;
use std::sync::Arc;

use crate::model::{Body, DiffChange, DiffPosition, FileDiff, Gap};
use crate::ui::session_view::ItemView;

use super::Diff;

/// Texts up to this size are compared immediately,
const QUICK_BYTES: usize = 256 * 1024;
/// if at most this number of lines is between the first and the last difference. Most edits are far smaller.
const QUICK_LINES: usize = 500;
const KEPT_MAX: usize = 16;
/// Maximum number of queued jobs. The oldest is dropped, because it is likely no longer visible; it is queued
/// again when needed.
const ORDERS_MAX: usize = 64;

pub(crate) type Diffs = Arc<Vec<Diff>>;

/// A change and its position in its file.
pub(crate) type Placed<'a> = (&'a FileDiff, Option<&'a DiffPosition>);

/// Which unchanged lines are shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shown {
    pub is_whole: bool,
    pub gaps: Vec<Gap>,
}

impl Shown {
    pub fn of(item: &ItemView) -> Self {
        Self { is_whole: item.shows_context, gaps: item.open_gaps.clone() }
    }
}

/// Identifies a list of changes without reading it: by the addresses of its texts, and the positions in the
/// file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Key {
    shown: Shown,
    texts: Vec<([usize; 4], Option<DiffPosition>)>,
}

impl Key {
    pub fn of(changes: &[Placed<'_>], shown: &Shown) -> Self {
        let position = |text: &Body| (text.address(), text.len());
        let of = |(change, at): &Placed<'_>| {
            let (a, b) = match &change.change {
                DiffChange::Texts { old, new } => (old.as_ref().map_or((0, 0), position), position(new)),
                DiffChange::Patch(text) => (position(text), (0, 0)),
            };
            ([a.0, a.1, b.0, b.1], at.cloned())
        };
        Self { shown: shown.clone(), texts: changes.iter().map(of).collect() }
    }
}

/// A queued job. It shares the texts, so that their addresses remain valid.
#[derive(Debug, Clone)]
pub struct Wanted {
    key: Key,
    changes: Vec<(FileDiff, Option<DiffPosition>)>,
}

impl Wanted {
    #[must_use]
    pub fn compare(self) -> Compared {
        let changes: Vec<Placed<'_>> =
            self.changes.iter().map(|(change, position)| (change, position.as_ref())).collect();
        let diffs = compute(&changes, &self.key.shown);
        Compared { wanted: self, diffs }
    }
}

/// The result of a job.
#[derive(Debug)]
pub struct Compared {
    wanted: Wanted,
    diffs: Vec<Diff>,
}

#[derive(Default)]
struct DiffCache {
    /// Recently used diffs, latest last. A cached diff holds the texts of its key, so that their addresses
    /// are not reused.
    saved: Vec<(Key, Diffs)>,
    orders: Vec<Wanted>,
    taken: Option<Key>,
}

thread_local! {
    static CACHE: RefCell<DiffCache> = RefCell::default();
}

/// The diffs of changes; `None` while they are computed, to be requested again in a later frame.
pub(crate) fn diffs(changes: &[Placed<'_>], shown: &Shown) -> Option<Diffs> {
    find(changes, shown, changes.iter().all(|(change, _)| is_quick(change)))
}

/// Like [`diffs`], but never computes them immediately.
pub(crate) fn diffs_later(changes: &[Placed<'_>], shown: &Shown) -> Option<Diffs> {
    find(changes, shown, false)
}

/// Computes diffs immediately, for callers that cannot retry. May be slow.
pub(crate) fn compute_now(changes: &[Placed<'_>], shown: &Shown) {
    find(changes, shown, true);
}

fn find(changes: &[Placed<'_>], shown: &Shown, at_once: bool) -> Option<Diffs> {
    let key = Key::of(changes, shown);
    CACHE.with_borrow_mut(|cache| {
        if let Some(at) = cache.saved.iter().position(|(known, _)| *known == key) {
            let found = cache.saved.remove(at);
            let diffs = Arc::clone(&found.1);
            cache.saved.push(found);
            return Some(diffs);
        }
        if at_once {
            let diffs = Arc::new(compute(changes, shown));
            cache.keep(key, Arc::clone(&diffs));
            return Some(diffs);
        }
        let is_known =
            cache.taken.as_ref() == Some(&key) || cache.orders.iter().any(|order| order.key == key);
        if !is_known {
            if cache.orders.len() >= ORDERS_MAX {
                cache.orders.remove(0);
            }
            let changes =
                changes.iter().map(|(change, position)| ((*change).clone(), position.cloned())).collect();
            cache.orders.push(Wanted { key, changes });
        }
        None
    })
}

/// The next job, most recently requested first; `None` while another job is running.
pub fn take_wanted() -> Option<Wanted> {
    CACHE.with_borrow_mut(|cache| {
        if cache.taken.is_some() {
            return None;
        }
        let wanted = cache.orders.pop()?;
        cache.taken = Some(wanted.key.clone());
        Some(wanted)
    })
}

/// Stores the result of a job.
pub fn put(compared: Compared) {
    CACHE.with_borrow_mut(|cache| {
        cache.taken = None;
        cache.keep(compared.wanted.key, Arc::new(compared.diffs));
    });
}

/// Cancels the running job, whose result was lost.
pub fn give_up() {
    CACHE.with_borrow_mut(|cache| cache.taken = None);
}

impl DiffCache {
    fn keep(&mut self, key: Key, diffs: Diffs) {
        if self.saved.len() >= KEPT_MAX {
            self.saved.remove(0);
        }
        self.saved.push((key, diffs));
    }
}

fn compute(changes: &[Placed<'_>], shown: &Shown) -> Vec<Diff> {
    let mut out: Vec<Diff> = Vec::new();
    for (change, position) in changes {
        let index = u32::try_from(out.len()).unwrap_or(u32::MAX);
        let of_this = shown.gaps.iter().filter(|gap| gap.change == index);
        let open: Vec<u32> = of_this.map(|gap| gap.line).collect();
        out.extend(if shown.is_whole {
            Diff::of_whole(change, *position)
        } else {
            Diff::of_open(change, *position, &open)
        });
    }
    out
}

/// Whether a change can be compared without a noticeable delay.
fn is_quick(change: &FileDiff) -> bool {
    let (old, new) = match &change.change {
        // A patch is only parsed.
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

/// Runs all queued jobs.
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
        let change = DiffChange::Texts { old: Some(old.into()), new: new.into() };
        FileDiff { path: "a.txt".into(), change }
    }

    fn lines(word: &str, count: usize) -> String {
        (0..count).map(|at| format!("{word} {at}\n")).collect::<Vec<_>>().concat()
    }

    fn of(change: &FileDiff) -> Option<Diffs> {
        diffs(&[(change, None)], &Shown::default())
    }

    #[test]
    fn small_edits_of_long_files_are_compared_immediately() {
        let old = lines("line", 10_000);
        let edit = change(&old, &old.replace("line 5000\n", "line five thousand\nand one more\n"));
        let found = of(&edit).unwrap();
        assert_eq!((found[0].added, found[0].removed), (2, 1));
        assert!(Arc::ptr_eq(&found, &of(&edit).unwrap()), "the result is cached");
        assert!(take_wanted().is_none());
    }

    #[test]
    fn large_changes_are_queued_once() {
        let large = change(&lines("old", 10_000), &lines("new", 10_000));
        assert!(of(&large).is_none());
        assert!(of(&large).is_none());
        let wanted = take_wanted().unwrap();
        assert!(of(&large).is_none(), "the job is running");
        assert!(take_wanted().is_none(), "one at a time");
        put(wanted.compare());
        assert_eq!(of(&large).unwrap()[0].added, 10_000);
        assert_eq!(work_off(), 0);
    }

    #[test]
    fn latest_job_runs_first_and_lost_jobs_are_queued_again() {
        let edits: Vec<FileDiff> =
            (0..=ORDERS_MAX).map(|at| change(&lines("old", 600 + at), &lines("new", 600))).collect();
        for edit in &edits {
            assert!(of(edit).is_none());
        }
        let wanted = take_wanted().unwrap();
        assert_eq!(wanted.changes[0].0, edits[ORDERS_MAX]);
        give_up();
        assert!(of(&edits[ORDERS_MAX]).is_none());
        assert!(of(&edits[0]).is_none(), "the oldest job was dropped");
        assert_eq!(take_wanted().unwrap().changes[0].0, edits[0]);
    }

    #[test]
    fn deferred_diffs_are_never_compared_immediately() {
        let small = change("a\n", "b\n");
        assert!(diffs_later(&[(&small, None)], &Shown::default()).is_none());
        assert_eq!(work_off(), 1);
        assert!(diffs_later(&[(&small, None)], &Shown::default()).is_some());
    }
}
