//! What single systems do to sessions: ids kept in the folder, sessions that die, prompts that cannot be sent.

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
fn a_session_whose_id_lies_in_the_folder_goes_on() {
    let mut desk = hinted();
    desk.reply(Ok(Reply::Session(SessionReply::default())));
    assert_eq!(desk.session().id, Some("old".into()));
    desk.expect("ready · idle\nnotice Info: Session resumed. The agent does not send earlier messages.");
    // The next one is the user's wish for a new session.
    desk.flow(operations::new_session);
    desk.expect_sent("call new");
}

#[test]
fn a_session_in_the_folder_that_has_expired_is_told_and_a_new_one_begins() {
    let mut desk = hinted();
    desk.fail(RpcError::RESOURCE_NOT_FOUND, "expired").expect_sent("call new");
    desk.open("t");
    desk.expect("ready · idle\nnotice Info: The last session has expired. A new session was started.");
    assert_eq!(desk.session().id, Some("t".into()));
}

/// The agent has answered, and replays nothing for as long as that is waited for.
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
fn a_session_that_dies_on_cancel_is_taken_up_again_before_the_next_prompt() {
    let mut desk = mortal();
    desk.submit("next").end_turn(StopReason::Cancelled).expect_sent("call load s");
    desk.reply(Ok(Reply::Session(SessionReply::default())));
    nothing_comes(&mut desk).expect_sent("call prompt \"next\"");
}

#[test]
fn a_session_that_was_not_taken_up_after_all_is_replaced_and_the_prompt_sent_again() {
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
fn a_prompt_that_cannot_be_sent_comes_back_to_the_composer() {
    let mut desk = TestApp::running();
    desk.reply(Err(CallError::NotSent { error: "Too long. Shorten it.".into() }));
    assert_eq!(desk.session().draft, "go");
    desk.expect("ready · idle\nuser* \"go\"\nend failed: Too long. Shorten it.");
}

#[test]
fn what_is_learned_of_an_agent_stands_in_the_details_of_its_connection() {
    let mut desk = TestApp::ready();
    for text in ["Odd thing.", "Odd thing.", "Another."] {
        let kind = AnomalyKind::Dialect;
        desk.agent(AgentEvent::Anomaly(Anomaly { kind, text: text.into() }));
    }
    let conn = desk.conn();
    assert_eq!(desk.state.conns[&conn].info.as_ref().unwrap().quirks, ["Odd thing.", "Another."]);
}
