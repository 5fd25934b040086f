//! Transports start or reach an agent, carry messages in both directions, and report once how the connection ended.
//!
//! [`Link::incoming`] is bounded and yields everything that waits; [`Outgoing`] sends; [`Stopper`] ends the
//! connection. No code above this module depends on the kind of transport. The peer takes everything that waits at once,
//! because it reads at most once per frame. Readers wait while `WAITING_MAX_KIB` wait for the peer; outgoing frames
//! never wait, and reading from the agent pauses when too many of them are unread.
//! Invariants: `Closed` is sent once and last; writing never waits for reading, nor reading for writing; stopping
//! always works.

mod io;
#[cfg(any(test, fuzzing))]
#[path = "transport/tests/memory.rs"]
pub mod memory;
pub mod remote;
mod secret;
mod ssh;
mod stderr;
pub mod stdio;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use tokio::sync::{Notify, Semaphore, mpsc, watch};

use crate::acp::frame::InboundFrame;
use crate::acp::tap::Tap;
use crate::model::{Capacity, CloseReason};

/// `data` of the error that a transport creates for a request whose response was lost.
pub const UNDELIVERED: &str = r#"{"parlor":"undelivered"}"#;
/// `data` of the error for a request that was not sent because it is over the server's limit.
pub const UNSENT: &str = r#"{"parlor":"unsent"}"#;

pub trait Transport: Send + 'static {
    /// Starts the connection on the current runtime; after an error nothing is running. May block.
    fn start(self: Box<Self>, setup: Setup) -> Result<Link, CloseReason>;
}

#[derive(Debug, Clone)]
pub struct Setup {
    pub max_frame_bytes: usize,
    pub tap: Tap,
    pub stderr_log: Option<PathBuf>,
}

#[derive(Debug)]
pub struct Link {
    pub pid: Option<u32>,
    /// What the sandbox of the process enforces.
    pub sandbox: Option<String>,
    /// Incoming messages in order; ends after `Closed`.
    pub incoming: Incoming,
    /// Outgoing messages. Dropping it closes the agent's stdin once everything is written.
    pub outgoing: Outgoing,
    pub stopper: Stopper,
}

#[derive(Debug)]
pub struct Ends {
    pub sink: Sink,
    pub frames: OutgoingFrames,
    pub signal: StopSignal,
}

impl Link {
    pub fn new() -> (Self, Ends) {
        let (messages, received) = mpsc::unbounded_channel();
        let (demand, room) = (Arc::<Notify>::default(), Arc::new(Semaphore::new(WAITING_MAX_KIB as usize)));
        let sink = Sink { messages, room: Arc::clone(&room), demand: Arc::clone(&demand) };
        let incoming = Incoming { messages: received, room, demand, next: None, has_asked: false };
        let (frames, queued) = mpsc::unbounded_channel();
        let load = Arc::<Load>::default();
        let outgoing = Outgoing { frames, load: Arc::clone(&load), has_run_over: AtomicBool::default() };
        let (level, receiver) = watch::channel(StopLevel::Run);
        let retry = Arc::<Notify>::default();
        let stopper = Stopper { level, retry: Arc::clone(&retry) };
        let frames = OutgoingFrames { frames: queued, load };
        let ends = Ends { sink, frames, signal: StopSignal { level: receiver, retry } };
        (Self { pid: None, sandbox: None, incoming, outgoing, stopper }, ends)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    Run,
    Polite,
    Force,
}

/// Ends a connection. Repeated calls are allowed; force takes precedence.
#[derive(Debug)]
pub struct Stopper {
    level: watch::Sender<StopLevel>,
    retry: Arc<Notify>,
}

impl Stopper {
    pub fn retry_now(&self) {
        self.retry.notify_waiters();
    }

