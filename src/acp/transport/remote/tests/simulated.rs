//! Histories of a connection over a simulated network, in virtual time: HTTP, WebSocket, and a process. The transport
//! alone, with the peer, and with the core of the app.
//!
//! A seed draws every delay, refusal, reset, lost acknowledgement, cut, outage and restart, and what the user does. Over
//! HTTP, the server numbers the requests of each session on its own, and repeats events after a cut.
//!
//! In each history: a prompt is delivered at most once, and never after it was cancelled before it was sent; a response
//! takes effect in the session of its request, once, or it is reported; text arrives once and in order; each request has
//! one outcome; a turn that only a cancel ends, ends. When the network is quiet, nothing waits.
//!
//! `PARLOR_SEED=n` replays one history, `PARLOR_HISTORIES=n` plays more of them.

mod agent;
mod app;
mod core;
mod pipes;
mod user;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http;
use bytes::Bytes;
use reqwest::{Body, Method, Request, Response, StatusCode};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep};

use self::core::Core;
use self::user::User;
use crate::acp::transport::Transport;
use crate::acp::transport::remote::http_error::HttpError;
use crate::acp::transport::remote::{RemoteAgent, Timeouts};
use crate::model::{Carrier, Remote};
use crate::random::Random;

/// Histories of each transport, and of whole connections over each of them.
const HISTORIES: u64 = 1_000;
const CONNECTIONS: u64 = 250;
const SESSIONS: u64 = 3;
/// The time during which the network fails and the user acts. The long one exceeds the time after which attempts end.
const ROUGH: Duration = Duration::from_secs(80);
const LONG_ROUGH: Duration = Duration::from_secs(400);
/// More than all delays between attempts.
const PATIENCE: Duration = Duration::from_secs(900);

/// The server and the network between it and parlor; clones share it.
#[derive(Debug, Clone)]
pub struct Simulation {
    world: Arc<Mutex<World>>,
    changed: Arc<Notify>,
}

#[derive(Debug)]
struct World {
    /// `None`: a process.
    carrier: Option<Carrier>,
    /// The version of the protocol.
    version: u16,
    rng: Random,
    /// Percentage of requests and events that fail.
    faults: u64,
    calm_at: Instant,
    down_until: Instant,
    /// The connection id.
    generation: u64,
    /// Whether a client has connected since the last restart.
    has_client: bool,
    /// Whether the agent begins turns of its own accord.
    may_begin_turns: bool,
    own_turns: u64,
    /// The sessions that are not closed.
    open: BTreeSet<String>,
    /// How many events are repeated when a stream is reopened.
    repeated: usize,
    sessions: u64,
    logs: BTreeMap<String, Vec<String>>,
    /// The running turns, by prompt.
    turns: BTreeMap<u64, String>,
    cancelled: BTreeSet<u64>,
    delivered: BTreeMap<u64, u32>,
    /// Number of requests of each session; over a single stream, all count as one.
    asks: BTreeMap<String, u64>,
    /// The session of each request, by that number.
    asked: BTreeMap<u64, String>,
    accepted: BTreeSet<(String, u64)>,
    updates: BTreeMap<String, u64>,
}

/// What happens to a request on its way.
enum Way {
    Unsent,
    ResetBefore,
    ResetAfter,
    Status(u16),
    Deliver,
}

impl Simulation {
    fn new(seed: u64, carrier: Option<Carrier>, version: u16) -> Self {
        let mut rng = Random::new(seed);
        let now = Instant::now();
        let repeated = [0, 2, usize::MAX][usize::try_from(rng.below(3)).unwrap()];
        let world = World {
            carrier,
            version,
            faults: rng.below(40),
            rng,
            calm_at: now + if seed.is_multiple_of(5) { LONG_ROUGH } else { ROUGH },
            down_until: now,
            generation: 1,
            has_client: false,
            may_begin_turns: version == 2,
            own_turns: 0,
            open: BTreeSet::new(),
            repeated,
            sessions: 0,
            logs: BTreeMap::new(),
            turns: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            delivered: BTreeMap::new(),
            asks: BTreeMap::new(),
            asked: BTreeMap::new(),
            accepted: BTreeSet::new(),
            updates: BTreeMap::new(),
        };
        Self { world: Arc::new(Mutex::new(world)), changed: Arc::default() }
    }

