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

use crate::host::os::process::{self, Ending, ProcessId};
use crate::host::process::session_members;
use crate::program::{PARLOR_COMMAND, PARLOR_PID, PARLOR_RUN};

/// How long an agent may take to exit before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// Processes that a dead parlor may have left behind.
#[derive(Debug, Clone, Copy)]
struct Orphan {
    leader: ProcessId,
    born: u64,
    parlor: Option<u32>,
}

/// Ends an agent of a dead parlor and its group; processes that ignore TERM are killed in the background.
pub(super) fn end(pid: u32, born: u64, parlor: Option<u32>) {
    let Some(leader) = ProcessId::of(pid) else { return };
    let orphan = Orphan { leader, born, parlor };
    if !orphan.signal(Ending::Terminate) {
        return;
    }
    let _ = thread::Builder::new().name("orphan".to_owned()).spawn(move || {
        thread::sleep(GRACE);
        orphan.signal(Ending::Kill);
    });
}

/// Ends the commands of a dead parlor; those that ignore TERM are killed in the background.
pub(super) fn end_commands(run: &str) {
    if !signal_commands(run, Ending::Terminate) {
        return;
    }
    // A stopped process handles a signal only once it is continued.
    signal_commands(run, Ending::Continue);
    let run = run.to_owned();
    let _ = thread::Builder::new().name("orphan".to_owned()).spawn(move || {
        thread::sleep(GRACE);
        signal_commands(&run, Ending::Kill);
    });
}

/// Signals the remaining processes; returns whether there are any.
fn signal_commands(run: &str, how: Ending) -> bool {
    let sessions = sessions_of_run(run);
    for session in &sessions {
        for member in session_members(*session).into_iter().chain([*session]) {
            process::end_member(*session, member, how);
        }
    }
    !sessions.is_empty()
}

/// The sessions of commands of a run of parlor that still have a process: one whose environment has the mark of the run
/// and the id of its session. Empty without `/proc`.
fn sessions_of_run(mark: &str) -> Vec<ProcessId> {
    let own = process::own_session();
    let mut sessions: Vec<ProcessId> = Vec::new();
    for one in process::living().unwrap_or_default() {
        let Some(session) = one.session.filter(|session| Some(*session) != own) else { continue };
        let command = format!("{PARLOR_COMMAND}={}", session.number());
        let is_of_run = process::has_variable(one.id, &format!("{PARLOR_RUN}={mark}"));
        if is_of_run && process::has_variable(one.id, &command) && !sessions.contains(&session) {
            sessions.push(session);
        }
    }
    sessions
}

impl Orphan {
    /// Signals the remaining processes; returns whether there are any.
    fn signal(&self, how: Ending) -> bool {
        if process::birth(self.leader) == Some(self.born) {
            process::end_group(self.leader, how);
            return true;
        }
        // The group may have ended and its id may be reused, so the origin of each process is checked.
        let Some(parlor) = self.parlor else { return false };
        let mark = format!("{PARLOR_PID}={parlor}");
        let mut left = process::living().unwrap_or_default();
        left.retain(|one| one.group == Some(self.leader) && process::has_variable(one.id, &mark));
        for one in &left {
            process::end(one.id, how);
        }
        !left.is_empty()
    }
}
