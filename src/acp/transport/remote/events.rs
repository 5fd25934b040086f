//! Reads event streams and keeps them open.
//!
//! Messages of a stream go to the peer in order. A stream that fails, ends or times out is reopened with the id of
//! the last complete event, with growing delays.
//! Invariants: reading waits for the peer, so the server waits for parlor; events that are sent again after a
//! reconnect are skipped; a stream of comments only is read slowly.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::envelope;
use super::http_context::{HttpContext, Inlet, is_events};
use super::http_error::{HttpError, host_of, innermost};
use super::sse::{SseItem, SseReader};

/// Minimum timeout of a silent stream, however short the keep-alive interval of the server is.
const LEAST_IDLE: Duration = Duration::from_secs(10);

/// A stream that was open for this long resets the delay before the next attempt.
const GOOD_LIFE: Duration = Duration::from_secs(10);

/// After this number of consecutive reads with comments only, each is followed by a pause.
const MOST_EMPTY_READS: u32 = 32;
const EMPTY_READ_PAUSE: Duration = Duration::from_millis(20);

/// Number of events that are remembered to detect those that are sent again after a reconnect.
const MOST_SEEN: usize = 256;

/// Inspects each message, and returns whether to pass it on.
pub type Hook = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// How reading a body ended.
#[derive(Debug)]
pub enum BodyEnd {
    /// The server ended the body.
    Ended,
    Broken(String),
    /// The server sent nothing for too long.
    Silent,
    /// The receiver was dropped.
    ReceiverDropped,
}

/// Timeout of a silent stream: three times the observed keep-alive interval of the server.
#[derive(Debug)]
struct Silence {
    limit: Option<Duration>,
    least: Duration,
    last_comment: Option<Instant>,
}

impl Silence {
    fn on_comment(&mut self) {
        let now = Instant::now();
        if let Some(last) = self.last_comment.replace(now) {
            self.limit = Some(((now - last) * 3).max(self.least));
        }
    }

    fn on_event(&mut self) {
        // The server may send comments only while there are no events, so the interval is unknown.
        self.last_comment = None;
    }
}

/// The last events with an id, to detect those that a server sends again after a reconnect. Only the first events of a
/// new stream are compared, by id and data, and only if the server does not repeat ids.
#[derive(Debug, Default)]
struct Seen {
    /// Hashes of the id, and of id and data.
    events: VecDeque<(u64, u64)>,
    is_replay: bool,
    has_repeated_ids: bool,
    is_told: bool,
}

impl Seen {
    /// Whether this event was received before; otherwise it is remembered.
    fn is_again(&mut self, id: Option<&str>, data: &[u8]) -> bool {
        let Some(id) = id else {
            self.is_replay = false;
            return false;
        };
        let key = (hash(id.as_bytes(), &[]), hash(id.as_bytes(), data));
        if self.is_replay && !self.has_repeated_ids && self.events.contains(&key) {
            return true;
        }
        if !std::mem::take(&mut self.is_replay) {
            self.has_repeated_ids |= self.events.iter().any(|(id, _)| *id == key.0);
        }
        if self.events.len() >= MOST_SEEN {
            self.events.pop_front();
        }
        self.events.push_back(key);
        false
    }
}

fn hash(id: &[u8], data: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (id, data).hash(&mut hasher);
    hasher.finish()
}

/// Reads event streams of one kind.
pub struct EventReader {
    sse: SseReader,
    seen: Seen,
    inlet: Inlet,
    hook: Hook,
    silence: Silence,
    /// Whether there was an event since the stream was opened.
    has_spoken: bool,
}

impl EventReader {
    /// Creates a reader; `idle` is the timeout until the keep-alive interval of the server is known.
    pub fn new(inlet: Inlet, hook: Hook, idle: Option<Duration>) -> Self {
        let least = idle.map_or(LEAST_IDLE, |idle| idle.min(LEAST_IDLE));
        let silence = Silence { limit: idle, least, last_comment: None };
        let (sse, seen) = (SseReader::new(inlet.max_bytes), Seen::default());
        Self { sse, seen, inlet, hook, silence, has_spoken: false }
    }

