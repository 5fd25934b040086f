//! Identity, times, locks and space of files, and opening them without waiting.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use cap_std::fs::{Dir, Metadata, MetadataExt as _};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

/// Makes `open` return immediately for a pipe without a writer.
const NEVER_WAIT: i32 = OFlags::NONBLOCK.bits().cast_signed();

/// A file that is always empty.
pub const NULL_DEVICE: &str = "/dev/null";

/// Metadata that detects whether a file was replaced or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    size_bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

pub fn stamp(meta: &Metadata) -> FileStamp {
    FileStamp {
        device: meta.dev(),
        inode: meta.ino(),
        size_bytes: meta.size(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
    }
}

pub fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// The device and inode of a file or folder, which do not depend on its name.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// Time of the last change of the content: seconds and nanoseconds since 1970, as git stores it.
pub fn modified(meta: &std::fs::Metadata) -> (i64, i64) {
    (meta.mtime(), meta.mtime_nsec())
}

/// Creation time of a file or folder in Unix microseconds, if the file system has it. Inodes can be reused.
pub fn made_us(path: &Path) -> Option<i64> {
    let made = std::fs::metadata(path).ok()?.created().ok()?;
    i64::try_from(made.duration_since(std::time::UNIX_EPOCH).ok()?.as_micros()).ok()
}

/// Opens a file for reading, without blocking on pipes.
pub fn open_at_once(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(NEVER_WAIT).open(path)
}

/// Opens a file below a folder for reading, without blocking. Links out of the folder are not followed.
pub fn open_at_once_in(folder: &Dir, path: &Path) -> io::Result<cap_std::fs::File> {
    let mut options = cap_std::fs::OpenOptions::new();
    cap_std::fs::OpenOptionsExt::custom_flags(options.read(true), NEVER_WAIT);
    folder.open_with(path, &options)
}

/// Opens a pipe or a device for writing. A pipe without a reader is an error: opening it would wait for one.
pub fn open_special(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).custom_flags(NEVER_WAIT).open(path).map_err(|error| {
        match Errno::from_io_error(&error) {
            Some(Errno::NXIO) => io::Error::other("nothing reads from the pipe"),
            _ => error,
        }
    })?;
    // Once it is open, a write waits until the reader has room.
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

/// The offset from which a sparse file has data, at or after this one; `None`: there is no more. On other systems each
/// offset is data.
pub fn next_data(file: &cap_std::fs::File, offset: u64) -> Option<u64> {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(data) => return Some(data.max(offset)),
        Err(Errno::NXIO) => return None,
        Err(_) => {}
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    let _ = file;
    Some(offset)
}

/// Flushes the entries of a folder to the disk, if the file system supports it.
pub fn sync_folder(folder: &Dir) {
    let _ = rustix::fs::openat(folder, ".", OFlags::RDONLY | OFlags::CLOEXEC, rustix::fs::Mode::empty())
        .and_then(rustix::fs::fsync);
}

/// Tries to lock a file; the lock ends when the file is closed. `false`: another process holds it.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Number of bytes that can still be written in a folder.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let facts = rustix::fs::statvfs(folder)?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

/// The bytes of a path or a variable. Other programs exchange them without an encoding.
pub fn bytes(text: &OsStr) -> &[u8] {
    text.as_bytes()
}

pub fn from_bytes(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}
