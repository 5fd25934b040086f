//! Tests of several tabs: opening, shared processes, routing.

use crate::core::lifecycle::operations;
use crate::core::state::tab;
use std::path::PathBuf;

use super::support::*;
use crate::core::state::tab::tabs;
use crate::core::*;
use crate::model::*;

#[test]
fn two_tabs_of_one_agent_in_one_folder_share_its_process() {
    let mut app = TestCore::ready();
    let key = app.open_tab("/code/shop", fake());
    app.expect_sent("call new");
    assert_eq!(app.state.sessions[&key].conn, Some(CONN));
    app.open("two");
    // Each update goes to its session.
    app.agent(AgentEvent::Update("two".into(), says("second")));
    app.agent(AgentEvent::Update(ID.into(), says("first")));
    assert_eq!(digest(&app.state.sessions[&key]), "ready · idle\nagent \"second\" …");
    app.expect("ready · idle\nagent \"first\" …");
    // Another agent has a separate process, even in the same folder.
    let other = spec("other");
    app.fx.clear();
    app.open_tab("/code/shop", other);
    app.expect_sent("connect 2 after 0 ms");
}

#[test]
fn a_process_in_a_sandbox_is_shared_only_by_sessions_with_its_folders() {
    let mut app = TestCore::ready();
    app.state.setup.sandbox.mode = SandboxMode::Workspace;
    let folders = |app: &TestCore, key: SessionKey| {
        let conn = app.state.conn_of(key).unwrap();
        (conn.id, conn.spec.bounds.as_ref().map(|bounds| bounds.folders.clone()))
    };
    let key = app.open_tab("/code/shop", fake());
    let (conn, bounds) = folders(&app, key);
    assert_ne!(conn, CONN, "that process has no sandbox");
    assert_eq!(bounds.unwrap(), [PathBuf::from("/code/shop")]);
    let other = app.open_tab("/code/shop", fake());
    assert_eq!(folders(&app, other).0, conn);
    // A session that the agent lists can be in another folder.
    app.state.sessions.get_mut(&other).unwrap().workspace.cwd = "/code/lib".into();
    app.flow(|state, cx| crate::core::lifecycle::open::open(state, other, cx));
    let (moved, bounds) = folders(&app, other);
    assert_ne!(moved, conn);
    assert_eq!(bounds.unwrap(), [PathBuf::from("/code/lib")]);
    app.state.setup.sandbox.mode = SandboxMode::Off;
    let free = app.open_tab("/code/shop", fake());
    assert_eq!(folders(&app, free), (CONN, None));
}

#[test]
fn a_sandbox_gets_only_variables_of_state_folders() {
    let mut app = TestCore::ready();
    app.state.setup.sandbox.mode = SandboxMode::Workspace;
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let env = vec![pair("CODEX_HOME", "/srv/codex"), pair("OPENAI_API_KEY", "secret")];
    let key = app.open_tab("/code/shop", AgentSpec { env, ..fake() });
    let bounds = app.state.conn_of(key).unwrap().spec.bounds.as_ref().unwrap();
    assert_eq!(bounds.state, [pair("CODEX_HOME", "/srv/codex")]);
}

#[test]
fn a_tab_opened_while_its_agent_is_starting_waits_for_it() {
    let mut app = TestCore::started();
    let key = app.open_tab("/code/shop", fake());
    app.expect_sent("connect 1 after 0 ms");
    app.handshake(all_capabilities()).expect_sent("call new\ncall new");
    assert_eq!(app.state.sessions[&key].conn, Some(CONN));
}

#[test]
fn a_crash_in_an_inactive_tab_restarts_only_that_agent() {
    let (mut app, key, conn) = TestCore::two_tabs();
    app.flow(|state, _| operations::activate(state, KEY));
    let before = app.state.sessions[&KEY].clone();
    app.crash_of(conn);
    app.expect_sent("connect 3 after 500 ms");
    assert_eq!((app.state.active, &app.state.sessions[&KEY]), (KEY, &before));
    assert!(matches!(app.state.sessions[&key].phase, SessionPhase::Starting { .. }));
}

#[test]
fn closing_a_tab_stops_an_agent_without_other_tabs() {
    let (mut app, key, _) = TestCore::two_tabs();
    assert_eq!((app.state.active, tabs(&app.state).count()), (key, 2));
    assert_eq!(app.state.sessions[&key].workspace.cwd, PathBuf::from("/code/lib"));
    app.flow(|state, cx| operations::close_session(state, key, cx));
    app.expect_sent("call close two\ndisconnect 2");
    assert_eq!((app.state.active, app.state.sessions.len()), (KEY, 1));
    // An agent shared with another tab continues.
    let shared = app.open_tab("/code/shop", fake());
    app.open("three").fx.clear();
    app.flow(|state, cx| operations::close_session(state, shared, cx));
    app.expect_sent("call close three");
}

