//! Writes that are held (`policy.hold_writes`): the user applies or discards each part.
//!
//! Invariant: nothing is written without the user's decision about what is shown; what was changed on the disk or by the
//! agent since then is compared again first.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{call, policy, review, undo};
use crate::core::state::lookup;
use crate::core::{Cx, Effect, HeldReview, State, UiRequest};
use crate::model::held::{
    Fit, HeldChange, HeldFile, HeldFiles, HeldJob, HeldNews, HeldTask, Holding, MAX_ALL_HELD_BYTES,
    MAX_HELD_FILES,
};
use crate::model::hunk::{with_hunks, without_hunks};
use crate::model::snapshot::{Part, SnapshotRecord, Span, shown_path, shown_paths};
use crate::model::{Body, Note, SessionKey, Severity};

/// Maximum number of paths in a notice.
const MAX_NAMED: usize = 20;

/// What a file request of a session needs to know.
pub(super) fn holding(state: &State, key: SessionKey) -> Holding {
    let session = state.sessions.get(&lookup::root_of(state, key));
    let files = session.map(|session| Arc::clone(&session.held.files)).unwrap_or_default();
    Holding { files, is_on: state.setup.policy.hold_writes }
}

/// Holds a write of the agent.
///
/// # Errors
/// Too much is held already. Nothing is changed then.
pub(super) fn on_write(
    state: &mut State,
    key: SessionKey,
    path: &Path,
    file: HeldFile,
    cx: &mut Cx,
) -> Result<(), &'static str> {
    let key = lookup::root_of(state, key);
    let Some(session) = state.sessions.get_mut(&key) else { return Ok(()) };
    let files = &session.held.files;
    let others = || files.iter().filter(|(other, _)| *other != path);
    if others().count() >= MAX_HELD_FILES {
        return Err("500 files are held already");
    }
    if others().map(|(_, other)| other.size()).sum::<usize>() + file.size() > MAX_ALL_HELD_BYTES {
        return Err("32 MiB are held already");
    }
    let base = files.get(path).map_or(file.base, |held| held.base.clone());
    if let Some(review) = &mut session.held.review {
        review.is_unasked = true;
    }
    set(state, key, path, rest(base, file.text));
    refresh(state, key, path, cx);
    Ok(())
}

/// What is still held of a text when the disk has the other one; `None`: nothing.
fn rest(disk: Option<Body>, text: Body) -> Option<HeldFile> {
    (disk.as_ref() != Some(&text)).then_some(HeldFile { base: disk, text })
}

fn set(state: &mut State, key: SessionKey, path: &Path, file: Option<HeldFile>) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let files = Arc::make_mut(&mut session.held.files);
    match file.clone() {
        Some(file) => drop(files.insert(path.to_owned(), file)),
        None => drop(files.remove(path)),
    }
    session.recorder.note(Note::Held(path.to_owned(), file));
}

/// Moves the held files to a session that takes the place of another one.
pub(super) fn move_all(state: &mut State, from: SessionKey, to: SessionKey) {
    let files = state.sessions.get(&from).map(|session| Arc::clone(&session.held.files)).unwrap_or_default();
    for (path, file) in files.iter() {
        set(state, from, path, None);
        set(state, to, path, Some(file.clone()));
    }
}

/// Compares the held files with the disk, to show them.
pub fn start(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let key = lookup::root_of(state, key);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if session.held.files.is_empty() {
        return call::flash(state, "No writes are held.", cx);
    }
    let stale: BTreeSet<PathBuf> = session.held.files.keys().cloned().collect();
    session.held.review = Some(HeldReview { stale, is_opening: true, ..HeldReview::default() });
    compare(state, key, cx);
}

/// Compares a file again, if it is shown.
fn refresh(state: &mut State, key: SessionKey, path: &Path, cx: &mut Cx) {
    let review = state.sessions.get_mut(&key).and_then(|session| session.held.review.as_mut());
    if let Some(review) = review {
        review.stale.insert(path.to_owned());
        compare(state, key, cx);
    }
}

