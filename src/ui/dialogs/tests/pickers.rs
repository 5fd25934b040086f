//! Pickers: rows, filter, choice.

use crate::config::keymap::Context;
use crate::core::{Cx, Effect, SessionPhase};
use crate::model::{
    Action, AgentCapabilities, AgentCommand, AuthKind, AuthMethod, AuthVar, Call, ConfigChoice, ConfigJob,
    ConfigKind, ConfigOption, ConfigValue, LineEdit, Mode, Modes, Provider, ProviderTarget, SessionId,
    SettingChange, SettingValue,
};
use crate::ui::Event;
use crate::ui::dialogs::palette::Palette;
use crate::ui::dialogs::testkit::{Rig, agent, commands};
use crate::ui::dialogs::{Agents, Layer, LineDialog, Options, Picker};
use crate::ui::dialogs::{OptionValues, PickerRow};
use crate::ui::dialogs::{focus, obstacle, open_agents};
use crate::ui::update;

fn info(rig: &mut Rig) -> &mut crate::model::AgentInfo {
    let conn = rig.session().conn.expect("a connection");
    rig.state.conns.get_mut(&conn).and_then(|conn| conn.info.as_mut()).expect("info")
}

fn calls(fx: &[Effect]) -> Vec<&Call> {
    let call = |effect| match effect {
        &Effect::Send(_, AgentCommand::Call(_, ref call)) => Some(call),
        _ => None,
    };
    fx.iter().filter_map(call).collect()
}

fn select(id: &str, category: &str, current: &str, values: &[(&str, Option<&str>)]) -> ConfigOption {
    let choice = |(value, group): &(&str, Option<&str>)| ConfigChoice {
        value: (*value).to_owned(),
        name: format!("Value {value}"),
        description: None,
        group: group.map(str::to_owned),
    };
    ConfigOption {
        id: id.to_owned(),
        name: format!("Option {id}"),
        description: None,
        category: Some(category.to_owned()),
        kind: ConfigKind::Select {
            current: current.to_owned(),
            choices: values.iter().map(choice).collect(),
        },
    }
}

#[test]
fn agents_are_grouped_and_the_last_one_is_marked() {
    let mut rig = Rig::new();
    rig.state.setup.last_agent = Some("demo".to_owned());
    let mut cx = Cx::new(rig.now);
    open_agents(&mut rig, &mut cx);
    assert_eq!(rig.shown(), ["Agent one", "Agent two", "Agent demo"]);
    assert_eq!(rig.marked(), "Agent demo");
    let groups: Vec<_> = rig.picker().rows.iter().filter_map(|row| row.group.as_deref()).collect();
    assert_eq!(groups, ["Configured", "Found on this machine", "Built in"]);
    assert_eq!(rig.picker().rows[2].right, "last used here");
    assert_eq!(rig.picker().rows[2].detail, "demo, no account needed");
}

#[test]
fn choosing_an_agent_starts_it_and_remembers_it_for_the_folder() {
    let mut rig = Rig::new();
    rig.session().conn = None;
    rig.act(Action::OpenAgents);
    rig.type_line("two");
    assert_eq!(rig.shown(), ["Agent two"]);
    let fx = rig.act(Action::Accept);
    let saved = Effect::SaveAgentChoice { folder: "/home/u/shop".into(), agent: "two".to_owned() };
    assert!(fx.contains(&saved), "{fx:?}");
    assert!(fx.iter().any(|effect| matches!(effect, Effect::Connect { spec, .. } if spec.name == "two")));
    assert!(rig.layers.is_empty());
}

#[test]
fn a_filter_without_hits_takes_nothing() {
    let mut rig = Rig::new();
    rig.act(Action::OpenAgents);
    rig.type_line("zzz");
    assert!(rig.shown().is_empty());
    for action in [Action::Accept, Action::Down, Action::Up, Action::Last, Action::Mark(3)] {
        assert_eq!(rig.act(action), Vec::new(), "{action:?}");
    }
    rig.edit_line(LineEdit::Clear);
    assert_eq!(rig.shown().len(), 3);
}

