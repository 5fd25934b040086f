//! The command line: its meaning, errors, and the subcommands that need no terminal.

use std::fs;

use clap::CommandFactory as _;

use super::*;
use crate::config::catalogue;
use crate::host::os::fixtures;
use crate::host::registry::Registry;
use crate::model::{Callbacks, Carrier, TokenSource};

struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config.toml"), config).unwrap();
        Self { folder }
    }

    fn parse(&self, args: &[&str]) -> Cli {
        let config = self.folder.path().join("config.toml");
        let data = self.folder.path().join("data");
        let apart = ["--config", config.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];
        Cli::try_parse_from(["parlor"].iter().chain(&apart).chain(args)).unwrap()
    }

    fn run(&self, args: &[&str]) -> (anyhow::Result<Next>, String) {
        let mut out = Vec::new();
        let next = run(&self.parse(args), &mut Printer::new(&mut out));
        (next, String::from_utf8(out).unwrap())
    }

    fn session(&self, args: &[&str]) -> Session {
        match self.run(args).0.unwrap() {
            Next::Session(session) => *session,
            other => panic!("{other:?}"),
        }
    }

    fn error(&self, args: &[&str]) -> String {
        format!("{:#}", self.run(args).0.unwrap_err())
    }
}

const AGENT: &str = "[agents.mine]\ncommand = \"/opt/mine\"\nargs = [\"--acp\"]\n";

#[test]
fn command_definition_is_valid() {
    Cli::command().debug_assert();
}

#[test]
fn any_command_line_can_start_an_agent() {
    let fixture = Fixture::new("");
    let spec = fixture.session(&["--", "gemini", "--acp", "two words"]).agent.unwrap();
    assert_eq!((spec.name.as_str(), spec.command_line().as_str()), ("gemini", "gemini --acp 'two words'"));
    let spec = fixture.session(&["--agent-command", "my-agent --flag 'two words'"]).agent.unwrap();
    assert_eq!(spec.command_line(), "my-agent --flag 'two words'");
    let spec = fixture.session(&["--", "./agents/x.sh"]).agent.unwrap();
    assert!(std::path::Path::new(&spec.command).is_absolute(), "the agent may run in another folder");
    assert_eq!(spec.name, "x");
    let spec = fixture.session(&["--", "config"]).agent.unwrap();
    assert_eq!(spec.command, "config", "after -- there are no subcommands of parlor");
    assert!(fixture.error(&["--agent-command", "a 'b"]).contains("unclosed quote"));
    assert!(fixture.error(&["--agent-command", "  "]).contains("is empty"));
}

#[test]
fn agents_are_selected_by_name() {
    let fixture = Fixture::new(AGENT);
    assert_eq!(fixture.session(&["--agent", "mine"]).agent.unwrap().command_line(), "/opt/mine --acp");
    assert_eq!(fixture.session(&[]).agent, None, "without a name the user chooses");
    let demo = fixture.session(&["--agent", "demo"]);
    assert_eq!(demo.agent, Some(demo.demo));
    let demo = fixture.session(&["demo"]);
    assert_eq!(demo.agent.unwrap().args, ["demo-agent"]);
    let folder = demo.paths.data_dir.join("demo").to_string_lossy().into_owned();
    assert_eq!(
        demo.demo.env,
        [("PARLOR_DEMO_DIR".to_owned(), folder)],
        "its files are in parlor's data folder"
    );
    let error = fixture.error(&["--agent", "mien"]);
    assert!(
        error.contains("unknown agent `mien`")
            && error.contains("mine")
            && error.contains("parlor agents list"),
        "{error}"
    );
    let cli = fixture.parse(&["--agent", "openoxide"]);
    let error =
        choose::agent_from(&cli, &Config::default(), &[], &AgentSpec::default()).unwrap_err().to_string();
    assert!(error.contains("is not installed; install it so that `openoxide` can be run"), "{error}");
    let cli = fixture.parse(&["--agent", "gemini"]);
    let error =
        choose::agent_from(&cli, &Config::default(), &[], &AgentSpec::default()).unwrap_err().to_string();
    assert!(
        error.contains("not installed; run `parlor agents install gemini`, install it yourself so that"),
        "{error}"
    );
    let cli = fixture.parse(&["--", "claude"]);
    let none = AgentSpec::default();
    let error = choose::agent_from(&cli, &Config::default(), &[], &none).unwrap_err().to_string();
    assert!(error.contains("adapter claude-agent-acp; run `parlor agents install claude`"), "{error}");
    let adapter = [(catalogue::known("claude").unwrap().spec(Callbacks::default()), "Claude".to_owned())];
    let spec = choose::agent_from(&cli, &Config::default(), &adapter, &none).unwrap().unwrap();
    assert_eq!(spec.command, "claude-agent-acp");
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new(folder.path(), "");
    for (arguments, expected) in [
        (&["--", "claude"][..], Some("claude-acp")),
        (&["--agent", "gemini"], Some("gemini")),
        (&["--agent", "openoxide"], None),
        (&["--", "claude", "--acp"], None),
        (&[], None),
    ] {
        let cli = fixture.parse(arguments);
        assert_eq!(
            choose::to_install(&cli, &Config::default(), &[], &registry).as_deref(),
            expected,
            "{arguments:?}"
        );
        assert_eq!(
            choose::to_install(&cli, &Config::default(), &adapter, &registry).filter(|id| id == "claude-acp"),
            None
        );
    }
}

