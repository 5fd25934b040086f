//! Changes of files as one unified diff, as `patch` and `git apply` read it.
//!
//! Not its duty: how changes look (`ui::diff`). A change that came as a patch stays as it came.

use std::path::Path;
use std::time::Duration;

use similar::{Algorithm, TextDiff};

use crate::model::{DiffChange, FileDiff};

/// How long the search for the smallest diff of a file may take; what is found by then is written.
const DEADLINE: Duration = Duration::from_secs(1);

/// The changes as text. Paths below `folder` are written relative to it. Numbers of lines are those of the texts
/// that the agent told, which may be parts of files.
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
                let side = |is_there: bool, letter: char| {
                    if is_there { format!("{letter}/{path}") } else { "/dev/null".to_owned() }
                };
                let (from, to) = (side(old.is_some(), 'a'), side(!new.is_empty() || before.is_empty(), 'b'));
                let diff = TextDiff::configure()
                    .algorithm(Algorithm::Patience)
                    .timeout(DEADLINE)
                    .diff_lines(before, new.as_ref());
                out.push_str(&diff.unified_diff().context_radius(3).header(&from, &to).to_string());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn texts(old: Option<&str>, new: &str) -> FileDiff {
        let change = DiffChange::Texts { old: old.map(Arc::from), new: Arc::from(new) };
        FileDiff { path: "/home/ada/shop/src/a.rs".into(), change }
    }

    #[test]
    fn a_change_is_a_patch_with_paths_below_the_folder() {
        let change = texts(Some("one\ntwo\n"), "one\nthree");
        assert_eq!(
            unified(&[change], Path::new("/home/ada/shop")),
            "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn new_and_deleted_files_have_no_other_side() {
        let folder = Path::new("/home/ada/shop");
        assert!(unified(&[texts(None, "x\n")], folder).starts_with("--- /dev/null\n+++ b/src/a.rs\n"));
        assert!(unified(&[texts(Some("x\n"), "")], folder).starts_with("--- a/src/a.rs\n+++ /dev/null\n"));
    }

    #[test]
    fn a_patch_stays_as_it_came() {
        let patch =
            FileDiff { path: "x".into(), change: DiffChange::Patch(Arc::from("@@ -1 +1 @@\n-a\n+b")) };
        assert_eq!(unified(&[patch.clone(), patch], Path::new("/")), "@@ -1 +1 @@\n-a\n+b\n".repeat(2));
    }
}
