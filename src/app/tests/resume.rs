//! Tests of replays that differ from the record.

use super::recorder::{again, answered, items, kept_notes, kept_session, opened, quiet, reopened};
use super::support::*;
use crate::app::lifecycle::operations;
use crate::app::*;
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
    let mut app = TestApp::started();
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
    kept_session(&mut app)
}

fn good(prompt: &str) -> (&str, Vec<SessionUpdate>, End) {
    (prompt, vec![says(&format!("Reply to {prompt}"))], End::Good)
}

fn told(prompt: &str) -> Vec<SessionUpdate> {
    vec![text(Role::User, prompt), says(&format!("Reply to {prompt}"))]
}

/// Resumes a session whose agent can only load, with this replay, `before` updates of which precede the response.
pub fn resumed(kept: &RecordedSession, replay: &[SessionUpdate], before: usize) -> TestApp {
    let mut app = reopened(kept.clone(), "fake");
    app.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() });
    kept_notes(&mut app);
    app.updates(replay[..before].to_vec());
    answered(&mut app).updates(replay[before..].to_vec());
    quiet(&mut app);
    app
}

fn shown(kept: &RecordedSession) -> Vec<String> {
    let mut session = Session::new(KEY, SessionWorkspace::default());
    restore(&mut session, kept.clone(), std::time::Instant::now());
    items(&session)
}

/// Resumes twice with a replay: no recorded item is removed or moved, the record equals the shown items, and the second
/// time changes nothing. Returns the shown items.
pub fn check(kept: &RecordedSession, replay: &[SessionUpdate], before: usize) -> Vec<String> {
    let first = shown(kept);
    let mut app = resumed(kept, replay, before);
    let second = items(app.session());
    let mut left = second.iter();
    for item in &first {
        assert!(left.any(|other| other == item), "{item} is gone or moved:\n{first:#?}\n{second:#?}");
    }
    let kept = again(kept.clone(), &mut app);
    assert_eq!(shown(&kept), second, "the record equals the shown items");
    let mut app = resumed(&kept, replay, before);
    assert_eq!(items(app.session()), second, "the second time changes nothing");
    let notes = kept_notes(&mut app);
    let is_event = |note: &&Note| matches!(note, Note::Event { .. });
    assert_eq!(notes.iter().find(is_event), None, "nothing is recorded again");
    second
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

const TWO_THEIRS: &str = "notice Info: Only in the agent's history: the next 2 items";

/// Lines of items that all follow the same recorded item, in the format of [`added`].
fn behind(after: &str, lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| format!("{after} → {line}")).collect()
}

/// The added items, each after the recorded item that it follows.
fn added(kept: &RecordedSession, replay: &[SessionUpdate]) -> Vec<String> {
    let first = shown(kept);
    let all = check(kept, replay, replay.len());
    let mut known = first.iter().peekable();
    let mut last = String::new();
    let mut added = Vec::new();
    for item in all {
        if known.next_if(|next| **next == item).is_some() {
            last = item;
        } else {
            added.push(format!("{last} → {item}"));
        }
    }
    added
}

const UNTOLD: &str = "notice Info: Not in the agent's history: the turn above";

#[test]
fn a_refused_turn_missing_in_the_replay_stays() {
    let refused = ("refuse this", vec![says("I will not do that.")], End::Refused);
    let kept = recorded(&[good("first prompt"), refused, good("third prompt")]);
    let replay = [told("first prompt"), told("third prompt")].concat();
    assert_eq!(added(&kept, &replay), [format!("end Refusal → {UNTOLD}")]);
}

#[test]
fn a_notice_of_the_agent_with_the_same_text_is_not_mistaken_for_one_of_parlor() {
    let notice =
        SessionUpdate::notice(Severity::Info, "Not in the agent's history: the turn above".into(), None);
    let refused = ("refuse this", vec![notice], End::Refused);
    let kept = recorded(&[good("first prompt"), refused, good("third prompt")]);
    let replay = [told("first prompt"), told("third prompt")].concat();
    assert_eq!(added(&kept, &replay), [format!("end Refusal → {UNTOLD}")]);
}

