//! What is needed to start an agent.

use std::path::PathBuf;

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
}

impl AgentSpec {
    /// The command line for people: words that need it are quoted.
    pub fn command_line(&self) -> String {
        let words = std::iter::once(self.command.as_str()).chain(self.args.iter().map(String::as_str));
        shell_words::join(words)
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

impl Default for Callbacks {
    fn default() -> Self {
        Self { fs_read: true, fs_write: true, terminal: true }
    }
}

/// An MCP server that the agent is to use. Source: ACP v1 session-setup, `McpServer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpServer {
    /// A process.
    Stdio {
        /// Its name.
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
        /// Its name.
        name: String,
        /// Its address.
        url: String,
        /// Headers.
        headers: Vec<(String, String)>,
    },
    /// Server-sent events; only for agents that take it.
    Sse {
        /// Its name.
        name: String,
        /// Its address.
        url: String,
        /// Headers.
        headers: Vec<(String, String)>,
    },
}
