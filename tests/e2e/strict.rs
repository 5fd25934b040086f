//! `--strict`: what is mended for everybody else is shown as it came, and refused with the reason.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::screen::Screen;

/// Says what it says without the wrapper of an update, asks with options that are keyed by `id`, and ends its turn once
/// it has an answer of any kind.
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

/// The same peer, mended or to the letter.
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
fn a_dialect_is_understood_unless_strict_and_then_shown_raw_and_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(&folder, PEER, &[]);
    screen.wait_for("ready");
    screen.send("hello\r");
    screen.wait_for("Let it");
    screen.bytes_within(Duration::from_millis(700));
    screen.send("1");
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
    assert!(!screen.text().contains("Let it"), "nothing is asked that was not understood");
    screen.send(F8);
    screen.wait_for("none (strict protocol)");
    assert!(!screen.text().contains("quirks"), "{}", screen.text());
    screen.send("\u{1b}");
    leave(screen);
}

#[test]
fn a_handshake_that_is_not_the_protocols_is_refused_by_strict_with_the_reason() {
    let script = PEER.replace("\"protocolVersion\":1", "\"protocolVersion\":\"1\"");
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(&folder, &script, &[]);
    screen.wait_for("ready");
    leave(screen);
    let mut screen = start(&folder, &script, &["--strict"]);
    screen.wait_for("`protocolVersion` is not a number");
    leave(screen);
}
