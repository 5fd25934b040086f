//! The changes of a folder since the last commit, as `git diff HEAD` prints them.
//!
//! git is started in a repository of its own that only borrows the objects and the index of the real one. So the
//! configuration, attributes and hooks of the real repository, which name programs, are not read at all. Those of the
//! user still apply.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Component, Path};
use std::time::Duration;

use super::{Elsewhere, MAX_PACKED_BYTES, Repository, find, read_text};
use crate::host::os::private;
use crate::host::{process, regular};
use crate::program::{Start, StartedBy};

/// Maximum size of the changes; the rest is omitted.
const MAX_BYTES: usize = 256 << 10;

const MAX_TIME: Duration = Duration::from_secs(10);

/// Maximum number of references that lead to a commit.
const MAX_REFERENCES: usize = 5;

/// The tree without files. Source: git, hash-object of an empty tree.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Nothing here may start a program, change the repository, or ask a server.
const ARGS: &[&str] = &[
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "diff.autoRefreshIndex=false",
    "-c",
    "protocol.allow=never",
    "diff",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=all",
];

/// Changes since the last commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    pub text: Vec<u8>,
    pub is_cut: bool,
}

/// Reads the changes below a folder; `None`: it is in no repository. Blocks for at most ten seconds.
///
/// # Errors
/// git is missing or failed, or the repository has a format that is not supported.
pub fn changes(folder: &Path) -> Result<Option<Changes>, String> {
    let Some(found) = find(folder) else { return Ok(None) };
    let repository = found.map_err(|Elsewhere| {
        "`.git` leads to a repository that does not have this folder as a work tree".to_owned()
    })?;
    check_objects(&repository)?;
    let Repository { root, git_dir, common_dir } = &repository;
    let commit = commit(git_dir, common_dir)?;
    let own = own_repository(commit.as_deref()).map_err(|error| error.to_string())?;
    let env = [
        ("GIT_DIR", own.path()),
        ("GIT_WORK_TREE", root),
        ("GIT_INDEX_FILE", &git_dir.join("index")),
        ("GIT_OBJECT_DIRECTORY", &common_dir.join("objects")),
        ("GIT_NO_LAZY_FETCH", Path::new("1")),
        ("GIT_OPTIONAL_LOCKS", Path::new("0")),
        ("GIT_TERMINAL_PROMPT", Path::new("0")),
    ];
    let env: Option<Vec<(String, String)>> =
        env.iter().map(|(name, path)| Some(((*name).to_owned(), path.to_str()?.to_owned()))).collect();
    let env = env.ok_or("the path of the repository is not valid UTF-8")?;
    let start =
        Start::find(StartedBy::Parlor, "git", Some(folder), &env).map_err(|error| error.to_string())?;
    let start = start.args(ARGS).args([commit.as_deref().unwrap_or(EMPTY_TREE), "--", "."]);
    let mut text = process::read_start(&start, MAX_TIME).map_err(|error| error.to_string())?;
    let is_cut = text.len() > MAX_BYTES;
    if is_cut {
        text.truncate(MAX_BYTES);
        let end = memchr::memrchr(b'\n', &text).map_or(text.len(), |at| at + 1);
        text.truncate(end);
    }
    Ok(Some(Changes { text, is_cut }))
}

/// Checks that git reads no objects of another repository. Links and `alternates` of data in the work tree may be those
/// of a clone; data elsewhere is that of the user.
pub(in crate::host) fn check_objects(repository: &Repository) -> Result<(), String> {
    let root = repository.root.canonicalize().map_err(|error| error.to_string())?;
    if !repository.common_dir.starts_with(&root) {
        return Ok(());
    }
    let objects = repository.common_dir.join("objects");
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|facts| facts.is_symlink());
    let has_links = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        is_link(folder)
            || entries.into_iter().any(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
    };
    let folders = [objects.clone(), objects.join("pack"), objects.join("info")];
    if folders.iter().any(|folder| has_links(folder)) || objects.join("info/alternates").exists() {
        let what = "the repository in this folder borrows objects of another one";
        return Err(format!("{what}. Mention the output of `!git diff HEAD` instead"));
    }
    Ok(())
}

/// A repository without objects and with a default configuration, at this commit.
fn own_repository(commit: Option<&str>) -> io::Result<tempfile::TempDir> {
    let own = private::temporary_folder()?;
    for folder in ["objects", "refs"] {
        private::make_own_folder(&own.path().join(folder))?;
    }
    let head = commit.map_or_else(|| "ref: refs/heads/main\n".to_owned(), |commit| format!("{commit}\n"));
    private::create_new(&own.path().join("HEAD"))?.write_all(head.as_bytes())?;
    let format = match commit {
        Some(commit) if commit.len() == 64 => {
            "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = sha256\n"
        }
        _ => "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
    };
    private::create_new(&own.path().join("config"))?.write_all(format.as_bytes())?;
    Ok(own)
}

