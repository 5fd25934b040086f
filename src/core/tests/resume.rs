//! Tests of replays that differ from the record.

use super::recorder::{again, answered, items, quiet, reopened, saved_notes, saved_session};
use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

/// How a recorded turn ended.
#[derive(Clone, Copy)]
pub enum End {
    Good,
    Refused,
    Failed,
    Cancelled,
}

/// A stored session with these turns.
pub fn recorded(turns: &[(&str, Vec<SessionUpdate>, End)]) -> RecordedSession {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).open(ID);
    for (prompt, updates, end) in turns {
        app.submit(prompt).updates(updates.clone());
        match end {
            End::Good => app.end_turn(StopReason::EndTurn),
            End::Refused => app.end_turn(StopReason::Refusal),
            End::Failed => app.fail(-32603, "overloaded"),
            End::Cancelled => app.cancel().end_turn(StopReason::Cancelled),
        };
    }
    saved_session(&mut app)
}

fn good(prompt: &str) -> (&str, Vec<SessionUpdate>, End) {
    (prompt, vec![says(&format!("Reply to {prompt}"))], End::Good)
}

fn reported(prompt: &str) -> Vec<SessionUpdate> {
    vec![text(Role::User, prompt), says(&format!("Reply to {prompt}"))]
}

/// Resumes a session whose agent can only load, with this replay, `before` updates of which precede the response.
pub fn resumed(saved: &RecordedSession, replay: &[SessionUpdate], before: usize) -> TestCore {
    let mut app = reopened(saved.clone(), "fake");
    app.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    saved_notes(&mut app);
    app.updates(replay[..before].to_vec());
    answered(&mut app).updates(replay[before..].to_vec());
    quiet(&mut app);
    app
}

fn shown(saved: &RecordedSession) -> Vec<String> {
    let mut session = Session::new(KEY, SessionWorkspace::default());
    restore(&mut session, saved.clone(), std::time::Instant::now());
    items(&session)
}

/// Resumes twice with a replay: no recorded item is removed, moved or changed, the record equals the shown items except
/// for the lines that tell a difference, and the second time changes nothing. Returns the added items.
pub fn added(saved: &RecordedSession, replay: &[SessionUpdate], before: usize) -> Vec<String> {
    let first = shown(saved);
    let mut app = resumed(saved, replay, before);
    let second = items(app.session());
    assert_eq!(second[..first.len()], first, "what was recorded is unchanged");
    let saved = again(saved.clone(), &mut app);
    let is_reported = |item: &&String| item.starts_with("notice Info: The agent's history");
    let recorded: Vec<&String> = second.iter().filter(|item| !is_reported(item)).collect();
    assert_eq!(shown(&saved).iter().collect::<Vec<_>>(), recorded, "the record equals the shown items");
    let mut app = resumed(&saved, replay, before);
    assert_eq!(items(app.session()), shown(&saved), "the second time changes nothing");
    let is_event = |note: &Note| matches!(note, Note::Event { .. });
    assert_eq!(saved_notes(&mut app).into_iter().find(is_event), None, "nothing is recorded again");
    second[first.len()..].to_vec()
}

/// A subagent with the session `child`.
fn helper() -> SessionUpdate {
    SessionUpdate::Subagent(SubagentPatch {
        session: "child".into(),
        title: Patch::Set("Helper".into()),
        description: Patch::Keep,
        state: Patch::Keep,
        can_cancel: Patch::Keep,
    })
}

#[test]
fn turns_that_did_not_complete_may_be_missing_in_the_replay() {
    let refused = ("refuse this", vec![says("I will not do that.")], End::Refused);
    let failed = ("fail this", vec![], End::Failed);
    let cancelled = ("stop this", vec![says("I beg")], End::Cancelled);
    for turn in [refused, failed, cancelled] {
        let saved = recorded(&[good("first prompt"), turn, good("third prompt")]);
        let replay = [reported("first prompt"), reported("third prompt"), reported("fourth prompt")].concat();
        assert_eq!(
            added(&saved, &replay, replay.len()),
            [
                "notice Info: 1 turn from the agent's history",
                "user \"fourth prompt\"",
                "agent \"Reply to fourth prompt\"",
            ]
        );
    }
}

#[test]
fn turns_after_a_compaction_are_found() {
    let turns = ["one", "two", "three", "four"].map(good);
    let saved = recorded(&turns);
    let summary = "This session is being continued. Summary: things were done.";
    let compacted = [vec![text(Role::User, summary), says("Understood.")], reported("four")].concat();
    assert_eq!(
        added(&saved, &compacted, 4),
        ["notice Info: The agent's history has 1 turn that this record lacks."]
    );
    let more = [compacted, reported("five"), reported("six")].concat();
    assert_eq!(
        added(&saved, &more, 4)[..2],
        ["notice Info: 2 turns from the agent's history", "user \"five\""]
    );
}

