//! Plans and does a restore, and undoes one that was interrupted.
//!
//! A record of the restore is on the disk before the first change and removed after the last.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};

use super::capture::unix_micros;
use super::compare::{self, Change, contents, id_of, missing, sizes};
use super::git::{Git, paths};
use super::place::{self, Found, Root, Trouble};
use super::{Action, Captured, Entry, Plan, SnapshotError, SnapshotId, Snapshots, Span, Step, files_of};
use crate::host::os::{files, private};
use crate::host::regular;

const MAX_JOURNAL_BYTES: u64 = 256 << 20;

/// Number of files that are in memory at once.
const GROUP: usize = 16;

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
    /// Paths that were changed by somebody else meanwhile, or whose old content was deleted. They were not touched.
    pub left: Vec<PathBuf>,
}

/// A path that a restore writes or deletes. Paths need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    path: OsString,
    old: Option<Entry>,
    new: Option<Entry>,
    /// The name of the temporary file beside it.
    temporary: OsString,
}

/// A restore in progress.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Journal {
    records: Vec<Record>,
    /// Folders that it creates, the outer ones first.
    folders: Vec<OsString>,
}

impl Journal {
    fn path(snapshots: &Snapshots) -> PathBuf {
        snapshots.at("restoring.json")
    }

    /// The journal of an interrupted restore.
    pub(super) fn read(snapshots: &Snapshots) -> Result<Option<Self>, SnapshotError> {
        let path = Self::path(snapshots);
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let journal = regular::read(&path, MAX_JOURNAL_BYTES).and_then(|b| serde_json::from_slice(&b).ok());
        let damaged = || io::Error::other("it is damaged. Compare the files, then delete it");
        journal.map(Some).ok_or_else(|| SnapshotError::file("read", &path)(damaged()))
    }

    /// Writes it durably.
    fn write(&self, snapshots: &Snapshots) -> Result<(), SnapshotError> {
        let path = Self::path(snapshots);
        let write = || private::replace(&path, &serde_json::to_vec(self)?);
        write().map_err(SnapshotError::file("write", &path))?;
        sync_parent(&path);
        Ok(())
    }

    fn remove(snapshots: &Snapshots) -> Result<(), SnapshotError> {
        let path = Self::path(snapshots);
        let remove = place::step().and_then(|()| std::fs::remove_file(&path));
        remove.map_err(SnapshotError::file("remove", &path))?;
        sync_parent(&path);
        Ok(())
    }
}

fn sync_parent(path: &Path) {
    let parent = path.parent().unwrap_or(Path::new("/"));
    if let Ok(folder) = Dir::open_ambient_dir(parent, ambient_authority()) {
        files::sync_folder(&folder);
    }
}

impl Record {
    fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// What the path is changed from and to.
    fn states(&self, forward: bool) -> (Option<&Entry>, Option<&Entry>) {
        let (old, new) = (self.old.as_ref(), self.new.as_ref());
        if forward { (old, new) } else { (new, old) }
    }
}

/// What happened to a path in the spans of a plan.
struct Course<'a> {
    /// What it was before the first span that changed it.
    to: Option<Entry>,
    /// The snapshot before that span.
    to_id: &'a SnapshotId,
    /// What it was after the last span.
    last: Option<Entry>,
    /// Whether it was changed between spans, too.
    is_broken: bool,
}

/// The paths that were changed, and those that were not, with the reason.
type Outcome = (Vec<PathBuf>, Vec<(PathBuf, String)>);

impl Snapshots {
    /// Plans to undo what happened in these spans, the oldest first. A path that was also changed between two of
    /// them, or after the last, is a conflict; one that was changed only then stays.
    ///
    /// # Errors
    /// There is no span, a snapshot is not in the store, or git failed. What is wrong with a single path is in its step.
    pub fn plan(&self, spans: &[Span]) -> Result<Plan, SnapshotError> {
        self.plan_since(spans, &|_, _| false, BTreeMap::new())
    }

