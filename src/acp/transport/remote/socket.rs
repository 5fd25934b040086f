//! WebSocket transport: one message per text frame.
//!
//! The handshake uses a connection of the HTTP client, so TLS, proxies, cookies and the token work as in all
//! transports. Pings keep the connection open and detect a lost server ([`Keepalive`]).
//! Invariants: writing never waits for reading; a message is one frame.
//! Source: RFC 6455; the protocol's RFD "streamable HTTP and web socket transport": text frames, no subprotocol,
//! binary frames are ignored.

mod keepalive;

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use reqwest::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Method, StatusCode, Url};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::envelope::{self, Kind};
use super::http_context::HttpContext;
use super::http_error::{HttpError, host_of};
use crate::acp::frame::sort_whole;
use crate::acp::lock::lock;
use crate::acp::transport::LinkEnd;

use keepalive::Keepalive;

/// Maximum message size in bytes; servers close the connection on larger ones.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Maximum size of the write buffer for a server that does not read: one message, and pongs.
const MAX_UNWRITTEN_BYTES: usize = MAX_MESSAGE_BYTES + (1 << 20);

/// How many bytes of messages are passed on together.
const PART_BYTES: usize = 64 << 10;

/// The bytes below a WebSocket; in tests, those of a simulated network.
trait Wire: AsyncRead + AsyncWrite + Debug + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Debug + Send + Unpin> Wire for T {}

type Stream = WebSocketStream<Box<dyn Wire>>;
type SharedKeepalive = Arc<Mutex<Keepalive>>;

#[derive(Debug)]
pub struct Socket {
    context: HttpContext,
    host: String,
    sink: SplitSink<Stream, Message>,
    keepalive: SharedKeepalive,
}

impl Socket {
    /// Opens a WebSocket. The client of the context must support upgrades.
    pub async fn open(context: HttpContext, url: &Url) -> Result<Self, HttpError> {
        let host = host_of(url.as_str());
        let stream = connect(&context, url, &host).await?;
        let max = Some(context.inlet.max_bytes);
        let config = WebSocketConfig::default()
            .max_message_size(max)
            .max_frame_size(max)
            .max_write_buffer_size(MAX_UNWRITTEN_BYTES);
        let stream = WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await;
        let (sink, stream) = stream.split();
        let keepalive = Arc::new(Mutex::new(Keepalive::new(Instant::now())));
        context.spawn(read(context.clone(), stream, host.clone(), Arc::clone(&keepalive)));
        context.spawn(watch(context.clone(), host.clone(), Arc::clone(&keepalive)));
        Ok(Self { context, host, sink, keepalive })
    }

    pub async fn send(&mut self, frame: &Bytes) -> Result<(), LinkEnd> {
        if frame.len() > MAX_MESSAGE_BYTES
            && let Some(envelope) = envelope::read(&String::from_utf8_lossy(frame))
        {
            let text = format!(
                "The message is {} MiB; the WebSocket limit is {} MiB. Send less at once.",
                frame.len() >> 20,
                MAX_MESSAGE_BYTES >> 20
            );
            return Ok(self.context.unsent(&envelope, &text).await?);
        }
        let Ok(text) = Utf8Bytes::try_from(frame.clone()) else { return Ok(()) };
        if let Some(envelope::Envelope { kind: Kind::Request, id: Some(id), .. }) = envelope::read(&text) {
            lock(&self.keepalive).asked(&id);
        }
        lock(&self.keepalive).writing(Some(Instant::now()));
        let sent = self.sink.send(Message::Text(text)).await;
        lock(&self.keepalive).writing(None);
        sent.map_err(|error| broken(&self.host, &error))
    }

    /// Sends a ping if one is due, to keep proxies from closing the connection and to detect a lost peer.
    pub async fn ping(&mut self) -> Result<(), LinkEnd> {
        let says = lock(&self.keepalive).ping(self.context.timeouts.ping, Instant::now());
        let Some(says) = says else { return Ok(()) };
        let ping = Message::Ping(Bytes::copy_from_slice(&says));
        self.sink.send(ping).await.map_err(|error| broken(&self.host, &error))
    }

    pub async fn farewell(&mut self) {
        let _ = self.sink.send(Message::Close(None)).await;
    }
}