#[test]
fn the_mark_goes_round_and_pages_stop() {
    let mut rig = Rig::new();
    rig.act(Action::OpenAgents);
    for (action, marked) in [
        (Action::Up, "Agent demo"),
        (Action::Down, "Agent one"),
        (Action::Down, "Agent two"),
        (Action::PageDown, "Agent demo"),
        (Action::PageUp, "Agent one"),
        (Action::Last, "Agent demo"),
        (Action::First, "Agent one"),
        (Action::Mark(1), "Agent two"),
        (Action::Scroll(1), "Agent demo"),
    ] {
        rig.act(action);
        assert_eq!(rig.marked(), marked, "{action:?}");
    }
}

#[test]
fn digits_belong_to_the_filter() {
    let mut rig = Rig::new();
    rig.state.setup.agents.push(agent("gpt5", "found"));
    rig.act(Action::OpenAgents);
    rig.act(Action::Choose(5));
    assert_eq!(rig.picker().filter.text, "5");
    assert_eq!(rig.shown(), ["Agent gpt5"]);
}

#[test]
fn the_palette_offers_only_what_makes_sense() {
    let mut rig = Rig::new();
    rig.state.setup.palette = commands(&[
        (Action::ForkSession, "Fork"),
        (Action::RenameSession, "Rename"),
        (Action::OpenSessions, "Sessions"),
        (Action::OpenModels, "Models"),
        (Action::OpenModes, "Modes"),
        (Action::OpenOptions, "Options"),
        (Action::SignOut, "Sign out"),
        (Action::OpenQueue, "Queue"),
        (Action::OpenHelp, "Help"),
    ]);
    rig.act(Action::OpenPalette);
    assert_eq!(
        rig.shown(),
        ["Fork", "Rename", "Sessions", "Sign out", "Help"],
        "in the order of their groups"
    );
    rig.act(Action::OpenPalette);
    assert!(rig.layers.is_empty());
    info(&mut rig).capabilities = AgentCapabilities::default();
    rig.act(Action::OpenPalette);
    assert_eq!(rig.shown(), ["Rename", "Sessions", "Help"], "parlor lists and names sessions itself");
    rig.act(Action::Last);
    rig.act(Action::Accept);
    assert_eq!(focus(&rig), Context::Text);
    assert_eq!(rig.layers.len(), 1);
}

#[test]
fn commands_are_found_by_other_words() {
    let mut rig = Rig::new();
    rig.run_turn();
    rig.state.setup.palette = crate::config::keymap::Keymap::defaults().palette();
    rig.session().modes = Some(Modes {
        current: "a".into(),
        available: vec![Mode { id: "a".into(), name: "A".into(), description: None }],
    });
    rig.session().history.push("before".to_owned());
    rig.session().outbox.enqueue("later".to_owned());
    rig.session().transcript.push(
        1,
        crate::core::ItemBody::Notice {
            kind: crate::model::NoticeKind::Other,
            severity: crate::model::Severity::Info,
            title: "one".to_owned(),
            detail: None,
        },
    );
    rig.session().options = vec![select("x", "other", "a", &[("a", None)])];
    for (typed, wanted) in [
        ("exit", Action::Quit),
        ("quit", Action::Quit),
        ("resume", Action::OpenSessions),
        ("continue", Action::OpenSessions),
        ("settings", Action::OpenOptions),
        ("config", Action::OpenOptions),
        ("export", Action::ExportSession),
        ("diff", Action::OpenChanges),
        ("history", Action::OpenHistory),
        ("cancel", Action::CancelTurn),
        ("queue", Action::OpenQueue),
        ("debug", Action::OpenLog),
        ("inbox", Action::OpenAttention),
        ("thinking", Action::ToggleThoughts),
        ("context", Action::OpenConnection),
        ("usage", Action::OpenConnection),
        ("logout", Action::SignOut),
        ("theme", Action::OpenThemes),
        ("mode", Action::OpenModes),
        ("clear", Action::NewSession),
        ("new", Action::NewSession),
        ("copy", Action::OpenCopy),
        ("help", Action::OpenHelp),
    ] {
        rig.act(Action::OpenPalette);
        rig.type_line(typed);
        let palette = rig.layers.top::<Picker<Palette>>().unwrap();
        assert_eq!(palette.marked(), Some(&wanted), "{typed}: {:?}", rig.shown());
        rig.act(Action::Escape);
    }
}

