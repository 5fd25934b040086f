//! A long session: its start and its end are one key away, also after a restart.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::screen::Screen;

const CTRL_HOME: &str = "\u{1b}[1;5H";
const CTRL_END: &str = "\u{1b}[1;5F";
const PAGE_UP: &str = "\u{1b}[5~";
const CTRL_F: &str = "\u{6}";
const CTRL_Q: &str = "\u{11}";
const ESC: &str = "\u{1b}";

/// Number of messages in one turn, with about 1500 bytes each.
const MESSAGES: usize = 2_000;

/// The scripted agent.
pub fn scripted_agent() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples").join("scripted_agent")
}

/// An agent with many messages in one turn.
fn script() -> String {
    let mut script = String::from(
        "> initialize\n< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":1}}\n\
         > session/new\n< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"sessionId\":\"s1\"}}\n\
         > session/prompt\n",
    );
    for n in 1..=MESSAGES {
        let text = format!("number {n}. {}", "Many words make a long story. ".repeat(50));
        let _ = writeln!(
            script,
            r#"< {{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s1","update":{{"sessionUpdate":"agent_message_chunk","messageId":"m{n}","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        );
    }
    script.push_str("< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"stopReason\":\"end_turn\"}}\n> never\n");
    script
}

fn start(folder: &Path, more: &[&str]) -> Screen {
    std::fs::write(folder.join("script"), script()).unwrap();
    let config = format!(
        "agent = 'scripted'\n[agents.scripted]\ncommand = '{}'\nargs = ['{}']\n",
        scripted_agent().display(),
        folder.join("script").display()
    );
    std::fs::write(folder.join("config.toml"), config).unwrap();
    let config = folder.join("config.toml");
    let args = ["--config", config.to_str().unwrap()];
    let data = folder.join("data");
    Screen::start_with(folder, &[&args, more].concat(), (30, 100), &[("PARLOR_DATA_DIR", data.as_path())])
}

#[test]
fn the_start_of_a_long_session_is_one_key_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(folder.path(), &[]);
    screen.wait_for("ready");
    screen.send("find the blue door");
    screen.wait_for("find the blue door");
    screen.send("\r");
    screen.wait_for(&format!("number {MESSAGES}."));
    screen.wait_for("ready");
    screen.wait_quiet_for_store();
    check(&mut screen);
    screen.send(CTRL_Q);
    assert!(screen.wait_exit().success());

    let mut screen = start(folder.path(), &["--continue"]);
    screen.wait_for(&format!("number {MESSAGES}."));
    screen.wait_gone("Reading the earlier part");
    check(&mut screen);
    screen.send(CTRL_Q);
    screen.wait_exit();
}

fn check(screen: &mut Screen) {
    screen.wait_quiet();
    screen.send(CTRL_HOME);
    screen.wait_for("find the blue door");
    screen.wait_for("number 1.");
    screen.send(CTRL_END);
    screen.wait_for(&format!("number {MESSAGES}."));
    screen.wait_quiet();
    screen.send(PAGE_UP);
    screen.wait_for(&format!("number {}.", MESSAGES - 1));
    screen.send(CTRL_END);
    screen.wait_for(&format!("number {MESSAGES}."));

    screen.send(CTRL_F);
    screen.wait_for("type to search");
    screen.send("blue door");
    screen.wait_for("1 of 1");
    screen.wait_for("find the blue door");
    screen.send(ESC);
    screen.wait_gone("1 of 1");
}
