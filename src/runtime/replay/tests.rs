//! Replays of logs: contents, determinism and hostile input.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const INITIALIZED: &str = r#"{"id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"x","version":"1"}}}"#;
const SESSION: &str = r#"{"id":2,"result":{"sessionId":"s"}}"#;

/// A log with these lines, 100 ms apart.
fn log(lines: &[(&str, &str)]) -> Log {
    log_of(&[lines])
}

/// A log with several connections in sequence.
fn log_of(conns: &[&[(&str, &str)]]) -> Log {
    let lines = (1..).zip(conns).flat_map(|(conn, lines)| lines.iter().map(move |line| (conn, line)));
    let lines = (1..).zip(lines).map(|(n, (conn, (dir, text)))| {
        json!({"n": n, "ms": n * 100, "conn": conn, "dir": dir, "text": text}).to_string() + "\n"
    });
    Log::read(lines.collect::<String>().as_bytes(), None).unwrap()
}

fn opened() -> Vec<(&'static str, &'static str)> {
    vec![
        ("to", r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#),
        ("from", INITIALIZED),
        ("to", r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/work","mcpServers":[]}}"#),
        ("from", SESSION),
    ]
}

fn turn() -> Vec<(&'static str, &'static str)> {
    let mut lines = opened();
    lines.extend([
        ("to", r#"{"id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"fix it"}]}}"#),
        ("from", r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"On it."}}}}"#),
        ("from", r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"Write a","kind":"edit"}}}"#),
        ("from", r#"{"id":"a","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"Write a","kind":"edit"},"options":[{"optionId":"y","name":"Yes, please","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}"#),
        ("to", r#"{"id":"a","result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#),
        ("from", r#"{"id":"b","method":"terminal/create","params":{"sessionId":"s","command":"make","args":["test"]}}"#),
        ("to", r#"{"id":"b","result":{"terminalId":"t1"}}"#),
        ("from", r#"{"id":"c","method":"terminal/output","params":{"sessionId":"s","terminalId":"t1"}}"#),
        ("to", r#"{"id":"c","result":{"output":"all green","truncated":false,"exitStatus":{"exitCode":0}}}"#),
        ("from", r#"{"id":3,"result":{"stopReason":"end_turn"}}"#),
    ]);
    lines
}

/// All frames of a log.
fn all_frames(log: Log) -> (String, Vec<usize>) {
    let mut out = String::new();
    let left_out = frames(log, (80, 24), |frame| {
        out.push_str(frame);
        Ok(())
    });
    (out, left_out.unwrap())
}

fn played(log: Log) -> Replay {
    let mut replay = Replay::new(log, &Keymap::defaults());
    while replay.step().is_some() {}
    replay
}

#[test]
fn prompts_decisions_and_commands_are_replayed() {
    let (text, left_out) = all_frames(log(&turn()));
    assert!(left_out.is_empty(), "{left_out:?}");
    assert!(text.contains("Yes, please"), "the dialog was shown:\n{text}");
    let last = text.rsplit("--- ").next().unwrap();
    for shown in ["fix it", "On it.", "Write a", "make test"] {
        assert!(last.contains(shown), "{shown} is missing:\n{last}");
    }
    let replay = played(log(&turn()));
    let session = replay.state().active_session().unwrap();
    assert!(session.requests.is_empty() && !session.turn.is_running());
    let output: Vec<&[u8]> = session.terminals.values().map(|view| &*view.output).collect();
    assert_eq!(output, [b"all green"]);
}

#[test]
fn lines_of_commands_begin_at_the_left() {
    let mut lines = turn();
    let output =
        r#"{"id":"c","result":{"output":"one\ntwo\nthree","truncated":false,"exitStatus":{"exitCode":0}}}"#;
    for line in &mut lines {
        if line.1.contains("all green") {
            line.1 = output;
        }
    }
    let (text, _) = all_frames(log(&lines));
    let column = |word: &str| text.lines().rev().find_map(|line| line.find(word)).unwrap_or(usize::MAX);
    assert_eq!(column("one"), column("three"), "{text}");
}

#[test]
fn no_hint_names_a_key_of_a_session() {
    let (text, _) = all_frames(log(&turn()));
    assert!(!text.contains("F1") && !text.contains("Esc"), "{text}");
}

#[test]
fn the_same_log_gives_the_same_frames() {
    let (first, second) = (all_frames(log(&turn())), all_frames(log(&turn())));
    assert_eq!(first, second);
    assert!(first.0.starts_with("--- line 1, 0.100 s\n"), "{}", first.0);
}

#[test]
fn ids_of_the_log_are_used_although_the_app_sends_fewer_requests() {
    let mut lines = opened();
    // A request that this version does not send, and its response.
    lines.extend([
        ("to", r#"{"id":3,"method":"providers/list","params":{}}"#),
        ("to", r#"{"id":4,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}"#),
        ("from", r#"{"id":3,"result":{"stopReason":"refusal"}}"#),
    ]);
    let running =
        |lines: &[(&str, &str)]| played(log(lines)).state().active_session().unwrap().turn.is_running();
    assert!(running(&lines), "the response to the other request does not end the turn");
    lines.push(("from", r#"{"id":4,"result":{"stopReason":"end_turn"}}"#));
    assert!(!running(&lines));
}

#[test]
fn a_cancelled_turn_is_shown_as_cancelled() {
    let mut lines = turn();
    lines.truncate(8);
    lines.extend([
        ("to", r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#),
        ("to", r#"{"id":"a","result":{"outcome":{"outcome":"cancelled"}}}"#),
        ("from", r#"{"id":3,"result":{"stopReason":"cancelled"}}"#),
    ]);
    let (text, _) = all_frames(log(&lines));
    assert!(text.contains("cancelled"), "{text}");
    assert!(played(log(&lines)).state().active_session().unwrap().requests.is_empty());
}

#[test]
fn a_crash_is_inferred_without_an_end_line() {
    let first = turn();
    let replay = played(log_of(&[&first[..6], &turn()]));
    let sessions: Vec<_> = replay.state().sessions.values().collect();
    assert_eq!((sessions.len(), replay.state().conns.len()), (1, 1), "the new connection has the session");
    assert!(!sessions[0].turn.is_running());
    let (text, left_out) = all_frames(log_of(&[&first[..6], &turn()]));
    assert!(left_out.is_empty(), "{left_out:?}\n{text}");
    assert!(text.contains("The log does not record how this connection ended."), "{text}");
}

#[test]
fn the_number_of_connections_is_bounded() {
    let line: &[(&str, &str)] = &[("start", r#"{"agent":"a"}"#)];
    let stderr: &[(&str, &str)] = &[("start", r#"{"agent":"b"}"#), ("stderr", "x")];
    let conns: Vec<&[(&str, &str)]> = (0..200).map(|at| if at % 2 == 0 { line } else { stderr }).collect();
    let replay = played(log_of(&conns));
    assert!(replay.state().sessions.len() <= MAX_CONNS, "{}", replay.state().sessions.len());
}

#[test]
fn a_resumed_session_is_opened() {
    let mut lines = opened();
    lines[1].1 = r#"{"id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}"#;
    lines[2].1 =
        r#"{"id":2,"method":"session/load","params":{"sessionId":"old","cwd":"/work","mcpServers":[]}}"#;
    lines[3].1 = r#"{"method":"session/update","params":{"sessionId":"old","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"from before"}}}}"#;
    lines.push(("from", r#"{"id":2,"result":{}}"#));
    let replay = played(log(&lines));
    let session = replay.state().active_session().unwrap();
    assert_eq!(session.id.as_ref().map(SessionId::as_str), Some("old"));
    assert!(all_frames(log(&lines)).0.contains("from before"));
}

#[test]
fn a_replay_starts_no_program_and_prints_no_escape_sequences() {
    let mut lines = opened();
    lines.push(("from", "{\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"a\\u001b]52;c;UFdORUQ=\\u0007b\"}}}}"));
    let (text, _) = all_frames(log(&lines));
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text}");
}

#[test]
fn version_2_is_detected_by_the_handshake_without_a_start_line() {
    let mut lines = opened();
    lines[0].1 = r#"{"id":1,"method":"initialize","params":{"protocolVersion":2}}"#;
    assert_eq!(log(&lines).start_of(1).spec(1).wire.protocol, 2);
    assert_eq!(log(&opened()).start_of(1).spec(1).wire.protocol, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A log with missing, repeated and reordered lines and random bytes is played to its end, twice with the same
    /// frames.
    #[test]
    fn a_mutated_log_is_played_to_its_end(
        positions in prop::collection::vec(0_usize..14, 0..24),
        conns in prop::collection::vec(0_u64..3, 24),
        junk in ".{0,40}",
        ms in any::<f64>(),
    ) {
        let lines = turn();
        let mut text = String::new();
        for ((n, position), conn) in (1..).zip(&positions).zip(&conns) {
            let (dir, line) = lines[*position];
            text += &json!({"n": n, "ms": if n == 3 { ms } else { 7.0 }, "conn": conn, "dir": dir, "text": line}).to_string();
            text += "\n";
        }
        text += &json!({"n": 99, "ms": 1, "conn": 1, "dir": "from", "text": junk}).to_string();
        text += "\n";
        text += &junk;
        let log = Log::read(text.as_bytes(), None).unwrap();
        prop_assert_eq!(all_frames(log.clone()), all_frames(log));
    }
}

#[test]
fn a_replay_is_written_as_plain_text() {
    let mut out = String::new();
    let left_out = plain(log(&turn()), true, |text| {
        out.push_str(text);
        Ok(())
    });
    assert!(left_out.unwrap().is_empty());
    for shown in ["fix it", "On it.", "Yes, please", "make test", "all green"] {
        assert!(out.contains(shown), "{shown} is missing:\n{out}");
    }
    assert!(!out.contains('\u{1b}'), "{out}");
}
