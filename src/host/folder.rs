//! Resolves folders that the user enters.

use std::path::{Path, PathBuf};

/// The canonical path of a folder: `~` is the home folder, and relative paths are resolved against `base`.
///
/// # Errors
/// The path does not exist or is not a folder; one sentence with the remedy.
pub fn find(text: &str, base: &Path, home: Option<&Path>) -> Result<PathBuf, String> {
    let path = match (text.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => base.join(text),
    };
    let real = path
        .canonicalize()
        .map_err(|error| format!("Cannot use {}: {error}. Change the path.", path.display()))?;
    if real.is_dir() { Ok(real) } else { Err(format!("{} is a file. Enter its folder.", path.display())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_and_relative_paths_are_resolved_and_files_are_rejected() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("home/code")).unwrap();
        std::fs::create_dir_all(root.join("shop")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        let home = root.join("home");
        let find = |text: &str| find(text, &root.join("shop"), Some(&home));
        assert_eq!(find("~"), Ok(home.clone()));
        assert_eq!(find("~/code"), Ok(home.join("code")));
        assert_eq!(find("../home"), Ok(home.clone()));
        assert_eq!(find("."), Ok(root.join("shop")));
        assert!(find("../file").unwrap_err().contains("is a file"));
        assert!(find("nowhere").unwrap_err().contains("Cannot use"));
    }
}
