//! Tests of several tabs: opening, shared processes, routing, dialogs of inactive tabs.

use crate::core;
use crate::core::lifecycle::operations;
use crate::core::state::tab;
use crate::ui::Event;

use super::bench::TestApp;
use crate::config::keymap::Context;
use crate::core::state::tab::tabs;
use crate::core::tests::support::*;
use crate::core::*;
use crate::model::*;
use crate::ui::LogPage;
use crate::ui::dialogs;
use crate::ui::dialogs::{Layer, QuestionDialog};

#[test]
fn a_dialog_of_an_inactive_tab_starts_its_grace_period_when_it_is_shown() {
    let (mut app, key, conn) = TestApp::two_tabs();
    app.submit_in(key, "go");
    app.flow(|state, cx| operations::cancel_turn(state, key, cx));
    app.act(Action::ShowTab(1));
    app.wait(11).play(core::Event::Timer(TimerId::CancelOverdue(key)));
    assert!(app.layers.is_empty(), "the active tab keeps its keys");
    app.wait(5).play(Event::Input).act(Action::ShowTab(2));
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
    app.draft("in two").act(Action::OpenLog);
    app.act(Action::PreviousTab).expect_sent("draft \"\"");
    assert_eq!((app.state.active, app.layers.len()), (KEY, 0));
    app.draft("in one").act(Action::FormerTab);
    app.expect_sent("draft \"in two\"");
    assert!(app.layers.len() == 1 && app.layers.top::<LogPage>().is_some());
    assert_eq!(app.state.sessions[&KEY].draft, "in one");
    app.act(Action::NextTab);
    assert_eq!(app.state.active, KEY, "after the last one follows the first");
    assert_eq!(app.background[&key].layers.len(), 1);
}

#[test]
fn a_tab_selected_in_the_palette_shows_its_draft() {
    let (mut app, ..) = TestApp::two_tabs();
    app.draft("in two");
    app.state.setup.palette = crate::config::keymap::Keymap::defaults().palette();
    app.act(Action::OpenPalette).play(Event::Line(LineEdit::Insert("previous tab".into())));
    app.act(Action::Accept).expect_sent("draft \"\"");
    assert_eq!(app.state.active, KEY);
}

#[test]
fn a_session_that_replaces_the_active_one_shows_its_draft() {
    let mut app = TestApp::talked();
    app.draft("a thought").submit("go").submit("/clear").fx.clear();
    app.end_turn(StopReason::EndTurn).expect_sent("call close s\ncall new\ndraft \"a thought\"");
}

#[test]
fn closed_tabs_leave_no_dialogs() {
    let (mut app, key, _) = TestApp::two_tabs();
    app.act(Action::OpenLog);
    app.flow(|state, cx| operations::close_session(state, key, cx));
    assert_eq!((app.state.active, app.background.len()), (KEY, 0));
}

#[test]
fn the_palette_closes_on_a_tab_switch_and_a_previewed_theme_is_reset() {
    let (mut app, ..) = TestApp::two_tabs();
    app.state.setup.themes =
        [true, false].map(|is_dark| ThemeInfo { name: format!("dark {is_dark}"), is_dark }).into();
    app.state.setup.theme = "dark".into();
    app.act(Action::OpenThemes).act(Action::Down);
    app.fx.clear();
    app.act(Action::ShowTab(1));
    assert!(app.fx.contains(&Effect::SetTheme("dark".into())));
    app.act(Action::ShowTab(2));
    assert!(app.layers.is_empty());
}

