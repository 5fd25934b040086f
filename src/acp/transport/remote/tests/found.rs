//! Detection of the transport.

use super::server::Server;
use super::{INITIALIZE, INITIALIZED, Peer, RemoteAgent, answer, at, request, update};
use crate::model::{Carrier, CloseReason, Profile};

#[tokio::test]
async fn a_server_with_client_ids_is_detected_by_its_event_stream() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "", None);
    server.expect("POST", "/acp").await.answer(404, &[], "").await;
    server.expect("POST", "/").await.answer(404, &[], "").await;
    // The stream that was opened as a test is used.
    let get = server.next().await;
    assert!(get.target.starts_with("/acp/sse?client_id="), "{}", get.target);
    let mut events = get.events().await;
    let post = server.next().await;
    assert!(post.target.starts_with("/acp/rpc?client_id=") && post.says("initialize"), "{}", post.target);
    post.answer(202, &[], "").await;
    events.say(INITIALIZED).await;
    assert_eq!(peer.hear().await, INITIALIZED);
}

#[tokio::test]
async fn a_server_that_accepts_without_a_response_gets_a_stream() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/agent", None);
    server.expect("POST", "/agent").await.answer(202, &[], "").await;
    let mut events = server.expect("GET", "/agent").await.events().await;
    events.say(INITIALIZED).await;
    assert_eq!(peer.hear().await, INITIALIZED);
    peer.say(&request(2, "session/new", "{}"));
    server.expect("POST", "/agent").await.answer(204, &[], "").await;
}

#[tokio::test]
async fn a_server_with_web_sockets_only_is_detected_last() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/acp", None);
    server.expect("POST", "/acp").await.answer(405, &[], "").await;
    for _ in 0..2 {
        server.expect_get().await.answer(400, &[], "").await;
    }
    let mut socket = server.next().await.socket().await;
    assert!(socket.hear().await.contains("initialize"));
    socket.say(INITIALIZED).await;
    assert_eq!(peer.hear().await, INITIALIZED);
}

/// The response of `OpenOxide` to `initialize`.
const OWN: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"0.1","serverInfo":{"name":"core"},"capabilities":{"streaming":true}}}"#;

fn known_as_oxide(server: &Server, path: &str) -> Peer {
    Peer::of(RemoteAgent::new(at(server, path), Some(Profile::OpenOxide)))
}

#[tokio::test]
async fn the_stream_of_openoxide_is_opened_before_initialize() {
    let mut server = Server::start().await;
    let mut peer = known_as_oxide(&server, "");
    peer.say(INITIALIZE);
    // For a URL without a path, both default paths are tried.
    server.expect("GET", "/acp").await.answer(404, &[], "").await;
    let mut events = server.expect("GET", "/").await.events().await;
    let post = server.expect("POST", "/").await;
    post.json(OWN).await;
    assert_eq!(peer.hear().await, OWN);
    peer.say(&request(2, "prompt/send", r#"{"session_id":"s"}"#));
    let turn = server.expect("POST", "/").await;
    events.raw("event: text_delta\ndata: {\"text\":\"hi\"}\n\n").await;
    assert!(peer.hear().await.contains("text_delta"));
    // The cancellation is sent while the POST of the turn is open.
    peer.say(r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":2}}"#);
    let cancel = server.expect("POST", "/").await;
    assert!(cancel.says("$/cancelRequest"));
    cancel.answer(202, &[], "").await;
    turn.json(&answer(2, "{}")).await;
    assert_eq!(peer.hear().await, answer(2, "{}"));
}

#[tokio::test]
async fn openoxide_without_a_stream_is_detected_by_its_response() {
    let mut server = Server::start().await;
    let mut peer = known_as_oxide(&server, "/agent");
    peer.say(INITIALIZE);
    server.expect("GET", "/agent").await.answer(405, &[], "").await;
    server.expect("POST", "/agent").await.json(INITIALIZED).await;
    server.expect("GET", "/agent").await.answer(405, &[], "").await;
    assert_eq!(peer.hear().await, INITIALIZED);
}

#[tokio::test]
async fn the_stream_is_opened_after_a_response_of_openoxide() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/agent", None);
    server.expect("POST", "/agent").await.json(OWN).await;
    let mut events = server.expect("GET", "/agent").await.events().await;
    assert_eq!(peer.hear().await, OWN);
    peer.say(&request(2, "session/create", "{}"));
    server.expect("POST", "/agent").await.answer(202, &[], "").await;
    events.say(&answer(2, r#"{"session_id":"s"}"#)).await;
    assert_eq!(peer.hear().await, answer(2, r#"{"session_id":"s"}"#));
}

#[tokio::test]
async fn responses_in_posts_and_updates_on_a_stream_are_both_received() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/agent", None);
    server.expect("POST", "/agent").await.json(INITIALIZED).await;
    let mut events = server.expect("GET", "/agent").await.events().await;
    assert_eq!(peer.hear().await, INITIALIZED);
    peer.say(&request(2, "session/prompt", r#"{"sessionId":"s","prompt":[]}"#));
    let turn = server.expect("POST", "/agent").await;
    events.say(&update("s", 1)).await;
    assert_eq!(peer.hear().await, update("s", 1));
    turn.json(&answer(2, "{}")).await;
    assert_eq!(peer.hear().await, answer(2, "{}"));
}

#[tokio::test]
async fn a_stream_is_opened_when_a_post_has_no_response() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/agent", None);
    server.expect("POST", "/agent").await.json(INITIALIZED).await;
    server.expect("GET", "/agent").await.answer(405, &[], "").await;
    assert_eq!(peer.hear().await, INITIALIZED);
    peer.say(&request(2, "session/new", "{}"));
    server.expect("POST", "/agent").await.answer(202, &[], "").await;
    let mut events = server.expect("GET", "/agent").await.events().await;
    events.say(&answer(2, "{}")).await;
    assert_eq!(peer.hear().await, answer(2, "{}"));
    peer.say(&request(3, "session/list", "{}"));
    server.expect("POST", "/agent").await.json(&answer(3, "{}")).await;
    assert_eq!(peer.hear().await, answer(3, "{}"));
}

#[tokio::test]
async fn the_first_error_is_reported_if_no_transport_works() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/wrong", None);
    server.expect("POST", "/wrong").await.answer(404, &[], "{\"error\":\"no such page\"}").await;
    for _ in 0..3 {
        server.expect_get().await.answer(404, &[], "").await;
    }
    let CloseReason::Refused { error } = peer.end().await else { panic!() };
    assert!(error.contains("No agent at") && error.contains("no such page"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_an_agent_is_reported() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/", None);
    server.expect("POST", "/acp").await.answer(200, &[("content-type", "text/html")], "<html>").await;
    let CloseReason::Refused { error } = peer.end().await else { panic!() };
    assert!(error.contains("is not an agent: it sent no JSON"), "{error}");
}

#[tokio::test]
async fn a_configured_transport_is_required() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/acp", Some(Carrier::StreamableHttp));
    server.expect("POST", "/acp").await.json(INITIALIZED).await;
    assert_eq!(peer.hear().await, INITIALIZED);
    let CloseReason::Refused { error } = peer.end().await else { panic!() };
    assert!(error.contains("sent no connection id"), "{error}");
}
