//! Non-standard behavior of real agents, with scripted agents.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use parlor::core::{OpenRequestKind, SessionPhase};
use parlor::model::{Action, ToolStatus};

use super::rig::{Rig, agent};

const INITIALIZE: &str = r#"> "initialize"
< {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":1,"agentCapabilities":{}}}
"#;
const NEW: &str = r#"> "session/new"
< {"jsonrpc":"2.0","id":$id,"result":{"sessionId":"s"}}
"#;
const PROMPT: &str = "> \"session/prompt\"\n";
const END: &str = r#"< {"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn"}}
"#;

/// Sends an update of the session.
fn update(body: &str) -> String {
    format!(
        "< {{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":{body}}}}}\n"
    )
}

fn say(text: &str) -> String {
    update(&format!(
        r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#
    ))
}

/// Requests permission for a tool call.
fn ask(id: &str, tool: &str) -> String {
    format!(
        "< {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"session/request_permission\",\"params\":{{\"sessionId\":\"s\",\
         \"toolCall\":{tool},\"options\":[{{\"optionId\":\"a\",\"name\":\"Yes\",\"kind\":\"allow_once\"}},\
         {{\"optionId\":\"r\",\"name\":\"No\",\"kind\":\"reject_once\"}}]}}}}\n"
    )
}

struct Played {
    rig: Rig,
    _folder: tempfile::TempDir,
}

pub(super) fn scripted_agent() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples").join("scripted_agent")
}

/// Plays a complete script.
fn play_all(script: &str) -> Played {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    fs::write(&file, script).unwrap();
    let rig = Rig::start(folder.path(), agent(scripted_agent(), &[file.to_str().unwrap()]));
    Played { rig, _folder: folder }
}

/// Plays a script after a usual start, and waits until the session is ready.
fn play(script: &str) -> Played {
    let mut played = play_all(&format!("{INITIALIZE}{NEW}{script}"));
    played.rig.wait_ready();
    played
}

#[test]
fn noise_blank_lines_and_a_bom_are_reported() {
    let script = format!(
        "< Starting the agent, version 3\n< \n< \u{feff}\n{INITIALIZE}< {{\"torn\n{NEW}{PROMPT}{}{END}",
        say("fine")
    );
    let mut played = play_all(&script);
    played.rig.wait_ready();
    played.rig.ask("hello");
    assert!(played.rig.text().contains("agent: fine"), "{}", played.rig.text());
    assert!(played.rig.state.anomaly_count >= 2, "{}", played.rig.state.anomaly_count);
}

