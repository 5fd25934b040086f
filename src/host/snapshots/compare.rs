//! Compares snapshots, and reads what is in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

use super::capture::Omitted;
use super::error::SnapshotError;
use super::git::{Deadline, lines, split};
use super::place::{Found, IS_FOLDER, Root};
use super::seed::path_of;
use super::{Entry, Kind, ObjectId, SnapshotId, Snapshots};
use crate::model::hex;

/// Maximum size of files that are in memory at once, unless a single one is larger.
const MAX_GROUP_BYTES: u64 = 64 << 20;

/// What happened to a path between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Deleted,
    Modified,
    /// Deleted, and the only added path with exactly its content is this one.
    MovedTo(PathBuf),
    MovedFrom(PathBuf),
}

/// A path that differs between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the folder.
    pub path: PathBuf,
    pub before: Option<Entry>,
    pub after: Option<Entry>,
    pub kind: ChangeKind,
}

impl Snapshots {
    /// The paths that differ between two snapshots, in the order of their names.
    ///
    /// # Errors
    /// `Missing` if one of them is not in the store, or git failed.
    pub fn changes(&self, from: &SnapshotId, to: &SnapshotId) -> Result<Vec<Change>, SnapshotError> {
        let deadline = self.deadline();
        self.check_exists(from, deadline)?;
        self.check_exists(to, deadline)?;
        let args = ["diff-tree", "-r", "-z", "--no-renames", &from.files(), &to.files()];
        let output = self.git.read("compare snapshots", args, Vec::new(), deadline)?;
        let mut parts = split(&output);
        let mut changes = Vec::new();
        while let (Some(facts), Some(path)) = (parts.next(), parts.next()) {
            let fields: Vec<&[u8]> =
                facts.strip_prefix(b":").unwrap_or(facts).split(|b| *b == b' ').collect();
            let [old_mode, new_mode, old, new, _] = fields[..] else {
                let message = String::from_utf8_lossy(facts).into_owned();
                return Err(SnapshotError::Git { doing: "compare snapshots", message });
            };
            let entry = |mode, id| Some(Entry { kind: Kind::of_mode(mode)?, id: ObjectId::of_bytes(id)? });
            let (before, after) = (entry(old_mode, old), entry(new_mode, new));
            let kind = match (&before, &after) {
                (None, _) => ChangeKind::Added,
                (_, None) => ChangeKind::Deleted,
                _ => ChangeKind::Modified,
            };
            changes.push(Change { path: path_of(path), before, after, kind });
        }
        find_moves(&mut changes);
        Ok(changes)
    }

    /// What a path (absolute, or relative to the folder) is on the disk now; `None`: it does not exist.
    ///
    /// # Errors
    /// It is neither a file nor a link, too large, not readable, outside of the folder, or below a link.
    pub fn on_disk(&self, path: &Path) -> Result<Option<Entry>, SnapshotError> {
        let failed = |why: String| SnapshotError::file("read", path)(std::io::Error::other(why));
        let relative = self.relative(path).ok_or_else(|| failed("it is not in the folder".to_owned()))?;
        match Root::open(self)?.find(&relative) {
            Ok(Found::Absent) => Ok(None),
            Ok(Found::Entry { entry, .. }) => Ok(Some(entry)),
            Ok(Found::Folder) => Err(failed(IS_FOLDER.to_owned())),
            Ok(Found::Other(why)) | Err(why) => Err(failed(why)),
        }
    }

    /// The content of a file, or the target of a link.
    ///
    /// # Errors
    /// It is not in the store, or larger than `max_bytes`.
    pub fn read(&self, entry: &Entry, max_bytes: u64) -> Result<Vec<u8>, SnapshotError> {
        let sizes = self.sizes([&entry.id], self.deadline())?;
        let size = sizes.get(&entry.id).copied().ok_or_else(|| missing(&entry.id))?;
        if size > max_bytes {
            return Err(SnapshotError::TooLarge { bytes: size, limit: max_bytes });
        }
        self.contents(&[&entry.id])?.remove(&entry.id).ok_or_else(|| missing(&entry.id))
    }

    fn check_exists(&self, id: &SnapshotId, deadline: Deadline) -> Result<(), SnapshotError> {
        let input = format!("{}\n", id.files()).into_bytes();
        let args = ["cat-file", "--batch-check=%(objecttype)"];
        let output = self.git.read("find the snapshot", args, input, deadline)?;
        if output == b"tree\n" { Ok(()) } else { Err(SnapshotError::Missing(format!("Snapshot {id}"))) }
    }

    /// What a snapshot does not have although it may have existed.
    pub(super) fn omitted(&self, id: &SnapshotId) -> Result<Omitted, SnapshotError> {
        let deadline = self.deadline();
        self.check_exists(id, deadline)?;
        let args = ["cat-file", "blob", &format!("{id}:omitted")];
        let bytes = self.git.read("read the snapshot", args, Vec::new(), deadline)?;
        Omitted::decode(&bytes).ok_or_else(|| SnapshotError::Missing(format!("A part of snapshot {id}")))
    }

