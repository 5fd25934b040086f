//! All changes of a session by file, merged from its tool calls.
//!
//! Includes the calls of subagents. Changes that touch the same lines are joined, so that an edit of an edit is one change.
//! Invariants: only successful calls count; changes that cannot be joined both stay; a change that was undone is not
//! listed.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::model::{Body, DiffChange, DiffPosition, FileDiff, ItemId, PieceStart, SessionKey, ToolStatus};

use super::{duplicate_diffs, lookup};
use crate::core::{Item, ItemBody, Session, State, ToolCall};

#[derive(Debug, Clone, PartialEq)]
pub struct ChangedFile {
    pub path: PathBuf,
    /// Ordered by line, where the lines are known.
    pub parts: Vec<ChangePart>,
}

/// A change of a file: of one call, or joined from several that touched the same lines.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangePart {
    pub diff: FileDiff,
    pub position: Option<DiffPosition>,
    /// The last call that reported it.
    pub item: (SessionKey, ItemId),
}

/// Identifies a set of changes: each call that counts, with its revision.
pub type ChangesKey = Vec<(SessionKey, ItemId, u32)>;

/// The calls whose changes count for a session.
pub fn changes_key(state: &State, root: SessionKey) -> ChangesKey {
    calls(state, root).map(|(key, item, rev, _)| (key, item, rev)).collect()
}

pub fn changed_files(state: &State, root: SessionKey) -> Vec<ChangedFile> {
    let mut files: BTreeMap<PathBuf, Vec<ChangePart>> = BTreeMap::new();
    for (key, item, _, call) in calls(state, root) {
        let Some(session) = state.sessions.get(&key) else { continue };
        for diff in call.diffs() {
            let path = plain(&session.workspace.folder().join(&diff.path));
            let mut position = call.position_of(diff).cloned();
            if let Some(DiffPosition::Lines(starts)) = &mut position {
                // Later changes may be near.
                starts.iter_mut().flatten().for_each(|start| start.around = None);
            }
            let part = ChangePart { diff: diff.clone(), position, item: (key, item) };
            merge(files.entry(path).or_default(), part);
        }
    }
    files.retain(|_, parts| {
        parts.retain(|part| !is_undone(part));
        parts.sort_by_key(|part| (first_line(part).unwrap_or(u32::MAX), is_there(part)));
        !parts.is_empty()
    });
    files.into_iter().map(|(path, parts)| ChangedFile { path, parts }).collect()
}

/// The files that were changed after an item of a session, also by subagents that were started after it.
pub fn changed_since(state: &State, root: SessionKey, item: ItemId) -> Vec<PathBuf> {
    let Some(session) = state.sessions.get(&root) else { return Vec::new() };
    let index = |id: ItemId| session.transcript.index_of(id);
    let later = session.transcript.items().get(index(item).map_or(0, |at| at + 1)..).unwrap_or_default();
    let is_child = |body: &ItemBody, child: SessionKey| matches!(body, ItemBody::Subagent { key: Some(key), .. } if *key == child);
    let is_later = |key: SessionKey, id: ItemId| {
        if key == root { index(id) > index(item) } else { later.iter().any(|item| is_child(&item.body, key)) }
    };
    let mut files = Vec::new();
    for (_, _, _, call) in calls(state, root).filter(|(key, id, ..)| is_later(*key, *id)) {
        for diff in call.diffs() {
            let path = plain(&session.workspace.folder().join(&diff.path));
            if !files.contains(&path) {
                files.push(path);
            }
        }
    }
    files
}

fn calls(
    state: &State,
    root: SessionKey,
) -> impl Iterator<Item = (SessionKey, ItemId, u32, &ToolCall)> + use<'_> {
    // Parents are older than their children, so changes of subagents follow those of the session.
    let sessions = state.sessions.values().filter(move |session| lookup::root_of(state, session.key) == root);
    sessions.flat_map(|session| {
        session.transcript.items().iter().filter_map(|item| match &item.body {
            ItemBody::Tool(call)
                if counts(call) && !item.is_hidden() && !is_reported_twice(session, item, call) =>
            {
                Some((session.key, item.id, item.rev, call.as_ref()))
            }
            _ => None,
        })
    })
}

/// Whether a change is reported by a permission request and again by a tool call of the agent: it counts once.
fn is_reported_twice(session: &Session, item: &Item, call: &ToolCall) -> bool {
    call.from_ask_only && is_reported_elsewhere(session, item, call)
}