#[test]
fn a_command_replayed_with_its_wrapper_is_recognized() {
    let saved = recorded(&[good("look at the code"), good("/init all"), good("thanks")]);
    let init = "<command-message>init is running</command-message>\n<command-name>/init</command-name>\n\
                <command-args>all</command-args>";
    let replay = [
        reported("look at the code"),
        vec![text(Role::User, init), says("Reply to /init all")],
        reported("thanks"),
    ];
    assert_eq!(added(&saved, &replay.concat(), 0), Vec::<String>::new());
}

#[test]
fn a_cancelled_prompt_joined_with_the_next_is_recognized() {
    let saved = recorded(&[good("do one"), ("wait no", vec![], End::Cancelled), good("do two")]);
    let chunk = |id: &str, text: &str| SessionUpdate::Chunk {
        role: Role::User,
        message: Some(id.into()),
        text: text.into(),
    };
    let two = vec![text(Role::User, "wait no"), text(Role::User, "do two"), says("Reply to do two")];
    assert_eq!(added(&saved, &[reported("do one"), two].concat(), 0), Vec::<String>::new());
    // One agent stores the interruption as a user message.
    let two = vec![
        text(Role::User, "wait no"),
        chunk("u2", "[Request interrupted by user]"),
        chunk("u3", "do two"),
        says("Reply to do two"),
    ];
    assert_eq!(added(&saved, &[reported("do one"), two].concat(), 0), Vec::<String>::new());
}

#[test]
fn what_is_not_certain_is_told_and_not_added() {
    let not_matched = ["notice Info: The agent's history could not be matched with this record."];
    let saved = recorded(&[good("alpha prompt"), good("beta prompt"), good("gamma prompt")]);
    // Another reply to the last turn.
    let other = vec![text(Role::User, "gamma prompt"), says("A regenerated answer.")];
    let replay = [reported("alpha prompt"), reported("beta prompt"), other].concat();
    assert_eq!(added(&saved, &replay, 0), not_matched);
    // The last turn is missing, and others follow.
    let replay = [reported("alpha prompt"), reported("beta prompt"), reported("delta prompt")].concat();
    assert_eq!(added(&saved, &replay, 0), not_matched);
    // A reworded prompt.
    let saved = recorded(&[good("fix the tests please")]);
    let replay = [text(Role::User, "fix the tests please and lint as well"), says("edited")];
    assert_eq!(added(&saved, &replay, 0), not_matched);
}

#[test]
fn a_turn_that_the_record_lacks_is_told() {
    let saved = recorded(&[good("alpha prompt"), good("gamma prompt")]);
    let replay = [reported("alpha prompt"), reported("beta prompt"), reported("gamma prompt")].concat();
    assert_eq!(
        added(&saved, &replay, replay.len()),
        ["notice Info: The agent's history has 1 turn that this record lacks."]
    );
}

#[test]
fn equal_prompts_are_told_apart_by_their_replies() {
    let say = |reply: &str| ("go on", vec![says(reply)], End::Good);
    let reported = |reply: &str| vec![text(Role::User, "go on"), says(reply)];
    let saved = recorded(&[say("Reply 1"), say("Reply 2"), say("Reply 3")]);
    let all = [reported("Reply 1"), reported("Reply 2"), reported("Reply 3"), reported("Reply 4")].concat();
    assert_eq!(added(&saved, &all, 0)[1..], ["user \"go on\"", "agent \"Reply 4\""]);
}

#[test]
fn a_resent_prompt_is_one_turn() {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).open(ID);
    app.submit("one").update(says("Reply to one")).end_turn(StopReason::EndTurn);
    app.submit("flaky two").fail(-32603, "API overloaded (529), try again");
    app.flow(|state, cx| operations::send_again(state, KEY, cx));
    app.update(says("Reply to flaky two")).end_turn(StopReason::EndTurn);
    let saved = saved_session(&mut app);
    assert_eq!(added(&saved, &[reported("one"), reported("flaky two")].concat(), 0), Vec::<String>::new());
}

