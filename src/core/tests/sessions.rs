//! Tests of new, listed, loaded and copied sessions, and of modes, models, options and titles.

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

#[test]
fn updates_before_the_session_id_is_known_wait_for_it() {
    let mut app = TestCore::started();
    app.handshake(all_capabilities());
    let command = SlashCommand { name: "plan".into(), description: "Plans".into(), hint: None };
    app.update(SessionUpdate::Commands(vec![command.clone()]));
    for word in ["wel", "come"] {
        app.update(says(word));
    }
    app.agent(AgentEvent::Update("stranger".into(), says("?")));
    app.expect("opening · idle");
    app.open(ID).expect("ready · idle\nagent \"welcome\" …");
    assert_eq!(app.session().commands, [command]);
    assert_eq!(app.state.conns[&CONN].early.updates.len(), 1, "that of the unknown session still waits");
}

#[test]
fn early_updates_are_bounded_and_the_loss_is_reported() {
    let mut app = TestCore::started();
    app.handshake(all_capabilities());
    for index in 0..5_000 {
        let role = if index % 2 == 0 { Role::Agent } else { Role::Thought };
        app.update(text(role, "x"));
    }
    app.open(ID);
    let items = app.session().transcript.items();
    assert_eq!(items.len(), 4_096 + 1);
    assert!(
        matches!(&items[0].body, ItemBody::Notice { title, .. } if title.starts_with("904 early updates"))
    );
}

#[test]
fn early_updates_of_unknown_sessions_use_bounded_memory() {
    let mut app = TestCore::started();
    app.handshake(all_capabilities());
    for index in 0..60 {
        let id = format!("stranger {index}");
        app.agent(AgentEvent::Update(id.as_str().into(), text(Role::Agent, &"x".repeat(1 << 20))));
        assert!(app.state.conns[&CONN].early.updates.bytes() <= 16 << 20);
    }
    assert!(app.state.conns[&CONN].early.dropped_count >= 44);
    // Also a single message in many chunks.
    for _ in 0..60 {
        app.agent(AgentEvent::Update("one".into(), text(Role::Agent, &"x".repeat(700 << 10))));
        assert!(app.state.conns[&CONN].early.updates.bytes() <= 16 << 20);
    }
}

#[test]
fn commands_of_the_handshake_apply_until_replaced() {
    let command = SlashCommand { name: "help".into(), description: "Helps".into(), hint: None };
    let info = AgentInfo { commands: vec![command.clone()], ..AgentInfo::default() };
    let mut app = TestCore::started();
    app.agent(AgentEvent::Ready(Box::new(info))).open(ID);
    assert_eq!(app.session().commands, [command]);
}

#[test]
fn a_session_that_cannot_be_opened_is_reported_and_keeps_the_draft() {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).submit("hi").fail(-32603, "disk full");
    app.expect(
        r#"
        failed · idle · queue ["hi"]
        notice Error: The session could not be opened. The agent reported an error.
        "#,
    );
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).reply(Ok(Reply::Session(SessionReply::default())));
    app.expect(
        "failed · idle\nnotice Error: The session could not be opened. Invalid response from the agent.",
    );
}

#[test]
fn a_call_that_times_out_is_cancelled() {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).reply(Err(CallError::TimedOut(60)));
    app.expect_sent("connect 1 after 0 ms\ncall new\ncancel call");
    app.expect("failed · idle\nnotice Error: The session could not be opened. The connection failed.");
}

#[test]
fn a_list_is_read_completely() {
    let page = |ids: &[&str], next: Option<&str>| {
        Ok(Reply::Sessions {
            sessions: ids.iter().map(|id| listed(id)).collect(),
            next_cursor: next.map(str::to_owned),
        })
    };
    let mut app = TestCore::ready();
    app.flow(operations::list_sessions)
        .reply(page(&["a", "b"], Some("2")))
        .reply(page(&["b", "c"], Some("3")));
    app.reply(page(&[], Some("4"))).reply(page(&["a"], Some("5"))).reply(page(&["d"], Some("3")));
    app.expect_sent(
        r#"
        call list None
        call list Some("2")
        call list Some("3")
        call list Some("4")
        call list Some("5")
        "#,
    );
    assert_eq!(listed_ids(&app.state), ["a", "b", "c", "d"], "only a repeated cursor ends it");
}

fn listed_ids(state: &State) -> Vec<&str> {
    state.listed().iter().map(|info| info.id.as_str()).collect()
}

fn sessions(ids: &[&str], next: Option<&str>) -> Reply {
    let sessions = ids.iter().map(|id| listed(id));
    Reply::Sessions { sessions: sessions.collect(), next_cursor: next.map(str::to_owned) }
}