#[test]
fn a_failed_turn_missing_in_the_replay_stays() {
    let kept = recorded(&[good("first prompt"), ("fail this", vec![], End::Failed), good("third prompt")]);
    let replay = [told("first prompt"), told("third prompt")].concat();
    assert_eq!(added(&kept, &replay), [format!("end failed: overloaded → {UNTOLD}")]);
}

#[test]
fn turns_before_a_compaction_stay_and_its_summary_is_added() {
    let turns = ["one", "two", "three", "four"].map(good);
    let kept = recorded(&turns);
    let summary = "This session is being continued. Summary: things were done.";
    let replay = [vec![text(Role::User, summary), says("Understood.")], told("four")].concat();
    assert_eq!(
        added(&kept, &replay),
        [
            "agent \"Reply to three\" → notice Info: Not in the agent's history: the 3 turns above"
                .to_owned(),
            "agent \"Reply to three\" → notice Info: Only in the agent's history: the next 2 items"
                .to_owned(),
            format!("agent \"Reply to three\" → user {summary:?}"),
            "agent \"Reply to three\" → agent \"Understood.\"".to_owned(),
        ]
    );
}

#[test]
fn a_command_replayed_with_its_wrapper_is_recognized() {
    let kept = recorded(&[good("look at the code"), good("/init all"), good("thanks")]);
    let init = "<command-message>init is running</command-message>\n<command-name>/init</command-name>\n\
                <command-args>all</command-args>";
    let replay =
        [told("look at the code"), vec![text(Role::User, init), says("Reply to /init all")], told("thanks")];
    assert_eq!(added(&kept, &replay.concat()), Vec::<String>::new());
}

#[test]
fn a_cancelled_prompt_joined_with_the_next_is_recognized() {
    let kept = recorded(&[good("do one"), ("wait no", vec![], End::Cancelled), good("do two")]);
    let two = vec![text(Role::User, "wait nodo two"), says("Reply to do two")];
    assert_eq!(added(&kept, &[told("do one"), two].concat()), Vec::<String>::new());
    // One agent stores the interruption as a user message.
    let two = vec![
        text(Role::User, "wait no"),
        SessionUpdate::Chunk {
            role: Role::User,
            message: Some("u2".into()),
            text: "[Request interrupted by user]".into(),
        },
        SessionUpdate::Chunk { role: Role::User, message: Some("u3".into()), text: "do two".into() },
        says("Reply to do two"),
    ];
    assert_eq!(added(&kept, &[told("do one"), two].concat()), Vec::<String>::new());
}

#[test]
fn replayed_messages_after_the_interruption_of_a_turn_are_added() {
    let mut kept = recorded(&[
        good("first prompt"),
        ("go on", vec![says("first part "), call("a", ToolStatus::InProgress)], End::Good),
    ]);
    kept.events.pop();
    kept.events.push(RecordedEvent { at_ms: 0, turn: 2, record: Record::TurnEnded(TurnOutcome::Cut) });
    let replay = [
        told("first prompt"),
        vec![
            text(Role::User, "go on"),
            says("first part "),
            call("a", ToolStatus::Completed),
            says("and the second part"),
        ],
    ];
    let mut app = resumed(&kept, &replay.concat(), 6);
    assert_eq!(
        items(app.session())[2..],
        [
            "user* \"go on\"",
            "agent \"first part \"",
            "tool a Completed \"do a\"",
            "notice Warning: Turn interrupted: parlor exited before the turn ended.",
            "notice Info: Only in the agent's history: the next item",
            "agent \"and the second part\"",
        ]
    );
    let kept = again(kept, &mut app);
    assert_eq!(shown(&kept), items(app.session()));
    let app = resumed(&kept, &replay.concat(), 6);
    assert_eq!(items(app.session()), shown(&kept));
}

