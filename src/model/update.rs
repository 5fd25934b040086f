//! What an agent tells about a session.

use serde::{Deserialize, Serialize};

use super::{
    AgentTerminal, ConfigOption, ContentBlock, MessageId, ModeId, ModelId, Patch, Plan, PlanId, Raw, Role,
    SessionId, SlashCommand, ToolCallPatch,
};

/// One update of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionUpdate {
    /// Text to append to a message. Adjacent chunks of one message may come joined.
    Chunk {
        role: Role,
        /// Which message, if the agent says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
        text: String,
    },
    /// A block that is no text, to append to a message.
    Block {
        role: Role,
        /// Which message, if the agent says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
        block: ContentBlock,
    },
    /// A whole message, made or changed; its content replaces what was told of it.
    Message {
        role: Role,
        message: MessageId,
        /// All of its blocks.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        content: Patch<Vec<ContentBlock>>,
    },
    /// News of a terminal that the agent owns.
    Terminal(AgentTerminal),
    /// A tool call was made or changed.
    Tool(Box<ToolCallPatch>),
    /// A plan was made or replaced.
    Plan(Plan),
    /// A plan is gone.
    PlanRemoved(PlanId),
    /// All slash commands; replaces.
    Commands(Vec<SlashCommand>),
    /// The mode changed.
    Mode(ModeId),
    /// The model changed (a dialect of one system).
    Model(ModelId),
    /// All config options; replaces.
    Options(Vec<ConfigOption>),
    /// Title and time of the last change.
    Info {
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        title: Patch<String>,
        /// ISO 8601.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        updated_at: Patch<String>,
    },
    /// Context and cost.
    Usage(Usage),
    /// A live message for the user, no part of the history.
    Notice {
        #[serde(default, skip_serializing_if = "NoticeKind::is_other")]
        kind: NoticeKind,
        severity: Severity,
        /// The message.
        title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// The context is being compacted, or was.
    Compaction {
        id: String,
        /// `in_progress`, `completed`, `failed`, `cancelled` or a word of the agent's own.
        status: String,
        /// Summary as Markdown.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        summary: Patch<String>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        error: Patch<String>,
    },
    /// Text to append to a compaction's summary.
    CompactionChunk { id: String, text: String },
    /// A child session was announced or changed.
    Subagent(SubagentPatch),
    /// Something that parlor does not know; shown grey, as it came.
    Unknown {
        /// The update's own name, `?` if it has none.
        name: String,
        /// The whole update.
        raw: Raw,
    },
}

/// Context and cost. Source: ACP v1 `usage_update`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens in the context.
    pub used_tokens: u64,
    /// Size of the context in tokens; 0 when unknown.
    pub size_tokens: u64,
    /// Cost of the session so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// An amount of money, or of credits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// How much.
    pub amount: f64,
    /// ISO 4217, or a unit of the agent's own.
    pub currency: String,
}

/// Tokens of one turn. Source: unstable `PromptResponse.usage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TurnUsage {
    pub total_tokens: u64,
    /// Read.
    pub input_tokens: u64,
    /// Written.
    pub output_tokens: u64,
    /// Of these, reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_tokens: Option<u64>,
    /// Read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_read_tokens: Option<u64>,
    /// Written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_write_tokens: Option<u64>,
}

impl SessionUpdate {
    /// A notice that no code looks for.
    pub fn notice(severity: Severity, title: String, description: Option<String>) -> Self {
        Self::Notice { kind: NoticeKind::Other, severity, title, description }
    }
}

/// A notice that later code has to recognize. The text is only for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// Any notice that no code looks for. Everything an agent sends is of this kind.
    #[default]
    Other,
    /// The turns above are not in the history that the agent replayed: how many.
    NotReplayed(usize),
    /// The agent could not restore the conversation above.
    NotRestored,
    /// parlor ended while this turn was running.
    TurnCut,
}

impl NoticeKind {
    pub(super) fn is_other(&self) -> bool {
        *self == Self::Other
    }
}

/// How bad a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For information.
    Info,
    /// Be aware.
    Warning,
    Error,
}

/// News of a child session. Source: unstable `subagent_update`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentPatch {
    /// The child session.
    pub session: SessionId,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub title: Patch<String>,
    /// What it is to do.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub description: Patch<String>,
    /// `running`, `idle`, … in the agent's words.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub state: Patch<String>,
    /// Whether it can be cancelled by itself.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub can_cancel: Patch<bool>,
}
