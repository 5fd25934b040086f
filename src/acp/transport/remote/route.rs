//! The transport that is used by a connection: the one that the configuration or the URL names, or a detected one.
//!
//! [`Probe`] sends `initialize`, examines the response, and tries the known transports from the most to the least
//! common. A server whose protocol needs an event stream gets one before `initialize`; any other server that responds in
//! the POST is asked once for a stream.
//! Invariants: the server that responds to `initialize` gets it once; its response reaches the peer; a stream that
//! was opened as a test is used; if no transport works, the first error is reported.

use std::sync::Arc;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use tokio::time::timeout;

use super::client::Client;
use super::envelope::{self, Envelope, Kind};
use super::http::{CONNECTION_ID, Streamable};
use super::http_context::{HttpContext, body, is_events, is_of_type};
use super::http_error::{HttpError, host_of};
use super::post::{Post, events_at};
use super::socket::Socket;
use crate::acp::dialects::{StreamUrls, openoxide, zeptoclaw};
use crate::acp::transport::{LinkEnd, OutboundFrame};
use crate::model::{Carrier, Profile, Remote};

const USUAL_PATH: &str = "/acp";

/// A request that may be unsupported is awaited for this fraction of `Timeouts::answer`.
const GUESS_SHARE: u32 = 20;

#[derive(Debug)]
pub enum Route {
    /// Not detected yet.
    Probe(Box<Probe>),
    Streamable(Box<Streamable>),
    Socket(Box<Socket>),
    /// POST, with or without an event stream.
    Post(Box<Post>),
}

impl Route {
    /// Opens the transport that the URL or the configuration names, or a probe.
    pub async fn open(
        context: HttpContext,
        remote: &Remote,
        profile: Option<Profile>,
    ) -> Result<Self, HttpError> {
        let url = context.client.url().clone();
        Ok(match carrier_of(remote) {
            Some(Carrier::WebSocket) => {
                let (url, is_bare) = with_path(&url);
                match Socket::open(context.clone(), &url).await {
                    Err(HttpError::Refused { .. }) if is_bare => {
                        let socket = Socket::open(context.clone(), context.client.url()).await?;
                        Self::Socket(Box::new(socket))
                    }
                    socket => Self::Socket(Box::new(socket?)),
                }
            }
            Some(carrier @ Carrier::RpcSse) => {
                let urls = StreamUrls::with_client_id(&url, remote);
                Self::Post(Box::new(Post::with_stream(context, urls, carrier, None)))
            }
            Some(carrier @ Carrier::PostSse) => {
                let urls = StreamUrls::at_one_url(&url, remote);
                Self::Post(Box::new(Post::with_stream(context, urls, carrier, None)))
            }
            Some(Carrier::Post) => {
                let urls = StreamUrls::at_one_url(&with_path(&url).0, remote);
                Self::Post(Box::new(Post::new(context, urls, profile)))
            }
            Some(Carrier::StreamableHttp) | None => {
                Self::Probe(Box::new(Probe::new(context, remote.clone(), profile)))
            }
        })
    }

    /// Sends a message. An error ends the connection.
    pub async fn send(&mut self, frame: &OutboundFrame) -> Result<(), LinkEnd> {
        match self {
            Self::Probe(probe) => {
                if let Some(route) = probe.send(&frame.bytes).await? {
                    *self = route;
                }
                Ok(())
            }
            Self::Streamable(route) => route.send(frame).await,
            Self::Socket(route) => route.send(&frame.bytes).await,
            Self::Post(route) => route.send(&frame.bytes).await,
        }
    }

    /// Opens the event stream of a new session, if the transport has such streams.
    pub fn open_session(&mut self, session: &str) {
        if let Self::Streamable(route) = self {
            route.open_session(session);
        }
    }

    pub fn is_socket(&self) -> bool {
        matches!(self, Self::Socket(_))
    }

    /// Sends a ping if one is due.
    pub async fn ping(&mut self) -> Result<(), LinkEnd> {
        match self {
            Self::Socket(route) => route.ping().await,
            _ => Ok(()),
        }
    }

    /// Waits until the server has received all notifications and responses.
    pub async fn drained(&self) {
        match self {
            Self::Streamable(route) => route.outbox.drained().await,
            Self::Post(route) => route.outbox.drained().await,
            Self::Probe(_) | Self::Socket(_) => {}
        }
    }

    /// Ends the connection on the server.
    pub async fn farewell(&mut self) {
        match self {
            Self::Streamable(route) => route.farewell().await,
            Self::Socket(route) => route.farewell().await,
            Self::Probe(_) | Self::Post(_) => {}
        }
    }
}

