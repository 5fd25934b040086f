//! Tests of writes that are held until the user applies them.

use std::path::PathBuf;

use super::recorder::saved_session;
use super::support::*;
use super::undo::{captured, id, with_undo};
use crate::core::lifecycle::operations;
use crate::core::recording::restore::restore;
use crate::core::*;
use crate::model::held::{Fit, HeldChange, HeldFile, HeldJob, HeldNews, HeldTask};
use crate::model::hunk::hunks;
use crate::model::snapshot::{
    Capture, Moment, Part, RestoreRecord, SnapshotJob, SnapshotNews, SnapshotRecord, SnapshotTask, Span,
};
use crate::model::*;

const PATH: &str = "/code/shop/a.txt";
const OLD: &str = "1\n2\n3\n4\n5\n";
const NEW: &str = "one\n2\n3\n4\nfive\n";

fn in_turn() -> TestCore {
    let mut app = with_undo();
    app.state.setup.policy.hold_writes = true;
    app.submit("go");
    captured(&mut app, Moment::Before(1), 1, &[]);
    app
}

fn with_held_file() -> TestCore {
    let mut app = in_turn();
    writes(&mut app, 5, Some(OLD), NEW);
    app
}

/// The agent writes a file, which is held.
fn writes(app: &mut TestCore, request_id: u64, base: Option<&str>, text: &str) {
    let request =
        AgentRequest::WriteFile { session: Some(ID.into()), path: PATH.into(), content: text.into() };
    app.ask(request_id, request);
    let held = HeldFile { base: base.map(Into::into), text: text.into() };
    let served = ServedFile {
        access: Access::Write { path: PATH.into() },
        allowed: AllowedBy::InsideRoots.into(),
        change: None,
        held: Some(held),
    };
    let (request_id, served) = (RequestId(request_id), Some(Box::new(served)));
    app.service(ServiceEvent::FileDone { conn: CONN, request_id, result: Ok(None), served });
}

fn held(app: &TestCore) -> Vec<(PathBuf, Option<String>, String)> {
    let files = app.session().held.files.iter();
    let text = |text: &Body| text.as_str().to_owned();
    files.map(|(path, file)| (path.clone(), file.base.as_ref().map(text), text(&file.text))).collect()
}

fn held_as(base: &str, text: &str) -> Vec<(PathBuf, Option<String>, String)> {
    vec![(PATH.into(), Some(base.to_owned()), text.to_owned())]
}

/// Opens the review, with what the disk has.
fn compared(app: &mut TestCore, disk: &str, text: &str, fit: Fit) {
    app.flow(|state, cx| operations::review_held(state, KEY, cx));
    answer_comparison(app, disk, text, fit);
}

fn answer_comparison(app: &mut TestCore, disk: &str, text: &str, fit: Fit) {
    let held = app.session().held.files.get(&PathBuf::from(PATH)).unwrap().clone();
    let change = HeldChange {
        path: PATH.into(),
        held,
        disk: Some(disk.into()),
        text: text.into(),
        hunks: hunks(disk, text),
        fit,
    };
    compared_as(app, vec![change]);
}

fn compared_as(app: &mut TestCore, changes: Vec<HeldChange>) {
    let number = app.session().held.review.as_ref().unwrap().comparing.unwrap();
    app.service(ServiceEvent::Held(KEY, HeldNews::Compared(number, changes), None));
}

fn hunk(app: &TestCore, index: usize) -> Part {
    let review = app.session().held.review.as_ref().unwrap();
    let change = &review.changes.as_ref().unwrap()[0];
    Part { path: change.path.clone(), hunks: vec![change.hunks[index].clone()] }
}

/// The text that is to be written, if any; answers that it was.
fn written(app: &mut TestCore, result: Result<(), String>) -> Option<String> {
    let job = app.fx.iter().find_map(|effect| match effect {
        Effect::Held(job) => Some((job, false)),
        Effect::Snapshot(SnapshotJob { task: SnapshotTask::Apply { job, has_span }, .. }) => {
            Some((&**job, *has_span))
        }
        _ => None,
    });
    let (HeldJob { task: HeldTask::Apply { change, text }, .. }, has_span) = job? else { return None };
    let (change, text) = (change.clone(), text.clone());
    app.fx.clear();
    let span = has_span.then(|| Span { before: id(7), after: id(8) });
    let news = HeldNews::Applied { change, text: text.clone(), result };
    app.service(ServiceEvent::Held(KEY, news, span));
    Some(text.as_str().to_owned())
}

