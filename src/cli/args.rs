//! The arguments of the command line.

mod replay;

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, Parser, Subcommand, ValueEnum};

pub use replay::ReplayArgs;

use super::prompt::{FirstSettings, FirstTurn};
use super::{policy, registry, resume, sessions, worktrees};
use crate::config::{Config, Origin};
use crate::model::SandboxMode;

const USAGE: &str = "\
parlor [OPTIONS] [FOLDER] [PROMPT] [-- PROGRAM [ARGUMENT]...]
       parlor [OPTIONS] demo|sessions|worktrees|config|agents|policy|replay";

const HELP_AFTER: &str = "\
Examples:
  parlor                              choose an agent for the current folder
  parlor demo                         try the built-in demo agent (no account, no network)
  parlor ~/code/shop --agent claude   start an agent in another folder
  parlor -- gemini --acp              run any program that speaks ACP on stdin and stdout
  parlor --agent-command 'my-agent --acp'
                                      the same, as a single argument
  parlor --connect https://host/acp   connect to a remote agent (no local files or terminals)
  parlor --continue                   resume the last session of the current folder
  parlor --resume 'flaky test'        resume a session by a part of its title
  parlor 'fix the tests'              start with a prompt (several words, not a folder)
  parlor . test                       the same with a prompt of one word
  git diff | parlor --prompt 'Review' start with a prompt and the output of a command
  parlor ./demo                       work in a folder that has the name of a command

Agents come from the configuration and from PATH (see `parlor agents list`).

Files (`parlor config` prints their paths):
  configuration   config.toml in the configuration folder; set with --config or PARLOR_CONFIG
  themes          the folder `themes` next to config.toml
  data, logs      the data folder; set with --data-dir or PARLOR_DATA_DIR

Press F1 in parlor for the keys and Ctrl+P for all commands.";

/// The names of [`crate::model::Carrier`]; a test compares them.
pub(super) const CARRIERS: [&str; 5] = ["http", "websocket", "rpc-sse", "post", "post-sse"];

/// A terminal client for any agent that speaks the Agent Client Protocol.
#[derive(Debug, Clone, Parser)]
#[command(name = "parlor", bin_name = "parlor", version, override_usage = USAGE, after_help = HELP_AFTER)]
pub struct Cli {
    /// Folder to work in [default: current folder]
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,

    /// First prompt. Without FOLDER, a prompt of several words; use --prompt for one word
    #[arg(value_name = "PROMPT")]
    pub prompt_text: Option<String>,

    /// Name of the agent to start
    #[arg(long, value_name = "NAME", conflicts_with_all = ["agent_command", "command"])]
    pub agent: Option<String>,

    /// Command line of an agent to start (quotes as in a shell, no expansion)
    #[arg(long, value_name = "LINE", conflicts_with = "command")]
    pub agent_command: Option<String>,

    /// URL of a remote agent: https, http, wss or ws
    #[arg(long, value_name = "URL", conflicts_with_all = ["agent", "agent_command", "command"])]
    pub connect: Option<String>,

    /// With --connect: transport to use [default: detected]
    #[arg(long, value_name = "KIND", requires = "connect", value_parser = CARRIERS)]
    pub transport: Option<String>,

    /// With --connect: environment variable with the token
    #[arg(long, value_name = "NAME", requires = "connect", conflicts_with_all = ["token_file", "token_command"])]
    pub token_env: Option<String>,

    /// With --connect: file with the token
    #[arg(long, value_name = "FILE", requires = "connect", conflicts_with = "token_command")]
    pub token_file: Option<PathBuf>,

    /// With --connect: command that prints the token
    #[arg(long, value_name = "LINE", requires = "connect")]
    pub token_command: Option<String>,

    /// With --connect: PEM file with additional trusted certificates
    #[arg(long, value_name = "FILE", requires = "connect")]
    pub ca_file: Option<PathBuf>,

    /// Additional folder for the agent (repeatable)
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,

    /// Resume the last session of the folder
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["resume", "new"])]
    pub continue_last: bool,

    /// Resume a session by id, number or title, or choose one from a list
    #[arg(short, long, value_name = "SESSION", num_args = 0..=1, conflicts_with = "new")]
    pub resume: Option<Option<String>>,

    /// Start a new session, and do not offer the last one
    #[arg(long)]
    pub new: bool,

    /// The options for the first turn.
    #[command(flatten)]
    pub first: FirstTurn,

    /// Options of all commands.
    #[command(flatten)]
    pub options: Options,

    /// Subcommand; without one, start a session.
    #[command(subcommand)]
    pub subcommand: Option<Command>,

    /// Agent program with its arguments, after `--`
    #[arg(last = true, value_name = "PROGRAM")]
    pub command: Vec<String>,
}