/// Compares what has changed, one comparison at a time.
fn compare(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(review) = session.held.review.as_mut().filter(|review| review.comparing.is_none()) else {
        return;
    };
    let stale = std::mem::take(&mut review.stale);
    if stale.is_empty() {
        return;
    }
    state.next.offer += 1;
    let number = state.next.offer;
    review.comparing = Some(number);
    let file = |path: PathBuf| Some((session.held.files.get(&path)?.clone(), path));
    let files: HeldFiles = stale.into_iter().filter_map(file).map(|(file, path)| (path, file)).collect();
    let task = HeldTask::Compare { number, files };
    cx.effects.push(Effect::Held(HeldJob { session: key, roots: policy::roots(session), task }));
}

/// The review is closed.
pub fn close(state: &mut State, key: SessionKey) {
    if let Some(session) = state.sessions.get_mut(&key) {
        session.held.review = None;
    }
}

/// Writes a part of the shown changes.
pub fn apply(state: &mut State, key: SessionKey, part: &Part, cx: &mut Cx) {
    let Some(change) = shown(state, key, part, cx) else { return };
    let text = match (&change.disk, part.hunks.as_slice()) {
        (Some(disk), hunks @ [_, ..]) => with_hunks(&disk.peek(), &change.text.peek(), hunks).map(Body::from),
        _ => Some(change.text.clone()),
    };
    let text = match (text, &change.fit) {
        (_, Fit::Refused(why)) => return call::flash(state, format!("It cannot be applied: {why}."), cx),
        (Some(text), _) => text,
        (None, _) => return refresh(state, key, &change.path, cx),
    };
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.held.is_applying = true;
    let task = HeldTask::Apply { change: Box::new(change), text };
    let job = HeldJob { session: key, roots: policy::roots(session), task };
    undo::write_held(state, key, job, cx);
}

/// Discards a part of the shown changes, and describes it in the draft for the agent.
pub fn discard(state: &mut State, key: SessionKey, part: &Part, cx: &mut Cx) {
    let Some(change) = shown(state, key, part, cx) else { return };
    let left = match (&change.disk, part.hunks.as_slice()) {
        (Some(disk), hunks @ [_, ..]) => {
            let Some(text) = without_hunks(&disk.peek(), &change.text.peek(), hunks) else {
                return refresh(state, key, &change.path, cx);
            };
            left_of(&change, change.disk.clone(), text.into())
        }
        _ => None,
    };
    review::describe(state, key, part, "I discarded", cx);
    call::flash(state, "Discarded, and added to the prompt.", cx);
    set(state, key, &change.path, left);
    refresh(state, key, &change.path, cx);
}

/// What is still held after a decision. A conflict keeps its base, so that what is left of it is not taken for a change of
/// the agent.
fn left_of(change: &HeldChange, disk: Option<Body>, text: Body) -> Option<HeldFile> {
    let left = rest(disk, text)?;
    let base = if change.fit == Fit::Conflict { change.held.base.clone() } else { left.base };
    Some(HeldFile { base, text: left.text })
}

/// The shown change of a part, unless another part is being applied or the change is no longer what is held.
fn shown(state: &mut State, key: SessionKey, part: &Part, cx: &mut Cx) -> Option<HeldChange> {
    let session = state.sessions.get(&key)?;
    if session.read_only.is_some() {
        call::flash(state, "Continue the session first, with a prompt.", cx);
        return None;
    }
    if session.held.is_applying {
        call::flash(state, "A change is being written. Try again.", cx);
        return None;
    }
    let change = session.held.change(&part.path).cloned();
    if change.is_none() {
        call::flash(state, "The file has changed and is being compared again.", cx);
        refresh(state, key, &part.path, cx);
    }
    change
}

