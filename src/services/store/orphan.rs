//! Ends agents that outlived their parlor.
//!
//! Invariant: only a process that is for certain the one that was started is ended: its id and the time of its
//! start must be what was kept. Where the system does not tell that time, nothing is ended.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::services::unix;

/// How long an agent may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// Ends a process and its group, in the background.
pub(super) fn end(pid: u32, born: u64) {
    let Some(leader) = unix::process_id(pid) else { return };
    if unix::birth(pid) != Some(born) {
        return;
    }
    unix::signal_group(leader, Signal::TERM);
    let _ = thread::Builder::new().name("orphan".to_owned()).spawn(move || {
        thread::sleep(GRACE);
        if unix::birth(pid) == Some(born) {
            unix::signal_group(leader, Signal::KILL);
        }
    });
}
