//! Finds, reads and checks the configuration.
//!
//! The result is a [`Config`] with the origin of each value, and a list of [`Problem`]s: an invalid value is
//! replaced by its default, an invalid file by all defaults. `cli` applies the command line on top.

pub mod agents;
pub mod catalogue;
pub mod import;
pub mod keymap;
pub mod mcp_file;
pub mod nearest;
pub mod paths;
pub mod project;
mod read;
pub mod save;
pub mod settings;
pub mod show;
mod wire;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

pub use self::paths::Paths;

use self::keymap::Keymap;
use self::read::Reader;
use crate::model::snapshot::UndoRules;
use crate::model::{
    AgentSpec, Callbacks, DEFAULT_REGISTRY, FoldRules, Limit, McpServer, PolicyRules, Rule, Rules,
    SandboxMode, SandboxRules,
};

const TOP_KEYS: &[&str] = &[
    "agent",
    "theme",
    "agents",
    "mcp_servers",
    "callbacks",
    "policy",
    "ui",
    "fold",
    "handover",
    "keys",
    "editor",
    "registry",
    "additional_directories",
    "sessions",
    "sandbox",
    "undo",
    "budget",
];

/// Values of `ui.images`. `auto` detects the protocol; `off` describes images as text.
pub const IMAGE_WAYS: [&str; 6] = ["auto", "kitty", "iterm2", "sixel", "blocks", "off"];

/// The values of `notify`.
pub const NOTIFY_WAYS: [&str; 4] = ["auto", "terminal", "system", "off"];

/// The values of `ui.editing`.
pub const EDITING_STYLES: [&str; 2] = ["emacs", "vim"];

/// The values of `ambiguous_width`. `auto` measures the terminal.
pub const WIDTHS: [&str; 3] = ["auto", "1", "2"];

/// Default of `ui.which_key_delay_ms`.
pub const DEFAULT_WHICH_KEY_DELAY_MS: u64 = 400;

/// Default of `ui.paste_lines`.
pub const DEFAULT_PASTE_LINES: usize = 10;

/// Default of `handover.max_bytes`.
const DEFAULT_HANDOVER_BYTES: usize = 64 << 10;

/// Default of `sessions.warn_mib`.
const DEFAULT_WARN_MIB: u64 = 1024;

