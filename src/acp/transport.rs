//! Carriers of messages: the seam between the peer and the outside.
//!
//! Duty: start an agent or reach one, carry frames both ways, tell once how it ended. Frames come out by
//! [`Link::incoming`], bounded, one message per read; frames go in by [`Outgoing`]; [`Stopper`] ends it.
//! Not its duty: what a frame means. Nothing above knows a pipe from a socket.
//! Invariants: `Closed` is sent once and last; writing never waits for reading, nor reading for writing;
//! stopping works whatever the other side does.

mod io;
pub mod memory;
mod process;
mod queue;
pub mod remote;
mod ssh;
mod stderr;
pub mod stdio;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use tokio::sync::{mpsc, watch};

use super::frame::InboundFrame;
use super::tap::Tap;
use crate::model::{CloseReason, ExitInfo};

pub use process::kill_all;
pub use queue::Outgoing;

/// How many reads wait for the peer; each holds what one read gave, at most 256 KiB or one long frame.
const INCOMING_READS: usize = 2;

/// What stands as `data` in an error that the line makes for a request whose answer it lost.
pub const UNDELIVERED: &str = r#"{"parlor":"undelivered"}"#;
/// The same for a request that it did not even send, because the other side takes none of that size.
pub const UNSENT: &str = r#"{"parlor":"unsent"}"#;

/// A way to an agent.
pub trait Transport: Send + 'static {
    /// Starts it on the current runtime. An error means that nothing runs.
    fn start(self: Box<Self>, setup: Setup) -> Result<Link, CloseReason>;
}

/// What a transport needs to know.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Longest frame, in bytes; a longer one is skipped and reported.
    pub max_frame_bytes: usize,
    /// Sees what does not come as a frame: the agent's stderr.
    pub tap: Tap,
    /// Where the agent's stderr is kept; `None`: only in memory.
    pub stderr_log: Option<PathBuf>,
}

/// A running transport.
#[derive(Debug)]
pub struct Link {
    /// Process id, if there is a process of ours.
    pub pid: Option<u32>,
    /// What comes in, in order; ends after `Closed`.
    pub incoming: mpsc::Receiver<In>,
    /// What goes out. Dropping it closes the agent's stdin once all is written.
    pub outgoing: Outgoing,
    /// Ends the link.
    pub stopper: Stopper,
}

/// What comes in.
#[derive(Debug)]
pub enum In {
    /// What one read gave.
    Pieces(Vec<InboundFrame>),
    /// Something irregular on the way, in one sentence.
    Note(String),
    /// The end; the last message.
    Closed(LinkEnd),
}

/// How a link ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEnd {
    /// The process ended.
    Exited {
        status: ExitInfo,
        /// The last lines of its stderr, oldest first.
        stderr_tail: Vec<String>,
    },
    /// The stream ended, and the process lives or is not ours.
    Eof,
    /// The stream broke.
    Io(String),
    /// A server was not reached; trying again may help. Whole sentences.
    Unreachable(String),
    /// A server refused us; trying again would change nothing. Whole sentences.
    Refused(String),
    /// A host wants a sign-in that needs the user's terminal. Whole sentences.
    SignInFirst(String),
    /// The agent was not started on its host. Whole sentences.
    NotStarted(String),
}

/// A link without another side.
#[cfg(test)]
pub fn test_link() -> (Outgoing, queue::OutgoingFrames, Stopper) {
    let (outgoing, frames) = queue::queue();
    (outgoing, frames, Stopper::new().0)
}

/// How far a link is to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StopLevel {
    Run,
    Polite,
    Force,
}

/// Ends a link. Asking twice is fine; force wins.
#[derive(Debug)]
pub struct Stopper {
    level: watch::Sender<StopLevel>,
}

impl Stopper {
    fn new() -> (Self, StopSignal) {
        let (level, receiver) = watch::channel(StopLevel::Run);
        (Self { level }, StopSignal { level: receiver })
    }

    /// Ends the link: politely and in steps, or at once. Drop the link's `outgoing` as well.
    pub fn stop(&self, force: bool) {
        let wanted = if force { StopLevel::Force } else { StopLevel::Polite };
        self.level.send_if_modified(|level| {
            let is_more = wanted > *level;
            *level = wanted.max(*level);
            is_more
        });
    }
}

/// The other end of a [`Stopper`].
#[derive(Debug, Clone)]
struct StopSignal {
    level: watch::Receiver<StopLevel>,
}

impl StopSignal {
    /// Waits until the link is to end. A stopper that is gone counts as a polite stop.
    async fn wanted(&mut self) {
        let _ = self.level.wait_for(|level| *level > StopLevel::Run).await;
    }

    /// Waits until the link is to end by force; for ever if nobody can ask any more.
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
