//! What a connection tells the app, in wire order.

use super::{
    AgentInfo, AgentRequest, AskId, AuthStatus, CallError, CallTag, CloseReason, Reply, RpcError, SessionId,
    SessionUpdate,
};

/// One thing that happened on a connection.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// The process runs; `initialize` was written.
    Started {
        /// Its process id, if it is ours.
        pid: Option<u32>,
    },
    /// `initialize` was answered.
    Ready(Box<AgentInfo>),
    /// `initialize` failed for good. `Closed` follows when the process ends.
    InitializeFailed(CallError),
    /// An update of a session.
    Update(SessionId, SessionUpdate),
    /// A request that needs an answer.
    Request(AskId, Box<AgentRequest>),
    /// The agent withdrew a request (`$/cancel_request`); it still gets an answer.
    AskWithdrawn(AskId),
    /// `elicitation/complete`: the page of this elicitation id was dealt with.
    ElicitationComplete(String),
    /// The user is signed in otherwise than before.
    AuthStatus(AuthStatus),
    /// A call of ours came back.
    Replied(CallTag, Result<Reply, CallError>),
    /// Something irregular; shown in the log view and counted in the status line.
    Anomaly(Anomaly),
    /// The end. Sent once, last.
    Closed(CloseReason),
}

/// What an agent told at once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// In wire order.
    pub events: Vec<AgentEvent>,
    /// How many messages they came in: chunks that belong together are one event.
    pub messages: u32,
}

impl IntoIterator for Batch {
    type Item = AgentEvent;
    type IntoIter = std::vec::IntoIter<AgentEvent>;

    fn into_iter(self) -> Self::IntoIter {
        self.events.into_iter()
    }
}

/// Something irregular that was survived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    pub kind: AnomalyKind,
    /// One sentence with the facts.
    pub text: String,
}

/// Kinds of irregular input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnomalyKind {
    /// A line on stdout that is no JSON.
    Noise,
    /// A frame over the size limit.
    Oversize,
    /// Bytes that are no UTF-8 in a frame.
    BadUtf8,
    /// A frame that is no JSON, or no JSON-RPC.
    BadFrame,
    /// A message whose form was not understood.
    BadMessage,
    /// Items of a list that were not understood.
    LostItems,
    /// A response to nothing that was asked, or a second one.
    StrayResponse,
    /// A request or notification that parlor does not know.
    UnknownMethod,
    /// A form that only a dialect has (header frames, an array, another name).
    Dialect,
    /// Something about the way to an agent behind a URL: a stream that broke and was opened again.
    Carrier,
}

impl From<RpcError> for CallError {
    fn from(error: RpcError) -> Self {
        Self::Agent(error)
    }
}