/// The effective configuration.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a separate setting")]
pub struct Config {
    pub agents: BTreeMap<String, AgentSpec>,
    /// Settings of known agents that have no command in the configuration, by name.
    pub known_agents: BTreeMap<String, AgentSpec>,
    /// The agent to start with, by name: configured, known to the catalogue, or `demo`.
    pub default_agent: Option<String>,
    pub registry: String,
    /// MCP servers for the agents, in the file's order.
    pub mcp_servers: Vec<McpServer>,
    pub project: Option<project::ProjectSettings>,
    /// Whether the prompt templates of the project are offered; set by its configuration only.
    pub project_templates: bool,
    /// Additional folders for agents, absolute.
    pub additional_directories: Vec<PathBuf>,
    /// Theme name, or `auto` to match the terminal's background.
    pub theme: String,
    /// The command that opens a file, with `{path}` and `{line}`; `None` for `$VISUAL`, then `$EDITOR`.
    pub editor: Option<String>,
    /// Callbacks of agents without their own switches.
    pub callbacks: Callbacks,
    /// Permission policy for requests of agents.
    pub policy: PolicyRules,
    pub sandbox: SandboxRules,
    /// Snapshots of the folders of sessions.
    pub undo: UndoRules,
    /// Limits for a turn or a day.
    pub budget: Vec<Limit>,
    /// Rules about commands and files: the user's, and those of the project.
    pub rules: Rules,
    pub keymap: Keymap,
    /// How the prompt is edited: one of [`EDITING_STYLES`].
    pub editing: String,
    pub mouse: bool,
    pub copy_on_select: bool,
    /// Whether hyperlinks are sent to the terminal; `None` to send them if the terminal is known to support
    /// them.
    pub hyperlinks: Option<bool>,
    /// Image protocol: one of [`IMAGE_WAYS`].
    pub images: String,
    /// Columns of ambiguous characters: one of [`WIDTHS`].
    pub ambiguous_width: String,
    /// Whether the session runs as plain text.
    pub plain: bool,
    pub reduced_motion: bool,
    /// Whether code blocks in messages have line numbers.
    pub code_line_numbers: bool,
    /// Whether the terminal bell rings for events in the background.
    pub bell: bool,
    /// Desktop notifications: one of [`NOTIFY_WAYS`].
    pub notify: String,
    pub title: bool,
    /// Whether the terminal shows progress; `None` to show it if the terminal is known to support it.
    pub progress: Option<bool>,
    /// Delay after which the keys that continue a sequence are listed, in milliseconds.
    pub which_key_delay_ms: u64,
    /// Pasted texts of more lines become attachments; 0: none does.
    pub paste_lines: usize,
    pub folds: FoldRules,
    /// Maximum size of a handed-over conversation, in bytes.
    pub handover_bytes: usize,
    /// Size of the saved sessions in MiB that causes a warning; 0 disables it.
    pub sessions_warn_mib: u64,
    /// Origins of values by dotted name; values without an entry are defaults.
    pub origins: BTreeMap<String, Origin>,
    /// Names of settings whose values in the file are invalid.
    pub invalid: Vec<&'static str>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            project: None,
            agents: BTreeMap::new(),
            known_agents: BTreeMap::new(),
            default_agent: None,
            registry: DEFAULT_REGISTRY.to_owned(),
            mcp_servers: Vec::new(),
            project_templates: true,
            additional_directories: Vec::new(),
            theme: "auto".to_owned(),
            editor: None,
            callbacks: Callbacks::default(),
            policy: PolicyRules::default(),
            budget: Vec::new(),
            sandbox: SandboxRules::default(),
            undo: UndoRules { is_on: true, ..UndoRules::default() },
            rules: Rules::default(),
            keymap: Keymap::defaults(),
            editing: "emacs".to_owned(),
            mouse: true,
            copy_on_select: true,
            hyperlinks: None,
            images: "auto".to_owned(),
            ambiguous_width: "auto".to_owned(),
            plain: false,
            reduced_motion: false,
            code_line_numbers: false,
            bell: true,
            notify: "auto".to_owned(),
            title: true,
            progress: None,
            which_key_delay_ms: DEFAULT_WHICH_KEY_DELAY_MS,
            paste_lines: DEFAULT_PASTE_LINES,
            folds: FoldRules::default(),
            handover_bytes: DEFAULT_HANDOVER_BYTES,
            sessions_warn_mib: DEFAULT_WARN_MIB,
            origins: BTreeMap::new(),
            invalid: Vec::new(),
        }
    }
}

impl Config {
    pub fn with_settings(&self, found: &AgentSpec) -> AgentSpec {
        let Some(own) = self.known_agents.get(&found.name) else {
            return AgentSpec { callbacks: self.callbacks, ..found.clone() };
        };
        let others = found.env.iter().filter(|(name, _)| own.env.iter().all(|(other, _)| other != name));
        AgentSpec {
            command: found.command.clone(),
            args: found.args.clone(),
            env: others.chain(&own.env).cloned().collect(),
            title: own.title.clone().or_else(|| found.title.clone()),
            ..own.clone()
        }
    }

    /// The origin of a value by its dotted name (`agents.claude.command`).
    pub fn origin(&self, name: &str) -> Origin {
        self.origins.get(name).copied().unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    #[default]
    Default,
    File {
        /// The line, from 1.
        line: usize,
    },
    Project {
        /// The line, from 1.
        line: usize,
    },
    Environment(&'static str),
    CommandLine,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: PathBuf,
    /// The line, from 1, if known.
    pub line: Option<usize>,
    pub text: String,
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}; {}", self.text, self.fix)
    }
}

