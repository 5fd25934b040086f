//! Tests of messages, plans, settings and other updates.

use std::time::Duration;

use super::support::*;
use crate::core::*;
use crate::model::*;

#[test]
fn chunks_of_one_role_are_one_message() {
    check(
        vec![says("Hel"), says("lo")],
        r#"
        ready · running
        user* "go"
        agent "Hello" …
        "#,
    );
}

#[test]
fn acp_v1_a_new_message_id_begins_a_new_message() {
    check(
        vec![says_in("m1", "one"), says_in("m1", " more"), says_in("m2", "two")],
        r#"
        ready · running
        user* "go"
        agent "one more"
        agent "two" …
        "#,
    );
}

#[test]
fn acp_v1_without_ids_a_change_of_role_begins_a_new_message() {
    check(
        vec![text(Role::Thought, "hm"), says("one"), text(Role::Thought, "well"), says("two")],
        r#"
        ready · running
        user* "go"
        thought "hm"
        agent "one"
        thought "well"
        agent "two" …
        "#,
    );
}

#[test]
fn acp_v1_a_tool_call_between_chunks_begins_a_new_message_and_its_updates_do_not() {
    check(
        vec![
            says("before"),
            call("t", ToolStatus::Pending),
            says("af"),
            news("t", ToolStatus::Completed),
            says("ter"),
        ],
        r#"
        ready · running
        user* "go"
        agent "before"
        tool t Completed "do t"
        agent "after" …
        "#,
    );
}

#[test]
fn a_chunk_without_id_continues_and_an_empty_one_is_ignored() {
    check(
        vec![says_in("m1", "a"), says("b"), says(""), text(Role::Thought, "")],
        r#"
        ready · running
        user* "go"
        agent "ab" …
        "#,
    );
}

#[test]
fn blocks_and_texts_form_one_message() {
    let image = ContentBlock::Image { data: "AA==".into(), mime_type: "image/png".into(), uri: None };
    check(
        vec![
            says("look:"),
            SessionUpdate::Block { role: Role::Agent, message: None, block: image },
            says("nice"),
        ],
        r#"
        ready · running
        user* "go"
        agent "look:" <block> "nice" …
        "#,
    );
}

#[test]
fn the_echo_of_the_prompt_is_dropped_and_other_text_is_shown() {
    let mut app = TestCore::ready();
    app.submit("fix the test");
    app.updates(vec![text(Role::User, "fix the"), text(Role::User, " test\n"), says("ok")]);
    app.expect(
        r#"
        ready · running
        user* "fix the test"
        agent "ok" …
        "#,
    );
    app.end_turn(StopReason::EndTurn).submit("go on");
    app.updates(vec![text(Role::User, "go"), text(Role::User, " away: a nudge"), says("ok")]);
    app.expect(
        r#"
        ready · running
        user* "fix the test"
        agent "ok"
        user* "go on"
        user "go away: a nudge"
        agent "ok" …
        "#,
    );
}

#[test]
fn a_thought_has_a_duration() {
    let mut app = TestCore::running();
    app.update(text(Role::Thought, "hm")).wait(4).update(says("so"));
    let took = app.session().transcript.items().iter().find_map(|item| match &item.body {
        ItemBody::Message(message) if message.role == Role::Thought => message.took,
        _ => None,
    });
    assert_eq!(took, Some(Duration::from_secs(4)));
}

#[test]
fn acp_v1_a_plan_replaces_the_previous_and_an_empty_one_removes_it() {
    let plan = |id: Option<&str>, steps: &[&str]| {
        SessionUpdate::Plan(Plan {
            id: id.map(Into::into),
            body: PlanBody::Entries(
                steps
                    .iter()
                    .map(|step| PlanEntry {
                        content: (*step).into(),
                        priority: PlanPriority::Medium,
                        status: PlanStatus::Pending,
                    })
                    .collect(),
            ),
        })
    };
    let mut app = TestCore::running();
    app.updates(vec![plan(None, &["a"]), plan(None, &["a", "b"]), plan(Some("p"), &["c"])]);
    assert_eq!(app.session().plans.len(), 2);
    assert!(matches!(&app.session().plans[0].body, PlanBody::Entries(steps) if steps.len() == 2));
    app.updates(vec![plan(None, &[]), SessionUpdate::PlanRemoved("p".into())]);
    assert_eq!(app.session().plans, []);
}

#[test]
fn acp_v1_titles_are_set_unchanged_and_cleared() {
    let title = |title| SessionUpdate::Info { title, updated_at: Patch::Keep };
    let mut app = TestCore::ready();
    app.update(title(Patch::Set("Skew".into()))).update(title(Patch::Keep));
    assert_eq!(app.session().title.as_deref(), Some("Skew"));
    app.update(title(Patch::Clear));
    assert_eq!(app.session().title, None);
}

#[test]
fn acp_v1_a_compaction_is_one_item_where_it_first_appeared() {
    let step = |status: &str, summary| SessionUpdate::Compaction {
        id: "c".into(),
        status: status.into(),
        summary,
        error: Patch::Keep,
    };
    check(
        vec![
            step("in_progress", Patch::Keep),
            says("x"),
            SessionUpdate::CompactionChunk { id: "c".into(), text: "what we did".into() },
            step("completed", Patch::Keep),
        ],
        r#"
        ready · running
        user* "go"
        compaction c completed "what we did"
        agent "x" …
        "#,
    );
}