    /// Like [`Self::plan`], without the changes in spans for which `is_accepted` is true (their positions), and with
    /// what the paths in `bases` were in these snapshots instead of before the first span.
    pub(super) fn plan_since<'a>(
        &self,
        spans: &'a [Span],
        is_accepted: &dyn Fn(&Path, usize) -> bool,
        mut bases: BTreeMap<PathBuf, (Entry, &'a SnapshotId)>,
    ) -> Result<Plan, SnapshotError> {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
            return Err(SnapshotError::Refused("There is nothing to restore".to_owned()));
        };
        let mut paths = BTreeMap::new();
        for (position, span) in spans.iter().enumerate() {
            if let Some(former) = position.checked_sub(1).and_then(|former| spans.get(former)) {
                for change in self.changes(&former.after, &span.before)? {
                    if let Some(known) = paths.get_mut(&change.path) {
                        let Course { last, is_broken, .. } = known;
                        (*last, *is_broken) = (change.after, true);
                    }
                }
            }
            for Change { path, before, after } in self.changes(&span.before, &span.after)? {
                if is_accepted(&path, position) {
                    continue;
                }
                let (to, to_id) = match bases.remove(&path) {
                    Some((entry, id)) => (Some(entry), id),
                    None => (before, &span.before),
                };
                let new = || Course { to, to_id, last: None, is_broken: false };
                paths.entry(path).or_insert_with(new).last = after;
            }
        }
        let git = self.git();
        let mut omitted = BTreeMap::new();
        for span in spans {
            if !omitted.contains_key(&span.before) {
                omitted.insert(&span.before, compare::omitted(&git, &span.before)?);
            }
        }
        let sizes = sizes(&git, paths.values().filter_map(|course| Some(&course.to.as_ref()?.id)))?;
        let root = Root::open(self)?;
        let existing = paths.iter().filter(|(_, course)| course.last.is_some());
        let files: BTreeSet<PathBuf> = existing.map(|(path, _)| path.clone()).collect();
        // A folder that was made in the spans, which may be empty when its files are deleted.
        let was_folder =
            |path: &Path| files.range(path.to_owned()..).next().is_some_and(|file| file.starts_with(path));
        let step = |(path, Course { to, to_id, last, is_broken }): (PathBuf, Course)| {
            let refused = |why: &str| Action::Refused(why.to_owned());
            let found = root.find(&path);
            let may_have = omitted.get(to_id).is_none_or(|omitted| omitted.may_have(&path));
            let action = match (&found, &to) {
                (Found::Folder, Some(_)) if last.is_none() && was_folder(&path) => Action::Write,
                (Found::Folder, _) => refused("it is a folder now"),
                (Found::Other(why), _) => refused(why),
                (found, to) if found.is(to.as_ref()) => Action::Nothing,
                (_, None) if may_have => {
                    refused("it may have existed then, but its content was not captured")
                }
                (_, Some(to)) if !sizes.contains_key(&to.id) => {
                    refused("its content is no longer in the store of snapshots")
                }
                _ if is_broken => Action::Conflict,
                (found, Some(_)) if found.is(last.as_ref()) => Action::Write,
                (found, None) if found.is(last.as_ref()) => Action::Delete,
                _ => Action::Conflict,
            };
            Step { path, from: last, to, disk: found.entry().cloned(), action }
        };
        let steps = paths.into_iter().filter(|(_, course)| course.to != course.last).map(step).collect();
        Ok(Plan { from: last.after.clone(), to: first.before.clone(), steps })
    }

    /// Restores the chosen paths of a plan, after capturing the present state. Other paths are not touched, and a
    /// chosen path is only written if the disk is as it was planned.
    ///
    /// # Errors
    /// The present state cannot be captured, a content is not in the store, or a file cannot be written. Then the
    /// paths that were written are brought back; if that fails too, [`Self::recover`] does it later.
    pub fn restore(&self, session: &str, plan: &Plan, chosen: &[PathBuf]) -> Result<Restored, SnapshotError> {
        let _lock = self.lock()?;
        if Journal::read(self)?.is_some() {
            return Err(SnapshotError::Interrupted);
        }
        let steps: BTreeMap<&Path, &Step> =
            plan.steps.iter().map(|step| (step.path.as_path(), step)).collect();
        let mut refused = Vec::new();
        let mut targets = BTreeMap::new();
        for path in chosen {
            match steps.get(path.as_path()).map(|step| (step, &step.action)) {
                None => refused.push((path.clone(), "it is not in the plan".to_owned())),
                Some((_, Action::Refused(why))) => refused.push((path.clone(), why.clone())),
                Some((_, Action::Nothing)) => {}
                Some((step, _)) => drop(targets.insert(path.clone(), *step)),
            }
        }
        let extra: Vec<PathBuf> = targets.keys().cloned().collect();
        let before = self.capture_locked(session, &extra)?;
        // What is replaced must be in the snapshot that was captured now.
        let now = self.changes(&plan.from, &before.id)?;
        let now: BTreeMap<&Path, &Option<Entry>> =
            now.iter().map(|change| (change.path.as_path(), &change.after)).collect();
        targets.retain(|path, step| {
            let is_saved = *now.get(path.as_path()).copied().unwrap_or(&step.from) == step.disk;
            if !is_saved {
                let why = "it was changed meanwhile, or cannot be captured";
                refused.push((path.clone(), why.to_owned()));
            }
            is_saved
        });
        if targets.is_empty() {
            return Ok(Restored { before, changed: Vec::new(), refused });
        }
        let git = self.git();
        let record = |step: &&Step| {
            let name = id_of(files::bytes(step.path.as_os_str()));
            let temporary = OsString::from(format!(".parlor-{:x}-{}", unix_micros(), &name.as_str()[..16]));
            let path = step.path.clone().into_os_string();
            Record { path, old: step.disk.clone(), new: step.to.clone(), temporary }
        };
        let records: Vec<Record> = targets.values().map(record).collect();
        let journal = Journal { folders: self.missing_folders(&records), records };
        let emptied = folders_to_remove(&git, plan, &journal.records)?;
        journal.write(self)?;
        match self.apply(&git, &journal.records.iter().collect::<Vec<_>>(), &emptied, true) {
            Ok((changed, more)) => {
                Journal::remove(self)?;
                refused.extend(more);
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
        Journal::read(self)?.map(|journal| self.undo(&journal)).transpose()
    }

    /// The folders that must be created, the outer ones first.
    fn missing_folders(&self, records: &[Record]) -> Vec<OsString> {
        let folders: BTreeSet<&Path> =
            records.iter().filter(|record| record.new.is_some()).flat_map(parents).collect();
        let is_missing = |folder: &&Path| !self.folder.join(folder).is_dir();
        folders.into_iter().filter(is_missing).map(|folder| folder.as_os_str().to_owned()).collect()
    }

    /// Brings paths to their new state, or back to the old one (not `forward`; then a missing content is no error).
    /// Deletes first, because a file may take the place of a folder.
    fn apply(
        &self,
        git: &Git,
        records: &[&Record],
        emptied: &[&Path],
        forward: bool,
    ) -> Result<Outcome, SnapshotError> {
        let root = Root::open(self)?;
        let failed = |path: &Path, error| SnapshotError::file("write", &self.folder.join(path))(error);
        let (mut changed, mut refused) = (Vec::new(), Vec::new());
        let mut note = |path: &Path, result| match result {
            Ok(()) => {
                changed.push(path.to_owned());
                Ok(())
            }
            Err(Trouble::Refused(why)) => {
                refused.push((path.to_owned(), why));
                Ok(())
            }
            Err(Trouble::Failed(error)) => Err(failed(path, error)),
        };
        for record in records {
            if let (from, None) = record.states(forward) {
                note(record.path(), root.remove(record.path(), from))?;
            }
        }
        for folder in emptied {
            if let Err(Trouble::Failed(error)) = root.remove_empty(folder) {
                return Err(failed(folder, error));
            }
        }
        let written: Vec<_> = records.iter().filter_map(|r| Some((r, r.states(forward).1?))).collect();
        for group in written.chunks(GROUP) {
            let contents = contents(git, group.iter().map(|(_, to)| &to.id))?;
            for (record, to) in group {
                let names = (record.path(), record.temporary.as_os_str());
                let result = match contents.get(&to.id) {
                    Some(bytes) => root.write(names, record.states(forward).0, (to.kind, bytes)),
                    None if forward => return Err(missing(&to.id)),
                    None => Err(Trouble::Refused("its content is missing".to_owned())),
                };
                note(record.path(), result)?;
            }
        }
        changed.sort();
        Ok((changed, refused))
    }

    /// Brings the paths of a journal back, unless all are new. Paths that are neither old nor new are not touched.
    fn undo(&self, journal: &Journal) -> Result<Recovered, SnapshotError> {
        let root = Root::open(self)?;
        let (mut new, mut left, mut paths) = (Vec::new(), Vec::new(), Vec::new());
        for record in &journal.records {
            let path = record.path();
            if let Err(Trouble::Failed(error)) = root.remove_temporary(path, &record.temporary) {
                return Err(SnapshotError::file("recover", &self.folder.join(path))(error));
            }
            // It became a folder, and comes back when what takes its place is deleted.
            let is_blocked = record.old.is_some() && journal.folders.contains(&record.path);
            match root.find(path) {
                found if found.is(record.new.as_ref()) => new.push(record),
                found if found.is(record.old.as_ref()) => paths.push(path.to_owned()),
                _ if is_blocked => new.push(record),
                _ => left.push(path.to_owned()),
            }
        }
        let is_complete = new.len() == journal.records.len();
        if is_complete {
            paths.extend(new.iter().map(|record| record.path().to_owned()));
        } else {
            let folders: Vec<&Path> = journal.folders.iter().rev().map(Path::new).collect();
            let (changed, refused) = self.apply(&self.git(), &new, &folders, false)?;
            paths.extend(changed);
            left.extend(refused.into_iter().map(|(path, _)| path));
        }
        Journal::remove(self)?;
        paths.sort();
        Ok(Recovered { is_complete, paths, left })
    }
}

/// The folders above a path.
fn parents(record: &Record) -> impl Iterator<Item = &Path> {
    record.path().ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty())
}

