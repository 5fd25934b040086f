//! Tests of the inbox: its order, answers in place, and that no answer goes to another request.

use super::bench::TestApp;
use crate::config::keymap::Context;
use crate::core;
use crate::core::state::inbox::{count_after, waiting};
use crate::core::state::tab;
use crate::core::state::unseen::WaitingFor;
use crate::core::tests::support::*;
use crate::core::*;
use crate::model::*;
use crate::ui::Event;
use crate::ui::dialogs;
use crate::ui::dialogs::InboxDialog;

fn of_two(tool: &str) -> AgentRequest {
    permission_in(Some("two"), tool)
}

/// Two tabs, the first active; returns the second one's session and connection.
fn app() -> (TestApp, SessionKey, ConnId) {
    let (mut app, key, conn) = TestApp::two_tabs();
    app.act(Action::ShowTab(1));
    app.fx.clear();
    (app, key, conn)
}

impl TestApp {
    fn other_requests(&mut self, conn: ConnId, request_id: u64, request: AgentRequest) -> &mut Self {
        self.wait(1)
            .play(core::Event::Agent(conn, AgentEvent::Request(RequestId(request_id), Box::new(request))))
    }

    /// A key after a pause.
    fn key(&mut self, action: Action) -> &mut Self {
        self.wait(2).quick_key(action)
    }

    /// Expands the selected request and answers it, each after a pause.
    fn answer_whole(&mut self, position: u8) -> &mut Self {
        self.key(Action::FullScreen).wait(2).answer(position)
    }

    fn quick_key(&mut self, action: Action) -> &mut Self {
        self.play(Event::Input).act(action)
    }

    fn marked(&self) -> Option<&WaitingFor> {
        self.layers.top::<InboxDialog>()?.marked.as_ref().map(|(_, what)| what)
    }

    fn is_whole(&self) -> bool {
        self.layers.top::<InboxDialog>().is_some_and(|dialog| dialog.is_whole)
    }
}

#[test]
fn all_tabs_are_listed_with_the_oldest_first() {
    let (mut app, key, conn) = app();
    app.other_requests(conn, 1, of_two("a"));
    app.wait(1).ask(2, permission("b"));
    app.other_requests(conn, 3, of_two("c"));
    app.wait(1).submit_in(key, "go");
    app.wait(1).reply_to(conn, Err(CallError::Agent(RpcError::new(-32603, "out of tokens"))));
    let listed: Vec<_> = waiting(&app.state).into_iter().map(|row| (row.key, row.what)).collect();
    assert_eq!(
        listed,
        [
            (key, WaitingFor::Ask(RequestId(1))),
            (KEY, WaitingFor::Ask(RequestId(2))),
            (key, WaitingFor::Ask(RequestId(3))),
            (key, WaitingFor::Failure("out of tokens".into())),
        ]
    );
    assert_eq!(count_after(&app.state), (2, 1));
    app.key(Action::ShowTab(2));
    assert_eq!(count_after(&app.state), (1, 0), "the failure was seen");
}

#[test]
fn a_turn_that_stopped_early_is_listed_with_its_reason() {
    for (reason, reason_text) in [
        (StopReason::MaxTokens, "Token limit reached"),
        (StopReason::MaxTurnRequests, "Request limit reached"),
        (StopReason::Refusal, "The agent refused to continue"),
        (StopReason::Other("nap".into()), "Turn finished: nap"),
    ] {
        let (mut app, key, conn) = app();
        app.submit_in(key, "go");
        app.wait(1).reply_to(conn, Ok(Reply::TurnEnded { reason, usage: None }));
        let listed: Vec<_> = waiting(&app.state).into_iter().map(|row| (row.key, row.what)).collect();
        assert_eq!(listed, [(key, WaitingFor::Stopped(reason_text.into()))]);
        assert_eq!(tab::mark(&app.state, &app.state.sessions[&key]), TabMark::Failed);
        assert_eq!(app.state.flash.as_deref(), Some(format!("Tab 2: turn stopped: {reason_text}.").as_str()));
    }
}

#[test]
fn a_permission_of_an_inactive_tab_is_answered_in_place_and_once() {
    let (mut app, key, conn) = app();
    app.other_requests(conn, 1, of_two("a")).other_requests(conn, 2, of_two("b"));
    app.key(Action::OpenAttention);
    // A digit in the list only expands the request.
    app.quick_key(Action::Choose(1)).answer(1).expect_sent("");
    app.wait(2).answer(1).expect_sent("answer 1: selected yes");
    assert_eq!((app.state.active, app.marked()), (KEY, Some(&WaitingFor::Ask(RequestId(2)))));
    // The same keys again: the entry that moved under the selection is not answered.
    app.quick_key(Action::Choose(1)).quick_key(Action::Accept).expect_sent("");
    app.wait(2).answer(2).expect_sent("answer 2: selected no");
    assert_eq!((app.marked(), app.state.sessions[&key].requests.len()), (None, 0));
    app.key(Action::Choose(1)).key(Action::Accept).expect_sent("");
    assert_eq!((app.layers.len(), app.state.active), (0, KEY), "an empty inbox closes");
}

