//! Git worktrees for sessions of their own, in a folder beside parlor's data.
//!
//! They are not in the data folder itself, because no agent may read that or write there. git does the work, but runs no
//! hook and no filter, whoever has configured it: a folder must not start a program unseen.
//! Invariants: a folder is deleted only by `git worktree remove`, never with `--force`; a path with a symbolic link is
//! refused. Blocks on the disk and on git.

use std::ffi::OsStr;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};

use super::os::private;
use crate::host::snapshots::git::paths;
use crate::model::{NewWorktree, Worktree, worktrees_beside};

mod include;
mod locks;
mod repo;
#[cfg(test)]
mod tests;

use locks::Locks;
use repo::{BRANCHES, Repo, check_name, listed, text_of};

/// Writes the files of a new worktree.
fn fill(repo: &Repo, target: &Path, details: &mut Vec<String>) -> Result<Repo, String> {
    // A configuration can depend on the branch, and add filters.
    let tree = repo.at(target)?;
    tree.read("write the files of the worktree", ["reset", "--hard", "--quiet"])?;
    include::copy(repo, target, details)?;
    Ok(tree)
}

/// The worktrees that parlor makes, of all repositories.
#[derive(Debug, Clone)]
pub struct Worktrees {
    /// The folder of all worktrees.
    pub dir: PathBuf,
    home: Option<PathBuf>,
    locks: Locks,
}

impl Worktrees {
    /// Those beside a data folder.
    pub fn beside(data_dir: &Path, home: Option<PathBuf>) -> Self {
        let dir = worktrees_beside(data_dir);
        let real = dir.parent().and_then(|parent| parent.canonicalize().ok()).zip(dir.file_name());
        let dir = real.map(|(parent, name)| parent.join(name)).unwrap_or(dir);
        Self { dir, home, locks: Locks::default() }
    }

    /// Makes a worktree of the repository of a folder, on a new branch from its last commit. `name`: `None` to generate
    /// one.
    pub fn make(&self, folder: &Path, name: Option<&str>) -> Result<NewWorktree, String> {
        let repo = Repo::open(self, folder)?;
        let random = || format!("session-{:06x}", RandomState::new().build_hasher().finish() & 0xff_ffff);
        let name = name.map_or_else(random, str::to_owned);
        check_name(&name)?;
        let (target, branch) = (repo.place.join(&name), format!("{BRANCHES}{name}"));
        if repo.run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?.code != Some(0) {
            return Err(format!("{} has no commit yet. Commit something first.", repo.root.display()));
        }
        for path in [&self.dir, &repo.place] {
            if path.is_symlink() {
                return Err(format!("{} is a symbolic link. Remove it first.", path.display()));
            }
            let made = private::make_own_folder(path);
            made.map_err(|error| format!("Cannot create {}: {error}.", path.display()))?;
        }
        if target.symlink_metadata().is_ok() {
            return Err(format!("{} already exists. Choose another name.", target.display()));
        }
        let args = ["worktree", "add", "--quiet", "--no-checkout", "-b", &branch].map(OsStr::new);
        repo.read("make the worktree", args.into_iter().chain([target.as_os_str(), OsStr::new("HEAD")]))?;
        let mut details = vec![target.display().to_string()];
        let tree = fill(&repo, &target, &mut details)
            .map_err(|error| format!("{error} The worktree is incomplete. Remove it with `git worktree remove --force {}` and its branch with `git branch -D {branch}`.", target.display()))?;
        let filters = tree.filters_in_use();
        if !filters.is_empty() {
            let advice = "so some files are as stored in git. Run them yourself, for example `git lfs pull`.";
            details.push(format!("Filters were not run ({}), {advice}", listed(filters)));
        }
        if target.join(".gitmodules").is_file() {
            details.push("Submodules are not initialized; `git submodule update --init` does it.".to_owned());
        }
        let title = format!("Worktree {name} on branch {branch}");
        Ok(NewWorktree { folder: target, title, details: details.join("\n") })
    }

    /// The worktrees that parlor has made of the repository of a folder.
    pub fn list(&self, folder: &Path) -> Result<Vec<Worktree>, String> {
        let repo = Repo::open(self, folder)?;
        repo.entries()?.1.into_iter().map(|entry| repo.state_of(entry)).collect()
    }

