//! A session in a git worktree: made, listed, locked, merged and removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::screen::Screen;

const CTRL_Q: &str = "\u{11}";

struct Machine {
    base: tempfile::TempDir,
}

impl Machine {
    /// A repository `shop` with a commit and an ignored file that is to be copied.
    fn new() -> Self {
        let machine = Self { base: tempfile::tempdir().unwrap() };
        fs::create_dir(machine.at("shop")).unwrap();
        fs::create_dir(machine.at("home")).unwrap();
        fs::write(machine.at("home/.gitconfig"), "[user]\n\tname = t\n\temail = t@example.com\n").unwrap();
        let files =
            [(".gitignore", ".env\n"), (".worktreeinclude", ".env\n"), (".env", "A=1"), ("a.txt", "one\n")];
        for (name, text) in files {
            fs::write(machine.at("shop").join(name), text).unwrap();
        }
        machine.git("shop", &["init", "-q", "-b", "main"]);
        machine.git("shop", &["add", "."]);
        machine.git("shop", &["commit", "-q", "-m", "one"]);
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.base.path().canonicalize().unwrap().join(path)
    }

    fn git(&self, folder: &str, args: &[&str]) {
        let mut command = Command::new("git");
        command.args(args).current_dir(self.at(folder)).env("HOME", self.at("home"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn start(&self, args: &[&str]) -> Screen {
        let (data, home) = (self.at("data"), self.at("home"));
        let variables: [(&str, &Path); 2] = [("PARLOR_DATA_DIR", &data), ("HOME", &home)];
        Screen::start_with(&self.at("shop"), args, (24, 80), &variables)
    }

    /// The exit code of `parlor worktrees`, and what it printed.
    fn worktrees(&self, args: &[&str]) -> (bool, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_parlor"));
        command.arg("worktrees").args(args).current_dir(self.at("shop"));
        command.env("PARLOR_DATA_DIR", self.at("data")).env("HOME", self.at("home"));
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// The folder of a worktree, as a path below the base.
    fn tree(&self, name: &str) -> PathBuf {
        let place = fs::read_dir(self.at("data-worktrees")).unwrap().next().unwrap().unwrap().path();
        place.join(name)
    }
}

#[test]
fn a_worktree_is_made_used_merged_and_removed() {
    let machine = Machine::new();
    let mut screen = machine.start(&["demo", "--worktree", "fix"]);
    screen.wait_for("ready");
    screen.wait_for("worktree fix (parlor/fix)");
    screen.wait_for("Worktree fix on branch parlor/fix");
    let tree = machine.tree("fix");
    assert_eq!(fs::read_to_string(tree.join(".env")).unwrap(), "A=1");
    let locked = machine.at("shop/.git/worktrees/fix/locked");
    screen.wait_until("the worktree is locked", |_| locked.exists());
    // Another one, from within.
    screen.send("/worktree second");
    screen.wait_for("/worktree second");
    screen.send("\r");
    screen.wait_for("second (parlor/second)");
    let (_, list) = machine.worktrees(&[]);
    assert!(list.contains("fix") && list.contains("second") && list.contains("in use"), "{list}");
    let (is_done, text) = machine.worktrees(&["remove", "fix"]);
    assert!(!is_done && text.contains("in use"), "{text}");
    screen.send(CTRL_Q);
    let _ = screen.wait_exit();
    assert!(!locked.exists() && tree.is_dir(), "unlocked, and not removed");

    fs::write(tree.join("b.txt"), "two\n").unwrap();
    let (is_done, text) = machine.worktrees(&["remove", "fix"]);
    assert!(!is_done && text.contains("not committed") && tree.join("b.txt").exists(), "{text}");
    let at = tree.strip_prefix(machine.at("")).unwrap().to_str().unwrap();
    machine.git(at, &["add", "b.txt"]);
    machine.git(at, &["commit", "-q", "-m", "two"]);
    let (is_done, text) = machine.worktrees(&["remove", "fix"]);
    assert!(!is_done && text.contains("in no other branch"), "{text}");
    let (is_done, text) = machine.worktrees(&["merge", "fix"]);
    assert!(is_done && text.contains("Merged parlor/fix into main"), "{text}");
    assert!(machine.at("shop/b.txt").exists());
    let (is_done, text) = machine.worktrees(&["remove", "fix"]);
    assert!(is_done && text.contains("and its branch parlor/fix"), "{text}");
    assert!(!tree.exists());
    let (_, list) = machine.worktrees(&[]);
    assert!(list.contains("second") && !list.contains("parlor/fix"), "{list}");
}

#[test]
fn a_killed_parlor_leaves_no_lock() {
    let machine = Machine::new();
    let mut screen = machine.start(&["demo", "--worktree", "fix"]);
    screen.wait_for("ready");
    let locked = machine.at("shop/.git/worktrees/fix/locked");
    screen.wait_until("the worktree is locked", |_| locked.exists());
    let killed = Command::new("kill").args(["-9", &screen.pid().to_string()]).status().unwrap();
    assert!(killed.success());
    let _ = screen.wait_exit();
    assert!(locked.exists());
    let (_, list) = machine.worktrees(&[]);
    assert!(list.contains("clean") && !locked.exists(), "{list}");
    let (is_done, text) = machine.worktrees(&["remove", "fix"]);
    assert!(is_done, "{text}");
}