#[test]
fn a_different_prompt_in_the_middle_is_shown_with_the_recorded_one() {
    let kept = recorded(&[good("alpha prompt"), good("beta prompt"), good("gamma prompt")]);
    let other = vec![text(Role::User, "DIFFERENT middle"), says("other")];
    let replay = [told("alpha prompt"), other, told("gamma prompt")].concat();
    let after = "agent \"Reply to beta prompt\"";
    let lines = [UNTOLD, TWO_THEIRS, "user \"DIFFERENT middle\"", "agent \"other\""];
    assert_eq!(added(&kept, &replay), behind(after, &lines));
}

#[test]
fn a_turn_missing_in_the_record_is_inserted_in_order() {
    let kept = recorded(&[good("alpha prompt"), good("gamma prompt")]);
    let replay = [told("alpha prompt"), told("beta prompt"), told("gamma prompt")].concat();
    let after = "agent \"Reply to alpha prompt\"";
    let lines = [TWO_THEIRS, "user \"beta prompt\"", "agent \"Reply to beta prompt\""];
    assert_eq!(added(&kept, &replay), behind(after, &lines));
}

#[test]
fn a_different_reply_is_shown_with_the_recorded_one() {
    let kept = recorded(&[good("one"), good("two")]);
    let other = vec![text(Role::User, "two"), says("A regenerated answer.")];
    let after = "agent \"Reply to two\"";
    assert_eq!(
        added(&kept, &[told("one"), other].concat()),
        [
            format!("{after} → notice Info: The agent's history differs: the next item"),
            format!("{after} → agent \"A regenerated answer.\""),
        ]
    );
}

#[test]
fn a_reworded_prompt_with_another_reply_is_another_turn() {
    let kept = recorded(&[good("fix the tests please")]);
    let replay = vec![text(Role::User, "fix the tests please and lint as well"), says("edited")];
    assert_eq!(added(&kept, &replay).len(), 4);
}

#[test]
fn a_lost_last_turn_is_reported_even_if_all_prompts_are_equal() {
    let say = |reply: &str| ("go on", vec![says(reply)], End::Good);
    let told = |reply: &str| vec![text(Role::User, "go on"), says(reply)];
    let kept = recorded(&[say("Reply 1"), say("Reply 2"), say("Reply 3")]);
    let lost = "notice Warning: Not in the agent's history: the turn above";
    let replay = [told("Reply 1"), told("Reply 2")].concat();
    assert_eq!(added(&kept, &replay), [format!("agent \"Reply 3\" → {lost}")]);
    let kept = recorded(&[say("Done."), say("Done."), say("Done.")]);
    let replay = [told("Done."), told("Done.")].concat();
    assert_eq!(added(&kept, &replay), [format!("agent \"Done.\" → {lost}")]);
}

#[test]
fn a_resent_prompt_is_one_turn() {
    let mut app = TestApp::started();
    app.handshake(all_capabilities()).open(ID);
    app.submit("one").update(says("Reply to one")).end_turn(StopReason::EndTurn);
    app.submit("flaky two").fail(-32603, "API overloaded (529), try again");
    app.flow(|state, now, fx| operations::send_again(state, KEY, now, fx));
    app.update(says("Reply to flaky two")).end_turn(StopReason::EndTurn);
    let kept = kept_session(&mut app);
    let twice = [
        SessionUpdate::Chunk { role: Role::User, message: Some("a".into()), text: "flaky two".into() },
        SessionUpdate::Chunk { role: Role::User, message: Some("b".into()), text: "flaky two".into() },
        says("Reply to flaky two"),
    ];
    assert_eq!(added(&kept, &[told("one"), twice.to_vec()].concat()), Vec::<String>::new());
    assert_eq!(added(&kept, &[told("one"), told("flaky two")].concat()), Vec::<String>::new());
}

