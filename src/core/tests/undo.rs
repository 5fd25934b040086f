//! Tests of snapshots around turns, of what waits for them, and of undo and redo.

use super::recorder::saved_session;
use super::support::*;
use crate::core::lifecycle::operations;
use crate::core::recording::restore::restore;
use crate::core::*;
use crate::model::snapshot::{
    Action, Capture, CaptureError, CaptureFault, Entry, Kind, Moment, Part, Plan, Preview, Restored,
    SnapshotId, SnapshotNews, SnapshotRecord, Span, Step, UndoRules,
};
use crate::model::*;

pub(super) fn id(number: u8) -> SnapshotId {
    SnapshotId::of_digest(&[number; 20])
}

pub(super) fn with_undo() -> TestCore {
    let undo = UndoRules { is_on: true, ..UndoRules::default() };
    let setup = Setup { folder: "/code/shop".into(), start_with: Some(fake()), undo, ..Setup::default() };
    let mut app = TestCore::start(setup);
    app.session_mut().templates.is_loaded = true;
    app.handshake(AgentCapabilities { can_steer: true, ..all_capabilities() }).open(ID);
    app.fx.clear();
    app
}

pub(super) fn news(app: &mut TestCore, news: SnapshotNews) {
    app.service(ServiceEvent::Snapshot(KEY, news));
}

pub(super) fn captured(app: &mut TestCore, moment: Moment, number: u8, changed: &[&str]) {
    let changed = changed.iter().map(Into::into).collect();
    let root = "/real/shop".into();
    let capture = Capture { id: id(number), root, changed, left_out: Vec::new(), pruned: 0 };
    news(app, SnapshotNews::Captured(moment, Ok(capture)));
}

fn failed(app: &mut TestCore, moment: Moment, text: &str, kind: CaptureFault) {
    news(app, SnapshotNews::Captured(moment, Err(CaptureError { kind, text: text.into() })));
}

/// A turn that changes these files.
pub(super) fn turn(app: &mut TestCore, number: u32, (before, after): (u8, u8), changed: &[&str]) {
    app.submit("go");
    captured(app, Moment::Before(number), before, &[]);
    app.update(says("ok"));
    app.end_turn(StopReason::EndTurn);
    captured(app, Moment::After(number), after, changed);
    app.fx.clear();
}

pub(super) fn step(path: &str, action: Action) -> Step {
    let entry = |number: u8| Some(Entry { kind: Kind::File, id: id(number) });
    Step { path: path.into(), from: entry(1), to: entry(2), disk: entry(1), action }
}

pub(super) fn preview(steps: Vec<Step>) -> Preview {
    let diffs = vec![None; steps.len()];
    Preview { plan: Plan { from: id(2), to: id(1), steps }, diffs, hunks: Vec::new() }
}

pub(super) fn restored(app: &mut TestCore, (before, after): (u8, u8), changed: &[&str]) {
    let span = Span { before: id(before), after: id(after) };
    let changed = changed.iter().map(Into::into).collect();
    news(app, SnapshotNews::Restored(Ok(Restored { span, changed, refused: Vec::new() })));
}

pub(super) fn planned(app: &mut TestCore, plan: Result<Preview, String>) {
    let number = app.state.next.offer;
    news(app, SnapshotNews::Planned(number, plan));
}

fn undo(app: &mut TestCore, what: RestoreOf) {
    app.flow(|state, cx| operations::offer_undo(state, KEY, what, None, cx));
}

fn parts(paths: &[&str]) -> Vec<Part> {
    paths.iter().map(|path| Part::from(std::path::PathBuf::from(path))).collect()
}

fn write(path: &str) -> AgentRequest {
    AgentRequest::WriteFile { session: Some(ID.into()), path: path.into(), content: "x".into() }
}

#[test]
fn the_folder_is_captured_before_and_after_a_turn() {
    let mut app = with_undo();
    app.submit("go");
    app.expect_sent("call prompt \"go\"\ncapture Before(1)");
    captured(&mut app, Moment::Before(1), 1, &[]);
    app.end_turn(StopReason::EndTurn).expect_sent("capture After(1)");
    captured(&mut app, Moment::After(1), 2, &["a"]);
    let known: Vec<_> =
        app.session().undo.undoable().map(|it| (it.turn, it.span.clone(), it.files)).collect();
    assert_eq!(known, [(1, Span { before: id(1), after: id(2) }, Some(1))]);
}

