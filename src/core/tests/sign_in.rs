//! Tests of signing in: by the agent, by its command, by variables.

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::state::texts;
use crate::core::*;
use crate::model::*;

fn terminal(program: Option<&str>, args: &[&str]) -> AuthKind {
    AuthKind::Terminal(SignInCommand {
        program: program.map(str::to_owned),
        args: args.iter().map(ToString::to_string).collect(),
        env: Vec::new(),
    })
}

fn sign_in_methods() -> AgentInfo {
    let var = AuthVar { name: "KEY".into(), label: None, is_secret: true, is_optional: false };
    signs_in(vec![
        ("web", AuthKind::Agent),
        ("login", terminal(None, &["login"])),
        ("tool", terminal(Some("tool"), &["in"])),
        ("key", AuthKind::EnvVar { vars: vec![var], link: None }),
    ])
}

/// `session/new` was answered with a required sign-in.
fn locked() -> TestCore {
    let mut app = TestCore::started();
    app.agent(AgentEvent::Ready(Box::new(sign_in_methods()))).submit("hi");
    app.fail(RpcError::AUTH_REQUIRED, "no").expect_sent("connect 1 after 0 ms\ncall new");
    app.expect(
        r#"
        needs sign-in · idle · queue ["hi"]
        notice Warning: The agent requires sign-in.
        "#,
    );
    app
}

#[test]
fn acp_v1_the_failed_call_is_retried_after_a_sign_in() {
    let mut app = locked();
    app.flow(|state, cx| operations::sign_in(state, CONN, "elsewhere", Vec::new(), cx));
    app.expect_sent("");
    app.flow(|state, cx| operations::sign_in(state, CONN, "web", Vec::new(), cx));
    app.fail(-32603, "window closed").expect_sent("call authenticate web");
    assert_eq!(app.state.flash.as_deref(), Some("Sign-in failed: window closed"));
    app.flow(|state, cx| operations::sign_in(state, CONN, "web", Vec::new(), cx));
    app.reply(Ok(Reply::Done)).open(ID);
    app.expect_sent("call authenticate web\ncall new\ncall prompt \"hi\"");
}

#[test]
fn a_sign_in_is_confirmed_only_once_a_session_is_open() {
    let mut app = locked();
    app.flow(|state, cx| operations::sign_in(state, CONN, "web", Vec::new(), cx));
    app.reply(Ok(Reply::Done));
    assert_ne!(app.state.flash.as_deref(), Some("Signed in."));
    app.open(ID);
    assert_eq!(app.state.flash.as_deref(), Some("Signed in."));

    let mut app = locked();
    app.flow(|state, cx| operations::sign_in(state, CONN, "web", Vec::new(), cx));
    app.reply(Ok(Reply::Done)).fail(RpcError::AUTH_REQUIRED, "no account");
    let last = app.last_notice();
    assert!(last.starts_with("Sign-in failed. ") && last.contains("\"web\"") && last.contains("no account"));
    assert_ne!(app.state.flash.as_deref(), Some("Signed in."));
    let again = UiRequest::SignIn { conn: CONN, session: Some(KEY) };
    assert_eq!(app.requests.last(), Some(&again), "another method can be selected");
}

#[test]
fn only_a_prompt_that_waits_is_announced() {
    let mut app = TestCore::started();
    app.agent(AgentEvent::Ready(Box::new(sign_in_methods()))).fail(RpcError::AUTH_REQUIRED, "no");
    let last = app.last_notice();
    assert!(last.contains("Select a sign-in method.") && !last.contains("prompt"), "{last}");
    let last = locked().last_notice();
    assert!(last.contains("Your prompt is sent after sign-in."), "{last}");
}

