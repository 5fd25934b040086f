//! Deletes the oldest snapshots, and what only they needed.
//!
//! Not with `git gc` or `git prune`: they fail if the user's repository has deleted a borrowed object, and
//! `git repack --local` would delete the copies of borrowed objects.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::SnapshotError;
use super::git::{Deadline, lines};
use super::journal::Journal;
use super::seed::Last;
use super::{Limits, Snapshots};

/// Packing a store may take longer than a capture.
const MAX_TIME: Duration = Duration::from_secs(600);

/// The objects are packed when more than this number are in files of their own, or in this number of packs.
const MAX_LOOSE: usize = 4000;
const MAX_PACKS: usize = 20;

/// What was deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    pub snapshots: usize,
    /// Size of the store before and after.
    pub bytes_before: u64,
    pub bytes_after: u64,
}

/// The files of the store.
#[derive(Debug, Default)]
struct Store {
    bytes: u64,
    loose: Vec<PathBuf>,
    packs: Vec<PathBuf>,
    /// Files of packs that were not completed.
    temporary: Vec<PathBuf>,
}

impl Snapshots {
    /// Deletes the oldest snapshots until the store is not larger than `limits.max_store_bytes`, and packs it if it has
    /// many objects. The newest snapshot stays. Call it when nothing is captured: it can take minutes.
    ///
    /// # Errors
    /// `Interrupted` if a restore has to be recovered; git failed; a file cannot be deleted.
    pub fn prune(&self, limits: &Limits) -> Result<Pruned, SnapshotError> {
        let _lock = self.lock()?;
        self.prune_locked(limits.max_store_bytes, true)
    }

    /// Deletes snapshots only if the store is too large. Returns their number.
    pub(super) fn prune_to_limit(&self) -> Result<usize, SnapshotError> {
        if self.store().bytes <= self.limits.max_store_bytes || Journal::read(self)?.is_some() {
            return Ok(0);
        }
        self.prune_locked(self.limits.max_store_bytes, false).map(|pruned| pruned.snapshots)
    }

    fn prune_locked(&self, max_bytes: u64, packs: bool) -> Result<Pruned, SnapshotError> {
        if Journal::read(self)?.is_some() {
            return Err(SnapshotError::Interrupted);
        }
        let deadline = Deadline::after(MAX_TIME);
        let mut store = self.store();
        let mut pruned = Pruned { bytes_before: store.bytes, ..Pruned::default() };
        for path in &store.temporary {
            remove(path)?;
        }
        let mut references = self.references(deadline)?;
        if packs && (store.loose.len() > MAX_LOOSE || store.packs.len() > MAX_PACKS) {
            self.sweep(&store, deadline)?;
            store = self.store();
        }
        while store.bytes > max_bytes && references.len() > 1 {
            // A tenth at a time: each sweep reads all lists of files.
            let count = (references.len() / 10).max(1);
            let input = lines(references.drain(..count).map(|name| format!("delete {name}")));
            let args = ["update-ref", "--stdin"];
            self.git.read("delete snapshots", args, input, deadline)?;
            pruned.snapshots += count;
            self.sweep(&store, deadline)?;
            store = self.store();
        }
        if pruned.snapshots > 0 {
            self.remove_stale_indexes()?;
        }
        pruned.bytes_after = store.bytes;
        Ok(pruned)
    }

    /// The references of all snapshots, the oldest first.
    fn references(&self, deadline: Deadline) -> Result<Vec<String>, SnapshotError> {
        let args = ["for-each-ref", "--format=%(refname)", "refs/parlor"];
        let output = self.git.read("list snapshots", args, Vec::new(), deadline)?;
        let time =
            |name: &str| name.rsplit('/').next().and_then(|time| time.parse::<u64>().ok()).unwrap_or(0);
        let mut names: Vec<String> = String::from_utf8_lossy(&output).lines().map(str::to_owned).collect();
        names.sort_by_key(|name| time(name));
        Ok(names)
    }

    /// Packs the objects of this store that a snapshot needs, and deletes all others.
    fn sweep(&self, store: &Store, deadline: Deadline) -> Result<(), SnapshotError> {
        let doing = "list the objects of the snapshots";
        let own = self.without_borrowed();
        let args = ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"];
        let present = own.read(doing, args, Vec::new(), deadline)?;
        let args = ["rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--all"];
        let needed = self.git.read(doing, args, Vec::new(), deadline)?;
        let needed: BTreeSet<&[u8]> = needed.split(|byte| *byte == b'\n').collect();
        let mut input = Vec::new();
        for id in present.split(|byte| *byte == b'\n').filter(|id| !id.is_empty() && needed.contains(id)) {
            input.extend_from_slice(id);
            input.push(b'\n');
        }
        let mut new = None;
        if !input.is_empty() {
            let pack = self.git_dir.join("objects/pack/pack");
            let args = ["pack-objects", "-q"].map(OsStr::new).into_iter().chain([pack.as_os_str()]);
            let name = own.read("pack the objects of the snapshots", args, input, deadline)?;
            new = Some(format!("pack-{}", String::from_utf8_lossy(&name).trim()));
        }
        // The new pack may be equal to an old one.
        let is_new =
            |path: &&PathBuf| new.is_some() && path.file_stem().and_then(OsStr::to_str) == new.as_deref();
        for path in store.packs.iter().filter(|path| !is_new(path)) {
            // The index first: git ignores a pack without it.
            for extension in ["idx", "rev", "pack"] {
                remove(&path.with_extension(extension))?;
            }
        }
        store.loose.iter().try_for_each(|path| remove(path))
    }

    /// The index of a session lists objects that may have been deleted with its last snapshot.
    fn remove_stale_indexes(&self) -> Result<(), SnapshotError> {
        for path in self.session_files() {
            let session = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
            if path.extension() == Some(OsStr::new("index")) && Last::read(self, session).is_none() {
                remove(&path)?;
                remove(&path.with_extension("last"))?;
            }
        }
        Ok(())
    }

    fn store(&self) -> Store {
        let mut store = Store::default();
        let objects = self.git_dir.join("objects");
        let files = |folder: &Path| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| (entry.path(), entry.metadata().map_or(0, |meta| meta.len())))
        };
        for (folder, _) in files(&objects) {
            let is_packs = folder.file_name() == Some(OsStr::new("pack"));
            for (path, bytes) in files(&folder) {
                store.bytes += bytes;
                let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
                match () {
                    () if name.starts_with("tmp_") => store.temporary.push(path),
                    () if is_packs && path.extension() == Some(OsStr::new("pack")) => store.packs.push(path),
                    () if !is_packs && name.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                        store.loose.push(path);
                    }
                    () => {}
                }
            }
        }
        store
    }
}

fn remove(path: &Path) -> Result<(), SnapshotError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(SnapshotError::file("delete", path)(error))
        }
        _ => Ok(()),
    }
}
