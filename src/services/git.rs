//! Branch and state of a folder's git repository.
//!
//! Duty: reads the branch from `.git` itself, which needs no git, and asks `git status` whether something
//! is changed, without taking its locks.
//! Not its duty: changing anything. Blocks for at most about two seconds: call it on a thread where that is fine.

use std::fs;
use std::path::{Path, PathBuf};

use crate::model::GitInfo;

use super::process;

#[cfg(test)]
mod tests;

/// How many digits of a commit stand for a branch when there is none.
const SHORT_COMMIT_CHARS: usize = 7;

/// The repository that a folder lies in; `None` outside of one. Without git, or when git takes longer than
/// two seconds, the state reads as unchanged.
pub fn read(folder: &Path) -> Option<GitInfo> {
    let git_dir = folder.ancestors().find_map(git_dir_of)?;
    let branch = branch(&git_dir, folder)?;
    Some(GitInfo { branch, is_dirty: is_dirty(folder) })
}

/// The `.git` of a folder: a folder, or a file that names one (worktrees, submodules).
pub(super) fn git_dir_of(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let found = if git.is_dir() {
        git
    } else {
        let text = fs::read_to_string(&git).ok()?;
        folder.join(text.strip_prefix("gitdir:")?.trim())
    };
    found.join("HEAD").is_file().then_some(found)
}

fn branch(git_dir: &Path, folder: &Path) -> Option<String> {
    let head = fs::read_to_string(git_dir.join("HEAD")).ok()?;
    let head = head.trim();
    let Some(reference) = head.strip_prefix("ref:").map(str::trim) else {
        return Some(head.chars().take(SHORT_COMMIT_CHARS).collect());
    };
    // Repositories that keep their references in tables have a HEAD that says nothing.
    if reference == "refs/heads/.invalid" {
        let name = process::read_output("git", &["symbolic-ref", "--short", "HEAD"], Some(folder)).ok()?;
        return Some(String::from_utf8_lossy(&name).trim().to_owned());
    }
    Some(reference.strip_prefix("refs/heads/").unwrap_or(reference).to_owned())
}

fn is_dirty(folder: &Path) -> bool {
    // A repository may name a program to run for each status; a folder that was only opened starts none.
    let args = ["--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain"];
    process::read_output("git", &args, Some(folder)).is_ok_and(|output| !output.is_empty())
}
