//! WebSocket transport: one message per text frame.
//!
//! The handshake uses a connection of the HTTP client, so TLS, proxies, cookies and the token work as in all
//! transports. Pings keep the connection open and detect a lost server ([`Keepalive`]).
//! Invariants: writing never waits for reading; a message is one frame.
//! Source: RFC 6455; the protocol's RFD "streamable HTTP and web socket transport": text frames, no subprotocol,
//! binary frames are ignored.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

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

use super::client::Client;
use super::envelope::{self, Kind};
use super::http_context::{HttpContext, too_large};
use super::http_error::{HttpError, host_of};
use crate::acp::frame::sort_whole;
use crate::lock::lock;
use crate::model::{CloseReason, shown_url};

/// Maximum message size in bytes; servers close the connection on larger ones.
const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Maximum size of the write buffer for a server that does not read: one message, and pongs.
const MAX_UNWRITTEN_BYTES: usize = MAX_MESSAGE_BYTES + (1 << 20);
const PART_BYTES: usize = 64 << 10;

/// The bytes below a WebSocket; in tests, those of a simulated network.
trait Wire: AsyncRead + AsyncWrite + Debug + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Debug + Send + Unpin> Wire for T {}

type Stream = WebSocketStream<Box<dyn Wire>>;
type SharedKeepalive = Arc<Mutex<Keepalive>>;

#[derive(Debug)]
pub struct Socket {
    context: Arc<HttpContext>,
    host: String,
    sink: SplitSink<Stream, Message>,
    keepalive: SharedKeepalive,
}

impl Socket {
    /// Opens a WebSocket. The client must support upgrades.
    pub async fn open(context: &Arc<HttpContext>, client: &Client, url: &Url) -> Result<Self, HttpError> {
        let host = host_of(url.as_str());
        let stream = connect(client, url, &host, context.timeouts.answer).await?;
        let max = Some(context.max_bytes);
        let config = WebSocketConfig::default()
            .max_message_size(max)
            .max_frame_size(max)
            .max_write_buffer_size(MAX_UNWRITTEN_BYTES);
        let stream = WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await;
        let (sink, stream) = stream.split();
        let keepalive = Arc::new(Mutex::new(Keepalive::new(Instant::now())));
        context.spawn(read(Arc::clone(context), stream, host.clone(), Arc::clone(&keepalive)));
        context.spawn(watch(Arc::clone(context), host.clone(), Arc::clone(&keepalive)));
        Ok(Self { context: Arc::clone(context), host, sink, keepalive })
    }

    pub async fn send(&mut self, frame: &Bytes) -> Result<(), CloseReason> {
        if frame.len() > MAX_MESSAGE_BYTES
            && let Some(envelope) = envelope::read(&String::from_utf8_lossy(frame))
        {
            let why = too_large(frame.len(), MAX_MESSAGE_BYTES, &self.host);
            self.context.unsent(&envelope, &why).await;
            return Ok(());
        }
        let Ok(text) = Utf8Bytes::try_from(frame.clone()) else { return Ok(()) };
        if let Some(envelope::Envelope { kind: Kind::Request, id: Some(id), .. }) = envelope::read(&text) {
            lock(&self.keepalive).asked(&id);
        }
        lock(&self.keepalive).writing = Some(Instant::now());
        let sent = self.sink.send(Message::Text(text)).await;
        lock(&self.keepalive).writing = None;
        sent.map_err(|error| broken(&self.host, &error))
    }

    /// Sends a ping if one is due, to keep proxies from closing the connection and to detect a lost peer.
    pub async fn ping(&mut self) -> Result<(), CloseReason> {
        let says = lock(&self.keepalive).ping(self.context.timeouts.ping, Instant::now());
        let Some(says) = says else { return Ok(()) };
        let ping = Message::Ping(Bytes::copy_from_slice(&says));
        self.sink.send(ping).await.map_err(|error| broken(&self.host, &error))
    }

    pub async fn farewell(&mut self) {
        let _ = self.sink.send(Message::Close(None)).await;
    }
}

async fn connect(client: &Client, url: &Url, host: &str, wait: Duration) -> Result<Box<dyn Wire>, HttpError> {
    #[cfg(test)]
    if let Some(simulation) = &client.simulation {
        return Ok(Box::new(simulation.open_socket()?));
    }
    let key = generate_key();
    let request = client
        .request(Method::GET, url)
        .header(CONNECTION, HeaderValue::from_static("Upgrade"))
        .header(UPGRADE, HeaderValue::from_static("websocket"))
        .header(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"))
        .header(SEC_WEBSOCKET_KEY, key.as_str());
    let answer = client.send(request, |status| status == StatusCode::SWITCHING_PROTOCOLS);
    let Ok(answer) = timeout(wait, answer).await else {
        let text = format!("Timed out opening the WebSocket to {host}. Check the network, or try again.");
        return Err(HttpError::on_the_way(text));
    };
    let response = answer?;
    let is_saved = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes)
        == Some(derive_accept_key(key.as_bytes()).as_bytes());
    if response.status() != StatusCode::SWITCHING_PROTOCOLS || !is_saved {
        let shown = shown_url(url.as_str());
        let text = format!("No WebSocket at {shown} on {host}. Correct the URL, or use http:// or https://.");
        return Err(HttpError::refused(text));
    }
    let stream = response.upgrade().await.map_err(|error| HttpError::of_error(&error, url.as_str()))?;
    Ok(Box::new(stream))
}

