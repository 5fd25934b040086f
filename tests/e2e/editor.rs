//! Editing the prompt in the user's editor.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::screen::Screen;

const CTRL_X_CTRL_E: &str = "\u{18}\u{5}";

/// An editor that takes over the terminal until a key is pressed, then runs `change` on the file `$2`.
fn editor(folder: &tempfile::TempDir, change: &str) -> PathBuf {
    let bin = folder.path().join("with space");
    fs::create_dir_all(&bin).unwrap();
    let file = bin.join("ed it");
    let script = format!(
        "#!/bin/sh\nprintf '\\033[2JEDITING %s with %s\\r\\n' \"$(cat \"$2\")\" \"$1\"\n\
         ls -ld \"$2\" > seen; echo \"$2\" >> seen\nread -r _\n{change}\n"
    );
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn start(folder: &tempfile::TempDir, visual: &str) -> Screen {
    let variables = [("VISUAL", Path::new(visual)), ("EDITOR", Path::new("false"))];
    let mut screen = Screen::start_with(folder.path(), &["demo"], (24, 80), &variables);
    screen.wait_for("ready");
    screen
}

fn command(editor: &Path) -> String {
    format!("'{}' 'an argument'", editor.display())
}

#[test]
fn the_prompt_is_edited_in_the_editor() {
    let folder = tempfile::tempdir().unwrap();
    let editor = editor(&folder, "printf 'and more\\nlines\\n' >> \"$2\"");
    let mut screen = start(&folder, &command(&editor));
    screen.send("first words");
    screen.wait_for("› first words");
    let before = screen.text();
    screen.send(CTRL_X_CTRL_E);
    screen.wait_for("EDITING first words with an argument");
    assert!(!screen.is_alternate(), "the editor has the terminal");
    screen.send("\r");
    screen.wait_for("lines");
    assert!(screen.is_alternate());
    let after = screen.text();
    assert_eq!(before.lines().next(), after.lines().next(), "the screen is complete:\n{after}");
    let lines: Vec<&str> = after.lines().map(str::trim_end).collect();
    assert!(lines.join("\n").contains("› first words\n   and more\n   lines"), "{after}");
    assert!(!after.contains("EDITING"), "{after}");

    let seen = fs::read_to_string(folder.path().join("seen")).unwrap();
    let path = seen.lines().last().unwrap();
    assert!(seen.starts_with("-rw-------"), "{seen}");
    assert!(!Path::new(path).parent().unwrap().exists(), "the folder is removed");
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
}

#[test]
fn an_editor_that_fails_leaves_the_prompt_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let editor = editor(&folder, "echo lost > \"$2\"; exit 3");
    let mut screen = start(&folder, &command(&editor));
    screen.send("first words");
    screen.wait_for("› first words");
    screen.send(CTRL_X_CTRL_E);
    screen.wait_for("EDITING");
    screen.send("\r");
    screen.wait_for("exited with exit status: 3");
    screen.wait_for("› first words");
    assert!(!screen.text().contains("lost"), "{}", screen.text());
}

#[test]
fn a_missing_editor_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(&folder, "no-such-editor --wait");
    screen.send("first words");
    screen.wait_for("› first words");
    screen.send(CTRL_X_CTRL_E);
    screen.wait_for("Could not run no-such-editor");
    screen.wait_for("› first words");
    screen.send(" typed");
    screen.wait_for("› first words typed");
}
