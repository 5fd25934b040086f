//! Signals: the terminal is restored, and agents are stopped.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::screen::Screen;

/// An agent that ignores TERM, and starts a child process that does not read stdin. Both write their process ids to
/// files.
pub const STUBBORN: &str =
    "sleep 300 & echo $! > child; echo $$ > agent; trap '' TERM; cat > /dev/null; sleep 300";

fn start_with_child(folder: &tempfile::TempDir) -> (Screen, Vec<i32>) {
    let mut screen = Screen::start(folder.path(), &["--", "sh", "-c", STUBBORN]);
    screen.wait_for("starting");
    let pids = child_and_agent(folder);
    (screen, pids)
}

/// The processes of [`STUBBORN`], once they are running.
pub fn child_and_agent(folder: &tempfile::TempDir) -> Vec<i32> {
    let read = |name: &str| -> i32 {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(pid) =
                fs::read_to_string(folder.path().join(name)).ok().and_then(|t| t.trim().parse().ok())
            {
                return pid;
            }
            assert!(Instant::now() < deadline, "the agent did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    vec![read("child"), read("agent")]
}

pub fn assert_all_gone(pids: &[i32]) {
    let deadline = Instant::now() + Duration::from_secs(20);
    for pid in pids {
        while fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(Instant::now() < deadline, "process {pid} is running");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn check_signal(signal: Signal) {
    let folder = tempfile::tempdir().unwrap();
    let (mut screen, pids) = start_with_child(&folder);
    kill_process(Pid::from_raw(screen.pid()).unwrap(), signal).unwrap();
    screen.wait_exit();
    assert!(!screen.is_alternate());
    assert_all_gone(&pids);
}

#[test]
fn term_restores_the_terminal_and_stops_agents() {
    check_signal(Signal::TERM);
}

#[test]
fn hup_restores_the_terminal_and_stops_agents() {
    check_signal(Signal::HUP);
}

#[test]
fn quitting_stops_an_agent_that_ignores_everything() {
    let folder = tempfile::tempdir().unwrap();
    let (mut screen, pids) = start_with_child(&folder);
    screen.send("\u{11}");
    screen.wait_exit();
    assert!(!screen.is_alternate());
    assert_all_gone(&pids);
}

#[test]
fn a_suspended_parlor_restores_the_terminal_and_draws_again_without_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("shell");
    // Processes can be stopped only if a shell with job control can continue them.
    let lines = format!(
        "#!/bin/sh\nset -m\n'{}' --agent-command 'sleep 300'\necho stopped with $?\nread answer\nfg > /dev/null\n",
        env!("CARGO_BIN_EXE_parlor")
    );
    fs::write(&script, lines).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut screen = Screen::start_program(&script, folder.path());
    screen.wait_for("starting");
    screen.send("what was typed");
    screen.wait_for("what was typed");
    screen.send("\u{1a}");
    screen.wait_for("stopped with");
    assert!(!screen.is_alternate());
    screen.send("goes to the shell\r");
    screen.wait_until("parlor has the screen again", Screen::is_alternate);
    screen.wait_for("what was typed");
    screen.send(" before");
    screen.wait_for("what was typed before");
    screen.send("\u{11}");
    screen.wait_exit();
    assert!(!screen.is_alternate());
}
