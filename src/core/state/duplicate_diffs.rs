//! Detects changes that a tool call reports more than once: as old and new text, as a patch, or as a patch inside a text
//! block.
//!
//! Invariant: a patch is a duplicate only if each of its hunks is a change that is known, at the same place of the same
//! file, and it has nothing else: no other file, mode, name or text.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::model::patch::{HunkRange, PatchFate, PatchLine, PatchLines, git_path};
use crate::model::{DiffChange, FileDiff};

const BEGINS: [&str; 4] = ["*** Begin Patch", "diff --git ", "--- ", "@@"];

/// Maximum number of hunks without line numbers, which are searched in the whole file.
const MAX_SEARCHED: usize = 50;

/// Changes to compare patches with.
#[derive(Debug)]
pub struct KnownChanges<'d> {
    folder: PathBuf,
    files: Vec<Known<'d>>,
    by_name: HashMap<&'d OsStr, Vec<usize>>,
}

#[derive(Debug)]
struct Known<'d> {
    diff: &'d FileDiff,
    /// The lines of both sides, or the hunks.
    content: OnceCell<Content<'d>>,
}

#[derive(Debug)]
enum Content<'d> {
    Lines { old: Vec<&'d str>, new: Vec<&'d str> },
    Hunks(HashSet<Hunk<'d>>),
}

/// A hunk: its place, and its lines with their signs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Hunk<'t> {
    range: Option<(u32, u32)>,
    lines: Vec<(char, &'t str)>,
}

impl<'d> KnownChanges<'d> {
    /// Changes of a session in `folder`.
    pub fn new(folder: &Path, diffs: impl Iterator<Item = &'d FileDiff>) -> Self {
        let files: Vec<Known<'d>> = diffs.map(|diff| Known { diff, content: OnceCell::new() }).collect();
        let mut by_name: HashMap<&OsStr, Vec<usize>> = HashMap::new();
        for (position, known) in files.iter().enumerate() {
            by_name.entry(known.diff.path.file_name().unwrap_or_default()).or_default().push(position);
        }
        Self { folder: folder.to_owned(), files, by_name }
    }

    /// Whether a text is a patch (possibly fenced) that repeats known changes and says nothing else.
    pub fn repeats(&self, text: &str) -> bool {
        let text = text.trim();
        let body = match text.strip_prefix("```").and_then(|rest| rest.split_once('\n')) {
            Some((language, body)) if !language.contains(char::is_whitespace) => {
                body.trim_end().strip_suffix("```").unwrap_or(body)
            }
            _ => text,
        };
        let body = without_index(body);
        !self.files.is_empty() && BEGINS.iter().any(|begin| body.starts_with(begin)) && self.contains(body)
    }

    /// Whether each hunk of a patch is a known change, and there is nothing else in it.
    pub fn contains(&self, patch: &str) -> bool {
        let mut files: Option<&[usize]> = None;
        let mut fate = PatchFate::Update;
        let mut hunk: Option<Hunk<'_>> = None;
        let (mut has_any, mut searched) = (false, 0);
        let mut end = |hunk: &mut Option<Hunk<'_>>, files: Option<&[usize]>, fate| match hunk.take() {
            None => true,
            Some(hunk) => {
                has_any |= hunk.lines.iter().any(|(sign, _)| *sign != ' ');
                searched += usize::from(hunk.range.is_none());
                let all: Vec<usize> = (0..self.files.len()).collect();
                // Without a name, it can only be the one file.
                let files = files.or_else(|| (all.len() == 1).then_some(&all)).unwrap_or_default();
                searched <= MAX_SEARCHED
                    && files.iter().any(|at| self.files.get(*at).is_some_and(|known| known.has(&hunk, fate)))
            }
        };
        for (at, line) in PatchLines::new(patch) {
            let sign = match line {
                PatchLine::Removed(text) => Some(('-', text)),
                PatchLine::Added(text) => Some(('+', text)),
                PatchLine::Context(text) => Some((' ', text)),
                _ => None,
            };
            if let Some((sign, text)) = sign {
                hunk.get_or_insert_default().lines.push((sign, without_cr(text)));
                continue;
            }
            let is_fine = match line {
                PatchLine::Hunk(range) => {
                    let is_whole = end(&mut hunk, files, fate);
                    hunk = Some(Hunk { range: range.map(starts), lines: Vec::new() });
                    is_whole && is_bare_hunk(patch.get(at).unwrap_or_default())
                }
                PatchLine::Section(of, path) => {
                    let is_whole = end(&mut hunk, files, fate);
                    (files, fate) = (self.named(path), of);
                    is_whole && files.is_some() && of != PatchFate::Delete
                }
                PatchLine::OldFile(None)
                | PatchLine::NewFile(None)
                | PatchLine::Envelope
                | PatchLine::Blank => end(&mut hunk, files, fate),
                PatchLine::OldFile(Some(path)) | PatchLine::NewFile(Some(path)) => {
                    let is_whole = end(&mut hunk, files, fate);
                    files = self.named(path);
                    is_whole && files.is_some()
                }
                PatchLine::Git(names) => {
                    let is_whole = end(&mut hunk, files, fate);
                    files = git_path(names).and_then(|path| self.named(path));
                    is_whole && files.is_some()
                }
                PatchLine::Head(text) => end(&mut hunk, files, fate) && is_plain_head(text),
                PatchLine::MoveTo(_) | PatchLine::Other(_) => false,
                PatchLine::NoNewline
                | PatchLine::Removed(_)
                | PatchLine::Added(_)
                | PatchLine::Context(_) => true,
            };
            if !is_fine {
                return false;
            }
        }
        end(&mut hunk, files, fate) && has_any
    }

    /// The changes of the file that a patch names.
    fn named(&self, path: &str) -> Option<&[usize]> {
        let path = Path::new(path);
        let found = self.by_name.get(path.file_name()?)?;
        let is_it = |at: &usize| {
            self.files
                .get(*at)
                .is_some_and(|known| self.folder.join(path) == self.folder.join(&known.diff.path))
        };
        found.iter().all(is_it).then_some(found.as_slice())
    }
}

