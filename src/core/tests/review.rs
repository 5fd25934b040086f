//! Tests of accepting and rejecting what the turns of a session have changed.

use super::support::*;
use super::undo::{captured, id, news, planned, preview, restored, step, turn, with_undo};
use crate::core::lifecycle::operations;
use crate::core::*;
use crate::model::hunk::hunks;
use crate::model::snapshot::{
    Accepted, Action, Moment, Part, Preview, SnapshotNews, SnapshotRecord, SnapshotTask,
};
use crate::model::*;

const OLD: &str = "1\n2\n3\n";
const NEW: &str = "1\ntwo\n3\n@/etc/passwd\n";

fn shown() -> Preview {
    let change = DiffChange::Texts { old: Some(OLD.into()), new: NEW.into() };
    let diffs = vec![Some(FileDiff { path: "/code/shop/a".into(), change })];
    Preview { diffs, hunks: vec![hunks(OLD, NEW)], ..preview(vec![step("a", Action::Write)]) }
}

fn part(position: usize) -> Part {
    Part { path: "a".into(), hunks: vec![hunks(OLD, NEW)[position].clone()] }
}

/// A session with one turn whose changes are shown.
fn reviewed() -> TestCore {
    let mut app = with_undo();
    turn(&mut app, 1, (1, 2), &["a"]);
    app.flow(|state, cx| operations::review_changes(state, KEY, cx)).expect_sent("review 1 without []");
    planned(&mut app, Ok(shown()));
    assert_eq!(app.requests.last(), Some(&UiRequest::Undo(KEY)));
    app.fx.clear();
    app
}

fn snapshot_task(effect: Effect) -> Option<SnapshotTask> {
    if let Effect::Snapshot(job) = effect { Some(job.task) } else { None }
}

fn accepted(app: &mut TestCore, what: Result<Accepted, String>) {
    news(app, SnapshotNews::Accepted("a".into(), what));
}

#[test]
fn an_accepted_part_is_recorded_and_the_rest_is_planned_again() {
    let mut app = reviewed();
    app.flow(|state, cx| operations::accept_part(state, KEY, part(0), cx));
    app.expect_sent("accept \"a\" [Hunk { old: 1..2, new: 1..2 }] through 1");
    let what = Accepted { turn: 1, base: Some(id(7)) };
    accepted(&mut app, Ok(what.clone()));
    app.expect_sent("review 1 without [\"a\"]");
    assert_eq!(app.session().undo.accepted.get(std::path::Path::new("a")), Some(&what));
    assert_eq!(app.session().draft, "");
}

