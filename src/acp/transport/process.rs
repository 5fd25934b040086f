//! What is unix about agents' processes: groups, signals, the spelling of an exit.
//!
//! Duty: signal a group, read an exit status.
//! Not its duty: when to do so (`stdio`).
//! Invariant: a group is signalled only while it can exist; dropping a [`Group`] kills what is left of it.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::ExitInfo;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// How often a group is looked at while it is expected to end.
const POLL: Duration = Duration::from_millis(20);

/// The groups that may have living processes, for an end of parlor in which nothing is dropped.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn groups() -> MutexGuard<'static, BTreeSet<i32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the processes of all agents at once.
pub fn kill_all() {
    for id in groups().iter().filter_map(|id| Pid::from_raw(*id)) {
        let _ = kill_process_group(id, Signal::KILL);
    }
}

/// The processes that an agent is made of.
#[derive(Debug)]
pub struct Group {
    id: Option<Pid>,
}

impl Group {
    /// The group that a child leads, as [`crate::program`] starts it.
    pub fn of(pid: Option<u32>) -> Self {
        let id = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        groups().extend(id.map(Pid::as_raw_pid));
        Self { id }
    }

    /// Asks all to end.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends all.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Waits until none is left. Call it only when the first process was waited for: it counts else.
    pub async fn gone(&mut self) {
        while let Some(id) = self.id {
            if test_kill_process_group(id).is_err() {
                // From now on the number may belong to others.
                self.forget();
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn forget(&mut self) {
        if let Some(id) = self.id.take() {
            groups().remove(&id.as_raw_pid());
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // It fails when none is left, which is what was wanted.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        self.forget();
    }
}

/// An exit status as the model has it.
pub fn exit_info(status: ExitStatus) -> ExitInfo {
    ExitInfo { code: status.code(), signal: status.signal().map(signal_name) }
}

fn signal_name(number: i32) -> String {
    let known = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    known
        .iter()
        .find(|(signal, _)| signal.as_raw() == number)
        .map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}
