//! Handles signals.
//!
//! A separate thread receives TERM, HUP and INT, because the loop may be busy, or blocked by a terminal that does
//! not read. It passes each signal to the loop, and ends the process if the loop does not react or does not end.

mod guard;

use std::io;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::host::os::signals as os;

/// A handled signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// TERM or HUP: shut down cleanly.
    Terminate,
    /// INT, which keys do not send in raw mode: shut down cleanly, unless it was meant for a command that had the
    /// terminal.
    Interrupt,
    /// CONT: the process was stopped, and the screen content is unknown.
    Continue,
    /// WINCH: the terminal was resized.
    Resize,
}

/// Waits for signals.
#[derive(Debug)]
pub struct Signals {
    screen: os::Signals,
    endings: mpsc::Receiver<guard::Ending>,
    /// Reports to the signal thread whether the last signal ends parlor.
    reply: Option<oneshot::Sender<bool>>,
}

impl Signals {
    /// Installs the handlers. Fails if the system refuses.
    pub fn new() -> io::Result<Self> {
        Ok(Self { screen: screen_signals()?, endings: guard::start()?, reply: None })
    }

    /// The next signal. One that may end the process must be answered by [`Signals::answer`].
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(ending) = self.endings.recv() => {
                self.reply = Some(ending.reply);
                ending.signal
            }
            signal = self.screen.next() => match signal {
                os::Signal::Continue => Signal::Continue,
                _ => Signal::Resize,
            },
        }
    }

    /// Reports whether the last signal ends parlor, which then has limited time to do so.
    pub fn answer(&mut self, ends: bool) {
        if let Some(reply) = self.reply.take() {
            let _ = reply.send(ends);
        }
    }

    /// Whether a signal that ends parlor waits to be received.
    pub fn has_ending(&self) -> bool {
        !self.endings.is_empty()
    }

    /// Discards CONT and WINCH signals that arrived meanwhile.
    pub fn forget(&mut self) {
        if let Ok(screen) = screen_signals() {
            self.screen = screen;
        }
    }
}

fn screen_signals() -> io::Result<os::Signals> {
    os::listen(&[os::Signal::Continue, os::Signal::Resize])
}

/// Maximum time until the process stops.
const STOPPED_WITHIN: Duration = Duration::from_millis(300);

/// Stops this process (job control), and returns when it is continued.
pub fn suspend() {
    guard::until_continued(crate::program::stop_group, STOPPED_WITHIN);
}
