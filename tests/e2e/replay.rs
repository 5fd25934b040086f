//! Records a session in a log and replays it.

use std::path::Path;
use std::process::{Command, Output};

use super::screen::Screen;

/// Runs a session with the demo agent and a log; returns the screen at its end.
fn record(folder: &Path, log: &str) -> String {
    let mut screen = Screen::start(folder, &["demo", "--log-file", log]);
    screen.wait_for("ready");
    screen.send("/edit");
    screen.wait_for("/edit");
    screen.send("\r");
    screen.wait_for("Allow this edit?");
    screen.answer("1");
    screen.wait_for("greeting is changed");
    screen.wait_for("ready");
    let text = screen.text();
    screen.send("\u{11}\u{11}");
    assert!(screen.wait_exit().success());
    text
}

fn replay(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_parlor"))
        .arg("replay")
        .args(args)
        .current_dir(folder)
        .env("HOME", folder)
        .env("PARLOR_DATA_DIR", folder.join("data"))
        .env("PARLOR_CONFIG", folder.join("config.toml"))
        .output()
        .unwrap()
}

/// The text of the transcript. Line numbers of diffs depend on files, which a replay does not read.
fn transcript(screen: &str) -> String {
    let rows = screen.lines().skip(1).take_while(|row| !row.trim_start().starts_with('─'));
    let text: String = rows.collect::<Vec<_>>().join(" ");
    let text = text.replace(|c: char| c.is_ascii_digit() || "│▐".contains(c), "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_demo_session_is_replayed_identically() {
    let folder = tempfile::tempdir().unwrap();
    let live = record(folder.path(), "log.jsonl");
    let args = ["log.jsonl", "--frames", "--size", "80x24"];
    let (first, second) = (replay(folder.path(), &args), replay(folder.path(), &args));
    assert!(first.status.success() && first.stderr.is_empty(), "{}", String::from_utf8_lossy(&first.stderr));
    assert_eq!(first.stdout, second.stdout);
    let frames = String::from_utf8(first.stdout).unwrap();
    assert!(frames.contains("Allow this edit?"), "{frames}");
    let last = frames.rsplit("--- line").next().unwrap().split_once('\n').unwrap().1;
    assert_eq!(transcript(last), transcript(&live), "{last}\n{live}");
}

#[test]
fn a_replay_can_be_stepped_played_and_quit() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "log.jsonl");
    let mut screen = Screen::start(folder.path(), &["replay", "--step", "log.jsonl"]);
    screen.wait_for("Replay paused · message 0");
    screen.send("n");
    screen.wait_for("message 1 of");
    screen.send("n");
    screen.wait_for("message 2 of");
    screen.send("q");
    assert!(screen.wait_exit().success());
    assert!(!screen.is_alternate(), "the main screen is restored");

    let mut screen = Screen::start(folder.path(), &["replay", "--speed", "max", "log.jsonl"]);
    screen.wait_for("Replay finished");
    screen.wait_for("greeting is changed");
    screen.send("\u{3}");
    assert!(screen.wait_exit().success());
}

#[test]
fn replay_errors_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let result_of = |args: &[&str]| {
        let done = replay(folder.path(), args);
        (done.status.success(), String::from_utf8(done.stderr).unwrap())
    };
    let (is_well, text) = result_of(&["none"]);
    assert!(!is_well && text.contains("cannot replay none"), "{text}");
    std::fs::write(folder.path().join("text"), "hello\n").unwrap();
    let (is_well, text) = result_of(&["text"]);
    assert!(!is_well && text.contains("line 1: ") && text.contains("--log-file"), "{text}");
    let (is_well, text) = result_of(&["."]);
    assert!(!is_well && text.contains("not a regular file"), "{text}");
    let line = r#"{"n":1,"ms":1,"conn":1,"dir":"from","text":"{}"}"#;
    std::fs::write(folder.path().join("torn"), format!("{line}\n{{\"n\":2,\"di\n")).unwrap();
    let (is_well, text) = result_of(&["torn", "--frames"]);
    assert!(is_well && text.contains("skipped line 2"), "{text}");
}
