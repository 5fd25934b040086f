//! Tests of prompts that are sent before others, or into the running turn, and of the queue when a session ends.

use super::recorder::saved_session;
use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

fn send_now(app: &mut TestCore, position: usize) -> &mut TestCore {
    let position = app.session().outbox.queued(position).unwrap().id;
    app.flow(|state, cx| operations::send_now(state, KEY, position, cx))
}

fn steering() -> TestCore {
    let mut app = TestCore::started();
    app.handshake(AgentCapabilities { can_steer: true, ..all_capabilities() }).open(ID);
    app.submit("go");
    app.fx.clear();
    app
}

fn steer(app: &mut TestCore, text: &str) {
    app.submit(text);
    let last = app.session().outbox.last().unwrap().id;
    app.flow(|state, cx| operations::steer(state, KEY, last, cx));
}

#[test]
fn send_now_cancels_the_turn_and_the_others_keep_their_order() {
    let mut app = TestCore::running();
    app.submit("A").submit("B").submit("C").sent();
    send_now(&mut app, 1).expect_sent("cancel s");
    app.end_turn(StopReason::Cancelled).expect_sent("call prompt \"B\"");
    assert_eq!(app.queue(), ["A", "C"]);
    app.update(says("ok")).end_turn(StopReason::EndTurn).expect_sent("call prompt \"A\"");
    app.update(says("ok")).end_turn(StopReason::EndTurn).expect_sent("call prompt \"C\"");
}

#[test]
fn send_now_answers_the_open_requests_of_the_cancelled_turn() {
    let mut app = TestCore::running();
    app.update(call("t", ToolStatus::InProgress)).ask(1, permission("t")).submit("A");
    send_now(&mut app, 0).expect_sent("cancel s\nanswer 1: permission cancelled");
    app.end_turn(StopReason::EndTurn).expect_sent("call prompt \"A\"");
}

#[test]
fn send_now_without_a_turn_sends_immediately() {
    let mut app = TestCore::running();
    app.submit("A").submit("B").cancel().end_turn(StopReason::Cancelled).sent();
    send_now(&mut app, 1).expect_sent("call prompt \"B\"");
    assert_eq!(app.queue(), ["A"]);
}

#[test]
fn a_prompt_is_added_to_the_running_turn_once_the_agent_accepted_it() {
    let mut app = steering();
    app.update(says("working"));
    steer(&mut app, "also this");
    app.expect_sent("call steer \"also this\"");
    app.expect("ready · running · queue [\"also this\"]\nuser* \"go\"\nagent \"working\" …");
    app.reply(Ok(Reply::Steered { is_accepted: true })).update(says("ok"));
    app.expect("ready · running\nuser* \"go\"\nagent \"working\"\nuser* \"also this\"\nagent \"ok\" …");
    let recorded = |note: &Note| match note {
        Note::Event { turn: 1, record } => matches!(
            &**record,
            Record::Update(SessionUpdate::Block { role: Role::User, block: ContentBlock::Text(text), .. })
                if text.as_str() == "also this"
        ),
        _ => false,
    };
    assert!(app.saved.iter().any(recorded));
}

#[test]
fn the_echo_of_a_prompt_in_a_turn_is_not_shown_again() {
    let mut app = steering();
    steer(&mut app, "also this");
    app.reply(Ok(Reply::Steered { is_accepted: true }));
    app.update(text(Role::User, "also this")).update(says("ok"));
    app.expect("ready · running\nuser* \"go\"\nuser* \"also this\"\nagent \"ok\" …");
}

#[test]
fn a_prompt_that_came_too_late_for_the_turn_is_sent_as_the_next_one() {
    let mut app = steering();
    steer(&mut app, "also this");
    let tag = app.latest_call(CONN);
    let prompt = app.state.conns[&CONN].open_calls.values().next().cloned().unwrap();
    app.update(says("done")).sent();
    let end = Ok(Reply::TurnEnded { reason: StopReason::EndTurn, usage: None });
    app.agent(AgentEvent::Replied(prompt, end)).expect_sent("");
    app.agent(AgentEvent::Replied(tag, Ok(Reply::Steered { is_accepted: false })));
    app.expect_sent("call prompt \"also this\"");
    assert!(app.queue().is_empty());
}

