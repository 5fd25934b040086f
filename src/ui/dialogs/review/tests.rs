use super::*;
use crate::core::{Effect, HeldReview, Offer, TurnChanges};
use crate::model::held::{Fit, HeldChange, HeldFile, HeldJob, HeldTask};
use crate::model::snapshot::{Plan, SnapshotTask, Span, UndoRules};
use crate::model::{Body, DiffChange, FileDiff};
use crate::ui::dialogs::testkit::Rig;
use crate::ui::dialogs::undo::tests::{id, step};
use crate::ui::tests::fixture::{SIZES, Stage, ready, text, theme};

fn numbered(changes: &[(usize, &str)]) -> String {
    let line = |number: usize| {
        let changed = changes.iter().find(|(at, _)| *at == number);
        changed.map_or_else(|| format!("line {number}\n"), |(_, text)| format!("{text}\n"))
    };
    (1..=30).map(line).collect()
}

fn preview() -> Preview {
    let steps = vec![
        step("src/a.txt", Restore::Write),
        step("src/big.bin", Restore::Refused("its content is no longer in the store of snapshots".into())),
        step("src/mine.txt", Restore::Conflict),
        step("src/new.txt", Restore::Delete),
        step("src/same.txt", Restore::Nothing),
    ];
    let diff = |path: &str, old: Option<String>, new: String| {
        let change = DiffChange::Texts { old: old.map(Body::from), new: Body::from(new) };
        Some(FileDiff { path: path.into(), change })
    };
    let (old, new) = (numbered(&[]), numbered(&[(3, "three"), (20, "twenty")]));
    let hunks = crate::model::hunk::hunks(&old, &new);
    let diffs = vec![
        diff("src/a.txt", Some(old), new),
        None,
        diff("src/mine.txt", Some("before\n".into()), "mine\n".into()),
        diff("src/new.txt", None, "new\n".into()),
        None,
    ];
    let mine = crate::model::hunk::hunks("before\n", "mine\n");
    let hunks = vec![hunks, vec![], mine, vec![], vec![]];
    Preview { plan: Plan { from: id(2), to: id(1), steps }, diffs, hunks }
}

fn offer(app: &mut App, preview: Option<Preview>) {
    let key = app.state.active;
    let session = app.state.sessions.get_mut(&key).unwrap();
    let span = Span { before: id(1), after: id(2) };
    session.undo.turns = vec![TurnChanges {
        turn: 2,
        span,
        files: Some(4),
        is_late: true,
        is_applied: false,
        undone_at: None,
    }];
    let what = RestoreOf::Unaccepted { through: 2 };
    let number = session.undo.offer.as_ref().map_or(1, |offer| offer.number + 1);
    session.undo.offer =
        preview.map(|preview| Offer { number, what, preview: Some(preview), then: None, part: None });
    open(app, key);
}

fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.state.setup.undo = UndoRules { is_on: true, ..UndoRules::default() };
    offer(&mut rig.app, Some(preview()));
    rig
}

/// What is accepted or reverted, with the first lines of its hunks.
fn done(effects: &[Effect]) -> Vec<String> {
    let shown = |verb: &str, part: &Part| {
        let lines: Vec<u32> = part.hunks.iter().map(|hunk| hunk.new.start + 1).collect();
        format!("{verb} {} {lines:?}", part.path.display())
    };
    let jobs = effects.iter().filter_map(|effect| match effect {
        Effect::Snapshot(job) => Some(&job.task),
        _ => None,
    });
    let shown = jobs.map(|task| match task {
        SnapshotTask::Accept { part, turn: 2, .. } => shown("accept", part),
        SnapshotTask::Restore(_, parts) => shown("reject", &parts[0]),
        other => format!("{other:?}"),
    });
    shown.collect()
}

fn flash(rig: &Rig) -> &str {
    rig.state.flash.as_deref().unwrap_or_default()
}

#[test]
fn changes_are_reviewed_by_hunk_at_all_sizes() {
    let mut stage = ready();
    offer(&mut stage.app, Some(preview()));
    for size in SIZES {
        insta::assert_snapshot!(format!("review-{}x{}", size.0, size.1), stage.digest(|_| {}, size));
    }
}

#[test]
fn a_key_accepts_or_rejects_the_selected_hunk_or_file() {
    for (action, expected) in [
        (Action::AcceptHunk, "accept src/a.txt [20]"),
        (Action::RejectHunk, "reject src/a.txt [20]"),
        (Action::AcceptFile, "accept src/a.txt []"),
        (Action::RejectFile, "reject src/a.txt []"),
    ] {
        let mut rig = rig();
        rig.act(Action::NextHunk);
        assert_eq!(done(&rig.act(action)), [expected]);
        assert!(!rig.layers.is_empty());
    }
}

