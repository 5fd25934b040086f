//! The private repository of a folder, and the user's repository that it borrows objects from.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::{Refusal, SnapshotError};
use super::git::{Deadline, Git, Output, split};
use super::{Options, Snapshots};
use crate::host::os::files::{self, NULL_DEVICE};
use crate::host::os::{private, volumes};
use crate::host::{git as user_git, regular};

/// Maximum size of a file with patterns of ignored files.
const MAX_PATTERN_BYTES: u64 = 4 << 20;

/// The copy of the user's patterns.
const USER_PATTERNS: &str = "user-exclude";

/// Takes precedence over `.gitattributes`. An encoding cannot be switched off, only left unspecified.
const ATTRIBUTES: &str = "* -text -crlf !eol -ident -filter !working-tree-encoding -diff -merge\n";

/// Durable when a capture returns, with one flush for all files.
const CONFIG: &str = "\
[core]
\tbare = false
\tfsmonitor = false
\tuntrackedCache = false
\tsplitIndex = false
\tautocrlf = false
\tsafecrlf = false
\tsymlinks = true
\tfileMode = true
\tquotePath = false
\tprotectNTFS = false
\tprotectHFS = false
\tprecomposeUnicode = false
\tpreloadIndex = true
\tfsync = objects,reference
\tfsyncMethod = batch
[gc]
\tauto = 0
[maintenance]
\tauto = false
";

/// The user's repository of a folder, with objects that can be borrowed.
#[derive(Debug)]
pub(super) struct UserRepository {
    pub git_dir: PathBuf,
    pub common_dir: PathBuf,
    pub objects: PathBuf,
}

impl UserRepository {
    /// The last commit; `None` before the first one, or unknown.
    pub(super) fn head(&self) -> Option<String> {
        user_git::changes::commit(&self.git_dir, &self.common_dir).ok().flatten()
    }
}

/// The repository that a folder is in.
pub(super) struct Found {
    /// Its root, or the folder.
    pub work_tree: PathBuf,
    pub user: Option<UserRepository>,
    /// Its own patterns of ignored files.
    pub excludes: Option<PathBuf>,
    pub is_sha256: bool,
}

/// Why snapshots of a canonical folder are not captured.
pub(super) fn refusal(folder: &Path, data: &Path, options: &Options) -> Option<Refusal> {
    let home = options.home.as_ref().map(|home| home.canonicalize().unwrap_or_else(|_| home.clone()));
    if !folder.is_dir() {
        return Some(Refusal::NotAFolder);
    }
    if folder.parent().is_none() {
        return Some(Refusal::Root);
    }
    if home.as_deref() == Some(folder) {
        return Some(Refusal::Home);
    }
    if home.is_some_and(|home| home.starts_with(folder)) {
        return Some(Refusal::AboveHome);
    }
    if data.starts_with(folder) || folder.starts_with(data) {
        return Some(Refusal::OwnData);
    }
    let network = volumes::network_file_system(folder).filter(|_| !options.allows_network);
    network.map(Refusal::Network)
}

/// Finds the repository of a folder. Its objects are borrowed only if git confirms where they are.
pub(super) fn find_repository(folder: &Path, deadline: Deadline) -> Result<Found, SnapshotError> {
    let alone = Found { work_tree: folder.to_owned(), user: None, excludes: None, is_sha256: false };
    let Some(Ok(found)) = user_git::find(folder) else { return Ok(alone) };
    let excludes = Some(found.common_dir.join("info/exclude"));
    let alone = Found { work_tree: found.root.clone(), excludes, ..alone };
    let is_supported = user_git::changes::check_objects(&found).is_ok()
        && user_git::changes::commit(&found.git_dir, &found.common_dir).is_ok();
    if !is_supported {
        return Ok(alone);
    }
    let args = [
        "rev-parse",
        "--path-format=absolute",
        "--show-object-format",
        "--git-common-dir",
        "--git-path",
        "objects",
        "--show-toplevel",
    ];
    let output = Git::of_user(folder)?.run(args, Vec::new(), deadline)?;
    // Names with line ends give more lines.
    let text = output.stdout.strip_suffix(b"\n").unwrap_or_default();
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let (Some(0), [format, common_dir, objects, root]) = (output.code, lines.as_slice()) else {
        return Ok(alone);
    };
    let real = |path: &[u8]| PathBuf::from(files::from_bytes(path)).canonicalize().ok();
    let is_same =
        real(common_dir).as_ref() == Some(&found.common_dir) && real(root).as_ref() == Some(&found.root);
    let is_sha256 = *format == b"sha256";
    match real(objects) {
        Some(objects) if is_same && (is_sha256 || *format == b"sha1") => {
            let user = UserRepository { git_dir: found.git_dir, common_dir: found.common_dir, objects };
            Ok(Found { user: Some(user), is_sha256, ..alone })
        }
        _ => Ok(alone),
    }
}

