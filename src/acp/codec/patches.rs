//! Finds file changes in patch texts and non-standard objects.
//!
//! Invariant: no line of the text is lost; lines before the first file belong to that file.

use std::path::PathBuf;

use serde_json::Value;

use crate::model::patch::{PatchLine, PatchLines, git_path};
use crate::model::{DiffChange, FileDiff, ToolContent};

pub(super) use crate::model::patch::is_patch;

use super::value::{Object, first_text, list, raw, take};

/// Splits a patch by file. `fallback`: the path of a text that contains none.
pub fn split(text: &str, fallback: Option<&str>) -> Vec<FileDiff> {
    let mut parts: Vec<(Option<&str>, String)> = Vec::new();
    let mut head = String::new();
    // After a `diff --git` line, `---` does not start another file.
    let mut is_named = false;
    let mut before = 0;
    for (range, line) in PatchLines::new(text) {
        let end = text
            .get(range.end..)
            .and_then(|rest| rest.find('\n'))
            .map_or(text.len(), |at| range.end + at + 1);
        let whole = text.get(before..end).unwrap_or_default();
        before = end;
        let begun = match line {
            PatchLine::Envelope if !whole.starts_with("*** End of File") => continue,
            PatchLine::Section(_, path) => Some(Some(path)),
            PatchLine::Git(names) => {
                is_named = true;
                Some(git_path(names))
            }
            PatchLine::OldFile(path) if !is_named => Some(path),
            PatchLine::Hunk(_) => {
                is_named = false;
                None
            }
            _ => None,
        };
        if let Some(path) = begun {
            parts.push((path, std::mem::take(&mut head)));
        }
        let Some((path, part)) = parts.last_mut() else {
            head.push_str(whole);
            continue;
        };
        if let PatchLine::OldFile(Some(name)) | PatchLine::NewFile(Some(name)) = line {
            path.get_or_insert(name);
        }
        part.push_str(whole);
    }
    if parts.is_empty() {
        parts.push((None, head));
    }
    parts
        .into_iter()
        .filter(|(_, part)| !part.trim().is_empty())
        .filter_map(|(path, part)| {
            let path = path.or(fallback)?;
            Some(FileDiff { path: PathBuf::from(path), change: DiffChange::Patch(part.into()) })
        })
        .collect()
}

/// Decodes a diff of version 2: each file with its part of the common git patch, or otherwise with a header that
/// describes the operation. Source: ACP v2 tool-calls, `Diff`.
pub fn of_changes(mut item: Object) -> Vec<ToolContent> {
    let whole = item.get("patch").and_then(|patch| first_text(patch.as_object()?, &["text"]));
    let mut parts = whole.map(|text| split(&text, None)).unwrap_or_default();
    let mut content = Vec::new();
    for change in take(&mut item, &["changes"]).map(list).unwrap_or_default() {
        let path = change.as_object().and_then(|change| first_text(change, &["path", "oldPath"]));
        let (Value::Object(change), Some(path)) = (&change, path) else {
            content.push(ToolContent::Unknown(raw(&change)));
            continue;
        };
        // Paths in a patch are relative to the root of the session.
        let own = parts.iter().position(|part| std::path::Path::new(&path).ends_with(&part.path));
        let change = match own.map(|at| parts.remove(at).change) {
            Some(change) => change,
            None => DiffChange::Patch(head_of(change, &path).into()),
        };
        content.push(ToolContent::Diff(FileDiff { path: path.into(), change }));
    }
    content.extend(parts.into_iter().map(ToolContent::Diff));
    content
}

fn head_of(change: &Object, path: &str) -> String {
    let old = first_text(change, &["oldPath"]);
    let bare = |path: &str| path.trim_start_matches('/').to_owned();
    let (a, b) = (bare(old.as_deref().unwrap_or(path)), bare(path));
    let fate = match first_text(change, &["operation"]).as_deref() {
        Some("add") => "new file mode 100644\n".to_owned(),
        Some("delete") => "deleted file mode 100644\n".to_owned(),
        Some("move") => format!("rename from {a}\nrename to {b}\n"),
        Some("copy") => format!("copy from {a}\ncopy to {b}\n"),
        _ => String::new(),
    };
    format!("diff --git a/{a} b/{b}\n{fate}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str, fallback: Option<&str>) -> Vec<String> {
        split(text, fallback).iter().map(|diff| diff.path.display().to_string()).collect()
    }

    #[test]
    fn apply_patch_text_is_split_by_file() {
        let text =
            "*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** Add File: b.rs\n+new\n*** End Patch\n";
        let diffs = split(text, None);
        assert_eq!(paths(text, None), ["a.rs", "b.rs"]);
        assert_eq!(
            diffs.first().map(|diff| diff.change.clone()),
            Some(DiffChange::Patch("*** Update File: a.rs\n@@\n-x\n+y\n".into()))
        );
        assert!(is_patch(text));
    }

    #[test]
    fn git_diffs_are_split_by_file_with_their_headers() {
        let text = "diff --git a/x.c b/x.c\n--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-1\n+2\ndiff --git a/n b/n\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+3\n";
        assert_eq!(paths(text, None), ["x.c", "n"]);
        assert!(is_patch(text));
    }

    #[test]
    fn lines_that_look_like_headers_stay_in_their_hunk() {
        let text = "--- a/db.sql\n+++ b/db.sql\n@@ -1,3 +1,3 @@\n a\n--- old comment\n+-- new comment\n b\n";
        let diffs = split(text, None);
        assert_eq!(paths(text, None), ["db.sql"]);
        assert_eq!(diffs.first().map(|diff| diff.change.clone()), Some(DiffChange::Patch(text.into())));
        let text = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n--- y\n+++ z\n*** End Patch\n";
        assert_eq!(paths(text, None), ["a.py"]);
    }

    #[test]
    fn paths_are_read_from_either_header_of_a_plain_diff() {
        let text = "--- /dev/null\n+++ b/new.txt\t2026-01-01\n@@ -0,0 +1 @@\n+3\n";
        assert_eq!(paths(text, None), ["new.txt"]);
        assert!(is_patch(text));
        assert_eq!(paths("@@ -1 +1 @@\n-1\n+2\n", Some("given.txt")), ["given.txt"]);
        assert_eq!(paths("@@ -1 +1 @@\n-1\n+2\n", None), Vec::<String>::new());
        assert!(!is_patch("--- not a diff"));
    }
}
