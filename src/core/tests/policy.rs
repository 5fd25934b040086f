//! Tests of accesses through parlor: what is asked, shown and granted.

use crate::core::lifecycle::operations;
use crate::core::state::changes;
use std::path::PathBuf;

use proptest::prelude::*;

use super::support::*;
use crate::core::state::changes::changed_files;
use crate::core::*;
use crate::model::*;

mod remembered;

fn command(line: &str) -> TerminalCommand {
    TerminalCommand { command: line.into(), ..TerminalCommand::default() }
}

/// Requests a permission for a call, and answers with the option at this index.
fn approve(app: &mut TestCore, request_id: u64, option: usize, change: impl FnOnce(&mut ToolCallPatch)) {
    let mut tool = ToolCallPatch::new("t".into());
    change(&mut tool);
    let options = vec![
        super::support::option("once", PermissionKind::AllowOnce),
        super::support::option("always", PermissionKind::AllowAlways),
        super::support::option("no", PermissionKind::RejectOnce),
    ];
    app.ask(
        request_id,
        AgentRequest::Permission(PermissionRequest { session: Some(ID.into()), tool, options }),
    );
    app.choose(Some(option));
    app.fx.clear();
}

fn runs(line: &str) -> impl FnOnce(&mut ToolCallPatch) {
    let input = ToolInput { command: Some(line.to_owned()), ..ToolInput::default() };
    move |patch| {
        patch.kind = Patch::Set(ToolKind::Execute);
        patch.input = Patch::Set(input);
    }
}

fn diff(path: &str, old: &str, new: &str) -> FileDiff {
    FileDiff { path: path.into(), change: DiffChange::Texts { old: Some(old.into()), new: new.into() } }
}

fn edits(diffs: Vec<FileDiff>) -> impl FnOnce(&mut ToolCallPatch) {
    move |patch| {
        patch.kind = Patch::Set(ToolKind::Edit);
        patch.content = Patch::Set(diffs.into_iter().map(ToolContent::Diff).collect());
    }
}

/// Whether the requested command was started without a question.
fn is_started(app: &mut TestCore, request_id: u64, command: TerminalCommand) -> bool {
    let requests = app.session().requests.len();
    app.ask(request_id, create(command));
    let started = app.fx.iter().any(|effect| matches!(effect, Effect::Terminal(TerminalJob::Create { .. })));
    assert_eq!(
        app.session().requests.len(),
        requests + usize::from(!started),
        "it either runs or is asked about"
    );
    app.fx.clear();
    started
}

/// The service has written a file.
fn wrote(app: &mut TestCore, request_id: u64, path: &str, old: &str, new: &str) {
    app.ask(
        request_id,
        AgentRequest::WriteFile { session: Some(ID.into()), path: path.into(), content: new.into() },
    );
    let diff = Some(diff(path, old, new));
    let change = Some(WriteChange { diff, line: None, size_bytes: new.len() as u64 });
    let access = Access::Write { path: path.into() };
    let served =
        Some(Box::new(ServedFile { access, allowed: AllowedBy::InsideRoots.into(), change, held: None }));
    app.service(ServiceEvent::FileDone {
        conn: CONN,
        request_id: RequestId(request_id),
        result: Ok(None),
        served,
    });
    app.fx.clear();
}

/// The shown items: id, status, and accesses through parlor.
fn shown(session: &Session) -> Vec<String> {
    let tools = session.transcript.items().iter().filter(|item| !item.is_hidden());
    let tools = tools.filter_map(|item| match &item.body {
        ItemBody::Tool(tool) => Some(tool),
        _ => None,
    });
    tools
        .map(|tool| {
            let accesses_text: Vec<String> = tool.accesses.iter().map(AccessRecord::description).collect();
            format!("{} {:?} {} diffs {accesses_text:?}", tool.id, tool.status, tool.diffs().count())
        })
        .collect()
}

