//! Tests of stored sessions: opening, reading, continuing, missing folders.

use std::path::PathBuf;

use super::recorder::items;
use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

pub fn prompt(text: &str, turn: u32) -> RecordedEvent {
    RecordedEvent { at_ms: 0, turn, record: typed(text) }
}

pub fn said(text: &str, turn: u32) -> RecordedEvent {
    RecordedEvent { at_ms: 0, turn, record: Record::Update(says(text)) }
}

/// A session of the agent `fake` with its last turn; two earlier ones are not read yet.
fn saved(uid: &str) -> RecordedSession {
    RecordedSession {
        head: SessionHead { title: Some("The till".into()), ..stored_head(uid, "old") },
        events: vec![prompt("third", 3), said("3", 3)],
        has_earlier: true,
        end_seq: 8,
        ..RecordedSession::default()
    }
}

pub fn opening(takes: bool) -> ArchiveOpening {
    ArchiveOpening { uid: "k1".into(), takes, at: None, saved: Ok(saved("k1")), offers: None }
}

pub fn shown<D: Driven>(app: &Bench<D>) -> &Session {
    app.state().active_session().unwrap()
}

/// The jobs except those that read the whole record.
fn other_jobs(app: &mut TestCore) -> Vec<StoreJob> {
    let mut jobs = app.store_jobs();
    jobs.retain(|job| !matches!(job, StoreJob::Load { .. }));
    jobs
}

#[test]
fn a_stored_session_is_shown_immediately_and_resumed_by_the_running_agent() {
    let mut app = TestCore::ready();
    app.submit("something").end_turn(StopReason::EndTurn);
    app.fx.clear();
    app.tell(StoreNews::Opened(Box::new(opening(true))));
    assert_eq!(
        items(shown(&app)),
        ["notice Info: Reading the earlier part of the session…", "user* \"third\"", "agent \"3\""]
    );
    app.expect_sent("call load old");
    assert_eq!(app.state.sessions.len(), 2, "the previous session stays open");
    // A second request activates it instead of opening it again.
    let key = app.state.active;
    app.state.active = KEY;
    app.flow(|state, cx| operations::open_saved(state, "k1", true, None, cx));
    assert_eq!((app.state.active, other_jobs(&mut app).len()), (key, 0));
}

#[test]
fn a_session_without_prompts_is_replaced() {
    let mut app = TestCore::ready();
    app.tell(StoreNews::Opened(Box::new(opening(true))));
    assert_eq!(app.state.sessions.len(), 1);
    app.expect_sent("call load old\ncall close s");
}

#[test]
fn a_session_that_cannot_be_opened_is_reported_and_nothing_changes() {
    let mut app = TestCore::ready();
    let saved = Err("The session is open in another parlor (process 7). Close it there first.".to_owned());
    app.tell(StoreNews::Opened(Box::new(ArchiveOpening { saved, ..opening(true) })));
    assert_eq!(app.state.active, KEY);
    assert!(app.state.flash.as_deref().unwrap_or_default().contains("process 7"));
}

#[test]
fn a_read_only_session_has_no_agent_until_a_key_starts_it() {
    let mut app = TestCore::ready();
    app.submit("something").end_turn(StopReason::EndTurn);
    app.fx.clear();
    app.tell(StoreNews::Opened(Box::new(opening(false))));
    let key = app.state.active;
    assert!(matches!(shown(&app).phase, SessionPhase::Ended { .. }));
    assert_eq!(shown(&app).conn, None);
    app.expect_sent("");
    app.draft("and then");
    assert!(app.fx.iter().all(|effect| !matches!(effect, Effect::Keep { .. })), "nothing is recorded");
    app.flow(|state, cx| operations::restart_agent(state, key, cx))
        .flow(|state, cx| operations::restart_agent(state, key, cx));
    assert_eq!(other_jobs(&mut app), [StoreJob::Take { key, uid: "k1".into() }], "requested once");
    app.tell(StoreNews::Taken { key, saved: Err("Another parlor has it.".into()) });
    assert!(shown(&app).read_only.is_some(), "it is still read-only");
    app.flow(|state, cx| operations::restart_agent(state, key, cx));
    app.tell(StoreNews::Taken { key, saved: Ok(Box::new(saved("k1"))) });
    app.expect_sent("call load old");
    assert_eq!(shown(&app).draft, "and then");
    assert_eq!(shown(&app).recorder.saved_as(), Some("k1"));
    assert_eq!(items(shown(&app)).len(), 3, "it is not shown twice");
}

