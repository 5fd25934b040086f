//! The configuration while a session runs: its file is changed by parlor, and by others.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::host::os::fixtures;
use crate::model::{PolicyRules, SettingValue};

struct Rig {
    _root: tempfile::TempDir,
    file: PathBuf,
    themes: PathBuf,
    configure: Configure,
}

impl Rig {
    fn new(text: &str, options: Options) -> Self {
        Self::in_project(text, options, "")
    }

    fn in_project(text: &str, options: Options, project: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("config.toml");
        fs::write(&file, text).unwrap();
        let paths = Paths::find(Some(file.clone()), Some(root.path().join("data"))).unwrap();
        let themes = paths.theme_dir.clone();
        fs::create_dir(&themes).unwrap();
        let (mut config, _) = config::load(&paths);
        options.apply(&mut config);
        let facts = Facts {
            paths,
            options,
            find: |_| Vec::new(),
            demo: AgentSpec { name: "demo".to_owned(), ..AgentSpec::default() },
            project: Some(config::project::read(Path::new("/w/.parlor/config.toml"), project).0),
            colors: ColorSupport::TrueColor,
        };
        let configure = configure(facts, Vec::new(), config, ThemeSet::built_in());
        Self { _root: root, file, themes, configure }
    }

    fn write(&self, text: &str) -> Option<Reloaded> {
        fs::write(&self.file, text).unwrap();
        (self.configure)(ConfigJob::Reread)
    }

    fn set(&self, name: &str, value: SettingValue) -> Reloaded {
        let change = SettingChange::Value { name: name.to_owned(), value: Some(value) };
        (self.configure)(ConfigJob::Change(change)).unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }
}

#[test]
fn an_unknown_theme_is_reported_and_the_former_one_stays() {
    let rig = Rig::new("theme = \"light\"\n", Options::default());
    let reloaded = rig.write("# mine\ntheme = \"nonesuch\"\n").unwrap();
    assert_eq!(setup(&reloaded).theme, "light");
    let [problem] = reloaded.news.problems.as_slice() else { panic!("{:?}", reloaded.news.problems) };
    assert!(problem.contains("config.toml:2: unknown theme \"nonesuch\""), "{problem}");
    assert_eq!(reloaded.news.changed, [""; 0]);
}

fn setup(reloaded: &Reloaded) -> &Setup {
    reloaded.news.setup.as_deref().unwrap()
}

#[test]
fn a_changed_file_is_read_once() {
    let rig = Rig::new("# mine\n", Options::default());
    assert!((rig.configure)(ConfigJob::Reread).is_none(), "nothing changed");
    let outcome = rig.write("theme = 'nord'\n[ui]\nreduced_motion = true\n").unwrap();
    assert_eq!(outcome.news.changed, ["theme", "ui.reduced_motion"]);
    assert_eq!(setup(&outcome).theme, "nord");
    assert!(outcome.live.unwrap().reduced_motion);
    assert!((rig.configure)(ConfigJob::Reread).is_none());
}

#[test]
fn a_change_is_written_and_applies_at_once() {
    let rig = Rig::new("# mine\n", Options::default());
    let outcome = rig.set("ui.bell", SettingValue::Flag(false));
    assert!(matches!(outcome.news.change, Some((_, Ok(())))), "{:?}", outcome.news);
    assert!(!outcome.live.unwrap().attention.bell);
    assert_eq!(rig.text(), "# mine\n\n[ui]\nbell = false\n");
    assert!((rig.configure)(ConfigJob::Reread).is_none(), "the watcher finds nothing new");
}

#[test]
fn the_project_overrides_the_file_until_the_user_chooses() {
    let rig = Rig::in_project("theme = 'nord'\n", Options::default(), "theme = 'paper'\n");
    let row = |reloaded: &Reloaded| {
        let rows = &setup(reloaded).settings;
        let row = rows.iter().find(|row| row.name == "theme").unwrap();
        (row.shown.clone(), row.origin.clone(), row.is_overridden)
    };
    let used = (rig.configure)(ConfigJob::UseProject).unwrap();
    assert_eq!(row(&used), ("paper".into(), ".parlor/config.toml:1".into(), false));
    let other = rig.write("theme = 'dark'\n").unwrap();
    assert_eq!(row(&other).0, "paper");
    let chosen = rig.set("theme", SettingValue::Text("nord".into()));
    assert_eq!(row(&chosen), ("nord".into(), "config.toml:1".into(), true));
    assert_eq!(setup(&chosen).theme, "nord");
}