/// A command of the agent starts.
pub(super) fn on_command(state: &mut State, key: SessionKey) {
    let key = lookup::root_of(state, key);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let (turn, count) = (session.turn_count, session.held.files.len());
    if count > 0 && session.held.noticed_in.replace(turn) != Some(turn) {
        let files = if count == 1 { "1 file is".to_owned() } else { format!("{count} files are") };
        let title = format!("{files} held, so commands see the old content until you apply it.");
        call::notice(state, key, Severity::Info, title, None);
    }
}

/// Removes what the user applied in a turn from the paths that it changed, relative to a folder, and warns of the others.
pub(super) fn on_disk_changed(state: &mut State, key: SessionKey, root: &Path, changed: &mut Vec<PathBuf>) {
    let is_on = state.setup.policy.hold_writes;
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let applied = std::mem::take(&mut session.held.applied);
    changed.retain(|path| !applied.contains(&root.join(path)));
    if !is_on || changed.is_empty() || std::mem::replace(&mut session.held.has_warned, true) {
        return;
    }
    let title = "Files changed on the disk in this turn although writes are held. Only what the agent writes through \
                 parlor is held, not what it or a command writes itself. To review it: /review-changes.";
    call::notice(state, key, Severity::Warning, title, Some(shown_paths(changed.iter(), MAX_NAMED)));
}

pub(in crate::core) fn on_news(
    state: &mut State,
    key: SessionKey,
    news: HeldNews,
    span: Option<Span>,
    cx: &mut Cx,
) {
    match news {
        HeldNews::Compared(number, changes) => on_compared(state, key, number, changes, cx),
        HeldNews::Applied { change, text, result } => {
            on_applied(state, key, (*change, text), result, span, cx);
        }
    }
}

fn on_compared(state: &mut State, key: SessionKey, number: u64, changes: Vec<HeldChange>, cx: &mut Cx) {
    let review = state.sessions.get_mut(&key).and_then(|session| session.held.review.as_mut());
    let Some(review) = review.filter(|review| review.comparing == Some(number)) else { return };
    (review.comparing, review.number) = (None, number);
    let mut shown = review.changes.take().unwrap_or_default();
    for change in changes {
        let is_done = change.disk.as_ref() == Some(&change.text) && !matches!(change.fit, Fit::Refused(_));
        let held = state.sessions.get(&key).and_then(|session| session.held.files.get(&change.path));
        if is_done && held == Some(&change.held) {
            set(state, key, &change.path, None);
        }
        match shown.binary_search_by(|known| known.path.cmp(&change.path)) {
            Ok(position) => shown.splice(position..=position, [change]).for_each(drop),
            Err(position) => shown.insert(position, change),
        }
    }
    let Some(session) = state.sessions.get_mut(&key) else { return };
    shown.retain(|change| session.held.files.contains_key(&change.path));
    if shown.is_empty() {
        session.held.review = None;
        call::flash(state, "No held writes left.", cx);
    } else if let Some(review) = &mut session.held.review {
        review.changes = Some(shown);
    }
    cx.requests.push(UiRequest::Undo(key));
    compare(state, key, cx);
}

fn on_applied(
    state: &mut State,
    key: SessionKey,
    (change, text): (HeldChange, Body),
    result: Result<(), String>,
    span: Option<Span>,
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.held.is_applying = false;
    if let Some(Span { before, after }) = span {
        undo::note(session, SnapshotRecord::Applied { turn: session.turn_count, before, after });
    }
    if let Err(why) = result {
        let title = format!("{} was not written: {why}.", shown_path(&change.path));
        call::notice(state, key, Severity::Error, title, None);
    } else {
        if session.turn.is_running() {
            session.held.applied.insert(change.path.clone());
        }
        // Unless the agent has written the file again meanwhile.
        let left = match session.held.files.get(&change.path).cloned() {
            Some(held) if held == change.held => left_of(&change, Some(text), change.text.clone()),
            Some(held) => rest(Some(text), held.text),
            None => None,
        };
        set(state, key, &change.path, left);
        call::flash(state, "Written to the disk.", cx);
        undo::read_git(state, key, cx);
    }
    refresh(state, key, &change.path, cx);
}