/// What happens to questions while the input of plain-text mode is a pipe or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Permissions {
    /// The lines answer them. Without this, questions are refused.
    Ask,
}

/// Options that are valid before and after a subcommand.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Options {
    /// Configuration file to read
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Folder for data and logs
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Theme name, or `auto` to match the terminal's background
    #[arg(long, global = true, value_name = "NAME")]
    pub theme: Option<String>,

    /// Print plain text, for screen readers, dumb terminals and logs
    #[arg(long, global = true)]
    pub plain: bool,

    /// What to do with questions of a plain-text session whose input is a pipe or a file
    #[arg(long, global = true, value_name = "MODE", requires = "plain")]
    pub permissions: Option<Permissions>,

    /// Disable file access for agents through parlor
    #[arg(long, global = true)]
    pub no_fs: bool,

    /// Disable terminals for agents
    #[arg(long, global = true)]
    pub no_terminal: bool,

    /// Run the agent in a sandbox; without MODE, `workspace`
    #[arg(
        long, global = true, value_name = "MODE", num_args = 0..=1, require_equals = true,
        default_missing_value = "workspace", value_parser = SandboxMode::WORDS
    )]
    pub sandbox: Option<String>,

    /// Start the session in a new git worktree of this name
    #[arg(long, global = true, value_name = "NAME")]
    pub worktree: Option<String>,

    /// Disable compatibility workarounds, to test an agent
    #[arg(long, global = true)]
    pub strict: bool,

    /// Write the protocol log to a file, as JSON lines
    #[arg(long, global = true, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
}

/// Subcommands.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Start a session with the built-in demo agent (no account, no network)
    Demo {
        /// Folder to work in
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
        /// First prompt. Without FOLDER, a prompt of several words; use --prompt for one word
        #[arg(value_name = "PROMPT")]
        prompt_text: Option<String>,
        /// The options for the first turn.
        #[command(flatten)]
        first: FirstTurn,
        /// Resume the last session of the folder
        #[arg(short = 'c', long = "continue", conflicts_with = "new")]
        continue_last: bool,
        /// Start a new session, and do not offer the last one
        #[arg(long)]
        new: bool,
    },
    /// Print the configuration and the source of each value
    Config,
    /// Manage saved sessions: list, show, search, export, delete
    Sessions {
        /// Subcommand.
        #[command(subcommand)]
        job: sessions::SessionsJob,
    },
    /// List, remove and merge the worktrees that parlor has made of the current repository
    Worktrees {
        /// Subcommand.
        #[command(subcommand)]
        job: Option<worktrees::WorktreesJob>,
    },
    /// List and import agents
    Agents {
        /// Subcommand.
        #[command(subcommand)]
        job: AgentsJob,
    },
    /// List the rules about commands and files, and explain what they decide
    Policy {
        /// Subcommand.
        #[command(subcommand)]
        job: policy::PolicyJob,
    },
    /// Show what each agent took and cost by day, as far as it reports that
    Usage {
        /// Only turns since a date, such as 2026-01-31, or an age, such as 12h, 30d or 8w
        #[arg(long, value_name = "TIME", default_value = "30d")]
        since: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Replay a protocol log written by --log-file, without starting an agent
    Replay(ReplayArgs),
    /// Run the demo agent on standard input and output
    #[command(hide = true)]
    DemoAgent,
}

/// Subcommands of `parlor agents`.
#[derive(Debug, Clone, Subcommand)]
pub enum AgentsJob {
    /// List available agents, and known agents that are not installed
    #[command(alias = "ls")]
    List,
    /// Jobs with the registry.
    #[command(flatten)]
    Registry(registry::RegistryJob),
    /// Import agents from Zed or JetBrains into the configuration
    Import {
        /// Zed's settings.json, JetBrains' acp.json, or a file with an `agent_servers` object
        file: PathBuf,
    },
}