/// A line of 50 MiB, an array of messages, invalid UTF-8, frames with headers, a truncated message.
#[test]
fn invalid_frames_are_reported_and_the_connection_continues() {
    let chunk = say("from a list").trim_end().trim_start_matches("< ").to_owned();
    let script = [
        PROMPT.to_owned(),
        "= prompt\n".to_owned(),
        "+ 52428800\n% 0a\n".to_owned(),
        format!("< [{chunk},{chunk}]\n"),
        "% 62 61 64 20 ff fe 0a\n".to_owned(),
        update(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"te"#),
        "~\n".to_owned(),
        say(" and with headers"),
        END.replace("$id", "$prompt"),
    ]
    .concat();
    let mut played = play(&script);
    let before = played.rig.state.anomaly_count;
    played.rig.ask("go");
    let text = played.rig.text();
    for shown in ["agent: from a listfrom a list", "unreadable message", "agent:  and with headers"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    let anomalies = played.rig.state.anomaly_count - before;
    assert!(anomalies >= 4, "the long line, the array, the bytes, the truncated one: {anomalies}");
}

#[test]
fn updates_before_the_response_of_session_new_are_used() {
    let mut script = INITIALIZE.to_owned();
    script.push_str("> \"session/new\"\n");
    script.push_str(&update(
        r#"{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"early","description":"x"}]}"#,
    ));
    script.push_str(&say("welcome"));
    script.push_str("< {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"sessionId\":\"s\"}}\n");
    let mut played = play_all(&script);
    played.rig.wait_ready();
    played.rig.wait_text("agent: welcome");
    assert_eq!(played.rig.session().commands[0].name, "early");
}

#[test]
fn a_permission_may_precede_its_tool_call() {
    let script = [
        PROMPT.to_owned(),
        ask("0", r#"{"toolCallId":"t","title":"Write a","kind":"edit"}"#),
        "> \"optionId\":\"a\"\n".to_owned(),
        update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}"#),
        // The id of the prompt is 3: initialize, new, prompt.
        END.replace("$id", "3"),
    ]
    .concat();
    let mut played = play(&script);
    played.rig.prompt("go");
    played.rig.wait_ask();
    played.rig.act(Action::Choose(1));
    played.rig.wait_idle();
    let text = played.rig.text();
    assert_eq!(text.matches("tool t ").count(), 1, "{text}");
    assert!(text.contains("[Edit Completed] Write a"), "{text}");
}

#[test]
fn a_second_announcement_does_not_reset_the_status_and_ids_may_be_reused() {
    let turn = |title: &str| {
        [
            PROMPT.to_owned(),
            update(&format!(
                r#"{{"sessionUpdate":"tool_call","toolCallId":"t","title":"{title}","status":"in_progress"}}"#
            )),
            update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}"#),
            update(&format!(
                r#"{{"sessionUpdate":"tool_call","toolCallId":"t","title":"{title}","status":"pending"}}"#
            )),
            END.to_owned(),
        ]
        .concat()
    };
    let mut played = play(&format!("{}{}", turn("first"), turn("second")));
    played.rig.ask("one");
    played.rig.ask("two");
    let text = played.rig.text();
    assert!(text.contains("Completed] first"), "{text}");
    assert!(text.contains("Completed] second"), "{text}");
}

#[test]
fn output_in_meta_is_shown() {
    let script = [
        PROMPT.to_owned(),
        update(
            r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"ls","kind":"execute","content":[{"type":"terminal","terminalId":"t"}],"_meta":{"terminal_info":{"terminal_id":"t","cwd":"/"}}}"#,
        ),
        update(
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","_meta":{"terminal_output":{"terminal_id":"t","data":"seen in meta"}}}"#,
        ),
        update(
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","_meta":{"terminal_exit":{"terminal_id":"t","exit_code":0,"signal":null}}}"#,
        ),
        END.to_owned(),
    ]
    .concat();
    let mut played = play(&script);
    played.rig.ask("go");
    assert!(played.rig.text().contains("terminal seen in meta"), "{}", played.rig.text());
}