#[test]
fn a_compaction_ends_with_its_agent() {
    let begun = SessionUpdate::Compaction {
        id: "c".into(),
        status: "in_progress".into(),
        summary: Patch::Keep,
        error: Patch::Keep,
    };
    let is_interrupted = |session: &Session| {
        super::recorder::items(session).iter().any(|item| item.starts_with("compaction c interrupted"))
    };
    let mut app = TestCore::running();
    app.update(begun).crash();
    assert!(is_interrupted(app.session()), "the agent has exited");
    let mut saved = super::recorder::saved_session(&mut app);
    let end = saved.events.iter_mut().find(|event| matches!(event.record, Record::TurnEnded(_))).unwrap();
    end.record = Record::TurnEnded(TurnOutcome::Cut);
    let mut session = Session::new(KEY, SessionWorkspace::default());
    restore(&mut session, saved, app.now);
    assert!(is_interrupted(&session), "parlor has ended");
}

#[test]
fn unknown_updates_are_shown_as_received() {
    let raw = Raw(r#"{"sessionUpdate":"wild"}"#.into());
    check(
        vec![SessionUpdate::Unknown { name: "wild".into(), raw }],
        r#"
        ready · running
        user* "go"
        raw wild
        "#,
    );
}

#[test]
fn updates_after_the_end_are_applied_without_starting_a_turn() {
    let mut app = TestCore::running();
    app.update(says("ok")).end_turn(StopReason::EndTurn);
    assert!(!app.session().has_background_news);
    app.update(SessionUpdate::Usage(Usage { used_tokens: 5, size_tokens: 10, cost: None }));
    assert!(!app.session().has_background_news, "usage is not activity");
    app.update(says("one more thing"));
    app.expect(
        r#"
        ready · idle
        user* "go"
        agent "ok"
        agent "one more thing" …
        "#,
    );
    assert!(app.session().has_background_news);
    assert_eq!(app.session().usage.as_ref().map(|usage| usage.used_tokens), Some(5));
    app.submit("next");
    assert!(!app.session().has_background_news);
}

#[test]
fn a_banner_after_the_opening_is_not_background_activity() {
    let mut app = TestCore::ready();
    app.update(says("fake 1.0"));
    app.expect(
        r#"
        ready · idle
        agent "fake 1.0" …
        "#,
    );
    assert!(!app.session().has_background_news);
}

#[test]
fn modes_and_the_mode_option_stay_synchronized() {
    let mode = |id: &str| Mode { id: id.into(), name: id.into(), description: None };
    let choice = |value: &str| ConfigChoice {
        value: value.into(),
        name: value.into(),
        description: None,
        group: None,
    };
    let option = |current: &str| ConfigOption {
        id: "mode".into(),
        name: "Mode".into(),
        description: None,
        category: Some("mode".into()),
        kind: ConfigKind::Select { current: current.into(), choices: vec![choice("ask"), choice("plan")] },
    };
    let mut app = TestCore::started();
    app.handshake(all_capabilities());
    app.reply(Ok(Reply::Session(SessionReply {
        id: Some(ID.into()),
        modes: Some(Modes { current: "ask".into(), available: vec![mode("ask"), mode("plan")] }),
        models: None,
        options: vec![option("ask")],
        is_provisional: false,
    })));
    app.update(SessionUpdate::Mode("plan".into()));
    assert_eq!(app.session().options, [option("plan")]);
    app.update(SessionUpdate::Options(vec![option("ask")]));
    assert_eq!(app.session().modes.as_ref().map(|modes| modes.current.as_str()), Some("ask"));
}

#[test]
fn a_chunk_changes_one_revision_of_its_item() {
    let mut app = TestCore::running();
    app.update(says("a"));
    let before = app.session().transcript.clone();
    app.update(says("b"));
    let after = &app.session().transcript;
    assert_eq!(after.revision(), before.revision() + 1);
    assert_eq!(after.items()[0], before.items()[0]);
    assert_eq!(after.items()[1].rev, before.items()[1].rev + 1);
}

#[test]
fn a_subagent_has_a_separate_session() {
    let news = |state: &str| {
        SessionUpdate::Subagent(SubagentPatch {
            session: "child".into(),
            title: Patch::Set("look around".into()),
            description: Patch::Keep,
            state: Patch::Set(state.into()),
            can_cancel: Patch::Keep,
        })
    };
    let mut app = TestCore::running();
    app.agent(AgentEvent::Update("child".into(), says("early ")));
    app.update(news("running"));
    app.agent(AgentEvent::Update("child".into(), says("word")));
    for (id, status) in
        [("a", ToolStatus::InProgress), ("a", ToolStatus::Completed), ("b", ToolStatus::Failed)]
    {
        app.agent(AgentEvent::Update("child".into(), call(id, status)));
    }
    app.update(news("idle"));
    let calls = app.session().transcript.items().iter().find_map(|item| match item.body {
        ItemBody::Subagent { calls, .. } => Some(calls),
        _ => None,
    });
    assert_eq!(calls, Some(2));
    app.expect(
        r#"
        ready · running
        user* "go"
        subagent child key Some(2) "look around" Some("idle")
        "#,
    );
    let child = &app.state.sessions[&SessionKey(2)];
    assert!(digest(child).starts_with("ready · idle\nagent \"early word\""), "{}", digest(child));
    assert_eq!(child.parent, Some(KEY));
    assert_eq!(app.state.active, KEY);
}

#[test]
fn a_repeated_notice_is_counted() {
    let notice = |title: &str| {
        SessionUpdate::notice(Severity::Warning, title.to_owned(), Some("More about it.".to_owned()))
    };
    let mut app = TestCore::running();
    for title in ["slow", "slow", "slow", "other", "slow"] {
        app.update(notice(title));
    }
    app.expect(
        r#"
        ready · running
        user* "go"
        notice Warning: slow (3 times)
        notice Warning: other
        notice Warning: slow
        "#,
    );
    assert!(app.session().transcript.get(ItemId(1)).is_some_and(|item| item.rev > 1), "it is redrawn");
}
