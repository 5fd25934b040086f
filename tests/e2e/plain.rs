//! Plain text mode: input from a pipe, output to a file.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs parlor with these input lines; returns its output and whether it succeeded.
fn run(args: &[&str], lines: &str) -> (String, bool) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.txt");
    let (is_well, _) = run_into(File::create(&log).unwrap().into(), args, lines, folder.path());
    (read(&log), is_well)
}

/// Runs parlor with another output; returns whether it succeeded, and its stderr.
fn run_into(output: Stdio, args: &[&str], lines: &str, folder: &Path) -> (bool, String) {
    let path = |name: &str| folder.join(name);
    let mut child = Command::new(env!("CARGO_BIN_EXE_parlor"))
        .args(args)
        .current_dir(folder)
        .env("PARLOR_DATA_DIR", path("data"))
        .env("PARLOR_DEMO_DIR", path("demo"))
        .env("PARLOR_DEMO_PACE", "0")
        .env("XDG_CONFIG_HOME", path("config"))
        // Below the folder, it could be changed from a sandbox.
        .env("HOME", "/nonexistent")
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Fails if parlor has already exited.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    let done = child.wait_with_output().unwrap();
    (done.status.success(), String::from_utf8(done.stderr).unwrap())
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_first_prompt_is_sent_before_the_lines_of_the_pipe() {
    let (log, is_well) = run(&["demo", "--plain", "--prompt", "/help"], "");
    assert!(is_well && log.contains("[1] You: /help") && log.contains("[1] Finished"), "{log}");
    let (log, is_well) = run(&["demo", "--plain", "--prompt", "/help"], "/think\n");
    let place = |text: &str| log.find(text).unwrap_or_else(|| panic!("no {text:?} in {log}"));
    assert!(is_well && place("[1] You: /help") < place("[2] You: /think"), "{log}");
}

#[test]
fn lines_of_a_pipe_answer_questions_only_if_allowed() {
    let (log, is_well) = run(&["demo", "--plain"], "/edit\n1\n");
    assert!(is_well && log.contains("To answer with them, pass --permissions ask."), "{log}");
    assert!(log.contains("[2] You: 1") && !log.contains("The greeting is changed."), "{log}");
    let (log, is_well) = run(&["demo", "--plain", "--permissions", "ask"], "/edit\n1\n/help\n");
    assert!(is_well, "{log}");
    let places: Vec<usize> = [
        "demo is ready",
        "[1] You: /edit",
        "demo asks: Allow this edit?",
        "+     println!(\"Good day, {name}\");",
        "1. Allow once",
        "greeting.rs  +3",
        "Done. The greeting is changed.",
        "[1] Finished",
        "[2] You: /help",
        "| `/help` |",
        "[2] Finished",
    ]
    .iter()
    .map(|text| log.find(text).unwrap_or_else(|| panic!("{text:?} is missing in:\n{log}")))
    .collect();
    assert!(places.is_sorted(), "{places:?} in:\n{log}");
    assert!(!log.contains(['\u{1b}', '\r']), "no escape sequence: {log:?}");
}

#[test]
fn an_agent_in_a_sandbox_says_so_and_runs_its_commands_there() {
    let args = ["demo", "--plain", "--sandbox=required", "--permissions", "ask"];
    let (log, is_well) = run(&args, "/run\n1\n1\n");
    if log.contains("--sandbox=off") {
        println!("not tested: {log}");
        return;
    }
    assert!(is_well && log.contains("Sandbox: the agent writes only in the session's folders"), "{log}");
    assert!(log.contains("The command finished."), "{log}");
    let (log, _) = run(&["demo", "--plain"], "/help\n");
    assert!(!log.contains("Sandbox"), "{log}");
}

#[test]
fn without_answers_a_request_is_rejected_and_parlor_ends() {
    let (log, is_well) = run(&["demo", "--plain"], "/edit\n");
    assert!(is_well, "{log}");
    assert!(log.contains("rejected") || log.contains("cancelled"), "{log}");
    assert!(log.contains("[1] Finished"), "{log}");
}

#[test]
fn an_agent_that_cannot_be_started_is_an_error() {
    let (log, is_well) = run(&["--plain", "--", "no-such-agent-anywhere"], "hello\n");
    assert!(!is_well);
    assert!(log.contains("no-such-agent-anywhere"), "{log}");
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let mut outputs = vec![(Stdio::from(closed), "Broken pipe")];
    if let Ok(full) = File::options().write(true).open("/dev/full") {
        outputs.push((full.into(), "No space left"));
    }
    for (output, why) in outputs {
        let (is_well, stderr) = run_into(output, &["demo", "--plain"], "/help\n", folder.path());
        assert!(!is_well, "{why}");
        assert!(stderr.contains("cannot write to standard output") && stderr.contains(why), "{stderr}");
    }
}

#[test]
fn a_session_that_cannot_be_saved_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.txt");
    let output = File::create(&log).unwrap();
    // A folder with the name of the database.
    std::fs::create_dir_all(folder.path().join("data/record.db")).unwrap();
    let (is_well, stderr) = run_into(output.into(), &["demo", "--plain"], "/help\n", folder.path());
    assert!(read(&log).contains("(Not saved: "), "{}", read(&log));
    assert!(!is_well && stderr.contains("1 turn was not saved: "), "{stderr}");
    assert!(stderr.contains("parlor sessions import "), "{stderr}");
}