/// All changes, each as `path: old>new`.
fn changes(app: &TestCore) -> Vec<String> {
    let part = |part: &changes::ChangePart| match &part.diff.change {
        DiffChange::Texts { old, new } => format!("{}>{new}", old.as_deref().unwrap_or("-")),
        DiffChange::Patch(text) => text.to_string(),
    };
    let file = |file: &changes::ChangedFile| {
        let parts: Vec<String> = file.parts.iter().map(part).collect();
        format!("{}: {}", file.path.display(), parts.join(", "))
    };
    changed_files(&app.state, KEY).iter().map(file).collect()
}

/// The session restored from its record.
pub(super) fn restored(app: &mut TestCore) -> Session {
    let saved = RecordedSession { events: app.recorded(), ..RecordedSession::default() };
    let position = app.session().workspace.clone();
    let mut again = Session::new(KEY, position);
    restore(&mut again, saved, app.now);
    again
}

#[test]
fn an_unapproved_command_is_asked_about_and_a_refused_one_does_not_run() {
    let mut app = TestCore::running();
    assert!(!is_started(&mut app, 1, command("rm -rf /")));
    app.choose(None).expect_sent("answer 1: error -32603");
    assert!(!is_started(&mut app, 2, command("ls")));
    app.choose(Some(0)).expect_sent("terminal create 2 \"ls\" in /code/shop");
    app.terminal_started(2, "x", "echo");
    assert_eq!(
        shown(app.session()),
        [
            "parlor:run:rm -rf / Cancelled 0 diffs [\"not run, refused by the user\"]",
            "parlor:run:ls InProgress 0 diffs [\"run by parlor, allowed once by the user\"]",
        ]
    );
    let exit = ExitInfo { code: Some(3), signal: None };
    app.service(ServiceEvent::TerminalEnded { terminal: "x".into(), exit });
    assert!(shown(app.session())[1].contains("Failed"));
    assert_eq!(shown(&restored(&mut app)), shown(app.session()), "it is recorded");
}

#[test]
fn an_approved_call_covers_its_own_command_once() {
    let mut app = TestCore::running();
    approve(&mut app, 1, 0, runs("ls -la"));
    assert!(!is_started(&mut app, 2, command("ls -la; id")));
    assert!(is_started(&mut app, 3, command("ls -la")));
    assert!(!is_started(&mut app, 4, command("ls -la")), "once");
    approve_first_in_row(&mut app);

    let mut app = TestCore::running();
    approve(&mut app, 1, 1, runs("ls -la"));
    assert!(is_started(&mut app, 2, command("ls -la")));
    app.end_turn(StopReason::EndTurn).submit("more");
    app.fx.clear();
    assert!(is_started(&mut app, 3, command("ls -la")), "always");
    assert!(!is_started(&mut app, 4, command("id")));

    let mut app = TestCore::running();
    approve(&mut app, 1, 2, runs("ls -la"));
    assert!(!is_started(&mut app, 2, command("ls -la")), "it was refused");
}

fn approve_first_in_row(app: &mut TestCore) {
    app.choose(Some(0));
    assert!(app.fx.iter().any(|effect| matches!(effect, Effect::Terminal(TerminalJob::Create { .. }))));
}

#[test]
fn an_approval_ends_with_its_turn_or_its_cancellation() {
    let mut app = TestCore::running();
    approve(&mut app, 1, 0, runs("ls"));
    app.end_turn(StopReason::EndTurn);
    app.fx.clear();
    assert!(!is_started(&mut app, 2, command("ls")), "no turn is running");
    app.choose(None).submit("more");
    app.fx.clear();
    assert!(!is_started(&mut app, 3, command("ls")), "another turn is running");
    let mut app = TestCore::running();
    approve(&mut app, 1, 0, runs("ls"));
    app.cancel();
    app.fx.clear();
    app.ask(2, create(command("ls"))).expect_sent("answer 2: error -32800");
}