impl<'d> Known<'d> {
    fn has(&self, hunk: &Hunk<'_>, fate: PatchFate) -> bool {
        let side = |sign: char| -> Vec<&str> {
            hunk.lines.iter().filter(|(of, _)| *of == sign || *of == ' ').map(|(_, text)| *text).collect()
        };
        match self.content() {
            Content::Hunks(hunks) => hunks.contains(hunk),
            Content::Lines { old, new } => match (fate, hunk.range) {
                (PatchFate::Add, _) => old.is_empty() && side('+') == *new,
                (_, Some((from, to))) => is_at(old, from, &side('-')) && is_at(new, to, &side('+')),
                (_, None) => is_in(old, &side('-')) && is_in(new, &side('+')),
            },
        }
    }

    fn content(&self) -> &Content<'d> {
        self.content.get_or_init(|| match &self.diff.change {
            DiffChange::Texts { old, new } => Content::Lines {
                old: old.as_deref().unwrap_or_default().lines().collect(),
                new: new.lines().collect(),
            },
            DiffChange::Patch(text) => Content::Hunks(hunks_of(text)),
        })
    }
}

fn hunks_of(patch: &str) -> HashSet<Hunk<'_>> {
    let mut all = Vec::new();
    for (_, line) in PatchLines::new(patch) {
        let (sign, text) = match line {
            PatchLine::Hunk(range) => {
                all.push(Hunk { range: range.map(starts), lines: Vec::new() });
                continue;
            }
            PatchLine::Removed(text) => ('-', text),
            PatchLine::Added(text) => ('+', text),
            PatchLine::Context(text) => (' ', text),
            _ => continue,
        };
        if all.is_empty() {
            all.push(Hunk::default());
        }
        if let Some(last) = all.last_mut() {
            last.lines.push((sign, without_cr(text)));
        }
    }
    all.into_iter().collect()
}

fn starts(range: HunkRange) -> (u32, u32) {
    (range.old.0, range.new.0)
}

/// Whether these lines are at this line number, from 1. No lines are anywhere.
fn is_at(lines: &[&str], number: u32, part: &[&str]) -> bool {
    let start = usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
    part.is_empty() || lines.get(start..start.saturating_add(part.len())).is_some_and(|there| there == part)
}

/// Whether these lines occur once, so that it is known where.
fn is_in(lines: &[&str], part: &[&str]) -> bool {
    part.is_empty() || lines.windows(part.len()).filter(|window| *window == part).take(2).count() == 1
}

/// Whether the header of a hunk has no text after its line numbers.
fn is_bare_hunk(header: &str) -> bool {
    header.trim_start_matches("@@").rsplit("@@").next().is_none_or(|rest| {
        let rest = rest.trim();
        rest.is_empty() || rest.bytes().all(|byte| byte.is_ascii_digit() || b"-+, ".contains(&byte))
    })
}

/// Whether a header line says nothing but what the change itself shows.
fn is_plain_head(line: &str) -> bool {
    let is_ids = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_hexdigit() || b". ".contains(&byte));
    line.strip_prefix("index ").is_some_and(|rest| is_ids(rest) && !rest.ends_with("755"))
        || matches!(line.trim_end(), "new file mode 100644" | "deleted file mode 100644")
        || line.bytes().all(|byte| byte == b'=')
}

