//! Processes, their groups and sessions, and how they end.

use std::fmt;

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::signals;
use crate::model::ExitInfo;

/// The id of a process, or of the group or session that it leads.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessId(Pid);

impl ProcessId {
    /// `None` for 0 and ids out of range.
    pub fn of(id: u32) -> Option<Self> {
        i32::try_from(id).ok().and_then(Pid::from_raw).map(Self)
    }

    fn own() -> Self {
        Self(rustix::process::getpid())
    }

    pub fn number(self) -> u32 {
        self.0.as_raw_nonzero().get().cast_unsigned()
    }
}

impl fmt::Debug for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessId({})", self.number())
    }
}

/// How a process is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Terminate,
    /// Lets a stopped process run again. It handles other signals only then.
    Continue,
    Kill,
}

impl Ending {
    fn signal(self) -> Signal {
        match self {
            Self::Terminate => Signal::TERM,
            Self::Continue => Signal::CONT,
            Self::Kill => Signal::KILL,
        }
    }
}

/// Makes the program of a command the leader of a process group.
pub fn in_own_group(command: &mut Command) {
    command.process_group(0);
}

/// Runs the program of a command in this process. Returns only with an error.
pub fn replace_with(command: &mut Command) -> std::io::Error {
    command.exec()
}

pub fn exit_info(status: ExitStatus) -> ExitInfo {
    ExitInfo { code: status.code(), signal: status.signal().map(signals::name) }
}

/// Signals a process group; a missing group is not an error.
pub fn end_group(leader: ProcessId, how: Ending) {
    let _ = rustix::process::kill_process_group(leader.0, how.signal());
}

/// Whether a process group has a process, which may be one that was not reaped.
pub fn has_group(leader: ProcessId) -> bool {
    rustix::process::test_kill_process_group(leader.0).is_ok()
}

/// Signals a process; a missing process is not an error.
pub fn end(process: ProcessId, how: Ending) {
    let _ = rustix::process::kill_process(process.0, how.signal());
}

/// Signals a process if it still belongs to a session.
pub fn end_member(session: ProcessId, process: ProcessId, how: Ending) {
    let is_member = read_stat(process)
        .map_or_else(|| is_of_session(process, session), |stat| stat.session == Some(session));
    if is_member {
        end(process, how);
    }
}

/// Whether a process belongs to a session. Unlike [`living`], this needs no `/proc`.
pub fn is_of_session(process: ProcessId, session: ProcessId) -> bool {
    rustix::process::getsid(Some(process.0)) == Ok(session.0)
}

/// Waits until a child exits, without reaping it, so that its process, group and session ids are not reused until
/// [`reap`].
pub fn wait_unreaped(child: ProcessId) -> Option<ExitInfo> {
    loop {
        match rustix::process::waitid(WaitId::Pid(child.0), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => {
                let signal = status.terminating_signal().map(signals::name);
                return Some(ExitInfo { code: status.exit_status(), signal });
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Reaps a child that has exited; its id may be reused afterwards.
pub fn reap(child: ProcessId) {
    let _ = rustix::process::waitid(WaitId::Pid(child.0), WaitIdOptions::EXITED);
}

/// A running process.
#[derive(Debug, Clone, Copy)]
pub struct Living {
    pub id: ProcessId,
    pub group: Option<ProcessId>,
    /// `None`: the leader is outside of this container, where Linux writes 0.
    pub session: Option<ProcessId>,
}

/// All running processes; `None`: no `/proc`.
pub fn living() -> Option<Vec<Living>> {
    read_stat(ProcessId::own())?;
    let entries = std::fs::read_dir("/proc").ok()?;
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let living = ids.filter_map(ProcessId::of).filter_map(|id| {
        let Stat { group, session, .. } = read_stat(id)?;
        Some(Living { id, group, session })
    });
    Some(living.collect())
}

/// The session of parlor. Not `getsid`, which panics on the 0 that Linux returns when the session's leader lives outside
/// this container.
pub fn own_session() -> Option<ProcessId> {
    read_stat(ProcessId::own())?.session
}

/// Whether a process was started with this `NAME=VALUE` in its environment; `false` if unknown.
pub fn has_variable(process: ProcessId, variable: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", process.number())).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
}

/// Start time of a running process in clock ticks since boot, which identifies it together with its id. `None`: no
/// `/proc`, or no such process.
pub fn birth(process: ProcessId) -> Option<u64> {
    read_stat(process).map(|stat| stat.birth)
}

/// A process, told by its start time from a later one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    id: ProcessId,
    birth: u64,
}

/// The processes that are running, so that they are recognized later; `None`: no `/proc`.
pub fn identify(processes: &[ProcessId]) -> Option<Vec<Process>> {
    birth(ProcessId::own())?;
    Some(processes.iter().filter_map(|id| Some(Process { id: *id, birth: birth(*id)? })).collect())
}

/// Fields of `/proc/PID/stat` of a running process.
struct Stat {
    group: Option<ProcessId>,
    session: Option<ProcessId>,
    birth: u64,
}

/// Reads `/proc/PID/stat`; `None`: no `/proc`, or no such process runs.
fn read_stat(process: ProcessId) -> Option<Stat> {
    let stat = std::fs::read(format!("/proc/{}/stat", process.number())).ok()?;
    // "pid (name) state parent group session …", where the name can contain any character.
    let rest = String::from_utf8_lossy(stat.get(memchr::memrchr(b')', &stat)? + 1..)?).into_owned();
    let mut fields = rest.split_ascii_whitespace();
    let is_alive = !matches!(fields.next()?, "Z" | "X");
    let group = ProcessId::of(fields.nth(1)?.parse().ok()?);
    let session = ProcessId::of(fields.next()?.parse().ok()?);
    // Source: proc(5): `starttime` is field 22, and the session is field 6.
    let birth = fields.nth(15)?.parse().ok()?;
    is_alive.then_some(Stat { group, session, birth })
}

/// How often a group is checked for processes.
const POLL: Duration = Duration::from_millis(20);

/// Groups that may have running processes, for an exit of parlor without drops.
static GROUPS: Mutex<Vec<ProcessId>> = Mutex::new(Vec::new());

fn groups() -> MutexGuard<'static, Vec<ProcessId>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills the processes of all groups.
pub fn kill_groups() {
    for id in groups().iter() {
        end_group(*id, Ending::Kill);
    }
}

/// The process group of an agent: signalled only while it can exist; dropping this kills its remaining processes.
#[derive(Debug)]
pub struct Group {
    id: Option<ProcessId>,
}

impl Group {
    pub fn of(pid: Option<u32>) -> Self {
        let id = pid.and_then(ProcessId::of);
        groups().extend(id);
        Self { id }
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

    pub fn end(&self, how: Ending) {
        if let Some(id) = self.id {
            end_group(id, how);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end(Ending::Kill);
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_process_is_found_with_its_start_time() {
        let Some(living) = living() else { return };
        let own = living.iter().find(|process| process.id == ProcessId::own()).unwrap();
        assert_eq!(own.session, own_session());
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let after_name = stat.rsplit_once(')').unwrap().1;
        assert_eq!(after_name.split_whitespace().nth(19).unwrap().parse().ok(), birth(own.id));
        assert_eq!(birth(ProcessId::of(u32::MAX >> 1).unwrap()), None);
    }

    #[test]
    fn ids_out_of_range_are_none() {
        assert_eq!([0, u32::MAX].map(ProcessId::of), [None, None]);
    }
}
