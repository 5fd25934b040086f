//! How a server wants to be spoken to is found out.

use super::server::Server;
use super::{INITIALIZED, Peer, request};
use crate::acp::transport::LinkEnd;
use crate::model::Carrier;

#[tokio::test]
async fn a_server_with_client_ids_is_known_by_its_event_stream() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "", None);
    server.expect("POST", "/acp").await.answer(404, &[], "").await;
    server.expect("POST", "/").await.answer(404, &[], "").await;
    // Once to see that it is there, once to stay.
    drop(server.next().await.events().await);
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
async fn a_server_that_only_takes_the_message_answers_on_a_stream() {
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
async fn a_server_with_web_sockets_only_is_found_last() {
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

#[tokio::test]
async fn the_first_refusal_is_told_if_nothing_fits() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/wrong", None);
    server.expect("POST", "/wrong").await.answer(404, &[], "{\"error\":\"no such page\"}").await;
    for _ in 0..3 {
        server.expect_get().await.answer(404, &[], "").await;
    }
    let LinkEnd::Refused(error) = peer.end().await else { panic!() };
    assert!(error.contains("There is no agent at") && error.contains("no such page"), "{error}");
}

#[tokio::test]
async fn what_is_no_agent_is_told() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/", None);
    server.expect("POST", "/acp").await.answer(200, &[("content-type", "text/html")], "<html>").await;
    let LinkEnd::Refused(error) = peer.end().await else { panic!() };
    assert!(error.contains("is no agent: it sent no JSON"), "{error}");
}

#[tokio::test]
async fn the_configuration_can_insist() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/acp", Some(Carrier::StreamableHttp));
    server.expect("POST", "/acp").await.json(INITIALIZED).await;
    assert_eq!(peer.hear().await, INITIALIZED);
    let LinkEnd::Refused(error) = peer.end().await else { panic!() };
    assert!(error.contains("gives no connection id"), "{error}");
}
