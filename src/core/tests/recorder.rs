//! Tests of recording: a session restored from its record is the same session.

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

/// The notes of the first session since the last call.
pub fn saved_notes(app: &mut TestCore) -> Vec<Note> {
    std::mem::take(&mut app.saved)
}

/// The session as a store would return it.
pub fn saved_session(app: &mut TestCore) -> RecordedSession {
    again(RecordedSession::default(), app)
}

/// The stored session with the new records added.
pub fn again(mut saved: RecordedSession, app: &mut TestCore) -> RecordedSession {
    for note in saved_notes(app) {
        take_note(&mut saved, note, |spool| app.spools[&spool].clone());
    }
    saved
}

/// Changes a stored session as a store would. `events_of`: those of a spool.
pub fn take_note(
    saved: &mut RecordedSession,
    note: Note,
    events_of: impl Fn(SessionKey) -> Vec<RecordedEvent>,
) {
    match note {
        Note::Head(head) => saved.head = SessionHead { saved_as: Some("k".into()), ..*head },
        Note::Event { turn, record } => {
            saved.events.push(RecordedEvent { at_ms: 0, turn, record: *record });
        }
        Note::Draft(draft) => saved.draft = draft,
        Note::Queue(queue) => saved.queue = queue,
        Note::Stash(stash) => saved.stash = stash,
        Note::Held(path, Some(file)) => drop(saved.held.insert(path, file)),
        Note::Held(path, None) => drop(saved.held.remove(&path)),
        Note::Reported(reported) => saved.reported = reported,
        Note::TakeSpool { spool } => saved.events = events_of(spool),
        Note::Spool { .. }
        | Note::KeepSpool { .. }
        | Note::Sync(_)
        | Note::Closed
        | Note::CameFrom { .. } => {}
    }
}

pub fn items(session: &Session) -> Vec<String> {
    let text = digest(session);
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_restored_session_looks_the_same() {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).open(ID);
    app.submit("fix it");
    app.updates(vec![
        text(Role::User, "fix it"),
        text(Role::Thought, "hm"),
        says("I look "),
        says("at it."),
        call("a", ToolStatus::InProgress),
        news("a", ToolStatus::Completed),
        says_in("m2", "One more."),
        call("b", ToolStatus::Pending),
    ]);
    app.ask(1, permission("b"));
    app.choose(Some(0));
    app.update(SessionUpdate::Unknown { name: "odd".into(), raw: Raw("{}".into()) });
    app.update(SessionUpdate::Usage(Usage { used_tokens: 1, size_tokens: 2, cost: None }));
    app.update(SessionUpdate::Info { title: Patch::Set("Fixing".into()), updated_at: Patch::Keep });
    app.end_turn(StopReason::EndTurn);
    app.submit("more");
    app.submit("and then");
    app.update(says("half"));
    app.update(call("a", ToolStatus::InProgress));
    app.end_turn(StopReason::MaxTokens);
    app.draft("a tho");
    let saved = saved_session(&mut app);
    assert_eq!(saved.head.session, Some(ID.into()));
    assert_eq!((saved.draft.as_str(), saved.queue.as_slice()), ("a tho", &["and then".to_owned()][..]));

    let mut again = Session::new(KEY, SessionWorkspace::default());
    restore(&mut again, saved, app.now);
    assert_eq!(items(&again), items(app.session()));
    assert_eq!((again.turn_count, again.id.clone()), (2, Some(ID.into())));
    assert_eq!(
        (again.title.as_deref(), again.usage.as_ref()),
        (Some("Fixing"), app.session().usage.as_ref())
    );
    let queue: Vec<&str> = again.outbox.queue().map(|prompt| prompt.text.as_str()).collect();
    assert_eq!((again.draft.as_str(), queue), ("a tho", app.queue()));
}

#[test]
fn a_chunk_is_recorded_as_that_chunk() {
    let mut app = TestCore::running();
    saved_notes(&mut app);
    app.update(says(&"long ".repeat(1000)));
    saved_notes(&mut app);
    app.update(says("word"));
    let record = Box::new(Record::Update(says("word")));
    assert_eq!(saved_notes(&mut app), [Note::Event { turn: 1, record }]);
    // Nothing happened, so nothing is recorded.
    assert_eq!(saved_notes(&mut app), Vec::new());
}

