//! Ends agents and commands that outlived their parlor.
//!
//! Ends the recorded process with its group; the rest of the group if that process has ended (most agents end with
//! their pipe, but not all of their child processes); and the sessions that commands lead.
//! Invariants: only a process that certainly belongs to the dead parlor is ended. The agent is identified by its id
//! and start time, other processes by their group and the parlor's id in their environment, commands by the mark of
//! the run there. A process that left its session (a daemon) keeps running, as after a normal exit. If the system
//! does not provide this information, nothing is ended.

use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::program::PARLOR_PID;
use crate::services::unix;

/// How long an agent may take to exit before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// Processes that a dead parlor may have left behind.
#[derive(Debug, Clone, Copy)]
struct Orphan {
    leader: Pid,
    pid: u32,
    born: u64,
    parlor: Option<u32>,
}

/// Ends an agent of a dead parlor and its group; processes that ignore TERM are killed in the background.
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

/// Ends the commands of a dead parlor; those that ignore TERM are killed in the background.
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

/// Signals the remaining processes; returns whether there are any.
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
    /// Signals the remaining processes; returns whether there are any.
    fn signal(&self, signal: Signal) -> bool {
        if unix::birth(self.pid) == Some(self.born) {
            unix::signal_group(self.leader, signal);
            return true;
        }
        // The group may have ended and its id may be reused, so the origin of each process is checked.
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
