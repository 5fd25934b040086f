//! All changes of a session, file by file, as its tool calls tell them.
//!
//! Duty: collects the changes of calls that went well, its subagents' too, and merges what touches the same
//! lines, so that an edit of an edit is one change. Not its duty: what is on disk, drawing.
//! Texts that cannot be joined stay side by side, so nothing that was told is lost; what was undone is gone.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::model::{DiffChange, DiffPlace, FileDiff, ItemId, PieceStart, SessionKey, ToolStatus};

use super::{Item, ItemBody, Session, State, ToolCall, access, call, repeats};

/// A file and all that was changed in it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedFile {
    /// The file, absolute.
    pub path: PathBuf,
    /// Its changes, in order of their lines where those are known.
    pub parts: Vec<ChangePart>,
}

/// A change of a file: of one call, or of several that touched the same lines.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangePart {
    /// The change.
    pub diff: FileDiff,
    /// Where it stands.
    pub place: Option<DiffPlace>,
    /// The last call that told it.
    pub item: (SessionKey, ItemId),
}

/// What tells two sets of changes apart: each call that counts, with its revision.
pub type ChangesKey = Vec<(SessionKey, ItemId, u32)>;

/// The calls whose changes count for a session.
pub fn changes_key(state: &State, root: SessionKey) -> ChangesKey {
    calls(state, root).map(|(key, item, rev, _)| (key, item, rev)).collect()
}

/// All files that were changed in a session, by path.
pub fn changed_files(state: &State, root: SessionKey) -> Vec<ChangedFile> {
    let mut files: BTreeMap<PathBuf, Vec<ChangePart>> = BTreeMap::new();
    for (key, item, _, call) in calls(state, root) {
        let Some(session) = state.sessions.get(&key) else { continue };
        for diff in call.diffs() {
            let path = plain(&session.place.folder().join(&diff.path));
            let place = call.place_of(diff).cloned();
            let part = ChangePart { diff: diff.clone(), place, item: (key, item) };
            merge(files.entry(path).or_default(), part);
        }
    }
    files.retain(|_, parts| {
        parts.retain(|part| !is_undone(part));
        parts.sort_by_key(|part| first_line(part).unwrap_or(u32::MAX));
        !parts.is_empty()
    });
    files.into_iter().map(|(path, parts)| ChangedFile { path, parts }).collect()
}

fn calls(
    state: &State,
    root: SessionKey,
) -> impl Iterator<Item = (SessionKey, ItemId, u32, &ToolCall)> + use<'_> {
    // Parents are older than their children, so what a helper changed comes behind what was changed before.
    let sessions = state.sessions.values().filter(move |session| call::root_of(state, session.key) == root);
    sessions.flat_map(|session| {
        session.transcript.items().iter().filter_map(|item| match &item.body {
            ItemBody::Tool(call)
                if counts(call) && !item.is_hidden() && !is_told_twice(session, item, call) =>
            {
                Some((session.key, item.id, item.rev, call.as_ref()))
            }
            _ => None,
        })
    })
}

/// An approved change counts once, also where the agent's own call tells it in other words.
fn is_told_twice(session: &Session, item: &Item, call: &ToolCall) -> bool {
    call.from_ask_only && access::is_told_elsewhere(session, item, call)
}

/// Whether changes that are told are exactly a change that was made: put into its old text, they give the new one; or the
/// other way round, where only the parts that differ are known of it.
pub(super) fn explains<'d>(folder: &Path, told: impl Iterator<Item = &'d FileDiff>, made: &FileDiff) -> bool {
    let path = plain(&folder.join(&made.path));
    let told: Vec<&FileDiff> = told.filter(|diff| plain(&folder.join(&diff.path)) == path).collect();
    let DiffChange::Texts { old, new } = &made.change else { return false };
    let before = old.clone().unwrap_or_default();
    let mut now = Arc::clone(&before);
    for diff in &told {
        match &diff.change {
            DiffChange::Texts { old, new } => {
                let old = old.clone().unwrap_or_default();
                if old.is_empty() && !now.is_empty() {
                    break;
                }
                let next = if *old == *now { Some(Arc::clone(new)) } else { replaced(&now, &old, new) };
                match next {
                    Some(next) => now = next,
                    None => break,
                }
            }
            DiffChange::Patch(text) => {
                return told.len() == 1
                    && repeats::tells_again(text, std::iter::once(made))
                    && *before != **new;
            }
        }
    }
    if !told.is_empty() && *now == **new {
        return true;
    }
    match told.as_slice() {
        [FileDiff { change: DiffChange::Texts { old: Some(whole), new: after }, .. }] => {
            replaced(whole, &before, new).is_some_and(|made| made == *after)
        }
        _ => false,
    }
}

