//! Non-standard and invalid input: it is decoded or reported, and the connection continues.

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::{chunk, read_file, ready, session, start_with};
use crate::acp::peer::Limits;
use crate::model::{
    AgentCommand, AgentEvent, AnomalyKind, CallError, Reply, Response, SessionUpdate, UNREADABLE,
};

#[tokio::test]
async fn non_standard_responses_are_decoded() {
    let (mut app, mut agent) = ready().await;
    for (number, template) in [
        r#"{"id":ID,"result":{"stopReason":"end_turn"}}"#,
        r#"{"jsonrpc":"1.0","id":"ID","result":{"stopReason":"end_turn"},"error":null}"#,
        r#"{"jsonrpc":"2.0","id":ID.0,"result":{"stopReason":"end_turn"}}"#,
    ]
    .iter()
    .enumerate()
    {
        app.prompt(number as u64);
        let id = agent.hear().await["id"].to_string();
        agent.write(&format!("{}\r\n", template.replace("ID", &id))).await;
        let (replied, reply) = app.reply().await;
        assert_eq!(replied, number as u64);
        assert!(matches!(reply, Ok(Reply::TurnEnded { .. })), "{template}: {reply:?}");
    }
    for (number, template) in [
        r#"{"id":ID,"result":null,"error":{"code":-32603,"message":"no"}}"#,
        r#"{"id":ID,"error":"no"}"#,
        r#"{"id":ID,"error":{"code":5}}"#,
        r#"{"error":{"code":-32600,"message":"no"}}"#,
        r#"{"id":null,"error":{"code":-32700,"message":"no"}}"#,
    ]
    .iter()
    .enumerate()
    {
        app.prompt(number as u64);
        let id = agent.hear().await["id"].to_string();
        agent.write(&format!("{}\n", template.replace("ID", &id))).await;
        let (replied, reply) = app.reply().await;
        assert_eq!(replied, number as u64);
        assert!(matches!(reply, Err(CallError::Agent(_))), "{template}: {reply:?}");
    }
    app.set_mode(9);
    let id = agent.hear().await["id"].clone();
    agent.say(json!({ "id": id })).await;
    assert_eq!(app.reply().await, (9, Ok(Reply::Done)));
}

#[tokio::test]
async fn stray_responses_are_reported_and_ignored() {
    let (mut app, mut agent) = ready().await;
    app.set_mode(1);
    let id = agent.hear().await["id"].clone();
    agent.say(json!({"id": id, "result": {}})).await;
    assert_eq!(app.reply().await.0, 1);
    for stray in [
        json!({"id": id, "result": {}}),
        json!({"id": 99, "result": {}}),
        json!({"id": "abc", "error": {}}),
        json!({"error": {"code": -32600, "message": "nothing waits"}}),
    ] {
        agent.say(stray).await;
        assert_eq!(app.anomaly().await, AnomalyKind::StrayResponse);
    }
    app.prompt(2);
    app.set_mode(3);
    agent.hear().await;
    agent.hear().await;
    agent.say(json!({"error": {"code": -32700, "message": "which of the two?"}})).await;
    assert_eq!(app.anomaly().await, AnomalyKind::StrayResponse);
    agent.say(json!({"id": 4, "result": {}})).await;
    assert_eq!(app.reply().await.0, 3);
}

#[tokio::test]
async fn invalid_input_is_reported_and_the_connection_continues() {
    let limits = Limits { max_frame_bytes: 2000, ..Limits::default() };
    let (mut app, mut agent) = start_with(limits, 64 << 10);
    agent.answer_initialize().await;
    app.ready().await;
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(3000));
    for (input, kind) in [
        ("Loading the model\n", AnomalyKind::Noise),
        ("[INFO] ready\n", AnomalyKind::Noise),
        (long.as_str(), AnomalyKind::Oversize),
        ("\n{\"id\":1,\n", AnomalyKind::BadFrame),
        ("{}\n", AnomalyKind::BadFrame),
        ("{\"result\":{}}\n", AnomalyKind::BadFrame),
        ("[1]\n", AnomalyKind::Dialect),
        ("", AnomalyKind::BadFrame),
        // Names with `_` are extensions, so only the second one is reported.
        ("{\"method\":\"_x/y\"}\n{\"method\":\"x/y\"}\n", AnomalyKind::UnknownMethod),
        ("{\"method\":\"$/cancel_request\"}\n", AnomalyKind::BadMessage),
    ] {
        agent.write(input).await;
        if kind == AnomalyKind::Oversize {
            agent.write("\n").await;
        }
        assert_eq!(app.anomaly().await, kind, "{input}");
    }
    agent.output.write_all(b"\xEF\xBB\xBF\r\n\n").await.unwrap();
    let mut bytes = chunk("a?b").to_string().into_bytes();
    let at = bytes.iter().position(|byte| *byte == b'?').unwrap();
    bytes[at] = 0xFF;
    bytes.push(b'\n');
    agent.output.write_all(&bytes).await.unwrap();
    assert_eq!(app.anomaly().await, AnomalyKind::BadUtf8);
    assert_eq!(app.chunks(5).await, "a\u{FFFD}b");
    // None of this was answered.
    app.send(AgentCommand::Cancel(session()));
    assert_eq!(agent.hear().await["method"], "session/cancel");
}

