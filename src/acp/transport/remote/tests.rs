//! Tests of the remote transports, against scripted servers on this machine.

mod chaos;
mod delivery;
mod found;
mod http;
mod post;
mod refused;
mod rough;
mod server;
mod simulated;
mod socket;
mod split;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use self::server::Server;
pub use self::simulated::Simulation;
use super::{RemoteAgent, Timeouts};
use crate::acp::frame::{DEFAULT_FRAME_BYTES, InboundFrame};
use crate::acp::tap::{Direction, Tap};
use crate::acp::transport::{In, Link, OutboundFrame, Setup, Transport};
use crate::model::{Carrier, CloseReason, Remote};

/// Longer than any test takes.
const HANG: Duration = Duration::from_secs(30);

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
const INITIALIZED: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"test","version":"1"}}}"#;

/// The default timeouts, with short delays between attempts.
fn timeouts() -> Timeouts {
    Timeouts {
        min_pause: Duration::from_millis(5),
        max_pause: Duration::from_millis(20),
        ..Timeouts::default()
    }
}

/// A client's side of a connection.
struct Peer {
    link: Link,
    tap: Tap,
    /// Messages that were received together with earlier ones.
    left: VecDeque<InboundFrame>,
}

impl Peer {
    /// Connects to an agent at a URL.
    fn connect(remote: Remote) -> Self {
        Self::patiently(remote, timeouts())
    }

    fn patiently(remote: Remote, timeouts: Timeouts) -> Self {
        Self::limited(remote, timeouts, DEFAULT_FRAME_BYTES)
    }

    fn limited(remote: Remote, timeouts: Timeouts, max_frame_bytes: usize) -> Self {
        Self::begin(RemoteAgent { timeouts, ..RemoteAgent::new(remote, None) }, max_frame_bytes)
    }

    /// Connects to an agent with a profile.
    fn of(agent: RemoteAgent) -> Self {
        Self::begin(RemoteAgent { timeouts: timeouts(), ..agent }, DEFAULT_FRAME_BYTES)
    }

    fn begin(agent: RemoteAgent, max_frame_bytes: usize) -> Self {
        Self::over(Box::new(agent), max_frame_bytes)
    }

    fn over(transport: Box<dyn Transport>, max_frame_bytes: usize) -> Self {
        let tap = Tap::default();
        let setup = Setup { max_frame_bytes, tap: tap.clone(), stderr_log: None };
        let link = transport.start(setup).expect("these transports always start");
        Self { link, tap, left: VecDeque::new() }
    }

    /// Connects to a scripted server and sends `initialize`.
    fn to(server: &Server, path: &str, carrier: Option<Carrier>) -> Self {
        let peer = Self::connect(Remote { carrier, ..at(server, path) });
        peer.say(INITIALIZE);
        peer
    }

    fn say(&self, text: &str) {
        self.link.outgoing.send(Bytes::copy_from_slice(text.as_bytes()));
    }

    /// Responds to a request of a session.
    fn respond(&self, session: &str, text: &str) {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        self.link.outgoing.send(OutboundFrame { bytes, session: Some(session.into()) });
    }

    /// The next message; notes are skipped.
    async fn hear(&mut self) -> String {
        loop {
            match self.next().await {
                In::Pieces(pieces) => {
                    let [piece] = pieces.as_slice() else { panic!("one message at a time: {pieces:?}") };
                    match piece {
                        InboundFrame::Frame(frame) => return frame.text().to_owned(),
                        other => panic!("no message: {other:?}"),
                    }
                }
                In::Note(_) | In::Undelivered { .. } | In::Interrupted(_) => {}
                In::Closed(end) => panic!("it ended: {end:?}"),
            }
        }
    }

    /// The next `count` messages, in any number of reads.
    async fn hear_all(&mut self, count: usize) -> Vec<String> {
        let mut heard = Vec::new();
        while heard.len() < count {
            let In::Pieces(pieces) = self.next().await else { continue };
            heard.extend(pieces.into_iter().map(|piece| match piece {
                InboundFrame::Frame(frame) => frame.text().to_owned(),
                other => panic!("no message: {other:?}"),
            }));
        }
        heard
    }

    /// The length of a skipped message.
    async fn oversize(&mut self) -> u64 {
        match self.next().await {
            In::Pieces(pieces) => match pieces.as_slice() {
                [InboundFrame::Oversize { len_bytes, .. }] => *len_bytes,
                other => panic!("not left out: {other:?}"),
            },
            other => panic!("no message: {other:?}"),
        }
    }

    /// The next event about the connection, which must be a note.
    async fn note(&mut self) -> String {
        loop {
            match self.next().await {
                In::Note(text) | In::Undelivered { text, .. } => return text,
                In::Interrupted(_) => {}
                other => panic!("no note: {other:?}"),
            }
        }
    }

    /// Waits until the connection is reported as interrupted or restored; notes are skipped.
    async fn interrupted(&mut self) -> bool {
        loop {
            match self.next().await {
                In::Interrupted(is_interrupted) => return is_interrupted,
                In::Note(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The end, which must be the next event except for notes.
    async fn end(&mut self) -> CloseReason {
        loop {
            match self.next().await {
                In::Closed(end) => {
                    assert!(self.link.incoming.recv().await.is_none(), "`Closed` is the last event");
                    return end;
                }
                In::Note(_) | In::Undelivered { .. } | In::Interrupted(_) => {}
                In::Pieces(pieces) => panic!("not the end: {pieces:?}"),
            }
        }
    }

    /// The end; other events are skipped.
    async fn rest(&mut self) -> CloseReason {
        loop {
            if let In::Closed(end) = self.next().await {
                assert!(self.link.incoming.recv().await.is_none(), "`Closed` is the last event");
                return end;
            }
        }
    }

    /// Waits for a message that contains a text; others are skipped.
    async fn answer_to(&mut self, word: &str) {
        loop {
            match self.next().await {
                In::Pieces(pieces) => {
                    let holds = |piece: &InboundFrame| matches!(piece, InboundFrame::Frame(frame) if frame.text().contains(word));
                    if pieces.iter().any(holds) {
                        return;
                    }
                }
                In::Note(_) | In::Undelivered { .. } | In::Interrupted(_) => {}
                In::Closed(end) => panic!("it ended: {end:?}"),
            }
        }
    }

    /// Stops the connection, as the peer does: drops the queue.
    fn stop(&mut self, force: bool) {
        let nothing = Link::new().0.outgoing;
        drop(std::mem::replace(&mut self.link.outgoing, nothing));
        self.link.stopper.stop(force);
    }

    /// The next event; messages one by one.
    async fn next(&mut self) -> In {
        if let Some(piece) = self.left.pop_front() {
            return In::Pieces(vec![piece]);
        }
        match timeout(HANG, self.link.incoming.recv()).await.expect("timed out") {
            Some(In::Pieces(mut pieces)) => {
                self.left.extend(pieces.drain(1..));
                In::Pieces(pieces)
            }
            event => event.expect("`Closed` is sent first"),
        }
    }

    /// The lines of parlor in the protocol log.
    fn log(&self) -> String {
        let lines = self.tap.snapshot(None, usize::MAX).into_iter();
        let lines = lines.filter(|line| line.direction == Direction::Stderr);
        lines.map(|line| line.text).collect::<Vec<_>>().join("\n")
    }
}

/// A path of a scripted server as the URL of an agent.
fn at(server: &Server, path: &str) -> Remote {
    Remote { url: server.url(path), ..Remote::default() }
}

fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn answer(id: u64, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn update(session: &str, number: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","n":{number}}}}}"#
    )
}