#[test]
fn a_prompt_that_the_agent_rejects_during_a_turn_stays_queued() {
    let mut app = steering();
    steer(&mut app, "also this");
    app.sent();
    app.fail(-32601, "Method not found");
    assert_eq!(app.queue(), ["also this"]);
    assert_eq!(app.session().outbox.steered(), None);
    assert!(app.state.flash.as_ref().is_some_and(|text| text.starts_with("Not sent into the running turn")));
    app.update(says("done")).end_turn(StopReason::EndTurn).expect_sent("call prompt \"also this\"");
}

#[test]
fn nothing_is_sent_into_a_turn_of_an_agent_that_does_not_support_it() {
    let mut app = TestCore::running();
    steer(&mut app, "also this");
    app.expect_sent("");
    assert_eq!(app.queue(), ["also this"]);
}

#[test]
fn files_of_a_prompt_for_the_running_turn_are_read_first() {
    let mut app = steering();
    steer(&mut app, "see @a.rs");
    assert!(app.fx.iter().any(|effect| matches!(effect, Effect::PreparePrompt(_))));
    let prepared = PreparedPrompt { text: "see @a.rs".into(), ..PreparedPrompt::default() };
    app.prepared(prepared);
    app.expect_sent("call steer \"see @a.rs\"");
    assert_eq!(app.queue(), ["see @a.rs"]);
}

#[test]
fn a_prompt_that_the_turn_may_have_taken_is_not_sent_again_by_itself() {
    let mut app = steering();
    app.submit("later");
    steer(&mut app, "also this");
    app.sent();
    app.reply(Err(CallError::TimedOut(60)));
    assert!(
        app.state.flash.as_ref().is_some_and(|text| text.starts_with("The prompt may have been received."))
    );
    app.expect_sent("cancel call");
    app.update(says("done")).reply(Ok(Reply::TurnEnded { reason: StopReason::EndTurn, usage: None }));
    app.expect_sent("");
    assert_eq!((app.queue(), app.session().outbox.held()), (vec!["later", "also this"], 2));
}

#[test]
fn a_cancelled_prompt_that_requires_a_sign_in_is_not_resent() {
    let mut app = TestCore::running();
    app.cancel().end_turn(StopReason::Other("auth_required".into()));
    assert!(app.session().outbox.is_empty());
    app.expect("ready · idle\nuser* \"go\"\nend Cancelled");
}

#[test]
fn a_prompt_that_was_not_sent_is_first_in_the_queue_if_the_composer_is_in_use() {
    let mut app = TestCore::running();
    app.submit("later").draft("half");
    app.reply(Err(CallError::NotSent { error: "It is too large.".into() }));
    assert_eq!((app.queue(), app.session().outbox.held()), (vec!["go", "later"], 2));
    assert_eq!(app.session().draft, "half");
}

#[test]
fn the_queue_waits_behind_a_failed_prompt_and_continues_when_it_is_resent() {
    let mut app = TestCore::running();
    app.submit("later").fail(-32603, "overloaded").sent();
    assert_eq!((app.queue(), app.session().outbox.held()), (vec!["later"], 1));
    app.flow(|state, cx| operations::send_again(state, KEY, cx)).expect_sent("call prompt \"go\"");
    app.update(says("ok")).end_turn(StopReason::EndTurn).expect_sent("call prompt \"later\"");
}

#[test]
fn queued_prompts_stay_when_the_agent_dies_and_wait_for_the_user() {
    let mut app = steering();
    app.submit("A");
    steer(&mut app, "B");
    app.crash();
    assert_eq!((app.queue(), app.session().outbox.steered()), (vec!["A", "B"], None));
}

#[test]
fn queued_prompts_of_a_closed_session_are_on_hold_when_it_is_opened_again() {
    let mut app = TestCore::running();
    app.submit("A").submit("B");
    app.draft("half");
    let saved = Ok(saved_session(&mut app));
    let mut again = TestCore::ready();
    let opening = ArchiveOpening { uid: "u".into(), takes: true, at: None, saved, offers: None };
    again.tell(StoreNews::Opened(Box::new(opening)));
    let session = again.state.active_session().unwrap();
    let queue: Vec<&str> = session.outbox.queue().map(|prompt| prompt.text.as_str()).collect();
    assert_eq!((queue, session.draft.as_str()), (vec!["A", "B"], "half"));
    let is_prompt =
        |effect: &Effect| matches!(effect, Effect::Send(_, AgentCommand::Call(_, Call::Prompt(..))));
    assert!(!again.fx.iter().any(is_prompt), "nothing is sent without the user");
    assert!(session.outbox.free() == 0);
}