#[test]
fn a_history_replayed_twice_is_added_once() {
    let kept = recorded(&[good("alpha prompt"), good("gamma prompt")]);
    let once = [told("alpha prompt"), told("gamma prompt")].concat();
    assert_eq!(added(&kept, &[once.clone(), once].concat()), Vec::<String>::new());
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
    let kept = recorded(&[("one", all(), End::Good), ("two", all(), End::Good)]);
    let replay = [vec![text(Role::User, "one")], all(), vec![text(Role::User, "two")], all()].concat();
    assert_eq!(added(&kept, &replay), Vec::<String>::new());
    let app = resumed(&kept, &replay, replay.len());
    let output = app.session().terminals.get(&TerminalId::from("t")).map(|view| view.output.clone());
    let live = {
        let mut session = Session::new(KEY, SessionWorkspace::default());
        restore(&mut session, kept, app.now);
        session.terminals.remove(&TerminalId::from("t")).unwrap().output
    };
    assert_eq!(output, Some(live), "nothing is appended again");
}

#[test]
fn a_message_after_the_response_to_a_load_is_shown_and_recorded() {
    let kept = recorded(&[good("first question")]);
    let mut app = resumed(&kept, &told("first question"), 2);
    assert_eq!(items(app.session()), shown(&kept));
    app.update(says("WARNING: servers could not be started."));
    assert_eq!(items(app.session()).last().unwrap(), "agent \"WARNING: servers could not be started.\" …");
    let warning = text(Role::Agent, "WARNING: servers could not be started.");
    assert!(
        kept_notes(&mut app).contains(&Note::Event { turn: 1, record: Box::new(Record::Update(warning)) })
    );
}

#[test]
fn a_message_after_the_response_is_shown_during_a_replay() {
    let kept = recorded(&[good("first question"), good("second question")]);
    let replay = [told("first question"), vec![says("WARNING: servers could not be started.")]].concat();
    let all = check(&kept, &replay, 2);
    assert_eq!(all.iter().filter(|item| item.contains("WARNING")).count(), 1, "{all:#?}");
}

#[test]
fn the_end_of_a_long_session_is_compared_with_the_end_of_the_replay() {
    let names: Vec<String> = (0..9).map(|n| format!("prompt number {n}")).collect();
    let turns: Vec<_> = names.iter().map(|name| good(name)).collect();
    let mut kept = recorded(&turns);
    // The first turns are only on disk.
    let first = kept.events.iter().position(|event| event.turn == 6).unwrap();
    kept.events.drain(..first);
    (kept.earlier, kept.first_seq) = (pages_at([0]), i64::try_from(first).unwrap());
    let replay: Vec<SessionUpdate> = names.iter().flat_map(|name| told(name)).collect();
    assert_eq!(added(&kept, &replay), Vec::<String>::new());
    let without_last = &replay[..replay.len() - 4];
    let lost = "notice Warning: Not in the agent's history: the 2 turns above";
    assert_eq!(added(&kept, without_last), [format!("agent \"Reply to prompt number 8\" → {lost}")]);
    // None of the items in memory: the replayed ones may be on disk.
    let lost = "notice Warning: Not in the agent's history: the 4 turns above";
    assert_eq!(added(&kept, &replay[..6]), [format!("agent \"Reply to prompt number 8\" → {lost}")]);
}

