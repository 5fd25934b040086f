//! The command line: arguments, and the subcommands that need no terminal (`config`, `agents`, `sessions`).
//!
//! [`run`] returns the session to start as [`Session`]. Options override the configuration file, which overrides the
//! defaults.

pub mod agents;
pub mod choose;
mod live;
mod project;
pub mod prompt;
pub mod registry;
pub mod replay;
pub mod resume;
mod servers;
pub mod sessions;
pub mod start;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::JoinHandle;

use anyhow::{Context as _, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};

use self::prompt::FirstPrompt;
use crate::config::project::ProjectSettings;
use crate::config::{self, Config, Origin, Paths, Problem, catalogue};
use crate::model::{AgentSpec, ProjectQuestion, StoredGrant};
use crate::private;
use crate::runtime::print::Printer;
use crate::services::grants;
use crate::services::registry::Registry;
use crate::ui::text::{one_line, sanitize};

const USAGE: &str = "\
parlor [OPTIONS] [FOLDER] [PROMPT] [-- PROGRAM [ARGUMENT]...]
       parlor [OPTIONS] demo|sessions|config|agents|replay";

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
const CARRIERS: [&str; 5] = ["http", "websocket", "rpc-sse", "post", "post-sse"];

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

    /// Resume a session by id, or choose one from a list
    #[arg(short, long, value_name = "ID", num_args = 0..=1, conflicts_with = "new")]
    pub resume: Option<Option<String>>,

    /// Start a new session, and do not offer the last one
    #[arg(long)]
    pub new: bool,

    /// The first prompt.
    #[command(flatten)]
    pub first: FirstPrompt,

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
        /// The first prompt.
        #[command(flatten)]
        first: FirstPrompt,
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
    /// List and import agents
    Agents {
        /// Subcommand.
        #[command(subcommand)]
        job: AgentsJob,
    },
    /// Replay a protocol log written by --log-file, without starting an agent
    Replay(replay::ReplayArgs),
    /// Run the demo agent on standard input and output
    #[command(hide = true)]
    DemoAgent,
}

