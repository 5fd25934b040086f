use std::process::Command;

use super::*;

fn git(folder: &Path, args: &[&str]) {
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
fn branch_and_state_of_a_repository() {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    fs::create_dir(&repo).unwrap();
    assert_eq!(read(&repo), None);
    git(&repo, &["init", "-q", "-b", "topic/one"]);
    assert_eq!(read(&repo), Some(info("topic/one", false)));
    fs::write(repo.join("f"), "x").unwrap();
    assert_eq!(read(&repo), Some(info("topic/one", true)));
    git(&repo, &["add", "f"]);
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

#[test]
fn a_status_leaves_the_index_alone_and_runs_no_program_of_the_repository() {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path();
    git(repo, &["init", "-q"]);
    fs::write(repo.join("f"), "x").unwrap();
    git(repo, &["add", "f"]);
    git(repo, &["config", "core.fsmonitor", "touch ran; false"]);
    let index = fs::metadata(repo.join(".git/index")).unwrap().modified().unwrap();
    // A touched file makes a plain status write the index again.
    fs::write(repo.join("f"), "x").unwrap();
    assert!(read(repo).unwrap().is_dirty);
    assert_eq!(fs::metadata(repo.join(".git/index")).unwrap().modified().unwrap(), index);
    assert!(!repo.join("ran").exists());
}

#[test]
fn a_damaged_repository_is_none() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".git"), "gitdir: nowhere\n").unwrap();
    assert_eq!(read(dir.path()), None);
    fs::write(dir.path().join(".git"), [0xff, 0xfe]).unwrap();
    assert_eq!(read(dir.path()), None);
}

#[test]
fn a_helper_that_takes_too_long_is_stopped_with_what_it_started() {
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
