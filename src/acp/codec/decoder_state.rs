//! State that a decoder keeps between messages.
//!
//! It shares ids instead of allocating them for each message, and fills in fields that some dialects omit: the
//! session, the id of a tool call, the other entries of a plan. It stores only the last value of each, so it is
//! bounded.

use std::collections::VecDeque;

use crate::model::{CallError, MessageId, PlanEntry, Reply, Role, RpcError, SessionId, ToolCallId};

/// What a message told of a turn, beside its updates.
#[derive(Debug)]
pub(crate) enum TurnNews {
    /// Something of it came.
    Went(SessionId),
    /// It ended; the same as an answer to the prompt.
    Ended(SessionId, Result<Reply, CallError>),
    /// It met an error, and may end without a word.
    Failing(SessionId, RpcError),
}

/// A step of a plan that comes step by step.
#[derive(Debug)]
pub(super) struct Step {
    /// Its place in the plan as the agent counts, if it counts.
    pub(super) position: Option<i64>,
    /// What is shown.
    pub(super) entry: PlanEntry,
}

/// The last of everything.
#[derive(Debug, Default)]
pub(super) struct DecoderState {
    session: Option<SessionId>,
    message: Option<MessageId>,
    tool: Option<ToolCallId>,
    made: u64,
    /// The version of the protocol in force: 2 or, for all else, 0.
    pub(super) version: u16,
    /// The session that was prompted last.
    pub(super) turn_session: Option<SessionId>,
    /// Whether the end of a turn ever came as an event.
    pub(super) tells_ends: bool,
    /// Whether a turn ended with the response to its prompt and without a `done` event.
    pub(super) response_ends_turn: bool,
    /// What was told of turns and not yet taken.
    pub(super) turn_news: Vec<TurnNews>,
    /// Where the last text ended.
    pub(super) seams: super::whitespace_repair::WhitespaceRepair,
    /// Steps of the plan that one dialect tells step by step.
    pub(super) steps: Option<(SessionId, Vec<Step>)>,
    /// The last message between sessions: its role, and whether some of its content was told.
    pub(super) letter: Option<(MessageId, Role, bool)>,
    /// The child sessions that were announced last.
    children: VecDeque<SessionId>,
}

/// Most child sessions that are remembered; a letter of an older one reads as a message.
const MOST_CHILDREN: usize = 64;

impl DecoderState {
    /// Whether version 2 is spoken.
    pub(super) fn is_v2(&self) -> bool {
        self.version == 2
    }

    /// The session of this name; from now on the one that a message without a session means.
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

    /// The session that a message without one means: the one with the last turn, else the last one named.
    pub(super) fn last_session(&self) -> Option<SessionId> {
        self.turn_session.clone().or_else(|| self.session.clone())
    }

    /// Notes a session that was announced as a child.
    pub(super) fn child(&mut self, session: &SessionId) {
        if !self.is_child(session.as_str()) {
            self.children.truncate(MOST_CHILDREN - 1);
            self.children.push_front(session.clone());
        }
    }

    /// Whether this session was announced as a child.
    pub(super) fn is_child(&self, name: &str) -> bool {
        self.children.iter().any(|child| child.as_str() == name)
    }

    /// The message of this name.
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

    /// The tool call of this name; from now on the one that an update without an id means.
    pub(super) fn tool(&mut self, name: &str) -> ToolCallId {
        let tool = ToolCallId::from(name);
        self.tool = Some(tool.clone());
        tool
    }

    /// The tool call that an update without an id means.
    pub(super) fn last_tool(&self) -> Option<ToolCallId> {
        self.tool.clone()
    }

    /// An id for something that came without one.
    pub(super) fn make_id(&mut self, what: &str) -> String {
        self.made += 1;
        format!("parlor-{what}-{}", self.made)
    }
}