/// Environment for reading a configuration.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The home folder, for `~/`.
    pub home: Option<PathBuf>,
    pub path: Option<OsString>,
}

impl Surroundings {
    pub fn of_process() -> Self {
        let home = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned());
        Self { home, path: environment("PATH") }
    }
}

/// Reads an environment variable; no other function does.
pub fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Reads the configuration file. Invalid files and values are reported and replaced by defaults.
pub fn load(paths: &Paths) -> (Config, Vec<Problem>) {
    match text_of(paths) {
        Ok(text) => read(paths, &text, &Surroundings::of_process()),
        Err(problem) => {
            let mut config = Config::default();
            // A file that does not exist restricted nothing.
            let is_there = paths.config_file.symlink_metadata().is_ok();
            let text = if is_there { "sandbox ports policy budget" } else { "" };
            let closed = fail_closed(&mut config, text, &problem);
            (config, std::iter::once(problem).chain(closed).collect())
        }
    }
}

/// Restricts agents where a part of the file that could not be read may have restricted them.
fn fail_closed(config: &mut Config, text: &str, cause: &Problem) -> Vec<Problem> {
    let problem = |text: &str, fix: &str| Problem { text: text.into(), fix: fix.into(), ..cause.clone() };
    let mut problems = Vec::new();
    if text.contains(settings::SANDBOX_RULES) {
        config.sandbox.mode = SandboxMode::Required;
        if text.contains("ports") {
            config.sandbox.ports.get_or_insert_default();
        }
        for spec in config.agents.values_mut().chain(config.known_agents.values_mut()) {
            spec.sandbox = None;
        }
        let fix = "agents start only in a complete sandbox until the file is corrected";
        problems.push(problem("sandbox settings may be missing", fix));
    }
    if ["policy", "callbacks", "rules"].iter().any(|name| text.contains(name))
        && let Ok(rule) = Rule::parse("ask any")
    {
        config.rules = config.rules.with(vec![rule]);
        problems.push(problem(
            "rules or callbacks may be missing",
            "parlor asks about every request until the file is corrected",
        ));
    }
    if text.contains("budget") {
        problems.push(problem("limits may be missing", "correct the file to apply them"));
    }
    problems
}

/// The text of the configuration file; empty if the file of the default path is missing.
pub fn text_of(paths: &Paths) -> Result<String, Problem> {
    let file = &paths.config_file;
    let problem = |line: Option<usize>, text: String, fix: &str| {
        Err(Problem { file: file.clone(), line, text, fix: fix.to_owned() })
    };
    let bytes = match crate::host::os::private::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if paths.config_origin == Origin::Default {
                return Ok(String::new());
            }
            return problem(None, "file not found".to_owned(), "create it, or pass another path");
        }
        Err(error) => {
            let text = format!("cannot read the file: {error}");
            return problem(None, text, "defaults are used until it can be read");
        }
    };
    String::from_utf8(bytes).or_else(|error| {
        let before = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let text = "the file is not valid UTF-8".to_owned();
        problem(Some(line), text, "save it as UTF-8; defaults are used until then")
    })
}

/// Reads a changed configuration while parlor runs. Invalid values are reported and stay as in `old`; an invalid file is an
/// error.
pub fn reread(
    paths: &Paths,
    text: &str,
    old: &Config,
    around: &Surroundings,
) -> Result<(Config, Vec<Problem>), Problem> {
    let (reader, _) = Reader::parse(&paths.config_file, text.strip_prefix('\u{feff}').unwrap_or(text));
    if let Some(problem) = reader.problems.into_iter().next() {
        return Err(problem);
    }
    let (mut config, problems) = read(paths, text, around);
    // The project's values take precedence over those of the file.
    let of_project = old.origins.iter().filter(|(_, origin)| matches!(origin, Origin::Project { .. }));
    let of_project = of_project.map(|(name, _)| name.as_str());
    for name in std::mem::take(&mut config.invalid).into_iter().chain(of_project) {
        settings::keep(old, &mut config, name);
    }
    config.project.clone_from(&old.project);
    if let Some(project) = &config.project {
        config.rules = config.rules.narrowed_by(&project.rules);
    }
    config.project_templates = old.project_templates;
    Ok((config, problems))
}

