//! Tests of notifications, of events that the user has not seen, and of the first prompt.

use super::resume::{End, recorded, resumed};
use super::support::*;
use crate::core::state::tab::{self, TabMark};
use crate::core::*;
use crate::model::*;

/// The texts of all notifications since the last call.
fn announced(app: &mut TestCore) -> Vec<String> {
    let texts = std::mem::take(&mut app.fx).into_iter().filter_map(|effect| match effect {
        Effect::Announce { text, .. } => Some(text),
        _ => None,
    });
    texts.collect()
}

fn mark(app: &TestCore) -> TabMark {
    tab::mark(&app.state, app.session())
}

#[test]
fn a_focused_user_gets_no_notification_about_the_active_tab() {
    let mut app = TestCore::running();
    app.ask(1, permission("t")).choose(Some(0)).end_turn(StopReason::EndTurn);
    assert_eq!(announced(&mut app), [""; 0]);
    assert_eq!(mark(&app), TabMark::Nothing);
}

#[test]
fn an_unfocused_user_gets_one_notification_for_each_end_and_request() {
    let mut app = TestCore::running();
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
    let mut app = TestCore::running();
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
    let mut app = TestCore::running();
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
    let mut app = TestCore::running();
    app.play(Event::Focus(false)).fail(-32603, "overloaded");
    assert_eq!(mark(&app), TabMark::Failed);
    app.submit("again").end_turn(StopReason::EndTurn);
    assert_eq!(mark(&app), TabMark::Done);
}

#[test]
fn turn_time_excludes_the_wait_for_answers() {
    let mut app = TestCore::running();
    app.wait(2).ask(1, permission("t")).wait(60);
    app.choose(Some(0)).wait(3).update(says("Done")).end_turn(StopReason::EndTurn);
    let ends: Vec<_> = app.session().transcript.items().iter().filter_map(|item| item.end.as_ref()).collect();
    assert_eq!(ends.last().and_then(|end| end.took), Some(std::time::Duration::from_secs(5)));
}

#[test]
fn a_replay_causes_no_notification() {
    let saved = recorded(&[("first prompt", vec![says("Reply")], End::Good)]);
    let replay = [text(Role::User, "first prompt"), says("Reply"), says("More")];
    let mut app = resumed(&saved, &[], 0);
    app.play(Event::Focus(false)).updates(replay.to_vec());
    assert_eq!(announced(&mut app), [""; 0]);
}

#[test]
fn the_first_prompt_waits_in_the_queue_and_is_sent_when_the_session_is_ready() {
    let mut app = TestCore::start(Setup {
        folder: "/code/shop".into(),
        start_with: Some(fake()),
        first_prompt: Some("Fix the tests".to_owned()),
        ..Setup::default()
    });
    assert_eq!(app.queue(), ["Fix the tests"]);
    app.handshake(all_capabilities());
    app.sent();
    app.open(ID).expect_sent(r#"call prompt "Fix the tests""#);
    assert_eq!(app.session().history, ["Fix the tests"]);
}
