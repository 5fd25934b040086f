//! Reads agents, callbacks and MCP servers: `[agents.NAME]`, `[callbacks]` and `[[mcp_servers]]`.

pub mod remote;
mod ssh;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::catalogue::known;
use super::read::{Reader, Value};
use super::{Config, Surroundings};
use crate::model::{AgentSpec, Callbacks, McpServer, SandboxMode};

pub const CALLBACK_KEYS: &[&str] = &["fs", "fs_read", "fs_write", "terminal"];
pub(super) const AGENT_KEYS: &[&str] = &[
    "command",
    "args",
    "env",
    "env_command",
    "cwd",
    "title",
    "fs",
    "fs_read",
    "fs_write",
    "terminal",
    "editor",
    "ssh",
    "ssh_args",
    "ssh_program",
    "url",
    "transport",
    "events_url",
    "headers",
    "token_env",
    "token_file",
    "token_command",
    "ca_file",
    "mcp",
    "sandbox",
];
pub(super) const SERVER_KEYS: &[&str] = &["name", "type", "command", "args", "env", "url", "headers"];

/// Reads the callbacks of a table: `fs` sets both file callbacks, the specific keys override it.
pub(super) fn read_callbacks(
    reader: &mut Reader<'_>,
    name: &str,
    table: &DeTable<'_>,
    default: Callbacks,
) -> Callbacks {
    let mut switch =
        |key: &str| table.get(key).and_then(|value| reader.boolean(&format!("{name}.{key}"), value));
    let both = switch("fs");
    Callbacks {
        fs_read: switch("fs_read").or(both).unwrap_or(default.fs_read),
        fs_write: switch("fs_write").or(both).unwrap_or(default.fs_write),
        terminal: switch("terminal").unwrap_or(default.terminal),
    }
}

/// Reads all `[agents.NAME]` tables. An agent without a valid command is reported and ignored.
pub(super) fn read_agents(
    reader: &mut Reader<'_>,
    table: &DeTable<'_>,
    config: &mut Config,
    folder: &Path,
    around: &Surroundings,
) {
    for (key, value) in table {
        let name = key.get_ref().trim();
        let location = format!("agents.{name}");
        if name.is_empty() {
            reader.problem(&key.span(), "empty agent name", "use [agents.NAME]");
            continue;
        }
        let Some(table) = reader.table(&location, value) else { continue };
        reader.unknown_keys(table, &format!("[{location}]"), &[AGENT_KEYS, super::wire::KEYS].concat());
        let spec = if table.contains_key("url") {
            let Some(remote) = remote::read(reader, &location, table, around) else { continue };
            AgentSpec {
                name: name.to_owned(),
                // The general callbacks apply to local agents; a remote agent has none unless it names them.
                callbacks: read_callbacks(reader, &location, table, Callbacks::NONE),
                remote: Some(remote),
                wire: super::wire::read_wire(reader, &location, table),
                ..AgentSpec::default()
            }
        } else if table.contains_key("ssh") {
            remote::tell_strays(reader, &location, table);
            let Some(spec) = ssh::read(reader, &location, table, &key.span()) else { continue };
            AgentSpec {
                name: name.to_owned(),
                callbacks: read_callbacks(reader, &location, table, Callbacks::NONE),
                wire: super::wire::read_wire(reader, &location, table),
                ..spec
            }
        } else {
            remote::tell_strays(reader, &location, table);
            remote::tell_stray_servers(reader, &location, table);
            ssh::tell_strays(reader, &location, table);
            let known = known(name).filter(|_| !table.contains_key("command"));
            let command = match known {
                // parlor finds the command of an agent that it knows, or installs the agent.
                Some(_) => Some((String::new(), Vec::new())),
                None => read_command(reader, &location, table, &key.span(), folder, around),
            };
            let Some((command, args)) = command else { continue };
            AgentSpec {
                name: known.map_or(name, |known| known.name).to_owned(),
                command,
                args,
                env: read_pairs(reader, &location, "env", table),
                env_commands: read_env_commands(reader, &location, table, around),
                cwd: read_cwd(reader, &location, table, around),
                callbacks: read_callbacks(reader, &location, table, config.callbacks),
                wire: super::wire::read_wire(reader, &location, table),
                ..AgentSpec::default()
            }
        };
        if let Some((found, _)) = table.get_key_value("env_command").filter(|_| spec.is_elsewhere()) {
            let text = format!("`env_command` of `{location}` applies only to an agent on this machine");
            reader.problem(&found.span(), text, "remove it, or set the variable on the other machine");
        }
        let editor = read_string(reader, &location, "editor", table);
        let title = read_string(reader, &location, "title", table);
        let sandbox = table.get("sandbox").map(|value| read_sandbox(reader, &location, value));
        let spec = AgentSpec { title, editor, sandbox, ..spec };
        let is_known = spec.command.is_empty() && !spec.is_elsewhere();
        let agents = if is_known { &mut config.known_agents } else { &mut config.agents };
        agents.insert(spec.name.clone(), spec);
    }
}