#[test]
fn a_key_for_a_cancelled_request_answers_no_other() {
    let (mut app, _, conn) = app();
    app.other_requests(conn, 1, of_two("a")).other_requests(conn, 2, of_two("b"));
    app.key(Action::OpenAttention).wait(2);
    app.play(core::Event::Agent(conn, AgentEvent::RequestWithdrawn(RequestId(1))));
    app.fx.clear();
    app.quick_key(Action::Choose(1)).expect_sent("");
    assert_eq!(app.marked(), Some(&WaitingFor::Ask(RequestId(2))));
}

#[test]
fn new_entries_do_not_move_the_selection() {
    let (mut app, _, conn) = app();
    app.other_requests(conn, 1, of_two("a"));
    app.key(Action::OpenAttention).wait(2);
    app.ask(2, permission("b")).other_requests(conn, 3, of_two("c"));
    assert_eq!(app.marked(), Some(&WaitingFor::Ask(RequestId(1))));
    app.answer_whole(1).expect_sent("answer 1: selected yes");
}

#[test]
fn arrow_keys_move_the_selection_and_enter_activates_the_tab() {
    let (mut app, key, conn) = app();
    app.ask(1, permission("a")).other_requests(conn, 2, of_two("b"));
    app.key(Action::OpenAttention).key(Action::Down);
    assert_eq!(app.marked(), Some(&WaitingFor::Ask(RequestId(2))));
    app.quick_key(Action::Accept).expect_sent("draft \"\"");
    assert_eq!((app.state.active, app.layers.len()), (key, 0));
    // There it is the dialog of the tab, with a new grace period.
    app.answer(1).expect_sent("");
    app.wait(2).answer(1).expect_sent("answer 2: selected yes");
    assert_eq!(app.session().requests.len(), 1);
}

#[test]
fn an_expanded_request_has_the_keys_of_its_dialog_and_escape_returns() {
    let (mut app, _, conn) = app();
    app.other_requests(conn, 1, of_two("a"));
    app.key(Action::OpenAttention).key(Action::FullScreen);
    assert!(app.is_whole());
    app.key(Action::Escape).expect_sent("");
    assert!(!app.is_whole(), "it was not rejected");
    app.key(Action::FullScreen).key(Action::Down).key(Action::Accept).expect_sent("answer 1: selected no");
    assert_eq!(app.marked(), None);
}

#[test]
fn a_question_is_answered_in_its_tab_only() {
    let (mut app, key, conn) = app();
    let AgentRequest::Elicitation(asked) = question() else { panic!("it is a question") };
    let asked = AgentRequest::Elicitation(ElicitationRequest { session: Some("two".into()), ..asked });
    app.other_requests(conn, 1, asked).key(Action::OpenAttention);
    app.key(Action::Choose(1)).key(Action::FullScreen).key(Action::Choose(1)).expect_sent("");
    app.key(Action::Accept);
    assert_eq!((app.state.active, dialogs::focus(&app)), (key, Context::Form));
}

#[test]
fn the_dialog_of_the_active_tab_is_unchanged_after_the_inbox_was_open() {
    let (mut app, _, conn) = app();
    app.ask(1, permission("a")).other_requests(conn, 2, of_two("b"));
    app.key(Action::Down).key(Action::OpenAttention).key(Action::Down).answer_whole(2);
    app.expect_sent("answer 2: selected no").key(Action::Escape);
    assert_eq!((app.layers.len(), dialogs::focus(&app)), (0, Context::Permission));
    // It was shown again without a key press.
    app.answer(1).expect_sent("");
    app.wait(2).answer(1).expect_sent("answer 1: selected yes");
}

#[test]
fn sign_ins_and_ended_turns_are_listed_until_they_are_handled() {
    let (mut app, key, conn) = app();
    app.submit_in(key, "go");
    let refused = RpcError::new(RpcError::AUTH_REQUIRED, "auth required");
    app.reply_to(conn, Err(CallError::Agent(refused)));
    let whats = |app: &TestApp| waiting(&app.state).into_iter().map(|row| row.what).collect::<Vec<_>>();
    assert!(whats(&app).contains(&WaitingFor::SignIn), "{:?}", whats(&app));
    app.key(Action::ShowTab(2));
    assert_eq!(whats(&app), [WaitingFor::SignIn], "looking at it does not sign in");
}