#[test]
fn a_broken_file_keeps_the_former_values() {
    let rig = Rig::new("theme = 'nord'\n", Options::default());
    let outcome = rig.write("theme = 'dark'\n[ui\n").unwrap();
    assert!(outcome.live.is_none() && outcome.news.setup.is_none());
    let problem = &outcome.news.problems[0];
    assert!(problem.contains("config.toml:2: invalid TOML"), "{problem}");
    // A change is refused and the file stays.
    let outcome = rig.set("ui.bell", SettingValue::Flag(false));
    let Some((_, Err(why))) = &outcome.news.change else { panic!("{:?}", outcome.news) };
    assert!(why.starts_with("line 2: invalid TOML"), "{why}");
    assert_eq!(rig.text(), "theme = 'dark'\n[ui\n");
    // An invalid value stays as it was, the others apply.
    let outcome = rig.write("theme = 3\n[ui]\nbell = false\n").unwrap();
    assert_eq!(
        (outcome.news.changed.as_slice(), setup(&outcome).theme.as_str()),
        (["ui.bell"].as_slice(), "nord")
    );
    assert!(
        outcome.news.problems[0].contains("config.toml:1: `theme` must be a string"),
        "{:?}",
        outcome.news
    );
    fs::remove_file(&rig.file).unwrap();
    let outcome = (rig.configure)(ConfigJob::Reread).unwrap();
    assert!(outcome.live.is_none() && outcome.news.problems[0].contains("file not found"));
}

#[test]
fn a_file_that_cannot_be_written_is_reported() {
    let rig = Rig::new("", Options::default());
    fixtures::set_mode(&rig.file, 0o444);
    let outcome = rig.set("ui.bell", SettingValue::Flag(false));
    assert!(outcome.live.is_none());
    assert!(matches!(outcome.news.change, Some((_, Err(why))) if why == "the file is read-only"));
}

#[test]
fn the_command_line_overrides_a_changed_file() {
    let options = Options { theme: Some("light".to_owned()), no_terminal: true, ..Options::default() };
    let rig = Rig::new("", options);
    let outcome = rig.write("theme = 'nord'\n[callbacks]\nterminal = true\n").unwrap();
    assert_eq!(outcome.news.changed, Vec::<&str>::new());
    let setup = setup(&outcome);
    assert!(!setup.callbacks.terminal && setup.agents.iter().all(|choice| !choice.spec.callbacks.terminal));
    let theme = setup.settings.iter().find(|row| row.name == "theme").unwrap();
    assert_eq!((theme.shown.as_str(), theme.origin.as_str()), ("light", "command line"));
}

#[test]
fn wider_permissions_apply_only_when_the_user_agrees() {
    let rig = Rig::new("[policy]\nask_writes = true\n", Options::default());
    let text = "[policy]\nask_writes = false\nask_commands = false\n";
    let outcome = rig.write(text).unwrap();
    assert_eq!(outcome.news.held, ["policy.ask_writes", "policy.ask_commands"]);
    assert_eq!(
        setup(&outcome).policy,
        PolicyRules { ask_writes: true, ask_commands: true, ..PolicyRules::default() }
    );
    // The question is not repeated for another change.
    let outcome = rig.write(&format!("theme = 'nord'\n{text}")).unwrap();
    assert_eq!((outcome.news.held.len(), setup(&outcome).policy.ask_commands), (0, true));
    // A change on the screen was confirmed there.
    let outcome = rig.set("policy.ask_commands", SettingValue::Flag(false));
    assert_eq!(
        setup(&outcome).policy,
        PolicyRules { ask_writes: true, ask_commands: false, ..PolicyRules::default() }
    );
    let outcome = (rig.configure)(ConfigJob::Accept).unwrap();
    assert_eq!(
        setup(&outcome).policy,
        PolicyRules { ask_writes: false, ask_commands: false, ..PolicyRules::default() }
    );
    // Narrower ones apply at once.
    let outcome = rig.write("[policy]\nask_writes = true\n").unwrap();
    assert_eq!(
        setup(&outcome).policy,
        PolicyRules { ask_writes: true, ask_commands: true, ..PolicyRules::default() }
    );
}

#[test]
fn changed_themes_apply_and_broken_ones_do_not() {
    let rig = Rig::new("theme = 'mine'\n", Options::default());
    let mine = rig.themes.join("mine.toml");
    fs::write(&mine, "inherits = 'dark'\n[palette]\naccent = '#010203'\n").unwrap();
    let first = (rig.configure)(ConfigJob::Reread).unwrap();
    assert!(setup(&first).themes.iter().any(|theme| theme.name == "mine"));
    let first = (first.live.unwrap().themes)("mine");
    fs::write(&mine, "inherits = 'dark'\n[palette]\naccent = '#0a0b0c'\n").unwrap();
    let second = ((rig.configure)(ConfigJob::Reread).unwrap().live.unwrap().themes)("mine");
    assert_ne!(first.name, second.name, "the name tells layouts of the former colors apart");
    assert_ne!(Some(&first), Some(&second));
    fs::write(&mine, "inherits = \n").unwrap();
    let outcome = (rig.configure)(ConfigJob::Reread).unwrap();
    assert!(outcome.live.is_none() && outcome.news.problems[0].contains("mine"), "{:?}", outcome.news);
}

#[test]
fn new_agents_are_offered() {
    let rig = Rig::new("", Options::default());
    let outcome = rig.write("[agents.mine]\ncommand = 'x'\n").unwrap();
    let names: Vec<&str> = setup(&outcome).agents.iter().map(|choice| choice.spec.name.as_str()).collect();
    assert_eq!(names, ["mine", "demo"]);
}
