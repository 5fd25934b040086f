//! Detects changes that a tool call reports more than once: as old and new text, as a patch, or as a patch inside a text
//! block.
//!
//! Invariant: a patch with at least one line that no other change contains is not a duplicate.

use std::collections::HashSet;

use crate::model::patch::{PatchLine, PatchLines, git_path};
use crate::model::{DiffChange, FileDiff};

/// How a patch starts.
const BEGINS: [&str; 4] = ["*** Begin Patch", "diff --git ", "--- ", "@@"];

/// Whether a text is a patch (possibly fenced) whose added and removed lines all occur in `diffs`.
pub fn repeats<'d>(text: &str, diffs: impl Iterator<Item = &'d FileDiff>) -> bool {
    let text = text.trim();
    let body = match text.strip_prefix("```").and_then(|rest| rest.split_once('\n')) {
        Some((_, body)) => body.trim_end().strip_suffix("```").unwrap_or(body),
        None => text,
    };
    let body = without_index(body);
    BEGINS.iter().any(|begin| body.starts_with(begin)) && is_contained(body, diffs)
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

/// Whether `diffs` contain each added and removed line of a patch, and each file it names.
pub(in crate::app) fn is_contained<'d>(patch: &str, diffs: impl Iterator<Item = &'d FileDiff>) -> bool {
    let (mut old, mut new) = (HashSet::new(), HashSet::new());
    let mut paths = Vec::new();
    for diff in diffs {
        paths.push(diff.path.as_path());
        match &diff.change {
            DiffChange::Texts { old: before, new: after } => {
                old.extend(before.as_deref().unwrap_or_default().lines());
                new.extend(after.lines());
            }
            DiffChange::Patch(text) => {
                for (_, line) in PatchLines::new(text) {
                    match line {
                        PatchLine::Removed(line) => old.insert(without_cr(line)),
                        PatchLine::Added(line) => new.insert(without_cr(line)),
                        _ => false,
                    };
                }
            }
        }
    }
    let is_known = |path: &str| {
        let relative = path.trim_start_matches('/');
        paths.iter().any(|known| known.ends_with(relative) || known.ends_with(path))
    };
    let mut has_any = false;
    for (_, line) in PatchLines::new(patch) {
        let is_known_line = match line {
            PatchLine::Removed(line) => old.contains(without_cr(line)),
            PatchLine::Added(line) => new.contains(without_cr(line)),
            PatchLine::Section(_, path)
            | PatchLine::MoveTo(path)
            | PatchLine::OldFile(Some(path))
            | PatchLine::NewFile(Some(path)) => is_known(path),
            PatchLine::Git(names) => git_path(names).is_some_and(is_known),
            _ => true,
        };
        if !is_known_line {
            return false;
        }
        has_any |= matches!(line, PatchLine::Removed(_) | PatchLine::Added(_));
    }
    has_any
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

    #[test]
    fn a_patch_in_text_repeats_the_changes() {
        let known = [texts("a\nx\n", "a\ny\nz\n")];
        for patch in [
            "--- a\n+++ a\n@@ -1,2 +1,3 @@\n a\n-x\n+y\n+z",
            "Index: a\n===================\n--- a\n+++ a\n@@ -1,2 +1,3 @@\n-x\n+y\n+z\n",
            "```diff\n@@ -1 +1 @@\n-x\n+y\n```\n",
            "*** Begin Patch\n*** Update File: a\n@@\n-x\n+z\n*** End Patch",
        ] {
            assert!(repeats(patch, known.iter()), "{patch}");
        }
        let as_patch = FileDiff { path: "a".into(), change: DiffChange::Patch("@@\n-x\n+y\n".into()) };
        assert!(repeats("@@ -1 +1 @@\n-x\n+y", [as_patch].iter()));
    }

    #[test]
    fn a_patch_with_new_lines_or_other_text_is_not_a_duplicate() {
        let known = [texts("a\nx\n", "a\ny\n")];
        for text in [
            "@@\n-x\n+y\n+more",
            "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y",
            "@@ -1,2 +1 @@\n--- hidden\n-x\n+y",
            "Index: other\n=====\n--- a\n+++ a\n@@\n-x\n+y",
            "- x\n+ y",
            "The file was updated.",
            "",
            "@@\n a\n",
        ] {
            assert!(!repeats(text, known.iter()), "{text}");
        }
        assert!(!repeats("@@\n-x\n", std::iter::empty()));
    }
}