#[test]
fn tabs_can_be_moved_and_next_follows_the_shown_order() {
    let mut app = TestApp::ready();
    let two = app.open_tab("/b", fake());
    let three = app.open_tab("/c", fake());
    let order = |app: &TestApp| tab::tabs(&app.state).map(|session| session.key).collect::<Vec<_>>();
    app.act(Action::MoveTabRight);
    assert_eq!(order(&app), [KEY, two, three], "the last one stays");
    app.act(Action::MoveTabLeft);
    assert_eq!(order(&app), [KEY, three, two]);
    assert_eq!(tab::front(&app.state), three, "it stays active");
    app.act(Action::ShowTab(3));
    assert_eq!(tab::front(&app.state), two);
    app.flow(|state, cx| operations::close_session(state, two, cx));
    assert_eq!(tab::front(&app.state), three);
}

#[test]
fn a_missing_tab_is_reported() {
    let (mut app, key, _) = TestApp::two_tabs();
    app.act(Action::ShowTab(9));
    assert_eq!((app.state.active, app.state.flash.as_deref()), (key, Some("Only 2 tabs open.")));
}

#[test]
fn a_new_tab_is_chosen_by_agent_and_by_folder() {
    let mut app = TestApp::ready();
    app.state.setup.agents = vec![choice("fake"), choice("other")];
    app.act(Action::NewTab).act(Action::Last).act(Action::Accept);
    assert!(app.fx.contains(&Effect::ListFolders), "the last row opens the folder picker");
    let known = vec!["/code/shop".into(), "/code/lib".into()];
    app.service(ServiceEvent::Folders(known));
    app.play(Event::Line(LineEdit::Insert("../nowhere".into()))).act(Action::Accept);
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
    app.act(Action::Down).act(Action::Accept);
    app.expect_sent("connect 2 after 0 ms\ndraft \"\"");
    let front = app.state.active_session().unwrap();
    assert_eq!((front.workspace.cwd.to_str(), tabs(&app.state).count()), (Some("/code/lib"), 2));
}

#[test]
fn updates_of_inactive_tabs_redraw_only_if_the_tab_bar_changes() {
    let (mut app, key, conn) = TestApp::two_tabs();
    app.submit_in(key, "go");
    app.act(Action::ShowTab(1)).wait(10).play(core::Event::Timer(TimerId::Flash));
    let changes = |app: &TestApp| app.state.changes;
    let before = changes(&app);
    for index in 0..1000 {
        let update = if index % 10 == 0 { news("t", ToolStatus::InProgress) } else { says("word ") };
        app.play(core::Event::Agent(conn, AgentEvent::Update("two".into(), update)));
        app.service(ServiceEvent::TerminalOutput { terminal: "none".into(), bytes: b"x".to_vec() });
    }
    assert_eq!(changes(&app), before, "no frame for an inactive tab");
    app.update(says("seen"));
    assert_eq!(changes(&app), before + 1);
    let title = SessionUpdate::Info { title: Patch::Set("Fixing".into()), updated_at: Patch::Keep };
    app.play(core::Event::Agent(conn, AgentEvent::Update("two".into(), title)));
    assert_eq!(changes(&app), before + 2, "the tab bar shows its name");
    app.reply_to(conn, Ok(Reply::TurnEnded { reason: StopReason::EndTurn, usage: None }));
    assert_eq!(tab::mark(&app.state, &app.state.sessions[&key]), TabMark::Done);
    assert!(changes(&app) > before + 2);
    app.act(Action::ShowTab(2));
    assert_eq!(tab::mark(&app.state, &app.state.sessions[&key]), TabMark::Nothing, "it was seen");
}

