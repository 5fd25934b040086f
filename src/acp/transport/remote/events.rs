//! Reads event streams and keeps them open.
//!
//! Messages of a stream go to the peer in order. A stream that fails, ends or times out is reopened with the id of
//! the last complete event, with growing delays.
//! Invariants: reading waits for the peer, so the server waits for parlor; events that are sent again after a
//! reconnect are skipped; a stream of comments only is read slowly.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout};

use super::envelope;
use super::http_context::{Backoff, HttpContext, is_events};
use super::http_error::{HttpError, host_of};
use super::sse::{SseItem, SseReader};
use crate::acp::frame::InboundFrame;
use crate::acp::transport::Disconnected;
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
    Silent,
}

/// The last events with an id, to detect those that a server sends again after a reconnect. Only the first events of a
/// new stream are compared, by id and data, and only if the server does not repeat ids.
#[derive(Debug, Default)]
struct Seen {
    events: HashMap<u64, u64>,
    order: VecDeque<u64>,
    hasher: RandomState,
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
        let [id, data] = [id.as_bytes(), data].map(|bytes| self.hasher.hash_one(bytes));
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

#[derive(Debug)]
pub struct EventReader {
    sse: SseReader,
    seen: Seen,
    /// Timeout of silence: three times the keep-alive interval of the server, once that was observed.
    max_silence: Option<Duration>,
    min_silence: Duration,
    last_comment: Option<Instant>,
    /// Whether there was an event since the stream was opened.
    has_spoken: bool,
    session: Option<Arc<str>>,
}

impl EventReader {
    /// Creates a reader; `idle` is the timeout until the keep-alive interval of the server is known.
    pub fn new(max_bytes: usize, idle: Option<Duration>, session: Option<Arc<str>>) -> Self {
        Self {
            sse: SseReader::new(max_bytes),
            seen: Seen::default(),
            max_silence: idle,
            min_silence: idle.map_or(MIN_IDLE, |idle| idle.min(MIN_IDLE)),
            last_comment: None,
            has_spoken: false,
            session,
        }
    }

    pub async fn read(
        &mut self,
        response: &mut Response,
        context: &HttpContext,
    ) -> Result<BodyEnd, Disconnected> {
        self.sse.restart();
        (self.seen.is_replay, self.last_comment, self.has_spoken) = (true, None, false);
        let mut items = Vec::new();
        let mut empty_reads = 0_u32;
        loop {
            let chunk = match self.max_silence {
                Some(limit) => timeout(limit, response.chunk()).await,
                None => Ok(response.chunk().await),
            };
            let mut bytes = match chunk {
                Ok(Ok(Some(bytes))) => bytes,
                Ok(Ok(None)) => return Ok(BodyEnd::Ended),
                Ok(Err(error)) => return Ok(BodyEnd::Broken(innermost(&error))),
                Err(_) => return Ok(BodyEnd::Silent),
            };
            // The client reads up to half a MiB at once. The peer decodes a part while the next one is parsed.
            while !bytes.is_empty() {
                self.sse.feed(&bytes.split_to(bytes.len().min(PART_BYTES)), &mut items);
                let is_empty = !self.sse.is_inside() && items.iter().all(|item| *item == SseItem::Comment);
                empty_reads = if is_empty { empty_reads.saturating_add(1) } else { 0 };
                self.pass_on(&mut items, context).await?;
            }
            if empty_reads > MAX_EMPTY_READS {
                sleep(EMPTY_READ_PAUSE).await;
            }
        }
    }

    async fn pass_on(&mut self, items: &mut Vec<SseItem>, context: &HttpContext) -> Result<(), Disconnected> {
        let mut pieces = Vec::new();
        let ends_with_comment = items.last() == Some(&SseItem::Comment);
        for item in items.drain(..).filter(|item| *item != SseItem::Comment) {
            // The server may send comments only while there are no events, so the interval is unknown.
            (self.last_comment, self.has_spoken) = (None, true);
            if let SseItem::Event { id, data, .. } = &item
                && self.seen.is_again(id.as_deref(), data)
            {
                if !std::mem::replace(&mut self.seen.is_reported, true) {
                    context.trace("Skipped events that were sent again after a reconnect.");
                }
                continue;
            }
            envelope::sort_event(item, &mut pieces);
        }
        if ends_with_comment {
            let now = Instant::now();
            if let Some(last) = self.last_comment.replace(now) {
                self.max_silence = Some(((now - last) * 3).max(self.min_silence));
            }
        }
        for piece in &mut pieces {
            if let InboundFrame::Frame(frame) = piece {
                frame.stream.clone_from(&self.session);
            }
        }
        context.drop_repeated(&mut pieces);
        context.pieces(pieces).await
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
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

/// Why a stream has ended: the server does not have it any more, or has no such streams, by this status code.
#[derive(Debug)]
pub enum StreamEnd {
    Gone { was_open: bool },
    None(u16),
    Refused(HttpError),
    Lost(HttpError),
}

#[derive(Debug)]
pub enum Scope {
    /// The messages of a session, and whether it is closed.
    Session(Arc<str>, Arc<AtomicBool>),
    /// The messages of the connection that belong to no session.
    Connection,
    /// All messages, on a server that would treat a new stream as a new client after its restart.
    Everything,
}

impl Scope {
    fn name(&self) -> &'static str {
        match self {
            Self::Session(..) => "session's event stream",
            Self::Connection => "connection's event stream",
            Self::Everything => "event stream",
        }
    }
}

/// The reader of a session's events, which is kept when its stream is replaced.
pub type SharedReader = Arc<Mutex<EventReader>>;

pub struct EventStream {
    pub context: Arc<HttpContext>,
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
    pub async fn run(&mut self) -> Result<(StreamEnd, Opening), Disconnected> {
        let end = self.keep_open().await;
        let before = self.opening.send_replace(match (&self.scope, &end) {
            (Scope::Connection | Scope::Everything, _) => Opening::Failed,
            (Scope::Session(..), Ok(StreamEnd::Gone { .. } | StreamEnd::None(_))) => Opening::Absent,
            (Scope::Session(..), _) => Opening::Lost,
        });
        Ok((end?, before))
    }