#[test]
fn a_turn_can_end_before_its_first_snapshot_is_captured() {
    let mut app = with_undo();
    app.submit("go");
    app.end_turn(StopReason::EndTurn);
    captured(&mut app, Moment::Before(1), 1, &[]);
    captured(&mut app, Moment::After(1), 2, &["a"]);
    assert_eq!(app.session().undo.undoable().count(), 1);
}

#[test]
fn a_turn_without_changes_cannot_be_undone() {
    let mut app = with_undo();
    turn(&mut app, 1, (1, 1), &[]);
    turn(&mut app, 2, (1, 2), &[]);
    assert_eq!(app.session().undo.undoable().count(), 0);
    assert_eq!(app.notices(), [""; 0]);
}

#[test]
fn the_first_key_of_the_first_prompt_captures_the_folder_once() {
    let mut app = with_undo();
    app.flow(|state, cx| operations::on_first_key(state, KEY, cx)).expect_sent("capture Early");
    app.flow(|state, cx| operations::on_first_key(state, KEY, cx)).expect_sent("");
}

#[test]
fn the_work_of_an_agent_waits_for_the_snapshot_and_keeps_its_order() {
    let mut app = with_undo();
    app.submit("go");
    app.sent();
    app.ask(1, write("a")).ask(2, create(TerminalCommand { command: "ls".into(), ..Default::default() }));
    app.update(call("t", ToolStatus::Pending)).ask(3, permission("t"));
    // The command is asked about first.
    app.choose(Some(0)).choose(Some(0)).expect_sent("");
    captured(&mut app, Moment::Before(1), 1, &[]);
    app.expect_sent("file 1 /code/shop/a\nterminal create 2 \"ls\" in /code/shop\nanswer 3: selected yes");
    app.ask(4, write("b")).expect_sent("file 4 /code/shop/b");
}

#[test]
fn another_agent_does_not_wait() {
    let mut app = with_undo();
    let other = app.open_tab("/code/lib", fake());
    let conn = app.state.sessions[&other].conn.unwrap();
    app.handshake_of(conn, all_capabilities());
    let reply = SessionReply { id: Some("two".into()), ..SessionReply::default() };
    app.reply_to(conn, Ok(Reply::Session(reply)));
    app.submit_in(KEY, "go");
    app.fx.clear();
    let request =
        AgentRequest::WriteFile { session: Some("two".into()), path: "b".into(), content: "x".into() };
    app.play(Event::Agent(conn, AgentEvent::Request(RequestId(9), Box::new(request))));
    app.expect_sent("file 9 /code/lib/b");
}

#[test]
fn after_two_seconds_the_agent_goes_on_and_the_turn_has_no_snapshot() {
    let mut app = with_undo();
    app.submit("go");
    app.sent();
    app.ask(1, write("a")).expect_sent("");
    app.play(Event::Timer(TimerId::SnapshotOverdue(KEY))).expect_sent("file 1 /code/shop/a");
    assert!(app.last_notice().starts_with("No snapshot before this turn: it takes longer than 2 s."));
    captured(&mut app, Moment::Before(1), 1, &[]);
    app.end_turn(StopReason::EndTurn).sent();
    assert_eq!(app.session().undo.undoable().count(), 0, "what it changed before is not in the snapshot");
    // The timer of a turn that is over means nothing.
    app.play(Event::Timer(TimerId::SnapshotOverdue(KEY)));
    assert_eq!(app.notices().len(), 1);
}

#[test]
fn a_failed_snapshot_is_told_and_nothing_older_takes_its_place() {
    let mut app = with_undo();
    turn(&mut app, 1, (1, 2), &["a"]);
    app.submit("more");
    app.ask(1, write("a")).sent();
    failed(&mut app, Moment::Before(2), "git failed.", CaptureFault::Failed);
    app.expect_sent("file 1 /code/shop/a");
    assert!(
        app.last_notice().contains("/undo cannot restore this turn. git failed."),
        "{}",
        app.last_notice()
    );
    app.end_turn(StopReason::EndTurn).sent();
    let turns: Vec<u32> = app.session().undo.undoable().map(|changes| changes.turn).collect();
    assert_eq!(turns, [1]);
}

