//! Several sessions in one agent process: forks up to a turn, and routing of updates.

use std::fs;
use std::path::Path;

use super::screen::Screen;
use super::tabs::{alt, children, prompt};

const CTRL_Q: &str = "\u{11}";
const F6: &str = "\u{1b}[17~";
const ALT_UP: &str = "\u{1b}[1;3A";

/// Starts parlor with an agent that plays this script, in a folder with a configuration file.
fn start(folder: &Path, wire: &str, script: &str) -> Screen {
    let (file, config) = (folder.join("script"), folder.join("config.toml"));
    fs::write(&file, script).unwrap();
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/scripted_agent");
    let text = format!(
        "agent = \"odd\"\n[agents.odd]\ncommand = '{}'\nargs = ['{}']\n{wire}",
        program.display(),
        file.display()
    );
    fs::write(&config, text).unwrap();
    let mut screen = Screen::start_with(folder, &["--config", config.to_str().unwrap()], (30, 100), &[]);
    screen.wait_for("ready");
    screen
}

fn quit(screen: &mut Screen) {
    screen.send(CTRL_Q);
    screen.send(CTRL_Q);
    screen.wait_exit();
}

fn bar(screen: &Screen) -> String {
    screen.text().lines().next().unwrap_or_default().to_owned()
}

/// A response of `OpenOxide`, which uses event names as methods, and the end of its turn.
fn answered(session: &str, text: &str) -> String {
    let event = |name: &str, more: &str| {
        format!(
            "< {{\"jsonrpc\":\"2.0\",\"method\":\"{name}\",\"params\":{{\"session_id\":\"{session}\"{more}}}}}\n"
        )
    };
    event("text_delta", &format!(",\"text\":\"{text}\""))
        + &event("done", "")
        + "< {\"jsonrpc\":\"2.0\",\"id\":$prompt,\"result\":{}}\n"
}

#[test]
fn a_fork_up_to_the_selected_turn_is_requested_and_is_independent() {
    let mut script = r#"> "initialize"
< {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":"0.1","serverInfo":{"name":"openoxide","version":"0.1.0"},"capabilities":{"streaming":true,"session_fork":true}}}
> "session/create"
< {"jsonrpc":"2.0","id":$id,"result":{"session_id":"s1"}}
"#
    .to_owned();
    for text in ["answer one", "answer two", "answer three"] {
        script += "> \"prompt/send\",\"params\":{\"session_id\":\"s1\"\n= prompt\n";
        script += &answered("s1", text);
    }
    // Its turns are counted from 0. For any other number the agent exits.
    script += "? \"session/fork\",\"params\":{\"source_session_id\":\"s1\",\"branch_at_turn\":0}\n";
    script += "< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"session_id\":\"s2\"}}\n";
    script += "> \"prompt/send\",\"params\":{\"session_id\":\"s2\"\n= prompt\n";
    script += "< {\"jsonrpc\":\"2.0\",\"method\":\"text_delta\",\"params\":{\"session_id\":\"s1\",\"text\":\"late of the source\"}}\n";
    script += &answered("s2", "of the copy");

    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(folder.path(), "profile = \"openoxide\"\n", &script);
    for (prompt_text, answer) in
        [("first", "answer one"), ("second", "answer two"), ("third", "answer three")]
    {
        prompt(&mut screen, prompt_text);
        screen.wait_for(answer);
        screen.wait_for("ready");
        screen.wait_quiet();
    }
    for _ in 0..5 {
        screen.send(ALT_UP);
    }
    screen.send(F6);
    screen.wait_for("This folder, newest first");
    screen.send(&alt("f"));
    screen.wait_for("Up to the selected turn (1 of 3)");
    screen.send("1");
    screen.wait_for("▸2");
    screen.wait_for("Forked from: first");
    screen.wait_for("answer one");
    assert!(!screen.text().contains("answer two"), "{}", screen.text());
    assert_eq!(children(screen.pid()).len(), 1, "both sessions share one process");
    prompt(&mut screen, "fourth");
    screen.wait_for("of the copy");
    assert!(!screen.text().contains("late of the source"), "{}", screen.text());
    screen.send(&alt("1"));
    screen.wait_for("▸1");
    screen.wait_for("late of the source");
    screen.wait_for("answer three");
    assert!(!screen.text().contains("of the copy"), "{}", screen.text());
    quit(&mut screen);
}

#[test]
fn updates_of_one_process_are_routed_by_session() {
    let says = |session: &str, text: &str| {
        format!(
            "< {{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"{session}\",\"update\":\
             {{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"{text}\"}}}}}}}}\n"
        )
    };
    let opened = |id: &str| {
        format!(
            "> \"session/new\"\n< {{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"sessionId\":\"{id}\"}}}}\n"
        )
    };
    let ended = |name: &str| {
        format!("< {{\"jsonrpc\":\"2.0\",\"id\":${name},\"result\":{{\"stopReason\":\"end_turn\"}}}}\n")
    };
    let script = [
        "> \"initialize\"\n< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{}}}\n",
        &opened("a"),
        "> \"session/prompt\",\"params\":{\"sessionId\":\"a\"\n= first\n",
        &opened("b"),
        "> \"session/prompt\",\"params\":{\"sessionId\":\"b\"\n= second\n",
        &says("a", "alpha one "),
        &says("b", "beta one "),
        &says("nobody", "stray words"),
        &says("a", "alpha two "),
        "< {\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"a\",\
         \"toolCall\":{\"toolCallId\":\"t\",\"title\":\"Paint the door\",\"kind\":\"other\"},\"options\":[{\"optionId\":\
         \"y\",\"name\":\"Paint it\",\"kind\":\"allow_once\"}]}}\n",
        &says("b", "beta two"),
        &ended("second"),
        "? \"id\":77,\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"y\"}}\n",
        &says("a", "alpha three"),
        &ended("first"),
    ]
    .concat();
    let folder = tempfile::tempdir().unwrap();
    let mut screen = start(folder.path(), "", &script);
    prompt(&mut screen, "go on");
    screen.wait_for("working");
    screen.send(&alt("n"));
    screen.wait_for("▸2");
    screen.wait_for("ready");
    assert_eq!(children(screen.pid()).len(), 1, "both sessions share one process");
    prompt(&mut screen, "you too");
    screen.wait_for("beta one beta two");
    screen.wait_until("the mark of the first tab", |screen| bar(screen).contains("1!"));
    for others in ["alpha", "stray", "Paint the door"] {
        assert!(!screen.text().contains(others), "{others}:\n{}", screen.text());
    }
    screen.send(&alt("1"));
    screen.wait_for("▸1");
    screen.wait_for("Paint the door");
    screen.answer("1");
    screen.wait_for("alpha three");
    screen.wait_for("alpha one alpha two");
    for others in ["beta", "stray"] {
        assert!(!screen.text().contains(others), "{others}:\n{}", screen.text());
    }
    quit(&mut screen);
}
