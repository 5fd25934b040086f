//! Tests of recording: a session restored from its record is the same session.

use super::support::*;
use crate::app::lifecycle::operations;
use crate::app::*;
use crate::model::*;

/// The notes of the first session since the last call.
pub fn kept_notes(desk: &mut TestApp) -> Vec<Note> {
    // Notes of operations are emitted with the next event.
    desk.play(Event::Input);
    std::mem::take(&mut desk.kept)
}

/// The session as a store would return it.
pub fn kept_session(desk: &mut TestApp) -> RecordedSession {
    let mut kept = RecordedSession::default();
    let mut held_from = 0;
    for note in kept_notes(desk) {
        match note {
            Note::Hold => held_from = kept.events.len(),
            Note::Release { is_whole: false } => kept.events.truncate(held_from),
            Note::Head(head) => kept.head = SessionHead { kept_as: Some("k".into()), ..*head },
            Note::Event { turn, record } => {
                kept.events.push(RecordedEvent { at_ms: 0, turn, record: *record });
            }
            Note::Inserted { turn, record, .. } => insert_behind(&mut kept.events, turn, *record),
            Note::Draft(draft) => kept.draft = draft,
            Note::Queue(queue) => kept.queue = queue,
            Note::Release { is_whole: true }
            | Note::Mark(_)
            | Note::Late { .. }
            | Note::Closed
            | Note::CameFrom { .. } => {}
        }
    }
    kept
}

/// Inserts a record after the last event of a turn, and after earlier insertions.
pub fn insert_behind(events: &mut Vec<RecordedEvent>, turn: u32, record: Record) {
    let at = events.iter().rposition(|event| event.turn <= turn).map_or(0, |last| last + 1);
    events.insert(at, RecordedEvent { at_ms: 0, turn, record });
}

