//! Truncated, slow or half-open connections, and invalid frames.

use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::server::{Exchange, Server, read};
use super::{INITIALIZE, INITIALIZED, Peer, Timeouts, answer, at, request, timeouts, update};
use crate::model::{Carrier, CloseReason, Remote};

const LIMIT: usize = 1 << 16;

/// A WebSocket whose frames the test writes as bytes.
async fn raw_socket() -> (Peer, TcpStream) {
    let mut server = Server::start().await;
    let remote = Remote { url: server.socket_url("/acp"), ..Remote::default() };
    let peer = Peer::limited(remote, timeouts(), LIMIT);
    let stream = server.expect_get().await.raw_socket().await;
    (peer, stream)
}

/// An unmasked frame, as servers send it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        len @ 0..=125 => bytes.push(u8::try_from(len).unwrap()),
        len => {
            bytes.push(126);
            bytes.extend_from_slice(&u16::try_from(len).unwrap().to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

async fn trickle(stream: &mut TcpStream, bytes: &[u8]) {
    stream.set_nodelay(true).unwrap();
    for byte in bytes {
        stream.write_all(&[*byte]).await.unwrap();
        stream.flush().await.unwrap();
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn slow_frames_and_fragmented_messages_are_received() {
    let (mut peer, mut stream) = raw_socket().await;
    let long = update(&"ü".repeat(100), 1);
    trickle(&mut stream, &frame(0x81, long.as_bytes())).await;
    assert_eq!(peer.hear().await, long);
    // Split inside a character, with a ping in between.
    let text = update("ü", 2);
    let (head, tail) = text.as_bytes().split_at(text.find('ü').unwrap() + 1);
    for part in [frame(0x01, head), frame(0x89, b"hello"), frame(0x80, tail)] {
        trickle(&mut stream, &part).await;
    }
    assert_eq!(peer.hear().await, text);
}

#[tokio::test]
async fn invalid_frames_close_the_socket_with_a_reason() {
    let whole = frame(0x81, update("s", 1).as_bytes());
    let mut too_long = vec![0x81, 127];
    too_long.extend_from_slice(&(1_u64 << 40).to_be_bytes());
    for (bytes, expected) in [
        // Truncated frames.
        (&whole[..whole.len() / 2], "WebSocket"),
        (&whole[..1], "WebSocket"),
        // A frame with a length of one tebibyte, for which no memory must be reserved.
        (&too_long[..], "over the limit"),
        // An invalid opcode, invalid UTF-8, and a continuation without a start.
        (&[0x83, 0x00][..], "failed"),
        (&[0x81, 0x02, 0xff, 0xfe][..], "failed"),
        (&[0x80, 0x00][..], "failed"),
    ] {
        let (mut peer, mut stream) = raw_socket().await;
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let CloseReason::Lost { error } = peer.end().await else { panic!("{bytes:?}") };
        assert!(error.contains(expected), "{bytes:?}: {error}");
    }
}

#[tokio::test]
async fn fragments_over_the_limit_close_the_socket() {
    let (mut peer, mut stream) = raw_socket().await;
    let part = vec![b'x'; 60_000];
    stream.write_all(&frame(0x01, &part)).await.unwrap();
    stream.write_all(&frame(0x00, &part)).await.unwrap();
    let CloseReason::Lost { error } = peer.end().await else { panic!() };
    assert!(error.contains("over the limit"), "{error}");
}

#[tokio::test]
async fn pongs_are_bounded_for_a_server_that_does_not_read() {
    const FLOOD_MIB: usize = 40;
    let (_peer, mut stream) = raw_socket().await;
    let pings = frame(0x89, &[b'x'; 125]).repeat((1 << 20) / 127);
    for _ in 0..FLOOD_MIB {
        stream.write_all(&pings).await.unwrap();
    }
    stream.write_all(&frame(0x89, b"last")).await.unwrap();
    let mut stream = tokio::io::BufReader::new(stream);
    let (mut answered, mut len) = (0, 0);
    while len != 4 {
        let mut head = [0; 6];
        stream.read_exact(&mut head).await.unwrap();
        len = usize::from(head[1] & 0x7f);
        stream.read_exact(&mut vec![0; len]).await.unwrap();
        answered += head.len() + len;
    }
    // parlor buffers at most 17 MiB, the rest are buffers of the system. A pong is longer than its ping.
    assert!(answered < 36 << 20, "{answered} bytes were buffered");
}

#[tokio::test]
async fn a_server_without_a_response_times_out() {
    let short = Duration::from_millis(30);
    let hasty = Timeouts { begin: short, answer: short, ..timeouts() };
    let mut server = Server::start().await;
    let mut peer = Peer::patiently(at(&server, "/acp"), hasty);
    peer.say(INITIALIZE);
    let held = server.expect("POST", "/acp").await;
    let CloseReason::Unreachable { error } = peer.end().await else { panic!() };
    assert!(error.contains("did not respond within"), "{error}");
    drop(held);

    let remote = Remote { url: server.socket_url("/acp"), ..Remote::default() };
    let mut peer = Peer::patiently(remote, hasty);
    let held = server.expect("GET", "/acp").await;
    let CloseReason::Unreachable { error } = peer.end().await else { panic!() };
    assert!(error.contains("Timed out opening the WebSocket"), "{error}");
    drop(held);

    for carrier in [Carrier::RpcSse, Carrier::PostSse] {
        let remote = Remote { carrier: Some(carrier), ..at(&server, "/acp") };
        let mut peer = Peer::patiently(remote, hasty);
        let held = server.expect_get().await;
        let CloseReason::Unreachable { error } = peer.end().await else { panic!() };
        assert!(error.contains("to open the event stream"), "{error}");
        drop(held);
    }
}

/// A connection with responses in the POST.
async fn in_the_post() -> (Server, Peer) {
    let mut server = Server::start().await;
    let mut peer = Peer::limited(at(&server, "/acp"), timeouts(), LIMIT);
    peer.say(INITIALIZE);
    server.expect("POST", "/acp").await.json(INITIALIZED).await;
    server.expect("GET", "/acp").await.answer(405, &[], "").await;
    assert_eq!(peer.hear().await, INITIALIZED);
    (server, peer)
}

#[tokio::test]
async fn a_response_may_be_slow_and_is_an_error_if_truncated() {
    let (mut server, mut peer) = in_the_post().await;
    peer.say(&request(2, "session/new", "{}"));
    let Exchange { mut stream, .. } = server.expect("POST", "/acp").await;
    let body = answer(2, r#"{"sessionId":"ü"}"#);
    let length = body.len();
    let start = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    trickle(&mut stream, format!("{start}{body}").as_bytes()).await;
    assert_eq!(peer.hear().await, body);

    peer.say(&request(3, "session/list", "{}"));
    let Exchange { mut stream, .. } = server.expect("POST", "/acp").await;
    stream.write_all(format!("{start}{}", &body[..10]).as_bytes()).await.unwrap();
    drop(stream);
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":3") && heard.contains("\"error\""), "{heard}");

    // Truncated before the end of the headers.
    peer.say(&request(4, "session/list", "{}"));
    let Exchange { mut stream, .. } = server.expect("POST", "/acp").await;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-ty").await.unwrap();
    drop(stream);
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":4") && heard.contains("\"error\""), "{heard}");

    // The connection still works.
    peer.say(&request(5, "session/list", "{}"));
    server.expect("POST", "/acp").await.json(&answer(5, "{}")).await;
    assert_eq!(peer.hear().await, answer(5, "{}"));
}

#[tokio::test]
async fn a_response_over_the_limit_is_an_error() {
    let (mut server, mut peer) = in_the_post().await;
    peer.say(&request(2, "session/list", "{}"));
    let long = answer(2, &format!("{{\"x\":\"{}\"}}", "x".repeat(2 * LIMIT)));
    server.expect("POST", "/acp").await.json(&long).await;
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":2") && heard.contains("over the limit"), "{heard}");
    peer.say(&request(3, "session/prompt", r#"{"sessionId":"s","prompt":[]}"#));
    let mut events = server.expect("POST", "/acp").await.events().await;
    events.say(&long).await;
    assert!(peer.oversize().await > LIMIT as u64);
    events.say(&answer(3, "{}")).await;
    events.end().await;
    assert_eq!(peer.hear().await, answer(3, "{}"));
}

#[tokio::test]
async fn a_socket_is_reused_until_the_server_closes_it() {
    let (mut server, mut peer) = in_the_post().await;
    peer.say(&request(2, "session/list", "{}"));
    let mut exchange = server.expect("POST", "/acp").await;
    for id in 2..5 {
        let body = answer(id, "{}");
        assert!(exchange.says(&format!("\"id\":{id}")));
        let length = body.len();
        let text = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        exchange.stream.write_all(text.as_bytes()).await.unwrap();
        assert_eq!(peer.hear().await, body);
        peer.say(&request(id + 1, "session/list", "{}"));
        exchange = read(exchange.stream).await.unwrap();
    }
    // After the server closes the connection, an unanswered request is not sent again.
    drop(exchange);
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":5") && heard.contains("\"error\""), "{heard}");
    peer.say(&request(6, "session/list", "{}"));
    server.expect("POST", "/acp").await.json(&answer(6, "{}")).await;
    assert_eq!(peer.hear().await, answer(6, "{}"));
}

