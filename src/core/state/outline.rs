//! The outline of a transcript: prompts, edits, commands and failures, and filtering by these kinds.

use crate::core::{Item, ItemBody, ToolCall, TurnEnd};
use crate::model::{Role, Severity, StopReason, ToolKind, ToolStatus};

/// A filter of the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Only {
    /// Prompts, edits, commands and failures.
    Outline,
    Prompts,
    Edits,
    Commands,
    Failures,
}

impl Only {
    /// All filters, in the order they are offered.
    pub const ALL: [Self; 5] = [Self::Outline, Self::Prompts, Self::Edits, Self::Commands, Self::Failures];

    pub fn label(self) -> &'static str {
        match self {
            Self::Outline => "prompts, edits, commands, failures",
            Self::Prompts => "prompts",
            Self::Edits => "edits",
            Self::Commands => "commands",
            Self::Failures => "failures",
        }
    }

    pub fn shows(self, item: &Item) -> bool {
        let is_call = |is_one: fn(&ToolCall) -> bool| match &item.body {
            ItemBody::Tool(call) => is_one(call),
            _ => false,
        };
        match self {
            Self::Outline => [Self::Prompts, Self::Edits, Self::Commands, Self::Failures]
                .iter()
                .any(|only| only.shows(item)),
            Self::Prompts => {
                matches!(&item.body, ItemBody::Message(message) if message.role == Role::User)
            }
            Self::Edits => is_call(|call| {
                matches!(call.kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move)
                    || (call.kind != ToolKind::Execute && call.diffs().next().is_some())
            }),
            Self::Commands => is_call(|call| call.kind == ToolKind::Execute),
            Self::Failures => is_failure(&item.body),
        }
    }
}

/// Whether an item is work that is not over: a tool call, a command or a subagent.
pub fn is_running(item: &Item) -> bool {
    match &item.body {
        ItemBody::Tool(tool) => !tool.status.is_final(),
        ItemBody::Subagent { state, .. } => is_subagent_running(state.as_deref()),
        _ => false,
    }
}

/// Whether a subagent in this state, as reported by the agent, is at work.
pub fn is_subagent_running(state: Option<&str>) -> bool {
    !matches!(state, Some("idle" | "completed" | "failed" | "cancelled"))
}

pub fn is_failure(body: &ItemBody) -> bool {
    match body {
        ItemBody::Tool(tool) => {
            tool.status == ToolStatus::Failed || tool.exit_code.is_some_and(|code| code != 0)
        }
        ItemBody::TurnEnd(TurnEnd::Stopped { reason, .. }) => {
            !matches!(reason, StopReason::EndTurn | StopReason::Cancelled)
        }
        ItemBody::TurnEnd(TurnEnd::Failed { .. } | TurnEnd::AgentDied { .. }) => true,
        ItemBody::Notice { severity, .. } => *severity == Severity::Error,
        ItemBody::Compaction { status, .. } => status == "failed",
        _ => false,
    }
}
