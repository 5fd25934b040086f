//! Which agent and which folder the command line means.
//!
//! Duty: turns names and command lines into something that can be started, with errors that say how to go on.
//! Not its duty: asking the user (the picker does, where nothing is named).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::CommandFactory as _;

use super::{Cli, Command};
use crate::config::agents::remote::{check_url, is_private};
use crate::config::catalogue::{self, known};
use crate::config::nearest::nearest;
use crate::config::{Config, Origin, Paths, Problem, environment};
use crate::demo::DIR_VARIABLE;
use crate::model::{AgentSpec, Callbacks, Carrier, Remote, TokenSource, shown_url};
use crate::ui::theme::{ColorSupport, ThemeSet};

/// The name of the built-in agent.
pub const DEMO: &str = "demo";

/// The folder of the built-in agent, in parlor's own for data.
pub fn demo_dir(paths: &Paths) -> PathBuf {
    paths.data_dir.join(DEMO)
}

/// The built-in agent: this program itself. It is told its folder, which may depend on parlor's command line.
pub fn demo(program: &Path, paths: &Paths, callbacks: Callbacks) -> AgentSpec {
    let is_named = environment(DIR_VARIABLE).is_some_and(|dir| !dir.is_empty());
    let dir = (!is_named).then(|| (DIR_VARIABLE.to_owned(), demo_dir(paths).to_string_lossy().into_owned()));
    AgentSpec {
        name: DEMO.to_owned(),
        command: program.to_string_lossy().into_owned(),
        args: vec!["demo-agent".to_owned()],
        env: dir.into_iter().collect(),
        callbacks,
        ..AgentSpec::default()
    }
}

/// The agent to start with: what the command line names, else the configured default; `None`: ask.
///
/// `found` are the known agents on this machine. Fails if a name of the command line is unknown or its
/// command line cannot be split. A wrong default does not fail, see [`default_agent_problem`].
pub fn agent_from(
    cli: &Cli,
    config: &Config,
    found: &[(AgentSpec, String)],
    demo: &AgentSpec,
) -> anyhow::Result<Option<AgentSpec>> {
    if matches!(cli.subcommand, Some(Command::Demo { .. })) {
        return Ok(Some(demo.clone()));
    }
    if let Some((command, args)) = cli.command.split_first() {
        return from_words(command, args, config.callbacks).map(Some);
    }
    if let Some(line) = &cli.agent_command {
        let words = shell_words::split(line)
            .with_context(|| format!("the line of --agent-command has an open quote: {line}; close it"))?;
        let Some((command, args)) = words.split_first() else {
            bail!("the line of --agent-command is empty; write the command that starts the agent");
        };
        return from_words(command, args, config.callbacks).map(Some);
    }
    if let Some(url) = &cli.connect {
        return from_url(cli, url, config).map(Some);
    }
    if let Some(name) = &cli.agent {
        return by_name(name, config, found, demo).map(Some);
    }
    let default = config.default_agent.as_deref();
    Ok(default.and_then(|name| by_name(name, config, found, demo).ok()))
}

/// What is wrong with the configured default agent, if it cannot be found.
pub fn default_agent_problem(
    config: &Config,
    found: &[(AgentSpec, String)],
    paths: &Paths,
) -> Option<Problem> {
    let name = config.default_agent.as_deref()?;
    let error = by_name(name, config, found, &AgentSpec::default()).err()?;
    let text = error.to_string();
    let (text, fix) = text.split_once("; ").unwrap_or((&text, "choose one in the list"));
    Some(problem_of(config, paths, "agent", text, fix))
}

/// What is wrong with the theme of the configuration, or with its file.
pub fn theme_problems(config: &Config, paths: &Paths) -> Vec<Problem> {
    if config.theme == "auto" {
        return Vec::new();
    }
    let mut themes = ThemeSet::built_in();
    let mut told = themes.add_folder(&paths.theme_dir);
    told.extend(themes.load(&config.theme, ColorSupport::TrueColor).1);
    let problem = |words: &String| {
        let words = words.trim_end_matches('.');
        let (text, fix) = words.split_once("; ").unwrap_or((words, "select another theme"));
        problem_of(config, paths, "theme", text, fix)
    };
    told.iter().map(problem).collect()
}

