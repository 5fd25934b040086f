//! The folder of the demo agent: a JSON file per session, and scratch folders.
//!
//! A scratch folder outlives the agent, so that a resumed session finds its files; old ones are removed.
//! Invariant: no id leads to a path outside of the folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::session::Kept;
use crate::private;

const WORK: &str = "work";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A scratch folder in which nothing was made for so long goes. All in it can be made again.
const KEEP_WORK: Duration = DAY.saturating_mul(30);
/// A session in which nothing was said goes after this.
const KEEP_UNUSED: Duration = DAY;

#[derive(Debug)]
pub(super) struct DemoSessions {
    dir: PathBuf,
}

impl DemoSessions {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    pub(super) fn save(&self, kept: &Kept) -> io::Result<()> {
        private::replace(&self.file(&kept.id)?, &serde_json::to_vec(kept)?)
    }

    pub(super) fn load(&self, id: &str) -> Option<Kept> {
        read(&self.file(id).ok()?).filter(|kept| kept.id == id)
    }

    /// All of them, the latest first.
    pub(super) fn list(&self) -> Vec<Kept> {
        let mut all: Vec<Kept> = self.files().iter().filter_map(|path| read(path)).collect();
        all.sort_by(|a, b| (&b.updated_at, &b.id).cmp(&(&a.updated_at, &a.id)));
        all
    }

    /// Forgets a session and its scratch folder. That they are gone already is fine.
    pub(super) fn delete(&self, id: &str) -> io::Result<()> {
        is_fine_if_gone(fs::remove_dir_all(self.work(id)?))?;
        is_fine_if_gone(fs::remove_file(self.file(id)?))
    }

    /// The scratch folder of a session; it is there after this.
    pub(super) fn scratch(&self, id: &str) -> io::Result<PathBuf> {
        let dir = self.work(id)?;
        private::make_folder(&dir)?;
        Ok(dir)
    }

    /// Clears away old scratch folders and sessions in which nothing was ever said. What cannot be removed stays.
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
            if read(file).is_some_and(|kept| kept.history.is_empty()) {
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

/// An id comes from outside and must not lead elsewhere.
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

    fn kept(id: &str, is_used: bool) -> Kept {
        let mut kept = Kept::new(id.to_owned(), "/".to_owned());
        kept.history.extend(is_used.then(|| json!({"sessionUpdate": "agent_message_chunk"})));
        kept
    }

    #[test]
    fn a_session_goes_with_its_scratch_folder_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = DemoSessions::new(dir.path().join("demo"));
        for id in ["demo-1", "demo-2"] {
            shelf.save(&kept(id, true)).unwrap();
            fs::write(shelf.scratch(id).unwrap().join("greeting.rs"), "hello").unwrap();
        }
        shelf.delete("demo-1").unwrap();
        shelf.delete("demo-1").unwrap();
        let scratch = dir.path().join("demo").join(WORK);
        assert!(shelf.load("demo-1").is_none() && !scratch.join("demo-1").exists());
        assert!(shelf.load("demo-2").is_some() && scratch.join("demo-2").join("greeting.rs").exists());
        for id in ["", "..", "../demo-2", "/", "work/demo-2"] {
            assert!(shelf.delete(id).is_err() && shelf.scratch(id).is_err(), "{id}");
        }
    }

    #[test]
    fn what_nobody_comes_back_to_is_cleared_away() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = DemoSessions::new(dir.path().to_owned());
        shelf.prune(SystemTime::now());
        shelf.save(&kept("demo-1", true)).unwrap();
        shelf.save(&kept("demo-2", false)).unwrap();
        let work = shelf.scratch("demo-1").unwrap();
        fs::write(work.join("greeting.rs"), "hello").unwrap();
        let ids = || shelf.list().into_iter().map(|kept| kept.id).collect::<std::collections::BTreeSet<_>>();

        shelf.prune(SystemTime::now());
        assert_eq!(ids().len(), 2, "an unused one may be about to be used");
        shelf.prune(SystemTime::now() + DAY * 2);
        assert_eq!(ids(), ["demo-1".to_owned()].into());
        assert!(work.is_dir());
        shelf.prune(SystemTime::now() + DAY * 31);
        assert_eq!(ids(), ["demo-1".to_owned()].into(), "what was said is kept");
        assert!(!work.exists());
    }
}
