//! Reads event streams and keeps them open.
//!
//! Messages of a stream go to the peer in order. A stream that fails, ends or times out is reopened with the id of
//! the last complete event, with growing delays.
//! Invariants: reading waits for the peer, so the server waits for parlor; events that are sent again after a
//! reconnect are skipped; a stream of comments only is read slowly.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout};

use super::backoff::Backoff;
use super::envelope;
use super::http_context::{Hook, HttpContext, Inlet, is_events};
use super::http_error::{HttpError, host_of};
use super::sse::{SseItem, SseReader};
use crate::acp::frame::InboundFrame;
use crate::tls::innermost;

/// Minimum timeout of a silent stream, however short the keep-alive interval of the server is.
const MIN_IDLE: Duration = Duration::from_secs(10);

/// A stream that was open for this long resets the delay before the next attempt.
const GOOD_LIFE: Duration = Duration::from_secs(10);

/// After this number of consecutive reads with comments only, each is followed by a pause.
const MAX_EMPTY_READS: u32 = 32;
const EMPTY_READ_PAUSE: Duration = Duration::from_millis(20);

/// How many bytes are parsed before their events are passed on.
const PART_BYTES: usize = 64 << 10;

/// Number of events that are remembered to detect those that are sent again after a reconnect; about 3 MiB.
const MAX_SEEN: usize = 65_536;

#[derive(Debug)]
pub enum BodyEnd {
    Ended,
    Broken(String),
    /// The server sent nothing for too long.
    Silent,
    ReceiverDropped,
}

/// Timeout of a silent stream: three times the observed keep-alive interval of the server.
#[derive(Debug)]
struct Silence {
    limit: Option<Duration>,
    min: Duration,
    last_comment: Option<Instant>,
}

impl Silence {
    fn on_comment(&mut self) {
        let now = Instant::now();
        if let Some(last) = self.last_comment.replace(now) {
            self.limit = Some(((now - last) * 3).max(self.min));
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
    events: HashMap<u64, u64>,
    /// The ids, oldest first.
    order: VecDeque<u64>,
    is_replay: bool,
    has_repeated_ids: bool,
    is_reported: bool,
}

impl Seen {
    /// Whether this event was received before; otherwise it is remembered.
    fn is_again(&mut self, id: Option<&str>, data: &[u8]) -> bool {
        let Some(id) = id else {
            self.is_replay = false;
            return false;
        };
        let (id, data) = (hash(id.as_bytes()), hash(data));
        let known = self.events.get(&id).copied();
        if self.is_replay && !self.has_repeated_ids && known == Some(data) {
            return true;
        }
        if !std::mem::take(&mut self.is_replay) {
            self.has_repeated_ids |= known.is_some();
        }
        if self.events.insert(id, data).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > MAX_SEEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.events.remove(&oldest);
        }
        false
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

pub struct EventReader {
    sse: SseReader,
    seen: Seen,
    inlet: Inlet,
    hook: Hook,
    silence: Silence,
    /// Whether there was an event since the stream was opened.
    has_spoken: bool,
    /// The session of the stream; its messages are marked with it.
    pub session: Option<Arc<str>>,
}

impl std::fmt::Debug for EventReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventReader").field("session", &self.session).finish_non_exhaustive()
    }
}

impl EventReader {
    /// Creates a reader; `idle` is the timeout until the keep-alive interval of the server is known.
    pub fn new(inlet: Inlet, hook: Hook, idle: Option<Duration>) -> Self {
        let min = idle.map_or(MIN_IDLE, |idle| idle.min(MIN_IDLE));
        let silence = Silence { limit: idle, min, last_comment: None };
        let (sse, seen) = (SseReader::new(inlet.max_bytes), Seen::default());
        Self { sse, seen, inlet, hook, silence, has_spoken: false, session: None }
    }

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
            let mut bytes = match chunk {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return BodyEnd::Ended,
                Err(error) => return BodyEnd::Broken(innermost(&error)),
            };
            // The client reads up to half a MiB at once. The peer decodes a part while the next one is parsed.
            while !bytes.is_empty() {
                self.sse.feed(&bytes.split_to(bytes.len().min(PART_BYTES)), &mut items);
                let is_empty = !self.sse.is_inside() && items.iter().all(|item| *item == SseItem::Comment);
                empty_reads = if is_empty { empty_reads.saturating_add(1) } else { 0 };
                if self.hand_on(&mut items).await.is_err() {
                    return BodyEnd::ReceiverDropped;
                }
            }
            if empty_reads > MAX_EMPTY_READS {
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
                if !std::mem::replace(&mut self.seen.is_reported, true) {
                    self.inlet.trace("Skipped events that were sent again after a reconnect.");
                }
                continue;
            }
            envelope::sort_event(item, &mut pieces);
        }
        if ends_with_comment {
            self.silence.on_comment();
        }
        for piece in &mut pieces {
            if let InboundFrame::Frame(frame) = piece {
                frame.stream.clone_from(&self.session);
            }
        }
        self.inlet.pieces_but(pieces, &self.hook).await
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Not open yet.
    Waiting,
    /// Opened at least once, and being reopened if it was cut.
    Open,
    /// Lost before, and being opened again.
    Reopening,
    /// The server does not offer it; the connection continues without it.
    Absent,
    /// It could not be opened, or opened again, in time.
    Lost,
    /// Closed for good; the connection ends.
    Failed,
}