    /// Ends the connection in steps or, with force, immediately. The caller drops `outgoing` as well.
    pub fn stop(&self, force: bool) {
        let wanted = if force { StopLevel::Force } else { StopLevel::Polite };
        self.level.send_if_modified(|level| std::mem::replace(level, wanted.max(*level)) < wanted);
    }
}

#[derive(Debug, Clone)]
pub struct StopSignal {
    level: watch::Receiver<StopLevel>,
    pub retry: Arc<Notify>,
}

impl StopSignal {
    /// Waits for a stop request; a dropped stopper counts as one.
    pub async fn wanted(&mut self) {
        let _ = self.level.wait_for(|level| *level > StopLevel::Run).await;
    }

    /// Waits for a forced stop; never returns if the stopper was dropped.
    pub async fn forced(&mut self) {
        if self.level.wait_for(|level| *level == StopLevel::Force).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub fn is_wanted(&self) -> bool {
        *self.level.borrow() > StopLevel::Run
    }

    pub fn is_forced(&self) -> bool {
        *self.level.borrow() == StopLevel::Force
    }
}

/// Maximum size of the messages that wait, in KiB; each counts for at least one. One longer message is allowed.
const WAITING_MAX_KIB: u32 = 512;
/// Maximum size of messages that are taken at once, unless a single one is larger.
const TAKEN_MAX_BYTES: usize = 256 << 10;

/// What a transport reports. Undelivered is a notification or response, with its session if that is known, in full
/// sentences; interrupted, whether a connection is lost and parlor tries to restore it. `Closed` is always the last.
#[derive(Debug)]
pub enum In {
    Pieces(Vec<InboundFrame>),
    Note(String),
    Undelivered { session: Option<String>, text: String },
    Interrupted(bool),
    Closed(CloseReason),
}

#[derive(Debug)]
pub struct Disconnected;

#[derive(Debug, Clone)]
pub struct Sink {
    messages: mpsc::UnboundedSender<(In, u32)>,
    room: Arc<Semaphore>,
    /// Notified when the peer waits for a message.
    pub demand: Arc<Notify>,
}

impl Sink {
    pub async fn send(&self, message: In) -> Result<(), Disconnected> {
        let kib = u32::try_from(len_bytes(&message) >> 10).unwrap_or(u32::MAX).clamp(1, WAITING_MAX_KIB);
        self.room.acquire_many(kib).await.map_err(|_| Disconnected)?.forget();
        self.messages.send((message, kib)).map_err(|_| Disconnected)
    }

    /// Sends a small message without waiting for room.
    pub fn report(&self, message: In) {
        // Without a receiver, nobody needs it.
        let _ = self.messages.send((message, 0));
    }
}

/// The receiving end. It requests data only while the peer waits, so that a pipe does not wake parlor in the meantime.
#[derive(Debug)]
pub struct Incoming {
    messages: mpsc::UnboundedReceiver<(In, u32)>,
    room: Arc<Semaphore>,
    demand: Arc<Notify>,
    /// Taken together with the previous message, but of another kind.
    next: Option<In>,
    has_asked: bool,
}

impl Incoming {
    /// The next message, with those behind it; `None` after the last one. Cancel safe: dropping it loses no message.
    pub async fn recv(&mut self) -> Option<In> {
        if let Some(next) = self.next.take() {
            return Some(next);
        }
        if !std::mem::replace(&mut self.has_asked, true) {
            self.demand.notify_one();
        }
        let message = self.messages.recv().await;
        self.has_asked = false;
        let message = self.taken(message?);
        let In::Pieces(mut pieces) = message else { return Some(message) };
        let mut bytes = pieces_bytes(&pieces);
        while bytes < TAKEN_MAX_BYTES && self.next.is_none() {
            let Ok(more) = self.messages.try_recv() else { break };
            match self.taken(more) {
                In::Pieces(mut more) => {
                    bytes += pieces_bytes(&more);
                    pieces.append(&mut more);
                }
                other => self.next = Some(other),
            }
        }
        Some(In::Pieces(pieces))
    }

