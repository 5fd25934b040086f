//! Messages from parlor to an agent, and the results.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    AuthStatus, ConfigOption, ConfigValue, ContentBlock, McpServer, ModeId, Models, Modes, Provider,
    ProviderRequest, RemoteFolder, RequestId, Response, RpcError, SessionId, SessionKey, TerminalId,
    ToolCallId, TurnUsage, UserRoot,
};

/// A message to an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentCommand {
    /// A request; the reply carries the same tag.
    Call(CallTag, Call),
    /// `session/cancel`, a notification.
    Cancel(SessionId),
    Respond(RequestId, Response),
    /// `$/cancel_request` for a call that exceeded its timeout.
    CancelCall(CallTag),
}

/// Identifies a call, so that the reducer knows how to continue with its reply.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallTag {
    /// Number of the call, assigned by the reducer; unique per connection.
    pub number: u64,
    pub purpose: Purpose,
}

/// The purpose of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Purpose {
    Authenticate,
    LogOut,
    NewSession(SessionKey),
    LoadSession(SessionKey),
    /// Resumes a session without its history.
    ResumeSession(SessionKey),
    ListSessions,
    DeleteSession(SessionId),
    CloseSession(SessionId),
    ForkSession(SessionKey),
    SetTitle(SessionKey),
    /// Sets the title of a session that is not open.
    TitleSaved(Box<TitleRequest>),
    Prompt(SessionKey),
    /// Adds a prompt to the running turn.
    Steer(SessionKey),
    SetMode(SessionKey),
    SetOption(SessionKey),
    SetModel(SessionKey),
    /// Cancels one tool call or terminal.
    StopPart(SessionKey),
    Archive(SessionKey),
    AuthStatus,
    ListProviders,
    SetProvider(String),
    ChangeProvider(Box<ProviderRequest>),
    /// Asks whether the agent has the session in memory.
    SessionStatus(SessionId),
}

/// A title for a saved session that is not open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TitleRequest {
    pub uid: String,
    pub title: String,
    pub agent: String,
}

/// A request to an agent. `acp` encodes it with the official types.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// `authenticate`.
    Authenticate {
        method_id: String,
        /// The key that the user has typed, for a method that reads one.
        api_key: Option<super::Secret>,
    },
    /// `logout`.
    LogOut,
    /// `session/new`.
    NewSession(SessionWorkspace),
    /// `session/load`.
    LoadSession(SessionId, SessionWorkspace),
    /// `session/resume`.
    ResumeSession(SessionId, SessionWorkspace),
    /// `session/fork` (unstable), with the number of turns so far.
    ForkSession(SessionId, SessionWorkspace, u32),
    /// `session/list`.
    ListSessions {
        /// Lists only sessions of this folder.
        cwd: Option<PathBuf>,
        cursor: Option<String>,
    },
    /// `session/delete`.
    DeleteSession(SessionId),
    /// `session/close`.
    CloseSession(SessionId),
    /// `session/set_title` (unstable).
    SetTitle(SessionId, String),
    /// `session/prompt`.
    Prompt(SessionId, Vec<ContentBlock>),
    /// `_session/steering` (an extension of some agents).
    Steer(SessionId, Vec<ContentBlock>),
    /// `session/set_mode`.
    SetMode(SessionId, ModeId),
    /// `session/set_config_option`.
    SetOption(SessionId, String, ConfigValue),
    /// `session/set_model` (not in the schema, used by many agents).
    SetModel(SessionId, super::ModelId),
    /// `tool_call/cancel`. Source: ACP v2 tool-calls.
    StopTool(SessionId, ToolCallId),
    /// `terminal/cancel`. Source: ACP v2 tool-calls.
    StopTerminal(SessionId, TerminalId),
    /// `session/archive` (unstable) if true, otherwise `session/unarchive`.
    Archive(SessionId, bool),
    /// `session/status` (unstable).
    SessionStatus(SessionId),
    /// `auth/status` (unstable).
    AuthStatus,
    /// `providers/list` (unstable).
    ListProviders,
    /// `providers/set` or `providers/disable` (unstable).
    SetProvider(ProviderRequest),
}

