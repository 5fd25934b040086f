//! File changes as rows that can be drawn individually.
//!
//! [`Diff`] computes the rows of a change once, from two texts, a unified diff or an `apply_patch` text:
//! kinds, line numbers, folded context, pairs of changed lines, counts. Rows refer to byte ranges of the
//! shared source texts. `diff::draw` renders them, and `cells` decides how many are shown.
//!
//! Invariants: the cost of drawing depends on the number of drawn rows, not on the size of the change.

use std::ops::Range;
use std::path::PathBuf;

use similar::DiffTag;

use crate::model::hunk::{Hunk, line_operations};
use crate::model::{Around, Body, DiffChange, DiffPosition, FileDiff, PieceStart};

pub mod cache;
mod draw;
mod ends;
mod pages;
mod pairs;
mod patch;

pub use draw::Layout;
pub(crate) use draw::unchanged_lines;
pub(crate) use pages::Pages;

/// Number of unchanged lines around changes.
const CONTEXT_LINES: usize = 3;

/// If the position is unknown, a change with at least this number of unchanged lines is assumed to be an
/// entire file; agents send short excerpts otherwise.
const WHOLE_FILE_LINES: usize = 20;

/// A change of one file, ready for drawing.
#[derive(Debug, Clone)]
pub struct Diff {
    pub path: PathBuf,
    /// The old path, if the file was moved.
    pub moved_from: Option<PathBuf>,
    pub status: FileStatus,
    /// Whether most of the content is text; otherwise it is shown escaped and labelled as binary.
    pub is_text: bool,
    /// Old and new file mode, if the patch contains them (`100644`).
    pub modes: Option<(String, String)>,
    pub added: usize,
    pub removed: usize,
    old: Body,
    new: Body,
    rows: Vec<Row>,
    /// Pairs of rows for the side-by-side layout.
    sides: Vec<Side>,
    /// The width that nine tenths of the rows fit, without line numbers.
    usual_cols: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStatus {
    New,
    Deleted,
    Changed,
    /// It is not a text file.
    Binary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    Context,
    Minus,
    Plus,
    /// This number of lines is hidden; 0 if it is unknown.
    Gap(u32),
    /// A remark about line ends.
    Note(Note),
}

/// A change of line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// All lines change from `\r
    /// ` to `
    /// `.
    EndsToLf,
    /// All lines change from `
    /// ` to `\r
    /// `.
    EndsToCrlf,
    /// A newline is added to the last line.
    LastEndAdded,
    /// The newline of the last line is removed.
    LastEndRemoved,
}

/// One row of a unified diff.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    kind: RowKind,
    /// Line numbers from 1; 0 if unknown.
    old_line: u32,
    new_line: u32,
    /// Byte range in the old text (for `Minus`) or the new text, without the line end.
    start: u32,
    end: u32,
    /// For a changed line, the row of its counterpart, for word highlighting. For a gap that can be expanded,
    /// the index of its first line in the new text.
    pair: Option<u32>,
}

/// A row of the side-by-side layout: indexes of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    left: Option<u32>,
    right: Option<u32>,
}

impl Diff {
    /// Computes the diffs of a change at a position in its file, if it is known. A patch may contain several
    /// files.
    pub fn of(change: &FileDiff, position: Option<&DiffPosition>) -> Vec<Self> {
        Self::with_context(change, position, CONTEXT_LINES, &[])
    }

    /// Like [`Self::of`], with the gaps expanded that start at these lines of the new text, from 0.
    pub fn of_open(change: &FileDiff, position: Option<&DiffPosition>, open: &[u32]) -> Vec<Self> {
        Self::with_context(change, position, CONTEXT_LINES, open)
    }

    /// Like [`Self::of`], with all unchanged lines.
    pub fn of_whole(change: &FileDiff, position: Option<&DiffPosition>) -> Vec<Self> {
        Self::with_context(change, position, usize::MAX, &[])
    }