/// The bytes of a WebSocket.
fn wire() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        Just(update("s", 1).into_bytes()),
        "\\PC{0,40}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..200),
    ];
    let opcode = prop_oneof![4 => Just(0x81_u8), 1 => Just(0x82), 1 => Just(0x89), 1 => Just(0x01), 1 => Just(0x80), 1 => any::<u8>()];
    let part = prop_oneof![
        6 => (opcode, payload).prop_map(|(first, payload)| frame(first, &payload)),
        1 => proptest::collection::vec(any::<u8>(), 0..30),
    ];
    proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// All messages before an error are reported, and the end once and last.
    #[test]
    fn invalid_bytes_on_a_web_socket_are_reported(bytes in wire()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut peer, mut stream) = raw_socket().await;
            let first = update("before", 7);
            stream.write_all(&frame(0x81, first.as_bytes())).await.unwrap();
            // The client may close the connection first.
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
            assert_eq!(peer.hear().await, first);
            assert!(matches!(peer.rest().await, CloseReason::Lost { error } if !error.is_empty()));
        });
    }

    /// For any body of a POST, the request gets a response and the connection continues.
    #[test]
    fn invalid_bytes_in_a_post_do_not_end_the_connection(
        body in proptest::collection::vec(any::<u8>(), 1..300),
        kind in prop::sample::select(vec!["application/json", "text/event-stream", "text/html"]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut server, mut peer) = in_the_post().await;
            peer.say(&request(2, "session/list", "{}"));
            let Exchange { mut stream, .. } = server.expect("POST", "/acp").await;
            let start = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(&[start.as_bytes(), &body].concat()).await.unwrap();
            peer.answer_to("\"id\":2").await;
            peer.say(&request(3, "session/list", "{}"));
            server.expect("POST", "/acp").await.json(&answer(3, "{}")).await;
            peer.answer_to("\"id\":3").await;
        });
    }
}
