//! Compares snapshots, and reads what is in them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

use super::capture::Omitted;
use super::git::{Git, lines, path_of, split};
use super::place::{Found, Root};
use super::{Entry, ObjectId, SnapshotError, SnapshotId, Snapshots, files_of, id_of_bytes, kind_of_mode};

/// A path that differs between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the folder.
    pub path: PathBuf,
    /// `None`: it was added.
    pub before: Option<Entry>,
    /// `None`: it was deleted.
    pub after: Option<Entry>,
}

impl Snapshots {
    /// The paths that differ between two snapshots, in the order of their names.
    ///
    /// # Errors
    /// `Missing` if one of them is not in the store, or git failed.
    pub fn changes(&self, from: &SnapshotId, to: &SnapshotId) -> Result<Vec<Change>, SnapshotError> {
        let git = self.git();
        check_exists(&git, from)?;
        check_exists(&git, to)?;
        let args = ["diff-tree", "-r", "-z", "--no-renames", &files_of(from), &files_of(to)];
        let output = git.read("compare snapshots", args, Vec::new())?;
        let mut parts = split(&output);
        let mut changes = Vec::new();
        while let (Some(facts), Some(path)) = (parts.next(), parts.next()) {
            let fields: Vec<&[u8]> = facts.split(|byte| *byte == b' ').collect();
            let [old_mode, new_mode, old, new, _] = fields[..] else {
                return Err(SnapshotError::Failed("Cannot compare snapshots: invalid output".to_owned()));
            };
            let entry = |mode, id| Some(Entry { kind: kind_of_mode(mode)?, id: id_of_bytes(id)? });
            let old_mode = old_mode.strip_prefix(b":").unwrap_or_default();
            let (before, after) = (entry(old_mode, old), entry(new_mode, new));
            changes.push(Change { path: path_of(path), before, after });
        }
        Ok(changes)
    }

    /// What a path (absolute, or relative to the folder) is on the disk now; `None`: it does not exist.
    ///
    /// # Errors
    /// It is neither a file nor a link, too large, not readable, outside of the folder, or below a link.
    pub fn on_disk(&self, path: &Path) -> Result<Option<Entry>, SnapshotError> {
        let failed = |why| Err(SnapshotError::file("read", path)(io::Error::other(why)));
        let Some(relative) = self.relative(path) else { return failed("it is not in the folder".to_owned()) };
        match Root::open(self)?.find(&relative) {
            Found::Absent => Ok(None),
            Found::Entry(entry) => Ok(Some(entry)),
            Found::Folder => failed("it is a folder".to_owned()),
            Found::Other(why) => failed(why),
        }
    }

    /// The content of a file, or the target of a link.
    ///
    /// # Errors
    /// It is not in the store, or larger than `max_bytes`.
    pub fn read(&self, entry: &Entry, max_bytes: u64) -> Result<Vec<u8>, SnapshotError> {
        let bytes =
            contents(&self.git(), [&entry.id])?.remove(&entry.id).ok_or_else(|| missing(&entry.id))?;
        if bytes.len() as u64 > max_bytes {
            let text = format!("The content has {} bytes; the limit is {max_bytes}", bytes.len());
            return Err(SnapshotError::Refused(text));
        }
        Ok(bytes)
    }
}

pub(super) fn missing(id: &ObjectId) -> SnapshotError {
    SnapshotError::Missing(format!("The content {}", id.as_str()))
}

fn check_exists(git: &Git, id: &SnapshotId) -> Result<(), SnapshotError> {
    let args = ["cat-file", "--batch-check=%(objecttype)"];
    let output = git.read("find the snapshot", args, lines([files_of(id)]))?;
    if output == b"tree\n" {
        Ok(())
    } else {
        Err(SnapshotError::Missing(format!("Snapshot {}", id.as_str())))
    }
}

/// What a snapshot does not have although it may have existed.
pub(super) fn omitted(git: &Git, id: &SnapshotId) -> Result<Omitted, SnapshotError> {
    let args = ["cat-file", "blob", &format!("{}:omitted", id.as_str())];
    let bytes = git.read("read the snapshot", args, Vec::new())?;
    Omitted::decode(&bytes)
        .ok_or_else(|| SnapshotError::Missing(format!("A part of snapshot {}", id.as_str())))
}

/// The sizes of blobs; those that are not in the store are missing.
pub(super) fn sizes<'a>(
    git: &Git,
    ids: impl IntoIterator<Item = &'a ObjectId>,
) -> Result<BTreeMap<ObjectId, u64>, SnapshotError> {
    let args = ["cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)"];
    let output = git.read("find contents", args, lines(ids.into_iter().map(ObjectId::as_str)))?;
    let size = |line: &str| {
        let (id, size) = line.split_once(" blob ")?;
        Some((ObjectId::parse(id)?, size.parse().ok()?))
    };
    Ok(String::from_utf8_lossy(&output).lines().filter_map(size).collect())
}

/// The contents of blobs. Those that are not in the store are missing, and those that are not what their ids say: git
/// does not compare them.
pub(super) fn contents<'a>(
    git: &Git,
    ids: impl IntoIterator<Item = &'a ObjectId>,
) -> Result<BTreeMap<ObjectId, Vec<u8>>, SnapshotError> {
    let input = lines(ids.into_iter().map(ObjectId::as_str));
    let output = git.read("read contents", ["cat-file", "--batch"], input)?;
    let mut contents = BTreeMap::new();
    let mut rest = output.as_slice();
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        let Some((id, size)) = head.split_once(" blob ") else { continue };
        let (Some(id), Ok(size)) = (ObjectId::parse(id), size.parse::<usize>()) else { break };
        let Some(bytes) = rest.get(..size) else { break };
        if id_of(bytes) == id {
            contents.insert(id, bytes.to_vec());
        }
        rest = rest.get(size + 1..).unwrap_or_default();
    }
    Ok(contents)
}

/// The id that git gives to a content.
pub(super) fn id_of(bytes: &[u8]) -> ObjectId {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    context.update(format!("blob {}\0", bytes.len()).as_bytes());
    context.update(bytes);
    ObjectId::of_digest(context.finish().as_ref())
}
