//! Tests of handing conversations over to an agent that does not have them.

use super::support::*;
use crate::core::lifecycle::handover;
use crate::core::lifecycle::operations;
use crate::core::state::place;
use crate::core::*;
use crate::model::*;

/// A session with two turns.
fn talked() -> TestCore {
    let mut app = TestCore::ready();
    app.submit("mend the rounding of the till");
    app.updates(vec![text(Role::Thought, "hm"), says("I look."), call("a", ToolStatus::Completed)]);
    app.end_turn(StopReason::EndTurn);
    app.submit("and the receipt").update(says("Done.")).end_turn(StopReason::EndTurn);
    app.fx.clear();
    app
}

fn prompt_blocks(app: &mut TestCore) -> Vec<ContentBlock> {
    let blocks = app.sent_prompts()[0].to_vec();
    app.fx.clear();
    blocks
}

/// Hands the conversation over to `other`, and opens its session.
fn handed_over(capabilities: AgentCapabilities) -> (TestCore, SessionKey) {
    let mut app = talked();
    app.flow(|state, cx| operations::hand_over(state, KEY, spec("other"), cx));
    let key = app.state.active;
    let conn = app.state.sessions[&key].conn.unwrap();
    let reply = SessionReply { id: Some("n".into()), ..SessionReply::default() };
    app.handshake_of(conn, capabilities).reply_to(conn, Ok(Reply::Session(reply)));
    app.fx.clear();
    (app, key)
}

#[test]
fn the_first_prompt_includes_the_conversation_as_a_resource() {
    let capabilities = AgentCapabilities { prompt_embedded_context: true, ..AgentCapabilities::default() };
    let (mut app, key) = handed_over(capabilities);
    app.submit_in(key, "go on");
    let blocks = prompt_blocks(&mut app);
    let [
        ContentBlock::Resource { mime_type, body: ResourceBody::Text(reported), .. },
        ContentBlock::Text(asked),
    ] = blocks.as_slice()
    else {
        panic!("{blocks:?}")
    };
    assert_eq!((mime_type.as_deref(), asked.as_str()), (Some("text/markdown"), "go on"));
    for expected in
        ["mend the rounding of the till", "I look.", "- do a", "and the receipt", "Done.", "/code/shop"]
    {
        assert!(reported.contains(expected), "{expected} in\n{reported}");
    }
    assert!(!reported.contains("hm"), "thoughts are not included");
    // It is sent once, with a turn that was answered.
    let conn = app.state.sessions[&key].conn.unwrap();
    app.reply_to(conn, Err(CallError::Agent(RpcError::new(-32603, "no quota"))));
    app.fx.clear();
    app.submit_in(key, "again");
    assert_eq!(prompt_blocks(&mut app).len(), 2, "the turn failed, so it is sent again");
    app.reply_to(conn, Ok(Reply::TurnEnded { reason: StopReason::EndTurn, usage: None }));
    app.fx.clear();
    app.submit_in(key, "more");
    assert_eq!(prompt_blocks(&mut app), [ContentBlock::Text("more".into())]);
}

#[test]
fn pasted_texts_and_notes_of_images_are_handed_over() {
    let mut app = TestCore::ready();
    let pasted = Attachment::of_text("first pasted line\nlast pasted line");
    let image = "[Image #0123456789: 8×4, 1 KiB]";
    app.submit(&format!("see {} and {image}", pasted.label()));
    let block = ContentBlock::Image { data: "iVBORw0KGgo=".into(), mime_type: "image/png".into(), uri: None };
    let prepared = PreparedPrompt {
        text: format!("see first pasted line\nlast pasted line and {image}"),
        pasted: std::iter::once(4..38).collect(),
        blocks: vec![block],
        ..PreparedPrompt::default()
    };
    app.prepared(prepared);
    app.update(says("A picture.")).end_turn(StopReason::EndTurn);
    let reported = handover::document(&app.state, KEY, None).unwrap();
    let prompt =
        format!("## User\n\nsee first pasted line\nlast pasted line and {image}\n\n[image, image/png]\n");
    assert!(reported.contains(&prompt), "{reported}");
    assert!(!reported.contains("iVBORw0KGgo=") && !reported.contains(&pasted.label()), "{reported}");
}

