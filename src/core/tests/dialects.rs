//! Tests of peculiarities of single agents: ids stored in the folder, sessions that end, prompts that cannot be sent.

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

fn connected(info: AgentInfo) -> TestCore {
    let mut app = TestCore::started();
    app.agent(AgentEvent::Started { pid: None }).agent(AgentEvent::Ready(Box::new(info)));
    app
}

fn hinted() -> TestCore {
    let capabilities = AgentCapabilities { can_resume: true, ..AgentCapabilities::default() };
    let mut app =
        connected(AgentInfo { capabilities, last_session: Some("old".into()), ..AgentInfo::default() });
    app.expect_sent("connect 1 after 0 ms\ncall resume old");
    app
}

#[test]
fn a_session_whose_id_is_found_in_the_folder_is_resumed() {
    let mut app = hinted();
    app.reply(Ok(Reply::Session(SessionReply::default())));
    assert_eq!(app.session().id, Some("old".into()));
    app.expect("ready · idle\nnotice Info: Session resumed. The agent does not send earlier messages.");
    // The next one was requested as a new session.
    app.flow(operations::new_session);
    app.expect_sent("call new");
}

#[test]
fn an_expired_session_of_the_folder_is_reported_and_replaced() {
    let mut app = hinted();
    app.fail(RpcError::RESOURCE_NOT_FOUND, "expired").expect_sent("call new");
    app.open("t");
    app.expect("ready · idle\nnotice Info: The last session has expired. A new session was started.");
    assert_eq!(app.session().id, Some("t".into()));
}

/// The agent has responded, and replays nothing until all timeouts have passed.
fn nothing_comes(app: &mut TestCore) -> &mut TestCore {
    for _ in 0..4 {
        app.play(Event::Timer(TimerId::History(KEY)));
    }
    app
}

fn mortal() -> TestCore {
    let capabilities =
        AgentCapabilities { can_load: true, dies_on_cancel: true, ..AgentCapabilities::default() };
    let mut app = connected(AgentInfo { capabilities, ..AgentInfo::default() });
    app.open(ID).submit("go").cancel();
    app.fx.clear();
    app
}

#[test]
fn a_session_that_ends_on_cancel_is_reopened_before_the_next_prompt() {
    let mut app = mortal();
    app.submit("next").end_turn(StopReason::Cancelled).expect_sent("call load s");
    app.reply(Ok(Reply::Session(SessionReply::default())));
    nothing_comes(&mut app).expect_sent("call prompt \"next\"");
}

#[test]
fn a_session_lost_after_a_resume_is_replaced_and_the_prompt_resent() {
    let mut app = mortal();
    app.end_turn(StopReason::Cancelled);
    app.reply(Ok(Reply::Session(SessionReply { is_provisional: true, ..SessionReply::default() })));
    nothing_comes(&mut app).fx.clear();
    app.submit("next").expect_sent("call prompt \"next\"");
    app.fail(-32600, "Session not found").expect_sent("call new");
    app.open("t").expect_sent("");
    app.flow(|state, cx| operations::send_again(state, KEY, cx));
    app.expect_sent("call prompt \"next\"");
    assert_eq!(digest(app.session()).matches("\"next\"").count(), 1);
}

#[test]
fn a_prompt_that_cannot_be_sent_is_restored_to_the_composer() {
    let mut app = TestCore::running();
    app.reply(Err(CallError::NotSent { error: "Too long. Shorten it.".into() }));
    assert_eq!(app.session().draft, "go");
    app.expect("ready · idle\nuser* \"go\"\nend failed: Too long. Shorten it.");
}

#[test]
fn quirks_of_an_agent_are_listed_in_the_connection_details() {
    let mut app = TestCore::ready();
    for text in ["Odd thing.", "Odd thing.", "Another."] {
        let kind = AnomalyKind::Dialect;
        app.agent(AgentEvent::Anomaly(Anomaly { kind, text: text.into() }));
    }
    let conn = app.conn();
    assert_eq!(app.state.conns[&conn].info.as_ref().unwrap().quirks, ["Odd thing.", "Another."]);
}