#[test]
fn installed_agents_are_found_by_any_alias() {
    let fixture = Fixture::new("");
    let found = [(catalogue::known("claude").unwrap().spec(Callbacks::default()), "Claude".to_owned())];
    for name in ["claude", "claude-acp", "Claude-Code"] {
        let cli = fixture.parse(&["--agent", name]);
        let spec =
            choose::agent_from(&cli, &Config::default(), &found, &AgentSpec::default()).unwrap().unwrap();
        assert_eq!(spec.command, "claude-agent-acp");
    }
}

#[test]
fn configured_default_agent_is_used_and_unknown_one_is_reported() {
    let fixture = Fixture::new(&format!("agent = \"mine\"\n{AGENT}"));
    assert_eq!(fixture.session(&[]).agent.unwrap().name, "mine");
    assert_eq!(
        fixture.session(&["--agent", "demo"]).agent.unwrap().name,
        "demo",
        "the command line takes precedence"
    );
    let session = Fixture::new(&format!("agent = \"mien\"\n{AGENT}")).session(&[]);
    assert_eq!(session.agent, None);
    let problems: Vec<String> = session.problems.iter().map(ToString::to_string).collect();
    assert!(
        problems.len() == 1 && problems[0].contains("config.toml:1: unknown agent `mien`"),
        "{problems:?}"
    );
}

#[test]
fn invalid_folders_are_rejected() {
    let fixture = Fixture::new("");
    let inner = fixture.folder.path().join("demo");
    fs::create_dir(&inner).unwrap();
    let session = fixture.session(&[inner.to_str().unwrap()]);
    assert_eq!(
        (session.folder, session.agent),
        (inner.canonicalize().unwrap(), None),
        "a folder named like a command"
    );
    let session = fixture.session(&["demo", inner.to_str().unwrap()]);
    assert_eq!(session.folder, inner.canonicalize().unwrap());
    let session = fixture.session(&[inner.to_str().unwrap(), "--", "agent"]);
    assert_eq!(
        (session.folder, session.agent.unwrap().name),
        (inner.canonicalize().unwrap(), "agent".to_owned())
    );
    assert!(fixture.error(&["confg"]).contains("did you mean `parlor config`"));
    assert!(
        fixture.error(&[fixture.folder.path().join("config.toml").to_str().unwrap()]).contains("is a file")
    );
    assert!(fixture.error(&[inner.to_str().unwrap(), "config"]).contains("before the command"));
}

