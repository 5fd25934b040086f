//! Which protected files exist in the folders of a session: a fixed list of names, without a search.

use std::path::{Path, PathBuf};

use super::plan::{git_folders, programs_of_git};
use super::tables::{AGENT_SETTINGS, GIT_HOOKS, SETTINGS, WRITABLE_NAMES};
use crate::host::regular;
use crate::model::{ProtectedFiles, ProtectedJob, ServiceEvent, content_hash, protected_names};

/// Larger files are compared by size and time.
const MAX_HASHED: u64 = 256 * 1024;

/// Maximum number of paths for each folder.
const MAX_PATHS: usize = 10_000;

pub fn read_protected(job: ProtectedJob) -> ServiceEvent {
    let files = job.folders.iter().flat_map(|folder| read(folder)).collect();
    ServiceEvent::ProtectedRead(Box::new(job), files)
}

/// The files of a folder and of its git data. Links are not followed.
fn read(folder: &Path) -> ProtectedFiles {
    let Ok(root) = folder.canonicalize() else { return ProtectedFiles::new() };
    let is_folder = |path: &&PathBuf| path.symlink_metadata().is_ok_and(|facts| facts.is_dir());
    let mut git = git_folders(&root);
    // Also if it is no repository any more, because of what was written into it.
    git.extend(Some(root.join(".git")).filter(|path| is_folder(&path)));
    let names = protected_names().filter(|name| !WRITABLE_NAMES.contains(name));
    let mut paths: Vec<PathBuf> = names.chain(SETTINGS.iter().copied()).map(|name| root.join(name)).collect();
    paths.extend(git.iter().flat_map(|folder| programs_of_git(folder)));
    let inner = |path: &PathBuf| -> Vec<PathBuf> {
        GIT_HOOKS.iter().chain(AGENT_SETTINGS).map(|name| path.join(name)).collect()
    };
    let inner: Vec<PathBuf> = paths.iter().filter(is_folder).flat_map(inner).collect();
    let found = paths.into_iter().chain(inner).take(MAX_PATHS).filter_map(|path| {
        // Most do not exist.
        path.symlink_metadata().ok()?;
        let real = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
        let is_here = std::iter::once(&root).chain(&git).any(|folder| real.starts_with(folder));
        let state = is_here.then(|| state_of(&real)).flatten()?;
        let shown = real.strip_prefix(&root).map_or(real.clone(), |inner| folder.join(inner));
        Some((shown, state))
    });
    found.collect()
}

/// A text that changes with a file, or with the target of a link. Of a folder, only whether it exists counts.
fn state_of(path: &Path) -> Option<String> {
    let facts = path.symlink_metadata().ok()?;
    if facts.is_dir() {
        return Some("folder".to_owned());
    }
    if facts.is_symlink() {
        return Some(format!("link to {}", path.read_link().ok()?.display()));
    }
    let hash = regular::read(path, MAX_HASHED).map(|content| content_hash(&content));
    Some(hash.unwrap_or_else(|| format!("{} {:?}", facts.len(), facts.modified().ok())))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::host::os::fixtures;

    #[test]
    fn protected_files_are_found_by_name_and_change_with_content() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("work");
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for name in ["HEAD", "config", "objects/x", "refs/x", "hooks/post-commit", "hooks/post-commit.sample"]
        {
            write(&format!(".git/{name}"), "ref: refs/heads/main\n");
        }
        for name in [".envrc", ".claude/settings.json", ".npmrc", "src/.envrc", "README.md"] {
            write(name, "x");
        }
        let before = read(&root);
        let names: Vec<_> = before.keys().map(|path| path.strip_prefix(&root).unwrap()).collect();
        let expected = [
            ".claude",
            ".claude/settings.json",
            ".envrc",
            ".git",
            ".git/config",
            ".git/hooks",
            ".git/hooks/post-commit",
        ];
        assert_eq!(names, expected.map(Path::new));
        write(".envrc", "y");
        write(".git/commondir", "x");
        let after = read(&root);
        let is_new = |path: &&PathBuf| before.get(*path) != after.get(*path);
        let names: Vec<_> = after.keys().filter(is_new).collect();
        assert_eq!(names, [&root.join(".envrc"), &root.join(".git/commondir")]);
    }

    #[test]
    fn links_are_listed_and_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let (root, outside) = (base.path().join("work"), base.path().join("outside"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("settings.json"), "x").unwrap();
        fixtures::link(&outside, root.join(".claude"));
        fixtures::link("missing", root.join(".envrc"));
        let found = read(&root);
        assert_eq!(found.keys().collect::<Vec<_>>(), [&root.join(".claude"), &root.join(".envrc")]);
        assert_eq!(found[&root.join(".envrc")], "link to missing");
    }
}