#[test]
fn a_call_changed_after_its_approval_covers_what_was_shown() {
    let mut app = TestCore::running();
    approve(&mut app, 1, 0, runs("ls"));
    app.update(patch("t", runs("id")));
    assert!(!is_started(&mut app, 2, command("id")));
    assert!(is_started(&mut app, 3, command("ls")));
}

#[test]
fn approvals_depend_on_folder_and_environment() {
    let mut app = TestCore::running();
    approve(&mut app, 1, 0, runs("make"));
    assert!(!is_started(&mut app, 2, TerminalCommand { cwd: Some("/tmp".into()), ..command("make") }));
    let env = vec![("LD_PRELOAD".to_owned(), "/tmp/x.so".to_owned())];
    assert!(!is_started(&mut app, 3, TerminalCommand { env, ..command("make") }));
    app.choose(None).choose(None);
    let env = vec![("NO_COLOR".to_owned(), "1".to_owned())];
    assert!(is_started(&mut app, 4, TerminalCommand { env, ..command("make") }));
    // A call without a folder was approved for that of the session only.
    approve(&mut app, 8, 0, runs("make"));
    assert!(!is_started(
        &mut app,
        9,
        TerminalCommand { cwd: Some("/code/shop/sub".into()), ..command("make") }
    ));
    app.choose(None);
    assert!(is_started(&mut app, 10, TerminalCommand { cwd: Some("./".into()), ..command("make") }));
    // A folder shown by the call was approved with it.
    approve(&mut app, 5, 0, |patch| {
        runs("make")(patch);
        let cwd = Some(PathBuf::from("/tmp"));
        patch.input = Patch::Set(ToolInput { command: Some("make".into()), cwd, ..ToolInput::default() });
    });
    assert!(!is_started(&mut app, 6, command("make")));
    assert!(is_started(&mut app, 7, TerminalCommand { cwd: Some("/tmp".into()), ..command("make") }));
}

#[test]
fn forms_of_real_agents_are_covered() {
    // A title and a text, without kind and input; the command line is the command.
    let mut app = TestCore::running();
    approve(&mut app, 1, 0, |patch| {
        patch.title = Patch::Set("Shell: ls -la".into());
        let text = "Requesting approval to perform: Run command `ls -la`";
        patch.content = Patch::Set(vec![ToolContent::Block(ContentBlock::Text(text.into()))]);
    });
    assert!(is_started(&mut app, 2, command("ls -la")));
    app.terminal_started(2, "x", "echo");
    app.update(patch("t", |patch| {
        patch.is_announcement = true;
        patch.content = Patch::Set(vec![ToolContent::Terminal("x".into())]);
    }));
    assert_eq!(
        shown(app.session()),
        ["t Pending 0 diffs [\"run by parlor, allowed: approved tool call\"]"],
        "once, with the call"
    );
    assert_eq!(shown(&restored(&mut app)).len(), 1);
    // The command line is wrapped in a shell.
    let mut app = TestCore::running();
    approve(&mut app, 1, 0, runs("ls | wc"));
    let args = vec!["-lc".to_owned(), "ls | wc".to_owned()];
    assert!(is_started(&mut app, 2, TerminalCommand { args, ..command("/bin/sh") }));
}

