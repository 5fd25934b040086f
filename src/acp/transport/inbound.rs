//! The channel of incoming messages, from the readers of a transport to the peer.
//!
//! The peer takes everything that waits at once, because it reads at most once per frame. Readers wait while
//! [`WAITING_MAX_KIB`] wait for the peer.

use std::sync::Arc;

use tokio::sync::{Notify, Semaphore, mpsc};

use crate::acp::frame::InboundFrame;
use crate::model::ExitInfo;

/// Maximum size of the messages that wait, in KiB; each counts for at least one. One longer message is allowed.
const WAITING_MAX_KIB: u32 = 512;

/// Maximum size of messages that are taken at once, unless a single one is larger.
const TAKEN_MAX_BYTES: usize = 256 << 10;

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

pub fn incoming() -> (Sink, Incoming) {
    let (sender, messages) = mpsc::unbounded_channel();
    let (demand, room) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(WAITING_MAX_KIB as usize)));
    let sink = Sink { messages: sender, room: Arc::clone(&room), demand: Arc::clone(&demand) };
    (sink, Incoming { messages, room, demand, next: None, has_asked: false })
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::acp::frame::sort_whole;
    use crate::acp::transport::LinkEnd;

    fn message(text: &str) -> In {
        let mut pieces = Vec::new();
        sort_whole(&bytes::Bytes::copy_from_slice(text.as_bytes()), &mut pieces);
        In::Pieces(pieces)
    }

    fn count(message: Option<In>) -> usize {
        match message {
            Some(In::Pieces(pieces)) => pieces.len(),
            other => panic!("no pieces: {other:?}"),
        }
    }

    #[test]
    fn messages_that_wait_are_taken_together_and_in_order() {
        let (sink, mut incoming) = incoming();
        for number in 0..300 {
            sink.send(message(&format!("{{\"id\":{number}}}"))).now_or_never().unwrap().unwrap();
        }
        sink.send(In::Note("slow".to_owned())).now_or_never().unwrap().unwrap();
        sink.send(message("{}")).now_or_never().unwrap().unwrap();
        sink.send(In::Closed(LinkEnd::Eof)).now_or_never().unwrap().unwrap();
        drop(sink);
        assert_eq!(count(incoming.recv().now_or_never().unwrap()), 300);
        assert!(matches!(incoming.recv().now_or_never().unwrap(), Some(In::Note(_))));
        assert_eq!(count(incoming.recv().now_or_never().unwrap()), 1);
        assert!(matches!(incoming.recv().now_or_never().unwrap(), Some(In::Closed(LinkEnd::Eof))));
        assert!(incoming.recv().now_or_never().unwrap().is_none());
    }

    #[test]
    fn senders_wait_for_room_and_notice_the_end() {
        let (sink, mut incoming) = incoming();
        let long = format!("{{\"x\":\"{}\"}}", "y".repeat(200 << 10));
        for _ in 0..2 {
            sink.send(message(&long)).now_or_never().unwrap().unwrap();
        }
        assert!(sink.send(message(&long)).now_or_never().is_none());
        assert_eq!(count(incoming.recv().now_or_never().unwrap()), 2);
        assert!(
            sink.send(message(&"z".repeat(9 << 20))).now_or_never().is_some(),
            "a longer one has room alone"
        );
        assert!(sink.send(message("{}")).now_or_never().is_none());
        drop(incoming);
        assert!(sink.send(message("{}")).now_or_never().unwrap().is_err());
    }
}
