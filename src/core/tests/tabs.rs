//! Tests of several tabs: opening, shared processes, routing, dialogs of inactive tabs.

use crate::core::lifecycle::operations;
use crate::core::state::tab;
use std::path::PathBuf;

use super::support::*;
use crate::config::keymap::Context;
use crate::core::state::tab::tabs;
use crate::core::*;
use crate::model::*;
use crate::ui::LogPage;
use crate::ui::dialogs::{Layer, QuestionDialog};
use crate::ui::{dialogs, start};

pub fn fake() -> AgentSpec {
    AgentSpec { name: "fake".into(), command: "fake".into(), ..AgentSpec::default() }
}

impl TestApp {
    pub fn open_tab(&mut self, folder: &str, agent: AgentSpec) -> SessionKey {
        let mut key = None;
        self.flow(|state, cx| key = Some(operations::open_tab(state, folder.into(), agent, cx)));
        key.unwrap()
    }

    /// A second, active tab with a separate process in another folder, whose session `two` is open.
    pub fn two_tabs() -> (Self, SessionKey, ConnId) {
        let mut app = Self::ready();
        let key = app.open_tab("/code/lib", fake());
        let conn = app.state.sessions[&key].conn.unwrap();
        let info = AgentInfo { capabilities: all_capabilities(), ..AgentInfo::default() };
        app.play(Event::Agent(conn, AgentEvent::Started { pid: Some(8) }));
        app.play(Event::Agent(conn, AgentEvent::Ready(Box::new(info))));
        app.reply_to(conn, Ok(Reply::Session(SessionReply { id: Some("two".into()), ..Default::default() })));
        app.fx.clear();
        (app, key, conn)
    }

    pub fn reply_to(&mut self, conn: ConnId, result: Result<Reply, CallError>) -> &mut Self {
        let tag = self.state.conns[&conn].open_calls.values().next_back().cloned().unwrap();
        self.play(Event::Agent(conn, AgentEvent::Replied(tag, result)))
    }
}

#[test]
fn a_tab_in_another_folder_starts_a_separate_agent() {
    let (app, key, conn) = TestApp::two_tabs();
    assert_ne!(conn, CONN);
    assert_eq!(app.state.active, key);
    assert_eq!(app.state.sessions[&key].workspace.cwd, PathBuf::from("/code/lib"));
    assert_eq!(tabs(&app.state).count(), 2);
}

#[test]
fn a_tab_without_an_agent_is_closed_when_another_opens() {
    let setup = Setup { folder: "/code/shop".into(), ..Setup::default() };
    let now = std::time::Instant::now();
    let (started, fx) = start(setup, now);
    let mut app = TestApp::of(started, now, fx);
    let key = app.open_tab("/code/lib", fake());
    assert_eq!((tabs(&app.state).count(), app.state.active), (1, key));
    assert!(app.layers.is_empty(), "its agent picker is closed too");
    app.play(Event::Input);
}

#[test]
fn two_tabs_of_one_agent_in_one_folder_share_its_process() {
    let mut app = TestApp::ready();
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
    let other = AgentSpec { name: "other".into(), command: "other".into(), ..AgentSpec::default() };
    app.fx.clear();
    app.open_tab("/code/shop", other);
    app.expect_sent("connect 2 after 0 ms");
}

#[test]
fn a_tab_opened_while_its_agent_is_starting_waits_for_it() {
    let mut app = TestApp::started();
    let key = app.open_tab("/code/shop", fake());
    app.expect_sent("connect 1 after 0 ms");
    app.handshake(all_capabilities()).expect_sent("call new\ncall new");
    assert_eq!(app.state.sessions[&key].conn, Some(CONN));
}