/// The file with the user's patterns, if it is set. Otherwise git finds the usual one.
pub(super) fn excludes_file(folder: &Path, deadline: Deadline) -> Result<Option<PathBuf>, SnapshotError> {
    let args = ["config", "--null", "--path", "--get", "core.excludesFile"];
    let output = Git::of_user(folder)?.run(args, Vec::new(), deadline)?;
    match output.code {
        Some(0) => {
            let path = split(&output.stdout).next().map(|path| PathBuf::from(files::from_bytes(path)));
            Ok(path.filter(|path| path.is_absolute()))
        }
        Some(1) => Ok(None),
        _ => Err(output.error("read core.excludesFile")),
    }
}

/// Creates or updates the private repository.
pub(super) fn create(
    git_dir: &Path,
    folder: &Path,
    is_sha256: bool,
    user_excludes: Option<&Path>,
) -> Result<(), SnapshotError> {
    for name in ["", "objects", "objects/pack", "objects/info", "refs", "info", "parlor", "parlor/sessions"] {
        let path = git_dir.join(name);
        private::make_own_folder(&path).map_err(SnapshotError::file("create", &path))?;
    }
    let mut config = CONFIG.as_bytes().to_vec();
    let facts = format!(
        "[core]\n\thooksPath = {NULL_DEVICE}\n\tattributesFile = {NULL_DEVICE}\n\tignoreCase = {}\n\t\
         repositoryFormatVersion = {}\n",
        ignores_case(folder),
        u8::from(is_sha256)
    );
    config.extend_from_slice(facts.as_bytes());
    if user_excludes.is_some() {
        config.extend_from_slice(b"\texcludesFile = ");
        config.extend_from_slice(files::bytes(&quoted(&git_dir.join("info").join(USER_PATTERNS))));
        config.push(b'\n');
    }
    if is_sha256 {
        config.extend_from_slice(b"[extensions]\n\tobjectFormat = sha256\n");
    }
    let contents: [(&str, &[u8]); 4] = [
        ("config", &config),
        ("info/attributes", ATTRIBUTES.as_bytes()),
        ("parlor/folder", files::bytes(folder.as_os_str())),
        ("HEAD", b"ref: refs/heads/none\n"),
    ];
    for (name, content) in contents {
        replace_changed(&git_dir.join(name), content)?;
    }
    Ok(())
}

fn replace_changed(path: &Path, content: &[u8]) -> Result<(), SnapshotError> {
    if regular::read(path, MAX_PATTERN_BYTES).as_deref() == Some(content) {
        return Ok(());
    }
    private::replace(path, content).map_err(SnapshotError::file("write", path))
}

/// Copies the patterns of ignored files that are not in the folder: those of the repository and of the user.
pub(super) fn copy_patterns(
    git_dir: &Path,
    excludes: Option<&Path>,
    user_excludes: Option<&Path>,
) -> Result<(), SnapshotError> {
    for (name, from) in [("exclude", excludes), (USER_PATTERNS, user_excludes)] {
        let content = match from.filter(|path| path.exists()) {
            Some(path) => regular::read(path, MAX_PATTERN_BYTES).ok_or_else(|| {
                let error = std::io::Error::other("it is not a regular file, too large, or not readable");
                SnapshotError::file("read the patterns of ignored files in", path)(error)
            })?,
            None => Vec::new(),
        };
        replace_changed(&git_dir.join("info").join(name), &content)?;
    }
    Ok(())
}

/// Whether the repository around a folder ignores all of it.
pub(super) fn is_ignored(git: &Git, git_dir: &Path, deadline: Deadline) -> Result<bool, SnapshotError> {
    let none = [("GIT_INDEX_FILE", git_dir.join("parlor/none"))];
    // It refuses literal paths, and `.` is not special.
    let git = git.with(none).with([("GIT_LITERAL_PATHSPECS", "0")]);
    let output = git.run(["check-ignore", "-q", "."], Vec::new(), deadline)?;
    match output.code {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(output.error("check whether the folder is ignored")),
    }
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

/// A path in a list of folders, or in a configuration file, for git.
pub(super) fn quoted(path: &Path) -> OsString {
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
    /// The path of the folder in the user's repository, with a slash at the end; empty for its root.
    pub(super) fn prefix(&self) -> OsString {
        let prefix = self.folder.strip_prefix(&self.work_tree).unwrap_or(Path::new(""));
        let mut prefix = prefix.as_os_str().to_owned();
        if !prefix.is_empty() {
            prefix.push("/");
        }
        prefix
    }

    /// The id of the tree without files, which is written because git must find it.
    pub(super) fn empty_tree(&self, deadline: Deadline) -> Result<String, SnapshotError> {
        let args = ["hash-object", "-t", "tree", "-w", "--stdin"];
        self.git.read("write a tree", args, Vec::new(), deadline).map(|line| Output::line(&line))
    }

    /// The folder of indexes of sessions.
    pub(super) fn sessions(&self) -> PathBuf {
        self.at("sessions")
    }

    /// Files of the folder of sessions.
    pub(super) fn session_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.sessions()).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}
