//! Branch and state of a folder's git repository.
//!
//! Both are read from the repository's files. git itself is started only for [`changes()`]: `git status` runs programs that a
//! repository names (filters, `core.fsmonitor`, hooks), and the repository is part of the folder or written by
//! an agent. Blocks for up to about two seconds.
//! A repository is changed if a tracked file differs from the index, or the index from the last commit as far as
//! git recorded it. If this is unknown, the repository counts as unchanged: untracked files, split indexes, work
//! trees elsewhere, contents that a filter changes.

use std::path::{Path, PathBuf};

use crate::model::GitInfo;

use super::regular;

pub(super) mod changes;
mod index;
mod state;

pub use changes::{Changes, changes};

#[cfg(test)]
pub(super) mod tests;

/// Number of digits of a commit that is shown instead of a branch.
const SHORT_COMMIT_CHARS: usize = 7;

/// Maximum size of files in a repository, except the two below.
const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_PACKED_BYTES: u64 = 32 << 20;

/// The state of a folder's repository; `None`: no repository, data of another one, or references in tables.
pub fn read(folder: &Path) -> Option<GitInfo> {
    let repository = find(folder)?.ok()?;
    Some(GitInfo { branch: branch(&repository.git_dir)?, is_dirty: state::is_dirty(&repository) })
}

/// The repository that a folder is in.
#[derive(Debug)]
pub(super) struct Repository {
    pub root: PathBuf,
    pub git_dir: PathBuf,
    /// The git folder that all work trees of the repository share.
    pub common_dir: PathBuf,
}

/// The folder's `.git` leads to data of a repository that does not name this folder as a work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Elsewhere;

/// Finds the repository of a folder: in it or in one above.
pub(super) fn find(folder: &Path) -> Option<Result<Repository, Elsewhere>> {
    let (root, git_dir) =
        folder.ancestors().find_map(|root| git_dir_of(root).map(|git_dir| (root, git_dir)))?;
    Some(checked(root, &git_dir).ok_or(Elsewhere))
}

/// The `.git` of a folder: a folder, or a file with its path (worktrees, submodules).
fn git_dir_of(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let found =
        if git.is_dir() { git } else { folder.join(read_text(&git)?.strip_prefix("gitdir:")?.trim()) };
    found.join("HEAD").is_file().then_some(found)
}

/// Checks that git data outside of the work tree belongs to it. Otherwise a file of a clone could name any repository.
fn checked(root: &Path, git_dir: &Path) -> Option<Repository> {
    let (real_root, git_dir) = (root.canonicalize().ok()?, git_dir.canonicalize().ok()?);
    if !git_dir.starts_with(&real_root) && !names_back(&git_dir, &real_root) {
        return None;
    }
    let common_dir = match read_text(&git_dir.join("commondir")) {
        Some(path) => git_dir.join(path.trim()).canonicalize().ok()?,
        None => git_dir.clone(),
    };
    let is_shared = common_dir.starts_with(&real_root) || git_dir.starts_with(common_dir.join("worktrees"));
    (is_shared || common_dir == git_dir).then(|| Repository { root: root.to_owned(), git_dir, common_dir })
}

/// Whether git data names this work tree. Source: gitrepository-layout(5), `gitdir`; git-config(1), `core.worktree`, which
/// submodules have.
fn names_back(git_dir: &Path, root: &Path) -> bool {
    let is_root = |path: &Path| git_dir.join(path).canonicalize().is_ok_and(|path| path == root);
    let worktree = read_text(&git_dir.join("gitdir"));
    let worktree = worktree.as_deref().and_then(|text| Path::new(text.trim()).parent());
    let config = read_text(&git_dir.join("config")).unwrap_or_default();
    let mut submodule = config.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        name.trim().eq_ignore_ascii_case("worktree").then(|| value.trim().trim_matches('"'))
    });
    worktree.is_some_and(is_root) || submodule.any(|path| is_root(Path::new(path)))
}

/// Reads a small text file of a repository.
pub(super) fn read_text(path: &Path) -> Option<String> {
    regular::read_text(path, MAX_FILE_BYTES)
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