#[test]
fn a_crash_in_an_inactive_tab_restarts_only_that_agent() {
    let (mut app, key, conn) = TestApp::two_tabs();
    app.flow(|state, _| operations::activate(state, KEY)).play(Event::Input);
    let before = app.state.sessions[&KEY].clone();
    let ended =
        CloseReason::Exited { status: ExitInfo { code: Some(3), signal: None }, stderr_tail: Vec::new() };
    app.play(Event::Agent(conn, AgentEvent::Closed(ended)));
    app.expect_sent("connect 3 after 500 ms");
    assert_eq!((app.state.active, &app.state.sessions[&KEY]), (KEY, &before));
    assert!(matches!(app.state.sessions[&key].phase, SessionPhase::Starting { .. }));
}

#[test]
fn a_dialog_of_an_inactive_tab_starts_its_grace_period_when_it_is_shown() {
    let (mut app, key, conn) = TestApp::two_tabs();
    app.flow(|state, cx| operations::submit(state, key, "go".into(), cx));
    app.flow(|state, cx| operations::cancel_turn(state, key, cx));
    app.play(Event::Act(Action::ShowTab(1)));
    app.wait(11).play(Event::Timer(TimerId::CancelOverdue(key)));
    assert!(app.layers.is_empty(), "the active tab keeps its keys");
    app.wait(5).play(Event::Input).play(Event::Act(Action::ShowTab(2)));
    assert!(app.layers.top::<QuestionDialog>().is_some());
    // A key directly after the tab switch chooses nothing.
    app.fx.clear();
    app.play(Event::Input).answer(3).expect_sent("");
    app.wait(1).play(Event::Input).answer(3);
    app.expect_sent("disconnect 2 now");
    assert_eq!(app.state.sessions[&key].conn, Some(conn));
}

#[test]
fn each_tab_has_its_draft_and_dialogs() {
    let (mut app, key, _) = TestApp::two_tabs();
    app.play(Event::Draft("in two".into())).play(Event::Act(Action::OpenLog));
    app.play(Event::Act(Action::PreviousTab)).expect_sent("draft \"\"");
    assert_eq!((app.state.active, app.layers.len()), (KEY, 0));
    app.play(Event::Draft("in one".into())).play(Event::Act(Action::FormerTab));
    app.expect_sent("draft \"in two\"");
    assert!(app.layers.len() == 1 && app.layers.top::<LogPage>().is_some());
    assert_eq!(app.state.sessions[&KEY].draft, "in one");
    app.play(Event::Act(Action::NextTab));
    assert_eq!(app.state.active, KEY, "after the last one follows the first");
    assert_eq!(app.background[&key].layers.len(), 1);
}

#[test]
fn a_tab_selected_in_the_palette_shows_its_draft() {
    let (mut app, ..) = TestApp::two_tabs();
    app.play(Event::Draft("in two".into()));
    app.state.setup.palette = crate::config::keymap::Keymap::defaults().palette();
    app.play(Event::Act(Action::OpenPalette)).play(Event::Line(LineEdit::Insert("previous tab".into())));
    app.play(Event::Act(Action::Accept)).expect_sent("draft \"\"");
    assert_eq!(app.state.active, KEY);
}

#[test]
fn closed_tabs_leave_no_dialogs() {
    let (mut app, key, _) = TestApp::two_tabs();
    app.play(Event::Act(Action::OpenLog));
    app.flow(|state, cx| operations::close_session(state, key, cx));
    assert_eq!((app.state.active, app.background.len()), (KEY, 0));
}

#[test]
fn the_palette_closes_on_a_tab_switch_and_a_previewed_theme_is_reset() {
    let (mut app, ..) = TestApp::two_tabs();
    app.state.setup.themes =
        [true, false].map(|is_dark| ThemeInfo { name: format!("dark {is_dark}"), is_dark }).into();
    app.state.setup.theme = "dark".into();
    app.play(Event::Act(Action::OpenThemes)).play(Event::Act(Action::Down));
    app.fx.clear();
    app.play(Event::Act(Action::ShowTab(1)));
    assert!(app.fx.contains(&Effect::SetTheme("dark".into())));
    app.play(Event::Act(Action::ShowTab(2)));
    assert!(app.layers.is_empty());
}

