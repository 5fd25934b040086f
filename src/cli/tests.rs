//! The command line: what it means, what it refuses, and the subcommands that need no terminal.

use std::fs;

use clap::CommandFactory as _;

use super::*;
use crate::model::{Callbacks, Carrier, TokenSource};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
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
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn any_command_can_be_the_agent() {
    let place = Place::new("");
    let spec = place.session(&["--", "gemini", "--acp", "two words"]).agent.unwrap();
    assert_eq!((spec.name.as_str(), spec.command_line().as_str()), ("gemini", "gemini --acp 'two words'"));
    let spec = place.session(&["--agent-command", "my-agent --flag 'two words'"]).agent.unwrap();
    assert_eq!(spec.command_line(), "my-agent --flag 'two words'");
    let spec = place.session(&["--", "./agents/x.sh"]).agent.unwrap();
    assert!(std::path::Path::new(&spec.command).is_absolute(), "the agent may run in another folder");
    assert_eq!(spec.name, "x");
    let spec = place.session(&["--", "config"]).agent.unwrap();
    assert_eq!(spec.command, "config", "behind -- nothing is a command of parlor");
    assert!(place.error(&["--agent-command", "a 'b"]).contains("unclosed quote"));
    assert!(place.error(&["--agent-command", "  "]).contains("is empty"));
}

#[test]
fn agents_go_by_their_names() {
    let place = Place::new(AGENT);
    assert_eq!(place.session(&["--agent", "mine"]).agent.unwrap().command_line(), "/opt/mine --acp");
    assert_eq!(place.session(&[]).agent, None, "nothing named: the user is asked");
    let demo = place.session(&["--agent", "demo"]);
    assert_eq!(demo.agent, Some(demo.demo));
    let demo = place.session(&["demo"]);
    assert_eq!(demo.agent.unwrap().args, ["demo-agent"]);
    let folder = demo.paths.data_dir.join("demo").to_string_lossy().into_owned();
    assert_eq!(demo.demo.env, [("PARLOR_DEMO_DIR".to_owned(), folder)], "its files lie beside parlor's");
    let error = place.error(&["--agent", "mien"]);
    assert!(
        error.contains("unknown agent `mien`")
            && error.contains("mine")
            && error.contains("parlor agents list"),
        "{error}"
    );
    let cli = place.parse(&["--agent", "openoxide"]);
    let error =
        choose::agent_from(&cli, &Config::default(), &[], &AgentSpec::default()).unwrap_err().to_string();
    assert!(error.contains("is not installed; install it so that `openoxide` can be run"), "{error}");
}

#[test]
fn known_agents_on_this_machine_go_by_any_of_their_names() {
    let place = Place::new("");
    let found = [(catalogue::known("claude").unwrap().spec(Callbacks::default()), "Claude".to_owned())];
    for name in ["claude", "claude-acp", "Claude-Code"] {
        let cli = place.parse(&["--agent", name]);
        let spec =
            choose::agent_from(&cli, &Config::default(), &found, &AgentSpec::default()).unwrap().unwrap();
        assert_eq!(spec.command, "claude-agent-acp");
    }
}

#[test]
fn the_configured_default_is_taken_and_a_wrong_one_is_told() {
    let place = Place::new(&format!("agent = \"mine\"\n{AGENT}"));
    assert_eq!(place.session(&[]).agent.unwrap().name, "mine");
    assert_eq!(place.session(&["--agent", "demo"]).agent.unwrap().name, "demo", "the command line wins");
    let session = Place::new(&format!("agent = \"mien\"\n{AGENT}")).session(&[]);
    assert_eq!(session.agent, None);
    let problems: Vec<String> = session.problems.iter().map(ToString::to_string).collect();
    assert!(
        problems.len() == 1 && problems[0].contains("config.toml:1: unknown agent `mien`"),
        "{problems:?}"
    );
}