pub fn items(session: &Session) -> Vec<String> {
    let text = digest(session);
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn a_restored_session_looks_the_same() {
    let mut desk = TestApp::started();
    desk.handshake(all_capabilities()).open(ID);
    desk.submit("fix it");
    desk.updates(vec![
        text(Role::User, "fix it"),
        text(Role::Thought, "hm"),
        says("I look "),
        says("at it."),
        call("a", ToolStatus::InProgress),
        news("a", ToolStatus::Completed),
        says_in("m2", "One more."),
        call("b", ToolStatus::Pending),
    ]);
    desk.ask(1, permission("b"));
    desk.choose(Some(0));
    desk.update(SessionUpdate::Unknown { name: "odd".into(), raw: Raw("{}".into()) });
    desk.update(SessionUpdate::Usage(Usage { used_tokens: 1, size_tokens: 2, cost: None }));
    desk.update(SessionUpdate::Info { title: Patch::Set("Fixing".into()), updated_at: Patch::Keep });
    desk.end_turn(StopReason::EndTurn);
    desk.submit("more");
    desk.submit("and then");
    desk.update(says("half"));
    desk.update(call("a", ToolStatus::InProgress));
    desk.end_turn(StopReason::MaxTokens);
    desk.play(Event::Draft("a tho".into()));
    let kept = kept_session(&mut desk);
    assert_eq!(kept.head.session, Some(ID.into()));
    assert_eq!((kept.draft.as_str(), kept.queue.as_slice()), ("a tho", &["and then".to_owned()][..]));

    let mut again = Session::new(KEY, SessionPlace::default());
    restore(&mut again, kept, desk.now);
    assert_eq!(items(&again), items(desk.session()));
    assert_eq!((again.turn_count, again.id.clone()), (2, Some(ID.into())));
    assert_eq!(
        (again.title.as_deref(), again.usage.as_ref()),
        (Some("Fixing"), desk.session().usage.as_ref())
    );
    assert_eq!((again.draft, again.queue), ("a tho".to_owned(), desk.session().queue.clone()));
}

#[test]
fn a_chunk_is_recorded_as_that_chunk() {
    let mut desk = TestApp::running();
    kept_notes(&mut desk);
    desk.update(says(&"long ".repeat(1000)));
    kept_notes(&mut desk);
    desk.update(says("word"));
    let record = Box::new(Record::Update(says("word")));
    assert_eq!(kept_notes(&mut desk), [Note::Event { turn: 1, record }]);
    // Nothing happened, so nothing is recorded.
    assert_eq!(kept_notes(&mut desk), Vec::new());
}

#[test]
fn an_interrupted_turn_is_marked_and_its_calls_are_closed() {
    let mut desk = TestApp::ready();
    desk.submit("go");
    desk.updates(vec![says("half an ans"), call("a", ToolStatus::InProgress)]);
    let mut kept = kept_session(&mut desk);
    kept.events.push(RecordedEvent { at_ms: 0, turn: 1, record: Record::TurnEnded(TurnOutcome::Cut) });
    kept.left_out_count = 7;
    let mut again = Session::new(KEY, SessionPlace::default());
    restore(&mut again, kept, desk.now);
    assert_eq!(
        items(&again),
        [
            "notice Info: 7 earlier events. Scroll up to load them.",
            "user* \"go\"",
            "agent \"half an ans\"",
            "tool a Cancelled? \"do a\"",
            "notice Warning: This turn was cut: parlor ended in the middle of it.",
        ]
    );
    assert!(!again.turn.is_running());
}

#[test]
fn an_archived_session_is_unarchived_before_it_continues() {
    let archiving = AgentCapabilities { can_archive: true, ..all_capabilities() };
    let archived = || {
        let mut desk = TestApp::started();
        desk.handshake(AgentCapabilities { can_archive: true, ..all_capabilities() }).open(ID);
        desk.submit("one").update(says("1")).end_turn(StopReason::EndTurn);
        desk.flow(|state, _, fx| operations::archive_session(state, KEY, fx)).reply(Ok(Reply::Done));
        kept_session(&mut desk)
    };
    let mut desk = reopened(archived(), "fake");
    assert!(desk.session().is_archived);
    desk.fx.clear();
    desk.handshake(archiving).expect_sent("call archive s false");
    desk.reply(Ok(Reply::Done)).expect_sent("call resume s");
    assert!(!desk.session().is_archived);
    let mut again = Session::new(KEY, SessionPlace::default());
    restore(&mut again, kept_session(&mut desk), desk.now);
    assert!(!again.is_archived, "that is recorded too");

    // An agent without an archive is not asked to unarchive.
    let mut desk = reopened(archived(), "fake");
    desk.fx.clear();
    desk.handshake(all_capabilities()).expect_sent("call resume s");
    assert!(!desk.session().is_archived);
}

/// An app whose first session was restored for this agent.
pub fn reopened(kept: RecordedSession, name: &str) -> TestApp {
    let spec = AgentSpec { name: name.into(), command: name.into(), ..AgentSpec::default() };
    let now = std::time::Instant::now();
    let setup = Setup {
        folder: "/code/shop".into(),
        start_with: Some(spec),
        reopen: Some(Box::new(kept)),
        ..Setup::default()
    };
    let (state, fx) = start(setup, now);
    TestApp { state, now, fx, kept: Vec::new() }
}

fn a_kept_session() -> RecordedSession {
    let mut desk = TestApp::started();
    desk.handshake(all_capabilities()).open(ID);
    desk.submit("one").update(says("1")).end_turn(StopReason::EndTurn);
    desk.play(Event::Draft("a tho".into()));
    kept_session(&mut desk)
}

#[test]
fn a_reopened_session_is_shown_immediately_and_resumed() {
    let mut desk = reopened(a_kept_session(), "fake");
    assert_eq!(items(desk.session()), ["user* \"one\"", "agent \"1\""]);
    desk.expect_sent("draft \"a tho\"\nconnect 1 after 0 ms");
    desk.handshake(all_capabilities()).expect_sent("call resume s");
    desk.reply(Ok(Reply::Session(SessionReply::default())));
    desk.submit("two").update(says("2")).end_turn(StopReason::EndTurn);
    desk.expect("ready · idle\nuser* \"one\"\nagent \"1\"\nuser* \"two\"\nagent \"2\"");
    // New records follow the stored ones.
    let notes = kept_notes(&mut desk);
    let heads: Vec<_> = notes
        .iter()
        .filter_map(|note| match note {
            Note::Head(head) => head.kept_as.as_deref(),
            _ => None,
        })
        .collect();
    assert!(!heads.is_empty() && heads.iter().all(|kept_as| *kept_as == "k"), "{heads:?}");
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
    let mut desk = reopened(a_kept_session(), "fake");
    desk.handshake(AgentCapabilities::default());
    desk.open("t");
    desk.expect(
        "ready · idle\nuser* \"one\"\nagent \"1\"\nnotice Warning: The agent could not restore this conversation.",
    );
    assert_eq!(desk.session().id, Some("t".into()));
    // Another agent never had the session.
    let mut desk = reopened(a_kept_session(), "other");
    desk.sent();
    desk.handshake(all_capabilities()).expect_sent("call new");
    desk.expect(
        "opening · idle\nuser* \"one\"\nagent \"1\"\nnotice Warning: The agent could not restore this conversation.",
    );
}

/// A stored session of two turns, reopened with an agent that can only load; its load is pending.
fn loading() -> TestApp {
    let mut desk = TestApp::started();
    desk.handshake(all_capabilities()).open(ID);
    desk.submit("write the first thing").update(says("first")).end_turn(StopReason::EndTurn);
    desk.submit("go").updates(vec![call("a", ToolStatus::Completed), says("second")]);
    desk.end_turn(StopReason::EndTurn);
    let mut desk = reopened(kept_session(&mut desk), "fake");
    desk.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    desk.expect_sent("connect 1 after 0 ms\ncall load s");
    kept_notes(&mut desk);
    desk
}

const BOTH: &str = "
    user* \"write the first thing\"
    agent \"first\"
    user* \"go\"
    tool a Completed \"do a\"
    agent \"second\"";

fn first() -> Vec<SessionUpdate> {
    vec![text(Role::User, "<context/> write the  first thing"), says("first")]
}

fn second() -> Vec<SessionUpdate> {
    // Joined, without ids, without the call.
    vec![text(Role::User, "go"), says("second")]
}

fn third() -> Vec<SessionUpdate> {
    vec![text(Role::User, "go"), says("third"), call("b", ToolStatus::Completed)]
}

pub fn opened(desk: &mut TestApp) -> &mut TestApp {
    quiet(answered(desk))
}

/// Lets all timeouts of a replay pass.
pub fn quiet(desk: &mut TestApp) -> &mut TestApp {
    for _ in 0..8 {
        desk.play(Event::Timer(TimerId::History(KEY)));
    }
    desk
}

pub fn answered(desk: &mut TestApp) -> &mut TestApp {
    desk.reply(Ok(Reply::Session(SessionReply::default())))
}

#[test]
fn a_replay_of_the_shown_items_changes_nothing() {
    let mut desk = loading();
    desk.updates(first());
    desk.expect(&format!("loading · idle{BOTH}"));
    desk.updates(second());
    opened(&mut desk).expect(&format!("ready · idle{BOTH}"));
    assert!(!kept_notes(&mut desk).iter().any(|note| matches!(note, Note::Event { .. })));
}

#[test]
fn turns_from_another_client_are_added() {
    let mut desk = loading();
    desk.updates([first(), second(), third()].concat());
    opened(&mut desk);
    desk.expect(&format!(
        "ready · idle{BOTH}\nnotice Info: Only in the agent's history: the next 3 items\nuser \"go\"\nagent \"third\"\n\
         tool b Completed \"do b\""
    ));
    let turns: Vec<u32> = kept_notes(&mut desk)
        .iter()
        .filter_map(|note| match note {
            Note::Event { turn, .. } => Some(*turn),
            _ => None,
        })
        .collect();
    assert_eq!(turns, [2, 3, 3, 3]);
    // A late update of such a call finds it.
    desk.update(patch("b", |patch| patch.title = Patch::Set("late".into())));
    assert_eq!(items(desk.session()).last().unwrap(), "tool b Completed \"late\"");
}

#[test]
fn a_replay_after_the_response_changes_nothing_and_prompts_wait_for_it() {
    let mut desk = loading();
    answered(&mut desk);
    desk.update(says("I am ready."));
    desk.submit("on").updates(first());
    let over = Event::Timer(TimerId::History(KEY));
    desk.play(over.clone()).updates(second());
    desk.play(over.clone());
    desk.expect(&format!("ready · idle · queue [\"on\"]{BOTH}\nagent \"I am ready.\" …"));
    assert!(!desk.session().has_background_news);
    desk.play(over).update(says("third"));
    desk.expect(&format!("ready · running{BOTH}\nagent \"I am ready.\"\nuser* \"on\"\nagent \"third\" …"));
}

#[test]
fn a_replay_that_pauses_before_its_end_is_awaited() {
    let mut desk = loading();
    answered(&mut desk).submit("on").fx.clear();
    let over = Event::Timer(TimerId::History(KEY));
    let rest = [text(Role::User, "go"), says("sec"), says("ond")];
    desk.updates(first());
    for told in rest {
        // The first check sees the updates, the others see that no more follow.
        desk.play(over.clone()).play(over.clone()).play(over.clone());
        desk.expect(&format!("ready · idle · queue [\"on\"]{BOTH}"));
        desk.update(told);
    }
    desk.play(over.clone());
    assert!(!desk.session().turn.is_running());
    desk.play(over).expect(&format!("ready · running{BOTH}\nuser* \"on\""));
}

#[test]
fn an_incomplete_replay_holds_prompts_for_a_limited_time() {
    let mut desk = loading();
    desk.updates(first());
    answered(&mut desk).submit("on");
    quiet(&mut desk);
    assert!(desk.session().turn.is_running());
    let mut desk = loading();
    answered(&mut desk).submit("on");
    desk.play(Event::Timer(TimerId::History(KEY)));
    assert!(!desk.session().turn.is_running(), "it may still start");
    quiet(&mut desk);
    assert!(desk.session().turn.is_running());
}

#[test]
fn a_replay_that_continues_after_the_response_changes_nothing() {
    let context = text(Role::User, "<session_context>\nToday is Monday.\n</session_context>");
    for told in [vec![context], first()] {
        let mut desk = loading();
        desk.updates(told.clone());
        answered(&mut desk).updates(if told.len() == 1 { first() } else { Vec::new() }).updates(second());
        quiet(&mut desk).expect(&format!("ready · idle{BOTH}"));
        assert!(!desk.session().has_background_news);
    }
}

#[test]
fn a_replay_on_resume_changes_nothing_and_later_updates_are_new() {
    for is_early in [true, false] {
        let mut desk = TestApp::started();
        desk.handshake(all_capabilities()).open(ID);
        desk.submit("write the first thing").update(says("first")).end_turn(StopReason::EndTurn);
        let mut desk = reopened(kept_session(&mut desk), "fake");
        desk.handshake(all_capabilities()).expect_sent("connect 1 after 0 ms\ncall resume s");
        if is_early {
            desk.updates(first());
            answered(&mut desk);
        } else {
            answered(&mut desk).updates(first());
        }
        quiet(&mut desk);
        let shown = "ready · idle\nuser* \"write the first thing\"\nagent \"first\"";
        desk.expect(shown);
        desk.wait(60).updates(second());
        desk.expect(&format!("{shown}\nuser \"go\"\nagent \"second\" …"));
    }
}

#[test]
fn an_incomplete_history_does_not_replace_the_record() {
    let mut desk = TestApp::talked();
    *desk.state.listed_mut() = vec![SessionInfo { cwd: "/code".into(), ..listed("old") }];
    let recorded = |desk: &mut TestApp, event: AgentEvent| -> Vec<Note> {
        let fx = update(&mut desk.state, Event::Agent(CONN, event), desk.now);
        let notes = fx.into_iter().filter_map(|effect| match effect {
            Effect::Keep { notes, .. } => Some(notes),
            _ => None,
        });
        notes.flatten().filter(|note| !matches!(note, Note::Head(_))).collect()
    };
    for is_whole in [false, true] {
        desk.open_listed("old");
        let key = desk.state.active;
        for (nth, told) in first().into_iter().enumerate() {
            let record = Box::new(Record::Update(told.clone()));
            let event = Note::Event { turn: 1, record };
            let replaced = Note::Event { turn: 0, record: Box::new(Record::Replaced) };
            let notes = if nth == 0 { vec![Note::Hold, replaced, event] } else { vec![event] };
            assert_eq!(recorded(&mut desk, AgentEvent::Update("old".into(), told)), notes);
        }
        assert_eq!(desk.state.sessions[&key].transcript.items().len(), 2, "it is shown as received");
        let tag = desk.state.conns[&CONN].open_calls.values().next_back().cloned().unwrap();
        if is_whole {
            let reply = Ok(Reply::Session(SessionReply::default()));
            let notes = recorded(&mut desk, AgentEvent::Replied(tag, reply));
            assert_eq!(notes, [Note::Release { is_whole }]);
        } else {
            let failed = Err(CallError::Agent(RpcError::new(-32603, "no")));
            let notes = recorded(&mut desk, AgentEvent::Replied(tag, failed));
            assert_eq!(notes.first(), Some(&Note::Release { is_whole }));
            desk.flow(|state, now, fx| operations::close_session(state, key, now, fx));
        }
    }
}

#[test]
fn an_agent_that_lost_the_last_turns_is_reported() {
    let mut desk = loading();
    desk.updates(first());
    opened(&mut desk);
    desk.expect(&format!("ready · idle{BOTH}\nnotice Warning: Not in the agent's history: the turn above"));
}

#[test]
fn cancelled_turns_missing_in_the_replay_stay() {
    let mut desk = TestApp::started();
    desk.handshake(all_capabilities()).open(ID);
    let say = |desk: &mut TestApp, words: &str, reason| {
        desk.submit(words).update(says(&format!("to {words}"))).end_turn(reason);
    };
    say(&mut desk, "write the first thing", StopReason::EndTurn);
    say(&mut desk, "write the second thing", StopReason::Cancelled);
    say(&mut desk, "write the third thing", StopReason::EndTurn);
    let shown = items(desk.session());
    let can_load = AgentCapabilities { can_load: true, ..AgentCapabilities::default() };
    let title = "Not in the agent's history: the turn above";
    let mut kept = kept_session(&mut desk);
    // The second time, the notice exists already.
    for round in 0..2 {
        let mut desk = reopened(kept.clone(), "fake");
        desk.handshake(can_load);
        let first = "<session_context>Monday</session_context>write the first thing";
        desk.updates(vec![
            text(Role::User, first),
            says("[Function Call: x]"),
            says("to write the first thing"),
        ]);
        desk.updates(vec![text(Role::User, "write the third thing"), says("to write the third thing")]);
        opened(&mut desk);
        let now = items(desk.session());
        let told: Vec<usize> = (0..now.len()).filter(|at| now[*at].contains(title)).collect();
        assert_eq!(
            (told.as_slice(), now.len()),
            ([5].as_slice(), shown.len() + 1),
            "round {round}: {now:#?}"
        );
        assert!(now[4].starts_with("end Cancelled"), "{now:#?}");
        kept = again(kept, &mut desk);
    }
}

/// The stored session with the new records added.
pub fn again(kept: RecordedSession, desk: &mut TestApp) -> RecordedSession {
    let mut kept = kept;
    for note in kept_notes(desk) {
        match note {
            Note::Event { turn, record } => {
                kept.events.push(RecordedEvent { at_ms: 0, turn, record: *record });
            }
            Note::Inserted { turn, record, .. } => insert_behind(&mut kept.events, turn, *record),
            _ => {}
        }
    }
    kept
}

#[test]
fn another_history_is_added_to_the_record() {
    let mut desk = TestApp::started();
    desk.handshake(all_capabilities()).open(ID);
    desk.submit("write the first thing").update(says("first")).end_turn(StopReason::EndTurn);
    let kept = kept_session(&mut desk);
    let mut desk = reopened(kept.clone(), "fake");
    desk.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    desk.updates(vec![text(Role::User, "something else"), says("other")]);
    let shown = "user* \"write the first thing\"\nagent \"first\"";
    desk.expect(&format!("loading · idle\n{shown}"));
    opened(&mut desk).expect(&format!(
        "ready · idle\n{shown}\nnotice Warning: Not in the agent's history: the turn above\n\
         notice Info: Only in the agent's history: the next 2 items\nuser \"something else\"\nagent \"other\""
    ));
    let mut from_disk = Session::new(KEY, SessionPlace::default());
    restore(&mut from_disk, again(kept, &mut desk), desk.now);
    assert_eq!(items(&from_disk), items(desk.session()));
}

#[test]
fn replayed_items_of_an_interrupted_turn_are_shown() {
    let mut kept = a_kept_session();
    kept.events.pop();
    kept.events.push(RecordedEvent { at_ms: 0, turn: 1, record: Record::TurnEnded(TurnOutcome::Cut) });
    let mut desk = reopened(kept, "fake");
    desk.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    desk.updates(vec![text(Role::User, "one"), says("1, and all the rest of it")]);
    opened(&mut desk).expect(
        "ready · idle\nuser* \"one\"\nagent \"1\"\n\
         notice Warning: This turn was cut: parlor ended in the middle of it.\n\
         notice Info: Only in the agent's history: the next item\nagent \", and all the rest of it\"",
    );
}

#[test]
fn a_failed_load_keeps_the_items() {
    let mut desk = loading();
    desk.updates(first());
    desk.fail(-32603, "no");
    desk.open("t");
    desk.expect(&format!(
        "ready · idle{BOTH}\nnotice Warning: The agent could not restore this conversation."
    ));
}

/// A stored session with one short prompt, whose agent can only load and optionally has message ids.
fn short_one(message: Option<&str>) -> TestApp {
    let mut desk = TestApp::started();
    desk.handshake(all_capabilities()).open(ID);
    desk.submit("hi").update(message.map_or_else(|| says("hello"), |id| says_in(id, "hello")));
    desk.end_turn(StopReason::EndTurn);
    let mut desk = reopened(kept_session(&mut desk), "fake");
    desk.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    desk
}

#[test]
fn context_added_to_a_prompt_does_not_change_the_history() {
    let context = "<session_context>\nThis is the agent. Today is Monday.\n</session_context>";
    for told in [
        vec![text(Role::User, context), says("Understood."), text(Role::User, "hi"), says("hello")],
        vec![text(Role::User, context), text(Role::User, "hi"), says("hello")],
        vec![text(Role::User, &format!("{context}\n\nhi")), says("hello")],
    ] {
        let mut desk = short_one(None);
        desk.updates(told.clone());
        opened(&mut desk).expect("ready · idle\nuser* \"hi\"\nagent \"hello\"");
        // An agent that replays only after its response.
        let mut desk = short_one(None);
        answered(&mut desk);
        desk.updates(told);
        quiet(desk.submit("on")).update(says("more"));
        desk.expect("ready · running\nuser* \"hi\"\nagent \"hello\"\nuser* \"on\"\nagent \"more\" …");
    }
}

#[test]
fn a_turn_with_a_reworded_prompt_is_recognized_by_message_ids() {
    let mut desk = short_one(Some("m1"));
    desk.updates(vec![text(Role::User, "The user greets."), says_in("m1", "hello")]);
    opened(&mut desk).expect("ready · idle\nuser* \"hi\"\nagent \"hello\"");
    let mut desk = short_one(Some("m1"));
    desk.updates(vec![text(Role::User, "The user greets."), says_in("m2", "hello")]);
    opened(&mut desk).expect(
        "ready · idle\nuser* \"hi\"\nagent \"hello\"\nnotice Warning: Not in the agent's history: the turn above\n\
         notice Info: Only in the agent's history: the next 2 items\nuser \"The user greets.\"\nagent \"hello\"",
    );
}
