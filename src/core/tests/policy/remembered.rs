//! Tests of what an approval or a grant covers.

use super::*;
use crate::core::lifecycle::operations;

/// Variables that determine what a command executes.
const LOADERS: [&str; 14] = [
    "PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_COUNT",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "PERL5OPT",
    "BASH_ENV",
    "ENV",
    "EDITOR",
    "PAGER",
    "LC_ALL",
];

#[test]
fn approvals_and_grants_cover_no_other_folder_or_environment() {
    let with = |name: &str, value: &str| {
        let env = vec![(name.to_owned(), value.to_owned())];
        TerminalCommand { env, ..command("make") }
    };
    let sub = || TerminalCommand { cwd: Some("/code/shop/sub".into()), ..command("make") };
    // Approved once, approved always, granted for the session, in the folder, and for all commands.
    for way in 0..5 {
        let mut app = TestCore::running();
        if way < 2 {
            approve(&mut app, 1, way, runs("make"));
        } else {
            assert!(!is_started(&mut app, 1, command("make")));
            app.choose(Some(way - 1));
            app.fx.clear();
        }
        let mut request_id = 2;
        for name in LOADERS {
            assert!(!is_started(&mut app, request_id, with(name, "/code/shop/x")), "{name}, way {way}");
            app.choose(None);
            app.fx.clear();
            request_id += 1;
        }
        assert_eq!(is_started(&mut app, request_id, sub()), way == 4, "way {way}");
        if way < 4 {
            app.choose(None);
            app.fx.clear();
        }
        assert!(is_started(&mut app, request_id + 1, command("make")), "way {way}: what was allowed runs");
    }
    // With its variables it is granted too, but for these values only.
    let mut app = TestCore::running();
    assert!(!is_started(&mut app, 1, with("PATH", "/opt/bin")));
    let Some(OpenRequestKind::Access(asked)) = app.session().requests.front().map(|request| &request.kind)
    else {
        panic!()
    };
    assert!(!asked.offers_all_commands, "only this command is offered");
    app.choose(Some(1));
    app.fx.clear();
    assert!(is_started(&mut app, 2, with("PATH", "/opt/bin")));
    assert!(!is_started(&mut app, 3, with("PATH", "/tmp")));
    assert!(!is_started(&mut app, 4, command("make")));
}

#[test]
fn one_answer_allows_all_commands_of_an_agent_for_the_session() {
    let mut app = TestCore::running();
    for (request_id, line) in [(1, "make"), (2, "make test")] {
        assert!(!is_started(&mut app, request_id, command(line)));
    }
    assert!(!is_started(&mut app, 3, TerminalCommand { cwd: Some("/etc".into()), ..command("ls") }));
    let Some(OpenRequestKind::Access(asked)) = app.session().requests.front().map(|request| &request.kind)
    else {
        panic!()
    };
    assert_eq!(asked.labels()[3], "Allow all commands of fake for this session");
    app.choose(Some(3));
    app.expect_sent(
        "terminal create 1 \"make\" in /code/shop\nterminal create 2 \"make test\" in /code/shop",
    );
    let is_bound = |effect: &Effect| matches!(effect, Effect::Terminal(TerminalJob::Create { within: Some(roots), .. }) if roots.len() == 1);
    assert!(app.fx.iter().all(is_bound), "a link does not lead out of the folders");
    app.fx.clear();
    assert_eq!(app.session().requests.len(), 1, "commands outside of the folders still wait");
    app.choose(None).end_turn(StopReason::EndTurn).submit("more");
    app.fx.clear();
    assert!(is_started(&mut app, 4, command("rm -r build")), "in the next turn too");
    // It is listed, can be revoked, and is not saved.
    let listed: Vec<String> = granted(&app.state).iter().map(|grant| grant.grant.description()).collect();
    assert_eq!(listed, ["run any command in the session's folders"]);
    assert!(app.state.grants.is_empty());
    let id = granted(&app.state)[0].id();
    app.flow(|state, cx| _ = operations::revoke(state, &id, cx));
    assert!(!is_started(&mut app, 5, command("ls")));
    // It is not offered for a remote agent.
    let mut app = TestCore::running();
    let conn = app.conn();
    let remote = Some(Ssh { host: "build".into(), ..Ssh::default() });
    app.state.conns.get_mut(&conn).unwrap().spec.ssh = remote;
    assert!(!is_started(&mut app, 1, command("ls")));
    let Some(OpenRequestKind::Access(asked)) = app.session().requests.front().map(|request| &request.kind)
    else {
        panic!()
    };
    assert!(!asked.choices().contains(&AccessChoice::AllCommands));
}

