//! What parlor tells an agent, and what comes back.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    AskId, AuthStatus, ConfigOption, ConfigValue, ContentBlock, FarPlace, McpServer, ModeId, Models, Modes,
    Provider, ProviderRequest, Response, RpcError, SessionId, SessionKey, TerminalId, ToolCallId, TurnUsage,
    UserRoot,
};

/// Something to be written to an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentCommand {
    /// A request; its reply comes back with the tag.
    Call(CallTag, Call),
    /// `session/cancel`, a notification.
    Cancel(SessionId),
    /// The answer to a request of the agent.
    Respond(AskId, Response),
    /// `$/cancel_request` for a request of ours that takes too long.
    CancelCall(CallTag),
}

/// Says what a reply belongs to: the continuation as data.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallTag {
    /// Number of the call, given by the reducer; unique per connection.
    pub number: u64,
    /// Why it was made.
    pub purpose: Purpose,
}

/// Why a call was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A sign-in.
    Authenticate,
    /// A sign-out.
    LogOut,
    /// A session for this place.
    NewSession(SessionKey),
    /// The old session, with its history.
    LoadSession(SessionKey),
    /// The old session, without its history.
    ResumeSession(SessionKey),
    ListSessions,
    /// A session's end in the agent's list.
    DeleteSession(SessionId),
    /// A session's end.
    CloseSession(SessionId),
    /// A copy of a session, for this place.
    ForkSession(SessionKey),
    SetTitle(SessionKey),
    /// A title of a session that is not open.
    TitleKept(Box<TitleRequest>),
    /// A turn.
    Prompt(SessionKey),
    SetMode(SessionKey),
    /// A config option.
    SetOption(SessionKey),
    SetModel(SessionKey),
    /// The end of a part of the work.
    StopPart(SessionKey),
    /// A session out of the agent's list.
    Archive(SessionKey),
    /// How the user is signed in.
    AuthStatus,
    /// Where models come from.
    ListProviders,
    /// A place that models are to come from, by its id.
    SetProvider(String),
    /// The same, changed by the user while the agent runs.
    ChangeProvider(Box<ProviderRequest>),
    /// Whether the agent has a session in memory.
    SessionStatus(SessionId),
}

/// A title for a session that parlor keeps and that is not open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TitleRequest {
    /// Its id in the store.
    pub uid: String,
    pub title: String,
    /// Its agent's name.
    pub agent: String,
}

/// A request to an agent. `acp` builds it from the official types.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// `authenticate`.
    Authenticate {
        /// An advertised id.
        method_id: String,
    },
    /// `logout`.
    LogOut,
    /// `session/new`.
    NewSession(SessionPlace),
    /// `session/load`.
    LoadSession(SessionId, SessionPlace),
    /// `session/resume`.
    ResumeSession(SessionId, SessionPlace),
    /// `session/fork` (unstable), with the number of turns that the session has had.
    ForkSession(SessionId, SessionPlace, u32),
    /// `session/list`.
    ListSessions {
        /// Only those of this folder.
        cwd: Option<PathBuf>,
        /// Where the page before ended.
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
    /// `session/set_mode`.
    SetMode(SessionId, ModeId),
    /// `session/set_config_option`.
    SetOption(SessionId, String, ConfigValue),
    /// `session/set_model` (off the schema, used by many).
    SetModel(SessionId, super::ModelId),
    /// `tool_call/cancel`. Source: ACP v2 tool-calls.
    StopTool(SessionId, ToolCallId),
    /// `terminal/cancel`. Source: ACP v2 tool-calls.
    StopTerminal(SessionId, TerminalId),
    /// `session/archive` (unstable), or `session/unarchive`.
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

/// Where a session works.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionPlace {
    /// Its folder on this machine, absolute and normalised. Sessions are kept by it.
    pub cwd: PathBuf,
    /// Its folder on another machine, if the agent runs there and all its paths are of that machine.
    pub far: Option<FarPlace>,
    /// More roots; sent only to agents that take them.
    pub additional_directories: Vec<UserRoot>,
    /// MCP servers; those whose transport the agent does not take are left out by `acp`.
    pub mcp_servers: Vec<McpServer>,
}

impl SessionPlace {
    /// The folder as the agent knows it.
    pub fn folder(&self) -> &Path {
        self.far.as_ref().map_or(&self.cwd, |far| &far.folder)
    }

    /// The folders in which the agent's file requests are confined.
    pub fn roots(&self) -> Vec<PathBuf> {
        let more = self.additional_directories.iter().map(|root| root.to_path_buf());
        std::iter::once(self.folder().to_owned()).chain(more).collect()
    }
}

/// What a call brought.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// `new`, `load`, `resume`, `fork`.
    Session(SessionReply),
    /// `list`.
    Sessions {
        /// This page.
        sessions: Vec<SessionInfo>,
        /// How to get the next one.
        next_cursor: Option<String>,
    },
    /// `prompt`: the turn ended.
    TurnEnded {
        reason: StopReason,
        /// Tokens of the turn, if told.
        usage: Option<TurnUsage>,
    },
    /// `set_config_option`: all options anew.
    Options(Vec<ConfigOption>),
    /// `set_title`: the title as stored.
    Title(String),
    /// `session/status`.
    SessionStatus {
        /// Whether the agent has it in memory, for whomever.
        is_live: bool,
    },
    /// `auth/status`.
    AuthStatus(AuthStatus),
    /// `providers/list`.
    Providers(Vec<Provider>),
    /// Done, with nothing to tell.
    Done,
}

/// What a session begins with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionReply {
    /// Its id; `None` where the call named it (load, resume).
    pub id: Option<SessionId>,
    /// Modes, if it has any.
    pub modes: Option<Modes>,
    /// Legacy models, if told.
    pub models: Option<Models>,
    /// Options; empty if it has none.
    pub options: Vec<ConfigOption>,
    /// Whether the agent said so little that the session may not be there: the first prompt shows it.
    pub is_provisional: bool,
}

/// A row of the agent's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    pub id: SessionId,
    /// Its folder.
    pub cwd: PathBuf,
    pub title: Option<String>,
    /// Last change, ISO 8601.
    pub updated_at: Option<String>,
    /// Its more roots.
    pub additional_directories: Vec<PathBuf>,
    /// Whether the agent keeps it out of its usual list.
    pub is_archived: bool,
    /// Whether the agent has it in memory, for whomever; `None`: not asked yet.
    pub is_live: Option<bool>,
}

/// Why a turn ended. Source: ACP v1 prompt-turn, `StopReason`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The agent is done.
    EndTurn,
    /// The token limit.
    MaxTokens,
    /// The limit of model requests.
    MaxTurnRequests,
    /// The agent refused; the prompt and all after it are not in its context.
    Refusal,
    Cancelled,
    /// A word of the agent's own.
    Other(String),
}

impl StopReason {
    /// What it means, as the beginning of a sentence. A word of the agent's own is in it as it came.
    pub fn words(&self) -> String {
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

/// Why a call brought nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The agent answered with an error.
    Agent(RpcError),
    /// The agent's answer could not be read.
    Malformed {
        /// What was wrong with it.
        error: String,
    },
    /// It was not sent, because the agent cannot take it.
    NotSent {
        /// Why, with what to do next.
        error: String,
    },
    /// No answer within this many seconds.
    TimedOut(u64),
    /// The connection ended first.
    Lost,
    /// The agent speaks another version of the protocol than parlor was told to speak.
    OtherVersion {
        /// Its version.
        theirs: String,
    },
    /// The line failed under this one call; the connection stays.
    Undelivered {
        /// What happened, with what to do next.
        error: String,
    },
}
