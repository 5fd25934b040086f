//! Responses in the POST.

use super::server::Server;
use super::{INITIALIZED, Peer, answer, request, update};
use crate::model::CloseReason;

const SMALL: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"1","agentInfo":{"name":"zeptoclaw","version":"0"}}}"#;

async fn connected(server: &mut Server, initialized: &str) -> Peer {
    let mut peer = Peer::to(server, "", None);
    server.expect("POST", "/acp").await.json(initialized).await;
    if initialized != SMALL {
        server.expect("GET", "/acp").await.answer(405, &[], "").await;
    }
    assert_eq!(peer.hear().await, initialized);
    peer
}

#[tokio::test]
async fn responses_are_json_or_event_streams() {
    let mut server = Server::start().await;
    let mut peer = connected(&mut server, INITIALIZED).await;
    assert!(peer.log().contains("POST (response in the body)"), "{}", peer.log());
    peer.say(&request(2, "session/new", "{}"));
    server.expect("POST", "/acp").await.json(&answer(2, r#"{"sessionId":"s"}"#)).await;
    assert_eq!(peer.hear().await, answer(2, r#"{"sessionId":"s"}"#));
    peer.say(&request(3, "session/prompt", r#"{"sessionId":"s","prompt":[]}"#));
    let mut turn = server.expect("POST", "/acp").await.events().await;
    turn.say(&update("s", 1)).await;
    assert_eq!(peer.hear().await, update("s", 1));
    // A cancellation is a separate POST during the turn.
    peer.say(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#);
    let post = server.expect("POST", "/acp").await;
    assert!(post.says("session/cancel"));
    post.answer(204, &[], "").await;
    turn.say(&answer(3, r#"{"stopReason":"cancelled"}"#)).await;
    turn.end().await;
    assert_eq!(peer.hear().await, answer(3, r#"{"stopReason":"cancelled"}"#));
    peer.stop(false);
    assert_eq!(peer.end().await, CloseReason::Stopped);
}

#[tokio::test]
async fn an_incomplete_response_is_an_error() {
    let mut server = Server::start().await;
    let mut peer = connected(&mut server, INITIALIZED).await;
    peer.say(&request(2, "session/prompt", r#"{"sessionId":"s","prompt":[]}"#));
    let mut turn = server.expect("POST", "/acp").await.events().await;
    turn.say(&update("s", 1)).await;
    peer.hear().await;
    turn.raw("data: {\"half").await;
    drop(turn);
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":2") && heard.contains("before it was complete"), "{heard}");
    for (id, status, body) in [(3, 200, ""), (4, 200, "hello"), (5, 500, "oops"), (6, 404, "")] {
        peer.say(&request(id, "session/list", "{}"));
        server.expect("POST", "/acp").await.answer(status, &[], body).await;
        if status == 200 && body.is_empty() {
            // The response may be sent on a stream.
            server.expect("GET", "/acp").await.answer(405, &[], "").await;
        }
        let heard = loop {
            if let crate::acp::transport::In::Pieces(pieces) = peer.next().await
                && let Some(crate::acp::frame::InboundFrame::Frame(frame)) = pieces.first()
            {
                break frame.text().to_owned();
            }
        };
        assert!(heard.contains(&format!("\"id\":{id},\"error\"")), "{heard}");
    }
    // The socket is closed without a response.
    peer.say(&request(7, "session/list", "{}"));
    drop(server.expect("POST", "/acp").await);
    assert!(peer.hear().await.contains("\"id\":7,\"error\""));
}

#[tokio::test]
async fn an_error_without_an_id_belongs_to_its_post() {
    let mut server = Server::start().await;
    let mut peer = connected(&mut server, INITIALIZED).await;
    peer.say(&request(2, "session/list", "{}"));
    let error = r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"},"id":null}"#;
    server.expect("POST", "/acp").await.json(error).await;
    assert!(peer.hear().await.contains("\"id\":2"));
}

#[tokio::test]
async fn the_response_to_initialize_may_be_an_event_stream() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/agent", None);
    let mut events = server.expect("POST", "/agent").await.events().await;
    events.say(INITIALIZED).await;
    events.end().await;
    assert_eq!(peer.hear().await, INITIALIZED);
    peer.say(&request(2, "session/new", "{}"));
    server.expect("POST", "/agent").await.json(&answer(2, "{}")).await;
    assert_eq!(peer.hear().await, answer(2, "{}"));
}

#[tokio::test]
async fn messages_over_the_server_limit_are_not_sent() {
    let mut server = Server::start().await;
    let mut peer = connected(&mut server, SMALL).await;
    let prompt = |bytes: usize| {
        let text = "x".repeat(bytes);
        format!(r#"{{"sessionId":"s","prompt":[{{"type":"text","text":"{text}"}}]}}"#)
    };
    peer.say(&request(2, "session/prompt", &prompt(118_784)));
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":2") && heard.contains("is 112 KiB"), "{heard}");
    peer.say(&request(3, "session/new", &format!(r#"{{"cwd":"{}"}}"#, "x".repeat(118_784))));
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":3") && heard.contains("is 112 KiB"), "{heard}");
    peer.say(&request(4, "session/prompt", &prompt(102_400)));
    let post = server.expect("POST", "/acp").await;
    assert!(post.body.len() < 118_784 && post.says("\"id\":4"));
}

#[tokio::test]
async fn another_form_of_initialize_is_tried() {
    let mut server = Server::start().await;
    let mut peer = Peer::to(&server, "/acp", None);
    let refused = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"version"}}"#;
    server.expect("POST", "/acp").await.json(refused).await;
    assert_eq!(peer.hear().await, refused);
    peer.say(&request(2, "initialize", r#"{"protocolVersion":"0.1"}"#));
    server.expect("POST", "/acp").await.json(&answer(2, "{}")).await;
    server.expect("GET", "/acp").await.answer(404, &[], "").await;
    assert_eq!(peer.hear().await, answer(2, "{}"));
    peer.say(&request(3, "session/new", "{}"));
    server.expect("POST", "/acp").await.json(&answer(3, "{}")).await;
    assert_eq!(peer.hear().await, answer(3, "{}"));
}