/// Subcommands of `parlor agents`.
#[derive(Debug, Clone, Subcommand)]
pub enum AgentsJob {
    /// List available agents, and known agents that are not installed
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

/// A validated session request of the command line.
#[derive(Debug, Clone)]
pub struct Session {
    /// The folder, absolute, links resolved.
    pub folder: PathBuf,
    /// The agent to start; `None` for that of the resumed session, or for the user's choice.
    pub agent: Option<AgentSpec>,
    /// Whether the agent was named on the command line; it then replaces that of a resumed session.
    pub is_agent_named: bool,
    /// The session to resume.
    pub resume: resume::ResumeRequest,
    /// Whether to offer the folder's last session.
    pub offers_last: bool,
    /// Additional folders.
    pub more_folders: Vec<PathBuf>,
    /// Known agents that are installed, with their display names.
    pub found: Vec<(AgentSpec, String)>,
    /// The demo agent.
    pub demo: AgentSpec,
    /// The first prompt, without piped input.
    pub prompt: Option<String>,
    /// The agent to install first, by its id in the registry.
    pub install: Option<String>,
    /// Settings of the project to ask about.
    pub project: Option<ProjectQuestion>,
    /// These settings.
    pub project_settings: Option<ProjectSettings>,
    /// The file of the protocol log.
    pub log_file: Option<PathBuf>,
    /// Whether lines of a pipe or a file answer questions in plain-text mode.
    pub has_answers: bool,
    pub paths: Paths,
    pub config: Config,
    pub problems: Vec<Problem>,
    /// The options of the command line.
    pub options: Options,
}

/// What the caller has to run after [`run`].
#[derive(Debug, Clone)]
pub enum Next {
    /// Nothing: the subcommand is complete.
    Nothing,
    /// Run this session.
    Session(Box<Session>),
    /// Run the demo agent on standard input and output, with this folder.
    DemoAgent(PathBuf),
    /// Show this replay.
    Replay(Box<replay::Job>),
}

/// Runs parlor with the arguments of the process; errors are printed to standard error.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // The message repeats the arguments, which may contain a hostile folder name.
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
            // Standard error may be closed together with its terminal.
            let _ = Printer::stderr().print(&format!("parlor: {error:#}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Runs a command line; subcommands print to `out`. An invalid configuration is reported, not an error.
pub fn run(cli: &Cli, out: &mut Printer<'_>) -> anyhow::Result<Next> {
    if let Some(folder) = cli.folder.as_deref().filter(|_| cli.subcommand.is_some()) {
        bail!(
            "unexpected argument {} before the command; pass a folder after `parlor demo`, a prompt with --prompt",
            folder.display()
        );
    }
    let is_prompted = cli.first.is_given() || (cli.prompt_text.is_some() && cli.subcommand.is_some());
    if is_prompted && !matches!(cli.subcommand, None | Some(Command::Demo { .. })) {
        bail!("unexpected first prompt: this command starts no session");
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
    // Folders on PATH may be slow, so they are searched in parallel.
    let data_dir = paths.data_dir.clone();
    let looking = std::thread::spawn(move || find_agents(&data_dir));
    let (mut config, mut problems) = config::load(&paths);
    cli.options.apply(&mut config);
    let agents = Registry::new(&paths.data_dir, &config.registry);
    let found = |config: &Config| found(looking, config);
    match &cli.subcommand {
        Some(Command::Config) => {
            let found = found(&config);
            let project = choose::session_folder(cli).ok().and_then(|folder| {
                project_in(&folder, &paths, &mut config, &found, &AgentSpec::default(), &mut problems)
            });
            problems.extend(choose::default_agent_problem(&config, &found, &paths));
            problems.extend(choose::theme_problems(&config, &paths));
            print(out, &config::show::show(&config, &paths, &problems))?;
            print(out, &project.map(|project| project.shown()).unwrap_or_default())?;
            print(out, &permissions(&grants::list(&paths.data_dir)))?;
            Ok(Next::Nothing)
        }
        Some(Command::Agents { job: AgentsJob::List }) => {
            let found = found(&config);
            print(out, &agents::list(&config, &found, &paths, &problems))?;
            Ok(Next::Nothing)
        }
        Some(Command::Agents { job: AgentsJob::Registry(job) }) => {
            registry::run(job, &agents, out)?;
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
            let program = std::env::current_exe().context("cannot find the parlor executable")?;
            let demo = choose::demo(&program, &paths, config.callbacks);
            let folder = choose::session_folder(cli)?;
            let project = project_in(&folder, &paths, &mut config, &found, &demo, &mut problems);
            let takes_agent = !cli.names_agent() && cli.resume_request() == resume::ResumeRequest::New;
            let project_settings = project.as_ref().map(|project| project.settings.clone());
            let project = project.and_then(|project| {
                let themes = start::find_themes(&paths.theme_dir).0;
                let known = project::Known { config: &config, found: &found, demo: &demo, themes: &themes };
                project.question(known, takes_agent)
            });
            let install = choose::to_install(cli, &config, &found, &agents);
            let mut agent = match &install {
                Some(_) if !start::is_plain(&config) => None,
                _ => choose::agent_from(cli, &config, &found, &demo)?,
            };
            if let Some(spec) = agent.as_mut().filter(|_| cli.options.strict) {
                spec.wire.is_strict = true;
            }
            problems.extend(choose::default_agent_problem(&config, &found, &paths));
            problems.extend(choose::connect_problem(cli, agent.as_ref()));
            let prompt = cli.prompt()?;
            let more_folders = choose::more_folders(cli, &config, &paths, &folder, &mut problems)?;
            let log_file = cli.options.log_file.as_deref().map(std::path::absolute).transpose()?;
            Ok(Next::Session(Box::new(Session {
                folder,
                more_folders,
                agent,
                is_agent_named: cli.names_agent(),
                resume: cli.resume_request(),
                offers_last: !(cli.new || matches!(cli.subcommand, Some(Command::Demo { new: true, .. }))),
                found,
                demo,
                prompt,
                install,
                project,
                project_settings,
                log_file,
                has_answers: cli.options.permissions.is_some(),
                paths,
                config,
                problems,
                options: cli.options.clone(),
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

    /// The session to resume.
    pub fn resume_request(&self) -> resume::ResumeRequest {
        let continues_demo = matches!(self.subcommand, Some(Command::Demo { continue_last: true, .. }));
        match (&self.resume, self.continue_last || continues_demo) {
            (Some(Some(id)), _) => resume::ResumeRequest::Id(id.clone()),
            (Some(None), _) => resume::ResumeRequest::Choose,
            (None, true) => resume::ResumeRequest::Last,
            (None, false) => resume::ResumeRequest::New,
        }
    }

    /// The first prompt: an argument, or an option. Fails if it is given twice, or is empty.
    fn prompt(&self) -> anyhow::Result<Option<String>> {
        let (_, text) = self.arguments()?;
        let first = match &self.subcommand {
            Some(Command::Demo { first, .. }) if first.is_given() => first,
            _ => &self.first,
        };
        match text {
            Some(_) if first.is_given() => {
                bail!("two first prompts; pass one, as an argument or with an option")
            }
            Some(text) => FirstPrompt { prompt: Some(text.to_owned()), prompt_file: None }.text(),
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

/// The configuration of the project in a folder. Settings that the user has allowed are applied.
fn project_in(
    folder: &Path,
    paths: &Paths,
    config: &mut Config,
    found: &[(AgentSpec, String)],
    demo: &AgentSpec,
    problems: &mut Vec<Problem>,
) -> Option<project::Project> {
    let found_file = project::find(folder, &paths.data_dir).map_err(|problem| problems.push(problem));
    let mut project = found_file.ok().flatten()?;
    if project.answer != Some(false) {
        let themes = start::find_themes(&paths.theme_dir).0;
        project.check(project::Known { config, found, demo, themes: &themes });
        problems.append(&mut project.problems);
    }
    if project.answer == Some(true) {
        project.settings.apply(config);
    }
    Some(project)
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

/// The saved permissions, each with its file.
fn permissions(grants: &[grants::GrantFile]) -> String {
    use std::fmt::Write as _;
    if grants.is_empty() {
        return "\n# No saved permissions.\n".to_owned();
    }
    let mut text =
        "\n# Saved permissions (revoke one in the command palette, or delete its file):\n".to_owned();
    for (file, StoredGrant { agent, folder, grant }) in grants {
        let permission = format!("{agent} may {}, in sessions of {}", grant.description(), folder.display());
        let _ = writeln!(text, "# {}\n#   {}", one_line(&permission), one_line(&file.to_string_lossy()));
    }
    text
}

/// Prints a text. A closed pipe (`parlor config | head`) is not an error.
fn print(out: &mut Printer<'_>, text: &str) -> anyhow::Result<()> {
    match out.print(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("cannot print"),
        _ => Ok(()),
    }
}

/// The agents that were installed from the registry, then the known agents on `PATH`, each once.
fn find_agents(data_dir: &Path) -> Vec<(AgentSpec, String)> {
    // The address does not matter for what is installed.
    let installed = Registry::new(data_dir, "").installed();
    let mut all: Vec<(AgentSpec, String)> =
        installed.iter().map(|agent| (catalogue::spec_of_installed(agent), agent.title.clone())).collect();
    for (spec, title) in catalogue::found_on_path(config::environment("PATH")) {
        if all.iter().all(|(other, _)| other.name != spec.name) {
            all.push((spec, title));
        }
    }
    all
}

/// The known agents that a thread has found; empty if the thread failed.
fn found(looking: JoinHandle<Vec<(AgentSpec, String)>>, config: &Config) -> Vec<(AgentSpec, String)> {
    let mut found = looking.join().unwrap_or_default();
    for (spec, _) in &mut found {
        spec.callbacks = config.callbacks;
    }
    found
}

#[cfg(test)]
mod tests;
