//! Notifications, the window title and progress; colors that change while parlor runs; the first prompt.

use std::time::Duration;

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use super::screen::Screen;

const FOCUS_LOST: &str = "\u{1b}[O";
const FOCUS_GAINED: &str = "\u{1b}[I";
const BACKGROUND_QUESTION: &str = "\u{1b}]11;?\u{1b}\\";

fn demo(folder: &tempfile::TempDir, variables: &[(&str, &str)]) -> Screen {
    let variables: Vec<(&str, &Path)> =
        variables.iter().map(|(name, value)| (*name, Path::new(*value))).collect();
    let mut screen = Screen::start_with(folder.path(), &["demo"], (24, 80), &variables);
    screen.wait_for("ready");
    screen
}

fn wait_raw(screen: &mut Screen, text: &str) {
    screen.wait_until(&format!("{text:?} in the output"), |screen| {
        String::from_utf8_lossy(&screen.raw).contains(text)
    });
}

fn count(screen: &Screen, text: &str) -> usize {
    String::from_utf8_lossy(&screen.raw).matches(text).count()
}

#[test]
fn an_unfocused_terminal_shows_a_notification_a_title_and_progress() {
    let folder = tempfile::tempdir().unwrap();
    // With its pauses, the agent works for longer than a frame.
    let ghostty = [("TERM_PROGRAM", "ghostty"), ("TERM_PROGRAM_VERSION", "1.2.0"), ("PARLOR_DEMO_PACE", "1")];
    let mut screen = demo(&folder, &ghostty);
    screen.raw.clear();
    screen.send(&format!("/edit\r{FOCUS_LOST}"));
    screen.wait_for("Allow this edit?");
    wait_raw(&mut screen, ": Permission required.\u{1b}\\\u{7}");
    assert_eq!(count(&screen, "\u{1b}]9;4;3;0\u{1b}\\"), 1, "working");
    wait_raw(&mut screen, "\u{1b}]9;4;4;100\u{1b}\\");
    wait_raw(&mut screen, "\u{1b}]0;! ");
    // Notifications are at least a second apart.
    screen.bytes_within(Duration::from_secs(1));
    screen.answer("1");
    wait_raw(&mut screen, ": Turn finished.\u{1b}\\\u{7}");
    wait_raw(&mut screen, "\u{1b}]0;✓ ");
    wait_raw(&mut screen, "\u{1b}]9;4;0;0\u{1b}\\");
    screen.raw.clear();
    screen.send(&format!("{FOCUS_GAINED}/help\r"));
    screen.wait_for("Plain text works too");
    screen.wait_for("ready");
    let notifications = count(&screen, "\u{1b}]9;") - count(&screen, "\u{1b}]9;4;");
    assert_eq!((notifications, count(&screen, "finished.")), (0, 0), "it has the focus");
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
}

#[test]
fn tmux_passes_notifications_through() {
    let folder = tempfile::tempdir().unwrap();
    let inside = [("TMUX", "/tmp/none,1,0"), ("TERM_PROGRAM", "tmux"), ("KITTY_WINDOW_ID", "1")];
    let mut screen = demo(&folder, &inside);
    screen.send(&format!("/edit\r{FOCUS_LOST}"));
    wait_raw(&mut screen, "\u{1b}Ptmux;\u{1b}\u{1b}]99;i=parlor");
    wait_raw(&mut screen, ":p=body;Permission required.\u{1b}\u{1b}\\\u{1b}\\\u{7}");
    screen.send("\u{11}\u{11}");
    screen.wait_exit();
}

#[test]
fn progress_is_removed_by_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder, &[("TERM_PROGRAM", "vscode")]);
    screen.send("/edit\r");
    wait_raw(&mut screen, "\u{1b}]9;4;4;100\u{1b}\\");
    screen.raw.clear();
    kill_process(Pid::from_raw(screen.pid()).unwrap(), Signal::TERM).unwrap();
    screen.wait_exit();
    assert_eq!(count(&screen, "\u{1b}]9;4;0;0\u{1b}\\"), 1);
}

#[test]
fn the_theme_follows_the_colors_of_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder, &[]);
    let ground = |screen: &Screen| screen.cells().cell(5, 5).unwrap().bgcolor();
    let dark = ground(&screen);
    // Without reports, the background is queried when the terminal gets the focus.
    screen.raw.clear();
    screen.send(FOCUS_GAINED);
    wait_raw(&mut screen, BACKGROUND_QUESTION);
    screen.send("\u{1b}]11;rgb:ffff/ffff/ffff\u{1b}\\");
    screen.wait_until("a light screen", |screen| ground(screen) != dark);
    let light = ground(&screen);
    // The report arrives in two reads.
    screen.send("\u{1b}[?99");
    screen.send("7;1n");
    screen.wait_until("a dark screen", |screen| ground(screen) == dark);
    screen.send("\u{1b}[?997;2n");
    screen.wait_until("a light screen", |screen| ground(screen) == light);
    screen.raw.clear();
    screen.send(&format!("{FOCUS_GAINED}x"));
    screen.wait_for("› x");
    assert_eq!(count(&screen, BACKGROUND_QUESTION), 0, "the terminal reports changes");
    screen.send("\u{11}");
    screen.wait_exit();
}

#[test]
fn a_first_prompt_is_sent_when_the_session_is_ready() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = Screen::start(folder.path(), &["demo", "--prompt", "/help"]);
    screen.wait_for("Plain text works too");
    screen.wait_for("ready");
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
}

#[test]
fn piped_text_is_the_first_prompt_and_keys_come_from_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("run");
    let parlor = env!("CARGO_BIN_EXE_parlor");
    let text = format!("#!/bin/sh\nprintf '/help\\n' | '{parlor}' demo\necho left with $?\n");
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let mut screen = Screen::start_program(&script, folder.path());
    screen.wait_for("Plain text works too");
    screen.wait_for("ready");
    screen.send("typed by hand");
    screen.wait_for("typed by hand");
    screen.send("\u{11}");
    screen.wait_for("left with 0");
}

#[test]
fn a_first_prompt_that_is_not_text_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("image.png"), b"\x89PNG\0").unwrap();
    for (file, error) in [("image.png", "image.png is not UTF-8 text"), ("none.md", "cannot read none.md")] {
        let mut screen = Screen::start(folder.path(), &["demo", "--prompt-file", file]);
        assert!(!screen.wait_exit().success());
        assert!(screen.text().contains(error) && !screen.is_alternate(), "{}", screen.text());
    }
}
