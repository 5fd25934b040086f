//! Tests of peculiarities of single agents: ids stored in the folder, sessions that end, prompts that cannot be sent.

use super::support::*;
use crate::app::lifecycle::operations;
use crate::app::*;
use crate::model::*;

fn connected(info: AgentInfo) -> TestApp {
    let mut desk = TestApp::started();
    desk.agent(AgentEvent::Started { pid: None }).agent(AgentEvent::Ready(Box::new(info)));
    desk
}

fn hinted() -> TestApp {
    let capabilities = AgentCapabilities { can_resume: true, ..AgentCapabilities::default() };
    let mut desk =
        connected(AgentInfo { capabilities, last_session: Some("old".into()), ..AgentInfo::default() });
    desk.expect_sent("connect 1 after 0 ms\ncall resume old");
    desk
}

#[test]
fn a_session_whose_id_is_found_in_the_folder_is_resumed() {
    let mut desk = hinted();
    desk.reply(Ok(Reply::Session(SessionReply::default())));
    assert_eq!(desk.session().id, Some("old".into()));
    desk.expect("ready · idle\nnotice Info: Session resumed. The agent does not send earlier messages.");
    // The next one was requested as a new session.
    desk.flow(operations::new_session);
    desk.expect_sent("call new");
}

#[test]
fn an_expired_session_of_the_folder_is_reported_and_replaced() {
    let mut desk = hinted();
    desk.fail(RpcError::RESOURCE_NOT_FOUND, "expired").expect_sent("call new");
    desk.open("t");
    desk.expect("ready · idle\nnotice Info: The last session has expired. A new session was started.");
    assert_eq!(desk.session().id, Some("t".into()));
}

/// The agent has responded, and replays nothing until all timeouts have passed.
fn nothing_comes(desk: &mut TestApp) -> &mut TestApp {
    for _ in 0..4 {
        desk.play(Event::Timer(TimerId::History(KEY)));
    }
    desk
}

fn mortal() -> TestApp {
    let capabilities =
        AgentCapabilities { can_load: true, dies_on_cancel: true, ..AgentCapabilities::default() };
    let mut desk = connected(AgentInfo { capabilities, ..AgentInfo::default() });
    desk.open(ID).submit("go").cancel();
    desk.fx.clear();
    desk
}

#[test]
fn a_session_that_ends_on_cancel_is_reopened_before_the_next_prompt() {
    let mut desk = mortal();
    desk.submit("next").end_turn(StopReason::Cancelled).expect_sent("call load s");
    desk.reply(Ok(Reply::Session(SessionReply::default())));
    nothing_comes(&mut desk).expect_sent("call prompt \"next\"");
}

#[test]
fn a_session_lost_after_a_resume_is_replaced_and_the_prompt_resent() {
    let mut desk = mortal();
    desk.end_turn(StopReason::Cancelled);
    desk.reply(Ok(Reply::Session(SessionReply { is_provisional: true, ..SessionReply::default() })));
    nothing_comes(&mut desk).fx.clear();
    desk.submit("next").expect_sent("call prompt \"next\"");
    desk.fail(-32600, "Session not found").expect_sent("call new");
    desk.open("t").expect_sent("");
    desk.flow(|state, now, fx| dialogs::on_action(state, Action::SendAgain, now, fx));
    desk.expect_sent("call prompt \"next\"");
    assert_eq!(digest(desk.session()).matches("\"next\"").count(), 1);
}

#[test]
fn a_prompt_that_cannot_be_sent_is_restored_to_the_composer() {
    let mut desk = TestApp::running();
    desk.reply(Err(CallError::NotSent { error: "Too long. Shorten it.".into() }));
    assert_eq!(desk.session().draft, "go");
    desk.expect("ready · idle\nuser* \"go\"\nend failed: Too long. Shorten it.");
}

#[test]
fn quirks_of_an_agent_are_listed_in_the_connection_details() {
    let mut desk = TestApp::ready();
    for text in ["Odd thing.", "Odd thing.", "Another."] {
        let kind = AnomalyKind::Dialect;
        desk.agent(AgentEvent::Anomaly(Anomaly { kind, text: text.into() }));
    }
    let conn = desk.conn();
    assert_eq!(desk.state.conns[&conn].info.as_ref().unwrap().quirks, ["Odd thing.", "Another."]);
}
