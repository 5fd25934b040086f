//! Captures a folder: finds what has changed, adds it to the index of the session, and saves the tree of the index.
//!
//! An index is worked on as a copy, which replaces the index of the session when the capture has succeeded. So an
//! interrupted capture, or a git that outlives parlor, changes nothing. The index of the user's repository is not used:
//! it may have other contents than the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use super::git::{Git, Output, lines, path_of, paths, split};
use super::{Captured, LeftOut, ObjectId, SnapshotError, SnapshotId, Snapshots, Why, id_of_bytes};
use crate::host::os::{files, private};
use crate::host::regular;
use crate::lock::lock;
use crate::model::content_hash;

/// Maximum number of files that are listed in a folder that has nothing in a snapshot, and in all of them. Of a folder
/// with more, only its name is listed.
const MAX_LISTED: usize = 200;
const MAX_ALL_LISTED: usize = 4000;

/// Maximum number of files that a capture writes as objects of their own.
const MAX_LOOSE: usize = 200;

const MAX_INDEX_BYTES: u64 = 512 << 20;

/// What was on the disk but is not in a snapshot. A path in a folder that is listed may have existed too.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Omitted(BTreeMap<PathBuf, Why>);

/// What a session's last snapshot was made of. Its tree is that of the session's index.
#[derive(Debug, Clone)]
pub(super) struct Last {
    id: String,
    omitted: Omitted,
}

impl Omitted {
    /// Paths need not be UTF-8, so they are lists of bytes.
    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let list: Vec<(&OsStr, Why)> = self.0.iter().map(|(path, why)| (path.as_os_str(), *why)).collect();
        serde_json::to_vec(&list)
    }

    /// `None`: invalid.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let list: Vec<(OsString, Why)> = serde_json::from_slice(bytes).ok()?;
        Some(Self(list.into_iter().map(|(path, why)| (path.into(), why)).collect()))
    }

    /// Whether a path that is not in the snapshot may have existed.
    pub(super) fn may_have(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.0.get(path).is_some_and(|why| *why != Why::Empty))
    }

    /// Whether a folder that has nothing in the snapshot may have existed.
    pub(super) fn may_have_folder(&self, folder: &Path) -> bool {
        let mut below = self.0.range(folder.to_owned()..);
        below.next().is_some_and(|(path, _)| path.starts_with(folder)) || self.may_have(folder)
    }
}

impl Snapshots {
    /// Captures the folder; the repository is locked.
    pub(super) fn capture_locked(&self, session: &str, extra: &[PathBuf]) -> Result<Captured, SnapshotError> {
        if self.folder.canonicalize().ok().as_ref() != Some(&self.folder) {
            let text = format!("{} was moved or replaced. Open the folder again", self.folder.display());
            return Err(SnapshotError::Refused(text));
        }
        self.copy_patterns()?;
        for path in self.session_files().filter(|path| path.extension() != Some(OsStr::new("index"))) {
            let _ = fs::remove_file(path);
        }
        // A name for files and references.
        let (git, session) = (self.git(), content_hash(session.as_bytes()));
        let run = self.at(format!("sessions/{session}-{}.run", unix_micros()));
        let capture = |is_own| self.capture_from(&git, (&session, is_own), &run, extra);
        let captured = match self.copy_index(&session, &run).and_then(capture) {
            // A damaged index, or one with objects that were deleted. Without an index, each file is read.
            Err(SnapshotError::Failed(_)) => {
                let _ = fs::remove_file(&run);
                capture(false)
            }
            captured => captured,
        };
        let _ = fs::remove_file(&run);
        let mut captured = captured?;
        let outside = extra.iter().filter(|path| self.relative(path).is_none());
        captured.left_out.extend(outside.map(|path| LeftOut { path: path.clone(), why: Why::Outside }));
        Ok(captured)
    }

    pub(super) fn index(&self, session: &str) -> PathBuf {
        self.at(format!("sessions/{session}.index"))
    }

    /// Copies the index of the session, or the newest of the others, and returns whether it is that of the session. The
    /// copy has the time of the original: git reads a file again that is not older than its index.
    fn copy_index(&self, session: &str, run: &Path) -> Result<bool, SnapshotError> {
        let modified = |path: &Path| path.metadata().and_then(|meta| meta.modified());
        let own = self.index(session);
        let newest = || self.session_files().max_by_key(|path| modified(path).ok());
        let is_own = own.exists();
        let Some(from) = Some(own).filter(|_| is_own).or_else(newest) else { return Ok(false) };
        let copy = || {
            let modified = modified(&from)?;
            let bytes = regular::read(&from, MAX_INDEX_BYTES).ok_or(std::io::ErrorKind::InvalidData)?;
            let mut file = private::create_new(run)?;
            file.write_all(&bytes)?;
            file.set_modified(modified)?;
            Ok(is_own)
        };
        copy().map_err(SnapshotError::file("copy", &from))
    }