/// Ends the connection if the peer does not answer pings. The timeout must be exceeded in two consecutive checks: after
/// a suspend of this machine, data that has arrived is read first.
async fn watch(context: Arc<HttpContext>, host: String, keepalive: SharedKeepalive) {
    let mut was_lost = false;
    loop {
        sleep(context.timeouts.pong / 2).await;
        let lost = lock(&keepalive).lost_for(context.timeouts.pong, Instant::now());
        let is_second = std::mem::replace(&mut was_lost, lost.is_some());
        if let Some(silence) = lost.filter(|_| is_second) {
            let seconds = silence.as_secs();
            let error = format!("the WebSocket to {host} timed out after {seconds} s without data");
            return context.end(CloseReason::Lost { error });
        }
    }
}

async fn read(
    context: Arc<HttpContext>,
    mut stream: SplitStream<Stream>,
    host: String,
    keepalive: SharedKeepalive,
) {
    let (mut pieces, mut bytes) = (Vec::new(), 0);
    let end = loop {
        // What has arrived already is passed on together.
        let ready = if bytes < PART_BYTES { stream.next().now_or_never() } else { None };
        let next = if let Some(next) = ready {
            next
        } else {
            bytes = 0;
            if context.pieces(std::mem::take(&mut pieces)).await.is_err() {
                return;
            }
            stream.next().await
        };
        match next {
            Some(Ok(Message::Text(text))) => {
                // Messages with a method, which are most of them, are not parsed.
                let may_answer = lock(&keepalive).is_at_work() && !text.contains("\"method\":");
                let answer = if may_answer { envelope::read(&text) } else { None };
                let answer =
                    answer.filter(|answer| answer.kind == Kind::Response).and_then(|answer| answer.id);
                lock(&keepalive).received(answer.as_deref(), Instant::now());
                bytes += text.len();
                sort_whole(&Bytes::from(text), &mut pieces);
            }
            Some(Ok(Message::Pong(says))) => lock(&keepalive).pong(&says, Instant::now()),
            Some(Ok(Message::Binary(bytes))) => {
                context.trace(&format!("A binary frame of {} bytes was ignored.", bytes.len()));
            }
            Some(Ok(Message::Close(frame))) => {
                let why = frame.map(|frame| format!("{} {}", u16::from(frame.code), frame.reason));
                let why = why.unwrap_or_default().replace(char::is_control, "");
                let why: String = why.chars().take(200).collect();
                let why = if why.trim().is_empty() { why } else { format!(" ({})", why.trim()) };
                break CloseReason::Lost { error: format!("{host} closed the WebSocket{why}") };
            }
            Some(Ok(_)) => lock(&keepalive).received(None, Instant::now()),
            Some(Err(error)) => break broken(&host, &error),
            None => break CloseReason::Lost { error: format!("{host} ended the WebSocket") },
        }
    };
    if context.pieces(pieces).await.is_ok() {
        context.end(end);
    }
}

fn broken(host: &str, error: &Error) -> CloseReason {
    let error = match error {
        Error::Capacity(_) => format!("{host} sent a WebSocket message over the limit"),
        Error::WriteBufferFull(_) => format!("{host} stopped reading from the WebSocket"),
        error => format!("the WebSocket to {host} failed: {}", crate::tls::innermost(error)),
    };
    CloseReason::Lost { error }
}

/// Detects a lost connection by unanswered pings. Some agents read nothing while they work and answer no pings during
/// that time, so silence during an open request counts only for agents that have answered a ping at work before. A peer
/// that has never answered a ping is never considered lost.
#[derive(Debug)]
struct Keepalive {
    last_received: Instant,
    /// Unanswered requests of parlor, by id as JSON.
    open: BTreeSet<String>,
    /// Number of times that the agent began to work, which is while requests are open.
    work: u64,
    number: u64,
    /// Time of the first ping since the last message.
    unanswered: Option<Instant>,
    /// Since when a message is being written, or heard meanwhile. A peer that does not read gets no pings behind it.
    writing: Option<Instant>,
    /// The last ping: its number, and the work during which it was sent.
    last: Option<(u64, Option<u64>)>,
    answers: bool,
    /// Whether the peer has answered a ping during the work in which it was sent.
    answers_at_work: bool,
}

impl Keepalive {
    fn new(now: Instant) -> Self {
        Self {
            last_received: now,
            open: BTreeSet::new(),
            work: 0,
            number: 0,
            unanswered: None,
            writing: None,
            last: None,
            answers: false,
            answers_at_work: false,
        }
    }