#[test]
fn both_attempts_of_a_resent_prompt_are_matched() {
    let mut app = TestCore::started();
    app.handshake(all_capabilities()).open(ID);
    app.submit("one").update(says("Reply to one")).end_turn(StopReason::EndTurn);
    app.submit("flaky").update(says("API error")).fail(-32603, "API overloaded (529), try again");
    app.flow(|state, cx| operations::send_again(state, KEY, cx));
    app.update(says("Reply to flaky")).end_turn(StopReason::EndTurn);
    let saved = saved_session(&mut app);
    let attempt = vec![text(Role::User, "flaky"), says("API error")];
    let all = [reported("one"), attempt, reported("flaky")].concat();
    assert_eq!(added(&saved, &all, all.len()), Vec::<String>::new());
    let all = [all, reported("elsewhere")].concat();
    let shown = added(&saved, &all, all.len());
    assert_eq!(
        shown.get(1..),
        Some(["user \"elsewhere\"", "agent \"Reply to elsewhere\""].map(String::from).as_slice()),
        "{shown:?}"
    );
}

#[test]
fn a_turn_cut_at_a_blank_is_completed_once() {
    let saved = recorded(&[good("one"), ("wait", vec![says("partial ")], End::Cancelled)]);
    let note = vec![text(Role::User, "[Request interrupted by user]"), says("No response requested.")];
    let cut = vec![text(Role::User, "wait"), says("partial ")];
    let all = [reported("one"), cut, note, reported("elsewhere")].concat();
    let shown = added(&saved, &all, 2);
    assert_eq!(shown.iter().filter(|row| row.contains("No response requested")).count(), 1, "{shown:?}");
    assert!(shown.iter().any(|row| row == "agent \"Reply to elsewhere\""), "{shown:?}");
}

#[test]
fn turns_made_after_a_mismatch_are_reported() {
    let saved = recorded(&[good("alpha"), good("beta")]);
    let other = [reported("gamma"), reported("delta")].concat();
    let not_matched = ["notice Info: The agent's history could not be matched with this record."];
    assert_eq!(added(&saved, &other, other.len()), not_matched);
    let saved = again(saved.clone(), &mut resumed(&saved, &other, other.len()));
    let more = [other, reported("epsilon")].concat();
    assert_eq!(added(&saved, &more, more.len()), not_matched);
}

#[test]
fn a_request_shows_what_was_replayed_of_its_call() {
    let saved = recorded(&[good("one")]);
    let mut app = reopened(saved, "fake");
    app.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    app.updates(reported("one")).update(call("a", ToolStatus::InProgress));
    app.ask(1, permission("a"));
    let shown = items(app.session());
    assert!(shown.last().unwrap().starts_with("tool a"), "{shown:?}");
    assert_eq!(app.session().requests.len(), 1);
}

#[test]
fn taken_turns_can_be_put_back_and_are_not_taken_again() {
    let saved = recorded(&[good("one")]);
    let replay = [reported("one"), reported("two")].concat();
    let mut app = resumed(&saved, &replay, replay.len());
    assert_eq!(items(app.session()).len(), 5);
    let grown = again(saved.clone(), &mut app);
    app.fx.clear();
    app.flow(|state, cx| operations::put_back(state, None, cx));
    let [Effect::Store(StoreJob::ForgetTurns { key, turns, .. })] = &app.fx[..] else {
        panic!("{:?}", app.fx)
    };
    assert_eq!((*key, turns.clone()), (KEY, 2..3));
    app.tell(StoreNews::Forgotten { key: KEY, turns: 2..3, result: Ok(()) });
    assert_eq!(items(app.session()), shown(&saved));
    let reported = again(grown, &mut app).reported;
    assert!(!reported.is_empty());
    let app = resumed(&RecordedSession { reported, ..saved.clone() }, &replay, replay.len());
    assert_eq!(items(app.session()), shown(&saved));
}

#[test]
fn replaying_any_kind_of_item_changes_nothing() {
    let raw = |payload: &str| SessionUpdate::Unknown { name: "odd".into(), raw: Raw(payload.into()) };
    let terminal = || {
        let id: TerminalId = "t".into();
        SessionUpdate::Terminal(AgentTerminal::Bytes { id, bytes: b"output".to_vec(), is_whole: false })
    };
    let all = || {
        vec![
            text(Role::Thought, "I think."),
            SessionUpdate::notice(Severity::Error, "Rate limit hit".into(), None),
            patch("a", |patch| patch.content = Patch::Set(vec![ToolContent::Terminal("t".into())])),
            terminal(),
            news("a", ToolStatus::Completed),
            raw("1"),
            raw("1"),
            raw("2"),
            SessionUpdate::Compaction {
                id: "c".into(),
                status: "completed".into(),
                summary: Patch::Set("short".into()),
                error: Patch::Keep,
            },
            helper(),
            SessionUpdate::Block {
                role: Role::Agent,
                message: None,
                block: ContentBlock::ResourceLink(ResourceLink {
                    uri: "file:///a".into(),
                    ..ResourceLink::default()
                }),
            },
            says("done"),
        ]
    };
    let saved = recorded(&[("one", all(), End::Good), ("two", all(), End::Good)]);
    let replay = [vec![text(Role::User, "one")], all(), vec![text(Role::User, "two")], all()].concat();
    assert_eq!(added(&saved, &replay, replay.len()), Vec::<String>::new());
    let app = resumed(&saved, &replay, replay.len());
    let output = app.session().terminals.get(&TerminalId::from("t")).map(|view| view.output.clone());
    let live = {
        let mut session = Session::new(KEY, SessionWorkspace::default());
        restore(&mut session, saved, app.now);
        session.terminals.remove(&TerminalId::from("t")).unwrap().output
    };
    assert_eq!(output, Some(live), "nothing is appended again");
}

