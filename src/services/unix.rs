//! Unix-only calls of the services: file modes and times, locks, process groups and signals.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use cap_std::fs::{Dir, Metadata, MetadataExt as _};
use rustix::fs::{FlockOperation, Gid, OFlags, Uid};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::model::ExitInfo;
use crate::program::{PARLOR_COMMAND, PARLOR_RUN};

/// Metadata that detects whether a file was replaced or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    size_bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

pub(super) fn stamp(meta: &Metadata) -> FileStamp {
    FileStamp {
        device: meta.dev(),
        inode: meta.ino(),
        size_bytes: meta.size(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
    }
}

/// The device and inode of a file or folder, which do not depend on its name.
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((std::os::unix::fs::MetadataExt::dev(&meta), std::os::unix::fs::MetadataExt::ino(&meta)))
}

/// Creation time of a file or folder in Unix microseconds, if the file system has it. Inodes can be reused.
pub(super) fn made_us(path: &Path) -> Option<i64> {
    let made = std::fs::metadata(path).ok()?.created().ok()?;
    i64::try_from(made.duration_since(std::time::UNIX_EPOCH).ok()?.as_micros()).ok()
}

/// Opens a folder in another one. Links are not followed.
pub(super) fn open_folder(parent: &Dir, name: &OsStr) -> io::Result<Dir> {
    // Folders above a file need not be readable.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let access = OFlags::PATH;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let access = OFlags::RDONLY;
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(parent, name, flags, rustix::fs::Mode::empty())?;
    Ok(Dir::from_std_file(File::from(folder)))
}

/// Opens a file in a folder, without blocking on pipes. Links are not followed.
pub(super) fn open_file(parent: &Dir, name: &OsStr, writes: bool) -> io::Result<cap_std::fs::File> {
    let access = if writes { OFlags::WRONLY } else { OFlags::RDONLY };
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, name, flags, rustix::fs::Mode::empty())?;
    Ok(cap_std::fs::File::from_std(File::from(file)))
}

