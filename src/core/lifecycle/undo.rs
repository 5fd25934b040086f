//! Snapshots of a session's folder before and after its turns, undo and redo.
//!
//! Invariants: until the snapshot before a turn is captured, at most [`MAX_WAIT`], parlor writes no file, starts no
//! command and allows nothing for that agent; files are restored only while no turn runs, after the user has seen which.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{call, held, protected, unreported};
use crate::core::session::record;
use crate::core::{Cx, Effect, ItemBody, Offer, RestoreOf, RewindWay, Session, State, TimerId, UiRequest};
use crate::model::held::HeldJob;
use crate::model::snapshot::{
    Action, Capture, CaptureError, CaptureFault, Moment, Part, Preview, RestoreRecord, Restored, SnapshotJob,
    SnapshotNews, SnapshotRecord, SnapshotTask, shown_path,
};
use crate::model::{AgentCommand, ConnId, ItemId, Record, Response, SessionKey, Severity, TerminalJob};

/// How long the work of an agent waits for a snapshot.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Maximum number of files that are captured although they are ignored.
const MAX_EXTRA: usize = 1000;

/// Maximum number of paths in a notice.
const MAX_NAMED: usize = 20;

/// Why there are no snapshots of a session's folder.
pub fn obstacle(state: &State, session: &Session) -> Option<String> {
    let rules = &state.setup.undo;
    let folder = session.workspace.folder();
    let is_elsewhere = session.workspace.remote.is_some()
        || state.conn_of(session.key).is_some_and(|conn| conn.spec.is_elsewhere());
    let off_in = rules.off_in.iter().find(|off| folder.starts_with(off));
    match () {
        () if !rules.is_on => Some("Undo is off: undo.enabled is false.".to_owned()),
        () if session.parent.is_some() => Some("Files are restored in the parent session.".to_owned()),
        () if is_elsewhere => {
            Some("The folder is on another machine, so parlor cannot restore its files.".to_owned())
        }
        () => match off_in {
            Some(off) => Some(format!("Undo is off in {}: undo.off_in.", off.display())),
            None => session.undo.refused.clone(),
        },
    }
}

pub(super) fn run(state: &State, key: SessionKey, task: SnapshotTask, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key) else { return };
    let (folder, rules) = (session.workspace.folder().to_owned(), state.setup.undo.clone());
    cx.effects.push(Effect::Snapshot(SnapshotJob { session: key, folder, rules, task }));
}

/// Whether snapshots of the folder are captured. A folder that was refused is tried again: its reason may be gone.
fn is_captured(state: &State, session: &Session) -> bool {
    session.read_only.is_none()
        && !session.undo.has_given_up
        && (obstacle(state, session).is_none() || session.undo.refused.is_some())
}

fn capture(state: &mut State, key: SessionKey, moment: Moment, cx: &mut Cx) -> bool {
    if !state.sessions.get(&key).is_some_and(|session| is_captured(state, session)) {
        return false;
    }
    let extra = match moment {
        Moment::After(turn) => unreported::reported(state, key, turn).into_iter().take(MAX_EXTRA).collect(),
        Moment::Early | Moment::Before(_) => Vec::new(),
    };
    run(state, key, SnapshotTask::Capture { moment, extra }, cx);
    if let Some(session) = state.sessions.get_mut(&key) {
        session.undo.has_begun = true;
    }
    true
}

/// The user begins to write the first prompt: the first snapshot takes longer than the next ones.
pub fn on_first_key(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let is_first = |session: &Session| !session.undo.has_begun && session.conn.is_some();
    if state.sessions.get(&key).is_some_and(is_first) {
        capture(state, key, Moment::Early, cx);
    }
}

/// The agent begins a turn of its own accord. It may begin many, so only one capture runs at a time.
pub(in crate::core) fn on_own_turn(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let is_capturing = |session: &Session| session.undo.pending.is_some() || session.undo.after.is_some();
    if state.sessions.get(&key).is_some_and(is_capturing) {
        protected::on_turn(state, key, cx);
    } else {
        on_turn(state, key, cx);
    }
}