#[test]
fn an_agent_without_resources_gets_text_and_its_echo_is_hidden() {
    let (mut app, key) = handed_over(AgentCapabilities::default());
    app.submit_in(key, "go on");
    let blocks = prompt_blocks(&mut app);
    let [ContentBlock::Text(reported), ContentBlock::Text(asked)] = blocks.as_slice() else {
        panic!("{blocks:?}")
    };
    assert!(reported.starts_with("<earlier_conversation>\n"), "{reported}");
    let conn = app.state.sessions[&key].conn.unwrap();
    for part in [reported.clone(), asked.clone()] {
        app.play(Event::Agent(conn, AgentEvent::Update("n".into(), text(Role::User, &part))));
    }
    let shown = digest(&app.state.sessions[&key]);
    assert!(shown.ends_with("user* \"go on\""), "{shown}");
    // When it is replayed, it is the same prompt.
    assert_eq!(place::without_context(&format!("{reported}{asked}")), "go on");
}

#[test]
fn both_sessions_of_a_handover_are_linked() {
    let mut app = talked();
    app.saved.clear();
    let fx = app.effects_of(|state, cx| operations::hand_over(state, KEY, spec("other"), cx));
    let key = app.state.active;
    let link = Note::CameFrom { session: KEY, saved_as: None, copied_turns: None };
    let is_linked = fx.iter().any(
        |effect| matches!(effect, Effect::Keep { session, notes } if *session == key && notes.contains(&link)),
    );
    assert!(is_linked, "{fx:?}");
    assert!(digest(app.session()).ends_with("notice Info: Conversation handed over to other."));
    assert!(
        digest(&app.state.sessions[&key])
            .ends_with("notice Info: Continued from a session with fake: mend the rounding of the till")
    );
}

#[test]
fn a_handover_has_the_configured_size_and_notes_omissions() {
    let mut app = talked();
    for number in 0..40 {
        app.submit(&format!("prompt {number}"))
            .update(says(&"words ".repeat(100)))
            .end_turn(StopReason::EndTurn);
    }
    app.state.setup.handover_bytes = 4096;
    app.flow(|state, cx| operations::hand_over(state, KEY, spec("other"), cx));
    let reported = &shown_handover(&app).text;
    assert!(reported.len() <= 4096, "{}", reported.len());
    assert!(reported.contains("prompt 39") && !reported.contains("prompt 3\n"), "{reported}");
    assert!(
        reported.contains("The first prompt was: mend the rounding")
            && reported.contains("Earlier parts are omitted")
    );
}

#[test]
fn the_first_prompt_in_memory_is_not_called_the_first_if_more_is_stored() {
    let mut app = talked();
    for _ in 0..8 {
        app.submit("words").update(says(&"words ".repeat(100))).end_turn(StopReason::EndTurn);
    }
    app.state.setup.handover_bytes = handover::MIN_BYTES;
    let reported = |app: &mut TestCore| {
        app.flow(|state, cx| operations::tell_agent(state, KEY, cx));
        let resume = &mut app.session_mut().resume;
        let text = resume.handover().unwrap().text.clone();
        resume.handed_over();
        text
    };
    assert!(reported(&mut app).contains("The first prompt was: mend the rounding"));
    let mut cx = Cx::new(app.now);
    crate::core::recording::loading::begin(app.session_mut(), "k", 9, None, (None, ""), &mut cx);
    let text = reported(&mut app);
    assert!(!text.contains("The first prompt was") && text.contains("Earlier parts are omitted"), "{text}");
}

#[test]
fn a_summary_of_the_agent_replaces_the_summarized_part() {
    let mut app = talked();
    app.update(SessionUpdate::Compaction {
        id: "c".into(),
        status: "completed".into(),
        summary: Patch::Set("The till was mended.".into()),
        error: Patch::Keep,
    });
    app.submit("now the drawer").update(says("It opens.")).end_turn(StopReason::EndTurn);
    app.flow(|state, cx| operations::hand_over(state, KEY, spec("other"), cx));
    let reported = &shown_handover(&app).text;
    assert!(reported.contains("The till was mended.") && reported.contains("now the drawer"), "{reported}");
    assert!(!reported.contains("I look."), "{reported}");
}

fn shown_handover(app: &TestCore) -> &Handover {
    app.state.active_session().unwrap().resume.handover().expect("something is handed over")
}

fn hand_over(state: &mut State, cx: &mut Cx) {
    operations::tell_agent(state, KEY, cx);
    operations::send_undecided(state, KEY, cx);
}

