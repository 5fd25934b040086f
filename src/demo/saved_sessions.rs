//! The folder of the demo agent: a JSON file per session, and scratch folders.
//!
//! Scratch folders remain after the agent exits, so that a resumed session finds its files; old ones are
//! removed.
//!
//! Invariants: no session id leads to a path outside the folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::session::Kept;
use crate::host::os::private;

const WORK: &str = "work";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Scratch folders that were not modified for this time are removed. Their files can be recreated.
const KEEP_WORK: Duration = DAY.saturating_mul(30);
/// Empty sessions are removed after this time.
const KEEP_UNUSED: Duration = DAY;

#[derive(Debug)]
pub(super) struct DemoSessions {
    dir: PathBuf,
}

impl DemoSessions {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    pub(super) fn save(&self, saved: &Kept) -> io::Result<()> {
        private::replace(&self.file(&saved.id)?, &serde_json::to_vec(saved)?)
    }

    pub(super) fn load(&self, id: &str) -> Option<Kept> {
        read(&self.file(id).ok()?).filter(|saved| saved.id == id)
    }

    /// All sessions, latest first.
    pub(super) fn list(&self) -> Vec<Kept> {
        let mut all: Vec<Kept> = self.files().iter().filter_map(|path| read(path)).collect();
        all.sort_by(|a, b| (&b.updated_at, &b.id).cmp(&(&a.updated_at, &a.id)));
        all
    }

    /// Deletes a session and its scratch folder, if they exist.
    pub(super) fn delete(&self, id: &str) -> io::Result<()> {
        is_fine_if_gone(fs::remove_dir_all(self.work(id)?))?;
        is_fine_if_gone(fs::remove_file(self.file(id)?))
    }

    /// The scratch folder of a session; created if it does not exist.
    pub(super) fn scratch(&self, id: &str) -> io::Result<PathBuf> {
        let dir = self.work(id)?;
        private::make_folder(&dir)?;
        Ok(dir)
    }

    /// Removes old scratch folders and empty sessions. Errors are ignored.
    pub(super) fn prune(&self, now: SystemTime) {
        let is_old = |path: &Path, age: Duration| {
            let changed = fs::symlink_metadata(path).and_then(|meta| meta.modified());
            changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|passed| passed > age))
        };
        let works = fs::read_dir(self.dir.join(WORK)).into_iter().flatten().flatten();
        for work in works.map(|entry| entry.path()).filter(|path| is_old(path, KEEP_WORK)) {
            let _ = fs::remove_dir_all(work);
        }
        for file in self.files().iter().filter(|path| is_old(path, KEEP_UNUSED)) {
            if read(file).is_some_and(|saved| saved.history.is_empty()) {
                let _ = fs::remove_file(file);
            }
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let is_json = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
        entries.map(|entry| entry.path()).filter(is_json).collect()
    }

    fn file(&self, id: &str) -> io::Result<PathBuf> {
        Ok(self.dir.join(name_of(id)?).with_extension("json"))
    }

    fn work(&self, id: &str) -> io::Result<PathBuf> {
        Ok(self.dir.join(WORK).join(name_of(id)?))
    }
}

fn read(file: &Path) -> Option<Kept> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// Rejects ids with path characters, because they come from the client.
fn name_of(id: &str) -> io::Result<&str> {
    if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a valid session id"));
    }
    Ok(id)
}

fn is_fine_if_gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn session(id: &str, is_used: bool) -> Kept {
        let mut saved = Kept::new(id.to_owned(), "/".to_owned());
        saved.history.extend(is_used.then(|| json!({"sessionUpdate": "agent_message_chunk"})));
        saved
    }

    #[test]
    fn deleting_a_session_removes_only_its_scratch_folder() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = DemoSessions::new(dir.path().join("demo"));
        for id in ["demo-1", "demo-2"] {
            sessions.save(&session(id, true)).unwrap();
            fs::write(sessions.scratch(id).unwrap().join("greeting.rs"), "hello").unwrap();
        }
        sessions.delete("demo-1").unwrap();
        sessions.delete("demo-1").unwrap();
        let scratch = dir.path().join("demo").join(WORK);
        assert!(sessions.load("demo-1").is_none() && !scratch.join("demo-1").exists());
        assert!(sessions.load("demo-2").is_some() && scratch.join("demo-2").join("greeting.rs").exists());
        for id in ["", "..", "../demo-2", "/", "work/demo-2"] {
            assert!(sessions.delete(id).is_err() && sessions.scratch(id).is_err(), "{id}");
        }
    }

    #[test]
    fn old_scratch_folders_and_empty_sessions_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = DemoSessions::new(dir.path().to_owned());
        sessions.prune(SystemTime::now());
        sessions.save(&session("demo-1", true)).unwrap();
        sessions.save(&session("demo-2", false)).unwrap();
        let work = sessions.scratch("demo-1").unwrap();
        fs::write(work.join("greeting.rs"), "hello").unwrap();
        let ids =
            || sessions.list().into_iter().map(|saved| saved.id).collect::<std::collections::BTreeSet<_>>();

        sessions.prune(SystemTime::now());
        assert_eq!(ids().len(), 2, "a new empty session may still be used");
        sessions.prune(SystemTime::now() + DAY * 2);
        assert_eq!(ids(), ["demo-1".to_owned()].into());
        assert!(work.is_dir());
        sessions.prune(SystemTime::now() + DAY * 31);
        assert_eq!(ids(), ["demo-1".to_owned()].into(), "sessions with history are preserved");
        assert!(!work.exists());
    }
}