/// A turn begins.
pub(in crate::core) fn on_turn(state: &mut State, key: SessionKey, cx: &mut Cx) {
    protected::on_turn(state, key, cx);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    // A review goes on during a turn.
    session.undo.offer.take_if(|offer| !matches!(offer.what, RestoreOf::Unaccepted { .. }));
    if session.undo.running.is_some() {
        return;
    }
    let turn = session.turn_count;
    if capture(state, key, Moment::Before(turn), cx)
        && let Some(session) = state.sessions.get_mut(&key)
    {
        (session.undo.running, session.undo.pending) = (Some(turn), Some(turn));
        cx.effects.push(Effect::Timer(TimerId::SnapshotOverdue(key), MAX_WAIT));
    }
}

/// Writes a held file, with a snapshot before and after it if no turn runs: it is undone with the last turn then.
pub(super) fn write_held(state: &State, key: SessionKey, job: HeldJob, cx: &mut Cx) {
    match state.sessions.get(&key).filter(|session| is_captured(state, session)) {
        Some(session) => {
            let task = SnapshotTask::Apply { job: Box::new(job), has_span: !session.turn.is_running() };
            run(state, key, task, cx);
        }
        None => cx.effects.push(Effect::Held(job)),
    }
}

/// A turn has ended.
pub(in crate::core) fn on_turn_end(state: &mut State, key: SessionKey, cx: &mut Cx) {
    protected::on_turn_end(state, key, cx);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if let Some(turn) = session.undo.running.take()
        && capture(state, key, Moment::After(turn), cx)
        && let Some(session) = state.sessions.get_mut(&key)
    {
        session.undo.after = Some(false);
    }
}

/// Stops waiting for a snapshot that takes too long.
pub(in crate::core) fn on_overdue(state: &mut State, key: SessionKey) {
    let Some(session) = state.sessions.get_mut(&key).filter(|session| session.undo.pending.is_some()) else {
        return;
    };
    (session.undo.pending, session.undo.running) = (None, None);
    let title = "No snapshot before this turn: it takes longer than 2 s. /undo cannot restore its files.";
    call::notice(state, key, Severity::Warning, title, None);
}

pub(in crate::core) fn on_news(state: &mut State, key: SessionKey, news: SnapshotNews, cx: &mut Cx) {
    match news {
        SnapshotNews::Captured(moment, result) => {
            match result {
                Ok(captured) => on_captured(state, key, moment, captured),
                Err(error) => on_failed(state, key, moment, error),
            }
            let session = state.sessions.get_mut(&key).filter(|_| matches!(moment, Moment::After(_)));
            if session.and_then(|session| session.undo.after.take()) == Some(true) && state.active == key {
                cx.requests.push(UiRequest::Act(crate::model::Action::UndoTurn));
            }
        }
        SnapshotNews::Planned(number, planned) => on_planned(state, key, (number, planned), cx),
        SnapshotNews::Restored(restored) => on_restored(state, key, restored, cx),
        // `review` handles it.
        SnapshotNews::Accepted(..) => {}
        SnapshotNews::Recovered(text) => call::notice(state, key, Severity::Warning, text, None),
    }
}

fn on_captured(state: &mut State, key: SessionKey, moment: Moment, captured: Capture) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Capture { id, root, mut changed, left_out, pruned } = captured;
    session.undo.refused = None;
    session.undo.left_out = left_out;
    match moment {
        Moment::Before(turn) if session.undo.pending == Some(turn) => {
            session.undo.pending = None;
            let is_of_turn = |item: &crate::core::Item| item.turn >= turn;
            let mut items = session.transcript.items().iter().rev().take_while(|item| is_of_turn(item));
            let is_late = items.any(|item| matches!(item.body, ItemBody::Tool(_)));
            note(session, SnapshotRecord::Before { turn, id, is_late });
        }
        Moment::After(turn) => {
            note(session, SnapshotRecord::After { turn, id, files: changed.len() });
            held::on_disk_changed(state, key, &root, &mut changed);
            unreported::tell(state, key, turn, &root, &changed);
        }
        Moment::Early | Moment::Before(_) => {}
    }
    if pruned > 0 {
        let title = format!(
            "The snapshots of this folder reached {} MiB (undo.max_store_mib). Deleted the oldest: {pruned}.",
            state.setup.undo.max_store_mib
        );
        call::notice(state, key, Severity::Info, title, None);
    }
}

