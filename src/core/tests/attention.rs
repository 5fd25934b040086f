//! Tests of notifications, of events that the user has not seen, and of the first prompt.

use super::resume::{End, recorded, resumed};
use super::support::*;
use crate::core::state::tab::{self, TabMark};
use crate::core::*;
use crate::model::*;
use crate::ui::start;

/// The texts of all notifications since the last call.
fn announced(app: &mut TestApp) -> Vec<String> {
    let texts = std::mem::take(&mut app.fx).into_iter().filter_map(|effect| match effect {
        Effect::Announce { text, .. } => Some(text),
        _ => None,
    });
    texts.collect()
}

fn mark(app: &TestApp) -> TabMark {
    tab::mark(&app.state, app.session())
}

#[test]
fn a_focused_user_gets_no_notification_about_the_active_tab() {
    let mut app = TestApp::running();
    app.ask(1, permission("t")).choose(Some(0)).end_turn(StopReason::EndTurn);
    assert_eq!(announced(&mut app), [""; 0]);
    assert_eq!(mark(&app), TabMark::Nothing);
}

#[test]
fn an_unfocused_user_gets_one_notification_for_each_end_and_request() {
    let mut app = TestApp::running();
    app.play(Event::Focus(false)).ask(1, permission("t"));
    assert_eq!(announced(&mut app), ["Permission required."]);
    assert_eq!(tab::overall(&app.state), TabMark::Waits);
    app.choose(Some(0));
    assert_eq!(tab::overall(&app.state), TabMark::Working);
    app.end_turn(StopReason::EndTurn);
    assert_eq!(announced(&mut app), ["Turn finished."]);
    app.submit("go").end_turn(StopReason::Refusal);
    let said = announced(&mut app);
    assert!(said.len() == 1 && said[0].starts_with("Turn stopped: "), "{said:?}");
    app.submit("go").fail(-32603, "overloaded");
    assert_eq!(announced(&mut app), ["Turn failed."]);
}

#[test]
fn the_exit_of_an_agent_in_a_turn_is_one_notification() {
    let mut app = TestApp::running();
    app.play(Event::Focus(false));
    // It is restarted three times, then given up.
    for _ in 0..4 {
        app.crash();
        assert!(announced(&mut app).len() <= 1);
        if app.state.conns[&app.conn()].is_alive() {
            app.handshake(all_capabilities()).reply(Ok(Reply::Session(SessionReply::default())));
            app.submit("go");
        }
    }
    assert!(matches!(app.session().phase, SessionPhase::Ended { .. }));
}

#[test]
fn the_end_of_a_turn_is_marked_until_the_terminal_has_the_focus() {
    let mut app = TestApp::running();
    app.play(Event::Focus(false)).end_turn(StopReason::EndTurn);
    assert_eq!((mark(&app), tab::overall(&app.state)), (TabMark::Done, TabMark::Done));
    app.play(Event::Focus(true));
    assert_eq!((mark(&app), tab::overall(&app.state)), (TabMark::Nothing, TabMark::Nothing));
    app.play(Event::Focus(false)).submit("go").fail(-32603, "overloaded");
    assert_eq!(tab::overall(&app.state), TabMark::Failed);
    app.play(Event::Focus(true));
    assert_eq!(tab::overall(&app.state), TabMark::Nothing);
}

#[test]
fn failure_mark_ends_with_the_next_turn() {
    let mut app = TestApp::running();
    app.play(Event::Focus(false)).fail(-32603, "overloaded");
    assert_eq!(mark(&app), TabMark::Failed);
    app.submit("again").end_turn(StopReason::EndTurn);
    assert_eq!(mark(&app), TabMark::Done);
}

#[test]
fn turn_time_excludes_the_wait_for_answers() {
    let mut app = TestApp::running();
    app.wait(2).ask(1, permission("t")).wait(60);
    app.choose(Some(0)).play(Event::Input).wait(3).update(says("Done")).end_turn(StopReason::EndTurn);
    let ends: Vec<_> = app.session().transcript.items().iter().filter_map(|item| item.end.as_ref()).collect();
    assert_eq!(ends.last().and_then(|end| end.took), Some(std::time::Duration::from_secs(5)));
}

#[test]
fn notices_end_with_what_they_say() {
    let mut app = TestApp::running();
    app.cancel().cancel();
    assert_eq!(app.state.flash.as_deref(), Some("Cancelling. Waiting for the agent to stop."));
    app.end_turn(StopReason::Cancelled);
    assert_eq!(app.state.flash, None);
    app.play(Event::Act(Action::CancelTurn));
    assert_eq!(app.state.flash.as_deref(), Some("No turn to cancel."));
    app.submit("go").play(Event::Input);
    assert_eq!(app.state.flash, None);
}

#[test]
fn a_replay_causes_no_notification() {
    let saved = recorded(&[("first prompt", vec![says("Reply")], End::Good)]);
    let replay = [text(Role::User, "first prompt"), says("Reply"), says("More")];
    let mut app = resumed(&saved, &[], 0);
    app.play(Event::Focus(false)).updates(replay.to_vec());
    assert_eq!(announced(&mut app), [""; 0]);
}

fn setup(start_with: Option<AgentSpec>) -> Setup {
    Setup {
        folder: "/code/shop".into(),
        start_with,
        first_prompt: Some("Fix the tests".to_owned()),
        ..Setup::default()
    }
}

fn fake() -> AgentSpec {
    AgentSpec { name: "fake".into(), command: "fake".into(), ..AgentSpec::default() }
}

fn started(setup: Setup) -> TestApp {
    let now = std::time::Instant::now();
    let (started, fx) = start(setup, now);
    TestApp::of(started, now, fx)
}

#[test]
fn the_first_prompt_waits_in_the_queue_and_is_sent_when_the_session_is_ready() {
    let mut app = started(setup(Some(fake())));
    assert_eq!(app.queue(), ["Fix the tests"]);
    app.handshake(all_capabilities());
    app.sent();
    app.open(ID).expect_sent(r#"call prompt "Fix the tests""#);
    assert_eq!(app.session().history, ["Fix the tests"]);
}

#[test]
fn the_first_prompt_waits_for_the_choice_of_an_agent() {
    let agents = vec![AgentChoice {
        spec: fake(),
        title: "Fake".into(),
        source: "configured".into(),
        ..AgentChoice::default()
    }];
    let mut app = started(Setup { agents, ..setup(None) });
    assert_eq!(app.layers.len(), 1, "one picker: {:?}", app.layers);
    app.wait(10).play(Event::Input).wait(10).play(Event::Act(Action::Accept));
    app.handshake(all_capabilities());
    app.sent();
    app.open(ID).expect_sent(r#"call prompt "Fix the tests""#);
}

#[test]
fn the_first_prompt_is_a_draft_while_the_folder_is_undecided() {
    let offer = FolderOffer { folder: "/code/store".into(), why: FolderReason::Moved, others: 0 };
    let saved = recorded(&[("first prompt", vec![says("Reply")], End::Good)]);
    let app =
        started(Setup { folder_offers: vec![offer], reopen: Some(Box::new(saved)), ..setup(Some(fake())) });
    assert_eq!(app.session().draft, "Fix the tests");
    assert!(app.queue().is_empty());
}
