//! State of the decoder between messages.
//!
//! It shares ids instead of allocating them for each message, and fills in fields that some dialects omit: the session,
//! the id of a tool call, the other entries of a plan.
//!
//! Invariant: only the last values are stored, so the size is bounded.

use std::collections::VecDeque;

use crate::model::{CallError, MessageId, PlanEntry, Reply, Role, RpcError, SessionId, ToolCallId};

/// An event of a turn, in addition to its session updates.
#[derive(Debug)]
pub(crate) enum TurnNews {
    /// The turn is active.
    Went(SessionId),
    /// The turn ended; equivalent to a response to the prompt.
    Ended(SessionId, Result<Reply, CallError>),
    /// The turn failed, and may end without a further message.
    Failing(SessionId, RpcError),
}

/// An entry of a plan whose entries are sent one at a time.
#[derive(Debug)]
pub(super) struct Step {
    /// The position in the agent's numbering, if it sends one.
    pub(super) position: Option<i64>,
    pub(super) entry: PlanEntry,
}

#[derive(Debug, Default)]
pub(super) struct DecoderState {
    session: Option<SessionId>,
    message: Option<MessageId>,
    tool: Option<ToolCallId>,
    made: u64,
    /// The negotiated protocol version: 2, or 0 for all others.
    pub(super) version: u16,
    /// The session that was prompted last.
    pub(super) turn_session: Option<SessionId>,
    /// Whether the agent has sent an event for the end of a turn.
    pub(super) tells_ends: bool,
    /// Whether a turn ended with the response to its prompt and without a `done` event.
    pub(super) response_ends_turn: bool,
    /// Turn events that were not fetched yet.
    pub(super) turn_news: Vec<TurnNews>,
    /// State for restoring whitespace between chunks.
    pub(super) seams: super::whitespace_repair::WhitespaceRepair,
    /// The plan of a dialect that sends entries one at a time.
    pub(super) steps: Option<(SessionId, Vec<Step>)>,
    /// The last message between sessions: its role, and whether some of its content was reported.
    pub(super) letter: Option<(MessageId, Role, bool)>,
    /// The most recently announced child sessions.
    children: VecDeque<SessionId>,
}

/// Maximum number of child sessions; a message from an older one is shown as a regular message.
const MOST_CHILDREN: usize = 64;

impl DecoderState {
    pub(super) fn is_v2(&self) -> bool {
        self.version == 2
    }

    /// The session with this id, which becomes the default for messages without a session id.
    pub(super) fn session(&mut self, name: &str) -> SessionId {
        match &self.session {
            Some(known) if known.as_str() == name => known.clone(),
            _ => {
                let session = SessionId::from(name);
                self.session = Some(session.clone());
                session
            }
        }
    }

    /// The session for a message without a session id: the one with the last turn, otherwise the last one named.
    pub(super) fn last_session(&self) -> Option<SessionId> {
        self.turn_session.clone().or_else(|| self.session.clone())
    }

    /// Registers a child session.
    pub(super) fn child(&mut self, session: &SessionId) {
        if !self.is_child(session.as_str()) {
            self.children.truncate(MOST_CHILDREN - 1);
            self.children.push_front(session.clone());
        }
    }

    pub(super) fn is_child(&self, name: &str) -> bool {
        self.children.iter().any(|child| child.as_str() == name)
    }

    pub(super) fn message(&mut self, name: &str) -> MessageId {
        match &self.message {
            Some(known) if known.as_str() == name => known.clone(),
            _ => {
                let message = MessageId::from(name);
                self.message = Some(message.clone());
                message
            }
        }
    }

    /// The tool call with this id, which becomes the default for updates without an id.
    pub(super) fn tool(&mut self, name: &str) -> ToolCallId {
        let tool = ToolCallId::from(name);
        self.tool = Some(tool.clone());
        tool
    }

    /// The tool call for an update without an id.
    pub(super) fn last_tool(&self) -> Option<ToolCallId> {
        self.tool.clone()
    }

    /// Makes an id for an item that has none.
    pub(super) fn make_id(&mut self, what: &str) -> String {
        self.made += 1;
        format!("parlor-{what}-{}", self.made)
    }
}
