//! Tests of protected files that appear or change during a turn.

use super::support::*;
use crate::core::*;
use crate::model::*;

fn files(pairs: &[(&str, &str)]) -> ProtectedFiles {
    pairs.iter().map(|(path, state)| (path.into(), (*state).to_owned())).collect()
}

/// The jobs that were started since the last call.
fn jobs(app: &mut TestCore) -> Vec<ProtectedJob> {
    let job = |effect| if let Effect::ReadProtected(job) = effect { Some(job) } else { None };
    std::mem::take(&mut app.fx).into_iter().filter_map(job).collect()
}

fn read(app: &mut TestCore, job: &ProtectedJob, pairs: &[(&str, &str)]) {
    app.service(ServiceEvent::ProtectedRead(Box::new(job.clone()), files(pairs)));
}

/// The notice about a turn before and after which these files existed.
fn notice_of(
    before: &[(&str, &str)],
    after: &[(&str, &str)],
    during: impl Fn(&mut TestCore),
) -> Option<String> {
    let mut app = TestCore::ready();
    app.fx.clear();
    app.submit("go");
    let begin = jobs(&mut app).pop().unwrap();
    read(&mut app, &begin, before);
    during(&mut app);
    app.end_turn(StopReason::EndTurn);
    let end = jobs(&mut app).pop().unwrap();
    assert!(end.is_end && end.turn == begin.turn && end.folders == begin.folders);
    read(&mut app, &end, after);
    assert!(app.session().protected.is_empty());
    notice(&app)
}

fn notice(app: &TestCore) -> Option<String> {
    let items = app.session().transcript.items().iter();
    let mut texts = items.filter_map(|item| match &item.body {
        ItemBody::Notice { title, detail, .. } => {
            Some(format!("{title} {}", detail.as_deref().unwrap_or_default()))
        }
        _ => None,
    });
    texts.rfind(|text| text.contains("protected file"))
}

const ENVRC: &str = "/code/shop/.envrc";

#[test]
fn created_and_changed_files_are_listed_with_their_effect() {
    let before = [("/code/shop/.git/config", "1"), ("/code/shop/.mcp.json", "1")];
    let after = [before[0], ("/code/shop/.mcp.json", "2"), ("/code/shop/.git/commondir", "1")];
    let text = notice_of(&before, &after, |_| ()).unwrap();
    assert_eq!(
        text,
        "2 protected files were created or changed during the turn, maybe by an editor, a build or you. \
         Check the content before you run git, an editor or a build here. Created: .git/commondir. Version control runs \
         commands from this file.\nChanged: .mcp.json. This file configures an agent."
    );
}

#[test]
fn a_command_of_the_agent_is_the_likely_cause() {
    let text = notice_of(&[], &[(ENVRC, "1")], |app| {
        app.update(patch("a", |patch| {
            patch.is_announcement = true;
            patch.kind = Patch::Set(ToolKind::Execute);
        }));
    });
    assert!(
        text.unwrap().starts_with("1 protected file was created during the turn, likely by its commands.")
    );
}

#[test]
fn reported_and_unchanged_files_are_not_listed() {
    assert_eq!(notice_of(&[(ENVRC, "1")], &[(ENVRC, "1")], |_| ()), None);
    assert_eq!(notice_of(&[(ENVRC, "1")], &[], |_| ()), None, "deleted");
    let edit = |app: &mut TestCore| {
        let change = DiffChange::Texts { old: None, new: "b".into() };
        let diff = FileDiff { path: ENVRC.into(), change };
        app.update(patch("a", |patch| {
            patch.is_announcement = true;
            patch.content = Patch::Set(vec![ToolContent::Diff(diff.clone())]);
        }));
    };
    assert_eq!(notice_of(&[], &[(ENVRC, "1")], edit), None);
}

#[test]
fn of_a_new_folder_only_the_folder_is_listed() {
    let after = [("/code/shop/.git", "folder"), ("/code/shop/.git/config", "1")];
    let text = notice_of(&[], &after, |_| ()).unwrap();
    assert!(text.starts_with("1 protected file was created") && !text.contains("config"), "{text}");
}

#[test]
fn a_read_that_ends_late_is_about_its_own_turn() {
    let mut app = TestCore::ready();
    app.fx.clear();
    app.submit("one");
    let first = jobs(&mut app).pop().unwrap();
    read(&mut app, &first, &[]);
    app.end_turn(StopReason::EndTurn);
    let end = jobs(&mut app).pop().unwrap();
    app.submit("two");
    let second = jobs(&mut app).pop().unwrap();
    read(&mut app, &second, &[(ENVRC, "1")]);
    read(&mut app, &end, &[(ENVRC, "1")]);
    assert!(notice(&app).unwrap().starts_with("Turn 1: 1 protected file was created"));
    assert_eq!(app.session().protected.len(), 1, "the second turn runs");
}

#[test]
fn files_of_another_machine_are_not_read() {
    let mut app = TestCore::ready();
    app.session_mut().workspace.remote = Some(RemoteFolder { host: "far".into(), folder: "/code".into() });
    app.fx.clear();
    app.submit("go");
    app.end_turn(StopReason::EndTurn);
    assert_eq!(jobs(&mut app), []);
}
