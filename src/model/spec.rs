//! What is needed to start an agent.

use std::path::{Path, PathBuf};

use super::{FarPlace, ProviderRequest, Remote, Ssh};

/// How to start one agent; what configuration, catalogue or command line came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentSpec {
    /// Short name: the key in the configuration, or made from the command.
    pub name: String,
    /// Program: a path, or a name to be looked up on PATH.
    pub command: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Variables to add.
    pub env: Vec<(String, String)>,
    /// Where the process runs; `None`: the session's folder.
    pub cwd: Option<PathBuf>,
    /// Which callbacks are offered to it.
    pub callbacks: Callbacks,
    /// How to speak to it.
    pub wire: WireSpec,
    /// Where it is reached instead of being started; then command, arguments, variables and folder mean nothing.
    pub remote: Option<Remote>,
    /// The host that it is started on; then command and folder are that host's.
    pub ssh: Option<Ssh>,
    /// The command that opens its files, with `{path}` and `{line}`; `None`: the general one, if its files are here.
    pub editor: Option<String>,
}

impl AgentSpec {
    /// Whether it runs on another machine, as far as is known.
    pub fn is_elsewhere(&self) -> bool {
        self.remote.is_some() || self.ssh.is_some()
    }

    /// Whether MCP servers are passed to it, with their headers and variables. For an agent on another machine only if
    /// the user enabled that for it by name.
    pub fn gets_servers(&self) -> bool {
        let of_url = self.remote.as_ref().is_none_or(|remote| remote.gets_servers);
        of_url && self.ssh.as_ref().is_none_or(|ssh| ssh.gets_servers)
    }

    /// Where a session of this folder works, if that is on another machine: in the folder of the agent, else in one
    /// of the same name.
    pub fn far_place(&self, folder: &Path) -> Option<FarPlace> {
        let ssh = self.ssh.as_ref()?;
        let folder = self.cwd.as_deref().unwrap_or(folder).to_owned();
        Some(FarPlace { host: ssh.host.clone(), folder })
    }

    /// The command line for people: words that need it are quoted. For an agent behind a URL, the URL.
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
        let words = std::iter::once(self.command.as_str()).chain(self.args.iter().map(String::as_str));
        let line = shell_words::join(words);
        match &self.ssh {
            Some(ssh) => format!("{line} (on {} over SSH)", ssh.host),
            None => line,
        }
    }
}

/// How to speak to an agent, as far as the user says it; the rest is learned from what it does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WireSpec {
    /// The system that it is; `None`: told by its name.
    pub profile: Option<Profile>,
    /// Whether only the protocol's own forms are understood, and nothing is mended.
    pub is_strict: bool,
    /// Whether messages to it are written with a `Content-Length` header from the first one on.
    pub has_headers: bool,
    /// The newest version of the protocol that is offered to it; 0 reads as 1.
    pub protocol: u16,
    /// The model to begin with, for systems that take it when a session is created.
    pub model: Option<String>,
    /// Whether it makes commits by itself, for systems that take it when a session is created.
    pub auto_commits: Option<bool>,
    /// What is added to the agent's own system prompt, or stands in its place.
    pub system_prompt: Option<SystemPrompt>,
    /// Whether calls carry the trace that they belong to.
    pub is_traced: bool,
    /// Where its models are to come from.
    pub providers: Vec<ProviderRequest>,
    /// The number of a session's first turn where an agent wants to be told turns by number: 0 or 1.
    pub first_turn: u32,
}

/// A system prompt of the user's. Source: unstable `sessionCapabilities.systemPrompt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPrompt {
    pub text: String,
    /// Whether it stands in the place of the agent's own.
    pub replaces: bool,
}

/// Systems that are known to differ from the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// None of them: nothing is guessed by a name.
    Official,
    /// `OpenOxide`: a protocol of its own, version "0.1".
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
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Official, Self::OpenOxide, Self::Elephant, Self::ZeptoClaw, Self::ActiveContext, Self::Banjo];

    /// Its name in the configuration.
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

    /// The one of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name().eq_ignore_ascii_case(name))
    }
}

/// Callbacks offered to an agent, each its own switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Callbacks {
    /// `fs/read_text_file`.
    pub fs_read: bool,
    /// `fs/write_text_file`.
    pub fs_write: bool,
    /// `terminal/*`.
    pub terminal: bool,
}

impl Callbacks {
    /// None of them: what an agent gets that is not on this machine, unless the user trusts it by name.
    pub const NONE: Self = Self { fs_read: false, fs_write: false, terminal: false };
}

impl Default for Callbacks {
    fn default() -> Self {
        Self { fs_read: true, fs_write: true, terminal: true }
    }
}

/// The MCP servers that the session's folder names in a file of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderServers {
    pub file: PathBuf,
    pub folder: PathBuf,
    /// Those that can be used.
    pub servers: Vec<McpServer>,
    /// What is run or reached, to be judged by: a line for each program, argument, variable, address and header.
    pub lines: Vec<String>,
    /// What is left out, and why.
    pub notes: Vec<String>,
    /// What was said about this very text before.
    pub answer: Option<bool>,
    /// Where that is kept.
    pub answer_file: PathBuf,
}

impl McpServer {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Stdio { name, .. } | Self::Http { name, .. } | Self::Sse { name, .. } => name,
        }
    }
}

/// An MCP server that the agent is to use. Source: ACP v1 session-setup, `McpServer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpServer {
    /// A process.
    Stdio {
        name: String,
        /// Program, absolute.
        command: PathBuf,
        /// Arguments.
        args: Vec<String>,
        /// Variables.
        env: Vec<(String, String)>,
    },
    /// Streamable HTTP; only for agents that take it.
    Http {
        name: String,
        /// Its address.
        url: String,
        headers: Vec<(String, String)>,
    },
    /// Server-sent events; only for agents that take it.
    Sse {
        name: String,
        /// Its address.
        url: String,
        headers: Vec<(String, String)>,
    },
}
