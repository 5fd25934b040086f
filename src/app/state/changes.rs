//! All changes of a session, file by file, as its tool calls tell them.
//!
//! Duty: collects the changes of calls that went well, its subagents' too, and merges what touches the same
//! lines, so that an edit of an edit is one change. Not its duty: what is on disk, drawing.
//! Texts that cannot be joined stay side by side, so nothing that was told is lost; what was undone is gone.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::model::{DiffChange, DiffPlace, FileDiff, ItemId, PieceStart, SessionKey, ToolStatus};

use super::{duplicate_diffs, lookup};
use crate::app::{Item, ItemBody, Session, State, ToolCall};

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
        parts.sort_by_key(|part| (first_line(part).unwrap_or(u32::MAX), is_there(part)));
        !parts.is_empty()
    });
    files.into_iter().map(|(path, parts)| ChangedFile { path, parts }).collect()
}

fn calls(
    state: &State,
    root: SessionKey,
) -> impl Iterator<Item = (SessionKey, ItemId, u32, &ToolCall)> + use<'_> {
    // Parents are older than their children, so what a helper changed comes behind what was changed before.
    let sessions = state.sessions.values().filter(move |session| lookup::root_of(state, session.key) == root);
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
    call.from_ask_only && is_told_elsewhere(session, item, call)
}

