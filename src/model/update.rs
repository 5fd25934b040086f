//! Session updates of an agent.

use serde::{Deserialize, Serialize};

use super::{
    AgentTerminal, ConfigOption, ContentBlock, Growing, MessageId, ModeId, ModelId, Patch, Plan, PlanId, Raw,
    Role, SessionId, SlashCommand, ToolCallPatch,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionUpdate {
    /// Text to append to a message. Adjacent chunks of one message may be merged.
    Chunk {
        role: Role,
        /// The message id, if the agent sends one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
        text: String,
    },
    /// A block other than text, to append to a message.
    Block {
        role: Role,
        /// The message id, if the agent sends one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
        block: ContentBlock,
    },
    /// A message that is known by its id, new or changed. Source: ACP v2, messages.
    Message {
        role: Role,
        message: MessageId,
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        content: Patch<Vec<ContentBlock>>,
        /// Appended to the content. Adjacent updates that only append to one message may be merged.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        more_content: Vec<ContentBlock>,
    },
    Terminal(AgentTerminal),
    Tool(Box<ToolCallPatch>),
    Plan(Plan),
    PlanRemoved(PlanId),
    Commands(Vec<SlashCommand>),
    Mode(ModeId),
    /// The model changed (an extension of one agent).
    Model(ModelId),
    Options(Vec<ConfigOption>),
    /// Title and time of the last change.
    Info {
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        title: Patch<String>,
        /// ISO 8601.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        updated_at: Patch<String>,
    },
    /// Context size and cost.
    Usage(Usage),
    /// A live message for the user, not part of the history.
    Notice {
        #[serde(default, skip_serializing_if = "NoticeKind::is_other")]
        kind: NoticeKind,
        severity: Severity,
        title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    Compaction {
        id: String,
        /// `in_progress`, `completed`, `failed`, `cancelled` or an unknown status.
        status: String,
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        summary: Patch<String>,
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        error: Patch<String>,
    },
    /// Text to append to a compaction's summary.
    CompactionChunk {
        id: String,
        text: String,
    },
    /// A child session was created or changed.
    Subagent(SubagentPatch),
    /// An unknown update; shown dimmed as raw JSON.
    Unknown {
        /// The name of the update, `?` if it has none.
        name: String,
        raw: Raw,
    },
}

/// Context size and cost. Source: ACP v1 `usage_update`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub used_tokens: u64,
    /// Size of the context window in tokens; 0 if unknown.
    pub size_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// An amount of money, or of credits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub amount: f64,
    /// ISO 4217, or a unit of the agent.
    pub currency: String,
}

/// Token usage of one turn. Source: unstable `PromptResponse.usage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TurnUsage {
    pub total_tokens: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_read_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_write_tokens: Option<u64>,
}

impl SessionUpdate {
    /// A notice that no code looks for.
    pub fn notice(severity: Severity, title: String, description: Option<String>) -> Self {
        Self::Notice { kind: NoticeKind::Other, severity, title, description }
    }

    pub fn more_text(role: Role, message: MessageId, text: String) -> Self {
        Self::Message {
            role,
            message,
            content: Patch::Keep,
            more_content: vec![ContentBlock::Text(text.into())],
        }
    }

    /// The message and the text, if the update only appends text.
    pub fn appended_text(&self) -> Option<(Role, Option<&MessageId>, &str)> {
        match self {
            Self::Chunk { role, message, text } => Some((*role, message.as_ref(), text)),
            Self::Message { role, message, content: Patch::Keep, more_content } => match &more_content[..] {
                [ContentBlock::Text(text)] => Some((*role, Some(message), text)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The text that it appends to this message, if it does nothing else, so that more can be added.
    pub fn text_to_grow(&mut self, of: Role, id: Option<&MessageId>) -> Option<&mut String> {
        match self {
            Self::Chunk { role, message, text } if (*role, message.as_ref()) == (of, id) => Some(text),
            Self::Message { role, message, content: Patch::Keep, more_content }
                if (*role, Some(&*message)) == (of, id) =>
            {
                match &mut more_content[..] {
                    [ContentBlock::Text(Growing::Open(text))] => Some(text),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    pub fn is_from_user(&self) -> bool {
        matches!(
            self,
            Self::Chunk { role: Role::User, .. }
                | Self::Block { role: Role::User, .. }
                | Self::Message { role: Role::User, .. }
        )
    }
}

/// A notice that later code has to recognize. The text is only for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// Any notice that no code looks for. Everything an agent sends is of this kind.
    #[default]
    Other,
    /// The turns above are not in the history that the agent replayed: how many. Former versions recorded this.
    NotReplayed(usize),
    /// The turns below are from the history that the agent replayed: how many.
    Taken(usize),
    /// The rest of the turn above, from the history that the agent replayed. `is_cut`: the text above ends within a line.
    Rest { is_cut: bool },
    /// The history that the agent replayed differs from the record. Not saved.
    HistoryDiffers,
    /// The agent could not restore the conversation above.
    NotRestored,
    /// parlor ended while this turn was running.
    TurnCut,
    /// The last prompt was sent again, in the turn below. Not saved: the prompt's record says so.
    Resent,
    /// The agent's context was cleared: it lacks the conversation above.
    ContextCleared,
}

/// The name of [`SessionUpdate::Unknown`] for a message that could not be read.
pub const UNREADABLE: &str = "unreadable message";

impl NoticeKind {
    pub(super) fn is_other(&self) -> bool {
        *self == Self::Other
    }
}

/// The severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Info,
    Warning,
    Error,
}

/// An update of a child session. Source: unstable `subagent_update`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentPatch {
    pub session: SessionId,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub title: Patch<String>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub description: Patch<String>,
    /// `running`, `idle`, … as the agent sent it.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub state: Patch<String>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub can_cancel: Patch<bool>,
}
