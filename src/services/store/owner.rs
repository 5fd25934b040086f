//! Which parlor has a session open.
//!
//! Duty: a mark of this process that others can test. It is a locked file, and the lock ends with the process
//! however that ends; the number in the name is for people.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::private;
use crate::program::run_mark;
use crate::services::unix;

/// Below the data folder.
const FOLDER: &str = "locks";

/// The mark of this process; it holds as long as this lives.
#[derive(Debug)]
pub(super) struct Owner {
    /// `PID-RANDOM-RANDOM`, as it stands beside the sessions that are open here: the run's mark and a number of its
    /// own.
    pub token: String,
    path: PathBuf,
    _lock: File,
}

impl Owner {
    /// Makes the mark.
    pub fn new(root: &Path) -> io::Result<Self> {
        let folder = root.join(FOLDER);
        private::make_own_folder(&folder)?;
        let token = format!("{}-{:08x}", run_mark(), super::random() & 0xffff_ffff);
        let path = folder.join(format!("{token}.lock"));
        let file = private::open_lock(&path)?;
        if unix::try_lock(&file)? {
            Ok(Self { token, path, _lock: file })
        } else {
            Err(io::Error::other("a lock with a name of its own is taken"))
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether the process of this mark lives. What it left behind is cleared away if it does not.
pub(super) fn is_alive(root: &Path, token: &str) -> bool {
    // A token comes from the store; a path in it would lead elsewhere.
    if token.contains(['/', '\\']) {
        return false;
    }
    let path = root.join(FOLDER).join(format!("{token}.lock"));
    // Some network file systems lock only what may be written; where nothing may, it is enough to read.
    let opened = File::options().write(true).open(&path).or_else(|_| File::open(&path));
    let Ok(file) = opened else { return false };
    match unix::try_lock(&file) {
        Ok(true) => {
            let _ = fs::remove_file(&path);
            false
        }
        Ok(false) => true,
        Err(_) => false,
    }
}

/// The run of parlor that made a mark; `None` for marks of older versions.
pub(super) fn run(token: &str) -> Option<&str> {
    let (run, _) = token.rsplit_once('-')?;
    run.contains('-').then_some(run)
}

/// The process id in a mark.
pub(super) fn pid(token: &str) -> Option<u32> {
    token.split('-').next()?.parse().ok()
}
