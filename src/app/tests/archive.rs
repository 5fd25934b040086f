//! Tests of stored sessions: opening, reading, continuing, loading earlier pages, missing folders.

use super::support::*;
use crate::app::lifecycle::operations;
use crate::app::*;
use crate::model::*;

fn prompt(text: &str, turn: u32) -> RecordedEvent {
    RecordedEvent {
        at_ms: 0,
        turn,
        record: Record::Prompt {
            text: text.into(),
            is_again: false,
            blocks: Vec::new(),
            pasted: Vec::new(),
            typed: None,
        },
    }
}

fn said(text: &str, turn: u32) -> RecordedEvent {
    RecordedEvent { at_ms: 0, turn, record: Record::Update(says(text)) }
}

/// A session of the agent `fake` with its last turn, and six earlier events that are not loaded.
fn kept(uid: &str) -> RecordedSession {
    RecordedSession {
        head: SessionHead {
            kept_as: Some(uid.into()),
            agent: "fake".into(),
            command: "fake".into(),
            session: Some("old".into()),
            workspace: SessionWorkspace { cwd: "/code/shop".into(), ..SessionWorkspace::default() },
            title: Some("The till".into()),
            ..SessionHead::default()
        },
        events: vec![prompt("third", 3), said("3", 3)],
        earlier: pages_at([0, 3]),
        first_seq: 6,
        end_seq: 8,
        ..RecordedSession::default()
    }
}

fn opening(takes: bool) -> ArchiveOpening {
    ArchiveOpening { uid: "k1".into(), takes, at: None, kept: Ok(kept("k1")), offers: None }
}

fn tell(app: &mut TestApp, news: StoreNews) {
    app.service(ServiceEvent::Store(Box::new(news)));
}

fn shown(app: &TestApp) -> &Session {
    app.state.active_session().unwrap()
}

fn jobs(app: &mut TestApp) -> Vec<StoreJob> {
    let (jobs, rest): (Vec<Effect>, Vec<Effect>) =
        std::mem::take(&mut app.fx).into_iter().partition(|effect| matches!(effect, Effect::Store(_)));
    app.fx = rest;
    jobs.into_iter()
        .filter_map(|effect| match effect {
            Effect::Store(job) => Some(job),
            _ => None,
        })
        .collect()
}

