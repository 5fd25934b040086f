//! Tests of sessions with a remote agent.

use super::support::*;
use crate::core::lifecycle::{operations, ssh_sign_in};
use crate::core::*;
use crate::model::*;

pub fn far_spec() -> AgentSpec {
    AgentSpec {
        name: "far".into(),
        command: "agent".into(),
        cwd: Some("/srv/shop".into()),
        callbacks: Callbacks::NONE,
        ssh: Some(Ssh { host: "build".into(), ..Ssh::default() }),
        ..AgentSpec::default()
    }
}

fn ready() -> TestCore {
    let mut app = TestCore::with_spec(far_spec());
    app.handshake(all_capabilities()).open(ID);
    app
}

fn edit() -> SessionUpdate {
    let change = DiffChange::Texts { old: Some("old\n".into()), new: "new\n".into() };
    let diff = FileDiff { path: "/srv/shop/a.rs".into(), change };
    SessionUpdate::Tool(Box::new(ToolCallPatch {
        content: Patch::Set(vec![ToolContent::Diff(diff)]),
        status: Patch::Set(ToolStatus::Completed),
        ..ToolCallPatch::new("t".into())
    }))
}

#[test]
fn the_remote_agent_gets_its_folder_and_the_session_is_stored_under_the_local_one() {
    let app = ready();
    let location = &app.session().workspace;
    assert_eq!((location.folder(), location.cwd.as_path()), ("/srv/shop".as_ref(), "/code/shop".as_ref()));
    let connect = app.fx.iter().find_map(|effect| match effect {
        Effect::Connect { cwd, .. } => Some(cwd.clone()),
        _ => None,
    });
    assert_eq!(connect, Some("/code/shop".into()), "ssh runs locally");
    let head = app.saved.iter().find_map(|note| match note {
        Note::Head(head) => Some(head.clone()),
        _ => None,
    });
    let head = head.expect("a head is kept");
    assert_eq!(
        (head.agent.as_str(), head.command.as_str()),
        ("far", ""),
        "it must not be started here by mistake"
    );
    assert_eq!(head.workspace.cwd.as_path(), "/code/shop".as_ref() as &std::path::Path);
}

#[test]
fn remote_files_are_not_read_from_the_local_disk() {
    let mut app = ready();
    app.fx.clear();
    app.submit("go");
    app.update(edit()).end_turn(StopReason::EndTurn);
    let reads = |effect: &Effect| matches!(effect, Effect::LocateDiffs(_) | Effect::ReadGit { .. });
    assert!(!app.fx.iter().any(reads), "{:?}", app.fx);
    let git = GitInfo { branch: "main".into(), is_dirty: false };
    app.service(ServiceEvent::Git(KEY, Some(git)));
    assert_eq!(app.session().git, None);
}

#[test]
fn a_lost_connection_is_restored_and_the_session_resumed() {
    let mut app = ready();
    app.submit("go");
    app.fx.clear();
    let error = "The line to build was not made, or was lost: Broken pipe.".to_owned();
    for _ in 0..2 {
        app.wait(5).agent(AgentEvent::Closed(CloseReason::Unreachable { error: error.clone() }));
    }
    app.handshake(all_capabilities())
        .expect_sent("connect 2 after 500 ms\nconnect 3 after 2000 ms\ncall resume s");
    assert!(app.last_notice().starts_with(&format!("The connection failed. {error}")), "{:?}", app.notices());
}

#[test]
fn a_host_that_requires_interaction_gets_the_terminal_if_the_user_agrees() {
    let mut app = TestCore::with_spec(far_spec());
    app.fx.clear();
    let error = "build does not let ssh in without asking: Permission denied (password).".to_owned();
    app.agent(AgentEvent::Closed(CloseReason::SignInFirst { error })).expect_sent("");
    let Some(dialog) = app.state.questions.last() else { panic!("the user is asked") };
    assert_eq!(dialog.answers[0].consequence, Consequence::SignInToHost(CONN));
    app.decide(0);
    let spec = app.fx.iter().find_map(|effect| match effect {
        Effect::RunLogin { spec, .. } => Some(spec.clone()),
        _ => None,
    });
    let spec = spec.expect("the sign-in runs");
    assert_eq!((spec.command.as_str(), spec.command_line().as_str()), ("", "ssh build"));
    app.fx.clear();
    app.service(ServiceEvent::LoginDone(CONN, Ok(()))).expect_sent("connect 2 after 0 ms");
    let second = ConnId(2);
    app.flow(|state, cx| ssh_sign_in::sign_in_to_host(state, second, cx));
    assert!(!app.fx.iter().any(|effect| matches!(effect, Effect::RunLogin { .. })), "it is starting");
}

#[test]
fn a_local_agent_makes_the_session_local_again() {
    let mut app = ready();
    let near = spec("near");
    app.flow(|state, cx| operations::start_agent(state, KEY, near, cx));
    assert_eq!(app.session().workspace.remote, None);
    assert_eq!(app.session().id, None, "another agent does not have the old id");
}
