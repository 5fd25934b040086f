//! Tests of several tabs: opening, shared processes, routing, dialogs of inactive tabs.

use crate::app::lifecycle::operations;
use crate::app::state::tab;
use std::path::PathBuf;

use super::support::*;
use crate::app::state::tab::tabs;
use crate::app::*;
use crate::model::*;

fn fake() -> AgentSpec {
    AgentSpec { name: "fake".into(), command: "fake".into(), ..AgentSpec::default() }
}

fn new_tab(folder: &str, agent: AgentSpec) -> NewTab {
    NewTab { folder: folder.into(), agent: Some(agent), begin: Beginning::New }
}

impl TestApp {
    fn open_tab(&mut self, tab: NewTab) -> SessionKey {
        let mut key = None;
        self.flow(|state, now, fx| key = Some(operations::open_tab(state, tab, now, fx)));
        key.unwrap()
    }

    /// A second, active tab with a separate process in another folder, whose session `two` is open.
    pub fn two_tabs() -> (Self, SessionKey, ConnId) {
        let mut desk = Self::ready();
        let key = desk.open_tab(new_tab("/code/lib", fake()));
        let conn = desk.state.sessions[&key].conn.unwrap();
        let info = AgentInfo { capabilities: all_capabilities(), ..AgentInfo::default() };
        desk.play(Event::Agent(conn, AgentEvent::Started { pid: Some(8) }));
        desk.play(Event::Agent(conn, AgentEvent::Ready(Box::new(info))));
        desk.reply_to(
            conn,
            Ok(Reply::Session(SessionReply { id: Some("two".into()), ..Default::default() })),
        );
        desk.fx.clear();
        (desk, key, conn)
    }

    pub fn reply_to(&mut self, conn: ConnId, result: Result<Reply, CallError>) -> &mut Self {
        let tag = self.state.conns[&conn].open_calls.values().next_back().cloned().unwrap();
        self.play(Event::Agent(conn, AgentEvent::Replied(tag, result)))
    }
}

#[test]
fn a_tab_in_another_folder_starts_a_separate_agent() {
    let (desk, key, conn) = TestApp::two_tabs();
    assert_ne!(conn, CONN);
    assert_eq!(desk.state.active, key);
    assert_eq!(desk.state.sessions[&key].place.cwd, PathBuf::from("/code/lib"));
    assert_eq!(tabs(&desk.state).count(), 2);
}

#[test]
fn a_tab_without_an_agent_is_closed_when_another_opens() {
    let setup = Setup { folder: "/code/shop".into(), ..Setup::default() };
    let now = std::time::Instant::now();
    let (state, fx) = start(setup, now);
    let mut desk = TestApp { state, now, fx, kept: Vec::new() };
    let key = desk.open_tab(new_tab("/code/lib", fake()));
    assert_eq!((tabs(&desk.state).count(), desk.state.active), (1, key));
    assert_eq!(desk.state.modals, [], "its agent picker is closed too");
    desk.play(Event::Input);
}

#[test]
fn two_tabs_of_one_agent_in_one_folder_share_its_process() {
    let mut desk = TestApp::ready();
    let key = desk.open_tab(new_tab("/code/shop", fake()));
    desk.expect_sent("call new");
    assert_eq!(desk.state.sessions[&key].conn, Some(CONN));
    desk.open("two");
    // Each update goes to its session.
    desk.agent(AgentEvent::Update("two".into(), says("second")));
    desk.agent(AgentEvent::Update(ID.into(), says("first")));
    assert_eq!(digest(&desk.state.sessions[&key]), "ready · idle\nagent \"second\" …");
    desk.expect("ready · idle\nagent \"first\" …");
    // Another agent has a separate process, even in the same folder.
    let other = AgentSpec { name: "other".into(), command: "other".into(), ..AgentSpec::default() };
    desk.fx.clear();
    desk.open_tab(new_tab("/code/shop", other));
    desk.expect_sent("connect 2 after 0 ms");
}

#[test]
fn a_tab_opened_while_its_agent_is_starting_waits_for_it() {
    let mut desk = TestApp::started();
    let key = desk.open_tab(new_tab("/code/shop", fake()));
    desk.expect_sent("connect 1 after 0 ms");
    desk.handshake(all_capabilities()).expect_sent("call new\ncall new");
    assert_eq!(desk.state.sessions[&key].conn, Some(CONN));
}