#[test]
fn options_override_the_configuration_in_any_position() {
    let fixture = Fixture::new(&format!("theme = \"light\"\n{AGENT}fs = true\n"));
    let session = fixture.session(&["--theme", "dark", "--no-fs", "--no-terminal", "--agent", "mine"]);
    assert_eq!(session.config.theme, "dark");
    let none = Callbacks { fs_read: false, fs_write: false, terminal: false };
    assert_eq!(session.agent.unwrap().callbacks, none);
    assert_eq!((session.config.callbacks, session.demo.callbacks), (none, none));
    for args in [["config", "--no-fs"], ["--no-fs", "config"]] {
        let text = fixture.run(&args).1;
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("fs_read = false")).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines.iter().all(|line| line.ends_with("# command line")), "{text}");
    }
    assert_eq!(fixture.session(&["--agent", "mine"]).config.theme, "light");
}

#[test]
fn agent_options_are_mutually_exclusive() {
    for args in [
        vec!["parlor", "--agent", "a", "--agent-command", "b"],
        vec!["parlor", "--agent", "a", "--", "b"],
        vec!["parlor", "--agent-command", "a", "--", "b"],
    ] {
        assert!(Cli::try_parse_from(&args).is_err(), "{args:?}");
    }
}

#[test]
fn invalid_configuration_does_not_prevent_startup() {
    let session = Fixture::new("theme = 3\nnonsense").session(&[]);
    assert!(session.problems.len() >= 2, "{:?}", session.problems);
    assert_eq!(session.config.theme, "auto");
}

#[test]
fn config_prints_effective_values() {
    let fixture = Fixture::new(AGENT);
    let text = fixture.run(&["config"]).1;
    assert!(text.contains("[agents.mine]") && text.contains("# config.toml:2"), "{text}");
    assert!(text.contains("(command line)"), "{text}");
}

#[test]
fn config_reports_unknown_names() {
    let text = Fixture::new("theme = \"darkk\"\nagent = \"unknown\"\n").run(&["config"]).1;
    let problems: Vec<&str> = text.lines().filter(|line| line.contains("config.toml:")).collect();
    assert!(problems.iter().any(|line| line.contains(":1: unknown theme \"darkk\"; use one of")), "{text}");
    assert!(problems.iter().any(|line| line.contains(":2: ") && line.contains("unknown")), "{text}");
}

#[test]
fn agents_are_listed_with_their_source() {
    let fixture = Fixture::new(AGENT);
    let text = fixture.run(&["agents", "list"]).1;
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(row("mine").contains("config.toml:2") && row("mine").ends_with("/opt/mine …"), "{text}");
    assert!(row("demo").contains("built in"), "{text}");
    let known: Vec<&str> = text.lines().filter(|line| line.starts_with("claude ")).collect();
    assert_eq!(known.len(), 1, "one row per agent, installed or not:\n{text}");
}