    /// Reads a body to its end.
    pub async fn read(&mut self, response: &mut Response) -> BodyEnd {
        self.sse.restart();
        self.seen.is_replay = true;
        self.silence.last_comment = None;
        self.has_spoken = false;
        let mut items = Vec::new();
        let mut empty_reads = 0_u32;
        loop {
            let chunk = match self.silence.limit {
                Some(limit) => match timeout(limit, response.chunk()).await {
                    Ok(chunk) => chunk,
                    Err(_) => return BodyEnd::Silent,
                },
                None => response.chunk().await,
            };
            match chunk {
                Ok(Some(bytes)) => self.sse.feed(&bytes, &mut items),
                Ok(None) => return BodyEnd::Ended,
                Err(error) => return BodyEnd::Broken(innermost(&error)),
            }
            let is_empty = !self.sse.is_inside() && items.iter().all(|item| *item == SseItem::Comment);
            empty_reads = if is_empty { empty_reads.saturating_add(1) } else { 0 };
            if self.hand_on(&mut items).await.is_err() {
                return BodyEnd::ReceiverDropped;
            }
            if empty_reads > MOST_EMPTY_READS {
                sleep(EMPTY_READ_PAUSE).await;
            }
        }
    }

    async fn hand_on(&mut self, items: &mut Vec<SseItem>) -> Result<(), super::http_context::Disconnected> {
        let mut pieces = Vec::new();
        let ends_with_comment = items.last() == Some(&SseItem::Comment);
        for item in items.drain(..) {
            if item == SseItem::Comment {
                continue;
            }
            self.silence.on_event();
            self.has_spoken = true;
            if let SseItem::Event { id, data, .. } = &item
                && self.seen.is_again(id.as_deref(), data)
            {
                if !std::mem::replace(&mut self.seen.is_told, true) {
                    self.inlet.trace("Skipped events that were sent again after a reconnect.");
                }
                continue;
            }
            envelope::sort_event(item, &mut pieces);
        }
        if ends_with_comment {
            self.silence.on_comment();
        }
        self.inlet.pieces_but(pieces, &self.hook).await
    }
}

/// The state of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Not open yet.
    Waiting,
    /// Opened at least once.
    Open,
    /// Closed for good; the connection continues without it.
    Closed,
    /// Closed for good; the connection ends.
    Failed,
}

/// Why a stream was closed.
#[derive(Debug)]
pub enum StreamEnd {
    /// The server does not have the stream.
    Gone {
        /// Whether it was open before.
        was_open: bool,
    },
    /// The server has no such streams; the value is the status code.
    None(u16),
    /// The server rejected the stream.
    Refused(HttpError),
    /// The stream could not be opened in time.
    Lost(HttpError),
    /// The receiver was dropped.
    ReceiverDropped,
}

/// A stream that is reopened when it ends.
pub struct EventStream {
    pub context: HttpContext,
    pub url: Url,
    pub headers: HeaderMap,
    /// The name of the stream in messages.
    pub name: &'static str,
    pub reader: EventReader,
    /// Reports the state of the stream.
    pub opening: watch::Sender<Opening>,
    /// The response to a GET that already opened the stream.
    pub first: Option<Response>,
    /// Whether the stream fails if the first attempt fails.
    pub is_first_final: bool,
    /// Whether a restarted server loses the connection without reporting it.
    pub is_forgetful: bool,
}

impl EventStream {
    /// Reconnects the stream until reconnecting fails permanently.
    pub async fn run(mut self) -> StreamEnd {
        let end = self.keep_open().await;
        self.opening.send_replace(if self.is_first_final { Opening::Failed } else { Opening::Closed });
        end
    }

