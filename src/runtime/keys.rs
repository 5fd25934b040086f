//! Reads keys, mouse events and responses of the terminal on a separate thread.
//!
//! crossterm's reader is not used: it treats responses to queries as keys, delays a key that arrives together with
//! a resize, and ignores the end of the terminal. Its event stream takes the reader's lock at each poll, which is
//! expensive in a loop that an agent wakes a thousand times per second. Resizes come as a signal (`signals`).

#[cfg(unix)]
mod decode;
pub mod replay;
#[cfg(not(unix))]
#[path = "keys/other.rs"]
mod source;
#[cfg(unix)]
mod source;

use std::io;

use crossterm::event::Event;
use tokio::sync::mpsc::{Receiver, channel};

/// How much input waits for a busy loop; more stays with the terminal.
const WAITING_MAX: usize = 64;

/// What the terminal told.
#[derive(Debug, Clone, PartialEq)]
pub enum TtyEvent {
    /// A key, a click, a paste, a change of focus or size.
    Input(Event),
    /// Whether it knows synchronized updates (the private mode 2026).
    Synchronizes(bool),
    /// Its background, as three parts of 255.
    Background([u8; 3]),
    /// It knows kitty's graphics: the number of the question that it answers.
    Kitty(u32),
    /// It shows sixel or not (primary device attributes).
    Sixel(bool),
    /// The points of a cell, across and down.
    CellSize(u16, u16),
    /// Its name and version.
    Name(String),
}

/// What the terminal tells, until this is dropped.
pub struct Keys {
    told: Receiver<io::Result<TtyEvent>>,
    _waker: source::Waker,
}

impl Keys {
    /// Begins to listen. Fails if the system has no thread to give, or no terminal.
    pub fn listen() -> io::Result<Self> {
        let (sender, told) = channel(WAITING_MAX);
        Ok(Self { told, _waker: source::listen(sender)? })
    }

    /// What is told next; `None`: the terminal is gone.
    pub async fn next(&mut self) -> Option<io::Result<TtyEvent>> {
        self.told.recv().await
    }

    /// What is told next, if it is there.
    pub fn try_next(&mut self) -> Option<io::Result<TtyEvent>> {
        self.told.try_recv().ok()
    }
}
