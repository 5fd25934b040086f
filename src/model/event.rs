//! Events of a connection, in wire order.

use super::{
    AgentInfo, AgentRequest, AuthStatus, CallError, CallTag, CloseReason, Reply, RequestId, RpcError,
    SessionId, SessionUpdate,
};

/// An event of a connection.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// The process is running; `initialize` was sent.
    Started {
        /// The process id, if it is a child of parlor.
        pid: Option<u32>,
    },
    /// What its sandbox enforces.
    Sandboxed(String),
    /// `initialize` succeeded.
    Ready(Box<AgentInfo>),
    /// `initialize` failed permanently. `Closed` follows when the process ends.
    InitializeFailed(CallError),
    Update(SessionId, SessionUpdate),
    /// The agent works in a session without a prompt of parlor. Source: ACP v2, session states.
    TurnBegan(SessionId),
    TurnEnded(SessionId, Result<Reply, CallError>),
    Request(RequestId, Box<AgentRequest>),
    /// The agent withdrew a request (`$/cancel_request`); parlor still responds to it.
    RequestWithdrawn(RequestId),
    /// `elicitation/complete` for this elicitation id.
    ElicitationComplete(String),
    AuthStatus(AuthStatus),
    /// Lines that the agent has written to stderr during `authenticate`.
    SignInOutput(Vec<String>),
    Replied(CallTag, Result<Reply, CallError>),
    /// Whether the connection to a server is interrupted; parlor tries to restore it.
    Interrupted(bool),
    /// A protocol anomaly; shown in the log view and counted in the status line.
    Anomaly(Anomaly),
    Closed(CloseReason),
}

/// Events that are delivered together, in wire order.
pub type Batch = Vec<AgentEvent>;

/// An irregular message that did not end the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    pub kind: AnomalyKind,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnomalyKind {
    /// A line on stdout that is not JSON.
    Noise,
    /// A frame over the size limit.
    Oversize,
    /// A frame that is not valid UTF-8.
    BadUtf8,
    /// A frame that is not JSON, or not JSON-RPC.
    BadFrame,
    /// A message that could not be decoded.
    BadMessage,
    /// List entries that could not be decoded.
    LostItems,
    /// A response without a request, or a second one.
    StrayResponse,
    /// An unknown request or notification.
    UnknownMethod,
    /// A form that only a dialect uses (header frames, an array, another name).
    Dialect,
    /// A problem of the connection to an agent behind a URL: a stream failed and was reopened.
    Carrier,
}

impl From<RpcError> for CallError {
    fn from(error: RpcError) -> Self {
        Self::Agent(error)
    }
}
