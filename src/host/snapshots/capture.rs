//! Captures a folder: finds what has changed, adds it to the index of the session, and saves the tree of the index.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use super::error::SnapshotError;
use super::git::{Deadline, Git, Output, joined, lines, split};
use super::seed::{Last, path_of, session_name};
use super::store::copy_patterns;
use super::{Captured, LeftOut, ObjectId, SnapshotId, Snapshots, Why};
use crate::host::os::files;
use crate::model::content_hash;

/// Maximum number of files that are listed in a folder that has nothing in a snapshot, and in all of them. Of a folder
/// with more, only its name is listed.
const MAX_LISTED: usize = 200;
const MAX_ALL_LISTED: usize = 4000;

/// Maximum number of files that a capture writes as objects of their own.
const MAX_LOOSE: usize = 200;

const IDENTITY: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "parlor"),
    ("GIT_AUTHOR_EMAIL", "parlor@localhost"),
    ("GIT_COMMITTER_NAME", "parlor"),
    ("GIT_COMMITTER_EMAIL", "parlor@localhost"),
];

/// What was on the disk but is not in a snapshot. A path in a folder that is listed may have existed too.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Omitted(BTreeMap<PathBuf, Reason>);

/// Why a path is not in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Why(Why),
    Ignored,
    /// A folder without files.
    Empty,
}

impl Reason {
    const ALL: [(u8, Self); 6] = [
        (b'l', Self::Why(Why::TooLarge)),
        (b'n', Self::Why(Why::NestedRepository)),
        (b'u', Self::Why(Why::Unreadable)),
        (b's', Self::Why(Why::Special)),
        (b'i', Self::Ignored),
        (b'e', Self::Empty),
    ];
}

impl Omitted {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (path, reason) in &self.0 {
            bytes.extend(Reason::ALL.iter().find(|(_, known)| known == reason).map(|(letter, _)| *letter));
            bytes.extend_from_slice(files::bytes(path.as_os_str()));
            bytes.push(0);
        }
        bytes
    }

    /// `None`: invalid.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let record = |part: &[u8]| {
            let (letter, path) = part.split_first()?;
            let (_, reason) = Reason::ALL.iter().find(|(known, _)| known == letter)?;
            Some((path_of(path), *reason))
        };
        split(bytes).map(record).collect::<Option<_>>().map(Self)
    }

    /// Whether a path that is not in the snapshot may have existed.
    pub(super) fn may_have(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.0.get(path).is_some_and(|reason| *reason != Reason::Empty))
    }

    /// Whether a folder that has nothing in the snapshot may have existed.
    pub(super) fn may_have_folder(&self, folder: &Path) -> bool {
        let below =
            self.0.range(folder.to_owned()..).next().is_some_and(|(path, _)| path.starts_with(folder));
        below || self.may_have(folder)
    }

    fn left_out(&self) -> Vec<LeftOut> {
        let shown = self.0.iter().filter_map(|(path, reason)| match reason {
            Reason::Why(why) => Some(LeftOut { path: path.clone(), why: *why }),
            Reason::Ignored | Reason::Empty => None,
        });
        shown.collect()
    }
}

/// What is done with a path that may have changed.
enum Found {
    Add { bytes: u64 },
    Gone,
    Omit(Why),
}

/// What has changed since the index was written.
#[derive(Default)]
struct Changed {
    paths: BTreeSet<PathBuf>,
    omitted: BTreeMap<PathBuf, Reason>,
}

impl Snapshots {
    /// Captures the folder; the repository is locked.
    pub(super) fn capture_locked(&self, session: &str, extra: &[PathBuf]) -> Result<Captured, SnapshotError> {
        let session = session_name(session);
        let deadline = self.deadline();
        copy_patterns(&self.git_dir, self.excludes.as_deref(), self.user_excludes.as_deref())?;
        for path in self.session_files() {
            if path.extension() == Some(OsStr::new("run")) || path.extension() == Some(OsStr::new("lock")) {
                let _ = fs::remove_file(path);
            }
        }
        let run = self.sessions().join(format!("{session}-{}.run", unix_micros()));
        let captured = match self.start_index(&session, &run, deadline) {
            Ok(()) => self.capture_from(&session, &run, extra, deadline),
            Err(error) => Err(error),
        };
        let captured = match captured {
            // A damaged index, or one with objects that were deleted. Without an index, each file is read.
            Err(SnapshotError::Git { .. } | SnapshotError::File { .. }) if deadline.check().is_ok() => {
                let _ = fs::remove_file(&run);
                self.capture_from(&session, &run, extra, deadline)
            }
            captured => captured,
        };
        let _ = fs::remove_file(&run);
        let mut captured = captured?;
        let outside = extra.iter().filter(|path| self.is_outside(path));
        captured.left_out.extend(outside.map(|path| LeftOut { path: path.clone(), why: Why::Outside }));
        Ok(captured)
    }

