//! Changes of files as rows that can be drawn one by one.
//!
//! Duty: computes the rows of a change once (from two texts, a unified diff or an `apply_patch` text): kinds,
//! line numbers, folded context, pairs of changed lines, counts. Not its duty: drawing (`diff::draw`), deciding
//! how much is shown (`cells`). Rows hold byte ranges into the texts they came from, which are shared, not
//! copied. Invariant: drawing rows costs by the rows drawn, whatever the size of the change.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use similar::{Algorithm, DiffOp, DiffTag, TextDiff};

use crate::model::{DiffChange, DiffPlace, FileDiff, PieceStart};

pub mod cache;
mod draw;
mod ends;
mod pages;
mod pairs;
mod patch;

pub use draw::Layout;
pub(crate) use pages::Pages;

/// Unchanged lines that are shown around changes.
const CONTEXT_LINES: usize = 3;

/// As long as it is not known, a change with so many unchanged lines is taken for a whole file; agents cut snippets close to the change.
const WHOLE_FILE_LINES: usize = 20;

/// How long the search for the smallest diff may take; what is found by then is shown. Nobody waits for it (`cache`).
const DEADLINE: Duration = Duration::from_millis(500);

/// Of texts with more lines than this, what lies between the first and the last difference is replaced as a whole.
const COMPARED_MAX_LINES: usize = 100_000;

/// A change of one file, ready to be drawn.
#[derive(Debug, Clone)]
pub struct Diff {
    /// The file, as the agent names it.
    pub path: PathBuf,
    /// Where it was before, when it moved.
    pub moved_from: Option<PathBuf>,
    /// What happens to the file as a whole.
    pub fate: FileStatus,
    /// Whether most of what it holds are characters; otherwise it is shown escaped and labelled as binary.
    pub is_text: bool,
    /// Its mode before and after, where a patch tells (`100644`).
    pub modes: Option<(String, String)>,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
    old: Arc<str>,
    new: Arc<str>,
    rows: Vec<Row>,
    /// Rows beside each other, for two columns; left and right.
    sides: Vec<Side>,
}

/// What happens to a file as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStatus {
    /// It is made.
    New,
    /// It goes.
    Deleted,
    Changed,
    /// It is no text.
    Binary,
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    Context,
    Minus,
    Plus,
    /// So many lines are left out; 0 when it is not known how many.
    Gap(u32),
    /// What is not seen in the lines themselves.
    Note(Note),
}

/// What changes at the ends of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// All lines end with `\n`, no longer with `\r\n`.
    EndsToLf,
    /// All lines end with `\r\n`, no longer with `\n`.
    EndsToCrlf,
    /// The last line has an end now.
    LastEndAdded,
    /// The last line has no end any more.
    LastEndRemoved,
}

/// One row of a unified diff.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    kind: RowKind,
    /// Line numbers from 1; 0 where none is known.
    old_line: u32,
    new_line: u32,
    /// Bytes in the old text (minus) or the new one, without the line end.
    start: u32,
    end: u32,
    /// The row that this changed line replaces or is replaced by, for word marks; of a gap that can be opened, the
    /// first line of the new text that it leaves out, from 0.
    pair: Option<u32>,
}

/// One row of two columns: indexes of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    left: Option<u32>,
    right: Option<u32>,
}

impl Diff {
    /// Computes a change that stands at this place of its file, if that is known. A patch may hold several
    /// files, so several diffs can come.
    pub fn of(change: &FileDiff, place: Option<&DiffPlace>) -> Vec<Self> {
        Self::with_context(change, place, CONTEXT_LINES, &[])
    }

    /// The same with the unchanged lines of gaps that begin at these lines of the new text, from 0.
    pub fn of_open(change: &FileDiff, place: Option<&DiffPlace>, open: &[u32]) -> Vec<Self> {
        Self::with_context(change, place, CONTEXT_LINES, open)
    }

    /// The same with all unchanged lines that were told.
    pub fn of_whole(change: &FileDiff, place: Option<&DiffPlace>) -> Vec<Self> {
        Self::with_context(change, place, usize::MAX, &[])
    }

    fn with_context(change: &FileDiff, place: Option<&DiffPlace>, context: usize, open: &[u32]) -> Vec<Self> {
        let starts = match place {
            Some(DiffPlace::Lines(starts)) => starts.as_slice(),
            _ => &[],
        };
        match &change.change {
            DiffChange::Texts { old, new } => {
                let is_part = matches!(place, Some(DiffPlace::Lines(_)));
                let fate = match old {
                    None => FileStatus::New,
                    // A piece that was put in, or cut out, leaves the rest of the file there.
                    Some(_) if is_part => FileStatus::Changed,
                    Some(old) if old.is_empty() && !new.is_empty() => FileStatus::New,
                    Some(_) if new.is_empty() => FileStatus::Deleted,
                    Some(_) => FileStatus::Changed,
                };
                let first = match place {
                    Some(DiffPlace::Whole) => Some(1),
                    _ if fate != FileStatus::Changed => Some(1),
                    _ => starts.first().copied().flatten().map(|start| start.line),
                };
                let old = old.clone().unwrap_or_default();
                let mut diff = Self::empty(change.path.clone(), fate, old, Arc::clone(new));
                diff.compare(first, context, open);
                vec![diff]
            }
            DiffChange::Patch(text) => patch::read(&change.path, text, starts),
        }
    }

