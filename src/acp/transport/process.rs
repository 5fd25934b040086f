//! Process groups, signals and exit codes of agents on Unix.
//!
//! Invariant: a group is signalled only while it can exist; dropping a [`Group`] kills its remaining processes.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::ExitInfo;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// Polling interval while a group is expected to end.
const POLL: Duration = Duration::from_millis(20);

/// Groups that may have running processes, for an exit of parlor without drops.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn groups() -> MutexGuard<'static, BTreeSet<i32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn kill_all() {
    for id in groups().iter().filter_map(|id| Pid::from_raw(*id)) {
        let _ = kill_process_group(id, Signal::KILL);
    }
}

#[derive(Debug)]
pub struct Group {
    id: Option<Pid>,
}

impl Group {
    /// The group that a child leads, as started by [`crate::program`].
    pub fn of(pid: Option<u32>) -> Self {
        let id = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        groups().extend(id.map(Pid::as_raw_pid));
        Self { id }
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Waits until no process is left. The first process must have been reaped.
    pub async fn gone(&mut self) {
        while let Some(id) = self.id {
            if test_kill_process_group(id).is_err() {
                // From now on the group id may be reused.
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
            // Fails if no process is left, which is the goal.
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

pub fn exit_info(status: ExitStatus) -> ExitInfo {
    ExitInfo { code: status.code(), signal: status.signal().map(crate::program::signal_name) }
}
