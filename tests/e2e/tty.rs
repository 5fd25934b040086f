//! Terminal events: resizes, responses, and the end of the terminal.

use std::fs;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::screen::Screen;
use super::signals::{STUBBORN, assert_all_gone, child_and_agent};

/// An agent that never responds, so that only keys cause frames.
fn silent(folder: &tempfile::TempDir) -> Screen {
    let mut screen = Screen::start(folder.path(), &["--", "sleep", "300"]);
    screen.wait_for("starting");
    screen
}

#[test]
fn keys_typed_during_many_resizes_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = silent(&folder);
    let mut all = String::new();
    for round in 0..40_u16 {
        screen.resize(24 + round % 3, 80 + round % 7);
        let ch = char::from(b'a' + u8::try_from(round % 26).unwrap());
        screen.send(&ch.to_string());
        all.push(ch);
        screen.resize(30, 90 - round % 5);
        // Not after each key, because the next key must not cause the delivery of the previous one.
        if round % 8 == 7 {
            screen.wait_for(&all);
        }
    }
    screen.resize(24, 80);
    screen.wait_for(&all);
}

#[test]
fn responses_of_the_terminal_are_handled_and_not_typed() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = silent(&folder);
    screen.wait_until("the questions", |screen| {
        let raw = String::from_utf8_lossy(&screen.raw);
        raw.contains("\u{1b}]11;?") && raw.contains("\u{1b}[?2026$p")
    });
    let dark = screen.cells().cell(5, 5).unwrap().bgcolor();
    screen.send("one\u{1b}]11;rgb:ffff/ffff/fefe\u{1b}\\ two\u{1b}[?2026;0$y\u{1b}[?62;22c three");
    screen.wait_for("one two three");
    screen.wait_until("a light screen", |screen| screen.cells().cell(5, 5).unwrap().bgcolor() != dark);
}

#[test]
fn updates_are_synchronized_only_if_the_terminal_supports_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = silent(&folder);
    let mut typed = String::new();
    // 1: set, 2: reset, 0: unknown, 3 and 4: cannot be changed.
    for (response, is_used) in
        [("", false), ("2", true), ("0", false), ("1", true), ("4", false), ("3", false)]
    {
        if !response.is_empty() {
            screen.send(&format!("\u{1b}[?2026;{response}$yx"));
            typed.push('x');
            screen.wait_for(&typed);
        }
        screen.raw.clear();
        screen.send("y");
        typed.push('y');
        screen.wait_for(&typed);
        let raw = String::from_utf8_lossy(&screen.raw);
        assert_eq!(raw.contains("\u{1b}[?2026h"), is_used, "{response}: {raw:?}");
    }
    // A frame that repaints the whole screen is cleared before its update begins.
    screen.send("\u{1b}[?2026;2$yz");
    screen.wait_for(&format!("{typed}z"));
    screen.raw.clear();
    screen.resize(30, 90);
    screen.wait_until("a new screen", |screen| {
        String::from_utf8_lossy(&screen.raw).contains("\u{1b}[2J\u{1b}[?2026h")
    });
    screen.send("\u{11}\u{11}");
    screen.wait_exit();
    assert!(screen.raw.windows(8).any(|bytes| bytes == b"\x1b[?2026l"));
}

/// Starts parlor on a terminal that is not its controlling one, with an agent that ignores TERM.
fn on_a_strange_terminal(folder: &tempfile::TempDir, size: Winsize) -> (OwnedFd, std::process::Child) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    // Not all systems support this flag of `openpt`.
    fcntl_setfd(&ours, FdFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    tcsetwinsize(&ours, size).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = fs::File::from(open(name.as_c_str(), flags, Mode::empty()).unwrap());
    let parlor = std::process::Command::new(env!("CARGO_BIN_EXE_parlor"))
        .args(["--", "sh", "-c", STUBBORN])
        .current_dir(folder.path())
        .env("PARLOR_DATA_DIR", folder.path().join("data"))
        .env("PARLOR_CONFIG", folder.path().join("config.toml"))
        .env("TERM", "xterm-256color")
        .stdin(theirs.try_clone().unwrap())
        .stdout(theirs.try_clone().unwrap())
        .stderr(theirs)
        .spawn()
        .unwrap();
    (ours, parlor)
}

fn signal(parlor: &std::process::Child, signal: Signal) {
    let pid = i32::try_from(parlor.id()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, signal).unwrap();
}

fn wait_end(parlor: &mut std::process::Child) -> Option<std::process::ExitStatus> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        if let Some(status) = parlor.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = parlor.kill();
    None
}

/// The loop is blocked writing a frame and handles no signals.
#[test]
fn a_terminal_that_is_not_read_does_not_block_the_exit() {
    let folder = tempfile::tempdir().unwrap();
    let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let (ours, mut parlor) = on_a_strange_terminal(&folder, size);
    let pids = child_and_agent(&folder);
    // Each signal redraws the whole screen, until the terminal's buffer is full.
    for _ in 0..200 {
        signal(&parlor, Signal::WINCH);
        std::thread::sleep(Duration::from_millis(10));
    }
    signal(&parlor, Signal::TERM);
    let status = wait_end(&mut parlor);
    assert_eq!(status.and_then(|status| status.code()), Some(128 + Signal::TERM.as_raw()));
    assert_all_gone(&pids);
    drop(ours);
}

/// Closes the terminal window. HUP is sent only to the session of the terminal; without it, parlor must detect the end
/// of the terminal itself.
#[test]
fn closing_the_terminal_ends_parlor_and_its_agent() {
    let folder = tempfile::tempdir().unwrap();
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let (ours, mut parlor) = on_a_strange_terminal(&folder, size);
    let pids = child_and_agent(&folder);
    drop(ours);
    // When a terminal is closed, the system continues stopped processes, and parlor takes the screen.
    signal(&parlor, Signal::CONT);
    let status = wait_end(&mut parlor);
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
    assert_all_gone(&pids);
}