async fn connect(context: &HttpContext, url: &Url, host: &str) -> Result<Box<dyn Wire>, HttpError> {
    #[cfg(test)]
    if let Some(simulation) = &context.client.simulation {
        return Ok(Box::new(simulation.open_socket()?));
    }
    let key = generate_key();
    let request = context
        .client
        .request(Method::GET, url)
        .header(CONNECTION, HeaderValue::from_static("Upgrade"))
        .header(UPGRADE, HeaderValue::from_static("websocket"))
        .header(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"))
        .header(SEC_WEBSOCKET_KEY, key.as_str());
    let refused = HttpError::refused;
    let answer = context.client.send(request, |status| status == StatusCode::SWITCHING_PROTOCOLS);
    let Ok(answer) = timeout(context.timeouts.answer, answer).await else {
        let text = format!("Timed out opening the WebSocket to {host}. Check the network, or try again.");
        return Err(HttpError::on_the_way(text));
    };
    let response = answer?;
    let is_saved = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes)
        == Some(derive_accept_key(key.as_bytes()).as_bytes());
    if response.status() != StatusCode::SWITCHING_PROTOCOLS || !is_saved {
        return Err(refused(format!(
            "No WebSocket at {} on {host}. Correct the URL, or use http:// or https://.",
            crate::model::shown_url(url.as_str())
        )));
    }
    let stream = response.upgrade().await.map_err(|error| HttpError::of_error(&error, url.as_str()))?;
    Ok(Box::new(stream))
}

/// Ends the connection if the peer does not answer pings. The timeout must be exceeded in two consecutive checks: after
/// a suspend of this machine, data that has arrived is read first.
async fn watch(context: HttpContext, host: String, keepalive: SharedKeepalive) {
    let mut was_lost = false;
    loop {
        sleep(context.timeouts.pong / 2).await;
        let lost = lock(&keepalive).lost_for(context.timeouts.pong, Instant::now());
        let is_second = std::mem::replace(&mut was_lost, lost.is_some());
        if let Some(silence) = lost.filter(|_| is_second) {
            let seconds = silence.as_secs();
            let text = format!("the WebSocket to {host} timed out after {seconds} s without data");
            return context.end(LinkEnd::Io(text));
        }
    }
}

async fn read(
    context: HttpContext,
    mut stream: SplitStream<Stream>,
    host: String,
    keepalive: SharedKeepalive,
) {
    let mut pieces = Vec::new();
    let mut bytes = 0;
    let end = loop {
        // What has arrived already is passed on together.
        let ready = if bytes < PART_BYTES { stream.next().now_or_never() } else { None };
        let next = if let Some(next) = ready {
            next
        } else {
            bytes = 0;
            if context.inlet.pieces(std::mem::take(&mut pieces)).await.is_err() {
                return;
            }
            stream.next().await
        };
        match next {
            Some(Ok(Message::Text(text))) => {
                let answered = answered(&text, &keepalive);
                lock(&keepalive).heard(answered.as_deref(), Instant::now());
                bytes += text.len();
                sort_whole(&Bytes::from(text), &mut pieces);
            }
            Some(Ok(Message::Pong(says))) => lock(&keepalive).pong(&says, Instant::now()),
            Some(Ok(Message::Binary(bytes))) => {
                context.inlet.trace(&format!("A binary frame of {} bytes was ignored.", bytes.len()));
            }
            Some(Ok(Message::Close(frame))) => {
                let why = frame.map(|frame| format!("{} {}", u16::from(frame.code), frame.reason));
                let why: String =
                    why.unwrap_or_default().chars().filter(|c| !c.is_control()).take(200).collect();
                let why = if why.trim().is_empty() { why } else { format!(" ({})", why.trim()) };
                break LinkEnd::Io(format!("{host} closed the WebSocket{why}"));
            }
            Some(Ok(_)) => lock(&keepalive).heard(None, Instant::now()),
            Some(Err(error)) => break broken(&host, &error),
            None => break LinkEnd::Io(format!("{host} ended the WebSocket")),
        }
    };
    if context.inlet.pieces(pieces).await.is_ok() {
        context.end(end);
    }
}

/// The request of parlor that a message responds to. Skips parsing for messages with a method, which are most of them.
fn answered(text: &str, keepalive: &SharedKeepalive) -> Option<String> {
    if !lock(keepalive).is_at_work() || text.contains("\"method\":") {
        return None;
    }
    envelope::read(text).filter(|envelope| envelope.kind == Kind::Response)?.id
}

fn broken(host: &str, error: &Error) -> LinkEnd {
    LinkEnd::Io(match error {
        Error::Capacity(_) => format!("{host} sent a WebSocket message over the limit"),
        Error::WriteBufferFull(_) => format!("{host} stopped reading from the WebSocket"),
        error => format!("the WebSocket to {host} failed: {}", crate::tls::innermost(error)),
    })
}