    fn capture_from(
        &self,
        git: &Git,
        (session, is_own): (&str, bool),
        run: &Path,
        extra: &[PathBuf],
    ) -> Result<Captured, SnapshotError> {
        let git = &git.with([("GIT_INDEX_FILE", run)]);
        let mut extra: BTreeSet<PathBuf> = extra.iter().filter_map(|path| self.relative(path)).collect();
        if !run.exists() {
            extra.extend(self.tracked_and_ignored(git)?);
        }
        let mut omitted = BTreeMap::new();
        let changed = self.changed(git, &mut omitted)?;
        let extra: Vec<PathBuf> = extra.into_iter().filter(|path| !changed.contains(path)).collect();
        let rest = || git.run(["ls-files", "--others", "--directory", "-z"], Vec::new());
        // The index is still the one of the last snapshot, so its tree is known.
        let last =
            Some(()).filter(|()| is_own && extra.is_empty() && changed.is_empty() && omitted.is_empty());
        if let Some(last) = last.and_then(|()| lock(&self.last).get(session).cloned()) {
            let (newest, rest) = both(|| newest(git, session), rest);
            self.add_rest(&mut omitted, &rest?)?;
            let omitted = Omitted(omitted);
            if newest? == format!("{} {}", last.id, self.head()) && omitted == last.omitted {
                return captured(&last.id, omitted, true);
            }
            return self.save(git, session, run, &self.write_tree(git)?, omitted);
        }
        self.update_index(git, extra, changed, &mut omitted)?;
        let (tree, rest) = both(|| self.write_tree(git), rest);
        self.add_rest(&mut omitted, &rest?)?;
        self.save(git, session, run, &tree?, Omitted(omitted))
    }

    /// The user's last commit, whose objects need not be copied.
    fn head(&self) -> String {
        self.borrowed().map_or_else(|| "none".to_owned(), |(_, head)| head)
    }

    /// The paths that are not as in the index, and those that are not in it.
    fn changed(
        &self,
        git: &Git,
        omitted: &mut BTreeMap<PathBuf, Why>,
    ) -> Result<BTreeSet<PathBuf>, SnapshotError> {
        let known =
            ["diff-files", "-z", "--name-only", "--no-renames", "--relative", "--ignore-submodules=all"];
        let new = ["ls-files", "--others", "--exclude-standard", "-z"];
        let (known, new) = both(|| git.run(known, Vec::new()), || git.run(new, Vec::new()));
        let (known, new) = (known?, new?);
        self.add_unreadable(omitted, &known)?;
        self.add_unreadable(omitted, &new)?;
        let mut changed: BTreeSet<PathBuf> = paths(&known.stdout).collect();
        for name in split(&new.stdout) {
            match name.strip_suffix(b"/") {
                Some(name) => drop(omitted.insert(path_of(name), Why::NestedRepository)),
                None => drop(changed.insert(path_of(name))),
            }
        }
        Ok(changed)
    }

    /// Adds the paths that git could not read. Another message is an error: its list may be incomplete.
    fn add_unreadable(
        &self,
        omitted: &mut BTreeMap<PathBuf, Why>,
        output: &Output,
    ) -> Result<(), SnapshotError> {
        let paths = unreadable(&output.stderr).filter(|_| output.code == Some(0));
        for path in paths.ok_or_else(|| output.error("list the files of the folder"))? {
            let path = path.strip_prefix(Path::new(&self.prefix)).unwrap_or(&path);
            omitted.insert(path.to_owned(), Why::Unreadable);
        }
        Ok(())
    }

