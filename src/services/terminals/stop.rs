//! Ends commands with all of their processes.
//!
//! A command leads its own session. Its process group is signalled, and every other process of the session, because
//! shells with job control use separate groups. The leader is not reaped while it can be signalled (see `live`), so
//! its id is never reused.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::live::Live;
use crate::services::unix;

/// Polling interval while processes are ending.
const POLL: Duration = Duration::from_millis(10);

/// Sends TERM, and KILL to remaining processes after `grace`. Blocks until then, or until all have ended.
pub(super) fn kill(lives: &[Arc<Live>], grace: Duration) {
    for live in lives {
        signal(live, Signal::TERM);
        // A stopped process handles a signal only once it is continued.
        signal(live, Signal::CONT);
    }
    let deadline = Instant::now() + grace;
    while lives.iter().any(|live| is_anything_alive(live)) {
        if Instant::now() >= deadline {
            for live in lives {
                signal(live, Signal::KILL);
            }
            return;
        }
        thread::sleep(POLL);
    }
}

/// Whether the command or one of its child processes is running.
pub(super) fn is_anything_alive(live: &Live) -> bool {
    live.is_running() || !live.while_unreaped(unix::session_members).unwrap_or_default().is_empty()
}

fn signal(live: &Live, signal: Signal) {
    live.while_unreaped(|leader| {
        unix::signal_group(leader, signal);
        for member in unix::session_members(leader) {
            unix::signal_member(leader, member, signal);
        }
    });
}
