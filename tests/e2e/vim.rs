//! Vim keys in a terminal: Escape, the mode at the edge of the composer, and the shape of the cursor.

use super::screen::Screen;

const ESC: &str = "\u{1b}";
const BLOCK: &str = "\u{1b}[2 q";
const BAR: &str = "\u{1b}[6 q";
const AS_CONFIGURED: &str = "\u{1b}[0 q";

#[test]
fn vim_keys_edit_the_prompt_and_the_shape_of_the_cursor_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, "[ui]\nediting = \"vim\"\n").unwrap();
    let mut screen = Screen::start(folder.path(), &["demo", "--config", file.to_str().unwrap()]);
    screen.wait_for("ready");
    screen.wait_for("─ INSERT ─");
    screen.send("one two three");
    screen.wait_for("› one two three");
    screen.send(ESC);
    screen.wait_for("─ NORMAL ─");
    screen.send("bdb");
    screen.wait_for("› one three");
    screen.send("u.");
    screen.wait_for("› two three");
    screen.send("A!\\\rmore");
    screen.wait_for("› two three!");
    screen.wait_for("  more");
    let raw = String::from_utf8_lossy(&screen.raw).into_owned();
    let shapes: Vec<&str> = raw.matches(BLOCK).chain(raw.matches(BAR)).collect();
    assert_eq!(shapes, [BLOCK, BAR, BAR]);
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
    let raw = String::from_utf8_lossy(&screen.raw).into_owned();
    assert!(raw.rfind(AS_CONFIGURED) > raw.rfind(BAR), "the shape is that of the terminal again");
}
