//! Finds out how the server of a URL wants to be spoken to.
//!
//! Duty: sends `initialize` and looks at what comes back, then tries what else is known, from the most
//! usual to the rarest. Not its duty: what follows (the carriers).
//! Invariants: the server that answers `initialize` gets it once; what it answers reaches the peer; if
//! nothing fits, the first refusal is told, for it says most.

use bytes::Bytes;
use reqwest::header::{ACCEPT, HeaderMap};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::time::timeout;

use super::client::Client;
use super::desk::{Desk, body, is_events, is_of_type};
use super::http::{CONNECTION_ID, Streamable};
use super::letter::{self, Kind, Letter};
use super::post::{self, Post};
use super::route::Route;
use super::socket::Socket;
use super::split::{Places, Split};
use super::trouble::{Trouble, host_of};
use crate::acp::transport::LinkEnd;
use crate::model::{Carrier, Profile, Remote};

/// Where agents listen unless the URL says otherwise.
const USUAL_PATH: &str = "/acp";

/// A server that is not known yet.
#[derive(Debug)]
pub struct Probe {
    desk: Desk,
    remote: Remote,
    url: Url,
    profile: Option<Profile>,
    /// Whether the URL named no path, so that others may be tried.
    is_bare: bool,
}

/// The URL with the usual path if it has none, and whether it had none.
pub fn with_path(url: &Url) -> (Url, bool) {
    let mut url = url.clone();
    let is_bare = url.path().trim_matches('/').is_empty();
    if is_bare {
        url.set_path(USUAL_PATH);
    }
    (url, is_bare)
}

impl Probe {
    /// A probe of an agent's URL.
    pub fn new(desk: Desk, remote: Remote, profile: Option<Profile>) -> Self {
        let (url, is_bare) = with_path(desk.client.url());
        Self { desk, remote, url, profile, is_bare }
    }

    /// Sends `initialize`. The route that fits; `None`: the next attempt may tell.
    pub async fn send(&mut self, frame: &Bytes) -> Result<Option<Route>, LinkEnd> {
        let text = String::from_utf8_lossy(frame);
        let Some(letter) = letter::read(&text) else { return Ok(None) };
        let mut first = None;
        let mut url = self.url.clone();
        for is_second in [false, true] {
            if is_second {
                if !self.is_bare {
                    break;
                }
                url.set_path("/");
            }
            let response = self.post(&url, frame).await?;
            if response.status().is_success() {
                return self.answered(url, response, &letter).await;
            }
            if first.is_none() {
                let token = self.desk.client.token_origin();
                first = Some(Trouble::of_status(response, url.as_str(), token).await);
            }
        }
        if self.remote.carrier.is_none() {
            let url = self.url.clone();
            let places = Places::with_client_id(&url, &self.remote);
            if self.has_events(&places.events).await {
                return self.split(places, Carrier::RpcSse, frame).await;
            }
            // The refusal may be meant for a POST before there is a stream.
            let places = Places::at_one_url(&url, &self.remote);
            if self.has_events(&places.events).await {
                return self.split(places, Carrier::PostSse, frame).await;
            }
            if let Some(socket) = self.socket(&url).await {
                return self.chosen(Route::Socket(Box::new(socket)), Carrier::WebSocket, frame).await;
            }
        }
        let trouble = first.map_or_else(|| LinkEnd::Refused("There is no agent.".to_owned()), LinkEnd::from);
        Err(trouble)
    }