#[test]
fn closing_a_tab_stops_an_agent_without_other_tabs() {
    let (mut app, key, _) = TestApp::two_tabs();
    app.flow(|state, cx| operations::close_session(state, key, cx));
    app.expect_sent("call close two\ndisconnect 2");
    assert_eq!((app.state.active, app.state.sessions.len()), (KEY, 1));
    // An agent shared with another tab continues.
    let shared = app.open_tab("/code/shop", fake());
    app.reply_to(CONN, Ok(Reply::Session(SessionReply { id: Some("three".into()), ..Default::default() })));
    app.fx.clear();
    app.flow(|state, cx| operations::close_session(state, shared, cx));
    app.expect_sent("call close three");
}

#[test]
fn tabs_can_be_moved_and_next_follows_the_shown_order() {
    let mut app = TestApp::ready();
    let two = app.open_tab("/b", fake());
    let three = app.open_tab("/c", fake());
    let order = |app: &TestApp| tab::tabs(&app.state).map(|session| session.key).collect::<Vec<_>>();
    app.play(Event::Act(Action::MoveTabRight));
    assert_eq!(order(&app), [KEY, two, three], "the last one stays");
    app.play(Event::Act(Action::MoveTabLeft));
    assert_eq!(order(&app), [KEY, three, two]);
    assert_eq!(tab::front(&app.state), three, "it stays active");
    app.play(Event::Act(Action::ShowTab(3)));
    assert_eq!(tab::front(&app.state), two);
    app.flow(|state, cx| operations::close_session(state, two, cx));
    assert_eq!(tab::front(&app.state), three);
}

#[test]
fn a_missing_tab_is_reported() {
    let (mut app, key, _) = TestApp::two_tabs();
    app.play(Event::Act(Action::ShowTab(9)));
    assert_eq!((app.state.active, app.state.flash.as_deref()), (key, Some("Only 2 tabs open.")));
}

#[test]
fn a_new_tab_is_chosen_by_agent_and_by_folder() {
    let mut app = TestApp::ready();
    let choice = |name: &str| AgentChoice {
        spec: AgentSpec { name: name.into(), command: name.into(), ..AgentSpec::default() },
        title: name.into(),
        source: "found".into(),
        ..AgentChoice::default()
    };
    app.state.setup.agents = vec![choice("fake"), choice("other")];
    app.play(Event::Act(Action::NewTab)).play(Event::Act(Action::Last)).play(Event::Act(Action::Accept));
    assert!(app.fx.contains(&Effect::ListFolders), "the last row opens the folder picker");
    let known = vec!["/code/shop".into(), "/code/lib".into()];
    app.service(ServiceEvent::Folders(known));
    app.play(Event::Line(LineEdit::Insert("../nowhere".into()))).play(Event::Act(Action::Accept));
    let wanted = Effect::FindFolder { text: "../nowhere".into(), base: "/code/shop".into() };
    assert_eq!(app.fx.iter().filter(|effect| **effect == wanted).count(), 1);
    let found = Err("It is not there.".into());
    app.service(ServiceEvent::FolderFound { text: "../nowhere".into(), found });
    let Some(again) = app.layers.last().and_then(Layer::list) else {
        panic!("the folders are asked for again")
    };
    assert_eq!((again.filter.text.as_str(), again.note.as_deref()), ("../nowhere", Some("It is not there.")));
    let found = Ok("/code/lib".into());
    app.service(ServiceEvent::FolderFound { text: "/code/lib".into(), found });
    app.fx.clear();
    app.play(Event::Act(Action::Down)).play(Event::Act(Action::Accept));
    app.expect_sent("connect 2 after 0 ms\ndraft \"\"");
    let front = app.state.active_session().unwrap();
    assert_eq!((front.workspace.cwd.to_str(), tabs(&app.state).count()), (Some("/code/lib"), 2));
}