#[test]
fn replayed_items_of_unloaded_pages_are_compared_once_these_are_loaded() {
    let names: Vec<String> = (0..9).map(|n| format!("prompt number {n}")).collect();
    let turns: Vec<_> = names.iter().map(|name| good(name)).collect();
    let whole = recorded(&turns);
    let at_turn = |turn| whole.events.iter().position(|event| event.turn == turn).unwrap();
    let part = |from: usize, to: usize| EventPage {
        events: whole.events[from..to].to_vec(),
        first_seq: i64::try_from(from).unwrap(),
        ..EventPage::default()
    };
    let (one, two) = (at_turn(4), at_turn(7));
    let mut kept = whole.clone();
    kept.events.drain(..two);
    (kept.earlier, kept.first_seq) =
        (pages_at([0, i64::try_from(one).unwrap()]), i64::try_from(two).unwrap());
    kept.end_seq = i64::try_from(whole.events.len()).unwrap();
    let mut replay: Vec<_> = names.iter().map(|name| told(name)).collect();
    replay[4].clear();
    replay.insert(2, vec![text(Role::User, "said elsewhere"), says("Reply from elsewhere")]);
    let mut app = resumed(&kept, &replay.concat(), 0);
    assert_eq!(items(app.session()).len(), 1 + 6, "the shown items are unchanged");
    for page in [part(one, two), part(0, one)] {
        app.play(Event::Act(Action::LoadEarlier));
        app.service(ServiceEvent::Store(Box::new(StoreNews::Earlier { key: KEY, page: Ok(page) })));
    }
    let all = items(app.session());
    let expected = added(&whole, &replay.concat());
    assert_eq!(expected.len(), 4, "{expected:?}");
    let position = |line: &str| all.iter().position(|item| item == line).unwrap();
    let elsewhere = position("user \"said elsewhere\"");
    assert_eq!(all[elsewhere - 2], "agent \"Reply to prompt number 1\"");
    assert_eq!(all[elsewhere + 1], "agent \"Reply from elsewhere\"");
    assert_eq!(position(UNTOLD), position("agent \"Reply to prompt number 4\"") + 1);
    let kept = again(whole, &mut app);
    assert_eq!(shown(&kept), all[1..], "the record equals the shown items");
    assert_eq!(added(&kept, &replay.concat()), Vec::<String>::new());
}

#[test]
fn a_replayed_terminal_is_unchanged() {
    let terminal = |id: &str| {
        let id = TerminalId::from(id);
        let about = AgentTerminal::About {
            id: id.clone(),
            command: Some("make".into()),
            cwd: None,
            can_cancel: Patch::Keep,
        };
        let bytes = AgentTerminal::Bytes { id: id.clone(), bytes: b"done".to_vec(), is_whole: false };
        let exit = AgentTerminal::Exit { id, status: ExitInfo::default() };
        [about, bytes, exit].map(SessionUpdate::Terminal)
    };
    let run = |call: &str, id: &str| {
        let shows = ToolContent::Terminal(id.into());
        let call = patch(call, |patch| {
            patch.is_announcement = true;
            patch.title = Patch::Set(format!("run {id}"));
            patch.status = Patch::Set(ToolStatus::Completed);
            patch.content = Patch::Set(vec![shows]);
        });
        [vec![call], terminal(id).into()].concat()
    };
    let outputs = |session: &Session| -> Vec<String> {
        let shown = session.transcript.items().iter().filter_map(|item| match &item.body {
            ItemBody::Tool(call) => Some(&call.content),
            _ => None,
        });
        let views = shown.flatten().filter_map(|content| match content {
            ToolContent::Terminal(id) => session.terminals.get(id),
            _ => None,
        });
        views.map(|view| String::from_utf8_lossy(&view.output).into_owned()).collect()
    };
    let mut kept = recorded(&[("build it", run("a", "t1"), End::Good)]);
    // The agent has one more command with the same terminal id.
    let replay = [vec![text(Role::User, "build it")], run("a", "t1"), run("b", "t1")].concat();
    let replays = [(vec![text(Role::User, "build it")], run("a", "t1")), (replay, Vec::new())];
    for (replay, rest) in replays {
        let replay = [replay, rest].concat();
        let calls = replay.iter().filter(|update| matches!(update, SessionUpdate::Tool(_))).count();
        for before in [0, replay.len(), replay.len(), 0] {
            let mut app = resumed(&kept, &replay, before);
            assert_eq!(outputs(app.session()).len(), calls);
            assert_eq!(outputs(app.session())[0], "done", "once");
            kept = again(kept, &mut app);
        }
    }
}

