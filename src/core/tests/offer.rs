//! Tests of the offer to continue with the agent and session last used in the folder.

use super::support::TestApp;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;
use crate::ui::dialogs::Layer;
use crate::ui::{App, dialogs, start, update};

fn row(uid: &str) -> ArchiveRow {
    ArchiveRow {
        uid: uid.to_owned(),
        agent: "fake".to_owned(),
        title: "Mend the fence".to_owned(),
        folder: "/code/shop".into(),
        when: "5 min ago".to_owned(),
        nearness: Nearness::Here,
        ..ArchiveRow::default()
    }
}

fn reported(app: &mut TestApp, news: StoreNews) {
    app.service(ServiceEvent::Store(Box::new(news)));
}

fn setup(saves_sessions: bool, offers_last: bool) -> Setup {
    let agent = |name: &str| AgentChoice {
        spec: AgentSpec { name: name.to_owned(), command: name.to_owned(), ..AgentSpec::default() },
        title: name.to_owned(),
        source: "configured".to_owned(),
        ..AgentChoice::default()
    };
    Setup {
        folder: "/code/shop".into(),
        agents: ["one", "two", "three"].map(agent).into(),
        saves_sessions,
        offers_last,
        ..Setup::default()
    }
}

fn asked(fx: &[Effect]) -> Option<bool> {
    fx.iter().find_map(|effect| match effect {
        Effect::Store(StoreJob::Folder { wants_session, .. }) => Some(*wants_session),
        _ => None,
    })
}

fn agents(app: &App) -> (Vec<&str>, &str) {
    let Some(picker) = app.layers.last().and_then(Layer::list) else { panic!("{:?}", app.layers) };
    let labels: Vec<&str> = picker.matches.iter().map(|row| picker.rows[*row].label.as_str()).collect();
    let marked = labels[picker.selected];
    (labels, marked)
}

#[test]
fn the_store_is_queried_after_the_first_frame_and_only_if_needed() {
    let now = std::time::Instant::now();
    for (keeps, offers, expected) in
        [(true, true, Some(true)), (true, false, Some(false)), (false, true, None)]
    {
        let (_, fx) = start(setup(keeps, offers), now);
        assert_eq!(asked(&fx), expected, "keeps {keeps}, offers {offers}");
    }
}

#[test]
fn the_last_session_is_offered_until_a_prompt_was_sent() {
    let mut app = TestApp::ready();
    assert!(operations::last_session(&app.state).is_none());
    reported(&mut app, StoreNews::FolderSession(Box::new(row("k1"))));
    assert_eq!(operations::last_session(&app.state).map(ArchiveRow::name), Some("Mend the fence"));
    app.state.last_saved.as_mut().unwrap().agent = "another".to_owned();
    assert!(operations::last_session(&app.state).is_none(), "it is of another agent");
    app.state.last_saved.as_mut().unwrap().agent = "fake".to_owned();
    app.submit("something else");
    assert!(operations::last_session(&app.state).is_none());
    assert!(dialogs::obstacle(&app.state, Action::ContinueLast).is_some());
}

#[test]
fn a_key_continues_it_and_the_empty_session_is_closed() {
    let mut app = TestApp::ready();
    reported(&mut app, StoreNews::FolderSession(Box::new(row("k1"))));
    let fx = update(&mut app.app, Event::Act(Action::ContinueLast), app.now);
    let job = fx.iter().find_map(|effect| match effect {
        Effect::Store(job @ StoreJob::Open { .. }) => Some(job.clone()),
        _ => None,
    });
    let folder = app.state.setup.folder.clone();
    assert_eq!(job, Some(StoreJob::Open { uid: "k1".to_owned(), takes: true, at: None, folder }));
    let saved = RecordedSession {
        head: SessionHead { saved_as: Some("k1".to_owned()), ..SessionHead::default() },
        ..RecordedSession::default()
    };
    let opening =
        ArchiveOpening { uid: "k1".to_owned(), takes: true, at: None, saved: Ok(saved), offers: None };
    let former = app.state.active;
    reported(&mut app, StoreNews::Opened(Box::new(opening)));
    assert!(app.state.active != former && !app.state.sessions.contains_key(&former));
    assert!(operations::last_session(&app.state).is_none(), "it is open");
}