#[derive(Debug)]
pub enum StreamEnd {
    /// The server does not have the stream.
    Gone {
        was_open: bool,
    },
    /// The server has no such streams; the value is the status code.
    None(u16),
    /// The server rejected the stream.
    Refused(HttpError),
    /// The stream could not be opened in time.
    Lost(HttpError),
    ReceiverDropped,
}

/// What a stream carries.
#[derive(Debug)]
pub enum Scope {
    /// The messages of a session; the value is set once the session is closed.
    Session(Arc<AtomicBool>),
    /// The messages of the connection that belong to no session.
    Connection,
    /// All messages, on a server that would treat a new stream as a new client after its restart.
    Everything,
}

impl Scope {
    fn name(&self) -> &'static str {
        match self {
            Self::Session(_) => "session's event stream",
            Self::Connection => "connection's event stream",
            Self::Everything => "event stream",
        }
    }
}

/// The reader of a session's events, which is kept when its stream is replaced.
pub type SharedReader = Arc<Mutex<EventReader>>;

/// A stream that is reopened when it ends.
pub struct EventStream {
    pub context: HttpContext,
    pub url: Url,
    pub headers: HeaderMap,
    pub scope: Scope,
    pub reader: SharedReader,
    pub opening: watch::Sender<Opening>,
    /// The response to a GET that already opened the stream.
    pub first: Option<Response>,
}

impl EventStream {
    /// Reconnects the stream until reconnecting fails permanently. Also returns the state before the end.
    pub async fn run(mut self) -> (StreamEnd, Opening) {
        let end = self.keep_open().await;
        let before = self.opening.send_replace(match self.scope {
            Scope::Connection | Scope::Everything => Opening::Failed,
            Scope::Session(_) => match end {
                StreamEnd::Gone { .. } | StreamEnd::None(_) => Opening::Absent,
                StreamEnd::Refused(_) | StreamEnd::Lost(_) | StreamEnd::ReceiverDropped => Opening::Lost,
            },
        });
        (end, before)
    }

    fn was_open(&self) -> bool {
        matches!(*self.opening.borrow(), Opening::Open | Opening::Reopening)
    }

    fn is_closed(&self) -> bool {
        matches!(&self.scope, Scope::Session(is_closed) if is_closed.load(Ordering::Relaxed))
    }

