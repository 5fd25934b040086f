//! The record of a restore that is in progress: what each path was and becomes.
//!
//! It is on the disk before the first change and removed after the last, so that an interrupted restore can be undone.
//! Paths are bytes, so the fields end with a NUL each.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::error::SnapshotError;
use super::seed::path_of;
use super::{Entry, Kind, ObjectId, Snapshots};
use crate::host::os::{files, private};
use crate::host::regular;

const FIRST: &str = "parlor-restore-1";
const LAST: &str = "end";
const MAX_BYTES: u64 = 256 << 20;

/// A path that a restore writes or deletes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub path: PathBuf,
    pub old: Option<Entry>,
    pub new: Option<Entry>,
    /// The name of the temporary file beside it.
    pub temporary: OsString,
}

/// A restore in progress.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Journal {
    pub records: Vec<Record>,
    /// Folders that it creates.
    pub folders: Vec<PathBuf>,
}

impl Journal {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut field = |field: &[u8]| {
            bytes.extend_from_slice(field);
            bytes.push(0);
        };
        field(FIRST.as_bytes());
        for record in &self.records {
            field(b"path");
            field(files::bytes(record.path.as_os_str()));
            for entry in [&record.old, &record.new] {
                field(encode_entry(entry.as_ref()).as_bytes());
            }
            field(files::bytes(&record.temporary));
        }
        for folder in &self.folders {
            field(b"folder");
            field(files::bytes(folder.as_os_str()));
        }
        field(LAST.as_bytes());
        bytes
    }

    /// `None`: damaged.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = bytes.split(|byte| *byte == 0);
        let mut journal = Self::default();
        if fields.next()? != FIRST.as_bytes() {
            return None;
        }
        loop {
            match fields.next()? {
                b"path" => journal.records.push(Record {
                    path: path_of(fields.next()?),
                    old: decode_entry(fields.next()?)?,
                    new: decode_entry(fields.next()?)?,
                    temporary: files::from_bytes(fields.next()?),
                }),
                b"folder" => journal.folders.push(path_of(fields.next()?)),
                b"end" => return Some(journal),
                _ => return None,
            }
        }
    }

    fn path(snapshots: &Snapshots) -> PathBuf {
        snapshots.at("restoring")
    }

    /// The journal of an interrupted restore.
    pub(super) fn read(snapshots: &Snapshots) -> Result<Option<Self>, SnapshotError> {
        let path = Self::path(snapshots);
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        let journal = regular::read(&path, MAX_BYTES).and_then(|bytes| Self::decode(&bytes));
        let damaged = || std::io::Error::other("it is damaged. Compare the files, then delete it");
        journal.map(Some).ok_or_else(|| SnapshotError::file("read", &path)(damaged()))
    }

    /// Writes it durably.
    pub(super) fn write(&self, snapshots: &Snapshots) -> Result<(), SnapshotError> {
        let path = Self::path(snapshots);
        private::replace(&path, &self.encode()).map_err(SnapshotError::file("write", &path))?;
        sync_parent(&path);
        Ok(())
    }

    pub(super) fn remove(snapshots: &Snapshots) -> Result<(), SnapshotError> {
        let path = Self::path(snapshots);
        super::place::step()
            .and_then(|()| std::fs::remove_file(&path))
            .map_err(SnapshotError::file("remove", &path))?;
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

fn encode_entry(entry: Option<&Entry>) -> String {
    let Some(Entry { kind, id }) = entry else { return "-".to_owned() };
    let letter = match kind {
        Kind::File => 'f',
        Kind::Program => 'p',
        Kind::Link => 'l',
    };
    format!("{letter}{id}")
}

#[expect(clippy::option_option, reason = "a path that does not exist is valid")]
fn decode_entry(text: &[u8]) -> Option<Option<Entry>> {
    let (letter, id) = text.split_first()?;
    let kind = match letter {
        b'-' if id.is_empty() => return Some(None),
        b'f' => Kind::File,
        b'p' => Kind::Program,
        b'l' => Kind::Link,
        _ => return None,
    };
    Some(Some(Entry { kind, id: ObjectId::of_bytes(id)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_read_completely_or_not() {
        let id = ObjectId::parse(&"0a".repeat(20)).unwrap();
        let entry = |kind| Some(Entry { kind, id: id.clone() });
        let record =
            |path: &[u8], old, new| Record { path: path_of(path), old, new, temporary: ".parlor-1".into() };
        let journal = Journal {
            records: vec![
                record(b"a\n\xff", entry(Kind::File), entry(Kind::Program)),
                record(b"end", None, entry(Kind::Link)),
                record(b"b", entry(Kind::File), None),
            ],
            folders: vec!["x/y".into()],
        };
        let bytes = journal.encode();
        assert_eq!(Journal::decode(&bytes), Some(journal));
        for end in 0..bytes.len() - 1 {
            assert_eq!(Journal::decode(&bytes[..end]), None, "{end}");
        }
    }
}
