//! The streamable HTTP transport of ACP.
//!
//! Each message is a POST. There is one event stream for the connection and one for each session, opened before the
//! session's first message and right after its creation. A DELETE ends the connection. `route` sends the first POST.
//! Invariants: messages of a session are sent in order; a response is accepted from any stream or POST.
//! Source: the protocol's RFD "streamable HTTP and web socket transport"; deviations of servers (a single stream,
//! responses in the POST, other status codes) are accepted as well.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::sync::watch;

use super::envelope::{self, Envelope, Kind};
use super::events::{EventReader, EventStream, Opening, Scope, SharedReader, StreamEnd};
use super::http_context::{Hook, HttpContext, TaskEvent};
use super::http_error::host_of;
use super::outbox::{Inbox, Message, Outbox, Taken, is_close, take};
use crate::acp::lock::lock;
use crate::acp::transport::{LinkEnd, OutboundFrame};

pub const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("acp-protocol-version");

/// Maximum body size in bytes; servers reject longer bodies.
pub const MAX_BODY_BYTES: usize = 16 << 20;

/// Ids of the requests of parlor whose responses contain a new session.
type Creating = Arc<Mutex<HashSet<String>>>;

#[derive(Debug)]
struct SessionStream {
    reader: SharedReader,
    opening: watch::Receiver<Opening>,
    is_closed: Arc<AtomicBool>,
}

#[derive(Debug)]
pub struct Streamable {
    context: HttpContext,
    pub outbox: Outbox<StreamableInbox>,
    url: Url,
    headers: HeaderMap,
    /// The version of the protocol; see [`Outbox`].
    version: Arc<AtomicU64>,
    creating: Creating,
    sessions: BTreeMap<String, SessionStream>,
}

