//! Worktrees of parlor: requests to make, list, remove and merge them, and the results.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The folder of the worktrees that parlor makes, beside its data folder.
pub fn worktrees_beside(data_dir: &Path) -> PathBuf {
    let name = data_dir.file_name().unwrap_or(OsStr::new("parlor"));
    data_dir.with_file_name(format!("{}-worktrees", name.display()))
}

/// A git worktree that parlor has made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Worktree {
    pub name: String,
    pub folder: PathBuf,
    /// The commit and the branch that is checked out; no branch if detached.
    pub head: String,
    pub branch: Option<String>,
    /// Whether a session of a running parlor is in it, or it is locked.
    pub is_in_use: bool,
    /// Number of changed and untracked files; `None`: it cannot be read.
    pub changed: Option<usize>,
    /// Number of commits that are in no other branch, remote branch or tag.
    pub unpushed: usize,
}

impl Worktree {
    /// What is to be known before it is removed, such as `2 changed, 1 unmerged`.
    pub fn state(&self) -> String {
        let count = |count: usize, label: &str| (count > 0).then(|| format!("{count} {label}"));
        let parts = [
            self.is_in_use.then(|| "in use".to_owned()),
            self.changed.map_or(Some("unreadable".to_owned()), |changed| count(changed, "changed")),
            count(self.unpushed, "unmerged"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "clean".to_owned() } else { parts.join(", ") }
    }
}

/// A worktree that was just made, with what the user has to know about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewWorktree {
    pub folder: PathBuf,
    pub title: String,
    pub details: String,
}

/// A job with worktrees of a repository.
#[derive(Debug, Clone, PartialEq)]
pub enum WorktreeJob {
    /// `None`: the name is generated.
    Make(Option<String>),
    List,
    Remove(String),
    /// Merges its branch into the main checkout.
    Merge(String),
    /// Locks these worktrees, and unlocks others that were locked before; has no result.
    Lock(BTreeSet<PathBuf>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum WorktreeNews {
    Made(NewWorktree),
    Listed(Vec<Worktree>),
    /// It was removed or merged.
    Done(String),
}
