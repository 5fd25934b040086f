//! Moves bytes between a stream and the queues.
//!
//! Invariants: the reader waits for the peer, so the agent waits for the reader; the writer waits only for the
//! stream.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{In, OutgoingFrames, Sink};
use crate::acp::frame::FrameReader;
use crate::model::CloseReason;

/// Maximum number of bytes that are read after the process has ended; more than any pipe buffers.
const DRAIN_MAX_BYTES: usize = 8 << 20;
/// A write buffer that grew beyond this size is freed.
const KEPT_BUFFER_BYTES: usize = 1 << 20;

/// Whether the agent uses frames with headers, as detected from its first message.
pub type HeaderRequest = Arc<AtomicBool>;

/// The end of a connection whose process did not end, or that has none.
pub fn close_reason(end: io::Result<()>) -> CloseReason {
    let error = end.map_or_else(|error| error.to_string(), |()| "The agent closed its output.".to_owned());
    CloseReason::Lost { error }
}

/// Reads until the end, or until `enough` completes while no data is available.
pub async fn read_frames(
    mut input: impl AsyncRead + Unpin,
    mut frames: FrameReader,
    sink: &Sink,
    header_request: HeaderRequest,
    enough: impl Future<Output = ()>,
) -> io::Result<()> {
    tokio::pin!(enough);
    let mut is_enough = false;
    let mut drained_bytes = 0;
    let mut pieces = Vec::new();
    let mut is_wanted = false;
    let end = loop {
        if !is_wanted && !is_enough {
            tokio::select! {
                biased;
                () = sink.demand.notified() => is_wanted = true,
                () = &mut enough => is_enough = true,
            }
        }
        // Available data is read first, such as the last output of a process that has ended.
        let read = tokio::select! {
            biased;
            read = input.read_buf(frames.space()) => read,
            () = &mut enough, if !is_enough => break Ok(()),
            () = std::future::ready(()), if is_enough => break Ok(()),
        };
        match read {
            Ok(0) => break Ok(()),
            Ok(count) => {
                // Another process may hold the pipe open and write forever.
                is_enough = is_enough || (&mut enough).now_or_never().is_some();
                drained_bytes += if is_enough { count } else { 0 };
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => break Err(error),
        }
        frames.cut(&mut pieces);
        header_request.fetch_or(frames.began_with_header(), Ordering::Relaxed);
        if !pieces.is_empty() {
            is_wanted = false;
            if sink.send(In::Pieces(std::mem::take(&mut pieces))).await.is_err() {
                return Ok(());
            }
        }
        if drained_bytes > DRAIN_MAX_BYTES {
            break Ok(());
        }
    };
    frames.finish(&mut pieces);
    if !pieces.is_empty() {
        // Without a receiver, the end is not reported either.
        let _ = sink.send(In::Pieces(pieces)).await;
    }
    end
}

pub async fn write_frames(
    mut output: impl AsyncWrite + Unpin,
    mut queue: OutgoingFrames,
    header_request: HeaderRequest,
) -> io::Result<()> {
    let mut frames = Vec::new();
    let mut bytes = Vec::new();
    loop {
        frames.clear();
        if queue.take(&mut frames).await == 0 {
            return output.shutdown().await;
        }
        bytes.clear();
        for frame in &frames {
            let has_header = header_request.load(Ordering::Relaxed);
            if has_header {
                bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", frame.bytes.len()).as_bytes());
            }
            bytes.extend_from_slice(&frame.bytes);
            bytes.extend((!has_header).then_some(b'\n'));
        }
        output.write_all(&bytes).await?;
        output.flush().await?;
        for frame in &frames {
            queue.written(frame);
        }
        if bytes.capacity() > KEPT_BUFFER_BYTES {
            bytes = Vec::new();
        }
    }
}