#[test]
fn an_interrupted_turn_is_marked_and_its_calls_are_closed() {
    let mut app = TestCore::ready();
    app.submit("go");
    app.updates(vec![says("half an ans"), call("a", ToolStatus::InProgress)]);
    let mut saved = saved_session(&mut app);
    saved.events.push(RecordedEvent { at_ms: 0, turn: 1, record: Record::TurnEnded(TurnOutcome::Cut) });
    let mut again = Session::new(KEY, SessionWorkspace::default());
    restore(&mut again, saved, app.now);
    assert_eq!(
        items(&again),
        [
            "user* \"go\"",
            "agent \"half an ans\"",
            "tool a Cancelled? \"do a\"",
            "notice Warning: Turn interrupted: parlor exited before the turn ended.",
        ]
    );
    assert!(!again.turn.is_running());
}

#[test]
fn an_archived_session_is_unarchived_before_it_continues() {
    let archiving = AgentCapabilities { can_archive: true, ..all_capabilities() };
    let archived = || {
        let mut app = TestCore::started();
        app.handshake(AgentCapabilities { can_archive: true, ..all_capabilities() }).open(ID);
        app.submit("one").update(says("1")).end_turn(StopReason::EndTurn);
        app.flow(|state, cx| operations::archive_session(state, KEY, cx)).reply(Ok(Reply::Done));
        saved_session(&mut app)
    };
    let mut app = reopened(archived(), "fake");
    assert!(app.session().is_archived);
    app.fx.clear();
    app.handshake(archiving).expect_sent("call archive s false");
    app.reply(Ok(Reply::Done)).expect_sent("call load s");
    assert!(!app.session().is_archived);
    let mut again = Session::new(KEY, SessionWorkspace::default());
    restore(&mut again, saved_session(&mut app), app.now);
    assert!(!again.is_archived, "that is recorded too");

    // An agent without an archive is not asked to unarchive.
    let mut app = reopened(archived(), "fake");
    app.fx.clear();
    app.handshake(all_capabilities()).expect_sent("call load s");
    assert!(!app.session().is_archived);
}

/// An app whose first session was restored for this agent.
pub fn reopened(saved: RecordedSession, name: &str) -> TestCore {
    let setup = Setup {
        folder: "/code/shop".into(),
        start_with: Some(spec(name)),
        reopen: Some(Box::new(saved)),
        ..Setup::default()
    };
    TestCore::start(setup)
}

fn a_saved_session() -> RecordedSession {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).open(ID);
    app.submit("one").update(says("1")).end_turn(StopReason::EndTurn);
    app.draft("a tho");
    saved_session(&mut app)
}

#[test]
fn a_reopened_session_is_shown_immediately_and_resumed() {
    let mut app = reopened(a_saved_session(), "fake");
    assert_eq!(items(app.session()), ["user* \"one\"", "agent \"1\""]);
    assert_eq!(app.session().draft, "a tho");
    app.expect_sent("connect 1 after 0 ms");
    app.handshake(all_capabilities()).expect_sent("call load s");
    opened(&mut app).submit("two").update(says("2")).end_turn(StopReason::EndTurn);
    app.expect("ready · idle\nuser* \"one\"\nagent \"1\"\nuser* \"two\"\nagent \"2\"");
    // New records follow the stored ones.
    let notes = saved_notes(&mut app);
    let heads: Vec<_> = notes
        .iter()
        .filter_map(|note| match note {
            Note::Head(head) => head.saved_as.as_deref(),
            _ => None,
        })
        .collect();
    assert!(!heads.is_empty() && heads.iter().all(|saved_as| *saved_as == "k"), "{heads:?}");
    let turns: Vec<u32> = notes
        .iter()
        .filter_map(|note| match note {
            Note::Event { turn, .. } => Some(*turn),
            _ => None,
        })
        .collect();
    assert_eq!(turns, [2, 2, 2]);
}

#[test]
fn an_agent_that_cannot_resume_is_reported() {
    let mut app = reopened(a_saved_session(), "fake");
    app.handshake(AgentCapabilities::default());
    app.open("t");
    app.expect(
        "ready · idle\nuser* \"one\"\nagent \"1\"\nnotice Warning: The agent could not restore this conversation.",
    );
    assert_eq!(app.session().id, Some("t".into()));
    // Another agent never had the session.
    let mut app = reopened(a_saved_session(), "other");
    app.sent();
    app.handshake(all_capabilities()).expect_sent("call new");
    app.expect(
        "opening · idle\nuser* \"one\"\nagent \"1\"\nnotice Warning: The agent could not restore this conversation.",
    );
}

/// A stored session of two turns, reopened with an agent that can only load; its load is pending.
fn loading() -> TestCore {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).open(ID);
    app.submit("write the first thing").update(says("first")).end_turn(StopReason::EndTurn);
    app.submit("go").updates(vec![call("a", ToolStatus::Completed), says("second")]);
    app.end_turn(StopReason::EndTurn);
    let mut app = reopened(saved_session(&mut app), "fake");
    app.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    app.expect_sent("connect 1 after 0 ms\ncall load s");
    saved_notes(&mut app);
    app
}

