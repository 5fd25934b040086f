//! The settings screen, key bindings, and a configuration that is read again.

use std::path::PathBuf;

use crate::config::keymap::Context;
use crate::config::{Config, Paths, Surroundings, read, settings};
use crate::core::{ConfigNews, Consequence, Effect, ItemBody, MouseOwner, Setup, ToolCall};
use crate::model::{Action, ConfigJob, Fold, Location, SettingChange, SettingValue};
use crate::ui::Event;
use crate::ui::dialogs::focus;
use crate::ui::dialogs::testkit::Rig;
use crate::ui::dialogs::{Bindings, Layer, LineDialog, Picker, Settings};
use crate::ui::update;

fn paths() -> Paths {
    Paths::find(Some("/etc/parlor/config.toml".into()), Some("/var/lib/parlor".into())).unwrap()
}

fn config(text: &str) -> Config {
    read(&paths(), text, &Surroundings::default()).0
}

/// The fields of the setup that a configuration sets.
fn setup(text: &str) -> Setup {
    let config = config(text);
    let bindings = config.keymap.binding_rows();
    Setup {
        settings: settings::rows(&config, &paths(), &bindings),
        bindings,
        palette: config.keymap.palette(),
        config_file: "/etc/parlor/config.toml".into(),
        theme: config.theme.clone(),
        folds: config.folds,
        mouse: if config.mouse { MouseOwner::Parlor } else { MouseOwner::Terminal },
        policy: config.policy,
        ..Setup::default()
    }
}

fn rig(text: &str) -> Rig {
    let mut rig = Rig::new();
    let new = setup(text);
    let old = &mut rig.state.setup;
    (old.settings, old.bindings, old.palette) = (new.settings, new.bindings, new.palette);
    old.config_file = new.config_file;
    rig
}

/// Opens the settings and selects one.
fn select(rig: &mut Rig, name: &str) {
    rig.act(Action::OpenSettings);
    rig.type_line(name);
    assert_eq!(rig.marked(), name);
}

fn change(name: &str, value: Option<SettingValue>) -> Effect {
    Effect::Configure(ConfigJob::Change(SettingChange::Value { name: name.to_owned(), value }))
}

fn keys(context: &'static str, action: &'static str, keys: Option<&[&str]>) -> Effect {
    let keys = keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect());
    Effect::Configure(ConfigJob::Change(SettingChange::Keys { context, action, keys }))
}