#[test]
fn an_agent_that_wants_authenticate_after_its_restart_gets_it_once() {
    let mut app = locked();
    let vars = vec![("KEY".to_owned(), "1".to_owned())];
    app.flow(|state, cx| operations::sign_in(state, CONN, "key", vars.clone(), cx));
    app.agent(AgentEvent::Ready(Box::new(sign_in_methods()))).fail(RpcError::AUTH_REQUIRED, "no");
    app.expect_sent("disconnect 1\nconnect 2 after 0 ms\ncall new\ncall authenticate key");
    app.reply(Ok(Reply::Done)).open(ID).expect_sent("call new\ncall prompt \"hi\"");
    assert_eq!(app.state.flash.as_deref(), Some("Signed in."));

    let mut app = locked();
    app.flow(|state, cx| operations::sign_in(state, CONN, "key", vars, cx));
    app.agent(AgentEvent::Ready(Box::new(sign_in_methods()))).fail(RpcError::AUTH_REQUIRED, "no");
    app.reply(Ok(Reply::Done)).fail(RpcError::AUTH_REQUIRED, "wrong key");
    app.expect_sent("disconnect 1\nconnect 2 after 0 ms\ncall new\ncall authenticate key\ncall new");
    assert!(app.last_notice().starts_with("Sign-in failed. "));
}

#[test]
fn pages_that_the_agent_prints_while_it_signs_in_can_be_opened() {
    let mut app = locked();
    let output = |line: &str| AgentEvent::SignInOutput(vec![line.to_owned()]);
    app.agent(output("https://example.org/early"));
    assert_eq!(app.state.questions, [], "no sign-in is pending");
    app.flow(|state, cx| operations::sign_in(state, CONN, "web", Vec::new(), cx));
    app.agent(output("waiting")).agent(output("Open (https://example.org/a?b=c\u{202e}), please."));
    let Some(dialog) = app.state.questions.last().cloned() else { panic!("no dialog") };
    let labels: Vec<_> = dialog.answers.iter().map(|choice| choice.label.as_str()).collect();
    assert_eq!(labels, ["Open in browser", "Copy the address", "Not now"]);
    assert_eq!(dialog.first, 2, "nothing is opened by an accidental key");
    assert!(dialog.body.iter().all(|line| !line.contains('\u{202e}')), "{:?}", dialog.body);
    app.agent(output("Open (https://example.org/a?b=c\u{202e}), please."));
    assert_eq!(app.state.questions.len(), 1, "a page is offered once");
    app.agent(output("file:///etc/passwd"));
    assert_eq!(app.state.questions.len(), 1);
    for number in 0..100 {
        app.agent(output(&format!("https://example.org/{number}")));
    }
    assert_eq!(app.state.questions.len(), 4, "an agent cannot cover the screen with questions");

    app.fail(-32603, "spawn xdg-open ENOENT");
    let last = app.last_notice();
    assert!(last.contains("needs a browser") && last.contains("\"login\""), "{last}");
}

/// Selects a sign-in method, and returns the question that follows.
fn pick(app: &mut TestCore, method: &str) -> Option<Question> {
    app.flow(|state, cx| operations::sign_in(state, CONN, method, Vec::new(), cx));
    app.state.questions.last().cloned()
}

#[test]
fn acp_v1_a_terminal_sign_in_is_shown_completely_and_needs_a_confirmation() {
    let mut app = locked();
    let dialog = pick(&mut app, "login").expect("the user is asked");
    assert_eq!(dialog.body[1..], ["fake login", "Folder: /code/shop"].map(str::to_owned));
    let default = &dialog.answers[dialog.first];
    assert_eq!((default.label.as_str(), &default.consequence), ("Do not run", &Consequence::Close));
    app.decide(dialog.first);
    app.expect_sent("");
    pick(&mut app, "login");
    app.answer_last(UserAnswer::Dismiss);
    app.expect_sent("");
    pick(&mut app, "login");
    app.decide(1);
    let failure = "exit code 1\nCannot connect to host";
    app.service(ServiceEvent::LoginDone(CONN, Err(failure.into()))).expect_sent("login fake login");
    assert_eq!(app.state.flash.as_deref(), Some("Sign-in failed: exit code 1"));
    let items = app.session().transcript.items();
    let run = items.iter().find_map(|item| match &item.body {
        ItemBody::Tool(call) => Some((call.status, call.output_text.clone())),
        _ => None,
    });
    assert_eq!(run, Some((ToolStatus::Failed, Some("exit code 1".into()))));
    let shown = format!("{:?}", items.last().map(|item| &item.body));
    assert!(shown.contains("exit code 1\\nCannot connect to host\\n"), "{shown}");
    pick(&mut app, "login");
    app.decide(1);
    app.service(ServiceEvent::LoginDone(CONN, Ok(())));
    app.expect_sent("login fake login\ndisconnect 1\nconnect 2 after 0 ms");
    app.handshake(all_capabilities()).open(ID).expect_sent("call new\ncall prompt \"hi\"");
}