#[test]
fn import_extends_the_file_and_preserves_its_mode() {
    let fixture = Fixture::new("# mine\n");
    let settings = fixture.folder.path().join("settings.json");
    fs::write(&settings, r#"{ "agent_servers": { "New": { "command": "new", "args": ["acp"] }, }, } // ok"#)
        .unwrap();
    let config = fixture.folder.path().join("config.toml");
    fixtures::set_mode(&config, 0o600);
    let (next, out) = fixture.run(&["agents", "import", settings.to_str().unwrap()]);
    assert!(matches!(next.unwrap(), Next::Nothing));
    assert!(out.contains("added new: new acp") && out.contains("Try `parlor --agent new`."), "{out}");
    assert!(fs::read_to_string(&config).unwrap().starts_with("# mine\n\n[agents.new]\n"));
    assert_eq!(fixtures::mode(&config), 0o600);
    assert_eq!(fixture.session(&["--agent", "new"]).agent.unwrap().command_line(), "new acp");
    let (_, out) = fixture.run(&["agents", "import", settings.to_str().unwrap()]);
    assert!(out.contains("No agents added"), "{out}");
    assert!(fixture.error(&["agents", "import", "/nowhere.json"]).contains("cannot read /nowhere.json"));
}

#[test]
fn import_creates_a_missing_configuration() {
    let fixture = Fixture::new("");
    let settings = fixture.folder.path().join("acp.json");
    fs::write(&settings, r#"{ "agent_servers": { "a": { "command": "a" } } }"#).unwrap();
    let config = fixture.folder.path().join("new/folder/config.toml");
    let paths = Paths::find(Some(config.clone()), Some(fixture.folder.path().to_owned())).unwrap();
    agents::import(&settings, &paths).unwrap();
    assert_eq!(fs::read_to_string(config).unwrap(), "[agents.a]\ncommand = \"a\"\n");
}

#[test]
fn demo_agent_command_is_hidden_and_uses_the_data_folder() {
    let cli = Cli::try_parse_from(["parlor", "demo-agent", "--data-dir", "/data"]).unwrap();
    match run(&cli, &mut Printer::new(std::io::sink())) {
        Ok(Next::DemoAgent(dir)) => assert_eq!(dir, Path::new("/data/demo")),
        other => panic!("{other:?}"),
    }
    let help = Cli::command().render_long_help().to_string();
    assert!(!help.contains("demo-agent"), "the command is hidden");
    for wanted in
        ["parlor demo", "--agent-command", "PARLOR_CONFIG", "PARLOR_DATA_DIR", "agents", "--log-file"]
    {
        assert!(help.contains(wanted), "{wanted} is missing in the help");
    }
}

#[test]
fn an_argument_of_several_words_is_the_first_prompt() {
    let fixture = Fixture::new("");
    let inner = fixture.folder.path().join("my code");
    fs::create_dir(&inner).unwrap();
    let folder = inner.to_str().unwrap();
    let given = |arguments: &[&str]| {
        let session = fixture.session(arguments);
        (session.prompt, session.folder == inner.canonicalize().unwrap())
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(given(&["fix the tests"]), (text("fix the tests"), false));
    assert_eq!(given(&["demo", "fix the tests"]), (text("fix the tests"), false));
    assert_eq!(given(&[folder]), (None, true), "a folder with a space");
    assert_eq!(given(&[folder, "test"]), (text("test"), true));
    assert_eq!(given(&["--new", "demo", folder, "fix it"]), (text("fix it"), true));
    assert_eq!(given(&[folder, "fix it", "--", "agent"]), (text("fix it"), true));
    let error = fixture.error(&["fix-tests"]);
    assert!(error.contains("folder not found") && error.contains("`--prompt fix-tests`"), "{error}");
    for (arguments, why) in [
        (&["fix it", "--prompt", "x"][..], "two first prompts"),
        (&["fix it", "now please"], "quote the prompt"),
        (&["nowhere", "fix it"], "an existing folder before the prompt"),
        (&["fix it", "config"], "before the command"),
        (&[" "], "folder not found"),
        (&[".", " "], "is empty"),
        (&["--", "fix the tests"], "no program `fix the tests`"),
    ] {
        let error = fixture.error(arguments);
        assert!(error.contains(why), "{arguments:?}: {error}");
    }
}

#[test]
fn settings_of_a_project_apply_only_if_they_were_allowed() {
    let fixture = Fixture::new("theme = \"dark\"\n");
    let project = fixture.folder.path().join("w");
    fs::create_dir_all(project.join(".parlor")).unwrap();
    let write = |text: &str| fs::write(project.join(".parlor/config.toml"), text).unwrap();
    write("theme = \"sand\"\nagent = \"demo\"\n[policy]\nask_commands = false\n");
    let folder = project.to_str().unwrap();
    let session = fixture.session(&[folder]);
    let question = session.project.unwrap();
    assert_eq!((session.config.theme.as_str(), session.agent), ("dark", None));
    assert!(
        session.problems[0].text.contains("`policy.ask_commands` is not allowed"),
        "{:?}",
        session.problems
    );
    assert_eq!(question.agent.map(|agent| agent.name).as_deref(), Some("demo"));
    assert_eq!(fixture.session(&[folder, "--continue"]).project.unwrap().agent, None, "that of the session");
    crate::host::trust::keep(&question.answer_file, true, &question.file).unwrap();
    let session = fixture.session(&[folder]);
    assert_eq!((session.project, session.config.theme.as_str()), (None, "sand"));
    assert_eq!(session.agent.unwrap().name, "demo");
    assert!(session.config.policy.ask_commands);
    let session = fixture.session(&[folder, "--theme", "light", "--", "agent"]);
    assert_eq!((session.config.theme.as_str(), session.agent.unwrap().name.as_str()), ("light", "agent"));
    write("theme = \"sand\"\n");
    assert!(fixture.session(&[folder]).project.is_some(), "a changed file asks again");
}

#[test]
fn remote_agents_get_no_local_access() {
    let fixture = Fixture::new("[agents.far]\nurl = \"https://far/acp\"\ntoken_env = \"FAR\"\nfs = true\n");
    let spec = fixture.session(&["--connect", "wss://host:8/acp?key=1"]).agent.unwrap();
    assert_eq!((spec.name.as_str(), spec.callbacks), ("host:8", Callbacks::NONE));
    assert_eq!(spec.command_line(), "wss://host:8/acp");
    let spec = fixture
        .session(&["--connect", "http://h", "--transport", "post", "--token-file", "token"])
        .agent
        .unwrap();
    let remote = spec.remote.unwrap();
    assert_eq!(remote.carrier, Some(Carrier::Post));
    assert!(matches!(remote.token, Some(TokenSource::File(path)) if path.is_absolute()));
    // A configured agent with this URL keeps its settings.
    let spec = fixture.session(&["--connect", "https://far/acp"]).agent.unwrap();
    assert_eq!((spec.name.as_str(), spec.callbacks.fs_read), ("far", true));
    assert_eq!(spec.remote.unwrap().token, Some(TokenSource::Env("FAR".to_owned())));
    let spec = fixture
        .session(&["--connect", "https://h", "--token-command", "pass 'my agent'", "--ca-file", "ca.pem"])
        .agent
        .unwrap();
    let remote = spec.remote.unwrap();
    let parts = ["pass", "my agent"].map(str::to_owned).to_vec();
    assert_eq!(remote.token, Some(TokenSource::Command(parts)));
    assert!(remote.ca_file.is_some_and(|path| path.is_absolute() && path.ends_with("ca.pem")));
    assert!(fixture.error(&["--connect", "https://h", "--token-command", "'"]).contains("unclosed quote"));
    assert!(fixture.error(&["--connect", "https://h", "--token-command", ""]).contains("is empty"));
    let resumed = fixture.session(&["--connect", "https://h", "--continue"]);
    assert!(resumed.is_agent_named, "the session continues with the named agent");
    // An unencrypted token causes a warning, not an error.
    let warns = |url: &str| {
        let problems = fixture.session(&["--connect", url, "--token-env", "FAR"]).problems;
        problems.iter().any(|problem| problem.to_string().contains("unencrypted connection"))
    };
    assert!(warns("http://host/acp") && !warns("http://127.0.0.1/acp") && !warns("https://host/acp"));
    let error = fixture.error(&["--connect", "https://me:hush@host"]);
    assert!(error.contains("contains credentials") && !error.contains("hush"), "{error}");
    assert!(fixture.error(&["--connect", "host"]).contains("use https://host/path"));
    let list = fixture.run(&["agents", "list"]).1;
    assert!(list.contains("https://far/acp"), "{list}");
}

#[test]
fn transport_names_match_the_carriers() {
    assert_eq!(args::CARRIERS, Carrier::ALL.map(Carrier::word));
}

#[test]
fn additional_folders_are_merged_from_configuration_and_command_line() {
    let fixture = Fixture::new("");
    let (lib, docs) = (fixture.folder.path().join("lib"), fixture.folder.path().join("docs"));
    for folder in [&lib, &docs] {
        fs::create_dir(folder).unwrap();
    }
    let (lib, docs) = (lib.canonicalize().unwrap(), docs.canonicalize().unwrap());
    let config = format!("additional_directories = [\"{}\", \"/no/such\"]\n", lib.display());
    fs::write(fixture.folder.path().join("config.toml"), config).unwrap();
    let session = fixture.session(&["--add-dir", docs.to_str().unwrap(), "--add-dir", lib.to_str().unwrap()]);
    assert_eq!(session.more_folders, [lib.clone(), docs.clone()]);
    assert!(
        session
            .problems
            .iter()
            .any(|problem| problem.text.contains("/no/such in `additional_directories` is not a folder"))
    );
    let shown = fixture.run(&["config"]).1;
    assert!(shown.contains("additional_directories = [") && shown.contains("config.toml:1"), "{shown}");
    // The session's folder is not also an additional one.
    assert_eq!(fixture.session(&[lib.to_str().unwrap()]).more_folders, Vec::<PathBuf>::new());
    assert!(fixture.error(&["--add-dir", "/no/such"]).contains("pass an existing folder to --add-dir"));
    let file = fixture.folder.path().join("config.toml");
    assert!(fixture.error(&["--add-dir", file.to_str().unwrap()]).contains("is a file"));
}

#[test]
fn printed_configuration_is_sanitised_and_hides_secret_arguments() {
    let fixture = Fixture::new(
        "agent = \"x\\u001b]52;c;a\\u0007\"\n[agents.keyed]\ncommand = \"keyed\"\n\
         args = [\"--api-key\", \"sk-SECRET\", \"--token=SECRET2\", \"--header\", \"Authorization: Bearer SECRET3\", \"--acp\"]\n\
         [agents.\"odd\\u001b[31m\\u202e\"]\ncommand = \"odd\\u009b1m\"\n",
    );
    for args in [&["config"][..], &["agents", "list"]] {
        let text = fixture.run(args).1;
        assert!(text.contains("keyed") && text.contains("odd"), "{text}");
        assert!(!text.contains("SECRET"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}']), "{text:?}");
    }
    assert!(fixture.run(&["config"]).1.contains("\"--acp\""), "other arguments are shown");
    assert!(fixture.run(&["agents", "list"]).1.contains("keyed …"));
}

#[test]
fn a_first_prompt_is_accepted_before_and_after_demo() {
    let fixture = Fixture::new("");
    for args in [&["--prompt", "- fix it", "demo"][..], &["demo", "--prompt", "- fix it"]] {
        assert_eq!(fixture.session(args).prompt.as_deref(), Some("- fix it"), "{args:?}");
    }
    let file = fixture.folder.path().join("task.md");
    fs::write(&file, "Fix it.\n").unwrap();
    let session = fixture.session(&["--prompt-file", file.to_str().unwrap(), "--", "agent", "--prompt", "x"]);
    assert_eq!(session.prompt.as_deref(), Some("Fix it."));
    assert_eq!(fixture.session(&["--", "agent", "--prompt", "x"]).prompt, None, "it belongs to the agent");
    assert!(fixture.error(&["--prompt", " "]).contains("--prompt is empty"));
    assert!(fixture.error(&["--prompt-file", "/no/such"]).starts_with("cannot read /no/such"));
    assert!(fixture.error(&["--prompt", "x", "config"]).contains("starts no session"));
}

#[test]
fn the_first_model_and_mode_are_accepted_before_and_after_demo() {
    let fixture = Fixture::new(AGENT);
    for args in [["-m", "opus", "--mode", "plan", "demo"], ["demo", "--model", "opus", "--mode", "plan"]] {
        let settings = fixture.session(&args).first_settings;
        assert_eq!((settings.model.as_deref(), settings.mode.as_deref()), (Some("opus"), Some("plan")));
    }
    let error = fixture.error(&["--mode", "plan", "sessions", "list"]);
    assert_eq!(error, "unexpected --model or --mode: this command starts no session");
}

#[test]
fn the_demo_accepts_new_and_continue() {
    let cli = Cli::try_parse_from(["parlor", "demo", "--continue"]).unwrap();
    assert_eq!(cli.resume_request(), resume::ResumeRequest::Last);
    let cli = Cli::try_parse_from(["parlor", "demo", "--new"]).unwrap();
    assert_eq!(cli.resume_request(), resume::ResumeRequest::New);
    assert!(Cli::try_parse_from(["parlor", "demo", "--new", "--continue"]).is_err());
}
