//! Finds the folder of a session after it was renamed, moved or deleted.
//!
//! [`mark`] records what identifies a folder, [`Kin`] classifies how close two folders are, and [`offers`] lists
//! candidates for a missing folder. Blocks on the disk. Starts no program: repositories are read from their files. Only
//! the inode is certain; all other matches are guesses and are labelled with their reason.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::git;
use super::os::files;
use crate::model::{FolderOffer, FolderReason, Nearness};

/// Maximum number of folder entries that are searched for a moved folder.
const MAX_LOOKED_AT: usize = 4_000;

const MAX_OFFERS: usize = 6;

/// What identifies a folder independently of its path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FolderMark {
    pub device: u64,
    pub inode: u64,
    /// Creation time in Unix microseconds, if the file system has it; inodes are reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_us: Option<i64>,
    /// The git folder that all worktrees of its repository share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_dir: Option<PathBuf>,
    /// The URL of the repository's `origin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
}

/// The mark of a folder; `None`: not a folder.
pub fn mark(folder: &Path) -> Option<FolderMark> {
    let (device, inode) = files::identity(folder).filter(|_| folder.is_dir())?;
    let common_dir = common_dir(folder);
    let remote = common_dir.as_deref().and_then(remote);
    Some(FolderMark { device, inode, made_us: files::made_us(folder), common_dir, remote })
}

impl FolderMark {
    pub fn is_of(&self, folder: &Path) -> bool {
        let is_made_then = || match (self.made_us, files::made_us(folder)) {
            (Some(then), Some(made)) => then == made,
            _ => true,
        };
        files::identity(folder) == Some((self.device, self.inode)) && is_made_then()
    }
}

/// The git folder of a repository, which all of its worktrees share.
pub fn common_dir(folder: &Path) -> Option<PathBuf> {
    Some(git::find(folder)?.ok()?.common_dir)
}

/// The URL of `origin` in the configuration of a repository.
fn remote(common_dir: &Path) -> Option<String> {
    let config = git::read_text(&common_dir.join("config"))?;
    let lines = config.lines().map(str::trim);
    let of_origin = lines.skip_while(|line| *line != "[remote \"origin\"]").skip(1);
    of_origin
        .take_while(|line| !line.starts_with('['))
        .find_map(|line| Some(line.strip_prefix("url")?.trim_start().strip_prefix('=')?.trim().to_owned()))
}

/// Classifies folders by their distance to one; results are cached.
#[derive(Debug)]
pub struct Kin {
    folder: PathBuf,
    common_dir: Option<PathBuf>,
    known: HashMap<PathBuf, (Nearness, bool)>,
}

impl Kin {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), common_dir: common_dir(folder), known: HashMap::new() }
    }

    /// How close another folder is, and whether it is missing; its mark has the repository of a missing folder.
    pub fn of(&mut self, folder: &Path, mark: Option<&FolderMark>) -> (Nearness, bool) {
        if let Some(known) = self.known.get(folder) {
            return *known;
        }
        let is_gone = !folder.is_dir();
        let of_mark = || mark.and_then(|mark| mark.common_dir.clone());
        let nearness = if folder == self.folder {
            Nearness::Here
        } else if self.common_dir.is_some()
            && self.common_dir == (if is_gone { of_mark() } else { common_dir(folder) })
        {
            Nearness::SameRepository
        } else {
            Nearness::Elsewhere
        };
        self.known.insert(folder.to_owned(), (nearness, is_gone));
        (nearness, is_gone)
    }
}

/// Candidates for a session whose folder is missing: best first, the current folder last. `known`: the folders of other
/// sessions.
pub fn offers(gone: &Path, mark: Option<&FolderMark>, current: &Path, known: &[PathBuf]) -> Vec<FolderOffer> {
    let mut found: Vec<FolderOffer> = Vec::new();
    let mut add = |folder: PathBuf, why: FolderReason| {
        let is_new = folder != gone && found.iter().all(|offer| offer.folder != folder);
        if is_new && folder.is_dir() && (found.len() < MAX_OFFERS || why == FolderReason::Current) {
            found.push(FolderOffer { folder, why, others: 0 });
        }
    };
    let near = neighbours(gone, current, known);
    if let Some(mark) = mark {
        if let Some(moved) = near.iter().find(|folder| mark.is_of(folder)) {
            add(moved.clone(), FolderReason::Moved);
        }
        for worktree in mark.common_dir.as_deref().map(worktrees).unwrap_or_default() {
            add(worktree, FolderReason::Worktree);
        }
        if let Some(remote_then) = &mark.remote {
            let has_same = |folder: &&PathBuf| {
                common_dir(folder).and_then(|dir| remote(&dir)).as_ref() == Some(remote_then)
            };
            for folder in near.iter().filter(|folder| folder.join(".git").exists()).filter(has_same) {
                add(folder.clone(), FolderReason::SameRemote);
            }
        }
    }
    for folder in near.iter().filter(|folder| folder.file_name() == gone.file_name()) {
        add(folder.clone(), FolderReason::SameName);
    }
    add(current.to_owned(), FolderReason::Current);
    found
}

/// All worktrees of a repository, the main one first.
fn worktrees(common_dir: &Path) -> Vec<PathBuf> {
    let main = common_dir.parent().filter(|_| common_dir.file_name().is_some_and(|name| name == ".git"));
    let mut found: Vec<PathBuf> = main.map(Path::to_owned).into_iter().collect();
    let Ok(entries) = fs::read_dir(common_dir.join("worktrees")) else { return found };
    for entry in entries.flatten() {
        if let Some(text) = git::read_text(&entry.path().join("gitdir"))
            && let Some(folder) = Path::new(text.trim()).parent()
        {
            found.push(folder.to_owned());
        }
    }
    found
}

/// Folders that are searched for a moved one: those near its old path and near the current folder, and those of other
/// sessions.
fn neighbours(gone: &Path, current: &Path, known: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = known.to_vec();
    found.extend(current.ancestors().map(Path::to_owned));
    let around = gone.ancestors().skip(1).find(|folder| folder.is_dir());
    let roots = around.into_iter().chain(current.parent());
    let mut level: Vec<PathBuf> = roots.map(Path::to_owned).collect();
    // A moved folder is usually next to its old path, or one level deeper.
    for _ in 0..2 {
        let mut below = Vec::new();
        for folder in level {
            let Ok(entries) = fs::read_dir(folder) else { continue };
            let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            below.extend(folders.map(|entry| entry.path()).take(MAX_LOOKED_AT));
        }
        below.sort();
        found.extend(below.iter().take(MAX_LOOKED_AT).cloned());
        level = below.into_iter().take(MAX_LOOKED_AT / 10).collect();
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|folder| seen.insert(folder.clone()));
    found
}

#[cfg(test)]
mod tests;