/// The transport that the configuration or the URL names.
fn carrier_of(remote: &Remote) -> Option<Carrier> {
    let url = remote.url.to_ascii_lowercase();
    let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let by_url = if url.starts_with("ws://") || url.starts_with("wss://") {
        Some(Carrier::WebSocket)
    } else if path.ends_with("/acp/rpc") || path.ends_with("/acp/sse") {
        Some(Carrier::RpcSse)
    } else {
        None
    };
    remote.carrier.or(by_url)
}

pub async fn client_for(remote: &Remote) -> Result<Arc<Client>, HttpError> {
    Client::open(remote, carrier_of(remote) == Some(Carrier::WebSocket)).await
}

/// A server with an unknown transport.
#[derive(Debug)]
pub struct Probe {
    context: HttpContext,
    remote: Remote,
    url: Url,
    profile: Option<Profile>,
    /// Whether the URL has no path, so that others are tried.
    is_bare: bool,
}

/// The URL with the default path if it has none, and whether it had none.
fn with_path(url: &Url) -> (Url, bool) {
    let mut url = url.clone();
    let is_bare = url.path().trim_matches('/').is_empty();
    if is_bare {
        url.set_path(USUAL_PATH);
    }
    (url, is_bare)
}

impl Probe {
    pub fn new(context: HttpContext, remote: Remote, profile: Option<Profile>) -> Self {
        let (url, is_bare) = with_path(context.client.url());
        Self { context, remote, url, profile, is_bare }
    }

