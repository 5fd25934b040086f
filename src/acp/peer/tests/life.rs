//! Start, flood, stop and end of a connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, split};
use tokio::time::timeout;

use super::{
    Agent, App, PATIENCE, chunk, connect_with, options, permission, read_file, ready, session, start_with,
};
use crate::acp::gate::Gate;
use crate::acp::peer::Limits;
use crate::acp::tap::{Direction, Tap};
use crate::acp::transport::memory;
use crate::acp::transport::{Link, Setup, Transport};
use crate::acp::{ConnectOptions, Connection, connect};
use crate::model::{AgentCommand, AgentEvent, AgentSpec, AnomalyKind, CallError, CloseReason, Remote};

#[tokio::test]
async fn a_rejected_handshake_is_retried_in_other_forms_and_then_fails() {
    let (mut app, mut agent) = start_with(Limits::default(), 64 << 10);
    app.new_session(1);
    let mut attempts = 0;
    let error = json!({"code": -32602, "message": "bad params"});
    loop {
        let message = agent.hear().await;
        assert_eq!(message["method"], "initialize");
        attempts += 1;
        assert!(attempts < 10);
        agent.say(json!({"id": message["id"], "error": error})).await;
        if !matches!(timeout(Duration::from_millis(300), app.next()).await, Ok(AgentEvent::Started { .. })) {
            break;
        }
    }
    let mut events = Vec::new();
    app.prompt(2);
    while events.len() < 2 {
        match app.next().await {
            AgentEvent::Replied(tag, reply) => {
                assert!(matches!(reply, Err(CallError::Agent(_))), "{reply:?}");
                events.push(tag.number);
            }
            AgentEvent::InitializeFailed(error) => assert!(matches!(error, CallError::Agent(_))),
            AgentEvent::Anomaly(_) => {}
            other => panic!("{other:?}"),
        }
        // Further forms are rejected too.
        while let Ok(Ok(Some(line))) = timeout(Duration::from_millis(20), agent.lines.next_line()).await {
            let message: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(message["method"], "initialize");
            agent.say(json!({"id": message["id"], "error": error})).await;
        }
    }
    assert_eq!(events, [1, 2]);
}

#[tokio::test]
async fn a_handshake_without_a_response_fails() {
    let short = Limits { initialize: Duration::from_millis(50), ..Limits::default() };
    let (mut app, _agent) = start_with(short, 64 << 10);
    app.new_session(4);
    assert!(matches!(app.next().await, AgentEvent::Started { .. }));
    assert_eq!(app.next().await, AgentEvent::InitializeFailed(CallError::TimedOut(0)));
    assert_eq!(app.reply().await, (4, Err(CallError::TimedOut(0))));
}

#[tokio::test]
async fn every_call_ends_before_the_connection_closes() {
    let (mut app, mut agent) = ready().await;
    app.prompt(1);
    app.set_mode(2);
    agent.hear().await;
    agent.hear().await;
    agent.write("{\"torn").await;
    drop(agent);
    let (events, reason) = app.rest().await;
    assert!(matches!(reason, CloseReason::Lost { .. }));
    let lost: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Replied(tag, Err(CallError::Lost)) => Some(tag.number),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [1, 2]);
    assert!(matches!(&events[0], AgentEvent::Anomaly(anomaly) if anomaly.kind == AnomalyKind::BadFrame));
}

#[tokio::test]
async fn stopping_responds_to_open_requests_first() {
    let (mut app, mut agent) = ready().await;
    agent.say(permission(&json!("p"))).await;
    agent.say(read_file(&json!("f"))).await;
    app.ask().await;
    app.ask().await;
    app.connection.commands.stop(false);
    let first = agent.hear().await;
    assert_eq!((&first["id"], &first["result"]["outcome"]["outcome"]), (&json!("p"), &json!("cancelled")));
    let second = agent.hear().await;
    assert_eq!((&second["id"], &second["error"]["code"]), (&json!("f"), &json!(-32603)));
    assert_eq!(agent.hear_line().await, None);
    let (_, reason) = app.rest().await;
    assert_eq!(reason, CloseReason::Stopped);
}

#[tokio::test]
async fn dropping_the_connection_responds_and_closes_it() {
    for keep_events in [true, false] {
        let (mut app, mut agent) = ready().await;
        agent.say(permission(&json!(1))).await;
        app.ask().await;
        let Connection { events, commands } = app.connection;
        let (mut events, mut commands) = (Some(events), Some(commands));
        if keep_events {
            drop(commands.take());
        } else {
            drop(events.take());
        }
        assert_eq!(agent.hear().await["result"]["outcome"]["outcome"], "cancelled");
        assert_eq!(agent.hear_line().await, None);
        drop((events, commands));
    }
}