#[test]
fn what_fits_the_moment_comes_first_in_the_palette() {
    let mut rig = Rig::new();
    rig.state.setup.palette = crate::config::keymap::Keymap::defaults().palette();
    let first = |rig: &mut Rig| {
        rig.act(Action::OpenPalette);
        let now = |row: &&PickerRow| row.group.as_deref() == Some("Now");
        let labels: Vec<_> = rig.picker().rows.iter().take_while(now).map(|row| row.label.clone()).collect();
        rig.act(Action::OpenPalette);
        labels
    };
    assert_eq!(first(&mut rig), [""; 0]);
    let id = rig.session().outbox.enqueue("again".to_owned());
    rig.session().outbox.set_state(id, crate::core::PromptState::Failed { may_have_arrived: false });
    assert_eq!(first(&mut rig), ["Resend failed prompt"]);
    rig.session().outbox.remove(id);
    rig.run_turn().session().outbox.enqueue("later".to_owned());
    let of_turn = ["Cancel turn", "Cancel the turn and send now", "Edit queued prompts"];
    assert_eq!(first(&mut rig), of_turn);
    rig.ask_permission(1, &[crate::model::PermissionKind::AllowOnce]);
    assert_eq!(first(&mut rig)[..2], ["Show inbox", "Cancel turn"]);
    rig.act(Action::OpenPalette);
    rig.type_line("cancel");
    rig.act(Action::Accept);
    assert!(rig.is_cancelling());
}

#[test]
fn the_filter_of_agents_matches_names_before_descriptions() {
    let mut rig = Rig::new();
    let choice = |known: &crate::config::catalogue::Known| crate::core::AgentChoice {
        spec: known.spec(crate::model::Callbacks::default()),
        title: known.title.to_owned(),
        source: "found".to_owned(),
        ..crate::core::AgentChoice::default()
    };
    rig.state.setup.agents = [
        "claude",
        "codex",
        "gemini",
        "copilot",
        "cursor",
        "opencode",
        "goose",
        "kimi",
        "droid",
        "openhands",
        "pi",
    ]
    .iter()
    .filter_map(|name| crate::config::catalogue::known(name))
    .map(choice)
    .collect();
    rig.act(Action::OpenAgents);
    assert_eq!(rig.shown().len(), 11);
    rig.type_line("cod");
    assert_eq!(rig.shown(), ["Codex", "OpenCode", "Kimi Code"]);
    rig.edit_line(LineEdit::Clear);
    rig.type_line("exec");
    assert_eq!(rig.shown(), ["Factory Droid"], "a part of its command line");
}

#[test]
fn the_prompt_history_is_searched_and_taken_up() {
    let mut rig = Rig::new();
    rig.session().history =
        ["fix the test", "add docs", "fix the test", "two\nlines"].map(str::to_owned).to_vec();
    rig.type_draft("half a thought");
    rig.act(Action::OpenHistory);
    assert_eq!(rig.shown(), ["two lines", "fix the test", "add docs"]);
    rig.type_line("lines");
    let fx = rig.act(Action::Accept);
    assert!(fx.contains(&Effect::View(crate::core::ViewCommand::SetDraft("two\nlines".to_owned()))));
    assert_eq!(rig.session().draft, "two\nlines");
    assert_eq!(rig.session().history.last().map(String::as_str), Some("half a thought"));
}

#[test]
fn a_key_for_what_the_agent_cannot_do_says_so_and_calls_nothing() {
    let mut rig = Rig::new();
    info(&mut rig).capabilities = AgentCapabilities::default();
    for action in [
        Action::ForkSession,
        Action::OpenModels,
        Action::OpenModes,
        Action::NextMode,
        Action::OpenOptions,
        Action::SignOut,
        Action::OpenSignIn,
        Action::KillCommand,
        Action::TogglePlan,
    ] {
        rig.state.flash = None;
        let why = obstacle(&rig.state, action);
        let fx = rig.act(action);
        assert!(calls(&fx).is_empty() && rig.layers.is_empty(), "{action:?}");
        assert!(why.is_some(), "{action:?}");
        assert_eq!(rig.state.flash.as_deref(), why, "{action:?}");
    }
}

#[test]
fn themes_are_previewed_and_reverted_on_escape() {
    let mut rig = Rig::new();
    rig.act(Action::OpenThemes);
    assert_eq!(rig.marked(), "dark");
    let set = |name: &str| Effect::SetTheme(name.to_owned());
    assert_eq!(rig.act(Action::Down), [set("light")]);
    assert_eq!(rig.type_line("pap"), [set("paper")]);
    assert_eq!(rig.state.setup.theme, "dark");
    assert_eq!(rig.act(Action::Escape), [set("dark")]);
    rig.act(Action::OpenThemes);
    rig.act(Action::Down);
    let fx = rig.act(Action::Accept);
    assert!(fx.contains(&set("light")) && fx.contains(&save_theme("light")), "{fx:?}");
    assert_eq!(rig.state.setup.theme, "light");
}

