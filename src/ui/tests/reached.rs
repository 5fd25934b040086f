//! What is said of an agent that is reached, not started, and of a session that is put away.

use super::fixture::*;
use crate::app::SessionPhase;
use crate::model::Remote;

#[test]
fn an_agent_behind_an_address_has_not_ended_and_an_archived_session_neither() {
    let mut stage = ready();
    let cause = || "It is away.".to_owned();
    stage.session(|session| session.phase = SessionPhase::Ended { cause: cause() });
    let shown = |stage: &Stage| text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)));
    assert!(shown(&stage).contains("has ended"));
    for conn in stage.state.conns.values_mut() {
        conn.spec.remote = Some(Remote { url: "https://agent.example/acp".into(), ..Remote::default() });
    }
    let drawn = shown(&stage);
    assert!(drawn.contains("is not connected") && drawn.contains("connects again"), "{drawn}");
    assert!(!drawn.contains("has ended"), "{drawn}");
    stage.session(|session| session.is_archived = true);
    let drawn = shown(&stage);
    assert!(drawn.contains("This session is archived") && drawn.contains("takes it back"), "{drawn}");
    assert!(!drawn.contains("is not connected"), "{drawn}");
}
