//! Closing, deleting and showing sessions; servers that an agent does not take.

use super::support::*;
use crate::app::lifecycle::operations;
use crate::model::*;

#[test]
fn acp_v1_a_closed_session_is_told_to_the_agent_and_another_one_is_shown() {
    let mut desk = TestApp::ready();
    desk.flow(operations::new_session).open("two");
    let two = desk.state.active;
    desk.flow(|state, now, fx| operations::submit(state, two, "go".into(), now, fx));
    desk.fx.clear();
    desk.flow(|state, now, fx| operations::close_session(state, two, now, fx));
    desk.expect_sent("cancel two\ncall close two");
    assert_eq!((desk.state.active, desk.state.sessions.len()), (KEY, 1));
    desk.reply(Ok(Reply::Done)).expect("ready · idle");
}

#[test]
fn the_only_session_stays() {
    let mut desk = TestApp::ready();
    desk.flow(|state, now, fx| operations::close_session(state, KEY, now, fx)).expect_sent("");
    assert_eq!(desk.state.sessions.len(), 1);
}

#[test]
fn acp_v1_a_session_is_not_closed_with_an_agent_that_does_not_offer_it() {
    let mut desk = TestApp::started();
    desk.handshake(AgentCapabilities::default()).open(ID);
    desk.flow(operations::new_session).open("two");
    desk.fx.clear();
    let two = desk.state.active;
    desk.flow(|state, now, fx| operations::close_session(state, two, now, fx)).expect_sent("");
    assert_eq!(desk.state.sessions.len(), 1);
}

#[test]
fn what_a_closed_session_was_asked_is_answered() {
    let mut desk = TestApp::ready();
    desk.flow(operations::new_session).open("two");
    desk.ask(
        1,
        AgentRequest::Permission(PermissionRequest {
            session: Some("two".into()),
            tool: ToolCallPatch::new("t".into()),
            options: vec![option("yes", PermissionKind::AllowOnce)],
        }),
    );
    desk.fx.clear();
    let two = desk.state.active;
    desk.flow(|state, now, fx| operations::close_session(state, two, now, fx));
    desk.expect_sent("answer 1: permission cancelled\ncall close two");
}

#[test]
fn acp_v1_a_deleted_session_leaves_the_list_once_the_agent_agrees() {
    let mut desk = TestApp::ready();
    *desk.state.listed_mut() = vec![listed("old"), listed("older")];
    desk.flow(|state, _, fx| operations::delete_session(state, "old".into(), fx))
        .expect_sent("call delete old");
    desk.fail(-32603, "no");
    assert_eq!(desk.state.listed().len(), 2);
    assert_eq!(desk.state.flash.as_deref(), Some("Delete failed: no"));
    desk.flow(|state, _, fx| operations::delete_session(state, "old".into(), fx)).reply(Ok(Reply::Done));
    assert_eq!(desk.state.listed(), [listed("older")]);
}

#[test]
fn acp_v1_what_is_open_or_cannot_be_deleted_is_not_deleted() {
    let mut desk = TestApp::ready();
    desk.flow(|state, _, fx| operations::delete_session(state, ID.into(), fx)).expect_sent("");
    assert_eq!(desk.state.flash.as_deref(), Some("This session is open. Close it first."));
    let mut desk = TestApp::started();
    desk.handshake(AgentCapabilities::default()).open(ID);
    desk.fx.clear();
    desk.flow(|state, _, fx| operations::delete_session(state, "old".into(), fx)).expect_sent("");
}

#[test]
fn acp_v1_servers_that_the_agent_does_not_take_are_told() {
    let mut desk = TestApp::started();
    let web = McpServer::Http { name: "web".into(), url: "https://example.org".into(), headers: Vec::new() };
    desk.state.setup.mcp_servers = vec![web];
    let method =
        AuthMethod { id: "tool".into(), name: "Tool".into(), description: None, kind: AuthKind::Agent };
    let info = || AgentInfo { auth_methods: vec![method.clone()], ..AgentInfo::default() };
    desk.agent(AgentEvent::Ready(Box::new(info()))).fail(-32000, "sign in first");
    // A sign-in starts the agent again.
    desk.service(ServiceEvent::LoginDone(CONN, Ok(())));
    desk.agent(AgentEvent::Ready(Box::new(info()))).open(ID);
    desk.expect(
        r"
        ready · idle
        notice Info: MCP servers not passed to the agent: web (http)
        notice Warning: The agent requires sign-in.
        ",
    );
    let other = AgentSpec { name: "other".into(), command: "other".into(), ..AgentSpec::default() };
    desk.flow(|state, now, fx| operations::start_agent(state, KEY, other, now, fx));
    desk.handshake(AgentCapabilities::default()).open(ID);
    assert_eq!(desk.session().transcript.items().len(), 3, "another agent, another word");
}
