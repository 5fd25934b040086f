//! State that all HTTP transports of a connection share: the client, the channel to the peer, tasks, timeouts.
//!
//! Invariant: tasks that are spawned here have ended when [`HttpContext::close`] returns, so no event follows the
//! end.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use memchr::memmem::Finder;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::client::Client;
use super::envelope::{self, Envelope, Kind};
use super::http_error::{HttpError, host_of};
use super::requests::Requests;
use crate::acp::frame::{InboundFrame, sort_whole};
use crate::acp::lock::lock;
use crate::acp::tap::{Direction, OWN_LINE, Tap};
use crate::acp::transport::inbound::Sink;
use crate::acp::transport::{In, LinkEnd, UNDELIVERED, UNSENT};

pub use crate::acp::transport::Disconnected;

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
    pub settle: Duration,
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
            settle: Duration::from_millis(50),
        }
    }
}

/// An event of a task that concerns the whole connection.
#[derive(Debug)]
pub enum TaskEvent {
    End(LinkEnd),
    /// A session was created whose stream is needed.
    Session(String),
}

/// Inspects each message, and returns whether to pass it on.
pub type Hook = Arc<dyn Fn(&str) -> bool + Send + Sync>;

#[derive(Debug, Clone)]
pub struct Inlet {
    pub sink: Sink,
    pub tap: Tap,
    /// Maximum message size in bytes.
    pub max_bytes: usize,
}

impl Inlet {
    pub async fn pieces(&self, pieces: Vec<InboundFrame>) -> Result<(), Disconnected> {
        if pieces.is_empty() {
            return Ok(());
        }
        self.sink.send(In::Pieces(pieces)).await
    }

    /// Sends the messages that the hook accepts to the peer.
    pub async fn pieces_but(&self, mut pieces: Vec<InboundFrame>, hook: &Hook) -> Result<(), Disconnected> {
        pieces.retain(|piece| !matches!(piece, InboundFrame::Frame(frame) if !hook(frame.text())));
        self.pieces(pieces).await
    }

    pub async fn message(&self, bytes: &Bytes) -> Result<(), Disconnected> {
        let mut pieces = Vec::new();
        sort_whole(bytes, &mut pieces);
        self.pieces(pieces).await
    }

    pub async fn note(&self, text: String) -> Result<(), Disconnected> {
        self.trace(&text);
        self.sink.send(In::Note(text)).await
    }

    /// Writes a line to the protocol log.
    pub fn trace(&self, text: &str) {
        self.tap.record(Direction::Stderr, format!("{OWN_LINE}{text}").as_bytes());
        self.tap.flush();
    }
}

/// State that the tasks of a connection share; clones share it.
#[derive(Debug, Clone)]
pub struct HttpContext {
    pub client: Arc<Client>,
    pub inlet: Inlet,
    pub timeouts: Timeouts,
    /// The requests of parlor without an outcome.
    pub requests: Arc<Requests>,
    /// Receives events that concern the whole connection.
    pub reported: mpsc::UnboundedSender<TaskEvent>,
    retry: Arc<Notify>,
    /// The number of existing [`Interruption`]s.
    interruptions: Arc<Mutex<usize>>,
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl HttpContext {
    pub fn new(
        client: Arc<Client>,
        inlet: Inlet,
        timeouts: Timeouts,
        reported: mpsc::UnboundedSender<TaskEvent>,
        retry: Arc<Notify>,
    ) -> Self {
        let (requests, interruptions, tasks) = (Arc::default(), Arc::default(), Arc::default());
        Self { client, inlet, timeouts, requests, reported, retry, interruptions, tasks }
    }

    /// Waits before the next attempt, unless the user wants it now.
    pub async fn pause(&self, time: Duration) {
        // Without a result: both are reasons to go on.
        let _ = timeout(time, self.retry.notified()).await;
    }

    /// Reports the connection as interrupted until the returned value is dropped.
    pub fn interrupted(&self) -> Interruption {
        Interruption::new(Arc::clone(&self.interruptions), self.inlet.sink.clone())
    }

    #[must_use]
    pub fn with_client(&self, client: Arc<Client>) -> Self {
        Self { client, ..self.clone() }
    }

    /// Runs a task until it ends or the connection does.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    pub async fn close(&self) {
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        tasks.shutdown().await;
    }

