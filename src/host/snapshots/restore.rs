//! Restores paths of a plan, and undoes a restore that was interrupted.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::capture::unix_micros;
use super::error::SnapshotError;
use super::journal::{Journal, Record};
use super::place::{Root, Trouble};
use super::plan::{Action, Plan, Step};
use super::{Captured, Entry, Kind, Snapshots};

/// What is written for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// Its state in the snapshot. In a conflict, this replaces what the user wrote.
    Snapshot,
    /// The merged text of a conflict.
    Merged,
}

/// A path that the user chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// As in the plan.
    pub path: PathBuf,
    pub take: Take,
}

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The state before, to which another restore returns.
    pub before: Captured,
    /// The paths that were written or deleted.
    pub changed: Vec<PathBuf>,
    /// The chosen paths that are unchanged, with the reason; not those that needed no change.
    pub refused: Vec<(PathBuf, String)>,
}

/// What was done about an interrupted restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The restore was complete; otherwise its paths are as before it.
    pub is_complete: bool,
    pub paths: Vec<PathBuf>,
    /// Paths that were changed by somebody else meanwhile, and were not touched.
    pub left: Vec<PathBuf>,
}

/// A chosen path with its new content.
struct Target {
    record: Record,
    /// A merged text, which is not in the store.
    merged: Option<Vec<u8>>,
}

impl Snapshots {
    /// Restores the chosen paths of a plan, after capturing the present state. Other paths are not touched, and a
    /// chosen path is only written if the disk is as it was planned.
    ///
    /// # Errors
    /// The present state cannot be captured, a content is not in the store, or a file cannot be written. Then the
    /// paths that were written are brought back; if that fails too, [`Self::recover`] does it later.
    pub fn restore(&self, session: &str, plan: &Plan, chosen: &[Choice]) -> Result<Restored, SnapshotError> {
        let _lock = self.lock()?;
        if Journal::read(self)?.is_some() {
            return Err(SnapshotError::Interrupted);
        }
        let steps: BTreeMap<&Path, &Step> =
            plan.steps.iter().map(|step| (step.path.as_path(), step)).collect();
        let mut refused = Vec::new();
        let mut targets = BTreeMap::new();
        for Choice { path, take } in chosen {
            match steps
                .get(path.as_path())
                .ok_or("it is not in the plan".to_owned())
                .and_then(|s| self.target(s, *take))
            {
                Ok(target) => targets.extend(target.map(|target| (path.clone(), target))),
                Err(why) => refused.push((path.clone(), why)),
            }
        }
        let extra: Vec<PathBuf> = targets.keys().cloned().collect();
        let before = self.capture_locked(session, &extra)?;
        // What is replaced must be in the snapshot that was captured now.
        let now = self.changes(&plan.from, &before.id)?;
        let now: BTreeMap<&Path, &Option<Entry>> =
            now.iter().map(|change| (change.path.as_path(), &change.after)).collect();
        targets.retain(|path, target| {
            let saved = now.get(path.as_path()).copied().unwrap_or(&steps[path.as_path()].from);
            let is_saved = *saved == target.record.old;
            if !is_saved {
                let why = "it was changed meanwhile, or cannot be captured";
                refused.push((path.clone(), why.to_owned()));
            }
            is_saved
        });
        let targets: Vec<Target> = targets.into_values().collect();
        let mut journal = Journal {
            records: targets.iter().map(|target| target.record.clone()).collect(),
            folders: Vec::new(),
        };
        if targets.is_empty() {
            return Ok(Restored { before, changed: Vec::new(), refused });
        }
        journal.folders = self.missing_folders(&targets);
        // A content that is missing is found before anything is written.
        let stored = targets.iter().filter(|target| target.merged.is_none());
        self.groups(stored.filter_map(|t| Some(((), &t.record.new.as_ref()?.id))).collect())?;
        let emptied = self.folders_to_remove(plan, &targets)?;
        journal.write(self)?;
        match self.apply(&targets, &emptied, &mut refused) {
            Ok(changed) => {
                Journal::remove(self)?;
                Ok(Restored { before, changed, refused })
            }
            Err(error) => {
                // If this fails too, the journal stays.
                let _ = self.undo(&journal);
                Err(error)
            }
        }
    }

