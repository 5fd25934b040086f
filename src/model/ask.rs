//! Requests of an agent, and their answers.

use std::path::PathBuf;

use super::{ExitInfo, Raw, SessionId, TerminalId, ToolCallId, ToolCallPatch};

/// A request of an agent that parlor must answer exactly once.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "an event boxes it as a whole")]
pub enum Ask {
    /// `session/request_permission`.
    Permission(PermissionAsk),
    /// `fs/read_text_file`.
    ReadFile {
        /// Whose session.
        session: Option<SessionId>,
        /// The file.
        path: PathBuf,
        /// First line, from 1; 0 reads as 1.
        line: Option<u32>,
        /// How many lines.
        limit: Option<u32>,
    },
    /// `fs/write_text_file`.
    WriteFile {
        /// Whose session.
        session: Option<SessionId>,
        /// The file.
        path: PathBuf,
        /// Its new content.
        content: String,
    },
    /// `terminal/create`.
    TerminalCreate {
        /// Whose session.
        session: Option<SessionId>,
        /// What to run.
        command: TerminalCommand,
    },
    /// `terminal/output`.
    TerminalOutput(TerminalId),
    /// `terminal/wait_for_exit`.
    TerminalWait(TerminalId),
    /// `terminal/kill`.
    TerminalKill(TerminalId),
    /// `terminal/release`.
    TerminalRelease(TerminalId),
    /// `elicitation/create`.
    Elicitation(ElicitationAsk),
}

/// What `terminal/create` wants to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TerminalCommand {
    /// Program, or a whole shell line when `args` is empty.
    pub command: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Variables to add.
    pub env: Vec<(String, String)>,
    /// Where; `None` or relative: the session's folder.
    pub cwd: Option<PathBuf>,
    /// How much output to keep for the agent, in bytes, cut from the front.
    pub output_limit_bytes: Option<u64>,
}

/// A permission request.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionAsk {
    /// Whose session.
    pub session: Option<SessionId>,
    /// The tool call, perhaps only its id; to be merged with the known one.
    pub tool: ToolCallPatch,
    /// The agent's options, in its order and words. May be empty: only a cancel fits then.
    pub options: Vec<PermissionOption>,
}

/// An option of a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    /// What to answer with.
    pub id: String,
    /// The agent's words.
    pub name: String,
    /// What it means.
    pub kind: PermissionKind,
}

/// What a permission option means. Source: ACP v1 tool-calls, `PermissionOptionKind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermissionKind {
    /// Yes, now.
    AllowOnce,
    /// Yes, and remember.
    AllowAlways,
    /// No, now.
    RejectOnce,
    /// No, and remember.
    RejectAlways,
}

impl PermissionKind {
    /// Whether it allows.
    pub fn is_allow(self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }
}

/// A question to the user. Source: ACP v1 elicitation.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationAsk {
    /// Whose session, if it belongs to one.
    pub session: Option<SessionId>,
    /// The tool call that it belongs to.
    pub tool: Option<ToolCallId>,
    /// What the agent says.
    pub message: String,
    /// What it wants.
    pub mode: ElicitationMode,
}

/// What an elicitation wants.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationMode {
    /// A form to fill in.
    Form {
        /// Title of the form.
        title: Option<String>,
        /// Description of the form.
        description: Option<String>,
        /// Its fields, in order.
        fields: Vec<FormField>,
    },
    /// A page to visit.
    Url {
        /// Id that `elicitation/complete` will name.
        id: String,
        /// The page.
        url: String,
    },
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct FormField {
    /// Key in the answer.
    pub key: String,
    /// Label; the key where the agent gives none.
    pub title: String,
    /// Help.
    pub description: Option<String>,
    /// Whether it must be filled in.
    pub is_required: bool,
    /// What it takes.
    pub kind: FieldKind,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// Text.
    Text {
        /// Fewest characters.
        min_chars: Option<u32>,
        /// Most characters.
        max_chars: Option<u32>,
        /// A regular expression that it must match.
        pattern: Option<String>,
        /// `email`, `uri`, `date` or `date-time`.
        format: Option<String>,
        /// What to begin with.
        default: Option<String>,
    },
    /// One of several texts.
    Choice {
        /// All of them.
        choices: Vec<FieldChoice>,
        /// The one to begin with.
        default: Option<String>,
    },
    /// Several of several texts.
    Choices {
        /// All of them.
        choices: Vec<FieldChoice>,
        /// Fewest.
        min_items: Option<u32>,
        /// Most.
        max_items: Option<u32>,
        /// Those to begin with.
        default: Vec<String>,
    },
    /// A number.
    Number {
        /// Whether only whole numbers do.
        is_integer: bool,
        /// Least.
        minimum: Option<f64>,
        /// Greatest.
        maximum: Option<f64>,
        /// What to begin with.
        default: Option<f64>,
    },
    /// Yes or no.
    Boolean {
        /// What to begin with.
        default: Option<bool>,
    },
}

/// A choice of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChoice {
    /// The value.
    pub value: String,
    /// What to show.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
}

/// A value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    /// Text, or a choice.
    Text(String),
    /// Several choices.
    Texts(Vec<String>),
    /// Whole number.
    Integer(i64),
    /// Number.
    Number(f64),
    /// Yes or no.
    Bool(bool),
}

/// Our answer to a request. Its form must fit the request's.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Permission: this option.
    Selected(String),
    /// Permission: cancelled.
    PermissionCancelled,
    /// `fs/read_text_file`: the text.
    FileContent(String),
    /// Done, with nothing to tell (`{}`): write, kill, release.
    Done,
    /// `terminal/create`.
    TerminalCreated(TerminalId),
    /// `terminal/output`.
    TerminalOutput {
        /// The output so far, without escape sequences.
        output: String,
        /// Whether something was cut.
        is_truncated: bool,
        /// How it ended, if it has.
        exit: Option<ExitInfo>,
    },
    /// `terminal/wait_for_exit`.
    TerminalExit(ExitInfo),
    /// Elicitation accepted; `None` for a URL.
    ElicitationAccepted(Option<Vec<(String, FieldValue)>>),
    /// Elicitation declined.
    ElicitationDeclined,
    /// Elicitation cancelled.
    ElicitationCancelled,
    /// An error.
    Error(RpcError),
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// Code.
    pub code: i64,
    /// Message, for people: the best text that was found, also in `data`.
    pub message: String,
    /// `data`, as it came or is to be sent.
    pub data: Option<Raw>,
}

impl RpcError {
    /// `-32002`, with the path as `data.uri`. Source: ACP v1 errors.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// `-32601`.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// `-32602`.
    pub const INVALID_PARAMS: i64 = -32602;
    /// `-32603`.
    pub const INTERNAL: i64 = -32603;
    /// `-32800`.
    pub const CANCELLED: i64 = -32800;
    /// `-32000`.
    pub const AUTH_REQUIRED: i64 = -32000;
    /// `-32022`, of version 2.
    pub const UNSUPPORTED_VERSION: i64 = -32022;

    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}
