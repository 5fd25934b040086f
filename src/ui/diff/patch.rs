//! Changes told as text: unified diffs (also git's) and the `apply_patch` form.
//!
//! Rows point into the patch text itself. What cannot be read as either is shown as it is, marked by its first
//! characters, so nothing is lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Diff, Fate, PieceStart, Row, RowKind, line_ranges};

/// Reads a patch; `path` names the file where the patch does not. `starts`: where hunks that do not tell their
/// lines begin in the file, one for each.
pub(super) fn read(path: &Path, text: &Arc<str>, starts: &[Option<PieceStart>]) -> Vec<Diff> {
    let mut reader = Reader {
        text,
        path: path.to_owned(),
        starts,
        done: Vec::new(),
        open: None,
        old: 0,
        new: 0,
        left: (0, 0),
        begins: true,
        grown: 0,
    };
    for range in line_ranges(text) {
        let line = text.get(range.start as usize..range.end as usize).unwrap_or_default();
        reader.on_line(line, range.start, range.end);
    }
    reader.close();
    reader.done
}

struct Reader<'a> {
    text: &'a Arc<str>,
    path: PathBuf,
    /// Places of the hunks to come.
    starts: &'a [Option<PieceStart>],
    done: Vec<Diff>,
    open: Option<Diff>,
    /// Numbers of the next lines; 0 where hunks do not tell them.
    old: u32,
    new: u32,
    /// Lines that the hunk still holds, when its head told.
    left: (u32, u32),
    /// Whether the next line is the first of a hunk that does not tell its lines.
    begins: bool,
    /// By how many lines the hunks so far make the file longer.
    grown: i64,
}

