//! Behavior of single agents that the dialect tests do not cover, with scripted agents.

use std::fs;

use parlor::core::{ItemBody, SessionPhase, TurnEnd};
use parlor::model::{Action, AgentSpec, Profile, WireSpec};

use super::nonstandard::scripted_agent;
use super::rig::{Rig, agent};

struct Played {
    rig: Rig,
    folder: tempfile::TempDir,
}

/// Plays a script of an agent with this profile.
fn play(script: &str, profile: Profile) -> Played {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    fs::write(&file, script).unwrap();
    let wire = WireSpec { profile: Some(profile), ..WireSpec::default() };
    let spec = AgentSpec { wire, ..agent(scripted_agent(), &[file.to_str().unwrap()]) };
    let mut rig = Rig::start(folder.path(), spec);
    rig.wait_ready();
    Played { rig, folder }
}

const NEW: &str = r#"? "session/new"
< {"jsonrpc":"2.0","id":$id,"result":{"sessionId":"s1"}}
"#;

fn hello(result: &str) -> String {
    format!("? \"initialize\"\n< {{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{result}}}\n{NEW}")
}

/// From the client page: an `error` event is shown, and a retry is offered.
#[test]
fn an_error_event_of_openoxide_is_shown_and_the_prompt_can_be_sent_again() {
    let script = r#"? "protocolVersion":"0.1"
< {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":"0.1","serverInfo":{"name":"openoxide","version":"0.1.0"},"capabilities":{"session_fork":false}}}
? "session/create"
< {"jsonrpc":"2.0","id":$id,"result":{"session_id":"s1"}}
? "prompt/send"
< {"jsonrpc":"2.0","method":"error","params":{"session_id":"s1","message":"503 the model is overloaded"}}
< {"jsonrpc":"2.0","method":"done","params":{"session_id":"s1"}}
? "text":"one"
< {"jsonrpc":"2.0","method":"text_delta","params":{"session_id":"s1","text":"Here it is."}}
< {"jsonrpc":"2.0","method":"done","params":{"session_id":"s1"}}
"#;
    let mut played = play(script, Profile::OpenOxide);
    let rig = &mut played.rig;
    rig.prompt("one");
    rig.wait_text("503 the model is overloaded");
    rig.wait_idle();
    assert!(rig.session().outbox.failed().is_some(), "{}", rig.text());
    rig.act(Action::SendAgain);
    rig.wait_text("agent: Here it is.");
    assert_eq!(rig.text().matches("user: one").count(), 1, "{}", rig.text());
}

/// From the documentation: it responds with `Content-Length` frames if the first message has a header.
#[test]
fn elephant_gets_headers_from_the_first_message_if_configured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    let heard = folder.path().join("heard");
    let hello = hello(r#"{"protocolVersion":1,"agentInfo":{"name":"alex","version":"1"}}"#);
    fs::write(&file, format!("~\n{hello}")).unwrap();
    let line = format!("tee {} | {} {}", heard.display(), scripted_agent().display(), file.display());
    let wire = WireSpec { profile: Some(Profile::Elephant), has_headers: true, ..WireSpec::default() };
    let mut rig = Rig::start(folder.path(), AgentSpec { wire, ..agent("sh", &["-c", &line]) });
    rig.wait_ready();
    let heard = fs::read_to_string(heard).unwrap();
    let (header, rest) = heard.split_once("\r\n\r\n").unwrap();
    let length: usize = header.strip_prefix("Content-Length: ").unwrap().parse().unwrap();
    let first = rest.get(..length).unwrap();
    assert!(first.starts_with('{') && first.ends_with('}') && first.contains("\"initialize\""), "{heard}");
    assert!(rest[length..].starts_with("Content-Length: "), "{heard}");
}

/// From the documentation: a background job sends messages without an open prompt; on shutdown, an open prompt ends
/// with `error`.
#[test]
fn zeptoclaw_sends_messages_between_turns_and_fails_open_prompts_on_shutdown() {
    let say = |text: &str| {
        format!(
            "< {{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s1\",\"update\":{{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"{text}\"}}}}}}}}\n"
        )
    };
    let script = [
        hello(
            r#"{"protocolVersion":1,"agentInfo":{"name":"zeptoclaw","version":"0.5.0"},"agentCapabilities":{}}"#,
        ),
        "? \"session/prompt\"\n".to_owned(),
        say("Done."),
        "< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"stopReason\":\"end_turn\"}}\n".to_owned(),
        say("The nightly job has run."),
        "? \"session/prompt\"\n< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"stopReason\":\"error\"}}\n"
            .to_owned(),
    ];
    let mut played = play(&script.concat(), Profile::ZeptoClaw);
    let rig = &mut played.rig;
    rig.ask("one");
    rig.wait_text("The nightly job has run.");
    assert!(!rig.session().turn.is_running(), "it starts no turn");
    assert!(rig.session().has_background_news);
    assert!(!rig.text().contains("Done.The nightly"), "{}", rig.text());
    rig.ask("two");
    let end = rig.session().transcript.items().iter().rev().find_map(|item| match &item.body {
        ItemBody::TurnEnd(end) => Some(end.clone()),
        _ => None,
    });
    assert!(matches!(&end, Some(TurnEnd::Failed { .. })), "{end:?}");
}

/// From the documentation: start-up scripts are sent as tool calls after the response to `session/new`, and in its
/// async mode a prompt gets its response immediately and the output follows.
#[test]
fn activecontext_sends_updates_before_the_first_prompt_and_after_the_response() {
    let flat = |body: &str| {
        format!(
            "< {{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s1\",{body}}}}}\n"
        )
    };
    let text = |text: &str| flat(&format!(r#""sessionUpdate":"agent_message_text_update","text":"{text}""#));
    let call = |status: &str| {
        flat(&format!(
            r#""sessionUpdate":"tool_call_update","toolCallId":"tc_0","title":"startup.py","kind":"execute","status":"{status}""#
        ))
    };
    let end = "< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"stop_reason\":\"end_turn\"}}\n";
    let script = [
        hello(r#"{"protocolVersion":1,"agentInfo":{"name":"activecontext","version":"0.1.0"},"agentCapabilities":{"loadSession":true}}"#).as_str(),
        &call("pending"),
        &call("in_progress"),
        &call("completed"),
        "? \"session/prompt\"\n",
        end,
        "@ answered\n",
        &text("I look "),
        &text("at it."),
        "? \"session/prompt\"\n",
        &text("Now this."),
        end,
    ]
    .concat();
    let mut played = play(&script, Profile::ActiveContext);
    let rig = &mut played.rig;
    rig.wait_text("tool tc_0 [Execute Completed] startup.py");
    assert!(!rig.session().turn.is_running() && rig.session().turn_count == 0);
    rig.ask("one");
    fs::write(played.folder.path().join("answered"), "").unwrap();
    rig.wait_text("agent: I look at it.");
    assert!(!rig.session().turn.is_running(), "output after the response starts no turn");
    assert!(rig.session().has_background_news);
    rig.ask("two");
    let text = rig.text();
    let order = ["user: one", "I look at it.", "user: two", "agent: Now this."].map(|part| text.find(part));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{text}");
}

/// From the documentation: a prompt may end with `auth_required`, and error `-32000` means the same. From the code: it
/// inserts user messages.
#[test]
fn banjo_gets_the_prompt_again_after_sign_in_and_its_user_messages_are_shown() {
    let script = [
        hello(r#"{"protocolVersion":1,"agentInfo":{"name":"Banjo Duet","version":"0.6.0"},"agentCapabilities":{},"authMethods":[{"id":"claude","name":"Claude Code"}]}"#).as_str(),
        r#"? "session/prompt"
< {"jsonrpc":"2.0","id":$id,"result":{"stopReason":"auth_required"}}
? "authenticate","params":{"methodId":"claude"}
< {"jsonrpc":"2.0","id":$id,"result":{}}
? "text":"one"
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Go on with the next dot."}}}}
< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}}}
< {"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn"}}
"#,
    ]
    .concat();
    let mut played = play(&script, Profile::Banjo);
    let rig = &mut played.rig;
    rig.prompt("one");
    rig.wait("the question for a sign-in", |state| {
        state.sessions[&state.active].phase == SessionPhase::NeedsSignIn
    });
    rig.act(Action::Accept);
    rig.wait_text("agent: Done.");
    rig.wait_idle();
    let text = rig.text();
    assert!(text.contains("user: Go on with the next dot."), "{text}");
    assert_eq!(text.matches("user: one").count(), 1, "{text}");
}
