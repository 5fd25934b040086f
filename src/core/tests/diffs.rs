//! Tests of locating the changes of calls in their files.

use super::support::*;
use crate::core::*;
use crate::model::*;

fn diff(old: &str, new: &str) -> FileDiff {
    FileDiff {
        path: "/code/shop/a.rs".into(),
        change: DiffChange::Texts { old: Some(old.into()), new: new.into() },
    }
}

fn edit(status: ToolStatus, diffs: Vec<FileDiff>, lines: &[u32]) -> SessionUpdate {
    let location = |line: &u32| Location { path: "/code/shop/a.rs".into(), line: Some(*line) };
    patch("t", |patch| {
        patch.status = Patch::Set(status);
        patch.content = Patch::Set(diffs.into_iter().map(ToolContent::Diff).collect());
        patch.locations = Patch::Set(lines.iter().map(location).collect());
    })
}

fn jobs(app: &mut TestCore) -> Vec<LocateJob> {
    let jobs = std::mem::take(&mut app.fx).into_iter().filter_map(|effect| match effect {
        Effect::LocateDiffs(job) => Some(job),
        _ => None,
    });
    jobs.collect()
}

fn answer(app: &mut TestCore, found: Vec<(FileDiff, DiffPosition)>, is_done: bool) {
    let found = found.into_iter().map(|(diff, position)| LocatedDiff { diff, position, is_done }).collect();
    app.service(ServiceEvent::DiffsLocated { session: KEY, item: ItemId(1), found });
}

fn at(line: u32) -> DiffPosition {
    DiffPosition::Lines(vec![Some(PieceStart::at(line, true))])
}

fn call_of(app: &TestCore) -> &ToolCall {
    match &app.session().transcript.items()[1].body {
        ItemBody::Tool(call) => call,
        other => panic!("{other:?}"),
    }
}

#[test]
fn changes_are_located_once_and_saved_with_the_call() {
    let mut app = TestCore::running();
    let (one, two) = (diff("a", "b"), diff("c", "d"));
    app.update(edit(ToolStatus::Pending, vec![one.clone(), two.clone()], &[10, 20]));
    let asked = jobs(&mut app);
    assert_eq!(asked.len(), 1);
    let facts: Vec<_> =
        asked[0].requests.iter().map(|request| (request.diff.clone(), request.near)).collect();
    assert_eq!(facts, [(one.clone(), Some(10)), (two.clone(), Some(20))]);
    assert_eq!((asked[0].item, asked[0].is_done), (ItemId(1), false));
    assert_eq!(asked[0].roots, [std::path::PathBuf::from("/code/shop")]);

    let rev = app.session().transcript.items()[1].rev;
    answer(&mut app, vec![(one.clone(), at(11)), (two.clone(), DiffPosition::Lines(vec![None]))], false);
    assert_eq!(call_of(&app).position_of(&one), Some(&at(11)));
    assert_ne!(app.session().transcript.items()[1].rev, rev, "it must be redrawn");

    // When the call has ended, changes not found are located once more.
    app.update(news("t", ToolStatus::Completed));
    let asked = jobs(&mut app);
    assert_eq!(asked.iter().map(|job| (job.is_done, job.requests.len())).collect::<Vec<_>>(), [(true, 1)]);
    answer(&mut app, vec![(two.clone(), DiffPosition::Lines(vec![None]))], true);
    app.update(news("t", ToolStatus::Completed));
    assert_eq!(jobs(&mut app), []);
    assert_eq!(call_of(&app).positions.len(), 2);
}

#[test]
fn the_diff_of_a_permission_request_is_located() {
    let mut app = TestCore::running();
    let mut tool = ToolCallPatch::new("t".into());
    tool.content = Patch::Set(vec![ToolContent::Diff(diff("a", "b"))]);
    let AgentRequest::Permission(mut request) = permission("t") else { unreachable!() };
    request.tool = tool;
    app.ask(1, AgentRequest::Permission(request));
    assert_eq!(jobs(&mut app).len(), 1);
}

#[test]
fn a_late_result_for_another_change_is_dropped() {
    let mut app = TestCore::running();
    app.update(edit(ToolStatus::Pending, vec![diff("a", "b")], &[]));
    app.update(edit(ToolStatus::Pending, vec![diff("c", "d")], &[]));
    answer(&mut app, vec![(diff("a", "b"), at(3))], false);
    assert_eq!(call_of(&app).positions, []);
    answer(&mut app, vec![(diff("c", "d"), at(4))], false);
    assert_eq!(call_of(&app).position_of(&diff("c", "d")), Some(&at(4)));
    app.service(ServiceEvent::DiffsLocated { session: SessionKey(9), item: ItemId(1), found: Vec::new() });
    app.service(ServiceEvent::DiffsLocated { session: KEY, item: ItemId(0), found: Vec::new() });
}

#[test]
fn a_change_with_line_numbers_is_not_located() {
    let mut app = TestCore::running();
    let numbered = FileDiff {
        path: "a.rs".into(),
        change: DiffChange::Patch("--- a.rs\n+++ a.rs\n@@ -1 +1 @@\n-a\n+b\n".into()),
    };
    app.update(edit(ToolStatus::Completed, vec![numbered], &[]));
    app.update(news("other", ToolStatus::Completed));
    assert_eq!(jobs(&mut app), []);
}
