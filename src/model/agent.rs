//! What an agent reports about itself.

use serde::{Deserialize, Serialize};

use super::ExitInfo;

/// The result of `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentInfo {
    pub name: Option<String>,
    pub title: Option<String>,
    pub version: Option<String>,
    pub protocol_version: u16,
    pub capabilities: AgentCapabilities,
    pub auth_methods: Vec<AuthMethod>,
    /// Active quirks, each as a short sentence.
    pub quirks: Vec<String>,
    /// Slash commands sent with the handshake (one dialect does this).
    pub commands: Vec<super::SlashCommand>,
    /// The detected agent product, if it differs from the protocol.
    pub profile: Option<super::Profile>,
    /// The agent's last session in this folder, if it stores one there.
    pub last_session: Option<super::SessionId>,
}

/// Capabilities; all off unless the agent advertises them. Source: ACP v1 initialization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "the protocol has that many independent capabilities")]
pub struct AgentCapabilities {
    /// `loadSession`.
    pub can_load: bool,
    /// `sessionCapabilities.resume`.
    pub can_resume: bool,
    /// `sessionCapabilities.list`.
    pub can_list: bool,
    /// `sessionCapabilities.delete`.
    pub can_delete: bool,
    /// `sessionCapabilities.close`.
    pub can_close: bool,
    /// `sessionCapabilities.fork` (unstable).
    pub can_fork: bool,
    /// Whether prompts can be added to a running turn: `_meta.steering.supported`, an extension of some agents.
    pub can_steer: bool,
    /// Whether a session can be forked at a turn: an extension of one product.
    pub can_fork_at_turn: bool,
    /// `sessionCapabilities.title` (unstable).
    pub can_set_title: bool,
    /// `sessionCapabilities.additionalDirectories`.
    pub additional_directories: bool,
    /// `promptCapabilities.image`.
    pub prompt_image: bool,
    /// `promptCapabilities.audio`.
    pub prompt_audio: bool,
    /// `promptCapabilities.embeddedContext`.
    pub prompt_embedded_context: bool,
    /// Whether it rejects MCP servers over stdio. In version 1 every agent accepts them.
    pub mcp_stdio_off: bool,
    /// `mcpCapabilities.http`.
    pub mcp_http: bool,
    /// `mcpCapabilities.sse`.
    pub mcp_sse: bool,
    /// `auth.logout`.
    pub can_log_out: bool,
    /// `sessionCapabilities.archive` (unstable).
    pub can_archive: bool,
    /// `sessionCapabilities.status` (unstable).
    pub tells_status: bool,
    /// `sessionCapabilities.systemPrompt` (unstable): a prompt can be appended to the agent's own.
    pub system_prompt: bool,
    pub system_prompt_override: bool,
    /// `auth.status` (unstable).
    pub tells_auth: bool,
    /// `providers` (unstable).
    pub has_providers: bool,
    /// A quirk, not a capability: a missing file is served as an empty one, because the agent treats any
    /// error as fatal.
    pub missing_file_reads_empty: bool,
    /// A quirk: the key of a sign-in is sent as a text, not as an object.
    pub api_key_is_text: bool,
    /// A quirk: the session is lost after a cancelled turn and must be reopened.
    pub dies_on_cancel: bool,
    /// A quirk: the agent reads no messages while a turn is running.
    pub deaf_in_turn: bool,
    /// A quirk: how long the agent waits for the response to a permission request, in seconds.
    pub permission_limit_secs: Option<u32>,
}

impl AgentCapabilities {
    pub fn takes(&self, prompt: &super::SystemPrompt) -> bool {
        self.system_prompt && (!prompt.replaces || self.system_prompt_override)
    }
}

/// The sign-in status that the agent reports. Source: unstable `auth/status`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthStatus {
    pub state: AuthState,
    /// The account names; never logged.
    pub accounts: Vec<String>,
}

/// The sign-in state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthState {
    SignedIn,
    SignedOut,
    /// No sign-in is required.
    NotNeeded,
    #[default]
    Unknown,
}

/// A source of the agent's models. Source: unstable `providers/list`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provider {
    pub id: String,
    pub is_required: bool,
    /// The current API; `None` if the provider is disabled.
    pub api_type: Option<String>,
    pub base_url: Option<String>,
    pub supported: Vec<String>,
}

/// A change of a provider by the user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProviderRequest {
    pub id: String,
    /// The new configuration; `None` disables the provider.
    pub target: Option<ProviderTarget>,
}

/// The configuration of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProviderTarget {
    pub api_type: String,
    pub base_url: String,
    /// Headers; may contain secrets.
    pub headers: Vec<(String, String)>,
}

/// A sign-in method. Source: ACP v1 authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthMethod {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    pub kind: AuthKind,
}

/// How a sign-in method works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthKind {
    /// The agent handles `authenticate`, possibly through a browser.
    Agent,
    /// The agent reads a key in `authenticate`. Source: `_meta["api-key"]` of the method, an extension of some agents.
    ApiKey,
    Terminal(super::SignInCommand),
    /// Environment variables that the user sets (removed from the protocol, still in use).
    EnvVar {
        vars: Vec<AuthVar>,
        link: Option<String>,
    },
}

/// A variable that a sign-in needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthVar {
    pub name: String,
    pub label: Option<String>,
    pub is_secret: bool,
    pub is_optional: bool,
}

/// Why a connection ended. Its form in JSON is part of the format of protocol logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum CloseReason {
    /// The program could not be started.
    NotStarted {
        /// The error of the system.
        error: String,
        /// Whether the program does not exist.
        #[serde(default)]
        is_missing: bool,
    },
    Exited {
        status: ExitInfo,
        /// The last lines of its stderr, oldest first, at most 20.
        #[serde(default, rename = "stderr")]
        stderr_tail: Vec<String>,
    },
    /// The stream ended or failed while the process is running or is not a child of parlor.
    Lost {
        error: String,
    },
    /// The agent behind a URL could not be reached; a retry may help.
    Unreachable {
        /// What happened and what to do, in full sentences.
        error: String,
    },
    /// The server of an agent behind a URL refused the connection; a retry will not help.
    Refused {
        /// What happened and what to do, in full sentences.
        error: String,
    },
    /// The agent's host requires a sign-in in the user's terminal.
    SignInFirst {
        /// What happened, in full sentences.
        error: String,
    },
    Stopped,
}

impl CloseReason {
    /// The program exists, or is not what is missing.
    pub fn not_started(error: String) -> Self {
        Self::NotStarted { error, is_missing: false }
    }
}
