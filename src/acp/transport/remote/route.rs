//! The transport that is used by a connection: the one that the configuration or the URL names, or a detected one.
//!
//! [`Probe`] tries the known transports from the most to the least common. A server whose protocol needs an event stream
//! gets one before `initialize`; any other server that responds in the POST is asked once for a stream.
//! Invariants: the server that responds to `initialize` gets it once; its response reaches the peer; a stream that
//! was opened as a test is used; if no transport works, the first error is reported.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use tokio::time::timeout;

use super::client::Client;
use super::envelope::{self, Envelope, Kind};
use super::http_context::{HttpContext, body, is_events, is_of_type};
use super::http_error::{HttpError, host_of};
use super::outbox::Outbox;
use super::server::{CONNECTION_ID, Server, StreamUrls, events_at};
use super::socket::Socket;
use crate::acp::dialects;
use crate::acp::transport::OutboundFrame;
use crate::model::{Carrier, CloseReason, Profile, Remote, shown_url};

const USUAL_PATH: &str = "/acp";
/// A request that may be unsupported is awaited for this fraction of `Timeouts::answer`.
const GUESS_SHARE: u32 = 20;

#[derive(Debug)]
pub enum Route {
    Probe(Box<Probe>),
    Http(Outbox),
    Socket(Box<Socket>),
}

impl Route {
    pub async fn open(
        context: Arc<HttpContext>,
        remote: &Remote,
        profile: Option<Profile>,
    ) -> Result<Self, HttpError> {
        let url = &context.client.url.clone();
        let (mut usual, is_bare) = (url.clone(), url.path().trim_matches('/').is_empty());
        if is_bare {
            usual.set_path(USUAL_PATH);
        }
        context.is_small.store(profile == Some(Profile::ZeptoClaw), Ordering::Relaxed);
        let server = match carrier_of(remote) {
            Some(Carrier::WebSocket) => {
                let mut socket = Socket::open(&context, &context.client, &usual).await;
                if is_bare && socket.as_ref().is_err_and(|error| !error.is_temporary) {
                    socket = Socket::open(&context, &context.client, url).await;
                }
                return Ok(Self::Socket(Box::new(socket?)));
            }
            Some(carrier @ (Carrier::RpcSse | Carrier::PostSse | Carrier::Post)) => {
                let url = if carrier == Carrier::Post { &usual } else { url };
                Server::without_sessions(context, StreamUrls::of(carrier, url, remote), carrier, None)
            }
            Some(Carrier::StreamableHttp) | None => {
                let is_oxide = profile == Some(Profile::OpenOxide);
                let probe = Probe { remote: remote.clone(), url: usual, is_oxide, is_bare, context };
                return Ok(Self::Probe(Box::new(probe)));
            }
        };
        Ok(Self::Http(Outbox::new(server)))
    }

    /// Sends a message. An error ends the connection.
    pub async fn send(&mut self, frame: &OutboundFrame) -> Result<(), CloseReason> {
        match self {
            Self::Probe(probe) => {
                if let Some(route) = probe.send(&frame.bytes).await? {
                    *self = route;
                }
            }
            Self::Http(outbox) => outbox.send(frame).await,
            Self::Socket(socket) => socket.send(&frame.bytes).await?,
        }
        Ok(())
    }

    pub fn open_session(&self, session: &str) {
        if let Self::Http(outbox) = self {
            outbox.server.open_session(session);
        }
    }

    pub async fn drained(&self) {
        if let Self::Http(outbox) = self {
            outbox.drained().await;
        }
    }

    pub async fn farewell(&mut self) {
        match self {
            Self::Probe(_) => {}
            Self::Http(outbox) => outbox.server.farewell().await,
            Self::Socket(socket) => socket.farewell().await,
        }
    }
}

pub fn carrier_of(remote: &Remote) -> Option<Carrier> {
    let url = remote.url.to_ascii_lowercase();
    let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let is_socket = url.starts_with("ws://") || url.starts_with("wss://");
    let is_rpc = path.ends_with("/acp/rpc") || path.ends_with("/acp/sse");
    let by_url = is_socket.then_some(Carrier::WebSocket).or(is_rpc.then_some(Carrier::RpcSse));
    remote.carrier.or(by_url)
}

/// The detected route; `None`: the next attempt may detect it.
type Detected = Result<Option<Route>, CloseReason>;

#[derive(Debug)]
pub struct Probe {
    context: Arc<HttpContext>,
    remote: Remote,
    url: Url,
    /// Whether the configuration says that the server is `OpenOxide`.
    is_oxide: bool,
    /// Whether the URL has no path, so that others are tried.
    is_bare: bool,
}

impl Probe {
    async fn send(&mut self, frame: &Bytes) -> Detected {
        let text = String::from_utf8_lossy(frame);
        let Some(envelope) = envelope::read(&text) else { return Ok(None) };
        let mut root = self.url.clone();
        root.set_path("/");
        let urls: Vec<Url> = std::iter::once(self.url.clone()).chain(self.is_bare.then_some(root)).collect();
        let is_open = self.remote.carrier.is_none();
        if self.is_oxide && is_open {
            for url in &urls {
                if let Some(route) = self.with_stream(url, Carrier::PostSse, frame).await? {
                    return Ok(Some(route));
                }
            }
        }
        let mut first = None;
        for url in urls {
            let response = self.post(&url, frame).await?;
            if response.status().is_success() {
                return self.answered(url, response, &envelope).await;
            }
            if first.is_none() {
                let token = self.context.client.token_origin();
                first = Some(HttpError::of_status(response, url.as_str(), token).await);
            }
        }
        if is_open {
            // The server may reject a POST before a stream is open.
            for carrier in [Carrier::RpcSse, Carrier::PostSse] {
                if let Some(route) = self.with_stream(&self.url, carrier, frame).await? {
                    return Ok(Some(route));
                }
            }
            if let Ok(client) = Client::open(&self.remote, true).await
                && let Ok(mut socket) = Socket::open(&self.context, &client, &self.url).await
            {
                self.say(Carrier::WebSocket);
                socket.send(frame).await?;
                return Ok(Some(Route::Socket(Box::new(socket))));
            }
        }
        Err(first.map_or_else(|| CloseReason::Refused { error: "No agent.".to_owned() }, CloseReason::from))
    }