#[test]
fn a_message_after_the_response_to_a_load_is_shown_and_recorded() {
    let saved = recorded(&[good("first question")]);
    let mut app = resumed(&saved, &reported("first question"), 2);
    assert_eq!(items(app.session()), shown(&saved));
    app.update(says("WARNING: servers could not be started."));
    assert_eq!(items(app.session()).last().unwrap(), "agent \"WARNING: servers could not be started.\" …");
    let warning = text(Role::Agent, "WARNING: servers could not be started.");
    assert!(
        saved_notes(&mut app).contains(&Note::Event { turn: 1, record: Box::new(Record::Update(warning)) })
    );
}

#[test]
fn a_report_on_each_start_is_recorded_once() {
    let report = |id: &str| {
        let SessionUpdate::Tool(mut report) = call(id, ToolStatus::Failed) else { panic!() };
        report.title = Patch::Set("start of the server".into());
        report.content = Patch::Set(vec![ToolContent::Block(ContentBlock::Text("not found".into()))]);
        SessionUpdate::Tool(report)
    };
    let notice = || SessionUpdate::notice(Severity::Warning, "No sandbox".into(), None);
    for end in [End::Good, End::Cancelled] {
        let updates = vec![report("a"), notice(), says("Reply to one")];
        let saved = recorded(&[("one", updates, end)]);
        let mut app = resumed(&saved, &reported("one"), 2);
        let before = items(app.session());
        app.update(report("b")).update(notice());
        quiet(&mut app);
        assert_eq!(items(app.session()), before);
    }
    let mut app = resumed(&recorded(&[good("one")]), &reported("one"), 2);
    let before = items(app.session()).len();
    app.update(report("b")).update(notice()).update(report("c"));
    assert_eq!(items(app.session()).len(), before + 2);
}

#[test]
fn an_empty_replay_shows_no_notice() {
    let saved = recorded(&[good("one")]);
    assert_eq!(added(&saved, &[], 0), Vec::<String>::new());
}

#[test]
fn a_replay_without_prompts_adds_nothing() {
    let saved = recorded(&[good("one"), good("two")]);
    let replay = [says("Reply to one"), call("x", ToolStatus::Completed), says("Reply to two")];
    assert_eq!(
        added(&saved, &replay, 3),
        ["notice Info: The agent's history has no prompts, so it was not compared with this record."]
    );
}

#[test]
fn a_record_replaced_by_an_older_version_is_still_read() {
    let mut saved = recorded(&[good("one"), good("two")]);
    let at = saved.events.iter().position(|event| event.turn == 2).unwrap();
    saved.events.insert(at, RecordedEvent { at_ms: 0, turn: 1, record: Record::Replaced });
    for event in &mut saved.events[at..] {
        event.turn = 1;
    }
    assert_eq!(shown(&saved), ["user* \"two\"", "agent \"Reply to two\""]);
}

#[test]
fn text_without_an_id_stays_where_it_was_received() {
    let compaction = SessionUpdate::Compaction {
        id: "k".into(),
        status: "completed".into(),
        summary: Patch::Keep,
        error: Patch::Keep,
    };
    let notice = SessionUpdate::notice(Severity::Error, "Rate limit hit".into(), None);
    let mut app = TestCore::running();
    app.update(says("before")).ask(1, question());
    app.give(UserAnswer::Decline);
    app.updates(vec![
        says("after the answer"),
        compaction,
        says("after the compaction"),
        notice,
        says("after the "),
        says("notice"),
    ]);
    let expected = [
        "user* \"go\"",
        "agent \"before\"",
        "answered \"Which one?\" \"declined\"",
        "agent \"after the answer\"",
        "compaction k completed \"\"",
        "agent \"after the compaction\"",
        "notice Error: Rate limit hit",
        "agent \"after the notice\"",
    ];
    app.end_turn(StopReason::EndTurn);
    assert_eq!(items(app.session()), expected);
    assert_eq!(shown(&saved_session(&mut app)), expected, "also after a restore");
    // Text with a message id belongs to that message.
    let mut app = TestCore::running();
    let notice = SessionUpdate::notice(Severity::Info, "meanwhile".into(), None);
    app.updates(vec![says_in("m", "one "), notice, says_in("m", "two")]);
    assert_eq!(items(app.session())[1], "agent \"one two\" …");
}