    fn with_context(
        change: &FileDiff,
        position: Option<&DiffPosition>,
        context: usize,
        open: &[u32],
    ) -> Vec<Self> {
        let starts = match position {
            Some(DiffPosition::Lines(starts)) => starts.as_slice(),
            _ => &[],
        };
        match &change.change {
            DiffChange::Texts { old, new } => {
                let is_part = matches!(position, Some(DiffPosition::Lines(_)));
                let status = match old {
                    None => FileStatus::New,
                    // An inserted or removed excerpt is only a part of the file.
                    Some(_) if is_part => FileStatus::Changed,
                    Some(old) if old.is_empty() && !new.is_empty() => FileStatus::New,
                    Some(_) if new.is_empty() => FileStatus::Deleted,
                    Some(_) => FileStatus::Changed,
                };
                let first = match position {
                    Some(DiffPosition::Whole) => Some(1),
                    _ if status != FileStatus::Changed => Some(1),
                    _ => starts.first().and_then(Option::as_ref).map(|start| start.line),
                };
                let old = old.clone().unwrap_or_default();
                let start = starts.first().and_then(Option::as_ref);
                let (old, new, above) = match start.and_then(|start| Some((start, start.around.as_ref()?))) {
                    Some((start, around)) => with_lines_around(&old, new, start.is_new, around),
                    None => (old, new.clone(), 0),
                };
                let first = first.map(|first| first.saturating_sub(above).max(1));
                let mut diff = Self::empty(change.path.clone(), status, old, new);
                diff.compare(first, context, open);
                vec![diff]
            }
            DiffChange::Patch(text) => patch::read(&change.path, text, starts),
        }
    }

    /// Computes the rows. `first` is the line at which both texts start in the file; `context` is the number
    /// of unchanged lines around changes; `open` lists expanded gaps.
    fn compare(&mut self, first: Option<u32>, context: usize, open: &[u32]) {
        self.is_text = is_text(&self.old) && is_text(&self.new);
        let texts = (self.old.clone(), self.new.clone());
        let cut = ends::Cut::of(&texts.0, &texts.1);
        let ((old, old_lines), (new, new_lines)) = (cut.lines(&texts.0), cut.lines(&texts.1));
        self.rows.extend(cut.note.map(Row::note));
        let ops = line_operations(&old_lines, &new_lines);
        let last = ops.len();
        let mut same = 0;
        for (index, op) in ops.iter().enumerate() {
            let (tag, from, to) = op.as_tag_tuple();
            match tag {
                DiffTag::Equal => {
                    same += from.len();
                    let head = if index == 0 { 0 } else { context };
                    let tail = if index + 1 == last { 0 } else { context };
                    self.push_context(&new, from, to, (head, tail), open);
                }
                DiffTag::Delete => self.push_lines(RowKind::Minus, &old, from),
                DiffTag::Insert => self.push_lines(RowKind::Plus, &new, to),
                DiffTag::Replace => {
                    self.push_lines(RowKind::Minus, &old, from);
                    self.push_lines(RowKind::Plus, &new, to);
                }
            }
        }
        self.rows.extend(ends::last_end(&texts.0, &texts.1).map(Row::note));
        let first = first.or_else(|| (same >= WHOLE_FILE_LINES).then_some(1));
        for row in &mut self.rows {
            for line in [&mut row.old_line, &mut row.new_line] {
                // Numbers relative to an excerpt would be misleading.
                *line = first.map_or(0, |first| if *line > 0 { line.saturating_add(first - 1) } else { 0 });
            }
        }
        self.finish();
    }

    fn empty(path: PathBuf, status: FileStatus, old: Body, new: Body) -> Self {
        Self {
            path,
            moved_from: None,
            status,
            is_text: true,
            modes: None,
            added: 0,
            removed: 0,
            old,
            new,
            rows: Vec::new(),
            sides: Vec::new(),
            usual_cols: 0,
        }
    }

    /// Adds unchanged lines: context at both ends, and a gap between them. A gap of a single line is shown
    /// instead.
    fn push_context(
        &mut self,
        ranges: &[Range<u32>],
        from: Range<usize>,
        to: Range<usize>,
        (head, tail): (usize, usize),
        open: &[u32],
    ) {
        let count = to.len();
        let hidden = count.saturating_sub(head.saturating_add(tail));
        let first = index(to.start.saturating_add(head));
        let hidden = if open.contains(&first) { 0 } else { hidden };
        for (at, (old, new)) in from.zip(to).enumerate() {
            if hidden > 1 && at >= head && at < head + hidden {
                if at == head {
                    let kind = RowKind::Gap(u32::try_from(hidden).unwrap_or(u32::MAX));
                    let pair = Some(first);
                    self.rows.push(Row { kind, old_line: 0, new_line: 0, start: 0, end: 0, pair });
                }
                continue;
            }
            let Some(range) = ranges.get(new) else { continue };
            let (old_line, new_line) = (number(old), number(new));
            let (start, end) = (range.start, range.end);
            self.rows.push(Row { kind: RowKind::Context, old_line, new_line, start, end, pair: None });
        }
    }

