//! Handles signals on Unix; on other systems there are none.
//!
//! A separate thread receives TERM, HUP and INT, because the loop may be busy, or blocked by a terminal that does
//! not read. It passes each signal to the loop, and ends the process if the loop does not react or does not end.

#[cfg(unix)]
mod guard;

#[cfg(unix)]
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// A handled signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// TERM or HUP: end in order.
    Terminate,
    /// INT, which keys do not send in raw mode: end in order, unless it was meant for a command that had the terminal.
    Interrupt,
    /// CONT: the process was stopped, and the screen content is unknown.
    Continue,
    /// WINCH: the terminal was resized.
    Resize,
}

/// Waits for signals.
#[derive(Debug)]
pub struct Signals {
    #[cfg(unix)]
    streams: [Stream; 2],
    #[cfg(unix)]
    endings: tokio::sync::mpsc::Receiver<guard::Ending>,
    /// Reports to the signal thread whether the last signal ends parlor.
    #[cfg(unix)]
    heard: Option<tokio::sync::oneshot::Sender<bool>>,
}

impl Signals {
    /// Installs the handlers. Fails if the system refuses.
    #[cfg(unix)]
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { streams: streams()?, endings: guard::start()?, heard: None })
    }

    /// Installs no handlers.
    #[cfg(not(unix))]
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {})
    }

    /// The next signal. One that may end the process must be answered by [`Signals::answer`].
    #[cfg(unix)]
    pub async fn next(&mut self) -> Signal {
        let [cont, winch] = &mut self.streams;
        tokio::select! {
            Some(ending) = self.endings.recv() => {
                self.heard = Some(ending.heard);
                ending.signal
            }
            _ = cont.recv() => Signal::Continue,
            _ = winch.recv() => Signal::Resize,
        }
    }

    /// Never completes.
    #[cfg(not(unix))]
    pub async fn next(&mut self) -> Signal {
        std::future::pending().await
    }

    /// Reports whether the last signal ends parlor, which then has limited time to do so.
    pub fn answer(&mut self, ends: bool) {
        #[cfg(unix)]
        if let Some(heard) = self.heard.take() {
            let _ = heard.send(ends);
        }
        #[cfg(not(unix))]
        let _ = ends;
    }

    /// Whether a signal that ends parlor waits to be received.
    pub fn has_ending(&self) -> bool {
        #[cfg(unix)]
        return !self.endings.is_empty();
        #[cfg(not(unix))]
        false
    }

    /// Discards CONT and WINCH signals that arrived meanwhile.
    pub fn forget(&mut self) {
        #[cfg(unix)]
        if let Ok(streams) = streams() {
            self.streams = streams;
        }
    }
}

#[cfg(unix)]
fn streams() -> std::io::Result<[Stream; 2]> {
    Ok([signal(SignalKind::from_raw(CONT))?, signal(SignalKind::window_change())?])
}

/// Maximum time until the process stops.
#[cfg(unix)]
const STOPPED_WITHIN: std::time::Duration = std::time::Duration::from_millis(300);

#[cfg(unix)]
const CONT: i32 = rustix::process::Signal::CONT.as_raw();

/// Stops this process (job control), and returns when it is continued.
pub fn suspend() {
    #[cfg(unix)]
    guard::until_continued(crate::program::stop_group, STOPPED_WITHIN);
}
