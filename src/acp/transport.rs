//! Transports carry messages between the peer and an agent.
//!
//! They start or reach an agent, carry messages in both directions, and report once how the connection ended.
//! [`Link::incoming`] is bounded and yields everything that waits; [`Outgoing`] sends; [`Stopper`] ends the
//! connection. No code above this module depends on the kind of transport.
//! Invariants: `Closed` is sent once and last; writing never waits for reading, nor reading for writing; stopping
//! always works.

mod inbound;
mod io;
pub mod memory;
mod printed;
mod process;
mod queue;
pub mod remote;
mod ssh;
mod stderr;
pub mod stdio;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{Notify, watch};

use super::frame::InboundFrame;
use super::tap::Tap;
use crate::model::{CloseReason, ExitInfo};

use inbound::Sink;
pub use inbound::{Disconnected, Incoming};
pub use process::kill_all;
pub use queue::Outgoing;
#[cfg(test)]
pub use queue::OutgoingFrames;

/// `data` of the error that a transport creates for a request whose response was lost.
pub const UNDELIVERED: &str = r#"{"parlor":"undelivered"}"#;
/// `data` of the error for a request that was not sent because it is over the server's limit.
pub const UNSENT: &str = r#"{"parlor":"unsent"}"#;

/// A way to start or reach an agent.
pub trait Transport: Send + 'static {
    /// Starts the connection on the current runtime; after an error nothing is running. May block.
    fn start(self: Box<Self>, setup: Setup) -> Result<Link, CloseReason>;
}

#[derive(Debug, Clone)]
pub struct Setup {
    /// Maximum size of a message in bytes; a longer one is skipped and reported.
    pub max_frame_bytes: usize,
    /// Records the agent's stderr.
    pub tap: Tap,
    /// Log file of the agent's stderr; `None`: in memory only.
    pub stderr_log: Option<PathBuf>,
}

/// A message to the agent.
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

#[derive(Debug)]
pub struct Link {
    /// Process id of a local agent.
    pub pid: Option<u32>,
    /// Incoming messages in order; ends after `Closed`.
    pub incoming: Incoming,
    /// Outgoing messages. Dropping it closes the agent's stdin once everything is written.
    pub outgoing: Outgoing,
    pub stopper: Stopper,
}

#[derive(Debug)]
pub enum In {
    Pieces(Vec<InboundFrame>),
    Note(String),
    /// A notification or response that could not be delivered, with its session if that is known. Full sentences.
    Undelivered {
        session: Option<String>,
        text: String,
    },
    /// Whether the connection to a server is interrupted and parlor tries to restore it.
    Interrupted(bool),
    /// The end of the connection; always the last event.
    Closed(LinkEnd),
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEnd {
    Exited {
        status: ExitInfo,
        /// The last lines of stderr, oldest first.
        stderr_tail: Vec<String>,
    },
    /// The stream ended, but the process did not, or there is none.
    Eof,
    Io(String),
    /// A server could not be reached; a retry may help. Full sentences.
    Unreachable(String),
    /// A server rejected the connection; a retry does not help. Full sentences.
    Refused(String),
    /// A host requires a sign-in in the user's terminal. Full sentences.
    SignInFirst(String),
    /// The agent could not be started on its host. Full sentences.
    NotStarted(String),
}

/// A link whose process does not exist.
#[cfg(test)]
pub fn test_link() -> (Outgoing, queue::OutgoingFrames, Stopper) {
    let (outgoing, frames) = queue::queue();
    (outgoing, frames, Stopper::new().0)
}

/// How a connection is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StopLevel {
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
    fn new() -> (Self, StopSignal) {
        let (level, receiver) = watch::channel(StopLevel::Run);
        let retry = Arc::<Notify>::default();
        (Self { level, retry: Arc::clone(&retry) }, StopSignal { level: receiver, retry })
    }

    /// Ends the delays before the next attempts of an interrupted connection.
    pub fn retry_now(&self) {
        self.retry.notify_waiters();
    }

    /// Ends the connection in steps or, with force, immediately. The caller drops `outgoing` as well.
    pub fn stop(&self, force: bool) {
        let wanted = if force { StopLevel::Force } else { StopLevel::Polite };
        self.level.send_if_modified(|level| {
            let is_more = wanted > *level;
            *level = wanted.max(*level);
            is_more
        });
    }
}

/// The receiving end of a [`Stopper`].
#[derive(Debug, Clone)]
struct StopSignal {
    level: watch::Receiver<StopLevel>,
    /// Notified when delays before the next attempts should end.
    retry: Arc<Notify>,
}

impl StopSignal {
    /// Waits for a stop request; a dropped stopper counts as one.
    async fn wanted(&mut self) {
        let _ = self.level.wait_for(|level| *level > StopLevel::Run).await;
    }

    /// Waits for a forced stop; never returns if the stopper was dropped.
    async fn forced(&mut self) {
        if self.level.wait_for(|level| *level == StopLevel::Force).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn is_wanted(&self) -> bool {
        *self.level.borrow() > StopLevel::Run
    }

    fn is_forced(&self) -> bool {
        *self.level.borrow() == StopLevel::Force
    }
}
