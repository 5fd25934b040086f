//! What a translator does, and what all of them need.

use std::fmt::Debug;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::acp::codec::calls::{encode_cancel, encode_withdrawal};
use crate::acp::codec::value::Object;
use crate::acp::envelope::Message;
use crate::model::{AgentInfo, Call, RpcError, SessionId};

pub type Method = (&'static str, String);

pub trait Dialect: Debug + Send + Sync {
    fn is_official(&self) -> bool {
        false
    }

    fn client_name(&self) -> &'static str {
        "parlor"
    }

    fn initialize(&self) -> Option<Method> {
        None
    }

    /// The result of `initialize`, as the protocol has it.
    fn initialized(&mut self, _result: &str) -> Option<String> {
        None
    }

    /// Adds what is known of the system to what the agent has told.
    fn describe(&self, _info: &mut AgentInfo) {}

    /// Whether the agent sends the first message; `initialize` has to wait for it and may have to be repeated.
    fn speaks_first(&self) -> bool {
        false
    }

    /// Whether the agent requires a `shutdown` request before its input is closed.
    fn shuts_down(&self) -> bool {
        false
    }

    /// Translates a request of parlor. Fails if it exceeds a limit of the agent; then it is not sent.
    fn call(&mut self, _id: u64, _call: &Call, _message: &mut Method) -> Result<(), String> {
        Ok(())
    }

    /// The notification that cancels a turn. `prompt`: the id of its prompt.
    fn cancel(&self, session: &SessionId, _prompt: Option<u64>) -> Option<Method> {
        Some(encode_cancel(session))
    }

    /// The notification that cancels a request; `None`: the agent does not support that.
    fn withdraw(&self, id: u64) -> Option<Method> {
        Some(encode_withdrawal(id))
    }

    /// Translates a message of the agent. False if it is one of the protocol.
    fn receive(&mut self, _message: &Message<'_>, _text: &str, _out: &mut Translation) -> bool {
        false
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn on_deadline(&mut self, _out: &mut Translation) {}
}

/// The protocol itself.
#[derive(Debug)]
pub struct Official;

impl Dialect for Official {
    fn is_official(&self) -> bool {
        true
    }
}

#[derive(Debug)]
pub struct Translation {
    pub now: Instant,
    pub to_agent: Vec<(u64, Method)>,
    /// Messages of the agent, as JSON text.
    pub to_parlor: Vec<String>,
    /// Messages that were ignored, and why.
    pub problems: Vec<&'static str>,
}

impl Translation {
    pub fn new(now: Instant) -> Self {
        Self { now, to_agent: Vec::new(), to_parlor: Vec::new(), problems: Vec::new() }
    }

    pub fn update(&mut self, session: &str, update: &Object) {
        let params = json!({"sessionId": session, "update": update});
        self.to_parlor
            .push(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string());
    }

    pub fn respond(&mut self, id: u64, outcome: Result<Value, Value>) {
        let (key, value) = match outcome {
            Ok(result) => ("result", result),
            Err(error) => ("error", error),
        };
        self.to_parlor.push(json!({"jsonrpc": "2.0", "id": id, key: value}).to_string());
    }
}

pub fn no_session() -> Value {
    json!({"code": RpcError::RESOURCE_NOT_FOUND, "message": "The agent does not have this session."})
}

pub fn check_size(bytes: usize, limit_bytes: usize) -> Result<(), String> {
    if bytes <= limit_bytes {
        return Ok(());
    }
    Err(format!(
        "The prompt is {} KiB; this agent's limit is {}. Shorten it, or put the text in a file and refer to the file.",
        bytes.div_ceil(1024),
        limit_bytes / 1024
    ))
}
