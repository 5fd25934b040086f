//! Calls and requests: each has exactly one response.

use std::time::Duration;

use serde_json::json;

use super::{options, permission, read_file, ready, session, start_as, start_with};
use crate::acp::peer::Limits;
use crate::acp::tap::{Direction, Tap};
use crate::model::{
    AgentCommand, AgentEvent, AnomalyKind, Call, CallError, CallTag, Purpose, Reply, Response, RpcError,
    SessionKey,
};

#[tokio::test]
async fn commands_wait_for_the_handshake_and_responses_do_not() {
    let (mut app, mut agent) = start_with(Limits::default(), 64 << 10);
    app.new_session(10);
    app.send(AgentCommand::Cancel(session()));
    assert_eq!(agent.hear().await["method"], "initialize");
    agent.say(read_file(&json!(1))).await;
    assert!(matches!(app.next().await, AgentEvent::Started { pid: None }));
    let (id, _) = app.ask().await;
    app.send(AgentCommand::Respond(id, Response::FileContent("text".into())));
    let answer = agent.hear().await;
    assert_eq!((&answer["id"], &answer["result"]["content"]), (&json!(1), &json!("text")));
    agent.say(json!({"id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {}}})).await;
    assert!(matches!(app.next().await, AgentEvent::Ready(_)));
    let new = agent.hear().await;
    assert_eq!(
        (&new["id"], &new["method"], &new["jsonrpc"]),
        (&json!(2), &json!("session/new"), &json!("2.0"))
    );
    let cancel = agent.hear().await;
    assert_eq!((&cancel["method"], cancel.get("id")), (&json!("session/cancel"), None));
    agent.say(json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s1"}})).await;
    let (number, reply) = app.reply().await;
    let Ok(Reply::Session(reply)) = reply else { panic!("{reply:?}") };
    assert_eq!((number, reply.id), (10, Some(session())));
}

#[tokio::test]
async fn each_request_gets_one_response_with_its_id_unchanged() {
    let (mut app, mut agent) = ready().await;
    let mut requests = Vec::new();
    // Two open requests with the same id, and ids that are equal to those of parlor.
    for (id, tool) in [("0", "a"), ("1", "b"), ("1", "c"), ("1.50e0", "d"), ("\"a\\u0041/:\"", "e")] {
        let mut message = permission(&json!("ID"));
        message["params"]["toolCall"]["toolCallId"] = json!(tool);
        let message = message.to_string().replace("\"ID\"", id);
        agent.write(&format!("{message}\n")).await;
        requests.push((app.ask().await.0, id));
    }
    for (id, wire_id) in &requests {
        for _ in 0..2 {
            app.send(AgentCommand::Respond(*id, Response::Selected("yes".into())));
        }
        let line = agent.hear_line().await.unwrap();
        assert!(line.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{wire_id},\"result\":")), "{line}");
    }
    app.send(AgentCommand::Cancel(session()));
    assert_eq!(agent.hear().await["method"], "session/cancel", "the second responses were dropped");
}

#[tokio::test]
async fn unknown_and_invalid_requests_get_error_responses() {
    let (mut app, mut agent) = ready().await;
    agent.say(json!({"jsonrpc": "2.0", "id": "q", "method": "craft/drain", "params": {}})).await;
    let answer = agent.hear().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("q"), &json!(-32601)));
    assert_eq!(app.anomaly().await, AnomalyKind::UnknownMethod);
    agent.say(json!({"jsonrpc": "2.0", "id": 8, "method": "fs/read_text_file", "params": {}})).await;
    let answer = agent.hear().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(8), &json!(-32602)));
    assert!(matches!(app.next().await, AgentEvent::Anomaly(_)));
}