/// Reads `env_command`: the commands that print the values of variables, as strings or lists.
fn read_env_commands(
    reader: &mut Reader<'_>,
    location: &str,
    table: &DeTable<'_>,
    around: &Surroundings,
) -> Vec<(String, Vec<String>)> {
    let name = format!("{location}.env_command");
    let Some(table) = table.get("env_command").and_then(|value| reader.table(&name, value)) else {
        return Vec::new();
    };
    let mut commands: Vec<(usize, (String, Vec<String>))> = Vec::new();
    for (key, value) in table {
        let parts = remote::read_command_parts(reader, &format!("{name}.{}", key.get_ref()), value, around);
        commands.extend(parts.map(|parts| (key.span().start, (key.get_ref().to_string(), parts))));
    }
    commands.sort_by_key(|(start, _)| *start);
    commands.into_iter().map(|(_, command)| command).collect()
}

/// Reads `sandbox`. An invalid value is the strictest one.
fn read_sandbox(reader: &mut Reader<'_>, location: &str, value: &Value<'_>) -> SandboxMode {
    let word = reader.string(&format!("{location}.sandbox"), value);
    let Some(word) = word else { return SandboxMode::Required };
    SandboxMode::of_word(&word).unwrap_or_else(|| {
        let fix = format!("use one of: {}; `required` is used until then", SandboxMode::WORDS.join(", "));
        reader.problem(&value.span(), format!("invalid value of `{location}.sandbox`"), fix);
        SandboxMode::Required
    })
}

/// Reads a list of folders. Relative paths are reported and ignored.
pub(super) fn read_folders(
    reader: &mut Reader<'_>,
    name: &str,
    value: &Value<'_>,
    around: &Surroundings,
) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for text in reader.strings(name, value).unwrap_or_default() {
        let path = expand_home(&text, around);
        if path.is_absolute() {
            folders.push(path);
        } else {
            let what = format!("relative path `{text}` in `{name}`");
            reader.problem(&value.span(), what, "use a path that starts with / or ~/");
        }
    }
    folders
}

/// Reads all `[[mcp_servers]]`. An invalid server is reported and ignored.
pub(super) fn read_mcp_servers(
    reader: &mut Reader<'_>,
    value: &Value<'_>,
    folder: &Path,
    around: &Surroundings,
) -> Vec<McpServer> {
    let Some(items) = value.get_ref().as_array() else {
        reader.problem(
            &value.span(),
            "`mcp_servers` must be a list of tables",
            "use [[mcp_servers]] for each",
        );
        return Vec::new();
    };
    let mut servers = Vec::new();
    let mut names = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let location = format!("mcp_servers.{}", index + 1);
        let Some(table) = reader.table(&location, item) else { continue };
        reader.unknown_keys(table, "[[mcp_servers]]", SERVER_KEYS);
        let Some(name) = read_string(reader, &location, "name", table) else {
            reader.problem(&item.span(), "MCP server has no name", "add name = \"…\"");
            continue;
        };
        if !names.insert(name.clone()) {
            reader.problem(
                &item.span(),
                format!("duplicate MCP server `{name}`"),
                "rename one of them; the first is used",
            );
            continue;
        }
        servers.extend(read_server(reader, &location, name, table, &item.span(), folder, around));
    }
    servers
}

fn read_server(
    reader: &mut Reader<'_>,
    location: &str,
    name: String,
    table: &DeTable<'_>,
    span: &Range<usize>,
    folder: &Path,
    around: &Surroundings,
) -> Option<McpServer> {
    let kind = match read_string(reader, location, "type", table) {
        Some(kind) => kind,
        None if table.contains_key("url") => "http".to_owned(),
        None => "stdio".to_owned(),
    };
    let foreign: &[&str] = if kind == "stdio" { &["url", "headers"] } else { &["command", "args", "env"] };
    for key in foreign {
        if let Some((found, _)) = table.get_key_value(*key) {
            reader.problem(
                &found.span(),
                format!("`{key}` does not apply to the MCP server `{name}` of type {kind}"),
                format!("remove `{key}`, or change `type`"),
            );
        }
    }
    match kind.as_str() {
        "stdio" => {
            let (command, args) = read_command(reader, location, table, span, folder, around)?;
            let env = read_pairs(reader, location, "env", table);
            // ACP v1 session-setup, McpServer: the command of a stdio server is an absolute path.
            let found = crate::program::find_in(&command, around.path.as_deref(), Some(folder));
            let command = found.unwrap_or_else(|| {
                let at = table.get("command").map_or(span.clone(), toml::Spanned::span);
                reader.problem(
                    &at,
                    format!("MCP server `{name}`: program `{command}` not found"),
                    "install it, or set its absolute path; agents receive the name unchanged",
                );
                PathBuf::from(&command)
            });
            Some(McpServer::Stdio { name, command, args, env })
        }
        "http" | "sse" => {
            let Some(url) = read_string(reader, location, "url", table) else {
                reader.problem(span, format!("MCP server `{name}` has no URL"), "add url = \"https://…\"");
                return None;
            };
            if !url.starts_with("http://") && !url.starts_with("https://") {
                let at = table.get("url").map_or(span.clone(), toml::Spanned::span);
                reader.problem(
                    &at,
                    format!("invalid URL `{url}`"),
                    "use a URL that starts with https:// or http://",
                );
                return None;
            }
            let headers = read_pairs(reader, location, "headers", table);
            Some(if kind == "sse" {
                McpServer::Sse { name, url, headers }
            } else {
                McpServer::Http { name, url, headers }
            })
        }
        other => {
            let at = table.get("type").map_or(span.clone(), toml::Spanned::span);
            let fix = super::nearest::advice(other, ["stdio", "http", "sse"], "use stdio, http or sse");
            reader.problem(&at, format!("unknown MCP server type `{other}`"), fix);
            None
        }
    }
}

