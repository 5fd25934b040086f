//! The command line.
//!
//! Duty: says what can be written, reads it, and runs the subcommands that need no terminal
//! (`config`, `agents`, `sessions`). Not its duty: the session itself, which [`run`] hands to its caller as [`Session`].
//! What the command line says lies over the configuration file, which lies over the defaults.

pub mod agents;
pub mod choose;
pub mod replay;
pub mod resume;
mod servers;
pub mod sessions;
pub mod start;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::JoinHandle;

use anyhow::{Context as _, bail};
use clap::{Args, Parser, Subcommand};

use crate::config::{self, Config, Origin, Paths, Problem, catalogue};
use crate::model::{AgentSpec, StoredGrant};
use crate::private;
use crate::runtime::print::Printer;
use crate::services::grants;
use crate::ui::text::{one_line, sanitize};

const USAGE: &str = "\
parlor [OPTIONS] [FOLDER] [-- PROGRAM [ARGUMENT]...]
       parlor [OPTIONS] demo|sessions|config|agents|replay";

const HELP_AFTER: &str = "\
Examples:
  parlor                              choose an agent, work in this folder
  parlor demo                         look around with the built-in agent: no account, no network
  parlor ~/code/shop --agent claude   one agent, another folder
  parlor -- gemini --acp              any program that speaks the protocol on stdin and stdout
  parlor --agent-command 'my-agent --acp'
                                      the same, as one line
  parlor --connect https://host/acp   an agent on another machine; it gets no files and no terminals of this one
  parlor --continue                   go on with the last session of this folder
  parlor ./demo                       a folder that is named like a command

Agents are those of the configuration, those found on this machine (see `parlor agents list`), and `demo`.

Files (`parlor config` prints where they lie here):
  configuration   config.toml in parlor's own folder; --config or PARLOR_CONFIG names another
  themes          the folder `themes` beside it
  data, logs      parlor's data folder; --data-dir or PARLOR_DATA_DIR names another

Inside parlor, F1 shows the keys and Ctrl+P finds every command.";

/// The words of [`crate::model::Carrier`]; a test keeps them the same.
const CARRIERS: [&str; 5] = ["http", "websocket", "rpc-sse", "post", "post-sse"];

/// A terminal client for any agent that speaks the Agent Client Protocol.
#[derive(Debug, Clone, Parser)]
#[command(name = "parlor", bin_name = "parlor", version, override_usage = USAGE, after_help = HELP_AFTER)]
pub struct Cli {
    /// The folder to work in
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,

    /// The agent, by its name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["agent_command", "command"])]
    pub agent: Option<String>,

    /// A program that speaks the protocol, with its arguments, as one line; quotes work as in a shell, nothing else does
    #[arg(long, value_name = "LINE", conflicts_with = "command")]
    pub agent_command: Option<String>,

    /// An agent behind a URL: https, http, wss or ws
    #[arg(long, value_name = "URL", conflicts_with_all = ["agent", "agent_command", "command"])]
    pub connect: Option<String>,

    /// With --connect: how the server is spoken to, instead of finding out
    #[arg(long, value_name = "KIND", requires = "connect", value_parser = CARRIERS)]
    pub transport: Option<String>,

    /// With --connect: send the token that this variable of the environment holds
    #[arg(long, value_name = "NAME", requires = "connect", conflicts_with_all = ["token_file", "token_command"])]
    pub token_env: Option<String>,

    /// With --connect: send the token that this file holds
    #[arg(long, value_name = "FILE", requires = "connect", conflicts_with = "token_command")]
    pub token_file: Option<PathBuf>,

    /// With --connect: send the token that this program writes; one line, as --agent-command
    #[arg(long, value_name = "LINE", requires = "connect")]
    pub token_command: Option<String>,

    /// With --connect: trust the authorities in this PEM file, too
    #[arg(long, value_name = "FILE", requires = "connect")]
    pub ca_file: Option<PathBuf>,

    /// Let the agent work in this folder, too; may be written several times
    #[arg(long, value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,

    /// Go on with the last session of the folder
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["resume", "new"])]
    pub continue_last: bool,

    /// Go on with this session, or with one that you choose
    #[arg(short, long, value_name = "ID", num_args = 0..=1, conflicts_with = "new")]
    pub resume: Option<Option<String>>,

    /// Begin a new session, and say nothing of the last one
    #[arg(long)]
    pub new: bool,

    /// What holds for all commands.
    #[command(flatten)]
    pub options: Options,

    /// What to do instead of a session.
    #[command(subcommand)]
    pub subcommand: Option<Command>,

    /// Behind `--`: a program that speaks the protocol, with its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub command: Vec<String>,
}

