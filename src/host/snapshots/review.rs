//! Review of changes: parts of a plan are reverted, or accepted and left out of the next plan.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use super::capture::{Omitted, unix_micros};
use super::compare::{contents, id_of, missing};
use super::git::split;
use super::{
    Entry, Kind, ObjectId, Plan, SnapshotError, SnapshotId, Snapshots, Span, Step, files_of, id_of_bytes,
    kind_of_mode,
};
use crate::host::os::files;
use crate::host::regular;
use crate::model::content_hash;
use crate::model::hunk::{with_hunks, without_hunks};
use crate::model::snapshot::{Accepted, AcceptedPaths, Part, shown_path};

/// Maximum size of a text whose hunks are reverted or accepted on their own.
const MAX_BYTES: u64 = 1 << 20;

impl Snapshots {
    /// Plans to revert the changes of these turns, oldest first, that were not accepted.
    ///
    /// # Errors
    /// As for [`Self::plan`].
    pub fn review(&self, spans: &[(u32, Span)], accepted: &AcceptedPaths) -> Result<Plan, SnapshotError> {
        let (turns, spans): (Vec<u32>, Vec<Span>) = spans.iter().cloned().unzip();
        let is_accepted = |path: &Path, position: usize| {
            let by = accepted.get(path).filter(|accepted| accepted.base.is_none());
            by.is_some_and(|accepted| turns.get(position).is_some_and(|turn| *turn <= accepted.turn))
        };
        let mut bases = BTreeMap::new();
        for (path, Accepted { base, .. }) in accepted {
            // If the snapshot was pruned, the accepted changes are shown again.
            if let Some(base) = base
                && let Some(entry) = self.entry(base, path)?
            {
                bases.insert(path.clone(), (entry, base));
            }
        }
        self.plan_since(&spans, &is_accepted, bases)
    }

    /// The plan with steps that revert only the hunks of these parts.
    ///
    /// # Errors
    /// A file was changed since, its hunks are of another plan, or git failed.
    pub fn limited_to(&self, plan: &Plan, parts: &[Part]) -> Result<Plan, SnapshotError> {
        let mut plan = plan.clone();
        for Part { path, hunks } in parts.iter().filter(|part| !part.hunks.is_empty()) {
            let step = plan.steps.iter_mut().find(|step| step.path == *path);
            let step = step.ok_or_else(|| changed(path))?;
            let (old, new) = self.texts(step)?;
            let text = without_hunks(&old, &new, hunks).ok_or_else(|| changed(path))?;
            let kind = step.disk.as_ref().map_or(Kind::File, |entry| entry.kind);
            step.to = Some(Entry { kind, id: self.add(text)? });
        }
        Ok(plan)
    }

    /// Accepts a part of a plan. Returns a snapshot of the file with only the accepted changes; `None` if all are.
    ///
    /// # Errors
    /// As for [`Self::limited_to`], and if the name of the path cannot be recorded.
    pub fn accept(
        &self,
        session: &str,
        plan: &Plan,
        part: &Part,
    ) -> Result<Option<SnapshotId>, SnapshotError> {
        let Part { path, hunks } = part;
        if path.to_str().is_none() {
            let text = format!("{} cannot be accepted: its name is not UTF-8", shown_path(path));
            return Err(SnapshotError::Refused(text));
        }
        if hunks.is_empty() {
            return Ok(None);
        }
        let step = plan.steps.iter().find(|step| step.path == *path).ok_or_else(|| changed(path))?;
        let (old, new) = self.texts(step)?;
        let text = with_hunks(&old, &new, hunks).ok_or_else(|| changed(path))?;
        if text == new {
            return Ok(None);
        }
        let kind = step.to.as_ref().map_or(Kind::File, |entry| entry.kind);
        self.pin(session, path, &Entry { kind, id: self.add(text)? }).map(Some)
    }

    /// What the file of a step was, and what is on the disk.
    fn texts(&self, step: &Step) -> Result<(String, String), SnapshotError> {
        let (Some(to), Some(disk)) = (&step.to, &step.disk) else { return Err(changed(&step.path)) };
        let old = contents(&self.git(), [&to.id])?.remove(&to.id).ok_or_else(|| missing(&to.id))?;
        let new = regular::read(&self.folder.join(&step.path), MAX_BYTES);
        let new = new.filter(|bytes| id_of(bytes) == disk.id).ok_or_else(|| changed(&step.path))?;
        match (String::from_utf8(old), String::from_utf8(new)) {
            (Ok(old), Ok(new)) => Ok((old, new)),
            _ => Err(SnapshotError::Refused(format!("{} is not text", shown_path(&step.path)))),
        }
    }

    pub(super) fn add(&self, text: impl Into<Vec<u8>>) -> Result<ObjectId, SnapshotError> {
        let doing = "save the text";
        let id = self.git().line(doing, ["hash-object", "-w", "--stdin"], text.into())?;
        id_of_bytes(id.as_bytes()).ok_or_else(|| SnapshotError::Failed(format!("Cannot {doing}")))
    }

    /// Makes a snapshot of a single path.
    fn pin(&self, session: &str, path: &Path, entry: &Entry) -> Result<SnapshotId, SnapshotError> {
        let _lock = self.lock()?;
        let doing = "save what was accepted";
        let session = content_hash(format!("{session} accepted").as_bytes());
        let index = self.at(format!("sessions/{session}-{}.run", unix_micros()));
        let git = self.git().with([("GIT_INDEX_FILE", &index)]);
        let mode = if entry.kind == Kind::Program { "100755" } else { "100644" };
        let mut line = format!("{mode} {}\t", entry.id.as_str()).into_bytes();
        line.extend_from_slice(files::bytes(path.as_os_str()));
        line.push(0);
        let tree = git
            .read(doing, ["update-index", "-z", "--index-info"], line)
            .and_then(|_| git.line(doing, ["write-tree"], Vec::new()));
        let _ = fs::remove_file(&index);
        Ok(self.save(&git, &session, &index, &tree?, Omitted::default())?.id)
    }

    /// A file in a snapshot; `None`: it or the snapshot is not in the store.
    fn entry(&self, id: &SnapshotId, path: &Path) -> Result<Option<Entry>, SnapshotError> {
        let files = files_of(id);
        let args = ["ls-tree", "-z", "--full-tree", &files, "--"].map(OsStr::new);
        let output = self.git().run(args.into_iter().chain([path.as_os_str()]), Vec::new())?;
        let line = split(&output.stdout).next().filter(|_| output.code == Some(0)).unwrap_or_default();
        let facts = line.split(|byte| *byte == b'\t').next().unwrap_or_default();
        let fields: Vec<&[u8]> = facts.split(|byte| *byte == b' ').collect();
        let [mode, b"blob", id] = fields[..] else { return Ok(None) };
        Ok(kind_of_mode(mode).zip(id_of_bytes(id)).map(|(kind, id)| Entry { kind, id }))
    }
}

fn changed(path: &Path) -> SnapshotError {
    SnapshotError::Refused(format!("{} was changed meanwhile", shown_path(path)))
}
