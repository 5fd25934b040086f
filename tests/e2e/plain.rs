//! The session in lines: input from a pipe, output into a file.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs parlor with these lines to read, and gives what it wrote and whether it ended well.
fn run(args: &[&str], lines: &str) -> (String, bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let log = path("log.txt");
    let mut child = Command::new(env!("CARGO_BIN_EXE_parlor"))
        .args(args)
        .current_dir(folder.path())
        .env("PARLOR_DATA_DIR", path("data"))
        .env("PARLOR_DEMO_DIR", path("demo"))
        .env("PARLOR_DEMO_PACE", "0")
        .env("XDG_CONFIG_HOME", path("config"))
        .env("HOME", folder.path())
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(File::create(&log).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let status = child.wait().unwrap();
    (read(&log), status.success())
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_pipe_is_served_line_by_line_with_questions_answered_by_number() {
    let (log, is_well) = run(&["demo", "--plain"], "/edit\n1\n/help\n");
    assert!(is_well, "{log}");
    let places: Vec<usize> = [
        "demo is ready",
        "[1] You: /edit",
        "demo asks: Allow this edit?",
        "+     println!(\"Good day, {name}\");",
        "1. Yes, this once",
        "greeting.rs  +3",
        "Done. The greeting is friendlier now.",
        "[1] Over",
        "[2] You: /help",
        "| `/garbage` |",
        "[2] Over",
    ]
    .iter()
    .map(|text| log.find(text).unwrap_or_else(|| panic!("{text:?} is missing in:\n{log}")))
    .collect();
    assert!(places.is_sorted(), "{places:?} in:\n{log}");
    assert!(!log.contains(['\u{1b}', '\r']), "no escape sequence: {log:?}");
}

#[test]
fn without_answers_a_request_is_rejected_and_parlor_ends() {
    let (log, is_well) = run(&["demo", "--plain"], "/edit\n");
    assert!(is_well, "{log}");
    assert!(log.contains("rejected") || log.contains("cancelled"), "{log}");
    assert!(log.contains("[1] Over"), "{log}");
}

#[test]
fn an_agent_that_cannot_be_started_is_told_and_fails() {
    let (log, is_well) = run(&["--plain", "--", "no-such-agent-anywhere"], "hello\n");
    assert!(!is_well);
    assert!(log.contains("no-such-agent-anywhere"), "{log}");
}