#[test]
fn a_folder_that_is_refused_is_explained_when_the_user_asks() {
    let mut app = with_undo();
    app.submit("go");
    failed(&mut app, Moment::Before(1), "No snapshots of /home/me are captured.", CaptureFault::Refused);
    assert_eq!(app.notices(), [""; 0], "not at each turn");
    let why = operations::undo_obstacle(&app.state, app.session());
    assert_eq!(why.as_deref(), Some("No snapshots of /home/me are captured."));
    app.end_turn(StopReason::EndTurn).sent();
    // The reason may be gone.
    app.submit("again").expect_sent("call prompt \"again\"\ncapture Before(2)");
    captured(&mut app, Moment::Before(2), 1, &[]);
    assert_eq!(operations::undo_obstacle(&app.state, app.session()), None);
}

#[test]
fn a_folder_that_takes_too_long_is_not_tried_again() {
    let mut app = with_undo();
    app.submit("go");
    failed(&mut app, Moment::Before(1), "It took longer than 30 s.", CaptureFault::TimedOut);
    app.update(says("ok")).end_turn(StopReason::EndTurn).sent();
    let text = "No more snapshots in this session, so /undo is off. It took longer than 30 s. ";
    assert_eq!(app.notices(), [text]);
    app.submit("again").expect_sent("call prompt \"again\"");
}

#[test]
fn nothing_is_captured_where_undo_is_off() {
    let mut off = with_undo();
    off.state.setup.undo.is_on = false;
    off.submit("go").expect_sent("call prompt \"go\"");
    let mut elsewhere = with_undo();
    elsewhere.state.setup.undo.off_in = vec!["/code".into()];
    elsewhere.submit("go").expect_sent("call prompt \"go\"");
    let why = operations::undo_obstacle(&elsewhere.state, elsewhere.session());
    assert_eq!(why.as_deref(), Some("Undo is off in /code: undo.off_in."));
    let mut other = with_undo();
    other.state.setup.undo.off_in = vec!["/code/sh".into()];
    other.submit("go").expect_sent("call prompt \"go\"\ncapture Before(1)");
}

#[test]
fn a_cancel_lets_go_what_waits_before_it() {
    let mut app = with_undo();
    app.submit("go");
    app.update(call("t", ToolStatus::Pending)).ask(1, permission("t")).sent();
    app.choose(Some(0)).expect_sent("");
    app.cancel().expect_sent("answer 1: selected yes\ncancel s");
}

#[test]
fn what_waits_is_let_go_when_the_agent_ends() {
    let mut app = with_undo();
    app.submit("go");
    app.ask(1, write("a")).sent();
    app.crash();
    assert!(app.state.held.is_empty());
}

#[test]
fn a_prompt_in_the_running_turn_does_not_begin_another() {
    let mut app = with_undo();
    app.submit("go");
    captured(&mut app, Moment::Before(1), 1, &[]);
    app.submit("also");
    let last = app.session().outbox.last().unwrap().id;
    app.sent();
    app.flow(|state, cx| operations::steer(state, KEY, last, cx));
    app.sent();
    app.reply(Ok(Reply::Steered { is_accepted: true })).update(says("ok"));
    app.end_turn(StopReason::EndTurn);
    assert!(app.sent().contains("capture After(1)"));
}

#[test]
fn an_agent_that_begins_many_turns_causes_one_capture_at_a_time() {
    let mut app = with_undo();
    app.agent(AgentEvent::TurnBegan(ID.into())).expect_sent("capture Before(0)");
    for _ in 0..5 {
        app.update(says("ok"));
        let ended = Ok(Reply::TurnEnded { reason: StopReason::EndTurn, usage: None });
        app.agent(AgentEvent::TurnEnded(ID.into(), ended)).agent(AgentEvent::TurnBegan(ID.into()));
    }
    app.expect_sent("capture After(0)");
}

#[test]
fn control_characters_in_names_of_files_are_escaped() {
    let mut app = with_undo();
    turn(&mut app, 1, (1, 2), &["a\u{1b}[31m\nb"]);
    assert!(app.last_notice().contains("changed that the agent did not report"), "{}", app.last_notice());
    assert!(!app.last_notice().contains(char::is_control), "{}", app.last_notice());
}

#[test]
fn an_agent_that_works_before_the_snapshot_is_noted() {
    let mut app = with_undo();
    app.submit("go");
    app.update(call("t", ToolStatus::InProgress));
    captured(&mut app, Moment::Before(1), 1, &[]);
    app.end_turn(StopReason::EndTurn);
    captured(&mut app, Moment::After(1), 2, &["a"]);
    assert!(app.session().undo.turns[0].is_late);
}