fn on_failed(state: &mut State, key: SessionKey, moment: Moment, error: CaptureError) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if let Moment::Before(turn) = moment
        && session.undo.pending == Some(turn)
    {
        (session.undo.pending, session.undo.running) = (None, None);
    }
    match error.kind {
        CaptureFault::Refused => session.undo.refused = Some(error.text),
        CaptureFault::TimedOut => {
            session.undo.has_given_up = true;
            let title = format!("No more snapshots in this session, so /undo is off. {}", error.text);
            session.undo.refused = Some(error.text);
            call::notice(state, key, Severity::Warning, title, None);
        }
        CaptureFault::Failed if moment != Moment::Early => {
            let title =
                format!("No snapshot of the files, so /undo cannot restore this turn. {}", error.text);
            call::notice(state, key, Severity::Warning, title, None);
        }
        CaptureFault::Failed => {}
    }
}

pub(super) fn note(session: &mut Session, record: SnapshotRecord) {
    session.undo.apply(&record);
    record::note(session, Record::Snapshot(record));
}

/// Undoes the last turn as soon as the snapshot after it is captured.
pub fn undo_when_captured(state: &mut State, cx: &mut Cx) {
    if let Some(session) = state.sessions.get_mut(&state.active) {
        session.undo.after = Some(true);
        call::flash(state, "Waiting for the snapshot after the turn…", cx);
    }
}

/// Plans an undo or redo, to show what it would do. `then`: goes back to this prompt afterwards.
pub fn offer(
    state: &mut State,
    key: SessionKey,
    what: RestoreOf,
    then: Option<(ItemId, RewindWay)>,
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if session.undo.restoring.is_some() {
        return call::flash(state, "Files are being restored.", cx);
    }
    plan(state, key, what, then, cx);
    call::flash(state, "Comparing the files with their snapshots…", cx);
}

pub(super) fn plan(
    state: &mut State,
    key: SessionKey,
    what: RestoreOf,
    then: Option<(ItemId, RewindWay)>,
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    state.next.offer += 1;
    let number = state.next.offer;
    let task = session.undo.plan(number, &what);
    session.undo.offer = Some(Offer { number, what, preview: None, then, part: None });
    run(state, key, task, cx);
}

fn on_planned(
    state: &mut State,
    key: SessionKey,
    (number, planned): (u64, Result<Preview, String>),
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(offer) = session.undo.offer.as_mut().filter(|offer| offer.number == number) else { return };
    match planned {
        Ok(preview) if preview.plan.steps.iter().all(|step| step.action == Action::Nothing) => {
            let text = match offer.what {
                RestoreOf::Unaccepted { .. } => "No changes left to review.",
                _ => "Nothing to restore: the files are already as they were.",
            };
            if matches!(offer.what, RestoreOf::Unaccepted { .. }) {
                session.undo.unseen.clear();
            }
            session.undo.offer = None;
            call::flash(state, text, cx);
        }
        Ok(preview) => {
            // What is said about a decision in a review stays.
            let is_review = matches!(offer.what, RestoreOf::Unaccepted { .. });
            offer.preview = Some(preview);
            if !is_review {
                state.clear_flash();
            }
        }
        Err(why) => {
            session.undo.offer = None;
            call::flash(state, why, cx);
        }
    }
    cx.requests.push(UiRequest::Undo(key));
}

/// Restores these parts of the plan that was shown.
pub fn restore(state: &mut State, key: SessionKey, parts: Vec<Part>, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if session.turn.is_running() {
        return call::flash(state, "Files are restored only while no turn is running.", cx);
    }
    let Some(offer) = session.undo.offer.take() else { return };
    let Some(plan) = offer.preview.as_ref().map(|preview| Box::new(preview.plan.clone())) else { return };
    session.undo.restoring = Some(offer);
    run(state, key, SnapshotTask::Restore(plan, parts), cx);
}

