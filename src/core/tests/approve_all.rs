//! Tests of approving all requests of a session.

use super::rules::{command, decided, edits, request, ruled, runs, titled};
use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

/// A running turn whose requests are all approved.
fn approving(rules: &[&str], scope: ApproveAll) -> TestCore {
    approving_in(ruled(rules), scope)
}

fn approving_in(mut app: TestCore, scope: ApproveAll) -> TestCore {
    toggle(&mut app);
    answering(app, scope)
}

fn answering(mut app: TestCore, scope: ApproveAll) -> TestCore {
    let question = app.state.questions.last().unwrap();
    assert_eq!(question.answers[0].consequence, Consequence::Close, "the first answer changes nothing");
    assert!(question.asked_at.is_none(), "the user asked for it");
    let wanted = Consequence::ApproveAll(KEY, scope);
    let position = question.answers.iter().position(|answer| answer.consequence == wanted).unwrap();
    let id = question.id;
    app.flow(|state, cx| operations::answer(state, id, UserAnswer::Option(position), cx).unwrap());
    app
}

fn toggle(app: &mut TestCore) {
    app.flow(|state, cx| operations::toggle_approve_all(state, KEY, cx));
}

/// Whether a request is shown to the user.
fn is_asked(app: &mut TestCore, asked: AgentRequest) -> bool {
    app.sent();
    app.ask(9, asked);
    !app.session().requests.is_empty()
}

#[test]
fn requests_are_answered_with_allow_once() {
    let mut app = approving(&[], ApproveAll::Session);
    app.ask(1, titled("`make deploy`")).expect_sent("answer 1: selected once");
    let rule = Some("approve-all".to_owned());
    assert_eq!(decided(&app), (Some("once".to_owned()), Decider::Policy, rule));
    app.ask(2, edits("/code/shop/a.rs")).expect_sent("answer 2: selected once");
    app.ask(3, create(command("make"))).expect_sent("terminal create 3 \"make\" in /code/shop");
}

#[test]
fn rules_and_what_is_protected_come_first() {
    let rules = ["deny run \"rm *\"", "ask run \"git push *\""];
    let mut app = approving(&rules, ApproveAll::Session);
    app.ask(1, runs("ls && rm x")).expect_sent("answer 1: selected no");
    app.ask(2, create(command("rm x")));
    let refused = app.sent();
    assert!(refused.starts_with("answer 2: error"), "{refused}");
    let plan = request(|patch| patch.kind = Patch::Set(ToolKind::SwitchMode));
    for asked in [
        runs("git push"),
        edits("/code/shop/.git/config"),
        edits("/etc/passwd"),
        plan,
        create(command("git push")),
        create(TerminalCommand { cwd: Some("/etc".into()), ..command("ls") }),
    ] {
        let mut app = approving(&rules, ApproveAll::Session);
        assert!(is_asked(&mut app, asked.clone()), "{asked:?}");
    }
}

#[test]
fn what_a_rule_allows_stays_allowed() {
    let reads = request(|patch| {
        patch.kind = Patch::Set(ToolKind::Read);
        patch.input = Patch::Set(ToolInput { path: Some("/usr/include/a.h".into()), ..ToolInput::default() });
    });
    let mut app = approving(&["allow read \"/usr/include/**\""], ApproveAll::Session);
    app.ask(1, reads.clone()).expect_sent("answer 1: selected once");
    let mut app = approving(&[], ApproveAll::Session);
    assert!(is_asked(&mut app, reads), "it is outside of the folder");
}

#[test]
fn without_an_option_that_allows_once_the_user_is_asked() {
    let mut app = approving(&[], ApproveAll::Session);
    let mut asked = runs("ls");
    if let AgentRequest::Permission(request) = &mut asked {
        request.options.retain(|option| option.kind != PermissionKind::AllowOnce);
    }
    assert!(is_asked(&mut app, asked));
}

#[test]
fn the_approval_of_a_turn_ends_with_it() {
    for (scope, is_asked_next) in [(ApproveAll::Turn, true), (ApproveAll::Session, false)] {
        let mut app = approving(&[], scope);
        assert!(!is_asked(&mut app, titled("`ls`")));
        app.end_turn(StopReason::EndTurn);
        app.submit("go");
        assert_eq!(is_asked(&mut app, titled("`ls`")), is_asked_next, "{scope:?}");
    }
}

#[test]
fn it_is_switched_off_at_once() {
    let mut app = approving(&[], ApproveAll::Session);
    toggle(&mut app);
    assert_eq!(app.state.flash.as_deref(), Some("Permission requests are shown again."));
    assert!(is_asked(&mut app, titled("`ls`")));
    assert!(app.state.questions.is_empty());
}

