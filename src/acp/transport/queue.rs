//! The queue of frames to be written.
//!
//! Accepts frames without waiting, and reports when it is so full that reading from the agent should pause.
//! `io` writes them; `peer` ends the connection when the queue has overflowed.
//! Invariant: sending never waits and never fails; what can no longer be written is dropped.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::acp::lock::lock;
use crate::model::{Bounded, Capacity};

/// The queue is full from this size: only an agent that sends requests without reading the responses gets here.
const FULL: Capacity = Capacity { items: 16_384, bytes: 16 << 20 };

/// Room for responses that were in progress when the queue became full. More is an overflow.
pub const MAX: Capacity = Capacity { items: 65_536, bytes: 128 << 20 };

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

#[derive(Debug)]
pub struct Outgoing {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub struct OutgoingFrames {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Notified when a frame is queued, or when the sending end was dropped.
    filled: Notify,
    drained: Notify,
}

#[derive(Debug)]
struct State {
    frames: Bounded<OutboundFrame>,
    /// Sizes of the frames that are being written.
    taken: VecDeque<usize>,
    taken_bytes: usize,
    has_run_over: bool,
    /// Whether the sending and the receiving end still exist.
    has_sender: bool,
    has_writer: bool,
}

pub fn queue() -> (Outgoing, OutgoingFrames) {
    let state = State {
        frames: Bounded::new(MAX),
        taken: VecDeque::new(),
        taken_bytes: 0,
        has_run_over: false,
        has_sender: true,
        has_writer: true,
    };
    let shared = Arc::new(Shared { state: Mutex::new(state), filled: Notify::new(), drained: Notify::new() });
    (Outgoing { shared: Arc::clone(&shared) }, OutgoingFrames { shared })
}

impl State {
    fn is_full(&self) -> bool {
        self.has_writer
            && (self.frames.len() + self.taken.len() >= FULL.items
                || self.frames.bytes() + self.taken_bytes >= FULL.bytes)
    }
}

impl Outgoing {
    pub fn send(&self, frame: impl Into<OutboundFrame>) {
        let frame = frame.into();
        let mut state = lock(&self.shared.state);
        if !state.has_writer || state.has_run_over {
            return;
        }
        let bytes = frame.bytes.len();
        state.has_run_over = state.frames.push(frame, bytes).is_err();
        drop(state);
        self.shared.filled.notify_one();
    }

    /// Whether the queue is so full that no more requests should be read.
    pub fn is_full(&self) -> bool {
        lock(&self.shared.state).is_full()
    }

    /// Whether a frame was dropped because the queue was full.
    pub fn has_run_over(&self) -> bool {
        lock(&self.shared.state).has_run_over
    }

    /// Waits until a full queue has room, or its receiver was dropped.
    pub async fn drained(&self) {
        while self.is_full() {
            self.shared.drained.notified().await;
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        lock(&self.shared.state).has_sender = false;
        self.shared.filled.notify_one();
    }
}

impl OutgoingFrames {
    /// Waits for frames and appends them to a buffer; returns their number, 0 at the end.
    pub async fn take(&mut self, frames: &mut Vec<OutboundFrame>) -> usize {
        loop {
            {
                let mut state = lock(&self.shared.state);
                let mut count = 0;
                while count < TAKEN.items && state.taken_bytes < TAKEN.bytes {
                    let Some(frame) = state.frames.pop() else { break };
                    state.taken.push_back(frame.bytes.len());
                    state.taken_bytes += frame.bytes.len();
                    frames.push(frame);
                    count += 1;
                }
                if count > 0 || !state.has_sender {
                    return count;
                }
            }
            self.shared.filled.notified().await;
        }
    }

    pub fn written(&self, count: usize) {
        let mut state = lock(&self.shared.state);
        let was_full = state.is_full();
        for _ in 0..count {
            let bytes = state.taken.pop_front().unwrap_or(0);
            state.taken_bytes -= bytes;
        }
        if was_full && !state.is_full() {
            // Stores a permit, so that a later waiter is woken as well.
            self.shared.drained.notify_one();
        }
    }
}

impl Drop for OutgoingFrames {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.has_writer = false;
        while state.frames.pop().is_some() {}
        drop(state);
        self.shared.drained.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_queue_is_full_by_bytes_or_by_items_and_overflows() {
        let (outgoing, mut frames) = queue();
        let large = Bytes::from(vec![b' '; 8 << 20]);
        outgoing.send(large.clone());
        assert!(!outgoing.is_full());
        outgoing.send(large.clone());
        assert!(outgoing.is_full() && outgoing.drained().now_or_never().is_none());
        let mut taken = Vec::new();
        assert_eq!(frames.take(&mut taken).now_or_never(), Some(1), "one large frame per write");
        assert!(outgoing.is_full(), "the frame is not written yet");
        frames.written(1);
        assert!(!outgoing.is_full() && outgoing.drained().now_or_never().is_some());
        for _ in 0..MAX.bytes / large.len() - 1 {
            outgoing.send(large.clone());
        }
        assert!(!outgoing.has_run_over());
        outgoing.send(large);
        assert!(outgoing.has_run_over());
        drop(frames);
        assert!(!outgoing.is_full(), "the receiver is closed");

        let (outgoing, _frames) = queue();
        for _ in 0..MAX.items {
            outgoing.send(Bytes::from_static(b"{}"));
        }
        assert!(outgoing.is_full() && !outgoing.has_run_over());
        outgoing.send(Bytes::from_static(b"{}"));
        assert!(outgoing.has_run_over());
    }

    #[test]
    fn the_queue_ends_after_the_last_frame() {
        let (outgoing, mut frames) = queue();
        let mut taken = Vec::new();
        assert_eq!(frames.take(&mut taken).now_or_never(), None);
        outgoing.send(Bytes::from_static(b"{}"));
        drop(outgoing);
        assert_eq!(frames.take(&mut taken).now_or_never(), Some(1));
        assert_eq!(frames.take(&mut taken).now_or_never(), Some(0));
    }
}
