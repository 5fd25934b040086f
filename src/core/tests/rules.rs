//! Rules of the configuration: what an agent gets, what is shown and what is recorded.

use super::policy::restored;
use super::support::*;
use crate::core::*;
use crate::model::*;

/// A running turn with rules.
pub(super) fn ruled(rules: &[&str]) -> TestCore {
    let mut app = TestCore::running();
    app.state.setup.rules = Rules::new(rules.iter().map(|text| Rule::parse(text).unwrap()).collect());
    app
}

pub(super) fn command(line: &str) -> TerminalCommand {
    TerminalCommand { command: line.into(), ..TerminalCommand::default() }
}

pub(super) fn request(change: impl FnOnce(&mut ToolCallPatch)) -> AgentRequest {
    let mut tool = ToolCallPatch::new("t".into());
    change(&mut tool);
    let options = vec![
        option("always", PermissionKind::AllowAlways),
        option("once", PermissionKind::AllowOnce),
        option("no", PermissionKind::RejectOnce),
    ];
    AgentRequest::Permission(PermissionRequest { session: Some(ID.into()), tool, options })
}

pub(super) fn runs(line: &str) -> AgentRequest {
    let input = ToolInput { command: Some(line.to_owned()), ..ToolInput::default() };
    request(|patch| {
        patch.kind = Patch::Set(ToolKind::Execute);
        patch.input = Patch::Set(input);
    })
}

pub(super) fn titled(title: &str) -> AgentRequest {
    request(|patch| {
        patch.kind = Patch::Set(ToolKind::Execute);
        patch.title = Patch::Set(title.to_owned());
    })
}

pub(super) fn edits(path: &str) -> AgentRequest {
    let change = DiffChange::Texts { old: Some("a".into()), new: "b".into() };
    let diff = FileDiff { path: path.into(), change };
    request(|patch| {
        patch.kind = Patch::Set(ToolKind::Edit);
        patch.content = Patch::Set(vec![ToolContent::Diff(diff)]);
    })
}

pub(super) fn decided(app: &TestCore) -> (Option<String>, Decider, Option<String>) {
    let records = app.recorded().into_iter().map(|event| event.record);
    let mut decisions = records.filter_map(|record| match record {
        Record::Decided { option_id, by, rule, .. } => Some((option_id, by, rule)),
        _ => None,
    });
    decisions.next_back().unwrap()
}

#[test]
fn a_denied_permission_is_rejected_with_the_agents_option() {
    let mut app = ruled(&["deny run \"rm *\""]);
    app.ask(1, runs("ls; rm -rf x")).expect_sent("answer 1: selected no");
    assert!(app.session().requests.is_empty());
    assert_eq!(app.last_notice().trim_end(), "Rejected by the rule `deny run \"rm *\"`");
    let rule = Some("deny run \"rm *\"".to_owned());
    assert_eq!(decided(&app), (Some("no".to_owned()), Decider::Policy, rule));
    let session = restored(&mut app);
    let call = session.tool_by_id(&"t".into()).and_then(|id| session.tool_call(id)).unwrap();
    let decision = call.decision.as_ref().map(Decision::description);
    assert_eq!(decision.as_deref(), Some("Rejected once by the rule `deny run \"rm *\"`"));
}

#[test]
fn a_title_is_enough_to_deny() {
    let mut app = ruled(&["deny run \"rm *\"", "allow run \"ls *\""]);
    app.ask(1, titled("`rm x`")).expect_sent("answer 1: selected no");
}

#[test]
fn a_denied_permission_without_a_reject_option_is_cancelled() {
    let mut app = ruled(&["deny any"]);
    let mut asked = runs("ls");
    if let AgentRequest::Permission(request) = &mut asked {
        request.options.truncate(2);
    }
    app.ask(1, asked).expect_sent("answer 1: permission cancelled");
    assert_eq!(decided(&app), (None, Decider::Policy, None));
}

