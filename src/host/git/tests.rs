use std::fs;
use std::process::Command;

use super::*;
use crate::host::os::fixtures;
use crate::host::process;

/// Runs git in a folder, with a user name.
pub fn git(folder: &Path, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn info(branch: &str, is_dirty: bool) -> GitInfo {
    GitInfo { branch: branch.to_owned(), is_dirty }
}

#[test]
fn branch_and_state_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    fs::create_dir(&repo).unwrap();
    assert_eq!(read(&repo), None);
    git(&repo, &["init", "-q", "-b", "topic/one"]);
    assert_eq!(read(&repo), Some(info("topic/one", false)));
    fs::write(repo.join("f"), "x").unwrap();
    assert_eq!(read(&repo), Some(info("topic/one", false)), "untracked files do not count");
    git(&repo, &["add", "f"]);
    assert_eq!(read(&repo), Some(info("topic/one", true)));
    git(&repo, &["commit", "-q", "-m", "one"]);
    fs::create_dir_all(repo.join("sub/deep")).unwrap();
    assert_eq!(read(&repo.join("sub/deep")), Some(info("topic/one", false)));

    let tree = dir.path().join("tree");
    git(&repo, &["worktree", "add", "-q", "-b", "two", tree.to_str().unwrap()]);
    assert_eq!(read(&tree), Some(info("two", false)));
    git(&tree, &["checkout", "-q", "--detach"]);
    let detached = read(&tree).unwrap().branch;
    assert!(detached.len() == 7 && detached.chars().all(|c| c.is_ascii_hexdigit()), "{detached}");
}

/// A repository with a committed file.
fn committed(repo: &Path, file: &str, text: &str) {
    git(repo, &["init", "-q", "-b", "main"]);
    fs::write(repo.join(file), text).unwrap();
    git(repo, &["add", "."]);
    git(repo, &["commit", "-q", "-m", "one"]);
}

/// Changes the time of a file, so that its content is compared.
fn touch(path: &Path) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(60)).unwrap();
}

#[test]
fn programs_named_by_a_repository_are_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    fs::create_dir(&repo).unwrap();
    committed(&repo, "a.txt", "one\n");
    let ran = dir.path().join("ran");
    let run = format!("touch {}; cat", ran.display());
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "filter.x.clean",
        "filter.x.process",
        "diff.x.textconv",
    ] {
        git(&repo, &["config", key, &run]);
    }
    git(&repo, &["config", "core.hooksPath", "hooks"]);
    fs::create_dir(repo.join("hooks")).unwrap();
    fs::write(repo.join("hooks/post-index-change"), format!("#!/bin/sh\n{run}\n")).unwrap();
    fs::write(repo.join(".gitattributes"), "*.txt filter=x diff=x\n").unwrap();
    let index = fs::read(repo.join(".git/index")).unwrap();
    fs::write(repo.join("a.txt"), "two\n").unwrap();
    touch(&repo.join("a.txt"));
    assert_eq!(read(&repo).map(|info| info.branch), Some("main".to_owned()));
    assert!(!read(&repo).unwrap().is_dirty, "filtered contents are not compared");
    fs::remove_file(repo.join("a.txt")).unwrap();
    assert!(read(&repo).unwrap().is_dirty);
    assert_eq!(fs::read(repo.join(".git/index")).unwrap(), index);
    // A bare repository among the tracked files is not the repository of its folder.
    let inner = repo.join("docs");
    git(&repo, &["init", "-q", "--bare", "docs"]);
    git(&inner, &["config", "core.fsmonitor", &run]);
    assert_eq!(read(&inner).map(|info| info.branch), Some("main".to_owned()));
    assert!(!ran.exists());
}

#[test]
fn changed_contents_are_distinguished_from_changed_times() {
    for version in ["2", "3", "4"] {
        let dir = tempfile::tempdir().unwrap();
        let repo = dir.path();
        git(repo, &["init", "-q", "-b", "main"]);
        git(repo, &["config", "index.version", version]);
        fs::create_dir(repo.join("sub")).unwrap();
        for file in ["a", "sub/one.txt", "sub/other.txt", "z"] {
            fs::write(repo.join(file), "one\n").unwrap();
        }
        fixtures::link("a", repo.join("link"));
        git(repo, &["add", "."]);
        git(repo, &["commit", "-q", "-m", "one"]);
        let is_dirty = || read(repo).unwrap().is_dirty;
        assert!(!is_dirty(), "{version}");
        let file = repo.join("sub/one.txt");
        touch(&file);
        assert!(!is_dirty(), "{version}: the same content");
        fs::write(&file, "one\r\n").unwrap();
        assert!(!is_dirty(), "{version}: other line ends");
        fs::write(&file, "two\n").unwrap();
        touch(&file);
        assert!(is_dirty(), "{version}: the same size");
        fs::write(&file, "three\n").unwrap();
        assert!(is_dirty(), "{version}");
        fs::remove_file(&file).unwrap();
        assert!(is_dirty(), "{version}");
        git(repo, &["checkout", "-q", "."]);
        assert!(!is_dirty(), "{version}");
        fs::remove_file(repo.join("link")).unwrap();
        fixtures::link("z", repo.join("link"));
        assert!(is_dirty(), "{version}: a link");
        git(repo, &["checkout", "-q", "."]);
        fs::write(repo.join("z"), "staged").unwrap();
        git(repo, &["add", "z"]);
        assert!(is_dirty(), "{version}: staged");
        git(repo, &["commit", "-q", "-m", "two"]);
        assert!(!is_dirty(), "{version}");
        git(repo, &["update-index", "--assume-unchanged", "a"]);
        fs::write(repo.join("a"), "changed").unwrap();
        assert!(!is_dirty(), "{version}: the user said so");
    }
}