#[test]
fn held_files_are_read_back_and_survive_a_restart() {
    let mut app = with_held_file();
    let saved = saved_session(&mut app);
    app.fx.clear();
    app.ask(
        6,
        AgentRequest::ReadFile { session: Some(ID.into()), path: PATH.into(), line: None, limit: None },
    );
    let Some(Effect::File(job)) = app.fx.iter().find(|effect| matches!(effect, Effect::File(_))) else {
        panic!("{:?}", app.fx)
    };
    assert!(job.holding.is_on && job.holding.files.contains_key(&PathBuf::from(PATH)));
    let mut again = Session::new(KEY, app.session().workspace.clone());
    restore(&mut again, saved, std::time::Instant::now());
    assert_eq!(again.held.files, app.session().held.files);
}

#[test]
fn parts_are_applied_and_discarded() {
    let mut app = with_held_file();
    app.end_turn(StopReason::EndTurn);
    captured(&mut app, Moment::After(1), 1, &[]);
    compared(&mut app, OLD, NEW, Fit::Clean);
    app.fx.clear();

    let first = hunk(&app, 0);
    app.flow(|state, cx| operations::apply_held(state, KEY, &first, cx));
    // Until it is written, nothing else is decided, also on another page.
    app.flow(|state, _| operations::close_held(state, KEY));
    app.flow(|state, cx| operations::discard_held(state, KEY, &first, cx));
    assert_eq!(held(&app), held_as(OLD, NEW));
    let partly = "one\n2\n3\n4\n5\n";
    assert_eq!(written(&mut app, Ok(())).as_deref(), Some(partly));
    assert_eq!(held(&app), held_as(partly, NEW));
    // It is undone with the turn.
    let spans: Vec<_> = app.session().undo.undoable().map(|it| (it.turn, it.is_applied)).collect();
    assert_eq!(spans, [(1, true)]);
    app.flow(|state, cx| operations::review_held(state, KEY, cx));

    answer_comparison(&mut app, partly, NEW, Fit::Clean);
    let second = hunk(&app, 0);
    app.flow(|state, cx| operations::discard_held(state, KEY, &second, cx));
    assert_eq!(held(&app), []);
    let draft = &app.session().draft;
    assert!(draft.starts_with("a.txt:5 ") && draft.ends_with("I discarded this change.\n"), "{draft}");
    assert_eq!(app.state.flash.as_deref(), Some("Discarded, and added to the prompt."));
    compared_as(&mut app, Vec::new());
    assert_eq!(app.session().held.review, None);
}

#[test]
fn what_changed_meanwhile_is_compared_again() {
    let mut app = with_held_file();
    compared(&mut app, OLD, NEW, Fit::Clean);
    let part = hunk(&app, 0);
    // The agent writes again: the page follows it.
    writes(&mut app, 6, Some(OLD), "six\n");
    app.flow(|state, cx| operations::apply_held(state, KEY, &part, cx));
    assert_eq!(written(&mut app, Ok(())), None);
    answer_comparison(&mut app, OLD, "six\n", Fit::Clean);
    app.fx.clear();
    let part = Part::from(PathBuf::from(PATH));
    app.flow(|state, cx| operations::apply_held(state, KEY, &part, cx));
    // The disk has changed.
    assert!(written(&mut app, Err("it was changed meanwhile".to_owned())).is_some());
    assert_eq!(held(&app), held_as(OLD, "six\n"));
    assert!(app.notices().last().unwrap().contains("was not written: it was changed meanwhile."));
}

#[test]
fn a_merged_change_is_written_once() {
    let mut app = in_turn();
    writes(&mut app, 5, Some(OLD), "one\n2\n3\n4\n5\n");
    let (disk, merged) = ("1\n2\n3\n4\n5 of the user\n", "one\n2\n3\n4\n5 of the user\n");
    compared(&mut app, disk, merged, Fit::Merged);
    app.fx.clear();
    let part = Part::from(PathBuf::from(PATH));
    app.flow(|state, cx| operations::apply_held(state, KEY, &part, cx));
    // The page is closed before it is written.
    app.flow(|state, _| operations::close_held(state, KEY));
    assert_eq!(written(&mut app, Ok(())).as_deref(), Some(merged));
    assert_eq!((held(&app), app.session().held.review.is_none()), (vec![], true));
}

