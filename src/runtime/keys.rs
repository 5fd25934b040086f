//! Reads keys, mouse events and responses of the terminal on a separate thread.
//!
//! crossterm's reader is not used: it treats responses to queries as keys, delays a key that arrives together with
//! a resize, and ignores the end of the terminal. Its event stream takes the reader's lock at each poll, which is
//! expensive in a loop that an agent wakes a thousand times per second. Resizes come as a signal (`signals`).

mod decode;
pub mod replay;
mod source;

use std::io::{self, PipeWriter};
use std::time::Duration;

use crossterm::event::Event;
use tokio::sync::mpsc::{Receiver, channel};

use super::clipboard::terminal::ClipboardPacket;

/// Maximum number of pending events; further input stays in the terminal's buffer.
const WAITING_MAX: usize = 64;

/// An event of the terminal.
#[derive(Debug, Clone, PartialEq)]
pub enum TtyEvent {
    /// A key, mouse, paste, focus or resize event.
    Input(Event),
    /// Whether synchronized updates (private mode 2026) are supported.
    Synchronizes(bool),
    Background([u8; 3]),
    /// The terminal has switched to dark colors, or to light ones.
    IsDark(bool),
    /// The kitty graphics protocol is supported; the number of the answered query.
    Kitty(u32),
    /// Whether sixel is supported (primary device attributes).
    Sixel(bool),
    /// Width and height of a cell in pixels.
    CellSize(u16, u16),
    Name(String),
    AmbiguousWidth(u16),
    /// Whether the terminal supports requests for its clipboard.
    HasClipboard(bool),
    /// A response to a request for the terminal's clipboard.
    Clipboard(ClipboardPacket),
}

/// Reads events of the terminal until it is dropped.
pub struct Keys {
    reported: Receiver<io::Result<TtyEvent>>,
    /// Stops the thread when it is dropped.
    _waker: PipeWriter,
}

/// Reads and discards answers of the terminal, up to that to the query for primary device attributes, for `limit` at most. The
/// terminal is left in raw mode with reads that do not block.
pub fn discard_answers(limit: Duration) {
    source::discard_answers(limit);
}

impl Keys {
    /// Starts the thread. Fails if the thread cannot be started or there is no terminal.
    pub fn listen() -> io::Result<Self> {
        let (sender, reported) = channel(WAITING_MAX);
        Ok(Self { reported, _waker: source::listen(sender)? })
    }

    /// Waits for the next event; `None`: the terminal is closed.
    pub async fn next(&mut self) -> Option<io::Result<TtyEvent>> {
        self.reported.recv().await
    }

    /// The next event, if one is ready.
    pub fn try_next(&mut self) -> Option<io::Result<TtyEvent>> {
        self.reported.try_recv().ok()
    }
}
