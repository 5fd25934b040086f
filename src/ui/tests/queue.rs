//! Tests of queued prompts that are removed or edited.

use super::bench::TestApp;
use crate::core::lifecycle::operations;
use crate::core::tests::support::*;
use crate::model::*;

/// A session whose turn was cancelled while the prompt `A` was queued.
fn on_hold() -> TestApp {
    let mut app = TestApp::running();
    app.submit("A").cancel().end_turn(StopReason::Cancelled).expect_sent("cancel s");
    app
}

#[test]
fn removing_the_prompt_that_was_to_be_sent_now_leaves_the_others_on_hold() {
    let mut app = TestApp::running();
    app.submit("A").submit("B");
    let second = app.session().outbox.queued(1).unwrap().id;
    app.flow(|state, cx| operations::send_now(state, KEY, second, cx)).sent();
    app.act(Action::OpenQueue).act(Action::Remove);
    app.end_turn(StopReason::Cancelled).expect_sent("");
    assert_eq!(app.queue(), ["A"]);
}

#[test]
fn an_edited_prompt_is_not_sent_until_the_edit_ends() {
    let mut app = TestApp::running();
    app.submit("A").submit("B").sent();
    app.act(Action::HistoryPrevious).act(Action::HistoryPrevious);
    assert!(app.session().outbox.queued(0).unwrap().is_edited());
    app.sent();
    app.update(says("ok")).end_turn(StopReason::EndTurn).expect_sent("");
    app.draft("A, better").act(Action::Submit);
    assert!(app.sent().ends_with("call prompt \"A, better\""));
    assert_eq!(app.queue(), ["B"]);
}

#[test]
fn a_queue_that_was_emptied_is_not_on_hold() {
    let mut app = on_hold();
    app.submit("new").sent();
    app.act(Action::OpenQueue).act(Action::Remove);
    app.submit("B");
    app.update(says("ok")).end_turn(StopReason::EndTurn).expect_sent("call prompt \"B\"");
}

#[test]
fn an_edit_of_a_prompt_on_hold_sends_nothing() {
    let mut app = on_hold();
    app.act(Action::HistoryPrevious).draft("A, edited").sent();
    app.act(Action::Submit).expect_sent("draft \"\"");
    assert_eq!(app.queue(), ["A, edited"]);
}

#[test]
fn a_prompt_taken_back_after_a_cancel_does_not_send_the_others() {
    let mut app = TestApp::running();
    app.submit("A").submit("B").cancel().submit("C").sent();
    app.act(Action::HistoryPrevious).sent();
    assert_eq!(app.session().draft, "C");
    app.end_turn(StopReason::Cancelled).expect_sent("");
    assert_eq!(app.queue(), ["C", "A", "B"], "nothing is lost");
    app.act(Action::Escape).sent();
    app.submit("").expect_sent("call prompt \"C\"");
}
