//! Locks the worktrees that sessions of this process use.
//!
//! git's lock keeps `git worktree prune` and `remove` away, but outlives a process that is killed. So a locked file beside
//! the worktree shows whether a process still uses it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::Worktrees;
use super::repo::{LOCK_REASON, Repo};
use crate::host::os::{files, private};
use crate::lock::lock;

/// The worktrees that this process has to lock, and those that it has locked.
#[derive(Debug, Clone, Default)]
pub(super) struct Locks {
    wanted: Arc<Mutex<BTreeSet<PathBuf>>>,
    held: Arc<Mutex<BTreeMap<PathBuf, File>>>,
}

impl Worktrees {
    /// Sets the worktrees to lock; [`Self::apply_locks`] does it.
    pub fn want_locks(&self, folders: BTreeSet<PathBuf>) {
        *lock(&self.locks.wanted) = folders;
    }

    /// Blocks on git.
    pub fn unlock_all(&self) {
        self.want_locks(BTreeSet::new());
        self.apply_locks();
    }

    /// Locks the wanted worktrees and unlocks the others. Blocks on git.
    pub fn apply_locks(&self) {
        let mut held = lock(&self.locks.held);
        let wanted = lock(&self.locks.wanted).clone();
        let former: Vec<PathBuf> = held.keys().filter(|folder| !wanted.contains(*folder)).cloned().collect();
        for folder in former {
            held.remove(&folder);
            // Listing them unlocks those that no process uses.
            let _ = Repo::open(self, &folder).and_then(|repo| repo.entries());
        }
        for folder in wanted.into_iter().filter(|folder| folder.is_dir()) {
            let file = private::open_lock(&lock_file(&folder)).ok().filter(|_| !held.contains_key(&folder));
            // Other processes may use the worktree too.
            let Some(file) = file.filter(|file| file.lock_shared().is_ok()) else { continue };
            let reason = format!("{LOCK_REASON}, process {}", std::process::id());
            let args = ["worktree", "lock", "--reason", &reason].map(OsStr::new);
            // It fails if another process has locked the worktree.
            let _ = Repo::open(self, &folder)
                .and_then(|repo| repo.run(args.into_iter().chain([folder.as_os_str()])));
            held.insert(folder, file);
        }
    }
}

fn lock_file(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    folder.with_file_name(name)
}

/// Whether a running parlor uses a worktree.
pub(super) fn is_held(folder: &Path) -> bool {
    let file = File::options().write(true).open(lock_file(folder));
    file.is_ok_and(|file| !files::try_lock(&file).unwrap_or(false))
}

/// Deletes the lock file of a worktree that was removed.
pub(super) fn forget(folder: &Path) {
    let _ = fs::remove_file(lock_file(folder));
}