    fn capture_from(
        &self,
        session: &str,
        run: &Path,
        extra: &[PathBuf],
        deadline: Deadline,
    ) -> Result<Captured, SnapshotError> {
        let git = self.git.with([("GIT_INDEX_FILE", run)]);
        let mut extra = extra.to_owned();
        if !run.exists() {
            extra.extend(self.tracked_and_ignored(deadline)?);
        }
        let changed = self.changed(&git, deadline)?;
        let omitted = self.add(&git, changed, &extra, deadline)?;
        let (tree, rest) = thread::scope(|scope| {
            let args = ["ls-files", "--others", "--directory", "-z"];
            let git = &git;
            let rest = scope.spawn(move || git.run(args, Vec::new(), deadline));
            (self.write_tree(git, deadline), rest.join())
        });
        let rest = rest.unwrap_or_else(|_| Err(stopped()))?;
        let files = tree?;
        let omitted = self.with_rest(omitted, &rest)?;
        self.save(session, run, files, &omitted, deadline)
    }

    /// Finds the paths that are not as in the index, and those that are not in it.
    fn changed(&self, git: &Git, deadline: Deadline) -> Result<Changed, SnapshotError> {
        let (known, new) = thread::scope(|scope| {
            let args =
                ["diff-files", "-z", "--name-only", "--no-renames", "--relative", "--ignore-submodules=all"];
            let known = scope.spawn(move || git.run(args, Vec::new(), deadline));
            let args = ["ls-files", "--others", "--exclude-standard", "-z"];
            let new = git.run(args, Vec::new(), deadline);
            (known.join(), new)
        });
        let (known, new) = (known.unwrap_or_else(|_| Err(stopped()))?, new?);
        let mut changed = Changed::default();
        for output in [&known, &new] {
            let unreadable = unreadable(&output.stderr).filter(|_| output.code == Some(0));
            for path in unreadable.ok_or_else(|| output.error("list the files of the folder"))? {
                let path = path.strip_prefix(PathBuf::from(self.prefix())).unwrap_or(&path).to_owned();
                changed.omitted.insert(path, Reason::Why(Why::Unreadable));
            }
        }
        changed.paths.extend(split(&known.stdout).map(path_of));
        for name in split(&new.stdout) {
            match name.strip_suffix(b"/") {
                Some(name) => {
                    changed.omitted.insert(path_of(name), Reason::Why(Why::NestedRepository));
                }
                None => {
                    changed.paths.insert(path_of(name));
                }
            }
        }
        Ok(changed)
    }

