//! Tests of handing conversations over to an agent that does not have them.

use super::support::*;
use crate::app::lifecycle::handover;
use crate::app::lifecycle::operations;
use crate::app::session::reconcile::text;
use crate::app::*;
use crate::model::*;

fn spec(name: &str) -> AgentSpec {
    AgentSpec { name: name.into(), command: name.into(), ..AgentSpec::default() }
}

/// A session with two turns.
fn talked() -> TestApp {
    let mut desk = TestApp::ready();
    desk.submit("mend the rounding of the till");
    desk.updates(vec![text(Role::Thought, "hm"), says("I look."), call("a", ToolStatus::Completed)]);
    desk.end_turn(StopReason::EndTurn);
    desk.submit("and the receipt").update(says("Done.")).end_turn(StopReason::EndTurn);
    desk.fx.clear();
    desk
}

fn prompt_blocks(desk: &mut TestApp) -> Vec<ContentBlock> {
    let sent = std::mem::take(&mut desk.fx).into_iter().find_map(|effect| match effect {
        Effect::Send(_, AgentCommand::Call(_, Call::Prompt(_, blocks))) => Some(blocks),
        _ => None,
    });
    sent.expect("a prompt was sent")
}

/// Hands the conversation over to `other`, and opens its session.
fn handed_over(capabilities: AgentCapabilities) -> (TestApp, SessionKey) {
    let mut desk = talked();
    desk.flow(|state, now, fx| operations::hand_over(state, KEY, spec("other"), now, fx));
    let key = desk.state.active;
    let conn = desk.state.sessions[&key].conn.unwrap();
    let info = AgentInfo { capabilities, ..AgentInfo::default() };
    desk.play(Event::Agent(conn, AgentEvent::Ready(Box::new(info))));
    let tag = desk.state.conns[&conn].open_calls.values().next_back().cloned().unwrap();
    let reply = SessionReply { id: Some("n".into()), ..SessionReply::default() };
    desk.play(Event::Agent(conn, AgentEvent::Replied(tag, Ok(Reply::Session(reply)))));
    desk.fx.clear();
    (desk, key)
}

#[test]
fn the_first_prompt_includes_the_conversation_as_a_resource() {
    let capabilities = AgentCapabilities { prompt_embedded_context: true, ..AgentCapabilities::default() };
    let (mut desk, key) = handed_over(capabilities);
    desk.flow(|state, now, fx| operations::submit(state, key, "go on".into(), now, fx));
    let blocks = prompt_blocks(&mut desk);
    let [ContentBlock::Resource { mime_type, body: ResourceBody::Text(told), .. }, ContentBlock::Text(asked)] =
        blocks.as_slice()
    else {
        panic!("{blocks:?}")
    };
    assert_eq!((mime_type.as_deref(), asked.as_str()), (Some("text/markdown"), "go on"));
    for words in
        ["mend the rounding of the till", "I look.", "- do a", "and the receipt", "Done.", "/code/shop"]
    {
        assert!(told.contains(words), "{words} in\n{told}");
    }
    assert!(!told.contains("hm"), "thoughts are not included");
    // It is sent once, with a turn that was answered.
    let conn = desk.state.sessions[&key].conn.unwrap();
    let end = |desk: &mut TestApp, result| {
        let tag = desk.state.conns[&conn].open_calls.values().next_back().cloned().unwrap();
        desk.play(Event::Agent(conn, AgentEvent::Replied(tag, result)));
    };
    end(&mut desk, Err(CallError::Agent(RpcError::new(-32603, "no quota"))));
    desk.fx.clear();
    desk.flow(|state, now, fx| operations::submit(state, key, "again".into(), now, fx));
    assert_eq!(prompt_blocks(&mut desk).len(), 2, "the turn failed, so it is sent again");
    end(&mut desk, Ok(Reply::TurnEnded { reason: StopReason::EndTurn, usage: None }));
    desk.fx.clear();
    desk.flow(|state, now, fx| operations::submit(state, key, "more".into(), now, fx));
    assert_eq!(prompt_blocks(&mut desk), [ContentBlock::Text("more".into())]);
}

#[test]
fn an_agent_without_resources_gets_text_and_its_echo_is_hidden() {
    let (mut desk, key) = handed_over(AgentCapabilities::default());
    desk.flow(|state, now, fx| operations::submit(state, key, "go on".into(), now, fx));
    let blocks = prompt_blocks(&mut desk);
    let [ContentBlock::Text(told), ContentBlock::Text(asked)] = blocks.as_slice() else {
        panic!("{blocks:?}")
    };
    assert!(told.starts_with("<earlier_conversation>\n"), "{told}");
    let conn = desk.state.sessions[&key].conn.unwrap();
    for part in [told.clone(), asked.clone()] {
        desk.play(Event::Agent(conn, AgentEvent::Update("n".into(), text(Role::User, &part))));
    }
    let shown = digest(&desk.state.sessions[&key]);
    assert!(shown.ends_with("user* \"go on\""), "{shown}");
    // When it is replayed, it is the same prompt.
    assert_eq!(text::without_context(&format!("{told}{asked}")), "go on");
}