#[test]
fn a_rule_that_allows_answers_with_allow_once() {
    let mut app = ruled(&["allow run \"cargo test *\"", "allow write \"src/**\""]);
    app.ask(1, runs("cargo test --lib")).expect_sent("answer 1: selected once");
    let rule = Some("allow run \"cargo test *\"".to_owned());
    assert_eq!(decided(&app), (Some("once".to_owned()), Decider::Policy, rule));
    app.ask(2, edits("/code/shop/src/a.rs")).expect_sent("answer 2: selected once");
}

#[test]
fn what_is_not_certain_is_not_allowed() {
    let rules = ["allow run \"ls *\"", "allow write \"**\"", "allow read \"**\""];
    let outside = |patch: &mut ToolCallPatch| {
        patch.kind = Patch::Set(ToolKind::Execute);
        let input =
            ToolInput { command: Some("ls".into()), cwd: Some("/etc".into()), ..ToolInput::default() };
        patch.input = Patch::Set(input);
    };
    let with_diff = |patch: &mut ToolCallPatch| {
        patch.kind = Patch::Set(ToolKind::Execute);
        patch.input = Patch::Set(ToolInput { command: Some("ls".into()), ..ToolInput::default() });
        let change = DiffChange::Texts { old: None, new: "b".into() };
        patch.content = Patch::Set(vec![ToolContent::Diff(FileDiff { path: "x".into(), change })]);
    };
    let requests = [
        titled("`ls`"),
        runs("ls; id"),
        runs("ls \u{202e}x"),
        request(outside),
        request(with_diff),
        request(|patch| patch.title = Patch::Set("ls".to_owned())),
        edits("/code/shop/.git/config"),
        edits("/etc/passwd"),
    ];
    for asked in requests {
        let mut app = ruled(&rules);
        app.ask(1, asked.clone());
        assert_eq!(app.session().requests.len(), 1, "{asked:?}");
    }
}

#[test]
fn a_rule_that_asks_is_shown_with_the_request() {
    let mut app = ruled(&["ask run \"git push *\"", "allow run \"git status *\""]);
    app.ask(1, runs("git status && git push"));
    let call = app.session().tool_by_id(&"t".into()).and_then(|id| app.session().tool_call(id)).unwrap();
    assert_eq!(call.asking_rule.as_deref(), Some("ask run \"git push *\""));
    app.ask(2, create(command("git push")));
    let OpenRequestKind::Access(open) = &app.session().requests[1].kind else { panic!() };
    assert_eq!((open.why, open.rule.as_deref()), (AskReason::Rule, Some("ask run \"git push *\"")));
    assert!(open.grant.is_none() && !open.offers_all_commands, "a grant does not override a rule");
}

#[test]
fn commands_through_parlor_are_denied_allowed_and_asked_about() {
    let mut app = ruled(&["deny run \"rm *\"", "allow run \"ls *\"", "ask run \"git *\""]);
    app.state.setup.policy.ask_commands = false;
    app.ask(1, create(command("rm x"))).expect_sent("answer 1: error -32603");
    let shown = app.session().transcript.items().iter().find_map(|item| match &item.body {
        ItemBody::Tool(call) => call.accesses.first().map(AccessRecord::description),
        _ => None,
    });
    assert_eq!(
        shown.as_deref(),
        Some("not run, denied by the rule `deny run \"rm *\"` of the configuration")
    );
    app.ask(2, create(command("ls"))).expect_sent("terminal create 2 \"ls\" in /code/shop");
    app.ask(3, create(command("id"))).expect_sent("terminal create 3 \"id\" in /code/shop");
    // It may be the denied program.
    app.ask(4, create(command("$X y"))).ask(5, create(command("git log"))).expect_sent("");
    assert_eq!(app.session().requests.len(), 2);
    app.state.setup.policy.ask_commands = true;
    app.ask(6, create(command("ls | wc"))).expect_sent("");
    let env = vec![("LD_PRELOAD".to_owned(), "x".to_owned())];
    app.ask(7, create(TerminalCommand { env, ..command("ls") })).expect_sent("");
    app.ask(8, create(TerminalCommand { cwd: Some("/etc".into()), ..command("ls") })).expect_sent("");
    assert_eq!(app.session().requests.len(), 5);
}

