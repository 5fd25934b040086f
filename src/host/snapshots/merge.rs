//! Merges an undo with what somebody else changed in the same file since.

use std::ffi::OsString;
use std::io::Write as _;

use super::compare::{contents, id_of};
use super::{Action, Entry, Kind, SnapshotError, Snapshots, Step};
use crate::host::os::private;
use crate::host::regular;

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
        let git = self.git();
        let stored = contents(&git, [&from.id, &to.id])?;
        let now = regular::read(&self.folder.join(&step.path), MAX_BYTES as u64);
        let now = now.filter(|bytes| id_of(bytes) == disk.id);
        let (Some(now), Some(from), Some(new)) = (&now, stored.get(&from.id), stored.get(&to.id)) else {
            return Ok(());
        };
        let texts = [now, from, new];
        if !texts.iter().all(|text| text.len() <= MAX_BYTES && !text.contains(&0)) {
            return Ok(());
        }
        let folder =
            private::temporary_folder().map_err(SnapshotError::file("write", &std::env::temp_dir()))?;
        let mut args: Vec<OsString> = ["merge-file", "-p", "-q", "--"].map(OsString::from).to_vec();
        for (name, text) in ["disk", "from", "to"].iter().zip(texts) {
            let path = folder.path().join(name);
            private::create_new(&path)
                .and_then(|mut file| file.write_all(text))
                .map_err(SnapshotError::file("write", &path))?;
            args.push(path.into_os_string());
        }
        let output = git.run(args, Vec::new())?;
        // Other codes are the number of conflicts, or an error.
        if output.code == Some(0) {
            step.to = Some(Entry { kind: to.kind, id: self.add(output.stdout)? });
            step.action = Action::Merge;
        }
        Ok(())
    }
}