/// Writes a file that the service found protected; returns whether the user is asked about it.
fn is_asked_again(
    app: &mut TestCore,
    request_id: u64,
    (named, real): (&str, &str),
    old: Option<&str>,
    new: &str,
    protection: Protection,
) -> bool {
    app.fx.clear();
    app.ask(
        request_id,
        AgentRequest::WriteFile { session: Some(ID.into()), path: named.into(), content: new.into() },
    );
    let Some(job) = app.fx.iter().find_map(|effect| match effect {
        Effect::File(job) => Some(job.clone()),
        _ => None,
    }) else {
        panic!("{:?}", app.fx)
    };
    let change = DiffChange::Texts { old: old.map(Into::into), new: new.into() };
    let diff = Some(FileDiff { path: named.into(), change });
    let asked = Box::new(AskedFile {
        access: Access::Write { path: real.into() },
        facts: Facts { is_inside: true, protection: Some(protection), is_covered: false },
        why: AskReason::Protected(protection),
        change: Some(WriteChange { diff, line: None, size_bytes: new.len() as u64 }),
    });
    app.fx.clear();
    let waiting = app.session().requests.len();
    app.service(ServiceEvent::FileAsks { job, asked });
    let is_allowed = app.fx.iter().any(
        |effect| matches!(effect, Effect::File(job) if job.allowed == Some(AllowedBy::ApprovedCall.into())),
    );
    let is_asked = app.session().requests.len() > waiting;
    assert!(is_asked != is_allowed, "{:?}", app.fx);
    if is_asked {
        app.choose(None);
    }
    is_asked
}

#[test]
fn a_protected_file_is_asked_about_once_where_the_approved_dialog_showed_it() {
    const HOOK: &str = "/code/shop/.git/hooks/pre-commit";
    let same = (HOOK, HOOK);
    let approved = |old: Option<&str>, new: &str| {
        let mut app = TestCore::running();
        let change = DiffChange::Texts { old: old.map(Into::into), new: new.into() };
        approve(&mut app, 1, 0, edits(vec![FileDiff { path: ".git/hooks/pre-commit".into(), change }]));
        app
    };
    let asked =
        |app: &mut TestCore, paths, old, new| is_asked_again(app, 2, paths, old, new, Protection::Git);

    assert!(!asked(&mut approved(None, "#!/bin/sh\n"), same, None, "#!/bin/sh\n"), "a new file");
    assert!(!asked(&mut approved(Some("b\n"), "c\n"), same, Some("a\nb\n"), "a\nc\n"), "a part of a file");
    assert!(asked(&mut TestCore::running(), same, None, "#!/bin/sh\n"), "nothing was approved");

    // Anything that differs from what was shown is asked about.
    assert!(asked(&mut approved(None, "true\n"), same, None, "true\nrm -rf ~\n"), "other content");
    assert!(asked(&mut approved(None, "true\n"), same, Some("old\n"), "true\n"), "an existing file");
    assert!(asked(&mut approved(Some("b\n"), "c\n"), same, Some("b\nb\n"), "c\nb\n"), "one of two places");
    assert!(asked(&mut approved(Some("a\n"), "c\n"), same, Some("other\n"), "c\n"), "it has changed since");
    let config = "/code/shop/.git/config";
    assert!(asked(&mut approved(None, "true\n"), (config, config), None, "true\n"), "another file");
    let by_link = ("/code/shop/notes", HOOK);
    assert!(
        !asked(&mut approved(None, "true\n"), by_link, None, "true\n"),
        "the dialog showed the real path"
    );
    let mut app = approved(None, "true\n");
    app.end_turn(StopReason::EndTurn).submit("more");
    assert!(asked(&mut app, same, None, "true\n"), "another turn");

    // The dialog did not mark it: a link with a harmless name, a fifth file, a patch.
    let mut app = TestCore::running();
    approve(&mut app, 1, 0, edits(vec![diff("notes", "", "true\n")]));
    assert!(asked(&mut app, ("/code/shop/notes", HOOK), None, "true\n"), "by a link");
    let mut app = TestCore::running();
    let mut many: Vec<FileDiff> = (0..4).map(|n| diff(&format!(".git/hooks/{n}"), "", "x\n")).collect();
    many.push(diff(HOOK, "", "true\n"));
    approve(&mut app, 1, 0, edits(many));
    assert!(asked(&mut app, same, None, "true\n"), "not among those named in the dialog");
    let mut app = TestCore::running();
    let patch = DiffChange::Patch("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+true\n".into());
    approve(&mut app, 1, 0, edits(vec![FileDiff { path: HOOK.into(), change: patch }]));
    assert!(asked(&mut app, same, None, "true\n"), "a patch does not show the whole text");
    // parlor's own files are always asked about.
    let mut app = approved(None, "true\n");
    assert!(is_asked_again(&mut app, 2, same, None, "true\n", Protection::Own));
    // A refused change is asked about too.
    let mut app = TestCore::running();
    approve(&mut app, 1, 2, edits(vec![diff(HOOK, "", "true\n")]));
    assert!(asked(&mut app, same, None, "true\n"));
}