impl Cli {
    /// Whether an agent was named.
    pub fn names_agent(&self) -> bool {
        let is_demo = matches!(self.subcommand, Some(Command::Demo { .. }));
        let is_started = self.agent.is_some() || self.agent_command.is_some() || !self.command.is_empty();
        is_demo || is_started || self.connect.is_some()
    }

    /// The session to resume.
    pub fn resume_request(&self) -> resume::ResumeRequest {
        let continues_demo = matches!(self.subcommand, Some(Command::Demo { continue_last: true, .. }));
        match (&self.resume, self.continue_last || continues_demo) {
            (Some(Some(id)), _) => resume::ResumeRequest::Named(id.clone()),
            (Some(None), _) => resume::ResumeRequest::Choose,
            (None, true) => resume::ResumeRequest::Last,
            (None, false) => resume::ResumeRequest::New,
        }
    }

    /// The settings for the first turn.
    pub(super) fn first_settings(&self) -> FirstSettings {
        match &self.subcommand {
            Some(Command::Demo { first, .. }) => FirstSettings {
                model: first.settings.model.clone().or_else(|| self.first.settings.model.clone()),
                mode: first.settings.mode.clone().or_else(|| self.first.settings.mode.clone()),
            },
            _ => self.first.settings.clone(),
        }
    }

    /// The first prompt: an argument, or an option. Fails if it is given twice, or is empty.
    pub(super) fn prompt(&self) -> anyhow::Result<Option<String>> {
        let (_, text) = self.arguments()?;
        let first = match &self.subcommand {
            Some(Command::Demo { first, .. }) if first.has_prompt() => first,
            _ => &self.first,
        };
        match text {
            Some(_) if first.has_prompt() => {
                bail!("two first prompts; pass one, as an argument or with an option")
            }
            Some(text) => FirstTurn { prompt: Some(text.to_owned()), ..FirstTurn::default() }.text(),
            None => first.text(),
        }
    }

    /// The folder and the first prompt that are given as arguments. The only argument is a prompt if it has several words
    /// and no file has this name.
    pub fn arguments(&self) -> anyhow::Result<(Option<&Path>, Option<&str>)> {
        let (folder, text) = match &self.subcommand {
            Some(Command::Demo { folder, prompt_text, .. }) => (folder, prompt_text),
            _ => (&self.folder, &self.prompt_text),
        };
        let is_prompt = |folder: &Path| {
            folder.to_str().is_some_and(|text| text.trim().contains(char::is_whitespace)) && !folder.exists()
        };
        match (folder.as_deref(), text.as_deref()) {
            (Some(first), Some(_)) if is_prompt(first) => {
                bail!("two prompts, or {} is not a folder; quote the prompt as one argument", first.display())
            }
            (Some(first), None) if is_prompt(first) => Ok((None, first.to_str())),
            given => Ok(given),
        }
    }
}

impl Options {
    /// Applies these options to the configuration.
    pub fn apply(&self, config: &mut Config) {
        let mut forced = Vec::new();
        if let Some(theme) = &self.theme {
            config.theme.clone_from(theme);
            forced.push("theme");
        }
        if self.plain {
            config.plain = true;
            forced.push("ui.plain");
        }
        if self.no_fs {
            forced.extend(["callbacks.fs_read", "callbacks.fs_write"]);
        }
        if self.no_terminal {
            forced.push("callbacks.terminal");
        }
        if let Some(mode) = self.sandbox.as_deref().and_then(SandboxMode::of_word) {
            config.sandbox.mode = mode;
            forced.push("sandbox.mode");
            for spec in config.agents.values_mut().chain(config.known_agents.values_mut()) {
                spec.sandbox = None;
            }
        }
        for callbacks in config
            .agents
            .values_mut()
            .chain(config.known_agents.values_mut())
            .map(|spec| &mut spec.callbacks)
            .chain([&mut config.callbacks])
        {
            callbacks.fs_read &= !self.no_fs;
            callbacks.fs_write &= !self.no_fs;
            callbacks.terminal &= !self.no_terminal;
        }
        for spec in config.agents.values_mut().chain(config.known_agents.values_mut()).filter(|_| self.strict)
        {
            spec.wire.is_strict = true;
            config.origins.insert(format!("agents.{}.strict", spec.name), Origin::CommandLine);
        }
        config.origins.extend(forced.into_iter().map(|name| (name.to_owned(), Origin::CommandLine)));
    }
}