fn counts(call: &ToolCall) -> bool {
    call.status == ToolStatus::Completed && call.diffs().next().is_some()
}

/// A path without `.` and `..`, by its words alone.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Adds a change to those of its file.
fn merge(parts: &mut Vec<ChangePart>, next: ChangePart) {
    move_down(parts, &next);
    let Some((old, new)) = texts(&next) else {
        if !parts.iter().any(|part| part.diff == next.diff) {
            parts.push(next);
        }
        return;
    };
    // It goes on where another change ended, as a whole or in a piece of it.
    for part in parts.iter_mut().rev() {
        let Some((first, last)) = texts(part) else { continue };
        let joined = if last == old {
            Some(Arc::clone(&new))
        } else if !old.is_empty() {
            replaced(&last, &old, &new)
        } else {
            None
        };
        if let Some(joined) = joined {
            set_texts(part, first, joined);
            part.item = next.item;
            return;
        }
    }
    // It covers more than another change: what that one replaced stands in its old text.
    let mut next = next;
    parts.retain(|part| {
        let (Some((first, last)), Some((old, new))) = (texts(part), texts(&next)) else { return true };
        let Some(before) = replaced(&old, &last, &first).filter(|_| !last.is_empty()) else { return true };
        set_texts(&mut next, before, new);
        false
    });
    parts.push(next);
}

/// Old and new text; an old one that was not told is empty.
fn texts(part: &ChangePart) -> Option<(Arc<str>, Arc<str>)> {
    match &part.diff.change {
        DiffChange::Texts { old, new } => Some((old.clone().unwrap_or_default(), Arc::clone(new))),
        DiffChange::Patch(_) => None,
    }
}

fn set_texts(part: &mut ChangePart, old: Arc<str>, new: Arc<str>) {
    let was_told = matches!(&part.diff.change, DiffChange::Texts { old: Some(_), .. });
    let old = (was_told || !old.is_empty()).then_some(old);
    part.diff.change = DiffChange::Texts { old, new };
}

/// The text with the one place of `from` replaced; `None` if it is not there, or more than once.
fn replaced(text: &str, from: &str, to: &str) -> Option<Arc<str>> {
    let mut places = text.match_indices(from);
    let (at, _) = places.next()?;
    if from.is_empty() || places.next().is_some() {
        return None;
    }
    let (before, behind) = (text.get(..at)?, text.get(at + from.len()..)?);
    Some(format!("{before}{to}{behind}").into())
}

/// Lines that come or go above move what stands below.
fn move_down(parts: &mut [ChangePart], next: &ChangePart) {
    let (Some(line), Some((old, new))) = (first_line(next), texts(next)) else { return };
    let count = |text: &str| i64::try_from(text.lines().count()).unwrap_or(0);
    let by = count(&new) - count(&old);
    for part in parts {
        if let Some(DiffPlace::Lines(starts)) = &mut part.place {
            for start in starts.iter_mut().flatten().filter(|start| start.line > line) {
                start.line = u32::try_from((i64::from(start.line) + by).max(1)).unwrap_or(start.line);
            }
        }
    }
}

/// The line on which a change begins, where it is known.
pub fn first_line(part: &ChangePart) -> Option<u32> {
    match part.place.as_ref()? {
        DiffPlace::Whole => Some(1),
        DiffPlace::Lines(starts) => starts.iter().flatten().map(|PieceStart { line, .. }| *line).min(),
        DiffPlace::Gone | DiffPlace::Unreadable => None,
    }
}

fn is_undone(part: &ChangePart) -> bool {
    matches!(&part.diff.change, DiffChange::Texts { old: Some(old), new } if old == new)
}

#[cfg(test)]
mod tests;
