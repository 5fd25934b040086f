//! The queue of frames to be written.
//!
//! Duty: take frames without waiting, and tell how many are not written yet.
//! Not its duty: writing them (`pump`).
//! Invariant: sending never waits and never fails; what can no longer be written is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

/// From so many unwritten frames on, the queue is full. Only an agent that asks without end and never
/// reads its answers comes so far.
const FULL_FRAMES: usize = 16_384;

/// Where frames to the agent go in.
#[derive(Debug)]
pub struct Outgoing {
    sender: mpsc::UnboundedSender<Bytes>,
    count: Arc<Count>,
}

/// Where they come out.
#[derive(Debug)]
pub struct OutgoingFrames {
    receiver: mpsc::UnboundedReceiver<Bytes>,
    count: Arc<Count>,
}

#[derive(Debug, Default)]
struct Count {
    unwritten: AtomicUsize,
    drained: Notify,
}

/// A new queue.
pub fn queue() -> (Outgoing, OutgoingFrames) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let count = Arc::new(Count::default());
    (Outgoing { sender, count: Arc::clone(&count) }, OutgoingFrames { receiver, count })
}

impl Outgoing {
    /// Appends a frame: one JSON text without line ends.
    pub fn send(&self, frame: Bytes) {
        self.count.unwritten.fetch_add(1, Ordering::AcqRel);
        if self.sender.send(frame).is_err() {
            self.count.unwritten.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Whether so much is unwritten that no more requests should be read.
    pub fn is_full(&self) -> bool {
        self.count.unwritten.load(Ordering::Acquire) >= FULL_FRAMES && !self.sender.is_closed()
    }

    /// Waits until something was written after the queue was full, or nothing will be.
    pub async fn drained(&self) {
        tokio::select! {
            () = self.count.drained.notified() => {}
            () = self.sender.closed() => {}
        }
    }
}

impl OutgoingFrames {
    /// Waits for frames and appends them; how many, 0 at the end.
    pub async fn take(&mut self, frames: &mut Vec<Bytes>) -> usize {
        self.receiver.recv_many(frames, 64).await
    }

    /// Says that so many were written.
    pub fn written(&self, count: usize) {
        let before = self.count.unwritten.fetch_sub(count, Ordering::AcqRel);
        if before >= FULL_FRAMES && before - count < FULL_FRAMES {
            // Stores a permit, so that a reader that looks a moment later is woken too.
            self.count.drained.notify_one();
        }
    }
}
