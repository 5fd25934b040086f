//! Deleting a turn from the record, on the screen.

use super::bench::TestApp;
use crate::core::tests::support::{KEY, says};
use crate::core::*;
use crate::model::*;

/// A saved session with two turns.
fn saved() -> TestApp {
    let mut app = TestApp::ready();
    for (prompt, answer) in [("one", "first answer"), ("two", "second answer")] {
        app.submit(prompt).update(says(answer)).end_turn(StopReason::EndTurn);
    }
    app.tell(StoreNews::SavedAs { key: KEY, uid: "k1".to_owned() });
    app.fx.clear();
    app
}

/// The title of the question on top.
fn question(app: &TestApp) -> Option<&str> {
    app.state.questions.last().map(|question| question.title.as_str())
}

/// The turns of the items that are shown.
fn turns(app: &TestApp) -> Vec<u32> {
    let mut turns: Vec<u32> = app.session().transcript.items().iter().map(|item| item.turn).collect();
    turns.dedup();
    turns
}

#[test]
fn the_last_turn_is_deleted_after_a_question() {
    let mut app = saved();
    app.act(Action::DeleteTurn);
    assert_eq!(question(&app), Some("Delete turn 2 from the record?"));
    app.act(Action::Accept);
    assert_eq!((turns(&app), app.fx.len()), (vec![1, 2], 0), "Cancel is selected");
    app.act(Action::DeleteTurn).act(Action::Yes);
    let job = StoreJob::ForgetTurns { key: KEY, uid: "k1".to_owned(), turns: 2..3 };
    assert!(app.fx.contains(&Effect::Store(job)), "{:?}", app.fx);
    app.tell(StoreNews::Forgotten { key: KEY, turns: 2..3, result: Ok(()) });
    assert_eq!(turns(&app), [1]);
    assert!(app.session().history.is_empty(), "the prompt is not offered again");
    assert!(app.fx.iter().any(|effect| matches!(effect, Effect::LoadHistory { session: KEY, .. })));
    app.submit("three").update(says("third answer"));
    assert_eq!(turns(&app), [1, 3], "numbers are not used again");
}

#[test]
fn the_turn_of_the_selected_item_is_deleted() {
    let mut app = saved();
    let first = app.session().transcript.items()[1].id;
    app.views.get_mut(KEY).selected = Some(first);
    app.act(Action::DeleteTurn);
    assert_eq!(question(&app), Some("Delete turn 1 from the record?"));
}

#[test]
fn a_turn_that_cannot_be_deleted_is_not_asked_about() {
    let mut app = saved();
    app.submit("three").act(Action::DeleteTurn);
    assert_eq!((question(&app), app.state.flash.as_deref()), (None, Some("Wait until the turn has ended.")));
    let mut app = TestApp::talked();
    app.act(Action::DeleteTurn);
    let why = "This session is not saved, or is read-only here.";
    assert_eq!((question(&app), app.state.flash.as_deref()), (None, Some(why)));
}