    fn was_open(&self) -> bool {
        matches!(*self.opening.borrow(), Opening::Open | Opening::Reopening)
    }

    fn is_closed(&self) -> bool {
        matches!(&self.scope, Scope::Session(_, is_closed) if is_closed.load(Ordering::Relaxed))
    }

    async fn keep_open(&mut self) -> Result<StreamEnd, Disconnected> {
        let context = Arc::clone(&self.context);
        let mut reader = Arc::clone(&self.reader).lock_owned().await;
        let mut backoff = Backoff::new(context.timeouts);
        let mut interruption = None;
        let (host, name) = (host_of(self.url.as_str()), self.scope.name());
        loop {
            let opened_at = Instant::now();
            // Some servers end their streams every few minutes.
            let mut is_usual = false;
            let opened = match self.first.take() {
                Some(response) => Ok(response),
                None => self.open(reader.sse.last_id.as_deref()).await,
            };
            let trouble = match opened {
                Ok(mut response) => {
                    if self.opening.send_replace(Opening::Open) == Opening::Open {
                        context.trace(&format!("The {name} was reopened."));
                    }
                    interruption = None;
                    let end = reader.read(&mut response, &context).await?;
                    if reader.has_spoken || opened_at.elapsed() >= GOOD_LIFE {
                        backoff.reset();
                    }
                    is_usual = matches!(end, BodyEnd::Ended) && !backoff.is_failing();
                    HttpError::on_the_way(match end {
                        BodyEnd::Ended => format!("{host} closed the {name}."),
                        BodyEnd::Silent => format!("{host} stopped sending on the {name}."),
                        BodyEnd::Broken(error) => format!("The {name} from {host} failed: {error}."),
                    })
                }
                Err(Failure::Temporary(trouble)) => trouble,
                Err(Failure::Final(end)) => return Ok(end),
            };
            if self.is_closed() {
                return Ok(StreamEnd::Gone { was_open: self.was_open() });
            }
            if matches!(self.scope, Scope::Everything) && (!self.was_open() || trouble.is_down) {
                return Ok(StreamEnd::Lost(trouble));
            }
            let retry = reader.sse.retry.map(|retry| retry.min(context.timeouts.max_pause));
            let is_first = !backoff.is_failing();
            let Some(pause) = backoff.failed(Instant::now(), trouble.retry_after.max(retry)) else {
                return Ok(StreamEnd::Lost(trouble));
            };
            let text = format!("{} Reopening.", trouble.text);
            if is_usual {
                context.trace(&text);
            } else {
                if is_first {
                    context.note(text).await?;
                }
                interruption.get_or_insert_with(|| context.interrupted());
            }
            context.pause(pause).await;
        }
    }

    async fn open(&self, last_id: Option<&str>) -> Result<Response, Failure> {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(Ok(id)) = last_id.map(|id| HeaderValue::from_bytes(id.as_bytes())) {
            headers.insert(HeaderName::from_static("last-event-id"), id);
        }
        let client = &self.context.client;
        let request = client.request(Method::GET, &self.url).headers(headers);
        let wants = |status: StatusCode| matches!(status.as_u16(), 400 | 404 | 405 | 406 | 409 | 410 | 501);
        let answer = timeout(self.context.timeouts.answer, client.send(request, wants)).await;
        let (host, name, was_open) = (host_of(self.url.as_str()), self.scope.name(), self.was_open());
        let (trouble, end) = match answer {
            Ok(Ok(response)) => match response.status().as_u16() {
                404 | 410 => {
                    (format!("{host} rejected the {name} as unknown."), StreamEnd::Gone { was_open })
                }
                // The server has not detected the loss of the previous stream yet.
                409 => return temporary(format!("{host} reports that the {name} is already open.")),
                status if status < 300 && is_events(&response) => return Ok(response),
                status => (format!("{host} rejected the {name} ({status})."), StreamEnd::None(status)),
            },
            Ok(Err(trouble)) if trouble.is_temporary => return Err(Failure::Temporary(trouble)),
            Ok(Err(trouble)) => (trouble.text.clone(), StreamEnd::Refused(trouble)),
            Err(_) => return temporary(format!("Timed out waiting for {host} to open the {name}.")),
        };
        // The stream of a session is opened again whatever the server responds, unless the session was closed, or the
        // server has never offered the stream.
        let is_refused = matches!(end, StreamEnd::Refused(_));
        let is_wanted = match self.scope {
            Scope::Session(..) => !self.is_closed() && (was_open || is_refused),
            Scope::Connection => was_open && is_refused,
            Scope::Everything => false,
        };
        if is_wanted { temporary(trouble) } else { Err(Failure::Final(end)) }
    }
}

enum Failure {
    Temporary(HttpError),
    Final(StreamEnd),
}

fn temporary(text: String) -> Result<Response, Failure> {
    Err(Failure::Temporary(HttpError::on_the_way(text)))
}
