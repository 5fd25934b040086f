//! Tests with real repositories.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, SystemTime};

use super::*;
use crate::host::git as repositories;
use crate::host::git::tests::git;
use crate::host::os::fixtures;

/// A repository `shop` with a commit, and the folder of the worktrees.
struct Rig {
    base: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let rig = Self { base: tempfile::tempdir().unwrap() };
        fs::create_dir(rig.shop()).unwrap();
        fs::create_dir(rig.at("home")).unwrap();
        fs::write(rig.at("home/.gitconfig"), "[user]\n\tname = t\n\temail = t@example.com\n").unwrap();
        git(&rig.shop(), &["init", "-q", "-b", "main"]);
        commit(&rig.shop(), "a.txt", "one\n");
        rig
    }

    fn at(&self, path: &str) -> PathBuf {
        self.base.path().canonicalize().unwrap().join(path)
    }

    fn shop(&self) -> PathBuf {
        self.at("shop")
    }

    fn worktrees(&self) -> Worktrees {
        Worktrees::beside(&self.at("data"), Some(self.at("home")))
    }

    fn all(&self) -> PathBuf {
        self.worktrees().dir
    }

    fn make(&self, name: &str) -> Result<NewWorktree, String> {
        self.worktrees().make(&self.shop(), Some(name))
    }

    fn made(&self, name: &str) -> PathBuf {
        self.make(name).unwrap().folder
    }

    fn only(&self) -> Worktree {
        let mut list = self.worktrees().list(&self.shop()).unwrap();
        assert_eq!(list.len(), 1, "{list:?}");
        list.remove(0)
    }

    fn remove(&self, name: &str) -> Result<String, String> {
        self.worktrees().remove(&self.shop(), name)
    }

    fn merge(&self, name: &str) -> Result<String, String> {
        self.worktrees().merge(&self.shop(), name)
    }

    fn branches(&self) -> Vec<String> {
        let heads = self.shop().join(".git/refs/heads/parlor");
        let entries = fs::read_dir(heads).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    fn lock_reason(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.shop().join(".git/worktrees").join(name).join("locked")).ok()
    }
}

fn commit(folder: &Path, file: &str, text: &str) {
    fs::write(folder.join(file), text).unwrap();
    git(folder, &["add", "-f", file]);
    git(folder, &["commit", "-q", "-m", file]);
}

#[test]
fn a_worktree_has_its_own_branch() {
    let rig = Rig::new();
    let made = rig.make("fix").unwrap();
    assert_eq!(made.title, "Worktree fix on branch parlor/fix");
    assert!(made.folder.starts_with(rig.all()));
    assert_eq!(fs::read_to_string(made.folder.join("a.txt")).unwrap(), "one\n");
    assert_eq!(repositories::read(&made.folder).unwrap().branch, "parlor/fix");
    let tree = rig.only();
    assert_eq!((tree.name.as_str(), tree.state().as_str()), ("fix", "clean"));
    assert_eq!(fixtures::mode(rig.all()), 0o700);
    // Another one, from within the first.
    let other = rig.worktrees().make(&made.folder, None).unwrap();
    assert_eq!(other.folder.parent(), made.folder.parent());
    let name = other.folder.file_name().unwrap().to_str().unwrap();
    assert!(check_name(name).is_ok(), "{name}");
}

#[test]
fn only_safe_and_free_names_are_used() {
    let rig = Rig::new();
    for name in [
        "",
        "-b",
        "a/b",
        "..",
        "a..b",
        ".git",
        "a.lock",
        "a.",
        "a b",
        "é",
        "a\n",
        "a\u{1b}",
        "a:b",
        &"a".repeat(65),
    ] {
        assert!(rig.make(name).unwrap_err().starts_with("Invalid worktree name"), "{name:?}");
    }
    rig.made("a.b-c_1");
    assert!(rig.make("a.b-c_1").unwrap_err().contains("already exists"));
    git(&rig.shop(), &["branch", "parlor/branch"]);
    assert!(rig.make("branch").unwrap_err().contains("already exists"));
    assert_eq!(rig.only().name, "a.b-c_1");
}

#[test]
fn folders_without_a_commit_are_refused() {
    let rig = Rig::new();
    let make = |folder: &str| {
        fs::create_dir_all(rig.at(folder)).unwrap();
        rig.worktrees().make(&rig.at(folder), Some("x")).unwrap_err()
    };
    assert!(make("plain").contains("is not in a git repository"));
    git(&rig.at(""), &["init", "-q", "--bare", "bare"]);
    assert!(make("bare").contains("is not in a git repository"));
    git(&rig.at(""), &["init", "-q", "empty"]);
    assert!(make("empty").contains("has no commit yet"));
    assert!(!rig.all().exists());
}

