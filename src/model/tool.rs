//! Tool calls, their content, and their terminals.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Body, ContentBlock, Growing, Patch, Raw, TerminalId, ToolCallId};

/// The category of a tool. Source: ACP v1 tool-calls, `ToolKind`; unknown kinds read as `Other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    #[default]
    Other,
}

/// The status of a tool call. `Cancelled` is from v2; in v1, parlor sets it when a turn is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// Announced, or waiting for permission.
    #[default]
    Pending,
    InProgress,
    Completed,
    Failed,
    /// Interrupted by a cancel, or not completed when its turn ended.
    Cancelled,
}

impl ToolStatus {
    /// Whether no further update is expected.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A part of a tool call's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolContent {
    Block(ContentBlock),
    Diff(FileDiff),
    /// The output of a terminal, of parlor's or the agent's.
    Terminal(TerminalId),
    /// An unknown part, shown as raw JSON.
    Unknown(Raw),
}

/// Maximum number of changes of a call that are shown, and that an approval covers.
pub const CHANGES_MAX: usize = 500;

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileDiff {
    /// The path as the agent sent it (absolute by the protocol, relative in some dialects).
    pub path: PathBuf,
    pub change: DiffChange,
}

/// The two forms of file changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffChange {
    /// The texts before and after the change: the entire file or an excerpt.
    Texts {
        /// The old text; `None` for a new file (some agents send an empty text instead).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<Body>,
        new: Body,
    },
    /// A unified diff or an `apply_patch` text.
    Patch(Body),
}

/// A place in a file that a tool call refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    pub path: PathBuf,
    /// Line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// The known fields of a tool's raw input, whatever its keys are called.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The file or folder that the tool works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Changes that only the input contains (a patch, `old_str` and `new_str`, or the entire new text).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<FileDiff>,
}

/// A create, an update, or the tool call inside a permission request: all are the same upsert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallPatch {
    pub id: ToolCallId,
    /// Whether the agent sent `tool_call` (a new call), not an update.
    pub is_announcement: bool,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub title: Patch<String>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub name: Patch<String>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub kind: Patch<ToolKind>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub status: Patch<ToolStatus>,
    /// Content; replaces the previous content.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub content: Patch<Vec<ToolContent>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_content: Vec<ToolContent>,
    /// Locations; replaces the previous ones.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub locations: Patch<Vec<Location>>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub raw_input: Patch<Raw>,
    /// The parsed input. `Set` whenever `raw_input` is.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub input: Patch<ToolInput>,
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub raw_output: Patch<Raw>,
    /// The output as text, if it is a string or has one under a known key.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub output_text: Patch<Growing<String>>,
    /// Exit code found in the output or in `_meta`.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    pub exit_code: Patch<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ToolCallId>,
    /// Updates of the agent's own terminals that were sent with the call (`_meta.terminal_*`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terminals: Vec<AgentTerminal>,
    /// Whether parlor assumed the status, in saved records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_assumed: bool,
    /// The agent's explanation in a permission request. Source: ACP v2 `title`, `description`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// `_meta` and unknown keys, for the inspector and the permission dialog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Raw>,
    /// Whether it can be cancelled separately. Not saved.
    #[serde(skip)]
    pub can_cancel: Patch<bool>,
}

impl ToolCallPatch {
    /// A patch without changes.
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

/// An update of a terminal that the agent owns; codex, pi and claude report command output this way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentTerminal {
    Info {
        /// The id, as in `content`.
        id: TerminalId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<PathBuf>,
    },
    /// Changed properties of the terminal; `None` and `Keep` mean unchanged. Source: ACP v2
    /// `terminal_update`.
    About {
        id: TerminalId,
        command: Option<String>,
        cwd: Option<PathBuf>,
        /// Whether it can be cancelled separately. Not saved.
        #[serde(skip)]
        can_cancel: Patch<bool>,
    },
    /// Output bytes, which may end within a character. Source: ACP v2 `terminal_output_chunk`.
    Bytes {
        id: TerminalId,
        bytes: Vec<u8>,
        /// Whether they replace all previous output.
        is_whole: bool,
    },
    Output {
        id: TerminalId,
        data: String,
    },
    Exit {
        id: TerminalId,
        status: ExitInfo,
    },
}

impl AgentTerminal {
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

/// The exit status of a command. Source: ACP v1 terminals, `TerminalExitStatus`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ExitInfo {
    /// Exit code; `None` if the command was killed by a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// Name of the signal, such as `SIGKILL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
}
