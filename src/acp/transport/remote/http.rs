//! The streamable HTTP transport of ACP.
//!
//! Each message is a POST. There is one event stream for the connection and one for each session, opened before the
//! session's first message and right after its creation. A DELETE ends the connection. `probe` sends the first POST.
//! Invariants: messages of a session are sent in order; a response is accepted from any stream or POST.
//! Source: the protocol's RFD "streamable HTTP and web socket transport"; deviations of servers (a single stream,
//! responses in the POST, other status codes) are accepted as well.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::sync::watch;

use super::envelope::{self, Envelope, Kind};
use super::events::{EventReader, EventStream, Hook, Opening, StreamEnd};
use super::http_context::{HttpContext, TaskEvent};
use super::http_error::host_of;
use super::outbox::{Inbox, Message, Outbox, Requests, Taken, fail, take};
use crate::acp::transport::LinkEnd;

/// The header with the id of the connection.
pub const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("acp-protocol-version");

/// Maximum body size in bytes; servers reject longer bodies.
pub const MAX_BODY_BYTES: usize = 16 << 20;

/// Maximum number of the agent's open requests whose session is remembered.
const MOST_ASKED: usize = 16_384;

/// State that the streams and the outbox share.
#[derive(Debug, Default)]
struct Threads {
    /// The session of each open request of the agent, by the request's id.
    asked: HashMap<String, String>,
    /// Requests of parlor whose responses contain a new session.
    creating: HashSet<String>,
}

/// A connection over the streamable HTTP transport.
#[derive(Debug)]
pub struct Streamable {
    context: HttpContext,
    pub outbox: Outbox<StreamableInbox>,
    url: Url,
    headers: HeaderMap,
    threads: Arc<Mutex<Threads>>,
    sessions: HashMap<String, watch::Receiver<Opening>>,
}