#[test]
fn moving_past_the_last_hunk_of_a_file_shows_the_next_file() {
    let mut rig = rig();
    for _ in 0..9 {
        rig.act(Action::NextHunk);
    }
    assert_eq!(done(&rig.act(Action::AcceptHunk)), ["accept src/new.txt []"]);
    let mut rig = self::rig();
    for _ in 0..4 {
        rig.act(Action::NextHunk);
    }
    for _ in 0..3 {
        rig.act(Action::PreviousHunk);
    }
    assert_eq!(done(&rig.act(Action::AcceptHunk)), ["accept src/a.txt [20]"]);
}

#[test]
fn only_one_part_is_decided_at_a_time() {
    let mut rig = rig();
    rig.act(Action::AcceptHunk);
    assert_eq!(done(&rig.act(Action::RejectFile)), [""; 0]);
    assert_eq!(flash(&rig), "The changes are being compared. Try again.");
}

#[test]
fn what_cannot_be_reverted_can_only_be_accepted() {
    let mut rig = rig();
    rig.act(Action::Mark(1));
    assert_eq!(done(&rig.act(Action::RejectFile)), [""; 0]);
    assert_eq!(flash(&rig), "It can only be accepted: its content is no longer in the store of snapshots.");
    assert_eq!(done(&rig.act(Action::AcceptFile)), ["accept src/big.bin []"]);
}

#[test]
fn the_page_follows_what_is_left() {
    let mut rig = rig();
    rig.act(Action::NextHunk);
    let mut less = preview();
    less.hunks[0].pop();
    offer(&mut rig.app, Some(less.clone()));
    assert_eq!(done(&rig.act(Action::AcceptHunk)), ["accept src/a.txt [3]"], "the last hunk that is left");
    less.plan.steps[0].action = Restore::Nothing;
    offer(&mut rig.app, Some(less));
    assert_eq!(done(&rig.act(Action::AcceptFile)), ["accept src/big.bin []"], "the next file");
    offer(&mut rig.app, None);
    assert!(rig.layers.is_empty());
}

#[test]
fn a_comment_is_added_to_the_prompt() {
    let mut rig = rig();
    rig.act(Action::CommentOnHunk);
    rig.act(Action::Accept);
    assert_eq!(rig.session().draft, "", "an empty comment is refused");
    rig.type_line("Why?");
    rig.act(Action::Accept);
    let draft = rig.session().draft.clone();
    assert!(draft.starts_with("src/a.txt:3 [Pasted text #"), "{draft}");
    assert!(draft.ends_with(": 3 lines]: Why?\n"), "{draft}");
    assert!(rig.layers.top::<ReviewPage>().is_some());
}

#[test]
fn a_comment_can_name_lines_of_the_hunk() {
    let part = |comment: &str| {
        let whole = Part { path: "a".into(), hunks: vec![Hunk { old: 4..5, new: 10..14 }] };
        narrowed(&whole, comment).map(|(part, text)| (part.hunks[0].new.clone(), text.to_owned()))
    };
    assert_eq!(part("12: why?"), Ok((11..12, "why?".to_owned())));
    assert_eq!(part("11 - 14:why?"), Ok((10..14, "why?".to_owned())));
    assert_eq!(part("why: 12?"), Ok((10..14, "why: 12?".to_owned())));
    for comment in ["10: why?", "12-15: why?", "14-12: why?", "0: why?"] {
        let error = part(comment).unwrap_err();
        assert_eq!(error, "This hunk has the lines 11-14. Use one of them, or no number.");
    }
    let mut rig = rig();
    rig.act(Action::CommentOnHunk);
    rig.type_line("3: Why?");
    rig.act(Action::Accept);
    assert!(rig.session().draft.ends_with("]: Why?\n"), "{}", rig.session().draft);
}

#[test]
fn closing_the_page_ends_the_review() {
    let mut rig = rig();
    assert_eq!(done(&rig.act(Action::Escape)), [""; 0]);
    assert!(rig.session().undo.offer.is_none());
    assert!(rig.layers.is_empty());
}

#[test]
fn files_that_were_not_reported_are_marked_until_they_are_seen() {
    let mut stage = ready();
    stage.session(|session| {
        session.undo.unreported = [("src/a.txt".into(), "likely by its commands".into())].into();
        session.undo.unseen = ["src/a.txt".into()].into();
    });
    let shown = |stage: &Stage, size| text(&stage.draw(&mut stage.view(), &theme("dark"), size));
    for size in [(40, 12), (80, 24)] {
        assert!(shown(&stage, size).contains("1 unreported Alt+V"), "{}", shown(&stage, size));
    }
    stage.app.state.setup.undo = UndoRules { is_on: true, ..UndoRules::default() };
    offer(&mut stage.app, Some(preview()));
    let page = shown(&stage, (120, 40));
    assert!(
        page.contains("Hunk 1 of 2. Changed without a report from the agent, likely by its commands."),
        "{page}"
    );
    assert!(stage.app.state.active_session().unwrap().undo.unseen.is_empty());
}

