//! State that the tasks of a connection to a server share: the client, the channel to the peer, open requests, timeouts.
//!
//! Invariants: a request gets one outcome: the first response on any path, or a failure. Tasks that are spawned here
//! have ended when [`HttpContext::close`] returns, so no event follows the end.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use memchr::memmem::Finder;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::client::Client;
use super::envelope::{self, Envelope, Kind};
use super::http_error::{HttpError, host_of};
use crate::acp::dialects;
use crate::acp::envelope::{pick, protocol_version};
use crate::acp::frame::{InboundFrame, sort_whole};
use crate::acp::tap::{Direction, OWN_LINE, Tap};
use crate::acp::transport::{Disconnected, In, Sink, UNDELIVERED, UNSENT};
use crate::lock::lock;
use crate::model::{CloseReason, Profile};

static ID: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"id\""));

#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// From the first message to the response headers; the server may start the agent only then.
    pub begin: Duration,
    /// From a request to the response headers, except for turns.
    pub answer: Duration,
    /// Maximum silence of a stream whose keep-alive interval is not known yet.
    pub idle: Duration,
    /// First delay before a stream is reopened or a POST is repeated; it doubles.
    pub min_pause: Duration,
    pub max_pause: Duration,
    /// Random part of this delay in percent, so that many clients of a restarted server do not return at once.
    pub jitter: u32,
    /// How long retries continue before the connection is lost.
    pub give_up: Duration,
    /// How long pending messages are sent when the connection is ending.
    pub drain: Duration,
    /// Timeout of the message that ends the connection.
    pub farewell: Duration,
    /// Interval of pings on an idle WebSocket.
    pub ping: Duration,
    /// A peer that has answered pings before is lost after this time without an answer.
    pub pong: Duration,
    /// How long a message waits for the server to begin its response to the previous one.
    pub head_start: Duration,
    /// A POST that failed is reported after this time, if its response may still arrive on an event stream.
    pub grace: Duration,
    /// How long a response in a POST waits for updates that were sent before it on the event stream.
    pub in_flight: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            begin: Duration::from_secs(120),
            answer: Duration::from_secs(60),
            // Three times the keep-alive interval of the official server.
            idle: Duration::from_secs(45),
            min_pause: Duration::from_millis(250),
            max_pause: Duration::from_secs(15),
            jitter: 25,
            give_up: Duration::from_secs(120),
            drain: Duration::from_secs(2),
            farewell: Duration::from_secs(1),
            ping: Duration::from_secs(30),
            pong: Duration::from_secs(30),
            head_start: Duration::from_millis(100),
            grace: Duration::from_secs(1),
            in_flight: Duration::from_millis(50),
        }
    }
}

#[derive(Debug)]
pub struct Backoff {
    timeouts: Timeouts,
    pause: Duration,
    failing_since: Option<Instant>,
}

impl Backoff {
    pub fn new(timeouts: Timeouts) -> Self {
        Self { timeouts, pause: timeouts.min_pause, failing_since: None }
    }

    pub fn reset(&mut self) {
        *self = Self::new(self.timeouts);
    }

    pub fn is_failing(&self) -> bool {
        self.failing_since.is_some()
    }

    /// Records a failure; returns the delay before the next attempt (at least `wanted`); `None`: time limit.
    pub fn failed(&mut self, now: Instant, wanted: Option<Duration>) -> Option<Duration> {
        let since = *self.failing_since.get_or_insert(now);
        if now.saturating_duration_since(since) >= self.timeouts.give_up {
            return None;
        }
        let percent = 100 - u32::from(uuid::Uuid::new_v4().as_bytes()[0]) * self.timeouts.jitter / 255;
        let delay = self.pause * percent / 100;
        self.pause = (self.pause * 2).min(self.timeouts.max_pause);
        Some(delay.max(wanted.unwrap_or_default().min(self.timeouts.answer)))
    }
}

#[derive(Debug, Default)]
struct Requests {
    open: BTreeMap<u64, Envelope>,
    last: u64,
}

#[derive(Debug)]
pub struct HttpContext {
    pub client: Arc<Client>,
    pub timeouts: Timeouts,
    pub max_bytes: usize,
    /// The version of the protocol, or 0.
    pub version: AtomicU64,
    /// Whether the server has the small limits of `ZeptoClaw`.
    pub is_small: AtomicBool,
    sink: Sink,
    tap: Tap,
    requests: watch::Sender<Requests>,
    ended: mpsc::UnboundedSender<CloseReason>,
    created: mpsc::UnboundedSender<String>,
    retry: Arc<Notify>,
    interruptions: AtomicUsize,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
pub struct Reports {
    pub ended: mpsc::UnboundedReceiver<CloseReason>,
    pub created: mpsc::UnboundedReceiver<String>,
}

impl HttpContext {
    /// `retry` is notified when delays before the next attempts should end.
    pub fn new(
        client: Arc<Client>,
        (sink, tap, max_bytes): (Sink, Tap, usize),
        timeouts: Timeouts,
        retry: Arc<Notify>,
    ) -> (Arc<Self>, Reports) {
        let (ended, ends) = mpsc::unbounded_channel();
        let (created, sessions) = mpsc::unbounded_channel();
        let context = Self {
            client,
            timeouts,
            max_bytes,
            version: AtomicU64::default(),
            is_small: AtomicBool::default(),
            sink,
            tap,
            requests: watch::Sender::default(),
            ended,
            created,
            retry,
            interruptions: AtomicUsize::default(),
            tasks: Mutex::default(),
        };
        (Arc::new(context), Reports { ended: ends, created: sessions })
    }