#[test]
fn prompts_typed_while_loading_wait_when_the_agent_has_lost_the_session() {
    let mut app = loading();
    app.submit("yes, delete them all").expect_sent("");
    app.fail(RpcError::RESOURCE_NOT_FOUND, "no such session").expect_sent("call new");
    app.submit("and the rest");
    app.open("t");
    assert!(!app.session().turn.is_running(), "nothing is sent to a session without the history");
    assert_eq!(app.queue(), ["yes, delete them all", "and the rest"]);
    assert_eq!(app.session().outbox.free(), 0);
    assert_eq!(app.session().resume.former_id(), Some(&ID.into()), "the old session is resumed next time");
    app.submit("");
    assert!(app.session().turn.is_running(), "the user has decided");
}

#[test]
fn another_error_of_a_load_is_shown_and_the_session_is_not_replaced() {
    let mut app = loading();
    app.submit("yes, delete them all").expect_sent("");
    app.fail(-32603, "file is broken").expect_sent("");
    assert!(matches!(app.session().phase, SessionPhase::Failed(_)));
    let reported = items(app.session());
    assert!(reported.last().unwrap().starts_with("notice Error: "), "{reported:?}");
    assert_eq!((app.queue(), app.session().id.clone()), (vec!["yes, delete them all"], Some(ID.into())));
    assert!(!app.session().turn.is_running());
}

const BOTH: &str = "
    user* \"write the first thing\"
    agent \"first\"
    user* \"go\"
    tool a Completed \"do a\"
    agent \"second\"";

fn first() -> Vec<SessionUpdate> {
    vec![text(Role::User, "write the first thing"), says("first")]
}

fn second() -> Vec<SessionUpdate> {
    // Without ids, without the call.
    vec![text(Role::User, "go"), says("second")]
}

fn third() -> Vec<SessionUpdate> {
    vec![text(Role::User, "go on"), says("third"), call("b", ToolStatus::Completed)]
}

pub fn opened(app: &mut TestCore) -> &mut TestCore {
    quiet(answered(app))
}

/// Lets all timeouts of a replay pass.
pub fn quiet(app: &mut TestCore) -> &mut TestCore {
    for _ in 0..8 {
        app.play(Event::Timer(TimerId::History(KEY)));
    }
    app
}

pub fn answered(app: &mut TestCore) -> &mut TestCore {
    app.reply(Ok(Reply::Session(SessionReply::default())))
}

#[test]
fn a_replay_of_the_shown_items_changes_nothing() {
    let mut app = loading();
    app.updates(first());
    app.expect(&format!("loading · idle{BOTH}"));
    app.updates(second());
    opened(&mut app).expect(&format!("ready · idle{BOTH}"));
    assert!(!saved_notes(&mut app).iter().any(|note| matches!(note, Note::Event { .. })));
}

#[test]
fn turns_from_another_client_are_added() {
    let mut app = loading();
    app.updates([first(), second(), third()].concat());
    app.expect(&format!("loading · idle{BOTH}"));
    opened(&mut app);
    app.expect(&format!(
        "ready · idle{BOTH}\nnotice Info: 1 turn from the agent's history\nuser \"go on\"\nagent \"third\"\n\
         tool b Completed \"do b\""
    ));
    let turns: Vec<u32> = saved_notes(&mut app)
        .iter()
        .filter_map(|note| match note {
            Note::Event { turn, .. } => Some(*turn),
            _ => None,
        })
        .collect();
    assert_eq!(turns, [2, 3, 3, 3]);
    // A late update of such a call finds it.
    app.update(patch("b", |patch| patch.title = Patch::Set("late".into())));
    assert_eq!(items(app.session()).last().unwrap(), "tool b Completed \"late\"");
}

#[test]
fn a_replay_after_the_response_changes_nothing_and_prompts_wait_for_it() {
    let mut app = loading();
    answered(&mut app);
    app.submit("on").updates(first());
    let over = Event::Timer(TimerId::History(KEY));
    app.play(over.clone()).updates(second());
    app.play(over.clone());
    app.expect(&format!("ready · idle · queue [\"on\"]{BOTH}"));
    assert!(!app.session().has_background_news);
    app.play(over).update(says("third"));
    app.expect(&format!("ready · running{BOTH}\nuser* \"on\"\nagent \"third\" …"));
}

