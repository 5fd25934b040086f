//! Snapshots of a folder: capture, comparison and restore.
//!
//! Each folder has a private git repository in the data folder of parlor, which borrows the objects of the user's
//! repository if there is one. git runs only there, and without any configuration, attribute, filter or hook of the user
//! or the folder, so contents are exactly the bytes on the disk, and the user's repository never changes.
//!
//! A snapshot is a tree with two entries: `files`, and `omitted`, which lists what was on the disk but is not in
//! `files`. So a path that is in neither was certainly absent, and only such a path is ever deleted.
//!
//! Invariants: a snapshot is complete or an error; a restore writes only the chosen paths, each atomically, and only if
//! the disk is as it was planned, and its content is in a snapshot; after a crash, `recover` undoes a partial restore.
//! Blocks on the disk and on git, so call it on a thread for blocking work.
//!
//! Not restored: empty folders, owners, modes but the executable bit, and times. An overwritten file keeps its owner,
//! mode and extended attributes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::git::{self as user_git, Repository};
use super::os::files;
use super::os::private;
use crate::model::content_hash;
use crate::model::snapshot::{Action, Entry, Kind, ObjectId, Plan, SnapshotId, Span, Step};

mod capture;
mod compare;
pub(super) mod git;
mod merge;
mod place;
mod restore;
mod review;
mod store;
pub mod worker;

#[cfg(test)]
mod tests;

pub use compare::Change;
pub use restore::{Recovered, Restored};
pub use store::Pruned;

use git::Git;
use restore::Journal;

/// How long a call waits for another process.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Limits of snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Larger files are not captured, nor written or deleted by a restore.
    pub max_file_bytes: u64,
    /// A call that takes longer fails, and git is ended.
    pub max_time: Duration,
    /// The oldest snapshots of the folder are deleted when its store is larger. The newest one stays.
    pub max_store_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_file_bytes: 10 << 20, max_time: Duration::from_secs(30), max_store_bytes: 2 << 30 }
    }
}

/// Where snapshots are stored, and what is allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The data folder of parlor.
    pub data: PathBuf,
    /// The user's home folder. It and the folders above it are refused.
    pub home: Option<PathBuf>,
    pub allows_network: bool,
    pub limits: Limits,
}

/// What failed, why, and how to continue.
#[derive(Debug)]
pub enum SnapshotError {
    /// Snapshots of this folder, or of this size, are not captured.
    Refused(String),
    /// Another process uses the snapshots of this folder.
    Busy {
        process: Option<u32>,
    },
    TimedOut {
        seconds: u64,
    },
    /// A restore was interrupted, and `recover` has not been called.
    Interrupted,
    /// The snapshot, or a part of it, is not in the store.
    Missing(String),
    /// git or the file system failed.
    Failed(String),
}

impl SnapshotError {
    fn file(doing: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Failed(format!("Cannot {doing} {}: {error}", path.display()))
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(text) | Self::Failed(text) => f.write_str(text),
            Self::Busy { process } => {
                let process =
                    process.map_or("Another process".to_owned(), |process| format!("Process {process}"));
                write!(f, "{process} is using the snapshots of this folder. Try again when it has finished")
            }
            Self::TimedOut { seconds } => write!(
                f,
                "The snapshot took longer than {seconds} s and was canceled. Add large folders to .gitignore"
            ),
            Self::Interrupted => f.write_str("A restore was interrupted. Recover its files first"),
            Self::Missing(what) => write!(
                f,
                "{what} is not in the store of snapshots. It may have been pruned; use a newer snapshot"
            ),
        }
    }
}

impl std::error::Error for SnapshotError {}

/// The git revision of the `files` tree of a snapshot.
fn files_of(id: &SnapshotId) -> String {
    format!("{}:files", id.as_str())
}

fn id_of_bytes(text: &[u8]) -> Option<ObjectId> {
    ObjectId::parse(std::str::from_utf8(text).ok()?)
}

fn kind_of_mode(mode: &[u8]) -> Option<Kind> {
    match mode {
        b"100644" => Some(Kind::File),
        b"100755" => Some(Kind::Program),
        b"120000" => Some(Kind::Link),
        _ => None,
    }
}

/// Why a path is not in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Why {
    TooLarge,
    /// A repository or submodule in the folder.
    NestedRepository,
    Unreadable,
    /// Neither a file nor a link, or a name that git reserves.
    Special,
    /// A path that the caller named leads out of the folder, or through a symbolic link.
    Outside,
    /// Never in a list of [`LeftOut`].
    Ignored,
    /// A folder without files; never in a list of [`LeftOut`].
    Empty,
}