#[test]
fn updates_of_inactive_tabs_redraw_only_if_the_tab_bar_changes() {
    let (mut app, key, conn) = TestApp::two_tabs();
    app.flow(|state, cx| operations::submit(state, key, "go".into(), cx));
    app.play(Event::Act(Action::ShowTab(1))).wait(10).play(Event::Timer(TimerId::Flash));
    let changes = |app: &TestApp| app.state.changes;
    let before = changes(&app);
    for index in 0..1000 {
        let update = if index % 10 == 0 { news("t", ToolStatus::InProgress) } else { says("word ") };
        app.play(Event::Agent(conn, AgentEvent::Update("two".into(), update)));
        app.service(ServiceEvent::TerminalOutput { terminal: "none".into(), bytes: b"x".to_vec() });
    }
    assert_eq!(changes(&app), before, "no frame for an inactive tab");
    app.update(says("seen"));
    assert_eq!(changes(&app), before + 1);
    let title = SessionUpdate::Info { title: Patch::Set("Fixing".into()), updated_at: Patch::Keep };
    app.play(Event::Agent(conn, AgentEvent::Update("two".into(), title)));
    assert_eq!(changes(&app), before + 2, "the tab bar shows its name");
    let (tag, ended) =
        (app.state.conns[&conn].open_calls.values().next().cloned().unwrap(), StopReason::EndTurn);
    let reply = Ok(Reply::TurnEnded { reason: ended, usage: None });
    app.play(Event::Agent(conn, AgentEvent::Replied(tag, reply)));
    assert_eq!(tab::mark(&app.state, &app.state.sessions[&key]), TabMark::Done);
    assert!(changes(&app) > before + 2);
    app.play(Event::Act(Action::ShowTab(2)));
    assert_eq!(tab::mark(&app.state, &app.state.sessions[&key]), TabMark::Nothing, "it was seen");
}