/// Whether reported changes equal a change that was made: applied to its old text they give the new text, or, if the
/// record holds only the differing parts, the reverse.
pub(in crate::core) fn explains<'d>(
    folder: &Path,
    reported: impl Iterator<Item = &'d FileDiff>,
    made: &FileDiff,
) -> bool {
    let path = plain(&folder.join(&made.path));
    let reported: Vec<&FileDiff> = reported.filter(|diff| plain(&folder.join(&diff.path)) == path).collect();
    let DiffChange::Texts { old, new } = &made.change else { return false };
    let before = old.clone().unwrap_or_default();
    let mut now = before.clone();
    for diff in &reported {
        match &diff.change {
            DiffChange::Texts { old, new } => {
                let old = old.clone().unwrap_or_default();
                if old.is_empty() && !now.is_empty() {
                    break;
                }
                let next = if *old == *now { Some(new.clone()) } else { replaced(&now, &old, new) };
                match next {
                    Some(next) => now = next,
                    None => break,
                }
            }
            DiffChange::Patch(text) => {
                return reported.len() == 1
                    && duplicate_diffs::KnownChanges::new(folder, std::iter::once(made)).contains(text)
                    && *before != **new;
            }
        }
    }
    if !reported.is_empty() && *now == **new {
        return true;
    }
    match reported.as_slice() {
        [FileDiff { change: DiffChange::Texts { old: Some(whole), new: after }, .. }] => {
            replaced(whole, &before, new).is_some_and(|made| made == *after)
        }
        _ => false,
    }
}

fn counts(call: &ToolCall) -> bool {
    call.status == ToolStatus::Completed && call.diffs().next().is_some()
}