fn used_agents(here: &str) -> StoreNews {
    StoreNews::UsedAgents { here: Some(here.to_owned()), all: ["one", here].map(str::to_owned).into() }
}

#[test]
fn the_agent_picker_marks_agents_that_were_used() {
    let now = std::time::Instant::now();
    let (mut app, _) = start(setup(true, true), now);
    update(&mut app, Event::Service(ServiceEvent::Store(Box::new(used_agents("two")))), now);
    let marks: Vec<String> = dialogs::agent_rows(&app.state).into_iter().map(|(row, _)| row.right).collect();
    assert_eq!(marks, ["used before", "last used here", ""]);
}

#[test]
fn the_agent_picker_offers_it_without_moving_the_selection() {
    let now = std::time::Instant::now();
    let (mut app, _) = start(setup(true, true), now);
    assert_eq!(agents(&app), (vec!["one", "two", "three"], "one"));
    let tell = |app: &mut App, news| {
        update(app, Event::Service(ServiceEvent::Store(Box::new(news))), now);
    };
    tell(&mut app, used_agents("two"));
    assert_eq!(agents(&app).1, "two");
    tell(&mut app, StoreNews::FolderSession(Box::new(row("k1"))));
    let offer = "Resume “Mend the fence”";
    assert_eq!(agents(&app), (vec![offer, "one", "two", "three"], "two"));
    // The same when it is opened later.
    app.layers.clear();
    dialogs::open_agents(&mut app);
    assert_eq!(agents(&app), (vec![offer, "one", "two", "three"], "two"));
    update(&mut app, Event::Input, now);
    for action in [Action::Up, Action::Up] {
        update(&mut app, Event::Act(action), now);
    }
    let fx = update(&mut app, Event::Act(Action::Accept), now + std::time::Duration::from_secs(2));
    assert!(fx.iter().any(|effect| matches!(effect, Effect::Store(StoreJob::Open { takes: true, .. }))));
    assert!(app.layers.is_empty());
}

#[test]
fn the_users_selection_and_filter_in_the_picker_are_unchanged() {
    let now = std::time::Instant::now();
    let (mut app, _) = start(setup(true, true), now);
    update(&mut app, Event::Act(Action::Down), now);
    update(&mut app, Event::Act(Action::Down), now);
    for news in [used_agents("two"), StoreNews::FolderSession(Box::new(row("k1")))] {
        update(&mut app, Event::Service(ServiceEvent::Store(Box::new(news))), now);
    }
    assert_eq!(agents(&app).1, "three");
    let (mut app, _) = start(setup(true, true), now);
    update(&mut app, Event::Line(LineEdit::Insert("t".to_owned())), now);
    update(
        &mut app,
        Event::Service(ServiceEvent::Store(Box::new(StoreNews::FolderSession(Box::new(row("k1")))))),
        now,
    );
    let (labels, _) = agents(&app);
    assert!(!labels.iter().any(|label| label.starts_with("Go on")), "{labels:?}");
}

#[test]
fn the_reason_for_unsaved_sessions_is_shown_until_it_is_resolved() {
    let mut app = TestApp::ready();
    let full = Unsaved { why: "the disk is full".to_owned(), ..Unsaved::default() };
    reported(&mut app, StoreNews::Unsaved(Some(full)));
    app.submit("go").wait(100);
    assert_eq!(app.state.unsaved.as_ref().unwrap().why, "the disk is full");
    reported(&mut app, StoreNews::Unsaved(None));
    assert_eq!(app.state.unsaved, None);
    let given = Setup { unsaved: Some("the data folder cannot be used".to_owned()), ..setup(false, true) };
    let (started, _) = start(given, app.now);
    assert!(started.state.unsaved.is_some());
}

#[test]
fn events_of_the_store_are_shown_in_the_transcript() {
    let mut app = TestApp::ready();
    reported(&mut app, StoreNews::Reported("The file was moved aside.".to_owned()));
    assert!(app.state.flash.is_none());
    app.expect("ready · idle\nnotice Warning: The file was moved aside.");
}