/// The folders that did not exist in `to` and may be empty after the restore, the inner ones first.
fn folders_to_remove<'a>(
    git: &Git,
    plan: &Plan,
    records: &'a [Record],
) -> Result<Vec<&'a Path>, SnapshotError> {
    let deleted: BTreeSet<&Path> =
        records.iter().filter(|record| record.new.is_none()).flat_map(parents).collect();
    if deleted.is_empty() {
        return Ok(Vec::new());
    }
    let folders = |id: &SnapshotId| -> Result<BTreeSet<PathBuf>, SnapshotError> {
        let args = ["ls-tree", "-d", "-r", "-z", "--name-only", "--full-tree", &files_of(id)];
        Ok(paths(&git.read("list the folders of the snapshot", args, Vec::new())?).collect())
    };
    let (from, to, omitted) = (folders(&plan.from)?, folders(&plan.to)?, compare::omitted(git, &plan.to)?);
    let is_new =
        |folder: &&Path| from.contains(*folder) && !to.contains(*folder) && !omitted.may_have_folder(folder);
    Ok(deleted.into_iter().rev().filter(is_new).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::snapshots::Kind;

    #[test]
    fn a_journal_is_read_completely_or_not() {
        let entry = |kind| Some(Entry { kind, id: id_of(b"x") });
        let record = |path: &[u8], old, new| Record {
            path: files::from_bytes(path),
            old,
            new,
            temporary: ".parlor-1".into(),
        };
        let journal = Journal {
            records: vec![
                record(b"a\n\xff", entry(Kind::File), entry(Kind::Program)),
                record(b"end", None, entry(Kind::Link)),
            ],
            folders: vec!["x/y".into()],
        };
        let bytes = serde_json::to_vec(&journal).unwrap();
        assert_eq!(serde_json::from_slice::<Journal>(&bytes).unwrap(), journal);
        for end in 0..bytes.len() - 1 {
            assert!(serde_json::from_slice::<Journal>(&bytes[..end]).is_err(), "{end}");
        }
    }
}