    fn update_index(
        &self,
        git: &Git,
        extra: Vec<PathBuf>,
        changed: BTreeSet<PathBuf>,
        omitted: &mut BTreeMap<PathBuf, Why>,
    ) -> Result<(), SnapshotError> {
        let mut removed: BTreeSet<PathBuf> = omitted.keys().cloned().collect();
        let (mut added, mut count, mut bytes) = (Vec::new(), 0, 0);
        let (nested, extra): (Vec<_>, Vec<_>) =
            extra.into_iter().partition(|path| self.is_in_nested_repository(path));
        omitted.extend(nested.into_iter().map(|path| (path, Why::NestedRepository)));
        for path in extra.into_iter().chain(changed) {
            match self.look(&path) {
                Ok(size) => {
                    bytes += size;
                    count += 1;
                    added.extend_from_slice(files::bytes(path.as_os_str()));
                    added.push(0);
                }
                Err(why) => {
                    omitted.extend(why.map(|why| (path.clone(), why)));
                    removed.insert(path);
                }
            }
        }
        if bytes > self.limits.max_store_bytes {
            let (size, limit) = (bytes >> 20, self.limits.max_store_bytes >> 20);
            return Err(SnapshotError::Refused(format!(
                "The files to capture have {size} MiB, and the limit is {limit} MiB. Add large folders to .gitignore"
            )));
        }
        // Unlike `--force-remove`, this also removes names that git refuses now.
        let mut input = Vec::new();
        // A name with `.git` is never in the index, and reported as an error.
        for path in removed.iter().filter(|path| !is_reserved(path, false)) {
            input.extend_from_slice(format!("0 {}\t", "0".repeat(40)).as_bytes());
            input.extend_from_slice(files::bytes(&self.prefix));
            input.extend_from_slice(files::bytes(path.as_os_str()));
            input.push(0);
        }
        if !input.is_empty() {
            git.read("remove files from the index", ["update-index", "-z", "--index-info"], input)?;
        }
        if !added.is_empty() {
            // Many new files are written into one pack, which takes a quarter of the time and less space. With a
            // repository of the user, most are not new, and would be compressed in vain.
            let is_new = self.user.is_none() && count > MAX_LOOSE;
            let threshold = format!("core.bigFileThreshold={}", if is_new { "1" } else { "512m" });
            let args = ["-c", &threshold, "update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            git.read("read the changed files", args, added)?;
        }
        Ok(())
    }

    /// The size of a path that can be captured, or why it cannot be; `None`: it does not exist.
    fn look(&self, path: &Path) -> Result<u64, Option<Why>> {
        let look = |path: &Path| self.folder.join(path).symlink_metadata();
        let Ok(meta) = look(path) else { return Err(None) };
        let is_readable = || meta.is_symlink() || files::open_at_once(&self.folder.join(path)).is_ok();
        match () {
            () if !path.ancestors().skip(1).all(|path| look(path).is_ok_and(|meta| meta.is_dir())) => {
                Err(Some(Why::Outside))
            }
            () if meta.is_dir() => Err(None),
            () if is_reserved(path, meta.is_symlink()) => Err(Some(Why::Special)),
            () if !meta.is_file() && !meta.is_symlink() => Err(Some(Why::Special)),
            () if meta.len() > self.limits.max_file_bytes => Err(Some(Why::TooLarge)),
            () if !is_readable() => Err(look(path).is_ok().then_some(Why::Unreadable)),
            () => Ok(meta.len()),
        }
    }

    /// A path in the folder that a caller named; `None`: it has no place in the index.
    pub(super) fn relative(&self, path: &Path) -> Option<PathBuf> {
        let relative = path.strip_prefix(&self.folder).unwrap_or(path);
        let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
        (is_plain && !relative.as_os_str().is_empty()).then(|| relative.components().collect())
    }

    fn is_in_nested_repository(&self, path: &Path) -> bool {
        let mut parents = path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
        parents.any(|parent| is_repository(&self.folder.join(parent)))
    }

    /// The paths that the user's repository has although its patterns exclude them. Only its index lists them; if that
    /// cannot be read, they are not captured.
    fn tracked_and_ignored(&self, git: &Git) -> Result<Vec<PathBuf>, SnapshotError> {
        let index = self.user.as_ref().map(|user| user.git_dir.join("index"));
        let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_file());
        let Some(index) = index.filter(is_file) else { return Ok(Vec::new()) };
        let args = ["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"];
        let output = git.with([("GIT_INDEX_FILE", index)]).run(args, Vec::new())?;
        Ok(paths(&output.stdout).filter(|_| output.code == Some(0)).collect())
    }

    /// Adds everything on the disk that is not in the index.
    fn add_rest(&self, omitted: &mut BTreeMap<PathBuf, Why>, rest: &Output) -> Result<(), SnapshotError> {
        self.add_unreadable(omitted, rest)?;
        let mut budget = MAX_ALL_LISTED;
        for name in split(&rest.stdout) {
            let path = path_of(name.strip_suffix(b"/").unwrap_or(name));
            let (mut found, mut left) = (BTreeMap::new(), MAX_LISTED.min(budget));
            if !name.ends_with(b"/") || list(&self.folder, &path, &mut found, &mut left).is_none() {
                found = BTreeMap::from([(path, Why::Ignored)]);
            } else {
                budget = budget.saturating_sub(found.len());
            }
            for (path, why) in found {
                omitted.entry(path).or_insert(why);
            }
        }
        Ok(())
    }

