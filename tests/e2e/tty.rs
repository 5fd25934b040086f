//! What terminals do besides showing text: they change size, answer, and go away.

use std::fs;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::screen::Screen;
use super::signals::{STUBBORN, assert_all_gone, child_and_agent};

/// An agent that never answers, so nothing but keys draws.
fn silent(folder: &tempfile::TempDir) -> Screen {
    let mut screen = Screen::start(folder.path(), &["--", "sleep", "300"]);
    screen.wait_for("starting");
    screen
}

#[test]
fn keys_typed_in_a_storm_of_resizes_all_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = silent(&folder);
    let mut all = String::new();
    for round in 0..40_u16 {
        screen.resize(24 + round % 3, 80 + round % 7);
        let letter = char::from(b'a' + u8::try_from(round % 26).unwrap());
        screen.send(&letter.to_string());
        all.push(letter);
        screen.resize(30, 90 - round % 5);
        // Not after each: the next key must not be what brings the last one.
        if round % 8 == 7 {
            screen.wait_for(&all);
        }
    }
    screen.resize(24, 80);
    screen.wait_for(&all);
}

#[test]
fn what_the_terminal_answers_is_followed_and_not_typed() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = Screen::start(folder.path(), &["--", "sleep", "300"]);
    screen.wait_until("the questions", |screen| {
        let raw = String::from_utf8_lossy(&screen.raw);
        raw.contains("\u{1b}]11;?") && raw.contains("\u{1b}[?2026$p") && raw.contains("\u{1b}[?2026l")
    });
    let dark = screen.cells().cell(5, 5).unwrap().bgcolor();
    screen.send("one\u{1b}]11;rgb:ffff/ffff/fefe\u{1b}\\ two\u{1b}[?2026;0$y\u{1b}[?62;22c three");
    screen.wait_for("one two three");
    screen.wait_until("a light screen", |screen| screen.cells().cell(5, 5).unwrap().bgcolor() != dark);
    // It knows no synchronized updates, so frames are none from now on.
    screen.send(" x");
    screen.wait_for("three x");
    screen.raw.clear();
    screen.send("y");
    screen.wait_for("three xy");
    assert!(
        !String::from_utf8_lossy(&screen.raw).contains("2026"),
        "{:?}",
        String::from_utf8_lossy(&screen.raw)
    );
}

/// A terminal window that is closed. HUP comes only to the terminal's own session; without one, the end of the
/// terminal itself must do.
#[test]
fn a_terminal_that_goes_away_ends_parlor_and_its_agent() {
    let folder = tempfile::tempdir().unwrap();
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    // Not every system takes this with the opening.
    fcntl_setfd(&ours, FdFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = fs::File::from(open(name.as_c_str(), flags, Mode::empty()).unwrap());
    let mut parlor = std::process::Command::new(env!("CARGO_BIN_EXE_parlor"))
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
    let pids = child_and_agent(&folder);
    drop(ours);
    let deadline = Instant::now() + Duration::from_secs(20);
    let status = loop {
        if let Some(status) = parlor.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() >= deadline {
            let _ = parlor.kill();
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
    assert_all_gone(&pids);
}
