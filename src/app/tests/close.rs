//! Tests of closing, deleting and showing sessions, and of servers that an agent does not support.

use super::support::*;
use crate::app::lifecycle::operations;
use crate::model::*;

#[test]
fn acp_v1_a_closed_session_is_closed_by_the_agent_and_another_one_is_shown() {
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
fn the_last_session_cannot_be_closed() {
    let mut desk = TestApp::ready();
    desk.flow(|state, now, fx| operations::close_session(state, KEY, now, fx)).expect_sent("");
    assert_eq!(desk.state.sessions.len(), 1);
}

#[test]
fn acp_v1_session_close_is_sent_only_if_advertised() {
    let mut desk = TestApp::started();
    desk.handshake(AgentCapabilities::default()).open(ID);
    desk.flow(operations::new_session).open("two");
    desk.fx.clear();
    let two = desk.state.active;
    desk.flow(|state, now, fx| operations::close_session(state, two, now, fx)).expect_sent("");
    assert_eq!(desk.state.sessions.len(), 1);
}

#[test]
fn the_requests_of_a_closed_session_are_answered() {
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
fn acp_v1_a_deleted_session_leaves_the_list_once_the_agent_confirms() {
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
fn acp_v1_open_sessions_and_those_of_agents_without_delete_are_not_deleted() {
    let mut desk = TestApp::ready();
    desk.flow(|state, _, fx| operations::delete_session(state, ID.into(), fx)).expect_sent("");
    assert_eq!(desk.state.flash.as_deref(), Some("This session is open. Close it first."));
    let mut desk = TestApp::started();
    desk.handshake(AgentCapabilities::default()).open(ID);
    desk.fx.clear();
    desk.flow(|state, _, fx| operations::delete_session(state, "old".into(), fx)).expect_sent("");
}

#[test]
fn acp_v1_servers_not_supported_by_the_agent_are_reported() {
    let mut desk = TestApp::started();
    let web = McpServer::Http { name: "web".into(), url: "https://example.org".into(), headers: Vec::new() };
    desk.state.setup.mcp_servers = vec![web];
    let method =
        AuthMethod { id: "tool".into(), name: "Tool".into(), description: None, kind: AuthKind::Agent };
    let info = || AgentInfo { auth_methods: vec![method.clone()], ..AgentInfo::default() };
    desk.agent(AgentEvent::Ready(Box::new(info()))).fail(-32000, "sign in first");
    // A sign-in restarts the agent.
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
    assert_eq!(desk.session().transcript.items().len(), 3, "another agent has a separate notice");
}
