//! State that all HTTP transports of a connection share: the client, the channel to the peer, tasks, timeouts.
//!
//! Invariant: tasks that are spawned here have ended when [`HttpContext::close`] returns, so no event follows the
//! end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::client::Client;
use super::envelope::{self, Envelope};
use super::events::Hook;
use super::http_error::{HttpError, host_of};
use crate::acp::frame::{InboundFrame, sort_whole};
use crate::acp::tap::{Direction, Tap};
use crate::acp::transport::{In, LinkEnd, UNDELIVERED, UNSENT};

/// How patient a connection is.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// From the first message to the head of its answer: the agent behind the server may begin only then.
    pub begin: Duration,
    /// From a request to the head of its answer, where no turn is waited for.
    pub answer: Duration,
    /// A stream whose keep-alive is not known yet may be silent for so long.
    pub idle: Duration,
    /// First pause before a stream is opened or a POST is sent again; it doubles.
    pub least_pause: Duration,
    /// Longest such pause.
    pub most_pause: Duration,
    /// So long is tried again before the connection counts as lost.
    pub give_up: Duration,
    /// What is still to be said has so much time once the connection is to end.
    pub last_words: Duration,
    /// And so much the goodbye to the server.
    pub farewell: Duration,
    /// Between two pings of a web socket that is otherwise quiet.
    pub ping: Duration,
    /// Whoever has answered pings before and answers none for so long is gone.
    pub pong: Duration,
    /// A message waits so long for the server to begin to answer the one before it.
    pub head_start: Duration,
    /// A POST that broke off counts as failed after this time, if its answer may still come on an event stream.
    pub grace: Duration,
    /// An answer in a POST waits so long for updates that were sent before it on the event stream.
    pub settle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            begin: Duration::from_secs(120),
            answer: Duration::from_secs(60),
            // Three times the keep-alive of the protocol's own server.
            idle: Duration::from_secs(45),
            least_pause: Duration::from_millis(250),
            most_pause: Duration::from_secs(15),
            give_up: Duration::from_secs(120),
            last_words: Duration::from_secs(2),
            farewell: Duration::from_secs(1),
            ping: Duration::from_secs(30),
            pong: Duration::from_secs(30),
            head_start: Duration::from_millis(100),
            grace: Duration::from_secs(1),
            settle: Duration::from_millis(50),
        }
    }
}

/// What a task tells the connection.
#[derive(Debug)]
pub enum TaskEvent {
    /// The connection is over.
    End(LinkEnd),
    /// A session began whose stream is to be opened.
    Session(String),
}

/// Nobody listens any more.
#[derive(Debug)]
pub struct Disconnected;

/// The way in for what an agent says.
#[derive(Debug, Clone)]
pub struct Inlet {
    sender: mpsc::Sender<In>,
    tap: Tap,
    /// Longest message, in bytes.
    pub max_bytes: usize,
}

impl Inlet {
    /// A way in that ends at a link's channel.
    pub fn new(sender: mpsc::Sender<In>, tap: Tap, max_bytes: usize) -> Self {
        Self { sender, tap, max_bytes }
    }

    /// Hands pieces on.
    pub async fn pieces(&self, pieces: Vec<InboundFrame>) -> Result<(), Disconnected> {
        if pieces.is_empty() {
            return Ok(());
        }
        self.sender.send(In::Pieces(pieces)).await.map_err(|_| Disconnected)
    }

    /// Passes on the pieces that the hook accepts.
    pub async fn pieces_but(&self, mut pieces: Vec<InboundFrame>, hook: &Hook) -> Result<(), Disconnected> {
        pieces.retain(|piece| !matches!(piece, InboundFrame::Frame(frame) if !hook(frame.text())));
        self.pieces(pieces).await
    }

    /// Hands a whole message on.
    pub async fn message(&self, bytes: &Bytes) -> Result<(), Disconnected> {
        let mut pieces = Vec::new();
        sort_whole(bytes, &mut pieces);
        self.pieces(pieces).await
    }

    /// Tells something irregular.
    pub async fn note(&self, text: String) -> Result<(), Disconnected> {
        self.trace(&text);
        self.sender.send(In::Note(text)).await.map_err(|_| Disconnected)
    }

    /// Writes something of interest into the log.
    pub fn trace(&self, text: &str) {
        self.tap.record(Direction::Stderr, format!("parlor: {text}").as_bytes());
        self.tap.flush();
    }
}

/// What all carriers of a connection share; a clone is the same.
#[derive(Debug, Clone)]
pub struct HttpContext {
    /// The HTTP client.
    pub client: Arc<Client>,
    pub inlet: Inlet,
    /// How patient we are.
    pub patience: Timeouts,
    /// Where tasks tell what concerns the whole connection.
    pub told: mpsc::UnboundedSender<TaskEvent>,
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl HttpContext {
    /// A desk without tasks.
    pub fn new(
        client: Arc<Client>,
        inlet: Inlet,
        patience: Timeouts,
        told: mpsc::UnboundedSender<TaskEvent>,
    ) -> Self {
        Self { client, inlet, patience, told, tasks: Arc::default() }
    }

    /// The same desk with another client.
    #[must_use]
    pub fn with_client(&self, client: Arc<Client>) -> Self {
        Self { client, ..self.clone() }
    }

    /// Runs a task until it ends or the connection does.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Ends all tasks.
    pub async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
    }

    /// Tells the end of the connection.
    pub fn end(&self, end: LinkEnd) {
        let _ = self.told.send(TaskEvent::End(end));
    }

    /// Sends a message by POST, once.
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

    /// A message could not be delivered: whoever waits for its answer gets an error instead.
    pub async fn undelivered(&self, letter: &Envelope, text: &str) -> Result<(), Disconnected> {
        self.fail(letter, UNDELIVERED, text).await
    }

    /// A message was not even sent, because the server cannot take it.
    pub async fn unsent(&self, letter: &Envelope, text: &str) -> Result<(), Disconnected> {
        self.fail(letter, UNSENT, text).await
    }

    async fn fail(&self, letter: &Envelope, mark: &str, text: &str) -> Result<(), Disconnected> {
        if let (Some(id), envelope::Kind::Request) = (&letter.id, letter.kind) {
            return self.inlet.message(&envelope::failure(id, mark, text)).await;
        }
        let what = if letter.method.is_empty() { "A response" } else { letter.method.as_str() };
        self.inlet.note(format!("{what} was not delivered. {text}")).await
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
            HttpError::Refused { text } => Self::Refused(text),
        }
    }
}

/// Whether an answer is of a media type.
pub fn is_of_type(response: &Response, wanted: &str) -> bool {
    let given =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().is_some_and(|given| given.trim().eq_ignore_ascii_case(wanted))
}

/// Whether an answer is an event stream.
pub fn is_events(response: &Response) -> bool {
    is_of_type(response, "text/event-stream")
}

/// The whole body of an answer, up to a limit.
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
                return Err(HttpError::Refused { text });
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body.into()),
            Err(error) => return Err(HttpError::of_error(&error, &url)),
        }
    }
}