#[test]
fn an_undo_is_shown_then_done_and_can_be_taken_back() {
    let mut app = with_undo();
    turn(&mut app, 1, (1, 2), &["a"]);
    turn(&mut app, 2, (2, 3), &["a", "b"]);
    undo(&mut app, RestoreOf::Turns(vec![1, 2]));
    app.expect_sent("plan 2");
    let steps = vec![step("a", Action::Write), step("b", Action::Delete), step("c", Action::Nothing)];
    planned(&mut app, Ok(preview(steps)));
    assert_eq!(app.requests.last(), Some(&UiRequest::Undo(KEY)));
    app.flow(|state, cx| operations::restore_files(state, KEY, parts(&["a", "b"]), cx));
    app.expect_sent("restore [\"a\", \"b\"]");
    restored(&mut app, (3, 4), &["a", "b"]);
    assert!(app.last_notice().starts_with("Restored 2 files. /redo reverts this."), "{}", app.last_notice());
    assert_eq!(app.session().undo.undoable().count(), 0);

    undo(&mut app, RestoreOf::Undo);
    app.sent();
    planned(&mut app, Ok(preview(vec![step("a", Action::Write), step("b", Action::Write)])));
    app.flow(|state, cx| operations::restore_files(state, KEY, parts(&["a", "b"]), cx));
    restored(&mut app, (4, 5), &["a", "b"]);
    let turns: Vec<u32> = app.session().undo.undoable().map(|changes| changes.turn).collect();
    assert_eq!(turns, [2, 1]);
    assert!(app.session().undo.undone.is_empty());
}

#[test]
fn an_undo_waits_for_the_snapshot_after_the_turn() {
    let mut app = with_undo();
    app.submit("go");
    captured(&mut app, Moment::Before(1), 1, &[]);
    app.end_turn(StopReason::EndTurn);
    app.flow(operations::undo_when_captured);
    let act = UiRequest::Act(crate::model::Action::UndoTurn);
    assert!(!app.requests.contains(&act));
    captured(&mut app, Moment::After(1), 2, &["a"]);
    assert!(app.requests.contains(&act));
}

#[test]
fn a_turn_of_which_a_file_was_left_can_still_be_undone() {
    let mut app = with_undo();
    turn(&mut app, 1, (1, 2), &["a", "b"]);
    undo(&mut app, RestoreOf::Turns(vec![1]));
    planned(&mut app, Ok(preview(vec![step("a", Action::Write), step("b", Action::Conflict)])));
    app.flow(|state, cx| operations::restore_files(state, KEY, parts(&["a"]), cx));
    restored(&mut app, (2, 3), &["a"]);
    assert_eq!(app.session().undo.undoable().count(), 1);
    assert_eq!(app.session().undo.undone.len(), 1);
}

#[test]
fn files_are_not_restored_during_a_turn() {
    let mut app = with_undo();
    turn(&mut app, 1, (1, 2), &["a"]);
    undo(&mut app, RestoreOf::Turns(vec![1]));
    planned(&mut app, Ok(preview(vec![step("a", Action::Write)])));
    app.submit("go on");
    app.sent();
    app.flow(|state, cx| operations::restore_files(state, KEY, parts(&["a"]), cx)).expect_sent("");
}

#[test]
fn a_plan_that_was_replaced_and_a_restore_that_runs_are_not_mixed_up() {
    let mut app = with_undo();
    turn(&mut app, 1, (1, 2), &["a"]);
    turn(&mut app, 2, (2, 3), &["b"]);
    undo(&mut app, RestoreOf::Turns(vec![2]));
    let first = app.state.next.offer;
    undo(&mut app, RestoreOf::Turns(vec![1, 2]));
    news(&mut app, SnapshotNews::Planned(first, Ok(preview(vec![step("b", Action::Write)]))));
    assert!(app.requests.is_empty(), "it is for the former one");
    planned(&mut app, Ok(preview(vec![step("a", Action::Write), step("b", Action::Write)])));
    app.flow(|state, cx| operations::restore_files(state, KEY, parts(&["a", "b"]), cx));
    app.sent();
    undo(&mut app, RestoreOf::Turns(vec![1]));
    app.expect_sent("");
    app.submit("a prompt meanwhile");
    restored(&mut app, (3, 4), &["a", "b"]);
    assert_eq!(app.session().undo.undone[0].turns, [1, 2]);
}