#[test]
fn auto_stands_for_the_theme_that_matches_the_terminal() {
    let mut rig = Rig::new();
    rig.act(Action::OpenThemes);
    let Some(picker) = rig.layers.last().and_then(Layer::list) else { panic!("no list") };
    let rows: Vec<_> = picker.rows.iter().map(|row| (row.label.as_str(), row.group.as_deref())).collect();
    let expected =
        [("auto", None), ("dark", Some("Dark")), ("light", Some("Light")), ("paper", Some("Light"))];
    assert_eq!(rows, expected);
    let (set, now) = (|name: &str| Effect::SetTheme(name.to_owned()), rig.now);
    assert_eq!(rig.act(Action::First), [set("light")]);
    let fx = rig.act(Action::Accept);
    assert!(fx.contains(&set("light")) && fx.contains(&save_theme("auto")), "{fx:?}");
    let fx = update(&mut rig, Event::Theme("dark".to_owned()), now);
    assert!(fx.contains(&set("dark")), "the background became known: {fx:?}");
    rig.state.setup.theme = "paper".to_owned();
    let fx = update(&mut rig, Event::Theme("light".to_owned()), now);
    assert!(!fx.contains(&set("light")), "another theme was chosen: {fx:?}");
}

fn theme_change(name: &str) -> SettingChange {
    SettingChange::Value { name: "theme".to_owned(), value: Some(SettingValue::Text(name.to_owned())) }
}

fn save_theme(name: &str) -> Effect {
    Effect::Configure(ConfigJob::Change(theme_change(name)))
}

#[test]
fn a_theme_that_cannot_be_saved_is_reported() {
    let mut rig = Rig::new();
    rig.state.setup.config_file = "/etc/x.toml".into();
    let change = Some((theme_change("nord"), Err("read-only".to_owned())));
    let news = crate::core::ConfigNews { change, ..Default::default() };
    let now = rig.now;
    update(&mut rig, Event::Config(Box::new(news)), now);
    let notices = &rig.session().transcript;
    let text = format!("{:?}", notices.items().last().map(|item| &item.body));
    assert!(text.contains("applies until you quit") && text.contains("/etc/x.toml: read-only"), "{text}");
}

#[test]
fn config_options_open_their_values_in_groups_and_switches_turn() {
    let mut rig = Rig::new();
    rig.session().options = vec![
        select("effort", "thought_level", "low", &[("low", None), ("high", Some("Slow"))]),
        ConfigOption {
            id: "fast".to_owned(),
            name: "Fast".to_owned(),
            description: None,
            category: None,
            kind: ConfigKind::Boolean { current: false },
        },
    ];
    rig.act(Action::OpenOptions);
    let right: Vec<_> = rig.picker().rows.iter().map(|row| row.right.as_str()).collect();
    assert_eq!(right, ["Value low", "off"]);
    rig.act(Action::Accept);
    assert_eq!(rig.layers.top::<Picker<OptionValues>>().unwrap().list.option, "effort");
    assert_eq!(rig.marked(), "Value low");
    assert_eq!(rig.picker().rows[1].group.as_deref(), Some("Slow"));
    // Escape goes back to the options, and what is chosen closes both.
    rig.act(Action::Escape);
    assert!(rig.layers.top::<Picker<Options>>().is_some());
    rig.act(Action::Accept);
    rig.act(Action::Down);
    let fx = rig.act(Action::Accept);
    let id = SessionId::from("s1");
    let value = ConfigValue::Text("high".to_owned());
    assert_eq!(calls(&fx), [&Call::SetOption(id.clone(), "effort".to_owned(), value)]);
    assert!(rig.layers.is_empty());
    rig.act(Action::OpenOptions);
    rig.act(Action::Down);
    let fx = rig.act(Action::Accept);
    assert_eq!(calls(&fx), [&Call::SetOption(id, "fast".to_owned(), ConfigValue::Bool(true))]);
}

