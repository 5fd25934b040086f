//! Tests of closing, deleting and showing sessions, and of servers that an agent does not support.

use super::support::*;
use crate::core::lifecycle::{close, operations};
use crate::model::*;

#[test]
fn acp_v1_a_closed_session_is_closed_by_the_agent_and_another_one_is_shown() {
    let mut app = TestCore::ready();
    app.flow(operations::new_session).open("two");
    let two = app.state.active;
    app.submit_in(two, "go");
    app.fx.clear();
    app.flow(|state, cx| operations::close_session(state, two, cx));
    app.expect_sent("cancel two\ncall close two");
    assert_eq!((app.state.active, app.state.sessions.len()), (KEY, 1));
    app.reply(Ok(Reply::Done)).expect("ready · idle");
}

#[test]
fn the_last_session_cannot_be_closed() {
    let mut app = TestCore::ready();
    app.flow(|state, cx| operations::close_session(state, KEY, cx)).expect_sent("");
    assert_eq!(app.state.sessions.len(), 1);
}

#[test]
fn acp_v1_session_close_is_sent_only_if_advertised() {
    let mut app = TestCore::started();
    app.handshake(AgentCapabilities::default()).open(ID);
    app.flow(operations::new_session).open("two");
    app.fx.clear();
    let two = app.state.active;
    app.flow(|state, cx| operations::close_session(state, two, cx)).expect_sent("");
    assert_eq!(app.state.sessions.len(), 1);
}

#[test]
fn the_requests_of_a_closed_session_are_answered() {
    let mut app = TestCore::ready();
    app.flow(operations::new_session).open("two");
    app.ask(1, permission_in(Some("two"), "t"));
    app.fx.clear();
    let two = app.state.active;
    app.flow(|state, cx| operations::close_session(state, two, cx));
    app.expect_sent("answer 1: permission cancelled\ncall close two");
}

#[test]
fn acp_v1_a_deleted_session_leaves_the_list_once_the_agent_confirms() {
    let mut app = TestCore::ready();
    *app.state.listed_mut() = vec![listed("old"), listed("older")];
    app.flow(|state, cx| close::delete_session(state, "old".into(), cx)).expect_sent("call delete old");
    app.fail(-32603, "no");
    assert_eq!(app.state.listed().len(), 2);
    assert_eq!(app.state.flash.as_deref(), Some("Delete failed: no"));
    app.flow(|state, cx| close::delete_session(state, "old".into(), cx)).reply(Ok(Reply::Done));
    assert_eq!(app.state.listed(), [listed("older")]);
}

#[test]
fn acp_v1_open_sessions_and_those_of_agents_without_delete_are_not_deleted() {
    let mut app = TestCore::ready();
    app.flow(|state, cx| close::delete_session(state, ID.into(), cx)).expect_sent("");
    assert_eq!(app.state.flash.as_deref(), Some("This session is open. Close it first."));
    let mut app = TestCore::started();
    app.handshake(AgentCapabilities::default()).open(ID);
    app.fx.clear();
    app.flow(|state, cx| close::delete_session(state, "old".into(), cx)).expect_sent("");
}

#[test]
fn acp_v1_servers_not_supported_by_the_agent_are_reported() {
    let mut app = TestCore::started();
    let web = McpServer::Http { name: "web".into(), url: "https://example.org".into(), headers: Vec::new() };
    app.state.setup.mcp_servers = vec![web];
    let info = || signs_in(vec![("tool", AuthKind::Agent)]);
    app.agent(AgentEvent::Ready(Box::new(info()))).fail(-32000, "sign in first");
    // A sign-in restarts the agent.
    app.service(ServiceEvent::LoginDone(CONN, Ok(())));
    app.agent(AgentEvent::Ready(Box::new(info()))).open(ID);
    app.expect(
        r"
        ready · idle
        notice Info: MCP servers not passed to the agent: web (http)
        notice Warning: The agent requires sign-in.
        ",
    );
    let other = spec("other");
    app.flow(|state, cx| operations::start_agent(state, KEY, other, cx));
    app.handshake(AgentCapabilities::default()).open(ID);
    assert_eq!(app.session().transcript.items().len(), 3, "another agent has a separate notice");
}
