//! Paths that the sandbox likely refused.

use std::path::PathBuf;

use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::*;

/// A turn in a sandbox that ended after a command with this output.
fn refused(output: &str) -> TestCore {
    let mut app = TestCore::running();
    app.state.setup.sandbox.mode = SandboxMode::Workspace;
    app.state.setup.home = Some("/home/ada".into());
    app.state.setup.own_folders = vec!["/data/parlor".into()];
    app.state.conns.get_mut(&CONN).unwrap().spec.bounds = Some(Box::default());
    end_with(&mut app, output);
    app
}

fn end_with(app: &mut TestCore, output: &str) {
    let mut tool = ToolCallPatch::new("t".into());
    tool.kind = Patch::Set(ToolKind::Execute);
    tool.content = Patch::Set(vec![ToolContent::Block(ContentBlock::Text(output.into()))]);
    app.update(SessionUpdate::Tool(Box::new(tool))).end_turn(StopReason::EndTurn);
}

/// What can be written and read because the user opened it.
fn granted(app: &TestCore) -> (&[PathBuf], &[PathBuf]) {
    let bounds = app.state.conns[&app.conn()].spec.bounds.as_ref().unwrap();
    (&bounds.granted_write, &bounds.granted_read)
}

/// The last notice, its details and the paths that can be opened.
fn told(app: &TestCore) -> (String, Vec<PathBuf>) {
    (app.notices().concat(), app.session().refused.clone())
}

#[test]
fn a_refused_path_is_opened_and_the_agent_restarted() {
    let mut app = refused("touch: cannot touch '/opt/x/a': Permission denied");
    let (notice, paths) = told(&app);
    assert!(notice.contains("Likely refused by the sandbox. /allow-path opens a path. /opt/x/a"), "{notice}");
    assert_eq!(paths, [PathBuf::from("/opt/x/a")]);
    let before = app.conn();
    app.flow(|state, cx| operations::offer_refused_paths(state, KEY, cx));
    let question = app.state.questions.last().unwrap();
    let labels: Vec<&str> = question.answers.iter().map(|answer| answer.label.as_str()).collect();
    let expected = ["Cancel", "Write /opt/x/a", "Read /opt/x/a", "Write /opt/x"];
    assert_eq!(labels, expected);
    app.decide(3);
    assert!(granted(&app).0.is_empty(), "nothing is open yet");
    app.decide(2);
    assert_ne!(app.conn(), before, "the agent is restarted");
    assert_eq!(granted(&app).0, [PathBuf::from("/opt/x")]);
    let grant = Grant::SandboxWrite("/opt/x".into());
    assert!(app.fx.iter().any(|effect| matches!(effect, Effect::SaveGrant(saved) if saved.grant == grant)));
    assert_eq!(app.state.grants.len(), 1, "it can be revoked");
    assert!(app.session().refused.is_empty());
}

#[test]
fn a_path_for_the_session_is_not_saved() {
    let mut app = refused("cat: /opt/x/a.txt: Permission denied");
    app.flow(|state, cx| operations::offer_refused_paths(state, KEY, cx));
    app.decide(2).decide(1);
    assert_eq!(granted(&app).1, [PathBuf::from("/opt/x/a.txt")]);
    assert!(app.state.grants.is_empty());
}

#[test]
fn wide_and_secret_paths_are_not_offered() {
    for path in [
        "/",
        "/opt",
        "/home",
        "/home/ada",
        "/home/ada/.ssh/id_ed25519",
        "/home/ada/.bashrc",
        "/home/ada/.config/gh/hosts.yml",
        "/srv/x/server.key",
        "/data/parlor",
        "/data/parlor/x",
        "/data",
    ] {
        let mut app = refused(&format!("open '{path}': permission denied"));
        let (notice, paths) = told(&app);
        assert!(notice.contains(&format!("Likely refused by the sandbox. {path}")), "{notice}");
        assert_eq!(paths, [] as [PathBuf; 0], "{path}");
        app.flow(|state, cx| operations::offer_refused_paths(state, KEY, cx));
        assert!(app.state.questions.is_empty());
    }
}

#[test]
fn errors_in_the_folder_are_told_only_for_protected_files() {
    let (notice, paths) = told(&refused("sh: 1: cannot create .git/hooks/a: Read-only file system"));
    assert!(notice.contains("/code/shop/.git/hooks/a (protected)"), "{notice}");
    assert!(paths.is_empty());
    let (notice, _) = told(&refused("rm: cannot remove 'src/a.rs': Permission denied"));
    assert!(!notice.contains("sandbox."), "{notice}");
}

#[test]
fn nothing_is_told_without_a_sandbox() {
    let mut app = TestCore::running();
    end_with(&mut app, "cat: /opt/x: Permission denied");
    assert_eq!(told(&app), (String::new(), Vec::new()));
}

#[test]
fn a_folder_of_the_agent_cannot_change_what_is_shown() {
    let mut app = refused("");
    app.submit("go");
    let mut tool = ToolCallPatch::new("u".into());
    tool.kind = Patch::Set(ToolKind::Execute);
    let cwd = Some("/opt/a\nNeeded by the build".into());
    tool.input = Patch::Set(ToolInput { cwd, ..ToolInput::default() });
    let text = "cat: x/y: Permission denied";
    tool.content = Patch::Set(vec![ToolContent::Block(ContentBlock::Text(text.into()))]);
    app.update(SessionUpdate::Tool(Box::new(tool))).end_turn(StopReason::EndTurn);
    assert_eq!(told(&app), (String::new(), Vec::new()));
}

#[test]
fn a_path_is_offered_only_after_its_turn() {
    let mut app = refused("cat: /opt/x/a.txt: Permission denied");
    app.submit("go").end_turn(StopReason::EndTurn);
    assert!(app.session().refused.is_empty());
    let told = app.notices().into_iter().filter(|notice| notice.starts_with("Likely refused"));
    assert_eq!(told.count(), 1);
}
