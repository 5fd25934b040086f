//! An in-memory transport for tests and fuzzing.
//!
//! It uses the reading and writing of `io` on a [`DuplexStream`], whose other end is the stdin and stdout of the
//! agent.

use std::sync::Arc;

use tokio::io::{DuplexStream, split};

use super::io::{HeaderRequest, close_reason, read_frames, write_frames};
use super::{Ends, In, Link, Setup, Transport};
use crate::acp::frame::FrameReader;
use crate::model::CloseReason;

#[derive(Debug)]
pub struct Memory {
    stream: DuplexStream,
}

/// Creates a transport and the agent's side of it, with pipes of `pipe_bytes` each.
pub fn pair(pipe_bytes: usize) -> (Memory, DuplexStream) {
    let (stream, agent) = tokio::io::duplex(pipe_bytes);
    (Memory { stream }, agent)
}

impl Transport for Memory {
    fn start(self: Box<Self>, setup: Setup) -> Result<Link, CloseReason> {
        let (input, output) = split(self.stream);
        let (link, Ends { sink, frames, mut signal }) = Link::new();
        let header_request = HeaderRequest::default();
        tokio::spawn(write_frames(output, frames, Arc::clone(&header_request)));
        tokio::spawn(async move {
            let reader = FrameReader::new(setup.max_frame_bytes);
            let end = read_frames(input, reader, &sink, header_request, signal.wanted()).await;
            let _ = sink.send(In::Closed(close_reason(end))).await;
        });
        Ok(link)
    }
}