#[test]
fn an_endless_list_is_limited() {
    let mut app = TestCore::ready();
    app.flow(operations::list_sessions);
    for page in 0..2_000 {
        if app.state.conns[&CONN].open_calls.is_empty() {
            assert!(page > 100, "ended after {page} pages");
            return;
        }
        app.reply(Ok(sessions(&[], Some(&format!("c{page}")))));
    }
    panic!("it goes on for ever");
}

#[test]
fn a_late_page_is_assigned_to_its_agent_and_request() {
    let (mut app, key, conn) = TestCore::two_tabs();
    app.flow(|state, _| operations::activate(state, KEY)).flow(operations::list_sessions);
    let late = app.latest_call(CONN);
    app.flow(|state, _| operations::activate(state, key)).flow(operations::list_sessions);
    app.fx.clear();
    // The response of the first agent arrives while the second one's list is shown.
    app.play(Event::Agent(CONN, AgentEvent::Replied(late, Ok(sessions(&["theirs"], Some("2"))))));
    assert!(app.state.listed().is_empty());
    assert!(
        app.fx.iter().all(|effect| !matches!(effect, Effect::Send(to, _) if *to == conn)),
        "nor its cursor"
    );
    app.expect_sent("call list Some(\"2\")");
    app.reply_to(conn, Ok(sessions(&["ours"], None)));
    assert_eq!(listed_ids(&app.state), ["ours"]);
    app.flow(|state, _| operations::activate(state, KEY));
    assert_eq!(listed_ids(&app.state), ["theirs"]);
    // After a new request, the page of the previous one is dropped.
    let late = app.latest_call(CONN);
    app.flow(operations::list_sessions).reply(Ok(sessions(&["new"], None)));
    app.play(Event::Agent(CONN, AgentEvent::Replied(late, Ok(sessions(&["old"], None)))));
    assert_eq!(listed_ids(&app.state), ["new"]);
}

#[test]
fn methods_that_are_not_advertised_are_never_called() {
    let mut app = TestCore::started();
    app.handshake(AgentCapabilities::default()).open(ID);
    app.fx.clear();
    app.flow(operations::list_sessions);
    app.flow(|state, cx| operations::fork_session(state, KEY, None, cx));
    app.flow(|state, cx| operations::set_title(state, KEY, "x".into(), cx));
    app.open_listed("old");
    app.flow(|state, cx| operations::set_mode(state, KEY, "plan".into(), cx));
    app.flow(|state, cx| operations::set_model(state, KEY, "big".into(), cx));
    app.flow(|state, cx| {
        operations::set_option(state, KEY, "x".into(), ConfigValue::Bool(true), cx);
    });
    app.expect_sent("");
    assert_eq!(app.state.sessions.len(), 1);
}

#[test]
fn a_listed_session_is_loaded_into_a_new_tab() {
    let mut app = TestCore::talked();
    *app.state.listed_mut() =
        vec![SessionInfo { cwd: "/code/lib".into(), title: Some("Skew".into()), ..listed("old") }];
    app.open_listed("old");
    app.expect_sent("call load old");
    app.agent(AgentEvent::Update("old".into(), text(Role::User, "fix it")));
    app.agent(AgentEvent::Update("old".into(), says("fixed")));
    app.reply(Ok(Reply::Session(SessionReply::default())));
    let session = &app.state.sessions[&app.state.active];
    assert_eq!(digest(session), "ready · idle\nuser \"fix it\"\nagent \"fixed\"");
    assert_eq!((session.title.as_deref(), session.workspace.cwd.to_str()), (Some("Skew"), Some("/code/lib")));
    app.expect("ready · idle\nuser* \"hello\"\nnotice Info: The agent returned an empty response.");
    app.state.active = KEY;
    app.open_listed("old").expect_sent("");
    assert_eq!(app.state.active, SessionKey(2), "an open session is activated, not loaded again");
}

