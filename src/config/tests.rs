//! The configuration file: values, origins, problems, and the output of `parlor config`.

use std::path::Path;

use super::*;
use crate::config::show::show;
use crate::model::{FoldRules, Limit, SettingKind, SettingValue};

const DOCUMENTS: [(&str, &str); 2] = [
    ("docs/configuration.md", include_str!("../../docs/configuration.md")),
    ("docs/agents.md", include_str!("../../docs/agents.md")),
];

fn paths() -> Paths {
    Paths::find(Some("/etc/parlor/config.toml".into()), Some("/var/lib/parlor".into())).unwrap()
}

fn around() -> Surroundings {
    Surroundings { home: Some("/home/ada".into()), path: Some("/bin:/usr/bin".into()) }
}

fn parse(text: &str) -> (Config, Vec<String>) {
    let (config, problems) = read(&paths(), text, &around());
    (config, problems.iter().map(ToString::to_string).collect())
}

const WHOLE: &str = r#"
theme = "light"
agent = "mine"

[callbacks]
terminal = false

[ui]
mouse = false

[agents.mine]
title = "My agent"
command = "~/bin/agent"
args = ["--acp"]
cwd = "~"
env = { TOKEN = "abc", LEVEL = 3 }
fs = false
fs_read = true
terminal = true

[agents.other]
command = "tools/agent"

[[mcp_servers]]
name = "files"
command = "sh"
args = ["-c", "true"]

[[mcp_servers]]
name = "docs"
url = "https://example.org/mcp"
headers = { Authorization = "Bearer xyz" }

[[mcp_servers]]
name = "old"
type = "sse"
url = "http://localhost:1234/sse"
"#;

#[test]
fn a_mirror_of_the_registry_is_read_from_the_file() {
    let (config, problems) = parse("registry = \"https://example.org/registry.json\"");
    assert_eq!((config.registry.as_str(), problems), ("https://example.org/registry.json", Vec::new()));
    let (config, problems) = parse("registry = 1");
    assert_eq!((config.registry.as_str(), problems.len()), (crate::model::DEFAULT_REGISTRY, 1));
}

#[test]
fn a_complete_file_is_parsed() {
    let (config, problems) = parse(WHOLE);
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!((config.theme.as_str(), config.default_agent.as_deref()), ("light", Some("mine")));
    assert!(!config.mouse && !config.reduced_motion);
    assert_eq!(config.callbacks, Callbacks { fs_read: true, fs_write: true, terminal: false });
    let mine = config.agents.get("mine").unwrap();
    assert_eq!(
        *mine,
        AgentSpec {
            name: "mine".to_owned(),
            title: Some("My agent".to_owned()),
            command: "/home/ada/bin/agent".to_owned(),
            args: vec!["--acp".to_owned()],
            env_commands: Vec::new(),
            env: vec![("TOKEN".to_owned(), "abc".to_owned()), ("LEVEL".to_owned(), "3".to_owned())],
            cwd: Some("/home/ada".into()),
            callbacks: Callbacks { fs_read: true, fs_write: false, terminal: true },
            wire: crate::model::WireSpec::default(),
            remote: None,
            ssh: None,
            editor: None,
            sandbox: None,
            bounds: None,
        }
    );
    let other = config.agents.get("other").unwrap();
    assert_eq!(
        other.command, "/etc/parlor/tools/agent",
        "relative paths are resolved in the configuration's folder"
    );
    assert_eq!(other.callbacks, config.callbacks, "the general callbacks apply if the agent sets none");
    let [
        McpServer::Stdio { command, args, .. },
        McpServer::Http { headers, .. },
        McpServer::Sse { name, .. },
    ] = config.mcp_servers.as_slice()
    else {
        panic!("{:?}", config.mcp_servers)
    };
    assert!(command.is_absolute() && command.ends_with("sh") && args.len() == 2);
    assert_eq!(headers.as_slice(), [("Authorization".to_owned(), "Bearer xyz".to_owned())]);
    assert_eq!(name, "old");
}