/// Whether an error means that a link was not followed.
pub(super) fn is_link_error(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Makes `open` return immediately for a pipe without a writer.
const NEVER_WAIT: i32 = OFlags::NONBLOCK.bits().cast_signed();

/// Opens a file for reading, without blocking on pipes.
pub(super) fn open_at_once(path: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new().read(true).custom_flags(NEVER_WAIT).open(path)
}

/// Opens a file below a folder for reading, without blocking. Links out of the folder are not followed.
pub(super) fn open_at_once_in(folder: &cap_std::fs::Dir, path: &Path) -> io::Result<cap_std::fs::File> {
    let mut options = cap_std::fs::OpenOptions::new();
    cap_std::fs::OpenOptionsExt::custom_flags(options.read(true), NEVER_WAIT);
    folder.open_with(path, &options)
}

/// Sets the owner and group of a new file to those of the old one. `false`: not permitted.
pub(super) fn keep_owner(file: &cap_std::fs::File, old: &Metadata) -> bool {
    let Ok(new) = file.metadata() else { return false };
    let uid = (new.uid() != old.uid()).then(|| Uid::from_raw(old.uid()));
    let gid = (new.gid() != old.gid()).then(|| Gid::from_raw(old.gid()));
    (uid.is_none() && gid.is_none()) || rustix::fs::fchown(file, uid, gid).is_ok()
}

/// The offset from which a sparse file has data, at or after this one; `None`: there is no more. On other systems each
/// offset is data.
pub(super) fn next_data(file: &cap_std::fs::File, offset: u64) -> Option<u64> {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(data) => return Some(data.max(offset)),
        Err(rustix::io::Errno::NXIO) => return None,
        Err(_) => {}
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    let _ = file;
    Some(offset)
}

/// Flushes the entries of a folder to the disk, if the file system supports it.
pub(super) fn sync_folder(folder: &Dir) {
    let _ = rustix::fs::openat(folder, ".", OFlags::RDONLY | OFlags::CLOEXEC, rustix::fs::Mode::empty())
        .and_then(rustix::fs::fsync);
}

/// Tries to lock a file; the lock ends when the file is closed. `false`: another process holds it.
pub(super) fn try_lock(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Converts a process id; `None` for 0 and ids out of range.
pub(super) fn process_id(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

/// Signals a process group; a missing group is not an error.
pub(super) fn signal_group(leader: Pid, signal: Signal) {
    let _ = rustix::process::kill_process_group(leader, signal);
}

/// Signals a process if it still belongs to a session.
pub(super) fn signal_member(session: Pid, process: Pid, signal: Signal) {
    let is_member = read_stat(process).map_or_else(
        || rustix::process::getsid(Some(process)) == Ok(session),
        |stat| stat.session == Some(session),
    );
    if is_member {
        let _ = rustix::process::kill_process(process, signal);
    }
}

/// Waits until a child exits, without reaping it, so that its process, group and session ids are not reused until
/// [`reap`].
pub(super) fn wait_unreaped(child: Pid) -> Option<ExitInfo> {
    loop {
        match rustix::process::waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => {
                let signal = status.terminating_signal().map(crate::program::signal_name);
                return Some(ExitInfo { code: status.exit_status(), signal });
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Reaps a child that has exited; its id may be reused afterwards.
pub(super) fn reap(child: Pid) {
    let _ = rustix::process::waitid(WaitId::Pid(child), WaitIdOptions::EXITED);
}

/// The running processes of a session except its leader.
pub(super) fn session_members(session: Pid) -> Vec<Pid> {
    if read_stat(rustix::process::getpid()).is_none() {
        return members_by_ps(session);
    }
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(process_id))
        .filter(|process| *process != session)
        .filter(|process| {
            read_stat(*process).is_some_and(|stat| stat.is_alive && stat.session == Some(session))
        })
        .collect()
}

/// The running processes of a group; empty without `/proc`.
pub(super) fn group_members(group: Pid) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(process_id)
        .filter(|process| read_stat(*process).is_some_and(|stat| stat.is_alive && stat.group == Some(group)))
        .collect()
}

/// Whether a process was started with this `NAME=VALUE` in its environment; `false` if unknown.
pub(super) fn has_variable(process: Pid, variable: &str) -> bool {
    let environment =
        std::fs::read(format!("/proc/{}/environ", process.as_raw_nonzero())).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
}

/// The sessions of commands of a run of parlor that still have a process: one whose environment has the mark of the run
/// and the id of its session. Empty without `/proc`.
pub(super) fn sessions_of_run(mark: &str) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // Not `getsid`, which panics on the 0 that Linux returns when the session's leader lives outside this container.
    let own = read_stat(rustix::process::getpid()).and_then(|stat| stat.session);
    let mut sessions: Vec<Pid> = ids
        .filter_map(process_id)
        .filter_map(|process| {
            let stat = read_stat(process).filter(|stat| stat.is_alive)?;
            let session = stat.session.filter(|session| Some(*session) != own)?;
            let is_of_run = has_variable(process, &format!("{PARLOR_RUN}={mark}"));
            let command = format!("{PARLOR_COMMAND}={}", session.as_raw_nonzero());
            (is_of_run && has_variable(process, &command)).then_some(session)
        })
        .collect();
    sessions.sort_unstable_by_key(|session| session.as_raw_nonzero());
    sessions.dedup();
    sessions
}

/// Signals a process; a missing process is not an error.
pub(super) fn signal_process(process: Pid, signal: Signal) {
    let _ = rustix::process::kill_process(process, signal);
}

/// Fields of `/proc/PID/stat`.
struct Stat {
    group: Option<Pid>,
    /// `None`: the leader is outside of this container, where Linux writes 0.
    session: Option<Pid>,
    is_alive: bool,
}

/// Reads `/proc/PID/stat`; `None`: no `/proc`, or no such process.
fn read_stat(process: Pid) -> Option<Stat> {
    let stat = std::fs::read(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    // "pid (name) state parent group session …", where the name can contain any character.
    let rest = String::from_utf8_lossy(stat.get(memchr::memrchr(b')', &stat)? + 1..)?).into_owned();
    let mut fields = rest.split_ascii_whitespace();
    let is_alive = !matches!(fields.next()?, "Z" | "X");
    let group = process_id(fields.nth(1)?.parse().ok()?);
    let session = process_id(fields.next()?.parse().ok()?);
    Some(Stat { group, session, is_alive })
}

/// The members of a session on systems without `/proc`.
fn members_by_ps(session: Pid) -> Vec<Pid> {
    let listed = super::process::read_output("ps", &["-A", "-o", "pid=,state="], None);
    let Ok(listed) = listed else { return Vec::new() };
    String::from_utf8_lossy(&listed)
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .filter(|(_, state)| !state.trim_start().starts_with('Z'))
        .filter_map(|(id, _)| id.parse().ok().and_then(process_id))
        .filter(|process| *process != session && rustix::process::getsid(Some(*process)) == Ok(session))
        .collect()
}

/// A process, told by its start time from a later one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    id: Pid,
    began: u64,
}

/// The processes that are running, so that they are recognized later; `None`: no `/proc`.
pub(super) fn identify(processes: &[Pid]) -> Option<Vec<Process>> {
    let began = |process: Pid| birth(process.as_raw_nonzero().get().cast_unsigned());
    began(rustix::process::getpid())?;
    Some(processes.iter().filter_map(|id| Some(Process { id: *id, began: began(*id)? })).collect())
}

/// Start time of a running process in clock ticks since boot, which identifies it together with its id. `None`: no
/// `/proc`, or no such process.
pub(super) fn birth(process: u32) -> Option<u64> {
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    let rest = String::from_utf8_lossy(stat.get(memchr::memrchr(b')', &stat)? + 1..)?).into_owned();
    let mut fields = rest.split_ascii_whitespace();
    let is_alive = !matches!(fields.next()?, "Z" | "X");
    // Source: proc(5): `starttime` is field 22, and the state is field 3.
    let began = fields.nth(18)?.parse().ok()?;
    is_alive.then_some(began)
}

/// Restricts a terminal so that it can be opened for writing only; returns whether it can be opened. It does not become
/// parlor's controlling terminal. (Programs of a superuser can still read from it.)
pub(super) fn make_write_only(name: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let _ = std::fs::set_permissions(name, std::fs::Permissions::from_mode(0o200));
    let flags = OFlags::NOCTTY.bits().cast_signed();
    std::fs::OpenOptions::new().write(true).custom_flags(flags).open(name).is_ok()
}
