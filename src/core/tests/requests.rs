//! Tests of permissions and elicitations.

use super::support::*;
use crate::core::*;
use crate::model::*;

#[test]
fn requests_are_queued_and_each_starts_with_a_new_view() {
    let mut app = TestCore::running();
    app.ask(1, permission("a")).wait(3).ask(2, permission("b"));
    app.expect(
        r#"
        ready · running · 2 asks
        user* "go"
        tool a Pending ""
        tool b Pending ""
        "#,
    );
    app.choose(Some(0)).choose(Some(1)).expect_sent("answer 1: selected yes\nanswer 2: selected no");
    app.expect(
        r#"
        ready · running
        user* "go"
        tool a Pending "" [the yes: allowed] (hidden)
        tool b Pending "" [the no: refused]
        "#,
    );
}

#[test]
fn options_are_chosen_by_index_not_by_kind() {
    let mut app = TestCore::running();
    let options = vec![
        option("accept", PermissionKind::AllowOnce),
        option("always", PermissionKind::AllowAlways),
        option("risk", PermissionKind::AllowOnce),
    ];
    let tool = ToolCallPatch::new("t".into());
    app.ask(1, AgentRequest::Permission(PermissionRequest { session: Some(ID.into()), tool, options }));
    app.choose(Some(7)).expect_sent("");
    app.choose(Some(2)).expect_sent("answer 1: selected risk");
}

#[test]
fn a_rejection_uses_the_agents_reject_option_or_cancels() {
    let mut app = TestCore::running();
    app.ask(1, permission("a")).choose(None).expect_sent("answer 1: selected no");
    let empty = PermissionRequest {
        session: Some(ID.into()),
        tool: ToolCallPatch::new("b".into()),
        options: Vec::new(),
    };
    app.ask(2, AgentRequest::Permission(empty)).choose(None).expect_sent("answer 2: permission cancelled");
}

#[test]
fn acp_v1_a_cancelled_request_leaves_the_queue_and_is_still_answered() {
    let mut app = TestCore::running();
    app.ask(1, permission("a")).ask(2, question()).ask(3, permission("c"));
    app.agent(AgentEvent::RequestWithdrawn(RequestId(1))).agent(AgentEvent::RequestWithdrawn(RequestId(2)));
    app.expect_sent("answer 1: permission cancelled\nanswer 2: elicitation cancelled");
    assert_eq!(app.session().requests.len(), 1);
    app.agent(AgentEvent::RequestWithdrawn(RequestId(1))).expect_sent("");
    app.choose(Some(0)).expect_sent("answer 3: selected yes");
}

#[test]
fn nothing_is_answered_after_the_connection_closed() {
    let mut app = TestCore::running();
    app.ask(1, permission("a")).ask(2, question());
    app.crash().choose(Some(0));
    app.give(UserAnswer::Decline);
    app.expect_sent("connect 2 after 500 ms");
    assert!(app.session().requests.is_empty());
}

#[test]
fn a_refusal_outside_a_turn_closes_the_call() {
    let mut app = TestCore::ready();
    app.update(call("t", ToolStatus::Pending)).ask(1, permission("t")).choose(Some(1));
    app.expect("ready · idle\ntool t Cancelled? \"do t\" [the no: refused]");
}

#[test]
fn an_answer_that_a_request_does_not_have_changes_nothing() {
    let mut app = TestCore::running();
    app.ask(1, permission("a")).ask(2, question());
    app.give(UserAnswer::Values(Vec::new())).give(UserAnswer::Option(9)).expect_sent("");
    app.give(UserAnswer::Option(0)).expect_sent("answer 1: selected yes");
    app.give(UserAnswer::Option(0)).expect_sent("");
    app.give(UserAnswer::Dismiss).expect_sent("answer 2: elicitation cancelled");
}