#[test]
fn events_added_by_another_parlor_are_shown_when_the_session_is_continued() {
    let mut app = TestCore::ready();
    app.tell(StoreNews::Opened(Box::new(opening(false))));
    let key = app.state.active;
    app.submit_in(key, "next");
    let mut newer = saved("k1");
    newer.events.extend([prompt("fourth", 4), said("4", 4)]);
    newer.end_seq = 10;
    app.tell(StoreNews::Taken { key, saved: Ok(Box::new(newer)) });
    assert_eq!(
        items(shown(&app))[1..],
        ["user* \"third\"", "agent \"3\"", "user* \"fourth\"", "agent \"4\""]
    );
    let queue: Vec<&str> = shown(&app).outbox.queue().map(|prompt| prompt.text.as_str()).collect();
    assert_eq!(queue, ["next"], "prompts sent while it was read-only wait for the agent");
}

#[test]
fn the_saved_queue_is_restored_once_when_a_read_only_session_is_continued() {
    let mut app = TestCore::ready();
    let queued = || RecordedSession { queue: vec!["saved".into()], ..saved("k1") };
    app.tell(StoreNews::Opened(Box::new(ArchiveOpening { saved: Ok(queued()), ..opening(false) })));
    let key = app.state.active;
    app.submit_in(key, "typed");
    app.tell(StoreNews::Taken { key, saved: Ok(Box::new(queued())) });
    let queue = shown(&app).outbox.queue().map(|prompt| (prompt.text.as_str(), prompt.is_on_hold()));
    assert_eq!(queue.collect::<Vec<_>>(), [("typed", false), ("saved", true)]);
}

/// All events of [`saved`], in two parts.
pub fn both_pages(mark: Option<usize>) -> [EventPage; 2] {
    let first = vec![prompt("first", 1), said("1", 1), prompt("second", 2)];
    let rest = vec![said("2", 2), prompt("third", 3), said("3", 3)];
    [
        EventPage { events: first, mark, ..EventPage::default() },
        EventPage { events: rest, is_last: true, ..EventPage::default() },
    ]
}

#[test]
fn the_whole_record_takes_the_place_of_its_end_and_references_to_items_stay_valid() {
    let mut app = TestCore::ready();
    app.submit("something").end_turn(StopReason::EndTurn);
    app.tell(StoreNews::Opened(Box::new(opening(true))));
    let key = app.state.active;
    assert_eq!(app.store_jobs(), [StoreJob::Load { key, uid: "k1".into(), before: 8, at: None }]);
    app.reply(Ok(Reply::Session(SessionReply::default())));
    app.submit_in(key, "more");
    assert!(!shown(&app).turn.is_running(), "prompts wait until the record is read");
    let notice = SessionUpdate::notice(Severity::Info, "meanwhile".into(), None);
    let conn = shown(&app).conn.unwrap();
    app.play(Event::Agent(conn, AgentEvent::Update("old".into(), notice)));
    let reply = shown(&app).transcript.items()[2].id;
    for page in both_pages(None) {
        let page = EventPage { unreadable_count: 1, ..page };
        app.tell(StoreNews::Loaded { key, page: Ok(page) });
    }
    assert!(
        items(shown(&app)).contains(&"notice Warning: 2 events of this session could not be read.".into())
    );
    assert_eq!(
        items(shown(&app))[..6],
        [
            "user* \"first\"",
            "agent \"1\"",
            "user* \"second\"",
            "agent \"2\"",
            "user* \"third\"",
            "agent \"3\""
        ]
    );
    let item = shown(&app).transcript.get(reply).unwrap();
    assert!(matches!(&item.body, ItemBody::Message(message) if message.role == Role::Agent), "{item:?}");
    assert_eq!(shown(&app).transcript.index_of(reply), Some(5));
    let turns: Vec<u32> = shown(&app).transcript.items().iter().map(|item| item.turn).collect();
    assert_eq!(turns[..6], [1, 1, 2, 2, 3, 3]);
}

#[test]
fn the_session_that_a_long_one_continues_is_named_at_its_start() {
    let mut app = TestCore::ready();
    let saved = RecordedSession { came_from: Some(("k0".into(), "The shop".into())), ..saved("k1") };
    app.tell(StoreNews::Opened(Box::new(ArchiveOpening { saved: Ok(saved), ..opening(false) })));
    let key = app.state.active;
    for page in both_pages(None) {
        app.tell(StoreNews::Loaded { key, page: Ok(page) });
    }
    let shown = items(shown(&app));
    assert_eq!(shown[..2], ["notice Info: Continued from k0: The shop", "user* \"first\""]);
}