#[test]
fn folders_reported_by_an_agent_need_a_confirmation_to_become_roots() {
    let listed = |cwd: &str, more: &[&str]| SessionInfo {
        cwd: cwd.into(),
        additional_directories: more.iter().map(Into::into).collect(),
        ..listed("old")
    };
    let opened = |info: SessionInfo, choose: Option<usize>| {
        let mut app = TestCore::talked();
        *app.state.listed_mut() = vec![info];
        let open = |state: &mut State, cx: &mut Cx| {
            operations::open_session(state, "old".into(), cx);
        };
        app.flow(open).expect_sent("");
        let Some(dialog) = app.state.questions.last().cloned() else { panic!("the user is asked") };
        // Later changes of the list do not affect the confirmed session.
        *app.state.listed_mut() = vec![listed("/", &["/"])];
        app.decide(choose.unwrap_or(dialog.first));
        let session = &app.state.sessions[&app.state.active];
        (dialog.body, session.id.clone(), session.workspace.clone())
    };
    let roots = |folders: &[&str]| folders.iter().map(UserRoot::given).collect::<Vec<_>>();
    // In the user's own folder it opens, without the others unless the user includes them.
    let (body, id, position) = opened(listed("/code/shop", &["/", "/etc\u{202e}"]), None);
    assert!(body.contains(&"/".to_owned()) && body.contains(&"/etc⟨U+202E⟩".to_owned()), "{body:?}");
    assert_eq!((id, position.additional_directories), (Some("old".into()), roots(&[])));
    let (_, id, position) = opened(listed("/code/shop", &["/code/lib"]), Some(1));
    assert_eq!((id, position.additional_directories), (Some("old".into()), roots(&["/code/lib"])));
    // Another folder is not the default.
    let (_, id, position) = opened(listed("/home", &[]), None);
    assert_eq!((id, position.cwd.to_str()), (Some("s".into()), Some("/code/shop")));
    let (_, id, position) = opened(listed("/home", &["/"]), Some(0));
    assert_eq!(
        (id, position.cwd.to_str(), position.additional_directories),
        (Some("old".into()), Some("/home"), roots(&[]))
    );
}

#[test]
fn each_folder_has_a_separate_prompt_history() {
    let loads = |fx: &[Effect]| -> Vec<(u64, String)> {
        let load = |effect: &Effect| match effect {
            Effect::LoadHistory { session, folder } => Some((session.0, folder.display().to_string())),
            _ => None,
        };
        fx.iter().filter_map(load).collect()
    };
    let mut app = TestCore::started();
    assert_eq!(loads(&app.fx), [(1, "/code/shop".to_owned())]);
    app.handshake(all_capabilities()).open(ID);
    app.service(ServiceEvent::History(KEY, vec!["here".into()]));
    let old = SessionInfo { cwd: "/code/lib".into(), ..listed("old") };
    *app.state.listed_mut() = vec![old];
    app.fx.clear();
    app.open_listed("old");
    assert_eq!(loads(&app.fx), [(2, "/code/lib".to_owned())]);
    assert!(app.state.sessions[&SessionKey(2)].history.is_empty());
    app.service(ServiceEvent::History(SessionKey(2), vec!["there".into()]));
    assert_eq!(app.state.sessions[&SessionKey(2)].history, ["there"]);
    app.fx.clear();
    app.flow(operations::new_session);
    let fresh = &app.state.sessions[&app.state.active];
    assert_eq!(
        (fresh.workspace.cwd.to_str(), fresh.history.as_slice()),
        (Some("/code/lib"), ["there".to_owned()].as_slice()),
        "it works where the tab in front does"
    );
    assert_eq!(loads(&app.fx), [], "a history known in another session is not read again");
}

#[test]
fn a_listed_session_replaces_one_without_prompts() {
    let mut app = TestCore::ready();
    app.open_listed("old");
    assert_eq!(app.state.sessions.len(), 1, "no second tab");
    assert_ne!(app.state.active, KEY);
    app.expect_sent("call load old\ncall close s");
    // A draft is a reason to keep the tab.
    let mut app = TestCore::ready();
    app.draft("half a thought");
    app.open_listed("old");
    assert_eq!(app.state.sessions.len(), 2);
}

#[test]
fn a_crash_during_a_load_repeats_the_load() {
    let mut app = TestCore::talked();
    app.open_listed("old");
    app.agent(AgentEvent::Update("old".into(), text(Role::User, "fix it"))).crash();
    app.handshake(all_capabilities());
    app.expect_sent("call load old\nconnect 2 after 500 ms\ncall resume s\ncall load old");
}

#[test]
fn a_listed_session_that_fails_to_load_is_not_replaced() {
    let mut app = TestCore::talked();
    app.open_listed("old").fail(-32603, "broken");
    app.expect_sent("call load old");
    let session = &app.state.sessions[&app.state.active];
    assert_eq!(
        digest(session),
        "failed · idle\nnotice Error: The session could not be opened. The agent reported an error."
    );
}

#[test]
fn a_session_that_can_only_be_resumed_reports_that_its_history_is_missing() {
    let mut app = TestCore::started();
    app.handshake(AgentCapabilities { can_resume: true, ..AgentCapabilities::default() })
        .open(ID)
        .submit("hello")
        .end_turn(StopReason::EndTurn);
    app.fx.clear();
    app.open_listed("old");
    app.reply(Ok(Reply::Done)).expect_sent("call resume old");
    let session = &app.state.sessions[&app.state.active];
    assert!(digest(session).contains("does not send earlier messages"), "{}", digest(session));
}

