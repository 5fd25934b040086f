//! Merges an undo with what somebody else changed in the same file since.

use super::compare::{contents, id_of};
use super::{Action, Entry, Kind, SnapshotError, Snapshots, Step};
use crate::host::regular;
use crate::model::hunk::merge;

/// Maximum size of a text that is merged.
const MAX_BYTES: usize = 1 << 20;

impl Snapshots {
    /// Makes a conflict a merge if both changes of the text fit together.
    ///
    /// # Errors
    /// git or the file system failed.
    pub(super) fn merge(&self, step: &mut Step) -> Result<(), SnapshotError> {
        let (Some(disk), Some(from), Some(to)) = (&step.disk, &step.from, &step.to) else { return Ok(()) };
        if step.action != Action::Conflict || [disk, from, to].iter().any(|entry| entry.kind == Kind::Link) {
            return Ok(());
        }
        let stored = contents(&self.git(), [&from.id, &to.id])?;
        let now = regular::read(&self.folder.join(&step.path), MAX_BYTES as u64);
        let now = now.filter(|bytes| id_of(bytes) == disk.id);
        let text = |bytes: Option<&Vec<u8>>| {
            let text = std::str::from_utf8(bytes?).ok()?;
            (text.len() <= MAX_BYTES && !text.contains('\0')).then(|| text.to_owned())
        };
        let texts = (text(stored.get(&from.id)), text(now.as_ref()), text(stored.get(&to.id)));
        let (Some(base), Some(now), Some(new)) = texts else { return Ok(()) };
        if let Some(merged) = merge(&base, &now, &new) {
            step.to = Some(Entry { kind: to.kind, id: self.add(merged)? });
            step.action = Action::Merge;
        }
        Ok(())
    }
}