#[test]
fn unknown_states_count_as_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path();
    committed(repo, "a", "one\n");
    git(repo, &["update-index", "--split-index"]);
    fs::remove_file(repo.join("a")).unwrap();
    assert_eq!(read(repo), Some(info("main", false)));
    git(repo, &["update-index", "--no-split-index"]);
    assert_eq!(read(repo), Some(info("main", true)));
    git(repo, &["config", "core.worktree", "/"]);
    assert_eq!(read(repo), Some(info("main", false)));
    fs::write(repo.join(".git/index"), "DIRC").unwrap();
    assert_eq!(read(repo), Some(info("main", false)));
}

#[test]
fn pipes_in_a_repository_do_not_block() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = |path: &Path| {
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    };
    pipe(&dir.path().join(".git"));
    assert_eq!(read(dir.path()), None);
    let repo = dir.path().join("repo");
    fs::create_dir(&repo).unwrap();
    committed(&repo, "a", "one\n");
    for name in ["index", "config", "commondir"] {
        let file = repo.join(".git").join(name);
        let _ = fs::remove_file(&file);
        pipe(&file);
    }
    assert_eq!(read(&repo), Some(info("main", false)));
}

#[test]
fn a_damaged_repository_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".git"), "gitdir: nowhere\n").unwrap();
    assert_eq!(read(dir.path()), None);
    fs::write(dir.path().join(".git"), [0xff, 0xfe]).unwrap();
    assert_eq!(read(dir.path()), None);
}

#[test]
fn slow_helpers_are_killed_with_their_child_processes() {
    let dir = tempfile::tempdir().unwrap();
    let before = std::time::Instant::now();
    let late =
        process::read_output("sh", &["-c", "(sleep 3; touch late) & sleep 3; touch late"], Some(dir.path()));
    assert_eq!(late.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
    assert!(before.elapsed() < std::time::Duration::from_millis(2900));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(!dir.path().join("late").exists());
    assert!(process::read_output("no-such-program-here", &[], None).is_err());
    assert!(process::read_output("sh", &["-c", "exit 3"], None).is_err());
    let much = process::read_output("sh", &["-c", "yes | head -c 3000000"], None).unwrap();
    assert_eq!(much.len(), 1 << 20);
}

/// A folder whose `.git` leads to the repository `private`, which has a secret.
fn stranger(dir: &Path, link: impl Fn(&Path)) -> PathBuf {
    let private = dir.join("private");
    fs::create_dir(&private).unwrap();
    committed(&private, "secret.txt", "secret\n");
    let clone = dir.join("clone");
    fs::create_dir(&clone).unwrap();
    link(&clone);
    clone
}

#[test]
fn repositories_elsewhere_are_not_read() {
    let links: [&dyn Fn(&Path); 5] = [
        &|clone| fs::write(clone.join(".git"), "gitdir: ../private/.git\n").unwrap(),
        &|clone| fixtures::link("../private/.git", clone.join(".git")),
        &|clone| {
            fs::create_dir(clone.join(".git")).unwrap();
            fs::write(clone.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(clone.join(".git/commondir"), "../../private/.git\n").unwrap();
        },
        &|clone| {
            git(clone, &["init", "-q", "-b", "main"]);
            fs::remove_dir_all(clone.join(".git/objects")).unwrap();
            fixtures::link("../../private/.git/objects", clone.join(".git/objects"));
        },
        &|clone| {
            git(clone, &["init", "-q", "-b", "main"]);
            fs::write(clone.join(".git/objects/info/alternates"), "../../../private/.git/objects\n").unwrap();
        },
    ];
    for (position, link) in links.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let clone = stranger(dir.path(), link);
        let read = changes(&clone);
        assert!(read.is_err(), "{position}: {read:?}");
    }
}

#[test]
fn worktrees_and_submodules_name_their_work_tree() {
    let dir = tempfile::tempdir().unwrap();
    let part = stranger(dir.path(), |_| ());
    let private = dir.path().join("private");
    git(&part, &["init", "-q", "-b", "main"]);
    let allow = ["-c", "protocol.file.allow=always"];
    git(&part, &[&allow[..], &["submodule", "--quiet", "add", private.to_str().unwrap(), "sub"]].concat());
    fs::write(part.join("sub/secret.txt"), "changed\n").unwrap();
    let text = |folder: &Path| String::from_utf8(changes(folder).unwrap().unwrap().text).unwrap();
    assert!(text(&part.join("sub")).contains("+changed"));
    let tree = dir.path().join("tree");
    git(&private, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    fs::write(tree.join("secret.txt"), "other\n").unwrap();
    assert!(text(&tree).contains("+other"));
}

#[test]
fn special_files_in_a_repository_do_not_block() {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path();
    committed(repo, "a.txt", "one\n");
    fs::write(repo.join("a.txt"), "two\n").unwrap();
    fs::remove_file(repo.join(".git/refs/heads/main")).unwrap();
    fixtures::link("/dev/zero", repo.join(".git/packed-refs"));
    let has_no_commit = String::from_utf8(changes(repo).unwrap().unwrap().text).unwrap();
    assert!(has_no_commit.contains("+two"), "{has_no_commit}");
    fs::remove_file(repo.join(".git/packed-refs")).unwrap();
    let pipe = repo.join(".git/packed-refs");
    fixtures::pipe(&pipe);
    assert!(changes(repo).is_ok());
}
