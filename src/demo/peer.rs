//! JSON-RPC of the demo agent: sends messages and matches responses to requests.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard};

use crate::lock::lock;

use serde_json::{Value, json};

/// Error codes of JSON-RPC and ACP.
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL: i64 = -32603;
pub(super) const NOT_FOUND: i64 = -32002;

/// The outcome of a request to the client.
#[derive(Debug)]
pub(super) enum Outcome {
    Answered(Value),
    /// The message of an error response.
    Refused(String),
    /// The turn was cancelled; a later response is ignored.
    Cancelled,
}

/// The connection to the client.
pub(super) struct Peer {
    out: Mutex<Box<dyn Write + Send>>,
    waiting: Mutex<HashMap<u64, Waiting>>,
    next_id: AtomicU64,
}

struct Waiting {
    session: String,
    sender: Sender<Outcome>,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").finish_non_exhaustive()
    }
}

impl Peer {
    pub(super) fn new(out: Box<dyn Write + Send>) -> Self {
        Self { out: Mutex::new(out), waiting: Mutex::default(), next_id: AtomicU64::new(1) }
    }

    /// Writes a message. Errors are ignored, because a client that exits also closes the input.
    pub(super) fn send(&self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.send_bytes(&line);
    }

    /// Writes raw bytes, for output that is not a message.
    pub(super) fn send_bytes(&self, bytes: &[u8]) {
        let mut out = lock(&self.out);
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    }

    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(super) fn update(&self, session: &str, update: &Value) {
        self.notify("session/update", &json!({"sessionId": session, "update": update}));
    }

    pub(super) fn answer(&self, id: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    pub(super) fn refuse(&self, id: &Value, code: i64, message: &str, data: Option<Value>) {
        let mut error = json!({"code": code, "message": message});
        if let (Some(data), Some(error)) = (data, error.as_object_mut()) {
            error.insert("data".to_owned(), data);
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    /// Reports a line that is not JSON; the id of the error is null, as JSON-RPC requires.
    pub(super) fn refuse_line(&self, error: &serde_json::Error) {
        self.refuse(&Value::Null, -32700, &format!("Invalid JSON: {error}"), None);
    }

    /// Sends a request to the client; the receiver gets the outcome.
    pub(super) fn request(&self, session: &str, method: &str, params: &Value) -> Receiver<Outcome> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = mpsc::channel();
        self.waiting().insert(id, Waiting { session: session.to_owned(), sender });
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        receiver
    }

    /// Handles a response; an unexpected one is ignored.
    pub(super) fn on_answer(&self, message: &Value) {
        let id = message.get("id").and_then(Value::as_u64);
        let Some(waiting) = id.and_then(|id| self.waiting().remove(&id)) else { return };
        let outcome = match message.get("error").filter(|error| !error.is_null()) {
            Some(error) => {
                let text = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
                Outcome::Refused(text.to_owned())
            }
            None => Outcome::Answered(message.get("result").cloned().unwrap_or_default()),
        };
        let _ = waiting.sender.send(outcome);
    }

    pub(super) fn cancel_waiting(&self, session: &str) {
        for (_, waiting) in self.waiting().extract_if(|_, waiting| waiting.session == session) {
            let _ = waiting.sender.send(Outcome::Cancelled);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        lock(&self.waiting)
    }
}
