//! State across runs of parlor: selected settings, and sessions that the agent's server stores.

use std::fs;
use std::path::Path;

use parlor::core::lifecycle::operations;
use parlor::model::{AgentSpec, Callbacks, Remote, Setting};
use parlor::store::{ListFilter, Store};

use super::bridge::{Bridge, Shape};
use super::nonstandard::scripted_agent;
use super::rig::{Rig, agent};

const HELLO: &str = r#"? "initialize"
< {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}
"#;

const MODES: &str = r#""modes":{"currentModeId":"full","availableModes":[{"id":"full","name":"Full"},{"id":"read-only","name":"Read-Only"}]}"#;

fn turn(answer: &str) -> String {
    format!(
        "? \"session/prompt\"\n\
         < {{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s1\",\"update\":{{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"{answer}\"}}}}}}}}\n\
         < {{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"stopReason\":\"end_turn\"}}}}\n"
    )
}

fn uid(store: &Store) -> String {
    let rows = store.list(&ListFilter::default()).unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0].uid.clone()
}

/// A session with a selected mode, and the next run that resumes it: the agent's response to the load, and its next
/// steps.
fn go_on(loaded: &str, then: &str) -> (Rig, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    fs::create_dir(&work).unwrap();
    let store = Store::open(folder.path().join("data")).unwrap();
    let script = folder.path().join("script");
    let start = |text: &str, uid: Option<&str>| {
        fs::write(&script, text).unwrap();
        Rig::start_kept(&work, agent(scripted_agent(), &[script.to_str().unwrap()]), &store, uid)
    };
    let opened = format!(
        "? \"session/new\"\n< {{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{{\"sessionId\":\"s1\",{MODES}}}}}\n"
    );
    let set = "? \"session/set_mode\"\n< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}\n";
    let mut rig = start(&[HELLO, &opened, set, &turn("Looked.")].concat(), None);
    rig.wait_ready();
    let key = rig.state.active;
    rig.operate(|state, cx| operations::set_mode(state, key, "read-only".into(), cx));
    rig.wait("the mode", |state| !state.sessions[&state.active].settings.chosen().is_empty());
    rig.ask("look");
    rig.quit_and_keep();
    drop(rig);
    let uid = uid(&store);
    assert_eq!(store.reopen(&uid).unwrap().head.chosen, [Setting::Mode("read-only".into())]);
    let load = format!("? \"session/load\"\n< {{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{loaded}}}\n");
    let mut rig = start(&[HELLO, &load, then].concat(), Some(&uid));
    rig.wait_ready();
    (rig, folder)
}

const SET_AGAIN: &str = r#"? "session/set_mode","params":{"sessionId":"s1","modeId":"read-only"}
< {"jsonrpc":"2.0","id":$id,"result":{}}
"#;

#[test]
fn a_selected_mode_is_restored_before_the_first_prompt() {
    // The agent reports another mode, or none.
    for loaded in [format!("{{{MODES}}}"), "{}".to_owned()] {
        let (mut rig, _folder) = go_on(&loaded, &[SET_AGAIN, &turn("Still careful.")].concat());
        rig.ask("go on");
        rig.wait_text("agent: Still careful.");
        assert!(!rig.text().contains("could not be set"), "{}", rig.text());
    }
    // If the agent has the mode, no request is sent.
    let saved =
        format!("{{{}}}", MODES.replace("\"currentModeId\":\"full\"", "\"currentModeId\":\"read-only\""));
    let (mut rig, _folder) = go_on(&saved, &turn("It was kept."));
    rig.ask("go on");
    rig.wait_text("agent: It was kept.");
}

#[test]
fn a_mode_that_is_no_longer_available_is_reported() {
    let other = r#"{"modes":{"currentModeId":"full","availableModes":[{"id":"full","name":"Full"}]}}"#;
    let (mut rig, _folder) = go_on(other, "");
    rig.wait_text("Some settings could not be set.");
    assert!(rig.text().contains("The agent no longer offers: mode read-only."), "{}", rig.text());
    let refused = "? \"session/set_mode\"\n< {\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32602,\"message\":\"no such mode\"}}\n";
    let (mut rig, _folder) = go_on("{}", refused);
    rig.wait_text("Some settings could not be set.");
    assert!(rig.text().contains("no such mode"), "{}", rig.text());
}

const GATEWAY: &str = r#"? "initialize"
< {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":1,"agentInfo":{"name":"zeptoclaw","version":"0.5.0"},"agentCapabilities":{"sessionCapabilities":{"list":{}}}}}
"#;

/// Two runs of parlor with one gateway, whose sessions do not belong to a connection.
fn two_parlors(work: &Path, store: &Store, script: &str) -> (Rig, Bridge) {
    let file = work.join("script");
    fs::write(&file, script).unwrap();
    let command = vec![scripted_agent().into_os_string(), file.into_os_string()];
    let gateway = Bridge::start(Shape::Post, command, None);
    let remote = Remote { url: gateway.url(), ..Remote::default() };
    let spec = AgentSpec {
        name: "claw".to_owned(),
        callbacks: Callbacks::NONE,
        remote: Some(remote),
        ..AgentSpec::default()
    };
    let mut rig = Rig::start_kept(work, spec.clone(), store, None);
    rig.wait_ready();
    rig.ask("remember the number 7");
    rig.quit_and_keep();
    drop(rig);
    let mut rig = Rig::start_kept(work, spec, store, Some(&uid(store)));
    rig.wait_ready();
    (rig, gateway)
}

fn begun() -> String {
    let new = "? \"session/new\"\n< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"sessionId\":\"s1\"}}\n";
    [GATEWAY, new, &turn("I do.")].concat()
}

/// `ZeptoClaw` supports neither load nor resume; over HTTP, a session continues by its id while the gateway is running.
#[test]
fn a_zeptoclaw_session_continues_while_its_gateway_is_running() {
    let (work, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open(data.path().join("data")).unwrap();
    let listed = r#"? "session/list"
< {"jsonrpc":"2.0","id":$id,"result":{"sessions":[{"sessionId":"s1","cwd":"/w","title":null,"_meta":{"pending":false}}],"nextCursor":null}}
"#;
    let script = [begun().as_str(), GATEWAY, listed, &turn("It is 7.")].concat();
    let (mut rig, _gateway) = two_parlors(work.path(), &store, &script);
    rig.ask("which number");
    rig.wait_text("agent: It is 7.");
    assert!(!rig.text().contains("forgotten"), "{}", rig.text());
    assert_eq!(rig.text().matches("user: remember the number 7").count(), 1, "{}", rig.text());
}

#[test]
fn a_zeptoclaw_session_cannot_be_restored_after_its_gateway_ended() {
    let (work, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open(data.path().join("data")).unwrap();
    let gone = r#"? "session/list"
< {"jsonrpc":"2.0","id":$id,"result":{"sessions":[],"nextCursor":null}}
? "session/new"
< {"jsonrpc":"2.0","id":$id,"result":{"sessionId":"s1"}}
"#;
    let script = [begun().as_str(), GATEWAY, gone].concat();
    let (rig, _gateway) = two_parlors(work.path(), &store, &script);
    let text = rig.text();
    assert!(text.contains("The agent could not restore this conversation."), "{text}");
    assert!(text.contains("The agent does not have the history above"), "{text}");
}
