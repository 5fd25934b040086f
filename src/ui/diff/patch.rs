//! Parses patch texts into diffs: unified diffs, including git's, and the `apply_patch` format.
//!
//! Rows refer to the patch text. Lines that are neither are shown unchanged and classified by their first
//! character, so nothing is lost. `model::patch` classifies the lines.

use crate::model::Body;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{Diff, FileStatus, Note, PieceStart, Row, RowKind};
use crate::model::patch::{HunkRange, PatchFate, PatchLine, PatchLines, git_path};

/// Parses a patch. `path` is the file name if the patch has none. `starts` are the positions of hunks without
/// line numbers.
pub(super) fn read(path: &Path, text: &Body, starts: &[Option<PieceStart>]) -> Vec<Diff> {
    let mut reader = Reader {
        text,
        path: path.to_owned(),
        starts,
        done: Vec::new(),
        open: None,
        old: 0,
        new: 0,
        begins: true,
        grown: 0,
        is_bare: has_equal_ends(text),
        lacks_end: None,
    };
    for (range, line) in PatchLines::new(text) {
        reader.on_line(range, line);
    }
    reader.close();
    reader.done
}

/// Whether all lines have the same line end, so that a trailing `\r` is not significant.
fn has_equal_ends(text: &str) -> bool {
    let mut ends = PatchLines::new(text).filter_map(|(_, line)| match line {
        PatchLine::Removed(line) | PatchLine::Added(line) | PatchLine::Context(line) => {
            Some(line.ends_with('\r'))
        }
        _ => None,
    });
    let first = ends.next();
    ends.all(|end| Some(end) == first)
}

struct Reader<'a> {
    text: &'a Body,
    path: PathBuf,
    /// Positions of the remaining hunks.
    starts: &'a [Option<PieceStart>],
    done: Vec<Diff>,
    open: Option<Diff>,
    /// The next line numbers; 0 if unknown.
    old: u32,
    new: u32,
    /// Whether the next line starts a hunk without line numbers.
    begins: bool,
    /// Number of lines that the previous hunks added to the file.
    grown: i64,
    /// Whether a trailing `\r` is hidden.
    is_bare: bool,
    /// The note for a side without a final newline, until the other side is known.
    lacks_end: Option<Note>,
}