/// Reads `command` and `args`, and looks the program up.
fn read_command(
    reader: &mut Reader<'_>,
    location: &str,
    table: &DeTable<'_>,
    span: &Range<usize>,
    folder: &Path,
    around: &Surroundings,
) -> Option<(String, Vec<String>)> {
    let fix = "add command = \"…\" (a program to start) or url = \"…\" (a remote agent)";
    let is_program = |command: &str| program(command, folder, around).exists();
    let (command, args) = read_command_line(reader, location, table, span, fix, is_program)?;
    Some((program(&command, folder, around).to_string_lossy().into_owned(), args))
}

/// Reads `command` and `args`. A command that contains arguments is split and reported. `fix`: what to do without a
/// command.
fn read_command_line(
    reader: &mut Reader<'_>,
    location: &str,
    table: &DeTable<'_>,
    span: &Range<usize>,
    fix: &str,
    is_program: impl Fn(&str) -> bool,
) -> Option<(String, Vec<String>)> {
    let Some(value) = table.get("command") else {
        reader.problem(span, format!("`{location}` has no command"), fix);
        return None;
    };
    let command = reader.string(&format!("{location}.command"), value)?;
    let args = match table.get("args") {
        Some(value) => reader.strings(&format!("{location}.args"), value).unwrap_or_default(),
        None => Vec::new(),
    };
    if args.is_empty()
        && command.contains(char::is_whitespace)
        && !is_program(&command)
        && let Ok(parts) = shell_words::split(&command)
        && let Some((first, rest)) = parts.split_first()
    {
        let list: Vec<String> = rest.iter().map(|word| format!("\"{word}\"")).collect();
        let fix = format!("use command = \"{first}\" and args = [{}]", list.join(", "));
        reader.problem(&value.span(), format!("`{location}.command` contains arguments"), fix);
        reader.taken(&format!("{location}.args"), value);
        return Some((first.clone(), rest.to_vec()));
    }
    Some((command, args))
}

/// Resolves a program: `~/` is the home folder, a relative path is relative to the configuration's folder, a bare
/// name is looked up on PATH.
fn program(command: &str, folder: &Path, around: &Surroundings) -> PathBuf {
    let path = expand_home(command, around);
    let is_bare = path.components().count() == 1 && !command.contains('/');
    if is_bare || path.is_absolute() {
        return path;
    }
    let joined = folder.join(path);
    std::path::absolute(&joined).unwrap_or(joined)
}

fn read_cwd(
    reader: &mut Reader<'_>,
    location: &str,
    table: &DeTable<'_>,
    around: &Surroundings,
) -> Option<PathBuf> {
    let fix =
        "use a path that starts with / or ~/, or remove the line to start the agent in the session's folder";
    read_absolute(reader, location, table, |text| expand_home(text, around), fix)
}

/// Reads `cwd`. A relative path is reported and ignored.
fn read_absolute(
    reader: &mut Reader<'_>,
    location: &str,
    table: &DeTable<'_>,
    path: impl Fn(&str) -> PathBuf,
    fix: &str,
) -> Option<PathBuf> {
    let value = table.get("cwd")?;
    let path = path(&reader.string(&format!("{location}.cwd"), value)?);
    if path.is_absolute() {
        return Some(path);
    }
    reader.problem(&value.span(), format!("`{location}.cwd` is not an absolute path"), fix);
    reader.lines.remove(&format!("{location}.cwd"));
    None
}

fn expand_home(text: &str, around: &Surroundings) -> PathBuf {
    match (&around.home, text.strip_prefix('~')) {
        (Some(home), Some("")) => home.clone(),
        (Some(home), Some(rest)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(text),
    }
}

fn read_string(reader: &mut Reader<'_>, location: &str, key: &str, table: &DeTable<'_>) -> Option<String> {
    table.get(key).and_then(|value| reader.string(&format!("{location}.{key}"), value))
}

fn read_pairs(
    reader: &mut Reader<'_>,
    location: &str,
    key: &str,
    table: &DeTable<'_>,
) -> Vec<(String, String)> {
    table.get(key).and_then(|value| reader.pairs(&format!("{location}.{key}"), value)).unwrap_or_default()
}