#[test]
fn a_known_agent_takes_settings_without_a_command() {
    let text = "[agents.claude-code]\ntitle = 'Work'\nenv = { A = '2', B = '3' }\n\
        env_command = { KEY = \"pass show 'a b'\", OTHER = ['~/bin/key', '-x'] }\n\
        [agents.x]\nurl = 'https://h'\nenv_command = { KEY = 'k' }\n";
    let (config, problems) = parse(text);
    let reported: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(
        reported.len() == 1 && reported[0].contains("`env_command` of `agents.x` applies only to"),
        "{reported:?}"
    );
    assert!(!config.agents.contains_key("claude"), "parlor finds its command");
    let found = AgentSpec {
        name: "claude".to_owned(),
        command: "/found/claude".to_owned(),
        env: vec![("A".to_owned(), "1".to_owned()), ("C".to_owned(), "4".to_owned())],
        ..AgentSpec::default()
    };
    let spec = config.with_settings(&found);
    assert_eq!((spec.shown_name(), spec.command.as_str()), ("Work", "/found/claude"));
    let env: Vec<String> = spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(env, ["C=4", "A=2", "B=3"]);
    let commands: Vec<(&str, String)> =
        spec.env_commands.iter().map(|(name, parts)| (name.as_str(), parts.join("|"))).collect();
    assert_eq!(commands, [("KEY", "pass|show|a b".to_owned()), ("OTHER", "/home/ada/bin/key|-x".to_owned())]);
    assert_eq!(config.with_settings(&spec), spec, "settings are applied once");
    let other = AgentSpec { name: "gemini".to_owned(), ..AgentSpec::default() };
    assert_eq!(config.with_settings(&other).callbacks, config.callbacks);
}

#[test]
fn editor_is_parsed_as_a_command_line() {
    let (config, problems) = parse("editor = \"code -g {path}:{line}\"");
    assert_eq!((config.editor.as_deref(), problems), (Some("code -g {path}:{line}"), Vec::new()));
    assert_eq!(parse("").0.editor, None);
    assert!(
        parse("editor = 3").1.first().is_some_and(|problem| problem.contains("`editor` must be a string"))
    );
}

#[test]
fn values_have_line_numbers() {
    let (config, _) = parse(WHOLE);
    assert_eq!(config.origin("theme"), Origin::File { line: 2 });
    assert_eq!(config.origin("agents.mine.command"), Origin::File { line: 13 });
    assert_eq!(config.origin("agents.mine.env.LEVEL"), Origin::File { line: 16 });
    assert_eq!(config.origin("mcp_servers.2.url"), Origin::File { line: 31 });
    assert_eq!(config.origin("ui.reduced_motion"), Origin::Default);
}

#[test]
fn code_line_numbers_can_be_enabled() {
    assert!(!parse("").0.code_line_numbers);
    let (config, problems) = parse("[ui]\ncode_line_numbers = true\n");
    assert_eq!((config.code_line_numbers, problems), (true, Vec::new()));
}

#[test]
fn fold_rules_are_parsed_and_shown() {
    use crate::model::Fold;
    let text = "[fold]\nread = \"preview\"\nfailed = \"open\"\nclosed_above_lines = 200\ngroups = false\n";
    let (config, problems) = parse(text);
    assert_eq!(problems, Vec::<String>::new());
    let mut rules = FoldRules::default();
    rules.kinds[0] = Some(Fold::Preview);
    (rules.failed, rules.closed_above_lines, rules.groups) = (Fold::Open, 200, false);
    assert_eq!(config.folds, rules);
    let (again, _) = parse(&show(&config, &paths(), &[]));
    assert_eq!(again.folds, rules);
}

#[test]
fn an_empty_file_has_default_values() {
    for text in ["", "\u{feff}", "# nothing\n"] {
        assert_eq!(parse(text), (Config::default(), Vec::new()));
    }
}