    /// Finishes an interrupted restore: undoes it, unless it was complete. `None`: there was none. Call it before
    /// anything else after opening the snapshots.
    ///
    /// # Errors
    /// A file cannot be written or the journal is damaged. Call it again when this is corrected.
    pub fn recover(&self) -> Result<Option<Recovered>, SnapshotError> {
        let _lock = self.lock()?;
        match Journal::read(self)? {
            Some(journal) => self.undo(&journal).map(Some),
            None => Ok(None),
        }
    }

    /// What is written for a step; `None`: nothing. An error: the reason why it is refused.
    fn target(&self, step: &Step, take: Take) -> Result<Option<Target>, String> {
        let (new, merged) = match (&step.action, take) {
            (Action::Nothing, _) => return Ok(None),
            (Action::Refused(why), _) => return Err(why.clone()),
            (Action::Conflict { merged: Some(text) }, Take::Merged) => {
                let kind = step.disk.as_ref().map_or(Kind::File, |entry| entry.kind);
                (Some(Entry { kind, id: self.id_of(text) }), Some(text.clone()))
            }
            (_, Take::Merged) => return Err("there is no merged text for it".to_owned()),
            (_, Take::Snapshot) => (step.to.clone(), None),
        };
        let name = self.id_of(step.path.as_os_str().as_encoded_bytes());
        let temporary = OsString::from(format!(".parlor-{:x}-{}", unix_micros(), &name.as_str()[..16]));
        let record = Record { path: step.path.clone(), old: step.disk.clone(), new, temporary };
        Ok((record.old != record.new).then_some(Target { record, merged }))
    }

    /// The folders that must be created, the outer ones first.
    fn missing_folders(&self, targets: &[Target]) -> Vec<PathBuf> {
        let written = targets.iter().filter(|target| target.record.new.is_some());
        let parents = written.flat_map(|target| target.record.path.ancestors().skip(1));
        let folders: BTreeSet<&Path> = parents.filter(|parent| !parent.as_os_str().is_empty()).collect();
        let is_missing = |folder: &&Path| !self.folder.join(folder).is_dir();
        folders.into_iter().filter(is_missing).map(Path::to_owned).collect()
    }

    /// The folders that did not exist in `to` and may be empty after the restore, the inner ones first.
    fn folders_to_remove(&self, plan: &Plan, targets: &[Target]) -> Result<Vec<PathBuf>, SnapshotError> {
        let deleted = targets.iter().filter(|target| target.record.new.is_none());
        let parents: BTreeSet<&Path> = deleted
            .flat_map(|t| t.record.path.ancestors().skip(1))
            .filter(|p| !p.as_os_str().is_empty())
            .collect();
        if parents.is_empty() {
            return Ok(Vec::new());
        }
        let (from, to) = (self.folders(&plan.from)?, self.folders(&plan.to)?);
        let omitted = self.omitted(&plan.to)?;
        let is_new = |folder: &&Path| {
            from.contains(*folder) && !to.contains(*folder) && !omitted.may_have_folder(folder)
        };
        Ok(parents.into_iter().rev().filter(is_new).map(Path::to_owned).collect())
    }