#[test]
fn another_program_is_shown_to_be_run_manually() {
    let mut app = locked();
    assert_eq!(pick(&mut app, "tool"), None);
    app.expect_sent("");
    let last = app.last_notice();
    assert!(last.contains("\ntool in\n") && last.contains("not the agent's own program"), "{last}");
}

#[test]
fn a_sign_in_command_is_shown_with_its_variables_and_hidden_characters() {
    let env = [("CI", "true"), ("TERM", "dumb")].map(|(name, value)| (name.into(), value.into()));
    let command = SignInCommand { args: vec!["in\u{200b}to".into()], env: env.to_vec(), program: None };
    let info = |command| signs_in(vec![("odd", AuthKind::Terminal(command))]);
    let mut app = TestCore::started();
    app.agent(AgentEvent::Ready(Box::new(info(command.clone()))));
    let dialog = pick(&mut app, "odd").expect("the user is asked");
    assert!(dialog.body.iter().any(|line| line == "fake in⟨U+200B⟩to"), "{:?}", dialog.body);
    for line in ["CI=true", "TERM=dumb"] {
        assert!(dialog.body.iter().any(|shown| shown == line), "{line}: {:?}", dialog.body);
    }
    app.decide(1);
    let env = app.fx.iter().find_map(|effect| match effect {
        Effect::RunLogin { env, .. } => Some(env.clone()),
        _ => None,
    });
    assert_eq!(env, Some(command.env.clone()));
    // Variables that may select which program runs are refused without a question.
    for (name, value) in [("LD_PRELOAD", "/tmp/x.so"), ("SOME_HOOK", "x"), ("TERM", "lo\u{202e}gin")] {
        let mut app = TestCore::started();
        let env = vec![(name.to_owned(), value.to_owned())];
        let command = SignInCommand { env, ..command.clone() };
        app.agent(AgentEvent::Ready(Box::new(info(command))));
        assert_eq!(pick(&mut app, "odd"), None, "{name}");
    }
}

#[test]
fn variables_of_a_sign_in_are_set_by_a_restart() {
    let mut app = locked();
    let vars = vec![("KEY".to_owned(), "1".to_owned())];
    app.flow(|state, cx| operations::sign_in(state, CONN, "key", vars.clone(), cx));
    let spec = app.fx.iter().find_map(|effect| match effect {
        Effect::Connect { spec, .. } => Some(spec.clone()),
        _ => None,
    });
    assert_eq!(spec.map(|spec| spec.env), Some(vars));
    let mut app = locked();
    let vars = vec![("NODE_OPTIONS".to_owned(), "--require /tmp/x.js".to_owned())];
    app.flow(|state, cx| operations::sign_in(state, CONN, "key", vars.clone(), cx)).expect_sent("");
}

#[test]
fn an_unknown_session_is_not_mistaken_for_a_required_sign_in() {
    let info = sign_in_methods();
    let error = |code, text: &str| CallError::Agent(RpcError::new(code, text));
    assert!(!texts::is_auth_error(&error(-32000, "Unknown session"), Some(&info)));
    assert!(!texts::is_auth_error(&error(-32000, "too many sessions"), None));
    assert!(texts::is_auth_error(&error(-32000, "nope"), Some(&info)));
    assert!(texts::is_auth_error(&error(-32603, "Authentication required"), None));
    assert!(texts::is_session_gone(&error(-32000, "Unknown session")));
    assert!(!texts::is_session_gone(&error(-32603, "file not found")));
}
