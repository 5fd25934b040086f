//! The process groups of agents.
//!
//! Invariant: a group is signalled only while it can exist; dropping a [`Group`] kills its remaining processes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::host::os::process::{Ending, ProcessId, end_group, has_group};

/// Polling interval while a group is expected to end.
const POLL: Duration = Duration::from_millis(20);

/// Groups that may have running processes, for an exit of parlor without drops.
static GROUPS: Mutex<Vec<ProcessId>> = Mutex::new(Vec::new());

fn groups() -> MutexGuard<'static, Vec<ProcessId>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn kill_all() {
    for id in groups().iter() {
        end_group(*id, Ending::Kill);
    }
}

#[derive(Debug)]
pub struct Group {
    id: Option<ProcessId>,
}

impl Group {
    /// The group that a child leads, as started by [`crate::program`].
    pub fn of(pid: Option<u32>) -> Self {
        let id = pid.and_then(ProcessId::of);
        groups().extend(id);
        Self { id }
    }

    pub fn terminate(&self) {
        self.end(Ending::Terminate);
    }

    pub fn kill(&self) {
        self.end(Ending::Kill);
    }

    /// Waits until no process is left. The first process must have been reaped.
    pub async fn gone(&mut self) {
        while let Some(id) = self.id {
            if !has_group(id) {
                // From now on the group id may be reused.
                self.forget();
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn forget(&mut self) {
        if let Some(id) = self.id.take() {
            groups().retain(|known| *known != id);
        }
    }

    fn end(&self, how: Ending) {
        if let Some(id) = self.id {
            end_group(id, how);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        self.forget();
    }
}
