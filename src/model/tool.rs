//! Tool calls, their content, and the terminals they show.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ContentBlock, Patch, Raw, TerminalId, ToolCallId};

/// What a tool does. Source: ACP v1 tool-calls, `ToolKind`; unknown kinds read as `Other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Reads files or data.
    Read,
    /// Changes a file.
    Edit,
    /// Deletes.
    Delete,
    /// Moves or renames.
    Move,
    Search,
    /// Runs a command.
    Execute,
    /// Reasons.
    Think,
    /// Fetches from elsewhere.
    Fetch,
    /// Switches the session's mode.
    SwitchMode,
    #[default]
    Other,
}

/// How far a tool call is. `Cancelled` is v2's; in v1 parlor sets it itself when a turn is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// Announced, or waiting for permission.
    #[default]
    Pending,
    InProgress,
    Completed,
    Failed,
    /// Cut off by a cancel, or still open when its turn ended.
    Cancelled,
}

impl ToolStatus {
    /// Whether nothing more is expected.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// One piece of a tool call's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolContent {
    /// A content block.
    Block(ContentBlock),
    /// A change of a file.
    Diff(FileDiff),
    /// The output of a terminal, ours or the agent's.
    Terminal(TerminalId),
    /// Something that parlor does not know, shown as it came.
    Unknown(Raw),
}

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    /// The file as the agent names it (absolute by the protocol, relative in some dialects).
    pub path: PathBuf,
    /// What changed.
    pub change: DiffChange,
}

/// The two forms in which agents tell a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffChange {
    /// Before and after; either the whole file or only a snippet of it.
    Texts {
        /// Text before; `None` for a new file (some agents send an empty text instead).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<Arc<str>>,
        /// Text after.
        new: Arc<str>,
    },
    /// A unified diff or an `apply_patch` text.
    Patch(Arc<str>),
}

/// A place in a file that a tool works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    pub path: PathBuf,
    /// Line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// What could be read out of a tool's raw input, whatever its keys are called.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolInput {
    /// The command line of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The file or folder it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// A search pattern or query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// A URL to fetch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Why, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Changes told in the input only (a patch, `old_str` and `new_str`, or the whole new text).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<FileDiff>,
}

/// A create, an update, or the tool call inside a permission request: all the same upsert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallPatch {
    pub id: ToolCallId,
    /// Whether the agent sent `tool_call` (an announcement), not an update.
    pub is_announcement: bool,
    /// Title, in the agent's words.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub title: Patch<String>,
    /// The tool's programmatic name.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub name: Patch<String>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub kind: Patch<ToolKind>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub status: Patch<ToolStatus>,
    /// Content; replaces, never extends.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub content: Patch<Vec<ToolContent>>,
    /// Pieces to append to the content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_content: Vec<ToolContent>,
    /// Locations; replaces, never extends.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub locations: Patch<Vec<Location>>,
    /// Input as it came.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub raw_input: Patch<Raw>,
    /// What was understood of the input. `Set` whenever `raw_input` is.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub input: Patch<ToolInput>,
    /// Output as it came.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub raw_output: Patch<Raw>,
    /// The output's text where it is a string, or has one under a usual key. `Set` whenever it was found.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub output_text: Patch<String>,
    /// Exit code found in the output or in `_meta`.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub exit_code: Patch<i32>,
    /// The call that this one is a part of (a subagent's call).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ToolCallId>,
    /// What the agent tells of its own terminals beside the call (`_meta.terminal_*`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terminals: Vec<AgentTerminal>,
    /// Whether the status is parlor's guess, in what is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_assumed: bool,
    /// What the agent says beside the call in a permission request. Source: ACP v2 `title`, `description`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// `_meta` and unknown keys, for the inspector and the permission dialog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Raw>,
    /// Whether it can be stopped by itself; means nothing once kept.
    #[serde(skip)]
    pub can_cancel: Patch<bool>,
}

impl ToolCallPatch {
    /// A patch that changes nothing.
    pub fn new(id: ToolCallId) -> Self {
        Self {
            id,
            is_announcement: false,
            title: Patch::Keep,
            name: Patch::Keep,
            kind: Patch::Keep,
            status: Patch::Keep,
            content: Patch::Keep,
            more_content: Vec::new(),
            locations: Patch::Keep,
            raw_input: Patch::Keep,
            input: Patch::Keep,
            raw_output: Patch::Keep,
            output_text: Patch::Keep,
            exit_code: Patch::Keep,
            parent: None,
            terminals: Vec::new(),
            is_assumed: false,
            note: None,
            extra: None,
            can_cancel: Patch::Keep,
        }
    }
}

/// News of a terminal that the agent owns: codex, pi and claude tell their commands' output this way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentTerminal {
    /// It exists.
    Info {
        /// Its id, as `content` names it.
        id: TerminalId,
        /// Where it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<PathBuf>,
    },
    /// What runs in it, as far as it is told; the rest stays. Source: ACP v2 `terminal_update`.
    About {
        id: TerminalId,
        /// The command line.
        command: Option<String>,
        /// Where it runs.
        cwd: Option<PathBuf>,
        /// Whether it can be stopped by itself; means nothing once kept.
        #[serde(skip)]
        can_cancel: Patch<bool>,
    },
    /// It wrote these bytes, which may end within a character. Source: ACP v2 `terminal_output_chunk`.
    Bytes {
        id: TerminalId,
        /// What was written.
        bytes: Vec<u8>,
        /// Whether they replace all that was told before.
        is_whole: bool,
    },
    /// It wrote something; bytes as a terminal would get them.
    Output {
        id: TerminalId,
        /// What was written.
        data: String,
    },
    /// It ended.
    Exit { id: TerminalId, status: ExitInfo },
}

impl AgentTerminal {
    /// The terminal that it is about.
    pub fn id(&self) -> &TerminalId {
        match self {
            Self::Info { id, .. }
            | Self::About { id, .. }
            | Self::Bytes { id, .. }
            | Self::Output { id, .. }
            | Self::Exit { id, .. } => id,
        }
    }
}

/// How a command ended. Source: ACP v1 terminals, `TerminalExitStatus`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ExitInfo {
    /// Exit code; `None` when a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Name of the signal, for example `SIGKILL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}
