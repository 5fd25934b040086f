//! MCP servers of a folder: used after confirmation, and confirmed again when the file has changed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::screen::Screen;

fn name_servers(folder: &Path, argument: &str) {
    let text = format!(r#"{{"mcpServers": {{"files": {{"command": "sh", "args": ["-c", "{argument}"]}}}}}}"#);
    fs::write(folder.join(".mcp.json"), text).unwrap();
}

fn start(folder: &Path, data: &Path) -> Screen {
    Screen::start(folder, &["--data-dir", data.to_str().unwrap(), "demo"])
}

/// A dialog that opened without a key press ignores keys at first.
fn wait_open_to_keys(screen: &mut Screen) {
    screen.bytes_within(Duration::from_millis(700));
}

fn leave(mut screen: Screen) {
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
}

#[test]
fn the_servers_of_a_folder_are_used_only_after_confirmation() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    name_servers(folder.path(), "true");
    let mut screen = start(folder.path(), data.path());
    screen.wait_for("Use the MCP servers of this folder?");
    screen.wait_for("files: runs sh");
    screen.wait_for("argument true");
    wait_open_to_keys(&mut screen);
    // Escape does not confirm.
    screen.send("\u{1b}");
    screen.wait_for("MCP servers are not used");
    screen.wait_for("ready");
    leave(screen);

    let mut screen = start(folder.path(), data.path());
    screen.wait_for("Use the MCP servers of this folder?");
    screen.answer("2");
    screen.wait_for("ready");
    // F8 opens the connection dialog.
    screen.send("\u{1b}[19~");
    screen.wait_for("MCP servers");
    screen.wait_for("files");
    leave(screen);

    let mut screen = start(folder.path(), data.path());
    screen.wait_for("ready");
    assert!(!screen.text().contains("Use the MCP servers"));
    leave(screen);

    name_servers(folder.path(), "false");
    let mut screen = start(folder.path(), data.path());
    screen.wait_for("argument false");
    screen.answer("3");
    screen.wait_for("ready");
    leave(screen);
}
