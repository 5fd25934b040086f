//! Messages that fail on their way, and streams that are lost.

use std::time::Duration;

use super::http::{in_session, in_session_with};
use super::server::{Events, Server};
use super::{Peer, Timeouts, answer, request, timeouts, update};
use crate::acp::transport::In;

const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}"#;

/// Sends a prompt that the server accepts.
async fn prompt(server: &mut Server, peer: &Peer, id: u64) {
    peer.say(&request(id, "session/prompt", r#"{"sessionId":"s1","prompt":[]}"#));
    let post = server.expect("POST", "/acp").await;
    assert!(post.says("session/prompt"), "{}", post.body);
    post.answer(202, &[], "").await;
}

/// A connection with a session, whose turn has asked request 77.
async fn asked(server: &mut Server) -> (Peer, Events, Events) {
    let (mut peer, connection, mut session) = in_session(server).await;
    prompt(server, &peer, 3).await;
    let asking = request(77, "session/request_permission", r#"{"sessionId":"s1","options":[]}"#);
    session.say(&asking).await;
    assert_eq!(peer.hear().await, asking);
    (peer, connection, session)
}

#[tokio::test]
async fn responses_are_sent_again_until_they_are_accepted() {
    let mut server = Server::start().await;
    let (mut peer, _connection, _session) = asked(&mut server).await;
    peer.respond("s1", &answer(77, "{}"));
    for status in [502, 503, 429, 401] {
        let post = server.expect("POST", "/acp").await;
        assert!(post.says("\"id\":77") && post.header("acp-session-id") == Some("s1"), "{}", post.body);
        post.answer(status, &[("retry-after", "0")], "").await;
    }
    drop(server.expect("POST", "/acp").await);
    server.expect("POST", "/acp").await.answer(202, &[], "").await;
    assert!(peer.interrupted().await, "the user sees that parlor retries");
    assert!(!peer.interrupted().await);
}

#[tokio::test]
async fn a_rejected_response_is_reported_in_its_session() {
    let mut server = Server::start().await;
    let (mut peer, _connection, _session) = asked(&mut server).await;
    peer.respond("s1", &answer(77, "{}"));
    server.expect("POST", "/acp").await.answer(400, &[], "").await;
    match peer.next().await {
        In::Undelivered { session, text } => {
            assert_eq!(session.as_deref(), Some("s1"));
            assert!(text.contains("A response was not delivered"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_failed_cancel_is_sent_again_before_the_next_prompt() {
    let mut server = Server::start().await;
    let (peer, _connection, _session) = asked(&mut server).await;
    peer.say(CANCEL);
    let cancel = server.expect("POST", "/acp").await;
    peer.say(&request(4, "session/prompt", r#"{"sessionId":"s1","prompt":[]}"#));
    cancel.answer(503, &[], "").await;
    let cancel = server.expect("POST", "/acp").await;
    assert!(cancel.says("session/cancel"), "{}", cancel.body);
    cancel.answer(202, &[], "").await;
    assert!(server.expect("POST", "/acp").await.says("\"id\":4"));
}

#[tokio::test]
async fn the_cancel_of_a_turn_without_an_open_prompt_is_sent_again() {
    let mut server = Server::start().await;
    let (mut peer, _connection, mut session) = asked(&mut server).await;
    // In version 2, the response says that the prompt was accepted.
    session.say(&answer(3, "{}")).await;
    peer.hear().await;
    peer.say(CANCEL);
    server.expect("POST", "/acp").await.answer(503, &[], "").await;
    let cancel = server.expect("POST", "/acp").await;
    assert!(cancel.says("session/cancel"), "{}", cancel.body);
}

#[tokio::test]
async fn a_cancel_is_not_sent_again_after_its_turn() {
    let mut server = Server::start().await;
    let (mut peer, _connection, mut session) = asked(&mut server).await;
    peer.say(CANCEL);
    let cancel = server.expect("POST", "/acp").await;
    session.say(&answer(3, r#"{"stopReason":"end_turn"}"#)).await;
    peer.hear().await;
    cancel.answer(503, &[], "").await;
    prompt(&mut server, &peer, 4).await;
}

#[tokio::test]
async fn a_prompt_that_may_have_arrived_is_not_sent_again() {
    let mut server = Server::start().await;
    let (mut peer, _connection, mut session) = in_session(&mut server).await;
    peer.say(&request(3, "session/prompt", r#"{"sessionId":"s1","prompt":[]}"#));
    server.expect("POST", "/acp").await.answer(502, &[], "").await;
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":3") && heard.contains("undelivered"), "{heard}");
    session.say(&update("s1", 1)).await;
    assert_eq!(peer.hear().await, update("s1", 1));
    prompt(&mut server, &peer, 4).await;
}

#[tokio::test]
async fn a_session_stream_is_opened_again_after_a_rejection() {
    let mut server = Server::start().await;
    let (mut peer, _connection, session) = in_session(&mut server).await;
    drop(session);
    for status in [401, 404, 302, 400] {
        let get = server.expect("GET", "/acp").await;
        assert_eq!(get.header("acp-session-id"), Some("s1"));
        get.answer(status, &[], "").await;
    }
    assert!(peer.interrupted().await);
    let mut session = server.expect("GET", "/acp").await.events().await;
    assert!(!peer.interrupted().await);
    session.say(&update("s1", 1)).await;
    assert_eq!(peer.hear().await, update("s1", 1));
}

#[tokio::test]
async fn a_lost_session_stream_ends_its_turn_and_is_opened_for_the_next_prompt() {
    let mut server = Server::start().await;
    let impatient = Timeouts { give_up: Duration::from_millis(50), ..timeouts() };
    let (mut peer, _connection, session) = in_session_with(&mut server, impatient).await;
    prompt(&mut server, &peer, 3).await;
    drop(session);
    for (id, mark) in [(3, "undelivered"), (4, "unsent")] {
        if id == 4 {
            // Its response would be lost.
            peer.say(&request(4, "session/prompt", r#"{"sessionId":"s1","prompt":[]}"#));
        }
        let heard = loop {
            tokio::select! {
                heard = peer.hear() => break heard,
                exchange = server.next() => {
                    assert_eq!(exchange.method, "GET", "{}", exchange.body);
                    exchange.answer(404, &[], "").await;
                }
            }
        };
        assert!(heard.contains(&format!("\"id\":{id}")) && heard.contains(mark), "{heard}");
    }
    peer.say(&request(5, "session/prompt", r#"{"sessionId":"s1","prompt":[]}"#));
    let _session = server.expect("GET", "/acp").await.events().await;
    assert!(server.expect("POST", "/acp").await.says("\"id\":5"));
}

#[tokio::test]
async fn the_stream_of_a_closed_session_is_not_opened_again() {
    let mut server = Server::start().await;
    let (mut peer, mut connection, session) = in_session(&mut server).await;
    peer.say(&request(3, "session/close", r#"{"sessionId":"s1"}"#));
    server.expect("POST", "/acp").await.answer(202, &[], "").await;
    connection.say(&answer(3, "{}")).await;
    peer.hear().await;
    drop(session);
    peer.say(&request(4, "session/list", "{}"));
    assert!(server.next().await.says("session/list"));
}

#[tokio::test]
async fn the_next_attempt_can_be_made_at_once() {
    let mut server = Server::start().await;
    let patient = Timeouts { min_pause: Duration::from_secs(3_600), ..timeouts() };
    let (peer, _connection, session) = in_session_with(&mut server, patient).await;
    drop(session);
    let get = loop {
        peer.link.stopper.retry_now();
        tokio::select! {
            biased;
            exchange = server.next() => break exchange,
            () = tokio::task::yield_now() => {}
        }
    };
    assert_eq!(get.header("acp-session-id"), Some("s1"));
}

#[tokio::test]
async fn a_long_replay_is_skipped() {
    let mut server = Server::start().await;
    let (mut peer, _connection, mut session) = in_session(&mut server).await;
    let event = |number: u64| format!("id: {number}\ndata: {}\n\n", update("s1", number));
    let events = |count: u64| (0..count).map(event).collect::<Vec<_>>().concat();
    session.raw(&events(2_000)).await;
    assert_eq!(peer.hear_all(2_000).await.len(), 2_000);
    drop(session);
    let mut session = server.expect("GET", "/acp").await.events().await;
    session.raw(&events(2_001)).await;
    assert_eq!(peer.hear().await, update("s1", 2_000));
}
