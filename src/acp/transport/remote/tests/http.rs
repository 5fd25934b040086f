//! The streamable HTTP transport.

use std::time::Duration;

use super::server::{Events, Server};
use super::{INITIALIZE, INITIALIZED, Peer, Timeouts, answer, at, request, timeouts, update};
use crate::model::CloseReason;

/// A connection with an open stream.
pub(super) async fn connected(server: &mut Server) -> (Peer, Events) {
    connected_with(server, timeouts()).await
}

pub(super) async fn connected_with(server: &mut Server, timeouts: Timeouts) -> (Peer, Events) {
    let mut peer = Peer::patiently(at(server, "/acp"), timeouts);
    peer.say(INITIALIZE);
    let post = server.expect("POST", "/acp").await;
    assert!(post.says("initialize") && post.header("acp-connection-id").is_none());
    assert_eq!(post.header("content-type"), Some("application/json"));
    let headers =
        [("content-type", "application/json"), ("acp-connection-id", "c1"), ("set-cookie", "node=7; Path=/")];
    post.answer(200, &headers, INITIALIZED).await;
    assert_eq!(peer.hear().await, INITIALIZED);
    let get = server.expect("GET", "/acp").await;
    assert_eq!(get.header("accept"), Some("text/event-stream"));
    assert_eq!((get.header("acp-connection-id"), get.header("acp-session-id")), (Some("c1"), None));
    assert_eq!(get.header("cookie"), Some("node=7"), "cookies are sent back");
    (peer, get.events().await)
}

/// A connection with a session and its stream.
pub(super) async fn in_session(server: &mut Server) -> (Peer, Events, Events) {
    in_session_with(server, timeouts()).await
}

