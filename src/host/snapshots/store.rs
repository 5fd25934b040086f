//! The private repository of a folder, and the user's repository that it borrows objects from.
//!
//! Snapshots are not deleted with `git gc` or `git prune`: they fail if the user's repository has deleted a borrowed
//! object, and `git repack --local` would delete the copies of borrowed objects.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::capture::without_borrowed;
use super::git::{Git, lines, paths};
use super::restore::Journal;
use super::{Options, SnapshotError, Snapshots};
use crate::host::git::changes;
use crate::host::os::files::{self, NULL_DEVICE};
use crate::host::os::{private, volumes};
use crate::host::regular;

/// Maximum size of a file with patterns of ignored files.
const MAX_PATTERN_BYTES: u64 = 4 << 20;

/// Packing a store may take longer than a capture.
const MAX_PACK_TIME: Duration = Duration::from_secs(600);

/// The objects are packed when more than this number are in files of their own, or in this number of packs.
const MAX_LOOSE: usize = 4000;
const MAX_PACKS: usize = 20;

/// Takes precedence over `.gitattributes`. An encoding cannot be switched off, only left unspecified.
const ATTRIBUTES: &str = "* -text -crlf !eol -ident -filter !working-tree-encoding -diff -merge\n";

/// What differs from the defaults of git: it reads no other configuration. Durable when a capture returns, with one flush
/// for all files.
const CONFIG: &str = "\
[core]
\tfsmonitor = false
\tautocrlf = false
\tsymlinks = true
\tfileMode = true
\tquotePath = false
\tprotectNTFS = false
\tfsync = objects,reference
\tfsyncMethod = batch
";

/// What was deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    pub snapshots: usize,
    /// Size of the store afterwards.
    pub bytes: u64,
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

/// Why snapshots of a canonical folder are not captured.
pub(super) fn refusal(folder: &Path, data: &Path, options: &Options) -> Option<String> {
    let home = options.home.as_ref().map(|home| home.canonicalize().unwrap_or_else(|_| home.clone()));
    let network = volumes::network_file_system(folder).filter(|_| !options.allows_network);
    let why = match (home, network) {
        _ if !folder.is_dir() => "it is not a folder",
        _ if folder.parent().is_none() => {
            "it is the root of the file system. Open the folder of a project instead"
        }
        (Some(home), _) if home == folder => "it is your home folder. Open the folder of a project instead",
        (Some(home), _) if home.starts_with(folder) => {
            "it contains your home folder. Open the folder of a project instead"
        }
        _ if data.starts_with(folder) || folder.starts_with(data) => {
            "the data of parlor is in it. Move that data to another folder"
        }
        (_, Some(name)) => {
            return Some(format!(
                "it is on a network file system ({name}), where this may take long. Allow it first"
            ));
        }
        _ => return None,
    };
    Some(why.to_owned())
}

/// The file with the user's patterns of ignored files, if it is set. Otherwise git finds the usual one. The
/// configuration of the folder's repository is not read.
pub(super) fn user_patterns(git: &Git) -> Result<Option<OsString>, SnapshotError> {
    let output = git.run(["config", "--null", "--path", "--get", "core.excludesFile"], Vec::new())?;
    match output.code {
        Some(0) => Ok(paths(&output.stdout).next().filter(|path| path.is_absolute()).map(OsString::from)),
        Some(1) => Ok(None),
        _ => Err(output.error("read core.excludesFile")),
    }
}

/// Creates or updates the private repository.
pub(super) fn create(git_dir: &Path, folder: &Path) -> Result<(), SnapshotError> {
    for name in ["", "objects", "objects/pack", "objects/info", "refs", "info", "parlor", "parlor/sessions"] {
        let path = git_dir.join(name);
        private::make_own_folder(&path).map_err(SnapshotError::file("create", &path))?;
    }
    let config = format!(
        "{CONFIG}\thooksPath = {NULL_DEVICE}\n\tattributesFile = {NULL_DEVICE}\n\tignoreCase = {}\n",
        ignores_case(folder)
    );
    replace_changed(&git_dir.join("config"), config.as_bytes())?;
    replace_changed(&git_dir.join("info/attributes"), ATTRIBUTES.as_bytes())?;
    replace_changed(&git_dir.join("parlor/folder"), files::bytes(folder.as_os_str()))?;
    replace_changed(&git_dir.join("HEAD"), b"ref: refs/heads/none\n")
}