    fn taken(&self, (message, kib): (In, u32)) -> In {
        self.room.add_permits(kib as usize);
        message
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.room.close();
    }
}

fn len_bytes(message: &In) -> usize {
    match message {
        In::Pieces(pieces) => pieces_bytes(pieces),
        In::Note(text) | In::Undelivered { text, .. } => text.len(),
        In::Interrupted(_) | In::Closed(_) => 0,
    }
}

fn pieces_bytes(pieces: &[InboundFrame]) -> usize {
    pieces.iter().map(InboundFrame::len_bytes).sum()
}

/// The queue is full from this size: only an agent that sends requests without reading the responses gets here.
const FULL: Capacity = Capacity { items: 16_384, bytes: 16 << 20 };
/// Room for responses that were in progress when the queue became full. More is an overflow.
const MAX: Capacity = Capacity { items: 65_536, bytes: 128 << 20 };
/// Maximum size of one write, unless a single frame is larger.
const TAKEN: Capacity = Capacity { items: 64, bytes: 256 << 10 };

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundFrame {
    /// One JSON text without line breaks.
    pub bytes: Bytes,
    /// For a response: the session whose request it answers.
    pub session: Option<Arc<str>>,
}

impl From<Bytes> for OutboundFrame {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, session: None }
    }
}

/// The number and the bytes of the frames that are queued or being written.
type Load = watch::Sender<(usize, usize)>;

/// The queue of frames to be written. Sending never waits and never fails; what can no longer be written is dropped.
#[derive(Debug)]
pub struct Outgoing {
    frames: mpsc::UnboundedSender<OutboundFrame>,
    load: Arc<Load>,
    has_run_over: AtomicBool,
}

impl Outgoing {
    pub fn send(&self, frame: impl Into<OutboundFrame>) {
        let frame = frame.into();
        if self.has_run_over() || self.frames.is_closed() {
            return;
        }
        let len_bytes = frame.bytes.len();
        let (items, bytes) = *self.load.borrow();
        if items > 0 && (items >= MAX.items || bytes.saturating_add(len_bytes) > MAX.bytes) {
            self.has_run_over.store(true, Ordering::Relaxed);
            return;
        }
        self.load.send_modify(|(items, bytes)| (*items, *bytes) = (*items + 1, *bytes + len_bytes));
        let _ = self.frames.send(frame);
    }

    pub fn is_full(&self) -> bool {
        let (items, bytes) = *self.load.borrow();
        !self.frames.is_closed() && (items >= FULL.items || bytes >= FULL.bytes)
    }

    pub fn has_run_over(&self) -> bool {
        self.has_run_over.load(Ordering::Relaxed)
    }

    /// Waits until a full queue has room, or its receiver was dropped.
    pub async fn drained(&self) {
        let mut load = self.load.subscribe();
        while self.is_full() {
            tokio::select! {
                _ = load.changed() => {}
                () = self.frames.closed() => {}
            }
        }
    }
}

#[derive(Debug)]
pub struct OutgoingFrames {
    frames: mpsc::UnboundedReceiver<OutboundFrame>,
    load: Arc<Load>,
}

impl OutgoingFrames {
    /// Waits for frames and appends them to a buffer; returns their number, 0 at the end.
    pub async fn take(&mut self, frames: &mut Vec<OutboundFrame>) -> usize {
        let (mut next, mut count, mut bytes) = (self.frames.recv().await, 0, 0);
        while let Some(frame) = next {
            count += 1;
            bytes += frame.bytes.len();
            frames.push(frame);
            let has_room = count < TAKEN.items && bytes < TAKEN.bytes;
            next = if has_room { self.frames.try_recv().ok() } else { None };
        }
        count
    }

    pub fn written(&self, frame: &OutboundFrame) {
        self.load.send_modify(|(items, bytes)| (*items, *bytes) = (*items - 1, *bytes - frame.bytes.len()));
    }
}