#[test]
fn an_update_of_an_earlier_call_at_the_end_changes_that_call() {
    let event = |turn, update| RecordedEvent { at_ms: 0, turn, record: Record::Update(update) };
    let late = patch("a", |patch| patch.title = Patch::Set("late".into()));
    let mut app = TestCore::ready();
    let end = vec![prompt("second", 2), event(2, late.clone()), said("2", 2)];
    let saved = RecordedSession { events: end.clone(), end_seq: 6, ..saved("k1") };
    app.tell(StoreNews::Opened(Box::new(ArchiveOpening { saved: Ok(saved), ..opening(false) })));
    let key = app.state.active;
    let first = vec![prompt("first", 1), event(1, call("a", ToolStatus::Completed))];
    let page = EventPage { events: [first, end].concat(), is_last: true, ..EventPage::default() };
    app.tell(StoreNews::Loaded { key, page: Ok(page) });
    assert_eq!(
        items(shown(&app)),
        ["user* \"first\"", "tool a Completed \"late\"", "user* \"second\"", "agent \"2\""]
    );
}

#[test]
fn a_record_that_cannot_be_read_shows_its_end() {
    let mut app = TestCore::ready();
    app.submit("something").end_turn(StopReason::EndTurn);
    app.tell(StoreNews::Opened(Box::new(opening(true))));
    let key = app.state.active;
    app.tell(StoreNews::Loaded { key, page: Err("The disk is away.".into()) });
    let reported = items(shown(&app));
    assert!(reported[0].contains("could not be read: The disk is away."), "{reported:?}");
    app.reply(Ok(Reply::Session(SessionReply::default())));
    app.play(Event::Timer(TimerId::History(key))).play(Event::Timer(TimerId::History(key)));
    app.submit_in(key, "more");
    assert!(shown(&app).turn.is_running(), "the session can be used");
}

#[test]
fn a_session_with_a_missing_folder_is_read_only_until_the_user_selects_one() {
    let mut app = TestCore::ready();
    let offers = vec![FolderOffer { folder: "/code/new till".into(), why: FolderReason::Moved, others: 0 }];
    let gone = ArchiveOpening { takes: false, offers: Some(offers), ..opening(true) };
    app.tell(StoreNews::Opened(Box::new(gone)));
    let key = app.state.active;
    let Some(dialog) = app.state.questions.last() else { panic!("a question") };
    assert!(dialog.body[0].contains("/code/shop"), "{:?}", dialog.body);
    assert_eq!(dialog.answers[0].label, "Resume in /code/new till (same folder, moved or renamed)");
    app.decide(0);
    assert_eq!(other_jobs(&mut app), [StoreJob::Take { key, uid: "k1".into() }]);
    app.tell(StoreNews::Taken { key, saved: Ok(Box::new(saved("k1"))) });
    assert_eq!(shown(&app).workspace.cwd, std::path::Path::new("/code/new till"));
}

#[test]
fn the_other_sessions_of_a_renamed_folder_are_moved_on_request() {
    let mut app = TestCore::ready();
    let to = PathBuf::from("/code/new till");
    let offers = vec![FolderOffer { folder: to.clone(), why: FolderReason::Moved, others: 3 }];
    let gone = ArchiveOpening { takes: false, offers: Some(offers), ..opening(true) };
    app.tell(StoreNews::Opened(Box::new(gone)));
    let (key, from) = (app.state.active, shown(&app).workspace.cwd.clone());
    let Some(dialog) = app.state.questions.last() else { panic!("a question") };
    assert_eq!(dialog.answers[1].label, "Resume there, and move the folder's other sessions, too (3)");
    app.decide(1);
    let moved = StoreJob::MoveFolder { from, to: to.clone() };
    assert_eq!(other_jobs(&mut app), [moved, StoreJob::Take { key, uid: "k1".into() }]);
    assert_eq!(shown(&app).workspace.cwd, to);
}

#[test]
fn a_prompt_asks_for_the_folder_that_a_file_names() {
    let mut app = TestCore::ready();
    let offers = vec![FolderOffer { folder: "/".into(), why: FolderReason::Imported, others: 0 }];
    let imported = ArchiveOpening { takes: false, offers: Some(offers), ..opening(true) };
    app.tell(StoreNews::Opened(Box::new(imported)));
    let key = app.state.active;
    app.answer_last(UserAnswer::Dismiss);
    assert_eq!(app.state.questions, []);

    app.submit_in(key, "go");
    assert_eq!(app.state.questions.len(), 1, "asked again");
    assert_eq!(other_jobs(&mut app), []);
    app.decide(0);
    assert_eq!(other_jobs(&mut app), [StoreJob::Take { key, uid: "k1".into() }]);
}

#[test]
fn a_listed_session_continues_its_stored_record() {
    let mut app = TestCore::ready();
    *app.state.listed_mut() = vec![listed("old")];
    let fx = app.effects_of(|state, cx| operations::open_session(state, "old".into(), cx));
    let heads: Vec<&SessionHead> = fx
        .iter()
        .filter_map(|effect| match effect {
            Effect::Keep { notes, .. } => Some(notes),
            _ => None,
        })
        .flatten()
        .filter_map(|note| match note {
            Note::Head(head) => Some(&**head),
            _ => None,
        })
        .collect();
    assert!(heads.iter().any(|head| head.goes_on && head.session == Some("old".into())), "{heads:?}");
}