    fn push_lines(&mut self, kind: RowKind, ranges: &[Range<u32>], lines: Range<usize>) {
        for line in lines {
            let Some(range) = ranges.get(line) else { continue };
            let (old_line, new_line) =
                if kind == RowKind::Minus { (number(line), 0) } else { (0, number(line)) };
            self.rows.push(Row { kind, old_line, new_line, start: range.start, end: range.end, pair: None });
        }
    }

    /// Counts changes, pairs replaced lines, and aligns rows for the side-by-side layout.
    fn finish(&mut self) {
        let mut at = 0;
        while at < self.rows.len() {
            let minus = self.run(at, RowKind::Minus);
            let plus = self.run(minus, RowKind::Plus);
            if plus == at {
                let index = Some(index(at));
                let is_context = self.rows.get(at).is_some_and(|row| row.kind == RowKind::Context);
                self.sides.push(Side { left: index, right: if is_context { index } else { None } });
                at += 1;
                continue;
            }
            self.removed += minus - at;
            self.added += plus - minus;
            let texts = |rows: Range<usize>| -> Vec<&str> {
                self.rows.get(rows).unwrap_or_default().iter().map(|row| self.text(row)).collect()
            };
            let alike = pairs::alike(&texts(at..minus), &texts(minus..plus));
            let (mut left, mut right) = (at, minus);
            for (old, new) in alike {
                let (old, new) = (at + old, minus + new);
                self.push_beside(left..old, right..new);
                self.push_beside(old..old + 1, new..new + 1);
                for (row, other) in [(old, new), (new, old)] {
                    if let Some(row) = self.rows.get_mut(row) {
                        row.pair = Some(index(other));
                    }
                }
                (left, right) = (old + 1, new + 1);
            }
            self.push_beside(left..minus, right..plus);
            at = plus;
        }
        self.rows.shrink_to_fit();
        self.sides.shrink_to_fit();
        let mut widths: Vec<usize> = self.rows.iter().map(|row| self.width(row)).collect();
        if let Some(last) = widths.len().checked_sub(1) {
            let usual = last - widths.len() / 10;
            self.usual_cols = *widths.select_nth_unstable(usual).1;
        }
    }

    /// Aligns removed rows with added ones.
    fn push_beside(&mut self, old: Range<usize>, new: Range<usize>) {
        for offset in 0..old.len().max(new.len()) {
            let left = (offset < old.len()).then(|| index(old.start + offset));
            let right = (offset < new.len()).then(|| index(new.start + offset));
            self.sides.push(Side { left, right });
        }
    }

    /// The end of the run of rows of one kind that starts at `at`.
    fn run(&self, at: usize, kind: RowKind) -> usize {
        let rows = self.rows.get(at..).unwrap_or_default();
        at + rows.iter().take_while(|row| row.kind == kind).count()
    }

    fn text(&self, row: &Row) -> &str {
        let source = if row.kind == RowKind::Minus { &self.old } else { &self.new };
        source.get(row.start as usize..row.end as usize).unwrap_or_default()
    }

    /// The first lines, in the new text from 0, of gaps that can be expanded in a range of rows.
    pub fn gaps(&self, rows: Range<usize>, layout: Layout) -> Vec<u32> {
        let row_of = |at: usize| match layout {
            Layout::Unified => self.rows.get(at),
            Layout::SideBySide => self.rows.get(self.sides.get(at)?.left? as usize),
        };
        let gap = |row: &Row| if matches!(row.kind, RowKind::Gap(_)) { row.pair } else { None };
        rows.filter_map(row_of).filter_map(gap).collect()
    }

    /// The first line of the new file that is shown, if known.
    pub fn first_line(&self) -> Option<u32> {
        self.rows.iter().map(|row| row.new_line).find(|line| *line > 0)
    }

