//! Parses the configuration of a project, `.parlor/config.toml`.
//!
//! The file is part of the project, so it may come from anyone: it selects a theme and an agent by name, names MCP
//! servers, switches templates off, and adds rules that deny or ask. Other keys are refused, because they run programs or
//! allow more to agents.
//! Nothing of it is used without the user's consent.

use std::collections::BTreeMap;
use std::path::Path;

use super::nearest::advice;
use super::read::{Author, Reader, read_rules};
use super::{Config, Origin, Problem};
use crate::escape::visible;
use crate::model::Rules;

/// The file's name, in the session's folder.
pub const NAME: &str = ".parlor/config.toml";

const KEYS: &[&str] = &["agent", "mcp_servers", "policy", "templates", "theme"];

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProjectSettings {
    pub theme: Option<String>,
    pub agent: Option<String>,
    pub templates: Option<bool>,
    pub servers: Vec<(String, toml::Value)>,
    /// Rules that deny or ask.
    pub rules: Rules,
    pub lines: BTreeMap<String, usize>,
}

pub fn read(file: &Path, text: &str) -> (ProjectSettings, Vec<Problem>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut reader, table) = Reader::parse(file, text);
    let table = table.get_ref();
    for key in table.keys().filter(|key| !KEYS.contains(&key.get_ref().as_ref())) {
        let otherwise = format!("a project can set {} only; remove it", KEYS.join(", "));
        let fix = advice(key.get_ref(), KEYS.iter().copied(), &otherwise);
        let name = visible(key.get_ref()).into_owned();
        reader.problem(&key.span(), format!("`{name}` is not allowed in a project's configuration"), fix);
    }
    let mut string = |key: &str| table.get(key).and_then(|value| reader.string(key, value));
    let mut settings =
        ProjectSettings { theme: string("theme"), agent: string("agent"), ..ProjectSettings::default() };
    settings.templates = table.get("templates").and_then(|value| reader.boolean("templates", value));
    if let Some(policy) = table.get("policy").and_then(|value| reader.table("policy", value)) {
        for key in policy.keys().filter(|key| key.get_ref() != "rules") {
            let name = visible(key.get_ref()).into_owned();
            let text = format!("`policy.{name}` is not allowed in a project's configuration");
            reader.problem(&key.span(), text, "a project can set policy.rules only; remove it");
        }
        if let Some(value) = policy.get("rules") {
            settings.rules = read_rules(&mut reader, value, Author::Project);
        }
    }
    if let Some(value) = table.get("mcp_servers") {
        // The parsed table borrows the text; the simple form of the values does not.
        let parsed = toml::from_str::<toml::Table>(text).ok();
        let servers = parsed.and_then(|mut table| table.remove("mcp_servers"));
        let servers = servers.and_then(|servers| named_servers(&servers));
        if servers.is_none() {
            let fix = "use [[mcp_servers]] with `name`, and `command` or `url`";
            reader.problem(&value.span(), "`mcp_servers` is not a list of servers with a name", fix);
        }
        settings.servers = servers.unwrap_or_default();
    }
    settings.lines = std::mem::take(&mut reader.lines);
    (settings, reader.problems)
}

fn named_servers(value: &toml::Value) -> Option<Vec<(String, toml::Value)>> {
    let named = |server: &toml::Value| Some((server.get("name")?.as_str()?.to_owned(), server.clone()));
    value.as_array()?.iter().map(named).collect()
}

impl ProjectSettings {
    pub fn sets(&self, name: &str) -> bool {
        match name {
            "theme" => self.theme.is_some(),
            "agent" => self.agent.is_some(),
            _ => false,
        }
    }

    /// Whether there is something to ask about, apart from MCP servers, which are asked about separately.
    pub fn is_empty(&self) -> bool {
        self.theme.is_none() && self.agent.is_none() && self.templates.is_none() && self.rules.is_empty()
    }

    /// Applies the settings, except for those of the command line.
    pub fn apply(&self, config: &mut Config) {
        let line = |key: &str| self.lines.get(key).copied().unwrap_or(1);
        let mut set = |key: &str| {
            let is_free = !matches!(config.origin(key), Origin::CommandLine | Origin::Environment(_));
            if is_free {
                config.origins.insert(key.to_owned(), Origin::Project { line: line(key) });
            }
            is_free
        };
        let (theme, agent, templates) = (
            self.theme.as_ref().filter(|_| set("theme")),
            self.agent.as_ref().filter(|_| set("agent")),
            self.templates.filter(|_| set("templates")),
        );
        if let Some(theme) = theme {
            config.theme.clone_from(theme);
        }
        config.default_agent = agent.cloned().or(config.default_agent.take());
        config.project_templates = templates.unwrap_or(config.project_templates);
        config.rules = config.rules.narrowed_by(&self.rules);
        config.project = Some(self.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (ProjectSettings, Vec<String>) {
        let (settings, problems) = read(Path::new("/w/.parlor/config.toml"), text);
        (settings, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_project_sets_theme_agent_templates_and_servers() {
        let (settings, problems) = parse(
            "theme = \"paper\"\nagent = \"claude\"\ntemplates = false\n[[mcp_servers]]\nname = \"files\"\ncommand = \"sh\"\n",
        );
        assert_eq!(problems, [""; 0]);
        assert_eq!(
            (settings.theme.as_deref(), settings.agent.as_deref(), settings.templates),
            (Some("paper"), Some("claude"), Some(false))
        );
        assert_eq!(settings.servers[0].0, "files");
        assert_eq!(settings.servers[0].1["command"].as_str(), Some("sh"));
        let mut config = Config::default();
        config.origins.insert("theme".into(), Origin::CommandLine);
        settings.apply(&mut config);
        assert_eq!((config.theme.as_str(), config.default_agent.as_deref()), ("auto", Some("claude")));
        assert!(!config.project_templates);
        assert_eq!(config.origin("agent"), Origin::Project { line: 2 });
    }

    #[test]
    fn keys_that_run_programs_or_allow_more_are_refused_by_name() {
        for (text, key) in [
            ("editor = \"sh -c evil\"", "editor"),
            ("agents.x.command = \"evil\"", "agents"),
            ("additional_directories = [\"/\"]", "additional_directories"),
            ("[policy]\nask_commands = false", "policy.ask_commands"),
            ("[callbacks]\nterminal = true", "callbacks"),
            ("[sandbox]\nmode = \"off\"", "sandbox"),
            ("[keys.main]\n\"ctrl+a\" = \"submit\"", "keys"),
            ("[ui]\nplain = true", "ui"),
            ("\"a\\u001b[31m\" = 1", "a⟨U+001B⟩[31m"),
        ] {
            let (settings, problems) = parse(text);
            assert!(settings.is_empty() && settings.servers.is_empty(), "{text}");
            assert!(problems[0].contains(&format!("`{key}` is not allowed")), "{problems:?}");
        }
        let (_, problems) = parse("them = \"x\"\nagent = [\"sh\", \"-c\"]\nmcp_servers = 3\n");
        assert!(problems[0].contains("theme"), "{problems:?}");
        assert!(problems[1].contains("`agent` must be a string"), "{problems:?}");
        assert!(problems[2].contains("not a list of servers"), "{problems:?}");
    }
}