#[test]
fn answers_to_questions_are_recorded() {
    let mut app = TestCore::running();
    let field = FormField {
        key: "which".into(),
        title: "Which".into(),
        description: None,
        is_required: true,
        kind: FieldKind::Boolean { default: None },
    };
    let form = AgentRequest::Elicitation(ElicitationRequest {
        session: Some(ID.into()),
        tool: None,
        message: "Which one?".into(),
        mode: ElicitationMode::Form {
            title: None,
            description: None,
            fields: vec![field.clone(), FormField { key: "n".into(), title: "Count".into(), ..field }],
        },
    });
    app.ask(1, form).ask(2, question()).ask(3, question());
    let values = vec![
        ("which".to_owned(), FieldValue::Bool(true)),
        ("n".to_owned(), FieldValue::Texts(vec!["a".into(), "b".into()])),
    ];
    app.choose(Some(0)).expect_sent("");
    app.give(UserAnswer::Values(values)).give(UserAnswer::Decline).give(UserAnswer::Dismiss);
    app.expect_sent("answer 1: accepted\nanswer 2: declined\nanswer 3: elicitation cancelled");
    app.expect(
        r#"
        ready · running
        user* "go"
        answered "Which one?" "accepted: Which: yes, Count: a, b"
        answered "Which one?" "declined"
        answered "Which one?" "cancelled"
        "#,
    );
}

fn page() -> AgentRequest {
    AgentRequest::Elicitation(ElicitationRequest {
        session: Some(ID.into()),
        tool: None,
        message: "Visit the page.".into(),
        mode: ElicitationMode::Url { id: "p".into(), url: "https://example.org/".into() },
    })
}

#[test]
fn acp_v1_an_address_opens_only_after_the_user_confirmed() {
    let mut app = TestCore::running();
    app.ask(1, page()).expect_sent("");
    app.give(UserAnswer::Option(0));
    app.expect_sent("url https://example.org/\nanswer 1: accepted");
    app.agent(AgentEvent::ElicitationComplete("p".into())).expect_sent("");
}

#[test]
fn an_address_handled_elsewhere_closes_its_question() {
    let mut app = TestCore::running();
    app.ask(1, page()).agent(AgentEvent::ElicitationComplete("other".into())).expect_sent("");
    app.agent(AgentEvent::ElicitationComplete("p".into()));
    app.expect_sent("answer 1: elicitation cancelled");
    assert!(app.session().requests.is_empty());
}

#[test]
fn a_subagents_question_is_queued_in_its_top_level_session() {
    let mut app = TestCore::running();
    app.update(SessionUpdate::Subagent(SubagentPatch {
        session: "child".into(),
        title: Patch::Set("look".into()),
        description: Patch::Keep,
        state: Patch::Keep,
        can_cancel: Patch::Keep,
    }));
    app.agent(AgentEvent::Update("child".into(), call("t", ToolStatus::Pending)));
    let request = PermissionRequest {
        session: Some("child".into()),
        tool: ToolCallPatch::new("t".into()),
        options: vec![option("yes", PermissionKind::AllowOnce)],
    };
    app.ask(1, AgentRequest::Permission(request.clone()));
    app.expect(
        r#"
        ready · running · 1 asks
        user* "go"
        subagent child key Some(2) "look" None
        tool t Pending "do t"
        "#,
    );
    app.choose(Some(0)).expect_sent("answer 1: selected yes");
    assert_eq!(
        digest(&app.state.sessions[&SessionKey(2)]),
        "ready · idle\ntool t Pending \"do t\" [the yes: allowed]"
    );
    assert!(app.session().transcript.items().last().is_some_and(Item::is_hidden));
    app.ask(2, AgentRequest::Permission(request)).cancel();
    app.expect_sent("cancel s\nanswer 2: permission cancelled");
}

#[test]
fn a_request_id_is_answered_once() {
    let mut app = TestCore::running();
    app.ask(1, permission("a")).ask(1, permission("a"));
    assert_eq!(app.session().requests.len(), 1);
}