    /// Deletes first, because a file may take the place of a folder.
    fn apply(
        &self,
        targets: &[Target],
        emptied: &[PathBuf],
        refused: &mut Vec<(PathBuf, String)>,
    ) -> Result<Vec<PathBuf>, SnapshotError> {
        let root = Root::open(self)?;
        let mut changed = Vec::new();
        let mut note = |record: &Record, result| match result {
            Ok(()) => {
                changed.push(record.path.clone());
                Ok(())
            }
            Err(Trouble::Refused(why)) => {
                refused.push((record.path.clone(), why));
                Ok(())
            }
            Err(Trouble::Failed(error)) => {
                Err(SnapshotError::file("write", &self.folder.join(&record.path))(error))
            }
        };
        for Target { record, .. } in targets.iter().filter(|target| target.record.new.is_none()) {
            note(record, root.remove(&record.path, record.old.as_ref()))?;
        }
        for folder in emptied {
            if let Err(Trouble::Failed(error)) = root.remove_empty(folder) {
                return Err(SnapshotError::file("remove", &self.folder.join(folder))(error));
            }
        }
        let mut write = |record: &Record, new: &Entry, bytes: &[u8]| {
            note(record, root.write(&record.path, &record.temporary, (new, bytes), record.old.as_ref()))
        };
        let mut stored = Vec::new();
        for Target { record, merged } in targets {
            match (&record.new, merged) {
                (Some(new), Some(merged)) => write(record, new, merged)?,
                (Some(new), None) => stored.push(((record, new), &new.id)),
                (None, _) => {}
            }
        }
        for group in self.groups(stored)? {
            let contents = self.contents(&group.iter().map(|(_, id)| *id).collect::<Vec<_>>())?;
            for ((record, new), id) in group {
                let bytes = contents.get(id).ok_or_else(|| super::compare::missing(id))?;
                write(record, new, bytes)?;
            }
        }
        changed.sort();
        Ok(changed)
    }

    /// Brings the paths of a journal back, unless all are new. Paths that are neither old nor new are not touched.
    fn undo(&self, journal: &Journal) -> Result<Recovered, SnapshotError> {
        let root = Root::open(self)?;
        let failed = |path: &Path, trouble| match trouble {
            Trouble::Failed(error) => SnapshotError::file("recover", &self.folder.join(path))(error),
            Trouble::Refused(why) => {
                SnapshotError::file("recover", &self.folder.join(path))(std::io::Error::other(why))
            }
        };
        let (mut new, mut left, mut paths) = (Vec::new(), Vec::new(), Vec::new());
        for record in &journal.records {
            root.remove_temporary(&record.path, &record.temporary)
                .map_err(|error| failed(&record.path, error))?;
            match root.find(&record.path) {
                Ok(found) if found.is(record.new.as_ref()) => new.push(record),
                Ok(found) if found.is(record.old.as_ref()) => paths.push(record.path.clone()),
                _ if is_blocked(&record.path, record.old.as_ref(), journal) => {
                    // It is absent, and comes back when what takes its place is deleted.
                    new.push(record);
                }
                _ => left.push(record.path.clone()),
            }
        }
        let is_complete = new.len() == journal.records.len();
        if is_complete {
            paths = new.iter().map(|record| record.path.clone()).collect();
        } else {
            let (deleted, written): (Vec<&Record>, Vec<&Record>) =
                new.iter().partition(|record| record.old.is_none());
            let mut note = |record: &Record, result| match result {
                Ok(()) => {
                    paths.push(record.path.clone());
                    Ok(())
                }
                Err(Trouble::Refused(_)) => {
                    left.push(record.path.clone());
                    Ok(())
                }
                Err(error) => Err(failed(&record.path, error)),
            };
            for record in deleted {
                note(record, root.remove(&record.path, record.new.as_ref()))?;
            }
            for folder in journal.folders.iter().rev() {
                root.remove_empty(folder).map_err(|error| failed(folder, error))?;
            }
            let old = written.into_iter().filter_map(|record| Some((record, record.old.as_ref()?)));
            for group in self.groups(old.map(|(record, old)| ((record, old), &old.id)).collect())? {
                let contents = self.contents(&group.iter().map(|(_, id)| *id).collect::<Vec<_>>())?;
                for ((record, old), id) in group {
                    let bytes = contents.get(id).ok_or_else(|| super::compare::missing(id))?;
                    let entry = (old, bytes.as_slice());
                    note(record, root.write(&record.path, &record.temporary, entry, record.new.as_ref()))?;
                }
            }
        }
        Journal::remove(self)?;
        paths.sort();
        Ok(Recovered { is_complete, paths, left })
    }
}

/// Whether a path has become a folder that the restore created.
fn is_blocked(path: &Path, old: Option<&Entry>, journal: &Journal) -> bool {
    old.is_some() && journal.folders.iter().any(|folder| folder == path)
}
