//! Ends agents, and commands that parlor ran for them, that outlived their parlor.
//!
//! Duty: ends the process that was kept, with its group; and what is left of the group where that process itself has
//! ended (most agents end with their pipe, but not all that they started); and the sessions that commands lead.
//! Invariants: only a process that is for certain one of those is ended. The agent's own is told by its id and the time
//! of its start, the others by their group and by the number of their parlor in their environment, commands by the mark
//! of its run there. What left its session (a daemon) lives on, as when parlor ends in order. Where the system tells
//! none of this, nothing is ended.

use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::program::PARLOR_PID;
use crate::services::unix;

/// How long an agent may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// What a dead parlor may have left behind.
#[derive(Debug, Clone, Copy)]
struct Orphan {
    leader: Pid,
    pid: u32,
    born: u64,
    /// The dead parlor.
    parlor: Option<u32>,
}

/// Ends an agent of a dead parlor and its group. What does not end when it is asked to is killed, in the background.
pub(super) fn end(pid: u32, born: u64, parlor: Option<u32>) {
    let Some(leader) = unix::process_id(pid) else { return };
    let orphan = Orphan { leader, pid, born, parlor };
    if !orphan.signal(Signal::TERM) {
        return;
    }
    let _ = thread::Builder::new().name("orphan".to_owned()).spawn(move || {
        thread::sleep(GRACE);
        orphan.signal(Signal::KILL);
    });
}

/// Ends the commands that a dead run of parlor left behind. Those that ignore the request are killed, in the
/// background.
pub(super) fn end_commands(run: &str) {
    if !signal_commands(run, Signal::TERM) {
        return;
    }
    // A stopped process handles a signal only once it is continued.
    signal_commands(run, Signal::CONT);
    let run = run.to_owned();
    let _ = thread::Builder::new().name("orphan".to_owned()).spawn(move || {
        thread::sleep(GRACE);
        signal_commands(&run, Signal::KILL);
    });
}

/// Signals what is left. Returns whether there is something.
fn signal_commands(run: &str, signal: Signal) -> bool {
    let sessions = unix::sessions_of_run(run);
    for session in &sessions {
        for process in unix::session_members(*session).into_iter().chain([*session]) {
            unix::signal_member(*session, process, signal);
        }
    }
    !sessions.is_empty()
}

impl Orphan {
    /// Signals what is left. Returns whether there is something.
    fn signal(&self, signal: Signal) -> bool {
        if unix::birth(self.pid) == Some(self.born) {
            unix::signal_group(self.leader, signal);
            return true;
        }
        // The number of a group is no process's as long as the group lives, but it may have died meanwhile and be
        // another one now: each process is asked who began it.
        let Some(parlor) = self.parlor else { return false };
        let mark = format!("{PARLOR_PID}={parlor}");
        let left = unix::group_members(self.leader);
        let left: Vec<Pid> = left.into_iter().filter(|process| unix::has_variable(*process, &mark)).collect();
        for process in &left {
            unix::signal_process(*process, signal);
        }
        !left.is_empty()
    }
}