    /// Removes a worktree and its branch, unless something in it is in use, changed, or in no other branch.
    pub fn remove(&self, folder: &Path, name: &str) -> Result<String, String> {
        let repo = Repo::open(self, folder)?;
        let branch = format!("refs/heads/{BRANCHES}{name}");
        let tip = repo.read("find the branch", ["rev-parse", "--verify", "--quiet", &branch]).ok();
        let state = repo.state_of(repo.entry(name)?.1)?;
        let why = match state.changed {
            _ if state.is_in_use => "is in use or locked. Close its sessions, or unlock it.".to_owned(),
            None => "cannot be read. Inspect it with git.".to_owned(),
            Some(0) if state.unpushed == 0 => String::new(),
            Some(0) => format!(
                "has commits that are in no other branch (commits: {}). Merge or push them first, for example with \
                 `parlor worktrees merge {name}`.",
                state.unpushed
            ),
            Some(count) => format!(
                "has changes that are not committed (files: {count}). Commit or discard them in {} first.",
                state.folder.display()
            ),
        };
        if !why.is_empty() {
            return Err(format!("The worktree {name} {why}"));
        }
        // With the configuration that applies in the worktree, whose state git reads again.
        let tree = repo.at(&state.folder)?;
        let from = match repo.main.clone() {
            Some(main) => repo.at(&main)?,
            None => repo,
        };
        let args = ["-C".as_ref(), from.root.as_os_str(), "worktree".as_ref(), "remove".as_ref()];
        tree.read("remove the worktree", args.into_iter().chain([state.folder.as_os_str()]))?;
        locks::forget(&state.folder);
        let mut text = format!("Removed the worktree {name}");
        let used = from.read("find the branch", ["for-each-ref", "--format=%(worktreepath)", &branch]);
        // What was checked is what is deleted, even if the branch was changed meanwhile.
        if let Some(tip) = tip.filter(|_| used.is_ok_and(|used| used.is_empty()))
            && from.read("delete the branch", ["update-ref", "-d", &branch, &tip]).is_ok()
        {
            text = format!("{text} and its branch {BRANCHES}{name}");
        }
        Ok(format!("{text}."))
    }

    /// Merges the branch of a worktree into what the main checkout has checked out. A conflict changes nothing.
    pub fn merge(&self, folder: &Path, name: &str) -> Result<String, String> {
        let repo = Repo::open(self, folder)?;
        let (main, entry) = repo.entry(name)?;
        let branch = format!("{BRANCHES}{name}");
        let by_hand = format!("Run `git merge {branch}` yourself.");
        let (Some(checkout), Some(target)) = (&repo.main, main.branch) else {
            return Err(format!("The main checkout is on no branch. {by_hand}"));
        };
        let into = repo.at(checkout)?;
        if entry.branch.as_deref() != Some(&branch) {
            return Err(format!("The worktree {name} is not on its branch {branch}. {by_hand}"));
        }
        let (ours, theirs) = (main.head, entry.head);
        for checkout in [&repo.at(&entry.folder)?, &into] {
            if checkout.changes(checkout.root == into.root)? > 0 {
                let at = checkout.root.display();
                return Err(format!("{at} has changes that are not committed. Commit them first."));
            }
        }
        if into.run(["merge-base", "--is-ancestor", &theirs, &ours])?.code == Some(0) {
            return Err(format!("Nothing to merge: {target} has all commits of {branch}."));
        }
        let programs = "This merge needs programs of your git configuration, which parlor does not run.";
        if !into.filters_in_use().is_empty() {
            return Err(format!("{programs} {by_hand}"));
        }
        let merged = if into.run(["merge-base", "--is-ancestor", &ours, &theirs])?.code == Some(0) {
            theirs
        } else {
            // Not `git merge`: options of branches and strategies could start programs.
            let signs = into.run(["config", "--type=bool", "--get", "commit.gpgSign"])?;
            if into.has_merge_drivers || signs.stdout.starts_with(b"true") {
                return Err(format!("{programs} {by_hand}"));
            }
            let result = into.run(["merge-tree", "--write-tree", "--no-messages", &ours, &theirs])?;
            if result.code == Some(1) {
                return Err(format!("There are conflicts, so nothing was changed. {by_hand}"));
            }
            let message = format!("Merge branch '{branch}'");
            let args =
                ["commit-tree", "-p", &ours, "-p", &theirs, "-m", &message, &text_of(&result, "merge")?];
            into.read("make the merge commit", args)?
        };
        // `read-tree` overwrites ignored files.
        let added = into.run([
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            "--diff-filter=A",
            &ours,
            &merged,
        ])?;
        text_of(&added, "compare the commits")?;
        let is_taken = |path: &PathBuf| {
            let is_file = |part: &Path| part.symlink_metadata().is_ok_and(|facts| !facts.is_dir());
            let whole = into.root.join(path);
            whole.symlink_metadata().is_ok()
                || path.ancestors().skip(1).any(|part| is_file(&into.root.join(part)))
        };
        let taken: Vec<String> =
            paths(&added.stdout).filter(is_taken).map(|path| path.display().to_string()).collect();
        if !taken.is_empty() {
            let names = listed(taken);
            return Err(format!(
                "The merge would overwrite files that are not tracked: {names}. Move them first."
            ));
        }
        into.run(["update-index", "-q", "--refresh"])?;
        into.read("write the merged files", ["read-tree", "-m", "-u", &ours, &merged])?;
        into.read(
            "move the branch",
            ["update-ref", "-m", &format!("merge {branch}"), "HEAD", &merged, &ours],
        )?;
        Ok(format!("Merged {branch} into {target}."))
    }
}
