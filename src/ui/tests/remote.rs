//! Remote agents that are disconnected, and archived sessions.

use super::bench::TestApp;
use super::fixture::*;
use crate::core::tests::remote::far_spec;
use crate::core::tests::support::{ID, all_capabilities};
use crate::core::{Effect, Outbox, PromptState, SessionPhase};
use crate::model::{AgentSpec, Location, Remote, Target};
use crate::ui::Event;

#[test]
fn remote_agents_and_archived_sessions_are_not_shown_as_exited() {
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
fn reconnect_key_is_shown_on_the_smallest_screen() {
    let mut stage = ready();
    stage.session(|session| session.phase = SessionPhase::Ended { cause: "It is away.".to_owned() });
    for conn in stage.state.conns.values_mut() {
        conn.spec.remote = Some(Remote { url: "https://agent.example/acp".into(), ..Remote::default() });
    }
    let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (40, 12)));
    let line = drawn.lines().rfind(|line| line.contains("disconnected")).expect("the line is missing");
    assert!(line.contains("reconnect"), "{drawn}");
}

#[test]
fn resend_hint_warns_that_the_prompt_may_run_twice() {
    let mut stage = ready();
    for (may_have_arrived, has_warning) in [(true, true), (false, false)] {
        stage.session(|session| {
            session.outbox = Outbox::default();
            let id = session.outbox.enqueue("go".to_owned());
            session.outbox.set_state(id, PromptState::Failed { may_have_arrived });
        });
        let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (120, 40)));
        assert!(drawn.contains("resend"), "{drawn}");
        assert_eq!(drawn.contains("may run twice"), has_warning, "{drawn}");
        let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (40, 12)));
        assert!(
            drawn.lines().any(|line| line.contains("prompt failed") && line.ends_with("resend")),
            "{drawn}"
        );
        let drawn = text(&stage.draw(&mut stage.view(), &theme("dark"), (64, 20)));
        assert!(drawn.contains("resend"), "{drawn}");
    }
}

#[test]
fn a_remote_file_is_opened_only_by_the_editor_configured_for_it() {
    let mut app = TestApp::with_spec(far_spec());
    app.handshake(all_capabilities()).open(ID);
    let target = || Target::File(Location { path: "src/a.rs".into(), line: Some(3) });
    app.fx.clear();
    app.play(Event::Open(target()));
    assert!(!app.fx.iter().any(|effect| matches!(effect, Effect::OpenFile { .. })));
    assert!(
        app.state.flash.as_deref().is_some_and(|text| text.contains("on build")),
        "{:?}",
        app.state.flash
    );
    let editor = Some("code --remote ssh-remote+build {path}".to_owned());
    let mut app = TestApp::with_spec(AgentSpec { editor: editor.clone(), ..far_spec() });
    app.handshake(all_capabilities()).open(ID);
    app.play(Event::Open(target()));
    let location = Location { path: "/srv/shop/src/a.rs".into(), line: Some(3) };
    assert!(app.fx.contains(&Effect::OpenFile { location, folder: "/code/shop".into(), editor }));
}