#[test]
fn a_listed_session_with_a_record_is_opened_from_the_store() {
    for is_saved in [true, false] {
        let mut app = TestCore::ready();
        app.state.setup.saves_sessions = true;
        let info = listed("old");
        *app.state.listed_mut() = vec![info.clone()];
        app.fx.clear();
        app.flow(|state, cx| operations::open_session(state, "old".into(), cx));
        let (conn, folder) = (app.conn(), app.state.setup.folder.clone());
        let info = Box::new(info);
        let agent = app.state.conns[&conn].spec.name.clone();
        let job = StoreJob::OpenListed { conn, agent, info: info.clone(), folder };
        assert_eq!(app.store_jobs(), [job]);
        app.expect_sent("");
        let saved = StoreNews::Opened(Box::new(opening(true)));
        let news = if is_saved { saved } else { StoreNews::NotSaved(conn, info) };
        app.tell(news);
        let saved_as = is_saved.then_some("k1");
        assert_eq!(shown(&app).recorder.saved_as(), saved_as);
        assert!(app.sent().contains("call load old"), "kept: {is_saved}");
    }
}

#[test]
fn a_title_set_by_the_user_is_not_replaced_by_the_agent() {
    let mut app = TestCore::ready();
    app.flow(|state, cx| operations::set_title(state, KEY, "Mine".into(), cx));
    app.update(SessionUpdate::Info { title: Patch::Set("Theirs".into()), updated_at: Patch::Keep });
    assert_eq!(app.session().title.as_deref(), Some("Mine"));
}

#[test]
fn a_copy_up_to_a_turn_has_the_items_until_then() {
    let mut app = TestCore::ready();
    app.submit("one").update(says("1")).end_turn(StopReason::EndTurn);
    app.submit("two").update(says("2")).end_turn(StopReason::EndTurn);
    app.fx.clear();
    app.flow(|state, cx| operations::fork_session(state, KEY, Some(1), cx));
    let sent = app.fx.iter().find_map(|effect| match effect {
        Effect::Send(_, AgentCommand::Call(_, Call::ForkSession(_, _, turns))) => Some(*turns),
        _ => None,
    });
    assert_eq!(sent, Some(1));
    assert_eq!(items(shown(&app)), ["user* \"one\"", "agent \"1\"", "notice Info: Forked from: one"]);
    assert_eq!(shown(&app).turn_count, 1);
}

#[test]
fn a_session_without_prompts_has_lost_nothing() {
    let mut app = TestCore::ready();
    app.submit("something").end_turn(StopReason::EndTurn);
    let bare =
        RecordedSession { events: Vec::new(), has_earlier: false, draft: "half".into(), ..saved("k1") };
    app.tell(StoreNews::Opened(Box::new(ArchiveOpening { saved: Ok(bare), ..opening(true) })));
    app.reply(Ok(Reply::Session(SessionReply::default())));
    assert_eq!(digest(shown(&app)), "ready · idle");
}

#[test]
fn a_session_of_an_unknown_agent_does_not_start_another_one() {
    // Remote or imported: there is a name, but no command.
    let head = SessionHead { agent: "far.example".into(), command: String::new(), ..saved("k1").head };
    let opening = ArchiveOpening { saved: Ok(RecordedSession { head, ..saved("k1") }), ..opening(true) };
    let mut app = TestCore::ready();
    app.fx.clear();
    app.tell(StoreNews::Opened(Box::new(opening)));
    assert_eq!((shown(&app).conn, app.state.conns.len()), (None, 1), "it has no agent");
    assert!(app.requests.contains(&UiRequest::AgentPicker), "the user chooses");
    let is_reported = items(shown(&app)).iter().any(|item| {
        item.contains("\"far.example\", is not configured")
            && item.contains("`parlor --resume k1 --connect URL`")
    });
    assert!(is_reported, "{:?}", items(shown(&app)));
}

#[test]
fn a_session_of_a_remote_agent_is_not_loaded_by_another_remote_agent() {
    let head = SessionHead { agent: "far.example".into(), command: String::new(), ..SessionHead::default() };
    let keeping = RecorderState::of_saved(head, "", Vec::new(), &[]);
    let remote = |name: &str| {
        let remote = Remote { url: format!("https://{name}/acp"), ..Remote::default() };
        AgentSpec { name: name.into(), remote: Some(remote), ..AgentSpec::default() }
    };
    assert!(keeping.is_with(&remote("far.example")));
    assert!(!keeping.is_with(&remote("other.example")));
}
