//! Formats the effective configuration with the origin of each value, as valid TOML.
//!
//! Secrets (by the names of variables and headers) are never shown.

use std::fmt::Write as _;
use std::path::Path;

use toml::Value;

use super::keymap::actions;
use super::settings::{self, SECTIONS};
use super::{Config, Origin, Paths, Problem};
use crate::model::{
    AgentSpec, Callbacks, Carrier, McpServer, Remote, SandboxMode, SettingKind, SettingValue, TokenSource,
    WireSpec, shown_url,
};

/// Formats all effective values, each with its origin as a comment.
pub fn show(config: &Config, paths: &Paths, problems: &[Problem]) -> String {
    let mut out = Out { text: String::new(), config, paths };
    out.paths();
    if !problems.is_empty() {
        out.line("");
        out.line(&format!("# {}:", if problems.len() == 1 { "1 problem" } else { "Problems" }));
        for problem in problems {
            out.line(&format!("# {problem}"));
        }
    }
    out.line("");
    for section in SECTIONS {
        if !section.is_empty() {
            out.head(&format!("[{section}]"));
        }
        if section == "callbacks" {
            out.callbacks(section, config.callbacks, false);
            continue;
        }
        for setting in settings::in_section(section) {
            let key = setting.place().1;
            match (setting.get)(config) {
                Some(SettingValue::Flag(flag)) => out.value(setting.name, key, flag),
                Some(SettingValue::Text(text)) if matches!(setting.kind, SettingKind::File) => {
                    out.value(setting.name, key, list_of(&text));
                }
                Some(SettingValue::Text(text)) => out.value(setting.name, key, text),
                Some(SettingValue::Number(number)) => {
                    out.value(setting.name, key, i64::try_from(number).unwrap_or(i64::MAX));
                }
                None => out.line(&format!("# {key} is not set: {}", setting.unset)),
            }
        }
        if section.is_empty() && !config.additional_directories.is_empty() {
            let folders: Vec<String> = config
                .additional_directories
                .iter()
                .map(|path| path.to_string_lossy().into_owned())
                .collect();
            out.value("additional_directories", "additional_directories", folders);
        }
    }
    if config.origin("templates") != Origin::Default {
        out.line(&format!(
            "# templates of the project are {} # {}",
            if config.project_templates { "on" } else { "off" },
            out.origin(config.origin("templates"))
        ));
    }
    for (name, spec) in config.agents.iter().chain(&config.known_agents) {
        out.agent(name, spec);
    }
    for (index, server) in config.mcp_servers.iter().enumerate() {
        out.server(index, server);
    }
    out.keys();
    out.text
}

/// The list of paths or ports that a setting shows as text.
fn list_of(text: &str) -> Value {
    let item = |word: &str| match word.parse() {
        Ok(port) => Value::Integer(port),
        Err(_) => Value::String(word.to_owned()),
    };
    text.split(", ").filter(|word| *word != "none").map(item).collect::<Vec<_>>().into()
}

struct Out<'a> {
    text: String,
    config: &'a Config,
    paths: &'a Paths,
}