    pub async fn pieces(&self, pieces: Vec<InboundFrame>) -> Result<(), Disconnected> {
        if pieces.is_empty() { Ok(()) } else { self.sink.send(In::Pieces(pieces)).await }
    }

    pub fn drop_repeated(&self, pieces: &mut Vec<InboundFrame>) {
        pieces.retain(|piece| !matches!(piece, InboundFrame::Frame(frame) if !self.is_news(frame.text())));
    }

    pub fn sort(&self, body: &Bytes) -> Vec<InboundFrame> {
        let mut pieces = Vec::new();
        sort_whole(body, &mut pieces);
        self.drop_repeated(&mut pieces);
        pieces
    }

    pub async fn note(&self, text: String) -> Result<(), Disconnected> {
        self.trace(&text);
        self.sink.send(In::Note(text)).await
    }

    pub fn trace(&self, text: &str) {
        self.tap.record(Direction::Stderr, format!("{OWN_LINE}{text}").as_bytes());
        self.tap.flush();
    }

    pub async fn pause(&self, time: Duration) {
        // Without a result: both are reasons to go on.
        let _ = timeout(time, self.retry.notified()).await;
    }

    /// Reports the connection as interrupted until the returned value is dropped.
    pub fn interrupted(self: &Arc<Self>) -> Interruption {
        if self.interruptions.fetch_add(1, Ordering::Relaxed) == 0 {
            self.sink.report(In::Interrupted(true));
        }
        Interruption(Arc::clone(self))
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    pub async fn close(&self) {
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        tasks.shutdown().await;
    }

    pub fn end(&self, end: CloseReason) {
        let _ = self.ended.send(end);
    }

    pub async fn post_once(
        &self,
        url: &Url,
        headers: &HeaderMap,
        frame: &Bytes,
        wants: impl Fn(StatusCode) -> bool,
    ) -> Result<Response, HttpError> {
        let request = self.client.request(Method::POST, url).header(CONTENT_TYPE, "application/json");
        let request = request.header(ACCEPT, "application/json, text/event-stream").headers(headers.clone());
        self.client.send(request.body(frame.clone()), wants).await
    }

    pub fn expect(&self, message: &Envelope) {
        if let (Kind::Request, Some(id)) = (message.kind, message.number()) {
            self.requests.send_modify(|requests| {
                requests.open.insert(id, message.clone());
                requests.last = requests.last.max(id);
            });
        }
    }

    /// Whether the peer needs a message. Learns from the response to `initialize`, and reports new sessions.
    fn is_news(&self, text: &str) -> bool {
        // Skips parsing for updates, which are most of the messages.
        if ID.find(text.as_bytes()).is_none() {
            return true;
        }
        let Some(answer) = envelope::read(text).filter(|message| message.kind == Kind::Response) else {
            return true;
        };
        let Some(id) = answer.number() else { return true };
        let Some(request) = self.close_request(id) else {
            // Responses to unknown requests are left to the peer.
            let is_news = id > self.requests.borrow().last;
            if !is_news {
                self.trace("Skipped a second response to the same request.");
            }
            return is_news;
        };
        match (request.method.as_str(), answer.session) {
            ("initialize", _) => {
                let result = pick(text, ["result"]).ok().and_then(|[result]| result);
                let version = result.and_then(protocol_version).unwrap_or_default();
                self.version.store(version, Ordering::Relaxed);
                self.is_small
                    .fetch_or(dialects::sender_of(text) == Some(Profile::ZeptoClaw), Ordering::Relaxed);
            }
            ("session/new" | "session/fork", Some(session)) => {
                let _ = self.created.send(session);
            }
            _ => {}
        }
        true
    }

    fn close_request(&self, id: u64) -> Option<Envelope> {
        let mut request = None;
        self.requests.send_modify(|requests| request = requests.open.remove(&id));
        request
    }

    pub fn is_open(&self, message: &Envelope) -> bool {
        message.kind == Kind::Request
            && message.number().is_none_or(|id| self.requests.borrow().open.contains_key(&id))
    }

    pub fn open_in(&self, session: &str) -> Vec<Envelope> {
        let is_of = |request: &&Envelope| request.session.as_deref() == Some(session);
        self.requests.borrow().open.values().filter(is_of).cloned().collect()
    }

    /// Waits until a request has its outcome; never returns for other messages.
    pub async fn closed(&self, message: &Envelope) {
        let number = message.number().filter(|_| message.kind == Kind::Request);
        let Some(id) = number else { return pending().await };
        // The sender is not dropped.
        let _ = self.requests.subscribe().wait_for(|requests| !requests.open.contains_key(&id)).await;
    }

    /// Reports that a message was not delivered. `has_stream`: the response may still arrive on a stream.
    pub async fn fail(&self, message: &Envelope, why: &str, has_stream: bool) {
        if has_stream && message.kind == Kind::Request {
            let _ = timeout(self.timeouts.grace, self.closed(message)).await;
        }
        self.report(message, UNDELIVERED, why).await;
    }

    pub async fn unsent(&self, message: &Envelope, why: &str) {
        self.expect(message);
        self.report(message, UNSENT, why).await;
    }

    /// Reports a failure, unless the message is a request with an outcome. Without a receiver, the connection ends.
    async fn report(&self, message: &Envelope, mark: &str, text: &str) {
        let _ = if let (Some(id), Kind::Request) = (&message.id, message.kind) {
            if message.number().is_some_and(|number| self.close_request(number).is_none()) {
                return;
            }
            let mut pieces = Vec::new();
            sort_whole(&envelope::failure(id, mark, text), &mut pieces);
            self.pieces(pieces).await
        } else {
            let what = if message.method.is_empty() { "A response" } else { message.method.as_str() };
            let text = format!("{what} was not delivered. {text}");
            self.trace(&text);
            self.sink.send(In::Undelivered { session: message.session.clone(), text }).await
        };
    }
}

/// While one of a connection exists, the connection is reported as interrupted.
#[derive(Debug)]
pub struct Interruption(Arc<HttpContext>);

impl Drop for Interruption {
    fn drop(&mut self) {
        if self.0.interruptions.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.sink.report(In::Interrupted(false));
        }
    }
}

impl From<Disconnected> for CloseReason {
    fn from(_: Disconnected) -> Self {
        Self::Stopped
    }
}

impl From<HttpError> for CloseReason {
    fn from(trouble: HttpError) -> Self {
        let HttpError { text: error, is_temporary, .. } = trouble;
        if is_temporary { Self::Unreachable { error } } else { Self::Refused { error } }
    }
}

pub fn is_of_type(response: &Response, wanted: &str) -> bool {
    let given = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()?.split(';').next());
    given.is_some_and(|given| given.trim().eq_ignore_ascii_case(wanted))
}

