//! What is said of an agent that is reached, not started, and of a session that is put away.

use super::fixture::*;
use crate::app::{FailedPrompt, SessionPhase};
use crate::model::Remote;

#[test]
fn an_agent_behind_an_address_has_not_ended_and_an_archived_session_neither() {
    let mut stage = ready();
    let cause = || "It is away.".to_owned();
    stage.session(|session| session.phase = SessionPhase::Ended { cause: cause() });
    let shown = |stage: &Stage| text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)));
    assert!(shown(&stage).contains("exited"));
    for conn in stage.state.conns.values_mut() {
        conn.spec.remote = Some(Remote { url: "https://agent.example/acp".into(), ..Remote::default() });
    }
    let drawn = shown(&stage);
    assert!(drawn.contains("disconnected") && drawn.contains("reconnect"), "{drawn}");
    assert!(!drawn.contains("exited"), "{drawn}");
    stage.session(|session| session.is_archived = true);
    let drawn = shown(&stage);
    assert!(drawn.contains("Session archived") && drawn.contains("unarchive"), "{drawn}");
    assert!(!drawn.contains("disconnected"), "{drawn}");
}

#[test]
fn the_key_that_connects_again_is_named_on_the_smallest_screen() {
    let mut stage = ready();
    stage.session(|session| session.phase = SessionPhase::Ended { cause: "It is away.".to_owned() });
    for conn in stage.state.conns.values_mut() {
        conn.spec.remote = Some(Remote { url: "https://agent.example/acp".into(), ..Remote::default() });
    }
    let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (40, 12)));
    let line = drawn.lines().rfind(|line| line.contains("disconnected")).expect("it is said");
    assert!(line.contains("reconnect"), "{drawn}");
}

#[test]
fn the_offer_to_send_a_prompt_again_says_that_it_may_run_twice() {
    let mut stage = ready();
    for (may_have_arrived, is_said) in [(true, true), (false, false)] {
        let prompt = FailedPrompt { text: "go".to_owned(), may_have_arrived };
        stage.session(|session| session.failed_prompt = Some(prompt));
        let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)));
        assert!(drawn.contains("resend"), "{drawn}");
        assert_eq!(drawn.contains("may run twice"), is_said, "{drawn}");
        let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (40, 12)));
        assert!(
            drawn.lines().any(|line| line.contains("prompt failed") && line.ends_with("resend")),
            "{drawn}"
        );
        let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (64, 20)));
        assert!(drawn.contains("resend"), "{drawn}");
    }
}