    /// The last line of the new file that is shown, if known.
    pub fn last_line(&self) -> Option<u32> {
        self.rows.iter().rev().map(|row| row.new_line).find(|line| *line > 0)
    }

    /// The first rows of all hunks in a layout.
    pub fn hunks(&self, layout: Layout) -> Vec<usize> {
        let is_changed = |row: u32| {
            self.rows.get(row as usize).is_some_and(|row| matches!(row.kind, RowKind::Minus | RowKind::Plus))
        };
        let is_in_hunk = |at: usize| match layout {
            Layout::Unified => is_changed(index(at)),
            Layout::SideBySide => self
                .sides
                .get(at)
                .is_some_and(|side| [side.left, side.right].into_iter().flatten().any(is_changed)),
        };
        let begins =
            |at: &usize| is_in_hunk(*at) && at.checked_sub(1).is_none_or(|before| !is_in_hunk(before));
        (0..self.len(layout)).filter(begins).collect()
    }

    /// The first row of a hunk in a layout.
    pub fn row_of(&self, hunk: &Hunk, layout: Layout) -> Option<usize> {
        let is_in_hunk = |row: &Row| {
            let (range, line) = match row.kind {
                RowKind::Minus => (&hunk.old, row.old_line),
                RowKind::Plus => (&hunk.new, row.new_line),
                _ => return false,
            };
            line.checked_sub(1).is_some_and(|line| range.contains(&line))
        };
        let first = self.rows.iter().position(is_in_hunk)?;
        match layout {
            Layout::Unified => Some(first),
            Layout::SideBySide => {
                let first = Some(index(first));
                self.sides.iter().position(|side| side.left == first || side.right == first)
            }
        }
    }

    pub fn len(&self, layout: Layout) -> usize {
        match layout {
            Layout::Unified => self.rows.len(),
            Layout::SideBySide => self.sides.len(),
        }
    }

    /// Size of the new text in bytes, or of the old one for a deleted file.
    pub fn len_bytes(&self) -> u64 {
        (if self.new.is_empty() { &self.old } else { &self.new }).len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Both texts of an excerpt, completed with lines of the file where they have fewer unchanged lines at their start and end
/// than are shown, and the number of lines above. What the agent sends remains.
fn with_lines_around(old: &str, new: &str, is_new: bool, around: &Around) -> (Body, Body, u32) {
    let missing = |same: usize| CONTEXT_LINES.saturating_sub(same);
    let above = missing(old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count());
    let below = missing(old.lines().rev().zip(new.lines().rev()).take_while(|(old, new)| old == new).count());
    // The last part may be the start of the excerpt's first line, and the first part the rest of its last one.
    let before: Vec<&str> = around.before.split_inclusive('\n').collect();
    let count = before.iter().filter(|line| line.ends_with('\n')).count();
    let before = before.get(count.saturating_sub(above)..).unwrap_or_default().concat();
    let is_in_line = !(if is_new { new } else { old }).ends_with('\n');
    let after: String = around.after.split_inclusive('\n').take(below + usize::from(is_in_line)).collect();
    let whole = |text: &str| Body::from(format!("{before}{text}{after}"));
    (whole(old), whole(new), u32::try_from(count.min(above)).unwrap_or_default())
}

/// Number of lines added and removed by all of these diffs.
pub(crate) fn counts_of(diffs: &[Diff]) -> (usize, usize) {
    diffs.iter().fold((0, 0), |sum, diff| (sum.0 + diff.added, sum.1 + diff.removed))
}

fn number(line: usize) -> u32 {
    u32::try_from(line + 1).unwrap_or(0)
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Number of characters that are checked to detect binary content.
const SAMPLED_BYTES: usize = 64 * 1024;

fn is_text(text: &str) -> bool {
    let is_noise = |ch: &char| *ch == '\u{fffd}' || ch.is_control() && !ch.is_whitespace();
    let (mut all, mut noise) = (0_usize, 0_usize);
    for ch in text.chars().take(SAMPLED_BYTES) {
        all += 1;
        noise += usize::from(is_noise(&ch));
    }
    noise * 3 <= all
}

impl Row {
    fn note(note: Note) -> Self {
        Self { kind: RowKind::Note(note), old_line: 0, new_line: 0, start: 0, end: 0, pair: None }
    }
}

#[cfg(test)]
mod tests;