    fn write_tree(&self, git: &Git) -> Result<String, SnapshotError> {
        if self.prefix.is_empty() {
            return git.line("write the tree", ["write-tree"], Vec::new());
        }
        if git.read("list the index", ["ls-files", "-z"], Vec::new())?.is_empty() {
            return empty_tree(git);
        }
        let mut option = OsString::from("--prefix=");
        option.push(&self.prefix);
        git.line("write the tree", [OsStr::new("write-tree"), &option], Vec::new())
    }

    /// Makes a snapshot of the tree, unless the last one of the session is equal.
    pub(super) fn save(
        &self,
        git: &Git,
        session: &str,
        run: &Path,
        tree: &str,
        omitted: Omitted,
    ) -> Result<Captured, SnapshotError> {
        let doing = "write the snapshot";
        let micros = unix_micros();
        let list =
            omitted.encode().map_err(|error| SnapshotError::Failed(format!("Cannot {doing}: {error}")))?;
        let blob = git.line(doing, ["hash-object", "-w", "--stdin"], list)?;
        let entries = format!("040000 tree {tree}\tfiles\n100644 blob {blob}\tomitted\n");
        let id = git.line(doing, ["mktree"], entries.into_bytes())?;
        // The message of each commit is the user's last commit then, whose objects were not copied.
        let head = self.head();
        let last = newest(git, session)?;
        let reused = last.starts_with(&format!("{id} "));
        if last != format!("{id} {head}") {
            // Also when objects are no longer borrowed: the index may have some of them.
            if head != "none" || !last.ends_with(" none") {
                self.copy_borrowed(git, tree, &head)?;
            }
            let person = format!("parlor <parlor@localhost> {} +0000", micros / 1_000_000);
            let commit = format!("tree {id}\nauthor {person}\ncommitter {person}\n\n{head}\n");
            let args = ["hash-object", "-t", "commit", "-w", "--stdin"];
            let commit = git.line(doing, args, commit.into_bytes())?;
            let reference = format!("refs/parlor/{session}/{micros}");
            git.read(doing, ["update-ref", &reference, &commit], Vec::new())?;
        }
        // Nothing was captured yet if there is no file.
        if run.exists() {
            let index = self.index(session);
            fs::rename(run, &index).map_err(SnapshotError::file("replace", &index))?;
        }
        let last = Last { id: id.clone(), omitted: omitted.clone() };
        lock(&self.last).insert(session.to_owned(), last);
        captured(&id, omitted, reused)
    }

    /// Copies the objects of a tree that the user's repository may delete: those that its last commit does not have.
    /// Fails if one is missing.
    fn copy_borrowed(&self, git: &Git, tree: &str, head: &str) -> Result<(), SnapshotError> {
        let doing = "find the objects to copy";
        let mut base = OsString::from(format!("{head}:"));
        base.push(files::from_bytes(files::bytes(&self.prefix).strip_suffix(b"/").unwrap_or_default()));
        let args = ["rev-parse", "--verify", "--quiet"].map(OsStr::new);
        let output = git.run(args.into_iter().chain([base.as_os_str()]), Vec::new())?;
        let base = match output.code {
            Some(0) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            _ => empty_tree(git)?,
        };
        let args = ["diff-tree", "-r", "-t", "-z", "--no-renames", &base, tree];
        let output = git.read(doing, args, Vec::new())?;
        let new = split(&output).filter_map(|part| {
            let fields: Vec<&[u8]> = part.strip_prefix(b":")?.split(|byte| *byte == b' ').collect();
            id_of_bytes(fields.get(3).filter(|_| fields[1] != b"000000")?)
        });
        let ids: BTreeSet<ObjectId> = new.chain(ObjectId::parse(tree)).collect();
        let args = ["cat-file", "--batch-check=%(objectname)"];
        let found = without_borrowed(git).line(doing, args, lines(ids.iter().map(ObjectId::as_str)))?;
        let missing = lines(found.lines().filter_map(|line| line.strip_suffix(" missing")));
        if missing.is_empty() { Ok(()) } else { self.pack(git, missing).map(drop) }
    }

    /// Packs these objects in the private repository; returns the name of the pack.
    pub(super) fn pack(&self, git: &Git, ids: Vec<u8>) -> Result<String, SnapshotError> {
        let pack = self.git_dir.join("objects/pack/pack");
        git.line("pack objects", [OsStr::new("pack-objects"), OsStr::new("-q"), pack.as_os_str()], ids)
    }
}