#[test]
fn folders_are_checked() {
    let place = Place::new("");
    let inner = place.folder.path().join("demo");
    fs::create_dir(&inner).unwrap();
    let session = place.session(&[inner.to_str().unwrap()]);
    assert_eq!(
        (session.folder, session.agent),
        (inner.canonicalize().unwrap(), None),
        "a folder named like a command"
    );
    let session = place.session(&["demo", inner.to_str().unwrap()]);
    assert_eq!(session.folder, inner.canonicalize().unwrap());
    let session = place.session(&[inner.to_str().unwrap(), "--", "agent"]);
    assert_eq!(
        (session.folder, session.agent.unwrap().name),
        (inner.canonicalize().unwrap(), "agent".to_owned())
    );
    assert!(place.error(&["confg"]).contains("did you mean `parlor config`"));
    assert!(place.error(&[place.folder.path().join("config.toml").to_str().unwrap()]).contains("is a file"));
    assert!(place.error(&[inner.to_str().unwrap(), "config"]).contains("before the command"));
}

#[test]
fn options_lie_over_the_configuration_wherever_they_stand() {
    let place = Place::new(&format!("theme = \"light\"\n{AGENT}fs = true\n"));
    let session = place.session(&["--theme", "dark", "--no-fs", "--no-terminal", "--agent", "mine"]);
    assert_eq!(session.config.theme, "dark");
    let none = Callbacks { fs_read: false, fs_write: false, terminal: false };
    assert_eq!(session.agent.unwrap().callbacks, none);
    assert_eq!((session.config.callbacks, session.demo.callbacks), (none, none));
    for args in [["config", "--no-fs"], ["--no-fs", "config"]] {
        let text = place.run(&args).1;
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("fs_read = false")).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines.iter().all(|line| line.ends_with("# command line")), "{text}");
    }
    assert_eq!(place.session(&["--agent", "mine"]).config.theme, "light");
}

#[test]
fn agents_exclude_each_other() {
    for args in [
        vec!["parlor", "--agent", "a", "--agent-command", "b"],
        vec!["parlor", "--agent", "a", "--", "b"],
        vec!["parlor", "--agent-command", "a", "--", "b"],
    ] {
        assert!(Cli::try_parse_from(&args).is_err(), "{args:?}");
    }
}

#[test]
fn a_wrong_configuration_stops_nothing() {
    let session = Place::new("theme = 3\nnonsense").session(&[]);
    assert!(session.problems.len() >= 2, "{:?}", session.problems);
    assert_eq!(session.config.theme, "auto");
}

#[test]
fn config_prints_what_is_in_force() {
    let place = Place::new(AGENT);
    let text = place.run(&["config"]).1;
    assert!(text.contains("[agents.mine]") && text.contains("# config.toml:2"), "{text}");
    assert!(text.contains("(command line)"), "{text}");
}

#[test]
fn config_tells_names_of_nothing() {
    let text = Place::new("theme = \"darkk\"\nagent = \"nobody\"\n").run(&["config"]).1;
    let told: Vec<&str> = text.lines().filter(|line| line.contains("config.toml:")).collect();
    assert!(told.iter().any(|line| line.contains(":1: unknown theme \"darkk\"; use one of")), "{text}");
    assert!(told.iter().any(|line| line.contains(":2: ") && line.contains("nobody")), "{text}");
}

#[test]
fn agents_are_listed_with_their_source() {
    let place = Place::new(AGENT);
    let text = place.run(&["agents", "list"]).1;
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(row("mine").contains("config.toml:2") && row("mine").ends_with("/opt/mine …"), "{text}");
    assert!(row("demo").contains("built in"), "{text}");
    let known: Vec<&str> = text.lines().filter(|line| line.starts_with("claude ")).collect();
    assert_eq!(known.len(), 1, "one row per agent, here or not:\n{text}");
}