    async fn post(&self, url: &Url, frame: &Bytes) -> Result<Response, CloseReason> {
        let wants = |status: StatusCode| matches!(status.as_u16(), 400 | 404 | 405 | 406 | 415 | 426 | 501);
        let headers = HeaderMap::new();
        let begin = self.context.timeouts.begin;
        let answer = timeout(begin, self.context.post_once(url, &headers, frame, wants)).await;
        Ok(answer.unwrap_or_else(|_| Err(HttpError::unanswered(url, begin)))?)
    }

    async fn answered(&self, url: Url, response: Response, envelope: &Envelope) -> Detected {
        let context = &self.context;
        context.expect(envelope);
        let connection = response.headers().get(CONNECTION_ID).cloned();
        let urls = StreamUrls::of(Carrier::Post, &url, &self.remote);
        if is_events(&response) {
            let server = self.server(urls, connection, Carrier::Post, None)?;
            let (reader, envelope) = (Arc::clone(&server), envelope.clone());
            context.spawn(async move { reader.read(response, &envelope).await });
            return Ok(Some(Route::Http(Outbox::new(server))));
        }
        let is_json = is_of_type(&response, "application/json");
        let body = body(response, context.max_bytes).await?;
        let text = String::from_utf8_lossy(&body);
        if body.trim_ascii().is_empty() {
            // Accepted without a response, which is then sent on a stream.
            let server = self.server(urls, connection, Carrier::PostSse, None)?;
            return Ok(Some(Route::Http(Outbox::new(server))));
        }
        let Some(answer) = envelope::read(&text).filter(|answer| answer.kind == Kind::Response) else {
            let what = if is_json { "JSON that is not a protocol response" } else { "no JSON" };
            let shown = shown_url(url.as_str());
            let error = format!("The server at {shown} is not an agent: it sent {what}. Correct the URL.");
            return Err(CloseReason::Refused { error });
        };
        let named = envelope.id.as_ref().filter(|_| answer.id.is_none());
        let named = named.and_then(|id| envelope::with_id(&text, id));
        let news = context.sort(named.as_ref().unwrap_or(&body));
        // The official server closes the connection after an error; another form of `initialize` may succeed.
        if connection.is_none() && answer.is_error {
            context.pieces(news).await?;
            return Ok(None);
        }
        let events = if connection.is_none() { self.events_beside(&urls, &text).await } else { None };
        let carrier = if events.is_some() { Carrier::PostSse } else { Carrier::Post };
        let is_silent = connection.is_none() && events.is_none();
        let server = self.server(urls, connection, carrier, events);
        if is_silent && server.is_ok() {
            let text = "This server only responds to requests: agent activity between turns is not shown.";
            context.trace(text);
        }
        context.pieces(news).await?;
        Ok(Some(Route::Http(Outbox::new(server?))))
    }

    /// Fails if the configuration requires the streamable HTTP transport, in which the server sends a connection id.
    fn server(
        &self,
        urls: StreamUrls,
        connection: Option<HeaderValue>,
        carrier: Carrier,
        events: Option<Response>,
    ) -> Result<Arc<Server>, CloseReason> {
        let context = Arc::clone(&self.context);
        if let Some(connection) = connection {
            self.say(Carrier::StreamableHttp);
            return Ok(Server::streamable(context, urls.post, connection));
        }
        if self.remote.carrier == Some(Carrier::StreamableHttp) {
            let host = host_of(self.url.as_str());
            let error = format!(
                "{host} sent no connection id, so it does not support the ACP HTTP transport. Remove `transport` \
                 from its configuration to detect the transport."
            );
            return Err(CloseReason::Refused { error });
        }
        self.say(carrier);
        Ok(Server::without_sessions(context, urls, carrier, events))
    }

    /// Opens the event stream of a server that responded to `initialize` in the POST. Servers that send updates as
    /// events have one, `ZeptoClaw` has none, and others are tried with a short timeout.
    async fn events_beside(&self, urls: &StreamUrls, answer: &str) -> Option<Response> {
        if self.context.is_small.load(Ordering::Relaxed) || self.remote.carrier.is_some() {
            return None;
        }
        let found = events_at(&self.context, &urls.events);
        if dialects::sender_of(answer) == Some(Profile::OpenOxide) {
            return found.await;
        }
        timeout(self.context.timeouts.answer / GUESS_SHARE, found).await.ok().flatten()
    }

    /// Sends `initialize` to a server that first opens an event stream; `None`: it does not.
    async fn with_stream(&self, url: &Url, carrier: Carrier, frame: &Bytes) -> Detected {
        let urls = StreamUrls::of(carrier, url, &self.remote);
        let Some(events) = events_at(&self.context, &urls.events).await else { return Ok(None) };
        let mut outbox = Outbox::new(self.server(urls, None, carrier, Some(events))?);
        outbox.send(&frame.clone().into()).await;
        Ok(Some(Route::Http(outbox)))
    }

    fn say(&self, carrier: Carrier) {
        self.context.trace(&format!("{} speaks {}.", host_of(self.url.as_str()), carrier.title()));
    }
}
