//! The specification of an agent, with everything needed to start it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{ProviderRequest, Remote, RemoteFolder, Sandbox, SandboxMode, Ssh};

/// How to start one agent, resolved from configuration, catalogue or command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentSpec {
    /// Short name: the key in the configuration, or derived from the command.
    pub name: String,
    /// Name for display; without one, `name` is shown.
    pub title: Option<String>,
    /// Program: a path, or a name to look up in `PATH`.
    pub command: String,
    pub args: Vec<String>,
    /// Environment variables to add.
    pub env: Vec<(String, String)>,
    /// Environment variables whose values are printed by commands, each a program with its arguments.
    pub env_commands: Vec<(String, Vec<String>)>,
    /// Working directory of the process; `None` for the session's folder.
    pub cwd: Option<PathBuf>,
    pub callbacks: Callbacks,
    pub wire: WireSpec,
    /// The remote endpoint, if parlor connects to the agent instead of starting it; command, arguments,
    /// variables and folder are then unused.
    pub remote: Option<Remote>,
    /// The host that the agent is started on; command and folder are then on that host.
    pub ssh: Option<Ssh>,
    /// The command to open the agent's files, with `{path}` and `{line}`; `None` for the general one, if the
    /// files are local.
    pub editor: Option<String>,
    /// Whether it runs in a sandbox; `None` for the general setting.
    pub sandbox: Option<SandboxMode>,
    /// The bounds of its process, once it is started.
    pub bounds: Option<Box<Sandbox>>,
}

impl AgentSpec {
    pub fn shown_name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// Whether the agent is configured to run on another machine.
    pub fn is_elsewhere(&self) -> bool {
        self.remote.is_some() || self.ssh.is_some()
    }

    /// Whether MCP servers are passed to the agent, with their headers and variables. For an agent on another
    /// machine, the user must enable it for that agent.
    pub fn gets_servers(&self) -> bool {
        let of_url = self.remote.as_ref().is_none_or(|remote| remote.gets_servers);
        of_url && self.ssh.as_ref().is_none_or(|ssh| ssh.gets_servers)
    }

    /// The remote folder for a session in this local folder, if the agent runs over SSH: the agent's
    /// configured folder, otherwise the one with the same path.
    pub fn remote_folder(&self, folder: &Path) -> Option<RemoteFolder> {
        let ssh = self.ssh.as_ref()?;
        let folder = self.cwd.as_deref().unwrap_or(folder).to_owned();
        Some(RemoteFolder { host: ssh.host.clone(), folder })
    }

    /// The command line for display, quoted where needed. For an agent behind a URL, the URL.
    pub fn command_line(&self) -> String {
        if let Some(remote) = &self.remote {
            return remote.shown_url();
        }
        if let Some(ssh) = self.ssh.as_ref().filter(|_| self.command.is_empty()) {
            return shell_words::join(
                [ssh.program()]
                    .into_iter()
                    .chain(ssh.args.iter().map(String::as_str))
                    .chain([ssh.host.as_str()]),
            );
        }
        let parts = std::iter::once(self.command.as_str()).chain(self.args.iter().map(String::as_str));
        let line = shell_words::join(parts);
        match &self.ssh {
            Some(ssh) => format!("{line} (on {} over SSH)", ssh.host),
            None => line,
        }
    }
}

/// The protocol settings that the user configured; the rest is detected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WireSpec {
    /// The agent product; `None` to detect it by name.
    pub profile: Option<Profile>,
    /// Whether only the protocol's own forms are accepted, without compatibility workarounds.
    pub is_strict: bool,
    /// Whether messages are sent with a `Content-Length` header from the start.
    pub has_headers: bool,
    /// The newest protocol version to offer; 0 reads as 1.
    pub protocol: u16,
    /// The initial model, for agents that accept it in `session/new`.
    pub model: Option<String>,
    /// Whether the agent commits its changes, for agents that accept it in `session/new`.
    pub auto_commits: Option<bool>,
    /// Appended to the agent's own system prompt, or replaces it.
    pub system_prompt: Option<SystemPrompt>,
    /// Whether requests include a trace context.
    pub is_traced: bool,
    pub providers: Vec<ProviderRequest>,
    /// The number of a session's first turn, for agents that require turn numbers: 0 or 1.
    pub first_turn: u32,
}

/// A system prompt from the user. Source: unstable `sessionCapabilities.systemPrompt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPrompt {
    pub text: String,
    pub replaces: bool,
}

/// Agent products that are known to differ from the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// None of them: disables detection by name.
    Official,
    /// `OpenOxide`: its own protocol, version "0.1".
    OpenOxide,
    /// elephant.ai (`alex acp`).
    Elephant,
    /// `ZeptoClaw`.
    ZeptoClaw,
    /// `ActiveContext`.
    ActiveContext,
    Banjo,
}

impl Profile {
    pub const ALL: [Self; 6] =
        [Self::Official, Self::OpenOxide, Self::Elephant, Self::ZeptoClaw, Self::ActiveContext, Self::Banjo];

    pub fn name(self) -> &'static str {
        match self {
            Self::Official => "official",
            Self::OpenOxide => "openoxide",
            Self::Elephant => "elephant",
            Self::ZeptoClaw => "zeptoclaw",
            Self::ActiveContext => "activecontext",
            Self::Banjo => "banjo",
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name().eq_ignore_ascii_case(name))
    }
}

/// Callbacks that are offered to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Callbacks {
    /// `fs/read_text_file`.
    pub fs_read: bool,
    /// `fs/write_text_file`.
    pub fs_write: bool,
    /// `terminal/*`.
    pub terminal: bool,
}

impl Callbacks {
    /// No callbacks: the default for agents on another machine.
    pub const NONE: Self = Self { fs_read: false, fs_write: false, terminal: false };
}

impl Default for Callbacks {
    fn default() -> Self {
        Self { fs_read: true, fs_write: true, terminal: true }
    }
}

/// Settings of a project's configuration that the user has not decided on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProjectQuestion {
    pub file: PathBuf,
    /// The settings, one per line, for the user's review.
    pub lines: Vec<String>,
    pub theme: Option<String>,
    /// The agent to start; `None` if the file sets none, or if another one takes precedence.
    pub agent: Option<AgentSpec>,
    pub templates: Option<bool>,
    pub answer_file: PathBuf,
}

/// The MCP servers that files in the session's folder configure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderServers {
    pub file: PathBuf,
    pub folder: PathBuf,
    pub servers: Vec<McpServer>,
    /// The programs, arguments, variables, URLs and headers, one per line, for the user's review.
    pub lines: Vec<String>,
    /// The omitted entries with the reasons.
    pub notes: Vec<String>,
    /// The user's earlier answer about this exact text.
    pub answer: Option<bool>,
    pub answer_file: PathBuf,
}

impl McpServer {
    pub fn name(&self) -> &str {
        match self {
            Self::Stdio { name, .. } | Self::Http { name, .. } | Self::Sse { name, .. } => name,
        }
    }
}

/// An MCP server for the agent. Source: ACP v1 session-setup, `McpServer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpServer {
    Stdio {
        name: String,
        /// Absolute path of the program.
        command: PathBuf,
        args: Vec<String>,
        env: Vec<(String, String)>,
    },
    /// Streamable HTTP; only for agents that support it.
    Http { name: String, url: String, headers: Vec<(String, String)> },
    /// Server-sent events; only for agents that support it.
    Sse { name: String, url: String, headers: Vec<(String, String)> },
}
