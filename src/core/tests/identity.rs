//! Requests belong to the session that they name; nothing is guessed.

use super::support::*;
use crate::core::lifecycle::operations;
use crate::model::*;

fn write(session: Option<&str>) -> AgentRequest {
    AgentRequest::WriteFile { session: session.map(Into::into), path: "a.txt".into(), content: "x".into() }
}

/// Two sessions of one connection, the first of which works.
fn two_sessions() -> (TestCore, SessionKey) {
    let mut app = TestCore::ready();
    app.submit("go");
    let key = app.open_tab("/code/shop", fake());
    app.open("two");
    app.flow(|state, _| operations::activate(state, KEY));
    app.fx.clear();
    (app, key)
}

#[test]
fn requests_of_sessions_that_are_not_open_are_refused() {
    for name in ["closed", ""] {
        let (mut app, key) = two_sessions();
        let name = Some(name).filter(|name| !name.is_empty());
        app.ask(1, permission_in(name, "t")).expect_sent("answer 1: permission cancelled");
        assert_eq!(
            app.state.flash.as_deref(),
            Some("fake: refused a request for a session that is not open.")
        );
        app.ask(2, write(name)).expect_sent("answer 2: error -32002");
        let command = TerminalCommand { command: "ls".into(), ..TerminalCommand::default() };
        let create = AgentRequest::TerminalCreate { session: name.map(Into::into), command };
        app.ask(3, create).expect_sent("answer 3: error -32002");
        let waits = |key| app.state.sessions[&key].requests.len();
        assert_eq!((waits(KEY), waits(key)), (0, 0));
    }
}

#[test]
fn a_request_without_a_session_belongs_to_the_only_one() {
    let mut app = TestCore::ready();
    app.submit("go").ask(1, permission_in(None, "t"));
    assert_eq!(app.session().requests.len(), 1);
}

#[test]
fn requests_of_a_session_that_is_being_created_wait_for_it() {
    let mut app = TestCore::ready();
    app.submit("go");
    let key = app.open_tab("/code/shop", fake());
    app.fx.clear();
    app.ask(1, permission_in(Some("two"), "t")).ask(2, permission_in(Some("two"), "t")).expect_sent("");
    app.agent(AgentEvent::RequestWithdrawn(RequestId(2))).expect_sent("answer 2: permission cancelled");
    app.open("two").expect_sent("");
    let waits = |key: SessionKey| -> Vec<u64> {
        app.state.sessions[&key].requests.iter().map(|open| open.request_id.0).collect()
    };
    assert_eq!((waits(KEY), waits(key)), (vec![], vec![1]));
}

#[test]
fn requests_wait_no_longer_than_their_session_is_created() {
    let mut app = TestCore::ready();
    app.submit("go");
    app.open_tab("/code/shop", fake());
    app.fx.clear();
    for number in 1..=80 {
        app.ask(number, permission_in(Some("two"), "t"));
    }
    // Sixty-four wait, the others were refused.
    app.expect_sent(
        &(65..=80)
            .map(|number| format!("answer {number}: permission cancelled"))
            .collect::<Vec<_>>()
            .join("\n"),
    );
    app.open("three");
    app.expect_sent(
        &(1..=64)
            .map(|number| format!("answer {number}: permission cancelled"))
            .collect::<Vec<_>>()
            .join("\n"),
    );
    assert!(app.state.sessions.values().all(|session| session.requests.is_empty()));
}