fn items(session: &Session) -> Vec<String> {
    digest(session).lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_stored_session_is_shown_immediately_and_resumed_by_the_running_agent() {
    let mut app = TestApp::ready();
    app.submit("something").end_turn(StopReason::EndTurn);
    app.fx.clear();
    tell(&mut app, StoreNews::Opened(Box::new(opening(true))));
    assert_eq!(
        items(shown(&app)),
        ["notice Info: 6 earlier events. Scroll up to load them.", "user* \"third\"", "agent \"3\""]
    );
    app.expect_sent("call resume old\ndraft \"\"");
    assert_eq!(app.state.sessions.len(), 2, "the previous session stays open");
    // A second request activates it instead of opening it again.
    let key = app.state.active;
    app.state.active = KEY;
    app.flow(|state, now, fx| operations::open_kept(state, "k1", true, None, now, fx));
    assert_eq!((app.state.active, jobs(&mut app).len()), (key, 0));
}

#[test]
fn a_session_without_prompts_is_replaced() {
    let mut app = TestApp::ready();
    tell(&mut app, StoreNews::Opened(Box::new(opening(true))));
    assert_eq!(app.state.sessions.len(), 1);
    app.expect_sent("call resume old\ncall close s\ndraft \"\"");
}

#[test]
fn a_session_that_cannot_be_opened_is_reported_and_nothing_changes() {
    let mut app = TestApp::ready();
    let kept = Err("The session is open in another parlor (process 7). Close it there first.".to_owned());
    tell(&mut app, StoreNews::Opened(Box::new(ArchiveOpening { kept, ..opening(true) })));
    assert_eq!(app.state.active, KEY);
    assert!(app.state.flash.as_deref().unwrap_or_default().contains("process 7"));
}

#[test]
fn a_read_only_session_has_no_agent_until_a_key_starts_it() {
    let mut app = TestApp::ready();
    app.submit("something").end_turn(StopReason::EndTurn);
    app.fx.clear();
    tell(&mut app, StoreNews::Opened(Box::new(opening(false))));
    let key = app.state.active;
    assert!(matches!(shown(&app).phase, SessionPhase::Ended { .. }));
    assert_eq!(shown(&app).conn, None);
    app.expect_sent("draft \"\"");
    app.play(Event::Draft("and then".into()));
    assert!(app.fx.iter().all(|effect| !matches!(effect, Effect::Keep { .. })), "nothing is recorded");
    app.play(Event::Act(Action::RestartAgent)).play(Event::Act(Action::RestartAgent));
    assert_eq!(jobs(&mut app), [StoreJob::Take { key, uid: "k1".into() }], "requested once");
    tell(&mut app, StoreNews::Taken { key, kept: Err("Another parlor has it.".into()) });
    assert!(shown(&app).read_only.is_some(), "it is still read-only");
    app.play(Event::Act(Action::RestartAgent));
    tell(&mut app, StoreNews::Taken { key, kept: Ok(Box::new(kept("k1"))) });
    app.expect_sent("call resume old");
    assert_eq!(shown(&app).draft, "and then");
    assert_eq!(shown(&app).recorder.kept_as(), Some("k1"));
    assert_eq!(items(shown(&app)).len(), 3, "it is not shown twice");
}

#[test]
fn events_added_by_another_parlor_are_shown_when_the_session_is_continued() {
    let mut app = TestApp::ready();
    tell(&mut app, StoreNews::Opened(Box::new(opening(false))));
    let key = app.state.active;
    app.flow(|state, now, fx| operations::submit(state, key, "next".into(), now, fx));
    let mut newer = kept("k1");
    newer.events.extend([prompt("fourth", 4), said("4", 4)]);
    newer.end_seq = 10;
    tell(&mut app, StoreNews::Taken { key, kept: Ok(Box::new(newer)) });
    assert_eq!(
        items(shown(&app))[1..],
        ["user* \"third\"", "agent \"3\"", "user* \"fourth\"", "agent \"4\""]
    );
    let queue: Vec<&str> = shown(&app).outbox.queue().map(|prompt| prompt.text.as_str()).collect();
    assert_eq!(queue, ["next"], "prompts sent while it was read-only wait for the agent");
}

#[test]
fn the_saved_queue_is_restored_once_when_a_read_only_session_is_continued() {
    let mut app = TestApp::ready();
    let queued = || RecordedSession { queue: vec!["saved".into()], ..kept("k1") };
    tell(&mut app, StoreNews::Opened(Box::new(ArchiveOpening { kept: Ok(queued()), ..opening(false) })));
    let key = app.state.active;
    app.flow(|state, now, fx| operations::submit(state, key, "typed".into(), now, fx));
    tell(&mut app, StoreNews::Taken { key, kept: Ok(Box::new(queued())) });
    let queue = shown(&app).outbox.queue().map(|prompt| (prompt.text.as_str(), prompt.is_on_hold()));
    assert_eq!(queue.collect::<Vec<_>>(), [("typed", false), ("saved", true)]);
}

#[test]
fn earlier_pages_are_inserted_above_and_references_to_items_stay_valid() {
    let mut app = TestApp::ready();
    app.submit("something").end_turn(StopReason::EndTurn);
    tell(&mut app, StoreNews::Opened(Box::new(opening(true))));
    let key = app.state.active;
    app.reply(Ok(Reply::Session(SessionReply::default())));
    let conn = shown(&app).conn.unwrap();
    app.flow(|state, now, fx| operations::submit(state, key, "more".into(), now, fx));
    let update = |update| Event::Agent(conn, AgentEvent::Update("old".into(), update));
    app.play(update(call("a", ToolStatus::InProgress))).play(update(says("so ")));
    app.play(Event::Act(Action::LoadEarlier)).play(Event::Act(Action::LoadEarlier));
    let earlier = |before| StoreJob::Earlier { key, uid: "k1".into(), from: before - 3, before };
    assert_eq!(jobs(&mut app), [earlier(6)]);
    let selected = shown(&app).transcript.items()[1].id;
    app.state.sessions.get_mut(&key).unwrap().selected = Some(selected);
    let marked = Some(selected);
    let page =
        EventPage { events: vec![prompt("second", 2), said("2", 2)], first_seq: 3, ..EventPage::default() };
    tell(&mut app, StoreNews::Earlier { key, page: Ok(page) });
    app.play(update(news("a", ToolStatus::Completed))).play(update(says("far")));
    assert_eq!(
        items(shown(&app)),
        [
            "notice Info: 3 earlier events. Scroll up to load them.",
            "user* \"second\"",
            "agent \"2\"",
            "user* \"third\"",
            "agent \"3\"",
            "user* \"more\"",
            "tool a Completed \"do a\"",
            "agent \"so far\" …",
        ]
    );
    let turns: Vec<u32> = shown(&app).transcript.items().iter().map(|item| item.turn).collect();
    assert_eq!(turns, [0, 2, 2, 3, 3, 4, 4, 4]);
    assert_eq!(shown(&app).selected, marked, "ids are stable");
    assert_eq!(marked.and_then(|id| shown(&app).transcript.index_of(id)), Some(3));
    app.play(Event::Act(Action::LoadEarlier));
    assert_eq!(jobs(&mut app), [earlier(3)]);
    let page = EventPage { events: vec![prompt("first", 1), said("1", 1)], ..EventPage::default() };
    tell(&mut app, StoreNews::Earlier { key, page: Ok(page) });
    assert_eq!(items(shown(&app))[0], "notice Info: Start of session");
    app.play(Event::Act(Action::LoadEarlier));
    assert!(jobs(&mut app).is_empty(), "there are no more pages");
}

/// The events around the second of three turns.
fn part() -> RecordedSession {
    RecordedSession {
        events: vec![prompt("second", 2), said("2", 2)],
        earlier: pages_at([0]),
        first_seq: 3,
        mark: Some(1),
        later: Some((5, 3)),
        ..kept("k1")
    }
}

fn opened_at(at: i64) -> StoreNews {
    StoreNews::Opened(Box::new(ArchiveOpening { at: Some(at), kept: Ok(part()), ..opening(false) }))
}

/// The position of the current hit of the search.
fn current_hit(app: &mut TestApp) -> Option<usize> {
    let key = app.state.active;
    app.play(Event::Timer(crate::app::TimerId::Search(key)));
    let search = shown(app).search.as_ref().expect("a search");
    search.current().and_then(|hit| shown(app).transcript.index_of(hit.item))
}

#[test]
fn a_search_hit_is_shown_with_its_context_and_later_pages_load_on_demand() {
    let mut app = TestApp::ready();
    app.state.user.searched = Some("\u{2}SECOND\u{3} and \u{2}2\u{3}".into());
    tell(&mut app, opened_at(4));
    let key = app.state.active;
    let marked = shown(&app).selected.and_then(|id| shown(&app).transcript.index_of(id));
    assert_eq!(marked, Some(2));
    assert_eq!(current_hit(&mut app), Some(2), "what was searched for is marked there");
    assert_eq!(
        items(shown(&app)),
        [
            "notice Info: 3 earlier events. Scroll up to load them.",
            "user* \"second\"",
            "agent \"2\"",
            "notice Info: 3 later events. Scroll down to load them.",
        ]
    );
    app.play(Event::Act(Action::LoadLater)).play(Event::Act(Action::LoadLater));
    assert_eq!(jobs(&mut app), [StoreJob::Later { key, uid: "k1".into(), from: 5 }], "requested once");
    tell(&mut app, StoreNews::Later { key, page: Err("The disk is away.".into()) });
    app.play(Event::Act(Action::LoadLater));
    assert_eq!(jobs(&mut app).len(), 1, "a failed request can be repeated");
    let window = EventPage {
        events: vec![prompt("third", 3), said("3", 3)],
        first_seq: 5,
        next_seq: 8,
        ..EventPage::default()
    };
    tell(&mut app, StoreNews::Later { key, page: Ok(window) });
    assert_eq!(items(shown(&app))[2..], ["agent \"2\"", "user* \"third\"", "agent \"3\""]);
    assert_eq!(shown(&app).transcript.items().last().map(|item| item.turn), Some(3));
    app.play(Event::Act(Action::LoadLater));
    assert!(jobs(&mut app).is_empty(), "there are no more pages");
}

#[test]
fn a_read_only_part_is_replaced_by_the_end_when_its_session_is_continued() {
    let mut app = TestApp::ready();
    tell(&mut app, opened_at(4));
    let key = app.state.active;
    app.play(Event::Act(Action::RestartAgent));
    tell(&mut app, StoreNews::Taken { key, kept: Ok(Box::new(kept("k1"))) });
    assert_eq!(
        items(shown(&app)),
        ["notice Info: 6 earlier events. Scroll up to load them.", "user* \"third\"", "agent \"3\""]
    );
}

#[test]
fn a_hit_in_an_open_session_is_found_by_content_or_opened_read_only() {
    let mut app = TestApp::ready();
    app.submit("something").end_turn(StopReason::EndTurn);
    tell(&mut app, StoreNews::Opened(Box::new(opening(true))));
    let open = app.state.active;
    app.reply(Ok(Reply::Session(SessionReply::default())));
    jobs(&mut app);
    // The item is in memory: it is found by the surrounding events.
    app.flow(|state, now, fx| operations::open_kept(state, "k1", false, Some(7), now, fx));
    assert_eq!(jobs(&mut app), [StoreJob::Around { key: open, uid: "k1".into(), at: 7 }]);
    let window =
        EventPage { events: vec![prompt("third", 3), said("3", 3)], mark: Some(1), ..EventPage::default() };
    app.state.user.searched = Some("the \u{2}3\u{3}".into());
    tell(&mut app, StoreNews::Around { key: open, page: Ok(window) });
    let marked = shown(&app).selected.and_then(|id| shown(&app).transcript.index_of(id));
    assert_eq!(marked, Some(2));
    assert_eq!(current_hit(&mut app), Some(2), "what was searched for is marked there");
    // It is not: the part is read in a tab of its own, and what goes on is the one that is open.
    app.flow(|state, now, fx| operations::open_kept(state, "k1", false, Some(4), now, fx));
    assert!(matches!(&jobs(&mut app)[..], [StoreJob::Open { takes: false, at: Some(4), .. }]));
    tell(&mut app, opened_at(4));
    let part = app.state.active;
    assert_ne!(part, open);
    assert_eq!(app.state.sessions.len(), 3);
    // Another part of the session replaces the first.
    app.flow(|state, now, fx| operations::open_kept(state, "k1", false, Some(1), now, fx));
    tell(&mut app, opened_at(1));
    assert_eq!(app.state.sessions.len(), 3);
    let part = app.state.active;
    app.fx.clear();
    app.flow(|state, now, fx| operations::submit(state, part, "go on".into(), now, fx));
    assert_eq!((app.state.active, app.state.sessions.len()), (open, 2));
    app.expect_sent("call prompt \"go on\"");
}

#[test]
fn a_search_continues_in_loaded_earlier_pages() {
    let mut app = TestApp::ready();
    tell(&mut app, StoreNews::Opened(Box::new(opening(false))));
    let key = app.state.active;
    app.play(Event::Act(Action::OpenSearch)).play(Event::Line(LineEdit::Insert("second".into())));
    app.play(Event::Timer(TimerId::Search(key)));
    assert_eq!(jobs(&mut app).len(), 1, "without a hit, the previous page is requested");
    let events = vec![prompt("the second", 2), said("2 second", 2)];
    let page = EventPage { events, first_seq: 3, ..EventPage::default() };
    tell(&mut app, StoreNews::Earlier { key, page: Ok(page) });
    app.play(Event::Timer(TimerId::Search(key)));
    let search = shown(&app).search.as_ref().unwrap();
    let at = search.current().and_then(|hit| shown(&app).transcript.index_of(hit.item));
    assert_eq!((search.total(), at), (2, Some(1)));
}

#[test]
fn a_session_with_a_missing_folder_is_read_only_until_the_user_selects_one() {
    let mut app = TestApp::ready();
    let offers = vec![FolderOffer { folder: "/code/new till".into(), why: FolderReason::Moved, others: 0 }];
    let gone = ArchiveOpening { takes: false, offers: Some(offers), ..opening(true) };
    tell(&mut app, StoreNews::Opened(Box::new(gone)));
    let key = app.state.active;
    let Some(Modal::Choice(dialog)) = app.state.modals.last() else { panic!("a question") };
    assert!(dialog.body[0].contains("/code/shop"), "{:?}", dialog.body);
    assert_eq!(dialog.choices[0].label, "Resume in /code/new till (same folder, moved or renamed)");
    app.wait(2).play(Event::Input).answer(1);
    assert_eq!(jobs(&mut app), [StoreJob::Take { key, uid: "k1".into() }]);
    tell(&mut app, StoreNews::Taken { key, kept: Ok(Box::new(kept("k1"))) });
    assert_eq!(shown(&app).workspace.cwd, std::path::Path::new("/code/new till"));
}

#[test]
fn the_other_sessions_of_a_renamed_folder_are_moved_on_request() {
    let mut app = TestApp::ready();
    let to = PathBuf::from("/code/new till");
    let offers = vec![FolderOffer { folder: to.clone(), why: FolderReason::Moved, others: 3 }];
    let gone = ArchiveOpening { takes: false, offers: Some(offers), ..opening(true) };
    tell(&mut app, StoreNews::Opened(Box::new(gone)));
    let (key, from) = (app.state.active, shown(&app).workspace.cwd.clone());
    let Some(Modal::Choice(dialog)) = app.state.modals.last() else { panic!("a question") };
    assert_eq!(dialog.choices[1].label, "Resume there, and move the folder's other sessions, too (3)");
    app.wait(2).play(Event::Input).answer(2);
    let moved = StoreJob::MoveFolder { from, to: to.clone() };
    assert_eq!(jobs(&mut app), [moved, StoreJob::Take { key, uid: "k1".into() }]);
    assert_eq!(shown(&app).workspace.cwd, to);
}

#[test]
fn a_prompt_asks_for_the_folder_that_a_file_names() {
    let mut app = TestApp::ready();
    let offers = vec![FolderOffer { folder: "/".into(), why: FolderReason::Imported, others: 0 }];
    let imported = ArchiveOpening { takes: false, offers: Some(offers), ..opening(true) };
    tell(&mut app, StoreNews::Opened(Box::new(imported)));
    let key = app.state.active;
    app.wait(2).play(Event::Input).play(Event::Act(Action::Escape));
    assert!(app.state.modals.is_empty());

    app.flow(|state, now, fx| operations::submit(state, key, "go".into(), now, fx));
    assert!(matches!(app.state.modals.last(), Some(Modal::Choice(_))), "asked again");
    assert_eq!(jobs(&mut app), []);
    app.wait(2).play(Event::Input).answer(1);
    assert_eq!(jobs(&mut app), [StoreJob::Take { key, uid: "k1".into() }]);
}

#[test]
fn a_listed_session_continues_its_stored_record() {
    let mut app = TestApp::ready();
    *app.state.listed_mut() = vec![listed("old")];
    let fx = {
        let (state, now) = (&mut app.state, app.now);
        let mut fx = Vec::new();
        operations::open_session(state, "old".into(), now, &mut fx);
        fx.extend(update(state, Event::Input, now));
        fx
    };
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
    for is_kept in [true, false] {
        let mut app = TestApp::ready();
        app.state.setup.keeps_sessions = true;
        let info = SessionInfo {
            id: "old".into(),
            cwd: app.session().workspace.cwd.clone(),
            title: None,
            updated_at: None,
            additional_directories: Vec::new(),
            is_archived: false,
            is_live: None,
        };
        *app.state.listed_mut() = vec![info.clone()];
        app.fx.clear();
        app.flow(|state, now, fx| operations::open_session(state, "old".into(), now, fx));
        let (conn, folder) = (app.conn(), app.state.setup.folder.clone());
        let info = Box::new(info);
        let agent = app.state.conns[&conn].spec.name.clone();
        let job = StoreJob::OpenListed { conn, agent, info: info.clone(), folder };
        assert_eq!(jobs(&mut app), [job]);
        app.expect_sent("");
        let kept = StoreNews::Opened(Box::new(opening(true)));
        let news = if is_kept { kept } else { StoreNews::NotKept(conn, info) };
        tell(&mut app, news);
        let kept_as = is_kept.then_some("k1");
        assert_eq!(shown(&app).recorder.kept_as(), kept_as);
        let call = if is_kept { "call resume old" } else { "call load old" };
        assert!(app.sent().contains(call), "kept: {is_kept}");
    }
}

#[test]
fn a_title_set_by_the_user_is_not_replaced_by_the_agent() {
    let mut app = TestApp::ready();
    app.flow(|state, now, fx| operations::set_title(state, KEY, "Mine".into(), now, fx));
    app.update(SessionUpdate::Info { title: Patch::Set("Theirs".into()), updated_at: Patch::Keep });
    assert_eq!(app.session().title.as_deref(), Some("Mine"));
}

#[test]
fn a_copy_up_to_a_turn_has_the_items_until_then() {
    let mut app = TestApp::ready();
    app.submit("one").update(says("1")).end_turn(StopReason::EndTurn);
    app.submit("two").update(says("2")).end_turn(StopReason::EndTurn);
    app.fx.clear();
    app.flow(|state, now, fx| operations::fork_session(state, KEY, Some(1), now, fx));
    let sent = app.fx.iter().find_map(|effect| match effect {
        Effect::Send(_, AgentCommand::Call(_, Call::ForkSession(_, _, turns))) => Some(*turns),
        _ => None,
    });
    assert_eq!(sent, Some(1));
    assert_eq!(items(shown(&app)), ["user* \"one\"", "agent \"1\"", "notice Info: Forked from: one"]);
    assert_eq!(shown(&app).turn_count, 1);
}

#[test]
fn a_search_without_a_hit_loads_a_limited_number_of_pages() {
    let mut app = TestApp::ready();
    let mut long = kept("k1");
    (long.first_seq, long.end_seq) = (10_006, 10_008);
    long.earlier = pages_at((6..10_006).step_by(100));
    let opening = ArchiveOpening { kept: Ok(long), ..opening(false) };
    tell(&mut app, StoreNews::Opened(Box::new(opening)));
    let key = app.state.active;
    jobs(&mut app);
    let mut before = 10_006;
    // Serves jobs until none are left, and returns the number of pages.
    let mut serve = |app: &mut TestApp| {
        let mut count = 0;
        loop {
            app.play(Event::Timer(TimerId::Search(key)));
            let wanted = jobs(app);
            if wanted.is_empty() {
                return count;
            }
            assert_eq!(wanted, [StoreJob::Earlier { key, uid: "k1".into(), from: before - 100, before }]);
            before -= 100;
            count += 1;
            let page = EventPage {
                events: vec![prompt("page", 2), said("of it", 2)],
                first_seq: before,
                ..EventPage::default()
            };
            tell(app, StoreNews::Earlier { key, page: Ok(page) });
        }
    };
    app.play(Event::Act(Action::OpenSearch)).play(Event::Line(LineEdit::Insert("nowhere".into())));
    assert_eq!(serve(&mut app), 4);
    assert!(dialogs::looks_no_further(dialogs::search_of(&app.state).unwrap()));
    // More letters do not load more pages, an explicit request does.
    app.play(Event::Line(LineEdit::Insert("at all".into())));
    assert_eq!(serve(&mut app), 0);
    app.play(Event::Act(Action::Accept));
    assert_eq!(serve(&mut app), 4);
}

#[test]
fn a_session_without_prompts_has_lost_nothing() {
    let mut app = TestApp::ready();
    app.submit("something").end_turn(StopReason::EndTurn);
    let bare =
        RecordedSession { events: Vec::new(), earlier: Vec::new(), draft: "half".into(), ..kept("k1") };
    tell(&mut app, StoreNews::Opened(Box::new(ArchiveOpening { kept: Ok(bare), ..opening(true) })));
    app.reply(Ok(Reply::Session(SessionReply::default())));
    assert_eq!(digest(shown(&app)), "ready · idle");
}

#[test]
fn the_line_about_later_events_stays_last_in_a_read_only_part() {
    let mut app = TestApp::ready();
    tell(&mut app, opened_at(4));
    let key = app.state.active;
    tell(&mut app, StoreNews::Exported(Ok("/w/out.md".into())));
    tell(&mut app, StoreNews::Told("The disk is nearly full.".into()));
    let later = "notice Info: 3 later events. Scroll down to load them.";
    let written = "notice Info: Session exported to /w/out.md.";
    let told = "notice Warning: The disk is nearly full.";
    assert_eq!(items(shown(&app))[2..], ["agent \"2\"", written, told, later]);
    let events = vec![prompt("third", 3), said("3", 3)];
    let window = EventPage { events, first_seq: 5, next_seq: 8, ..EventPage::default() };
    tell(&mut app, StoreNews::Later { key, page: Ok(window) });
    assert_eq!(items(shown(&app))[2..], ["agent \"2\"", written, told, "user* \"third\"", "agent \"3\""]);
}

#[test]
fn a_session_of_an_unknown_agent_does_not_start_another_one() {
    // Remote or imported: there is a name, but no command.
    let head = SessionHead { agent: "far.example".into(), command: String::new(), ..kept("k1").head };
    let opening = ArchiveOpening { kept: Ok(RecordedSession { head, ..kept("k1") }), ..opening(true) };
    let mut app = TestApp::ready();
    app.fx.clear();
    tell(&mut app, StoreNews::Opened(Box::new(opening)));
    assert_eq!((shown(&app).conn, app.state.conns.len()), (None, 1), "it has no agent");
    assert!(matches!(app.state.modals.last(), Some(Modal::Picker(_))), "the user chooses");
    let is_told = items(shown(&app)).iter().any(|item| {
        item.contains("\"far.example\", is not configured")
            && item.contains("`parlor --resume k1 --connect URL`")
    });
    assert!(is_told, "{:?}", items(shown(&app)));
}

#[test]
fn a_session_of_a_remote_agent_is_not_loaded_by_another_remote_agent() {
    let head = SessionHead { agent: "far.example".into(), command: String::new(), ..SessionHead::default() };
    let keeping = RecorderState::of_kept(head, "", Vec::new());
    let remote = |name: &str| {
        let remote = Remote { url: format!("https://{name}/acp"), ..Remote::default() };
        AgentSpec { name: name.into(), remote: Some(remote), ..AgentSpec::default() }
    };
    assert!(keeping.is_with(&remote("far.example")));
    assert!(!keeping.is_with(&remote("other.example")));
}
