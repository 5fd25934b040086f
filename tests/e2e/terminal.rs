//! Changes of the terminal's state: all are undone, and only supported output is written.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use super::modes::Modes;
use super::screen::Screen;

/// Alternate screen, bracketed paste, focus, mouse, reports of dark and light colors: enabled at the start.
const ASKED_FOR: [u16; 5] = [1049, 2004, 1004, 1006, 2031];

fn demo(folder: &tempfile::TempDir, variables: &[(&str, &Path)]) -> Screen {
    let mut screen = Screen::start_with(folder.path(), &["demo"], (24, 80), variables);
    screen.wait_for("ready");
    screen
}

fn assert_left_clean(screen: &Screen, asked_for: &[u16]) {
    let modes = Modes::of(&screen.raw);
    for &mode in asked_for {
        assert!(modes.was_on(mode), "mode {mode} was never enabled");
    }
    assert_eq!(modes.left(), [""; 0]);
    assert!(!screen.is_alternate());
}

#[test]
fn quitting_restores_all_modes() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder, &[]);
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
    assert_left_clean(&screen, &ASKED_FOR);
}

#[test]
fn a_signal_restores_all_modes() {
    let folder = tempfile::tempdir().unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let mut screen = demo(&folder, &[]);
        kill_process(Pid::from_raw(screen.pid()).unwrap(), signal).unwrap();
        screen.wait_exit();
        assert_left_clean(&screen, &ASKED_FOR);
    }
}

#[test]
fn a_panic_restores_all_modes_and_is_printed_on_the_main_screen() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = Screen::start_program(&example("panics"), folder.path());
    assert!(!screen.wait_exit().success());
    // The example has a fixed theme.
    assert_left_clean(&screen, &ASKED_FOR[..4]);
    assert!(screen.text().contains("panic on purpose"), "{}", screen.text());
}

/// Terminals with the kitty keyboard protocol distinguish Shift+Enter, and also encode other keys differently.
#[test]
fn keys_of_the_kitty_protocol_are_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder, &[]);
    screen.send("one\u{1b}[13;2utwo");
    screen.wait_until("two lines", |screen| {
        let text = screen.text();
        let mut rows = text.lines().skip_while(|row| !row.contains("› one"));
        rows.next().is_some() && rows.next().is_some_and(|row| row.trim() == "two")
    });
    let flags = Modes::of(&screen.raw).asked_flags;
    assert!(flags.contains("5"), "escape codes are disambiguated, shifted characters reported: {flags:?}");
    // Alt+< goes to the start of the prompt, unlike Alt+,.
    screen.send("\u{1b}[44:60;4u0 ");
    screen.wait_for("› 0 one");
    // Ctrl+C clears, F1 opens the help, Escape closes it, Ctrl+Q quits.
    screen.send("\u{1b}[99;5u");
    screen.wait_gone("two");
    screen.send("\u{1b}[P");
    screen.wait_for("type to filter");
    screen.send("\u{1b}[27u");
    screen.wait_gone("type to filter");
    screen.send("\u{1b}[113;5u");
    assert!(screen.wait_exit().success());
    assert_left_clean(&screen, &ASKED_FOR);
}

#[test]
fn no_colours_are_written_if_disabled() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder, &[("NO_COLOR", Path::new("1"))]);
    screen.send("/edit\r");
    screen.wait_for("Allow this edit?");
    assert_eq!(colours(&screen.raw), [""; 0]);
    screen.send("\u{11}\u{11}");
    screen.wait_exit();
}

#[test]
fn terminals_with_sixteen_colours_get_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder, &[("COLORTERM", Path::new("")), ("TERM", Path::new("xterm"))]);
    screen.send("/edit\r");
    screen.wait_for("Allow this edit?");
    let colours = colours(&screen.raw);
    assert!(!colours.is_empty() && colours.iter().all(|colour| !colour.contains(';')), "{colours:?}");
    screen.send("\u{11}\u{11}");
    screen.wait_exit();
}

#[test]
fn only_ascii_is_written_to_ascii_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = demo(&folder, &[("LC_ALL", Path::new("C")), ("LANG", Path::new("C"))]);
    screen.send("/edit\r");
    screen.wait_for("Allow this edit?");
    let text = screen.text();
    assert!(text.is_ascii(), "{text}");
    // A dialog that opened without a key press ignores keys at first.
    screen.wait_quiet();
    screen.send("\u{1b}");
    screen.wait_for("rejected");
    screen.send("\u{11}\u{11}");
    screen.wait_exit();
    assert_left_clean(&screen, &ASKED_FOR);
}

/// The colours that were set: parameters of SGR except attributes and resets.
fn colours(raw: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(raw);
    let mut found = Vec::new();
    for sequence in text.split("\u{1b}[").skip(1) {
        let Some(end) = sequence.find(|ch: char| ('@'..='~').contains(&ch)) else { continue };
        if &sequence[end..=end] != "m" {
            continue;
        }
        let mut numbers = sequence[..end].split(';').map(|number| number.parse::<u16>().unwrap_or(0));
        while let Some(number) = numbers.next() {
            match number {
                38 | 48 | 58 => {
                    let rest: Vec<String> = numbers.by_ref().map(|number| number.to_string()).collect();
                    found.push(format!("{number};{}", rest.join(";")));
                }
                30..=37 | 40..=47 | 90..=97 | 100..=107 => found.push(number.to_string()),
                _ => {}
            }
        }
    }
    found
}

fn example(name: &str) -> std::path::PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples").join(name)
}