#[test]
fn concurrent_updates_of_two_agents_go_to_their_sessions() {
    let (mut app, key, conn) = TestCore::two_tabs();
    for (index, word) in ["a ", "b ", "c "].into_iter().enumerate() {
        app.update(says(word));
        // The other agent uses the same session id.
        app.state.sessions.get_mut(&key).unwrap().id = Some(ID.into());
        app.play(Event::Agent(conn, AgentEvent::Update(ID.into(), says(&index.to_string()))));
    }
    app.expect("ready · idle\nagent \"a b c \" …");
    assert_eq!(digest(&app.state.sessions[&key]), "ready · idle\nagent \"012\" …");
}

#[test]
fn the_log_of_a_tab_shows_only_its_connections() {
    let app = TestCore::ready();
    assert_eq!(tab::log_conns(&app.state), None, "a single tab shows the log of all");
    let (mut app, _, conn) = TestCore::two_tabs();
    assert_eq!(tab::log_conns(&app.state), Some(vec![conn.0]));
    app.crash_of(conn);
    assert_eq!(tab::log_conns(&app.state), Some(vec![conn.0, 3]), "the end of the previous one stays in it");
    app.flow(|state, _| operations::activate(state, KEY));
    assert_eq!(tab::log_conns(&app.state), Some(vec![CONN.0]));
}

#[test]
fn an_anomaly_is_counted_in_the_tab_of_its_agent() {
    let (mut app, key, conn) = TestCore::two_tabs();
    let odd = Anomaly { kind: AnomalyKind::BadMessage, text: "{".into() };
    app.play(Event::Agent(conn, AgentEvent::Anomaly(odd)));
    let count = |key: SessionKey| app.state.sessions[&key].anomaly_count;
    assert_eq!((count(KEY), count(key)), (0, 1));
}

#[test]
fn the_tabs_of_the_last_run_are_reopened_in_order() {
    let saved = |uid: &str, folder: &str| {
        let workspace = SessionWorkspace { cwd: folder.into(), ..SessionWorkspace::default() };
        let head = SessionHead { workspace, ..stored_head(uid, uid) };
        let record = typed(&format!("prompt of {uid}"));
        let events = vec![RecordedEvent { at_ms: 0, turn: 1, record }];
        Box::new(RecordedSession { head, events, ..RecordedSession::default() })
    };
    let other = |uid, folder, is_before| OtherTab { saved: saved(uid, folder), is_before, is_view: false };
    let view = OtherTab { saved: saved("k5", "/code/lib"), is_before: false, is_view: true };
    let unknown = {
        let mut tab = other("k4", "/code/shop", false);
        tab.saved.head.command.clear();
        tab.saved.head.agent = "gone".into();
        tab
    };
    let setup = Setup {
        folder: "/code/shop".into(),
        start_with: Some(fake()),
        reopen: Some(saved("k2", "/code/shop")),
        other_tabs: vec![other("k1", "/code/shop", true), other("k3", "/code/lib", false), unknown, view],
        ..Setup::default()
    };
    let mut app = TestCore::start(setup);
    let name = |tab: &Session| {
        let uid = tab.read_only.as_ref().map(|reading| format!("{}, read-only", reading.uid));
        uid.unwrap_or_else(|| tab.recorder.saved_as().unwrap_or_default().to_owned())
    };
    let order: Vec<_> = tabs(&app.state).map(name).collect();
    assert_eq!(order, ["k1", "k2", "k3", "k4", "k5, read-only"]);
    assert_eq!(app.state.active, KEY, "the active tab is that of the last run");
    assert_eq!((&app.requests[..], &app.state.questions[..]), (&[][..], &[][..]));
    // The tabs of a folder share an agent.
    app.expect_sent("connect 1 after 0 ms\nconnect 2 after 0 ms");
    let last = tabs(&app.state).rev().nth(1).unwrap();
    assert_eq!(last.phase, SessionPhase::NoAgent);
    app.handshake(all_capabilities()).expect_sent("call load k2\ncall load k1");
    // The places are recorded for the next time.
    let heads: Vec<_> = saved_heads(&mut app);
    assert_eq!(heads.last(), Some(&(2, true)));
    let is_noted = |note: &Note| matches!(note, Note::Head(head) if head.views == ["k5"]);
    assert!(app.saved.iter().any(is_noted), "{:?}", app.saved);
}

/// The place of the first session's tab, and whether it is active, each time it was recorded.
fn saved_heads(app: &mut TestCore) -> Vec<(u32, bool)> {
    let heads = app.saved.iter().filter_map(|note| match note {
        Note::Head(head) => Some((head.tab, head.is_front)),
        _ => None,
    });
    heads.collect()
}

#[test]
fn the_active_tab_is_recorded() {
    let (mut app, key, _) = TestCore::two_tabs();
    assert_eq!(saved_heads(&mut app).last(), Some(&(1, false)));
    app.flow(|state, _| operations::activate(state, KEY));
    assert_eq!(saved_heads(&mut app).last(), Some(&(1, true)));
    app.flow(|state, _| operations::activate(state, key));
    assert_eq!(saved_heads(&mut app).last(), Some(&(1, false)));
}
