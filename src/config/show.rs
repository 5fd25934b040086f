//! Formats the effective configuration with the origin of each value, as valid TOML.
//!
//! Secrets (by the names of variables and headers) are never shown.

use std::fmt::Write as _;
use std::path::Path;

use toml::Value;

use super::keymap::actions;
use super::{Config, Origin, Paths, Problem, fold};
use crate::model::{
    AgentSpec, Callbacks, Carrier, FoldRules, McpServer, Remote, TokenSource, WireSpec, shown_url,
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
    out.value("theme", "theme", config.theme.as_str());
    match &config.default_agent {
        Some(agent) => out.value("agent", "agent", agent.as_str()),
        None => out.line("# agent is not set: choose one at startup"),
    }
    if config.origin("templates") != Origin::Default {
        out.line(&format!(
            "# templates of the project are {} # {}",
            if config.project_templates { "on" } else { "off" },
            out.origin(config.origin("templates"))
        ));
    }
    match &config.editor {
        Some(editor) => out.value("editor", "editor", editor.as_str()),
        None => out.line("# editor is not set: $VISUAL or $EDITOR is used"),
    }
    if !config.additional_directories.is_empty() {
        let folders: Vec<String> =
            config.additional_directories.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        out.value("additional_directories", "additional_directories", folders);
    }
    out.head("[callbacks]");
    out.callbacks("callbacks", config.callbacks, false);
    out.head("[policy]");
    out.value("policy.ask_writes", "ask_writes", config.policy.ask_writes);
    out.value("policy.ask_commands", "ask_commands", config.policy.ask_commands);
    out.value("policy.command_input", "command_input", config.policy.command_input);
    out.head("[ui]");
    out.value("ui.editing", "editing", config.editing.as_str());
    out.value("ui.mouse", "mouse", config.mouse);
    out.value("ui.copy_on_select", "copy_on_select", config.copy_on_select);
    match config.hyperlinks {
        Some(are_shown) => out.value("ui.hyperlinks", "hyperlinks", are_shown),
        None => out.line("# hyperlinks is not set: enabled in terminals known to support them"),
    }
    out.value("ui.images", "images", config.images.as_str());
    out.value("ui.plain", "plain", config.plain);
    out.value("ui.reduced_motion", "reduced_motion", config.reduced_motion);
    out.value("ui.code_line_numbers", "code_line_numbers", config.code_line_numbers);
    let delay = i64::try_from(config.which_key_delay_ms).unwrap_or(i64::MAX);
    out.value("ui.which_key_delay_ms", "which_key_delay_ms", delay);
    let lines = i64::try_from(config.paste_lines).unwrap_or(i64::MAX);
    out.value("ui.paste_lines", "paste_lines", lines);
    out.value("ui.bell", "bell", config.bell);
    out.value("ui.notify", "notify", config.notify.as_str());
    out.value("ui.title", "title", config.title);
    match config.progress {
        Some(is_shown) => out.value("ui.progress", "progress", is_shown),
        None => out.line("# progress is not set: shown in terminals known to support it"),
    }
    out.folds();
    out.head("[handover]");
    out.value("handover.max_bytes", "max_bytes", i64::try_from(config.handover_bytes).unwrap_or(i64::MAX));
    out.head("[sessions]");
    out.value("sessions.warn_mib", "warn_mib", i64::try_from(config.sessions_warn_mib).unwrap_or(i64::MAX));
    let memory = i64::try_from(config.sessions_memory_mib).unwrap_or(i64::MAX);
    out.value("sessions.memory_mib", "memory_mib", memory);
    for (name, spec) in &config.agents {
        out.agent(name, spec);
    }
    for (index, server) in config.mcp_servers.iter().enumerate() {
        out.server(index, server);
    }
    out.keys();
    out.text
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

    fn folds(&mut self) {
        let rules = &self.config.folds;
        self.head("[fold]");
        let mut unset: Vec<&str> = Vec::new();
        for ((name, _), rule) in FoldRules::KINDS.iter().zip(&rules.kinds) {
            match rule {
                Some(rule) => self.value(&format!("fold.{name}"), name, fold::name_of(*rule)),
                None => unset.push(name),
            }
        }
        self.value("fold.changes", "changes", fold::name_of(rules.changes));
        self.value("fold.failed", "failed", fold::name_of(rules.failed));
        self.value("fold.open_up_to_lines", "open_up_to_lines", i64::from(rules.open_up_to_lines));
        self.value("fold.closed_above_lines", "closed_above_lines", i64::from(rules.closed_above_lines));
        self.value("fold.groups", "groups", rules.groups);
        if !unset.is_empty() {
            self.line(&format!("# Tool kinds without a rule: {}", unset.join(", ")));
        }
    }

    fn agent(&mut self, name: &str, spec: &AgentSpec) {
        let place = format!("agents.{name}");
        self.head(&format!("[agents.{}]", key(name)));
        if let Some(title) = self.config.agent_titles.get(name) {
            self.value(&format!("{place}.title"), "title", title.as_str());
        }
        if let Some(editor) = &spec.editor {
            self.value(&format!("{place}.editor"), "editor", editor.as_str());
        }
        if let Some(remote) = &spec.remote {
            self.remote(&place, remote);
            self.callbacks(&place, spec.callbacks, true);
            self.wire(&place, &spec.wire);
            self.providers(name, &spec.wire);
            return;
        }
        if let Some(ssh) = &spec.ssh {
            self.value(&format!("{place}.ssh"), "ssh", ssh.host.as_str());
            self.value(&format!("{place}.ssh_args"), "ssh_args", ssh.args.clone());
            if let Some(program) = &ssh.program {
                self.value(&format!("{place}.ssh_program"), "ssh_program", program.as_str());
            }
            self.value(&format!("{place}.mcp"), "mcp", ssh.gets_servers);
        }
        self.value(&format!("{place}.command"), "command", spec.command.as_str());
        self.value(&format!("{place}.args"), "args", shown_arguments(&spec.args));
        if let Some(cwd) = &spec.cwd {
            self.value(&format!("{place}.cwd"), "cwd", cwd.to_string_lossy().as_ref());
        }
        self.callbacks(&place, spec.callbacks, spec.ssh.is_some());
        self.wire(&place, &spec.wire);
        self.pairs(&place, "env", &spec.env);
        self.providers(name, &spec.wire);
    }

    fn remote(&mut self, place: &str, remote: &Remote) {
        // The query of a URL may contain a secret.
        self.value(&format!("{place}.url"), "url", remote.shown_url());
        let carrier = remote.carrier.map_or("auto", Carrier::word);
        self.value(&format!("{place}.transport"), "transport", carrier);
        if let Some(url) = &remote.events_url {
            self.value(&format!("{place}.events_url"), "events_url", shown_url(url));
        }
        match &remote.token {
            Some(TokenSource::Env(name)) => {
                self.value(&format!("{place}.token_env"), "token_env", name.as_str());
            }
            Some(TokenSource::File(path)) => {
                self.value(&format!("{place}.token_file"), "token_file", path.to_string_lossy().as_ref());
            }
            Some(TokenSource::Command(words)) => {
                self.value(&format!("{place}.token_command"), "token_command", shown_arguments(words));
            }
            None => {}
        }
        if let Some(path) = &remote.ca_file {
            self.value(&format!("{place}.ca_file"), "ca_file", path.to_string_lossy().as_ref());
        }
        self.pairs(place, "headers", &remote.headers);
        self.value(&format!("{place}.mcp"), "mcp", remote.gets_servers);
    }

    /// Formats only the values that are set, because most agents need none.
    fn wire(&mut self, place: &str, wire: &WireSpec) {
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
            if let Some(value) = value {
                self.value(&format!("{place}.{key}"), key, value);
            }
        }
    }

    fn providers(&mut self, name: &str, wire: &WireSpec) {
        for (index, wish) in wire.providers.iter().enumerate() {
            let place = format!("agents.{name}.providers.{}", index + 1);
            self.head(&format!("[[agents.{}.providers]]", key(name)));
            self.value(&format!("{place}.id"), "id", wish.id.as_str());
            match &wish.target {
                Some(target) => {
                    self.value(&format!("{place}.api_type"), "api_type", target.api_type.as_str());
                    self.value(&format!("{place}.base_url"), "base_url", target.base_url.as_str());
                    self.pairs(&place, "headers", &target.headers);
                }
                None => self.value(&format!("{place}.off"), "off", true),
            }
        }
    }

    fn server(&mut self, index: usize, server: &McpServer) {
        let place = format!("mcp_servers.{}", index + 1);
        self.head("[[mcp_servers]]");
        match server {
            McpServer::Stdio { name, command, args, env } => {
                self.value(&format!("{place}.name"), "name", name.as_str());
                self.value(&format!("{place}.command"), "command", command.to_string_lossy().as_ref());
                self.value(&format!("{place}.args"), "args", shown_arguments(args));
                self.pairs(&place, "env", env);
            }
            McpServer::Http { name, url, headers } | McpServer::Sse { name, url, headers } => {
                let kind = if matches!(server, McpServer::Sse { .. }) { "sse" } else { "http" };
                self.value(&format!("{place}.name"), "name", name.as_str());
                self.value(&format!("{place}.type"), "type", kind);
                self.value(&format!("{place}.url"), "url", url.as_str());
                self.pairs(&place, "headers", headers);
            }
        }
    }

    fn keys(&mut self) {
        self.head("[keys]");
        self.value("keys.preset", "preset", self.config.keymap.preset());
        let mut place = "";
        let entries = self.config.keymap.entries();
        for (context, chord, action, origin) in &entries {
            if *context != place {
                self.head(&format!("[keys.{context}]"));
                place = context;
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

    fn callbacks(&mut self, place: &str, callbacks: Callbacks, is_remote: bool) {
        for (name, value) in [
            ("fs_read", callbacks.fs_read),
            ("fs_write", callbacks.fs_write),
            ("terminal", callbacks.terminal),
        ] {
            // The command line takes precedence; then the most specific key, first in the agent's own table.
            let mut names = vec![format!("{place}.{name}")];
            let coarse = name.split_once('_').map(|(coarse, _)| coarse);
            names.extend(coarse.map(|coarse| format!("{place}.{coarse}")));
            if place != "callbacks" {
                names.push(format!("callbacks.{name}"));
                names.extend(coarse.map(|coarse| format!("callbacks.{coarse}")));
            }
            let origin_of = |name: &String| match self.config.origin(name) {
                // The general keys do not apply to an agent on another machine, unless they are on the
                // command line.
                Origin::File { .. } if is_remote && !name.starts_with(place) => Origin::Default,
                origin => origin,
            };
            let origins = || names.iter().map(origin_of);
            let forced = origins().find(|origin| *origin == Origin::CommandLine);
            let set = || origins().find(|origin| *origin != Origin::Default);
            let origin = forced.or_else(set).unwrap_or_default();
            self.row(name, &Value::from(value), origin);
        }
    }

    fn pairs(&mut self, place: &str, table: &str, pairs: &[(String, String)]) {
        for (name, value) in pairs {
            let shown = if is_secret(name) { hidden(value) } else { value.clone() };
            let origin = self.config.origin(&format!("{place}.{table}.{name}"));
            self.row(&format!("{table}.{}", key(name)), &Value::from(shown), origin);
        }
    }

    fn value(&mut self, name: &str, shown: &str, value: impl Into<Value>) {
        let origin = self.config.origin(name);
        self.row(shown, &value.into(), origin);
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
        match origin {
            Origin::Default => "default".to_owned(),
            Origin::File { line } => {
                let file = self.paths.config_file.file_name().unwrap_or_default();
                format!("{}:{line}", Path::new(file).display())
            }
            Origin::Project { line } => format!("{}:{line}", super::project::NAME),
            Origin::Environment(name) => format!("environment, {name}"),
            Origin::CommandLine => "command line".to_owned(),
        }
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