impl Out<'_> {
    fn paths(&mut self) {
        let is_there = self.paths.config_file.exists();
        let note = if is_there { "" } else { ", not found: all values are defaults" };
        let rows = [
            ("config", self.paths.config_file.as_path(), self.origin(self.paths.config_origin) + note),
            ("data", &self.paths.data_dir, self.origin(self.paths.data_origin)),
            ("logs", &self.paths.log_dir, String::new()),
            ("themes", &self.paths.theme_dir, String::new()),
            ("prompts", &self.paths.prompt_dir, String::new()),
        ];
        for (name, path, note) in rows {
            let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
            self.line(&format!("# {name:<7} {}{note}", path.display()));
        }
    }

    fn agent(&mut self, name: &str, spec: &AgentSpec) {
        let location = format!("agents.{name}");
        self.head(&format!("[agents.{}]", key(name)));
        self.optional(&location, "title", spec.title.as_deref());
        self.optional(&location, "editor", spec.editor.as_deref());
        if let Some(remote) = &spec.remote {
            self.remote(&location, remote);
            self.callbacks(&location, spec.callbacks, true);
            self.wire(&location, &spec.wire);
            self.providers(name, &spec.wire);
            return;
        }
        if let Some(ssh) = &spec.ssh {
            self.field(&location, "ssh", ssh.host.as_str());
            self.field(&location, "ssh_args", ssh.args.clone());
            self.optional(&location, "ssh_program", ssh.program.as_deref());
            self.field(&location, "mcp", ssh.gets_servers);
        }
        if !spec.command.is_empty() {
            self.field(&location, "command", spec.command.as_str());
            self.field(&location, "args", shown_arguments(&spec.args));
        }
        self.optional(&location, "sandbox", spec.sandbox.map(SandboxMode::word));
        self.optional(&location, "cwd", spec.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned()));
        self.callbacks(&location, spec.callbacks, spec.ssh.is_some());
        self.wire(&location, &spec.wire);
        self.pairs(&location, "env", &spec.env);
        for (variable, parts) in &spec.env_commands {
            self.field(&location, &format!("env_command.{variable}"), shown_arguments(parts));
        }
        self.providers(name, &spec.wire);
    }

    fn remote(&mut self, location: &str, remote: &Remote) {
        // The query of a URL may contain a secret.
        self.field(location, "url", remote.shown_url());
        let carrier = remote.carrier.map_or("auto", Carrier::word);
        self.field(location, "transport", carrier);
        self.optional(location, "events_url", remote.events_url.as_deref().map(shown_url));
        match &remote.token {
            Some(TokenSource::Env(name)) => {
                self.field(location, "token_env", name.as_str());
            }
            Some(TokenSource::File(path)) => {
                self.field(location, "token_file", path.to_string_lossy().as_ref());
            }
            Some(TokenSource::Command(parts)) => {
                self.field(location, "token_command", shown_arguments(parts));
            }
            None => {}
        }
        self.optional(
            location,
            "ca_file",
            remote.ca_file.as_ref().map(|path| path.to_string_lossy().into_owned()),
        );
        self.pairs(location, "headers", &remote.headers);
        self.field(location, "mcp", remote.gets_servers);
    }

    /// Formats only the values that are set, because most agents need none.
    fn wire(&mut self, location: &str, wire: &WireSpec) {
        let prompt = wire.system_prompt.as_ref();
        let rows: [(&str, Option<Value>); 10] = [
            ("profile", wire.profile.map(|profile| Value::from(profile.name()))),
            ("strict", wire.is_strict.then_some(Value::from(true))),
            ("framing", wire.has_headers.then(|| Value::from("content-length"))),
            ("protocol", (wire.protocol > 0).then(|| Value::from(i64::from(wire.protocol)))),
            ("model", wire.model.as_deref().map(Value::from)),
            ("auto_commits", wire.auto_commits.map(Value::from)),
            ("system_prompt", prompt.map(|prompt| Value::from(prompt.text.as_str()))),
            ("replace_system_prompt", prompt.filter(|prompt| prompt.replaces).map(|_| Value::from(true))),
            ("trace", wire.is_traced.then_some(Value::from(true))),
            ("first_turn", (wire.first_turn > 0).then(|| Value::from(i64::from(wire.first_turn)))),
        ];
        for (key, value) in rows {
            self.optional(location, key, value);
        }
    }

    fn providers(&mut self, name: &str, wire: &WireSpec) {
        for (index, request) in wire.providers.iter().enumerate() {
            let location = format!("agents.{name}.providers.{}", index + 1);
            self.head(&format!("[[agents.{}.providers]]", key(name)));
            self.field(&location, "id", request.id.as_str());
            match &request.target {
                Some(target) => {
                    self.field(&location, "api_type", target.api_type.as_str());
                    self.field(&location, "base_url", target.base_url.as_str());
                    self.pairs(&location, "headers", &target.headers);
                }
                None => self.field(&location, "off", true),
            }
        }
    }

    fn server(&mut self, index: usize, server: &McpServer) {
        let location = format!("mcp_servers.{}", index + 1);
        self.head("[[mcp_servers]]");
        match server {
            McpServer::Stdio { name, command, args, env } => {
                self.field(&location, "name", name.as_str());
                self.field(&location, "command", command.to_string_lossy().as_ref());
                self.field(&location, "args", shown_arguments(args));
                self.pairs(&location, "env", env);
            }
            McpServer::Http { name, url, headers } | McpServer::Sse { name, url, headers } => {
                let kind = if matches!(server, McpServer::Sse { .. }) { "sse" } else { "http" };
                self.field(&location, "name", name.as_str());
                self.field(&location, "type", kind);
                self.field(&location, "url", shown_url(url));
                self.pairs(&location, "headers", headers);
            }
        }
    }

    fn keys(&mut self) {
        self.head("[keys]");
        self.value("keys.preset", "preset", self.config.keymap.preset());
        let mut location = "";
        let entries = self.config.keymap.entries();
        for (context, chord, action, origin) in &entries {
            if *context != location {
                self.head(&format!("[keys.{context}]"));
                location = context;
            }
            self.row(&key(chord), &Value::from(*action), *origin);
        }
        let unbound: Vec<&str> = actions::all()
            .map(|info| info.name)
            .filter(|name| !entries.iter().any(|(_, _, action, _)| action == name))
            .collect();
        if !unbound.is_empty() {
            self.line("");
            self.line(&format!("# Actions without a key: {}", unbound.join(", ")));
        }
    }

    fn callbacks(&mut self, location: &str, callbacks: Callbacks, is_remote: bool) {
        for (name, value) in [
            ("fs_read", callbacks.fs_read),
            ("fs_write", callbacks.fs_write),
            ("terminal", callbacks.terminal),
        ] {
            // The command line takes precedence; then the most specific key, first in the agent's own table.
            let mut names = vec![format!("{location}.{name}")];
            let coarse = name.split_once('_').map(|(coarse, _)| coarse);
            names.extend(coarse.map(|coarse| format!("{location}.{coarse}")));
            if location != "callbacks" {
                names.push(format!("callbacks.{name}"));
                names.extend(coarse.map(|coarse| format!("callbacks.{coarse}")));
            }
            let origin_of = |name: &String| match self.config.origin(name) {
                // The general keys do not apply to an agent on another machine, unless they are on the
                // command line.
                Origin::File { .. } if is_remote && !name.starts_with(location) => Origin::Default,
                origin => origin,
            };
            let origins = || names.iter().map(origin_of);
            let forced = origins().find(|origin| *origin == Origin::CommandLine);
            let set = || origins().find(|origin| *origin != Origin::Default);
            let origin = forced.or_else(set).unwrap_or_default();
            self.row(name, &Value::from(value), origin);
        }
    }

    fn pairs(&mut self, location: &str, table: &str, pairs: &[(String, String)]) {
        for (name, value) in pairs {
            let shown = if is_secret(name) { hidden(value) } else { value.clone() };
            let origin = self.config.origin(&format!("{location}.{table}.{name}"));
            self.row(&format!("{table}.{}", key(name)), &Value::from(shown), origin);
        }
    }

    fn value(&mut self, name: &str, shown: &str, value: impl Into<Value>) {
        let origin = self.config.origin(name);
        self.row(shown, &value.into(), origin);
    }

    /// A key of the table at `location`.
    fn field(&mut self, location: &str, key: &str, value: impl Into<Value>) {
        self.value(&format!("{location}.{key}"), key, value);
    }

    fn optional(&mut self, location: &str, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.field(location, key, value);
        }
    }

    fn row(&mut self, name: &str, value: &Value, origin: Origin) {
        let left = format!("{name} = {value}");
        let _ = writeln!(self.text, "{left:<44} # {}", self.origin(origin));
    }

    fn head(&mut self, head: &str) {
        let _ = writeln!(self.text, "\n{head}");
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn origin(&self, origin: Origin) -> String {
        origin_text(origin, self.paths)
    }
}