#[test]
fn invalid_values_are_reported_with_their_line_and_others_apply() {
    for (text, wanted) in [
        (
            "theme = 3",
            "/etc/parlor/config.toml:1: `theme` must be a string, not an integer; use theme = \"…\"",
        ),
        ("theme = ''", "/etc/parlor/config.toml:1: `theme` is empty; set a value, or remove the line"),
        (
            "thme = 'dark'",
            "/etc/parlor/config.toml:1: unknown key `thme` in the configuration; did you mean `theme`?",
        ),
        ("[ui]\nmouse = 'no'", ":2: `ui.mouse` must be true or false, not a string; use mouse = true"),
        ("[ui]\nmuose = true", ":2: unknown key `muose` in [ui]; did you mean `mouse`?"),
        ("[fold]\nread = 'opne'", ":2: unknown value `opne` for `read`; did you mean `open`?"),
        ("[fold]\nfailed = true", ":2: `fold.failed` must be a string"),
        ("[fold]\nopen_up_to_lines = -1", ":2: `fold.open_up_to_lines` is out of range"),
        (
            "[handover]\nmax_bytes = 10",
            ":2: `handover.max_bytes` is out of range; use max_bytes = 1024 or more",
        ),
        ("[handover]\nmax_bytes = 'x'", ":2: `handover.max_bytes` must be an integer, not a string"),
        (
            "[sessions]\nmemory_mib = 16",
            ":2: `memory_mib` has no effect; remove it; sessions are read as a whole",
        ),
        ("[sessions]\nwarn_mib = -1", ":2: `sessions.warn_mib` is out of range; use warn_mib = 0 or more"),
        ("[callbacks]\nfs = 1", ":2: `callbacks.fs` must be true or false, not an integer"),
        ("[callbacks]\nfs-read = true", "did you mean `fs_read`"),
        ("agents = 1", "`agents` must be a table"),
        ("[agents.x]\n", ":1: `agents.x` has no command; add command"),
        (
            "[agents.x]\ncommand = 'a'\nenv_command = { A = [] }",
            "invalid command in `agents.x.env_command.A`",
        ),
        ("[agents.x]\ncommand = 1", ":2: `agents.x.command` must be a string"),
        (
            "[agents.x]\ncomand = 'a'\ncommand = 'a'",
            ":2: unknown key `comand` in [agents.x]; did you mean `command`?",
        ),
        (
            "[agents.x]\ncommand = 'a'\nargs = 'b'",
            ":3: `agents.x.args` must be a list of strings, not a string",
        ),
        (
            "[agents.x]\ncommand = 'a'\nargs = ['b', [1]]",
            ":3: `agents.x.args` must be a list of strings, not an array",
        ),
        ("[agents.x]\ncommand = 'a'\nenv = ['b']", ":3: `agents.x.env` must be a table of strings"),
        ("[agents.x]\ncommand = 'a'\nenv = { A = [] }", "`agents.x.env.A` must be a string"),
        (
            "[agents.x]\ncommand = 'a'\ncwd = 'b'",
            ":3: `agents.x.cwd` is not an absolute path; use a path that starts with / or ~/",
        ),
        ("[agents.x]\ncommand = 'gemini --acp'", "use command = \"gemini\" and args = [\"--acp\"]"),
        ("[agents.\"\"]\ncommand = 'a'", "empty agent name"),
        ("mcp_servers = 1", "`mcp_servers` must be a list of tables; use [[mcp_servers]]"),
        ("[[mcp_servers]]\ncommand = 'sh'", ":1: MCP server has no name"),
        (
            "[[mcp_servers]]\nname = 'a'\ntype = 'htp'\nurl = 'http://x'",
            ":3: unknown MCP server type `htp`; did you mean `http`?",
        ),
        ("[[mcp_servers]]\nname = 'a'\nurl = 'x'", ":3: invalid URL `x`"),
        ("[[mcp_servers]]\nname = 'a'\ntype = 'http'", "MCP server `a` has no URL"),
        (
            "[[mcp_servers]]\nname = 'a'\ncommand = 'sh'\nurl = 'http://x'\ntype = 'stdio'",
            ":4: `url` does not apply",
        ),
        (
            "[[mcp_servers]]\nname = 'a'\ncommand = 'surely-not-there'",
            ":3: MCP server `a`: program `surely-not-there` not found",
        ),
        (
            "[[mcp_servers]]\nname = 'a'\ncommand = 'sh'\n[[mcp_servers]]\nname = 'a'\ncommand = 'sh'",
            ":4: duplicate MCP server `a`",
        ),
    ] {
        let rest = "\n[agents.fine]\ncommand = 'fine'\n";
        let whole = if text.starts_with("agents =") { text.to_owned() } else { format!("{text}{rest}") };
        let (config, problems) = parse(&whole);
        assert_eq!(problems.len(), 1, "{text}: {problems:#?}");
        assert!(problems.iter().all(|problem| problem.contains(wanted)), "{text}: {problems:#?}");
        assert_eq!(config.theme, "auto");
        assert!(config.mouse && config.callbacks == Callbacks::default());
        assert_eq!(config.agents.contains_key("fine"), !text.starts_with("agents ="), "{text}");
    }
}