impl Reader<'_> {
    fn on_line(&mut self, range: Range<usize>, line: PatchLine<'_>) {
        let (kind, skip) = match line {
            PatchLine::Added(_) => (RowKind::Plus, 1),
            PatchLine::Removed(_) => (RowKind::Minus, 1),
            PatchLine::Context(_) => (RowKind::Context, usize::from(!range.is_empty())),
            PatchLine::Other(_) => (RowKind::Context, 0),
            PatchLine::NoNewline => return self.on_no_newline(),
            PatchLine::Hunk(hunk) => return self.on_hunk(hunk),
            head => return self.on_head(head),
        };
        if std::mem::take(&mut self.begins) && skip > 0 && self.old == 0 && self.new == 0 {
            self.take_start();
        }
        let shown = self.text.get(range.clone()).unwrap_or_default();
        let cut = usize::from(self.is_bare && shown.ends_with('\r'));
        let position = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let (start, end) = (position(range.start + skip), position(range.end.saturating_sub(cut)));
        let mut row = Row { kind, old_line: 0, new_line: 0, start, end: end.max(start), pair: None };
        self.grown += match kind {
            RowKind::Plus => 1,
            RowKind::Minus => -1,
            _ => 0,
        };
        if kind != RowKind::Plus {
            row.old_line = self.old;
            self.old += u32::from(self.old > 0);
        }
        if kind != RowKind::Minus {
            row.new_line = self.new;
            self.new += u32::from(self.new > 0);
        }
        self.diff().rows.push(row);
    }

    /// Handles `\ No newline at end of file`. If it applies to both sides, nothing changes.
    fn on_no_newline(&mut self) {
        let last = self.open.as_ref().and_then(|diff| diff.rows.last()).map(|row| row.kind);
        match (last, self.lacks_end) {
            (Some(RowKind::Minus), _) => self.lacks_end = Some(Note::LastEndAdded),
            (Some(RowKind::Plus), None) => self.lacks_end = Some(Note::LastEndRemoved),
            _ => self.lacks_end = None,
        }
    }

    fn note_end(&mut self) {
        if let (Some(note), Some(diff)) = (self.lacks_end.take(), &mut self.open) {
            diff.rows.push(Row::note(note));
        }
    }

    /// Uses the position of the next hunk, found in the file before or after the change.
    fn take_start(&mut self) {
        let Some((start, rest)) = self.starts.split_first() else { return };
        self.starts = rest;
        let Some(start) = start else { return };
        let moved = |by: i64| u32::try_from(i64::from(start.line) + by).unwrap_or(0);
        (self.old, self.new) =
            if start.is_new { (moved(-self.grown), start.line) } else { (start.line, moved(self.grown)) };
        // The number of lines between the hunks is known now.
        let Some(rows) = self.open.as_mut().map(|diff| &mut diff.rows) else { return };
        let before = rows.iter().rev().find(|row| !matches!(row.kind, RowKind::Gap(_))).copied();
        let new = self.new;
        if let Some(Row { kind: RowKind::Gap(hidden @ 0), .. }) = rows.last_mut()
            && let Some(line) = before.map(|row| row.new_line).filter(|line| *line > 0)
        {
            *hidden = new.saturating_sub(line + 1);
        }
    }

    fn on_head(&mut self, line: PatchLine<'_>) {
        match line {
            PatchLine::Section(status, path) => {
                self.close();
                let status = match status {
                    PatchFate::Add => FileStatus::New,
                    PatchFate::Delete => FileStatus::Deleted,
                    PatchFate::Update => FileStatus::Changed,
                };
                (self.old, self.new) =
                    (u32::from(status == FileStatus::Deleted), u32::from(status == FileStatus::New));
                let diff = self.diff();
                (diff.path, diff.status) = (PathBuf::from(path), status);
            }
            PatchLine::MoveTo(path) => {
                let diff = self.diff();
                diff.moved_from = Some(std::mem::replace(&mut diff.path, PathBuf::from(path)));
            }
            PatchLine::Git(names) => {
                self.close();
                if let Some(path) = git_path(names) {
                    self.diff().path = PathBuf::from(path);
                }
            }
            PatchLine::OldFile(path) => {
                if self.open.as_ref().is_some_and(|diff| !diff.rows.is_empty()) {
                    self.close();
                }
                match path {
                    Some(path) => self.diff().path = PathBuf::from(path),
                    None => self.diff().status = FileStatus::New,
                }
            }
            PatchLine::NewFile(Some(path)) => self.diff().path = PathBuf::from(path),
            PatchLine::NewFile(None) => self.diff().status = FileStatus::Deleted,
            PatchLine::Head(line) => self.on_git_head(line),
            _ => {}
        }
    }

    fn on_git_head(&mut self, line: &str) {
        let diff = self.diff();
        if let Some(path) = line.strip_prefix("rename from ") {
            diff.moved_from = Some(PathBuf::from(path));
        } else if let Some(path) = line.strip_prefix("rename to ") {
            diff.path = PathBuf::from(path);
        } else if let Some(mode) = line.strip_prefix("old mode ").filter(|mode| is_mode(mode)) {
            mode.clone_into(&mut diff.modes.get_or_insert_default().0);
        } else if let Some(mode) = line.strip_prefix("new mode ").filter(|mode| is_mode(mode)) {
            mode.clone_into(&mut diff.modes.get_or_insert_default().1);
        } else if line.starts_with("Binary files ") || line.starts_with("GIT binary patch") {
            diff.status = FileStatus::Binary;
        } else if line.starts_with("new file mode") {
            diff.status = FileStatus::New;
        } else if line.starts_with("deleted file mode") {
            diff.status = FileStatus::Deleted;
        }
    }

    fn on_hunk(&mut self, hunk: Option<HunkRange>) {
        self.note_end();
        let before = self.old;
        (self.old, self.new) = hunk.map_or((0, 0), |hunk| (hunk.old.0, hunk.new.0));
        self.begins = hunk.is_none();
        let hidden = if before > 0 && self.old > before { self.old - before } else { 0 };
        let is_first = self.open.as_ref().is_none_or(|diff| diff.rows.is_empty());
        let hidden = if is_first { self.old.saturating_sub(1) } else { hidden };
        if hidden > 0 || !is_first {
            let kind = RowKind::Gap(hidden);
            self.diff().rows.push(Row { kind, old_line: 0, new_line: 0, start: 0, end: 0, pair: None });
        }
    }

    fn diff(&mut self) -> &mut Diff {
        let (path, text) = (&self.path, self.text);
        self.open
            .get_or_insert_with(|| Diff::empty(path.clone(), FileStatus::Changed, text.clone(), text.clone()))
    }

    fn close(&mut self) {
        self.note_end();
        (self.old, self.new) = (0, 0);
        (self.begins, self.grown) = (true, 0);
        if let Some(mut diff) = self.open.take() {
            diff.finish();
            self.done.push(diff);
        }
    }
}

fn is_mode(mode: &str) -> bool {
    mode.len() <= 8 && mode.bytes().all(|byte| byte.is_ascii_digit())
}