#[test]
fn another_process_of_the_agent_is_asked_about() {
    let mut app = approving(&[], ApproveAll::Session);
    app.session_mut().conn = Some(ConnId(77));
    assert_eq!(operations::approves_all(app.session()), None);
}

/// A running turn of an agent in a sandbox.
fn sandboxed(rules: &[&str]) -> TestCore {
    let mut app = ruled(rules);
    app.state.conns.get_mut(&CONN).unwrap().spec.bounds = Some(Box::default());
    app.agent(AgentEvent::Sandboxed("Sandbox: the agent writes only in the session's folders.".to_owned()));
    app
}

#[test]
fn the_sandbox_is_offered_only_if_all_of_it_is_enforced() {
    let is_offered = |app: &mut TestCore| {
        toggle(app);
        let answers = &app.state.questions.last().unwrap().answers;
        answers.iter().any(|it| it.consequence == Consequence::ApproveAll(KEY, ApproveAll::Sandbox))
    };
    assert!(is_offered(&mut sandboxed(&[])));
    assert!(!is_offered(&mut ruled(&[])));
    let mut app = sandboxed(&[]);
    app.agent(AgentEvent::Sandboxed(format!("Sandbox. {SANDBOX_MISSING}no user namespace.")));
    assert!(!is_offered(&mut app));
}

#[test]
fn in_a_sandbox_only_what_it_confines_is_approved() {
    let with = |kind: ToolKind, input: ToolInput| {
        request(|patch| {
            patch.kind = Patch::Set(kind);
            patch.input = Patch::Set(input.clone());
        })
    };
    let path = |path: &str| ToolInput { path: Some(path.into()), ..ToolInput::default() };
    let url = ToolInput { url: Some("https://example.com".into()), ..ToolInput::default() };
    let line = ToolInput { command: Some("make".into()), ..ToolInput::default() };
    let named = |name: &str, kind: ToolKind, input: &ToolInput| {
        request(|patch| {
            patch.name = Patch::Set(name.into());
            patch.kind = Patch::Set(kind);
            patch.input = Patch::Set(input.clone());
        })
    };
    let outside = TerminalCommand { cwd: Some("/etc".into()), ..command("ls") };
    let cases = [
        (runs("make && rm -rf /opt"), false),
        (runs("curl x | sh"), false),
        (edits("/code/shop/a.rs"), false),
        (with(ToolKind::Delete, path("/code/shop/a.rs")), false),
        (with(ToolKind::Read, path("/code/shop/a.rs")), false),
        (create(command("make")), false),
        (create(outside), true),
        (edits("/etc/passwd"), true),
        (edits("/code/shop/.git/config"), true),
        (with(ToolKind::Read, path("/etc/passwd")), true),
        (with(ToolKind::Fetch, url.clone()), true),
        (with(ToolKind::Execute, ToolInput { url: url.url.clone(), ..line.clone() }), true),
        (with(ToolKind::SwitchMode, ToolInput::default()), true),
        (with(ToolKind::Other, line.clone()), true),
        (with(ToolKind::Execute, ToolInput::default()), true),
        (named("mcp__mail__send", ToolKind::Execute, &line), true),
        (named("mcp__mail__send", ToolKind::Other, &ToolInput::default()), true),
        (runs("git push"), true),
        (runs("$X push"), true),
        (create(command("git push")), true),
    ];
    for (asked, is_shown) in cases {
        let mut app = approving_in(sandboxed(&["ask run \"git push *\""]), ApproveAll::Sandbox);
        assert_eq!(is_asked(&mut app, asked.clone()), is_shown, "{asked:?}");
    }
    let mut app = approving_in(sandboxed(&[]), ApproveAll::Sandbox);
    app.ask(1, runs("make")).expect_sent("answer 1: selected once");
    assert_eq!(decided(&app).2.as_deref(), Some("approve-all in the sandbox"));
    app.ask(2, create(command("rm x"))).expect_sent("terminal create 2 \"rm x\" in /code/shop");
}

#[test]
fn an_agent_without_a_sandbox_is_not_approved_by_an_old_answer() {
    let mut app = sandboxed(&[]);
    toggle(&mut app);
    app.state.conns.get_mut(&CONN).unwrap().spec.bounds = None;
    let mut app = answering(app, ApproveAll::Sandbox);
    assert_eq!(operations::approves_all(app.session()), None);
    assert!(is_asked(&mut app, runs("make")));
}
