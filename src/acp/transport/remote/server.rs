//! A server that gets each message in its own POST: its URLs, limits and event streams, and its responses.
//!
//! With the streamable HTTP transport of ACP, there is one event stream for the connection and one for each session,
//! opened before the session's first message and right after its creation; a DELETE ends the connection. Any other
//! server has at most one stream: with a client id and separate paths (`/acp/rpc`, `/acp/sse`), at the URL of the POSTs
//! (`OpenOxide`), or none (`ZeptoClaw`). If a server without a known stream accepts a request without a response,
//! parlor tries to open a stream.
//! Invariants: a response is accepted from any stream or POST; a stream that belongs to no session is reopened with the
//! same id, unless the server was unreachable: then the connection ends, and the app opens the session again. Each
//! request gets a response: the server's, or an error.
//! Source: the protocol's RFD "streamable HTTP and web socket transport".

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::sync::{OnceCell, watch};
use tokio::time::{sleep, timeout};

use super::envelope::{self, Envelope, Kind};
use super::events::{BodyEnd, EventReader, EventStream, Opening, Scope, SharedReader, StreamEnd};
use super::http_context::{HttpContext, body, is_events, too_large};
use super::http_error::{HttpError, host_of};
use crate::acp::dialects::elephant;
use crate::acp::dialects::zeptoclaw::MAX_REQUEST_BYTES;
use crate::acp::transport::Disconnected;
use crate::lock::lock;
use crate::model::{Carrier, CloseReason, Remote, shown_url};

pub const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("acp-protocol-version");
/// Maximum body size in bytes; servers reject longer bodies.
const MAX_BODY_BYTES: usize = 16 << 20;
/// Reserve for the headers in a request to a server with a small limit.
const HEADER_BYTES: usize = 4 << 10;

#[derive(Debug)]
pub struct Server {
    pub context: Arc<HttpContext>,
    pub urls: StreamUrls,
    pub host: String,
    max_body_bytes: usize,
    streams: Streams,
}

#[derive(Debug)]
enum Streams {
    /// Streamable HTTP: the id of the connection, and the streams of its sessions.
    Sessions(HeaderValue, Mutex<BTreeMap<String, SessionStream>>),
    /// The only stream, once it exists.
    One(OnceCell<Opened>),
}

#[derive(Debug)]
struct SessionStream {
    reader: SharedReader,
    opening: Opened,
    is_closed: Arc<AtomicBool>,
}

/// How far the opening of a stream is.
type Opened = watch::Receiver<Opening>;

#[derive(Debug)]
pub struct Place {
    /// The session whose messages are sent in order; `None`: those of the connection.
    pub lane: Option<String>,
    pub headers: HeaderMap,
    /// The stream that must be open before the message is sent.
    pub opening: Option<Opened>,
}

impl Server {
    fn new(context: Arc<HttpContext>, urls: StreamUrls, streams: Streams) -> Self {
        let host = host_of(urls.post.as_str());
        Self { context, urls, host, max_body_bytes: MAX_BODY_BYTES, streams }
    }

    /// A server with the streamable HTTP transport, which has sent this id for the connection.
    pub fn streamable(context: Arc<HttpContext>, url: Url, connection: HeaderValue) -> Arc<Self> {
        let urls = StreamUrls { post: url.clone(), events: url };
        let this = Arc::new(Self::new(context, urls, Streams::Sessions(connection, Mutex::default())));
        let reader = this.reader(Some(this.context.timeouts.idle), None);
        this.open(Scope::Connection, reader, Opening::Waiting, None);
        this
    }

    /// A server with one event stream, without which the connection ends, or none. `first`: the response to a GET that
    /// opened it.
    pub fn without_sessions(
        context: Arc<HttpContext>,
        urls: StreamUrls,
        carrier: Carrier,
        first: Option<Response>,
    ) -> Arc<Self> {
        let mut this = Self::new(context, urls, Streams::One(OnceCell::new()));
        // A server without keep-alive comments may be silent for any time.
        let mut idle = None;
        if carrier == Carrier::RpcSse {
            (this.max_body_bytes, idle) = (elephant::MAX_BODY_BYTES, Some(this.context.timeouts.idle));
        }
        let this = Arc::new(this);
        if let (Streams::One(stream), Carrier::RpcSse | Carrier::PostSse) = (&this.streams, carrier) {
            let state = if first.is_some() { Opening::Open } else { Opening::Waiting };
            let _ = stream.set(this.open(Scope::Everything, this.reader(idle, None), state, first));
        }
        this
    }

    pub fn too_large(&self, bytes: usize) -> Option<String> {
        let is_small = self.context.is_small.load(Ordering::Relaxed);
        let max = if is_small { MAX_REQUEST_BYTES - HEADER_BYTES } else { self.max_body_bytes };
        (bytes > max).then(|| too_large(bytes, max, &self.host))
    }