#[test]
fn a_denial_is_stronger_than_approvals_and_grants() {
    let mut app = TestCore::running();
    app.ask(1, runs("rm x")).choose(Some(1));
    app.ask(2, create(command("rm y"))).choose(Some(1));
    app.fx.clear();
    app.state.setup.rules = Rules::new(vec![Rule::parse("deny run \"rm *\"").unwrap()]);
    app.ask(3, create(command("rm x"))).ask(4, create(command("rm y")));
    app.expect_sent("answer 3: error -32603\nanswer 4: error -32603");
}

#[test]
fn a_file_is_denied_by_its_real_and_its_requested_path() {
    let mut app = ruled(&["deny read \".env\""]);
    app.ask(
        1,
        AgentRequest::ReadFile { session: Some(ID.into()), path: ".env".into(), line: None, limit: None },
    );
    let [Effect::File(job)] = app.fx.as_slice() else { panic!("{:?}", app.fx) };
    let (real, inside) = ("/code/shop/config/a".into(), Facts { is_inside: true, ..Facts::default() });
    assert_eq!(decide(&job.policy, &Access::Read { path: real }, &inside), Verdict::Refuse(RefusedBy::Rule));
    let other = Policy { requested: None, ..(*job.policy).clone() };
    let env = Access::Read { path: "/code/shop/config/.env".into() };
    assert_eq!(decide(&other, &env, &inside), Verdict::Refuse(RefusedBy::Rule));
    let job = job.clone();
    app.fx.clear();
    let asked = AskedFile { access: env, facts: inside, why: AskReason::Rule, change: None };
    app.service(ServiceEvent::FileAsks { job, asked: Box::new(asked) }).expect_sent("answer 1: error -32603");
    assert!(app.session().requests.is_empty());
}

#[test]
fn an_allowed_path_outside_is_read_but_a_protected_file_is_asked_about() {
    let app = ruled(&["allow read \"/docs/**\"", "allow write \"**\""]);
    let policy = Policy { ..crate::core::lifecycle::policy::of(&app.state, CONN, KEY) };
    let allowed = |access: Access, facts| matches!(decide(&policy, &access, &facts), Verdict::Allow(_));
    assert!(allowed(Access::Read { path: "/docs/a".into() }, Facts::default()));
    assert!(!allowed(Access::Read { path: "/etc/a".into() }, Facts::default()));
    let protection = Some(Protection::Git);
    let facts = Facts { is_inside: true, protection, ..Facts::default() };
    assert!(!allowed(Access::Write { path: "/code/shop/.git/config".into() }, facts));
}

/// The verdict about a saved request.
fn replayed(app: &TestCore) -> Option<RuleAction> {
    let workspace = app.session().workspace.clone();
    let head =
        SessionHead { agent: "fake".into(), command: "fake".into(), workspace, ..SessionHead::default() };
    let saved = RecordedSession { head, events: app.recorded(), ..RecordedSession::default() };
    let saved = SavedRequests::of(saved, (None, Vec::new()), app.now);
    let [request] = &saved.requests[..] else { panic!("{saved:?}") };
    saved.ruling(request, &app.state.setup.rules).map(|(action, _)| action)
}

#[test]
fn a_saved_request_gets_the_verdict_of_the_run() {
    let rules =
        ["deny run \"rm *\"", "ask run \"git push *\"", "allow run \"ls *\"", "allow write \"src/**\""];
    let expected = [
        (runs("ls -l"), Some(RuleAction::Allow)),
        (runs("ls; rm x"), Some(RuleAction::Deny)),
        (runs("ls && git push"), Some(RuleAction::Ask)),
        (runs("make"), None),
        (titled("`ls`"), None),
        (edits("/code/shop/src/a.rs"), Some(RuleAction::Allow)),
        (edits("/code/shop/src/../.git/config"), None),
        (create(command("rm x")), Some(RuleAction::Deny)),
    ];
    for (asked, verdict) in expected {
        let mut app = ruled(&rules);
        app.ask(1, asked.clone());
        let is_asked = !app.session().requests.is_empty();
        assert_eq!(is_asked, !matches!(verdict, Some(RuleAction::Allow | RuleAction::Deny)), "{asked:?}");
        assert_eq!(replayed(&app), verdict, "{asked:?}");
    }
}