#[test]
fn a_listed_session_opens_in_a_tab_or_activates_its_tab() {
    let info = SessionInfo { cwd: "/code/lib".into(), title: Some("Skew".into()), ..listed("old") };
    let listed =
        || NewTab { folder: "/code/lib".into(), agent: Some(fake()), begin: Beginning::Listed(info.clone()) };
    let mut desk = TestApp::ready();
    let key = desk.open_tab(listed());
    let conn = desk.state.sessions[&key].conn.unwrap();
    desk.fx.clear();
    desk.play(Event::Agent(
        conn,
        AgentEvent::Ready(Box::new(AgentInfo { capabilities: all_capabilities(), ..Default::default() })),
    ));
    desk.expect_sent("call load old");
    assert_eq!(desk.state.sessions[&key].title.as_deref(), Some("Skew"));
    desk.flow(|state, now, fx| operations::activate(state, KEY, now, fx));
    assert_eq!(desk.open_tab(listed()), key);
    assert_eq!((desk.state.active, desk.state.sessions.len()), (key, 2));
}

#[test]
fn a_stored_session_opens_in_a_tab_only_once() {
    let head = SessionHead {
        kept_as: Some("uid".into()),
        agent: "fake".into(),
        command: "fake".into(),
        session: Some("old".into()),
        place: SessionPlace { cwd: "/code/shop".into(), ..Default::default() },
        ..Default::default()
    };
    let events = vec![RecordedEvent {
        at_ms: 0,
        turn: 1,
        record: Record::Prompt { text: "fix it".into(), is_again: false },
    }];
    let kept = RecordedSession { head, draft: "next".into(), events, ..Default::default() };
    let tab = || NewTab {
        folder: "/code/shop".into(),
        agent: Some(fake()),
        begin: Beginning::Kept(Box::new(kept.clone())),
    };
    let mut desk = TestApp::ready();
    let key = desk.open_tab(tab());
    desk.expect_sent("call resume old");
    let session = &desk.state.sessions[&key];
    assert_eq!((session.draft.as_str(), session.turn_count), ("next", 1));
    assert_eq!(desk.open_tab(tab()), key);
    assert_eq!(desk.state.sessions.len(), 2);
}

#[test]
fn a_crash_in_an_inactive_tab_restarts_only_that_agent() {
    let (mut desk, key, conn) = TestApp::two_tabs();
    desk.flow(|state, now, fx| operations::activate(state, KEY, now, fx));
    let before = desk.state.sessions[&KEY].clone();
    let ended =
        CloseReason::Exited { status: ExitInfo { code: Some(3), signal: None }, stderr_tail: Vec::new() };
    desk.play(Event::Agent(conn, AgentEvent::Closed(ended)));
    desk.expect_sent("connect 3 after 500 ms");
    assert_eq!((desk.state.active, &desk.state.sessions[&KEY]), (KEY, &before));
    assert!(matches!(desk.state.sessions[&key].phase, SessionPhase::Starting { .. }));
}

#[test]
fn a_dialog_of_an_inactive_tab_starts_its_grace_period_when_it_is_shown() {
    let (mut desk, key, conn) = TestApp::two_tabs();
    desk.flow(|state, now, fx| operations::submit(state, key, "go".into(), now, fx));
    desk.flow(|state, now, fx| operations::cancel_turn(state, key, now, fx));
    desk.play(Event::Act(Action::ShowTab(1)));
    desk.wait(11).play(Event::Timer(TimerId::CancelOverdue(key)));
    assert_eq!(desk.state.modals, [], "the active tab keeps its keys");
    desk.wait(5).play(Event::Input).play(Event::Act(Action::ShowTab(2)));
    let shown = desk.state.modals.last();
    assert!(matches!(shown, Some(Modal::Choice(dialog)) if dialog.opened_by_itself == Some(desk.now)));
    // A key directly after the tab switch chooses nothing.
    desk.fx.clear();
    desk.play(Event::Input).play(Event::Act(Action::Choose(3))).expect_sent("");
    desk.wait(1).play(Event::Input).play(Event::Act(Action::Choose(3)));
    desk.expect_sent("disconnect 2 now");
    assert_eq!(desk.state.sessions[&key].conn, Some(conn));
}