#[test]
fn syntax_errors_are_reported_and_the_rest_is_parsed() {
    let (config, problems) = parse("theme = \n[ui]\nmouse = false\n[agents.a]\ncommand = \"a\"\n");
    assert!(problems.iter().any(|problem| problem.contains("config.toml:1: invalid TOML")), "{problems:?}");
    assert!(!config.mouse);
    assert!(config.agents.contains_key("a"));
    let (_, problems) = parse("theme = 'a'\ntheme = 'b'\n");
    assert!(
        problems.iter().any(|problem| problem.contains(":2: invalid TOML: duplicate key")),
        "{problems:?}"
    );
}

#[test]
fn a_command_with_arguments_is_split() {
    let (config, _) = parse("[agents.x]\ncommand = \"gemini --acp 'two words'\"\n");
    assert_eq!(config.agents.get("x").unwrap().args, ["--acp", "two words"]);
}

#[test]
fn unreadable_files_fall_back_to_strict_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &Path, origin| {
        let mut paths = Paths::find(Some(path.to_owned()), Some(folder.path().to_owned())).unwrap();
        paths.config_origin = origin;
        load(&paths)
    };
    let missing = folder.path().join("missing.toml");
    assert_eq!(
        at(&missing, Origin::Default),
        (Config::default(), Vec::new()),
        "a missing default file is not a problem"
    );
    let (config, problems) = at(&missing, Origin::CommandLine);
    assert_eq!((config, problems.len()), (Config::default(), 1));
    assert!(
        problems.iter().any(|problem| problem.text == "file not found"),
        "a missing custom file is a problem"
    );

    let assert_strict = |config: &Config| {
        assert_eq!((config.sandbox.mode, config.rules.iter().count()), (SandboxMode::Required, 1));
        assert_eq!(config.theme, "auto");
    };
    let (config, problems) = at(folder.path(), Origin::Default);
    assert_strict(&config);
    assert_eq!(problems.len(), 4, "a folder is not a file");

    let binary = folder.path().join("binary.toml");
    std::fs::write(&binary, b"theme = 'dark'\n\xff\n").unwrap();
    let (config, problems) = at(&binary, Origin::Default);
    assert_strict(&config);
    assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [Some(2); 4]);
}

#[test]
fn shown_configuration_can_be_parsed_again() {
    let (mut config, _) =
        parse(&format!("{WHOLE}\n[keys.main]\n\"ctrl+z\" = \"none\"\n\"alt+x\" = \"kill-command\"\n"));
    let text = show(&config, &paths(), &[]);
    let (mut again, problems) = parse(&text);
    assert_eq!(problems, Vec::<String>::new(), "{text}");
    // Origins differ, and secrets are hidden.
    assert_eq!(again.keymap.entries().len(), config.keymap.entries().len());
    for config in [&mut config, &mut again] {
        config.origins.clear();
        config.keymap = Keymap::defaults();
        for spec in config.agents.values_mut() {
            spec.env.retain(|(name, _)| name != "TOKEN");
        }
        if let Some(McpServer::Http { headers, .. }) = config.mcp_servers.get_mut(1) {
            headers.clear();
        }
    }
    assert_eq!(again, config);
}