    async fn post(&self, url: &Url, frame: &Bytes) -> Result<Response, LinkEnd> {
        let wants = |status: StatusCode| matches!(status.as_u16(), 400 | 404 | 405 | 406 | 415 | 426 | 501);
        let headers = HeaderMap::new();
        let answer = self.desk.post_once(url, &headers, frame, wants);
        match timeout(self.desk.patience.begin, answer).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(LinkEnd::Unreachable(format!(
                "{} did not answer within {} s. Check the network, or try again.",
                host_of(url.as_str()),
                self.desk.patience.begin.as_secs()
            ))),
        }
    }

    /// What the answer to `initialize` tells.
    async fn answered(
        &self,
        url: Url,
        response: Response,
        letter: &Letter,
    ) -> Result<Option<Route>, LinkEnd> {
        let desk = self.desk.clone();
        let connection = response.headers().get(CONNECTION_ID).cloned();
        if is_events(&response) {
            if let Some(connection) = connection {
                let route = Streamable::start(desk.clone(), url, connection, None);
                route.take(response);
                self.say(Carrier::StreamableHttp);
                return Ok(Some(Route::Streamable(route)));
            }
            self.not_instead_of_streams()?;
            let route = Post::new(desk.clone(), url, self.profile);
            let (letter, is_small) = (letter.clone(), route.limits());
            desk.clone().spawn(async move {
                let _ = post::take(&desk, response, &letter, &is_small).await;
            });
            self.say(Carrier::Post);
            return Ok(Some(Route::Post(route)));
        }
        let is_json = is_of_type(&response, "application/json");
        let body = body(response, desk.inlet.max_bytes).await?;
        let text = String::from_utf8_lossy(&body);
        if body.trim_ascii().is_empty() {
            if let Some(connection) = connection {
                self.say(Carrier::StreamableHttp);
                return Ok(Some(Route::Streamable(Streamable::start(desk, url, connection, None))));
            }
            // Taken without an answer, which is to come on a stream.
            self.not_instead_of_streams()?;
            let places = Places::at_one_url(&url, &self.remote);
            self.say(Carrier::PostSse);
            return Ok(Some(Route::Split(Split::start(desk, places, Carrier::PostSse))));
        }
        let Some(answer) = letter::read(&text).filter(|answer| answer.kind == Kind::Response) else {
            let what = if is_json { "JSON, but no answer of an agent" } else { "no JSON" };
            return Err(LinkEnd::Refused(format!(
                "What answers at {} is no agent: it sent {what}. Correct the address.",
                crate::model::shown_url(url.as_str())
            )));
        };
        let body = match (&answer.id, &letter.id) {
            (None, Some(id)) => letter::with_id(&text, id).unwrap_or_else(|| body.clone()),
            _ => body.clone(),
        };
        if let Some(connection) = connection {
            let version = protocol_version(&text);
            let route = Streamable::start(desk.clone(), url, connection, version);
            self.say(Carrier::StreamableHttp);
            desk.inlet.message(&body).await?;
            return Ok(Some(Route::Streamable(route)));
        }
        desk.inlet.message(&body).await?;
        if answer.is_error {
            // The protocol's own server keeps no connection then; another form may be tried.
            return Ok(None);
        }
        self.not_instead_of_streams()?;
        let route = Post::new(desk.clone(), url, self.profile);
        route.learn(&text);
        self.say(Carrier::Post);
        let text = "This server answers within each request: what the agent does between turns does not reach parlor.";
        desk.inlet.trace(text);
        Ok(Some(Route::Post(route)))
    }

    /// The configuration may insist on the protocol's own transport.
    fn not_instead_of_streams(&self) -> Result<(), LinkEnd> {
        if self.remote.carrier != Some(Carrier::StreamableHttp) {
            return Ok(());
        }
        Err(LinkEnd::Refused(format!(
            "{} gives no connection id, so it does not speak the protocol's own HTTP transport. Remove `transport` from its configuration, so that parlor finds out what it speaks.",
            host_of(self.url.as_str())
        )))
    }

    async fn has_events(&self, url: &Url) -> bool {
        let request = self.desk.client.request(Method::GET, url).header(ACCEPT, "text/event-stream");
        let answer = timeout(self.desk.patience.answer / 3, self.desk.client.send(request, |_| true)).await;
        // Dropping the answer closes the stream; the carrier opens it anew.
        matches!(answer, Ok(Ok(response)) if response.status().is_success() && is_events(&response))
    }

    async fn socket(&self, url: &Url) -> Option<Socket> {
        let client = Client::open(&self.remote, true).await.ok()?;
        Socket::open(self.desk.with_client(client), url).await.ok()
    }

    async fn split(&self, places: Places, carrier: Carrier, frame: &Bytes) -> Result<Option<Route>, LinkEnd> {
        let route = Route::Split(Split::start(self.desk.clone(), places, carrier));
        self.chosen(route, carrier, frame).await
    }

    /// A route that has not had `initialize` yet.
    async fn chosen(
        &self,
        mut route: Route,
        carrier: Carrier,
        frame: &Bytes,
    ) -> Result<Option<Route>, LinkEnd> {
        self.say(carrier);
        Box::pin(route.send(frame)).await?;
        Ok(Some(route))
    }

    fn say(&self, carrier: Carrier) {
        let text = format!("{} speaks {}.", host_of(self.url.as_str()), carrier.title());
        self.desk.inlet.trace(&text);
    }
}

fn protocol_version(text: &str) -> Option<u64> {
    let answer: serde_json::Value = serde_json::from_str(text).ok()?;
    answer.pointer("/result/protocolVersion")?.as_u64()
}