#[test]
fn a_refused_file_can_only_be_discarded() {
    let mut app = with_held_file();
    compared(&mut app, OLD, NEW, Fit::Refused("its path has a link now".to_owned()));
    app.fx.clear();
    let part = Part::from(PathBuf::from(PATH));
    app.flow(|state, cx| operations::apply_held(state, KEY, &part, cx));
    assert_eq!(written(&mut app, Ok(())), None);
    app.flow(|state, cx| operations::discard_held(state, KEY, &part, cx));
    assert_eq!(held(&app), []);
}

#[test]
fn the_user_is_told_what_is_not_held() {
    let mut app = in_turn();
    app.end_turn(StopReason::EndTurn);
    captured(&mut app, Moment::After(1), 2, &["b.txt"]);
    let warnings = |app: &TestCore| {
        app.notices().iter().filter(|text| text.contains("although writes are held")).count()
    };
    assert_eq!(warnings(&app), 1);
    // Once.
    super::undo::turn(&mut app, 2, (2, 3), &["b.txt"]);
    assert_eq!(warnings(&app), 1);
}

#[test]
fn a_conflict_keeps_its_base_until_it_is_decided() {
    let mut app = with_held_file();
    let disk = "uno\n2\n3\n4\n5\n";
    compared(&mut app, disk, NEW, Fit::Conflict);
    let first = hunk(&app, 0);
    app.flow(|state, cx| operations::discard_held(state, KEY, &first, cx));
    assert_eq!(held(&app), held_as(OLD, "uno\n2\n3\n4\nfive\n"));
}

#[test]
fn too_much_is_refused_and_not_held() {
    let mut app = in_turn();
    writes(&mut app, 5, None, &"x".repeat(33 << 20));
    assert_eq!(held(&app), []);
    let sent = app.fx.iter().any(|effect| {
        matches!(effect, Effect::Send(_, AgentCommand::Respond(_, Response::Error(error)))
            if error.message.contains("32 MiB are held already"))
    });
    assert!(sent, "{:?}", app.fx);
}

#[test]
fn what_was_applied_in_a_turn_is_no_unreported_change() {
    let mut app = with_held_file();
    app.end_turn(StopReason::EndTurn);
    captured(&mut app, Moment::After(1), 1, &[]);
    app.submit("more");
    captured(&mut app, Moment::Before(2), 1, &[]);
    compared(&mut app, OLD, NEW, Fit::Clean);
    app.fx.clear();
    let part = Part::from(PathBuf::from(PATH));
    app.flow(|state, cx| operations::apply_held(state, KEY, &part, cx));
    assert_eq!(written(&mut app, Ok(())).as_deref(), Some(NEW));
    app.end_turn(StopReason::EndTurn);
    let root = "/code/shop".into();
    let changed = vec!["a.txt".into()];
    let capture = Capture { id: id(2), root, changed, left_out: Vec::new(), pruned: 0 };
    super::undo::news(&mut app, SnapshotNews::Captured(Moment::After(2), Ok(capture)));
    assert!(app.session().undo.unseen.is_empty());
    assert!(!app.notices().iter().any(|text| text.contains("although writes are held")));
}

#[test]
fn a_redo_restores_only_what_its_undo_took() {
    let mut app = with_undo();
    let restore = |before: u8, after: u8| RestoreRecord {
        turns: vec![1],
        before: id(before),
        after: id(after),
        files: 1,
        is_whole: true,
    };
    super::undo::turn(&mut app, 1, (1, 2), &["a.txt"]);
    let undo = &mut app.session_mut().undo;
    undo.apply(&SnapshotRecord::Undone(restore(2, 1)));
    undo.apply(&SnapshotRecord::Applied { turn: 1, before: id(1), after: id(3) });
    undo.apply(&SnapshotRecord::Undone(restore(3, 1)));
    assert_eq!(undo.undoable().count(), 0);
    undo.apply(&SnapshotRecord::Redone(restore(3, 1)));
    let spans: Vec<_> = undo.undoable().map(|changes| changes.is_applied).collect();
    assert_eq!(spans, [true]);
}
