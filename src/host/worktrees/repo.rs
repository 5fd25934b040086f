//! A repository with worktrees, and git that runs no program of it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Worktrees;
use super::locks::is_held;
use crate::host::git::{self as repositories, Elsewhere};
use crate::host::os::files;
use crate::host::snapshots::SnapshotError;
use crate::host::snapshots::git::{Git, Output, path_of, split};
use crate::model::{Worktree, content_hash};

/// A checkout of a large repository takes long.
const MAX_TIME: Duration = Duration::from_secs(300);
const MAX_NAME: usize = 64;
const MAX_LISTED: usize = 20;
/// Maximum length of a message of git.
const MAX_MESSAGE: usize = 400;

/// The first part of the names of branches, and that of the reasons of locks.
pub(super) const BRANCHES: &str = "parlor/";
pub(super) const LOCK_REASON: &str = "parlor session";

/// Values that take precedence over all configuration files.
const FIXED: [(&str, &str); 3] =
    [("core.hooksPath", files::NULL_DEVICE), ("core.fsmonitor", "false"), ("submodule.recurse", "false")];

/// A repository, seen from one of its checkouts.
#[derive(Debug)]
pub(super) struct Repo {
    git: Git,
    pub root: PathBuf,
    pub common_dir: PathBuf,
    /// The main checkout; a bare repository has none.
    pub main: Option<PathBuf>,
    /// The folder of its worktrees.
    pub place: PathBuf,
    /// The names of configured filters, which are disabled.
    filters: Vec<String>,
    pub has_merge_drivers: bool,
    worktrees: Worktrees,
}

impl Repo {
    pub(super) fn open(worktrees: &Worktrees, folder: &Path) -> Result<Self, String> {
        let at = folder.display();
        let found = match repositories::find(folder) {
            Some(Ok(found)) => found,
            Some(Err(Elsewhere)) => {
                return Err(format!("`.git` of {at} leads to another repository. Repair it first."));
            }
            None => return Err(format!("{at} is not in a git repository. Run `git init` first.")),
        };
        let repositories::Repository { root, common_dir, .. } = found;
        let main = common_dir.parent().filter(|_| common_dir.file_name() == Some(OsStr::new(".git")));
        let label = main.unwrap_or(&common_dir).file_name().unwrap_or_default().to_string_lossy();
        let label: String = label.chars().filter(char::is_ascii_alphanumeric).take(MAX_NAME).collect();
        let hash = content_hash(files::bytes(common_dir.as_os_str()));
        let mut values: Vec<(String, String)> =
            FIXED.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let git =
            Git::in_repository(&root, worktrees.home.as_deref(), MAX_TIME).map_err(text)?.configured(&values);
        let mut repo = Self {
            git,
            place: worktrees.dir.join(format!("{label}-{}", hash.get(..12).unwrap_or(&hash))),
            main: main.map(Path::to_owned),
            root,
            common_dir,
            filters: Vec::new(),
            has_merge_drivers: false,
            worktrees: worktrees.clone(),
        };
        // `core.worktree` could name another folder to write to.
        let top = repo.run(["rev-parse", "--show-toplevel"])?;
        let top = path_of(top.stdout.strip_suffix(b"\n").unwrap_or_default()).canonicalize();
        if top.is_err() || top.ok() != repo.root.canonicalize().ok() {
            return Err(format!("git does not use {at} as its work tree. Run `git status` there."));
        }
        let names = repo.run(["config", "--list", "--null", "--name-only"])?;
        text_of(&names, "read the configuration")?;
        let names = String::from_utf8(names.stdout)
            .map_err(|_| "The configuration of git is not valid UTF-8. Correct it first.".to_owned())?;
        for name in names.split('\0') {
            let Some((section, key)) = name.rsplit_once('.') else { continue };
            repo.has_merge_drivers |= section.starts_with("merge.") && key == "driver";
            if section.starts_with("hook.") {
                values.push((format!("{section}.enabled"), "false".to_owned()));
            }
            let Some(filter) = section.strip_prefix("filter.") else { continue };
            if !repo.filters.iter().any(|known| known == filter) {
                repo.filters.push(filter.to_owned());
                let off = [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")];
                values.extend(off.map(|(key, value)| (format!("{section}.{key}"), value.to_owned())));
            }
        }
        repo.git = repo.git.configured(&values);
        Ok(repo)
    }

    /// The same repository, seen from another checkout. Its `.git` may have been changed by an agent.
    pub(super) fn at(&self, folder: &Path) -> Result<Self, String> {
        let other = Self::open(&self.worktrees, folder)?;
        if other.common_dir == self.common_dir && other.root == folder {
            return Ok(other);
        }
        Err(format!("{} does not belong to this repository. Inspect it with git.", folder.display()))
    }

    pub(super) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<Output, String> {
        self.git.renewed(None).run(args, Vec::new()).map_err(text)
    }

    pub(super) fn read<A: AsRef<OsStr>>(
        &self,
        doing: &str,
        args: impl IntoIterator<Item = A>,
    ) -> Result<String, String> {
        text_of(&self.run(args)?, doing)
    }

    /// The main checkout, and the worktrees of parlor. Locks of parlors that have ended are removed.
    pub(super) fn entries(&self) -> Result<(Worktree, Vec<Worktree>), String> {
        let listed = self.run(["worktree", "list", "--porcelain", "-z"])?;
        text_of(&listed, "list the worktrees")?;
        let is_own =
            |tree: &Worktree| tree.folder.parent() == Some(&self.place) && check_name(&tree.name).is_ok();
        let mut all: Vec<Worktree> = Vec::new();
        for line in split(&listed.stdout) {
            if let Some(path) = line.strip_prefix(b"worktree ") {
                let folder = path_of(path);
                let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                all.push(Worktree { name, folder, ..Worktree::default() });
            }
            let (Some(tree), Ok(line)) = (all.last_mut(), std::str::from_utf8(line)) else { continue };
            match line.split_once(' ').unwrap_or((line, "")) {
                ("HEAD", id) => id.clone_into(&mut tree.head),
                ("branch", name) => {
                    tree.branch = Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned());
                }
                ("locked", reason)
                    if reason.starts_with(LOCK_REASON) && is_own(tree) && !is_held(&tree.folder) =>
                {
                    let args = [OsStr::new("worktree"), OsStr::new("unlock"), tree.folder.as_os_str()];
                    self.read("unlock the worktree", args)?;
                }
                ("locked", _) => tree.is_in_use = true,
                _ => {}
            }
        }
        let main = if all.is_empty() { Worktree::default() } else { all.remove(0) };
        all.retain(is_own);
        Ok((main, all))
    }