    async fn keep_open(&mut self) -> StreamEnd {
        let mut reader = Arc::clone(&self.reader).lock_owned().await;
        let mut backoff = Backoff::new(self.context.timeouts);
        let mut interruption = None;
        let (host, name) = (host_of(self.url.as_str()), self.scope.name());
        loop {
            let opened_at = Instant::now();
            // Some servers end their streams every few minutes.
            let mut is_usual = false;
            let opened = match self.first.take() {
                Some(response) => Ok(response),
                None => self.open(reader.sse.last_id()).await,
            };
            let trouble = match opened {
                Ok(mut response) => {
                    if self.opening.send_replace(Opening::Open) == Opening::Open {
                        self.context.inlet.trace(&format!("The {name} was reopened."));
                    }
                    interruption = None;
                    let end = reader.read(&mut response).await;
                    if reader.has_spoken || opened_at.elapsed() >= GOOD_LIFE {
                        backoff.reset();
                    }
                    is_usual = matches!(end, BodyEnd::Ended) && !backoff.is_failing();
                    let text = match end {
                        BodyEnd::ReceiverDropped => return StreamEnd::ReceiverDropped,
                        BodyEnd::Ended => format!("{host} closed the {name}."),
                        BodyEnd::Silent => format!("{host} stopped sending on the {name}."),
                        BodyEnd::Broken(error) => format!("The {name} from {host} failed: {error}."),
                    };
                    HttpError::on_the_way(text)
                }
                Err(end) => match self.temporary(end) {
                    Ok(trouble) => trouble,
                    Err(end) => return end,
                },
            };
            if self.is_closed() {
                return StreamEnd::Gone { was_open: self.was_open() };
            }
            if matches!(self.scope, Scope::Everything)
                && (!self.was_open() || matches!(trouble, HttpError::Network { is_down: true, .. }))
            {
                return StreamEnd::Lost(trouble);
            }
            let retry = reader.sse.retry().map(|retry| retry.min(self.context.timeouts.max_pause));
            let is_first = !backoff.is_failing();
            let Some(pause) = backoff.failed(Instant::now(), trouble.retry_after().max(retry)) else {
                return StreamEnd::Lost(trouble);
            };
            let text = format!("{} Reopening.", trouble.text());
            if is_usual {
                self.context.inlet.trace(&text);
            } else {
                if is_first && self.context.inlet.note(text).await.is_err() {
                    return StreamEnd::ReceiverDropped;
                }
                interruption.get_or_insert_with(|| self.context.interrupted());
            }
            self.context.pause(pause).await;
        }
    }

    /// The failure after which the stream is opened again, or its end. The stream of a session is opened again whatever
    /// the server responds, unless the session was closed, or the server has never offered the stream.
    fn temporary(&self, end: StreamEnd) -> Result<HttpError, StreamEnd> {
        let is_wanted = match &self.scope {
            Scope::Session(_) => {
                !self.is_closed() && (self.was_open() || matches!(end, StreamEnd::Refused(_)))
            }
            Scope::Connection => self.was_open() && matches!(end, StreamEnd::Refused(_)),
            Scope::Everything => false,
        };
        let (host, name) = (host_of(self.url.as_str()), self.scope.name());
        match end {
            StreamEnd::Lost(trouble) => Ok(trouble),
            StreamEnd::Refused(trouble) if is_wanted => Ok(trouble),
            StreamEnd::Gone { .. } if is_wanted => {
                Ok(HttpError::on_the_way(format!("{host} rejected the {name} as unknown.")))
            }
            StreamEnd::None(status) if is_wanted => {
                Ok(HttpError::on_the_way(format!("{host} rejected the {name} ({status}).")))
            }
            end => Err(end),
        }
    }

    async fn open(&self, last_id: Option<&str>) -> Result<Response, StreamEnd> {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_id
            && let Ok(value) = HeaderValue::from_bytes(id.as_bytes())
        {
            headers.insert(HeaderName::from_static("last-event-id"), value);
        }
        let request = self.context.client.request(Method::GET, &self.url).headers(headers);
        let wants = |status: StatusCode| matches!(status.as_u16(), 400 | 404 | 405 | 406 | 409 | 410 | 501);
        let answer = timeout(self.context.timeouts.answer, self.context.client.send(request, wants)).await;
        let (host, name) = (host_of(self.url.as_str()), self.scope.name());
        let temporary = |text: String| Err(StreamEnd::Lost(HttpError::on_the_way(text)));
        let response = match answer {
            Ok(Ok(response)) => response,
            Ok(Err(trouble @ HttpError::Network { .. })) => return Err(StreamEnd::Lost(trouble)),
            Ok(Err(trouble)) => return Err(StreamEnd::Refused(trouble)),
            Err(_) => return temporary(format!("Timed out waiting for {host} to open the {name}.")),
        };
        match response.status().as_u16() {
            404 | 410 => Err(StreamEnd::Gone { was_open: self.was_open() }),
            // The server has not detected the loss of the previous stream yet.
            409 => temporary(format!("{host} reports that the {name} is already open.")),
            status @ (400 | 405 | 406 | 501) => Err(StreamEnd::None(status)),
            status if !is_events(&response) => Err(StreamEnd::None(status)),
            _ => Ok(response),
        }
    }
}