/// Options that may stand before or behind a subcommand.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Options {
    /// Read this configuration instead of your own
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Keep data and logs in this folder instead of your own
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Use this theme (`auto`: dark or light as the terminal is)
    #[arg(long, global = true, value_name = "NAME")]
    pub theme: Option<String>,

    /// Run as text that only grows, for screen readers, dumb terminals and logs
    #[arg(long, global = true)]
    pub plain: bool,

    /// Offer agents no access to files through parlor
    #[arg(long, global = true)]
    pub no_fs: bool,

    /// Offer agents no terminals
    #[arg(long, global = true)]
    pub no_terminal: bool,

    /// Understand only what the protocol itself allows, and mend nothing: to test an agent
    #[arg(long, global = true)]
    pub strict: bool,

    /// Write all traffic with the agent to this file, as JSON lines
    #[arg(long, global = true, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
}

/// Subcommands.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Start a session with the built-in agent: no account, no network
    Demo {
        /// The folder to work in
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// Print every value in force, and where it comes from
    Config,
    /// List, read, search, export and delete sessions
    Sessions {
        /// What to do.
        #[command(subcommand)]
        job: sessions::SessionsJob,
    },
    /// See and import agents
    Agents {
        /// What to do.
        #[command(subcommand)]
        job: AgentsJob,
    },
    /// Play a traffic log that --log-file wrote: starts no agent, reads and writes nothing else
    Replay(replay::ReplayArgs),
    /// Be the built-in agent on standard input and output
    #[command(hide = true)]
    DemoAgent,
}

/// What can be done with agents.
#[derive(Debug, Clone, Subcommand)]
pub enum AgentsJob {
    /// List the agents that can be chosen, and the known ones that are not on this machine
    List,
    /// Add the agents of Zed's settings.json or JetBrains' acp.json to the configuration
    Import {
        /// Zed's settings.json, JetBrains' acp.json, or a file with their `agent_servers` block
        file: PathBuf,
    },
}