fn held(app: &mut App) {
    let (old, new) = (numbered(&[]), numbered(&[(3, "three"), (20, "twenty")]));
    let change = |path: &str, disk: Option<&str>, text: &str, fit: Fit| HeldChange {
        path: path.into(),
        held: HeldFile { base: None, text: text.into() },
        disk: disk.map(Body::from),
        text: text.into(),
        hunks: disk.map(|disk| crate::model::hunk::hunks(disk, text)).unwrap_or_default(),
        fit,
    };
    let changes = vec![
        change("/home/u/shop/src/a.txt", Some(&old), &new, Fit::Merged),
        change("/home/u/shop/src/new.txt", None, "new\n", Fit::Clean),
        change("/home/u/shop/src/odd.txt", None, "x\n", Fit::Refused("it is not UTF-8 text".to_owned())),
    ];
    let key = app.state.active;
    let session = app.state.sessions.get_mut(&key).unwrap();
    let files = changes.iter().map(|change| (change.path.clone(), change.held.clone())).collect();
    session.held.files = std::sync::Arc::new(files);
    session.held.review =
        Some(HeldReview { number: 1, changes: Some(changes), is_opening: true, ..HeldReview::default() });
    open_held(app, key, Instant::now());
}

#[test]
fn held_writes_are_reviewed_by_hunk_at_all_sizes() {
    let mut stage = ready();
    held(&mut stage.app);
    for size in SIZES {
        insta::assert_snapshot!(format!("held-{}x{}", size.0, size.1), stage.digest(|_| {}, size));
    }
}

#[test]
fn keys_apply_or_discard_what_is_held() {
    let mut rig = Rig::new();
    held(&mut rig.app);
    rig.act(Action::NextHunk);
    let effects = rig.act(Action::AcceptHunk);
    let applied = effects.iter().find_map(|effect| match effect {
        Effect::Held(HeldJob { task: HeldTask::Apply { text, .. }, .. }) => Some(text.as_str().to_owned()),
        _ => None,
    });
    assert_eq!(applied, Some(numbered(&[(20, "twenty")])));
    let mut rig = Rig::new();
    held(&mut rig.app);
    rig.act(Action::RejectFile);
    let session = rig.app.state.sessions.get(&rig.app.state.active).unwrap();
    assert!(
        session.draft.ends_with("src/a.txt: I discarded all changes of this file.\n"),
        "{}",
        session.draft
    );
    assert_eq!(session.held.files.len(), 2);
}

#[test]
fn a_review_is_a_question_in_plain_text_mode() {
    let mut rig = Rig::new();
    held(&mut rig.app);
    let page = |rig: &Rig| rig.app.layers.last().unwrap().plain().unwrap();
    let shown = page(&rig);
    let expected = "Review of the held writes, file 1 of 3, hunk 1 of 2\n\
        Not on disk: commands do not see it.\n\
        /home/u/shop/src/a.txt\n\
        The file has changed on the disk since. Those changes stay.\n  -line 3\n  +three\n";
    assert_eq!(shown.text, expected);
    let labels: Vec<_> = shown.answers.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(labels, ["Apply hunk", "Discard hunk", "Discard file", "Next", "Previous"]);
    rig.act(Action::NextField);
    let labels: Vec<_> = page(&rig).answers.into_iter().map(|(label, _)| label).collect();
    assert_eq!(labels, ["Apply file", "Discard file", "Next", "Previous"]);
}

#[test]
fn a_key_does_not_apply_what_has_just_changed() {
    let mut rig = Rig::new();
    held(&mut rig.app);
    let now = rig.now;
    let update = |rig: &mut Rig, text: &str, is_unasked: bool| {
        let key = rig.app.state.active;
        let review = rig.app.state.sessions.get_mut(&key).unwrap().held.review.as_mut().unwrap();
        let change = &mut review.changes.as_mut().unwrap()[0];
        (change.text, review.is_unasked) = (text.into(), is_unasked);
        change.hunks = crate::model::hunk::hunks(change.disk.as_ref().unwrap(), text);
        open_held(&mut rig.app, key, now);
    };
    update(&mut rig, "swapped\n", true);
    rig.act_now(Action::AcceptHunk);
    assert_eq!(flash(&rig), "The agent has just changed this. Check it again.");
    // A second later.
    rig.act(Action::RejectHunk);
    assert_eq!(flash(&rig), "Discarded, and added to the prompt.");
}

#[test]
fn a_page_of_held_writes_opens_only_for_the_user() {
    let mut rig = Rig::new();
    held(&mut rig.app);
    let key = rig.app.state.active;
    let shown = |rig: &Rig| rig.app.layers.len();
    assert_eq!(shown(&rig), 1);
    let review = rig.app.state.sessions.get(&key).unwrap().held.review.clone();
    rig.act(Action::Escape);
    rig.app.state.sessions.get_mut(&key).unwrap().held.review = review;
    open_held(&mut rig.app, key, Instant::now());
    assert_eq!(shown(&rig), 0);
    assert!(rig.app.state.sessions.get(&key).unwrap().held.review.is_none());
}
