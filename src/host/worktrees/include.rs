//! Copies the ignored files that `.worktreeinclude` names into a new worktree.
//!
//! The file is part of the repository, and may come from a stranger: only files that git ignores are copied, and no link
//! that leads out of a checkout is followed.

use std::io::{self, Write as _};
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use ignore::gitignore::GitignoreBuilder;

use super::repo::{Repo, listed};
use crate::host::os::private;
use crate::host::regular;
use crate::host::snapshots::git::paths;

const FILE: &str = ".worktreeinclude";
const MAX_PATTERN_BYTES: u64 = 64 << 10;
const MAX_FILES: usize = 500;
const MAX_BYTES: u64 = 64 << 20;

/// Copies from the main checkout, and adds what was copied and what was not to `details`.
pub(super) fn copy(repo: &Repo, target: &Path, details: &mut Vec<String>) -> Result<(), String> {
    let source = repo.at(repo.main.as_deref().unwrap_or(&repo.root))?;
    let open = |folder: &Path| {
        let opened = Dir::open_ambient_dir(folder, ambient_authority());
        opened.map_err(|error| format!("Cannot open {}: {error}.", folder.display()))
    };
    let (from, to) = (open(&source.root)?, open(target)?);
    let Some(text) = regular::read_below(&from, Path::new(FILE), MAX_PATTERN_BYTES) else { return Ok(()) };
    let mut rules = GitignoreBuilder::new(&source.root);
    for line in String::from_utf8_lossy(&text).lines() {
        // A line that is no pattern matches nothing, as in git.
        let _ = rules.add_line(None, line);
    }
    let rules = rules.build().map_err(|error| format!("Cannot read {FILE}: {error}."))?;
    let ignored = source.run(["ls-files", "-z", "--others", "--ignored", "--exclude-standard"])?.stdout;
    let (mut copied, mut left_out, mut bytes) = (Vec::new(), Vec::new(), 0);
    for path in paths(&ignored).filter(|path| rules.matched_path_or_any_parents(path, false).is_ignore()) {
        let max_bytes = if copied.len() < MAX_FILES { MAX_BYTES - bytes } else { 0 };
        match copy_file(&from, &to, &path, max_bytes) {
            Ok(size) => {
                bytes += size;
                copied.push(path.display().to_string());
            }
            Err(error) => left_out.push(format!("{} ({error})", path.display())),
        }
    }
    for (label, names) in [("Copied", copied), ("Not copied", left_out)] {
        if !names.is_empty() {
            details.push(format!("{label}: {}", listed(names)));
        }
    }
    Ok(())
}

/// Copies one file, and returns its size.
fn copy_file(from: &Dir, to: &Dir, path: &Path, max_bytes: u64) -> io::Result<u64> {
    // A link can lead to a file that git does not ignore.
    if path.ancestors().any(|part| from.symlink_metadata(part).is_ok_and(|facts| facts.is_symlink())) {
        return Err(io::Error::other("symbolic link"));
    }
    let content = regular::read_below(from, path, max_bytes);
    let content = content.ok_or_else(|| io::Error::other("too large, or not a readable file"))?;
    private::create_new_in(to, path)?.write_all(&content)?;
    Ok(content.len() as u64)
}