/// An origin for display: `default`, `config.toml:12`.
pub fn origin_text(origin: Origin, paths: &Paths) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::File { line } => {
            let file = paths.config_file.file_name().unwrap_or_default();
            format!("{}:{line}", Path::new(file).display())
        }
        Origin::Project { line } => format!("{}:{line}", super::project::NAME),
        Origin::Environment(name) => format!("environment, {name}"),
        Origin::CommandLine => "command line".to_owned(),
    }
}

/// Whether a variable or header holds a secret, by its name.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "AUTH", "CREDENTIAL", "COOKIE"]
        .iter()
        .any(|mark| name.contains(mark))
}

/// The arguments with secret values hidden, by the names of options: `--api-key X`, `--token=X`.
fn shown_arguments(arguments: &[String]) -> Vec<String> {
    let mut hides_next = false;
    let mut shown = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let is_option = argument.starts_with('-');
        // Matches `--token=X` and `Authorization: X`.
        let value = argument.find(['=', ':']).map(|at| argument.split_at(at + 1));
        shown.push(match value {
            Some((name, value)) if is_secret(name) => format!("{name}{}", hidden(value)),
            _ if hides_next && !is_option => hidden(argument),
            _ => argument.clone(),
        });
        hides_next = is_option && !argument.contains('=') && is_secret(argument);
    }
    shown
}

fn hidden(value: &str) -> String {
    format!("(hidden, {} characters)", value.chars().count())
}

/// A TOML key: bare if possible, otherwise quoted.
pub fn key(name: &str) -> String {
    let is_bare = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if is_bare { name.to_owned() } else { Value::from(name).to_string() }
}
