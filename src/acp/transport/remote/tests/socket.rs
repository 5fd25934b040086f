//! The WebSocket transport.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::server::{Exchange, Server};
use super::{HANG, INITIALIZE, INITIALIZED, Peer, Timeouts, answer, request, timeouts};
use crate::model::{CloseReason, Remote, TokenSource};

/// The server's side of a WebSocket.
pub struct Socket {
    stream: WebSocketStream<TcpStream>,
}

impl Exchange {
    /// Accepts the WebSocket.
    pub async fn socket(self) -> Socket {
        Socket { stream: WebSocketStream::from_raw_socket(self.raw_socket().await, Role::Server, None).await }
    }

    /// Accepts the WebSocket; the test writes the frames.
    pub async fn raw_socket(mut self) -> TcpStream {
        assert_eq!((self.method.as_str(), self.header("upgrade")), ("GET", Some("websocket")));
        let key = derive_accept_key(self.header("sec-websocket-key").unwrap().as_bytes());
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {key}\r\n\r\n"
        );
        self.stream.write_all(head.as_bytes()).await.unwrap();
        self.stream
    }
}

impl Server {
    /// The next request, which must be a GET.
    pub async fn expect_get(&mut self) -> Exchange {
        let exchange = self.next().await;
        assert_eq!(exchange.method, "GET", "{}", exchange.body);
        exchange
    }
}