#[test]
fn grants_apply_to_one_agent_in_one_folder_until_revoked() {
    let mut app = TestCore::running();
    assert!(!is_started(&mut app, 1, command("make")));
    app.choose(Some(2));
    let [Effect::SaveGrant(saved), ..] = app.fx.as_slice() else { panic!("{:?}", app.fx) };
    let saved = saved.clone();
    assert_eq!((saved.agent.as_str(), saved.folder.as_path()), ("fake (fake)", "/code/shop".as_ref()));
    app.fx.clear();
    assert!(is_started(&mut app, 2, command("make")));
    assert!(!is_started(&mut app, 3, command("make install")));
    app.choose(None);

    for other in [
        StoredGrant { agent: "fake (other)".into(), ..saved.clone() },
        StoredGrant { folder: "/code".into(), ..saved.clone() },
    ] {
        let mut app = TestCore::running();
        app.service(ServiceEvent::Grants(vec![other]));
        assert!(!is_started(&mut app, 1, command("make")));
    }

    let mut app = TestCore::running();
    app.service(ServiceEvent::Grants(vec![saved.clone()]));
    assert!(is_started(&mut app, 1, command("make")));
    let id = granted(&app.state)[0].id();
    app.flow(|state, cx| _ = operations::revoke(state, &id, cx));
    assert_eq!(app.fx, [Effect::RemoveGrant(saved)]);
    app.fx.clear();
    assert!(!is_started(&mut app, 2, command("make")));
    app.choose(Some(1));
    app.fx.clear();
    assert!(is_started(&mut app, 3, command("make")), "for this session");
    let id = granted(&app.state)[0].id();
    app.flow(|state, cx| _ = operations::revoke(state, &id, cx));
    assert!(!is_started(&mut app, 4, command("make")));
}

#[test]
fn a_grant_covers_waiting_requests() {
    let mut app = TestCore::running();
    for request_id in 1..4 {
        assert!(!is_started(&mut app, request_id, command(if request_id == 2 { "other" } else { "make" })));
    }
    app.choose(Some(1));
    app.expect_sent("terminal create 1 \"make\" in /code/shop\nterminal create 3 \"make\" in /code/shop");
    assert_eq!((app.session().requests.len(), granted(&app.state).len()), (1, 1));
}

#[test]
fn a_write_is_an_item_with_its_change_and_counts_in_all_changes() {
    let mut app = TestCore::running();
    wrote(&mut app, 1, "/code/shop/a", "old\n", "new\n");
    assert_eq!(
        shown(app.session()),
        [
            "parlor:write:/code/shop/a Completed 1 diffs [\"written by parlor, allowed: in the session's folders\"]"
        ]
    );
    assert_eq!(changes(&app), ["/code/shop/a: old\n>new\n"]);
    assert_eq!(shown(&restored(&mut app)), shown(app.session()));
}

#[test]
fn a_write_is_shown_with_its_call_in_any_order_of_arrival() {
    let reported = || edits(vec![diff("/code/shop/a", "b\n", "c\n")]);
    let with_call = ["t Completed 1 diffs [\"written by parlor, allowed: in the session's folders\"]"];
    let mut before = TestCore::running();
    before.update(patch("t", reported()));
    wrote(&mut before, 1, "/code/shop/a", "a\nb\n", "a\nc\n");
    before.update(news("t", ToolStatus::Completed));
    let mut after = TestCore::running();
    wrote(&mut after, 1, "/code/shop/a", "a\nb\n", "a\nc\n");
    after.update(patch("t", reported())).update(news("t", ToolStatus::Completed));
    for app in [&mut before, &mut after] {
        assert_eq!(shown(app.session()), with_call);
        assert_eq!(changes(app), ["/code/shop/a: b\n>c\n"]);
        assert_eq!(shown(&restored(app)), with_call);
    }
}

#[test]
fn a_write_that_differs_from_the_reported_change_is_shown_too() {
    let mut app = TestCore::running();
    app.update(patch("t", edits(vec![diff("/code/shop/a", "b\n", "c\n")])));
    wrote(&mut app, 1, "/code/shop/a", "a\nb\n", "a\nc\nmore\n");
    assert_eq!(shown(app.session()).len(), 2, "{:?}", shown(app.session()));
    // A call without changes of the file shows the written one; if it reports another change, both are shown.
    let mut app = TestCore::running();
    app.update(patch("t", |patch| {
        patch.kind = Patch::Set(ToolKind::Edit);
        patch.locations = Patch::Set(vec![Location { path: "/code/shop/a".into(), line: None }]);
    }));
    wrote(&mut app, 1, "/code/shop/a", "b\n", "evil\n");
    assert_eq!(shown(app.session()).len(), 1);
    assert!(shown(app.session())[0].contains("1 diffs"));
    app.update(patch("t", edits(vec![diff("/code/shop/a", "b\n", "c\n")])));
    assert!(shown(app.session())[0].contains("2 diffs"), "{:?}", shown(app.session()));
}