/// A path without `.` and `..`, resolved lexically.
pub(in crate::core) fn plain(path: &Path) -> PathBuf {
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

/// Adds a change to those of its file, joined with the ones whose lines it touches. If it is unknown whether two
/// changes touch, or their texts do not agree, both stay.
fn merge(parts: &mut Vec<ChangePart>, mut next: ChangePart) {
    let (Some(line), Some((old, new))) = (begin(&next), texts(&next)) else {
        if texts(&next).is_some() || !parts.iter().any(|part| part.diff == next.diff) {
            parts.push(next);
        }
        return;
    };
    // From the last line to the first, so that joining does not move changes that are still to be found.
    let mut near: Vec<usize> =
        (0..parts.len()).filter(|at| parts.get(*at).is_some_and(|part| touches(part, line, &old))).collect();
    near.sort_by_key(|at| std::cmp::Reverse(parts.get(*at).map(|part| (begin(part), is_there(part)))));
    let mut span = Span::new(line, &old, &new);
    let mut joined = Vec::new();
    for at in near {
        let Some(part) = parts.get(at) else { continue };
        let (Some(first), Some((old, new))) = (begin(part), texts(part)) else { continue };
        if let Some(both) = span.join(first, &old, &new) {
            span = both;
            joined.push(at);
        }
    }
    move_down(parts, line, count_ends(&new) - count_ends(&old), &joined);
    if !joined.is_empty() {
        let all = || joined.iter().filter_map(|at| parts.get(*at));
        let was_reported =
            |part: &ChangePart| matches!(&part.diff.change, DiffChange::Texts { old: Some(_), .. });
        let is_whole = |part: &ChangePart| part.position == Some(DiffPosition::Whole);
        let old = (all().all(was_reported) || !span.base.is_empty()).then(|| span.base.into());
        next.diff.change = DiffChange::Texts { old, new: span.new.into() };
        next.position = Some(if is_whole(&next) || all().any(is_whole) {
            DiffPosition::Whole
        } else {
            DiffPosition::Lines(vec![Some(PieceStart::at(span.line, true))])
        });
        let mut at = 0;
        parts.retain(|_| {
            at += 1;
            !joined.contains(&(at - 1))
        });
    }
    parts.push(next);
}

/// A piece of a file before all changes, before the last one, and now.
#[derive(Debug, Clone)]
struct Span {
    /// First line, from 1.
    line: u32,
    base: String,
    mid: String,
    new: String,
}

impl Span {
    fn new(line: u32, old: &str, new: &str) -> Self {
        Self { line, base: old.to_owned(), mid: old.to_owned(), new: new.to_owned() }
    }

    /// Joins an earlier change that replaced `old` by `new`, starting on line `first`. `None` if the texts do not
    /// agree.
    fn join(&self, first: u32, old: &str, new: &str) -> Option<Self> {
        let Self { line, base, mid, new: now } = self;
        if first <= *line
            && let Some(at) = position_of(new, mid, line - first)
        {
            // It lies within the text that the earlier one wrote.
            let (before, behind) = (new.get(..at)?, new.get(at + mid.len()..)?);
            // Text removed directly after both stays at the end.
            let cut = base.strip_prefix(mid.as_str()).filter(|cut| cut.is_empty() || behind.is_empty())?;
            return Some(Self {
                line: first,
                base: format!("{old}{cut}"),
                mid: new.to_owned(),
                new: format!("{before}{now}{behind}"),
            });
        }
        if first >= *line
            && let Some(at) = position_of(mid, new, first - line)
        {
            // It covers the earlier one.
            let (before, behind) = (base.get(..at)?, base.get(at + new.len()..)?);
            return Some(Self { base: format!("{before}{old}{behind}"), ..self.clone() });
        }
        if first < *line {
            // It begins within the earlier one and ends after it.
            let at = line_start(new, line - first)?;
            let common = new.get(at..).filter(|common| common.ends_with('\n') && mid.starts_with(common))?;
            let before = new.get(..at)?;
            return Some(Self {
                line: first,
                base: format!("{old}{}", base.get(common.len()..)?),
                mid: format!("{before}{mid}"),
                new: format!("{before}{now}"),
            });
        }
        let at = line_start(mid, first - line)?;
        let common = mid.get(at..).filter(|common| common.ends_with('\n') && new.starts_with(common))?;
        let behind = new.get(common.len()..)?;
        Some(Self {
            line: *line,
            base: format!("{}{old}", base.get(..at)?),
            mid: format!("{mid}{behind}"),
            new: format!("{now}{behind}"),
        })
    }
}

/// The line on which a change begins, if known; a new file begins on line 1.
fn begin(part: &ChangePart) -> Option<u32> {
    let is_new_file = matches!(&part.diff.change, DiffChange::Texts { old: None, .. });
    first_line(part).or(is_new_file.then_some(1))
}

/// Whether a change left text behind; a removal on a line precedes the text that is there now.
fn is_there(part: &ChangePart) -> bool {
    texts(part).is_none_or(|(_, new)| !new.is_empty())
}

fn touches(part: &ChangePart, line: u32, old: &str) -> bool {
    let (Some(first), Some((_, new))) = (begin(part), texts(part)) else { return false };
    let lines = |text: &str| u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    let (end, old_end) = (first.saturating_add(lines(&new)), line.saturating_add(lines(old)));
    // An empty range touches the lines next to it.
    if first == end || line == old_end {
        first <= old_end && line <= end
    } else {
        first < old_end && line < end
    }
}

/// The position of a text in another one, `line` lines below its start; `None` if it is missing or ambiguous.
fn position_of(text: &str, part: &str, line: u32) -> Option<usize> {
    let from = line_start(text, line)?;
    if part.is_empty() {
        return Some(from);
    }
    let line_end = text.get(from..)?.find('\n').map_or(text.len(), |at| from + at + 1);
    let mut positions = text.get(from..)?.match_indices(part).map(|(at, _)| from + at);
    let at = positions.next().filter(|at| *at < line_end)?;
    // Complete lines must start at their line.
    let is_whole = at == from && part.ends_with('\n');
    (is_whole || positions.next().is_none_or(|other| other >= line_end)).then_some(at)
}

/// The byte at which the line starts that is `line` lines below the first.
fn line_start(text: &str, line: u32) -> Option<usize> {
    let Some(before) = line.checked_sub(1) else { return Some(0) };
    text.match_indices('\n').nth(usize::try_from(before).ok()?).map(|(at, _)| at + 1)
}

fn count_ends(text: &str) -> i64 {
    i64::try_from(text.matches('\n').count()).unwrap_or(0)
}

/// Old and new text; an unreported old text is empty.
fn texts(part: &ChangePart) -> Option<(Body, Body)> {
    match &part.diff.change {
        DiffChange::Texts { old, new } => Some((old.clone().unwrap_or_default(), new.clone())),
        DiffChange::Patch(_) => None,
    }
}

/// Moves the changes below by the number of lines that were added or removed.
fn move_down(parts: &mut [ChangePart], line: u32, by: i64, but: &[usize]) {
    for (_, part) in parts.iter_mut().enumerate().filter(|(at, _)| !but.contains(at)) {
        if let Some(DiffPosition::Lines(starts)) = &mut part.position {
            for start in starts.iter_mut().flatten().filter(|start| start.line > line) {
                start.line = u32::try_from((i64::from(start.line) + by).max(1)).unwrap_or(start.line);
            }
        }
    }
}

/// Replaces the only occurrence of `from`; `None` if there is none, or more than one.
pub(in crate::core) fn replaced(text: &str, from: &str, to: &str) -> Option<Body> {
    let mut positions = text.match_indices(from);
    let (at, _) = positions.next()?;
    if from.is_empty() || positions.next().is_some() {
        return None;
    }
    let (before, behind) = (text.get(..at)?, text.get(at + from.len()..)?);
    Some(format!("{before}{to}{behind}").into())
}

/// The line on which a change begins, if known.
pub fn first_line(part: &ChangePart) -> Option<u32> {
    match part.position.as_ref()? {
        DiffPosition::Whole => Some(1),
        DiffPosition::Lines(starts) => starts.iter().flatten().map(|PieceStart { line, .. }| *line).min(),
        DiffPosition::Gone | DiffPosition::Unreadable => None,
    }
}

fn is_undone(part: &ChangePart) -> bool {
    matches!(&part.diff.change, DiffChange::Texts { old: Some(old), new } if old == new)
}

/// Whether a call that consists of a permission request only reports a change that another call of its turn reports
/// too.
pub(crate) fn is_reported_elsewhere(session: &Session, item: &crate::core::Item, call: &ToolCall) -> bool {
    let folder = session.workspace.folder();
    let paths: Vec<PathBuf> = call.reported_diffs().map(|diff| plain(&folder.join(&diff.path))).collect();
    session.transcript.items().iter().any(|other| match &other.body {
        ItemBody::Tool(reported) => {
            other.turn == item.turn
                && !reported.from_ask_only
                && reported.status == ToolStatus::Completed
                && reported.diffs().any(|diff| paths.contains(&plain(&folder.join(&diff.path))))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests;
