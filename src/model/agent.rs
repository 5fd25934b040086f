//! What an agent says of itself.

use super::ExitInfo;

/// What came out of `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentInfo {
    /// Programmatic name.
    pub name: Option<String>,
    /// Name for people.
    pub title: Option<String>,
    pub version: Option<String>,
    /// Protocol version in force.
    pub protocol_version: u16,
    /// What it can do.
    pub capabilities: AgentCapabilities,
    /// How to sign in.
    pub auth_methods: Vec<AuthMethod>,
    /// Quirks in force, each as a short sentence.
    pub quirks: Vec<String>,
    /// Slash commands told at the handshake (one dialect does).
    pub commands: Vec<super::SlashCommand>,
    /// The system that the agent is taken for, if it is one that differs from the protocol.
    pub profile: Option<super::Profile>,
    /// The session that the agent had last in this folder, if it keeps that there.
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
    /// Whether a copy can be made up to a turn: an extension of one system.
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
    /// Whether it takes no MCP servers that are processes: in version 1 every agent does.
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
    /// `sessionCapabilities.systemPrompt` (unstable): one may be added to the agent's own.
    pub system_prompt: bool,
    /// The same, instead of the agent's own.
    pub system_prompt_override: bool,
    /// `auth.status` (unstable).
    pub tells_auth: bool,
    /// `providers` (unstable).
    pub has_providers: bool,
    /// A quirk, no capability: a missing file is to be read as an empty one, because the agent takes any
    /// error for the end of its work.
    pub missing_file_reads_empty: bool,
    /// A quirk: after a cancelled turn the session is gone and is to be opened again.
    pub dies_on_cancel: bool,
    /// A quirk: the agent reads nothing while a turn runs.
    pub deaf_in_turn: bool,
    /// A quirk: how many seconds the agent waits for an answer to a permission request.
    pub permission_limit_secs: Option<u32>,
}

impl AgentCapabilities {
    /// Whether it takes this system prompt.
    pub fn takes(&self, prompt: &super::SystemPrompt) -> bool {
        self.system_prompt && (!prompt.replaces || self.system_prompt_override)
    }
}

/// How the user is signed in, as the agent says. Source: unstable `auth/status`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthStatus {
    pub state: AuthState,
    /// With which accounts; never written to a log.
    pub accounts: Vec<String>,
}

/// Whether the user is signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthState {
    SignedIn,
    SignedOut,
    /// There is nothing to sign in to.
    NotNeeded,
    /// The agent does not know.
    #[default]
    Unknown,
}

/// Where an agent's models come from. Source: unstable `providers/list`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provider {
    pub id: String,
    /// Whether it cannot be switched off.
    pub is_required: bool,
    /// The API that is spoken to it now; `None`: it is off.
    pub api_type: Option<String>,
    /// Where it is now.
    pub base_url: Option<String>,
    /// The APIs that can be spoken to it.
    pub supported: Vec<String>,
}

/// What the user wants of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProviderRequest {
    pub id: String,
    /// Where it is to be; `None`: it is to be off.
    pub target: Option<ProviderTarget>,
}

/// Where a provider is to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProviderTarget {
    /// The API to speak.
    pub api_type: String,
    /// The address.
    pub base_url: String,
    /// Headers; may hold secrets.
    pub headers: Vec<(String, String)>,
}

/// A way to sign in. Source: ACP v1 authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthMethod {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    /// How it works.
    pub kind: AuthKind,
}

/// How a sign-in works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthKind {
    /// `authenticate` does it, perhaps through a browser.
    Agent,
    /// A command that is run interactively.
    Terminal(super::SignInCommand),
    /// Variables that the user must give (removed from the protocol, still seen).
    EnvVar {
        vars: Vec<AuthVar>,
        /// Where to get them.
        link: Option<String>,
    },
}

/// A variable that a sign-in needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthVar {
    pub name: String,
    pub label: Option<String>,
    /// Whether it must not be shown.
    pub is_secret: bool,
    /// Whether it may be left empty.
    pub is_optional: bool,
}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    /// The program could not be started.
    NotStarted {
        /// Why, in the system's words.
        error: String,
        /// Whether the program does not exist.
        is_missing: bool,
    },
    /// The process ended.
    Exited {
        status: ExitInfo,
        /// The last lines of its stderr, oldest first, at most 20.
        stderr_tail: Vec<String>,
    },
    /// The stream ended or broke, and the process lives (or is not ours).
    Lost { error: String },
    /// The agent behind a URL could not be reached; trying again may help.
    Unreachable {
        /// What happened and what to do, in whole sentences.
        error: String,
    },
    /// The server of an agent behind a URL refused us; trying again would change nothing.
    Refused {
        /// What happened and what to do, in whole sentences.
        error: String,
    },
    /// The host of the agent wants a sign-in that needs the user's terminal.
    SignInFirst {
        /// What happened, in whole sentences.
        error: String,
    },
    /// We stopped it.
    Stopped,
}
