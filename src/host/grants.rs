//! Saved permissions of an agent in a folder.
//!
//! Each is a small file in the data folder, named by the hash of its content and readable only by the user.
//!
//! Invariant: an invalid file grants nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::host::os::private;
use crate::model::{StoredGrant, content_hash};

const FOLDER: &str = "grants";

/// Maximum number of grants that are read.
const MAX: usize = 2_000;

pub type GrantFile = (PathBuf, StoredGrant);

/// All grants, sorted by agent and folder.
pub fn list(data_dir: &Path) -> Vec<GrantFile> {
    let Ok(entries) = fs::read_dir(data_dir.join(FOLDER)) else { return Vec::new() };
    let mut found: Vec<GrantFile> = entries
        .flatten()
        .take(MAX)
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path()).ok()?;
            let grant: StoredGrant = serde_json::from_str(&text).ok()?;
            // A file with another name would remain after its removal.
            (entry.path() == place(data_dir, &grant)?).then(|| (entry.path(), grant))
        })
        .collect();
    found.sort_by(|(_, a), (_, b)| (&a.agent, &a.folder).cmp(&(&b.agent, &b.folder)));
    found
}

/// Saves a grant atomically. The error describes the consequence.
pub fn save(data_dir: &Path, grant: &StoredGrant) -> Result<(), String> {
    let write = || {
        private::make_own_folder(&data_dir.join(FOLDER))?;
        let text = serde_json::to_string(grant).map_err(io::Error::other)?;
        let location = place(data_dir, grant).ok_or_else(|| io::Error::other("no text"))?;
        private::replace(&location, text.as_bytes())
    };
    write()
        .map_err(|error| format!("Could not save the permission; it applies to this session only: {error}."))
}

/// Removes a grant. A missing file is not an error.
pub fn remove(data_dir: &Path, grant: &StoredGrant) -> Result<(), String> {
    let Some(location) = place(data_dir, grant) else { return Ok(()) };
    match fs::remove_file(&location) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("Could not revoke the permission: {error}. Delete {}.", location.display()))
        }
        _ => Ok(()),
    }
}

fn place(data_dir: &Path, grant: &StoredGrant) -> Option<PathBuf> {
    let text = serde_json::to_string(grant).ok()?;
    Some(data_dir.join(FOLDER).join(content_hash(text.as_bytes()) + ".json"))
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::host::os::fixtures;
    use crate::model::{CommandAccess, Grant};

    fn grant(agent: &str, line: &str) -> StoredGrant {
        let command = CommandAccess { line: line.into(), cwd: "/w".into(), env: Vec::new() };
        StoredGrant { agent: agent.into(), folder: "/w".into(), grant: Grant::Run(command) }
    }

    #[test]
    fn grants_are_saved_privately_listed_and_revoked() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(list(data.path()), []);
        save(data.path(), &grant("b", "ls")).unwrap();
        save(data.path(), &grant("a", "ls")).unwrap();
        save(data.path(), &grant("a", "ls")).unwrap();
        let all = list(data.path());
        assert_eq!(all.iter().map(|(_, grant)| grant.agent.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let mode = |path: &Path| fixtures::mode(path);
        assert_eq!((mode(&all[0].0), mode(all[0].0.parent().unwrap())), (0o600, 0o700));
        remove(data.path(), &grant("a", "ls")).unwrap();
        remove(data.path(), &grant("a", "ls")).unwrap();
        assert_eq!(list(data.path()).len(), 1);
    }

    #[test]
    fn invalid_files_grant_nothing() {
        let data = tempfile::tempdir().unwrap();
        save(data.path(), &grant("a", "ls")).unwrap();
        let (path, _) = list(data.path()).remove(0);
        fs::copy(&path, path.with_file_name("other.json")).unwrap();
        fs::write(path.with_file_name("x.json"), "{").unwrap();
        assert_eq!(list(data.path()).len(), 1);
    }

    #[test]
    fn a_grant_that_cannot_be_saved_is_reported() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join(FOLDER), "").unwrap();
        assert!(save(data.path(), &grant("a", "ls")).unwrap_err().contains("this session only"));
    }
}
