//! Tests of titles set by the user: sent to the agent immediately, when the session is opened, or not at all, and only
//! considered known once the agent has confirmed.

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

fn saved(owes_title: bool) -> RecordedSession {
    RecordedSession {
        head: SessionHead {
            title: Some("Mine".into()),
            has_own_title: true,
            owes_title,
            ..stored_head("k1", "old")
        },
        events: vec![RecordedEvent { at_ms: 0, turn: 1, record: typed("one") }],
        end_seq: 1,
        ..RecordedSession::default()
    }
}

/// A stored session is opened, and its agent resumes it.
fn reopened(capabilities: AgentCapabilities, owes_title: bool) -> TestCore {
    let mut app = TestCore::started();
    app.handshake(capabilities).open(ID).submit("go").end_turn(StopReason::EndTurn);
    app.fx.clear();
    let opening = ArchiveOpening {
        uid: "k1".into(),
        takes: true,
        at: None,
        saved: Ok(saved(owes_title)),
        offers: None,
    };
    app.tell(StoreNews::Opened(Box::new(opening)));
    app.reply(Ok(Reply::Session(SessionReply::default())));
    app
}

fn shown(app: &TestCore) -> &Session {
    app.state.active_session().unwrap()
}

/// The store jobs since the last call.
fn renamed(whose: Option<(&str, &str)>) -> StoreNews {
    let whose = whose.map(|(agent, id)| (agent.to_owned(), SessionId::from(id)));
    StoreNews::Renamed { uid: "k1".into(), title: "New".into(), result: Ok(whose) }
}

#[test]
fn a_pending_title_is_sent_when_the_session_is_open_and_recorded_as_sent() {
    let mut app = reopened(all_capabilities(), true);
    app.expect_sent("call load old\ncall title \"Mine\"");
    assert!(shown(&app).title_state.is_owed(), "the agent has not responded yet");
    let mut notes = Vec::new();
    let conn = app.conn();
    let tag = app.latest_call(conn);
    let replied = Event::Agent(conn, AgentEvent::Replied(tag, Ok(Reply::Done)));
    for effect in app.effects_after(replied) {
        if let Effect::Keep { notes: more, .. } = effect {
            notes.extend(more);
        }
    }
    assert!(!shown(&app).title_state.is_owed());
    let is_reported =
        |note: &Note| matches!(note, Note::Head(head) if !head.owes_title && head.has_own_title);
    assert!(notes.iter().any(is_reported), "{notes:?}");
}

#[test]
fn titles_the_agent_has_or_does_not_support_are_not_sent() {
    reopened(all_capabilities(), false).expect_sent("call load old");
    let takes_none = AgentCapabilities { can_set_title: false, ..all_capabilities() };
    let mut app = reopened(takes_none, true);
    app.expect_sent("call load old");
    assert!(shown(&app).title_state.is_owed(), "another agent, or a newer one, may support titles");
}

#[test]
fn a_title_set_before_the_session_is_open_waits_for_it() {
    let mut app = TestCore::started();
    app.handshake(all_capabilities());
    app.fx.clear();
    app.flow(|state, cx| operations::set_title(state, KEY, "Early".into(), cx)).expect_sent("");
    app.open(ID).expect_sent("call title \"Early\"");
    app.fail(-32603, "too early");
    assert!(app.session().title_state.is_owed());
    assert_eq!(
        app.state.flash.as_deref(),
        Some("Renamed in parlor only; the agent rejected the title: too early")
    );
    assert_eq!(app.session().title.as_deref(), Some("Early"));
}

#[test]
fn the_response_to_an_earlier_title_does_not_restore_it() {
    let mut app = TestCore::ready();
    app.flow(|state, cx| operations::set_title(state, KEY, "One".into(), cx));
    let conn = app.conn();
    let tag = app.latest_call(conn);
    app.flow(|state, cx| operations::set_title(state, KEY, "Two".into(), cx));
    app.play(Event::Agent(conn, AgentEvent::Replied(tag, Ok(Reply::Title("ONE".into())))));
    assert_eq!((app.session().title.as_deref(), app.session().title_state.is_owed()), (Some("Two"), true));
    app.reply(Ok(Reply::Title("TWO".into())));
    assert_eq!((app.session().title.as_deref(), app.session().title_state.is_owed()), (Some("TWO"), false));
}

#[test]
fn a_replacement_session_gets_the_title() {
    let forgets = AgentCapabilities { can_load: false, can_resume: false, ..all_capabilities() };
    let mut app = TestCore::started();
    app.handshake(forgets).open(ID).submit("go").end_turn(StopReason::EndTurn);
    app.flow(|state, cx| operations::set_title(state, KEY, "Mine".into(), cx)).reply(Ok(Reply::Done));
    assert!(!app.session().title_state.is_owed());
    app.crash();
    app.flow(|state, cx| operations::restart_agent(state, KEY, cx));
    app.handshake(forgets);
    app.fx.clear();
    app.open("other").expect_sent("call title \"Mine\"");
}

#[test]
fn the_title_of_a_stored_session_is_sent_if_its_agent_runs_in_another_tab() {
    let mut app = TestCore::ready();
    app.tell(renamed(Some(("fake", "old"))));
    app.expect_sent("call title \"New\"");
    app.reply(Ok(Reply::Done));
    let known = StoreJob::TitleKnown { uid: "k1".into(), title: "New".into() };
    assert_eq!(app.store_jobs(), [known]);
    assert_eq!(app.state.flash.as_deref(), Some("Renamed in parlor and in fake."));

    // An agent that does not have the session in memory may refuse; then it is updated when the session is opened.
    app.tell(renamed(Some(("fake", "old"))));
    app.fail(-32602, "unknown session");
    assert_eq!(app.store_jobs(), []);
    assert_eq!(
        app.state.flash.as_deref(),
        Some("Renamed in parlor only; fake rejected the title: unknown session")
    );
    for whose in [Some(("other", "old")), None] {
        app.fx.clear();
        app.tell(renamed(whose));
        app.expect_sent("");
        assert!(app.state.flash.as_deref().unwrap().contains("updated when the session is opened"));
    }
}