impl Streamable {
    /// Starts a connection with the id from the server. `version` is the protocol version in its response.
    pub fn start(context: HttpContext, url: Url, connection: HeaderValue, version: Option<u64>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONNECTION_ID, connection);
        if let Some(version) = version {
            headers.insert(PROTOCOL_VERSION, HeaderValue::from(version));
        }
        let (threads, requests) = (Arc::default(), Arc::default());
        let inbox = StreamableInbox {
            context: context.clone(),
            requests: Arc::clone(&requests),
            hook: hook(&context, &threads, &requests),
            host: host_of(url.as_str()),
        };
        let outbox = Outbox::new(context.clone(), requests, inbox);
        let this = Self { context, outbox, url, headers, threads, sessions: HashMap::new() };
        let (stream, _) = this.stream(this.headers.clone(), "connection's event stream");
        let (context, host) = (this.context.clone(), host_of(this.url.as_str()));
        this.context.spawn(async move {
            match stream.run().await {
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

    /// Sends a message.
    pub async fn send(&mut self, frame: &Bytes) -> Result<(), LinkEnd> {
        let text = String::from_utf8_lossy(frame);
        let Some(envelope) = envelope::read(&text) else { return Ok(()) };
        if frame.len() > MAX_BODY_BYTES {
            let text = format!(
                "The message is {} MiB; the limit of {} is {} MiB. Send less at once.",
                frame.len() >> 20,
                host_of(self.url.as_str()),
                MAX_BODY_BYTES >> 20
            );
            return Ok(self.context.unsent(&envelope, &text).await?);
        }
        let mut headers = self.headers.clone();
        let session = self.session_of(&envelope);
        let mut opening = None;
        if let Some(session) = &session {
            // The agent chooses the session of its requests, and could name any, so responses open no streams.
            if envelope.kind != Kind::Response {
                opening = self.stream_of(session, &envelope.method);
            }
            if let Ok(value) = HeaderValue::from_str(session) {
                headers.insert(SESSION_ID, value);
            }
        }
        if envelope.kind == Kind::Request
            && matches!(envelope.method.as_str(), "session/new" | "session/fork")
        {
            self.threads().creating.extend(envelope.id.clone());
        }
        let (url, frame) = (self.url.clone(), frame.clone());
        self.outbox.send(Message { url, headers, frame, envelope, lane: session, opening }).await
    }

    /// Opens the stream of a new session.
    pub fn open_session(&mut self, session: &str) {
        if self.sessions.contains_key(session) {
            return;
        }
        let Ok(value) = HeaderValue::from_str(session) else { return };
        let mut headers = self.headers.clone();
        headers.insert(SESSION_ID, value);
        let (stream, opening) = self.stream(headers, "session's event stream");
        self.sessions.insert(session.to_owned(), opening);
        let context = self.context.clone();
        self.context.spawn(async move {
            match stream.run().await {
                // The session has ended, or the server has one stream for all sessions.
                StreamEnd::Gone { .. } | StreamEnd::None(_) => {
                    context.inlet.trace("The server does not offer an event stream for this session.");
                }
                StreamEnd::Refused(trouble) | StreamEnd::Lost(trouble) => {
                    let _ = context.inlet.note(trouble.text().to_owned()).await;
                }
                StreamEnd::ReceiverDropped => {}
            }
        });
    }

    /// Ends the connection with a DELETE.
    pub async fn farewell(&mut self) {
        let request = self.context.client.request(Method::DELETE, &self.url).headers(self.headers.clone());
        // The connection ends whatever the response is.
        let _ = self.context.client.send(request, |_| true).await;
    }

    fn session_of(&self, envelope: &Envelope) -> Option<String> {
        match envelope.kind {
            Kind::Response => envelope.id.as_ref().and_then(|id| self.threads().asked.remove(id)),
            // These messages belong to the connection.
            _ if envelope.method.starts_with("$/") => None,
            _ => envelope.session.clone(),
        }
    }

    /// Opens the stream of a session, which is required before the first message of the session.
    fn stream_of(&mut self, session: &str, method: &str) -> Option<watch::Receiver<Opening>> {
        let is_closed =
            self.sessions.get(session).is_some_and(|opening| *opening.borrow() == Opening::Closed);
        if is_closed && matches!(method, "session/load" | "session/resume") {
            self.sessions.remove(session);
        }
        self.open_session(session);
        self.sessions.get(session).cloned()
    }

    fn stream(&self, headers: HeaderMap, name: &'static str) -> (EventStream, watch::Receiver<Opening>) {
        let (opening, receiver) = watch::channel(Opening::Waiting);
        let hook = Arc::clone(&self.outbox.inbox.hook);
        let reader = EventReader::new(self.context.inlet.clone(), hook, Some(self.context.timeouts.idle));
        let (context, url) = (self.context.clone(), self.url.clone());
        let (first, is_first_final, is_forgetful) = (None, false, false);
        let stream =
            EventStream { context, url, headers, name, reader, opening, first, is_first_final, is_forgetful };
        (stream, receiver)
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Collects from incoming messages the new sessions, the sessions of requests, and the answered requests.
fn hook(context: &HttpContext, threads: &Arc<Mutex<Threads>>, requests: &Arc<Requests>) -> Hook {
    let (threads, context, requests) = (Arc::clone(threads), context.clone(), Arc::clone(requests));
    Arc::new(move |text| {
        // Skips parsing for updates, which are most of the messages.
        if memchr::memmem::find(text.as_bytes(), b"\"id\"").is_none() {
            return true;
        }
        let Some(envelope) = envelope::read(text) else { return true };
        if !requests.is_news(&envelope, &context.inlet) {
            return false;
        }
        let Envelope { kind, id: Some(id), session: Some(session), .. } = envelope else { return true };
        let mut threads = threads.lock().unwrap_or_else(PoisonError::into_inner);
        match kind {
            Kind::Request if threads.asked.len() < MOST_ASKED => {
                threads.asked.insert(id, session);
            }
            Kind::Response if threads.creating.remove(&id) => {
                let _ = context.told.send(TaskEvent::Session(session));
            }
            _ => {}
        }
        true
    })
}

/// Reads the responses to POSTs.
#[derive(Clone)]
pub struct StreamableInbox {
    context: HttpContext,
    requests: Arc<Requests>,
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
        if let Ok(Taken::Broken(why)) =
            take(&self.context, &self.requests, response, &envelope, &self.hook, false).await
        {
            fail(&self.context, &self.requests, &envelope, &why, true).await;
        }
    }
}

/// The server does not know the connection, because it was restarted or discarded it.
fn forgotten(host: &str) -> LinkEnd {
    LinkEnd::Io(format!("{host} closed this connection; it may have been restarted"))
}