#[test]
fn shown_configuration_has_origins_and_no_secrets() {
    let (config, _) = parse(WHOLE);
    let problem = Problem { file: "/f".into(), line: Some(1), text: "a".to_owned(), fix: "b".to_owned() };
    let text = show(&config, &paths(), &[problem]);
    let has = |left: &str, right: &str| {
        let found = text.lines().any(|line| line.starts_with(left) && line.ends_with(right));
        assert!(found, "{left} … {right} is missing in:\n{text}");
    };
    has("theme = \"light\"", "# config.toml:2");
    has("reduced_motion = false", "# default");
    has("fs_write = false", "# config.toml:17");
    has("terminal = false", "# config.toml:6");
    has("env.TOKEN = \"(hidden, 3 characters)\"", "# config.toml:16");
    has("\"ctrl+p\" = \"open-palette\"", "# default");
    has("# config  /etc/parlor/config.toml (command line", ")");
    has("# /f:1: a; b", "");
    has("# Actions without a key:", "");
    assert!(!text.contains("xyz"), "a header's value is shown");
}

/// The TOML blocks of a document.
fn examples(document: &str) -> Vec<&str> {
    document.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn examples_in_the_documentation_are_valid() {
    for (name, document) in DOCUMENTS {
        let all = examples(document);
        assert!(!all.is_empty(), "{name}");
        for example in all {
            // Replaces a program that may not be installed on the test machine.
            let (_, problems) = parse(&example.replace("command = \"npx\"", "command = \"sh\""));
            assert_eq!(problems, Vec::<String>::new(), "{name}:\n{example}");
        }
    }
}

#[test]
fn every_setting_is_documented() {
    let text: String = DOCUMENTS.iter().map(|(_, document)| *document).collect();
    let (config, _) = parse("");
    let shown = show(&config, &paths(), &[]);
    let settings = shown.split("[keys.").next().unwrap().lines();
    let shown = settings.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = "));
    let keys = shown
        .map(|(key, _)| key)
        .chain(TOP_KEYS.iter().copied().filter(|key| !settings::SECTIONS.contains(key)));
    let keys = keys.chain(agents::AGENT_KEYS.iter().copied()).chain(agents::SERVER_KEYS.iter().copied());
    for key in keys.chain(wire::KEYS.iter().copied()) {
        let names = [format!("`{key}`"), format!(".{key}`")];
        assert!(names.iter().any(|name| text.contains(name)), "`{key}` is not documented");
    }
}

/// The settings as rows of the documentation: name, default, meaning.
fn documented() -> Vec<String> {
    let defaults = Config::default();
    let row = |setting: &settings::Setting| {
        let default = match (setting.get)(&defaults) {
            Some(SettingValue::Text(text)) => format!("`\"{text}\"`"),
            Some(value) => format!("`{}`", value.text()),
            None => String::new(),
        };
        let choices = match setting.kind {
            SettingKind::Word(choices) if !setting.name.starts_with("fold.") => {
                format!(": {}", choices.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "))
            }
            _ => String::new(),
        };
        let unset =
            if setting.unset.is_empty() { String::new() } else { format!("; by default {}", setting.unset) };
        let gap = if default.is_empty() { " " } else { "" };
        format!(
            "| `{}` |{gap}{}| {}{unset}{choices} |",
            setting.name,
            if default.is_empty() { String::new() } else { format!(" {default} ") },
            setting.about
        )
    };
    settings::SETTINGS.iter().map(row).collect()
}

/// `PARLOR_SETTINGS=write cargo test --lib documented_settings_match_the_table` updates the rows.
#[test]
fn documented_settings_match_the_table() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let mut text = std::fs::read_to_string(&file).unwrap();
    let is_writing = std::env::var_os("PARLOR_SETTINGS").is_some_and(|value| value == "write");
    for wanted in documented() {
        let start = wanted.split_inclusive('|').take(2).collect::<String>();
        let found = text.lines().find(|line| line.starts_with(&start)).map(str::to_owned);
        let found = found.unwrap_or_else(|| panic!("docs/configuration.md has no row {start}"));
        if is_writing {
            text = text.replace(&found, &wanted);
        } else {
            assert_eq!(found, wanted, "run PARLOR_SETTINGS=write cargo test --lib documented_settings");
        }
    }
    if is_writing {
        std::fs::write(&file, &text).unwrap();
    }
    let mut rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let is_known = |name: &str| {
        name.starts_with("callbacks.fs") || name == settings::RULES || settings::named(name).is_some()
    };
    assert!(rows.all(|(name, _)| !name.contains('.') || is_known(name)), "a row for an unknown setting");
    let folds = settings::in_section("fold").map(|setting| setting.place().1);
    for (setting, (kind, _)) in folds.zip(FoldRules::KINDS) {
        assert_eq!(setting, kind);
    }
}

#[test]
fn settings_can_be_read_and_set() {
    let mut config = Config::default();
    for setting in settings::SETTINGS.iter().filter(|setting| setting.name != "keys.preset") {
        let value = match setting.kind {
            SettingKind::Flag => SettingValue::Flag((setting.get)(&config) != Some(SettingValue::Flag(true))),
            SettingKind::Number(min) => SettingValue::Number(min + 7),
            SettingKind::Word(choices) => SettingValue::Text(choices[1].to_owned()),
            _ if setting.name == settings::BUDGET => SettingValue::Text("turn 1 min, day 2.5 USD".to_owned()),
            _ if setting.name == "sandbox.ports" => SettingValue::Text("443, 80".to_owned()),
            _ => SettingValue::Text("other".to_owned()),
        };
        (setting.set)(&mut config, Some(value.clone()));
        assert_eq!((setting.get)(&config), Some(value), "{}", setting.name);
        settings::keep(&Config::default(), &mut config, setting.name);
        assert_eq!((setting.get)(&config), (setting.get)(&Config::default()), "{}", setting.name);
    }
    assert_eq!(config, Config::default());
    let presets: Vec<&str> = keymap::PRESETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        settings::named("keys.preset").map(|setting| setting.kind),
        Some(SettingKind::Word(presets.leak()))
    );
}