#[test]
fn a_second_enter_sends_before_the_history_is_complete() {
    let mut app = loading();
    answered(&mut app).updates(first());
    app.submit("on");
    assert!(!app.session().turn.is_running());
    assert!(app.state.flash.clone().unwrap().contains("Press Enter again"), "{:?}", app.state.flash);
    app.submit("");
    assert!(app.session().turn.is_running());
    assert!(app.state.flash.clone().unwrap().contains("may be missing"), "{:?}", app.state.flash);
    app.update(says("reply"));
    app.expect(&format!("ready · running{BOTH}\nuser* \"on\"\nagent \"reply\" …"));
}

#[test]
fn prompts_wait_for_a_replay_for_a_limited_time() {
    let mut app = loading();
    answered(&mut app).submit("on");
    quiet(&mut app);
    assert!(app.session().turn.is_running());
}

#[test]
fn a_replay_that_continues_after_the_response_changes_nothing() {
    let context = text(Role::User, "<session_context>\nToday is Monday.\n</session_context>");
    for reported in [vec![context], first()] {
        let mut app = loading();
        app.updates(reported.clone());
        answered(&mut app).updates(if reported.len() == 1 { first() } else { Vec::new() }).updates(second());
        quiet(&mut app).expect(&format!("ready · idle{BOTH}"));
        assert!(!app.session().has_background_news);
    }
}

#[test]
fn a_replay_on_resume_changes_nothing_and_later_turns_are_added() {
    for is_early in [true, false] {
        let mut app = TestCore::started();
        app.handshake(all_capabilities()).open(ID);
        app.submit("write the first thing").update(says("first")).end_turn(StopReason::EndTurn);
        let mut app = reopened(saved_session(&mut app), "fake");
        let resumes = AgentCapabilities { can_resume: true, ..AgentCapabilities::default() };
        app.handshake(resumes).expect_sent("connect 1 after 0 ms\ncall resume s");
        if is_early {
            app.updates(first());
            answered(&mut app);
        } else {
            answered(&mut app).updates(first());
        }
        quiet(&mut app);
        let shown = "ready · idle\nuser* \"write the first thing\"\nagent \"first\"";
        app.expect(shown);
        app.wait(60).updates(second());
        app.expect(shown);
        quiet(&mut app).expect(&format!(
            "{shown}\nnotice Info: 1 turn from the agent's history\nuser \"go\"\nagent \"second\""
        ));
    }
}

#[test]
fn a_history_of_a_session_without_a_record_is_recorded_as_a_whole_or_not_at_all() {
    let mut app = TestCore::talked();
    *app.state.listed_mut() = vec![SessionInfo { cwd: "/code".into(), ..listed("old") }];
    let recorded = |app: &mut TestCore, event: AgentEvent| -> Vec<(SessionKey, Note)> {
        let fx = app.effects_after(Event::Agent(CONN, event));
        let notes = fx.into_iter().filter_map(|effect| match effect {
            Effect::Keep { session, notes } => Some(notes.into_iter().map(move |note| (session, note))),
            _ => None,
        });
        notes.flatten().filter(|(_, note)| !matches!(note, Note::Head(_))).collect()
    };
    for is_whole in [false, true] {
        app.open_listed("old");
        let key = app.state.active;
        let mut spool = None;
        for (nth, reported) in first().into_iter().enumerate() {
            let event = Note::Event { turn: 1, record: Box::new(Record::Update(reported.clone())) };
            let notes = recorded(&mut app, AgentEvent::Update("old".into(), reported));
            let saved: Vec<&Note> = notes.iter().map(|(_, note)| note).collect();
            let begin = Note::Spool { of: key };
            let expected = if nth == 0 { vec![&begin, &event] } else { vec![&event] };
            assert_eq!(saved, expected);
            assert!(notes.iter().all(|(of, _)| *of != key && spool.is_none_or(|spool| spool == *of)));
            spool = Some(notes[0].0);
        }
        let spool = spool.unwrap();
        assert_eq!(app.state.sessions[&key].transcript.items().len(), 2, "it is shown as received");
        let tag = app.latest_call(CONN);
        if is_whole {
            let reply = Ok(Reply::Session(SessionReply::default()));
            let notes = recorded(&mut app, AgentEvent::Replied(tag, reply));
            assert_eq!(notes, [(key, Note::TakeSpool { spool })]);
        } else {
            let failed = Err(CallError::Agent(RpcError::new(-32603, "no")));
            let notes = recorded(&mut app, AgentEvent::Replied(tag, failed));
            assert_eq!(notes.first(), Some(&(spool, Note::Closed)));
            app.flow(|state, cx| operations::close_session(state, key, cx));
        }
    }
}

