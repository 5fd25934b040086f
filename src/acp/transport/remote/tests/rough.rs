//! Lines that are cut, slow or half open, and frames that are none.

use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::server::{Exchange, Server, read};
use super::{INITIALIZE, INITIALIZED, Peer, Timeouts, answer, at, patience, request, update};
use crate::acp::transport::LinkEnd;
use crate::model::{Carrier, Remote};

const LIMIT: usize = 1 << 16;

/// A web socket whose frames the test makes itself.
async fn raw_socket() -> (Peer, TcpStream) {
    let mut server = Server::start().await;
    let remote = Remote { url: server.socket_url("/acp"), ..Remote::default() };
    let peer = Peer::limited(remote, patience(), LIMIT);
    let stream = server.expect_get().await.raw_socket().await;
    (peer, stream)
}

/// A frame as a server sends it: not masked.
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
async fn a_frame_may_come_byte_by_byte_and_a_message_in_fragments() {
    let (mut peer, mut stream) = raw_socket().await;
    let long = update(&"ü".repeat(100), 1);
    trickle(&mut stream, &frame(0x81, long.as_bytes())).await;
    assert_eq!(peer.hear().await, long);
    // Cut inside of a character, with a ping in between.
    let text = update("ü", 2);
    let (head, tail) = text.as_bytes().split_at(text.find('ü').unwrap() + 1);
    for part in [frame(0x01, head), frame(0x89, b"hello"), frame(0x80, tail)] {
        trickle(&mut stream, &part).await;
    }
    assert_eq!(peer.hear().await, text);
}

#[tokio::test]
async fn what_is_no_frame_ends_the_socket_and_says_why() {
    let whole = frame(0x81, update("s", 1).as_bytes());
    let mut too_long = vec![0x81, 127];
    too_long.extend_from_slice(&(1_u64 << 40).to_be_bytes());
    for (bytes, expected) in [
        // Cut in the middle of a frame.
        (&whole[..whole.len() / 2], "WebSocket"),
        (&whole[..1], "WebSocket"),
        // A frame that says it has a tebibyte: nothing is set aside for it.
        (&too_long[..], "over the limit"),
        // An opcode that is none, text that is no text, a continuation of nothing.
        (&[0x83, 0x00][..], "failed"),
        (&[0x81, 0x02, 0xff, 0xfe][..], "failed"),
        (&[0x80, 0x00][..], "failed"),
    ] {
        let (mut peer, mut stream) = raw_socket().await;
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let LinkEnd::Io(error) = peer.end().await else { panic!("{bytes:?}") };
        assert!(error.contains(expected), "{bytes:?}: {error}");
    }
}

#[tokio::test]
async fn fragments_over_the_limit_end_the_socket() {
    let (mut peer, mut stream) = raw_socket().await;
    let part = vec![b'x'; 60_000];
    stream.write_all(&frame(0x01, &part)).await.unwrap();
    stream.write_all(&frame(0x00, &part)).await.unwrap();
    let LinkEnd::Io(error) = peer.end().await else { panic!() };
    assert!(error.contains("over the limit"), "{error}");
}

#[tokio::test]
async fn answers_to_pings_are_not_held_for_a_server_that_reads_none() {
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
    // What waits in parlor is 17 MiB at the most, the rest are buffers of the system. An answer is longer than its ping.
    assert!(answered < 36 << 20, "{answered} bytes were held");
}

#[tokio::test]
async fn who_never_answers_is_given_up() {
    let short = Duration::from_millis(30);
    let hasty = Timeouts { begin: short, answer: short, ..patience() };
    let mut server = Server::start().await;
    let mut peer = Peer::patiently(at(&server, "/acp"), hasty);
    peer.say(INITIALIZE);
    let held = server.expect("POST", "/acp").await;
    let LinkEnd::Unreachable(error) = peer.end().await else { panic!() };
    assert!(error.contains("did not respond within"), "{error}");
    drop(held);

    let remote = Remote { url: server.socket_url("/acp"), ..Remote::default() };
    let mut peer = Peer::patiently(remote, hasty);
    let held = server.expect("GET", "/acp").await;
    let LinkEnd::Unreachable(error) = peer.end().await else { panic!() };
    assert!(error.contains("Timed out opening the WebSocket"), "{error}");
    drop(held);

    for carrier in [Carrier::RpcSse, Carrier::PostSse] {
        let remote = Remote { carrier: Some(carrier), ..at(&server, "/acp") };
        let mut peer = Peer::patiently(remote, hasty);
        let held = server.expect_get().await;
        let LinkEnd::Unreachable(error) = peer.end().await else { panic!() };
        assert!(error.contains("to open the event stream"), "{error}");
        drop(held);
    }
}

/// A connection whose answers come in the POST.
async fn in_the_post() -> (Server, Peer) {
    let mut server = Server::start().await;
    let mut peer = Peer::limited(at(&server, "/acp"), patience(), LIMIT);
    peer.say(INITIALIZE);
    server.expect("POST", "/acp").await.json(INITIALIZED).await;
    server.expect("GET", "/acp").await.answer(405, &[], "").await;
    assert_eq!(peer.hear().await, INITIALIZED);
    (server, peer)
}

#[tokio::test]
async fn an_answer_in_the_post_may_be_slow_and_is_told_when_it_is_cut() {
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

    // Cut before its head is complete.
    peer.say(&request(4, "session/list", "{}"));
    let Exchange { mut stream, .. } = server.expect("POST", "/acp").await;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-ty").await.unwrap();
    drop(stream);
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":4") && heard.contains("\"error\""), "{heard}");

    // The line still works.
    peer.say(&request(5, "session/list", "{}"));
    server.expect("POST", "/acp").await.json(&answer(5, "{}")).await;
    assert_eq!(peer.hear().await, answer(5, "{}"));
}

#[tokio::test]
async fn an_answer_over_the_limit_is_an_error_and_not_held() {
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
async fn a_socket_serves_several_messages_until_the_server_closes_it() {
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
    // Kept open, and now closed without a word: what was not answered is not sent twice.
    drop(exchange);
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":5") && heard.contains("\"error\""), "{heard}");
    peer.say(&request(6, "session/list", "{}"));
    server.expect("POST", "/acp").await.json(&answer(6, "{}")).await;
    assert_eq!(peer.hear().await, answer(6, "{}"));
}

/// What arrives on a web socket, in pieces of its own choice.
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

    /// Whatever a server sends, all that came before the fault is told, and the end once and last.
    #[test]
    fn no_bytes_on_a_web_socket_break_the_connection_without_a_word(bytes in wire()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut peer, mut stream) = raw_socket().await;
            let first = update("before", 7);
            stream.write_all(&frame(0x81, first.as_bytes())).await.unwrap();
            // The client may break off in the middle.
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
            assert_eq!(peer.hear().await, first);
            assert!(matches!(peer.rest().await, LinkEnd::Io(error) if !error.is_empty()));
        });
    }

    /// The same for an answer in a POST: an answer of some kind comes, and the line stays.
    #[test]
    fn no_bytes_in_a_post_break_the_connection(
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
