//! Writes requests, notifications and responses whose params are already JSON, and records them with the tap.
//!
//! Invariants: nothing here waits or fails; a message contains no line break.
//! Source: JSON-RPC 2.0; ACP v1 transports, stdio.

use std::sync::Arc;

use super::requests::WireId;
use crate::acp::codec::requests::encode_error;
use crate::acp::tap::{Direction, Tap};
use crate::acp::transport::{OutboundFrame, Outgoing, Stopper};
use crate::model::RpcError;

/// The writer of a connection; it has no link before the connection opens and after it closes.
#[derive(Debug)]
pub struct FrameWriter {
    tap: Tap,
    outgoing: Option<Outgoing>,
    pub stopper: Option<Stopper>,
}

impl FrameWriter {
    pub fn new(tap: Tap) -> Self {
        Self { tap, outgoing: None, stopper: None }
    }

    pub fn attach(&mut self, outgoing: Outgoing, stopper: Stopper) {
        self.outgoing = Some(outgoing);
        self.stopper = Some(stopper);
    }

    /// Ends the link; the agent's stdin is closed after everything is written.
    pub fn stop(&mut self, force: bool) {
        self.outgoing = None;
        self.stopper.iter().for_each(|stopper| stopper.stop(force));
    }

    /// Whether so many messages are unread that reading from the agent should pause.
    pub fn is_full(&self) -> bool {
        self.outgoing.as_ref().is_some_and(Outgoing::is_full)
    }

    /// Stops the agent and returns `true` if a message was dropped because the queue overflowed.
    pub fn stop_on_overflow(&mut self) -> bool {
        let has_run_over = self.outgoing.as_ref().is_some_and(Outgoing::has_run_over);
        if has_run_over {
            self.stop(true);
        }
        has_run_over
    }

    pub async fn drained(&self) {
        if let Some(outgoing) = &self.outgoing {
            outgoing.drained().await;
        }
    }

    pub fn request(&self, id: u64, method: &'static str, params: &str) {
        self.write(None, format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
    }

    pub fn notify(&self, method: &'static str, params: &str) {
        self.write(None, format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
    }

    pub fn respond(&self, wire_id: &WireId, outcome: Result<&str, &str>) {
        let (key, value) = match outcome {
            Ok(result) => ("result", result),
            Err(error) => ("error", error),
        };
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{},"{key}":{value}}}"#, wire_id.id);
        self.write(wire_id.session.clone(), frame);
    }

    pub fn refuse(&self, wire_id: &WireId, error: &RpcError) {
        self.respond(wire_id, Err(&encode_error(error)));
    }

    fn write(&self, session: Option<Arc<str>>, mut frame: String) {
        let Some(outgoing) = &self.outgoing else { return };
        if memchr::memchr2(b'\n', b'\r', frame.as_bytes()).is_some() {
            // Raw JSON from the agent may contain line ends between tokens, but not inside strings.
            frame = frame.replace(['\n', '\r'], " ");
        }
        self.tap.record(Direction::ToAgent, frame.as_bytes());
        outgoing.send(OutboundFrame { bytes: frame.into_bytes().into(), session });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acp::transport::Link;

    #[test]
    fn agents_that_do_not_read_are_stopped() {
        let (Link { outgoing, stopper, .. }, ends) = Link::new();
        let mut painter = FrameWriter::new(Tap::default());
        painter.attach(outgoing, stopper);
        let params = format!("\"{}\"", "x".repeat(30 << 20));
        for _ in 0..4 {
            painter.notify("session/cancel", &params);
            assert!(!painter.stop_on_overflow());
        }
        assert!(painter.is_full(), "reading pauses");
        painter.notify("session/cancel", &params);
        assert!(painter.stop_on_overflow(), "the queue overflowed");
        assert!(!painter.is_full() && !painter.stop_on_overflow());
        drop(ends);
    }
}
