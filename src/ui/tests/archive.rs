//! Tests of stored sessions on the screen: what waits until they are read, and what was searched for.

use super::bench::TestApp;
use crate::core;
use crate::core::lifecycle::operations;
use crate::core::tests::archive::*;
use crate::core::tests::resume::{End, recorded};
use crate::core::tests::support::*;
use crate::core::*;
use crate::model::*;
use crate::ui::Event;

#[test]
fn the_outline_waits_for_the_whole_session() {
    let mut app = TestApp::ready();
    app.tell(StoreNews::Opened(Box::new(opening(true))));
    let key = app.state.active;
    app.act(Action::OpenOutline);
    assert!(app.layers.is_empty());
    for page in both_pages(None) {
        app.tell(StoreNews::Loaded { key, page: Ok(page) });
    }
    assert_eq!(app.layers.len(), 1);
}

/// The position of the current hit of the search.
fn current_hit(app: &mut TestApp) -> Option<usize> {
    let key = app.state.active;
    app.play(core::Event::Timer(TimerId::Search(key)));
    let search = app.shown().search.as_ref().expect("a search");
    search.current().and_then(|hit| shown(app).transcript.index_of(hit.item))
}

#[test]
fn a_search_hit_is_shown_when_the_whole_record_is_read() {
    let mut app = TestApp::ready();
    app.state.searched = Some("\u{2}SECOND\u{3} and \u{2}2\u{3}".into());
    app.tell(StoreNews::Opened(Box::new(ArchiveOpening { at: Some(2), ..opening(false) })));
    let key = app.state.active;
    assert_eq!(app.store_jobs(), [StoreJob::Load { key, uid: "k1".into(), before: 8, at: Some(2) }]);
    for page in both_pages(Some(2)) {
        app.tell(StoreNews::Loaded { key, page: Ok(page) });
    }
    let marked = app.shown().selected.and_then(|id| shown(&app).transcript.index_of(id));
    assert_eq!(marked, Some(2));
    assert_eq!(current_hit(&mut app), Some(2), "what was searched for is marked there");
}

#[test]
fn a_hit_in_an_open_session_is_found_by_content() {
    let mut app = TestApp::ready();
    app.submit("something").end_turn(StopReason::EndTurn);
    app.tell(StoreNews::Opened(Box::new(opening(true))));
    let open = app.state.active;
    app.reply(Ok(Reply::Session(SessionReply::default())));
    for page in both_pages(None) {
        app.tell(StoreNews::Loaded { key: open, page: Ok(page) });
    }
    app.store_jobs();
    app.flow(|state, cx| operations::open_saved(state, "k1", false, Some(7), cx));
    assert_eq!(app.store_jobs(), [StoreJob::Around { key: open, uid: "k1".into(), at: 7 }]);
    let events = vec![prompt("third", 3), said("3", 3)];
    let page = EventPage { events, mark: Some(1), is_last: true, ..EventPage::default() };
    app.state.searched = Some("the \u{2}3\u{3}".into());
    app.tell(StoreNews::Around { key: open, page: Ok(page) });
    let marked = app.shown().selected.and_then(|id| shown(&app).transcript.index_of(id));
    assert_eq!(marked, Some(5));
    assert_eq!(current_hit(&mut app), Some(5), "what was searched for is marked there");
}

#[test]
fn a_search_finds_what_is_read_later() {
    let mut app = TestApp::ready();
    app.tell(StoreNews::Opened(Box::new(opening(false))));
    let key = app.state.active;
    app.act(Action::OpenSearch).play(Event::Line(LineEdit::Insert("second".into())));
    app.play(core::Event::Timer(TimerId::Search(key)));
    assert_eq!(app.shown().search.as_ref().unwrap().total(), 0);
    for page in both_pages(None) {
        app.tell(StoreNews::Loaded { key, page: Ok(page) });
    }
    app.play(core::Event::Timer(TimerId::Search(key)));
    let search = app.shown().search.as_ref().unwrap();
    let at = search.current().and_then(|hit| shown(&app).transcript.index_of(hit.item));
    assert_eq!((search.total(), at), (1, Some(2)));
}

#[test]
fn the_line_about_another_history_opens_it() {
    let saved = recorded(&[("write the first thing", vec![says("first")], End::Good)]);
    let mut app = TestApp::start(Setup {
        folder: "/code/shop".into(),
        start_with: Some(fake()),
        reopen: Some(Box::new(saved)),
        ..Setup::default()
    });
    app.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    app.updates(vec![text(Role::User, "something else"), says("other")]);
    app.reply(Ok(Reply::Session(SessionReply::default())));
    while !app.session().can_prompt() {
        app.play(core::Event::Timer(TimerId::History(KEY)));
    }
    let is_line =
        |item: &&Item| matches!(item.body, ItemBody::Notice { kind: NoticeKind::HistoryDiffers, .. });
    let line = app.session().transcript.items().iter().find(is_line).unwrap().id;
    // By its key, by a click on the line, and by the key that expands items.
    for action in [Action::OpenAgentHistory, Action::ToggleItem(line), Action::ToggleFold] {
        app.views.get_mut(KEY).selected = Some(line);
        app.store_jobs();
        app.act(action);
        let jobs = app.store_jobs();
        let [StoreJob::Open { takes: false, uid, .. }] = &jobs[..] else { panic!("{action:?}: {jobs:?}") };
        assert!(uid.starts_with("spool"), "{uid}");
    }
}