/// A problem with a value of the configuration that can only be told once all is known.
fn problem_of(config: &Config, paths: &Paths, key: &str, text: &str, fix: &str) -> Problem {
    let line = match config.origin(key) {
        Origin::File { line } => Some(line),
        _ => None,
    };
    Problem { file: paths.config_file.clone(), line, text: text.to_owned(), fix: fix.to_owned() }
}

/// The folder to work in: absolute, links resolved. Fails if it is no folder.
pub fn session_folder(cli: &Cli) -> anyhow::Result<PathBuf> {
    let Some(folder) = cli.named_folder() else {
        return std::env::current_dir()
            .and_then(|folder| folder.canonicalize())
            .context("the folder that parlor was started in is gone; go to another one, or name one");
    };
    match folder.canonicalize() {
        Ok(real) if real.is_dir() => Ok(real),
        Ok(_) => bail!("{} is a file; name the folder to work in", folder.display()),
        Err(error) => {
            let reason = match error.kind() {
                std::io::ErrorKind::NotFound => "there is no such folder".to_owned(),
                _ => error.to_string(),
            };
            let commands: Vec<String> = Cli::command()
                .get_subcommands()
                .filter(|command| !command.is_hide_set())
                .map(|command| command.get_name().to_owned())
                .collect();
            let name = folder.to_string_lossy();
            let near = nearest(&name, commands.iter().map(String::as_str));
            let advice = match near.first() {
                Some(command) => format!("name one that exists, or did you mean `parlor {command}`"),
                None => "name one that exists".to_owned(),
            };
            bail!("cannot work in {}: {reason}; {advice}", folder.display())
        }
    }
}

/// More folders to work in, those of the configuration first, each once. One of the configuration that is not there is
/// told and left out. Fails if one of the command line is none.
pub fn more_folders(
    cli: &Cli,
    config: &Config,
    paths: &Paths,
    folder: &Path,
    problems: &mut Vec<Problem>,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut all: Vec<PathBuf> = Vec::new();
    for path in &config.additional_directories {
        match path.canonicalize() {
            Ok(real) if real.is_dir() => all.push(real),
            _ => problems.push(Problem {
                file: paths.config_file.clone(),
                line: match config.origin("additional_directories") {
                    Origin::File { line } => Some(line),
                    _ => None,
                },
                text: format!("`additional_directories` names {}, which is no folder", path.display()),
                fix: "name one that exists, or remove it".to_owned(),
            }),
        }
    }
    for path in &cli.add_dir {
        match path.canonicalize() {
            Ok(real) if real.is_dir() => all.push(real),
            Ok(_) => bail!("{} is a file; name a folder behind --add-dir", path.display()),
            Err(error) => {
                bail!(
                    "cannot work in {}: {error}; name a folder that exists behind --add-dir",
                    path.display()
                )
            }
        }
    }
    let mut once: Vec<PathBuf> = Vec::new();
    for path in all {
        if path != folder && !once.contains(&path) {
            once.push(path);
        }
    }
    Ok(once)
}

/// A configured agent, a known one that is here, or the demo; in this order.
fn by_name(
    name: &str,
    config: &Config,
    found: &[(AgentSpec, String)],
    demo: &AgentSpec,
) -> anyhow::Result<AgentSpec> {
    if let Some(spec) = config.agents.get(name) {
        return Ok(spec.clone());
    }
    let canonical = known(name).map_or(name, |known| known.name);
    if let Some((spec, _)) = found.iter().find(|(spec, _)| spec.name == canonical) {
        return Ok(spec.clone());
    }
    if name == DEMO {
        return Ok(demo.clone());
    }
    if let Some(known) = known(name) {
        bail!(
            "the agent {} is not on this machine; install it so that `{}` can be run, or write [agents.{}] in the configuration",
            known.title,
            known.command,
            known.name
        );
    }
    let names = config.agents.keys().map(String::as_str);
    let names: Vec<&str> =
        names.chain(found.iter().map(|(spec, _)| spec.name.as_str())).chain([DEMO]).collect();
    let near = nearest(name, names.iter().copied().chain(catalogue::KNOWN.iter().map(|known| known.name)));
    let advice = if near.is_empty() { String::new() } else { format!("did you mean {}? ", near.join(", ")) };
    bail!("there is no agent `{name}`; {advice}`parlor agents list` shows all of them");
}