#[test]
fn what_was_accepted_is_read_from_the_record() {
    let mut undo = Undo::default();
    let record = SnapshotRecord::Accepted { path: "a".into(), what: Accepted { turn: 3, base: None } };
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(text, r#"{"accepted":{"path":"a","turn":3}}"#);
    undo.apply(&serde_json::from_str(&text).unwrap());
    assert_eq!(undo.accepted.len(), 1);
}

#[test]
fn a_rejected_part_is_reverted_and_reported_in_the_draft() {
    let mut app = reviewed();
    app.session_mut().draft = "Also:".into();
    app.flow(|state, cx| operations::reject_part(state, KEY, part(1), cx)).expect_sent("restore [\"a\"]");
    restored(&mut app, (3, 4), &["a"]);
    let draft = app.session().draft.clone();
    assert!(draft.starts_with("Also:\na:4 [Pasted text #"), "{draft}");
    assert!(draft.ends_with("]: I reverted this change.\n"), "{draft}");
    assert!(!draft.contains('@'), "what the agent wrote mentions no file: {draft}");
    let saved = app.fx.iter().find_map(|effect| match effect {
        Effect::SaveAttachment(attachment) => Some(attachment.bytes().to_vec()),
        _ => None,
    });
    assert_eq!(saved.as_deref(), Some(&b"a:4\n+@/etc/passwd"[..]));
    app.expect_sent("review 1 without []");
    assert_eq!(app.session().undo.undoable().count(), 1, "the turn was not undone");
    assert_eq!(app.session().undo.undone.len(), 1, "/redo restores it");
}

#[test]
fn changes_are_accepted_while_a_turn_runs() {
    let mut app = reviewed();
    app.submit("go");
    captured(&mut app, Moment::Before(2), 2, &[]);
    app.sent();
    app.flow(|state, cx| operations::accept_part(state, KEY, part(0), cx));
    app.expect_sent("accept \"a\" [Hunk { old: 1..2, new: 1..2 }] through 1");
    accepted(&mut app, Ok(Accepted { turn: 1, base: None }));
    app.expect_sent("review 1 without [\"a\"]");
    planned(&mut app, Ok(shown()));
    app.end_turn(StopReason::EndTurn).sent();
    captured(&mut app, Moment::After(2), 3, &["b"]);
    app.expect_sent("review 2 without [\"a\"]");
}

#[test]
fn what_is_rejected_during_a_turn_is_reverted_at_its_end() {
    let mut app = reviewed();
    app.submit("go");
    captured(&mut app, Moment::Before(2), 2, &[]);
    app.sent();
    for position in [1, 0, 0] {
        app.flow(|state, cx| operations::reject_part(state, KEY, part(position), cx)).expect_sent("");
    }
    assert_eq!(app.state.flash.as_deref(), Some("Already queued: it will be reverted when the turn ends."));
    app.end_turn(StopReason::EndTurn).sent();
    captured(&mut app, Moment::After(2), 3, &[]);
    let tasks: Vec<_> = app.fx.drain(..).filter_map(snapshot_task).collect();
    let [SnapshotTask::Review { .. }, SnapshotTask::Restore(_, parts)] = &tasks[..] else {
        panic!("{tasks:?}")
    };
    assert_eq!(parts[..], [Part { path: "a".into(), hunks: hunks(OLD, NEW) }], "both, in order");
    restored(&mut app, (3, 4), &["a"]);
    assert!(app.session().draft.ends_with("I reverted this change.\n"));
    assert!(app.session().undo.queued.is_empty());
}

#[test]
fn what_changed_before_the_end_of_the_turn_is_not_reverted() {
    let mut app = reviewed();
    app.submit("go");
    captured(&mut app, Moment::Before(2), 2, &[]);
    app.flow(|state, cx| operations::reject_part(state, KEY, part(1), cx));
    app.end_turn(StopReason::EndTurn).sent();
    captured(&mut app, Moment::After(2), 3, &["a"]);
    app.sent();
    news(&mut app, SnapshotNews::Restored(Err("a was changed meanwhile.".into())));
    assert_eq!(app.last_notice().trim_end(), "The change was not reverted. a was changed meanwhile.");
    app.expect_sent("review 2 without []");
    assert_eq!(app.session().draft, "");
}

#[test]
fn a_part_that_cannot_be_decided_is_shown_again_with_the_reason() {
    let mut app = reviewed();
    app.flow(|state, cx| operations::accept_part(state, KEY, part(0), cx)).sent();
    accepted(&mut app, Err("a was changed meanwhile.".into()));
    app.expect_sent("review 1 without []");
    assert_eq!(app.state.flash.as_deref(), Some("a was changed meanwhile."));
    planned(&mut app, Ok(shown()));
    app.flow(|state, cx| operations::reject_part(state, KEY, part(0), cx)).sent();
    restored(&mut app, (3, 3), &[]);
    assert_eq!(app.session().draft, "");
    assert_eq!(app.session().undo.undone.len(), 0);
}

#[test]
fn a_decision_finishes_after_the_page_was_closed() {
    let mut app = reviewed();
    app.flow(|state, cx| operations::reject_part(state, KEY, part(0), cx)).sent();
    app.session_mut().undo.offer = None;
    restored(&mut app, (3, 4), &["a"]);
    assert!(app.session().draft.ends_with("I reverted this change.\n"));
    app.expect_sent("");
}

#[test]
fn a_file_name_that_begins_a_mention_is_only_in_the_attachment() {
    let mut app = reviewed();
    let part = Part { path: "@secret".into(), hunks: Vec::new() };
    app.flow(|state, cx| operations::comment_on_part(state, KEY, &part, "Why?", cx));
    let draft = app.session().draft.clone();
    assert!(draft.starts_with("[Pasted text #") && draft.ends_with("]: Why?\n"), "{draft}");
}

#[test]
fn a_review_without_changes_says_so() {
    let mut app = with_undo();
    turn(&mut app, 1, (1, 2), &["a"]);
    app.flow(|state, cx| operations::review_changes(state, KEY, cx));
    planned(&mut app, Ok(preview(vec![step("a", Action::Nothing)])));
    assert_eq!(app.state.flash.as_deref(), Some("No changes left to review."));
    assert!(app.session().undo.offer.is_none());
}
