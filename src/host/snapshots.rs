//! Snapshots of a folder: capture, comparison and restore.
//!
//! Each folder has a private git repository in the data folder of parlor, which borrows the objects of the user's
//! repository if there is one. git runs there without any configuration, attribute, filter or hook of the user or the
//! folder, so contents are exactly the bytes on the disk, and the user's repository never changes.
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

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::os::{files, private};
use crate::model::content_hash;

mod capture;
mod compare;
mod error;
mod git;
mod journal;
mod place;
mod plan;
mod prune;
mod restore;
mod seed;
mod store;

#[cfg(test)]
mod tests;

pub use compare::{Change, ChangeKind};
pub use error::{Refusal, SnapshotError};
pub use plan::{Action, Plan, Step};
pub use prune::Pruned;
pub use restore::{Choice, Recovered, Restored, Take};

use git::{Deadline, Git};
use store::UserRepository;

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
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The data folder of parlor.
    pub data: PathBuf,
    /// The user's home folder. It and the folders above it are refused.
    pub home: Option<PathBuf>,
    pub allows_network: bool,
    pub limits: Limits,
}

/// The id of a git object: 40 or 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(String);

impl ObjectId {
    /// `None`: not an id.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (matches!(text.len(), 40 | 64) && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn of_bytes(text: &[u8]) -> Option<Self> {
        Self::parse(std::str::from_utf8(text).ok()?)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A snapshot: the id of a tree in the private repository. Equal snapshots of a folder have equal ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(ObjectId);

impl SnapshotId {
    /// `None`: not an id. Whether the snapshot exists is found when it is used.
    pub fn parse(text: &str) -> Option<Self> {
        ObjectId::parse(text).map(Self)
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The name of its tree of files for git.
    fn files(&self) -> String {
        format!("{}:files", self.0)
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    File,
    /// A file with an executable bit.
    Program,
    /// A symbolic link; its content is the target.
    Link,
}

impl Kind {
    fn of_mode(mode: &[u8]) -> Option<Self> {
        match mode {
            b"100644" => Some(Self::File),
            b"100755" => Some(Self::Program),
            b"120000" => Some(Self::Link),
            _ => None,
        }
    }
}

/// A file or link with its content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    pub kind: Kind,
    pub id: ObjectId,
}

/// Why a path is not in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    TooLarge,
    /// A repository or submodule in the folder.
    NestedRepository,
    Unreadable,
    /// Neither a file nor a link, or a name that git reserves.
    Special,
    /// A path that the caller named leads out of the folder, or through a symbolic link.
    Outside,
}

/// A path that exists but was not captured. Ignored files are not listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The root of the user's repository, or the folder.
    work_tree: PathBuf,
    /// The private repository.
    git_dir: PathBuf,
    limits: Limits,
    user: Option<UserRepository>,
    /// Patterns of ignored files of the repository and of the user.
    excludes: Option<PathBuf>,
    user_excludes: Option<PathBuf>,
    /// Whether names that differ only in case are the same file.
    ignores_case: bool,
    git: Git,
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
            return Err(SnapshotError::Refused { folder: real, why });
        }
        let deadline = Deadline::after(options.limits.max_time);
        let found = store::find_repository(&real, deadline)?;
        let name = content_hash(files::bytes(real.as_os_str()));
        let suffix = if found.is_sha256 { "-sha256" } else { "" };
        let git_dir = data.join("snapshots").join(format!("{name}{suffix}"));
        let user_excludes = store::excludes_file(&real, deadline)?;
        let store::Found { mut work_tree, mut user, mut excludes, is_sha256 } = found;
        store::create(&git_dir, &real, is_sha256, user_excludes.as_deref())?;
        store::copy_patterns(&git_dir, excludes.as_deref(), user_excludes.as_deref())?;
        let mut git = Git::of_own(&real, &git_dir, &work_tree)?;
        if work_tree != real && store::is_ignored(&git, &git_dir, deadline)? {
            // Everything in it would be ignored: it is a project of its own.
            (work_tree, user, excludes) = (real.clone(), None, None);
            git = Git::of_own(&real, &git_dir, &work_tree)?;
        }
        let ignores_case = store::ignores_case(&real);
        if let Some(user) = &user {
            git = git.with([("GIT_ALTERNATE_OBJECT_DIRECTORIES", store::quoted(&user.objects))]);
        }
        let limits = options.limits;
        Ok(Self {
            folder: real,
            work_tree,
            git_dir,
            limits,
            user,
            excludes,
            user_excludes,
            ignores_case,
            git,
        })
    }

    /// Captures the folder for a session. Ignored files are captured only if they are in `extra` (absolute, or
    /// relative to the folder), such as those that the agent wrote. Takes as long as git needs to look at each
    /// file, and on the first call to read it.
    ///
    /// # Errors
    /// Any step failed: there is no partial snapshot. `Busy` after two seconds if another process captures,
    /// `TimedOut` and `TooLarge` at the limits.
    pub fn capture(&self, session: &str, extra: &[PathBuf]) -> Result<Captured, SnapshotError> {
        let _lock = self.lock()?;
        let mut captured = self.capture_locked(session, extra)?;
        if !captured.reused {
            captured.pruned = self.prune_to_limit()?;
        }
        Ok(captured)
    }

    fn deadline(&self) -> Deadline {
        Deadline::after(self.limits.max_time)
    }

    fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.git_dir.join("parlor").join(name)
    }

    /// git that sees only the objects of the private repository.
    fn without_borrowed(&self) -> Git {
        self.git.with([("GIT_ALTERNATE_OBJECT_DIRECTORIES", OsStr::new(""))])
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