    /// Fills in the rows. `first`: the line of the file that both texts begin on; `context`: how many unchanged
    /// lines stay around changes; `open`: the gaps that are none.
    fn compare(&mut self, first: Option<u32>, context: usize, open: &[u32]) {
        self.is_text = is_text(&self.old) && is_text(&self.new);
        let texts = (Arc::clone(&self.old), Arc::clone(&self.new));
        let cut = ends::Cut::of(&texts.0, &texts.1);
        let ((old, old_lines), (new, new_lines)) = (cut.lines(&texts.0), cut.lines(&texts.1));
        self.rows.extend(cut.note.map(Row::note));
        let ops = operations(&old_lines, &new_lines);
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
                // Of a snippet, numbers that count from its first line would mislead.
                *line = first.map_or(0, |first| if *line > 0 { line.saturating_add(first - 1) } else { 0 });
            }
        }
        self.finish();
    }

    fn empty(path: PathBuf, fate: FileStatus, old: Arc<str>, new: Arc<str>) -> Self {
        Self {
            path,
            moved_from: None,
            fate,
            is_text: true,
            modes: None,
            added: 0,
            removed: 0,
            old,
            new,
            rows: Vec::new(),
            sides: Vec::new(),
        }
    }

    /// Unchanged lines: some at both ends, the rest as a gap. A gap of one line would save nothing.
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

    /// Counts, pairs lines that replace one another, and puts rows beside each other.
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
    }

    /// Puts removed rows beside added ones.
    fn push_beside(&mut self, old: Range<usize>, new: Range<usize>) {
        for offset in 0..old.len().max(new.len()) {
            let left = (offset < old.len()).then(|| index(old.start + offset));
            let right = (offset < new.len()).then(|| index(new.start + offset));
            self.sides.push(Side { left, right });
        }
    }

    /// Where the run of rows of a kind that begins at `at` ends.
    fn run(&self, at: usize, kind: RowKind) -> usize {
        let rows = self.rows.get(at..).unwrap_or_default();
        at + rows.iter().take_while(|row| row.kind == kind).count()
    }

    /// The text of a row.
    fn text(&self, row: &Row) -> &str {
        let source = if row.kind == RowKind::Minus { &self.old } else { &self.new };
        source.get(row.start as usize..row.end as usize).unwrap_or_default()
    }

    /// The lines of the new text, from 0, at which gaps begin that can be opened and lie in these rows of a layout.
    pub fn gaps(&self, rows: Range<usize>, layout: Layout) -> Vec<u32> {
        let row_of = |at: usize| match layout {
            Layout::Unified => self.rows.get(at),
            Layout::SideBySide => self.rows.get(self.sides.get(at)?.left? as usize),
        };
        let gap = |row: &Row| if matches!(row.kind, RowKind::Gap(_)) { row.pair } else { None };
        rows.filter_map(row_of).filter_map(gap).collect()
    }

    /// The first line of the new file that is shown, where the numbers are known.
    pub fn first_line(&self) -> Option<u32> {
        self.rows.iter().map(|row| row.new_line).find(|line| *line > 0)
    }

    /// The last line of the new file that is shown, where the numbers are known.
    pub fn last_line(&self) -> Option<u32> {
        self.rows.iter().rev().map(|row| row.new_line).find(|line| *line > 0)
    }

    /// The first rows of runs of changed lines, in a layout.
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

    /// How many rows there are to draw in a layout.
    pub fn len(&self, layout: Layout) -> usize {
        match layout {
            Layout::Unified => self.rows.len(),
            Layout::SideBySide => self.sides.len(),
        }
    }

    /// Bytes of the new text, or of the old one of a file that goes.
    pub fn len_bytes(&self) -> u64 {
        (if self.new.is_empty() { &self.old } else { &self.new }).len() as u64
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// How the new lines come out of the old ones. Of very many lines only the ends are compared.
fn operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    if old.len().max(new.len()) <= COMPARED_MAX_LINES {
        let diff =
            TextDiff::configure().algorithm(Algorithm::Patience).timeout(DEADLINE).diff_slices(old, new);
        return diff.ops().to_vec();
    }
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let (old_len, new_len) = (old.len() - head - tail, new.len() - head - tail);
    let ops = [
        DiffOp::Equal { old_index: 0, new_index: 0, len: head },
        DiffOp::Replace { old_index: head, old_len, new_index: head, new_len },
        DiffOp::Equal { old_index: head + old_len, new_index: head + new_len, len: tail },
    ];
    ops.into_iter().filter(|op| !op.old_range().is_empty() || !op.new_range().is_empty()).collect()
}

/// Line number of an index.
fn number(line: usize) -> u32 {
    u32::try_from(line + 1).unwrap_or(0)
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// How much is sampled to find out whether content is text.
const SAMPLED_BYTES: usize = 64 * 1024;

/// Whether most of a text are characters that can be read.
fn is_text(text: &str) -> bool {
    let is_noise = |letter: &char| *letter == '\u{fffd}' || letter.is_control() && !letter.is_whitespace();
    let (mut all, mut noise) = (0_usize, 0_usize);
    for letter in text.chars().take(SAMPLED_BYTES) {
        all += 1;
        noise += usize::from(is_noise(&letter));
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