fn replace_changed(path: &Path, content: &[u8]) -> Result<(), SnapshotError> {
    if regular::read(path, MAX_PATTERN_BYTES).as_deref() == Some(content) {
        return Ok(());
    }
    private::replace(path, content).map_err(SnapshotError::file("write", path))
}

/// Whether another spelling of the folder's name leads to it. A name without letters counts as such.
pub(super) fn ignores_case(folder: &Path) -> bool {
    let Some(name) = folder.file_name().and_then(|name| name.to_str()) else { return false };
    let swap = |letter: char| {
        if letter.is_ascii_lowercase() { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
    };
    let swapped: String = name.chars().map(swap).collect();
    files::identity(folder) == files::identity(&folder.with_file_name(swapped))
}

/// A path in a list of folders for git.
fn quoted(path: &Path) -> OsString {
    let mut quoted = vec![b'"'];
    for byte in files::bytes(path.as_os_str()) {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(b"\\n"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    files::from_bytes(&quoted)
}

impl Snapshots {
    /// git in the private repository, with the whole time of a call.
    pub(super) fn git(&self) -> Git {
        let git = self.git.renewed(None);
        match self.borrowed() {
            Some((objects, _)) => git.with([("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&objects))]),
            None => git,
        }
    }

    /// The objects of the user's repository and its last commit. `None`: there is none, it borrows objects itself, or
    /// git could not find its objects by our ids (SHA-256). Checked each time, because an agent can change it.
    pub(super) fn borrowed(&self) -> Option<(PathBuf, String)> {
        let user = self.user.as_ref().filter(|user| changes::check_objects(user).is_ok())?;
        let head = changes::commit(&user.git_dir, &user.common_dir).ok()??;
        let objects = user.common_dir.join("objects").canonicalize().ok()?;
        (head.len() == 40).then_some((objects, head))
    }

    /// Copies the patterns of ignored files of the user's repository. They are not followed out of it.
    pub(super) fn copy_patterns(&self) -> Result<(), SnapshotError> {
        let name = Path::new("info/exclude");
        let found = self.user.as_ref().filter(|user| {
            user.common_dir.join(name).symlink_metadata().is_ok_and(|meta| !meta.is_symlink())
        });
        let patterns = match found {
            Some(user) => Dir::open_ambient_dir(&user.common_dir, ambient_authority())
                .ok()
                .and_then(|folder| regular::read_below(&folder, name, MAX_PATTERN_BYTES))
                .ok_or_else(|| {
                    let error = io::Error::other("it is not a regular file, too large, or not readable");
                    SnapshotError::file("read", &user.common_dir.join(name))(error)
                })?,
            None => Vec::new(),
        };
        replace_changed(&self.git_dir.join(name), &patterns)
    }

    /// Whether the repository around the folder ignores all of it.
    pub(super) fn is_ignored(&self) -> Result<bool, SnapshotError> {
        self.copy_patterns()?;
        let none = self.at("none").into_os_string();
        // It refuses literal paths, and `.` is not special.
        let git = self.git.with([("GIT_INDEX_FILE", none), ("GIT_LITERAL_PATHSPECS", "0".into())]);
        let output = git.run(["check-ignore", "-q", "."], Vec::new())?;
        match output.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(output.error("check whether the folder is ignored")),
        }
    }

    pub(super) fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.git_dir.join("parlor").join(name)
    }

    /// Files of the folder of sessions.
    pub(super) fn session_files(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(self.at("sessions")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    }

    /// Deletes the oldest snapshots until the store is not larger than this, and packs it if it has many objects. The
    /// newest snapshot stays. Call it when nothing is captured: it can take minutes.
    ///
    /// # Errors
    /// `Interrupted` if a restore has to be recovered; git failed; a file cannot be deleted.
    pub fn prune(&self, max_store_bytes: u64) -> Result<Pruned, SnapshotError> {
        let _lock = self.lock()?;
        self.prune_locked(max_store_bytes, true)
    }

    /// `packs`: also a store that is not too large.
    pub(super) fn prune_locked(&self, max_bytes: u64, packs: bool) -> Result<Pruned, SnapshotError> {
        let mut store = self.store();
        if !packs && store.bytes <= max_bytes {
            return Ok(Pruned { snapshots: 0, bytes: store.bytes });
        }
        if Journal::read(self)?.is_some() {
            return Err(SnapshotError::Interrupted);
        }
        let git = &self.git().renewed(Some(MAX_PACK_TIME));
        store.temporary.iter().try_for_each(|path| remove(path))?;
        if packs && (store.loose.len() > MAX_LOOSE || store.packs.len() > MAX_PACKS) {
            self.sweep(git, &store)?;
            store = self.store();
        }
        let args = ["for-each-ref", "--format=%(refname)", "refs/parlor"];
        let names = git.line("list snapshots", args, Vec::new())?;
        let mut references: Vec<&str> = names.lines().collect();
        references.sort_by_key(|name| name.rsplit('/').next().and_then(|time| time.parse::<u64>().ok()));
        let all = references.len();
        while store.bytes > max_bytes && references.len() > 1 {
            // A tenth at a time: each sweep reads all lists of files.
            let count = (references.len() / 10).max(1);
            let input = lines(references.drain(..count).map(|name| format!("delete {name}")));
            git.read("delete snapshots", ["update-ref", "--stdin"], input)?;
            self.sweep(git, &store)?;
            store = self.store();
        }
        if references.len() < all {
            // The index of a session may list objects that were deleted with its last snapshot.
            for path in self.session_files() {
                let session = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
                let prefix = format!("refs/parlor/{session}/");
                if !references.iter().any(|name| name.starts_with(&prefix)) {
                    remove(&path)?;
                }
            }
        }
        Ok(Pruned { snapshots: all - references.len(), bytes: store.bytes })
    }

    /// Packs the objects of this store that a snapshot needs, and deletes all others.
    fn sweep(&self, git: &Git, store: &Store) -> Result<(), SnapshotError> {
        let doing = "list the objects of the snapshots";
        let own = without_borrowed(git);
        let args = ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"];
        let present = own.line(doing, args, Vec::new())?;
        let args = ["rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--all"];
        let needed = git.line(doing, args, Vec::new())?;
        let needed: BTreeSet<&str> = needed.lines().collect();
        let ids = lines(present.lines().filter(|id| needed.contains(id)));
        let new = if ids.is_empty() { None } else { Some(self.pack(&own, ids)?) };
        let new = new.map(|name| format!("pack-{name}"));
        // The new pack may be equal to an old one.
        let is_old = |path: &&PathBuf| new.as_deref().map(OsStr::new) != path.file_stem();
        for path in store.packs.iter().filter(is_old) {
            // The index first: git ignores a pack without it.
            for extension in ["idx", "rev", "pack"] {
                remove(&path.with_extension(extension))?;
            }
        }
        store.loose.iter().try_for_each(|path| remove(path))
    }

    fn store(&self) -> Store {
        let mut store = Store::default();
        let files = |folder: &Path| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| (entry.path(), entry.metadata().map_or(0, |meta| meta.len())))
        };
        for (path, bytes) in files(&self.git_dir.join("objects")).flat_map(|(folder, _)| files(&folder)) {
            store.bytes += bytes;
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            match () {
                () if name.starts_with("tmp_") => store.temporary.push(path),
                () if path.extension() == Some(OsStr::new("pack")) => store.packs.push(path),
                () if name.bytes().all(|byte| byte.is_ascii_hexdigit()) => store.loose.push(path),
                () => {}
            }
        }
        store
    }
}

fn remove(path: &Path) -> Result<(), SnapshotError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(SnapshotError::file("delete", path)(error))
        }
        _ => Ok(()),
    }
}
