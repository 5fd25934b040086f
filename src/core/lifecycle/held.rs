//! Writes that are held (`policy.hold_writes`): the user applies or discards each part.
//!
//! Invariant: nothing is written without the user's decision about what is shown; what was changed on the disk or by the
//! agent since then is compared again first.

use std::path::PathBuf;
use std::sync::Arc;

use super::{call, policy, review, undo};
use crate::core::state::lookup;
use crate::core::{Cx, Effect, HeldReview, State, UiRequest};
use crate::model::held::{Fit, HeldChange, HeldFile, HeldJob, HeldNews, HeldTask, Holding};
use crate::model::hunk::{with_hunks, without_hunks};
use crate::model::snapshot::{Part, shown_path, shown_paths};
use crate::model::{Body, Note, SessionKey, Severity};

/// Maximum number of paths in a notice.
const MAX_NAMED: usize = 20;

const CHANGED: &str = "The file was changed meanwhile. It has been compared again.";

/// What a file request of a session needs to know.
pub(super) fn holding(state: &State, key: SessionKey) -> Holding {
    let session = state.sessions.get(&lookup::root_of(state, key));
    let files = session.map(|session| Arc::clone(&session.held.files)).unwrap_or_default();
    Holding { files, is_on: state.setup.policy.hold_writes }
}

/// A write of the agent is held.
pub(super) fn on_held(state: &mut State, key: SessionKey, path: PathBuf, file: HeldFile, cx: &mut Cx) {
    let key = lookup::root_of(state, key);
    let left = HeldFile::on(file.base, file.text);
    set(state, key, path, left);
    refresh(state, key, cx);
}

fn set(state: &mut State, key: SessionKey, path: PathBuf, file: Option<HeldFile>) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let files = Arc::make_mut(&mut session.held.files);
    match file.clone() {
        Some(file) => drop(files.insert(path.clone(), file)),
        None => drop(files.remove(&path)),
    }
    session.recorder.note(Note::Held(path, file));
}

/// Compares the held files with the disk, to show them.
pub fn start(state: &mut State, key: SessionKey, cx: &mut Cx) {
    if state.sessions.get(&key).is_none_or(|session| session.held.files.is_empty()) {
        return call::flash(state, "No writes are held.", cx);
    }
    compare(state, key, cx);
}

fn compare(state: &mut State, key: SessionKey, cx: &mut Cx) {
    state.next.offer += 1;
    let number = state.next.offer;
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.held.review = Some(HeldReview { number, ..HeldReview::default() });
    let task = HeldTask::Compare { number, files: Arc::clone(&session.held.files) };
    run(state, key, task, cx);
}

fn run(state: &State, key: SessionKey, task: HeldTask, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key) else { return };
    cx.effects.push(Effect::Held(HeldJob { session: key, roots: policy::roots(session), task }));
}

/// Compares the held files again if they are shown.
fn refresh(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let session = state.sessions.get_mut(&key);
    match session.and_then(|session| session.held.review.as_mut()) {
        Some(review) if review.part.is_some() || review.changes.is_none() => review.is_stale = true,
        Some(_) => compare(state, key, cx),
        None => {}
    }
}

/// The review is closed.
pub fn close(state: &mut State, key: SessionKey) {
    if let Some(session) = state.sessions.get_mut(&key) {
        session.held.review = None;
    }
}

/// Writes a part of the shown changes.
pub fn apply(state: &mut State, key: SessionKey, part: Part, cx: &mut Cx) {
    let Some(change) = shown(state, key, &part, cx) else { return };
    let text = match (&change.disk, part.hunks.as_slice()) {
        (Some(disk), hunks @ [_, ..]) => with_hunks(&disk.peek(), &change.text.peek(), hunks).map(Body::from),
        _ => Some(change.text.clone()),
    };
    let text = match (text, &change.fit) {
        (_, Fit::Refused(why)) => return call::flash(state, format!("It cannot be applied: {why}."), cx),
        (Some(text), _) => text,
        (None, _) => return compare(state, key, cx),
    };
    if let Some(review) = state.sessions.get_mut(&key).and_then(|session| session.held.review.as_mut()) {
        review.part = Some(part);
    }
    undo::on_apply(state, key, cx);
    run(state, key, HeldTask::Apply { change: Box::new(change), text }, cx);
}

