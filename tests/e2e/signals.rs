//! However parlor ends, the terminal is restored and no agent lives on.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::screen::Screen;

/// An agent that tells its process id in a file and starts a child that outlives its own stdin.
pub const STUBBORN: &str =
    "sleep 300 & echo $! > child; echo $$ > agent; trap '' TERM; cat > /dev/null; sleep 300";

fn start_with_child(folder: &tempfile::TempDir) -> (Screen, Vec<i32>) {
    let mut screen = Screen::start(folder.path(), &["--", "sh", "-c", STUBBORN]);
    screen.wait_for("starting");
    let pids = child_and_agent(folder);
    (screen, pids)
}

/// The processes of [`STUBBORN`], once they run.
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
            assert!(Instant::now() < deadline, "process {pid} lives on");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn ends_clean(signal: Signal) {
    let folder = tempfile::tempdir().unwrap();
    let (mut screen, pids) = start_with_child(&folder);
    kill_process(Pid::from_raw(screen.pid()).unwrap(), signal).unwrap();
    screen.wait_exit();
    assert!(!screen.is_alternate());
    assert_all_gone(&pids);
}

#[test]
fn term_ends_clean() {
    ends_clean(Signal::TERM);
}

#[test]
fn hup_ends_clean() {
    ends_clean(Signal::HUP);
}

#[test]
fn a_wish_to_quit_ends_an_agent_that_ignores_everything() {
    let folder = tempfile::tempdir().unwrap();
    let (mut screen, pids) = start_with_child(&folder);
    screen.send("\u{11}");
    screen.wait_exit();
    assert!(!screen.is_alternate());
    assert_all_gone(&pids);
}

#[test]
fn a_stopped_parlor_leaves_the_shell_its_terminal_and_comes_back_with_all() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("shell");
    // Without a shell that controls jobs, nobody could continue what was stopped, and the system stops nothing.
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
    screen.wait_until("the screen is parlor's again", Screen::is_alternate);
    screen.send(" before");
    screen.wait_for("what was typed before");
    screen.send("\u{11}");
    screen.wait_exit();
    assert!(!screen.is_alternate());
}
