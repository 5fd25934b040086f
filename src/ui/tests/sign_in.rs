//! Tests of signing in: by the agent, by its command, by variables.

use super::bench::TestApp;
use crate::core::lifecycle::operations;
use crate::core::tests::support::*;
use crate::core::*;
use crate::model::*;
use crate::ui::Event;
use crate::ui::dialogs::LineDialog;

#[test]
fn a_typed_key_is_passed_with_the_method_that_reads_one() {
    let mut app = TestApp::started();
    app.agent(AgentEvent::Ready(Box::new(signs_in(vec![("api", AuthKind::ApiKey)]))));
    app.fail(RpcError::AUTH_REQUIRED, "no").expect_sent("connect 1 after 0 ms\ncall new");
    app.wait(5);
    while !app.layers.is_empty() && app.layers.top::<LineDialog>().is_none() {
        app.act(Action::Accept).wait(5);
    }
    let Some(dialog) = app.layers.top::<LineDialog>() else { panic!("{:?}", app.layers) };
    assert!(dialog.is_secret && dialog.help.contains("does not save"), "{dialog:?}");
    app.play(Event::Line(LineEdit::Insert("sk-1".to_owned()))).act(Action::Accept);
    app.expect_sent("call authenticate api key sk-1");
}

#[test]
fn a_pending_sign_in_can_be_cancelled() {
    let mut app = TestApp::started();
    app.agent(AgentEvent::Started { pid: None });
    app.agent(AgentEvent::Ready(Box::new(signs_in(vec![("web", AuthKind::Agent)]))));
    app.fail(-32000, "sign in first");
    app.layers.clear();
    app.flow(|state, cx| operations::sign_in(state, CONN, "web", Vec::new(), cx));
    app.fx.clear();
    app.act(Action::Escape);
    let is_called_off = |effect: &Effect| matches!(effect, Effect::Send(_, AgentCommand::CancelCall(_)));
    assert!(app.fx.iter().any(is_called_off), "{:?}", app.fx);
    assert_eq!(operations::running_sign_in(&app.state, CONN), None);
    assert_eq!(app.session().phase, SessionPhase::NeedsSignIn);
}

#[test]
fn a_remote_agent_cannot_run_a_sign_in_command() {
    for command in [
        SignInCommand::default(),
        SignInCommand {
            program: Some("/bin/sh".into()),
            args: vec!["-c".into(), "id".into()],
            env: Vec::new(),
        },
    ] {
        let remote = Some(Remote { url: "https://far.example".into(), ..Remote::default() });
        let mut app = TestApp::with_spec(AgentSpec { name: "far".into(), remote, ..AgentSpec::default() });
        let variable = AuthVar { name: "KEY".into(), label: None, is_secret: true, is_optional: false };
        let variables = AuthKind::EnvVar { vars: vec![variable], link: None };
        let info =
            signs_in(vec![("Sign in with your browser", AuthKind::Terminal(command)), ("1", variables)]);
        app.agent(AgentEvent::Ready(Box::new(info))).fail(RpcError::AUTH_REQUIRED, "no");
        app.fx.clear();
        app.wait(5);
        for key in
            [Action::Accept, Action::OpenSignIn, Action::Down, Action::Accept, Action::Yes, Action::Choose(2)]
        {
            app.act(key);
            app.wait(5);
        }
        app.expect_sent("");
        assert!(app.layers.is_empty(), "{:?}", app.layers);
    }
}