/// A patch without its `Index: PATH` line and the rule below it, if the patch names the same file. Source: opencode.
fn without_index(body: &str) -> &str {
    let Some((path, rest)) = body.strip_prefix("Index:").and_then(|rest| rest.split_once('\n')) else {
        return body;
    };
    let rest = rest.trim_start_matches('=').trim_start();
    let is_same = rest.strip_prefix("--- ").is_some_and(|rest| rest.starts_with(path.trim()));
    if is_same { rest } else { body }
}

fn without_cr(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(old: &str, new: &str) -> FileDiff {
        FileDiff { path: "a".into(), change: DiffChange::Texts { old: Some(old.into()), new: new.into() } }
    }

    fn repeats(text: &str, known: &[FileDiff]) -> bool {
        KnownChanges::new(Path::new("/w"), known.iter()).repeats(text)
    }

    #[test]
    fn a_patch_in_text_repeats_the_changes() {
        let known = [texts("a\nx\n", "a\ny\nz\n")];
        for patch in [
            "--- a\n+++ a\n@@ -1,2 +1,3 @@\n a\n-x\n+y\n+z",
            "Index: a\n===================\n--- a\n+++ a\n@@ -2,1 +2,2 @@\n-x\n+y\n+z\n",
            "diff --git a/a b/a\nindex 12ab..34cd 100644\n--- a/a\n+++ b/a\n@@ -2 +2,2 @@\n-x\n+y\n+z\n",
            "```diff\n@@ -2 +2 @@\n-x\n+y\n```\n",
            "*** Begin Patch\n*** Update File: /w/a\n@@\n-x\n+y\n+z\n*** End Patch",
        ] {
            assert!(repeats(patch, &known), "{patch}");
        }
        let as_patch =
            FileDiff { path: "a".into(), change: DiffChange::Patch("@@ -1 +1 @@\n-x\n+y\n".into()) };
        assert!(repeats("--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y", &[as_patch]));
        let added =
            FileDiff { path: "a".into(), change: DiffChange::Texts { old: None, new: "x\ny\n".into() } };
        assert!(repeats("*** Begin Patch\n*** Add File: a\n+x\n+y\n*** End Patch", &[added]));
    }

    #[test]
    fn a_patch_with_anything_else_is_not_a_duplicate() {
        let known = [texts("a\nx\nx2\nx\n", "a\ny\nx2\nx\n")];
        for text in [
            "@@ -2 +2 @@\n-x\n+y\n+more",
            "@@ -4 +4 @@\n-x\n+y",
            "@@\n-x\n+y",
            "--- a\n+++ b\n@@ -2 +2 @@\n-x\n+y",
            "--- sub/a\n+++ sub/a\n@@ -2 +2 @@\n-x\n+y",
            "@@ -1,2 +1 @@\n--- hidden\n-x\n+y",
            "@@ -2 +2 @@ hidden\n-x\n+y",
            "@@ -2 +2 @@\n hidden\n-x\n+y",
            "diff --git a/a b/a\nnew mode 100755\n--- a/a\n+++ b/a\n@@ -2 +2 @@\n-x\n+y",
            "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ -2 +2 @@\n-x\n+y\n*** End Patch",
            "*** Begin Patch\n*** Delete File: b\n*** Update File: a\n@@ -2 +2 @@\n-x\n+y\n*** End Patch",
            "Index: other\n=====\n--- a\n+++ a\n@@ -2 +2 @@\n-x\n+y",
            "@@ -2 +2 @@\n-x\n+y\nand some words",
            "- x\n+ y",
            "The file was updated.",
            "",
            "@@\n a\n",
        ] {
            assert!(!repeats(text, &known), "{text}");
        }
        assert!(!repeats("@@ -2 +2 @@\n-x\n", &[]));
    }

    #[test]
    fn many_files_are_compared_in_linear_time() {
        const COUNT: usize = 20_000;
        let diff = |name: usize| FileDiff { path: format!("f{name}").into(), ..texts("a\n", "b\n") };
        let known: Vec<FileDiff> = (0..COUNT).map(diff).collect();
        let hunk = |name: usize| format!("*** Update File: f{name}\n@@ -1 +1 @@\n-a\n+b\n");
        let patch = (0..COUNT).map(hunk).collect::<Vec<_>>().concat();
        assert!(repeats(&format!("*** Begin Patch\n{patch}*** End Patch"), &known));
    }
}