pub(super) async fn in_session_with(server: &mut Server, timeouts: Timeouts) -> (Peer, Events, Events) {
    let (mut peer, mut connection) = connected_with(server, timeouts).await;
    peer.say(&request(2, "session/new", r#"{"cwd":"/","mcpServers":[]}"#));
    let post = server.expect("POST", "/acp").await;
    assert_eq!(post.header("acp-connection-id"), Some("c1"));
    assert_eq!(post.header("acp-protocol-version"), Some("1"));
    post.answer(202, &[], "").await;
    connection.say(&answer(2, r#"{"sessionId":"s1"}"#)).await;
    assert_eq!(peer.hear().await, answer(2, r#"{"sessionId":"s1"}"#));
    // Opened before the first message of the session.
    let get = server.expect("GET", "/acp").await;
    assert_eq!((get.header("acp-connection-id"), get.header("acp-session-id")), (Some("c1"), Some("s1")));
    let session = get.events().await;
    (peer, connection, session)
}

#[tokio::test]
async fn the_version_in_an_event_stream_is_sent_with_later_messages() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/acp", None);
    let post = server.expect("POST", "/acp").await;
    let second = INITIALIZED.replace("\"protocolVersion\":1", "\"protocolVersion\":2");
    assert_ne!(second, INITIALIZED);
    let headers = [("content-type", "text/event-stream"), ("acp-connection-id", "c1")];
    post.answer(200, &headers, &format!("data: {second}\n\n")).await;
    assert_eq!(peer.hear().await, second);
    peer.say(&request(2, "session/new", r#"{"cwd":"/","mcpServers":[]}"#));
    loop {
        let next = server.next().await;
        if next.says("session/new") {
            assert_eq!(next.header("acp-protocol-version"), Some("2"));
            return;
        }
    }
}

#[tokio::test]
async fn a_turn_with_a_request_of_the_agent() {
    let mut server = Server::start().await;
    let (mut peer, mut connection, mut session) = in_session(&mut server).await;
    peer.say(&request(3, "session/prompt", r#"{"sessionId":"s1","prompt":[]}"#));
    let post = server.expect("POST", "/acp").await;
    assert_eq!(post.header("acp-session-id"), Some("s1"));
    post.answer(202, &[], "").await;
    let request = request(77, "session/request_permission", r#"{"sessionId":"s1","options":[]}"#);
    session.say(&update("s1", 1)).await;
    assert_eq!(peer.hear().await, update("s1", 1));
    session.say(&request).await;
    assert_eq!(peer.hear().await, request);
    // The response has the session of the request.
    peer.respond("s1", &answer(77, r#"{"outcome":{"outcome":"cancelled"}}"#));
    let post = server.expect("POST", "/acp").await;
    assert_eq!(post.header("acp-session-id"), Some("s1"));
    post.answer(202, &[], "").await;
    // Messages of the connection have no session.
    peer.say(r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3,"sessionId":"s1"}}"#);
    let post = server.expect("POST", "/acp").await;
    assert_eq!(post.header("acp-session-id"), None);
    post.answer(202, &[], "").await;
    // A response is accepted on any stream.
    connection.say(&answer(3, r#"{"stopReason":"end_turn"}"#)).await;
    assert_eq!(peer.hear().await, answer(3, r#"{"stopReason":"end_turn"}"#));
}

#[tokio::test]
async fn the_stream_is_opened_before_a_session_is_loaded() {
    let mut server = Server::start().await;
    let (mut peer, _connection) = connected(&mut server).await;
    peer.say(&request(2, "session/load", r#"{"sessionId":"old","cwd":"/","mcpServers":[]}"#));
    let get = server.expect("GET", "/acp").await;
    assert_eq!(get.header("acp-session-id"), Some("old"));
    let mut session = get.events().await;
    let post = server.expect("POST", "/acp").await;
    assert_eq!(post.header("acp-session-id"), Some("old"));
    post.answer(202, &[], "").await;
    session.say(&update("old", 1)).await;
    assert_eq!(peer.hear().await, update("old", 1));
    session.say(&answer(2, "{}")).await;
    assert_eq!(peer.hear().await, answer(2, "{}"));
}

#[tokio::test]
async fn a_server_with_a_single_stream_is_supported() {
    let mut server = Server::start().await;
    let (mut peer, mut connection) = connected(&mut server).await;
    peer.say(&request(2, "session/new", "{}"));
    server.expect("POST", "/acp").await.answer(202, &[], "").await;
    connection.say(&answer(2, r#"{"sessionId":"s1"}"#)).await;
    peer.hear().await;
    server.expect("GET", "/acp").await.answer(405, &[], "").await;
    for id in [3, 4] {
        peer.say(&request(id, "session/prompt", r#"{"sessionId":"s1","prompt":[]}"#));
        // The stream of the session is not requested again.
        server.expect("POST", "/acp").await.answer(200, &[], "").await;
        connection.say(&answer(id, "{}")).await;
        assert_eq!(peer.hear().await, answer(id, "{}"));
    }
}

#[tokio::test]
async fn responses_in_the_post_are_accepted() {
    let mut server = Server::start().await;
    let (mut peer, _connection) = connected(&mut server).await;
    peer.say(&request(2, "session/new", "{}"));
    server.expect("POST", "/acp").await.json(&answer(2, r#"{"sessionId":"s1"}"#)).await;
    assert_eq!(peer.hear().await, answer(2, r#"{"sessionId":"s1"}"#));
    assert_eq!(server.next().await.header("acp-session-id"), Some("s1"));
}

#[tokio::test]
async fn a_failed_stream_is_reopened_and_traced() {
    let mut server = Server::start().await;
    let (mut peer, _connection, mut session) = in_session(&mut server).await;
    session.raw("id: 41\nretry: 1\n\ndata: {\"half\":").await;
    drop(session);
    // The server has not detected the end yet, and is then temporarily unavailable.
    for status in [409, 503] {
        let get = server.expect("GET", "/acp").await;
        assert_eq!(get.header("acp-session-id"), Some("s1"));
        assert_eq!(get.header("last-event-id"), Some("41"));
        get.answer(status, &[], "").await;
    }
    let mut session = server.expect("GET", "/acp").await.events().await;
    session.say(&update("s1", 2)).await;
    assert_eq!(peer.hear().await, update("s1", 2));
    assert!(peer.log().contains("session's event stream"), "{}", peer.log());
}

#[tokio::test]
async fn a_truncated_event_is_requested_again() {
    let mut server = Server::start().await;
    let (mut peer, _connection, mut session) = in_session(&mut server).await;
    session.raw(&format!("id: 41\ndata: {}\n\nid: 42\ndata: {{\"half", update("s1", 1))).await;
    assert_eq!(peer.hear().await, update("s1", 1));
    drop(session);
    let get = server.expect("GET", "/acp").await;
    assert_eq!(get.header("last-event-id"), Some("41"));
    let mut session = get.events().await;
    session.raw(&format!("id: 42\ndata: {}\n\n", update("s1", 2))).await;
    assert_eq!(peer.hear().await, update("s1", 2));
}

#[tokio::test]
async fn events_sent_again_after_a_reconnect_are_skipped() {
    let mut server = Server::start().await;
    let (mut peer, _connection, mut session) = in_session(&mut server).await;
    let event = |id: u64, number: u64| format!("id: {id}\ndata: {}\n\n", update("s1", number));
    session.raw(&(event(1, 1) + &event(2, 2))).await;
    assert_eq!((peer.hear_all(2).await), [update("s1", 1), update("s1", 2)]);
    drop(session);
    let mut session = server.expect("GET", "/acp").await.events().await;
    // The same id with other data is another event, and so are the events after it.
    session.raw(&(event(1, 1) + &event(2, 2) + &event(2, 3) + &event(1, 1))).await;
    assert_eq!((peer.hear_all(2).await), [update("s1", 3), update("s1", 1)]);
}

#[tokio::test]
async fn open_posts_do_not_delay_other_messages() {
    let mut server = Server::start().await;
    let (mut peer, _connection, mut session) = in_session(&mut server).await;
    peer.say(&request(3, "session/prompt", r#"{"sessionId":"s1","prompt":[]}"#));
    let turn = server.expect("POST", "/acp").await;
    let request = request(77, "session/request_permission", r#"{"sessionId":"s1","options":[]}"#);
    session.say(&request).await;
    assert_eq!(peer.hear().await, request);
    peer.say(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}"#);
    let cancel = server.expect("POST", "/acp").await;
    assert!(cancel.says("session/cancel"));
    // The open POST of the cancellation does not delay the response after it.
    peer.say(&answer(77, r#"{"outcome":{"outcome":"cancelled"}}"#));
    assert!(server.expect("POST", "/acp").await.says("\"id\":77"));
    turn.json(&answer(3, r#"{"stopReason":"cancelled"}"#)).await;
    assert_eq!(peer.hear().await, answer(3, r#"{"stopReason":"cancelled"}"#));
    drop(cancel);
}

#[tokio::test]
async fn a_second_response_to_a_request_is_skipped() {
    let mut server = Server::start().await;
    let (mut peer, mut connection, _session) = in_session(&mut server).await;
    peer.say(&request(3, "session/prompt", r#"{"sessionId":"s1","prompt":[]}"#));
    let turn = server.expect("POST", "/acp").await;
    connection.say(&answer(3, "{}")).await;
    assert_eq!(peer.hear().await, answer(3, "{}"));
    // Neither a second response nor a failed POST is another outcome.
    turn.json(&answer(3, "{}")).await;
    peer.say(&request(4, "session/prompt", r#"{"sessionId":"s1","prompt":[]}"#));
    let turn = server.expect("POST", "/acp").await;
    connection.say(&answer(4, "{}")).await;
    assert_eq!(peer.hear().await, answer(4, "{}"));
    drop(turn);
    connection.say(&update("s1", 9)).await;
    assert_eq!(peer.hear().await, update("s1", 9));
}

#[tokio::test]
async fn events_may_be_split_anywhere() {
    let mut server = Server::start().await;
    let (mut peer, _connection, mut session) = in_session(&mut server).await;
    let text = format!(": keep-alive\r\n\r\nid: 1\r\ndata: {}\r\n\r\n", update("ü", 1));
    let middle = text.find('ü').unwrap();
    for part in [&text[..5], &text[5..middle - 3], &text[middle - 3..text.len() - 1], &text[text.len() - 1..]]
    {
        session.raw(part).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(peer.hear().await, update("ü", 1));
}

#[tokio::test]
async fn a_silent_stream_is_reopened() {
    let mut server = Server::start().await;
    let impatient = Timeouts { idle: Duration::from_millis(100), ..timeouts() };
    let (mut peer, connection) = connected_with(&mut server, impatient).await;
    // The connection stays open without data.
    let mut second = server.expect("GET", "/acp").await.events().await;
    assert!(peer.note().await.contains("stopped sending on the connection's event stream"));
    second.say(&update("s", 1)).await;
    assert_eq!(peer.hear().await, update("s", 1));
    drop(connection);
}

#[tokio::test]
async fn the_connection_ends_if_the_server_does_not_know_it() {
    let mut server = Server::start().await;
    let (mut peer, _connection) = connected(&mut server).await;
    peer.say(&request(2, "session/new", "{}"));
    server.expect("POST", "/acp").await.answer(404, &[], "").await;
    let CloseReason::Lost { error } = peer.end().await else { panic!() };
    assert!(error.contains("closed this connection"), "{error}");

    // The stream may detect it first.
    let (mut peer, connection) = connected(&mut server).await;
    drop(connection);
    server.expect("GET", "/acp").await.answer(404, &[], "").await;
    assert!(matches!(peer.end().await, CloseReason::Lost { .. }));
}

#[tokio::test]
async fn an_unreachable_server_ends_the_connection() {
    let mut server = Server::start().await;
    let impatient = Timeouts { give_up: Duration::from_millis(100), ..timeouts() };
    let (mut peer, connection) = connected_with(&mut server, impatient).await;
    drop(connection);
    let end = loop {
        tokio::select! {
            end = peer.end() => break end,
            exchange = server.next() => drop(exchange),
        }
    };
    assert!(matches!(end, CloseReason::Lost { .. }), "{end:?}");
}

#[tokio::test]
async fn a_rejected_request_gets_an_error_and_the_connection_continues() {
    let mut server = Server::start().await;
    let (mut peer, _connection, _session) = in_session(&mut server).await;
    peer.say(&request(3, "session/prompt", r#"{"sessionId":"s1","prompt":[]}"#));
    server.expect("POST", "/acp").await.answer(413, &[], "").await;
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":3") && heard.contains("(413)"), "{heard}");
    let big = "x".repeat(17 << 20);
    peer.say(&request(4, "session/prompt", &format!(r#"{{"sessionId":"s1","prompt":["{big}"]}}"#)));
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":4") && heard.contains("is 16 MiB"), "{heard}");
    peer.say(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}"#);
    server.expect("POST", "/acp").await.answer(400, &[], r#"{"error":"bad"}"#).await;
    let note = peer.note().await;
    assert!(note.contains("session/cancel was not delivered") && note.contains("bad"), "{note}");
}

#[tokio::test]
async fn the_end_is_sent_to_the_server() {
    let mut server = Server::start().await;
    let (mut peer, connection, session) = in_session(&mut server).await;
    peer.say(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}"#);
    peer.stop(false);
    // Pending messages are still sent.
    let post = server.expect("POST", "/acp").await;
    assert!(post.says("session/cancel"));
    post.answer(202, &[], "").await;
    let delete = server.expect("DELETE", "/acp").await;
    assert_eq!(delete.header("acp-connection-id"), Some("c1"));
    delete.answer(202, &[], "").await;
    assert_eq!(peer.end().await, CloseReason::Stopped);
    connection.gone().await;
    session.gone().await;
}

#[tokio::test]
async fn an_unresponsive_server_does_not_delay_the_end() {
    let mut server = Server::start().await;
    let hasty =
        Timeouts { drain: Duration::from_millis(20), farewell: Duration::from_millis(20), ..timeouts() };
    let (mut peer, _connection) = connected_with(&mut server, hasty).await;
    peer.say(&request(2, "session/new", "{}"));
    let held = server.expect("POST", "/acp").await;
    peer.stop(false);
    assert_eq!(peer.end().await, CloseReason::Stopped);
    drop(held);

    let mut server = Server::start().await;
    let (mut peer, _connection) = connected(&mut server).await;
    peer.say(&request(2, "session/new", "{}"));
    let held = server.expect("POST", "/acp").await;
    peer.stop(true);
    assert_eq!(peer.end().await, CloseReason::Stopped);
    drop(held);
}

#[tokio::test]
async fn a_prompt_that_was_not_sent_is_dropped_when_its_turn_is_cancelled() {
    let mut server = Server::start().await;
    let (mut peer, _connection, _session) = in_session(&mut server).await;
    server.close().await;
    peer.say(&request(3, "session/prompt", r#"{"sessionId":"s1","prompt":[]}"#));
    peer.say(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}"#);
    peer.answer_to("The prompt was cancelled before it could be sent.").await;
}