#[test]
fn each_tab_has_its_draft_and_dialogs() {
    let (mut desk, key, _) = TestApp::two_tabs();
    desk.play(Event::Draft("in two".into())).play(Event::Act(Action::OpenLog));
    desk.play(Event::Act(Action::PreviousTab)).expect_sent("draft \"\"");
    assert_eq!((desk.state.active, desk.state.modals.len()), (KEY, 0));
    desk.play(Event::Draft("in one".into())).play(Event::Act(Action::FormerTab));
    desk.expect_sent("draft \"in two\"");
    assert!(matches!(desk.state.modals.as_slice(), [Modal::Log { .. }]));
    assert_eq!(desk.state.sessions[&KEY].draft, "in one");
    desk.play(Event::Act(Action::NextTab));
    assert_eq!(desk.state.active, KEY, "after the last one follows the first");
    assert_eq!(desk.state.sessions[&key].shelf.modals.len(), 1);
}

#[test]
fn the_palette_closes_on_a_tab_switch_and_a_previewed_theme_is_reset() {
    let (mut desk, ..) = TestApp::two_tabs();
    desk.state.setup.themes = vec!["dark".into(), "light".into()];
    desk.state.setup.theme = "dark".into();
    desk.play(Event::Act(Action::OpenThemes)).play(Event::Act(Action::Down));
    desk.fx.clear();
    desk.play(Event::Act(Action::ShowTab(1)));
    assert!(desk.fx.contains(&Effect::SetTheme("dark".into())));
    desk.play(Event::Act(Action::ShowTab(2)));
    assert_eq!(desk.state.modals, []);
}

#[test]
fn closing_a_tab_stops_an_agent_without_other_tabs() {
    let (mut desk, key, _) = TestApp::two_tabs();
    desk.flow(|state, now, fx| operations::close_session(state, key, now, fx));
    desk.expect_sent("call close two\ndisconnect 2");
    assert_eq!((desk.state.active, desk.state.sessions.len()), (KEY, 1));
    // An agent shared with another tab continues.
    let shared = desk.open_tab(new_tab("/code/shop", fake()));
    desk.reply_to(CONN, Ok(Reply::Session(SessionReply { id: Some("three".into()), ..Default::default() })));
    desk.fx.clear();
    desk.flow(|state, now, fx| operations::close_session(state, shared, now, fx));
    desk.expect_sent("call close three");
}

#[test]
fn tabs_can_be_moved_and_next_follows_the_shown_order() {
    let mut desk = TestApp::ready();
    let two = desk.open_tab(new_tab("/b", fake()));
    let three = desk.open_tab(new_tab("/c", fake()));
    let order = |desk: &TestApp| tab::tabs(&desk.state).map(|session| session.key).collect::<Vec<_>>();
    desk.play(Event::Act(Action::MoveTabRight));
    assert_eq!(order(&desk), [KEY, two, three], "the last one stays");
    desk.play(Event::Act(Action::MoveTabLeft));
    assert_eq!(order(&desk), [KEY, three, two]);
    assert_eq!(tab::front(&desk.state), three, "it stays active");
    desk.play(Event::Act(Action::ShowTab(3)));
    assert_eq!(tab::front(&desk.state), two);
    desk.flow(|state, now, fx| operations::close_session(state, two, now, fx));
    assert_eq!(tab::front(&desk.state), three);
}

#[test]
fn a_missing_tab_is_reported() {
    let (mut desk, key, _) = TestApp::two_tabs();
    desk.play(Event::Act(Action::ShowTab(9)));
    assert_eq!((desk.state.active, desk.state.flash.as_deref()), (key, Some("Only 2 tabs open.")));
}

#[test]
fn a_new_tab_is_chosen_by_agent_and_by_folder() {
    let mut desk = TestApp::ready();
    let choice = |name: &str| AgentChoice {
        spec: AgentSpec { name: name.into(), command: name.into(), ..AgentSpec::default() },
        title: name.into(),
        source: "found".into(),
    };
    desk.state.setup.agents = vec![choice("fake"), choice("other")];
    desk.play(Event::Act(Action::NewTab)).play(Event::Act(Action::Last)).play(Event::Act(Action::Accept));
    assert!(desk.fx.contains(&Effect::ListFolders), "the last row opens the folder picker");
    let known = vec!["/code/shop".into(), "/code/lib".into()];
    desk.service(ServiceEvent::Folders(known));
    desk.play(Event::Line(LineEdit::Insert("../nowhere".into()))).play(Event::Act(Action::Accept));
    let wanted = Effect::FindFolder { text: "../nowhere".into(), base: "/code/shop".into() };
    assert_eq!(desk.fx.iter().filter(|effect| **effect == wanted).count(), 1);
    let found = Err("It is not there.".into());
    desk.service(ServiceEvent::FolderFound { text: "../nowhere".into(), found });
    let Some(Modal::Picker(again)) = desk.state.modals.last() else {
        panic!("the folders are asked for again")
    };
    assert_eq!((again.filter.text.as_str(), again.note.as_deref()), ("../nowhere", Some("It is not there.")));
    let found = Ok("/code/lib".into());
    desk.service(ServiceEvent::FolderFound { text: "/code/lib".into(), found });
    desk.fx.clear();
    desk.play(Event::Act(Action::Down)).play(Event::Act(Action::Accept));
    desk.expect_sent("connect 2 after 0 ms\ndraft \"\"");
    let front = desk.state.active_session().unwrap();
    assert_eq!((front.place.cwd.to_str(), tabs(&desk.state).count()), (Some("/code/lib"), 2));
}

