//! Tests with real repositories and folders.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::host::git::tests::git;
use crate::host::os::fixtures;

mod attacks;
mod captures;
pub(super) mod crashes;
mod lives;
mod losses;
mod restores;
mod reviews;
mod spans;

/// The way back from one snapshot to another.
fn back(after: &SnapshotId, before: &SnapshotId) -> [Span; 1] {
    [Span { before: before.clone(), after: after.clone() }]
}

/// A folder with its snapshots.
struct Rig {
    base: tempfile::TempDir,
    snapshots: OnceCell<Snapshots>,
}

impl Rig {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("w")).unwrap();
        Self { base, snapshots: OnceCell::new() }
    }

    fn repository() -> Self {
        let rig = Self::new();
        rig.git(&["init", "-q", "-b", "main"]);
        rig
    }

    fn path(&self) -> PathBuf {
        self.base.path().canonicalize().unwrap().join("w")
    }

    fn options(&self) -> Options {
        Options {
            data: self.base.path().join("data"),
            home: Some(self.base.path().join("home")),
            allows_network: true,
            ..Options::default()
        }
    }

    /// The snapshots, opened at the first use.
    fn open(&self) -> &Snapshots {
        let (path, options) = (self.path(), self.options());
        self.snapshots.get_or_init(|| Snapshots::open(&path, &options).unwrap())
    }

    fn git(&self, args: &[&str]) {
        git(&self.path(), args);
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_else(|_| "absent".to_owned())
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path().join(name)).unwrap();
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "state"]);
    }

    fn capture(&self) -> SnapshotId {
        self.open().capture("s", &[]).unwrap().id
    }

    /// Restores all paths that differ, without conflicts.
    fn undo(&self, from: &SnapshotId, to: &SnapshotId) -> Restored {
        let plan = self.open().plan(&back(from, to)).unwrap();
        let chosen = all(&plan);
        self.open().restore("s", &plan, &chosen).unwrap()
    }
}

/// All paths of a plan without conflict.
fn all(plan: &Plan) -> Vec<PathBuf> {
    let steps = plan.steps.iter().filter(|step| step.action != Action::Conflict);
    steps.map(|step| step.path.clone()).collect()
}

/// A file, link or folder with its content, time and identity.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fact {
    content: Vec<u8>,
    mode: u32,
    changed: Option<std::time::SystemTime>,
}

/// Everything below a folder. `times`: with the times of files.
fn facts(folder: &Path, times: bool) -> BTreeMap<PathBuf, Fact> {
    fn walk(folder: &Path, top: &Path, times: bool, facts: &mut BTreeMap<PathBuf, Fact>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let content = match () {
                () if meta.is_symlink() => files::bytes(fs::read_link(&path).unwrap().as_os_str()).to_vec(),
                () if meta.is_file() => fs::read(&path).unwrap(),
                () => Vec::new(),
            };
            let mode = if meta.is_file() { fixtures::mode(&path) } else { 0 };
            // git sets the times of objects that it would write again.
            let is_object = path.to_string_lossy().contains("/.git/objects/");
            let changed = (times && !meta.is_dir() && !is_object).then(|| meta.modified().unwrap());
            let name = path.strip_prefix(top).unwrap().to_owned();
            facts.insert(name, Fact { content, mode, changed });
            if meta.is_dir() {
                walk(&path, top, times, facts);
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, folder, times, &mut found);
    found
}

/// Fails with the paths that differ.
fn assert_same(found: &BTreeMap<PathBuf, Fact>, expected: &BTreeMap<PathBuf, Fact>) {
    let paths: BTreeSet<&PathBuf> = found.keys().chain(expected.keys()).collect();
    let differ: Vec<_> = paths.into_iter().filter(|path| found.get(*path) != expected.get(*path)).collect();
    assert!(differ.is_empty(), "{differ:?}");
}

/// The files and links of a snapshot with their contents.
fn contents(snapshots: &Snapshots, id: &SnapshotId) -> BTreeMap<PathBuf, (Kind, Vec<u8>)> {
    let args = ["ls-tree", "-r", "-z", "--full-tree", &files_of(id)];
    let output = snapshots.git().read("list", args, Vec::new()).unwrap();
    git::split(&output)
        .map(|record| {
            let at = memchr::memchr(b'\t', record).unwrap();
            let head = String::from_utf8(record[..at].to_vec()).unwrap();
            let mut fields = head.split(' ');
            let kind = kind_of_mode(fields.next().unwrap().as_bytes()).unwrap();
            let entry = Entry { kind, id: ObjectId::parse(fields.nth(1).unwrap()).unwrap() };
            let bytes = snapshots.read(&entry, u64::MAX).unwrap();
            (git::path_of(&record[at + 1..]), (kind, bytes))
        })
        .collect()
}

fn names(snapshots: &Snapshots, id: &SnapshotId) -> BTreeSet<String> {
    contents(snapshots, id).into_keys().map(|path| path.to_string_lossy().into_owned()).collect()
}