impl Socket {
    pub async fn hear(&mut self) -> String {
        loop {
            match timeout(HANG, self.stream.next()).await.expect("timed out").unwrap().unwrap() {
                Message::Text(text) => return text.to_string(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    pub async fn say(&mut self, text: &str) {
        self.stream.send(Message::text(text)).await.unwrap();
    }
}

async fn connected(server: &mut Server, timeouts: Timeouts) -> (Peer, Socket) {
    let remote = Remote {
        url: server.socket_url(""),
        token: Some(TokenSource::Env("CARGO_PKG_NAME".to_owned())),
        ..Remote::default()
    };
    let mut peer = Peer::patiently(remote, timeouts);
    peer.say(INITIALIZE);
    let get = server.expect("GET", "/acp").await;
    assert_eq!(get.header("authorization"), Some("Bearer parlor"));
    assert_eq!(get.header("sec-websocket-version"), Some("13"));
    let mut socket = get.socket().await;
    assert_eq!(socket.hear().await, INITIALIZE);
    socket.say(INITIALIZED).await;
    assert_eq!(peer.hear().await, INITIALIZED);
    (peer, socket)
}

#[tokio::test]
async fn messages_are_exchanged_and_the_socket_is_closed() {
    let mut server = Server::start().await;
    let (mut peer, mut socket) = connected(&mut server, timeouts()).await;
    socket.stream.send(Message::binary(b"noise".to_vec())).await.unwrap();
    for id in 2..5 {
        peer.say(&request(id, "session/list", "{}"));
        assert_eq!(socket.hear().await, request(id, "session/list", "{}"));
        socket.say(&answer(id, "{}")).await;
        assert_eq!(peer.hear().await, answer(id, "{}"));
    }
    assert!(peer.log().contains("binary frame of 5 bytes"), "{}", peer.log());
    peer.stop(false);
    assert!(matches!(socket.stream.next().await, Some(Ok(Message::Close(_)))));
    assert_eq!(peer.end().await, CloseReason::Stopped);
}

#[tokio::test]
async fn an_agent_that_reads_nothing_during_a_turn_is_not_lost() {
    let mut server = Server::start().await;
    let eager = Timeouts { ping: Duration::from_millis(10), ..timeouts() };
    let (mut peer, mut socket) = connected(&mut server, eager).await;
    peer.say(&request(2, "session/prompt", "{}"));
    assert!(socket.hear().await.contains("session/prompt"));
    // It reads neither the cancellation nor the pings during the turn.
    peer.say(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{}}"#);
    tokio::time::sleep(Duration::from_millis(50)).await;
    socket.say(&answer(2, r#"{"stopReason":"end_turn"}"#)).await;
    assert!(peer.hear().await.contains("end_turn"));
    assert!(socket.hear().await.contains("session/cancel"));
}

/// A proxy that forwards bytes until it is switched to discarding them.
async fn half_open_on_wish(server: u16) -> (u16, tokio::sync::watch::Sender<bool>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (swallow, header_request) = tokio::sync::watch::channel(false);
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
            (client.into_split(), server.into_split());
        let there = pass(&mut from_client, &mut to_server, header_request.clone());
        let back = pass(&mut from_server, &mut to_client, header_request);
        tokio::join!(there, back);
    });
    (port, swallow)
}

async fn pass(
    from: &mut (impl tokio::io::AsyncRead + Unpin),
    to: &mut (impl tokio::io::AsyncWrite + Unpin),
    swallow: tokio::sync::watch::Receiver<bool>,
) {
    use tokio::io::AsyncReadExt as _;
    let mut bytes = vec![0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if !*swallow.borrow() && to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_half_open_connection_is_detected() {
    let mut server = Server::start().await;
    let (port, swallow) = half_open_on_wish(server.port()).await;
    let step = Duration::from_millis(20);
    let eager = Timeouts { ping: step, pong: 50 * step, ..timeouts() };
    let remote = Remote { url: format!("ws://127.0.0.1:{port}/acp"), ..Remote::default() };
    let mut peer = Peer::patiently(remote, eager);
    peer.say(INITIALIZE);
    let mut socket = server.expect_get().await.socket().await;
    assert_eq!(socket.hear().await, INITIALIZE);
    socket.say(INITIALIZED).await;
    assert_eq!(peer.hear().await, INITIALIZED);
    let (pinged, mut pings) = tokio::sync::mpsc::unbounded_channel();
    // Reading answers pings.
    tokio::spawn(async move {
        let _server = server;
        while let Some(Ok(message)) = socket.stream.next().await {
            match message {
                Message::Text(_) => socket.say(&answer(2, "{}")).await,
                _ => drop(pinged.send(())),
            }
        }
    });
    // Silence is allowed while pings are answered.
    for _ in 0..3 {
        pings.recv().await.expect("the socket is open");
    }
    peer.say(&request(2, "session/list", "{}"));
    assert_eq!(peer.hear().await, answer(2, "{}"));
    swallow.send(true).unwrap();
    let CloseReason::Lost { error } = peer.end().await else { panic!() };
    assert!(error.contains("timed out after"), "{error}");
}

#[tokio::test]
async fn a_peer_that_answers_pings_only_while_idle_is_not_lost_during_work() {
    let mut server = Server::start().await;
    let step = Duration::from_millis(20);
    let eager = Timeouts { ping: step, pong: step, ..timeouts() };
    let (mut peer, mut socket) = connected(&mut server, eager).await;
    assert!(matches!(socket.stream.next().await, Some(Ok(Message::Ping(_)))));
    socket.say(&super::update("s", 0)).await;
    assert_eq!(peer.hear().await, super::update("s", 0));
    peer.say(&request(2, "session/prompt", "{}"));
    assert!(socket.hear().await.contains("session/prompt"));
    // Many times the timeout of an idle peer.
    tokio::time::sleep(20 * step).await;
    socket.say(&answer(2, r#"{"stopReason":"end_turn"}"#)).await;
    assert!(peer.hear().await.contains("end_turn"));
    peer.say(&request(3, "session/list", "{}"));
    assert!(socket.hear().await.contains("\"id\":3"));
}

#[tokio::test]
async fn the_reason_of_the_close_is_reported() {
    let mut server = Server::start().await;
    let (mut peer, mut socket) = connected(&mut server, timeouts()).await;
    let frame = CloseFrame { code: CloseCode::Policy, reason: "another\u{7} client came".into() };
    socket.stream.send(Message::Close(Some(frame))).await.unwrap();
    let CloseReason::Lost { error } = peer.end().await else { panic!() };
    assert!(error.contains("closed the WebSocket (1008 another client came)"), "{error}");

    let (mut peer, socket) = connected(&mut server, timeouts()).await;
    drop(socket);
    let CloseReason::Lost { error } = peer.end().await else { panic!() };
    assert!(error.contains("WebSocket"), "{error}");
}

#[tokio::test]
async fn messages_over_the_web_socket_limit_are_not_sent() {
    let mut server = Server::start().await;
    let (mut peer, mut socket) = connected(&mut server, timeouts()).await;
    peer.say(&request(2, "session/prompt", &format!(r#"{{"prompt":"{}"}}"#, "x".repeat(16 << 20))));
    let heard = peer.hear().await;
    assert!(heard.contains("\"id\":2") && heard.contains("16 MiB; the limit of"), "{heard}");
    peer.say(&request(3, "session/list", "{}"));
    assert!(socket.hear().await.contains("\"id\":3"));
}

#[tokio::test]
async fn a_server_without_web_sockets_is_reported() {
    let mut server = Server::start().await;
    let mut peer = Peer::connect(Remote { url: server.socket_url("/acp"), ..Remote::default() });
    peer.say(INITIALIZE);
    server.expect("GET", "/acp").await.answer(200, &[], "hello").await;
    let CloseReason::Refused { error } = peer.end().await else { panic!() };
    assert!(error.contains("No WebSocket at"), "{error}");
}

#[tokio::test]
async fn writing_does_not_wait_for_reading() {
    let mut server = Server::start().await;
    let (mut peer, mut socket) = connected(&mut server, timeouts()).await;
    // Incoming messages are not received yet, but outgoing ones are written.
    for number in 0..20 {
        socket.say(&super::update("s", number)).await;
    }
    for id in 2..50 {
        peer.say(&request(id, "session/list", "{}"));
        assert_eq!(socket.hear().await, request(id, "session/list", "{}"));
    }
    for number in 0..20 {
        assert_eq!(peer.hear().await, super::update("s", number));
    }
}