#[test]
fn updates_of_inactive_tabs_redraw_only_if_the_tab_bar_changes() {
    let (mut desk, key, conn) = TestApp::two_tabs();
    desk.flow(|state, now, fx| operations::submit(state, key, "go".into(), now, fx));
    desk.play(Event::Act(Action::ShowTab(1))).wait(10).play(Event::Timer(TimerId::Flash));
    let changes = |desk: &TestApp| desk.state.changes;
    let before = changes(&desk);
    for index in 0..1000 {
        let update = if index % 10 == 0 { news("t", ToolStatus::InProgress) } else { says("word ") };
        desk.play(Event::Agent(conn, AgentEvent::Update("two".into(), update)));
        desk.service(ServiceEvent::TerminalOutput { terminal: "none".into(), bytes: b"x".to_vec() });
    }
    assert_eq!(changes(&desk), before, "no frame for an inactive tab");
    desk.update(says("seen"));
    assert_eq!(changes(&desk), before + 1);
    let title = SessionUpdate::Info { title: Patch::Set("Fixing".into()), updated_at: Patch::Keep };
    desk.play(Event::Agent(conn, AgentEvent::Update("two".into(), title)));
    assert_eq!(changes(&desk), before + 2, "the tab bar shows its name");
    let (tag, ended) =
        (desk.state.conns[&conn].open_calls.values().next().cloned().unwrap(), StopReason::EndTurn);
    let reply = Ok(Reply::TurnEnded { reason: ended, usage: None });
    desk.play(Event::Agent(conn, AgentEvent::Replied(tag, reply)));
    assert_eq!(tab::mark(&desk.state, &desk.state.sessions[&key]), TabMark::Done);
    assert!(changes(&desk) > before + 2);
    desk.play(Event::Act(Action::ShowTab(2)));
    assert_eq!(tab::mark(&desk.state, &desk.state.sessions[&key]), TabMark::Nothing, "it was seen");
}

#[test]
fn concurrent_updates_of_two_agents_go_to_their_sessions() {
    let (mut desk, key, conn) = TestApp::two_tabs();
    for (index, word) in ["a ", "b ", "c "].into_iter().enumerate() {
        desk.update(says(word));
        // The other agent uses the same session id.
        desk.state.sessions.get_mut(&key).unwrap().id = Some(ID.into());
        desk.play(Event::Agent(conn, AgentEvent::Update(ID.into(), says(&index.to_string()))));
    }
    desk.expect("ready · idle\nagent \"a b c \" …");
    assert_eq!(digest(&desk.state.sessions[&key]), "ready · idle\nagent \"012\" …");
}

#[test]
fn a_request_of_an_inactive_tab_notifies_once_and_receives_no_keys() {
    let (mut desk, key, conn) = TestApp::two_tabs();
    desk.play(Event::Act(Action::ShowTab(1))).play(Event::Draft("half a wo".into()));
    desk.fx.clear();
    let AgentRequest::Permission(request) = permission("t") else { panic!("it is a permission") };
    let request = AgentRequest::Permission(PermissionRequest { session: Some("two".into()), ..request });
    desk.play(Event::Agent(conn, AgentEvent::Request(AskId(9), Box::new(request))));
    let calls = desk.fx.iter().filter(|effect| matches!(effect, Effect::Announce(_))).count();
    assert_eq!((calls, desk.state.flash.as_deref()), (1, Some("Tab 2: permission required.")));
    assert_eq!(dialogs::focus(&desk.state), dialogs::Focus::Main);
    desk.wait(10).play(Event::Input).play(Event::Act(Action::Choose(1)));
    assert_eq!(desk.state.sessions[&key].asks.len(), 1, "a digit typed into the prompt is not an answer");
    assert_eq!(desk.session().draft, "half a wo");
}