    fn asked(&mut self, id: &str) {
        self.work += u64::from(self.open.is_empty());
        self.open.insert(id.to_owned());
    }

    /// Records a message; `answered`: the request of parlor that it responds to.
    fn received(&mut self, answered: Option<&str>, now: Instant) {
        self.last_received = now;
        self.unanswered = None;
        self.writing = self.writing.map(|_| now);
        if let Some(id) = answered {
            self.open.remove(id);
        }
    }

    fn is_at_work(&self) -> bool {
        !self.open.is_empty()
    }

    /// The payload of the next ping, if one is due: after silence, or if it is unknown whether the peer answers pings.
    fn ping(&mut self, quiet: Duration, now: Instant) -> Option<[u8; 8]> {
        let is_known = self.answers && (self.answers_at_work || !self.is_at_work());
        if is_known && now.duration_since(self.last_received) < quiet {
            return None;
        }
        self.number += 1;
        self.last = Some((self.number, self.is_at_work().then_some(self.work)));
        self.unanswered.get_or_insert(now);
        Some(self.number.to_be_bytes())
    }

    fn pong(&mut self, says: &[u8], now: Instant) {
        self.received(None, now);
        let is_of = |(number, _): &(u64, Option<u64>)| number.to_be_bytes() == says;
        if let Some((_, work)) = self.last.filter(is_of) {
            self.answers = true;
            // A pong after the end of the work proves nothing: the ping may have been read only then.
            self.answers_at_work |= self.is_at_work() && work == Some(self.work);
        }
    }

    /// How long the peer has been silent, if it is considered lost.
    fn lost_for(&self, timeouts: Duration, now: Instant) -> Option<Duration> {
        let is_awaited = self.answers && (self.answers_at_work || !self.is_at_work());
        let since = [self.unanswered, self.writing].into_iter().flatten().min();
        let waits = now.duration_since(since.filter(|_| is_awaited)?);
        (waits >= timeouts).then(|| now.duration_since(self.last_received))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_secs(30);

    /// A peer that answered the first ping while idle.
    fn awake(now: Instant) -> Keepalive {
        let mut keepalive = Keepalive::new(now);
        let says = keepalive.ping(STEP, now).unwrap();
        keepalive.pong(&says, now);
        keepalive
    }

    #[test]
    fn a_silent_peer_that_answered_pings_is_lost() {
        let now = Instant::now();
        let mut keepalive = awake(now);
        assert_eq!(keepalive.ping(STEP, now + STEP / 2), None, "a message was received just now");
        assert!(keepalive.ping(STEP, now + STEP).is_some());
        assert_eq!(keepalive.lost_for(STEP, now + STEP), None);
        assert_eq!(keepalive.lost_for(STEP, now + 2 * STEP), Some(2 * STEP));
        keepalive.received(None, now + 2 * STEP);
        assert_eq!(keepalive.lost_for(STEP, now + 9 * STEP), None, "any message resets the timeout");
    }

    #[test]
    fn a_peer_that_never_answered_pings_is_not_lost() {
        let now = Instant::now();
        let mut keepalive = Keepalive::new(now);
        for step in 1..9 {
            assert!(keepalive.ping(STEP, now + step * STEP).is_some());
        }
        assert_eq!(keepalive.lost_for(STEP, now + 99 * STEP), None);
        keepalive.pong(b"of its own", now);
        assert!(keepalive.ping(STEP, now + STEP).is_some());
        assert_eq!(keepalive.lost_for(STEP, now + 99 * STEP), None, "an unsolicited pong does not count");
    }

    #[test]
    fn a_peer_that_reads_nothing_during_work_is_not_lost_until_the_work_ends() {
        let now = Instant::now();
        let mut keepalive = awake(now);
        keepalive.asked("2");
        let says = keepalive.ping(STEP, now + STEP).unwrap();
        assert_eq!(keepalive.lost_for(STEP, now + 99 * STEP), None);
        // The agent responds, gets the next request, and only then reads the ping.
        keepalive.received(Some("2"), now + 100 * STEP);
        keepalive.asked("3");
        keepalive.pong(&says, now + 100 * STEP);
        assert!(keepalive.ping(STEP, now + 101 * STEP).is_some());
        assert_eq!(keepalive.lost_for(STEP, now + 199 * STEP), None, "it still does not read during work");
        keepalive.received(Some("3"), now + 200 * STEP);
        assert!(keepalive.ping(STEP, now + 201 * STEP).is_some());
        assert!(keepalive.lost_for(STEP, now + 202 * STEP).is_some(), "it answers while idle");
    }

    #[test]
    fn a_peer_that_answered_during_work_can_be_lost_during_work() {
        let now = Instant::now();
        let mut keepalive = awake(now);
        keepalive.asked("2");
        let says = keepalive.ping(STEP, now).unwrap();
        keepalive.pong(&says, now);
        assert!(keepalive.ping(STEP, now + STEP).is_some());
        assert!(keepalive.lost_for(STEP, now + 2 * STEP).is_some());
    }
}
