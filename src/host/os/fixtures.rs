//! Files for tests that only some systems have.

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Child;

use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::process::ProcessId;

/// Creates a symbolic link.
pub fn link(target: impl AsRef<Path>, path: impl AsRef<Path>) {
    std::os::unix::fs::symlink(target, path).unwrap();
}

/// Creates a named pipe.
pub fn pipe(path: impl AsRef<Path>) {
    rustix::fs::mknodat(CWD, path.as_ref(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Opens a named pipe for reading, without waiting for a writer.
pub fn open_pipe(path: &Path) -> File {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap()
}

/// The permission bits of a file or folder.
pub fn mode(path: impl AsRef<Path>) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

pub fn set_mode(path: impl AsRef<Path>, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Exchanges two names at once.
pub fn exchange(one: &Path, other: &Path) {
    rustix::fs::renameat_with(CWD, one, CWD, other, rustix::fs::RenameFlags::EXCHANGE).unwrap();
}

/// A file with this content, to which nothing can be appended.
#[cfg(target_os = "linux")]
pub fn file_that_cannot_grow(content: &[u8]) -> File {
    use rustix::fs::{MemfdFlags, SealFlags};
    let mut file = File::from(rustix::fs::memfd_create("full", MemfdFlags::ALLOW_SEALING).unwrap());
    std::io::Write::write_all(&mut file, content).unwrap();
    rustix::fs::fcntl_add_seals(&file, SealFlags::GROW).unwrap();
    file
}

/// Limits the size of the files that this process writes, as a quota does; `None`: no limit.
pub fn limit_file_size(bytes: Option<u64>) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

/// Whether a process exists, which may be one that was not reaped.
pub fn exists(process: ProcessId) -> bool {
    let id = rustix::process::Pid::from_raw(process.number().cast_signed()).unwrap();
    rustix::process::test_kill_process(id).is_ok()
}

/// Whether a child was stopped (job control), or ended; `None`: it is running.
pub fn has_stopped(child: &Child) -> Option<bool> {
    use rustix::process::{Pid, WaitOptions, waitpid};
    let options = WaitOptions::UNTRACED | WaitOptions::NOHANG;
    waitpid(Some(Pid::from_child(child)), options).unwrap().map(|(_, status)| status.stopped())
}