/// Whether changes that are told are exactly a change that was made: put into its old text, they give the new one; or the
/// other way round, where only the parts that differ are known of it.
pub(in crate::app) fn explains<'d>(
    folder: &Path,
    told: impl Iterator<Item = &'d FileDiff>,
    made: &FileDiff,
) -> bool {
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
                    && duplicate_diffs::tells_again(text, std::iter::once(made))
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
pub(in crate::app) fn plain(path: &Path) -> PathBuf {
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

/// Adds a change to those of its file: it is joined with those whose lines it touches. Where it is not known that two
/// changes touch, or their texts do not agree, both stay.
fn merge(parts: &mut Vec<ChangePart>, mut next: ChangePart) {
    let (Some(line), Some((old, new))) = (begin(&next), texts(&next)) else {
        if texts(&next).is_some() || !parts.iter().any(|part| part.diff == next.diff) {
            parts.push(next);
        }
        return;
    };
    // From the last line to the first, so that what was joined moves nothing that is still to be found.
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
        let was_told =
            |part: &ChangePart| matches!(&part.diff.change, DiffChange::Texts { old: Some(_), .. });
        let is_whole = |part: &ChangePart| part.place == Some(DiffPlace::Whole);
        let old = (all().all(was_told) || !span.base.is_empty()).then(|| span.base.into());
        next.diff.change = DiffChange::Texts { old, new: span.new.into() };
        next.place = Some(if is_whole(&next) || all().any(is_whole) {
            DiffPlace::Whole
        } else {
            DiffPlace::Lines(vec![Some(PieceStart { line: span.line, is_new: true })])
        });
        let mut at = 0;
        parts.retain(|_| {
            at += 1;
            !joined.contains(&(at - 1))
        });
    }
    parts.push(next);
}

/// A piece of a file at three times: before all changes, before the last one, and now.
#[derive(Debug, Clone)]
struct Span {
    /// Its first line, from 1.
    line: u32,
    base: String,
    mid: String,
    new: String,
}

impl Span {
    fn new(line: u32, old: &str, new: &str) -> Self {
        Self { line, base: old.to_owned(), mid: old.to_owned(), new: new.to_owned() }
    }

    /// With an earlier change that begins on a line: it replaced `old` by `new`. `None` if the texts do not agree.
    fn join(&self, first: u32, old: &str, new: &str) -> Option<Self> {
        let Self { line, base, mid, new: now } = self;
        if first <= *line
            && let Some(at) = place_of(new, mid, line - first)
        {
            // All of it lies in what the earlier one wrote.
            let (before, behind) = (new.get(..at)?, new.get(at + mid.len()..)?);
            // What was cut out right behind both stays at the end.
            let cut = base.strip_prefix(mid.as_str()).filter(|cut| cut.is_empty() || behind.is_empty())?;
            return Some(Self {
                line: first,
                base: format!("{old}{cut}"),
                mid: new.to_owned(),
                new: format!("{before}{now}{behind}"),
            });
        }
        if first >= *line
            && let Some(at) = place_of(mid, new, first - line)
        {
            // It covers the earlier one.
            let (before, behind) = (base.get(..at)?, base.get(at + new.len()..)?);
            return Some(Self { base: format!("{before}{old}{behind}"), ..self.clone() });
        }
        if first < *line {
            // It begins within the earlier one and ends behind it.
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

/// The line on which a change begins, where it is known; a new file begins on its first.
fn begin(part: &ChangePart) -> Option<u32> {
    let is_new_file = matches!(&part.diff.change, DiffChange::Texts { old: None, .. });
    first_line(part).or(is_new_file.then_some(1))
}

/// Whether a change left something; what was cut out on a line stood above what stands there now.
fn is_there(part: &ChangePart) -> bool {
    texts(part).is_none_or(|(_, new)| !new.is_empty())
}

/// Whether the lines that an earlier change wrote touch these.
fn touches(part: &ChangePart, line: u32, old: &str) -> bool {
    let (Some(first), Some((_, new))) = (begin(part), texts(part)) else { return false };
    let lines = |text: &str| u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    let (end, old_end) = (first.saturating_add(lines(&new)), line.saturating_add(lines(old)));
    // What holds no line touches what it lies beside.
    if first == end || line == old_end {
        first <= old_end && line <= end
    } else {
        first < old_end && line < end
    }
}

/// Where a text lies in another one, so many lines below its first; `None` if not there, or if that can be two places.
fn place_of(text: &str, part: &str, line: u32) -> Option<usize> {
    let from = line_start(text, line)?;
    if part.is_empty() {
        return Some(from);
    }
    let line_end = text.get(from..)?.find('\n').map_or(text.len(), |at| from + at + 1);
    let mut places = text.get(from..)?.match_indices(part).map(|(at, _)| from + at);
    let at = places.next().filter(|at| *at < line_end)?;
    // Whole lines stand where their line is.
    let is_whole = at == from && part.ends_with('\n');
    (is_whole || places.next().is_none_or(|other| other >= line_end)).then_some(at)
}

/// Where the line begins that stands so many below the first.
fn line_start(text: &str, line: u32) -> Option<usize> {
    let Some(before) = line.checked_sub(1) else { return Some(0) };
    text.match_indices('\n').nth(usize::try_from(before).ok()?).map(|(at, _)| at + 1)
}

fn count_ends(text: &str) -> i64 {
    i64::try_from(text.matches('\n').count()).unwrap_or(0)
}

/// Old and new text; an old one that was not told is empty.
fn texts(part: &ChangePart) -> Option<(Arc<str>, Arc<str>)> {
    match &part.diff.change {
        DiffChange::Texts { old, new } => Some((old.clone().unwrap_or_default(), Arc::clone(new))),
        DiffChange::Patch(_) => None,
    }
}

/// Lines that come or go move what stands below.
fn move_down(parts: &mut [ChangePart], line: u32, by: i64, but: &[usize]) {
    for (_, part) in parts.iter_mut().enumerate().filter(|(at, _)| !but.contains(at)) {
        if let Some(DiffPlace::Lines(starts)) = &mut part.place {
            for start in starts.iter_mut().flatten().filter(|start| start.line > line) {
                start.line = u32::try_from((i64::from(start.line) + by).max(1)).unwrap_or(start.line);
            }
        }
    }
}

/// The text with the one place of `from` replaced; `None` if it is not there, or more than once.
pub(in crate::app) fn replaced(text: &str, from: &str, to: &str) -> Option<Arc<str>> {
    let mut places = text.match_indices(from);
    let (at, _) = places.next()?;
    if from.is_empty() || places.next().is_some() {
        return None;
    }
    let (before, behind) = (text.get(..at)?, text.get(at + from.len()..)?);
    Some(format!("{before}{to}{behind}").into())
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

/// Whether a call that only a permission request made tells a change that another call of its turn tells too.
pub(in crate::app) fn is_told_elsewhere(session: &Session, item: &crate::app::Item, call: &ToolCall) -> bool {
    let folder = session.place.folder();
    let paths: Vec<PathBuf> = call.told_diffs().map(|diff| plain(&folder.join(&diff.path))).collect();
    session.transcript.items().iter().any(|other| match &other.body {
        ItemBody::Tool(told) => {
            other.turn == item.turn
                && !told.from_ask_only
                && told.status == ToolStatus::Completed
                && told.diffs().any(|diff| paths.contains(&plain(&folder.join(&diff.path))))
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests;