fn news(rig: &mut Rig, text: &str, changed: &[&'static str]) -> Vec<Effect> {
    let setup = Some(Box::new(setup(text)));
    let news = ConfigNews { setup, changed: changed.to_vec(), ..ConfigNews::default() };
    update(&mut rig.app, Event::Config(Box::new(news)), rig.now)
}

#[test]
fn commands_of_other_clients_open_their_counterparts() {
    let mut rig = rig("");
    let mut send = |text: &str| {
        rig.layers.clear();
        rig.type_draft(text);
        let fx = rig.act(Action::Submit);
        (fx, rig.layers.last().and_then(Layer::list).cloned(), rig.session().draft.clone())
    };
    let vim = send("/vim").1.unwrap();
    assert_eq!((vim.title.as_str(), vim.filter.text.as_str()), ("Settings", "ui.editing"));
    assert_eq!(vim.rows[vim.matches[0]].label, "ui.editing");
    assert_eq!(send("/keybindings").1.unwrap().title, "Key bindings");
    let (fx, ..) = send("/editor");
    assert!(fx.iter().any(|effect| matches!(effect, Effect::EditDraft { .. })), "{fx:?}");
    assert_eq!(send("/tasks").2, "/tasks", "nothing is running");
    let now = rig.now;
    let call = ToolCall { title: "cargo test".to_owned(), ..ToolCall::new("t".into(), now) };
    rig.session().transcript.push(1, ItemBody::Tool(Box::new(call)));
    rig.type_draft("/tasks");
    rig.act(Action::Submit);
    assert_eq!(rig.shown(), ["call    cargo test"]);
}

#[test]
fn settings_show_value_origin_and_description() {
    let mut rig = rig("theme = \"nord\"\n[ui]\nbell = false\n");
    rig.act(Action::OpenSettings);
    let picker = rig.picker();
    let row = |name: &str| picker.rows.iter().find(|row| row.label == name).unwrap().clone();
    let (theme, bell, title) = (row("theme"), row("ui.bell"), row("ui.title"));
    assert_eq!((theme.detail.as_str(), theme.right.as_str()), ("nord", "config.toml:1"));
    assert_eq!((bell.detail.as_str(), bell.right.as_str()), ("false", "config.toml:3"));
    assert_eq!((title.detail.as_str(), title.right.as_str(), title.is_current), ("true", "default", false));
    let groups: Vec<_> = picker.rows.iter().filter_map(|row| row.group.clone()).collect();
    assert!(groups.windows(2).filter(|pair| pair[0] != pair[1]).count() + 1 == 7, "{groups:?}");
    assert!(picker.rows.iter().any(|row| row.label == "keys") && row("agents").detail == "none");
    rig.type_line("taskbar");
    assert_eq!(rig.marked(), "ui.progress", "found by its description");
    rig.act(Action::Escape);
    rig.act(Action::OpenSettings);
    rig.type_line("vim");
    assert!(rig.shown().contains(&"ui.editing"), "found by its values");
}

#[test]
fn flags_cycle_and_the_list_stays_open() {
    let mut rig = rig("");
    select(&mut rig, "ui.bell");
    assert_eq!(rig.act(Action::Accept), [change("ui.bell", Some(SettingValue::Flag(false)))]);
    assert!(rig.layers.top::<Picker<Settings>>().is_some());
    news(&mut rig, "[ui]\nbell = false\n", &["ui.bell"]);
    assert_eq!(
        (rig.marked(), rig.picker().rows[rig.picker().matches[0]].detail.as_str()),
        ("ui.bell", "false")
    );
    assert_eq!(rig.act(Action::Accept), [change("ui.bell", Some(SettingValue::Flag(true)))]);
    // A value without a default can be removed again.
    rig.act(Action::Escape);
    select(&mut rig, "ui.progress");
    assert_eq!(rig.act(Action::Accept), [change("ui.progress", Some(SettingValue::Flag(true)))]);
    news(&mut rig, "[ui]\nprogress = false\n", &["ui.progress"]);
    assert_eq!(rig.act(Action::Accept), [change("ui.progress", None)]);
}

#[test]
fn words_numbers_and_texts_are_entered_and_checked() {
    let mut rig = rig("");
    select(&mut rig, "fold.read");
    rig.act(Action::Accept);
    assert_eq!(rig.shown(), ["closed", "preview", "open", "default"]);
    rig.act(Action::Last);
    assert_eq!(rig.act(Action::Accept), [change("fold.read", None)]);
    assert!(rig.layers.top::<Picker<Settings>>().is_some());
    rig.act(Action::Accept);
    rig.type_line("open");
    let open = Some(SettingValue::Text("open".to_owned()));
    assert_eq!(rig.act(Action::Accept), [change("fold.read", open)]);
    rig.act(Action::Escape);
    select(&mut rig, "handover.max_bytes");
    rig.act(Action::Accept);
    rig.edit_line(crate::model::LineEdit::Clear);
    rig.type_line("12");
    assert_eq!(rig.act(Action::Accept), []);
    let Some(line) = rig.layers.top::<LineDialog>() else { panic!("{:?}", rig.layers) };
    assert_eq!(line.problem.as_deref(), Some("Enter an integer of at least 1024."));
    rig.type_line("34");
    let value = Some(SettingValue::Number(1234));
    assert_eq!(rig.act(Action::Accept), [change("handover.max_bytes", value)]);
    assert!(rig.layers.top::<Picker<Settings>>().is_some());
}

#[test]
fn permissions_are_widened_only_after_a_confirmation() {
    let mut rig = rig("");
    select(&mut rig, "policy.ask_commands");
    assert_eq!(rig.act(Action::Accept), []);
    assert_eq!(focus(&rig), Context::Choice);
    assert_eq!(rig.act(Action::Accept), [], "the default is to cancel");
    rig.act(Action::Accept);
    let wanted = change("policy.ask_commands", Some(SettingValue::Flag(false)));
    assert_eq!(rig.act(Action::Yes), [wanted]);
    // To be asked more often needs no confirmation.
    rig.act(Action::Escape);
    select(&mut rig, "policy.ask_writes");
    assert_eq!(rig.act(Action::Accept), [change("policy.ask_writes", Some(SettingValue::Flag(true)))]);
}

#[test]
fn values_with_parts_open_the_file_at_their_line() {
    let mut rig = rig("theme = 'nord'\n[agents.mine]\ncommand = 'x'\n");
    select(&mut rig, "agents.mine");
    let location = Location { path: "/etc/parlor/config.toml".into(), line: Some(3) };
    let folder = PathBuf::from("/etc/parlor");
    assert_eq!(rig.act(Action::Accept), [Effect::OpenFile { location, folder, editor: None }]);
}

#[test]
fn keys_are_captured_and_conflicts_are_confirmed() {
    let mut rig = rig("");
    rig.act(Action::OpenSettings);
    rig.type_line("keys of all commands");
    assert_eq!(rig.marked(), "keys");
    rig.act(Action::Accept);
    rig.type_line("main open-palette");
    assert_eq!(rig.marked(), "Show all commands");
    rig.act(Action::Accept);
    assert_eq!(rig.shown().len(), 4, "nothing to restore");
    rig.act(Action::Accept);
    assert_eq!(focus(&rig), Context::Choice);
    let press = |rig: &mut Rig, keys: &str, taken: Option<(&str, &str)>| {
        let taken = taken.map(|(keys, meaning)| (keys.to_owned(), meaning.to_owned()));
        let event = Event::Captured { keys: keys.to_owned(), label: keys.to_uppercase(), taken };
        let mut fx = update(&mut rig.app, event, rig.now);
        fx.retain(|effect| matches!(effect, Effect::Configure(_)));
        fx
    };
    assert_eq!(press(&mut rig, "f11", None), [keys("main", "open-palette", Some(&["f11"]))]);
    assert!(rig.layers.top::<Picker<Bindings>>().is_some());
    rig.act(Action::Accept);
    rig.act(Action::Down);
    rig.act(Action::Accept);
    assert_eq!(press(&mut rig, "f9 g", Some(("F9", "Select theme"))), []);
    let Some(choice) = rig.state.questions.last() else { panic!("{:?}", rig.layers) };
    assert_eq!(choice.body, ["F9 is bound to: Select theme. F9 G will be bound to: Show all commands."]);
    assert_eq!(choice.answers[1].consequence, Consequence::Close);
    assert_eq!(rig.act(Action::Yes), [keys("main", "open-palette", Some(&["ctrl+p", "f9 g"]))]);
    // As text, and back to the defaults.
    rig.act(Action::Accept);
    rig.type_line("as text");
    rig.act(Action::Accept);
    rig.type_line(", ctrl+x g");
    assert_eq!(rig.act(Action::Accept), [keys("main", "open-palette", Some(&["ctrl+p", "ctrl+x g"]))]);
    news(&mut rig, "[keys.main]\nopen-palette = [\"f11\"]\n", &[]);
    assert_eq!(rig.picker().rows[rig.picker().matches[0]].detail, "F11");
    rig.act(Action::Accept);
    rig.act(Action::Last);
    assert_eq!(rig.act(Action::Accept), [keys("main", "open-palette", None)]);
}

#[test]
fn a_changed_file_applies_and_is_reported() {
    let mut rig = rig("");
    let fx = news(
        &mut rig,
        "theme = 'light'\n[ui]\nmouse = false\n[fold]\nread = 'open'\n[policy]\nask_writes = true\n",
        &["theme", "ui.mouse", "fold.read"],
    );
    assert!(fx.contains(&Effect::SetTheme("light".to_owned())), "{fx:?}");
    assert!(fx.contains(&Effect::CaptureMouse(false)) && rig.mouse == MouseOwner::Terminal);
    assert_eq!(rig.app.shown().folds.kinds[0], Some(Fold::Open));
    assert!(rig.state.setup.policy.ask_writes);
    assert_eq!(rig.state.flash.as_deref(), Some("config.toml: theme, ui.mouse, fold.read changed"));
    // What the user chose in this run stays if its setting did not change.
    rig.state.setup.theme = "paper".to_owned();
    rig.mouse = MouseOwner::Parlor;
    news(&mut rig, "theme = 'light'\n[ui]\nmouse = false\nbell = false\n", &["ui.bell"]);
    assert_eq!((rig.state.setup.theme.as_str(), rig.mouse), ("paper", MouseOwner::Parlor));
}

#[test]
fn a_theme_that_is_being_chosen_is_not_replaced() {
    let mut rig = rig("");
    rig.act(Action::OpenThemes);
    let fx = news(&mut rig, "[ui]\nbell = false\n", &["ui.bell"]);
    assert!(!fx.iter().any(|effect| matches!(effect, Effect::SetTheme(_))), "{fx:?}");
}

#[test]
fn problems_are_reported_and_failures_name_the_file() {
    let mut rig = rig("");
    let news =
        ConfigNews { problems: vec!["config.toml:3: invalid TOML".to_owned()], ..ConfigNews::default() };
    update(&mut rig.app, Event::Config(Box::new(news)), rig.now);
    let text = format!("{:?}", rig.session().transcript.items().last().map(|item| &item.body));
    assert!(text.contains("config.toml:3: invalid TOML"), "{text}");
    let wanted = SettingChange::Value { name: "ui.bell".to_owned(), value: None };
    let news = ConfigNews {
        change: Some((wanted, Err("the file is read-only".to_owned()))),
        ..ConfigNews::default()
    };
    update(&mut rig.app, Event::Config(Box::new(news)), rig.now);
    let Some(choice) = rig.state.questions.last() else { panic!("{:?}", rig.layers) };
    assert_eq!(choice.title, "ui.bell was not changed");
    assert_eq!(choice.body, ["/etc/parlor/config.toml: the file is read-only"]);
}

#[test]
fn permissions_of_a_changed_file_are_asked_about() {
    let mut rig = rig("");
    let news = ConfigNews { held: vec!["policy.ask_commands"], ..ConfigNews::default() };
    update(&mut rig.app, Event::Config(Box::new(news)), rig.now);
    assert!(!rig.takes_answers(), "a key that was meant for the prompt does not answer");
    let Some(choice) = rig.state.questions.last() else { panic!("{:?}", rig.layers) };
    assert!(choice.body[1].starts_with("policy.ask_commands = false: Ask before commands"), "{choice:?}");
    assert_eq!(choice.first, 1);
    rig.wait(2000);
    assert_eq!(rig.act(Action::Yes), [Effect::Configure(ConfigJob::Accept)]);
}

#[test]
fn themes_are_looked_for_when_their_list_opens() {
    let mut rig = rig("");
    let fx = rig.act(Action::OpenThemes);
    assert!(fx.contains(&Effect::Configure(ConfigJob::Reread)), "{fx:?}");
    rig.act(Action::Down);
    let marked = rig.marked().to_owned();
    let mut new = setup("");
    new.themes = rig.state.setup.themes.clone();
    new.themes.insert(0, crate::core::ThemeInfo { name: "mine".to_owned(), is_dark: true });
    let news = ConfigNews { setup: Some(Box::new(new)), ..ConfigNews::default() };
    update(&mut rig.app, Event::Config(Box::new(news)), rig.now);
    let Some(picker) = rig.layers.last().and_then(Layer::list) else { panic!("{:?}", rig.layers) };
    assert!(picker.rows.iter().any(|row| row.label == "mine"), "{:?}", picker.rows);
    assert_eq!(rig.marked(), marked, "the selection stays on its theme");
}
