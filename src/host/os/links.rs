//! Opening files and folders without following links.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use cap_std::fs::{Dir, Metadata, MetadataExt as _};
use rustix::fs::{Mode, OFlags};

/// Mode of new files: only the owner may read them.
const NEW_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    Read,
    Write,
    /// For reading and writing; it is created if it does not exist.
    ReadWrite,
    /// For writing; an existing file is an error.
    New,
}

/// Opens a folder in another one. Links are not followed.
pub fn open_folder(parent: &Dir, name: &OsStr) -> io::Result<Dir> {
    // Folders above a file need not be readable.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let access = OFlags::PATH;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let access = OFlags::RDONLY;
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    Ok(Dir::from_std_file(File::from(folder)))
}

/// Opens a file in a folder, without blocking on pipes. Links are not followed.
pub fn open_file(parent: &Dir, name: &OsStr, how: Open) -> io::Result<cap_std::fs::File> {
    let access = match how {
        Open::Read => OFlags::RDONLY,
        Open::Write => OFlags::WRONLY,
        Open::ReadWrite => OFlags::RDWR | OFlags::CREATE,
        Open::New => OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
    };
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, name, flags, NEW_FILE)?;
    Ok(cap_std::fs::File::from_std(File::from(file)))
}

/// Creates a file with the usual mode of new files, or of programs. An existing file is an error.
pub fn create_file(parent: &Dir, name: &OsStr, is_program: bool) -> io::Result<cap_std::fs::File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = if is_program { 0o777 } else { 0o666 };
    let file = rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(mode))?;
    Ok(cap_std::fs::File::from_std(File::from(file)))
}

/// Whether an error means that a link was not followed.
pub fn is_link_error(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Number of names (hard links) of an open file.
pub fn name_count(meta: &Metadata) -> u64 {
    meta.nlink()
}

/// Whether a regular file has other names.
pub fn has_other_names(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.nlink() > 1)
}