pub fn read(paths: &Paths, text: &str, around: &Surroundings) -> (Config, Vec<Problem>) {
    let mut config = Config::default();
    // Some editors add a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut reader, table) = Reader::parse(&paths.config_file, text);
    let table = table.get_ref();
    let syntax_error = reader.problems.first().cloned();
    reader.unknown_keys(table, "the configuration", TOP_KEYS);

    config.invalid = settings::read(&mut reader, table, &mut config);
    if let Some(value) = table.get("policy").and_then(|policy| policy.get_ref().as_table()?.get("rules")) {
        config.rules = read::read_rules(&mut reader, value, read::Author::User);
    }
    if let Some(value) = table.get("additional_directories") {
        config.additional_directories =
            agents::read_folders(&mut reader, "additional_directories", value, around);
    }
    if let Some(value) = table.get("budget") {
        config.budget = read::read_budget(&mut reader, value);
    }
    read_sandbox(&mut reader, table, &mut config, around);
    let off_in = table.get("undo").and_then(|undo| undo.get_ref().get("off_in"));
    if let Some(value) = off_in {
        config.undo.off_in = agents::read_folders(&mut reader, "undo.off_in", value, around);
    }
    if let Some(callbacks) = table.get("callbacks").and_then(|value| reader.table("callbacks", value)) {
        reader.unknown_keys(callbacks, "[callbacks]", agents::CALLBACK_KEYS);
        config.callbacks = agents::read_callbacks(&mut reader, "callbacks", callbacks, config.callbacks);
    }
    if let Some(table) = table.get("agents").and_then(|value| reader.table("agents", value)) {
        agents::read_agents(&mut reader, table, &mut config, &paths.config_folder(), around);
    }
    if let Some(value) = table.get("mcp_servers") {
        config.mcp_servers = agents::read_mcp_servers(&mut reader, value, &paths.config_folder(), around);
    }
    if let Some(keys) = table.get("keys").and_then(|value| reader.table("keys", value)) {
        config.keymap.merge(&mut reader, keys, |line| Origin::File { line });
    }

    let lines = std::mem::take(&mut reader.lines);
    config.origins = lines.into_iter().map(|(name, line)| (name, Origin::File { line })).collect();
    let mut problems = reader.problems;
    problems.extend(syntax_error.into_iter().flat_map(|cause| fail_closed(&mut config, text, &cause)));
    problems.sort_by_key(|problem| problem.line);
    (config, problems)
}

/// Reads the lists of `[sandbox]`. What is invalid does not allow more.
fn read_sandbox(
    reader: &mut Reader<'_>,
    table: &toml::de::DeTable<'_>,
    config: &mut Config,
    around: &Surroundings,
) {
    if config.invalid.contains(&"sandbox.mode") {
        config.sandbox.mode = SandboxMode::Required;
    }
    let Some(table) = table.get("sandbox").and_then(|value| value.get_ref().as_table()) else { return };
    if let Some(value) = table.get("write") {
        config.sandbox.write = agents::read_folders(reader, "sandbox.write", value, around);
    }
    if let Some(value) = table.get("read") {
        config.sandbox.read = agents::read_folders(reader, "sandbox.read", value, around);
    }
    if let Some(value) = table.get("ports") {
        config.sandbox.ports = Some(reader.ports("sandbox.ports", value));
    }
}

#[cfg(test)]
mod tests;