#[test]
fn an_unfocused_user_is_notified_about_the_active_tab_too() {
    let mut desk = TestApp::running();
    desk.ask(1, permission("t"));
    assert!(!desk.fx.iter().any(|effect| matches!(effect, Effect::Announce(_))));
    desk.play(Event::Focus(false)).ask(2, permission("t"));
    assert!(desk.fx.contains(&Effect::Announce("permission required.".into())));
}

fn quit_question(desk: &TestApp) -> Option<(String, String)> {
    match desk.state.modals.last() {
        Some(Modal::Choice(dialog)) => Some((dialog.title.clone(), dialog.body.join(" "))),
        _ => None,
    }
}

#[test]
fn quitting_asks_once_for_all_tabs_and_stops_all_agents() {
    let (mut desk, key, conn) = TestApp::two_tabs();
    desk.submit("one").flow(|state, now, fx| operations::submit(state, key, "two".into(), now, fx));
    desk.fx.clear();
    desk.wait(1).play(Event::Input).play(Event::Act(Action::Quit)).expect_sent("");
    let (title, body) = quit_question(&desk).unwrap();
    assert_eq!(
        (title.as_str(), body.as_str()),
        ("Turns are running. Quit?", "Quitting cancels 2 turns and stops the agents of all tabs.",)
    );
    desk.end_turn(StopReason::EndTurn);
    let (title, _) = quit_question(&desk).unwrap();
    assert_eq!(title, "A turn is running. Quit?");
    desk.fx.clear();
    desk.play(Event::Act(Action::Yes)).expect_sent("disconnect 1\ncancel two\ndisconnect 2\nquit");
    assert!(desk.state.sessions.values().all(|session| !session.turn.is_running()));
    assert_eq!(desk.state.conns[&conn].phase, ConnPhase::Stopping);
}

#[test]
fn a_tab_closes_without_a_question_unless_a_turn_is_running() {
    let closes = |prepare: &dyn Fn(&mut TestApp, SessionKey)| {
        let (mut desk, key, _) = TestApp::two_tabs();
        desk.state.setup.keeps_sessions = true;
        prepare(&mut desk, key);
        desk.wait(2).play(Event::Input).play(Event::Act(Action::CloseSession));
        let is_asked = quit_question(&desk).is_some_and(|(title, _)| title == "Close session?");
        assert_ne!(is_asked, !desk.state.sessions.contains_key(&key));
        !is_asked
    };
    assert!(closes(&|_, _| {}));
    assert!(
        closes(&|desk, _| {
            desk.state.setup.keeps_sessions = false;
        }),
        "nothing was said yet"
    );
    assert!(!closes(&|desk, key| {
        desk.flow(|state, now, fx| operations::submit(state, key, "go".into(), now, fx));
    }));
    assert!(!closes(&|desk, _| {
        desk.play(Event::Draft("a thought".into()));
    }));
    assert!(
        !closes(&|desk, key| {
            desk.state.setup.keeps_sessions = false;
            let notice = ItemBody::notice(Severity::Info, "said".into(), None);
            desk.state.sessions.get_mut(&key).unwrap().transcript.push(1, notice);
        }),
        "it would be gone"
    );
}

#[test]
fn the_log_of_a_tab_shows_only_its_connections() {
    let desk = TestApp::ready();
    assert_eq!(tab::log_conns(&desk.state), None, "a single tab shows the log of all");
    let (mut desk, _, conn) = TestApp::two_tabs();
    assert_eq!(tab::log_conns(&desk.state), Some(vec![conn.0]));
    let ended =
        CloseReason::Exited { status: ExitInfo { code: Some(3), signal: None }, stderr_tail: Vec::new() };
    desk.play(Event::Agent(conn, AgentEvent::Closed(ended)));
    assert_eq!(tab::log_conns(&desk.state), Some(vec![conn.0, 3]), "the end of the previous one stays in it");
    desk.play(Event::Act(Action::ShowTab(1)));
    assert_eq!(tab::log_conns(&desk.state), Some(vec![CONN.0]));
}

#[test]
fn an_anomaly_is_counted_in_the_tab_of_its_agent() {
    let (mut desk, key, conn) = TestApp::two_tabs();
    let odd = Anomaly { kind: AnomalyKind::BadMessage, text: "{".into() };
    desk.play(Event::Agent(conn, AgentEvent::Anomaly(odd)));
    let count = |key: SessionKey| desk.state.sessions[&key].anomaly_count;
    assert_eq!((count(KEY), count(key)), (0, 1));
}