#[tokio::test]
async fn cancelled_requests_are_reported_and_still_get_a_response() {
    let (mut app, mut agent) = ready().await;
    let mut ids = Vec::new();
    for id in [5, 6] {
        agent.say(permission(&json!(id))).await;
        ids.push(app.ask().await.0);
    }
    agent.say(json!({"method": "$/cancel_request", "params": {"requestId": 5}})).await;
    assert_eq!(app.next().await, AgentEvent::RequestWithdrawn(ids[0]));
    agent.say(json!({"method": "$/cancelRequest", "params": {"id": 6}})).await;
    assert_eq!(app.next().await, AgentEvent::RequestWithdrawn(ids[1]));
    app.send(AgentCommand::Respond(ids[0], Response::PermissionCancelled));
    assert_eq!(agent.hear().await["result"]["outcome"]["outcome"], "cancelled");
}

#[tokio::test]
async fn calls_can_be_cancelled_before_and_after_they_are_sent() {
    let (mut app, mut agent) = start_with(Limits::default(), 64 << 10);
    app.prompt(7);
    let tag = CallTag { number: 7, purpose: Purpose::Prompt(SessionKey(1)) };
    app.send(AgentCommand::CancelCall(tag.clone()));
    assert!(matches!(app.next().await, AgentEvent::Started { .. }));
    let (number, reply) = app.reply().await;
    assert!(matches!(reply, Err(CallError::Agent(RpcError { code: RpcError::CANCELLED, .. }))));
    assert_eq!(number, 7);
    agent.answer_initialize().await;
    assert!(matches!(app.next().await, AgentEvent::Ready(_)));
    app.prompt(7);
    app.send(AgentCommand::CancelCall(tag));
    assert_eq!(agent.hear().await["method"], "session/prompt");
    let cancel = agent.hear().await;
    assert_eq!((&cancel["method"], &cancel["params"]["requestId"]), (&json!("$/cancel_request"), &json!(2)));
}

#[tokio::test]
async fn overdue_calls_time_out_and_late_responses_are_ignored() {
    let short = Limits { other: Duration::from_millis(60), ..Limits::default() };
    let (mut app, mut agent) = start_with(short, 64 << 10);
    agent.answer_initialize().await;
    app.ready().await;
    app.prompt(1);
    app.set_mode(2);
    assert_eq!(app.reply().await, (2, Err(CallError::TimedOut(0))));
    agent.say(json!({"id": 3, "result": {}})).await;
    assert_eq!(app.anomaly().await, AnomalyKind::StrayResponse);
    agent.say(json!({"id": 2, "result": {"stopReason": "end_turn"}})).await;
    assert_eq!(app.reply().await.0, 1);
}

#[tokio::test]
async fn the_output_of_an_agent_is_reported_while_it_signs_in() {
    let tap = Tap::default();
    let (mut app, mut agent) = start_as(options(tap.clone()), Limits::default(), 64 << 10);
    agent.answer_initialize().await;
    app.ready().await;
    tap.record(Direction::Stderr, b"before");
    let call = Call::Authenticate { method_id: "web".to_owned(), api_key: None };
    app.call(1, Purpose::Authenticate, call);
    let id = agent.hear().await["id"].clone();
    tap.record(Direction::Stderr, b"Open https://example.org/?token=abc");
    let expected = AgentEvent::SignInOutput(vec!["Open https://example.org/?token=abc".to_owned()]);
    assert_eq!(app.next().await, expected, "unchanged, because a redacted address would not work");
    tap.record(Direction::Stderr, b"spawn xdg-open ENOENT");
    agent.say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "no"}})).await;
    assert_eq!(app.next().await, AgentEvent::SignInOutput(vec!["spawn xdg-open ENOENT".to_owned()]));
    assert!(app.reply().await.1.is_err());
    tap.record(Direction::Stderr, b"after");
    app.new_session(2);
    let id = agent.hear().await["id"].clone();
    agent.say(json!({"jsonrpc": "2.0", "id": id, "result": {"sessionId": "s1"}})).await;
    assert!(matches!(app.next().await, AgentEvent::Replied(..)));
}
