//! Writes requests, notifications and responses around params that are JSON already, and records them with the tap.
//!
//! Invariants: nothing here waits or fails; a message contains no line break.
//! Source: JSON-RPC 2.0; ACP v1 transports, stdio.

use crate::acp::tap::{Direction, Tap};
use crate::acp::transport::{Outgoing, Stopper};
use crate::model::RpcError;

/// The way to the agent; there is none before the link runs and after its end.
#[derive(Debug)]
pub struct FrameWriter {
    tap: Tap,
    outgoing: Option<Outgoing>,
    stopper: Option<Stopper>,
}

impl FrameWriter {
    /// A pen without a link.
    pub fn new(tap: Tap) -> Self {
        Self { tap, outgoing: None, stopper: None }
    }

    /// The link runs.
    pub fn attach(&mut self, outgoing: Outgoing, stopper: Stopper) {
        self.outgoing = Some(outgoing);
        self.stopper = Some(stopper);
    }

    /// The link has ended.
    pub fn detach(&mut self) {
        self.outgoing = None;
        self.stopper = None;
    }

    /// Ends the link: the agent's stdin closes once all is written.
    pub fn stop(&mut self, force: bool) {
        self.outgoing = None;
        if let Some(stopper) = &self.stopper {
            stopper.stop(force);
        }
    }

    /// Whether the agent leaves so much unread that it should not be read either.
    pub fn is_full(&self) -> bool {
        self.outgoing.as_ref().is_some_and(Outgoing::is_full)
    }

    /// Ends the link if a message was lost because the agent did not read those before it; says whether it did.
    pub fn settle(&mut self) -> bool {
        let has_run_over = self.outgoing.as_ref().is_some_and(Outgoing::has_run_over);
        if has_run_over {
            self.stop(true);
        }
        has_run_over
    }

    /// Waits until that has changed.
    pub async fn drained(&self) {
        if let Some(outgoing) = &self.outgoing {
            outgoing.drained().await;
        }
    }

    /// Writes a request.
    pub fn request(&self, id: u64, method: &str, params: &str) {
        let method = quoted(method);
        self.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}"));
    }

    /// Writes a notification.
    pub fn notify(&self, method: &str, params: &str) {
        let method = quoted(method);
        self.write(format!("{{\"jsonrpc\":\"2.0\",\"method\":{method},\"params\":{params}}}"));
    }

    /// Writes a response: a result, or an error object. The id is JSON, as the agent spelled it.
    pub fn respond(&self, wire_id: &str, outcome: Result<&str, &str>) {
        let (key, value) = match outcome {
            Ok(result) => ("result", result),
            Err(error) => ("error", error),
        };
        self.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{wire_id},\"{key}\":{value}}}"));
    }

    /// Writes an error response.
    pub fn refuse(&self, wire_id: &str, error: &RpcError) {
        let data = error.data.as_ref().map(|data| format!(",\"data\":{}", data.0)).unwrap_or_default();
        let message = quoted(&error.message);
        self.respond(wire_id, Err(&format!("{{\"code\":{},\"message\":{message}{data}}}", error.code)));
    }

    fn write(&self, mut frame: String) {
        let Some(outgoing) = &self.outgoing else { return };
        if memchr::memchr2(b'\n', b'\r', frame.as_bytes()).is_some() {
            // Raw JSON of the agent's own may hold line ends between its tokens, never inside a string.
            frame = frame.replace(['\n', '\r'], " ");
        }
        self.tap.record(Direction::ToAgent, frame.as_bytes());
        outgoing.send(frame.into_bytes().into());
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acp::transport::test_link;

    #[test]
    fn an_agent_that_does_not_read_is_ended() {
        let (outgoing, frames, stopper) = test_link();
        let mut pen = FrameWriter::new(Tap::default());
        pen.attach(outgoing, stopper);
        let params = format!("\"{}\"", "x".repeat(30 << 20));
        for _ in 0..4 {
            pen.notify("session/cancel", &params);
            assert!(!pen.settle());
        }
        assert!(pen.is_full(), "its requests are not read any more");
        pen.notify("session/cancel", &params);
        assert!(pen.settle(), "more than it is worth");
        assert!(!pen.is_full() && !pen.settle());
        drop(frames);
    }
}