    /// Where a message belongs. Opens the stream of its session.
    pub fn place(self: &Arc<Self>, message: &Envelope) -> Place {
        if let Streams::One(stream) = &self.streams {
            return Place { lane: None, headers: self.headers(None), opening: stream.get().cloned() };
        }
        // Messages with `$/` belong to the connection.
        let lane = message.session.clone().filter(|_| !message.method.starts_with("$/"));
        // The agent chooses the session of its requests, and could name any, so responses open no streams.
        let opener = lane.as_deref().filter(|_| message.kind != Kind::Response);
        let opening = opener.and_then(|session| self.session_stream(session, message));
        Place { headers: self.headers(lane.as_deref()), lane, opening }
    }

    pub fn open_session(self: &Arc<Self>, session: &str) {
        if let Streams::Sessions(_, streams) = &self.streams
            && !lock(streams).contains_key(session)
        {
            self.start_session(session, Opening::Waiting);
        }
    }

    /// The stream of a session, which is required before the first message of the session.
    fn session_stream(self: &Arc<Self>, session: &str, message: &Envelope) -> Option<Opened> {
        let Streams::Sessions(_, streams) = &self.streams else { return None };
        let method = message.method.as_str();
        let is_opened = matches!(method, "session/load" | "session/resume");
        let state = match lock(streams).get(session) {
            None => Some(Opening::Waiting),
            Some(stream) => match *stream.opening.borrow() {
                Opening::Lost => Some(Opening::Reopening),
                // A session that the server refused to close goes on.
                Opening::Absent if is_opened || stream.is_closed.load(Ordering::Relaxed) => {
                    Some(Opening::Waiting)
                }
                _ => None,
            },
        };
        if let Some(state) = state {
            self.start_session(session, state);
        }
        let streams = lock(streams);
        let stream = streams.get(session)?;
        if message.kind == Kind::Request {
            stream.is_closed.store(is_close(method), Ordering::Relaxed);
        }
        Some(stream.opening.clone())
    }

    fn start_session(self: &Arc<Self>, session: &str, state: Opening) {
        let Streams::Sessions(_, streams) = &self.streams else { return };
        // Without the reader, the server would send everything again, or nothing of what was missed.
        let saved = lock(streams).get(session).map(|old| old.reader.clone());
        let saved = saved.filter(|_| state == Opening::Reopening);
        let idle = Some(self.context.timeouts.idle);
        let reader = saved.unwrap_or_else(|| self.reader(idle, Some(session.into())));
        let is_closed = Arc::<AtomicBool>::default();
        let scope = Scope::Session(session.into(), Arc::clone(&is_closed));
        let opening = self.open(scope, Arc::clone(&reader), state, None);
        lock(streams).insert(session.to_owned(), SessionStream { reader, opening, is_closed });
    }

    fn reader(&self, idle: Option<std::time::Duration>, session: Option<Arc<str>>) -> SharedReader {
        Arc::new(tokio::sync::Mutex::new(EventReader::new(self.context.max_bytes, idle, session)))
    }

    fn open(
        self: &Arc<Self>,
        scope: Scope,
        reader: SharedReader,
        state: Opening,
        first: Option<Response>,
    ) -> Opened {
        let (opening, receiver) = watch::channel(state);
        let session = if let Scope::Session(session, _) = &scope { Some(&**session) } else { None };
        let headers = self.headers(session);
        let (context, url) = (Arc::clone(&self.context), self.urls.events.clone());
        let mut stream = EventStream { context, url, headers, scope, reader, opening, first };
        let this = Arc::clone(self);
        self.context.spawn(async move {
            if let Ok((end, before)) = stream.run().await {
                this.on_stream_end(&stream.scope, end, before).await;
            }
        });
        receiver
    }

