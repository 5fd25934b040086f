//! Quitting and closing while the store cannot write.

use crate::core;
use crate::ui::Event;
use std::collections::BTreeSet;

use super::bench::TestApp;
use crate::core::lifecycle::operations;
use crate::core::tests::support::KEY;
use crate::model::*;

/// A session with a turn that is not saved; more turns follow.
fn failing(folder: Option<&str>) -> TestApp {
    let mut app = TestApp::ready();
    app.state.setup.saves_sessions = true;
    app.submit("one").end_turn(StopReason::EndTurn);
    let turns = [(KEY, BTreeSet::from([1]))].into();
    report(
        &mut app,
        Some(Unsaved { why: "the disk is full".to_owned(), turns, folder: folder.map(Into::into) }),
    );
    app
}

fn report(app: &mut TestApp, unsaved: Option<Unsaved>) {
    app.tell(StoreNews::Unsaved(unsaved));
}

/// The question on top: title and text.
fn question(app: &TestApp) -> (&str, String) {
    match app.state.questions.last() {
        Some(dialog) => (&dialog.title, dialog.body.join(" ")),
        other => panic!("a question is on top, not {other:?}"),
    }
}

#[test]
fn quitting_with_unsaved_turns_asks_first() {
    let mut app = failing(Some("/data"));
    // The recorder has not seen this turn yet.
    app.submit("two").end_turn(StopReason::EndTurn);
    app.act(Action::Quit);
    let (title, body) = question(&app);
    assert_eq!(title, "2 turns are not saved. Quit?");
    assert_eq!(
        body,
        "Cannot save: the disk is full. On quit, parlor writes a file to /data that `parlor sessions import` \
         reads."
    );
    app.act(Action::Yes);
    assert!(app.state.is_quitting);
}

#[test]
fn the_question_says_that_no_file_can_be_written() {
    let mut app = failing(None);
    app.act(Action::Quit);
    assert!(question(&app).1.ends_with("They are lost if you quit now."), "{:?}", question(&app));
    app.act(Action::Escape);
    assert!(!app.state.is_quitting);
}

#[test]
fn the_question_changes_once_everything_is_saved() {
    let mut app = failing(Some("/data"));
    app.submit("two").play(Event::Input).act(Action::Quit);
    let (title, body) = question(&app);
    assert_eq!(title, "2 turns are not saved. Quit?");
    assert!(body.ends_with("Quitting cancels the turn and stops the agent."), "{body}");
    app.end_turn(StopReason::EndTurn);
    report(&mut app, None);
    assert_eq!(question(&app).0, "Quit parlor?");
    app.act(Action::Escape).act(Action::Quit);
    assert!(app.state.is_quitting, "nothing is lost now");
}

#[test]
fn a_report_adds_to_what_is_known() {
    let mut app = failing(Some("/data"));
    app.submit("two").end_turn(StopReason::EndTurn);
    let turns = [(KEY, BTreeSet::from([1])), (SessionKey(9), BTreeSet::from([4]))].into();
    report(&mut app, Some(Unsaved { why: "the file is locked".to_owned(), turns, folder: None }));
    app.act(Action::Quit);
    assert_eq!(question(&app).0, "3 turns are not saved. Quit?");
}

#[test]
fn unsent_prompts_are_asked_about_as_well() {
    let mut app = TestApp::ready();
    report(&mut app, Some(Unsaved { why: "the disk is full".to_owned(), ..Unsaved::default() }));
    app.draft("half").act(Action::Quit);
    assert_eq!(question(&app).0, "Unsent prompts are not saved. Quit?");
    app.act(Action::Escape).draft("").act(Action::Quit);
    assert!(app.state.is_quitting, "an empty prompt is no loss");
}

#[test]
fn two_interrupts_ask_as_well() {
    let mut app = failing(Some("/data"));
    app.wait(2).act(Action::ClearOrQuit).act(Action::ClearOrQuit);
    assert_eq!(question(&app).0, "1 turn is not saved. Quit?");
}

#[test]
fn quitting_after_crashes_asks_as_well() {
    let mut app = failing(Some("/data"));
    for _ in 0..4 {
        app.crash();
    }
    assert_eq!(question(&app).0, "Agent keeps exiting");
    app.wait(2).answer(3);
    assert_eq!(question(&app).0, "1 turn is not saved. Quit?");
}

#[test]
fn a_signal_ends_parlor_without_a_question() {
    let mut app = failing(None);
    app.play(core::Event::Terminate);
    assert!(app.state.is_quitting && app.layers.is_empty());
}

#[test]
fn plain_text_mode_does_not_ask() {
    let mut app = failing(Some("/data"));
    app.state.setup.is_plain = true;
    app.act(Action::Quit);
    assert!(app.state.is_quitting);
}

#[test]
fn closing_a_tab_with_unsaved_turns_asks_first() {
    let mut app = failing(Some("/data"));
    app.submit("two");
    app.end_turn(StopReason::EndTurn);
    app.open_tab("/code/lib", AgentSpec { name: "other".into(), ..AgentSpec::default() });
    app.flow(|state, _| operations::activate(state, KEY));
    app.act(Action::CloseSession);
    let (title, body) = question(&app);
    assert_eq!(title, "Close session?");
    assert!(
        body.ends_with(
            "2 turns are not saved. Cannot save: the disk is full. parlor tries again until you quit."
        ),
        "{body}"
    );
    app.act(Action::Yes).act(Action::Quit);
    assert_eq!(question(&app).0, "2 turns are not saved. Quit?", "closing does not drop them");
}