    async fn keep_open(&mut self) -> StreamEnd {
        let timeouts = self.context.timeouts;
        let mut pause = timeouts.least_pause;
        let mut failing_since: Option<Instant> = None;
        let mut is_told = false;
        loop {
            let opened_at = Instant::now();
            // Some servers end their streams every few minutes.
            let mut is_usual = false;
            let opened = match self.first.take() {
                Some(response) => Ok(response),
                None => self.open().await,
            };
            let trouble = match opened {
                Ok(mut response) => {
                    if self.opening.send_replace(Opening::Open) == Opening::Open {
                        self.context.inlet.trace(&format!("The {} was reopened.", self.name));
                    }
                    let end = self.reader.read(&mut response).await;
                    let was_good = self.reader.has_spoken || opened_at.elapsed() >= GOOD_LIFE;
                    if was_good {
                        pause = timeouts.least_pause;
                        failing_since = None;
                        is_told = false;
                    }
                    let host = host_of(self.url.as_str());
                    is_usual = matches!(end, BodyEnd::Ended);
                    let text = match end {
                        BodyEnd::ReceiverDropped => return StreamEnd::ReceiverDropped,
                        BodyEnd::Ended => format!("{host} closed the {}.", self.name),
                        BodyEnd::Silent => format!("{host} stopped sending on the {}.", self.name),
                        BodyEnd::Broken(error) => format!("The {} from {host} failed: {error}.", self.name),
                    };
                    HttpError::on_the_way(text)
                }
                Err(Ok(end)) => return end,
                Err(Err(trouble)) => trouble,
            };
            let is_first = *self.opening.borrow() == Opening::Waiting;
            if is_first && self.is_first_final {
                return StreamEnd::Lost(trouble);
            }
            if self.is_forgetful && matches!(trouble, HttpError::Network { is_down: true, .. }) {
                // The server would treat it as a new stream, and never answer earlier requests.
                return StreamEnd::Lost(trouble);
            }
            let since = *failing_since.get_or_insert(opened_at);
            if since.elapsed() >= timeouts.give_up {
                return StreamEnd::Lost(trouble);
            }
            let text = format!("{} Reopening.", trouble.text());
            if is_usual {
                self.context.inlet.trace(&text);
            } else if !std::mem::replace(&mut is_told, true) && self.context.inlet.note(text).await.is_err() {
                return StreamEnd::ReceiverDropped;
            }
            let wished = self.reader.sse.retry().unwrap_or_default().min(timeouts.most_pause);
            sleep(pause.max(wished)).await;
            pause = (pause * 2).min(timeouts.most_pause);
        }
    }

    /// Opens the stream once. `Ok`: the response; `Err(Ok)`: a permanent end; `Err(Err)`: a temporary error.
    async fn open(&self) -> Result<Response, Result<StreamEnd, HttpError>> {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = self.reader.sse.last_id()
            && let Ok(value) = HeaderValue::from_bytes(id.as_bytes())
        {
            headers.insert(HeaderName::from_static("last-event-id"), value);
        }
        let request = self.context.client.request(Method::GET, &self.url).headers(headers);
        let wants = |status: StatusCode| matches!(status.as_u16(), 400 | 404 | 405 | 406 | 409 | 410 | 501);
        let answer = timeout(self.context.timeouts.answer, self.context.client.send(request, wants)).await;
        let host = host_of(self.url.as_str());
        let response = match answer {
            Ok(Ok(response)) => response,
            Ok(Err(trouble @ HttpError::Network { .. })) => return Err(Err(trouble)),
            Ok(Err(trouble)) => return Err(Ok(StreamEnd::Refused(trouble))),
            Err(_) => {
                let text = format!("Timed out waiting for {host} to open the {}.", self.name);
                return Err(Err(HttpError::on_the_way(text)));
            }
        };
        match response.status().as_u16() {
            404 | 410 => Err(Ok(StreamEnd::Gone { was_open: *self.opening.borrow() == Opening::Open })),
            // The server has not detected the loss of the previous stream yet.
            409 => {
                let text = format!("{host} reports that the {} is already open.", self.name);
                Err(Err(HttpError::on_the_way(text)))
            }
            status @ (400 | 405 | 406 | 501) => Err(Ok(StreamEnd::None(status))),
            status if !is_events(&response) => Err(Ok(StreamEnd::None(status))),
            _ => Ok(response),
        }
    }
}
