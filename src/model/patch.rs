//! Line-by-line parser of patches: unified diffs, including git's, and `apply_patch` texts.
//!
//! Classifies each line. The line counts of a hunk are respected, so that a removed `-- x` (`--- x`) or an
//! added `++ x` (`+++ x`) is not mistaken for a file header; a hunk without line numbers ends with the first
//! line that cannot be part of it. Applying and drawing patches is done elsewhere.
//!
//! Invariants: every line is returned once, in order, so no part of a patch is lost.

/// The classification of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchLine<'t> {
    /// `*** Begin Patch`, `*** End Patch` or `*** End of File`.
    Envelope,
    /// `*** Add File: `, `*** Delete File: ` or `*** Update File: `, with the path.
    Section(PatchFate, &'t str),
    /// `*** Move to: `, with the path.
    MoveTo(&'t str),
    /// `diff --git `, with the rest of the line.
    Git(&'t str),
    /// `--- `, with the path; `None` for `/dev/null`.
    OldFile(Option<&'t str>),
    /// `+++ `, with the path; `None` for `/dev/null`.
    NewFile(Option<&'t str>),
    /// Another line between a file header and its first hunk (`rename from`, `index`, `new file mode`).
    Head(&'t str),
    /// `@@`, with start line and line count of both sides if they are given.
    Hunk(Option<HunkRange>),
    /// A removed line, without its sign.
    Removed(&'t str),
    /// An added line, without its sign.
    Added(&'t str),
    /// An unchanged line, without its sign.
    Context(&'t str),
    /// `\ No newline at end of file`.
    NoNewline,
    /// A blank line outside a hunk.
    Blank,
    Other(&'t str),
}

/// The operation of an `apply_patch` section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchFate {
    Add,
    Delete,
    Update,
}

/// The line range of a hunk, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkRange {
    /// Old start line and line count.
    pub old: (u32, u32),
    /// New start line and line count.
    pub new: (u32, u32),
}

/// Prefixes of git's header lines between the name of a file and its hunks.
const HEADS: [&str; 15] = [
    "index ",
    "similarity index ",
    "dissimilarity index ",
    "old mode ",
    "new mode ",
    "new file mode",
    "deleted file mode",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "Binary files ",
    "GIT binary patch",
    "Index: ",
    "======",
];

const SECTIONS: [(&str, PatchFate); 3] = [
    ("*** Add File: ", PatchFate::Add),
    ("*** Delete File: ", PatchFate::Delete),
    ("*** Update File: ", PatchFate::Update),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    /// In a hunk with this number of old and new lines left.
    Counted(u32, u32),
    /// In a hunk without line numbers; it ends at the first line that cannot be part of it.
    Open,
}

/// The lines of a patch, each with its byte range without the line end.
#[derive(Debug, Clone)]
pub struct PatchLines<'t> {
    text: &'t str,
    at: usize,
    within: Within,
    /// Whether it is an `apply_patch` text, in which `---` and `+++` are not file headers.
    is_apply: bool,
    /// Whether the previous line was a `--- ` file header.
    names_new: bool,
}

/// A line of a patch with its byte range, without the line end.
pub type PlacedLine<'t> = (std::ops::Range<usize>, PatchLine<'t>);

impl<'t> PatchLines<'t> {
    pub fn new(text: &'t str) -> Self {
        let is_apply = text
            .lines()
            .find(|line| !line.trim().is_empty())
            .is_some_and(|line| line.starts_with("*** Begin Patch") || section(line).is_some());
        Self { text, at: 0, within: Within::Nothing, is_apply, names_new: false }
    }

    fn read(&mut self, line: &'t str) -> PatchLine<'t> {
        let of_hunk = match self.within {
            Within::Counted(old, new) => self.read_counted(line, old, new),
            Within::Open => self.read_open(line),
            Within::Nothing => None,
        };
        of_hunk.unwrap_or_else(|| {
            self.within = Within::Nothing;
            self.read_outside(line)
        })
    }

    /// Reads a line of a counted hunk; `None` if it cannot be part of it, so that the count was wrong.
    fn read_counted(&mut self, line: &'t str, old: u32, new: u32) -> Option<PatchLine<'t>> {
        let (read, old, new) = match line.as_bytes().first() {
            Some(b'-') if old > 0 => (PatchLine::Removed(line.get(1..)?), old - 1, new),
            Some(b'+') if new > 0 => (PatchLine::Added(line.get(1..)?), old, new - 1),
            Some(b' ') if old > 0 && new > 0 => (PatchLine::Context(line.get(1..)?), old - 1, new - 1),
            Some(b'\\') => (PatchLine::NoNewline, old, new),
            // Some tools trim the space of an empty context line.
            None if old > 0 && new > 0 => (PatchLine::Context(""), old - 1, new - 1),
            _ => return None,
        };
        self.within = if (old, new) == (0, 0) { Within::Nothing } else { Within::Counted(old, new) };
        Some(read)
    }

    /// Reads a line of an uncounted hunk, by its sign alone.
    fn read_open(&mut self, line: &'t str) -> Option<PatchLine<'t>> {
        Some(match line.as_bytes().first() {
            Some(b'-') => PatchLine::Removed(line.get(1..)?),
            Some(b'+') => PatchLine::Added(line.get(1..)?),
            Some(b' ') => PatchLine::Context(line.get(1..)?),
            Some(b'\\') => PatchLine::NoNewline,
            None if self.next_is_of_hunk() => PatchLine::Context(""),
            _ => return None,
        })
    }

    fn read_outside(&mut self, line: &'t str) -> PatchLine<'t> {
        if line.starts_with("@@") {
            let range = hunk_range(line);
            self.within = match range {
                Some(HunkRange { old: (_, 0), new: (_, 0) }) => Within::Nothing,
                Some(range) => Within::Counted(range.old.1, range.new.1),
                None => Within::Open,
            };
            return PatchLine::Hunk(range);
        }
        if let Some((fate, path)) = section(line) {
            (self.is_apply, self.within) = (true, Within::Open);
            return PatchLine::Section(fate, path.trim());
        }
        if let Some(path) = line.strip_prefix("*** Move to: ").filter(|_| self.is_apply) {
            self.within = Within::Open;
            return PatchLine::MoveTo(path.trim());
        }
        if ["*** Begin Patch", "*** End Patch", "*** End of File"].contains(&line.trim_end()) {
            self.is_apply |= line.starts_with("*** Begin");
            return PatchLine::Envelope;
        }
        if let Some(rest) = line.strip_prefix("diff --git ") {
            return PatchLine::Git(rest);
        }
        if !self.is_apply {
            // Requires both header lines, so that a removed `-- x` is not read as a header.
            let is_pair = self.next_line().is_some_and(|next| next.starts_with("+++ "));
            if let Some(path) = line.strip_prefix("--- ").filter(|_| is_pair) {
                return PatchLine::OldFile(file_name(path));
            }
            if let Some(path) = line.strip_prefix("+++ ").filter(|_| self.names_new) {
                return PatchLine::NewFile(file_name(path));
            }
            if HEADS.iter().any(|head| line.starts_with(head)) {
                return PatchLine::Head(line);
            }
        }
        match line.as_bytes().first() {
            Some(b'-') => PatchLine::Removed(line.get(1..).unwrap_or_default()),
            Some(b'+') => PatchLine::Added(line.get(1..).unwrap_or_default()),
            Some(b' ') => PatchLine::Context(line.get(1..).unwrap_or_default()),
            Some(b'\\') => PatchLine::NoNewline,
            None => PatchLine::Blank,
            _ => PatchLine::Other(line),
        }
    }

    fn next_line(&self) -> Option<&'t str> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        rest.split('\n').next()
    }

    fn next_is_of_hunk(&self) -> bool {
        let is_of_hunk = |next: &str| next.trim_end().is_empty() || next.starts_with([' ', '+', '-', '\\']);
        self.next_line().is_some_and(is_of_hunk)
    }
}

impl<'t> Iterator for PatchLines<'t> {
    type Item = PlacedLine<'t>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        let rest = self.text.get(start..).filter(|rest| !rest.is_empty())?;
        let whole = rest.split('\n').next().unwrap_or(rest);
        self.at = (start + whole.len() + 1).min(self.text.len());
        let line = whole.strip_suffix('\r').unwrap_or(whole);
        let read = self.read(line);
        self.names_new = matches!(read, PatchLine::OldFile(_));
        // In a hunk, a `\r` is part of the line's text.
        let text = || whole.get(1..).unwrap_or_default();
        let read = match read {
            PatchLine::Removed(_) => PatchLine::Removed(text()),
            PatchLine::Added(_) => PatchLine::Added(text()),
            PatchLine::Context(_) => PatchLine::Context(text()),
            other => return Some((start..start + line.len(), other)),
        };
        Some((start..start + whole.len(), read))
    }
}

fn section(line: &str) -> Option<(PatchFate, &str)> {
    SECTIONS.iter().find_map(|(begin, fate)| Some((*fate, line.strip_prefix(begin)?)))
}

/// The file name of a `---` or `+++` line, without a timestamp and the prefix `a/` or `b/`; `None` for
/// `/dev/null`.
fn file_name(text: &str) -> Option<&str> {
    let name = text.split('\t').next().unwrap_or_default().trim();
    if name == "/dev/null" || name.is_empty() {
        return None;
    }
    Some(name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name))
}

/// Parses `@@ -41,6 +42,7 @@ fn refresh`; `None` for the bare `@@ fn refresh` of `apply_patch`.
fn hunk_range(line: &str) -> Option<HunkRange> {
    let numbers = |mark: char| -> Option<(u32, u32)> {
        let word = line.split(' ').find_map(|word| word.strip_prefix(mark))?;
        let (start, count) = word.split_once(',').unwrap_or((word, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let range = HunkRange { old: numbers('-')?, new: numbers('+')? };
    line.starts_with("@@ -").then_some(range)
}

/// The path of `a/src/x b/src/x`, the rest of a `diff --git` line.
pub fn git_path(names: &str) -> Option<&str> {
    names.rfind(" b/").and_then(|at| names.get(at + 3..))
}

pub fn is_patch(text: &str) -> bool {
    let start = text.trim_start();
    start.starts_with("*** Begin Patch")
        || start.starts_with("diff --git ")
        || (start.starts_with("--- ") && start.contains("\n+++ "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::PatchLine::{Added, Context, Git, NewFile, NoNewline, OldFile, Removed};
    use super::*;

    fn read(text: &str) -> Vec<PatchLine<'_>> {
        PatchLines::new(text).map(|(_, line)| line).collect()
    }

    #[test]
    fn lines_of_a_counted_hunk_are_not_file_headers() {
        let text = "--- a/s.sql\n+++ b/s.sql\n@@ -1,3 +1,3 @@\n a\n--- old\n+++ new\n b\n--- c\n+++ c\n@@ -1 +1 @@\n-x\n+y\n";
        let lines = read(text);
        assert_eq!(
            lines.get(3..7).unwrap(),
            [Context("a"), Removed("-- old"), Added("++ new"), Context("b")]
        );
        assert_eq!(lines.get(7..9).unwrap(), [OldFile(Some("c")), NewFile(Some("c"))]);
    }

    #[test]
    fn apply_patch_texts_have_no_unified_file_headers() {
        let text = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n--- y\n+++ import os\n*** End Patch\n";
        let lines = read(text);
        assert_eq!(lines.get(3..6).unwrap(), [Removed("x"), Removed("-- y"), Added("++ import os")]);
        assert_eq!(lines.first(), Some(&PatchLine::Envelope));
        assert_eq!(lines.last(), Some(&PatchLine::Envelope));
        let cut = "*** Update File: a.py\n@@\n--- y\n+++ z\n";
        assert_eq!(read(cut).get(2..).unwrap(), [Removed("-- y"), Added("++ z")]);
    }

    #[test]
    fn uncounted_hunk_ends_at_the_first_foreign_line() {
        let text = "--- a/x\n+++ b/x\n@@\n-1\n--- 2\n+++ 3\ndiff --git a/y b/y\n--- a/y\n+++ /dev/null\n";
        assert_eq!(
            read(text).get(3..).unwrap(),
            [Removed("1"), Removed("-- 2"), Added("++ 3"), Git("a/y b/y"), OldFile(Some("y")), NewFile(None)]
        );
    }

    #[test]
    fn wrong_line_counts_lose_no_line() {
        let more = "@@ -1 +1 @@\n-a\n+b\n+c\n--- d\n";
        assert_eq!(read(more).get(1..).unwrap(), [Removed("a"), Added("b"), Added("c"), Removed("-- d")]);
        let less = "@@ -1,9 +1,9 @@\n-a\n\\ No newline at end of file\ndiff --git a/y b/y\n";
        assert_eq!(read(less).get(1..).unwrap(), [Removed("a"), NoNewline, Git("a/y b/y")]);
    }

    #[test]
    fn carriage_returns_are_preserved_in_hunk_lines_only() {
        let text = "--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n+a\n";
        let (old, new) = (OldFile(Some("x")), NewFile(Some("x")));
        let range = HunkRange { old: (1, 1), new: (1, 1) };
        assert_eq!(read(text), [old, new, PatchLine::Hunk(Some(range)), Removed("a\r"), Added("a")]);
    }

    /// A file with replaced lines, and the patch for it with the entire file as context.
    fn edit() -> impl Strategy<Value = (Vec<String>, Vec<String>, String)> {
        let line = prop::sample::select(vec![
            "-- a",
            "++ b",
            "- c",
            "+ d",
            "@@ -1 +1 @@",
            "@@",
            "diff --git a/x b/x",
            "*** Update File: x",
            "",
            " ",
            "\\ no",
            "plain",
            "index 1..2",
            "-- /dev/null",
            "++ b/x",
        ]);
        let row = (prop::sample::select(vec![' ', '-', '+']), line);
        prop::collection::vec(row, 1..20).prop_map(|rows| {
            let side = |skip: char| -> Vec<String> {
                rows.iter().filter(|(sign, _)| *sign != skip).map(|(_, line)| (*line).to_owned()).collect()
            };
            let (old, new) = (side('+'), side('-'));
            let body = rows.iter().fold(String::new(), |body, (sign, line)| format!("{body}{sign}{line}\n"));
            let patch = format!("--- a/f\n+++ b/f\n@@ -1,{} +1,{} @@\n{body}", old.len(), new.len());
            (old, new, patch)
        })
    }

    proptest! {
        #[test]
        fn both_texts_are_restored_from_any_counted_patch((old, new, patch) in edit(), more in 1..3_usize) {
            let text = patch.repeat(more);
            let side = |skips: fn(&PatchLine<'_>) -> bool| -> Vec<String> {
                let lines = read(&text).into_iter().filter(|line| !skips(line));
                lines.filter_map(|line| match line {
                    Removed(text) | Added(text) | Context(text) => Some(text.to_owned()),
                    _ => None,
                }).collect()
            };
            prop_assert_eq!(side(|line| matches!(line, Added(_))), vec![old; more].concat());
            prop_assert_eq!(side(|line| matches!(line, Removed(_))), vec![new; more].concat());
        }

        #[test]
        fn every_byte_is_returned_once(text in "(([-+ @*\\\\]{0,4}|--- |\\+\\+\\+ |@@ -1,2 \\+1 @@|\\*\\*\\* Add File: |diff --git )[ab\r]{0,2}\n){0,12}.{0,3}") {
            let mut at = 0;
            for (range, _) in PatchLines::new(&text) {
                prop_assert_eq!(range.start, at);
                let rest = &text[range.end..];
                at = range.end + rest.find('\n').map_or(rest.len(), |end| end + 1);
                prop_assert!(rest.starts_with('\n') || rest.starts_with('\r') || rest.is_empty());
            }
            prop_assert_eq!(at, text.len());
        }
    }
}