    async fn on_stream_end(&self, scope: &Scope, end: StreamEnd, before: Opening) {
        let context = &self.context;
        context.end(match (scope, end) {
            // The session was closed: its responses may still come on another path.
            (Scope::Session(session, is_closed), StreamEnd::Gone { was_open })
                if was_open || is_closed.load(Ordering::Relaxed) =>
            {
                let text = format!("{} has closed the session.", self.host);
                for request in context.open_in(session) {
                    context.fail(&request, &text, true).await;
                }
                return;
            }
            // The session has ended, or the server has one stream for all sessions.
            (Scope::Session(..), StreamEnd::Gone { .. } | StreamEnd::None(_)) => {
                return context.trace("The server does not offer an event stream for this session.");
            }
            // The responses would be sent on this stream.
            (Scope::Session(session, _), StreamEnd::Refused(trouble) | StreamEnd::Lost(trouble)) => {
                // Without a receiver, the connection ends.
                let _ = context.note(trouble.text.clone()).await;
                // Those that wait for the stream to be reopened are not sent.
                if before != Opening::Reopening {
                    for request in context.open_in(session) {
                        context.fail(&request, &trouble.text, false).await;
                    }
                }
                return;
            }
            (Scope::Connection, StreamEnd::Gone { .. })
            | (Scope::Everything, StreamEnd::Gone { was_open: true }) => self.forgotten(),
            (_, StreamEnd::Gone { .. }) => self.without_events(404),
            (_, StreamEnd::None(status)) => self.without_events(status),
            (Scope::Connection, StreamEnd::Lost(trouble)) => CloseReason::Lost { error: trouble.text },
            (_, StreamEnd::Refused(trouble) | StreamEnd::Lost(trouble)) => trouble.into(),
        });
    }

    /// The server does not know the connection, because it was restarted or discarded it.
    fn forgotten(&self) -> CloseReason {
        CloseReason::Lost {
            error: format!("{} closed this connection; it may have been restarted", self.host),
        }
    }

    fn without_events(&self, status: u16) -> CloseReason {
        let (url, advice) = (shown_url(self.urls.events.as_str()), "set another `transport` or `events_url`");
        CloseReason::Refused {
            error: format!("No event stream at {url} ({status}). Check the URL, or {advice}."),
        }
    }

    /// The headers of each message. Source: ACP, streamable HTTP.
    fn headers(&self, session: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Streams::Sessions(connection, _) = &self.streams else { return headers };
        headers.insert(CONNECTION_ID, connection.clone());
        let version = self.context.version.load(Ordering::Relaxed);
        if version > 0 {
            headers.insert(PROTOCOL_VERSION, HeaderValue::from(version));
        }
        if let Some(Ok(session)) = session.map(HeaderValue::from_str) {
            headers.insert(SESSION_ID, session);
        }
        headers
    }

    pub async fn farewell(&self) {
        if let Streams::Sessions(..) = &self.streams {
            let client = &self.context.client;
            let request = client.request(Method::DELETE, &self.urls.post).headers(self.headers(None));
            // The connection ends whatever the response is.
            let _ = client.send(request, |_| true).await;
        }
    }

    /// Reads the response to the POST of a message: success, or 404.
    pub async fn read(self: &Arc<Self>, response: Response, message: &Envelope) {
        let context = &self.context;
        let is_only_way = matches!(&self.streams, Streams::One(stream) if !stream.initialized());
        if response.status() == StatusCode::NOT_FOUND {
            if let Streams::Sessions(..) = &self.streams {
                return context.end(self.forgotten());
            }
            let token = context.client.token_origin();
            let trouble = HttpError::of_status(response, self.urls.post.as_str(), token).await;
            return context.fail(message, &trouble.text, false).await;
        }
        let was_empty = response.content_length() == Some(0) || response.status() == StatusCode::NO_CONTENT;
        let was_stream = is_events(&response);
        let Ok(broken) = self.pass_on(response, message, is_only_way).await else { return };
        if !context.is_open(message) {
            return;
        }
        let host = &self.host;
        let why = match broken {
            Some(why) => why,
            None if !is_only_way || was_empty && self.find_stream().await => return,
            None if was_stream => format!("{host} ended its response before it was complete. Try again."),
            None if was_empty => {
                format!("{host} accepted the message but did not respond. Set another `transport`.")
            }
            None => {
                format!("{host} sent a response that does not answer the request. The protocol log shows it.")
            }
        };
        context.fail(message, &why, !is_only_way).await;
    }

    /// Returns why the response ended early, if it did. `is_only_way`: there is no event stream, so a body that is not a
    /// message is also passed on and reported.
    async fn pass_on(
        &self,
        mut response: Response,
        message: &Envelope,
        is_only_way: bool,
    ) -> Result<Option<String>, Disconnected> {
        let context = &self.context;
        if is_events(&response) {
            let end = EventReader::new(context.max_bytes, None, None).read(&mut response, context).await?;
            let host = &self.host;
            let why = || format!("The response of {host} ended early. Check the network, or try again.");
            return Ok((!matches!(end, BodyEnd::Ended)).then(why));
        }
        if response.status() == StatusCode::NO_CONTENT || response.content_length() == Some(0) {
            return Ok(None);
        }
        let is_receipt = response.status() == StatusCode::ACCEPTED;
        let body = match body(response, context.max_bytes).await {
            Ok(body) => body,
            Err(trouble) => return Ok(Some(trouble.text)),
        };
        let text = String::from_utf8_lossy(&body);
        let answer = envelope::read(&text);
        let is_wanted = answer.is_some()
            || is_only_way && message.kind == Kind::Request
            || body.trim_ascii_start().starts_with(b"[");
        if !is_wanted || body.trim_ascii().is_empty() {
            return Ok(None);
        }
        // An error without an id belongs to the request in whose POST it was received; so does a result if there is no
        // other way to receive responses.
        let loose = answer.filter(|answer| answer.kind == Kind::Response && answer.id.is_none());
        let is_own = loose.is_some_and(|answer| answer.is_error || is_only_way && !is_receipt);
        let named = message.id.as_ref().filter(|_| is_own).and_then(|id| envelope::with_id(&text, id));
        if !is_only_way && message.kind == Kind::Request {
            sleep(context.timeouts.in_flight).await;
        }
        context.pieces(context.sort(named.as_ref().unwrap_or(&body))).await?;
        Ok(None)
    }