#[test]
fn symbolic_links_in_the_path_are_refused() {
    let rig = Rig::new();
    let place = rig.made("one").parent().unwrap().to_owned();
    let elsewhere = rig.at("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fixtures::link(&elsewhere, place.join("two"));
    assert!(rig.make("two").unwrap_err().contains("already exists"));
    for link in [place, rig.all()] {
        let aside = link.with_extension("aside");
        fs::rename(&link, &aside).unwrap();
        fixtures::link(&elsewhere, &link);
        assert!(rig.make("three").unwrap_err().contains("is a symbolic link"), "{}", link.display());
        fs::remove_file(&link).unwrap();
        fs::rename(&aside, &link).unwrap();
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert_eq!(rig.branches(), ["one"]);
}

#[test]
fn no_program_of_a_repository_runs() {
    let rig = Rig::new();
    let ran = rig.at("ran");
    let run = format!("touch {}; cat", ran.display());
    let shop = rig.shop();
    commit(&shop, ".gitattributes", "*.txt filter=x merge=y\n*.bin filter=a=b\n");
    commit(&shop, "b.bin", "two\n");
    for key in
        ["core.fsmonitor", "filter.x.smudge", "filter.x.clean", "filter.x.process", "filter.a=b.smudge"]
    {
        git(&shop, &["config", key, &run]);
    }
    let hooks = shop.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in
        ["post-checkout", "post-index-change", "reference-transaction", "pre-merge-commit", "post-merge"]
    {
        fs::write(hooks.join(hook), format!("#!/bin/sh\n{run}\n")).unwrap();
        fixtures::set_mode(hooks.join(hook), 0o755);
    }
    fs::write(rig.at("home/.gitconfig"), format!("[filter \"x\"]\n\tsmudge = {run}\n\trequired = true\n"))
        .unwrap();
    let made = rig.make("fix").unwrap();
    assert!(made.details.contains("Filters were not run") && made.details.contains("(x)"), "{made:?}");
    assert_eq!(fs::read_to_string(made.folder.join("a.txt")).unwrap(), "one\n");
    // A changed time makes `git status` look at the content.
    let file = fs::File::options().write(true).open(made.folder.join("a.txt")).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    assert_eq!(rig.only().state(), "clean");
    assert!(rig.merge("fix").unwrap_err().contains("Nothing to merge"));
    rig.remove("fix").unwrap();
    assert!(!ran.exists());
}

#[test]
fn a_merge_that_needs_programs_is_refused() {
    let rig = Rig::new();
    commit(&rig.shop(), ".gitattributes", "*.txt filter=x\n");
    git(&rig.shop(), &["config", "filter.x.clean", "cat"]);
    let tree = rig.made("fix");
    commit(&tree, "b.md", "two\n");
    assert!(rig.merge("fix").unwrap_err().contains("which parlor does not run"));
    assert!(!rig.shop().join("b.md").exists());
}

#[test]
fn only_named_ignored_files_are_copied() {
    let rig = Rig::new();
    let shop = rig.shop();
    commit(&shop, ".gitignore", ".env\n*.key\ntarget/\nlinks/\n");
    commit(
        &shop,
        ".worktreeinclude",
        ".env\n*.key\nuntracked.txt\na.txt\nlinks/\n../outside\n/etc/hostname\n",
    );
    fs::create_dir_all(shop.join("sub/target")).unwrap();
    fs::create_dir(shop.join("links")).unwrap();
    for (file, text) in [(".env", "A=1"), ("sub/.env", "B=2"), ("x.key", "k"), ("sub/target/big", "")] {
        fs::write(shop.join(file), text).unwrap();
    }
    fs::write(shop.join("untracked.txt"), "not ignored").unwrap();
    fs::write(rig.at("outside"), "secret").unwrap();
    fixtures::link(rig.at("outside"), shop.join("links/file"));
    fs::File::create(shop.join("huge.key")).unwrap().set_len(65 << 20).unwrap();
    let made = rig.make("fix").unwrap();
    let left_out = "Not copied: huge.key (too large, or not a readable file), links/file (symbolic link)";
    assert!(made.details.contains("Copied: .env, sub/.env, x.key\n"), "{made:?}");
    assert!(made.details.ends_with(left_out), "{made:?}");
    assert_eq!(fs::read_to_string(made.folder.join("sub/.env")).unwrap(), "B=2");
    assert_eq!(fixtures::mode(made.folder.join(".env")), 0o600);
    assert!(!made.folder.join("untracked.txt").exists() && !made.folder.join("links/file").exists());
}

#[test]
fn copies_do_not_follow_links_of_the_checkout() {
    let rig = Rig::new();
    let shop = rig.shop();
    fs::create_dir(rig.at("outside")).unwrap();
    fixtures::link(rig.at("outside"), shop.join("conf"));
    commit(&shop, ".gitignore", "*.env\n");
    commit(&shop, ".worktreeinclude", "*.env\n");
    git(&shop, &["add", "conf"]);
    git(&shop, &["commit", "-q", "-m", "link"]);
    // The main checkout has a folder where the commit has a link.
    fs::remove_file(shop.join("conf")).unwrap();
    fs::create_dir(shop.join("conf")).unwrap();
    fs::write(shop.join("conf/x.env"), "A=1").unwrap();
    let made = rig.make("fix").unwrap();
    assert!(made.details.contains("Not copied: conf/x.env ("), "{made:?}");
    assert_eq!(fs::read_dir(rig.at("outside")).unwrap().count(), 0);
}

#[test]
fn a_linked_include_file_names_nothing() {
    let rig = Rig::new();
    commit(&rig.shop(), ".gitignore", ".env\n");
    fs::write(rig.shop().join(".env"), "A=1").unwrap();
    fs::write(rig.at("patterns"), ".env\n").unwrap();
    fixtures::link(rig.at("patterns"), rig.shop().join(".worktreeinclude"));
    assert!(!rig.made("fix").join(".env").exists());
}

#[test]
fn removing_deletes_copies_branch_and_folder() {
    let rig = Rig::new();
    commit(&rig.shop(), ".gitignore", ".env\n");
    commit(&rig.shop(), ".worktreeinclude", ".env\n");
    fs::write(rig.shop().join(".env"), "A=1").unwrap();
    for number in 0..3 {
        let name = format!("fix{number}");
        let tree = rig.made(&name);
        assert_eq!(
            rig.remove(&name),
            Ok(format!("Removed the worktree {name} and its branch parlor/{name}."))
        );
        assert_eq!(fs::read_dir(tree.parent().unwrap()).unwrap().count(), 0, "no copy of .env is left");
        assert_eq!(rig.branches(), Vec::<String>::new());
    }
    assert!(rig.remove("fix0").unwrap_err().contains("No worktree"));
}

#[test]
fn changes_and_commits_are_never_deleted() {
    let rig = Rig::new();
    let tree = rig.made("fix");
    fs::write(tree.join("new.txt"), "untracked").unwrap();
    assert_eq!(rig.only().state(), "1 changed");
    assert!(rig.remove("fix").unwrap_err().contains("not committed (files: 1)"));
    commit(&tree, "new.txt", "two\n");
    assert_eq!(rig.only().state(), "1 unmerged");
    assert!(rig.remove("fix").unwrap_err().contains("in no other branch (commits: 1)"));
    // Also if an agent has left the branch.
    git(&tree, &["checkout", "-q", "--detach", "main"]);
    assert_eq!(rig.only().state(), "1 unmerged");
    assert!(rig.remove("fix").is_err() && tree.is_dir());
    git(&rig.shop(), &["branch", "saved", "parlor/fix"]);
    assert!(rig.remove("fix").is_ok() && !tree.exists());
}

#[test]
fn a_refusal_of_git_deletes_nothing() {
    let rig = Rig::new();
    git(&rig.at(""), &["clone", "-q", "shop", "inner"]);
    git(
        &rig.shop(),
        &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../inner", "inner"],
    );
    git(&rig.shop(), &["commit", "-q", "-m", "submodule"]);
    let made = rig.make("fix").unwrap();
    assert!(made.details.contains("Submodules are not initialized"), "{made:?}");
    // git removes no worktree with a submodule that was initialized.
    let update = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"];
    git(&made.folder, &update);
    let why = rig.remove("fix").unwrap_err();
    assert!(why.contains("containing submodules cannot be"), "{why}");
    assert!(made.folder.join("a.txt").exists());
    // A folder that does not belong to the repository any more.
    let other = rig.made("other");
    fs::write(other.join(".git"), format!("gitdir: {}\n", rig.at("inner/.git").display())).unwrap();
    let why = rig.remove("other").unwrap_err();
    assert!(why.contains("cannot be read"), "{why}");
    assert!(other.join("a.txt").exists());
}

#[test]
fn worktrees_in_use_are_locked_until_closed() {
    let rig = Rig::new();
    let tree = rig.made("fix");
    let apply = |worktrees: &Worktrees, folders: BTreeSet<PathBuf>| {
        worktrees.want_locks(folders);
        worktrees.apply_locks();
    };
    let (one, other) = (rig.worktrees(), rig.worktrees());
    apply(&one, [tree.clone()].into());
    assert!(rig.lock_reason("fix").unwrap().starts_with("parlor session, process "));
    assert_eq!(rig.only().state(), "in use");
    assert!(rig.remove("fix").unwrap_err().contains("is in use"));
    // Another parlor in the same worktree.
    apply(&other, [tree].into());
    apply(&one, BTreeSet::new());
    assert_eq!(rig.only().state(), "in use");
    apply(&other, BTreeSet::new());
    assert_eq!((rig.lock_reason("fix"), rig.only().state().as_str()), (None, "clean"));
}

#[test]
fn locks_of_killed_processes_do_not_stay() {
    let rig = Rig::new();
    let tree = rig.made("fix");
    let lock = |reason| git(&rig.shop(), &["worktree", "lock", "--reason", reason, tree.to_str().unwrap()]);
    lock("parlor session, process 1");
    assert_eq!((rig.only().state().as_str(), rig.lock_reason("fix")), ("clean", None));
    // The user's own lock does.
    lock("mine");
    assert_eq!(rig.only().state(), "in use");
    assert!(rig.remove("fix").is_err() && tree.is_dir());
}

#[test]
fn a_merge_brings_commits_into_the_checkout() {
    let rig = Rig::new();
    let tree = rig.made("fix");
    fs::write(tree.join("b.txt"), "two\n").unwrap();
    assert!(rig.merge("fix").unwrap_err().contains("not committed"));
    commit(&tree, "b.txt", "two\n");
    fs::write(rig.shop().join("a.txt"), "dirty\n").unwrap();
    assert!(rig.merge("fix").unwrap_err().contains("not committed"));
    git(&rig.shop(), &["checkout", "-q", "a.txt"]);
    assert_eq!(rig.merge("fix"), Ok("Merged parlor/fix into main.".to_owned()));
    assert_eq!(fs::read_to_string(rig.shop().join("b.txt")).unwrap(), "two\n");
    assert!(rig.remove("fix").is_ok());
}

#[test]
fn a_merge_with_conflicts_changes_nothing() {
    let rig = Rig::new();
    let tree = rig.made("fix");
    commit(&tree, "a.txt", "theirs\n");
    commit(&rig.shop(), "a.txt", "ours\n");
    let why = rig.merge("fix").unwrap_err();
    assert!(why.contains("conflicts") && why.contains("git merge parlor/fix"), "{why}");
    assert_eq!(fs::read_to_string(rig.shop().join("a.txt")).unwrap(), "ours\n");
    git(&rig.shop(), &["checkout", "-q", "--detach"]);
    assert!(rig.merge("fix").unwrap_err().contains("is on no branch"));
}

#[test]
fn a_merge_of_diverged_branches_makes_a_commit() {
    let rig = Rig::new();
    let tree = rig.made("fix");
    commit(&tree, "b.txt", "two\n");
    commit(&rig.shop(), "c.txt", "three\n");
    // git would prefer this tag.
    git(&rig.shop(), &["tag", "parlor/fix", "main"]);
    rig.merge("fix").unwrap();
    assert_eq!(fs::read_to_string(rig.shop().join("b.txt")).unwrap(), "two\n");
    assert!(rig.merge("fix").unwrap_err().contains("Nothing to merge"));
    git(&rig.shop(), &["diff", "--exit-code", "HEAD"]);
    git(&rig.shop(), &["rev-parse", "--verify", "--quiet", "HEAD^2"]);
}

#[test]
fn a_merge_overwrites_no_untracked_file() {
    let rig = Rig::new();
    let tree = rig.made("fix");
    commit(&tree, "b.txt", "two\n");
    fs::write(rig.shop().join("b.txt"), "mine\n").unwrap();
    assert!(rig.merge("fix").unwrap_err().contains("b.txt"));
    assert_eq!(fs::read_to_string(rig.shop().join("b.txt")).unwrap(), "mine\n");
    // git overwrites ignored files, and a file where a folder is needed.
    fs::remove_file(rig.shop().join("b.txt")).unwrap();
    fs::create_dir(tree.join("local")).unwrap();
    commit(&tree, "local/c.txt", "two\n");
    fs::write(rig.shop().join(".git/info/exclude"), "b.txt\nlocal\n").unwrap();
    for name in ["b.txt", "local"] {
        fs::write(rig.shop().join(name), "mine\n").unwrap();
        let error = rig.merge("fix").unwrap_err();
        assert!(error.contains("would overwrite files that are not tracked"), "{error}");
        assert_eq!(fs::read_to_string(rig.shop().join(name)).unwrap(), "mine\n");
        fs::remove_file(rig.shop().join(name)).unwrap();
    }
    rig.merge("fix").unwrap();
}

#[test]
fn options_of_a_merge_run_nothing() {
    let rig = Rig::new();
    let (shop, tree, ran) = (rig.shop(), rig.made("fix"), rig.at("ran"));
    commit(&tree, "b.txt", "two\n");
    commit(&shop, "c.txt", "three\n");
    fs::write(rig.at("program"), format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
    fixtures::set_mode(rig.at("program"), 0o755);
    let program = rig.at("program");
    for (key, value) in [
        ("gpg.program", program.to_str().unwrap()),
        ("core.editor", program.to_str().unwrap()),
        ("merge.verifySignatures", "true"),
        ("branch.main.mergeOptions", "-S --edit"),
    ] {
        git(&shop, &["config", key, value]);
    }
    rig.merge("fix").unwrap();
    assert!(!ran.exists());
    // A merge driver is not ignored: the result would be another one.
    commit(&tree, "d.txt", "");
    git(&shop, &["config", "merge.x.driver", program.to_str().unwrap()]);
    commit(&shop, "e.txt", "");
    assert!(rig.merge("fix").unwrap_err().contains("which parlor does not run"));
    assert!(!ran.exists());
}

#[test]
fn filters_for_a_branch_only_do_not_run() {
    let rig = Rig::new();
    let (shop, ran) = (rig.shop(), rig.at("ran"));
    commit(&shop, ".gitattributes", "*.txt filter=x\n");
    let run = format!("touch {}; cat", ran.display());
    fs::write(rig.at("more"), format!("[filter \"x\"]\n\tsmudge = \"{run}\"\n\tclean = \"{run}\"\n"))
        .unwrap();
    git(&shop, &["config", "includeIf.onbranch:parlor/fix.path", rig.at("more").to_str().unwrap()]);
    let made = rig.make("fix").unwrap();
    assert!(made.details.contains("Filters were not run"), "{made:?}");
    let file = fs::File::options().write(true).open(made.folder.join("a.txt")).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    assert_eq!(rig.only().state(), "clean");
    rig.remove("fix").unwrap();
    assert!(!ran.exists());
}

#[test]
fn other_work_trees_and_repositories_are_refused() {
    let rig = Rig::new();
    let make = |folder: &str| rig.worktrees().make(&rig.at(folder), Some("x")).unwrap_err();
    fs::create_dir(rig.at("clone")).unwrap();
    fs::write(rig.at("clone/.git"), format!("gitdir: {}\n", rig.shop().join(".git").display())).unwrap();
    assert!(make("clone").contains("leads to another repository"));
    fs::create_dir(rig.at("elsewhere")).unwrap();
    git(&rig.shop(), &["config", "core.worktree", rig.at("elsewhere").to_str().unwrap()]);
    assert!(make("shop").contains("does not use"));
    assert!(!rig.all().exists());
}

#[test]
fn a_branch_in_use_elsewhere_is_not_deleted() {
    let rig = Rig::new();
    let tree = rig.made("fix");
    git(&tree, &["checkout", "-q", "--detach"]);
    git(&rig.shop(), &["checkout", "-q", "parlor/fix"]);
    git(&rig.shop(), &["branch", "saved"]);
    assert_eq!(rig.remove("fix"), Ok("Removed the worktree fix.".to_owned()));
    assert_eq!(rig.branches(), ["fix"]);
}

#[test]
fn programs_of_submodules_do_not_run() {
    let rig = Rig::new();
    let (shop, ran) = (rig.shop(), rig.at("ran"));
    git(&rig.at(""), &["clone", "-q", "shop", "inner"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../inner", "inner"];
    git(&shop, &add);
    git(&shop, &["commit", "-q", "-m", "submodule"]);
    let tree = rig.made("fix");
    // As an agent could leave it.
    git(&tree.join("inner"), &["init", "-q"]);
    git(&tree.join("inner"), &["pull", "-q", rig.at("inner").to_str().unwrap()]);
    git(&tree.join("inner"), &["config", "core.fsmonitor", &format!("touch {}", ran.display())]);
    assert_eq!(rig.only().state(), "clean");
    assert!(rig.remove("fix").is_err() && tree.is_dir());
    assert!(!ran.exists());
}