fn on_restored(state: &mut State, key: SessionKey, restored: Result<Restored, String>, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(Offer { what, preview: Some(preview), then, .. }) = session.undo.restoring.take() else {
        return;
    };
    let Restored { span, changed, refused } = match restored {
        Ok(restored) => restored,
        Err(why) => {
            let title = format!("The files were not restored. {why}");
            return call::notice(state, key, Severity::Error, title, None);
        }
    };
    let to_do = preview.plan.steps.iter().filter(|step| step.action != Action::Nothing).count();
    let (is_whole, files) = (to_do == changed.len(), changed.len());
    let (is_redo, turns) = match what {
        RestoreOf::Turns(turns) => (false, turns),
        RestoreOf::Undo => {
            (true, session.undo.undone.last().map_or_else(Vec::new, |undone| undone.turns.clone()))
        }
        // `review` handles it.
        RestoreOf::Unaccepted { .. } => return,
    };
    if files > 0 {
        let restore = RestoreRecord { turns, before: span.before, after: span.after, files, is_whole };
        note(
            session,
            if is_redo { SnapshotRecord::Redone(restore) } else { SnapshotRecord::Undone(restore) },
        );
    }
    let count = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    let title = match files {
        0 => "No file was restored.".to_owned(),
        _ if is_redo => format!("Reverted the undo of {count}. The agent is not told."),
        _ => format!("Restored {count}. /redo reverts this. The agent is not told."),
    };
    let mut lines: Vec<String> = changed.iter().map(|path| shown_path(path)).collect();
    lines.extend(refused.iter().map(|(path, why)| format!("{}: unchanged, {why}", shown_path(path))));
    let more = lines.len().saturating_sub(MAX_NAMED);
    lines.truncate(MAX_NAMED);
    lines.extend((more > 0).then(|| format!("{more} more")));
    let severity = if refused.is_empty() { Severity::Info } else { Severity::Warning };
    call::notice(state, key, severity, title, Some(lines.join("\n")).filter(|text| !text.is_empty()));
    read_git(state, key, cx);
    if let Some((item, way)) = then.filter(|_| files > 0) {
        cx.requests.push(UiRequest::Rewind(key, item, way));
    }
}

pub(super) fn read_git(state: &State, key: SessionKey, cx: &mut Cx) {
    if let Some(session) = state.sessions.get(&key) {
        cx.effects.push(Effect::ReadGit { session: key, folder: session.workspace.cwd.clone() });
    }
}

/// Holds back effects that may change files until the snapshot before the turn is captured, and while a turn is paused by a
/// limit. Effects of an agent keep their order: whatever ends its requests releases them first.
pub(in crate::core) fn hold(state: &mut State, cx: &mut Cx) {
    let waiting = state
        .sessions
        .values()
        .filter(|session| session.undo.pending.is_some() || session.budget.paused.is_some());
    let agents: BTreeSet<ConnId> = waiting.filter_map(|session| session.conn).collect();
    if state.held.is_empty() && agents.is_empty() {
        return;
    }
    let before = std::mem::take(&mut state.held);
    let (mut held, free): (Vec<_>, Vec<_>) = before.into_iter().partition(|(conn, _)| agents.contains(conn));
    let mut effects: Vec<Effect> = free.into_iter().map(|(_, effect)| effect).collect();
    for effect in std::mem::take(&mut cx.effects) {
        if let Some(conn) = changes_files(&effect).filter(|conn| agents.contains(conn)) {
            held.push((conn, effect));
            continue;
        }
        if let Some(conn) = ends_requests(state, &effect) {
            let (ended, others): (Vec<_>, Vec<_>) = held.into_iter().partition(|(of, _)| *of == conn);
            effects.extend(ended.into_iter().map(|(_, effect)| effect));
            held = others;
        }
        effects.push(effect);
    }
    (state.held, cx.effects) = (held, effects);
}

/// The agent for which an effect may change files. Reads wait too: they may follow a write.
fn changes_files(effect: &Effect) -> Option<ConnId> {
    match effect {
        Effect::File(job) => Some(job.conn),
        Effect::Terminal(TerminalJob::Create { conn, .. })
        | Effect::Send(conn, AgentCommand::Respond(_, Response::Selected(_))) => Some(*conn),
        _ => None,
    }
}

fn ends_requests(state: &State, effect: &Effect) -> Option<ConnId> {
    match effect {
        Effect::Send(
            conn,
            AgentCommand::Cancel(_) | AgentCommand::Respond(_, Response::PermissionCancelled),
        )
        | Effect::Disconnect { conn, .. }
        | Effect::Terminal(TerminalJob::ReleaseAll(conn)) => Some(*conn),
        Effect::StopFiles { session, .. } => state.sessions.get(session)?.conn,
        _ => None,
    }
}
