//! Encodes file changes as a unified diff for `patch` and `git apply`.
//!
//! Changes that the agent sent as patches are unchanged.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};

use crate::model::{DiffChange, FileDiff};

/// Time limit of the diff of a file; afterwards a larger diff is accepted.
const DEADLINE: Duration = Duration::from_secs(1);

/// Encodes changes as text. Paths below `folder` are relative to it. Line numbers refer to the texts of the agent,
/// which may be parts of files.
pub fn unified(changes: &[FileDiff], folder: &Path) -> String {
    let mut out = String::new();
    for change in changes {
        match &change.change {
            DiffChange::Patch(text) => {
                out.push_str(text);
                if !text.ends_with('\n') {
                    out.push('\n');
                }
            }
            DiffChange::Texts { old, new } => {
                let path = change.path.strip_prefix(folder).unwrap_or(&change.path);
                let path = path.to_string_lossy();
                let path = path.trim_start_matches('/');
                let before = old.as_deref().unwrap_or_default();
                let side = |is_there: bool, ch: char| {
                    if is_there { quoted(&format!("{ch}/{path}")) } else { "/dev/null".to_owned() }
                };
                let (from, to) = (side(old.is_some(), 'a'), side(!new.is_empty() || before.is_empty(), 'b'));
                write_hunks(&mut out, (&from, &to), before, new);
            }
        }
    }
    out
}

/// Quotes a name like git, if it contains special characters.
fn quoted(name: &str) -> String {
    if !name.contains(|ch: char| ch.is_control() || matches!(ch, '"' | '\\')) {
        return name.to_owned();
    }
    let mut out = String::from("\"");
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
    out
}

/// Writes the hunks of one file. Like in git, only `\n` ends a line.
fn write_hunks(out: &mut String, names: (&str, &str), old: &str, new: &str) {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let diff = TextDiff::configure().algorithm(Algorithm::Patience).timeout(DEADLINE).diff_slices(&old, &new);
    let mut has_head = false;
    for group in diff.grouped_ops(3) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        if !std::mem::replace(&mut has_head, true) {
            let _ = writeln!(out, "--- {}\n+++ {}", names.0, names.1);
        }
        let range = |start: usize, end: usize| match end - start {
            0 => format!("{start},0"),
            1 => (start + 1).to_string(),
            count => format!("{},{count}", start + 1),
        };
        let before = range(first.old_range().start, last.old_range().end);
        let after = range(first.new_range().start, last.new_range().end);
        let _ = writeln!(out, "@@ -{before} +{after} @@");
        for op in &group {
            for change in op.iter_slices(&old, &new) {
                let (sign, lines) = match change {
                    (ChangeTag::Equal, lines) => (' ', lines),
                    (ChangeTag::Delete, lines) => ('-', lines),
                    (ChangeTag::Insert, lines) => ('+', lines),
                };
                for line in lines {
                    out.push(sign);
                    out.push_str(line);
                    if !line.ends_with('\n') {
                        out.push_str("\n\\ No newline at end of file\n");
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {

    use proptest::prelude::*;

    use super::*;

    fn texts(old: Option<&str>, new: &str) -> FileDiff {
        let change = DiffChange::Texts { old: old.map(Into::into), new: new.into() };
        FileDiff { path: "/home/ada/shop/src/a.rs".into(), change }
    }

    #[test]
    fn paths_are_relative_to_the_folder() {
        let change = texts(Some("one\ntwo\n"), "one\nthree");
        assert_eq!(
            unified(&[change], Path::new("/home/ada/shop")),
            "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn new_and_deleted_files_use_dev_null() {
        let folder = Path::new("/home/ada/shop");
        assert!(unified(&[texts(None, "x\n")], folder).starts_with("--- /dev/null\n+++ b/src/a.rs\n"));
        assert!(unified(&[texts(Some("x\n"), "")], folder).starts_with("--- a/src/a.rs\n+++ /dev/null\n"));
    }

    #[test]
    fn patches_are_unchanged() {
        let patch = FileDiff { path: "x".into(), change: DiffChange::Patch("@@ -1 +1 @@\n-a\n+b".into()) };
        assert_eq!(unified(&[patch.clone(), patch], Path::new("/")), "@@ -1 +1 @@\n-a\n+b\n".repeat(2));
    }

    #[test]
    fn names_with_line_breaks_are_quoted() {
        let mut change = texts(Some("a\n"), "b\n");
        change.path = "/w/x\n--- y\"".into();
        let patch = unified(&[change], Path::new("/w"));
        assert!(patch.starts_with("--- \"a/x\\012--- y\\\"\"\n+++ "), "{patch}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        /// If git is installed: applying the patch to the old text yields the new text.
        #[test]
        fn git_applies_the_patch(
            old in "([abc]\r?\n|-- a\n|\\+\\+ b\n|@@ -1 \\+1 @@\n|diff --git a/f b/f\n|\r|\\\\ x\n){1,12}[a]{0,1}",
            new in "([abc]\r?\n|-- a\n|\\+\\+ b\n|@@ -1 \\+1 @@\n|diff --git a/f b/f\n|\r|\\\\ x\n){1,12}[a]{0,1}",
        ) {
            let folder = tempfile::tempdir().unwrap();
            let git = |args: &[&str]| {
                let mut command = std::process::Command::new("git");
                command.args(args).current_dir(folder.path()).env("GIT_CEILING_DIRECTORIES", "/");
                command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder.path()).output()
            };
            if git(&["--version"]).is_err() || old == new {
                return Ok(());
            }
            let file = folder.path().join("f");
            std::fs::write(&file, &old).unwrap();
            let change = DiffChange::Texts { old: Some(old.as_str().into()), new: new.as_str().into() };
            let patch = unified(&[FileDiff { path: "f".into(), change }], Path::new("/"));
            std::fs::write(folder.path().join("p"), &patch).unwrap();
            let done = git(&["apply", "--whitespace=nowarn", "--unidiff-zero", "p"]).unwrap();
            prop_assert!(done.status.success(), "{}\n{}", String::from_utf8_lossy(&done.stderr), patch);
            prop_assert_eq!(std::fs::read_to_string(&file).unwrap(), new);
        }
    }
}
