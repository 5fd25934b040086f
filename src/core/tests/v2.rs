//! Tests of protocol version 2: how it is negotiated, complete messages, content chunks, terminals of the agent, turns
//! that the agent begins.

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

fn message(id: &str, role: Role, content: Patch<Vec<ContentBlock>>) -> SessionUpdate {
    SessionUpdate::Message { role, message: id.into(), content, more_content: Vec::new() }
}

fn more(id: &str, role: Role, text: &str) -> SessionUpdate {
    SessionUpdate::more_text(role, id.into(), text.into())
}

fn blocks(text: &str) -> Patch<Vec<ContentBlock>> {
    Patch::Set(vec![ContentBlock::Text(text.into())])
}

#[test]
fn acp_v2_a_complete_message_replaces_its_chunks_in_place() {
    let updates = vec![
        says_in("m1", "half"),
        says_in("m2", "next"),
        message("m1", Role::Agent, blocks("whole")),
        message("m2", Role::Agent, Patch::Keep),
        message("m3", Role::Agent, blocks("new")),
        message("m3", Role::Agent, Patch::Clear),
        message("m4", Role::Agent, blocks("last")),
    ];
    let mut app = TestCore::running();
    app.updates(updates);
    let texts: Vec<String> = app
        .session()
        .transcript
        .items()
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::Message(message) if message.role == Role::Agent => Some(format!("{:?}", message.parts)),
            _ => None,
        })
        .collect();
    assert_eq!(texts, [r#"[Text("whole")]"#, r#"[Text("next")]"#, "[]", r#"[Text("last")]"#]);
}

#[test]
fn acp_v2_a_prompt_echoed_as_a_message_is_shown_once() {
    let mut app = TestCore::running();
    app.update(message("u", Role::User, blocks("go"))).expect("ready · running\nuser* \"go\"");
}

#[test]
fn acp_v2_content_is_appended_in_pieces() {
    let mut app = TestCore::running();
    for text in ["one", "two"] {
        let mut patch = ToolCallPatch::new("t".into());
        patch.more_content = vec![ToolContent::Block(ContentBlock::Text(text.into()))];
        app.update(SessionUpdate::Tool(Box::new(patch)));
    }
    let Some(ItemBody::Tool(tool)) = app.session().transcript.items().last().map(|item| &item.body) else {
        panic!("no tool call");
    };
    assert_eq!(tool.content.len(), 2);
}

#[test]
fn acp_v2_a_terminal_may_be_reported_before_or_after_its_call() {
    let mut app = TestCore::running();
    let id = || TerminalId::from("x");
    let bytes = |bytes: &[u8], is_whole| {
        SessionUpdate::Terminal(AgentTerminal::Bytes { id: id(), bytes: bytes.to_vec(), is_whole })
    };
    let command =
        AgentTerminal::About { id: id(), command: Some("make".into()), cwd: None, can_cancel: Patch::Keep };
    app.update(SessionUpdate::Terminal(command))
        .update(bytes(b"old", false))
        .update(bytes(b"new \xc3", true));
    let mut patch = ToolCallPatch::new("t".into());
    patch.content = Patch::Set(vec![ToolContent::Terminal(id())]);
    app.update(SessionUpdate::Tool(Box::new(patch)));
    let before = app.session().transcript.items().last().map(|item| item.rev);
    app.update(bytes(b"\xa4", false));
    let view = &app.session().terminals[&id()];
    assert_eq!((view.command.as_deref(), &view.output[..]), (Some("make"), "new ä".as_bytes()));
    assert!(!view.is_ours);
    let after = app.session().transcript.items().last().map(|item| item.rev);
    assert_ne!(before, after, "the item that shows it is redrawn");
}

#[test]
fn acp_v2_interleaved_messages_are_known_by_id() {
    let updates = vec![
        more("th", Role::Thought, "T1 "),
        more("ma", Role::Agent, "A1 "),
        more("th", Role::Thought, "T2 "),
        call("t", ToolStatus::Pending),
        more("mb", Role::Agent, "B1 "),
        more("ma", Role::Agent, "A2 "),
        more("mb", Role::Agent, "B2 "),
    ];
    let expected = r#"
        ready · running
        user* "go"
        thought "T1 T2 "
        agent "A1 A2 "
        tool t Pending "do t"
        agent "B1 B2 " …
    "#;
    let mut app = TestCore::running();
    app.updates(updates).expect(expected);
    app.update(message("ma", Role::Agent, blocks("A1 A2 FINAL"))).update(more("ma", Role::Agent, "!"));
    app.expect(&expected.replace("\"A1 A2 \"", "\"A1 A2 FINAL!\""));
    // The record has the same.
    let shown = digest(app.end_turn(StopReason::EndTurn).session());
    let events = app.saved.drain(..).filter_map(|note| match note {
        Note::Event { turn, record } => Some(RecordedEvent { at_ms: 0, turn, record: *record }),
        _ => None,
    });
    let mut played = Session::new(KEY, SessionWorkspace::default());
    session::play::play(&mut played, events.collect(), app.now);
    assert_eq!(digest(&played).split_once('\n').unwrap().1, shown.split_once('\n').unwrap().1);
}

#[test]
fn acp_v2_turns_of_the_agent_are_cancelled_and_queue_prompts() {
    let began = || AgentEvent::TurnBegan(ID.into());
    let ended = |reason| AgentEvent::TurnEnded(ID.into(), Ok(Reply::TurnEnded { reason, usage: None }));
    let mut app = TestCore::running();
    app.update(says("ok")).end_turn(StopReason::EndTurn).sent();
    app.agent(began()).agent(began()).update(more("m", Role::Agent, "on my own"));
    app.submit("wait").expect_sent("");
    app.expect("ready · running · queue [\"wait\"]\nuser* \"go\"\nagent \"ok\"\nagent \"on my own\" …");
    app.agent(ended(StopReason::EndTurn)).expect_sent("call prompt \"wait\"");
    // The end of such a turn is not that of a prompt.
    app.agent(ended(StopReason::EndTurn)).agent(began());
    assert!(app.session().turn.is_running());
    app.end_turn(StopReason::EndTurn).agent(began()).cancel().expect_sent("cancel s");
    app.agent(ended(StopReason::Cancelled));
    app.expect(
        r#"
        ready · idle
        user* "go"
        agent "ok"
        agent "on my own"
        user* "wait"
        notice Info: The agent returned an empty response.
        end Cancelled
        "#,
    );
}

#[test]
fn acp_v2_short_turns_of_the_agent_leave_no_trace() {
    let mut app = TestCore::running();
    app.update(says("ok")).wait(3).end_turn(StopReason::EndTurn);
    let before = format!("{:?}", app.session().transcript.items());
    (app.fx, app.saved) = Default::default();
    let turn = |app: &mut TestCore, updates| {
        app.agent(AgentEvent::TurnBegan(ID.into())).updates(updates).wait(0);
        let end = Reply::TurnEnded { reason: StopReason::EndTurn, usage: None };
        app.agent(AgentEvent::TurnEnded(ID.into(), Ok(end)));
    };
    turn(&mut app, vec![]);
    assert!(app.saved.is_empty() && !app.session().turn.is_running());
    assert_eq!(format!("{:?}", app.session().transcript.items()), before);
    turn(&mut app, vec![says("hi")]);
    assert!(!app.fx.iter().any(|effect| matches!(effect, Effect::ReadGit { .. } | Effect::Announce { .. })));
    app.expect("ready · idle\nuser* \"go\"\nagent \"ok\"\nagent \"hi\"");
}

#[test]
fn acp_v2_a_turn_of_an_unknown_or_closed_session_is_ignored() {
    let mut app = TestCore::talked();
    app.agent(AgentEvent::TurnBegan("other".into()));
    assert!(!app.session().turn.is_running());
    app.crash();
    let conn = app.conn();
    app.play(Event::Agent(conn, AgentEvent::TurnBegan(ID.into())));
    assert!(!app.session().turn.is_running());
}

fn refuses(version: &str) -> AgentEvent {
    AgentEvent::InitializeFailed(CallError::OtherVersion { theirs: version.into() })
}

/// The version of the last start, and the number of starts.
fn offered(app: &TestCore) -> (u16, u64) {
    let conn = &app.state.conns[&app.conn()];
    (conn.spec.wire.protocol, conn.id.0)
}

fn speaks(app: &mut TestCore, protocol_version: u16) {
    app.agent(AgentEvent::Ready(Box::new(AgentInfo { protocol_version, ..AgentInfo::default() })));
}

#[test]
fn acp_v2_an_agent_that_refuses_version_1_is_restarted_once() {
    let mut app = TestCore::started();
    app.fx.clear();
    app.agent(refuses("2")).expect_sent("disconnect 1\nconnect 2 after 0 ms");
    assert_eq!(offered(&app), (2, 2));
    assert!(app.session().transcript.items().is_empty());
    app.agent(refuses("2")).expect_sent("disconnect 2");
    assert!(matches!(app.session().phase, SessionPhase::Failed(_)));
}

#[test]
fn acp_v2_a_version_is_remembered_until_the_agent_speaks_another() {
    let mut app = TestCore::started();
    app.agent(refuses("2"));
    speaks(&mut app, 2);
    let saved = |app: &TestCore| -> Vec<bool> {
        let one = |effect: &Effect| match effect {
            Effect::SaveDraftAgent { agent, is_draft } => (agent == "fake").then_some(*is_draft),
            _ => None,
        };
        app.fx.iter().filter_map(one).collect()
    };
    assert_eq!(saved(&app), [true]);
    // Another parlor, with what was saved.
    let known = app.state.setup.draft_agents.clone();
    let mut app = TestCore::started();
    app.state.setup.draft_agents = known;
    app.flow(|state, cx| operations::restart_agent(state, KEY, cx));
    assert_eq!(offered(&app), (2, 2));
    speaks(&mut app, 1);
    assert_eq!(saved(&app), [false]);
    assert!(app.state.setup.draft_agents.is_empty());
}

#[test]
fn acp_v2_an_agent_that_flaps_and_exits_is_given_up() {
    let mut app = TestCore::started();
    app.agent(refuses("2"));
    for _ in 0..3 {
        speaks(&mut app, 1);
        app.crash();
        app.agent(refuses("2"));
    }
    assert!(offered(&app).1 <= 5, "{:?}", offered(&app));
    assert!(!matches!(app.session().phase, SessionPhase::Starting { .. }));
}

#[test]
fn acp_v2_is_not_offered_if_version_1_is_configured() {
    let wire = WireSpec { protocol: 1, ..WireSpec::default() };
    let mut app = TestCore::with_spec(AgentSpec { wire, ..AgentSpec::default() });
    app.agent(refuses("2"));
    let text = format!("{:?}", app.session().transcript.items());
    assert!(text.contains("remove `protocol = 1`"), "{text}");
    let mut app = TestCore::started();
    app.agent(refuses("3"));
    let text = format!("{:?}", app.session().transcript.items());
    assert!(text.contains("version 3") && text.contains("or update parlor."), "{text}");
}