#[test]
fn a_lost_conversation_is_sent_if_the_user_requests_it() {
    let mut app = talked();
    app.crash();
    app.wait(1);
    let none = AgentCapabilities::default();
    app.state.setup.palette = vec![crate::model::PaletteCommand {
        action: Action::HandOver,
        text: "Hand over".into(),
        keys: "Alt+H".into(),
        group: crate::model::CommandGroup::Session,
        synonyms: "",
    }];
    app.handshake(none).expect_sent("connect 2 after 500 ms\ncall new");
    assert_eq!(app.state.questions, [], "an offer receives no keys");
    assert!(app.last_notice().contains("Alt+H sends the conversation"), "{:?}", app.notices());
    app.open("fresh");
    app.flow(hand_over).flow(hand_over);
    assert_eq!(digest(app.session()).matches("The conversation above").count(), 1);
    app.fx.clear();
    app.submit("go on");
    let blocks = prompt_blocks(&mut app);
    assert!(
        matches!(&blocks[0], ContentBlock::Text(reported) if reported.contains("mend the rounding")),
        "{blocks:?}"
    );
}

#[test]
fn an_empty_session_has_no_handover() {
    let mut app = TestCore::ready();
    app.flow(|state, cx| operations::hand_over(state, KEY, spec("other"), cx));
    assert_eq!((app.state.sessions.len(), app.state.active), (1, KEY));
}

/// A stored session that continues another one.
fn kept_with(more: Vec<Record>) -> RecordedSession {
    let reported = Record::HandedOver { agent: "one".into(), text: "# Conversation so far".into() };
    let records = std::iter::once(reported).chain(more);
    RecordedSession {
        head: stored_head("k2", "n"),
        draft: "go on with".into(),
        events: records.map(|record| RecordedEvent { at_ms: 0, turn: 1, record }).collect(),
        ..RecordedSession::default()
    }
}

#[test]
fn a_handover_is_recorded_until_it_was_sent() {
    let mut app = talked();
    app.saved.clear();
    app.flow(|state, cx| operations::tell_agent(state, KEY, cx));
    let is_document = |event: &RecordedEvent| match &event.record {
        Record::HandedOver { text, .. } => text.contains("mend the rounding"),
        _ => false,
    };
    assert!(app.recorded().iter().any(is_document), "{:?}", app.saved);

    let reopened = |more| {
        let mut session = Session::new(SessionKey(9), SessionWorkspace::default());
        restore(&mut session, kept_with(more), app.now);
        session.resume.handover().cloned()
    };
    let waits = Handover { text: "# Conversation so far".into(), agent: "one".into(), is_sent: false };
    let prompt = || typed("go");
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
fn forgotten() -> TestCore {
    let mut app = talked();
    app.crash();
    app.wait(1).handshake(all_capabilities());
    let gone = RpcError::RESOURCE_NOT_FOUND;
    app.fail(gone, "no sessions of this project").fail(gone, "no sessions of this project");
    app.open("fresh");
    app
}

fn ids_saved(app: &TestCore) -> Vec<&str> {
    let ids = app.saved.iter().filter_map(|note| match note {
        Note::Head(head) => head.session.as_ref().map(SessionId::as_str),
        _ => None,
    });
    ids.collect()
}

#[test]
fn restoring_a_lost_session_is_retried_until_a_prompt_is_sent() {
    let mut app = forgotten();
    assert!(app.session().resume.has_lost_history() && app.session().id == Some("fresh".into()));
    assert_eq!(ids_saved(&app).last(), Some(&"s"), "the next start also requests the old one");
    app.fx.clear();
    // Still not restored: this is reported, but not in the transcript again.
    app.flow(|state, cx| operations::restart_agent(state, KEY, cx)).handshake(all_capabilities());
    app.fail(RpcError::RESOURCE_NOT_FOUND, "no").open("fresher");
    assert!(app.sent().contains("call load s\ncall new"));
    assert_eq!(app.state.flash.as_deref(), Some("The agent still could not restore this conversation."));
    assert_eq!(digest(app.session()).matches("could not restore this conversation").count(), 1);
    // Now it is restored.
    app.flow(|state, cx| operations::restart_agent(state, KEY, cx)).handshake(all_capabilities());
    app.reply(Ok(Reply::Session(SessionReply::default())));
    assert!(!app.session().resume.has_lost_history() && app.session().id == Some("s".into()));
    assert!(digest(app.session()).ends_with("notice Info: The agent restored this conversation."));
}

#[test]
fn a_used_replacement_session_is_not_replaced_by_the_old_one() {
    let mut app = forgotten();
    app.submit("go on then").end_turn(StopReason::EndTurn);
    assert_eq!(ids_saved(&app).last(), Some(&"fresh"));
    app.fx.clear();
    app.crash().wait(1).handshake(all_capabilities());
    assert!(app.sent().contains("call resume fresh"));
}
