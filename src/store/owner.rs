//! Marks the sessions that are open in this process.
//!
//! The mark is a locked file that other processes can test. The lock ends with the process, however it ends; the
//! number in its name is for people.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::host::os::files;
use crate::host::os::private;
use crate::lock::lock;
use crate::program::run_mark;

/// Folder of the marks in the data folder.
const FOLDER: &str = "locks";

/// The mark of this process; valid until it is dropped.
#[derive(Debug)]
pub(super) struct Owner {
    /// `PID-RANDOM-RANDOM`, as stored with open sessions: the run's mark and a random number.
    pub token: String,
    path: PathBuf,
    lock: Mutex<File>,
}

impl Owner {
    pub fn new(root: &Path) -> io::Result<Self> {
        let token = format!("{}-{:08x}", run_mark(), super::support::random() & 0xffff_ffff);
        let path = root.join(FOLDER).join(format!("{token}.lock"));
        let lock = Mutex::new(held(&path)?);
        Ok(Self { token, path, lock })
    }

    /// Creates the mark again, if its file was removed.
    pub fn restore(&self) -> io::Result<()> {
        if !self.path.exists() {
            *lock(&self.lock) = held(&self.path)?;
        }
        Ok(())
    }
}

/// Creates and locks a file with a unique name.
fn held(path: &Path) -> io::Result<File> {
    private::make_own_folder(path.parent().unwrap_or(path))?;
    let file = private::open_lock(path)?;
    if files::try_lock(&file)? {
        Ok(file)
    } else {
        Err(io::Error::other("a lock with a unique name is held"))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether the process of a mark is running. The file of a dead one is removed.
pub(super) fn is_alive(root: &Path, token: &str) -> bool {
    // The mark is read from the store and must not contain a path.
    if token.contains(['/', '\\']) {
        return false;
    }
    let path = root.join(FOLDER).join(format!("{token}.lock"));
    // Some network file systems lock only writable files; reading suffices if nothing is writable.
    let opened = File::options().write(true).open(&path).or_else(|_| File::open(&path));
    let Ok(file) = opened else { return false };
    match files::try_lock(&file) {
        Ok(true) => {
            let _ = fs::remove_file(&path);
            false
        }
        Ok(false) => true,
        Err(_) => false,
    }
}

/// The run of parlor that created a mark; `None` for marks of older versions.
pub(super) fn run(token: &str) -> Option<&str> {
    let (run, _) = token.rsplit_once('-')?;
    run.contains('-').then_some(run)
}

/// The marks of running processes.
pub(super) fn living(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root.join(FOLDER)).into_iter().flatten().flatten();
    let tokens =
        entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".lock")?.to_owned()));
    tokens.filter(|token| is_alive(root, token)).collect()
}

pub(super) fn pid(token: &str) -> Option<u32> {
    token.split('-').next()?.parse().ok()
}
