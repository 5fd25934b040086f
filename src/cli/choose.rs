//! Resolves the agent and the folder of the command line.
//!
//! Names and command lines become specs that can be started. If no agent is named, the user chooses one in the
//! picker.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use anyhow::{Context as _, bail};
use clap::CommandFactory as _;

use super::args::{Cli, Command};
use crate::config::agents::remote::{check_url, is_private};
use crate::config::catalogue::{self, known};
use crate::config::nearest::nearest;
use crate::config::{Config, Origin, Paths, Problem, environment};
use crate::demo::DIR_VARIABLE;
use crate::host::registry::{self, Registry};
use crate::model::{AgentSpec, Callbacks, Carrier, Remote, TokenSource, shown_url};
use crate::ui::theme::{ColorSupport, ThemeSet};

/// The name of the demo agent.
pub const DEMO: &str = "demo";

/// The folder of the demo agent in the data folder.
pub fn demo_dir(paths: &Paths) -> PathBuf {
    paths.data_dir.join(DEMO)
}

/// The demo agent: this executable, with its folder in the environment.
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

/// The agent of the command line, or the configured default; `None` if the user has to choose.
///
/// `found` are the installed agents. Fails for an unknown name or an invalid command line; an unknown default is
/// reported by [`default_agent_problem`].
pub fn agent_from(
    cli: &Cli,
    config: &Config,
    found: &[(AgentSpec, String)],
    demo: &AgentSpec,
) -> anyhow::Result<Option<AgentSpec>> {
    if matches!(cli.subcommand, Some(Command::Demo { .. })) {
        return Ok(Some(demo.clone()));
    }
    if let ([program], Some(adapted)) =
        (cli.command.as_slice(), cli.command.first().and_then(|program| catalogue::adapter_of(program)))
    {
        if let Ok(spec) = by_name(adapted.name, config, found, demo) {
            return Ok(Some(spec));
        }
        bail!(
            "`{program}` speaks the protocol only through its adapter {}; run `parlor agents install {}`",
            adapted.command,
            adapted.name
        );
    }
    if let Some((command, args)) = cli.command.split_first() {
        return spec_of(command, args, config.callbacks).map(Some);
    }
    if let Some(line) = &cli.agent_command {
        let parts =
            shell_words::split(line).with_context(|| format!("unclosed quote in --agent-command: {line}"))?;
        let Some((command, args)) = parts.split_first() else {
            bail!("--agent-command is empty; pass the command that starts the agent");
        };
        return spec_of(command, args, config.callbacks).map(Some);
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

/// The agent that the command line names but that has to be installed first, by its id in the registry: also a program that
/// speaks the protocol only through an adapter.
pub fn to_install(
    cli: &Cli,
    config: &Config,
    found: &[(AgentSpec, String)],
    registry: &Registry,
) -> Option<String> {
    let named = match cli.command.as_slice() {
        [program] => catalogue::adapter_of(program)?,
        _ => known(cli.agent.as_deref()?)?,
    };
    let is_here =
        config.agents.contains_key(named.name) || found.iter().any(|(spec, _)| spec.name == named.name);
    if is_here {
        return None;
    }
    let agent = registry.index().agents.into_iter().find(|agent| {
        agent.source.is_some() && known(&agent.id).is_some_and(|known| known.name == named.name)
    });
    agent.map(|agent| agent.id)
}

/// The problem with an unknown default agent.
pub fn default_agent_problem(
    config: &Config,
    found: &[(AgentSpec, String)],
    paths: &Paths,
) -> Option<Problem> {
    let name = config.default_agent.as_deref()?;
    let error = by_name(name, config, found, &AgentSpec::default()).err()?;
    let text = error.to_string();
    let (text, fix) = text.split_once("; ").unwrap_or((&text, "choose one from the list"));
    Some(problem_of(config, paths, "agent", text, fix))
}

/// Problems with the configured theme.
pub fn theme_problems(config: &Config, paths: &Paths) -> Vec<Problem> {
    if config.theme == "auto" {
        return Vec::new();
    }
    let mut themes = ThemeSet::built_in();
    let mut reported = themes.add_folder(&paths.theme_dir);
    reported.extend(themes.load(&config.theme, ColorSupport::TrueColor).1);
    let problem = |problem_text: &String| {
        let problem_text = problem_text.trim_end_matches('.');
        let (text, fix) = problem_text.split_once("; ").unwrap_or((problem_text, "select another theme"));
        problem_of(config, paths, "theme", text, fix)
    };
    reported.iter().map(problem).collect()
}

/// A problem with a value that is checked after the configuration was read.
fn problem_of(config: &Config, paths: &Paths, key: &str, text: &str, fix: &str) -> Problem {
    let line = match config.origin(key) {
        Origin::File { line } => Some(line),
        _ => None,
    };
    Problem { file: paths.config_file.clone(), line, text: text.to_owned(), fix: fix.to_owned() }
}

/// The folder to work in, absolute and without links.
pub fn session_folder(cli: &Cli) -> anyhow::Result<PathBuf> {
    let Some(folder) = cli.arguments()?.0 else {
        return std::env::current_dir()
            .and_then(|folder| folder.canonicalize())
            .context("the current folder was deleted; change to another one, or pass FOLDER");
    };
    match folder.canonicalize() {
        Ok(real) if real.is_dir() => Ok(real),
        Ok(_) => bail!("{} is a file; pass a folder", folder.display()),
        Err(error) => {
            let reason = match error.kind() {
                std::io::ErrorKind::NotFound => "folder not found".to_owned(),
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
                Some(command) => format!("did you mean `parlor {command}`?"),
                None if cli.prompt_text.is_some() => "pass an existing folder before the prompt".to_owned(),
                None => format!("pass an existing folder, or a prompt with `--prompt {name}`"),
            };
            bail!("cannot use {}: {reason}; {advice}", folder.display())
        }
    }
}

/// Additional folders, those of the configuration first, without duplicates. Missing folders of the configuration are
/// reported; missing folders of the command line are an error.
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
                text: format!("{} in `additional_directories` is not a folder", path.display()),
                fix: "correct it, or remove it".to_owned(),
            }),
        }
    }
    for path in &cli.add_dir {
        match path.canonicalize() {
            Ok(real) if real.is_dir() => all.push(real),
            Ok(_) => bail!("{} is a file; pass a folder to --add-dir", path.display()),
            Err(error) => {
                bail!("cannot use {}: {error}; pass an existing folder to --add-dir", path.display())
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

/// Finds a configured agent, an installed agent, or the demo agent, in this order.
pub(super) fn by_name(
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
        let is_listed =
            registry::built_in().agents.iter().any(|agent| catalogue::known(&agent.id) == Some(known));
        let install = if is_listed {
            format!("run `parlor agents install {}`, install it yourself", known.name)
        } else {
            "install it".to_owned()
        };
        bail!(
            "the agent {} is not installed; {install} so that `{}` can be run, or add [agents.{}] to the configuration",
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
    bail!("unknown agent `{name}`; {advice}see `parlor agents list`");
}

/// The agent at a URL: the configured agent with the same URL, or a new one without callbacks.
fn from_url(cli: &Cli, url: &str, config: &Config) -> anyhow::Result<AgentSpec> {
    if let Err((what, fix)) = check_url(url, &["https", "http", "wss", "ws"]) {
        bail!("the URL {} {what}; {fix}", shown_url(url));
    }
    let token = token_from(cli)?;
    let ca_file = cli.ca_file.as_ref().map(std::path::absolute).transpose();
    let ca_file = ca_file.context("cannot resolve the path of --ca-file")?;
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

/// The token source of the command line.
fn token_from(cli: &Cli) -> anyhow::Result<Option<TokenSource>> {
    if let Some(name) = &cli.token_env {
        return Ok(Some(TokenSource::Env(name.clone())));
    }
    if let Some(path) = &cli.token_file {
        let whole = std::path::absolute(path).context("cannot resolve the path of --token-file")?;
        return Ok(Some(TokenSource::File(whole)));
    }
    let Some(line) = &cli.token_command else { return Ok(None) };
    let parts = shell_words::split(line).context("unclosed quote in --token-command")?;
    if parts.first().is_none_or(|program| program.trim().is_empty()) {
        bail!("--token-command is empty; pass the command that prints the token");
    }
    Ok(Some(TokenSource::Command(parts)))
}

/// A warning about an unencrypted connection of --connect.
pub fn connect_problem(cli: &Cli, agent: Option<&AgentSpec>) -> Option<Problem> {
    let url = cli.connect.as_ref()?;
    let remote = agent?.remote.as_ref()?;
    (remote.token.is_some() && !is_private(url)).then(|| Problem {
        file: PathBuf::from("--connect"),
        line: None,
        text: "the token is sent over an unencrypted connection".to_owned(),
        fix: "use https:// or wss:// if the server supports it".to_owned(),
    })
}

/// The spec of a command. A path is made absolute, because the agent may run in another folder.
fn spec_of(command: &str, args: &[String], callbacks: Callbacks) -> anyhow::Result<AgentSpec> {
    if command.trim().is_empty() {
        bail!("the agent command is empty; pass the program that starts the agent");
    }
    let is_sentence = args.is_empty() && command.contains(char::is_whitespace);
    if is_sentence && !Path::new(command).exists() {
        bail!("no program `{command}`; -- is followed by the agent's program, pass a prompt with --prompt");
    }
    let program = if command.contains(std::path::MAIN_SEPARATOR) {
        std::path::absolute(command)
            .with_context(|| format!("cannot resolve {command}; pass an absolute path"))?
            .to_string_lossy()
            .into_owned()
    } else {
        command.to_owned()
    };
    let stem = Path::new(command).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = stem.unwrap_or_else(|| command.to_owned());
    Ok(AgentSpec { name, command: program, args: args.to_vec(), callbacks, ..AgentSpec::default() })
}

/// The agents that were installed from the registry, then the known agents on `PATH`, each once.
pub(super) fn find_agents(data_dir: &Path) -> Vec<(AgentSpec, String)> {
    // The address does not matter for what is installed.
    let installed = Registry::new(data_dir, "").installed();
    let mut all: Vec<(AgentSpec, String)> =
        installed.iter().map(|agent| (catalogue::spec_of_installed(agent), agent.title.clone())).collect();
    for (spec, title) in catalogue::found_on_path(environment("PATH")) {
        if all.iter().all(|(other, _)| other.name != spec.name) {
            all.push((spec, title));
        }
    }
    all
}

/// The known agents that a thread has found; empty if the thread failed.
pub(super) fn found(
    looking: JoinHandle<Vec<(AgentSpec, String)>>,
    config: &Config,
) -> Vec<(AgentSpec, String)> {
    let mut found = looking.join().unwrap_or_default();
    for (spec, title) in &mut found {
        *spec = config.with_settings(spec);
        if let Some(own) = &spec.title {
            title.clone_from(own);
        }
    }
    found
}