    /// Brings the index up to date with the disk. Returns what cannot be captured.
    fn add(
        &self,
        git: &Git,
        changed: Changed,
        extra: &[PathBuf],
        deadline: Deadline,
    ) -> Result<BTreeMap<PathBuf, Reason>, SnapshotError> {
        let Changed { paths, mut omitted } = changed;
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        let mut parents = HashMap::new();
        let mut total = 0;
        let mut sort = |path: PathBuf, found: Found| match found {
            Found::Add { bytes } => {
                total += bytes;
                added.push(path);
            }
            Found::Gone => removed.push(path),
            Found::Omit(why) => {
                removed.push(path.clone());
                omitted.insert(path, Reason::Why(why));
            }
        };
        for path in extra {
            let Some(relative) = self.relative(path) else { continue };
            if !paths.contains(&relative) {
                let found = if self.is_in_nested_repository(&relative) {
                    Found::Omit(Why::NestedRepository)
                } else {
                    self.look(&relative, &mut parents)
                };
                sort(relative, found);
            }
        }
        for path in paths {
            deadline.check()?;
            let found = self.look(&path, &mut parents);
            sort(path, found);
        }
        if total > self.limits.max_store_bytes {
            return Err(SnapshotError::TooLarge { bytes: total, limit: self.limits.max_store_bytes });
        }
        let folders: Vec<&Path> = omitted
            .iter()
            .filter(|(_, reason)| **reason == Reason::Why(Why::Unreadable))
            .map(|(path, _)| path.as_path())
            .collect();
        if !folders.is_empty() {
            let args = ["ls-files", "-z", "--"].map(OsStr::new);
            let args = args.into_iter().chain(folders.iter().map(|folder| folder.as_os_str()));
            let below = git.read("list unreadable files", args, Vec::new(), deadline)?;
            removed.extend(split(&below).map(path_of));
        }
        if !removed.is_empty() {
            // Unlike `--force-remove`, this also removes names that git refuses now.
            let (prefix, zeros) = (self.prefix(), "0".repeat(if self.is_sha256() { 64 } else { 40 }));
            let mut input = Vec::new();
            // A name with `.git` is never in the index, and reported as an error.
            for path in removed.iter().filter(|path| !is_reserved(path, false)) {
                input.extend_from_slice(format!("0 {zeros}\t").as_bytes());
                input.extend_from_slice(files::bytes(&prefix));
                input.extend_from_slice(files::bytes(path.as_os_str()));
                input.push(0);
            }
            let args = ["update-index", "-z", "--index-info"];
            // Without input, it does nothing.
            git.read("remove files from the index", args, input, deadline)?;
        }
        if !added.is_empty() {
            // Many new files are written into one pack, which takes a quarter of the time and less space. With a
            // repository of the user, most are not new, and would be compressed in vain.
            let is_new = self.user.is_none() && added.len() > MAX_LOOSE;
            let threshold = if is_new { "1" } else { "512m" };
            let threshold = format!("core.bigFileThreshold={threshold}");
            let args = ["-c", &threshold, "update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            let input = joined(added.iter().map(PathBuf::as_path));
            git.read("read the changed files", args, input, deadline)?;
        }
        Ok(omitted)
    }

    /// Decides about a path that is not in the index as it is on the disk.
    fn look(&self, path: &Path, parents: &mut HashMap<PathBuf, bool>) -> Found {
        for parent in path.ancestors().skip(1) {
            let full = self.folder.join(parent);
            let is_folder = parents.entry(parent.to_owned()).or_insert_with(|| {
                parent.as_os_str().is_empty() || full.symlink_metadata().is_ok_and(|m| m.is_dir())
            });
            if !*is_folder {
                return Found::Gone;
            }
        }
        let full = self.folder.join(path);
        let Ok(meta) = full.symlink_metadata() else { return Found::Gone };
        if is_reserved(path, meta.is_symlink()) {
            return Found::Omit(Why::Special);
        }
        if meta.is_symlink() {
            return Found::Add { bytes: meta.len() };
        }
        match () {
            () if meta.is_dir() => Found::Gone,
            () if !meta.is_file() => Found::Omit(Why::Special),
            () if meta.len() > self.limits.max_file_bytes => Found::Omit(Why::TooLarge),
            () if files::open_at_once(&full).is_err() => match full.symlink_metadata() {
                Ok(_) => Found::Omit(Why::Unreadable),
                Err(_) => Found::Gone,
            },
            () => Found::Add { bytes: meta.len() },
        }
    }

    /// A path in the folder that a caller named; `None`: it has no place in the index.
    pub(super) fn relative(&self, path: &Path) -> Option<PathBuf> {
        let relative = path.strip_prefix(&self.folder).unwrap_or(path);
        let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
        (is_plain && !relative.as_os_str().is_empty()).then(|| relative.components().collect())
    }

    /// Whether a path is not in the folder, or reached only through a link.
    fn is_outside(&self, path: &Path) -> bool {
        let Some(relative) = self.relative(path) else { return true };
        let full = self.folder.join(relative);
        let parent = full.parent().unwrap_or(&full);
        full.symlink_metadata().is_ok() && parent.canonicalize().is_ok_and(|real| real != parent)
    }

    /// The paths that the user's repository has although its patterns exclude them. Only its index lists them.
    fn tracked_and_ignored(&self, deadline: Deadline) -> Result<Vec<PathBuf>, SnapshotError> {
        if self.user.is_none() {
            return Ok(Vec::new());
        }
        let args = ["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"];
        let output = Git::of_user(&self.folder)?.read("list ignored files", args, Vec::new(), deadline)?;
        Ok(split(&output).map(path_of).collect())
    }

    pub(super) fn is_in_nested_repository(&self, path: &Path) -> bool {
        let parents = path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
        parents.into_iter().any(|parent| is_repository(&self.folder.join(parent)))
    }

    /// Adds everything on the disk that is not in the index.
    fn with_rest(
        &self,
        mut omitted: BTreeMap<PathBuf, Reason>,
        rest: &Output,
    ) -> Result<Omitted, SnapshotError> {
        let unreadable = unreadable(&rest.stderr).filter(|_| rest.code == Some(0));
        for path in unreadable.ok_or_else(|| rest.error("list the files that are not captured"))? {
            let path = path.strip_prefix(PathBuf::from(self.prefix())).unwrap_or(&path).to_owned();
            omitted.insert(path, Reason::Why(Why::Unreadable));
        }
        let mut budget = MAX_ALL_LISTED;
        for name in split(&rest.stdout) {
            let Some(name) = name.strip_suffix(b"/") else {
                omitted.entry(path_of(name)).or_insert(Reason::Ignored);
                continue;
            };
            let path = path_of(name);
            let mut found = BTreeMap::new();
            let mut left = MAX_LISTED.min(budget);
            if list(&self.folder, &path, &mut found, &mut left).is_none() {
                found = BTreeMap::from([(path, Reason::Ignored)]);
            }
            budget = budget.saturating_sub(found.len());
            for (path, reason) in found {
                omitted.entry(path).or_insert(reason);
            }
        }
        Ok(Omitted(omitted))
    }

    fn write_tree(&self, git: &Git, deadline: Deadline) -> Result<String, SnapshotError> {
        let prefix = self.prefix();
        let mut option = OsString::from("--prefix=");
        option.push(&prefix);
        let args = [OsStr::new("write-tree"), &option];
        let args = if prefix.is_empty() { &args[..1] } else { &args[..] };
        let output = git.run(args, Vec::new(), deadline)?;
        if output.code != Some(0) && output.stderr.ends_with(b" not found\n") && !prefix.is_empty() {
            let files = git.read("list the index", ["ls-files", "-z"], Vec::new(), deadline)?;
            if files.is_empty() {
                return self.empty_tree(deadline);
            }
        }
        output.ok("write the tree").map(|line| Output::line(&line))
    }

    /// Makes a snapshot of the tree, unless the last one of the session is equal.
    fn save(
        &self,
        session: &str,
        run: &Path,
        files: String,
        omitted: &Omitted,
        deadline: Deadline,
    ) -> Result<Captured, SnapshotError> {
        let micros = unix_micros();
        let left_out = omitted.left_out();
        let encoded = omitted.encode();
        let head = self.user.as_ref().and_then(super::store::UserRepository::head);
        let mut last = Last {
            files,
            omitted: content_hash(&encoded),
            head: head.clone().unwrap_or_else(|| "none".to_owned()),
            id: ObjectId(String::new()),
            reference: format!("refs/parlor/{session}/{micros}"),
        };
        let known = Last::read(self, session);
        let is_equal = known.as_ref().is_some_and(|k| k.files == last.files && k.omitted == last.omitted);
        if self.user.is_some() && !(is_equal && known.as_ref().is_some_and(|known| known.head == last.head)) {
            self.copy_borrowed(&last.files, head.as_deref(), deadline)?;
        }
        match known.filter(|_| is_equal) {
            Some(known) => (last.id, last.reference) = (known.id, known.reference),
            None => last.id = self.save_commit(&last, encoded, micros, deadline)?,
        }
        let index = self.index(session);
        // Nothing was captured yet if there is no file.
        if run.exists() {
            fs::rename(run, &index).map_err(SnapshotError::file("replace the index", &index))?;
        }
        last.write(self, session)?;
        let id = SnapshotId(last.id);
        Ok(Captured { id, at: micros / 1000, left_out, reused: is_equal, pruned: 0 })
    }

    fn save_commit(
        &self,
        last: &Last,
        omitted: Vec<u8>,
        micros: u64,
        deadline: Deadline,
    ) -> Result<ObjectId, SnapshotError> {
        let line = |doing, git: &Git, args: &[&str], input: Vec<u8>| {
            git.read(doing, args, input, deadline).map(|output| Output::line(&output))
        };
        let args = ["hash-object", "-w", "--stdin"];
        let blob = line("write the list of omitted files", &self.git, &args, omitted)?;
        let tree = format!("040000 tree {}\tfiles\n100644 blob {blob}\tomitted\n", last.files);
        let tree = line("write the snapshot", &self.git, &["mktree"], tree.into_bytes())?;
        let seconds = format!("{} +0000", micros / 1_000_000);
        let git = self.git.with(IDENTITY);
        let git = git.with([("GIT_AUTHOR_DATE", &seconds), ("GIT_COMMITTER_DATE", &seconds)]);
        let commit = line("write the commit", &git, &["commit-tree", &tree], b"snapshot\n".to_vec())?;
        line("save the snapshot", &self.git, &["update-ref", &last.reference, &commit], Vec::new())?;
        let message = || format!("the id {tree:?} is not valid");
        ObjectId::parse(&tree)
            .ok_or_else(|| SnapshotError::Git { doing: "write the snapshot", message: message() })
    }

    /// Copies the objects of a tree that the user's repository may delete: those that its last commit does not have.
    fn copy_borrowed(&self, tree: &str, head: Option<&str>, deadline: Deadline) -> Result<(), SnapshotError> {
        let doing = "find the objects to copy";
        let mut base = head.map(|commit| {
            let mut name = OsString::from(format!("{commit}:"));
            let prefix = self.prefix();
            name.push(files::from_bytes(files::bytes(&prefix).strip_suffix(b"/").unwrap_or_default()));
            name
        });
        if let Some(name) = &base {
            let args = [OsStr::new("rev-parse"), OsStr::new("--verify"), OsStr::new("--quiet"), name];
            let output = self.git.run(args, Vec::new(), deadline)?;
            base = (output.code == Some(0)).then(|| Output::line(&output.stdout).into());
        }
        let base = match base {
            Some(base) => base,
            None => self.empty_tree(deadline)?.into(),
        };
        let args = ["diff-tree", "-r", "-t", "-z", "--no-renames"].map(OsStr::new);
        let args = args.into_iter().chain([base.as_os_str(), OsStr::new(tree)]);
        let output = self.git.read(doing, args, Vec::new(), deadline)?;
        let new = split(&output).filter(|part| part.starts_with(b":")).filter_map(|part| {
            let mut fields = part[1..].split(|byte| *byte == b' ');
            let (_, mode, _, id) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
            (!matches!(mode, b"000000" | b"160000")).then(|| ObjectId::of_bytes(id)).flatten()
        });
        let mut ids: BTreeSet<ObjectId> = new.collect();
        ids.extend(ObjectId::parse(tree));
        let args = ["cat-file", "--batch-check=%(objectname)"];
        let found = self.without_borrowed().read(doing, args, lines(ids), deadline)?;
        let found = String::from_utf8_lossy(&found);
        let missing = lines(found.lines().filter_map(|line| line.strip_suffix(" missing")));
        if missing.is_empty() {
            return Ok(());
        }
        let pack = self.git_dir.join("objects/pack/pack");
        let args = ["pack-objects", "-q"].map(OsStr::new).into_iter().chain([pack.as_os_str()]);
        self.git.read("copy objects", args, missing, deadline).map(drop)
    }
}

fn stopped() -> SnapshotError {
    SnapshotError::Git { doing: "run git", message: "its thread ended early".to_owned() }
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

pub(super) fn is_repository(folder: &Path) -> bool {
    let git = folder.join(".git");
    git.is_file() || git.join("HEAD").symlink_metadata().is_ok()
}

/// Lists a folder that has nothing in the index; `None`: it has too many files, or cannot be read.
fn list(top: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, Reason>, left: &mut usize) -> Option<()> {
    let full = top.join(folder);
    if is_repository(&full) {
        found.insert(folder.to_owned(), Reason::Why(Why::NestedRepository));
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
            found.insert(path, Reason::Ignored);
        }
    }
    if is_empty {
        found.insert(folder.to_owned(), Reason::Empty);
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
        let reasons = Reason::ALL.iter().zip(1..);
        let omitted = Omitted(reasons.map(|((_, reason), n)| (path_of(&[b'a', 0xff, n]), *reason)).collect());
        assert_eq!(Omitted::decode(&omitted.encode()), Some(omitted));
        assert_eq!(Omitted::decode(b"?x\0"), None);
    }
}