#[test]
fn config_options_go_before_the_older_modes() {
    let mut rig = Rig::new();
    let mode = |id: &str| Mode { id: id.into(), name: format!("Mode {id}"), description: None };
    rig.session().modes = Some(Modes { current: "ask".into(), available: vec![mode("ask"), mode("code")] });
    let fx = rig.act(Action::NextMode);
    assert_eq!(calls(&fx), [&Call::SetMode("s1".into(), "code".into())]);
    rig.act(Action::OpenModes);
    assert_eq!(rig.shown(), ["Mode ask", "Mode code"]);
    rig.act(Action::Escape);
    rig.session().options = vec![select("m", "mode", "b", &[("a", None), ("b", None)])];
    let fx = rig.act(Action::NextMode);
    let value = ConfigValue::Text("a".to_owned());
    assert_eq!(calls(&fx), [&Call::SetOption("s1".into(), "m".to_owned(), value)]);
    rig.act(Action::OpenModes);
    assert_eq!(rig.shown(), ["Value a", "Value b"]);
    assert_eq!(rig.marked(), "Value b");
}

fn dialog(rig: &Rig) -> &LineDialog {
    rig.layers.top().expect("a line is asked for")
}

#[test]
fn a_sign_in_by_variables_asks_for_each() {
    let mut rig = Rig::new();
    let var = |name: &str, is_secret, is_optional| AuthVar {
        name: name.to_owned(),
        label: None,
        is_secret,
        is_optional,
    };
    let vars = vec![var("KEY", true, false), var("ORG", false, true), var("URL", false, false)];
    info(&mut rig).auth_methods = vec![AuthMethod {
        id: "key".to_owned(),
        name: "API key".to_owned(),
        description: None,
        kind: AuthKind::EnvVar { vars, link: None },
    }];
    rig.act(Action::OpenSignIn);
    rig.act(Action::Accept);
    assert!(dialog(&rig).is_secret && dialog(&rig).help.contains("KEY"));
    rig.act(Action::Accept);
    assert!(dialog(&rig).problem.is_some());
    rig.type_line("sk-1\n");
    assert_eq!((dialog(&rig).problem.clone(), dialog(&rig).input.text.as_str()), (None, "sk-1"));
    rig.act(Action::Accept);
    assert!(dialog(&rig).help.contains("ORG") && !dialog(&rig).is_secret);
    rig.act(Action::Accept);
    assert!(dialog(&rig).help.contains("URL"));
    rig.type_line("https://x.test");
    let fx = rig.act(Action::Accept);
    assert!(rig.layers.is_empty());
    // The agent is started again with what was given; what was left empty is left out.
    let env = fx.iter().find_map(|effect| match effect {
        Effect::Connect { spec, .. } => Some(spec.env.clone()),
        _ => None,
    });
    let given = [("KEY", "sk-1"), ("URL", "https://x.test")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(env, Some(given.to_vec()));
}

#[test]
fn enter_in_an_empty_prompt_opens_the_list_that_escape_closed() {
    let mut rig = Rig::new();
    info(&mut rig).auth_methods = vec![AuthMethod {
        id: "browser".to_owned(),
        name: "Browser".to_owned(),
        description: None,
        kind: AuthKind::Agent,
    }];
    rig.session().phase = SessionPhase::NeedsSignIn;
    rig.session().outbox.enqueue("waits for the sign-in".to_owned());
    rig.act(Action::Submit);
    assert_eq!(rig.shown(), ["Browser"]);
    rig.act_now(Action::Escape);
    assert!(rig.layers.is_empty(), "the user opened it, so it takes keys at once");
    rig.act(Action::Submit);
    rig.act(Action::Accept);
    assert!(rig.layers.is_empty());
    rig.act(Action::Submit);
    assert!(rig.layers.is_empty(), "it is in progress");
    assert!(rig.state.flash.as_deref().is_some_and(|flash| flash.contains("in progress")));
    rig.session().phase = SessionPhase::NoAgent;
    rig.act(Action::Submit);
    assert!(rig.layers.top::<Picker<Agents>>().is_some());
}

#[test]
fn one_kind_of_picker_is_never_open_twice() {
    let mut rig = Rig::new();
    rig.act(Action::OpenAgents);
    rig.act(Action::OpenThemes);
    rig.act(Action::OpenAgents);
    assert_eq!(rig.layers.len(), 2);
    assert!(rig.layers.top::<Picker<Agents>>().is_some());
}

#[test]
fn a_subagents_item_shows_its_session_and_escape_goes_back() {
    let mut rig = Rig::new();
    let parent = rig.state.active;
    let child = rig.state.add_session();
    if let Some(session) = rig.state.sessions.get_mut(&child) {
        session.parent = Some(parent);
    }
    let body = crate::core::ItemBody::Subagent {
        session: SessionId::from("child"),
        key: Some(child),
        title: "Searcher".to_owned(),
        description: None,
        state: None,
        calls: 0,
    };
    let item = rig.session().transcript.push(1, body);
    rig.act(Action::ToggleItem(item));
    assert_eq!(rig.state.active, child);
    rig.act(Action::Escape);
    assert_eq!(rig.state.active, parent);
}

#[test]
fn where_models_come_from_is_asked_step_by_step_and_sent_at_the_end() {
    let mut rig = Rig::new();
    assert_eq!(
        obstacle(&rig.state, Action::OpenProviders),
        Some("The agent does not support provider configuration.")
    );
    info(&mut rig).capabilities.has_providers = true;
    let provider = |id: &str, is_required| Provider {
        id: id.to_owned(),
        is_required,
        api_type: Some("openai".to_owned()),
        base_url: Some("https://old.example".to_owned()),
        supported: vec!["anthropic".to_owned(), "openai".to_owned()],
    };
    let conn = rig.session().conn.expect("a connection");
    rig.state.conns.get_mut(&conn).expect("it").providers =
        vec![provider("main", true), provider("spare", false)];
    rig.act(Action::OpenProviders);
    assert_eq!(rig.shown(), ["main", "spare"]);
    rig.act(Action::Accept);
    assert_eq!((rig.shown(), rig.marked()), (vec!["anthropic", "openai"], "openai"), "it is required");
    rig.act(Action::Accept);
    rig.edit_line(LineEdit::Clear);
    rig.type_line("ftp://new.example");
    assert!(calls(&rig.act(Action::Accept)).is_empty());
    let problem = |rig: &Rig| match rig.layers.top::<LineDialog>() {
        Some(dialog) => dialog.problem.clone().unwrap_or_default(),
        other => panic!("a line is asked for, not {other:?}"),
    };
    assert!(problem(&rig).contains("https://"), "{}", problem(&rig));
    rig.edit_line(LineEdit::Clear);
    rig.type_line("https://new.example/v1");
    assert!(calls(&rig.act(Action::Accept)).is_empty(), "the headers are still to come");
    rig.type_line("no colon");
    rig.act(Action::Accept);
    assert!(problem(&rig).contains("name: value"), "{}", problem(&rig));
    rig.edit_line(LineEdit::Clear);
    rig.type_line("X-Key: secret: 1");
    rig.act(Action::Accept);
    let fx = rig.act(Action::Accept);
    let [Call::SetProvider(request)] = calls(&fx)[..] else { panic!("{fx:?}") };
    let target = request.target.clone().expect("a target");
    assert_eq!((request.id.as_str(), target.api_type.as_str()), ("main", "openai"));
    assert_eq!(target.base_url, "https://new.example/v1");
    assert_eq!(target.headers, [("X-Key".to_owned(), "secret: 1".to_owned())]);
    // One that is not required can be switched off.
    rig.act(Action::OpenProviders);
    rig.act(Action::Down);
    rig.act(Action::Accept);
    assert_eq!(rig.shown(), ["anthropic", "openai", "Disable"]);
    rig.act(Action::Last);
    let fx = rig.act(Action::Accept);
    let [Call::SetProvider(request)] = calls(&fx)[..] else { panic!("{fx:?}") };
    assert_eq!((request.id.as_str(), &request.target), ("spare", &None));
    // The headers of the configuration go only to the address that they were written for.
    let known = ProviderTarget { headers: target.headers.clone(), ..target.clone() };
    let request = crate::model::ProviderRequest { id: "main".to_owned(), target: Some(known) };
    rig.state.conns.get_mut(&conn).expect("it").spec.wire.providers = vec![request];
    rig.act(Action::OpenProviders);
    rig.act(Action::Accept);
    rig.act(Action::Accept);
    rig.edit_line(LineEdit::Clear);
    rig.type_line("https://new.example/v1");
    let fx = rig.act(Action::Accept);
    let [Call::SetProvider(request)] = calls(&fx)[..] else { panic!("{fx:?}") };
    assert_eq!(request.target.as_ref().map(|target| target.headers.len()), Some(1));
}
