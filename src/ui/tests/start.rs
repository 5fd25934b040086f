//! Tests of the start: the list of agents, the first prompt, and the offer to resume a session.

use super::bench::TestApp;
use crate::core::tests::resume::{End, recorded};
use crate::core::tests::support::*;
use crate::core::*;
use crate::model::*;
use crate::ui::Event;
use crate::ui::dialogs::{self, Layer};

const OFFER: &str = "Resume “Mend the fence”";

/// Parlor without an agent, which knows these three.
fn app() -> TestApp {
    TestApp::start(Setup {
        folder: "/code/shop".into(),
        agents: ["one", "two", "three"].map(choice).into(),
        saves_sessions: true,
        offers_last: true,
        ..Setup::default()
    })
}

/// The listed agents, and the selected one.
fn agents(app: &TestApp) -> (Vec<&str>, &str) {
    let Some(picker) = app.layers.last().and_then(Layer::list) else { panic!("{:?}", app.layers) };
    let labels: Vec<&str> = picker.matches.iter().map(|row| picker.rows[*row].label.as_str()).collect();
    let marked = labels[picker.selected];
    (labels, marked)
}

fn used_agents() -> StoreNews {
    StoreNews::UsedAgents { here: Some("two".to_owned()), all: ["one", "two"].map(str::to_owned).into() }
}

#[test]
fn the_agent_picker_selects_the_agent_that_was_used_last() {
    let mut app = app();
    assert_eq!(agents(&app), (vec!["one", "two", "three"], "one"));
    app.tell(used_agents());
    assert_eq!(agents(&app).1, "two");
    let marks: Vec<String> = dialogs::agent_rows(&app.state).into_iter().map(|(row, _)| row.right).collect();
    assert_eq!(marks, ["used before", "last used here", ""]);
    app.tell(last_session());
    assert_eq!(agents(&app), (vec![OFFER, "one", "two", "three"], "two"));
    // The same when it is opened later.
    app.layers.clear();
    let mut cx = Cx::new(app.now);
    dialogs::open_agents(&mut app, &mut cx);
    assert_eq!(agents(&app), (vec![OFFER, "one", "two", "three"], "two"));
    app.play(Event::Input).act(Action::Up).act(Action::Up).wait(2).act(Action::Accept);
    assert!(app.fx.iter().any(|effect| matches!(effect, Effect::Store(StoreJob::Open { takes: true, .. }))));
    assert!(app.layers.is_empty());
}

#[test]
fn the_users_selection_and_filter_in_the_picker_are_unchanged() {
    let mut app = app();
    app.act(Action::Down).act(Action::Down);
    app.tell(used_agents());
    app.tell(last_session());
    assert_eq!(agents(&app).1, "three");
    let mut app = self::app();
    app.play(Event::Line(LineEdit::Insert("t".to_owned())));
    app.tell(last_session());
    assert_eq!(agents(&app), (vec!["two", "three", OFFER], "two"), "below those that match");
}

#[test]
fn the_last_session_cannot_be_continued_after_a_prompt() {
    let mut app = TestApp::ready();
    app.tell(last_session());
    assert_eq!(dialogs::obstacle(&app.state, Action::ContinueLast), None);
    app.submit("something else");
    assert!(dialogs::obstacle(&app.state, Action::ContinueLast).is_some());
}

fn setup() -> Setup {
    Setup { folder: "/code/shop".into(), first_prompt: Some("Fix the tests".to_owned()), ..Setup::default() }
}

#[test]
fn the_first_prompt_waits_for_the_choice_of_an_agent() {
    let agents = vec![choice("fake")];
    let mut app = TestApp::start(Setup { agents, ..setup() });
    assert_eq!(app.layers.len(), 1, "one picker: {:?}", app.layers);
    app.wait(10).play(Event::Input).wait(10).act(Action::Accept);
    app.handshake(all_capabilities());
    app.sent();
    app.open(ID).expect_sent(r#"call prompt "Fix the tests""#);
}

#[test]
fn the_first_prompt_is_a_draft_while_the_folder_is_undecided() {
    let offer = FolderOffer { folder: "/code/store".into(), why: FolderReason::Moved, others: 0 };
    let saved = recorded(&[("first prompt", vec![says("Reply")], End::Good)]);
    let app = TestApp::start(Setup {
        start_with: Some(fake()),
        folder_offers: vec![offer],
        reopen: Some(Box::new(saved)),
        ..setup()
    });
    assert_eq!(app.session().draft, "Fix the tests");
    assert!(app.queue().is_empty());
}

#[test]
fn a_tab_without_an_agent_closes_with_its_agent_picker() {
    let mut app = app();
    let key = app.open_tab("/code/lib", fake());
    assert_eq!((app.state.sessions.len(), app.state.active), (1, key));
    assert!(app.layers.is_empty());
}
