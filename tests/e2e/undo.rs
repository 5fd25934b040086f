//! Undo and redo of what an agent did, on the screen and after a restart.

use std::fs;
use std::path::{Path, PathBuf};

use super::policy::{agent, writes};
use super::screen::Screen;

const CTRL_Q: &str = "\u{11}";

struct Machine {
    home: tempfile::TempDir,
    work: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), work: tempfile::tempdir().unwrap() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.work.path().canonicalize().unwrap().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_else(|_| "absent".to_owned())
    }

    /// Starts an agent that overwrites a file and adds one in its only turn.
    fn start(&self, more: &[&str]) -> Screen {
        let mut script = "> \"initialize\"\n\
            < {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{}}}\n\
            > \"session/new\"\n< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"sessionId\":\"s\"}}\n\
            > \"session/prompt\"\n= prompt\n"
            .to_owned();
        for (id, name) in [(50, "old.txt"), (51, "new.txt")] {
            script += &writes(id, &self.file(name), "by the agent");
        }
        script += "< {\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{\"stopReason\":\"end_turn\"}}\n";
        let file = self.home.path().join("script");
        fs::write(&file, script).unwrap();
        let agent = agent();
        let args = [more, &["--", agent.to_str().unwrap(), file.to_str().unwrap()]].concat();
        let data = self.home.path().join("data");
        let variables: [(&str, &Path); 2] = [("PARLOR_DATA_DIR", &data), ("HOME", self.home.path())];
        Screen::start_with(self.work.path(), &args, (30, 100), &variables)
    }

    /// Starts the agent on a file of the user, and waits for the end of its turn.
    fn after_turn(&self) -> Screen {
        fs::write(self.file("old.txt"), "by the user").unwrap();
        let mut screen = self.start(&[]);
        screen.wait_for("ready");
        screen.send("go");
        screen.wait_for("go");
        screen.send("\r");
        screen.wait_for("2 files");
        screen.wait_until("both files are written", |_| self.text("new.txt") == "by the agent");
        screen
    }
}

fn command(screen: &mut Screen, name: &str, title: &str) {
    screen.send(name);
    screen.wait_for(name);
    screen.send("\r");
    screen.wait_for(title);
}

#[test]
fn a_turn_is_undone_and_redone_also_after_a_restart() {
    let machine = Machine::new();
    let mut screen = machine.after_turn();

    command(&mut screen, "/undo", "restore 2 files");
    // Nothing is written before the key.
    assert_eq!(machine.text("old.txt"), "by the agent");
    screen.send("r");
    screen.wait_for("Restored 2 files");
    assert_eq!(
        (machine.text("old.txt").as_str(), machine.text("new.txt").as_str()),
        ("by the user", "absent")
    );
    screen.send(CTRL_Q);
    screen.wait_exit();

    let mut screen = machine.start(&["--continue"]);
    screen.wait_for("Restored 2 files");
    command(&mut screen, "/redo", "restore 2 files");
    screen.send("r");
    screen.wait_for("Reverted the undo of 2 files");
    assert_eq!(
        (machine.text("old.txt").as_str(), machine.text("new.txt").as_str()),
        ("by the agent", "by the agent")
    );
    screen.send(CTRL_Q);
    screen.wait_exit();
}

#[test]
fn a_review_accepts_and_rejects_and_is_complete_after_a_restart() {
    let machine = Machine::new();
    let mut screen = machine.after_turn();

    command(&mut screen, "/review-changes", "accept file");
    // The new file is the first one.
    screen.send("r");
    screen.wait_for("Reverted");
    assert_eq!(machine.text("new.txt"), "absent");
    screen.wait_for("accept hunk");
    screen.send("a");
    screen.wait_for("No changes left to review.");
    screen.wait_for("I reverted all changes of this file.");
    assert_eq!(machine.text("old.txt"), "by the agent");
    screen.send(CTRL_Q);
    screen.wait_exit();

    let mut screen = machine.start(&["--continue"]);
    screen.wait_for("I reverted all changes of this file.");
    // Alt+V
    screen.send("\u{1b}v");
    screen.wait_for("No changes left to review.");
    screen.send(CTRL_Q);
    screen.wait_exit();
}

#[test]
fn held_writes_are_applied_and_discarded_also_after_a_restart() {
    let machine = Machine::new();
    let config = machine.home.path().join("config.toml");
    fs::write(&config, "[policy]\nhold_writes = true\n").unwrap();
    let config = ["--config", config.to_str().unwrap()];
    fs::write(machine.file("old.txt"), "by the user").unwrap();
    let mut screen = machine.start(&config);
    screen.wait_for("ready");
    screen.send("go");
    screen.wait_for("go");
    screen.send("\r");
    screen.wait_for("2 held");
    screen.send(CTRL_Q);
    screen.wait_exit();
    let disk = || (machine.text("old.txt"), machine.text("new.txt"));
    assert_eq!(disk(), ("by the user".to_owned(), "absent".to_owned()));

    let mut screen = machine.start(&[&config[..], &["--continue"]].concat());
    screen.wait_for("2 held");
    command(&mut screen, "/review-held", "apply file");
    // The new file is the first one.
    screen.send("r");
    screen.wait_for("apply hunk");
    screen.send("a");
    screen.wait_for("No held writes left.");
    screen.wait_for("I discarded all changes of this file.");
    assert_eq!(disk(), ("by the agent".to_owned(), "absent".to_owned()));
    screen.send(CTRL_Q);
    screen.wait_exit();
}
