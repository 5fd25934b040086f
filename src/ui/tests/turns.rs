//! Tests of what the end of a turn changes on the screen: notices, and plans that fold.

use super::bench::TestApp;
use crate::model::*;
use crate::ui::Event;

#[test]
fn notices_end_with_what_they_say() {
    let mut app = TestApp::running();
    app.cancel().cancel();
    assert_eq!(app.state.flash.as_deref(), Some("Cancelling. Waiting for the agent to stop."));
    app.end_turn(StopReason::Cancelled);
    assert_eq!(app.state.flash, None);
    app.act(Action::CancelTurn);
    assert_eq!(app.state.flash.as_deref(), Some("No turn to cancel."));
    app.submit("go").play(Event::Input);
    assert_eq!(app.state.flash, None);
}

#[test]
fn a_plan_without_steps_folds_when_the_turn_ends() {
    let mut app = TestApp::running();
    let body = PlanBody::Markdown("# The plan".into());
    app.update(SessionUpdate::Plan(Plan { id: Some("p".into()), body }));
    assert!(!app.shown().is_plan_folded(app.session()));
    app.end_turn(StopReason::EndTurn);
    assert!(app.shown().is_plan_folded(app.session()));
    app.act(Action::TogglePlan);
    assert!(!app.shown().is_plan_folded(app.session()), "the user can open it");
}

#[test]
fn an_opened_plan_folds_when_it_is_completed_and_the_turn_ends() {
    let plan = |status| {
        let step = PlanEntry { content: "one".into(), priority: PlanPriority::Medium, status };
        SessionUpdate::Plan(Plan { id: None, body: PlanBody::Entries(vec![step]) })
    };
    for (status, is_folded) in [(PlanStatus::InProgress, false), (PlanStatus::Completed, true)] {
        let mut app = TestApp::running();
        app.update(plan(status)).act(Action::TogglePlan).act(Action::TogglePlan);
        assert!(!app.shown().is_plan_folded(app.session()));
        app.end_turn(StopReason::EndTurn);
        assert_eq!(app.shown().is_plan_folded(app.session()), is_folded, "{status:?}");
        app.submit("next");
        assert_eq!(app.session().plans.is_empty(), is_folded, "a completed plan is removed in the next turn");
    }
}

#[test]
fn a_lost_conversation_is_handed_over_to_the_same_agent() {
    let mut app = TestApp::running();
    for _ in 0..3 {
        app.fail(RpcError::RESOURCE_NOT_FOUND, "Session not found");
    }
    app.open("t").act(Action::HandOver);
    assert!(app.layers.is_empty() && app.session().turn.is_running());
    assert!(app.session().resume.handover().is_some_and(|handover| handover.is_sent));
}
