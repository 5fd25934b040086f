//! Keys and words that people know from other tools.

use std::fs;

use super::screen::Screen;

fn start(folder: &tempfile::TempDir) -> Screen {
    let file = folder.path().join("config.toml");
    fs::write(&file, "").unwrap();
    let args = ["demo", "--config", file.to_str().unwrap()];
    let mut screen = Screen::start_sized(folder.path(), &args, 30, 100);
    screen.wait_for("ready");
    screen
}

#[test]
fn ctrl_d_deletes_in_a_prompt_and_quits_from_an_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(&folder);
    screen.send("ab");
    screen.wait_for("› ab");
    screen.send("\u{1b}[D\u{4}");
    screen.wait_gone("› ab");
    screen.wait_for("› a");
    screen.send("\u{7f}");
    screen.wait_for("Ask demo");
    screen.send("\u{4}");
    assert!(screen.wait_exit().success());
}

#[test]
fn escape_twice_lists_the_prompts_and_quit_is_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(&folder);
    screen.send("show me a tour\r");
    screen.wait_for("Step 1 of 5");
    screen.wait_for("ready");
    screen.send("\u{1b}");
    screen.wait_for("Press again to go back to an earlier prompt");
    screen.send("\u{1b}");
    screen.wait_for("─ Go back to a prompt ─");
    screen.send("\r");
    screen.wait_for("Go back to this prompt");
    screen.wait_for("Files that were changed since then are not reverted");
    screen.send("1");
    screen.wait_for("› show me a tour");
    screen.send("\u{3}");
    screen.wait_for("Ask demo");
    screen.send("/exit\r");
    assert!(screen.wait_exit().success());
}