impl Streamable {
    /// Starts a connection with the id from the server. `version`: that of the protocol, if it is known already.
    pub fn start(context: HttpContext, url: Url, connection: HeaderValue, version: Option<u64>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONNECTION_ID, connection);
        let version = Arc::new(AtomicU64::new(version.unwrap_or_default()));
        let creating = Arc::default();
        let inbox = StreamableInbox {
            context: context.clone(),
            hook: hook(&context, &creating, &version),
            host: host_of(url.as_str()),
        };
        let outbox = Outbox::new(context.clone(), inbox, Arc::clone(&version));
        let this = Self { context, outbox, url, headers, version, creating, sessions: BTreeMap::new() };
        let (stream, _) = this.stream(this.headers(), Scope::Connection, this.reader(None));
        let (context, host) = (this.context.clone(), host_of(this.url.as_str()));
        this.context.spawn(async move {
            match stream.run().await.0 {
                StreamEnd::Gone { .. } => context.end(forgotten(&host)),
                StreamEnd::None(status) => {
                    let text = format!(
                        "{host} does not offer an event stream ({status}). Correct the URL, or set another \
                         `transport`."
                    );
                    context.end(LinkEnd::Refused(text));
                }
                StreamEnd::Refused(trouble) => context.end(trouble.into()),
                StreamEnd::Lost(trouble) => context.end(LinkEnd::Io(trouble.text().to_owned())),
                StreamEnd::ReceiverDropped => {}
            }
        });
        this
    }

    pub async fn send(&mut self, frame: &OutboundFrame) -> Result<(), LinkEnd> {
        let OutboundFrame { bytes: frame, session: asking } = frame;
        let text = String::from_utf8_lossy(frame);
        let Some(mut envelope) = envelope::read(&text) else { return Ok(()) };
        if frame.len() > MAX_BODY_BYTES {
            let text = format!(
                "The message is {} MiB; the limit of {} is {} MiB. Send less at once.",
                frame.len() >> 20,
                host_of(self.url.as_str()),
                MAX_BODY_BYTES >> 20
            );
            return Ok(self.context.unsent(&envelope, &text).await?);
        }
        let mut headers = self.headers();
        if envelope.kind == Kind::Response {
            envelope.session = asking.as_deref().map(str::to_owned);
        }
        // These messages belong to the connection.
        let session = envelope.session.clone().filter(|_| !envelope.method.starts_with("$/"));
        let mut opening = None;
        if let Some(session) = &session {
            // The agent chooses the session of its requests, and could name any, so responses open no streams.
            if envelope.kind != Kind::Response {
                opening = self.stream_of(session, &envelope);
            }
            if let Ok(value) = HeaderValue::from_str(session) {
                headers.insert(SESSION_ID, value);
            }
        }
        if envelope.kind == Kind::Request
            && matches!(envelope.method.as_str(), "session/new" | "session/fork")
        {
            lock(&self.creating).extend(envelope.id.clone());
        }
        let (url, frame) = (self.url.clone(), frame.clone());
        self.outbox.send(Message { url, headers, frame, envelope, lane: session, opening }).await
    }

    pub fn open_session(&mut self, session: &str) {
        if !self.sessions.contains_key(session) {
            self.start_session(session, Opening::Waiting);
        }
    }

    fn start_session(&mut self, session: &str, state: Opening) {
        let Ok(value) = HeaderValue::from_str(session) else { return };
        let mut headers = self.headers();
        headers.insert(SESSION_ID, value);
        let is_closed = Arc::<AtomicBool>::default();
        // Without it, the server would send everything again, or nothing of what was missed.
        let saved = self.sessions.get(session).filter(|_| state == Opening::Reopening);
        let reader = saved.map_or_else(|| self.reader(Some(session)), |stream| Arc::clone(&stream.reader));
        let scope = Scope::Session(Arc::clone(&is_closed));
        let (stream, opening) = self.stream(headers, scope, Arc::clone(&reader));
        stream.opening.send_replace(state);
        let was_closed = Arc::clone(&is_closed);
        self.sessions.insert(session.to_owned(), SessionStream { reader, opening, is_closed });
        let context = self.context.clone();
        let (session, host) = (session.to_owned(), host_of(self.url.as_str()));
        self.context.spawn(async move {
            match stream.run().await {
                // The session was closed: its responses may still come on another path.
                (StreamEnd::Gone { was_open }, _) if was_open || was_closed.load(Ordering::Relaxed) => {
                    let text = format!("{host} has closed the session.");
                    for request in context.requests.of_session(&session) {
                        context.fail(&request, &text, true).await;
                    }
                }
                // The session has ended, or the server has one stream for all sessions.
                (StreamEnd::Gone { .. } | StreamEnd::None(_), _) => {
                    context.inlet.trace("The server does not offer an event stream for this session.");
                }
                // The responses would be sent on this stream.
                (StreamEnd::Refused(trouble) | StreamEnd::Lost(trouble), before) => {
                    // Without a receiver, the connection ends.
                    let _ = context.inlet.note(trouble.text().to_owned()).await;
                    let waiting = context.requests.of_session(&session);
                    // Those that wait for the stream to be reopened are not sent.
                    for request in waiting.iter().filter(|_| before != Opening::Reopening) {
                        context.fail(request, trouble.text(), false).await;
                    }
                }
                (StreamEnd::ReceiverDropped, _) => {}
            }
        });
    }

    /// Ends the connection with a DELETE.
    pub async fn farewell(&mut self) {
        let request = self.context.client.request(Method::DELETE, &self.url).headers(self.headers());
        // The connection ends whatever the response is.
        let _ = self.context.client.send(request, |_| true).await;
    }

    /// Opens the stream of a session, which is required before the first message of the session.
    fn stream_of(&mut self, session: &str, envelope: &Envelope) -> Option<watch::Receiver<Opening>> {
        let method = envelope.method.as_str();
        let stream = self.sessions.get(session);
        match stream.map(|stream| *stream.opening.borrow()) {
            None => self.start_session(session, Opening::Waiting),
            Some(Opening::Lost) => self.start_session(session, Opening::Reopening),
            // A session that the server refused to close goes on.
            Some(Opening::Absent)
                if matches!(method, "session/load" | "session/resume")
                    || stream.is_some_and(|stream| stream.is_closed.load(Ordering::Relaxed)) =>
            {
                self.start_session(session, Opening::Waiting);
            }
            Some(_) => {}
        }
        let stream = self.sessions.get(session)?;
        if envelope.kind == Kind::Request {
            let is_closed = is_close(method);
            stream.is_closed.store(is_closed, Ordering::Relaxed);
        }
        Some(stream.opening.clone())
    }

    /// The headers of each message. Source: ACP, streamable HTTP.
    fn headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        let version = self.version.load(Ordering::Relaxed);
        if version > 0 {
            headers.insert(PROTOCOL_VERSION, HeaderValue::from(version));
        }
        headers
    }

    fn reader(&self, session: Option<&str>) -> SharedReader {
        let hook = Arc::clone(&self.outbox.inbox.hook);
        let mut reader = EventReader::new(self.context.inlet.clone(), hook, Some(self.context.timeouts.idle));
        reader.session = session.map(Arc::from);
        Arc::new(tokio::sync::Mutex::new(reader))
    }

    fn stream(
        &self,
        headers: HeaderMap,
        scope: Scope,
        reader: SharedReader,
    ) -> (EventStream, watch::Receiver<Opening>) {
        let (opening, receiver) = watch::channel(Opening::Waiting);
        let (context, url) = (self.context.clone(), self.url.clone());
        let stream = EventStream { context, url, headers, scope, reader, opening, first: None };
        (stream, receiver)
    }
}

/// Collects from incoming messages the version, the new sessions and the answered requests.
fn hook(context: &HttpContext, creating: &Creating, version: &Arc<AtomicU64>) -> Hook {
    let (creating, reported, known) = (Arc::clone(creating), context.reported.clone(), Arc::clone(version));
    context.hook(move |message| {
        if let Envelope { kind: Kind::Response, version: Some(version), .. } = message {
            // Only the first response has one.
            let _ = known.compare_exchange(0, version, Ordering::Relaxed, Ordering::Relaxed);
        }
        if let Envelope { kind: Kind::Response, id: Some(id), session: Some(session), .. } = message
            && lock(&creating).remove(&id)
        {
            let _ = reported.send(TaskEvent::Session(session));
        }
    })
}

#[derive(Clone)]
pub struct StreamableInbox {
    context: HttpContext,
    hook: Hook,
    host: String,
}

impl std::fmt::Debug for StreamableInbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamableInbox").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Inbox for StreamableInbox {
    async fn read(&self, response: Response, envelope: Envelope) {
        if response.status() == StatusCode::NOT_FOUND {
            return self.context.end(forgotten(&self.host));
        }
        if let Ok(Taken::Broken(why)) = take(&self.context, response, &envelope, &self.hook, false).await {
            self.context.fail(&envelope, &why, true).await;
        }
    }
}

/// The server does not know the connection, because it was restarted or discarded it.
fn forgotten(host: &str) -> LinkEnd {
    LinkEnd::Io(format!("{host} closed this connection; it may have been restarted"))
}
