//! Pasted texts and dropped files.

use std::fs;
use std::path::Path;

use super::screen::Screen;

const BACKSPACE: &str = "\u{7f}";
const UNDO: &str = "\u{1f}";

fn paste(screen: &mut Screen, text: &str) {
    screen.send(&format!("\u{1b}[200~{text}\u{1b}[201~"));
}

/// All files below a folder.
fn contents(folder: &Path) -> String {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            let path = entry.path();
            if path.is_dir() { contents(&path) } else { fs::read_to_string(path).unwrap_or_default() }
        })
        .collect()
}

#[test]
fn a_long_paste_is_one_label_and_the_agent_gets_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let seen = tempfile::tempdir().unwrap();
    let variables = [("PARLOR_DEMO_DIR", seen.path())];
    let mut screen = Screen::start_with(folder.path(), &["demo"], (24, 80), &variables);
    screen.wait_for("ready");
    screen.send("see ");
    let text = (1..=120).map(|n| format!("pasted line {n}\n")).collect::<Vec<_>>().concat();
    paste(&mut screen, &text.replace('\n', "\r"));
    screen.wait_for("[Pasted text #1: 120 lines]");
    screen.send(BACKSPACE);
    screen.wait_gone("[Pasted text #1: 120 lines]");
    screen.wait_for("› see");
    screen.send(UNDO);
    screen.wait_for("[Pasted text #1: 120 lines]");
    screen.send(" please\r");
    screen.wait_for("▌ see [Pasted text: 120 lines] please");
    screen.wait_for("ready");
    let expected = format!("see {text} please").replace('\n', "\\n");
    screen.wait_until("the agent's record", |_| contents(seen.path()).contains(&expected));
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
}

#[test]
fn a_dropped_path_becomes_a_mention() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("my file.txt"), "text").unwrap();
    let mut screen = Screen::start(folder.path(), &["demo"]);
    screen.wait_for("ready");
    let path = folder.path().join("my file.txt").display().to_string();
    paste(&mut screen, &format!("{} ", path.replace(' ', "\\ ")));
    screen.wait_for("› @\"my file.txt\"");
    paste(&mut screen, "");
    screen.wait_for("lipboard");
    assert!(screen.text().contains("› @\"my file.txt\""), "{}", screen.text());
}
