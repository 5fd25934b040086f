//! Writes requests, notifications and responses whose params are already JSON, and records them with the tap.
//!
//! Invariants: nothing here waits or fails; a message contains no line break.
//! Source: JSON-RPC 2.0; ACP v1 transports, stdio.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::requests::WireId;
use crate::acp::tap::{Direction, Tap};
use crate::acp::transport::{OutboundFrame, Outgoing, Stopper};
use crate::model::RpcError;

/// The writer of a connection; it has no link before the connection opens and after it closes.
#[derive(Debug)]
pub struct FrameWriter {
    tap: Tap,
    outgoing: Option<Outgoing>,
    stopper: Option<Stopper>,
}

impl FrameWriter {
    /// Creates a writer without a link.
    pub fn new(tap: Tap) -> Self {
        Self { tap, outgoing: None, stopper: None }
    }

    pub fn attach(&mut self, outgoing: Outgoing, stopper: Stopper) {
        self.outgoing = Some(outgoing);
        self.stopper = Some(stopper);
    }

    pub fn detach(&mut self) {
        self.outgoing = None;
        self.stopper = None;
    }

    /// Ends the link; the agent's stdin is closed after everything is written.
    pub fn stop(&mut self, force: bool) {
        self.outgoing = None;
        if let Some(stopper) = &self.stopper {
            stopper.stop(force);
        }
    }

    /// Ends the delays before the next attempts of an interrupted connection.
    pub fn retry_now(&self) {
        if let Some(stopper) = &self.stopper {
            stopper.retry_now();
        }
    }

    /// Whether so many messages are unread that reading from the agent should pause.
    pub fn is_full(&self) -> bool {
        self.outgoing.as_ref().is_some_and(Outgoing::is_full)
    }

    /// Stops the agent and returns `true` if a message was dropped because the queue overflowed.
    pub fn settle(&mut self) -> bool {
        let has_run_over = self.outgoing.as_ref().is_some_and(Outgoing::has_run_over);
        if has_run_over {
            self.stop(true);
        }
        has_run_over
    }

    /// Waits until the queue has room.
    pub async fn drained(&self) {
        if let Some(outgoing) = &self.outgoing {
            outgoing.drained().await;
        }
    }

    pub fn request(&self, id: u64, method: &str, params: &str) {
        let id = Some(Id::Own(id));
        self.write(&Envelope { id, method: Some(method), params: Some(raw(params)), ..Envelope::EMPTY });
    }

    pub fn notify(&self, method: &str, params: &str) {
        self.write(&Envelope { method: Some(method), params: Some(raw(params)), ..Envelope::EMPTY });
    }

    /// Writes a response: a result, or an error object.
    pub fn respond(&self, wire_id: &WireId, outcome: Result<&str, &str>) {
        let (result, error) = (outcome.ok().map(raw), outcome.err().map(raw));
        let id = Some(Id::Wire(raw(&wire_id.id)));
        self.write_to(wire_id.session.clone(), &Envelope { id, result, error, ..Envelope::EMPTY });
    }

    pub fn refuse(&self, wire_id: &WireId, error: &RpcError) {
        let data = error.data.as_ref().map(|data| raw(&data.0));
        let error = ErrorObject { code: error.code, message: &error.message, data };
        self.respond(wire_id, Err(&text(&error)));
    }

    fn write(&self, envelope: &Envelope<'_>) {
        self.write_to(None, envelope);
    }

    fn write_to(&self, session: Option<Arc<str>>, envelope: &Envelope<'_>) {
        let Some(outgoing) = &self.outgoing else { return };
        let mut frame = text(envelope);
        if memchr::memchr2(b'\n', b'\r', frame.as_bytes()).is_some() {
            // Raw JSON from the agent may contain line ends between tokens, but not inside strings.
            frame = frame.replace(['\n', '\r'], " ");
        }
        self.tap.record(Direction::ToAgent, frame.as_bytes());
        outgoing.send(OutboundFrame { bytes: frame.into_bytes().into(), session });
    }
}

/// A message whose parts are already JSON.
#[derive(Serialize)]
struct Envelope<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Id<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RawValue>,
}

impl Envelope<'_> {
    const EMPTY: Self =
        Self { jsonrpc: "2.0", id: None, method: None, params: None, result: None, error: None };
}

#[derive(Serialize)]
#[serde(untagged)]
enum Id<'a> {
    Own(u64),
    Wire(&'a RawValue),
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    code: i64,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
}

/// Converts text that is known to be valid JSON.
fn raw(json: &str) -> &RawValue {
    serde_json::from_str(json).unwrap_or(RawValue::NULL)
}

/// Serialization of these types cannot fail.
fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acp::transport::test_link;

    #[test]
    fn agents_that_do_not_read_are_stopped() {
        let (outgoing, frames, stopper) = test_link();
        let mut painter = FrameWriter::new(Tap::default());
        painter.attach(outgoing, stopper);
        let params = format!("\"{}\"", "x".repeat(30 << 20));
        for _ in 0..4 {
            painter.notify("session/cancel", &params);
            assert!(!painter.settle());
        }
        assert!(painter.is_full(), "reading pauses");
        painter.notify("session/cancel", &params);
        assert!(painter.settle(), "the queue overflowed");
        assert!(!painter.is_full() && !painter.settle());
        drop(frames);
    }
}
