//! Tests of prompts, the queue, cancellation and the ends of turns.

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::state::texts;
use crate::core::*;
use crate::model::*;

#[test]
fn a_prompt_is_sent_and_added_to_the_history() {
    let mut app = TestCore::ready();
    app.submit("hello");
    assert!(app.fx.iter().any(|effect| matches!(effect, Effect::SavePrompt { text, .. } if text == "hello")));
    app.expect_sent(r#"call prompt "hello""#);
    app.expect("ready · running\nuser* \"hello\"");
    assert_eq!(app.session().history, ["hello"]);
    app.end_turn(StopReason::EndTurn).submit("hello");
    assert_eq!(app.session().history, ["hello"], "a repeated prompt is saved once");
}

#[test]
fn prompts_typed_before_the_agent_is_ready_are_sent_when_it_is() {
    let mut app = TestCore::started();
    app.submit("one").submit("two");
    app.expect(r#"starting · idle · queue ["one", "two"]"#);
    app.expect_sent("connect 1 after 0 ms");
    app.handshake(all_capabilities()).open(ID).expect_sent("call new\ncall prompt \"one\"");
    app.end_turn(StopReason::EndTurn).expect_sent(r#"call prompt "two""#);
}

#[test]
fn a_queue_continues_only_after_a_successful_end() {
    let mut app = TestCore::running();
    app.submit("two").submit("three").submit("four").expect_sent("");
    app.update(says("ok")).end_turn(StopReason::EndTurn).expect_sent(r#"call prompt "two""#);
    app.cancel().end_turn(StopReason::Cancelled).expect_sent("cancel s");
    app.expect(
        r#"
        ready · idle · queue ["three", "four"]
        user* "go"
        agent "ok"
        user* "two"
        end Cancelled
        "#,
    );
    assert!(app.state.flash.as_ref().is_some_and(|text| text.starts_with("2 prompts on hold")));
    app.submit("").expect_sent(r#"call prompt "three""#);
    app.fail(-32603, "overloaded").expect_sent("");
    app.expect(
        r#"
        ready · idle · queue ["four"]
        user* "go"
        agent "ok"
        user* "two"
        end Cancelled
        user* "three"
        end failed: overloaded
        "#,
    );
    app.submit("first this").expect_sent(r#"call prompt "first this""#);
}

/// A session whose turn was cancelled while these prompts were queued.
fn on_hold(queued: &[&str]) -> TestCore {
    let mut app = TestCore::running();
    for text in queued {
        app.submit(text);
    }
    app.cancel().end_turn(StopReason::Cancelled).expect_sent("cancel s");
    app
}

#[test]
fn a_new_prompt_leaves_a_queue_on_hold() {
    let mut app = on_hold(&["A"]);
    app.submit("new").expect_sent("call prompt \"new\"");
    app.submit("B");
    app.update(says("ok")).end_turn(StopReason::EndTurn).expect_sent("call prompt \"B\"");
    app.update(says("ok")).end_turn(StopReason::EndTurn).expect_sent("");
    assert_eq!(app.queue(), ["A"]);
    app.submit("").expect_sent("call prompt \"A\"");
}

#[test]
fn an_empty_prompt_lets_a_queue_on_hold_continue_after_the_turn() {
    let mut app = on_hold(&["A"]);
    app.submit("new").submit("").expect_sent("call prompt \"new\"");
    app.update(says("ok")).end_turn(StopReason::EndTurn).expect_sent("call prompt \"A\"");
}

#[test]
fn a_prompt_that_starts_the_agent_is_sent_before_a_queue_on_hold() {
    let mut app = TestCore::running();
    app.submit("A").crash();
    app.submit("B");
    assert_eq!((app.queue(), app.session().outbox.free()), (vec!["B", "A"], 1));
}

#[test]
fn prompts_typed_after_a_cancel_are_sent_and_the_others_are_on_hold() {
    let mut app = TestCore::running();
    app.submit("A").cancel().submit("B").submit("C").end_turn(StopReason::Cancelled);
    app.expect_sent("cancel s\ncall prompt \"B\"");
    app.update(says("ok")).end_turn(StopReason::EndTurn).expect_sent("call prompt \"C\"");
    app.update(says("ok")).end_turn(StopReason::EndTurn).expect_sent("");
    assert_eq!(app.queue(), ["A"]);
}

#[test]
fn acp_v1_a_cancel_is_sent_before_every_open_request_is_answered() {
    let mut app = TestCore::running();
    app.update(call("t", ToolStatus::InProgress));
    app.ask(1, permission("t")).ask(2, question()).ask(3, permission("u"));
    app.cancel().expect_sent(
        r"
        cancel s
        answer 1: permission cancelled
        answer 2: elicitation cancelled
        answer 3: permission cancelled
        ",
    );
    app.expect(
        r#"
        ready · cancelling
        user* "go"
        tool t Cancelled? "do t" [cancelled]
        tool u Cancelled? "" [cancelled] (hidden)
        answered "Which one?" "not answered: the turn was cancelled"
        "#,
    );
}

#[test]
fn acp_v1_updates_between_cancel_and_response_are_applied() {
    let mut app = TestCore::running();
    app.update(call("t", ToolStatus::InProgress)).cancel();
    app.update(news("t", ToolStatus::Completed)).update(says("almost")).end_turn(StopReason::Cancelled);
    app.expect(
        r#"
        ready · idle
        user* "go"
        tool t Completed "do t"
        agent "almost"
        end Cancelled
        "#,
    );
}

#[test]
fn acp_v1_a_permission_after_the_cancel_is_answered_cancelled() {
    let mut app = TestCore::running();
    app.cancel().ask(1, permission("t")).ask(2, question()).expect_sent(
        r"
        cancel s
        answer 1: permission cancelled
        answer 2: elicitation cancelled
        ",
    );
    app.fail(-32603, "aborted");
    app.expect(
        r#"
        ready · idle
        user* "go"
        tool t Cancelled? "" [cancelled] (hidden)
        answered "Which one?" "not answered: the turn was cancelled"
        end Cancelled
        "#,
    );
}

#[test]
fn a_turn_that_the_agent_cancels_leaves_no_open_requests() {
    let mut app = TestCore::running();
    app.ask(1, permission("t")).ask(2, question()).fx.clear();
    app.end_turn(StopReason::Cancelled);
    app.expect_sent("answer 1: permission cancelled\nanswer 2: elicitation cancelled");
    app.expect(
        r#"
        ready · idle
        user* "go"
        tool t Cancelled? "" [cancelled] (hidden)
        answered "Which one?" "not answered: the turn was cancelled"
        end Cancelled
        "#,
    );
}

#[test]
fn a_cancelled_turn_is_shown_as_cancelled_whatever_the_response() {
    for answer in [
        Ok(Reply::TurnEnded { reason: StopReason::EndTurn, usage: None }),
        Ok(Reply::TurnEnded { reason: StopReason::Cancelled, usage: None }),
        Err(CallError::Agent(RpcError::new(RpcError::INTERNAL, "AbortError"))),
        Err(CallError::Malformed { error: "no stopReason".into() }),
    ] {
        let mut app = TestCore::running();
        app.cancel().reply(answer);
        app.expect("ready · idle\nuser* \"go\"\nend Cancelled");
    }
}

#[test]
fn a_cancel_without_a_response_asks_the_user_instead_of_killing() {
    let mut app = TestCore::running();
    app.cancel();
    let limit = std::time::Duration::from_secs(10);
    assert!(app.fx.contains(&Effect::Timer(TimerId::CancelOverdue(KEY), limit)));
    app.fx.clear();
    app.wait(10).play(Event::Timer(TimerId::CancelOverdue(KEY)));
    app.expect("ready · overdue\nuser* \"go\"").expect_sent("");
    let Some(dialog) = app.state.questions.last() else {
        panic!("the user is asked");
    };
    let consequences: Vec<&Consequence> = dialog.answers.iter().map(|answer| &answer.consequence).collect();
    assert_eq!(
        consequences,
        [&Consequence::Close, &Consequence::Restart(KEY), &Consequence::ForceStop(CONN)]
    );
    assert!(dialog.asked_at.is_some());
    app.end_turn(StopReason::Cancelled);
    assert_eq!(app.state.questions, [], "the agent has responded: there is nothing to choose");

    let mut app = TestCore::running();
    app.cancel().wait(10).play(Event::Timer(TimerId::CancelOverdue(KEY))).answer_last(UserAnswer::Dismiss);
    app.cancel();
    assert_eq!(app.state.questions.len(), 1, "the user opened it again");
    app.end_turn(StopReason::Cancelled);
    assert_eq!(app.state.questions, [], "its choices would concern an agent that has responded");
}

#[test]
fn a_timer_of_a_turn_that_ended_does_nothing() {
    let mut app = TestCore::running();
    app.cancel().end_turn(StopReason::Cancelled);
    let before = app.state.clone();
    app.play(Event::Timer(TimerId::CancelOverdue(KEY))).play(Event::Timer(TimerId::TurnQuiet(KEY)));
    let (changes, chrome_changes) = (app.state.changes, app.state.chrome_changes);
    assert_eq!(app.state, State { changes, chrome_changes, ..before }, "at most an unneeded frame");
}

#[test]
fn a_quiet_turn_shows_a_hint_and_an_active_one_is_checked_again() {
    let mut app = TestCore::running();
    app.wait(100).update(says("x")).wait(20).play(Event::Timer(TimerId::TurnQuiet(KEY)));
    assert_eq!(app.state.flash, None);
    let rest = std::time::Duration::from_secs(100);
    assert_eq!(app.fx, [Effect::Timer(TimerId::TurnQuiet(KEY), rest)]);
    app.wait(100).play(Event::Timer(TimerId::TurnQuiet(KEY)));
    assert_eq!(app.state.flash.as_deref(), Some("No activity from the agent for 2 min."));
}

#[test]
fn a_turn_that_waits_for_the_user_is_not_quiet() {
    let mut app = TestCore::running();
    app.ask(1, permission("c1")).wait(300).play(Event::Timer(TimerId::TurnQuiet(KEY)));
    assert_eq!(app.state.flash, None);
    let again = Effect::Timer(TimerId::TurnQuiet(KEY), std::time::Duration::from_secs(120));
    assert!(app.fx.contains(&again));
    app.choose(Some(0)).wait(60).play(Event::Timer(TimerId::TurnQuiet(KEY)));
    assert_eq!(app.state.flash, None);
}

#[test]
fn other_stop_reasons_are_shown() {
    for (reason, line) in [
        (StopReason::Refusal, "end Refusal"),
        (StopReason::MaxTokens, "end MaxTokens"),
        (StopReason::MaxTurnRequests, "end MaxTurnRequests"),
        (StopReason::Other("paused".into()), "end Other(\"paused\")"),
    ] {
        let mut app = TestCore::running();
        app.end_turn(reason);
        app.expect(&format!("ready · idle\nuser* \"go\"\n{line}"));
    }
}

#[test]
fn an_error_of_the_model_ends_the_turn_and_the_session_stays_usable() {
    let mut app = TestCore::running();
    app.update(says("I wi")).fail(400, "Bad Request: no such model");
    app.expect(
        r#"
        ready · idle
        user* "go"
        agent "I wi"
        end failed: Bad Request: no such model
        "#,
    );
    app.submit("again").expect_sent(r#"call prompt "again""#);
}

#[test]
fn an_error_without_a_message_has_a_hint() {
    let mut app = TestCore::running();
    app.fail(-32603, " ");
    app.expect(
        r#"
        ready · idle
        user* "go"
        end failed: The agent returned error -32603 without a message. See the protocol log.
        "#,
    );
}

#[test]
fn a_response_is_used_once() {
    let mut app = TestCore::running();
    let tag = app.latest_call(CONN);
    app.update(says("ok")).end_turn(StopReason::EndTurn).submit("next");
    let late = Reply::TurnEnded { reason: StopReason::EndTurn, usage: None };
    app.agent(AgentEvent::Replied(tag, Ok(late)));
    app.expect("ready · running\nuser* \"go\"\nagent \"ok\"\nuser* \"next\"");
}

#[test]
fn an_empty_turn_is_reported() {
    let mut app = TestCore::running();
    app.ask(1, permission("made-up")).choose(Some(0)).end_turn(StopReason::EndTurn);
    app.expect(
        r#"
        ready · idle
        user* "go"
        tool made-up Completed? "" [the yes: allowed] (hidden)
        notice Info: The agent returned an empty response.
        "#,
    );
}

#[test]
fn tokens_of_the_turn_are_saved() {
    let usage = TurnUsage { total_tokens: 12, ..TurnUsage::default() };
    let mut app = TestCore::running();
    app.reply(Ok(Reply::TurnEnded { reason: StopReason::EndTurn, usage: Some(usage) }));
    assert_eq!(app.session().turn_usage, Some(usage));
}

#[test]
fn the_last_item_of_a_turn_has_its_duration_and_cost() {
    let usage = |amount: Option<f64>| {
        let cost = amount.map(|amount| Cost { amount, currency: "USD".into() });
        SessionUpdate::Usage(Usage { used_tokens: 5, size_tokens: 10, cost })
    };
    let end = |app: &TestCore| app.session().transcript.items().last().and_then(|item| item.end.clone());
    let mut app = TestCore::running();
    app.update(says("ok")).update(usage(Some(0.25))).update(usage(None));
    assert!(app.session().usage.as_ref().is_some_and(|usage| usage.cost.is_some()), "the cost stays");
    assert_eq!(end(&app), None, "the turn is running");
    app.end_turn(StopReason::EndTurn);
    let first = end(&app).expect("the turn has ended");
    assert_eq!(first.cost, Some(Cost { amount: 0.25, currency: "USD".into() }));
    assert!(first.took.is_some());
    app.submit("more").update(says("yes")).update(usage(Some(0.75))).end_turn(StopReason::EndTurn);
    assert_eq!(end(&app).and_then(|end| end.cost.clone()).map(|cost| cost.amount), Some(0.5));
    app.submit("again").update(says("yes")).end_turn(StopReason::EndTurn);
    assert_eq!(end(&app).and_then(|end| end.cost.clone()), None, "no new cost is known");
}

#[test]
fn the_summary_of_a_turn_is_restored_from_its_records() {
    use std::time::{Duration, Instant};

    use crate::core::session::play::play;
    let cost = Some(Cost { amount: 0.25, currency: "USD".into() });
    let outcomes = [
        TurnOutcome::Stopped { reason: StopReason::EndTurn, usage: None, took_ms: 3_000, cost: cost.clone() },
        TurnOutcome::Failed {
            error: "no".into(),
            fault: FaultKind::Agent,
            took_ms: 3_000,
            cost: cost.clone(),
        },
    ];
    for outcome in outcomes {
        let mut session = Session::new(KEY, SessionWorkspace::default());
        let records = [typed("go"), Record::Update(says("ok")), Record::TurnEnded(outcome)];
        let event = |record| RecordedEvent { at_ms: 0, turn: 1, record };
        play(&mut session, records.map(event).into(), Instant::now());
        let end = session.transcript.items().last().and_then(|item| item.end.clone()).expect("an end");
        assert_eq!((end.took, end.cost), (Some(Duration::from_secs(3)), cost.clone()));
    }
}

#[test]
fn git_is_read_at_the_start_and_after_each_turn() {
    let count =
        |app: &TestCore| app.fx.iter().filter(|effect| matches!(effect, Effect::ReadGit { .. })).count();
    assert_eq!(count(&TestCore::started()), 1);
    let mut app = TestCore::running();
    app.end_turn(StopReason::EndTurn);
    assert_eq!(count(&app), 1);
    let git = GitInfo { branch: "main".into(), is_dirty: true };
    app.service(ServiceEvent::Git(KEY, Some(git.clone())));
    assert_eq!(app.session().git, Some(git));
}

#[test]
fn a_prompt_that_requires_a_sign_in_is_resent_after_it() {
    let mut app = TestCore::started();
    app.agent(AgentEvent::Ready(Box::new(signs_in(vec![("web", AuthKind::Agent)]))));
    app.open(ID).submit("go").fail(RpcError::AUTH_REQUIRED, "token expired");
    app.expect(
        r#"
        needs sign-in · idle
        user* "go"
        end failed: token expired
        notice Warning: The agent requires sign-in.
        "#,
    );
    app.fx.clear();
    app.flow(|state, cx| operations::sign_in(state, CONN, "web", Vec::new(), cx));
    app.reply(Ok(Reply::Done)).expect_sent("call authenticate web\ncall prompt \"go\"");
    assert_eq!(app.session().transcript.items().len(), 4, "not a second prompt");
}

#[test]
fn a_lost_session_is_resumed_and_the_prompt_resent() {
    let mut app = TestCore::running();
    app.fail(RpcError::RESOURCE_NOT_FOUND, "Session not found").expect_sent("call resume s");
    app.reply(Ok(Reply::Session(SessionReply::default()))).expect_sent("call prompt \"go\"");
    // It is resent only once.
    app.fail(RpcError::RESOURCE_NOT_FOUND, "Session not found");
    app.expect_sent("call resume s");
    assert_eq!(app.session().draft, "go");
    app.reply(Ok(Reply::Session(SessionReply::default()))).expect_sent("");
    // A turn that was answered does not count as a retry.
    app.submit("more").end_turn(StopReason::EndTurn).submit("go on").fx.clear();
    app.fail(RpcError::RESOURCE_NOT_FOUND, "Session not found").expect_sent("call resume s");
    assert_eq!(app.session().outbox.unsent().map(|prompt| prompt.text.as_str()), Some("go on"));
}

#[test]
fn the_prompt_of_an_unrecoverable_session_waits_for_the_users_decision() {
    let mut app = TestCore::running();
    app.fail(RpcError::RESOURCE_NOT_FOUND, "Session not found").expect_sent("call resume s");
    app.fail(RpcError::RESOURCE_NOT_FOUND, "Session not found").expect_sent("call load s");
    app.fail(RpcError::RESOURCE_NOT_FOUND, "Session not found").expect_sent("call new");
    app.open("t");
    app.expect(
        r#"
        ready · idle
        user* "go"
        end failed: Session not found
        notice Warning: The agent could not restore this conversation.
        "#,
    );
    app.fx.clear();
    assert_eq!(failed(&app), Some("go"), "it can be resent");
    assert_eq!(app.state.questions, [], "there is a notice, but no question");
    app.flow(|state, cx| operations::tell_agent(state, KEY, cx));
    app.flow(|state, cx| operations::send_undecided(state, KEY, cx));
    assert!(app.session().turn.is_running() && app.session().outbox.failed().is_none());
    assert!(app.session().resume.handover().is_some_and(|text| text.is_sent), "with the conversation");
    assert_eq!(digest(app.session()).matches("\"go\"").count(), 1);
}

#[test]
fn a_refused_prompt_is_not_reported_as_missing_in_the_replay() {
    let mut app = TestCore::started();
    app.handshake(AgentCapabilities { can_load: true, ..AgentCapabilities::default() }).open(ID);
    app.submit("one").update(says("Answer")).end_turn(StopReason::EndTurn);
    app.submit("lost").fail(RpcError::RESOURCE_NOT_FOUND, "Session not found");
    app.fx.clear();
    app.updates(vec![text(Role::User, "one"), says("Answer")]).reply(Ok(Reply::Done));
    app.play(Event::Timer(TimerId::History(KEY))).expect_sent("call prompt \"lost\"");
    let shown = digest(app.session());
    assert!(!shown.contains("Warning") && shown.matches("lost").count() == 1, "{shown}");
}

fn failed(app: &TestCore) -> Option<&str> {
    app.session().outbox.failed().map(|prompt| prompt.text.as_str())
}

#[test]
fn a_prompt_that_may_have_arrived_is_distinguished_from_a_refused_one() {
    let lost = CallError::Undelivered { error: "The line is dead.".to_owned() };
    let busy = CallError::Agent(RpcError::new(-32603, "overloaded"));
    for (error, may_have_arrived) in [(lost, true), (CallError::TimedOut(60), true), (busy, false)] {
        let mut app = TestCore::running();
        app.reply(Err(error.clone()));
        let prompt = app.session().outbox.failed();
        assert_eq!(prompt.map(Prompt::may_have_arrived), Some(may_have_arrived), "{error:?}");
        let fault = texts::fault_of(&error);
        assert_eq!(fault.next().contains("may run it twice"), may_have_arrived, "{fault:?}");
    }
    let mut app = TestCore::running();
    app.crash();
    assert!(app.session().outbox.failed().is_some_and(Prompt::may_have_arrived));
}

#[test]
fn a_cancelled_prompt_that_may_have_arrived_is_not_shown_as_cancelled() {
    let mut app = TestCore::running();
    app.cancel().reply(Err(CallError::Undelivered { error: "The line is dead.".to_owned() }));
    let shown = digest(app.session());
    assert!(shown.contains("may have received the prompt, but not that you cancelled it"), "{shown}");
    assert_eq!(failed(&app), None, "it is not offered to be sent again");
    let mut app = TestCore::running();
    app.cancel().fail(-32603, "aborted");
    let shown = digest(app.session());
    assert!(shown.contains("end Cancelled") && !shown.contains("aborted"), "{shown}");
}

#[test]
fn a_temporarily_failed_prompt_can_be_resent() {
    let mut app = TestCore::running();
    app.fail(-32603, "429 Too Many Requests");
    assert_eq!(failed(&app), Some("go"));
    app.flow(|state, cx| operations::send_again(state, KEY, cx)).expect_sent(r#"call prompt "go""#);
    app.update(says("at last")).end_turn(StopReason::EndTurn);
    app.expect(
        r#"
        ready · idle
        user* "go"
        end failed: 429 Too Many Requests
        notice Info: Prompt sent again.
        agent "at last"
        "#,
    );
    assert_eq!(app.session().outbox.failed(), None);
    app.flow(|state, cx| operations::send_again(state, KEY, cx)).expect_sent("");
}

#[test]
fn a_prompt_whose_agent_exited_is_resent_to_the_restarted_one() {
    let mut app = TestCore::running();
    app.crash().expect_sent("connect 2 after 500 ms");
    app.flow(|state, cx| operations::send_again(state, KEY, cx)).expect_sent("");
    app.handshake(all_capabilities()).reply(Ok(Reply::Done));
    app.expect_sent("call resume s\ncall prompt \"go\"");
    // An agent that is no longer restarted automatically is started for it.
    for _ in 0..3 {
        app.wait(1).crash();
    }
    app.fx.clear();
    assert_eq!(failed(&app), Some("go"));
    app.flow(|state, cx| operations::send_again(state, KEY, cx)).expect_sent("connect 4 after 0 ms");
    app.handshake(all_capabilities()).reply(Ok(Reply::Done)).expect_sent("call resume s\ncall prompt \"go\"");
}

#[test]
fn a_failed_prompt_can_be_resent_whatever_the_cause() {
    for (code, message, fault) in [
        (-32602, "unknown model gpt-0", FaultKind::Agent),
        (-32603, "bad tool call 4290", FaultKind::Agent),
        (-32000, "no credits left", FaultKind::Quota),
        (-32603, "fetch failed", FaultKind::Network),
        (-32603, "Overloaded", FaultKind::Busy),
        (-32603, "HTTP 529", FaultKind::Busy),
        (-32603, "Rate limit exceeded", FaultKind::Busy),
        (-32603, "upstream: read ECONNRESET", FaultKind::Busy),
    ] {
        let mut app = TestCore::running();
        app.fail(code, message);
        let failed = app.session().outbox.failed().map(Prompt::may_have_arrived);
        assert_eq!(failed, Some(false), "{message}");
        assert_eq!(texts::fault_of(&CallError::Agent(RpcError::new(code, message))), fault, "{message}");
    }
    let mut app = TestCore::running();
    app.cancel().fail(-32603, "overloaded");
    assert_eq!(app.session().outbox.failed(), None, "the user rejected it");
}

#[test]
fn the_reason_of_a_rejection_is_sent_also_if_the_turn_ends_as_cancelled() {
    let mut app = TestCore::ready();
    app.submit("go").submit("later").fx.clear();
    app.flow(|state, cx| operations::send_reason(state, KEY, "Use the other file".to_owned(), cx));
    app.end_turn(StopReason::Cancelled);
    app.expect_sent("call prompt \"Use the other file\"");
    assert_eq!((app.queue().len(), app.session().outbox.held()), (1, 1));
}
