//! What a transport is, what it returns, and how its connection is ended.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Notify, watch};

use super::inbound::Incoming;
use super::queue::Outgoing;
use crate::acp::tap::Tap;
use crate::model::CloseReason;

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
    pub tap: Tap,
    /// Log file of the agent's stderr; `None`: in memory only.
    pub stderr_log: Option<PathBuf>,
}

#[derive(Debug)]
pub struct Link {
    pub pid: Option<u32>,
    /// Incoming messages in order; ends after `Closed`.
    pub incoming: Incoming,
    /// Outgoing messages. Dropping it closes the agent's stdin once everything is written.
    pub outgoing: Outgoing,
    pub stopper: Stopper,
}

/// A link whose process does not exist.
#[cfg(test)]
pub fn test_link() -> (Outgoing, super::queue::OutgoingFrames, Stopper) {
    let (outgoing, frames) = super::queue::queue();
    (outgoing, frames, Stopper::new().0)
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
    pub fn new() -> (Self, StopSignal) {
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

#[derive(Debug, Clone)]
pub struct StopSignal {
    level: watch::Receiver<StopLevel>,
    /// Notified when delays before the next attempts should end.
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
