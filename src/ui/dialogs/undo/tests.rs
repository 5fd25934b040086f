use super::*;
use crate::core::{Offer, TurnChanges};
use crate::model::snapshot::{Entry, Kind, Plan, SnapshotId, SnapshotTask, Span, Step, UndoRules};
use crate::model::{DiffChange, FileDiff};
use crate::ui::dialogs::testkit::Rig;
use crate::ui::tests::fixture::{SIZES, ready};

pub(in crate::ui::dialogs) fn id(number: u8) -> SnapshotId {
    SnapshotId::of_digest(&[number; 20])
}

pub(in crate::ui::dialogs) fn step(path: &str, action: Restore) -> Step {
    let entry = Some(Entry { kind: Kind::File, id: id(9) });
    let to = entry.clone().filter(|_| action != Restore::Delete);
    Step { path: path.into(), from: entry.clone(), to, disk: entry, action }
}

fn preview() -> Preview {
    let steps = vec![
        step("src/a.txt", Restore::Write),
        step("src/big.bin", Restore::Refused("its content is no longer in the store of snapshots".into())),
        step("src/mine.txt", Restore::Conflict),
        step("src/new.txt", Restore::Delete),
        step("src/same.txt", Restore::Nothing),
    ];
    let diff = |path: &str, old: &str, new: &str| {
        let change = DiffChange::Texts { old: Some(old.into()), new: new.into() };
        Some(FileDiff { path: path.into(), change })
    };
    let diffs = vec![
        diff("src/a.txt", "fn a() {\n    two();\n}\n", "fn a() {\n    one();\n}\n"),
        None,
        diff("src/mine.txt", "mine\n", "before\n"),
        diff("src/new.txt", "new\n", ""),
        None,
    ];
    Preview { plan: Plan { from: id(2), to: id(1), steps }, diffs, hunks: Vec::new() }
}

fn turn(turn: u32, is_late: bool) -> TurnChanges {
    TurnChanges {
        turn,
        span: Span { before: id(1), after: id(2) },
        files: Some(4),
        is_late,
        is_applied: false,
        undone_at: None,
    }
}

fn offer_to(app: &mut App) {
    let key = app.state.active;
    let session = app.state.sessions.get_mut(&key).unwrap();
    session.undo.turns = vec![turn(1, false), turn(2, true)];
    session.undo.left_out =
        vec![("media/film.mp4".into(), "too large"), ("vendor/lib".into(), "another repository")];
    let what = RestoreOf::Turns(vec![1, 2]);
    session.undo.offer = Some(Offer { number: 1, what, preview: Some(preview()), then: None, part: None });
    open(app, key);
}

fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.state.setup.undo = UndoRules { is_on: true, ..UndoRules::default() };
    offer_to(&mut rig.app);
    rig
}

/// The paths that are restored.
fn restored(effects: &[Effect]) -> Vec<String> {
    let paths = effects.iter().find_map(|effect| match effect {
        Effect::Snapshot(job) => match &job.task {
            SnapshotTask::Restore(_, parts) => Some(parts),
            _ => None,
        },
        _ => None,
    });
    paths.into_iter().flatten().map(|part| part.path.display().to_string()).collect()
}

fn flash(rig: &Rig) -> &str {
    rig.state.flash.as_deref().unwrap_or_default()
}

#[test]
fn the_files_are_shown_before_they_are_restored() {
    let mut stage = ready();
    offer_to(&mut stage.app);
    for size in SIZES {
        insta::assert_snapshot!(format!("undo-{}x{}", size.0, size.1), stage.digest(|_| {}, size));
    }
}

#[test]
fn what_somebody_else_changed_is_restored_only_if_it_is_chosen() {
    let mut rig = rig();
    assert_eq!(restored(&rig.act(Action::RestoreFiles)), ["src/a.txt", "src/new.txt"]);
    assert!(rig.layers.is_empty());

    let mut rig = self::rig();
    rig.act(Action::NextField);
    rig.act(Action::ToggleChoice);
    rig.act(Action::NextField);
    rig.act(Action::ToggleChoice);
    let paths = restored(&rig.act(Action::RestoreFiles));
    assert_eq!(paths, ["src/a.txt", "src/mine.txt", "src/new.txt"], "what cannot be restored stays out");
}

#[test]
fn all_or_no_files_are_chosen_at_once() {
    let mut rig = rig();
    rig.act(Action::ToggleAllChoices);
    rig.act(Action::ToggleAllChoices);
    assert_eq!(restored(&rig.act(Action::RestoreFiles)), [""; 0]);
    assert_eq!(flash(&rig), "No file is chosen.");
    rig.act(Action::ToggleAllChoices);
    assert_eq!(restored(&rig.act(Action::RestoreFiles)), ["src/a.txt", "src/mine.txt", "src/new.txt"]);
}

#[test]
fn closing_the_page_restores_nothing() {
    let mut rig = rig();
    let effects = rig.act(Action::Escape);
    assert_eq!(restored(&effects), [""; 0]);
    assert!(rig.session().undo.offer.is_none());
    assert!(rig.layers.is_empty());
}

#[test]
fn enter_does_not_restore() {
    let mut rig = rig();
    assert_eq!(restored(&rig.act(Action::Accept)), [""; 0]);
    assert!(!rig.layers.is_empty());
}

#[test]
fn a_page_is_not_opened_over_another_tab() {
    let mut rig = rig();
    rig.act(Action::Escape);
    let key = SessionKey(99);
    open(&mut rig.app, key);
    assert!(rig.layers.is_empty());
}

#[test]
fn undo_and_redo_say_why_there_is_nothing_to_do() {
    let mut rig = Rig::new();
    rig.act(Action::UndoTurn);
    assert_eq!(flash(&rig), "Undo is off: undo.enabled is false.");
    rig.state.setup.undo.is_on = true;
    rig.act(Action::UndoTurn);
    assert_eq!(flash(&rig), "No turn of this session has changed files that can be restored.");
    rig.act(Action::RedoTurn);
    assert_eq!(flash(&rig), "Nothing was undone in this session.");
    rig.session().undo.refused = Some("No snapshots of /home/u are captured: it is your home folder.".into());
    rig.act(Action::UndoTurn);
    assert_eq!(flash(&rig), "No snapshots of /home/u are captured: it is your home folder.");
}

#[test]
fn undo_takes_back_the_last_turn_with_changes() {
    let mut rig = rig();
    rig.act(Action::Escape);
    rig.session().undo.turns[1].undone_at = Some(0);
    rig.act(Action::UndoTurn);
    let offer = rig.session().undo.offer.clone().unwrap();
    assert_eq!((offer.what, offer.preview), (RestoreOf::Turns(vec![1]), None));
}
