//! Tests of the offer to continue with the agent and session last used in the folder.

use super::support::{TestCore, last_session};
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

fn setup(saves_sessions: bool, offers_last: bool) -> Setup {
    Setup { folder: "/code/shop".into(), saves_sessions, offers_last, ..Setup::default() }
}

fn asked(fx: &[Effect]) -> Option<bool> {
    fx.iter().find_map(|effect| match effect {
        Effect::Store(StoreJob::Folder { wants_session, .. }) => Some(*wants_session),
        _ => None,
    })
}

#[test]
fn the_store_is_queried_after_the_first_frame_and_only_if_needed() {
    for (keeps, offers, expected) in
        [(true, true, Some(true)), (true, false, Some(false)), (false, true, None)]
    {
        assert_eq!(
            asked(&TestCore::start(setup(keeps, offers)).fx),
            expected,
            "keeps {keeps}, offers {offers}"
        );
    }
}

#[test]
fn the_last_session_is_offered_until_a_prompt_was_sent() {
    let mut app = TestCore::ready();
    assert!(operations::last_session(&app.state).is_none());
    app.tell(last_session());
    assert_eq!(operations::last_session(&app.state).map(ArchiveRow::name), Some("Mend the fence"));
    app.state.last_saved.as_mut().unwrap().agent = "another".to_owned();
    assert!(operations::last_session(&app.state).is_none(), "it is of another agent");
    app.state.last_saved.as_mut().unwrap().agent = "fake".to_owned();
    app.submit("something else");
    assert!(operations::last_session(&app.state).is_none());
}

#[test]
fn the_last_session_is_continued_and_the_empty_session_is_closed() {
    let mut app = TestCore::ready();
    app.tell(last_session());
    let fx = app.effects_of(operations::continue_last);
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
    app.tell(StoreNews::Opened(Box::new(opening)));
    assert!(app.state.active != former && !app.state.sessions.contains_key(&former));
    assert!(operations::last_session(&app.state).is_none(), "it is open");
}

#[test]
fn the_reason_for_unsaved_sessions_is_shown_until_it_is_resolved() {
    let mut app = TestCore::ready();
    let full = Unsaved { why: "the disk is full".to_owned(), ..Unsaved::default() };
    app.tell(StoreNews::Unsaved(Some(full)));
    app.submit("go").wait(100);
    assert_eq!(app.state.unsaved.as_ref().unwrap().why, "the disk is full");
    app.tell(StoreNews::Unsaved(None));
    assert_eq!(app.state.unsaved, None);
    let given = Setup { unsaved: Some("the data folder cannot be used".to_owned()), ..setup(false, true) };
    assert!(TestCore::start(given).state.unsaved.is_some());
}

#[test]
fn events_of_the_store_are_shown_in_the_transcript() {
    let mut app = TestCore::ready();
    app.tell(StoreNews::Reported("The file was moved aside.".to_owned()));
    assert!(app.state.flash.is_none());
    app.expect("ready · idle\nnotice Warning: The file was moved aside.");
}