    pub fn end(&self, end: LinkEnd) {
        let _ = self.reported.send(TaskEvent::End(end));
    }

    /// Sends a message by POST, without retries.
    pub async fn post_once(
        &self,
        url: &Url,
        headers: &HeaderMap,
        frame: &Bytes,
        wants: impl Fn(StatusCode) -> bool,
    ) -> Result<Response, HttpError> {
        let request = self
            .client
            .request(Method::POST, url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .headers(headers.clone())
            .body(frame.clone());
        self.client.send(request, wants).await
    }

    /// Drops second responses to the same request, and passes all other messages with an id to `also`.
    pub fn hook(&self, also: impl Fn(Envelope) + Send + Sync + 'static) -> Hook {
        let (requests, inlet) = (Arc::clone(&self.requests), self.inlet.clone());
        Arc::new(move |text| {
            // Skips parsing for updates, which are most of the messages.
            if ID.find(text.as_bytes()).is_none() {
                return true;
            }
            let Some(envelope) = envelope::read(text) else { return true };
            let is_news = envelope.kind != Kind::Response || requests.on_response(&envelope);
            if is_news {
                also(envelope);
            } else {
                inlet.trace("Skipped a second response to the same request.");
            }
            is_news
        })
    }

    /// Reports that a request failed, unless it has an outcome. `has_stream`: the response may still arrive on a stream.
    pub async fn fail(&self, envelope: &Envelope, why: &str, has_stream: bool) {
        if has_stream && envelope.kind == Kind::Request {
            let _ = timeout(self.timeouts.grace, self.requests.closed(envelope)).await;
        }
        if self.requests.on_failure(envelope) {
            let _ = self.undelivered(envelope, why).await;
        }
    }

    /// Reports a message that was not delivered; a request gets an error response.
    pub async fn undelivered(&self, envelope: &Envelope, text: &str) -> Result<(), Disconnected> {
        self.report(envelope, UNDELIVERED, text).await
    }

    /// Reports a message that was not sent, because of a limit of the server.
    pub async fn unsent(&self, envelope: &Envelope, text: &str) -> Result<(), Disconnected> {
        self.report(envelope, UNSENT, text).await
    }

    async fn report(&self, envelope: &Envelope, mark: &str, text: &str) -> Result<(), Disconnected> {
        if let (Some(id), Kind::Request) = (&envelope.id, envelope.kind) {
            return self.inlet.message(&envelope::failure(id, mark, text)).await;
        }
        let what = if envelope.method.is_empty() { "A response" } else { envelope.method.as_str() };
        let text = format!("{what} was not delivered. {text}");
        self.inlet.trace(&text);
        self.inlet.sink.send(In::Undelivered { session: envelope.session.clone(), text }).await
    }
}

/// While one of a connection exists, the connection is reported as interrupted.
#[derive(Debug)]
pub struct Interruption {
    count: Arc<Mutex<usize>>,
    sink: Sink,
}

impl Interruption {
    fn new(count: Arc<Mutex<usize>>, sink: Sink) -> Self {
        let this = Self { count, sink };
        this.change(|count| *count += 1, 1);
        this
    }

    /// Changes the count, and reports that the connection is interrupted or restored when it becomes `reported`.
    fn change(&self, change: impl FnOnce(&mut usize), reported: usize) {
        let mut count = lock(&self.count);
        change(&mut count);
        if *count == reported {
            self.sink.report(In::Interrupted(reported > 0));
        }
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        self.change(|count| *count -= 1, 0);
    }
}

impl From<Disconnected> for LinkEnd {
    fn from(_: Disconnected) -> Self {
        Self::Eof
    }
}

impl From<HttpError> for LinkEnd {
    fn from(trouble: HttpError) -> Self {
        match trouble {
            HttpError::Network { text, .. } => Self::Unreachable(text),
            HttpError::Refused { text, .. } => Self::Refused(text),
        }
    }
}

pub fn is_of_type(response: &Response, wanted: &str) -> bool {
    let given =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().is_some_and(|given| given.trim().eq_ignore_ascii_case(wanted))
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
                let text = format!(
                    "The response of {} is over the limit of {} MiB. Request less at once.",
                    host_of(&url),
                    max_bytes >> 20
                );
                return Err(HttpError::refused(text));
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body.into()),
            Err(error) => return Err(HttpError::of_error(&error, &url)),
        }
    }
}