/// A path that exists but was not captured. Ignored files are not listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub path: PathBuf,
    pub why: Why,
}

/// A captured snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    pub id: SnapshotId,
    /// Unix time in milliseconds.
    pub at: u64,
    pub left_out: Vec<LeftOut>,
    /// Nothing has changed since the last snapshot of the session, which has this id too.
    pub reused: bool,
    /// Number of the oldest snapshots that were deleted because the store was too large.
    pub pruned: usize,
}

/// The snapshots of a folder. Another process can use them too: each call locks them while it runs.
#[derive(Debug)]
pub struct Snapshots {
    /// The canonical folder.
    folder: PathBuf,
    /// The path of the folder in the user's repository, with a slash at the end; empty for its root.
    prefix: OsString,
    /// The private repository.
    git_dir: PathBuf,
    limits: Limits,
    /// The user's repository.
    user: Option<Repository>,
    /// Whether names that differ only in case are the same file.
    ignores_case: bool,
    git: Git,
    /// The last snapshot of each session, by the name of its files.
    last: Mutex<HashMap<String, capture::Last>>,
}

impl Snapshots {
    /// Opens the snapshots of a folder, and creates their private repository if it does not exist.
    ///
    /// # Errors
    /// git is missing, the folder is refused, or the repository cannot be written.
    pub fn open(folder: &Path, options: &Options) -> Result<Self, SnapshotError> {
        let real = folder.canonicalize().map_err(SnapshotError::file("open", folder))?;
        private::make_folder(&options.data).map_err(SnapshotError::file("create", &options.data))?;
        let data = options.data.canonicalize().map_err(SnapshotError::file("open", &options.data))?;
        if let Some(why) = store::refusal(&real, &data, options) {
            let text = format!("No snapshots of {} are captured: {why}", real.display());
            return Err(SnapshotError::Refused(text));
        }
        let git_dir = data.join("snapshots").join(content_hash(files::bytes(real.as_os_str())));
        store::create(&git_dir, &real)?;
        let git = Git::find(&real, options)?;
        let git = git.in_own(&git_dir, store::user_patterns(&git)?);
        let user = user_git::find(&real).and_then(Result::ok);
        let root = user.as_ref().map_or(&real, |user| &user.root);
        let mut prefix = real.strip_prefix(root).unwrap_or(Path::new("")).as_os_str().to_owned();
        if !prefix.is_empty() {
            prefix.push("/");
        }
        let of_root = git.with([("GIT_WORK_TREE", root)]);
        let ignores_case = store::ignores_case(&real);
        let limits = options.limits;
        let mut snapshots = Self {
            folder: real,
            prefix,
            git_dir,
            limits,
            user,
            ignores_case,
            git: of_root,
            last: Mutex::default(),
        };
        if !snapshots.prefix.is_empty() && snapshots.is_ignored()? {
            // Everything in it would be ignored: it is a project of its own.
            snapshots.git = git.with([("GIT_WORK_TREE", &snapshots.folder)]);
            (snapshots.user, snapshots.prefix) = (None, OsString::new());
        }
        Ok(snapshots)
    }

    /// Captures the folder for a session. Ignored files are captured only if they are in `extra` (absolute, or
    /// relative to the folder), such as those that the agent wrote. Takes as long as git needs to look at each
    /// file, and on the first call to read it.
    ///
    /// # Errors
    /// Any step failed: there is no partial snapshot. `Busy` after two seconds if another process captures,
    /// `TimedOut` and `Refused` at the limits.
    pub fn capture(&self, session: &str, extra: &[PathBuf]) -> Result<Captured, SnapshotError> {
        let _lock = self.lock()?;
        let mut captured = self.capture_locked(session, extra)?;
        // The contents that an interrupted restore needs stay.
        if !captured.reused && Journal::read(self)?.is_none() {
            captured.pruned = self.prune_locked(self.limits.max_store_bytes, false)?.snapshots;
        }
        Ok(captured)
    }

    /// Waits until no other process uses the repository.
    fn lock(&self) -> Result<File, SnapshotError> {
        let path = self.at("lock");
        let error = || SnapshotError::file("lock", &path);
        let mut file = private::open_lock(&path).map_err(error())?;
        let deadline = Instant::now() + MAX_WAIT;
        while !files::try_lock(&file).map_err(error())? {
            if Instant::now() >= deadline {
                let text = super::regular::read_text(&path, 64);
                return Err(SnapshotError::Busy { process: text.and_then(|text| text.trim().parse().ok()) });
            }
            thread::sleep(Duration::from_millis(10));
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()))
            .map_err(error())?;
        Ok(file)
    }
}