    /// Sends `initialize`. Returns the detected route; `None`: the next attempt may detect it.
    pub async fn send(&mut self, frame: &Bytes) -> Result<Option<Route>, LinkEnd> {
        let text = String::from_utf8_lossy(frame);
        let Some(envelope) = envelope::read(&text) else { return Ok(None) };
        let urls = self.urls();
        if self.profile == Some(Profile::OpenOxide) && self.remote.carrier.is_none() {
            for url in &urls {
                let urls = StreamUrls::at_one_url(url, &self.remote);
                if let Some(events) = events_at(&self.context, &urls.events).await {
                    return self.with_stream(urls, Carrier::PostSse, events, frame).await;
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
        if self.remote.carrier.is_none() {
            let url = self.url.clone();
            // The server may reject a POST before a stream is open.
            for (urls, carrier) in [
                (StreamUrls::with_client_id(&url, &self.remote), Carrier::RpcSse),
                (StreamUrls::at_one_url(&url, &self.remote), Carrier::PostSse),
            ] {
                if let Some(events) = events_at(&self.context, &urls.events).await {
                    return self.with_stream(urls, carrier, events, frame).await;
                }
            }
            if let Some(socket) = self.socket(&url).await {
                return self.chosen(Route::Socket(Box::new(socket)), Carrier::WebSocket, frame).await;
            }
        }
        let trouble = first.map_or_else(|| LinkEnd::Refused("No agent.".to_owned()), LinkEnd::from);
        Err(trouble)
    }

    fn urls(&self) -> Vec<Url> {
        let mut root = self.url.clone();
        root.set_path("/");
        let roots = self.is_bare.then_some(root);
        std::iter::once(self.url.clone()).chain(roots).collect()
    }

    async fn post(&self, url: &Url, frame: &Bytes) -> Result<Response, LinkEnd> {
        let wants = |status: StatusCode| matches!(status.as_u16(), 400 | 404 | 405 | 406 | 415 | 426 | 501);
        let headers = HeaderMap::new();
        let answer = self.context.post_once(url, &headers, frame, wants);
        let begin = self.context.timeouts.begin;
        match timeout(begin, answer).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(HttpError::unanswered(url, begin).into()),
        }
    }

    /// Detects the transport from the response to `initialize`.
    async fn answered(
        &self,
        url: Url,
        response: Response,
        envelope: &Envelope,
    ) -> Result<Option<Route>, LinkEnd> {
        let context = self.context.clone();
        let connection = response.headers().get(CONNECTION_ID).cloned();
        if is_events(&response) {
            if let Some(connection) = connection {
                let route = self.streamable(url, connection, None);
                route.outbox.expect(envelope, Some(response));
                return Ok(Some(Route::Streamable(Box::new(route))));
            }
            self.not_instead_of_streams()?;
            self.say(Carrier::Post);
            let route = Post::new(context, StreamUrls::at_one_url(&url, &self.remote), self.profile);
            route.outbox.expect(envelope, Some(response));
            return Ok(Some(Route::Post(Box::new(route))));
        }
        let is_json = is_of_type(&response, "application/json");
        let body = body(response, context.inlet.max_bytes).await?;
        let text = String::from_utf8_lossy(&body);
        if body.trim_ascii().is_empty() {
            if let Some(connection) = connection {
                let route = self.streamable(url, connection, None);
                route.outbox.expect(envelope, None);
                return Ok(Some(Route::Streamable(Box::new(route))));
            }
            // Accepted without a response, which is then sent on a stream.
            self.not_instead_of_streams()?;
            let urls = StreamUrls::at_one_url(&url, &self.remote);
            self.say(Carrier::PostSse);
            let route = Post::with_stream(context, urls, Carrier::PostSse, None);
            route.outbox.expect(envelope, None);
            return Ok(Some(Route::Post(Box::new(route))));
        }
        let Some(answer) = envelope::read(&text).filter(|answer| answer.kind == Kind::Response) else {
            let what = if is_json { "JSON that is not a protocol response" } else { "no JSON" };
            return Err(LinkEnd::Refused(format!(
                "The server at {} is not an agent: it sent {what}. Correct the URL.",
                crate::model::shown_url(url.as_str())
            )));
        };
        let body = match (&answer.id, &envelope.id) {
            (None, Some(id)) => envelope::with_id(&text, id).unwrap_or_else(|| body.clone()),
            _ => body.clone(),
        };
        if let Some(connection) = connection {
            let route = self.streamable(url, connection, answer.version);
            context.inlet.message(&body).await?;
            return Ok(Some(Route::Streamable(Box::new(route))));
        }
        if answer.is_error {
            // The official server closes the connection after an error; another form of `initialize` may succeed.
            context.inlet.message(&body).await?;
            return Ok(None);
        }
        let urls = StreamUrls::at_one_url(&url, &self.remote);
        if let Some(events) = self.stream_beside(&urls, &text).await {
            self.say(Carrier::PostSse);
            let route = Post::with_stream(context.clone(), urls, Carrier::PostSse, Some(events));
            context.inlet.message(&body).await?;
            return Ok(Some(Route::Post(Box::new(route))));
        }
        if let Err(end) = self.not_instead_of_streams() {
            context.inlet.message(&body).await?;
            return Err(end);
        }
        let route = Post::new(context.clone(), urls, self.profile);
        route.learn(&text);
        self.say(Carrier::Post);
        let text = "This server only responds to requests: agent activity between turns is not shown.";
        context.inlet.trace(text);
        context.inlet.message(&body).await?;
        Ok(Some(Route::Post(Box::new(route))))
    }

    fn streamable(&self, url: Url, connection: HeaderValue, version: Option<u64>) -> Streamable {
        self.say(Carrier::StreamableHttp);
        Streamable::start(self.context.clone(), url, connection, version)
    }

    /// Opens the event stream of a server that responded to `initialize` in the POST. Servers that send updates as
    /// events have one, `ZeptoClaw` has none, and others are tried with a short timeout.
    async fn stream_beside(&self, urls: &StreamUrls, answer: &str) -> Option<Response> {
        let has_none = self.profile == Some(Profile::ZeptoClaw) || zeptoclaw::is_named_in(answer);
        if has_none || self.remote.carrier.is_some() {
            return None;
        }
        let found = events_at(&self.context, &urls.events);
        if openoxide::speaks_events(answer) {
            return found.await;
        }
        timeout(self.context.timeouts.answer / GUESS_SHARE, found).await.ok().flatten()
    }

    /// Fails if the configuration requires the streamable HTTP transport.
    fn not_instead_of_streams(&self) -> Result<(), LinkEnd> {
        if self.remote.carrier != Some(Carrier::StreamableHttp) {
            return Ok(());
        }
        Err(LinkEnd::Refused(format!(
            "{} sent no connection id, so it does not support the ACP HTTP transport. Remove `transport` \
             from its configuration to detect the transport.",
            host_of(self.url.as_str())
        )))
    }

    async fn socket(&self, url: &Url) -> Option<Socket> {
        let client = Client::open(&self.remote, true).await.ok()?;
        Socket::open(self.context.with_client(client), url).await.ok()
    }

    async fn with_stream(
        &self,
        urls: StreamUrls,
        carrier: Carrier,
        events: Response,
        frame: &Bytes,
    ) -> Result<Option<Route>, LinkEnd> {
        let route = Post::with_stream(self.context.clone(), urls, carrier, Some(events));
        self.chosen(Route::Post(Box::new(route)), carrier, frame).await
    }

    /// Sends `initialize` over a route.
    async fn chosen(
        &self,
        mut route: Route,
        carrier: Carrier,
        frame: &Bytes,
    ) -> Result<Option<Route>, LinkEnd> {
        self.say(carrier);
        Box::pin(route.send(&frame.clone().into())).await?;
        Ok(Some(route))
    }

    fn say(&self, carrier: Carrier) {
        let text = format!("{} speaks {}.", host_of(self.url.as_str()), carrier.title());
        self.context.inlet.trace(&text);
    }
}