/// An agent behind a URL: one that is configured with this very URL, or a new one without callbacks.
fn from_url(cli: &Cli, url: &str, config: &Config) -> anyhow::Result<AgentSpec> {
    if let Err((what, fix)) = check_url(url, &["https", "http", "wss", "ws"]) {
        bail!("the address {} {what}; {fix}", shown_url(url));
    }
    let token = token_from(cli)?;
    let ca_file = cli.ca_file.as_ref().map(std::path::absolute).transpose();
    let ca_file = ca_file.context("cannot make the path of --ca-file absolute")?;
    let carrier = cli.transport.as_deref().and_then(Carrier::of_word);
    let configured = config
        .agents
        .values()
        .find(|spec| spec.remote.as_ref().is_some_and(|remote| remote.url == url))
        .cloned();
    let mut spec = configured.unwrap_or_else(|| {
        let shown = shown_url(url);
        let host = shown.split_once("://").map_or(shown.as_str(), |(_, rest)| rest);
        AgentSpec {
            name: host.split('/').next().unwrap_or(host).to_owned(),
            callbacks: Callbacks::NONE,
            remote: Some(Remote { url: url.to_owned(), ..Remote::default() }),
            ..AgentSpec::default()
        }
    });
    if let Some(remote) = &mut spec.remote {
        remote.token = token.or(remote.token.take());
        remote.carrier = carrier.or(remote.carrier);
        remote.ca_file = ca_file.or(remote.ca_file.take());
    }
    Ok(spec)
}

/// Where the command line says that the token is kept.
fn token_from(cli: &Cli) -> anyhow::Result<Option<TokenSource>> {
    if let Some(name) = &cli.token_env {
        return Ok(Some(TokenSource::Env(name.clone())));
    }
    if let Some(path) = &cli.token_file {
        let whole = std::path::absolute(path).context("cannot make the path of --token-file absolute")?;
        return Ok(Some(TokenSource::File(whole)));
    }
    let Some(line) = &cli.token_command else { return Ok(None) };
    let words =
        shell_words::split(line).context("the line of --token-command has an open quote; close it")?;
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        bail!("the line of --token-command is empty; write the command that prints the token");
    }
    Ok(Some(TokenSource::Command(words)))
}

/// What is wrong with the way to the agent that --connect names, though it can be gone.
pub fn connect_problem(cli: &Cli, agent: Option<&AgentSpec>) -> Option<Problem> {
    let url = cli.connect.as_ref()?;
    let remote = agent?.remote.as_ref()?;
    (remote.token.is_some() && !is_private(url)).then(|| Problem {
        file: PathBuf::from("--connect"),
        line: None,
        text: "the token goes over the network where anybody on the way can read it".to_owned(),
        fix: "begin the address with https:// or wss:// if the server can do that".to_owned(),
    })
}

/// A command given in words. A path is made absolute, for the agent may run in another folder.
fn from_words(command: &str, args: &[String], callbacks: Callbacks) -> anyhow::Result<AgentSpec> {
    if command.trim().is_empty() {
        bail!("the agent's command is empty; write the program that starts the agent");
    }
    let program = if command.contains(std::path::MAIN_SEPARATOR) {
        std::path::absolute(command)
            .with_context(|| format!("cannot make {command} absolute; write its whole path"))?
            .to_string_lossy()
            .into_owned()
    } else {
        command.to_owned()
    };
    let stem = Path::new(command).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = stem.unwrap_or_else(|| command.to_owned());
    Ok(AgentSpec { name, command: program, args: args.to_vec(), callbacks, ..AgentSpec::default() })
}