#[test]
fn a_request_of_an_inactive_tab_notifies_once_and_receives_no_keys() {
    let (mut app, key, conn) = TestApp::two_tabs();
    app.act(Action::ShowTab(1)).draft("half a wo");
    app.fx.clear();
    let request = permission_in(Some("two"), "t");
    app.play(core::Event::Agent(conn, AgentEvent::Request(RequestId(9), Box::new(request))));
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
    app.submit("one").submit_in(key, "two");
    app.fx.clear();
    app.wait(1).play(Event::Input).act(Action::Quit).expect_sent("");
    let (title, body) = quit_question(&app).unwrap();
    let expected =
        "Quitting cancels 2 turns and stops the agents of all tabs. `parlor --continue` reopens the tabs.";
    assert_eq!((title.as_str(), body.as_str()), ("Turns are running. Quit?", expected));
    app.end_turn(StopReason::EndTurn);
    let (title, _) = quit_question(&app).unwrap();
    assert_eq!(title, "A turn is running. Quit?");
    app.fx.clear();
    app.act(Action::Yes).expect_sent("disconnect 1\ncancel two\ndisconnect 2\nquit");
    assert!(app.state.sessions.values().all(|session| !session.turn.is_running()));
    assert_eq!(app.state.conns[&conn].phase, ConnPhase::Stopping);
}

#[test]
fn quitting_asks_again_in_another_tab() {
    let (mut app, key, _) = TestApp::two_tabs();
    app.state.setup.saves_sessions = true;
    app.submit_in(key, "two");
    app.act(Action::Quit).act(Action::ShowTab(1));
    app.act(Action::Quit);
    assert!(!app.state.is_quitting);
    assert_eq!((app.layers.len(), app.state.questions.len()), (1, 1), "not the one of the other tab");
    app.act(Action::Quit);
    assert!(app.state.is_quitting);
}

#[test]
fn a_tab_closes_without_a_question_unless_a_turn_is_running() {
    let closes = |prepare: &dyn Fn(&mut TestApp, SessionKey)| {
        let (mut app, key, _) = TestApp::two_tabs();
        app.state.setup.saves_sessions = true;
        prepare(&mut app, key);
        app.wait(2).play(Event::Input).act(Action::CloseSession);
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
        app.submit_in(key, "go");
    }));
    assert!(!closes(&|app, _| {
        app.draft("a thought");
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
fn quitting_idle_tabs_asks_only_if_they_are_lost() {
    let (mut app, ..) = TestApp::two_tabs();
    app.state.setup.saves_sessions = true;
    app.wait(1).play(Event::Input).act(Action::Quit);
    assert!(app.state.is_quitting, "the tabs are restored");

    let (mut app, ..) = TestApp::two_tabs();
    app.state.setup.saves_sessions = true;
    app.state.unsaved = Some(Unsaved { why: "the disk is full".to_owned(), ..Unsaved::default() });
    app.wait(1).play(Event::Input).act(Action::Quit);
    assert!(quit_question(&app).is_some());

    let (mut app, ..) = TestApp::two_tabs();
    app.state.setup.saves_sessions = false;
    app.wait(1).play(Event::Input).act(Action::Quit).expect_sent("");
    let (title, body) = quit_question(&app).unwrap();
    assert_eq!(title, "Quit all tabs?");
    assert!(body.ends_with("Their sessions are not saved."), "{body}");
    app.act(Action::Escape);
    assert!(!app.state.is_quitting && app.layers.is_empty());
    app.act(Action::Quit).act(Action::Yes);
    assert!(app.state.is_quitting);
}

#[test]
fn a_second_ctrl_c_asks_if_another_tab_works() {
    let (mut app, ..) = TestApp::two_tabs();
    app.submit("one");
    app.fx.clear();
    app.wait(1).play(Event::Input).act(Action::ClearOrQuit);
    app.wait(0).act(Action::ClearOrQuit);
    assert!(!app.state.is_quitting);
    assert_eq!(quit_question(&app).unwrap().0, "A turn is running. Quit?");
}

#[test]
fn the_agent_of_the_tab_is_offered_for_a_new_one() {
    let mut app = TestApp::ready();
    app.act(Action::NewTab);
    let Some(picker) = app.layers.last().and_then(Layer::list) else { panic!("{:?}", app.layers) };
    assert_eq!((picker.rows[0].label.as_str(), picker.selected), ("fake", 0));
    app.act(Action::Accept);
    assert_eq!(tabs(&app.state).count(), 2);
}