/// The folders and MCP servers of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionWorkspace {
    /// The folder on this machine, absolute and normalised. Saved sessions are indexed by it.
    pub cwd: PathBuf,
    /// The folder on another machine, if the agent runs there; all its paths are on that machine.
    pub remote: Option<RemoteFolder>,
    /// Additional roots; sent only to agents that support them.
    pub additional_directories: Vec<UserRoot>,
    /// MCP servers; `acp` omits those whose transport the agent does not support.
    pub mcp_servers: Vec<McpServer>,
}

impl SessionWorkspace {
    pub fn folder(&self) -> &Path {
        self.remote.as_ref().map_or(&self.cwd, |remote| &remote.folder)
    }

    /// The folders that the agent's file requests are limited to.
    pub fn roots(&self) -> Vec<PathBuf> {
        let more = self.additional_directories.iter().map(|root| root.to_path_buf());
        std::iter::once(self.folder().to_owned()).chain(more).collect()
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// `new`, `load`, `resume`, `fork`.
    Session(SessionReply),
    /// `list`.
    Sessions { sessions: Vec<SessionInfo>, next_cursor: Option<String> },
    /// `prompt`: the end of the turn.
    TurnEnded {
        reason: StopReason,
        /// Token usage of the turn, if reported.
        usage: Option<TurnUsage>,
    },
    /// `_session/steering`: whether the agent has accepted the prompt. If not, it is still to be sent.
    Steered { is_accepted: bool },
    /// `set_config_option`: all options.
    Options(Vec<ConfigOption>),
    /// `set_title`: the stored title.
    Title(String),
    /// `session/status`.
    SessionStatus {
        /// Whether the agent has the session in memory, for any client.
        is_live: bool,
    },
    /// `auth/status`.
    AuthStatus(AuthStatus),
    /// `providers/list`.
    Providers(Vec<Provider>),
    /// An empty result.
    Done,
}

/// The initial state of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionReply {
    /// The id; `None` if the call contained it (load, resume).
    pub id: Option<SessionId>,
    /// The modes, if there are any.
    pub modes: Option<Modes>,
    /// The legacy models, if reported.
    pub models: Option<Models>,
    /// The config options; may be empty.
    pub options: Vec<ConfigOption>,
    /// Whether the response does not prove that the session exists; the first prompt shows it.
    pub is_provisional: bool,
}

/// An entry of the agent's session list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    pub id: SessionId,
    pub cwd: PathBuf,
    pub title: Option<String>,
    /// Time of the last change, in ISO 8601.
    pub updated_at: Option<String>,
    pub additional_directories: Vec<PathBuf>,
    /// Whether the agent hides it from its default list.
    pub is_archived: bool,
    /// Whether the agent has it in memory, for any client; `None` if not asked yet.
    pub is_live: Option<bool>,
}

/// Why a turn ended. Source: ACP v1 prompt-turn, `StopReason`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    /// The agent refused; the prompt and everything after it is dropped from its context.
    Refusal,
    Cancelled,
    /// An unknown reason.
    Other(String),
}

impl StopReason {
    /// The reason for display, as the start of a sentence. Contains an unknown reason verbatim and
    /// unsanitised.
    pub fn description(&self) -> String {
        match self {
            Self::EndTurn => "Turn finished".to_owned(),
            Self::Cancelled => "Turn cancelled".to_owned(),
            Self::MaxTokens => "Token limit reached".to_owned(),
            Self::MaxTurnRequests => "Request limit reached".to_owned(),
            Self::Refusal => "The agent refused to continue".to_owned(),
            Self::Other(word) => format!("Turn finished: {word}"),
        }
    }
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The agent returned an error.
    Agent(RpcError),
    /// The response could not be decoded.
    Malformed { error: String },
    /// The request was not sent, because the agent does not support it.
    NotSent {
        /// Why, with a next step.
        error: String,
    },
    /// No response within this number of seconds.
    TimedOut(u64),
    /// The connection ended before the response.
    Lost,
    /// The agent supports only another version of the protocol.
    OtherVersion { theirs: String },
    /// Delivery of this request failed; the connection remains open.
    Undelivered {
        /// What happened, with a next step.
        error: String,
    },
}