#[test]
fn an_import_extends_the_file_and_keeps_its_mode() {
    let place = Place::new("# mine\n");
    let settings = place.folder.path().join("settings.json");
    fs::write(&settings, r#"{ "agent_servers": { "New": { "command": "new", "args": ["acp"] }, }, } // ok"#)
        .unwrap();
    let config = place.folder.path().join("config.toml");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&config, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let (next, out) = place.run(&["agents", "import", settings.to_str().unwrap()]);
    assert!(matches!(next.unwrap(), Next::Nothing));
    assert!(out.contains("added new: new acp") && out.contains("Try `parlor --agent new`."), "{out}");
    assert!(fs::read_to_string(&config).unwrap().starts_with("# mine\n\n[agents.new]\n"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&config).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(place.session(&["--agent", "new"]).agent.unwrap().command_line(), "new acp");
    let (_, out) = place.run(&["agents", "import", settings.to_str().unwrap()]);
    assert!(out.contains("No agents added"), "{out}");
    assert!(place.error(&["agents", "import", "/nowhere.json"]).contains("cannot read /nowhere.json"));
}

#[test]
fn an_import_makes_the_configuration_where_there_is_none() {
    let place = Place::new("");
    let settings = place.folder.path().join("acp.json");
    fs::write(&settings, r#"{ "agent_servers": { "a": { "command": "a" } } }"#).unwrap();
    let config = place.folder.path().join("new/folder/config.toml");
    let paths = Paths::find(Some(config.clone()), Some(place.folder.path().to_owned())).unwrap();
    agents::import(&settings, &paths).unwrap();
    assert_eq!(fs::read_to_string(config).unwrap(), "[agents.a]\ncommand = \"a\"\n");
}

#[test]
fn the_demo_agent_needs_nothing_else() {
    let cli = Cli::try_parse_from(["parlor", "demo-agent", "--data-dir", "/data"]).unwrap();
    match run(&cli, &mut Printer::new(std::io::sink())) {
        Ok(Next::DemoAgent(dir)) => assert_eq!(dir, Path::new("/data/demo")),
        other => panic!("{other:?}"),
    }
    let help = Cli::command().render_long_help().to_string();
    assert!(!help.contains("demo-agent"), "it is nobody's command");
    for wanted in
        ["parlor demo", "--agent-command", "PARLOR_CONFIG", "PARLOR_DATA_DIR", "agents", "--log-file"]
    {
        assert!(help.contains(wanted), "{wanted} is not in the help");
    }
}

#[test]
fn an_agent_behind_a_url_gets_nothing_of_this_machine() {
    let place = Place::new("[agents.far]\nurl = \"https://far/acp\"\ntoken_env = \"FAR\"\nfs = true\n");
    let spec = place.session(&["--connect", "wss://host:8/acp?key=1"]).agent.unwrap();
    assert_eq!((spec.name.as_str(), spec.callbacks), ("host:8", Callbacks::NONE));
    assert_eq!(spec.command_line(), "wss://host:8/acp");
    let spec = place
        .session(&["--connect", "http://h", "--transport", "post", "--token-file", "token"])
        .agent
        .unwrap();
    let remote = spec.remote.unwrap();
    assert_eq!(remote.carrier, Some(Carrier::Post));
    assert!(matches!(remote.token, Some(TokenSource::File(path)) if path.is_absolute()));
    // One that is configured keeps what its configuration says.
    let spec = place.session(&["--connect", "https://far/acp"]).agent.unwrap();
    assert_eq!((spec.name.as_str(), spec.callbacks.fs_read), ("far", true));
    assert_eq!(spec.remote.unwrap().token, Some(TokenSource::Env("FAR".to_owned())));
    let spec = place
        .session(&["--connect", "https://h", "--token-command", "pass 'my agent'", "--ca-file", "ca.pem"])
        .agent
        .unwrap();
    let remote = spec.remote.unwrap();
    let words = ["pass", "my agent"].map(str::to_owned).to_vec();
    assert_eq!(remote.token, Some(TokenSource::Command(words)));
    assert!(remote.ca_file.is_some_and(|path| path.is_absolute() && path.ends_with("ca.pem")));
    assert!(place.error(&["--connect", "https://h", "--token-command", "'"]).contains("unclosed quote"));
    assert!(place.error(&["--connect", "https://h", "--token-command", ""]).contains("is empty"));
    let goes_on = place.session(&["--connect", "https://h", "--continue"]);
    assert!(goes_on.is_agent_named, "the session goes on with the agent that was named");
    // A token that anybody can read on the way is told, and goes all the same.
    let told = |url: &str| {
        let problems = place.session(&["--connect", url, "--token-env", "FAR"]).problems;
        problems.iter().any(|problem| problem.to_string().contains("unencrypted connection"))
    };
    assert!(told("http://host/acp") && !told("http://127.0.0.1/acp") && !told("https://host/acp"));
    let error = place.error(&["--connect", "https://me:hush@host"]);
    assert!(error.contains("contains credentials") && !error.contains("hush"), "{error}");
    assert!(place.error(&["--connect", "host"]).contains("use https://host/path"));
    let list = place.run(&["agents", "list"]).1;
    assert!(list.contains("https://far/acp"), "{list}");
}

#[test]
fn the_words_for_transports_are_those_of_the_model() {
    assert_eq!(CARRIERS, Carrier::ALL.map(Carrier::word));
}

#[test]
fn more_folders_come_from_the_configuration_and_the_command_line() {
    let place = Place::new("");
    let (lib, docs) = (place.folder.path().join("lib"), place.folder.path().join("docs"));
    for folder in [&lib, &docs] {
        fs::create_dir(folder).unwrap();
    }
    let (lib, docs) = (lib.canonicalize().unwrap(), docs.canonicalize().unwrap());
    let config = format!("additional_directories = [\"{}\", \"/no/such\"]\n", lib.display());
    fs::write(place.folder.path().join("config.toml"), config).unwrap();
    let session = place.session(&["--add-dir", docs.to_str().unwrap(), "--add-dir", lib.to_str().unwrap()]);
    assert_eq!(session.more_folders, [lib.clone(), docs.clone()]);
    assert!(
        session
            .problems
            .iter()
            .any(|problem| problem.text.contains("/no/such in `additional_directories` is not a folder"))
    );
    let shown = place.run(&["config"]).1;
    assert!(shown.contains("additional_directories = [") && shown.contains("config.toml:1"), "{shown}");
    // The session's own folder is no other one.
    assert_eq!(place.session(&[lib.to_str().unwrap()]).more_folders, Vec::<PathBuf>::new());
    assert!(place.error(&["--add-dir", "/no/such"]).contains("pass an existing folder to --add-dir"));
    let file = place.folder.path().join("config.toml");
    assert!(place.error(&["--add-dir", file.to_str().unwrap()]).contains("is a file"));
}

#[test]
fn what_is_printed_of_agents_and_settings_is_sanitised_and_holds_no_secret_argument() {
    let place = Place::new(
        "agent = \"x\\u001b]52;c;a\\u0007\"\n[agents.keyed]\ncommand = \"keyed\"\n\
         args = [\"--api-key\", \"sk-SECRET\", \"--token=SECRET2\", \"--header\", \"Authorization: Bearer SECRET3\", \"--acp\"]\n\
         [agents.\"odd\\u001b[31m\\u202e\"]\ncommand = \"odd\\u009b1m\"\n",
    );
    for args in [&["config"][..], &["agents", "list"]] {
        let text = place.run(args).1;
        assert!(text.contains("keyed") && text.contains("odd"), "{text}");
        assert!(!text.contains("SECRET"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}']), "{text:?}");
    }
    assert!(place.run(&["config"]).1.contains("\"--acp\""), "others are shown");
    assert!(place.run(&["agents", "list"]).1.contains("keyed …"));
}