/// The last commit; `None` before the first one.
pub(in crate::host) fn commit(git_dir: &Path, common_dir: &Path) -> Result<Option<String>, String> {
    let is_id =
        |text: &str| matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut text = read_text(&git_dir.join("HEAD")).ok_or("HEAD cannot be read")?;
    for _ in 0..MAX_REFERENCES {
        let value = text.trim();
        if is_id(value) {
            return Ok(Some(value.to_owned()));
        }
        let name = value.strip_prefix("ref:").map(str::trim).ok_or("HEAD is not valid")?;
        if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err("HEAD is not valid".to_owned());
        }
        if name == "refs/heads/.invalid" {
            return Err("repositories with references in tables are not supported".to_owned());
        }
        let loose = [git_dir, common_dir].iter().find_map(|dir| read_text(&dir.join(name)));
        let packed = || {
            let all = regular::read_text(&common_dir.join("packed-refs"), MAX_PACKED_BYTES)?;
            let line =
                all.lines().find(|line| line.split_once(' ').is_some_and(|(_, known)| known == name))?;
            Some(line.split_once(' ')?.0.to_owned())
        };
        match loose.or_else(packed) {
            Some(next) => text = next,
            None => return Ok(None),
        }
    }
    Err("HEAD is not valid".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::git::tests::git;
    use crate::host::os::fixtures;

    struct Repo(tempfile::TempDir);

    impl Repo {
        fn new() -> Self {
            let repo = Self(tempfile::tempdir().unwrap());
            repo.git(&["init", "-q", "-b", "main"]);
            repo
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        fn git(&self, args: &[&str]) -> &Self {
            git(self.path(), args);
            self
        }

        fn write(&self, name: &str, text: &str) -> &Self {
            fs::write(self.path().join(name), text).unwrap();
            self
        }
    }

    fn text(folder: &Path) -> String {
        String::from_utf8(changes(folder).unwrap().unwrap().text).unwrap()
    }

    #[test]
    fn changes_are_those_since_the_last_commit() {
        let repo = Repo::new();
        repo.write("a.txt", "one\n").git(&["add", "."]).git(&["commit", "-qm", "first"]);
        assert_eq!(text(repo.path()), "");
        repo.write("a.txt", "two\n").write("b.txt", "new\n").git(&["add", "b.txt"]);
        let diff = text(repo.path());
        assert!(diff.contains("-one\n+two\n") && diff.contains("b/b.txt") && diff.contains("+new"), "{diff}");
        fs::create_dir(repo.path().join("sub")).unwrap();
        assert_eq!(text(&repo.path().join("sub")), "", "only below the folder");
        repo.git(&["pack-refs", "--all"]);
        assert!(text(repo.path()).contains("+two"), "packed references");
        assert_eq!(changes(Path::new("/")).unwrap(), None);
    }

    #[test]
    fn a_repository_without_commits_has_only_additions() {
        let repo = Repo::new();
        repo.write("a.txt", "one\n").git(&["add", "."]);
        assert!(text(repo.path()).contains("+one"));
    }

    #[test]
    fn long_changes_are_cut() {
        let repo = Repo::new();
        repo.write("a.txt", &"line\n".repeat(MAX_BYTES / 4)).git(&["add", "."]);
        let changes = changes(repo.path()).unwrap().unwrap();
        assert!(changes.is_cut && changes.text.len() <= MAX_BYTES && changes.text.ends_with(b"\n"));
    }

    #[test]
    fn no_program_of_the_repository_runs_and_no_file_outside_is_read() {
        let repo = Repo::new();
        repo.write("a.txt", "one\n").git(&["add", "."]).git(&["commit", "-qm", "first"]);
        repo.write("a.txt", "two\n").write(".gitattributes", "* filter=evil diff=evil\n");
        let ran = repo.path().join("ran");
        let program = format!("sh -c 'echo >>{}; cat'", ran.display());
        for key in [
            "filter.evil.clean",
            "filter.evil.smudge",
            "filter.evil.process",
            "diff.evil.command",
            "diff.evil.textconv",
            "diff.external",
            "core.fsmonitor",
            "core.pager",
            "pager.diff",
            "core.sshCommand",
        ] {
            repo.git(&["config", key, &program]);
        }
        let hooks = repo.path().join(".git/hooks");
        fs::create_dir_all(&hooks).unwrap();
        for hook in ["post-index-change", "fsmonitor-watchman", "post-checkout"] {
            let file = hooks.join(hook);
            fs::write(&file, format!("#!/bin/sh\necho >>{}\n", ran.display())).unwrap();
            fixtures::set_mode(&file, 0o755);
        }
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("a.txt"), "secret\n").unwrap();
        repo.git(&["config", "core.worktree", elsewhere.path().to_str().unwrap()]);
        let before = fs::read(repo.path().join(".git/index")).unwrap();
        let _ = fs::remove_file(&ran);
        let diff = text(repo.path());
        assert!(diff.contains("-one\n+two\n") && !diff.contains("secret"), "{diff}");
        assert!(!ran.exists(), "a program of the repository ran");
        assert_eq!(fs::read(repo.path().join(".git/index")).unwrap(), before, "the index is not written");
    }
}
