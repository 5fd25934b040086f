//! Ends commands with all of their processes.
//!
//! A command leads its own process session. Its process group is signalled, and every other process of the session,
//! because shells with job control use separate groups. The leader is not reaped while it can be signalled (see `live`),
//! so its id is not reused. What a released command has left is recognized by its processes instead.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::Owner;
use super::live::Live;
use crate::host::os::process::{self, Ending, Process, ProcessId};
use crate::host::process::session_members;
use crate::program::{PARLOR_COMMAND, PARLOR_RUN, run_mark};

/// Polling interval while processes are ending.
const POLL: Duration = Duration::from_millis(10);

/// The processes of a command.
#[derive(Debug, Clone)]
pub(super) enum Processes {
    /// A command that was not reaped, and its child processes.
    Command(Arc<Live>),
    Left(Arc<Background>),
}

/// The background processes of a released command. Its leader was reaped, so another process session can get the same
/// id once they have ended.
#[derive(Debug)]
pub(super) struct Background {
    owner: Owner,
    session: ProcessId,
    known: Vec<Process>,
}

impl Background {
    /// What a command has left; `None`: its processes cannot be recognized later, so that it must not be reaped.
    pub(super) fn of(live: &Live) -> Option<Self> {
        let members = live.while_unreaped(session_members).unwrap_or_default();
        let known = if members.is_empty() { Vec::new() } else { process::identify(&members)? };
        Some(Self { owner: live.owner(), session: live.leader(), known })
    }

    #[cfg(test)]
    pub(super) fn in_session(session: ProcessId, known: Vec<Process>) -> Self {
        Self { owner: Owner::Agent(crate::model::ConnId(1)), session, known }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The processes that are still running; none if the id now belongs to another process session.
    pub(super) fn members(&self) -> Vec<ProcessId> {
        let members = session_members(self.session);
        let now = process::identify(&members).unwrap_or_default();
        let is_same = now.iter().any(|process| self.known.contains(process))
            || members.iter().any(|member| self.has_marks(*member));
        if is_same { members } else { Vec::new() }
    }

    /// Whether a process was started by the command, as its environment says.
    fn has_marks(&self, process: ProcessId) -> bool {
        let command = format!("{PARLOR_COMMAND}={}", self.session.number());
        process::has_variable(process, &command)
            && process::has_variable(process, &format!("{PARLOR_RUN}={}", run_mark()))
    }
}

impl Processes {
    pub(super) fn owner(&self) -> Owner {
        match self {
            Self::Command(live) => live.owner(),
            Self::Left(left) => left.owner,
        }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Command(one), Self::Command(other)) => Arc::ptr_eq(one, other),
            (Self::Left(one), Self::Left(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Whether the command or one of its child processes is running.
    pub(super) fn is_any_alive(&self) -> bool {
        match self {
            Self::Command(live) => {
                live.is_running() || !live.while_unreaped(session_members).unwrap_or_default().is_empty()
            }
            Self::Left(left) => !left.members().is_empty(),
        }
    }

    /// Allows the command to be reaped once it has ended.
    pub(super) fn let_reap(&self) {
        if let Self::Command(live) = self {
            live.let_reap();
        }
    }

    fn end(&self, how: Ending) {
        let tell = |session: ProcessId, members: Vec<ProcessId>| {
            for member in members {
                process::end_member(session, member, how);
            }
        };
        match self {
            Self::Command(live) => {
                live.while_unreaped(|leader| {
                    process::end_group(leader, how);
                    tell(leader, session_members(leader));
                });
            }
            Self::Left(left) => tell(left.session, left.members()),
        }
    }
}

/// Sends TERM, and KILL to remaining processes after `grace`. Blocks until then, or until all have ended.
pub(super) fn kill(processes: &[Processes], grace: Duration) {
    for processes in processes {
        processes.end(Ending::Terminate);
        // A stopped process handles a signal only once it is continued.
        processes.end(Ending::Continue);
    }
    let deadline = Instant::now() + grace;
    while processes.iter().any(Processes::is_any_alive) {
        if Instant::now() >= deadline {
            for processes in processes {
                processes.end(Ending::Kill);
            }
            return;
        }
        thread::sleep(POLL);
    }
}