impl Reader<'_> {
    fn on_line(&mut self, line: &str, start: u32, end: u32) {
        let in_hunk = self.left != (0, 0);
        if !in_hunk && self.on_head(line) {
            return;
        }
        if line.starts_with("@@") && !in_hunk {
            self.on_hunk(line);
            return;
        }
        let (kind, skip) = match line.as_bytes().first() {
            Some(b'+') => (RowKind::Plus, 1),
            Some(b'-') => (RowKind::Minus, 1),
            Some(b' ') => (RowKind::Context, 1),
            Some(b'\\') => return,
            _ => (RowKind::Context, 0),
        };
        // A blank line between files or at the end is no context.
        if line.is_empty() && !in_hunk {
            return;
        }
        if std::mem::take(&mut self.begins) && skip > 0 && self.old == 0 && self.new == 0 {
            self.take_start();
        }
        let mut row = Row { kind, old_line: 0, new_line: 0, start: start + skip, end, pair: None };
        self.grown += match kind {
            RowKind::Plus => 1,
            RowKind::Minus => -1,
            _ => 0,
        };
        if kind != RowKind::Plus {
            row.old_line = self.old;
            self.old += u32::from(self.old > 0);
            self.left.0 = self.left.0.saturating_sub(1);
        }
        if kind != RowKind::Minus {
            row.new_line = self.new;
            self.new += u32::from(self.new > 0);
            self.left.1 = self.left.1.saturating_sub(1);
        }
        self.diff().rows.push(row);
    }

    /// A hunk begins whose place was looked up in the file, before or after the change.
    fn take_start(&mut self) {
        let Some((start, rest)) = self.starts.split_first() else { return };
        self.starts = rest;
        let Some(start) = start else { return };
        let moved = |by: i64| u32::try_from(i64::from(start.line) + by).unwrap_or(0);
        (self.old, self.new) =
            if start.is_new { (moved(-self.grown), start.line) } else { (start.line, moved(self.grown)) };
        // What lies between the hunks is known now.
        let Some(rows) = self.open.as_mut().map(|diff| &mut diff.rows) else { return };
        let before = rows.iter().rev().find(|row| !matches!(row.kind, RowKind::Gap(_))).copied();
        let new = self.new;
        if let Some(Row { kind: RowKind::Gap(hidden @ 0), .. }) = rows.last_mut()
            && let Some(line) = before.map(|row| row.new_line).filter(|line| *line > 0)
        {
            *hidden = new.saturating_sub(line + 1);
        }
    }

    /// Lines that speak of files. Returns whether this was one.
    fn on_head(&mut self, line: &str) -> bool {
        let begins = [
            ("*** Add File: ", Fate::New),
            ("*** Delete File: ", Fate::Deleted),
            ("*** Update File: ", Fate::Changed),
        ];
        for (begin, fate) in begins {
            if let Some(path) = line.strip_prefix(begin) {
                self.close();
                (self.old, self.new) = (u32::from(fate == Fate::Deleted), u32::from(fate == Fate::New));
                let diff = self.diff();
                diff.path = PathBuf::from(path.trim());
                diff.fate = fate;
                return true;
            }
        }
        if let Some(path) = line.strip_prefix("*** Move to: ") {
            let diff = self.diff();
            diff.moved_from = Some(std::mem::replace(&mut diff.path, PathBuf::from(path.trim())));
            return true;
        }
        if line.starts_with("*** ") {
            return true;
        }
        if let Some(rest) = line.strip_prefix("diff --git ") {
            self.close();
            if let Some((_, path)) = rest.rsplit_once(" b/") {
                self.diff().path = PathBuf::from(path);
            }
            return true;
        }
        if let Some(path) = line.strip_prefix("--- ") {
            if self.open.as_ref().is_some_and(|diff| !diff.rows.is_empty()) {
                self.close();
            }
            if let Some(path) = file_name(path) {
                self.diff().path = path;
            } else {
                self.diff().fate = Fate::New;
            }
            return true;
        }
        if let Some(path) = line.strip_prefix("+++ ") {
            match file_name(path) {
                Some(path) => self.diff().path = path,
                None => self.diff().fate = Fate::Deleted,
            }
            return true;
        }
        if let Some(path) = line.strip_prefix("rename from ") {
            self.diff().moved_from = Some(PathBuf::from(path));
            return true;
        }
        if let Some(path) = line.strip_prefix("rename to ") {
            self.diff().path = PathBuf::from(path);
            return true;
        }
        for (begin, is_new) in [("old mode ", false), ("new mode ", true)] {
            if let Some(mode) = line.strip_prefix(begin).filter(|mode| is_mode(mode)) {
                let modes = self.diff().modes.get_or_insert_default();
                if is_new {
                    mode.clone_into(&mut modes.1);
                } else {
                    mode.clone_into(&mut modes.0);
                }
                return true;
            }
        }
        for begin in ["copy from ", "copy to "] {
            if line.starts_with(begin) {
                return true;
            }
        }
        if line.starts_with("Binary files ") || line.starts_with("GIT binary patch") {
            self.diff().fate = Fate::Binary;
            return true;
        }
        if line.starts_with("new file mode") {
            self.diff().fate = Fate::New;
            return true;
        }
        if line.starts_with("deleted file mode") {
            self.diff().fate = Fate::Deleted;
            return true;
        }
        ["index ", "similarity index ", "dissimilarity index ", "old mode ", "new mode ", "Index: ", "======"]
            .iter()
            .any(|begin| line.starts_with(begin))
    }

    /// `@@ -41,6 +42,7 @@ fn refresh`, or the bare `@@ fn refresh` of `apply_patch`.
    fn on_hunk(&mut self, line: &str) {
        let numbers = |mark: char| -> Option<(u32, u32)> {
            let at = line.find(&format!(" {mark}"))? + 2;
            let word = line.get(at..)?.split(' ').next()?;
            let (start, count) = word.split_once(',').unwrap_or((word, "1"));
            Some((start.parse().ok()?, count.parse().ok()?))
        };
        let before = self.old;
        if let (Some(old), Some(new)) = (numbers('-'), numbers('+')) {
            (self.old, self.new) = (old.0, new.0);
            self.left = (old.1, new.1);
        } else {
            (self.old, self.new) = (0, 0);
            self.begins = true;
        }
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
        self.open.get_or_insert_with(|| {
            Diff::empty(path.clone(), Fate::Changed, Arc::clone(text), Arc::clone(text))
        })
    }

    fn close(&mut self) {
        (self.old, self.new, self.left) = (0, 0, (0, 0));
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

/// The file that a `---` or `+++` line names; `None` for no file.
fn file_name(text: &str) -> Option<PathBuf> {
    let name = text.split('\t').next().unwrap_or_default().trim();
    if name == "/dev/null" {
        return None;
    }
    let name = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name);
    Some(PathBuf::from(name))
}