#[test]
fn agents_cannot_refer_to_items_of_parlor() {
    let mut app = TestCore::running();
    wrote(&mut app, 1, "/code/shop/a", "b\n", "c\n");
    let id = "parlor:write:/code/shop/a";
    app.update(patch(id, |patch| patch.content = Patch::Set(Vec::new())));
    assert_eq!(changes(&app), ["/code/shop/a: b\n>c\n"]);
    app.ask(2, permission(id)).choose(Some(1));
    assert_eq!(changes(&app), ["/code/shop/a: b\n>c\n"]);
}

#[test]
fn an_edit_approved_under_another_id_is_joined_with_the_agents_call() {
    let approved = || vec![diff("/code/shop/a", "b\n", "c\n")];
    let own = |patch: &mut ToolCallPatch| {
        patch.kind = Patch::Set(ToolKind::Edit);
        patch.is_announcement = true;
        patch.locations = Patch::Set(vec![Location { path: "a".into(), line: None }]);
    };
    for is_first in [true, false] {
        let mut app = TestCore::running();
        if is_first {
            app.update(patch("call-1", own));
        }
        approve(&mut app, 1, 0, |patch| {
            patch.id = "edit-approval-1".into();
            edits(approved())(patch);
        });
        if !is_first {
            assert!(
                shown(app.session())[0].starts_with("edit-approval-1"),
                "it stays until the call is reported"
            );
            app.update(patch("call-1", own));
        }
        app.end_turn(StopReason::EndTurn);
        assert_eq!(shown(app.session()), ["call-1 Completed 1 diffs []"]);
        assert_eq!(changes(&app), ["/code/shop/a: b\n>c\n"]);
        assert_eq!(shown(&restored(&mut app)), shown(app.session()));
    }
}

#[test]
fn an_approved_edit_without_a_call_stays_and_a_differently_reported_one_counts_once() {
    let mut app = TestCore::running();
    approve(&mut app, 1, 0, edits(vec![diff("/code/shop/a", "b\n", "c\n")]));
    approve(&mut app, 2, 0, edits(vec![diff("/code/shop/x", "b\n", "c\n")]));
    app.update(patch("own", edits(vec![diff("/code/shop/x", "b\n", "d\n")])));
    app.update(news("own", ToolStatus::Completed));
    app.end_turn(StopReason::EndTurn);
    assert_eq!(shown(app.session()).len(), 3, "one id for both requests: {:?}", shown(app.session()));
    assert_eq!(changes(&app), ["/code/shop/a: b\n>c\n", "/code/shop/x: b\n>d\n"]);
}

#[test]
fn terminals_per_agent_are_limited() {
    let mut app = TestCore::running();
    app.state.setup.policy.ask_commands = false;
    for request_id in 0..300 {
        app.ask(request_id, create(command("sleep 300")));
    }
    let sent = app.sent();
    let count = |word: &str| sent.lines().filter(|line| line.contains(word)).count();
    assert_eq!((count("terminal create"), count("error -32603")), (32, 268));
    for request_id in 0..32 {
        app.terminal_started(request_id, &format!("t{request_id}"), "echo");
    }
    app.fx.clear();
    app.ask(1000, create(command("sleep 300"))).expect_sent("answer 1000: error -32603");
    app.service(ServiceEvent::TerminalEnded { terminal: "t3".into(), exit: ExitInfo::default() });
    app.ask(1001, create(command("ls"))).expect_sent("terminal create 1001 \"ls\" in /code/shop");
}

