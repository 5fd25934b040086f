//! Which files of a folder git and other tools ignore.
//!
//! The rules are those of the crate `ignore`, which would open the files with them whatever they are: a clone can have a
//! `.gitignore` that is a pipe or leads to an endless device.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::host::regular;
use crate::lock::lock;

/// Maximum size of a file with rules.
const MAX_BYTES: u64 = 1 << 20;

/// The rules for a folder and everything below it.
pub(super) struct Rules {
    folders: Mutex<HashMap<PathBuf, Arc<Folder>>>,
    exclude: Gitignore,
    global: Gitignore,
}

/// The rules in a folder. Those of `.ignore`, here or above, come before those of `.gitignore`.
struct Folder {
    above: Option<Arc<Folder>>,
    any: Gitignore,
    git: Gitignore,
}

impl Rules {
    /// Reads the rules of a folder and of those above it in its repository.
    pub(super) fn new(root: &Path) -> Self {
        let repository = root.ancestors().position(|folder| folder.join(".git").exists());
        let mut above = None;
        let mut folders: Vec<&Path> = root.ancestors().take(repository.unwrap_or(0) + 1).collect();
        let exclude = folders.last().map(|top| (*top, top.join(".git/info/exclude")));
        while let Some(folder) = folders.pop() {
            above = Some(Arc::new(Folder::new(folder, above)));
        }
        Self {
            folders: Mutex::new(above.map(|rules| (root.to_owned(), rules)).into_iter().collect()),
            exclude: exclude.map_or_else(Gitignore::empty, |(top, file)| read(top, &file)),
            global: Gitignore::global().0,
        }
    }

    /// Whether an entry is ignored that is in a folder which is not.
    pub(super) fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        let Some(folder) = path.parent().and_then(|folder| self.of(folder)) else { return false };
        let folders = || std::iter::successors(Some(&folder), |folder| folder.above.as_ref());
        let any = folders().map(|folder| &folder.any);
        let git = folders().map(|folder| &folder.git);
        any.chain(git)
            .chain([&self.exclude, &self.global])
            .map(|rules| rules.matched(path, is_folder))
            .find(|found| !found.is_none())
            .is_some_and(|found| matches!(found, Match::Ignore(_)))
    }

    fn of(&self, folder: &Path) -> Option<Arc<Folder>> {
        let known = lock(&self.folders).get(folder).cloned();
        if known.is_some() {
            return known;
        }
        let rules = Arc::new(Folder::new(folder, Some(self.of(folder.parent()?)?)));
        let mut folders = lock(&self.folders);
        Some(Arc::clone(folders.entry(folder.to_owned()).or_insert(rules)))
    }
}

impl Folder {
    fn new(path: &Path, above: Option<Arc<Self>>) -> Self {
        Self { above, any: read(path, &path.join(".ignore")), git: read(path, &path.join(".gitignore")) }
    }
}

/// Reads the rules of a file for the entries of a folder. Like git, it does not follow a link.
fn read(folder: &Path, file: &Path) -> Gitignore {
    let is_file = file.symlink_metadata().is_ok_and(|facts| facts.is_file());
    let Some(text) = is_file.then(|| regular::read(file, MAX_BYTES)).flatten() else {
        return Gitignore::empty();
    };
    let mut rules = GitignoreBuilder::new(folder);
    for line in String::from_utf8_lossy(&text).trim_start_matches('\u{feff}').lines() {
        // A line that is no pattern ignores nothing, as in git.
        let _ = rules.add_line(None, line);
    }
    rules.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::os::fixtures;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        folder
    }

    #[test]
    fn deeper_rules_and_those_of_ignore_win() {
        let folder = folder(&[
            (".git/info/exclude", "*.bak\n"),
            (".gitignore", "*.log\n/out/\n[\n"),
            (".ignore", "!kept.log\n"),
            ("sub/.gitignore", "!a.log\n*.tmp\n"),
        ]);
        for root in ["", "sub", "sub/deep"] {
            let rules = Rules::new(&folder.path().join(root));
            let ignores =
                |path: &str| rules.ignores(&folder.path().join(root).join(path), path.ends_with('/'));
            assert!(ignores("x.bak"), "{root}");
            assert!(!ignores("kept.log"), "{root}");
            assert_eq!(ignores("a.log"), root.is_empty(), "{root}");
            assert_eq!(ignores("a.tmp"), !root.is_empty(), "{root}");
        }
        let rules = Rules::new(folder.path());
        let ignores =
            |path: &str| rules.ignores(&folder.path().join(path.trim_end_matches('/')), path.ends_with('/'));
        assert!(ignores("out/") && !ignores("out") && !ignores("sub/out/"));
        assert!(ignores("sub/deep/b.log") && ignores("sub/deep/b.tmp") && !ignores("sub/deep/a.log"));
    }

    #[test]
    fn links_and_special_files_have_no_rules() {
        for target in ["/dev/zero", "/etc/hostname"] {
            let folder = folder(&[("a", "")]);
            fixtures::link(target, folder.path().join(".gitignore"));
            assert!(!Rules::new(folder.path()).ignores(&folder.path().join("a"), false));
        }
        let folder = folder(&[("a", "")]);
        let pipe = folder.path().join(".ignore");
        fixtures::pipe(&pipe);
        assert!(!Rules::new(folder.path()).ignores(&folder.path().join("a"), false));
    }
}