#[test]
fn invalid_limits_are_reported_and_removed_ones_are_held_back() {
    let (old, problems) = parse("budget = [\"turn 30 min\", \"week 3 h\"]\n");
    assert_eq!(old.budget, [Limit::parse("turn 30 min").unwrap()]);
    assert!(problems[0].contains("invalid limit `week 3 h`"), "{problems:?}");
    let (mut new, _) = parse("budget = [\"turn 60 min\"]\n");
    assert_eq!(settings::hold_back(&old, &mut new, None), [settings::BUDGET]);
    assert!(new.budget.contains(&old.budget[0]), "{:?}", new.budget);
    let (mut more, _) = parse("budget = [\"turn 30 min\", \"day 1 h\"]\n");
    assert_eq!(settings::hold_back(&old, &mut more, None), [] as [&str; 0]);
}

#[test]
fn ambiguous_width_is_a_word_or_a_number() {
    for (value, expected) in [("\"auto\"", "auto"), ("\"2\"", "2"), ("1", "1")] {
        let (config, problems) = parse(&format!("[ui]\nambiguous_width = {value}\n"));
        assert_eq!((config.ambiguous_width.as_str(), problems), (expected, Vec::new()));
    }
    let (config, problems) = parse("[ui]\nambiguous_width = 3\n");
    assert_eq!((config.ambiguous_width.as_str(), problems.len()), ("auto", 1));
}

