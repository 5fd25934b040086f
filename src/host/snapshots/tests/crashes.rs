//! Ends a restore at a chosen change, as a crash would.

use std::cell::Cell;
use std::io;

thread_local! {
    /// Number of changes until the crash; `None`: there is none.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    /// Whether only one change fails.
    static ONCE: Cell<bool> = const { Cell::new(false) };
}

/// This change fails, and those after it do not.
pub(in crate::host::snapshots) fn fail_once_after(changes: u32) {
    crash_after(Some(changes));
    ONCE.set(true);
}

/// After this number of changes, nothing changes the disk until the next call.
pub(in crate::host::snapshots) fn crash_after(changes: Option<u32>) {
    LEFT.set(changes);
}

pub(in crate::host::snapshots) fn has_crashed() -> bool {
    LEFT.get() == Some(0)
}

pub(in crate::host::snapshots) fn step() -> io::Result<()> {
    match LEFT.get() {
        None => Ok(()),
        Some(0) => Err(io::Error::other("crashed")),
        Some(left) => {
            LEFT.set((left > 1 || !ONCE.replace(false)).then_some(left - 1));
            if left == 1 { Err(io::Error::other("crashed")) } else { Ok(()) }
        }
    }
}