#[test]
fn concurrent_and_waiting_file_requests_are_limited() {
    let mut app = TestCore::running();
    let write = |request_id: u64| AgentRequest::WriteFile {
        session: Some(ID.into()),
        path: format!("f{request_id}").into(),
        content: "x".repeat(8 << 20),
    };
    for request_id in 0..20 {
        app.ask(request_id, write(request_id));
    }
    let sent = app.sent();
    assert_eq!(sent.lines().filter(|line| line.starts_with("file")).count(), 4);
    assert_eq!(sent.lines().filter(|line| line.contains("error")).count(), 20 - 4 - 8);
    let done =
        ServiceEvent::FileDone { conn: CONN, request_id: RequestId(0), result: Ok(None), served: None };
    app.service(done).expect_sent("file 4 /code/shop/f4\nanswer 0: done");
}

#[test]
fn saved_changes_of_many_writes_are_limited() {
    let mut app = TestCore::running();
    for request_id in 0..100 {
        wrote(&mut app, request_id, &format!("/code/shop/f{request_id}"), "", &"x".repeat(1 << 20));
    }
    let saved: usize = app
        .session()
        .transcript
        .items()
        .iter()
        .filter(|item| match &item.body {
            ItemBody::Tool(tool) => tool.diffs().next().is_some(),
            _ => false,
        })
        .count();
    assert_eq!((saved, shown(app.session()).len()), (16, 100), "each is shown, some with their size only");
}

#[derive(Debug, Clone)]
enum Step {
    Approve(usize, usize),
    Run(usize),
    Update(usize),
    Turn,
    Cancel,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever an agent sends, a command runs without a question only if the user has allowed exactly this line in
    /// this turn, once per approval.
    #[test]
    fn no_sequence_of_messages_runs_a_command_that_was_not_allowed(
        steps in proptest::collection::vec(prop_oneof![
            (0usize..4, 0usize..3).prop_map(|(line, option)| Step::Approve(line, option)),
            (0usize..4).prop_map(Step::Run),
            (0usize..4).prop_map(Step::Update),
            Just(Step::Turn),
            Just(Step::Cancel),
        ], 1..24),
    ) {
        const LINES: [&str; 4] = ["ls", "id", "ls -la", "sh -c id"];
        let mut app = TestCore::running();
        let (mut once, mut always) = ([0usize; 4], [false; 4]);
        let policy = app.state.setup.policy;
        let roots = app.session().workspace.clone();
        for (request_id, step) in steps.into_iter().enumerate() {
            let request_id = request_id as u64;
            match step {
                Step::Approve(line, option) => {
                    if matches!(app.session().turn, Turn::Cancelling { .. }) { continue }
                    approve(&mut app, request_id, option, runs(LINES[line]));
                    once[line] += usize::from(option == 0);
                    always[line] |= option == 1;
                    // The command line of a shell is shown with it.
                    if line == 3 { once[1] += usize::from(option == 0); always[1] |= option == 1; }
                }
                Step::Run(line) => {
                    let fx_before = app.session().requests.len();
                    app.ask(request_id, create(command(LINES[line])));
                    let ran = app.fx.iter().any(|effect| matches!(effect, Effect::Terminal(TerminalJob::Create { .. })));
                    app.fx.clear();
                    if ran {
                        prop_assert!(always[line] || once[line] > 0, "{} ran", LINES[line]);
                        once[line] = once[line].saturating_sub(1);
                    } else if app.session().requests.len() > fx_before {
                        app.choose(None);
                        app.fx.clear();
                    }
                }
                Step::Update(line) => { app.update(patch("t", runs(LINES[line]))); }
                Step::Turn => {
                    app.end_turn(StopReason::EndTurn).submit("more");
                    app.fx.clear();
                    once = [0; 4];
                }
                Step::Cancel => { app.cancel(); app.fx.clear(); once = [0; 4]; }
            }
        }
        prop_assert_eq!(app.state.setup.policy, policy);
        prop_assert_eq!(&app.session().workspace, &roots);
        prop_assert!(app.state.grants.is_empty());
    }
}
