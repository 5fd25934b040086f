//! POSTs with one event stream.

use super::server::{Events, Server};
use super::{INITIALIZED, Peer, answer, at, request, update};
use crate::model::{Carrier, CloseReason, Remote};

/// A connection with client ids: its stream, and the query string of both paths.
async fn connected(server: &mut Server) -> (Peer, Events, String) {
    let mut peer = Peer::to(server, "/acp/rpc", None);
    // The stream is opened first.
    let get = server.next().await;
    assert_eq!(get.method, "GET");
    let query = get.target.strip_prefix("/acp/sse?").unwrap().to_owned();
    assert!(query.starts_with("client_id="));
    let mut events = get.events().await;
    let post = server.expect("POST", &format!("/acp/rpc?{query}")).await;
    assert!(post.says("initialize"));
    post.answer(202, &[], "").await;
    events.say(INITIALIZED).await;
    assert_eq!(peer.hear().await, INITIALIZED);
    (peer, events, query)
}

#[tokio::test]
async fn a_turn_with_a_client_id() {
    let mut server = Server::start().await;
    let (mut peer, mut events, query) = connected(&mut server).await;
    peer.say(&request(2, "session/prompt", r#"{"sessionId":"s","prompt":[]}"#));
    server.expect("POST", &format!("/acp/rpc?{query}")).await.answer(202, &[], "").await;
    events.raw(": ping\n\n").await;
    events.say(&update("s", 1)).await;
    assert_eq!(peer.hear().await, update("s", 1));
    peer.say(&answer(9, "{}"));
    server.expect("POST", &format!("/acp/rpc?{query}")).await.answer(204, &[], "").await;
    events.say(&answer(2, "{}")).await;
    assert_eq!(peer.hear().await, answer(2, "{}"));
    peer.stop(false);
    assert_eq!(peer.end().await, CloseReason::Stopped);
    events.gone().await;
}

#[tokio::test]
async fn a_failed_stream_is_reopened_with_the_same_id() {
    let mut server = Server::start().await;
    let (mut peer, events, query) = connected(&mut server).await;
    drop(events);
    let mut events = server.expect("GET", &format!("/acp/sse?{query}")).await.events().await;
    events.say(&update("s", 2)).await;
    assert_eq!(peer.hear().await, update("s", 2));
    drop(events);
    server.expect("GET", &format!("/acp/sse?{query}")).await.answer(404, &[], "").await;
    assert!(matches!(peer.end().await, CloseReason::Lost { .. }));
}

#[tokio::test]
async fn the_connection_ends_when_the_server_was_down() {
    let mut server = Server::start().await;
    let (mut peer, events, query) = connected(&mut server).await;
    drop(events);
    server.expect("GET", &format!("/acp/sse?{query}")).await.answer(503, &[], "").await;
    let CloseReason::Unreachable { error } = peer.end().await else { panic!() };
    assert!(error.contains("(503). Try again"), "{error}");

    let (mut peer, events, _) = connected(&mut server).await;
    let port = server.close().await;
    drop(events);
    let CloseReason::Unreachable { error } = peer.end().await else { panic!() };
    assert!(error.contains(&format!("127.0.0.1:{port} refused the connection")), "{error}");
}

#[tokio::test]
async fn messages_over_the_body_limit_are_not_sent() {
    let mut server = Server::start().await;
    let (mut peer, _events, _) = connected(&mut server).await;
    peer.say(&request(2, "session/prompt", &format!(r#"{{"prompt":"{}"}}"#, "x".repeat(4 << 20))));
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":2") && heard.contains("is 4 MiB"), "{heard}");
}

#[tokio::test]
async fn a_stream_that_cannot_be_opened_is_reported() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/acp/sse", None);
    server.next().await.answer(404, &[], "").await;
    let CloseReason::Refused { error } = peer.end().await else { panic!() };
    assert!(error.contains("No event stream at") && !error.contains("client_id"), "{error}");
}

#[tokio::test]
async fn one_url_with_named_events() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/agent", Some(Carrier::PostSse));
    let mut events = server.expect("GET", "/agent").await.events().await;
    server.expect("POST", "/agent").await.answer(202, &[], "").await;
    events.say(INITIALIZED).await;
    assert_eq!(peer.hear().await, INITIALIZED);
    events.raw("event: text_delta\ndata: {\"text\":\"hi\"}\n\n").await;
    assert_eq!(peer.hear().await, r#"{"jsonrpc":"2.0","method":"text_delta","params":{"text":"hi"}}"#);
}

#[tokio::test]
async fn the_stream_can_have_another_url() {
    let mut server = Server::start().await;
    let remote = Remote {
        carrier: Some(Carrier::PostSse),
        events_url: Some(server.url("/events")),
        ..at(&server, "/prompt")
    };
    let peer = Peer::connect(remote);
    peer.say(super::INITIALIZE);
    let _events = server.expect("GET", "/events").await.events().await;
    server.expect("POST", "/prompt").await.answer(202, &[], "").await;
}