#[test]
fn a_new_session_shares_the_agent() {
    let mut app = TestCore::ready();
    app.flow(operations::new_session).expect_sent("call new");
    app.open("two");
    assert_eq!(app.state.active, SessionKey(2));
    app.agent(AgentEvent::Update("two".into(), says("hello")));
    assert_eq!(digest(&app.state.sessions[&SessionKey(2)]), "ready · idle\nagent \"hello\" …");
    app.expect("ready · idle");
}

#[test]
fn a_copy_starts_with_the_same_items_and_a_failed_one_is_removed() {
    let mut app = TestCore::running();
    app.update(says("so far")).end_turn(StopReason::EndTurn);
    app.fx.clear();
    app.flow(|state, cx| operations::fork_session(state, KEY, None, cx)).expect_sent("call fork s");
    app.agent(AgentEvent::Update("copy".into(), says("welcome")));
    app.open("copy");
    let copy = &app.state.sessions[&app.state.active];
    assert_eq!(
        digest(copy),
        "ready · idle\nuser* \"go\"\nagent \"so far\"\nnotice Info: Forked from: go\nagent \"welcome\" …"
    );
    assert_eq!(copy.id, Some("copy".into()));
    app.fx.clear();
    app.flow(|state, cx| operations::fork_session(state, KEY, None, cx));
    let key = app.state.active;
    app.submit_in(key, "typed").fail(-32603, "no");
    assert_eq!((app.state.sessions.len(), app.state.active), (2, KEY));
    app.expect_sent("call fork s");
    assert_eq!(app.queue(), ["typed"], "the draft is retained");
    assert_eq!(app.state.flash.as_deref(), Some("Fork failed: no"));
}

#[test]
fn a_failed_copy_answers_its_open_requests() {
    let mut app = TestCore::ready();
    app.flow(|state, cx| operations::fork_session(state, KEY, None, cx));
    app.ask(1, permission_in(Some("copy"), "t"));
    app.fail(-32603, "no").expect_sent("call fork s\nanswer 1: permission cancelled");
}

#[test]
fn modes_models_options_and_titles_apply_once_the_agent_confirms() {
    let mode = |id: &str| Mode { id: id.into(), name: id.into(), description: None };
    let model = |id: &str| Model { id: id.into(), name: id.into(), description: None };
    let fast = |is_on| ConfigOption {
        id: "fast".into(),
        name: "Fast".into(),
        description: None,
        category: None,
        kind: ConfigKind::Boolean { current: is_on },
    };
    let mut app = TestCore::started();
    app.handshake(all_capabilities());
    app.reply(Ok(Reply::Session(SessionReply {
        id: Some(ID.into()),
        modes: Some(Modes { current: "ask".into(), available: vec![mode("ask"), mode("plan")] }),
        models: Some(Models { current: "big".into(), available: vec![model("big"), model("small")] }),
        options: vec![fast(false)],
        is_provisional: false,
    })));
    app.fx.clear();
    app.flow(|state, cx| operations::set_mode(state, KEY, "plan".into(), cx));
    assert_eq!(app.session().modes.as_ref().map(|modes| modes.current.as_str()), Some("ask"));
    app.reply(Ok(Reply::Done));
    assert_eq!(app.session().modes.as_ref().map(|modes| modes.current.as_str()), Some("plan"));
    app.flow(|state, cx| operations::set_model(state, KEY, "small".into(), cx));
    app.fail(-32603, "not in your plan");
    assert_eq!(app.session().models.as_ref().map(|models| models.current.as_str()), Some("big"));
    assert_eq!(app.state.flash.as_deref(), Some("Change failed: not in your plan"));
    app.flow(|state, cx| {
        operations::set_option(state, KEY, "fast".into(), ConfigValue::Bool(true), cx);
    });
    app.reply(Ok(Reply::Options(vec![fast(true)])));
    assert_eq!(app.session().options, [fast(true)]);
    app.flow(|state, cx| operations::set_title(state, KEY, " Skew ".into(), cx));
    app.reply(Ok(Reply::Title("Skew!".into())));
    assert_eq!(app.session().title.as_deref(), Some("Skew!"));
    app.expect_sent("call mode plan\ncall model small\ncall option fast Bool(true)\ncall title \"Skew\"");
}

#[test]
fn a_prompt_for_a_subagent_is_returned_to_the_composer() {
    let mut app = TestCore::running();
    app.update(SessionUpdate::Subagent(SubagentPatch {
        session: "child".into(),
        title: Patch::Keep,
        description: Patch::Keep,
        state: Patch::Keep,
        can_cancel: Patch::Keep,
    }));
    app.submit_in(SessionKey(2), "hi");
    assert_eq!(app.state.sessions[&SessionKey(2)].draft, "hi");
    assert_eq!(app.requests, [UiRequest::DraftChanged(SessionKey(2))]);
    app.expect_sent("");
}