/// A session that the command line asks for, checked.
#[derive(Debug, Clone)]
pub struct Session {
    /// The folder, absolute, links resolved.
    pub folder: PathBuf,
    /// The agent to start with; `None`: that of the session that is gone on with, else the user is asked.
    pub agent: Option<AgentSpec>,
    /// Whether that agent was named on the command line, so that it goes on whoever began.
    pub is_agent_named: bool,
    /// The session to go on with.
    pub wish: resume::ResumeRequest,
    /// Whether the folder's last session is worth a word.
    pub offers_last: bool,
    /// More folders to work in.
    pub more_folders: Vec<PathBuf>,
    /// Known agents that are on this machine, with their names for people, callbacks decided.
    pub found: Vec<(AgentSpec, String)>,
    /// The built-in agent.
    pub demo: AgentSpec,
    /// Where the raw traffic is written, as JSON lines.
    pub log_file: Option<PathBuf>,
    /// Where files lie.
    pub paths: Paths,
    /// The configuration in force.
    pub config: Config,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// What is to be done after the command line was served.
#[derive(Debug, Clone)]
pub enum Next {
    /// Nothing: the subcommand has done all.
    Nothing,
    /// Run this session.
    Session(Box<Session>),
    /// Be the built-in agent on standard input and output, with this folder.
    DemoAgent(PathBuf),
    /// Show this replay.
    Replay(Box<replay::Job>),
}

/// Reads the command line and does what it says. An error has been printed to standard error.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // It repeats what was typed, which may be the name of a folder that somebody else made.
        Err(error) if sanitize(&error.to_string()) != error.to_string() => {
            let _ = Printer::stderr().print(&error.to_string());
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
        Err(error) => error.exit(),
    };
    let done = run(&cli, &mut Printer::stdout()).and_then(|next| match next {
        Next::Nothing => Ok(()),
        Next::Session(session) => start::run(*session),
        Next::DemoAgent(dir) => crate::demo::run(dir),
        Next::Replay(job) => job.run(),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may have gone with its terminal.
            let _ = Printer::stderr().print(&format!("parlor: {error:#}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Serves a command line. What subcommands print goes to `out`.
///
/// Fails, with what to do next, on a folder or agent that does not exist and on files that cannot be read or
/// written; never on a wrong configuration.
pub fn run(cli: &Cli, out: &mut Printer<'_>) -> anyhow::Result<Next> {
    if let Some(folder) = cli.folder.as_deref().filter(|_| cli.subcommand.is_some()) {
        bail!(
            "the folder {} stands before a command; write it behind `parlor demo`, or leave it out",
            folder.display()
        );
    }
    let paths = Paths::find(cli.options.config.clone(), cli.options.data_dir.clone())?;
    if paths.data_origin == Origin::Default {
        private::restrict(&paths.data_dir);
    }
    if matches!(cli.subcommand, Some(Command::DemoAgent)) {
        return Ok(Next::DemoAgent(choose::demo_dir(&paths)));
    }
    if let Some(Command::Replay(args)) = &cli.subcommand {
        return replay::run(args, cli, &paths, out);
    }
    if let Some(Command::Sessions { job }) = &cli.subcommand {
        sessions::run(job, &paths, out)?;
        return Ok(Next::Nothing);
    }
    // Folders on PATH may be slow (network, other systems), so they are looked through meanwhile.
    let looking = std::thread::spawn(|| catalogue::found_on_path(config::environment("PATH")));
    let (mut config, mut problems) = config::load(&paths);
    cli.options.apply(&mut config);
    let found = |config: &Config| found(looking, config);
    match &cli.subcommand {
        Some(Command::Config) => {
            problems.extend(choose::default_agent_problem(&config, &found(&config), &paths));
            problems.extend(choose::theme_problems(&config, &paths));
            print(out, &config::show::show(&config, &paths, &problems))?;
            print(out, &permissions(&grants::list(&paths.data_dir)))?;
            Ok(Next::Nothing)
        }
        Some(Command::Agents { job: AgentsJob::List }) => {
            let found = found(&config);
            print(out, &agents::list(&config, &found, &paths, &problems))?;
            Ok(Next::Nothing)
        }
        Some(Command::Agents { job: AgentsJob::Import { file } }) => {
            print(out, &agents::import(file, &paths)?)?;
            Ok(Next::Nothing)
        }
        _ => {
            let mut found = found(&config);
            for (spec, _) in found.iter_mut().filter(|_| cli.options.strict) {
                spec.wire.is_strict = true;
            }
            let program = std::env::current_exe().context("cannot find parlor's own program file")?;
            let demo = choose::demo(&program, &paths, config.callbacks);
            let mut agent = choose::agent_from(cli, &config, &found, &demo)?;
            if let Some(spec) = agent.as_mut().filter(|_| cli.options.strict) {
                spec.wire.is_strict = true;
            }
            problems.extend(choose::default_agent_problem(&config, &found, &paths));
            problems.extend(choose::connect_problem(cli, agent.as_ref()));
            let folder = choose::session_folder(cli)?;
            let more_folders = choose::more_folders(cli, &config, &paths, &folder, &mut problems)?;
            let log_file = cli.options.log_file.as_deref().map(std::path::absolute).transpose()?;
            Ok(Next::Session(Box::new(Session {
                folder,
                more_folders,
                agent,
                is_agent_named: cli.names_agent(),
                wish: cli.wish(),
                offers_last: !cli.new,
                found,
                demo,
                log_file,
                paths,
                config,
                problems,
            })))
        }
    }
}

impl Cli {
    /// Whether an agent was named.
    pub fn names_agent(&self) -> bool {
        let is_demo = matches!(self.subcommand, Some(Command::Demo { .. }));
        let is_started = self.agent.is_some() || self.agent_command.is_some() || !self.command.is_empty();
        is_demo || is_started || self.connect.is_some()
    }

    /// The session to go on with.
    pub fn wish(&self) -> resume::ResumeRequest {
        match (&self.resume, self.continue_last) {
            (Some(Some(id)), _) => resume::ResumeRequest::Id(id.clone()),
            (Some(None), _) => resume::ResumeRequest::Choose,
            (None, true) => resume::ResumeRequest::Last,
            (None, false) => resume::ResumeRequest::New,
        }
    }

    /// The folder that was named, if any.
    pub fn named_folder(&self) -> Option<&Path> {
        match &self.subcommand {
            Some(Command::Demo { folder: Some(folder) }) => Some(folder),
            _ => self.folder.as_deref(),
        }
    }
}

impl Options {
    /// Lays these options over the configuration.
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
        for callbacks in
            config.agents.values_mut().map(|spec| &mut spec.callbacks).chain([&mut config.callbacks])
        {
            callbacks.fs_read &= !self.no_fs;
            callbacks.fs_write &= !self.no_fs;
            callbacks.terminal &= !self.no_terminal;
        }
        for spec in config.agents.values_mut().filter(|_| self.strict) {
            spec.wire.is_strict = true;
            config.origins.insert(format!("agents.{}.strict", spec.name), Origin::CommandLine);
        }
        config.origins.extend(forced.into_iter().map(|name| (name.to_owned(), Origin::CommandLine)));
    }
}

/// Permissions that are saved, each with the file that holds it.
fn permissions(grants: &[grants::GrantFile]) -> String {
    use std::fmt::Write as _;
    if grants.is_empty() {
        return "\n# No permissions are saved.\n".to_owned();
    }
    let mut text = "\n# Saved permissions; revoke one in the palette, or delete its file:\n".to_owned();
    for (file, StoredGrant { agent, folder, grant }) in grants {
        let words = format!("{agent} may {}, in sessions of {}", grant.words(), folder.display());
        let _ = writeln!(text, "# {}\n#   {}", one_line(&words), one_line(&file.to_string_lossy()));
    }
    text
}

/// Prints a text. A reader that has seen enough (`parlor config | head`) is no error.
fn print(out: &mut Printer<'_>, text: &str) -> anyhow::Result<()> {
    match out.print(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("cannot print"),
        _ => Ok(()),
    }
}

/// The known agents that a thread has looked for. One that could not be asked has found none.
fn found(looking: JoinHandle<Vec<(AgentSpec, String)>>, config: &Config) -> Vec<(AgentSpec, String)> {
    let mut found = looking.join().unwrap_or_default();
    for (spec, _) in &mut found {
        spec.callbacks = config.callbacks;
    }
    found
}

#[cfg(test)]
mod tests;