    /// Tries to open an event stream at the same URL, to which the server may send the response.
    async fn find_stream(self: &Arc<Self>) -> bool {
        let Streams::One(stream) = &self.streams else { return false };
        let open = || async {
            let first = events_at(&self.context, &self.urls.events).await.ok_or(())?;
            Ok::<_, ()>(self.open(Scope::Everything, self.reader(None, None), Opening::Open, Some(first)))
        };
        stream.get_or_try_init(open).await.is_ok()
    }
}

pub fn is_close(method: &str) -> bool {
    matches!(method, "session/close" | "session/delete")
}

/// Opens an event stream; `None`: there is none at this URL.
pub async fn events_at(context: &HttpContext, url: &Url) -> Option<Response> {
    let request = context.client.request(Method::GET, url).header(ACCEPT, "text/event-stream");
    // The first event may take long, but not the response headers.
    let answer = timeout(context.timeouts.answer / 6, context.client.send(request, |_| true)).await;
    answer.ok()?.ok().filter(|response| response.status().is_success() && is_events(response))
}

const RPC_PATH: &str = "/acp/rpc";
const SSE_PATH: &str = "/acp/sse";

/// URLs of messages and of the event stream. Source: the documentation of elephant.ai (`alex acp serve`), 1; the client
/// page of `OpenOxide`, "remote agent".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamUrls {
    pub post: Url,
    pub events: Url,
}

impl StreamUrls {
    /// The URLs of a server, derived from any URL of it. Some servers have separate ones, with a new client id.
    pub fn of(carrier: Carrier, base: &Url, remote: &Remote) -> Self {
        let events = remote.events_url.as_deref().and_then(|url| Url::parse(url).ok());
        if carrier != Carrier::RpcSse {
            return Self { post: base.clone(), events: events.unwrap_or_else(|| base.clone()) };
        }
        let path = base.path().trim_end_matches('/');
        let root = [RPC_PATH, SSE_PATH, "/acp"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path);
        let id = uuid::Uuid::new_v4().to_string();
        let at = |path: &str| {
            let mut url = base.clone();
            url.set_path(&format!("{root}{path}"));
            url
        };
        let (mut post, mut events) = (at(RPC_PATH), events.unwrap_or_else(|| at(SSE_PATH)));
        for url in [&mut post, &mut events] {
            url.query_pairs_mut().append_pair("client_id", &id);
        }
        Self { post, events }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_paths_are_derived_from_any_url() {
        for url in ["http://h:1/", "http://h:1/acp", "http://h:1/acp/rpc", "http://h:1/acp/sse"] {
            let urls = StreamUrls::of(Carrier::RpcSse, &Url::parse(url).unwrap(), &Remote::default());
            assert_eq!((urls.post.path(), urls.events.path()), ("/acp/rpc", "/acp/sse"), "{url}");
            assert_eq!(urls.post.query(), urls.events.query());
            assert_eq!(urls.post.query().unwrap().len(), "client_id=".len() + 36);
        }
        let urls = StreamUrls::of(
            Carrier::RpcSse,
            &Url::parse("http://h/x/acp/rpc?k=1").unwrap(),
            &Remote::default(),
        );
        assert_eq!(urls.events.path(), "/x/acp/sse");
        assert!(urls.events.query().unwrap().starts_with("k=1&client_id="));
    }

    #[test]
    fn the_url_of_the_stream_can_be_configured() {
        let remote = Remote { events_url: Some("http://h/events".to_owned()), ..Remote::default() };
        let base = Url::parse("http://h/prompt").unwrap();
        let urls = StreamUrls::of(Carrier::Post, &base, &remote);
        assert_eq!((urls.post.path(), urls.events.path()), ("/prompt", "/events"));
        assert_eq!(StreamUrls::of(Carrier::Post, &base, &Remote::default()).events, base);
    }
}
