//! Moves bytes between a stream and the queues.
//!
//! Duty: read, cut into pieces, send one batch per read; write frames, several at once where they wait.
//! Not its duty: how a process ends (`stdio`).
//! Invariants: the reader waits for the peer and so the agent waits for the reader; the writer waits only
//! for the stream.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::In;
use super::queue::OutgoingFrames;
use crate::acp::frame::FrameReader;

/// After the process has ended, at most so much is still read: more than any pipe holds.
const LAST_WORDS_BYTES: usize = 8 << 20;

/// A write buffer that grew beyond this is given back.
const KEPT_BUFFER_BYTES: usize = 1 << 20;

/// How long the reader lets small messages gather while they come faster than anybody reads: to wake for each
/// would cost more than to understand it.
const GATHER: Duration = Duration::from_millis(8);
/// More messages than this within [`WINDOW`] are a flood: 500 a second.
const FLOOD_MESSAGES: u128 = 16;
const WINDOW: Duration = Duration::from_millis(32);
/// A read of so many bytes is worth its wake-up, and an agent that writes as fast as it can is not slowed down.
const LARGE_READ: usize = 8 << 10;

/// Whether the agent wants frames with headers, learned from its first message.
pub type HeaderWish = Arc<AtomicBool>;

/// How reading came to its end.
#[derive(Debug)]
pub enum ReadEnd {
    /// The stream ended.
    Eof,
    /// The stream broke.
    Broken(io::Error),
    /// `enough` was there first.
    Enough,
    /// Nobody listens any more.
    Unheard,
}

/// Reads until the end, or until `enough` comes while nothing is to be read.
pub async fn read_frames(
    mut input: impl AsyncRead + Unpin,
    mut frames: FrameReader,
    incoming: &mpsc::Sender<In>,
    wish: HeaderWish,
    enough: impl Future<Output = ()>,
) -> ReadEnd {
    tokio::pin!(enough);
    let mut is_enough = false;
    let mut last_words_bytes = 0;
    let mut pieces = Vec::new();
    let mut pace = Pace::new(Instant::now());
    let end = loop {
        // What is there is read first: the last words of a process that has ended already.
        let read = tokio::select! {
            biased;
            read = input.read_buf(frames.space()) => read,
            () = &mut enough, if !is_enough => break ReadEnd::Enough,
            () = std::future::ready(()), if is_enough => break ReadEnd::Enough,
        };
        let count = match read {
            Ok(0) => break ReadEnd::Eof,
            Ok(count) => {
                // Somebody else may hold the pipe and write for ever.
                is_enough = is_enough || (&mut enough).now_or_never().is_some();
                last_words_bytes += if is_enough { count } else { 0 };
                count
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => break ReadEnd::Broken(error),
        };
        frames.cut(&mut pieces);
        wish.fetch_or(frames.began_with_header(), Ordering::Relaxed);
        let gathers = pace.gathers(count, pieces.len(), Instant::now());
        if !pieces.is_empty() && incoming.send(In::Pieces(std::mem::take(&mut pieces))).await.is_err() {
            return ReadEnd::Unheard;
        }
        if last_words_bytes > LAST_WORDS_BYTES {
            break ReadEnd::Enough;
        }
        if gathers && !is_enough {
            sleep(GATHER).await;
        }
    };
    frames.finish(&mut pieces);
    if !pieces.is_empty() && incoming.send(In::Pieces(pieces)).await.is_err() {
        return ReadEnd::Unheard;
    }
    end
}

/// How fast messages come.
struct Pace {
    /// Since when they are counted.
    since: Instant,
    messages: u128,
    is_flooded: bool,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { since: now, messages: 0, is_flooded: false }
    }

    /// Whether the next messages are to gather, after a read of so many bytes and messages.
    fn gathers(&mut self, bytes: usize, messages: usize, now: Instant) -> bool {
        self.messages += messages as u128;
        let took = now.saturating_duration_since(self.since);
        if took >= WINDOW {
            self.is_flooded = self.messages * WINDOW.as_millis() > FLOOD_MESSAGES * took.as_millis();
            *self = Self { is_flooded: self.is_flooded, ..Self::new(now) };
        }
        self.is_flooded && bytes < LARGE_READ
    }
}

/// Writes frames until the queue ends or the stream breaks; then the stream is closed.
pub async fn write_frames(
    mut output: impl AsyncWrite + Unpin,
    mut queue: OutgoingFrames,
    wish: HeaderWish,
) -> io::Result<()> {
    let mut frames = Vec::new();
    let mut bytes = Vec::new();
    loop {
        frames.clear();
        let count = queue.take(&mut frames).await;
        if count == 0 {
            return output.shutdown().await;
        }
        bytes.clear();
        for frame in &frames {
            append_frame(&mut bytes, frame, wish.load(Ordering::Relaxed));
        }
        output.write_all(&bytes).await?;
        output.flush().await?;
        queue.written(count);
        if bytes.capacity() > KEPT_BUFFER_BYTES {
            bytes = Vec::new();
        }
    }
}

fn append_frame(bytes: &mut Vec<u8>, frame: &Bytes, has_header: bool) {
    if has_header {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", frame.len()).as_bytes());
    }
    bytes.extend_from_slice(frame);
    if !has_header {
        bytes.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of a hundred reads, so far apart, are followed by a pause.
    fn pauses(apart: Duration, bytes: usize) -> usize {
        let begun = Instant::now();
        let mut pace = Pace::new(begun);
        (1..=100).filter(|read| pace.gathers(bytes, 1, begun + apart * *read)).count()
    }

    #[test]
    fn small_messages_gather_in_a_flood_and_never_else() {
        assert_eq!(pauses(Duration::from_millis(1), 200), 69, "from the end of the first window on");
        assert_eq!(pauses(Duration::from_millis(1), LARGE_READ), 0, "a pipe that is full is emptied at once");
        assert_eq!(pauses(Duration::from_millis(5), 200), 0);
    }

    #[test]
    fn what_comes_after_a_silence_is_no_flood() {
        let begun = Instant::now();
        let mut pace = Pace::new(begun);
        for read in 1..=50 {
            pace.gathers(200, 1, begun + Duration::from_millis(read));
        }
        assert!(pace.gathers(200, 1, begun + Duration::from_millis(51)));
        assert!(!pace.gathers(200, 1, begun + Duration::from_secs(1)));
    }
}