    /// All folders that have files in a snapshot.
    pub(super) fn folders(&self, id: &SnapshotId) -> Result<BTreeSet<PathBuf>, SnapshotError> {
        let args = ["ls-tree", "-d", "-r", "-z", "--name-only", "--full-tree", &id.files()];
        let output = self.git.read("list the folders of the snapshot", args, Vec::new(), self.deadline())?;
        Ok(split(&output).map(path_of).collect())
    }

    /// The sizes of blobs; those that are not in the store are missing.
    pub(super) fn sizes<'a>(
        &self,
        ids: impl IntoIterator<Item = &'a ObjectId>,
        deadline: Deadline,
    ) -> Result<BTreeMap<ObjectId, u64>, SnapshotError> {
        let input = lines(ids);
        if input.is_empty() {
            return Ok(BTreeMap::new());
        }
        let args = ["cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)"];
        let output = self.git.read("find contents", args, input, deadline)?;
        let size = |line: &str| {
            let (id, rest) = line.split_once(' ')?;
            Some((ObjectId::parse(id)?, rest.strip_prefix("blob ")?.parse().ok()?))
        };
        Ok(String::from_utf8_lossy(&output).lines().filter_map(size).collect())
    }

    /// Splits ids into groups that fit into memory. An id that is not in the store is an error.
    pub(super) fn groups<'a, T>(
        &self,
        items: Vec<(T, &'a ObjectId)>,
    ) -> Result<Vec<Vec<(T, &'a ObjectId)>>, SnapshotError> {
        let sizes = self.sizes(items.iter().map(|(_, id)| *id), self.deadline())?;
        let mut groups: Vec<Vec<(T, &ObjectId)>> = Vec::new();
        let mut filled = u64::MAX;
        for (item, id) in items {
            let size = sizes.get(id).copied().ok_or_else(|| missing(id))?;
            filled = filled.saturating_add(size);
            if let Some(group) = groups.last_mut().filter(|_| filled <= MAX_GROUP_BYTES) {
                group.push((item, id));
            } else {
                groups.push(vec![(item, id)]);
                filled = size;
            }
        }
        Ok(groups)
    }

    /// The contents of blobs; those that are not in the store are missing.
    pub(super) fn contents(&self, ids: &[&ObjectId]) -> Result<BTreeMap<ObjectId, Vec<u8>>, SnapshotError> {
        let input = lines(ids);
        let mut contents = BTreeMap::new();
        if input.is_empty() {
            return Ok(contents);
        }
        let output = self.git.read("read contents", ["cat-file", "--batch"], input, self.deadline())?;
        let mut rest = output.as_slice();
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let head = String::from_utf8_lossy(&rest[..end]).into_owned();
            rest = &rest[end + 1..];
            let Some((id, size)) = head.split_once(" blob ") else { continue };
            let size: usize = size.parse().unwrap_or(usize::MAX);
            let (Some(id), Some(bytes)) = (ObjectId::parse(id), rest.get(..size)) else { break };
            contents.insert(id, bytes.to_vec());
            rest = rest.get(size + 1..).unwrap_or_default();
        }
        Ok(contents)
    }

    /// The id that git gives to a content.
    pub(super) fn id_of(&self, bytes: &[u8]) -> ObjectId {
        let algorithm = if self.is_sha256() { &SHA256 } else { &SHA1_FOR_LEGACY_USE_ONLY };
        let mut context = Context::new(algorithm);
        context.update(format!("blob {}\0", bytes.len()).as_bytes());
        context.update(bytes);
        ObjectId(hex(context.finish().as_ref()))
    }
}

pub(super) fn missing(id: &ObjectId) -> SnapshotError {
    SnapshotError::Missing(format!("The content {id}"))
}

/// Pairs deleted paths with added ones of the same content, where there is only one of each.
fn find_moves(changes: &mut [Change]) {
    let mut sides: BTreeMap<Entry, [Vec<usize>; 2]> = BTreeMap::new();
    for (at, change) in changes.iter().enumerate() {
        match (&change.before, &change.after) {
            (Some(entry), None) => sides.entry(entry.clone()).or_default()[0].push(at),
            (None, Some(entry)) => sides.entry(entry.clone()).or_default()[1].push(at),
            _ => {}
        }
    }
    for [deleted, added] in sides.into_values() {
        if let ([from], [to]) = (deleted.as_slice(), added.as_slice()) {
            changes[*from].kind = ChangeKind::MovedTo(changes[*to].path.clone());
            changes[*to].kind = ChangeKind::MovedFrom(changes[*from].path.clone());
        }
    }
}