#[test]
fn both_sessions_of_a_handover_are_linked() {
    let mut desk = talked();
    desk.kept.clear();
    let fx = {
        let mut fx = Vec::new();
        operations::hand_over(&mut desk.state, KEY, spec("other"), desk.now, &mut fx);
        fx.extend(update(&mut desk.state, Event::Input, desk.now));
        fx
    };
    let key = desk.state.active;
    let link = Note::CameFrom { session: KEY, kept_as: None, copied_turns: None };
    let is_linked = fx.iter().any(
        |effect| matches!(effect, Effect::Keep { session, notes } if *session == key && notes.contains(&link)),
    );
    assert!(is_linked, "{fx:?}");
    assert!(digest(desk.session()).ends_with("notice Info: Conversation handed over to other."));
    assert!(
        digest(&desk.state.sessions[&key])
            .ends_with("notice Info: Continued from a session with fake: mend the rounding of the till")
    );
}

#[test]
fn a_handover_has_the_configured_size_and_notes_omissions() {
    let mut desk = talked();
    for number in 0..40 {
        desk.submit(&format!("prompt {number}"))
            .update(says(&"words ".repeat(100)))
            .end_turn(StopReason::EndTurn);
    }
    desk.state.setup.handover_bytes = 4096;
    desk.flow(|state, now, fx| operations::hand_over(state, KEY, spec("other"), now, fx));
    let told = &shown_handover(&desk).text;
    assert!(told.len() <= 4096, "{}", told.len());
    assert!(told.contains("prompt 39") && !told.contains("prompt 3\n"), "{told}");
    assert!(
        told.contains("The first prompt was: mend the rounding")
            && told.contains("Earlier parts are omitted")
    );
}

#[test]
fn the_first_prompt_in_memory_is_not_called_the_first_if_more_is_stored() {
    let mut desk = talked();
    for _ in 0..8 {
        desk.submit("words").update(says(&"words ".repeat(100))).end_turn(StopReason::EndTurn);
    }
    desk.state.setup.handover_bytes = handover::LEAST_BYTES;
    let told = |desk: &mut TestApp| {
        desk.flow(|state, _, fx| operations::tell_agent(state, KEY, fx));
        let resume = &mut desk.state.sessions.get_mut(&KEY).unwrap().resume;
        let text = resume.handover().unwrap().text.clone();
        resume.handed_over();
        text
    };
    assert!(told(&mut desk).contains("The first prompt was: mend the rounding"));
    desk.state.sessions.get_mut(&KEY).unwrap().pages.book.earlier =
        Some(Earlier { uid: "k".into(), before: 9, count: 9, is_loading: false, has_failed: false });
    let text = told(&mut desk);
    assert!(!text.contains("The first prompt was") && text.contains("Earlier parts are omitted"), "{text}");
}

#[test]
fn a_summary_of_the_agent_replaces_the_summarized_part() {
    let mut desk = talked();
    desk.update(SessionUpdate::Compaction {
        id: "c".into(),
        status: "completed".into(),
        summary: Patch::Set("The till was mended.".into()),
        error: Patch::Keep,
    });
    desk.submit("now the drawer").update(says("It opens.")).end_turn(StopReason::EndTurn);
    desk.flow(|state, now, fx| operations::hand_over(state, KEY, spec("other"), now, fx));
    let told = &shown_handover(&desk).text;
    assert!(told.contains("The till was mended.") && told.contains("now the drawer"), "{told}");
    assert!(!told.contains("I look."), "{told}");
}

fn shown_handover(desk: &TestApp) -> &Handover {
    desk.state.active_session().unwrap().resume.handover().expect("something is handed over")
}

#[test]
fn a_lost_conversation_is_sent_if_the_user_requests_it() {
    let mut desk = talked();
    desk.crash();
    desk.wait(1);
    let none = AgentCapabilities::default();
    desk.state.setup.palette = vec![crate::model::PaletteCommand {
        action: Action::HandOver,
        text: "Hand over".into(),
        keys: "Alt+H".into(),
        group: crate::model::CommandGroup::Session,
        words: "",
    }];
    desk.handshake(none).expect_sent("connect 2 after 500 ms\ncall new");
    assert!(desk.state.modals.is_empty(), "an offer receives no keys");
    let told = desk.session().transcript.items().iter().any(|item| {
        matches!(&item.body, ItemBody::Notice { detail: Some(detail), .. } if detail.contains("Alt+H sends the conversation"))
    });
    assert!(told, "{}", digest(desk.session()));
    desk.open("fresh");
    desk.play(Event::Act(Action::HandOver)).play(Event::Act(Action::HandOver));
    assert_eq!(digest(desk.session()).matches("The conversation above").count(), 1);
    desk.fx.clear();
    desk.submit("go on");
    let blocks = prompt_blocks(&mut desk);
    assert!(
        matches!(&blocks[0], ContentBlock::Text(told) if told.contains("mend the rounding")),
        "{blocks:?}"
    );
}