#[test]
fn a_decision_about_a_subagents_call_is_not_recorded_for_a_call_with_the_same_id() {
    let mut app = TestCore::running();
    app.updates(vec![call("a", ToolStatus::InProgress), helper()]);
    app.agent(AgentEvent::Update("child".into(), call("a", ToolStatus::Pending)));
    app.ask(1, permission_in(Some("child"), "a")).choose(Some(1));
    app.update(news("a", ToolStatus::Completed)).end_turn(StopReason::EndTurn);
    let own = "tool a Completed \"do a\"".to_owned();
    assert!(items(app.session()).contains(&own), "{:#?}", items(app.session()));
    let saved = shown(&saved_session(&mut app));
    assert!(saved.contains(&own), "{saved:#?}");
}

#[test]
fn only_turns_of_the_agent_are_put_back() {
    // The prompt of the new turn is empty, so its reply stands in the last recorded turn.
    let saved = recorded(&[good("one")]);
    let replay = [reported("one"), vec![text(Role::User, ""), says("Reply to nothing")]].concat();
    let mut app = resumed(&saved, &replay, replay.len());
    app.fx.clear();
    app.flow(|state, cx| operations::put_back(state, None, cx));
    for effect in &app.fx {
        if let Effect::Store(StoreJob::ForgetTurns { turns, .. }) = effect {
            assert!(!turns.contains(&1), "the recorded turn stays: {turns:?}");
        }
    }
    assert!(items(app.session()).len() > 2, "the reply was added");
}

#[test]
fn the_rest_of_a_whole_message_is_added() {
    let mut saved = recorded(&[good("one"), ("two", vec![says("It begins")], End::Good)]);
    saved.events.pop();
    saved.events.push(RecordedEvent { at_ms: 0, turn: 2, record: Record::TurnEnded(TurnOutcome::Cut) });
    let message = SessionUpdate::Message {
        role: Role::Agent,
        message: "m".into(),
        content: Patch::Set(vec![ContentBlock::Text("It begins and ends".into())]),
        more_content: Vec::new(),
    };
    let replay = [reported("one"), vec![text(Role::User, "two"), message]].concat();
    let rest = ["notice Info: The rest of the turn, from the agent's history", "agent \" and ends\""];
    assert_eq!(added(&saved, &replay, replay.len()), rest);
}

#[test]
fn what_is_replayed_after_the_history_was_kept_is_not_written_into_it() {
    let saved = recorded(&[good("one")]);
    let other = vec![text(Role::User, "other"), says("Reply")];
    let mut app = resumed(&saved, &other, other.len());
    let (spool, uid) = match &app.session().replay {
        Replay::Beside(spool) => (spool.key, spool.uid.clone().unwrap()),
        other => panic!("{other:?}"),
    };
    let session = app.session_mut();
    session.read_only = Some(Reading { uid, end_seq: 0, is_taking: false, offers: Vec::new() });
    app.flow(operations::keep_history);
    app.session_mut().read_only = None;
    let before = app.spools[&spool].len();
    app.updates(vec![text(Role::User, "late"), says("Later")]);
    quiet(&mut app);
    assert_eq!(app.spools[&spool].len(), before);
    assert_eq!(app.spools.len(), 2, "it goes to another spool");
}

#[test]
fn a_call_of_an_added_turn_gets_its_late_end() {
    let saved = recorded(&[good("one")]);
    let replay = [reported("one"), vec![text(Role::User, "two"), call("c", ToolStatus::InProgress)]].concat();
    let mut app = resumed(&saved, &replay, replay.len());
    let tool = || "tool c Failed \"do c\"".to_owned();
    assert!(!items(app.session()).contains(&tool()));
    let grown = again(saved, &mut app);
    app.update(patch("c", |patch| patch.status = Patch::Set(ToolStatus::Failed)));
    assert!(items(app.session()).contains(&tool()), "{:?}", items(app.session()));
    assert!(shown(&again(grown, &mut app)).contains(&tool()));
}