    fn has_session_streams(&self) -> bool {
        self.world().carrier == Some(Carrier::StreamableHttp)
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    fn emit(&self, stream: &str, event: String) {
        let stream = if self.has_session_streams() { stream } else { "" };
        self.world().logs.entry(stream.to_owned()).or_default().push(event);
        self.changed.notify_waiters();
    }

    /// A client connects; the connection before it ends.
    fn connect(&self) -> u64 {
        if self.world().has_client {
            self.restart();
        }
        let mut world = self.world();
        world.has_client = true;
        world.generation
    }

    /// The server loses its connection and its turns.
    fn restart(&self) {
        let mut world = self.world();
        world.generation += 1;
        world.has_client = false;
        world.logs.clear();
        world.turns.clear();
        drop(world);
        self.changed.notify_waiters();
    }

    /// Carries out a request, as the network and the server do.
    pub async fn carry_out(&self, request: Request) -> Result<Response, HttpError> {
        let (delay, way) = {
            let mut world = self.world();
            let now = Instant::now();
            let slow = if world.rng.below(20) == 0 { 20_000 } else { 300 };
            let delay = world.rng.millis(slow);
            let way = if now < world.down_until {
                Way::Unsent
            } else if now >= world.calm_at || world.rng.below(100) >= world.faults {
                Way::Deliver
            } else {
                match world.rng.below(6) {
                    0 => Way::Unsent,
                    1 => Way::ResetBefore,
                    2 => Way::ResetAfter,
                    _ => Way::Status([401, 429, 502, 503][usize::try_from(world.rng.below(4)).unwrap()]),
                }
            };
            (delay, way)
        };
        sleep(delay).await;
        let is_get = request.method() == Method::GET;
        match way {
            Way::Unsent => Err(lost(true)),
            Way::ResetBefore => Err(lost(false)),
            Way::Status(status) => {
                let response = response(status, &[("retry-after", "1")], Body::default());
                Err(HttpError::of_status(response, request.url().as_str(), None).await)
            }
            Way::ResetAfter if !is_get => {
                self.serve(&request);
                Err(lost(false))
            }
            Way::ResetAfter | Way::Deliver => {
                let response = if is_get { self.stream(&request) } else { self.serve(&request) };
                // Acknowledgements take their time, too.
                let delay = self.world().rng.millis(200);
                sleep(delay).await;
                if response.status() == StatusCode::NOT_FOUND || response.status().is_success() {
                    return Ok(response);
                }
                Err(HttpError::of_status(response, request.url().as_str(), None).await)
            }
        }
    }

    fn is_known(&self, request: &Request) -> bool {
        header(request, "acp-connection-id") == Some(self.world().generation.to_string())
    }

    /// Opens an event stream, which is cut sooner or later.
    fn stream(&self, request: &Request) -> Response {
        if !self.is_known(request) {
            return response(404, &[], Body::default());
        }
        let name = header(request, "acp-session-id").unwrap_or_default();
        if !name.is_empty() && !self.world().open.contains(&name) {
            return response(404, &[], Body::default());
        }
        let last: usize = header(request, "last-event-id").map_or(0, |id| id.parse().unwrap());
        let (sender, chunks) = mpsc::unbounded_channel();
        let this = self.clone();
        tokio::spawn(async move { this.feed(&name, last, &sender).await });
        response(200, &[("content-type", "text/event-stream")], Body::wrap(Chunks(chunks)))
    }

    async fn feed(&self, name: &str, last: usize, sender: &mpsc::UnboundedSender<io::Result<Bytes>>) {
        let (generation, mut position) = {
            let world = self.world();
            (world.generation, last.saturating_sub(world.repeated))
        };
        loop {
            let changed = self.changed.notified();
            let next = {
                let world = self.world();
                if world.generation != generation {
                    return;
                }
                world.logs.get(name).and_then(|log| log.get(position)).cloned()
            };
            let Some(event) = next else {
                tokio::select! {
                biased;
                    () = changed => {}
                    () = sleep(Duration::from_secs(15)) => {
                        let _ = sender.send(Ok(Bytes::from_static(b": keep-alive\n\n")));
                    }
                    () = sender.closed() => return,
                }
                continue;
            };
            position += 1;
            let text = format!("id: {position}\ndata: {event}\n\n");
            let (delay, cut) = {
                let mut world = self.world();
                let is_rough = Instant::now() < world.calm_at;
                let is_cut = is_rough && world.rng.below(200) < world.faults;
                (world.rng.millis(50), is_cut.then(|| world.rng.below(text.len() as u64)))
            };
            sleep(delay).await;
            let Some(cut) = cut else {
                let _ = sender.send(Ok(Bytes::from(text)));
                continue;
            };
            let cut = usize::try_from(cut).unwrap();
            let _ = sender.send(Ok(Bytes::copy_from_slice(&text.as_bytes()[..cut])));
            if cut % 2 == 0 {
                let _ = sender.send(Err(io::ErrorKind::ConnectionReset.into()));
            }
            return;
        }
    }

    /// The server handles a message.
    fn serve(&self, request: &Request) -> Response {
        if request.method() != Method::POST {
            return response(202, &[], Body::default());
        }
        let body = request.body().and_then(Body::as_bytes).unwrap();
        let message: Value = serde_json::from_slice(body).unwrap();
        let id = message["id"].as_u64();
        if message["method"] == "initialize" {
            let headers =
                [("content-type", "application/json"), ("acp-connection-id", &*self.connect().to_string())];
            let body = self.initialized(id.unwrap());
            return response(200, &headers, Body::from(body));
        }
        if !self.is_known(request) {
            return response(404, &[], Body::default());
        }
        self.serve_message(&message, header(request, "acp-session-id"));
        response(202, &[], Body::default())
    }
}

fn next(counts: &mut BTreeMap<String, u64>, session: &str) -> u64 {
    let count = counts.entry(session.to_owned()).or_default();
    *count += 1;
    *count
}

fn lost(is_unsent: bool) -> HttpError {
    let text = "The connection failed.".to_owned();
    HttpError { is_unsent, is_down: is_unsent, ..HttpError::on_the_way(text) }
}

fn header(request: &Request, name: &str) -> Option<String> {
    request.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
}

fn response(status: u16, headers: &[(&str, &str)], body: Body) -> Response {
    let mut response = http::Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    Response::from(response.body(body).unwrap())
}

/// A body whose chunks come from a channel.
struct Chunks(mpsc::UnboundedReceiver<io::Result<Bytes>>);

impl http_body::Body for Chunks {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<http_body::Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| chunk.map(http_body::Frame::data)))
    }
}