/// The app is blocked, the agent floods, and a cancellation is still sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_is_sent_during_a_flood_while_the_app_is_blocked() {
    let (mut app, agent) = ready().await;
    let Agent { mut lines, mut output } = agent;
    let written = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&written);
    let flood = tokio::spawn(async move {
        let line = format!("{}\n", chunk(&"x".repeat(1000)));
        while output.write_all(line.as_bytes()).await.is_ok() {
            counter.fetch_add(line.len(), Ordering::Relaxed);
        }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    // Nothing of the flood is received, so anything that waited for it would wait forever.
    for _ in 0..5 {
        app.send(AgentCommand::Cancel(session()));
        let line = timeout(PATIENCE, lines.next_line()).await.expect("timed out").unwrap().unwrap();
        assert!(line.contains("session/cancel"));
    }
    let before = written.load(Ordering::Relaxed);
    assert!(before < 16 << 20, "{before} bytes in flight");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(written.load(Ordering::Relaxed), before, "the agent has to wait");
    app.chunks(1 << 20).await;
    drop(app);
    drop(lines);
    timeout(PATIENCE, flood).await.expect("the flood ends with the connection").unwrap();
}

#[tokio::test]
async fn messages_of_an_agent_that_never_reads_are_received() {
    let (mut app, mut agent) = start_with(Limits::default(), 4 << 10);
    agent.answer_initialize().await;
    app.ready().await;
    for number in 0..200 {
        app.prompt(number);
    }
    for text in ["a", "b", "c"] {
        agent.say(chunk(text)).await;
        assert_eq!(app.chunks(1).await, text);
    }
    app.connection.commands.stop(true);
    let (events, reason) = app.rest().await;
    assert_eq!((events.len(), reason), (200, CloseReason::Stopped));
}

#[tokio::test]
async fn the_tap_records_both_directions() {
    let (transport, stream) = memory::pair(64 << 10);
    let tap = Tap::default();
    let connection = connect_with(Box::new(transport), options(tap.clone()), Limits::default());
    let (input, output) = split(stream);
    let mut agent = Agent { lines: BufReader::new(input).lines(), output };
    let mut app = App { connection, events: VecDeque::new() };
    agent.write("noise\n").await;
    agent.answer_initialize().await;
    while !matches!(app.next().await, AgentEvent::Ready(_)) {}
    let lines = tap.snapshot(None, usize::MAX);
    let mut directions: Vec<_> =
        lines.iter().map(|line| (line.direction, line.text.contains("initialize"))).collect();
    directions.sort_by_key(|(direction, _)| direction.word());
    assert_eq!(
        directions,
        [(Direction::FromAgent, false), (Direction::FromAgent, false), (Direction::ToAgent, true)]
    );
}

#[tokio::test]
async fn a_panic_of_the_peer_closes_the_connection() {
    struct Faulty;
    impl Transport for Faulty {
        fn start(self: Box<Self>, _: Setup) -> Result<Link, CloseReason> {
            panic!("a fault, on purpose")
        }
    }
    let connection = connect_with(Box::new(Faulty), options(Tap::default()), Limits::default());
    let mut app = App { connection, events: VecDeque::new() };
    assert!(matches!(app.rest().await, (events, CloseReason::Lost { .. }) if events.is_empty()));
}

#[tokio::test]
async fn a_missing_program_closes_the_connection() {
    let spec = AgentSpec { command: "no-such-agent-anywhere".into(), ..AgentSpec::default() };
    let connection = connect(ConnectOptions { spec, ..options(Tap::default()) }, Gate::default());
    let mut app = App { connection, events: VecDeque::new() };
    app.new_session(1);
    let (events, reason) = app.rest().await;
    assert!(matches!(reason, CloseReason::NotStarted { is_missing: true, .. }), "{reason:?}");
    // It is a race whether the call is accepted; if so, it gets a reply.
    assert!(events.iter().all(|event| matches!(event, AgentEvent::Replied(_, Err(CallError::Lost)))));
}

#[tokio::test]
async fn an_agent_elsewhere_is_refused_if_a_sandbox_is_required() {
    let remote = Remote { url: "http://127.0.0.1:9/acp".to_owned(), ..Remote::default() };
    let spec = AgentSpec { remote: Some(remote), bounds: Some(Box::default()), ..AgentSpec::default() };
    let connection = connect(ConnectOptions { spec, ..options(Tap::default()) }, Gate::default());
    let mut app = App { connection, events: VecDeque::new() };
    let (_, reason) = app.rest().await;
    let CloseReason::NotStarted { error, .. } = reason else { panic!("{reason:?}") };
    assert!(error.starts_with("A sandbox is required"), "{error}");
}

#[tokio::test]
async fn a_whole_session_with_a_child_process() {
    let script = r#"
        read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
        read line; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
        read line; echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}}'
        echo 'it breaks' >&2; exit 9
    "#;
    let spec = AgentSpec {
        command: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        ..AgentSpec::default()
    };
    let connection = connect(ConnectOptions { spec, ..options(Tap::default()) }, Gate::default());
    let mut app = App { connection, events: VecDeque::new() };
    assert!(matches!(app.next().await, AgentEvent::Started { pid: Some(_) }));
    assert!(matches!(app.next().await, AgentEvent::Ready(_)));
    app.new_session(1);
    assert_eq!(app.reply().await.0, 1);
    app.prompt(2);
    assert_eq!(app.chunks(5).await, "hello");
    let (events, reason) = app.rest().await;
    assert!(matches!(&events[..], [AgentEvent::Replied(_, Err(CallError::Lost))]), "{events:?}");
    let CloseReason::Exited { status, stderr_tail } = reason else { panic!("{reason:?}") };
    assert_eq!((status.code, stderr_tail), (Some(9), vec!["it breaks".to_owned()]));
}