#[test]
fn notify_accepts_its_former_values() {
    for (value, expected) in
        [("true", "terminal"), ("false", "off"), ("\"auto\"", "auto"), ("\"off\"", "off")]
    {
        let (config, problems) = parse(&format!("[ui]\nnotify = {value}\n"));
        assert_eq!((config.notify.as_str(), problems), (expected, Vec::new()), "{value}");
    }
    let (config, problems) = parse("[ui]\nnotify = \"of\"\nprogress = false\ntitle = false\n");
    assert_eq!((config.notify.as_str(), config.progress, config.title), ("auto", Some(false), false));
    assert!(
        problems[0].contains("unknown value `of` for `notify`") && problems[0].contains("off"),
        "{problems:?}"
    );
}

#[test]
fn a_wider_sandbox_is_held_back() {
    let strict = "[sandbox]\nmode = \"required\"\nwrite = [\"~/x\"]\nports = [443]\n";
    let (old, _) = parse(strict);
    for (change, to, is_held) in [
        ("\"required\"", "\"workspace\"", true),
        ("mode = \"required\"\n", "", true),
        ("ports = [443]", "", true),
        ("[443]", "[443, 22]", true),
        ("[\"~/x\"]", "[\"~/x\", \"~/.ssh\"]", true),
        ("ports", "read = [\"~/.ssh\"]\nports", true),
        ("[443]", "[]", false),
        ("write = [\"~/x\"]", "", false),
    ] {
        let (mut new, problems) = parse(&strict.replace(change, to));
        assert!(problems.is_empty(), "{problems:?}");
        let held = settings::hold_back(&old, &mut new, None);
        assert_eq!(held == [settings::SANDBOX_RULES], is_held, "{change} {to}");
        assert_eq!(new.sandbox == old.sandbox, is_held, "{change} {to}");
    }
    let (mut new, _) = parse("");
    assert_eq!(settings::hold_back(&old, &mut new, Some("sandbox.mode")), [] as [&str; 0], "the user did it");
}

#[test]
fn a_file_that_cannot_be_read_whole_allows_no_more() {
    let good = "[policy]\nrules = ['deny run \"rm *\"']\n[sandbox]\nmode = \"workspace\"\nports = [443]\n";
    for text in [good.replace("[sandbox]", "[sandbox"), good.replace("[policy]", "[policy")] {
        let (config, problems) = parse(&text);
        assert_eq!(config.sandbox.mode, SandboxMode::Required, "{text}");
        assert!(config.sandbox.ports.is_some_and(|ports| ports.iter().all(|port| *port == 443)), "{text}");
        let ruling = config.rules.judge(crate::model::Subject::Other, &crate::model::RuleContext::default());
        assert_eq!(ruling.map(|ruling| ruling.action), Some(crate::model::RuleAction::Ask), "{text}");
        assert!(
            problems.iter().any(|problem| problem.contains("until the file is corrected")),
            "{problems:?}"
        );
    }
    let (config, problems) = parse("theme = \n");
    assert_eq!((config.sandbox.mode, config.rules.is_empty()), (SandboxMode::Off, true));
    assert!(!problems.iter().any(|problem| problem.contains("until the file is corrected")), "{problems:?}");
}

#[test]
fn an_invalid_sandbox_is_the_strictest_one() {
    let (config, problems) = parse(
        "[sandbox]\nmode = \"workspace\"\nwrite = [\"~/x\"]\nports = [443]\n[agents.a]\ncommand = \"a\"\nsandbox = \"off\"\n",
    );
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(config.sandbox.mode, SandboxMode::Workspace);
    let shown = show(&config, &paths(), &[]);
    assert!(shown.contains("ports = [443]") && shown.contains("write = [\"/home/ada/x\"]"), "{shown}");
    assert_eq!((config.sandbox.write, config.sandbox.ports), (vec!["/home/ada/x".into()], Some(vec![443])));
    assert_eq!(config.agents["a"].sandbox, Some(SandboxMode::Off));
    let (config, problems) =
        parse("[sandbox]\nmode = \"requird\"\nports = \"x\"\n[agents.a]\ncommand = \"a\"\nsandbox = true\n");
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert_eq!((config.sandbox.mode, config.sandbox.ports), (SandboxMode::Required, Some(Vec::new())));
    assert_eq!(config.agents["a"].sandbox, Some(SandboxMode::Required));
}