#[test]
fn an_agent_that_lost_the_last_turns_is_told_once() {
    let mut app = loading();
    app.updates(first());
    opened(&mut app);
    app.expect(&format!("ready · idle{BOTH}\nnotice Info: The agent's history ends after turn 1."));
    let notes = saved_notes(&mut app);
    assert!(notes.iter().all(|note| matches!(note, Note::Head(_) | Note::Reported(_))));
    let reported = notes.into_iter().find_map(|note| match note {
        Note::Reported(reported) => Some(reported),
        _ => None,
    });
    let mut app = loading();
    app.session_mut().recorder.reported = reported.unwrap();
    app.updates(first());
    opened(&mut app).expect(&format!("ready · idle{BOTH}"));
}

#[test]
fn another_history_is_told_and_changes_nothing() {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).open(ID);
    app.submit("write the first thing").update(says("first")).end_turn(StopReason::EndTurn);
    let saved = saved_session(&mut app);
    let mut app = reopened(saved.clone(), "fake");
    app.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    app.updates(vec![text(Role::User, "something else"), says("other")]);
    let shown = "user* \"write the first thing\"\nagent \"first\"";
    app.expect(&format!("loading · idle\n{shown}"));
    opened(&mut app).expect(&format!(
        "ready · idle\n{shown}\nnotice Info: The agent's history could not be matched with this record."
    ));
    assert_eq!(again(saved.clone(), &mut app).events, saved.events);
    // It can be read, and kept as a session.
    app.fx.clear();
    app.flow(operations::show_history);
    assert!(
        matches!(&app.fx[..], [Effect::Store(StoreJob::Open { takes: false, uid, .. })] if uid.starts_with("spool")),
        "{:?}",
        app.fx
    );
}

#[test]
fn the_rest_of_an_interrupted_reply_is_added() {
    let mut saved = a_saved_session();
    saved.events.pop();
    saved.events.push(RecordedEvent { at_ms: 0, turn: 1, record: Record::TurnEnded(TurnOutcome::Cut) });
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).open(ID);
    app.submit("zero").update(says("0")).end_turn(StopReason::EndTurn);
    let mut first = saved_session(&mut app);
    let mut cut = saved.events.clone();
    for event in &mut cut {
        event.turn += 1;
    }
    first.events.extend(cut);
    let mut app = reopened(first, "fake");
    app.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    app.updates(vec![text(Role::User, "zero"), says("0")]);
    app.updates(vec![text(Role::User, "one"), says("1, and all "), says("the rest of it")]);
    opened(&mut app).expect(
        "ready · idle\nuser* \"zero\"\nagent \"0\"\nuser* \"one\"\nagent \"1\"\n\
         notice Warning: Turn interrupted: parlor exited before the turn ended.\n\
         notice Info: The rest of the turn, from the agent's history\n\
         agent \", and all the rest of it\"",
    );
}

#[test]
fn a_failed_load_keeps_the_items() {
    let mut app = loading();
    app.updates(first());
    app.fail(RpcError::RESOURCE_NOT_FOUND, "no");
    app.open("t");
    app.expect(&format!(
        "ready · idle{BOTH}\nnotice Warning: The agent could not restore this conversation."
    ));
}

/// A stored session with one short prompt, whose agent can only load and optionally has message ids.
fn short_one(message: Option<&str>) -> TestCore {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).open(ID);
    app.submit("hi").update(message.map_or_else(|| says("hello"), |id| says_in(id, "hello")));
    app.end_turn(StopReason::EndTurn);
    let mut app = reopened(saved_session(&mut app), "fake");
    app.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    app
}

#[test]
fn context_added_to_a_prompt_does_not_change_the_history() {
    let context = "<session_context>\nThis is the agent. Today is Monday.\n</session_context>";
    for reported in [
        vec![text(Role::User, context), says("Understood."), text(Role::User, "hi"), says("hello")],
        vec![text(Role::User, context), text(Role::User, "hi"), says("hello")],
        vec![text(Role::User, &format!("{context}\n\nhi")), says("hello")],
    ] {
        let mut app = short_one(None);
        app.updates(reported.clone());
        opened(&mut app).expect("ready · idle\nuser* \"hi\"\nagent \"hello\"");
        // An agent that replays only after its response.
        let mut app = short_one(None);
        answered(&mut app);
        app.updates(reported);
        quiet(app.submit("on")).update(says("more"));
        app.expect("ready · running\nuser* \"hi\"\nagent \"hello\"\nuser* \"on\"\nagent \"more\" …");
    }
}