pub fn is_events(response: &Response) -> bool {
    is_of_type(response, "text/event-stream")
}

pub async fn body(mut response: Response, max_bytes: usize) -> Result<Bytes, HttpError> {
    let url = response.url().to_string();
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > max_bytes => {
                let (host, mib) = (host_of(&url), max_bytes >> 20);
                let text =
                    format!("The response of {host} is over the limit of {mib} MiB. Request less at once.");
                return Err(HttpError::refused(text));
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body.into()),
            Err(error) => return Err(HttpError::of_error(&error, &url)),
        }
    }
}

pub fn too_large(bytes: usize, max_bytes: usize, host: &str) -> String {
    let [size, limit] = [bytes, max_bytes].map(|bytes| match bytes {
        ..0x10_0000 => format!("{} KiB", bytes.div_ceil(1 << 10)),
        _ => format!("{} MiB", bytes >> 20),
    });
    format!("The message is {size}; the limit of {host} is {limit}. Send less at once.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_until_the_limit() {
        let timeouts = Timeouts::default();
        let mut backoff = Backoff::new(timeouts);
        let began = Instant::now();
        let (mut now, mut expected) = (began, timeouts.min_pause);
        while let Some(delay) = backoff.failed(now, None) {
            assert!(delay >= expected * 3 / 4 && delay <= expected, "{delay:?}");
            expected = (expected * 2).min(timeouts.max_pause);
            now += delay;
        }
        assert!(now - began >= timeouts.give_up && backoff.is_failing());
        backoff.reset();
        assert!(!backoff.is_failing());
        assert!(backoff.failed(now, None).unwrap() <= timeouts.min_pause);
    }

    #[test]
    fn the_requested_delay_is_respected_up_to_a_limit() {
        let timeouts = Timeouts::default();
        let mut backoff = Backoff::new(timeouts);
        let now = Instant::now();
        let asked = Duration::from_secs(7);
        assert_eq!(backoff.failed(now, Some(asked)), Some(asked));
        assert_eq!(backoff.failed(now, Some(Duration::MAX)), Some(timeouts.answer));
    }
}