/// The id of the newest snapshot of a session that is stored, and the commit whose objects were not copied.
fn newest(git: &Git, session: &str) -> Result<String, SnapshotError> {
    let references = format!("refs/parlor/{session}/");
    let format = "--format=%(tree) %(contents:subject)";
    let args = ["for-each-ref", "--sort=-refname", "--count=1", format, &references];
    Ok(String::from_utf8_lossy(&git.run(args, Vec::new())?.stdout).trim_end().to_owned())
}

fn captured(id: &str, omitted: Omitted, reused: bool) -> Result<Captured, SnapshotError> {
    let id = SnapshotId::parse(id);
    let id = id.ok_or_else(|| SnapshotError::Failed("The id of the snapshot is not valid".to_owned()))?;
    let listed = omitted.0.into_iter().filter(|(_, why)| !matches!(why, Why::Ignored | Why::Empty));
    let left_out = listed.map(|(path, why)| LeftOut { path, why }).collect();
    Ok(Captured { id, at: unix_micros() / 1000, left_out, reused, pruned: 0 })
}

/// git that sees only the objects of the private repository.
pub(super) fn without_borrowed(git: &Git) -> Git {
    git.with([("GIT_ALTERNATE_OBJECT_DIRECTORIES", "")])
}

/// The id of the tree without files, which is written because git must find it.
fn empty_tree(git: &Git) -> Result<String, SnapshotError> {
    git.line("write a tree", ["hash-object", "-t", "tree", "-w", "--stdin"], Vec::new())
}

/// Runs two commands at the same time.
fn both<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
    })
}

pub(super) fn unix_micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// Whether git refuses a name, because it could replace parts of a repository.
fn is_reserved(path: &Path, is_link: bool) -> bool {
    let is = |name: &OsStr, other: &str| name.eq_ignore_ascii_case(other);
    path.iter().any(|name| is(name, ".git"))
        || is_link && path.file_name().is_some_and(|name| is(name, ".gitmodules"))
}

fn is_repository(folder: &Path) -> bool {
    let git = folder.join(".git");
    git.is_file() || git.join("HEAD").symlink_metadata().is_ok()
}

/// Lists a folder that has nothing in the index; `None`: it has too many files, or cannot be read.
fn list(top: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, Why>, left: &mut usize) -> Option<()> {
    let full = top.join(folder);
    if is_repository(&full) {
        found.insert(folder.to_owned(), Why::NestedRepository);
        return Some(());
    }
    let mut is_empty = true;
    for entry in fs::read_dir(&full).ok()? {
        let entry = entry.ok()?;
        *left = left.checked_sub(1)?;
        is_empty = false;
        let path = folder.join(entry.file_name());
        if entry.file_type().ok()?.is_dir() {
            list(top, &path, found, left)?;
        } else {
            found.insert(path, Why::Ignored);
        }
    }
    if is_empty {
        found.insert(folder.to_owned(), Why::Empty);
    }
    Some(())
}

/// The paths that git could not read; `None`: another message, after which a list may be incomplete.
fn unreadable(messages: &[u8]) -> Option<Vec<PathBuf>> {
    let path = |line: &[u8]| {
        let path = line.strip_suffix(b": Permission denied")?;
        let folder =
            path.strip_prefix(b"warning: could not open directory '").and_then(|p| p.strip_suffix(b"'"));
        let path = folder.map_or(path, |folder| folder.strip_suffix(b"/").unwrap_or(folder));
        let is_other =
            path.starts_with(b"warning: ") || path.starts_with(b"error: ") || path.starts_with(b"fatal: ");
        (!is_other).then(|| path_of(path))
    };
    messages.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_messages_of_git_are_tolerated() {
        let text =
            "warning: could not open directory 'data/db/': Permission denied\nother/x: Permission denied\n";
        let paths = unreadable(text.as_bytes()).unwrap();
        assert_eq!(paths, [Path::new("data/db"), Path::new("other/x")]);
        assert_eq!(unreadable(b"warning: unable to access '.gitignore': Permission denied\n"), None);
        assert_eq!(unreadable(b"error: index uses an extension\n"), None);
        assert_eq!(unreadable(b"").unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn omitted_paths_survive_encoding() {
        let omitted = Omitted([(path_of(&[b'a', 0xff]), Why::Empty), ("b".into(), Why::TooLarge)].into());
        assert_eq!(Omitted::decode(&omitted.encode().unwrap()), Some(omitted));
        assert_eq!(Omitted::decode(b"[[]]"), None);
    }
}
