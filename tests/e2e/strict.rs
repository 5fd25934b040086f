//! `--strict`: non-standard messages are shown unchanged, and rejected with the reason.

use std::fs;
use std::path::PathBuf;

use super::screen::Screen;

/// Sends updates without the wrapper, requests permission with options that are keyed by `id`, and ends the turn after
/// any response.
const PEER: &str = r#"> "initialize"
< {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":1,"agentCapabilities":{}}}
> "session/new"
< {"jsonrpc":"2.0","id":$id,"result":{"sessionId":"s"}}
> "session/prompt"
= prompt
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","sessionUpdate":"agent_message_text_update","text":"Words without a wrapper."}}
< {"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"notes.txt","kind":"edit"},"options":[{"id":"y","kind":"allow_once","label":"Let it"},{"id":"n","kind":"reject_once","label":"Do not"}]}}
> "id":7
< {"jsonrpc":"2.0","id":$prompt,"result":{"stopReason":"end_turn"}}
"#;

const F8: &str = "\u{1b}[19~";

/// Starts the agent with or without compatibility workarounds.
fn start(folder: &tempfile::TempDir, script: &str, options: &[&str]) -> Screen {
    let file = folder.path().join("script");
    fs::write(&file, script).unwrap();
    let agent = PathBuf::from(env!("CARGO_BIN_EXE_parlor")).with_file_name("examples").join("scripted_agent");
    let mut args = options.to_vec();
    args.extend(["--", agent.to_str().unwrap(), file.to_str().unwrap()]);
    Screen::start(folder.path(), &args)
}

fn leave(mut screen: Screen) {
    screen.send("\u{11}");
    screen.send("\u{11}");
    assert!(screen.wait_exit().success());
}

#[test]
fn strict_shows_non_standard_messages_raw_and_rejects_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(&folder, PEER, &[]);
    screen.wait_for("ready");
    screen.send("hello\r");
    screen.wait_for("Let it");
    screen.answer("1");
    screen.wait_gone("Let it");
    screen.wait_for("Words without a wrapper.");
    screen.wait_for("ready");
    screen.send(F8);
    screen.wait_for("Updates are not wrapped in `update`.");
    screen.wait_for("Permission options use `id`");
    screen.send("\u{1b}");
    leave(screen);

    let mut screen = start(&folder, PEER, &["--strict"]);
    screen.wait_for("ready");
    screen.send("hello\r");
    screen.wait_for("Non-standard update: agent_message_text_update");
    screen.wait_for("missing field `update`");
    screen.wait_for("Rejected non-standard request: session/request_permission");
    screen.wait_for("missing field `optionId`");
    screen.wait_for("ready");
    assert!(!screen.text().contains("Let it"), "no dialog for a rejected request");
    screen.send(F8);
    screen.wait_for("off (strict protocol)");
    assert!(!screen.text().contains("quirks"), "{}", screen.text());
    screen.send("\u{1b}");
    leave(screen);
}

#[test]
fn strict_rejects_a_non_standard_handshake_with_the_reason() {
    let script = PEER.replace("\"protocolVersion\":1", "\"protocolVersion\":\"1\"");
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(&folder, &script, &[]);
    screen.wait_for("ready");
    leave(screen);
    let mut screen = start(&folder, &script, &["--strict"]);
    screen.wait_for("`protocolVersion` is not a number");
    leave(screen);
}
