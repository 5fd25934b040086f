//! Servers that respond in any order and on any path, hold POSTs open, and end their streams.
//!
//! In all cases, each request has one outcome, no update is lost or duplicated, each response and cancellation arrives
//! although the first attempts fail, and a cancellation is sent while the POSTs of the cancelled turn are open: they end
//! only because of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

use super::server::{Exchange, Server};
use super::{HANG, Peer, Timeouts, answer, at, request, timeouts, update};
use crate::acp::frame::InboundFrame;
use crate::acp::transport::In;
use crate::model::{Carrier, Remote};
use crate::random::Random;

const SEEDS: u64 = 16;
const REQUESTS: u64 = 14;
const SESSIONS: u64 = 3;

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Json,
    Events,
    Stream,
    Both,
    /// The POST fails, and the response is sent on the stream.
    CutThenStream,
    /// The POST fails without a response.
    Cut,
}

struct World {
    rng: Random,
    carrier: Carrier,
    /// The messages of each event stream, from its beginning.
    logs: BTreeMap<String, Vec<String>>,
    opened: BTreeSet<String>,
    cancelled: BTreeSet<String>,
    updates: u64,
    asks: u64,
    /// The requests of the server whose responses were accepted.
    answered: BTreeSet<u64>,
}

#[derive(Clone)]
struct Chaos {
    world: Arc<Mutex<World>>,
    changed: Arc<Notify>,
}

impl Chaos {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    fn say(&self, stream: &str, message: String) {
        self.world().logs.entry(stream.to_owned()).or_default().push(message);
        self.changed.notify_waiters();
    }

    /// The stream for a message of a session.
    fn stream_of(&self, session: &str) -> String {
        if self.world().carrier == Carrier::StreamableHttp { session.to_owned() } else { String::new() }
    }

    async fn serve(self, exchange: Exchange) {
        match exchange.method.as_str() {
            "GET" => self.stream(exchange).await,
            "POST" => self.post(exchange).await,
            _ => exchange.answer(202, &[], "").await,
        }
    }