/// Discards a part of the shown changes, and describes it in the draft for the agent.
pub fn discard(state: &mut State, key: SessionKey, part: &Part, cx: &mut Cx) {
    let Some(HeldChange { path, disk, text, .. }) = shown(state, key, part, cx) else { return };
    let left = match (&disk, part.hunks.as_slice()) {
        (Some(old), hunks @ [_, ..]) => {
            let Some(text) = without_hunks(&old.peek(), &text.peek(), hunks) else {
                return compare(state, key, cx);
            };
            HeldFile::on(disk, text.into())
        }
        _ => None,
    };
    review::describe(state, key, part, "I discarded", cx);
    call::flash(state, "Discarded, and added to the prompt.", cx);
    set(state, key, path, left);
    refresh(state, key, cx);
}

/// The shown change of a part, unless another part is being applied or the change is no longer what is held.
fn shown(state: &mut State, key: SessionKey, part: &Part, cx: &mut Cx) -> Option<HeldChange> {
    let held = &state.sessions.get(&key)?.held;
    if held.review.as_ref().is_none_or(|review| review.part.is_some() || review.changes.is_none()) {
        call::flash(state, "The files are being compared. Try again.", cx);
        return None;
    }
    let change = held.change(&part.path).cloned();
    if change.is_none() {
        call::flash(state, CHANGED, cx);
        compare(state, key, cx);
    }
    change
}

/// A command of the agent starts.
pub(super) fn on_command(state: &mut State, key: SessionKey) {
    let key = lookup::root_of(state, key);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let (turn, count) = (session.turn_count, session.held.files.len());
    if count > 0 && session.held.told_in.replace(turn) != Some(turn) {
        let files = if count == 1 { "1 file is".to_owned() } else { format!("{count} files are") };
        let title = format!("{files} held, so commands see the old content until you apply it.");
        call::notice(state, key, Severity::Info, title, None);
    }
}

/// The turn has changed these files on the disk.
pub(super) fn on_disk_changed(state: &mut State, key: SessionKey, turn: u32, changed: &[PathBuf]) {
    let is_on = state.setup.policy.hold_writes;
    let Some(session) = state.sessions.get_mut(&key).filter(|_| is_on && !changed.is_empty()) else { return };
    if session.held.applied_in == Some(turn) || std::mem::replace(&mut session.held.has_warned, true) {
        return;
    }
    let title = "Files changed on the disk in this turn although writes are held. Only what the agent writes through \
                 parlor is held, not what it or a command writes itself. To review it: /review-changes.";
    call::notice(state, key, Severity::Warning, title, Some(shown_paths(changed.iter(), MAX_NAMED)));
}

pub(in crate::core) fn on_news(state: &mut State, key: SessionKey, news: HeldNews, cx: &mut Cx) {
    match news {
        HeldNews::Compared(number, changes) => on_compared(state, key, (number, changes), cx),
        HeldNews::Applied { change, text, result } => on_applied(state, key, (*change, text), result, cx),
    }
}

fn on_compared(state: &mut State, key: SessionKey, (number, changes): (u64, Vec<HeldChange>), cx: &mut Cx) {
    let session = state.sessions.get(&key);
    let review = session.and_then(|session| session.held.review.as_ref());
    let Some(&HeldReview { is_stale, .. }) = review.filter(|review| review.number == number) else { return };
    // The disk has these already.
    let (done, changes): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| {
        change.disk.as_ref() == Some(&change.text) && !matches!(change.fit, Fit::Refused(_))
    });
    for change in done {
        if state
            .sessions
            .get(&key)
            .is_some_and(|session| session.held.files.get(&change.path) == Some(&change.held))
        {
            set(state, key, change.path, None);
        }
    }
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let is_empty = changes.is_empty();
    let review = HeldReview { number, changes: Some(changes), ..HeldReview::default() };
    session.held.review = (!is_empty).then_some(review);
    if is_empty {
        call::flash(state, "No held writes left.", cx);
    }
    cx.requests.push(UiRequest::Undo(key));
    if is_stale {
        refresh(state, key, cx);
    }
}

fn on_applied(
    state: &mut State,
    key: SessionKey,
    (change, text): (HeldChange, Body),
    result: Result<(), String>,
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if let Some(review) = &mut session.held.review {
        review.part = None;
    }
    if let Err(why) = result {
        let title = format!("{} was not written: {why}.", shown_path(&change.path));
        call::notice(state, key, Severity::Error, title, None);
    } else if let Some(held) = session.held.files.get(&change.path).cloned() {
        // With what was merged, unless the agent has written the file again meanwhile.
        if session.turn.is_running() {
            session.held.applied_in = Some(session.turn_count);
        }
        let rest = if held == change.held { change.text } else { held.text };
        set(state, key, change.path, HeldFile::on(Some(text), rest));
        call::flash(state, "Written to the disk.", cx);
    }
    undo::on_applied(state, key, cx);
    refresh(state, key, cx);
}