#[test]
fn an_undo_that_fails_says_why() {
    let mut app = with_undo();
    turn(&mut app, 1, (1, 2), &["a"]);
    undo(&mut app, RestoreOf::Turns(vec![1]));
    planned(&mut app, Err("Snapshot 1 is not in the store.".into()));
    assert_eq!(app.state.flash.as_deref(), Some("Snapshot 1 is not in the store."));
    assert!(app.session().undo.offer.is_none());
    undo(&mut app, RestoreOf::Turns(vec![1]));
    planned(&mut app, Ok(preview(vec![step("a", Action::Write)])));
    app.flow(|state, cx| operations::restore_files(state, KEY, parts(&["a"]), cx));
    news(&mut app, SnapshotNews::Restored(Err("The disk is full.".into())));
    assert_eq!(app.last_notice(), "The files were not restored. The disk is full. ");
    assert_eq!(app.session().undo.undoable().count(), 1);
}

#[test]
fn the_record_has_all_that_undo_needs() {
    let mut app = with_undo();
    turn(&mut app, 1, (1, 2), &["a"]);
    undo(&mut app, RestoreOf::Turns(vec![1]));
    planned(&mut app, Ok(preview(vec![step("a", Action::Write)])));
    app.flow(|state, cx| operations::restore_files(state, KEY, parts(&["a"]), cx));
    restored(&mut app, (2, 3), &["a"]);
    turn(&mut app, 2, (3, 4), &["b"]);
    // parlor is killed during the third turn.
    app.submit("go");
    captured(&mut app, Moment::Before(3), 4, &[]);
    let known = app.session().undo.clone();
    let mut again = Session::new(SessionKey(9), app.session().workspace.clone());
    restore(&mut again, saved_session(&mut app), app.now);
    assert_eq!((&again.undo.turns, &again.undo.undone), (&known.turns, &known.undone));
    // Its changes end where the next turn begins.
    again.undo.apply(&SnapshotRecord::Before { turn: 4, id: id(5), is_late: false });
    let cut = again.undo.turns.last().unwrap();
    assert_eq!((cut.turn, cut.files, cut.span.after.clone()), (3, None, id(5)));
}

#[test]
fn changes_that_the_agent_did_not_report_are_told_with_their_likely_cause() {
    let mut app = with_undo();
    app.submit("go");
    captured(&mut app, Moment::Before(1), 1, &[]);
    let mut edit = ToolCallPatch::new("e".into());
    edit.is_announcement = true;
    edit.kind = Patch::Set(ToolKind::Edit);
    edit.status = Patch::Set(ToolStatus::Completed);
    let locations = ["/code/shop/a", "/real/shop/b"].map(|path| Location { path: path.into(), line: None });
    edit.locations = Patch::Set(locations.to_vec());
    app.update(SessionUpdate::Tool(Box::new(edit)));
    app.end_turn(StopReason::EndTurn);
    captured(&mut app, Moment::After(1), 2, &["a", "b", "c"]);
    let text = "1 file changed that the agent did not report, maybe by an editor, a build or you. /review-changes shows what changed. c";
    assert_eq!(app.notices(), [text]);

    app.submit("run");
    captured(&mut app, Moment::Before(2), 2, &[]);
    let mut run = ToolCallPatch::new("r".into());
    run.is_announcement = true;
    run.kind = Patch::Set(ToolKind::Execute);
    run.status = Patch::Set(ToolStatus::Completed);
    app.update(SessionUpdate::Tool(Box::new(run)));
    app.end_turn(StopReason::EndTurn);
    let many: Vec<String> = (0..10).map(|number| format!("f{number}")).collect();
    captured(&mut app, Moment::After(2), 3, &many.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(app.session().undo.unseen.len(), 11, "until a review shows them");
    let cause = |path: &str| app.session().undo.unreported[std::path::Path::new(path)].to_string();
    assert_eq!(
        (cause("c").as_str(), cause("f9").as_str()),
        ("maybe by an editor, a build or you", "likely by its commands")
    );
    let text = "10 files changed that the agent did not report, likely by its commands. /review-changes shows what changed. f0, f1, f2, f3, f4, f5, f6, f7, 2 more";
    assert_eq!(app.last_notice(), text);
}