/// An input that is streamed: first nothing, then a part, then all; sometimes an array of letters instead of an object.
#[test]
fn streamed_tool_input_is_shown() {
    let grow = |id: &str, input: &str| {
        update(&format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"{id}","rawInput":{input}}}"#))
    };
    let begin = |id: &str| {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"{id}","title":"Bash","kind":"execute","rawInput":{{}}}}"#
        ))
    };
    let script = [
        PROMPT.to_owned(),
        begin("t"),
        grow("t", r#"{"command":"cargo te"}"#),
        "> session/cancel\n".to_owned(),
        grow("t", r#"{"command":"cargo test --lib"}"#),
        begin("u"),
        grow("u", r#""ls -l""#),
        END.replace("$id", "3"),
    ]
    .concat();
    let mut played = play(&script);
    let command = |state: &parlor::core::State, call: &str| {
        state.sessions[&state.active].transcript.items().iter().find_map(|item| match &item.body {
            parlor::core::ItemBody::Tool(tool) if tool.id.as_str() == call => tool.input.command.clone(),
            _ => None,
        })
    };
    played.rig.prompt("go");
    played.rig.wait("the first part", |state| command(state, "t").is_some_and(|line| line == "cargo te"));
    played.rig.act(Action::ClearOrQuit);
    played.rig.wait_idle();
    assert_eq!(command(&played.rig.state, "t").as_deref(), Some("cargo test --lib"));
    assert!(played.rig.text().contains("Bash"), "{}", played.rig.text());
}

#[test]
fn updates_after_the_response_are_shown_and_start_no_turn() {
    let late = [
        END.to_owned(),
        say("late words"),
        update(r#"{"sessionUpdate":"session_info_update","title":"A late title"}"#),
        update(r#"{"sessionUpdate":"usage_update","used":53000,"size":200000}"#),
    ]
    .concat();
    let mut played = play(&format!("{PROMPT}{}{late}{PROMPT}{}{END}", say("early"), say("second")));
    played.rig.ask("go");
    played.rig.wait("the usage", |state| state.sessions[&state.active].usage.is_some());
    assert_eq!(played.rig.session().turn, parlor::core::Turn::Idle);
    assert_eq!(played.rig.session().title.as_deref(), Some("A late title"));
    assert!(played.rig.text().contains("late words"), "{}", played.rig.text());
    played.rig.ask("again");
    assert!(played.rig.text().contains("agent: second"), "{}", played.rig.text());
}

#[test]
fn error_details_are_shown_and_the_session_continues() {
    let script = format!(
        "{PROMPT}< {{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{{\"code\":-32603,\"message\":\"Internal error\",\
         \"data\":{{\"details\":\"the model is overloaded\"}}}}}}\n{PROMPT}{}{END}",
        say("better")
    );
    let mut played = play(&script);
    played.rig.ask("go");
    assert!(played.rig.text().contains("the model is overloaded"), "{}", played.rig.text());
    played.rig.ask("again");
    assert!(played.rig.text().contains("agent: better"), "{}", played.rig.text());
}

#[test]
fn calls_left_open_are_closed_at_the_end_of_the_turn() {
    let script = [
        PROMPT.to_owned(),
        update(r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"in_progress"}"#),
        END.to_owned(),
    ]
    .concat();
    let mut played = play(&script);
    played.rig.ask("go");
    for item in played.rig.session().transcript.items() {
        if let parlor::core::ItemBody::Tool(tool) = &item.body {
            assert!(tool.status.is_final(), "{:?}", tool.status);
            assert_ne!(tool.status, ToolStatus::Failed);
        }
    }
}

#[test]
fn two_open_requests_with_the_same_id_get_one_response_each() {
    let script = [
        PROMPT.to_owned(),
        ask("7", r#"{"toolCallId":"t1","title":"first"}"#),
        ask("7", r#"{"toolCallId":"t2","title":"second"}"#),
        "> \"optionId\":\"a\"\n".to_owned(),
        "> \"optionId\":\"r\"\n".to_owned(),
        say("both"),
        END.replace("$id", "3"),
    ]
    .concat();
    let mut played = play(&script);
    played.rig.prompt("go");
    played.rig.wait("two requests", |state| state.sessions[&state.active].requests.len() == 2);
    played.rig.act(Action::Choose(1));
    played.rig.act(Action::Choose(2));
    played.rig.wait_idle();
    assert!(played.rig.text().contains("agent: both"), "{}", played.rig.text());
}

#[test]
fn a_cancelled_request_is_removed_from_the_screen() {
    let script = [
        PROMPT.to_owned(),
        ask("0", r#"{"toolCallId":"t","title":"x"}"#),
        "< {\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":0}}\n".to_owned(),
        say("never mind"),
        END.replace("$id", "3"),
    ]
    .concat();
    let mut played = play(&script);
    played.rig.ask("go");
    assert!(played.rig.session().requests.is_empty());
    assert!(played.rig.text().contains("never mind"), "{}", played.rig.text());
}

#[test]
fn unknown_requests_are_rejected_and_unknown_updates_shown() {
    let script = [
        PROMPT.to_owned(),
        "< {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"craft/drainMidTurnQueue\",\"params\":{}}\n"
            .to_owned(),
        "> -32601\n".to_owned(),
        update(r#"{"sessionUpdate":"brand_new","value":42}"#),
        END.replace("$id", "3"),
    ]
    .concat();
    let mut played = play(&script);
    played.rig.ask("go");
    assert!(played.rig.text().contains("brand_new"), "{}", played.rig.text());
}

#[test]
fn a_command_list_of_half_a_megabyte_is_decoded() {
    let mut commands = String::new();
    for number in 0..50 {
        let text = "word ".repeat(2300);
        let _ = write!(commands, r#"{{"name":"c{number}","description":"x","_meta":{{"text":"{text}"}}}},"#);
    }
    let body = format!(
        r#"{{"sessionUpdate":"available_commands_update","availableCommands":[{}]}}"#,
        commands.trim_end_matches(',')
    );
    assert!(body.len() > 563_000);
    let mut played = play(&format!("{}{PROMPT}{END}", update(&body)));
    played.rig.ask("go");
    assert_eq!(played.rig.session().commands.len(), 50);
}

#[test]
fn a_cancelled_turn_does_not_fail_with_the_agents_error() {
    let script = [
        PROMPT.to_owned(),
        say("working"),
        ask("0", r#"{"toolCallId":"t","title":"x"}"#),
        "> session/cancel\n".to_owned(),
        "> cancelled\n".to_owned(),
        say("late words"),
        "< {\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32603,\"message\":\"aborted\"}}\n".to_owned(),
    ]
    .concat();
    let mut played = play(&script);
    played.rig.prompt("go");
    played.rig.wait_ask();
    played.rig.act(Action::ClearOrQuit);
    played.rig.wait_idle();
    let text = played.rig.text();
    assert!(text.contains("stopped: Cancelled"), "{text}");
    assert!(text.contains("late words"), "{text}");
    assert!(!text.contains("failed:"), "{text}");
}

#[test]
fn the_session_opens_after_sign_in() {
    let script = r#"> "initialize"
< {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[{"id":"key","name":"API key"}]}}
> "session/new"
< {"jsonrpc":"2.0","id":$id,"error":{"code":-32000,"message":"Authentication required"}}
> "authenticate"
< {"jsonrpc":"2.0","id":$id,"result":{}}
> "session/new"
< {"jsonrpc":"2.0","id":$id,"result":{"sessionId":"s"}}
"#;
    let mut played = play_all(script);
    played.rig.wait("the wish for a sign-in", |state| {
        state.sessions[&state.active].phase == SessionPhase::NeedsSignIn
    });
    assert_eq!(played.rig.layers.len(), 1);
    played.rig.act(Action::Accept);
    played.rig.wait_ready();
}

#[test]
fn a_crash_preserves_the_text_shows_the_cause_and_restarts_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    fs::write(&script, format!("{INITIALIZE}{NEW}{PROMPT}{}! 3\n", say("half a"))).unwrap();
    let mut rig = Rig::start(folder.path(), agent(scripted_agent(), &[script.to_str().unwrap()]));
    rig.wait_ready();
    rig.prompt("go");
    rig.wait_text("died:");
    let text = rig.text();
    assert!(text.contains("agent: half a"), "{text}");
    assert!(text.contains('3'), "{text}");
    rig.wait_ready();
    assert!(rig.text().contains("notice:"), "a notice about the lost history:\n{}", rig.text());
}

#[test]
fn a_file_outside_of_the_folder_is_asked_for() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().canonicalize().unwrap().join("secret.txt");
    fs::write(&secret, "hidden words").unwrap();
    let read = format!(
        "< {{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"fs/read_text_file\",\"params\":{{\"sessionId\":\"s\",\"path\":\"{}\"}}}}\n",
        secret.display()
    );
    let script =
        [PROMPT.to_owned(), read, "> \"error\"\n".to_owned(), say("refused"), END.replace("$id", "3")]
            .concat();
    let mut played = play(&script);
    played.rig.prompt("go");
    played.rig.wait_ask();
    assert!(matches!(played.rig.session().requests[0].kind, OpenRequestKind::Access(_)));
    played.rig.act(Action::Escape);
    played.rig.wait_idle();
    assert!(played.rig.text().contains("agent: refused"), "{}", played.rig.text());
}
