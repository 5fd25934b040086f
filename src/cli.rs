//! The command line: arguments, and the subcommands that need no terminal (`config`, `agents`, `sessions`).
//!
//! [`run`] returns the session to start as [`Session`]. Options override the configuration file, which overrides the
//! defaults.

mod advice;
pub mod agents;
mod args;
pub mod choose;
mod live;
mod output;
mod policy;
mod project;
pub mod prompt;
pub mod registry;
pub mod replay;
pub mod resume;
mod servers;
mod session;
pub mod sessions;
pub mod start;
mod usage;
mod worktrees;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Parser as _;

pub use self::args::{AgentsJob, Cli, Command, Options};
use self::choose::{find_agents, found};
use self::output::print;
use self::prompt::FirstSettings;
pub use self::session::Session;
use crate::config::{self, Config, Origin, Paths, Problem};
use crate::host::os::private;
use crate::host::registry::Registry;
use crate::host::{grants, sandbox};
use crate::model::{AgentSpec, SANDBOX_COMMAND, StoredGrant};
use crate::runtime::print::Printer;
use crate::runtime::replay::Screen;
use crate::ui::text::{one_line, sanitize};

/// The exit code if a program could not be started in a sandbox, as shells have it.
const SANDBOX_FAILED: u8 = 126;

/// What the caller has to run after [`run`].
#[derive(Debug, Clone)]
pub enum Next {
    /// Nothing: the subcommand is complete.
    Nothing,
    /// Nothing but to exit with this code.
    Exit(u8),
    /// Run this session.
    Session(Box<Session>),
    /// Run the demo agent on standard input and output, with this folder.
    DemoAgent(PathBuf),
    /// Show this replay.
    Replay(Box<Screen>),
}

/// Runs parlor with the arguments of the process; errors are printed to standard error.
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == SANDBOX_COMMAND) {
        return enter_sandbox(arguments);
    }
    let cli = match Cli::try_parse().map_err(advice::with_advice) {
        Ok(cli) => cli,
        // The message repeats the arguments, which may contain a hostile folder name.
        Err(error) if sanitize(&error.to_string()) != error.to_string() => {
            let _ = Printer::stderr().print(&error.to_string());
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
        Err(error) => error.exit(),
    };
    let done = run(&cli, &mut Printer::stdout()).and_then(|next| match next {
        Next::Nothing => Ok(ExitCode::SUCCESS),
        Next::Exit(code) => Ok(ExitCode::from(code)),
        Next::Session(session) => start::run(*session).map(|()| ExitCode::SUCCESS),
        Next::DemoAgent(dir) => crate::demo::run(dir).map(|()| ExitCode::SUCCESS),
        Next::Replay(screen) => replay::show(*screen).map(|()| ExitCode::SUCCESS),
    });
    match done {
        Ok(code) => code,
        Err(error) => {
            // Standard error may be closed together with its terminal.
            let _ = Printer::stderr().print(&format!("parlor: {error:#}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Enters a sandbox and executes a program, or prints what is enforced. Must run before any thread is started.
fn enter_sandbox(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match sandbox::run(arguments) {
        Ok(notice) => Printer::stdout().print(&notice).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS),
        Err(error) => {
            let _ = Printer::stderr().print(&format!("parlor: {error}\n"));
            ExitCode::from(SANDBOX_FAILED)
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
    let is_prompted = cli.first.has_prompt() || (cli.prompt_text.is_some() && cli.subcommand.is_some());
    if is_prompted && !matches!(cli.subcommand, None | Some(Command::Demo { .. })) {
        bail!("unexpected first prompt: this command starts no session");
    }
    let first_settings = cli.first_settings();
    if first_settings != FirstSettings::default()
        && !matches!(cli.subcommand, None | Some(Command::Demo { .. }))
    {
        bail!("unexpected --model or --mode: this command starts no session");
    }
    let is_session = matches!(cli.subcommand, None | Some(Command::Demo { .. }));
    if cli.options.worktree.is_some() && !(is_session && cli.resume_request() == resume::ResumeRequest::New) {
        bail!("unexpected --worktree: it is only for a new session");
    }
    let paths = Paths::find(cli.options.config.clone(), cli.options.data_dir.clone())?;
    if paths.data_origin == Origin::Default {
        private::restrict(&paths.data_dir);
    }
    if matches!(cli.subcommand, Some(Command::DemoAgent)) {
        return Ok(Next::DemoAgent(choose::demo_dir(&paths)));
    }
    if let Some(Command::Replay(args)) = &cli.subcommand {
        let screen = replay::run(args, cli, &paths, out)?;
        return Ok(screen.map_or(Next::Nothing, |screen| Next::Replay(Box::new(screen))));
    }
    if let Some(Command::Sessions { job }) = &cli.subcommand {
        sessions::run(job, &paths, out)?;
        return Ok(Next::Nothing);
    }
    if let Some(Command::Worktrees { job }) = &cli.subcommand {
        worktrees::run(job.as_ref(), &paths, out)?;
        return Ok(Next::Nothing);
    }
    if let Some(Command::Usage { since, json }) = &cli.subcommand {
        print(out, &usage::report(&sessions::open(&paths.data_dir)?, since, *json)?)?;
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
        Some(Command::Policy { job }) => {
            let (found, folder) = (found(&config), choose::session_folder(cli)?);
            project_in(&folder, &paths, &mut config, &found, &AgentSpec::default(), &mut problems);
            let own_folders = start::own_folders(&paths);
            let place = policy::Place { folder: &folder, data_dir: &paths.data_dir, own_folders };
            Ok(Next::Exit(policy::run(job, &config, &problems, &place, out)?))
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
                first_settings,
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

#[cfg(test)]
mod tests;
