//! Plans a restore: compares each path on the disk with both snapshots. Changes nothing.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::compare::Change;
use super::error::SnapshotError;
use super::place::{Found, IS_FOLDER, Root};
use super::{Entry, Kind, SnapshotId, Snapshots};
use crate::host::os::private;

/// Maximum size of each text of a merge.
const MAX_MERGE_BYTES: usize = 1 << 20;

/// What a restore does with a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It is as in the snapshot already.
    Nothing,
    Write,
    Delete,
    /// It is neither as in `from` nor as in `to`. `merged`: the text on the disk with the change from `from` to `to`,
    /// if that merges without conflict.
    Conflict {
        merged: Option<Vec<u8>>,
    },
    /// It cannot be restored, with the reason.
    Refused(String),
}

/// A path of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Relative to the folder.
    pub path: PathBuf,
    pub from: Option<Entry>,
    pub to: Option<Entry>,
    /// What it is on the disk; `None` also if it was refused.
    pub disk: Option<Entry>,
    pub action: Action,
}

/// What a restore from the state of one snapshot to the state of another would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub from: SnapshotId,
    pub to: SnapshotId,
    /// In the order of their names; only paths that differ between the snapshots.
    pub steps: Vec<Step>,
}

impl Snapshots {
    /// Plans to bring paths from their state in `from` to that in `to`. `paths`: only these (absolute, or relative to
    /// the folder); `None`: all that differ.
    ///
    /// # Errors
    /// A snapshot is not in the store, or git failed. What is wrong with a single path is in its step.
    pub fn plan(
        &self,
        paths: Option<&[PathBuf]>,
        from: &SnapshotId,
        to: &SnapshotId,
    ) -> Result<Plan, SnapshotError> {
        let wanted: Option<BTreeSet<PathBuf>> =
            paths.map(|paths| paths.iter().filter_map(|path| self.relative(path)).collect());
        let is_wanted = |path: &Path| wanted.as_ref().is_none_or(|wanted| wanted.contains(path));
        let mut changes = self.changes(from, to)?;
        changes.retain(|change| is_wanted(&change.path));
        let omitted = self.omitted(to)?;
        let written = changes.iter().filter_map(|change| Some(&change.after.as_ref()?.id));
        let sizes = self.sizes(written, self.deadline())?;
        let root = Root::open(self)?;
        let files: BTreeSet<PathBuf> = changes
            .iter()
            .filter(|change| change.before.is_some())
            .map(|change| change.path.clone())
            .collect();
        // A folder of `from`, which may be empty when its files are deleted.
        let was_folder =
            |path: &Path| files.range(path.to_owned()..).next().is_some_and(|file| file.starts_with(path));
        let mut steps = Vec::new();
        for Change { path, before, after, .. } in changes {
            let found = root.find(&path);
            let disk = found.as_ref().ok().and_then(Found::entry).cloned();
            let action = match (&found, &after) {
                (Ok(Found::Folder), Some(_)) if before.is_none() && was_folder(&path) => Action::Write,
                (Ok(Found::Folder), _) => Action::Refused(IS_FOLDER.to_owned()),
                (Err(why) | Ok(Found::Other(why)), _) => Action::Refused(why.clone()),
                (Ok(found), after) if found.is(after.as_ref()) => Action::Nothing,
                (_, None) if omitted.may_have(&path) => {
                    Action::Refused("it may have existed then, but its content was not captured".to_owned())
                }
                (_, Some(after)) if !sizes.contains_key(&after.id) => {
                    Action::Refused("its content is no longer in the store of snapshots".to_owned())
                }
                (Ok(found), Some(_)) if found.is(before.as_ref()) => Action::Write,
                (Ok(found), None) if found.is(before.as_ref()) => Action::Delete,
                (Ok(found), _) => {
                    Action::Conflict { merged: self.merge(found, before.as_ref(), after.as_ref())? }
                }
            };
            steps.push(Step { path, from: before, to: after, disk, action });
        }
        Ok(Plan { from: from.clone(), to: to.clone(), steps })
    }

    /// Applies the change between two texts to the text on the disk; `None`: not possible.
    fn merge(
        &self,
        disk: &Found,
        before: Option<&Entry>,
        after: Option<&Entry>,
    ) -> Result<Option<Vec<u8>>, SnapshotError> {
        let (Found::Entry { bytes: Some(current), .. }, Some(before), Some(after)) = (disk, before, after)
        else {
            return Ok(None);
        };
        if before.kind == Kind::Link || after.kind == Kind::Link {
            return Ok(None);
        }
        let contents = self.contents(&[&before.id, &after.id])?;
        let (Some(base), Some(other)) = (contents.get(&before.id), contents.get(&after.id)) else {
            return Ok(None);
        };
        let texts = [current, base, other];
        let is_text = |text: &&Vec<u8>| text.len() <= MAX_MERGE_BYTES && !text.contains(&0);
        if !texts.iter().all(is_text) {
            return Ok(None);
        }
        let failed =
            |error| SnapshotError::file("create a temporary folder in", Path::new("the system"))(error);
        let folder = private::temporary_folder().map_err(failed)?;
        let mut args = vec!["merge-file".into(), "-p".into(), "-q".into(), "--".into()];
        for (name, text) in ["disk", "from", "to"].iter().zip(texts) {
            let path = folder.path().join(name);
            private::create_new(&path)
                .and_then(|mut file| file.write_all(text))
                .map_err(SnapshotError::file("write", &path))?;
            args.push(path.into_os_string());
        }
        let output = self.git.run(args, Vec::new(), self.deadline())?;
        // Other codes are the number of conflicts, or an error.
        Ok((output.code == Some(0)).then_some(output.stdout))
    }
}