    /// The main checkout, and the worktree with a name.
    pub(super) fn entry(&self, name: &str) -> Result<(Worktree, Worktree), String> {
        let (main, own) = self.entries()?;
        let found = own.into_iter().find(|tree| tree.name == name);
        let missing = "No worktree of this repository has this name. `parlor worktrees` lists them.";
        Ok((main, found.ok_or(missing)?))
    }

    /// Adds what is read in the worktree.
    pub(super) fn state_of(&self, tree: Worktree) -> Result<Worktree, String> {
        let own = format!("{BRANCHES}{}", tree.name);
        let (branch, exclude) = (format!("refs/heads/{own}"), format!("--exclude={own}"));
        let others = ["--not", &exclude, "--branches", "--remotes", "--tags"];
        // The branch may have been deleted.
        let count =
            ["rev-list", "--count", "--ignore-missing", &tree.head, &branch].into_iter().chain(others);
        let unpushed = self.read("count the commits", count)?;
        let unpushed =
            unpushed.parse().map_err(|_| "git did not count the commits. Inspect them.".to_owned())?;
        let changed = self.at(&tree.folder).and_then(|tree| tree.changes(false)).ok();
        Ok(Worktree { is_in_use: tree.is_in_use || is_held(&tree.folder), changed, unpushed, ..tree })
    }

    /// Number of changed files, with untracked ones unless `is_tracked`. The state of submodules is not read, because git
    /// would start itself in them.
    pub(super) fn changes(&self, is_tracked: bool) -> Result<usize, String> {
        let untracked = if is_tracked { "--untracked-files=no" } else { "--untracked-files=all" };
        let changes = ["status", "--porcelain", untracked, "--ignore-submodules=dirty"];
        Ok(self.read("read the state", changes)?.lines().count())
    }

    /// The filters that tracked files need.
    pub(super) fn filters_in_use(&self) -> Vec<String> {
        let is_used = |filter: &&String| {
            let files = format!(":(attr:filter={filter})");
            let output = self.run(["ls-files", "-z", "--", &files]);
            output.is_ok_and(|output| !output.stdout.is_empty())
        };
        self.filters.iter().filter(is_used).cloned().collect()
    }
}

/// Checks that a name is safe in a path and in the name of a branch.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_valid = name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.len() <= MAX_NAME
        && name.bytes().all(is_allowed)
        && !name.contains("..")
        && !name.ends_with('.')
        && !name.to_ascii_lowercase().ends_with(".lock");
    if is_valid {
        return Ok(());
    }
    Err(format!(
        "Invalid worktree name. Use at most {MAX_NAME} ASCII letters, digits, `-`, `_` and single dots, with a \
         letter or digit first."
    ))
}

/// Paths or names for a message, of which there may be many.
pub(super) fn listed(mut names: Vec<String>) -> String {
    let count = names.len();
    names.truncate(MAX_LISTED);
    let more = if count > MAX_LISTED { ", and others" } else { "" };
    format!("{}{more}", names.join(", "))
}

fn text(error: SnapshotError) -> String {
    match error {
        SnapshotError::TimedOut { seconds } => {
            format!("git took longer than {seconds} s and was stopped. Run it in a terminal.")
        }
        other => format!("{other}."),
    }
}

/// The output, without the line end. An exit code other than 0 is an error.
pub(super) fn text_of(output: &Output, doing: &str) -> Result<String, String> {
    if output.code == Some(0) {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned());
    }
    let text: String = output.error(doing).to_string().chars().take(MAX_MESSAGE).collect();
    Err(format!("{text}. Inspect the repository with git."))
}