#[test]
fn an_empty_session_has_no_handover() {
    let mut desk = TestApp::ready();
    desk.flow(|state, now, fx| operations::hand_over(state, KEY, spec("other"), now, fx));
    assert_eq!((desk.state.sessions.len(), desk.state.active), (1, KEY));
}

/// A stored session that continues another one.
fn kept_with(more: Vec<Record>) -> RecordedSession {
    let told = Record::HandedOver { agent: "one".into(), text: "# Conversation so far".into() };
    let records = std::iter::once(told).chain(more);
    RecordedSession {
        head: SessionHead {
            kept_as: Some("k2".into()),
            agent: "fake".into(),
            command: "fake".into(),
            session: Some("n".into()),
            place: SessionPlace { cwd: "/code/shop".into(), ..SessionPlace::default() },
            ..SessionHead::default()
        },
        draft: "go on with".into(),
        events: records.map(|record| RecordedEvent { at_ms: 0, turn: 1, record }).collect(),
        ..RecordedSession::default()
    }
}

#[test]
fn a_handover_is_recorded_until_it_was_sent() {
    let mut desk = talked();
    desk.kept.clear();
    desk.flow(|state, _, fx| operations::tell_agent(state, KEY, fx)).play(Event::Input);
    let is_document = |note: &Note| match note {
        Note::Event { record, .. } => {
            matches!(&**record, Record::HandedOver { text, .. } if text.contains("mend the rounding"))
        }
        _ => false,
    };
    assert!(desk.kept.iter().any(is_document), "{:?}", desk.kept);

    let reopened = |more| {
        let mut session = Session::new(SessionKey(9), SessionPlace::default());
        restore(&mut session, kept_with(more), desk.now);
        session.resume.handover().cloned()
    };
    let waits = Handover { text: "# Conversation so far".into(), agent: "one".into(), is_sent: false };
    let prompt = || Record::Prompt { text: "go".into(), is_again: false };
    let ended =
        |reason| Record::TurnEnded(TurnOutcome::Stopped { reason, usage: None, took_ms: 1, cost: None });
    let failed = || {
        Record::TurnEnded(TurnOutcome::Failed {
            error: "no quota".into(),
            fault: FaultKind::Agent,
            took_ms: 0,
            cost: None,
        })
    };
    assert_eq!(reopened(Vec::new()), Some(waits.clone()));
    for end in [failed(), Record::TurnEnded(TurnOutcome::Cut), ended(StopReason::Cancelled)] {
        assert_eq!(reopened(vec![prompt(), end]), Some(waits.clone()));
    }
    assert_eq!(reopened(vec![prompt(), ended(StopReason::EndTurn)]), None);
    assert_eq!(reopened(vec![prompt(), failed(), prompt(), ended(StopReason::MaxTokens)]), None);
}

/// An agent that refuses to resume a session, which is then replaced.
fn forgotten() -> TestApp {
    let mut desk = talked();
    desk.crash();
    desk.wait(1).handshake(all_capabilities());
    desk.fail(-32603, "no sessions of this project").fail(-32603, "no sessions of this project");
    desk.open("fresh");
    desk
}

fn ids_kept(desk: &TestApp) -> Vec<&str> {
    let ids = desk.kept.iter().filter_map(|note| match note {
        Note::Head(head) => head.session.as_ref().map(SessionId::as_str),
        _ => None,
    });
    ids.collect()
}

#[test]
fn restoring_a_lost_session_is_retried_until_a_prompt_is_sent() {
    let mut desk = forgotten();
    desk.play(Event::Input);
    assert!(desk.session().resume.has_lost_history() && desk.session().id == Some("fresh".into()));
    assert_eq!(ids_kept(&desk).last(), Some(&"s"), "the next start also requests the old one");
    desk.fx.clear();
    // Still not restored: this is reported, but not in the transcript again.
    desk.flow(|state, now, fx| operations::restart_agent(state, KEY, now, fx)).handshake(all_capabilities());
    desk.fail(-32603, "no").fail(-32603, "no").open("fresher");
    assert!(desk.sent().contains("call resume s\ncall load s\ncall new"));
    assert_eq!(desk.state.flash.as_deref(), Some("The agent still could not restore this conversation."));
    assert_eq!(digest(desk.session()).matches("could not restore this conversation").count(), 1);
    // Now it is restored.
    desk.flow(|state, now, fx| operations::restart_agent(state, KEY, now, fx)).handshake(all_capabilities());
    desk.reply(Ok(Reply::Session(SessionReply::default())));
    assert!(!desk.session().resume.has_lost_history() && desk.session().id == Some("s".into()));
    assert!(digest(desk.session()).ends_with("notice Info: The agent restored this conversation."));
}

#[test]
fn a_used_replacement_session_is_not_replaced_by_the_old_one() {
    let mut desk = forgotten();
    desk.submit("go on then").end_turn(StopReason::EndTurn);
    assert_eq!(ids_kept(&desk).last(), Some(&"fresh"));
    desk.fx.clear();
    desk.crash().wait(1).handshake(all_capabilities());
    assert!(desk.sent().contains("call resume fresh"));
}
