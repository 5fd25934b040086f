//! Branch and state of a folder's git repository.
//!
//! Both are read from the repository's files. git itself is started only for [`changes()`]: `git status` runs programs that a
//! repository names (filters, `core.fsmonitor`, hooks), and the repository is part of the folder or written by
//! an agent. Blocks for up to about two seconds.
//! A repository is changed if a tracked file differs from the index, or the index from the last commit as far as
//! git recorded it. If this is unknown, the repository counts as unchanged: untracked files, split indexes, work
//! trees elsewhere, contents that a filter changes.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::model::GitInfo;

use super::unix;

mod changes;
mod index;
mod state;

pub use changes::{Changes, changes};

#[cfg(test)]
pub(super) mod tests;

/// Number of digits of a commit that is shown instead of a branch.
const SHORT_COMMIT_CHARS: usize = 7;

/// Maximum size of files in a repository, except the index.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The repository of a folder; `None`: no repository, or one with references in tables.
pub fn read(folder: &Path) -> Option<GitInfo> {
    let (root, git_dir) =
        folder.ancestors().find_map(|root| git_dir_of(root).map(|git_dir| (root, git_dir)))?;
    let branch = branch(&git_dir)?;
    Some(GitInfo { branch, is_dirty: state::is_dirty(root, &git_dir) })
}

/// The `.git` of a folder: a folder, or a file with its path (worktrees, submodules).
pub(super) fn git_dir_of(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let found =
        if git.is_dir() { git } else { folder.join(read_text(&git)?.strip_prefix("gitdir:")?.trim()) };
    found.join("HEAD").is_file().then_some(found)
}

/// The git folder that all worktrees of a repository share.
pub(super) fn common_dir_of(git_dir: &Path) -> PathBuf {
    match read_text(&git_dir.join("commondir")) {
        Some(path) => git_dir.join(path.trim()),
        None => git_dir.to_owned(),
    }
}

/// Reads a small text file of a repository; only regular files.
pub(super) fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read_file(path, MAX_FILE_BYTES)?).ok()
}

fn read_file(path: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    let file = unix::open_at_once(path).ok()?;
    let facts = file.metadata().ok().filter(fs::Metadata::is_file)?;
    if facts.len() > max_bytes {
        return None;
    }
    let mut bytes = Vec::new();
    File::take(file, max_bytes).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn branch(git_dir: &Path) -> Option<String> {
    let head = read_text(&git_dir.join("HEAD"))?;
    let head = head.trim();
    let Some(reference) = head.strip_prefix("ref:").map(str::trim) else {
        return Some(head.chars().take(SHORT_COMMIT_CHARS).collect());
    };
    // Repositories with references in tables have a placeholder in HEAD.
    (reference != "refs/heads/.invalid")
        .then(|| reference.strip_prefix("refs/heads/").unwrap_or(reference).to_owned())
}
