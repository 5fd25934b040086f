//! Settings that are changed on the screen and in the file, and what parlor learns from the terminal at the start.

use std::fs;

use super::screen::Screen;

const CTRL_P: &str = "\u{10}";
const CTRL_Q: &str = "\u{11}";
const ESC: &str = "\u{1b}";

#[test]
fn a_setting_is_saved_and_a_changed_file_applies_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, "# mine\n").unwrap();
    let mut screen = Screen::start_with(folder.path(), &["demo"], (24, 80), &[("PARLOR_CONFIG", &file)]);
    screen.wait_for("ready");
    screen.send(CTRL_P);
    screen.wait_for("Commands");
    screen.send("settings\r");
    screen.wait_for("Appearance");
    screen.send("bell");
    screen.wait_for("1 of ");
    screen.send("\r");
    screen.wait_for("saved to config.toml");
    assert_eq!(fs::read_to_string(&file).unwrap(), "# mine\n\n[ui]\nbell = false\n");
    screen.wait_for("config.toml:4");
    screen.send(ESC);
    screen.wait_gone("Settings");
    let dark = screen.cells().cell(5, 5).unwrap().bgcolor();
    // Editors replace the file.
    fs::write(folder.path().join("new"), "theme = \"light\"\n[ui]\nbell = false\n").unwrap();
    fs::rename(folder.path().join("new"), &file).unwrap();
    screen.wait_for("config.toml: theme changed");
    screen.wait_until("a light screen", |screen| screen.cells().cell(5, 5).unwrap().bgcolor() != dark);
    fs::write(&file, "theme = \"light\"\n[ui\n").unwrap();
    screen.wait_for("config.toml:2: invalid TOML");
    screen.send(CTRL_Q);
    assert!(screen.wait_exit().success());
}

/// The same actions in a terminal with the keyboard protocol of kitty and in one without it.
#[test]
fn a_prompt_is_written_and_sent_with_both_keyboard_protocols() {
    let legacy = ["\u{10}", ESC, "\n", "\r", "\u{11}"];
    let kitty = ["\u{1b}[112;5u", "\u{1b}[27u", "\u{1b}[13;2u", "\r", "\u{1b}[113;5u"];
    for ([palette, escape, new_line, enter, quit], reply) in [(legacy, ""), (kitty, "\u{1b}[?5u")] {
        let folder = tempfile::tempdir().unwrap();
        let mut screen = Screen::start(folder.path(), &["demo"]);
        screen.wait_for("ready");
        screen.send(reply);
        screen.send("first");
        screen.wait_for("› first");
        screen.send(new_line);
        screen.send("second");
        screen.wait_for("second");
        screen.send(palette);
        screen.wait_for("Commands");
        screen.send("quit");
        screen.wait_for("› quit");
        screen.send(escape);
        screen.wait_gone("Commands");
        screen.wait_for("› first");
        screen.send(enter);
        screen.wait_for("▌ first");
        screen.wait_for("▌ second");
        screen.wait_until("an empty prompt", |screen| !screen.text().contains("› first"));
        // The answer has ended, so that quitting does not ask.
        screen.wait_for("Type / to choose a command");
        // A frame that is not complete has the former status line.
        screen.wait_quiet();
        screen.wait_for("ready");
        screen.send(quit);
        assert!(screen.wait_exit().success());
    }
}

#[test]
fn a_terminal_with_wide_ambiguous_characters_gets_ascii_symbols() {
    let folder = tempfile::tempdir().unwrap();
    let locale = std::path::Path::new("C.UTF-8");
    let variables = [("LC_ALL", locale)];
    let mut screen = Screen::start_with(folder.path(), &["demo"], (24, 80), &variables);
    screen.wait_for("ready");
    let asked = String::from_utf8_lossy(&screen.raw).into_owned();
    assert!(asked.contains("\u{1b}[2;1H→\u{1b}[6n"), "{asked:?}");
    assert!(screen.text().contains("───"), "{}", screen.text());
    screen.send("\u{1b}[2;3R");
    screen.wait_gone("───");
    screen.wait_for("---");
    screen.send("x");
    screen.wait_for("> x");
    screen.send(CTRL_Q);
    assert!(screen.wait_exit().success());
}