#[test]
fn concurrent_updates_of_two_agents_go_to_their_sessions() {
    let (mut app, key, conn) = TestApp::two_tabs();
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
fn a_request_of_an_inactive_tab_notifies_once_and_receives_no_keys() {
    let (mut app, key, conn) = TestApp::two_tabs();
    app.play(Event::Act(Action::ShowTab(1))).play(Event::Draft("half a wo".into()));
    app.fx.clear();
    let AgentRequest::Permission(request) = permission("t") else { panic!("it is a permission") };
    let request = AgentRequest::Permission(PermissionRequest { session: Some("two".into()), ..request });
    app.play(Event::Agent(conn, AgentEvent::Request(RequestId(9), Box::new(request))));
    let calls = app.fx.iter().filter(|effect| matches!(effect, Effect::Announce { .. })).count();
    assert_eq!((calls, app.state.flash.as_deref()), (1, Some("Tab 2: permission required.")));
    assert_eq!(dialogs::focus(&app), Context::Main);
    app.wait(10).play(Event::Input).answer(1);
    assert_eq!(app.state.sessions[&key].requests.len(), 1, "a digit typed into the prompt is not an answer");
    assert_eq!(app.session().draft, "half a wo");
}

fn quit_question(app: &TestApp) -> Option<(String, String)> {
    let question = app.state.questions.last()?;
    Some((question.title.clone(), question.body.join(" ")))
}

#[test]
fn quitting_asks_once_for_all_tabs_and_stops_all_agents() {
    let (mut app, key, conn) = TestApp::two_tabs();
    app.state.setup.saves_sessions = true;
    app.submit("one").flow(|state, cx| operations::submit(state, key, "two".into(), cx));
    app.fx.clear();
    app.wait(1).play(Event::Input).play(Event::Act(Action::Quit)).expect_sent("");
    let (title, body) = quit_question(&app).unwrap();
    let expected =
        "Quitting cancels 2 turns and stops the agents of all tabs. `parlor --continue` reopens the tabs.";
    assert_eq!((title.as_str(), body.as_str()), ("Turns are running. Quit?", expected));
    app.end_turn(StopReason::EndTurn);
    let (title, _) = quit_question(&app).unwrap();
    assert_eq!(title, "A turn is running. Quit?");
    app.fx.clear();
    app.play(Event::Act(Action::Yes)).expect_sent("disconnect 1\ncancel two\ndisconnect 2\nquit");
    assert!(app.state.sessions.values().all(|session| !session.turn.is_running()));
    assert_eq!(app.state.conns[&conn].phase, ConnPhase::Stopping);
}

#[test]
fn quitting_asks_again_in_another_tab() {
    let (mut app, key, _) = TestApp::two_tabs();
    app.state.setup.saves_sessions = true;
    app.flow(|state, cx| operations::submit(state, key, "two".into(), cx));
    app.play(Event::Act(Action::Quit)).play(Event::Act(Action::ShowTab(1)));
    app.play(Event::Act(Action::Quit));
    assert!(!app.state.is_quitting);
    assert_eq!((app.layers.len(), app.state.questions.len()), (1, 1), "not the one of the other tab");
    app.play(Event::Act(Action::Quit));
    assert!(app.state.is_quitting);
}

#[test]
fn a_tab_closes_without_a_question_unless_a_turn_is_running() {
    let closes = |prepare: &dyn Fn(&mut TestApp, SessionKey)| {
        let (mut app, key, _) = TestApp::two_tabs();
        app.state.setup.saves_sessions = true;
        prepare(&mut app, key);
        app.wait(2).play(Event::Input).play(Event::Act(Action::CloseSession));
        let is_asked = quit_question(&app).is_some_and(|(title, _)| title == "Close session?");
        assert_ne!(is_asked, !app.state.sessions.contains_key(&key));
        !is_asked
    };
    assert!(closes(&|_, _| {}));
    assert!(
        closes(&|app, _| {
            app.state.setup.saves_sessions = false;
        }),
        "nothing was said yet"
    );
    assert!(!closes(&|app, key| {
        app.flow(|state, cx| operations::submit(state, key, "go".into(), cx));
    }));
    assert!(!closes(&|app, _| {
        app.play(Event::Draft("a thought".into()));
    }));
    assert!(
        !closes(&|app, key| {
            app.state.setup.saves_sessions = false;
            let notice = ItemBody::notice(Severity::Info, "said".into(), None);
            app.state.sessions.get_mut(&key).unwrap().transcript.push(1, notice);
        }),
        "it would be gone"
    );
}

#[test]
fn the_log_of_a_tab_shows_only_its_connections() {
    let app = TestApp::ready();
    assert_eq!(tab::log_conns(&app.state), None, "a single tab shows the log of all");
    let (mut app, _, conn) = TestApp::two_tabs();
    assert_eq!(tab::log_conns(&app.state), Some(vec![conn.0]));
    let ended =
        CloseReason::Exited { status: ExitInfo { code: Some(3), signal: None }, stderr_tail: Vec::new() };
    app.play(Event::Agent(conn, AgentEvent::Closed(ended)));
    assert_eq!(tab::log_conns(&app.state), Some(vec![conn.0, 3]), "the end of the previous one stays in it");
    app.play(Event::Act(Action::ShowTab(1)));
    assert_eq!(tab::log_conns(&app.state), Some(vec![CONN.0]));
}

#[test]
fn an_anomaly_is_counted_in_the_tab_of_its_agent() {
    let (mut app, key, conn) = TestApp::two_tabs();
    let odd = Anomaly { kind: AnomalyKind::BadMessage, text: "{".into() };
    app.play(Event::Agent(conn, AgentEvent::Anomaly(odd)));
    let count = |key: SessionKey| app.state.sessions[&key].anomaly_count;
    assert_eq!((count(KEY), count(key)), (0, 1));
}

#[test]
fn the_tabs_of_the_last_run_are_reopened_in_order() {
    let saved = |uid: &str, folder: &str| {
        let workspace = SessionWorkspace { cwd: folder.into(), ..SessionWorkspace::default() };
        let head = SessionHead {
            saved_as: Some(uid.into()),
            agent: "fake".into(),
            command: "fake".into(),
            session: Some(uid.into()),
            workspace,
            ..SessionHead::default()
        };
        let record = Record::Prompt {
            text: format!("prompt of {uid}"),
            is_again: false,
            blocks: Vec::new(),
            pasted: Vec::new(),
            typed: None,
        };
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
    let now = std::time::Instant::now();
    let (started, fx) = start(setup, now);
    let mut app = TestApp::of(started, now, fx);
    let name = |tab: &Session| {
        let uid = tab.read_only.as_ref().map(|reading| format!("{}, read-only", reading.uid));
        uid.unwrap_or_else(|| tab.recorder.saved_as().unwrap_or_default().to_owned())
    };
    let order: Vec<_> = tabs(&app.state).map(name).collect();
    assert_eq!(order, ["k1", "k2", "k3", "k4", "k5, read-only"]);
    assert_eq!(app.state.active, KEY, "the active tab is that of the last run");
    assert!(app.layers.is_empty());
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
fn saved_heads(app: &mut TestApp) -> Vec<(u32, bool)> {
    app.play(Event::Input);
    let heads = app.saved.iter().filter_map(|note| match note {
        Note::Head(head) => Some((head.tab, head.is_front)),
        _ => None,
    });
    heads.collect()
}

#[test]
fn the_active_tab_is_recorded() {
    let (mut app, key, _) = TestApp::two_tabs();
    assert_eq!(saved_heads(&mut app).last(), Some(&(1, false)));
    app.flow(|state, _| operations::activate(state, KEY));
    assert_eq!(saved_heads(&mut app).last(), Some(&(1, true)));
    app.flow(|state, _| operations::activate(state, key));
    assert_eq!(saved_heads(&mut app).last(), Some(&(1, false)));
}

#[test]
fn quitting_idle_tabs_asks_only_if_they_are_lost() {
    let (mut app, ..) = TestApp::two_tabs();
    app.state.setup.saves_sessions = true;
    app.wait(1).play(Event::Input).play(Event::Act(Action::Quit));
    assert!(app.state.is_quitting, "the tabs are restored");

    let (mut app, ..) = TestApp::two_tabs();
    app.state.setup.saves_sessions = true;
    app.state.unsaved = Some(Unsaved { why: "the disk is full".to_owned(), ..Unsaved::default() });
    app.wait(1).play(Event::Input).play(Event::Act(Action::Quit));
    assert!(quit_question(&app).is_some());

    let (mut app, ..) = TestApp::two_tabs();
    app.state.setup.saves_sessions = false;
    app.wait(1).play(Event::Input).play(Event::Act(Action::Quit)).expect_sent("");
    let (title, body) = quit_question(&app).unwrap();
    assert_eq!(title, "Quit all tabs?");
    assert!(body.ends_with("Their sessions are not saved."), "{body}");
    app.play(Event::Act(Action::Escape));
    assert!(!app.state.is_quitting && app.layers.is_empty());
    app.play(Event::Act(Action::Quit)).play(Event::Act(Action::Yes));
    assert!(app.state.is_quitting);
}

#[test]
fn a_second_ctrl_c_asks_if_another_tab_works() {
    let (mut app, ..) = TestApp::two_tabs();
    app.flow(|state, cx| operations::submit(state, KEY, "one".into(), cx));
    app.fx.clear();
    app.wait(1).play(Event::Input).play(Event::Act(Action::ClearOrQuit));
    app.wait(0).play(Event::Act(Action::ClearOrQuit));
    assert!(!app.state.is_quitting);
    assert_eq!(quit_question(&app).unwrap().0, "A turn is running. Quit?");
}

#[test]
fn the_agent_of_the_tab_is_offered_for_a_new_one() {
    let mut app = TestApp::ready();
    app.play(Event::Act(Action::NewTab));
    let Some(picker) = app.layers.last().and_then(Layer::list) else { panic!("{:?}", app.layers) };
    assert_eq!((picker.rows[0].label.as_str(), picker.selected), ("fake", 0));
    app.play(Event::Act(Action::Accept));
    assert_eq!(tabs(&app.state).count(), 2);
}