#[tokio::test]
async fn arrays_header_frames_and_joined_messages_are_split() {
    let (mut app, mut agent) = ready().await;
    agent.write(&format!("[{},{}]\n", chunk("a"), chunk("b"))).await;
    assert_eq!(app.anomaly().await, AnomalyKind::Dialect);
    assert_eq!(app.chunks(2).await, "ab");
    let body = chunk("c").to_string();
    agent.write(&format!("Content-Length: {}\r\n\r\n{body}", body.len())).await;
    assert_eq!(app.anomaly().await, AnomalyKind::Dialect);
    assert_eq!(app.chunks(1).await, "c");
    agent.write(&format!("{}{}\n", chunk("d"), chunk("e"))).await;
    assert_eq!(app.anomaly().await, AnomalyKind::Dialect);
    assert_eq!(app.chunks(2).await, "de");
}

#[tokio::test]
async fn a_notification_may_have_a_null_id() {
    let (mut app, mut agent) = ready().await;
    let mut message = chunk("a");
    message["id"] = Value::Null;
    agent.say(message).await;
    assert_eq!(app.chunks(1).await, "a");
    agent.say(read_file(&Value::Null)).await;
    let (id, _) = app.ask().await;
    app.send(AgentCommand::Respond(id, Response::FileContent("x".into())));
    assert_eq!(agent.hear_line().await.unwrap(), r#"{"jsonrpc":"2.0","id":null,"result":{"content":"x"}}"#);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// For any input, the connection ends with `Closed` and each call has one reply.
    #[test]
    fn no_input_breaks_the_peer(bytes in proptest::collection::vec(any::<u8>(), 0..600), parts in proptest::collection::vec(0_usize..12, 0..20)) {
        let lines = [
            r#"{"id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}"#,
            r#"{"id":2,"result":{"sessionId":"x"}}"#,
            r#"{"id":3,"error":"bad"}"#,
            r#"{"id":2}"#,
            r#"{"error":{"code":-32700}}"#,
            r#"{"id":1,"method":"fs/read_text_file","params":{"path":"/a"}}"#,
            r#"{"id":1,"method":"session/request_permission","params":{"sessionId":"s"}}"#,
            r#"{"method":"$/cancel_request","params":{"requestId":1}}"#,
            r#"[{"method":"session/update","params":{"update":null}}]"#,
            "Content-Length: 40\n",
            r#"{"method":"session/update","params":[1]}"#,
            r#"{"id":{},"method":"x"}"#,
        ];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut app, mut agent) = start_with(Limits::default(), 1 << 20);
            app.new_session(1);
            app.prompt(2);
            for part in parts {
                agent.write(lines[part]).await;
                agent.write("\n").await;
            }
            agent.output.write_all(&bytes).await.unwrap();
            agent.output.shutdown().await.unwrap();
            let (events, _) = app.rest().await;
            for number in [1, 2] {
                let count = events.iter().filter(|event| matches!(event, AgentEvent::Replied(tag, _) if tag.number == number)).count();
                assert_eq!(count, 1, "replies to call {number}: {events:?}");
            }
        });
    }
}

#[tokio::test]
async fn a_request_with_half_a_surrogate_pair_is_asked() {
    let (mut app, mut agent) = ready().await;
    let request = r#"{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"sessionId":"s1",
        "toolCall":{"toolCallId":"t1","title":"Edit \ud83d","rawInput":{"size":1e400}},
        "options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}]}}"#;
    agent.write(&format!("{}\n", request.replace('\n', " "))).await;
    let (_, asked) = app.ask().await;
    let crate::model::AgentRequest::Permission(asked) = asked else { panic!("{asked:?}") };
    assert_eq!(asked.tool.title, crate::model::Patch::Set("Edit \u{fffd}".to_owned()));
    let crate::model::Patch::Set(raw) = asked.tool.raw_input else { panic!("an input") };
    assert!(raw.0.contains(r#""1e400""#), "{}", raw.0);
}

#[tokio::test]
async fn a_request_that_cannot_be_read_is_shown() {
    let (mut app, mut agent) = ready().await;
    app.new_session(1);
    agent.hear().await;
    agent.say(json!({"id": 2, "result": {"sessionId": "s1"}})).await;
    app.reply().await.1.unwrap();
    agent.say(chunk("hello")).await;
    assert_eq!(app.chunks(5).await, "hello");
    agent.write("{\"id\":9,\"method\":\"session/request_permission\",\"params\":[3]}\n").await;
    assert_eq!(agent.hear().await["error"]["code"], -32602);
    let raw = loop {
        match app.next().await {
            AgentEvent::Update(_, SessionUpdate::Unknown { name, raw }) if name == UNREADABLE => break raw,
            AgentEvent::Anomaly(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(&*raw.0, "\"[3]\"");
}
