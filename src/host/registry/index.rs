//! Reads an index of the registry, which may come from a mirror and is not trusted.
//!
//! Unknown keys are ignored, and invalid agents are skipped. A package must be a plain name, with or without a version, so that it
//! cannot be a URL, a folder or an option of the installer; an archive must come over HTTPS.

use serde_json::{Map, Value};

use crate::model::{AgentSource, RegistryAgent, SourceKind, check_variables};

const MAX_AGENTS: usize = 2000;

/// Maximum length of a text.
const MAX_CHARS: usize = 400;

/// The agents of an index; `None`: it is not one.
pub fn read(text: &str) -> Option<Vec<RegistryAgent>> {
    let index: Value = serde_json::from_str(text).ok()?;
    let agents = index.get("agents")?.as_array()?;
    let quarantine = index.get("quarantine").and_then(Value::as_object);
    Some(agents.iter().take(MAX_AGENTS).filter_map(|agent| entry(agent.as_object()?, quarantine)).collect())
}

fn entry(agent: &Map<String, Value>, quarantine: Option<&Map<String, Value>>) -> Option<RegistryAgent> {
    let id = agent.get("id")?.as_str().filter(|id| is_id(id))?;
    let version = agent.get("version")?.as_str().filter(|version| is_version(version))?;
    let shown = |key: &str| agent.get(key).and_then(Value::as_str).map(shorten);
    Some(RegistryAgent {
        id: id.to_owned(),
        title: shown("name").filter(|name| !name.is_empty()).unwrap_or_else(|| id.to_owned()),
        version: version.to_owned(),
        description: shown("description").unwrap_or_default(),
        page: shown("website").or_else(|| shown("repository")),
        source: agent.get("distribution").and_then(Value::as_object).and_then(source),
        quarantine: quarantine.and_then(|all| all.get(id)).and_then(Value::as_str).map(shorten),
    })
}

/// The way to install an agent here: a package if there is one, because its installer checks more.
fn source(ways: &Map<String, Value>) -> Option<AgentSource> {
    let package = |kind: SourceKind, key: &str| {
        let way = ways.get(key)?.as_object()?;
        let from = way.get("package")?.as_str().filter(|package| is_package(package))?;
        let command = way.get("cmd").and_then(Value::as_str);
        if command.is_some_and(|command| !is_name(command)) {
            return None;
        }
        rest(way, kind, from, command)
    };
    let archive = || {
        let way = ways.get("binary")?.get(system())?.as_object()?;
        let from = way.get("archive")?.as_str().filter(|url| is_url(url))?;
        let command = way.get("cmd")?.as_str()?;
        let command = command.strip_prefix("./").unwrap_or(command);
        rest(way, SourceKind::Archive, from, Some(command).filter(|command| is_below(command)))
            .filter(|source| source.command.is_some())
    };
    package(SourceKind::Npm, "npx").or_else(|| package(SourceKind::Pypi, "uvx")).or_else(archive)
}

fn rest(
    way: &Map<String, Value>,
    kind: SourceKind,
    from: &str,
    command: Option<&str>,
) -> Option<AgentSource> {
    let args = way.get("args").and_then(Value::as_array).into_iter().flatten();
    let env = way.get("env").and_then(Value::as_object).into_iter().flatten();
    let env: Vec<(String, String)> =
        env.map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect::<Option<_>>()?;
    // The user is shown the variables, but could not know what these change.
    check_variables(env.iter().map(|(name, _)| name.as_str())).ok()?;
    let sum = way.get("sha256").and_then(Value::as_str);
    Some(AgentSource {
        kind,
        from: from.to_owned(),
        command: command.map(str::to_owned),
        args: args.map(|arg| arg.as_str().map(str::to_owned)).collect::<Option<_>>()?,
        env,
        sha256: sum.map(str::to_lowercase),
    })
}

/// The key of this system. Source: agent registry, `distribution.binary`.
fn system() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    format!("{system}-{}", std::env::consts::ARCH)
}

fn is_id(id: &str) -> bool {
    id.len() <= 64
        && id.starts_with(|first: char| first.is_ascii_lowercase())
        && id.bytes().all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == b'-')
}

/// Also the name of a folder.
fn is_version(version: &str) -> bool {
    version.len() <= 64
        && version.starts_with(|first: char| first.is_ascii_alphanumeric())
        && version.chars().all(|sign| sign.is_ascii_alphanumeric() || ".+-_".contains(sign))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|sign| sign.is_ascii_alphanumeric() || "._-".contains(sign))
}

/// `name@1.2.3`, `@scope/name@1.2.3` or `name==1.2.3`.
fn is_package(package: &str) -> bool {
    let (scope, bare) = match package.strip_prefix('@') {
        Some(scoped) => match scoped.split_once('/') {
            Some((scope, bare)) => (Some(scope), bare),
            None => return false,
        },
        None => (None, package),
    };
    let version = bare.split_once("==").or_else(|| bare.split_once('@'));
    let (name, version) = version.map_or((bare, None), |(name, version)| (name, Some(version)));
    scope.is_none_or(is_name) && is_name(name) && version.is_none_or(is_version)
}

fn is_url(url: &str) -> bool {
    super::fetch::is_allowed(url) && url.chars().all(|sign| sign.is_ascii_graphic())
}

fn is_below(path: &str) -> bool {
    !path.is_empty()
        && std::path::Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

fn shorten(text: &str) -> String {
    text.trim().chars().take(MAX_CHARS).collect()
}