#[test]
fn an_empty_replay_shows_no_notice() {
    let kept = recorded(&[good("one")]);
    assert_eq!(added(&kept, &[]), Vec::<String>::new());
}

#[test]
fn a_replay_without_prompts_adds_nothing() {
    let kept = recorded(&[good("one"), good("two")]);
    let replay = [says("Reply to one"), call("x", ToolStatus::Completed), says("Reply to two")];
    let added = added(&kept, &replay);
    assert_eq!(added.len(), 2, "only the call: {added:?}");
}

#[test]
fn a_record_replaced_by_an_older_version_is_still_read() {
    let mut kept = recorded(&[good("one"), good("two")]);
    let at = kept.events.iter().position(|event| event.turn == 2).unwrap();
    kept.events.insert(at, RecordedEvent { at_ms: 0, turn: 1, record: Record::Replaced });
    for event in &mut kept.events[at..] {
        event.turn = 1;
    }
    assert_eq!(shown(&kept), ["user* \"two\"", "agent \"Reply to two\""]);
    assert_eq!(added(&kept, &told("two")), Vec::<String>::new());
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
    let mut app = TestApp::running();
    app.update(says("before")).ask(1, question());
    app.flow(|state, now, fx| {
        operations::answer_elicitation(state, KEY, ElicitationOutcome::Decline, now, fx);
    });
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
    assert_eq!(shown(&kept_session(&mut app)), expected, "also after a restore");
    // Text with a message id belongs to that message.
    let mut app = TestApp::running();
    let notice = SessionUpdate::notice(Severity::Info, "meanwhile".into(), None);
    app.updates(vec![says_in("m", "one "), notice, says_in("m", "two")]);
    assert_eq!(items(app.session())[1], "agent \"one two\" …");
}

#[test]
fn a_turn_from_another_client_is_added_and_updated() {
    let kept = recorded(&[good("one")]);
    let more = vec![text(Role::User, "two"), call("b", ToolStatus::Completed), says("Reply")];
    let replay = [told("one"), more].concat();
    assert_eq!(added(&kept, &replay).len(), 4);
    let mut app = resumed(&kept, &replay, replay.len());
    app.update(patch("b", |patch| patch.title = Patch::Set("late".into())));
    assert!(items(app.session()).contains(&"tool b Completed \"late\"".to_owned()));
    opened(app.submit("three"));
}

#[test]
fn a_decision_about_a_subagents_call_is_not_recorded_for_a_call_with_the_same_id() {
    let mut app = TestApp::running();
    app.updates(vec![call("a", ToolStatus::InProgress), helper()]);
    app.agent(AgentEvent::Update("child".into(), call("a", ToolStatus::Pending)));
    let AgentRequest::Permission(request) = permission("a") else { panic!() };
    app.ask(1, AgentRequest::Permission(PermissionRequest { session: Some("child".into()), ..request }))
        .choose(Some(1));
    app.update(news("a", ToolStatus::Completed)).end_turn(StopReason::EndTurn);
    let own = "tool a Completed \"do a\"".to_owned();
    assert!(items(app.session()).contains(&own), "{:#?}", items(app.session()));
    let kept = shown(&kept_session(&mut app));
    assert!(kept.contains(&own), "{kept:#?}");
}

#[test]
fn text_within_a_recorded_message_is_added_once() {
    let thoughts =
        vec![text(Role::Thought, "The first thought of it."), text(Role::Thought, "The last thought of it.")];
    let kept = recorded(&[("one", [thoughts, vec![says("done")]].concat(), End::Good)]);
    let replay = [
        text(Role::User, "one"),
        text(Role::Thought, "The first thought of it."),
        says("Said in between, and not recorded."),
        text(Role::Thought, "A thought that was not recorded."),
        text(Role::Thought, "The last thought of it."),
        says("done"),
    ];
    assert_eq!(added(&kept, &replay).len(), 3);
}