    async fn stream(self, exchange: Exchange) {
        let name = exchange.header("acp-session-id").unwrap_or_default().to_owned();
        let last: usize = exchange.header("last-event-id").map_or(0, |id| id.parse().unwrap());
        let refusal = {
            let mut world = self.world();
            // A connection that is not known any more ends, and so does that of a server with a single stream.
            let statuses: &[u16] = match world.carrier {
                Carrier::StreamableHttp if name.is_empty() => &[409, 401, 503],
                Carrier::StreamableHttp => &[409, 400, 401, 404, 302, 503],
                _ => &[409],
            };
            let status = statuses[usize::try_from(world.rng.below(statuses.len() as u64)).unwrap()];
            (!world.opened.insert(name.clone()) && world.rng.one_in(5)).then_some(status)
        };
        if let Some(status) = refusal {
            return exchange.answer(status, &[], "").await;
        }
        let mut stream = exchange.stream;
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";
        let is_repeated = self.world().rng.one_in(3);
        let mut position = if is_repeated { last.saturating_sub(2) } else { last };
        if stream.write_all(head.as_bytes()).await.is_err() {
            return;
        }
        loop {
            let changed = self.changed.notified();
            let message = self.world().logs.entry(name.clone()).or_default().get(position).cloned();
            let Some(message) = message else {
                changed.await;
                continue;
            };
            position += 1;
            let (text, cut) = {
                let mut world = self.world();
                let end = ["\n", "\r", "\r\n"][usize::try_from(world.rng.below(3)).unwrap()];
                let text = match world.rng.below(3) {
                    0 => format!("id: {position}{end}data: {message}{end}{end}"),
                    1 => format!(": comment{end}data:{message}{end}id:{position}{end}{end}"),
                    _ => format!(
                        "event: message{end}id: {position}{end}retry: 1{end}data: {message}{end}{end}"
                    ),
                };
                let cut = usize::try_from(world.rng.below(text.len() as u64)).unwrap();
                (text, world.rng.one_in(5).then_some(cut))
            };
            let bytes = text.as_bytes();
            let bytes = cut.map_or(bytes, |cut| &bytes[..cut]);
            let middle = bytes.len() / 2;
            for part in [&bytes[..middle], &bytes[middle..]] {
                if stream.write_all(part).await.is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
            if cut.is_some() {
                let _ = stream.shutdown().await;
                return;
            }
        }
    }

    async fn post(self, exchange: Exchange) {
        let message: Value = serde_json::from_str(&exchange.body).unwrap();
        let session = message["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
        match (message["method"].as_str(), message["id"].as_u64()) {
            (Some("initialize"), Some(id)) => self.hello(exchange, id).await,
            (Some(_), Some(id)) => self.request(exchange, id, &session).await,
            (Some(_), None) => {
                let Some(exchange) = self.lose_first(exchange).await else { return };
                self.world().cancelled.insert(session);
                self.changed.notify_waiters();
                self.receipt(exchange).await;
            }
            (None, Some(id)) => {
                let Some(exchange) = self.lose_first(exchange).await else { return };
                self.world().answered.insert(id);
                self.receipt(exchange).await;
            }
            (None, None) => panic!("no message: {message}"),
        }
    }

    async fn hello(self, exchange: Exchange, id: u64) {
        let text = answer(id, r#"{"protocolVersion":1}"#);
        let carrier = self.world().carrier;
        match carrier {
            Carrier::StreamableHttp => {
                let headers = [("content-type", "application/json"), ("acp-connection-id", "c")];
                exchange.answer(200, &headers, &text).await;
            }
            Carrier::Post => exchange.json(&text).await,
            _ => {
                self.say("", text);
                exchange.answer(202, &[], "").await;
            }
        }
    }

    /// Loses some messages, with an error or without a response.
    async fn lose_first(&self, exchange: Exchange) -> Option<Exchange> {
        let way = self.world().rng.below(12);
        match way {
            0 => exchange.answer(502, &[], "").await,
            1 => exchange.answer(429, &[("retry-after", "0")], "").await,
            2 => drop(exchange),
            _ => return Some(exchange),
        }
        None
    }

    /// Confirms a message in one of several ways, or not at all.
    async fn receipt(&self, exchange: Exchange) {
        let way = self.world().rng.below(7);
        match way {
            0 => exchange.answer(204, &[], "").await,
            1 => exchange.answer(200, &[], "").await,
            2 => exchange.answer(200, &[("content-type", "text/plain")], "OK").await,
            3 => exchange.answer(200, &[("content-type", "application/json")], r#"{"ok":true}"#).await,
            4 => exchange.answer(202, &[("content-type", "application/json")], "{}").await,
            5 => std::future::pending().await,
            _ => exchange.answer(202, &[], "").await,
        }
    }

    async fn request(&self, mut exchange: Exchange, id: u64, session: &str) {
        let has_stream = self.world().carrier != Carrier::Post;
        let (way, is_held, updates) = {
            let mut world = self.world();
            let ways: &[Way] = match world.carrier {
                Carrier::Post => &[Way::Json, Way::Events, Way::Cut],
                _ => &[
                    Way::Json,
                    Way::Events,
                    Way::Stream,
                    Way::Stream,
                    Way::Both,
                    Way::CutThenStream,
                    Way::Cut,
                ],
            };
            let way = ways[usize::try_from(world.rng.below(ways.len() as u64)).unwrap()];
            let count = world.rng.below(4);
            let first = world.updates;
            // Without a stream, updates are sent in the POST.
            let has_position = has_stream || way == Way::Events;
            let end = if has_position { first + count } else { first };
            world.updates = end;
            (way, world.rng.one_in(2), first..end)
        };
        let stream = self.stream_of(session);
        let in_post = way == Way::Events;
        if in_post {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let _ = exchange.stream.write_all(head.as_bytes()).await;
        }
        for number in updates {
            let text = update(session, number);
            if in_post {
                let _ = exchange.stream.write_all(format!("data: {text}\n\n").as_bytes()).await;
            } else {
                self.say(&stream, text);
            }
        }
        if has_stream && self.world().rng.one_in(4) {
            let number = {
                let mut world = self.world();
                world.asks += 1;
                9_000 + world.asks
            };
            let params = format!(r#"{{"sessionId":"{session}","options":[]}}"#);
            self.say(&stream, request(number, "session/request_permission", &params));
        }
        if is_held {
            loop {
                let changed = self.changed.notified();
                if self.world().cancelled.contains(session) {
                    break;
                }
                changed.await;
            }
        }
        let text = answer(id, "{}");
        match way {
            Way::Json => exchange.json(&text).await,
            Way::Events => {
                let _ = exchange.stream.write_all(format!("data: {text}\n\n").as_bytes()).await;
                let _ = exchange.stream.shutdown().await;
            }
            Way::Stream => {
                self.say(&stream, text);
                self.receipt(exchange).await;
            }
            Way::Both => {
                self.say(&stream, text.clone());
                exchange.json(&text).await;
            }
            Way::Cut | Way::CutThenStream => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{";
                let _ = exchange.stream.write_all(head.as_bytes()).await;
                let _ = exchange.stream.shutdown().await;
                if way == Way::CutThenStream {
                    self.say(&stream, text);
                }
            }
        }
    }
}

/// The received messages, with counts.
#[derive(Default)]
struct Heard {
    outcomes: BTreeMap<u64, u32>,
    updates: BTreeMap<u64, u32>,
    asks: BTreeSet<u64>,
}

impl Heard {
    fn take(&mut self, peer: &Peer, pieces: Vec<InboundFrame>) {
        for piece in pieces {
            let InboundFrame::Frame(frame) = piece else { panic!("{piece:?}") };
            let message: Value = serde_json::from_str(frame.text()).unwrap();
            match (message["method"].as_str(), message["id"].as_u64()) {
                (None, Some(id)) => *self.outcomes.entry(id).or_default() += 1,
                (Some("session/update"), None) => {
                    *self.updates.entry(message["params"]["n"].as_u64().unwrap()).or_default() += 1;
                }
                (Some("session/request_permission"), Some(id)) => {
                    assert!(self.asks.insert(id), "duplicate request: {id}");
                    peer.say(&answer(id, r#"{"outcome":{"outcome":"cancelled"}}"#));
                }
                _ => panic!("{message}"),
            }
        }
    }
}

async fn play(seed: u64, carrier: Carrier) {
    let mut server = Server::start().await;
    let path = if carrier == Carrier::RpcSse { "/acp/rpc" } else { "/acp" };
    let mut rng = Random::new(seed);
    let chaos = Chaos {
        world: Arc::new(Mutex::new(World {
            rng: Random::new(rng.below(u64::MAX / 2)),
            carrier,
            logs: BTreeMap::new(),
            opened: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            updates: 0,
            asks: 0,
            answered: BTreeSet::new(),
        })),
        changed: Arc::new(Notify::new()),
    };
    let remote = Remote { carrier: Some(carrier), ..at(&server, path) };
    let hasty = Timeouts {
        head_start: Duration::from_millis(5),
        in_flight: Duration::from_millis(1),
        grace: Duration::from_millis(100),
        drain: Duration::from_millis(50),
        ..timeouts()
    };
    let served = chaos.clone();
    let serving = tokio::spawn(async move {
        let mut handlers = tokio::task::JoinSet::new();
        loop {
            handlers.spawn(served.clone().serve(server.next().await));
        }
    });
    let mut peer = Peer::patiently(remote, hasty);
    peer.say(super::INITIALIZE);
    let mut heard = Heard::default();
    let session = |number: u64| format!("s{number}");
    for id in 2..2 + REQUESTS {
        let session = session(rng.below(SESSIONS));
        peer.say(&request(id, "session/prompt", &json!({"sessionId": session, "prompt": []}).to_string()));
    }
    let cancels = (0..SESSIONS).map(|number| {
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session(number)}})
    });
    for cancel in cancels {
        peer.say(&cancel.to_string());
    }
    let is_complete = |heard: &Heard| {
        let world = chaos.world();
        let count = |updates| usize::try_from(updates).unwrap();
        heard.outcomes.len() == count(REQUESTS + 1)
            && heard.updates.len() == count(world.updates)
            && heard.asks.len() == count(world.asks)
            && world.answered.len() == count(world.asks)
    };
    // Responses of parlor are not events of the peer, so the state of the server is checked repeatedly.
    let deadline = tokio::time::Instant::now() + HANG;
    while !is_complete(&heard) {
        let changed = chaos.changed.notified();
        tokio::select! {
            message = peer.next() => match message {
                In::Pieces(pieces) => heard.take(&peer, pieces),
                In::Note(_) | In::Undelivered { .. } | In::Interrupted(_) => {}
                In::Closed(end) => panic!("seed {seed} {carrier:?}: it ended: {end:?}"),
            },
            () = changed => {}
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
        let (outcomes, updates) = (&heard.outcomes, &heard.updates);
        assert!(tokio::time::Instant::now() < deadline, "seed {seed} {carrier:?}: {outcomes:?} {updates:?}");
    }
    peer.stop(false);
    loop {
        match peer.next().await {
            In::Pieces(pieces) => heard.take(&peer, pieces),
            In::Note(_) | In::Undelivered { .. } | In::Interrupted(_) => {}
            In::Closed(_) => break,
        }
    }
    serving.abort();
    for (what, counts) in [("outcome", &heard.outcomes), ("update", &heard.updates)] {
        assert!(counts.values().all(|count| *count == 1), "seed {seed} {carrier:?}: {what}s {counts:?}");
    }
}

async fn play_all(carrier: Carrier) {
    for seed in 1..=SEEDS {
        play(seed, carrier).await;
    }
}

#[tokio::test]
async fn streamable_http_survives_chaos() {
    play_all(Carrier::StreamableHttp).await;
}

#[tokio::test]
async fn posts_with_one_stream_survive_chaos() {
    play_all(Carrier::PostSse).await;
}

#[tokio::test]
async fn posts_with_a_client_id_survive_chaos() {
    play_all(Carrier::RpcSse).await;
}

#[tokio::test]
async fn answers_in_posts_survive_chaos() {
    play_all(Carrier::Post).await;
}