/// What is tested against the server.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// `None`: a process.
    carrier: Option<Carrier>,
    part: Part,
}

/// The part of parlor that is tested, with the version of the protocol.
#[derive(Debug, Clone, Copy)]
enum Part {
    Transport,
    Connection(u16),
    App(u16),
}

/// A transport to the simulated server.
fn transport(simulation: &Simulation, carrier: Option<Carrier>) -> Box<dyn Transport> {
    if carrier.is_none() {
        return Box::new(simulation.start_process());
    }
    let timeouts = Timeouts { jitter: 0, ..Timeouts::default() };
    let simulation = Some(simulation.clone());
    Box::new(RemoteAgent { timeouts, simulation, ..RemoteAgent::new(remote(carrier), None) })
}

fn remote(carrier: Option<Carrier>) -> Remote {
    Remote { url: "http://simulated.invalid/acp".to_owned(), carrier, ..Remote::default() }
}

/// Plays one history. Returns whether the connection survived.
fn play(seed: u64, Kind { carrier, part }: Kind) -> bool {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let version = match part {
            Part::Transport => None,
            Part::Connection(version) => Some(version),
            Part::App(version) => {
                let mut core = Core::start(seed, carrier, version);
                core.live().await;
                core.check();
                return true;
            }
        };
        let mut user = User::new(seed, carrier, version);
        user.live().await;
        user.check();
        user.end.is_none()
    })
}

fn play_all(carrier: Option<Carrier>, part: Part, histories: u64) {
    let kind = Kind { carrier, part };
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    if let Some(seed) = number("PARLOR_SEED") {
        play(seed, kind);
        return;
    }
    let count = number("PARLOR_HISTORIES").unwrap_or(histories);
    let mut survived = 0;
    for seed in 1..=count {
        let played = std::panic::catch_unwind(|| play(seed, kind));
        assert!(played.is_ok(), "history {seed} of {kind:?} failed; set PARLOR_SEED={seed} to replay it");
        survived += u64::from(played.is_ok_and(|is_alive| is_alive));
    }
    assert!(survived * 2 > count, "too few histories test a living connection: {survived}");
}

fn play_each(part: Part) {
    for carrier in [Some(Carrier::StreamableHttp), Some(Carrier::WebSocket), None] {
        play_all(carrier, part, CONNECTIONS);
    }
}

#[test]
fn messages_survive_a_bad_network() {
    play_all(Some(Carrier::StreamableHttp), Part::Transport, HISTORIES);
}

#[test]
fn messages_survive_a_bad_websocket() {
    play_all(Some(Carrier::WebSocket), Part::Transport, HISTORIES);
}

#[test]
fn messages_survive_a_slow_process() {
    play_all(None, Part::Transport, HISTORIES);
}

#[test]
fn acp_v1_turns_survive_a_bad_network() {
    play_each(Part::Connection(1));
}

#[test]
fn acp_v2_turns_survive_a_bad_network() {
    play_each(Part::Connection(2));
}

#[test]
fn acp_v1_the_app_survives_a_bad_network() {
    play_each(Part::App(1));
}

#[test]
fn acp_v2_the_app_survives_a_bad_network() {
    play_each(Part::App(2));
}
