//! The index that a capture starts from: what is known about the files, so that unchanged ones are not read again.
//!
//! An index is worked on as a copy, which replaces the index of the session when the capture has succeeded. So an
//! interrupted capture, or a git that outlives parlor, changes nothing. The copy has the time of the original:
//! git reads a file again that is not older than its index.
//!
//! The first index is the user's, but only if its contents are certainly the bytes on the disk.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::error::SnapshotError;
use super::git::{Deadline, Git, split};
use super::{ObjectId, Snapshots};
use crate::host::git::index::{Entry, Index};
use crate::host::os::{files, private};
use crate::host::regular;
use crate::model::hex;

const MAX_INDEX_BYTES: u64 = 512 << 20;

/// The mode of submodules.
const SUBMODULE: u32 = 0o160_000;

/// Files for which one of these is set may have other bytes in the repository than on the disk.
const CONVERTED: &str = ":(exclude,attr:!text !eol !crlf !filter !ident !working-tree-encoding)";

/// Settings that convert contents or exclude files, with the only values that do not.
const HARMLESS: [&str; 3] = ["core.autocrlf\nfalse", "core.sparsecheckout\nfalse", "core.splitindex\nfalse"];

impl Snapshots {
    /// The index of a session.
    pub(super) fn index(&self, session: &str) -> PathBuf {
        self.sessions().join(format!("{session}.index"))
    }

    /// Makes a copy to work on. The best one first: of the session, of another session, of the user, none.
    pub(super) fn start_index(
        &self,
        session: &str,
        run: &Path,
        deadline: Deadline,
    ) -> Result<(), SnapshotError> {
        let mut known: Vec<(SystemTime, PathBuf)> = self
            .session_files()
            .into_iter()
            .filter(|path| path.extension() == Some(OsStr::new("index")))
            .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
            .collect();
        known.sort();
        let own = self.index(session);
        let known = if own.exists() { Some(own) } else { known.pop().map(|(_, path)| path) };
        let Some(from) = known else { return self.seed(run, deadline) };
        let error = || SnapshotError::file("copy the index", &from);
        let modified = from.metadata().and_then(|meta| meta.modified()).map_err(error())?;
        let bytes = regular::read(&from, MAX_INDEX_BYTES);
        let bytes = bytes.ok_or_else(|| error()(std::io::Error::other("it cannot be read")))?;
        write_index(run, &bytes, modified)
    }

    /// Starts from the index of the user's repository, or from nothing.
    fn seed(&self, run: &Path, deadline: Deadline) -> Result<(), SnapshotError> {
        let Some(user) = self.user.as_ref().filter(|_| self.folder == self.work_tree) else { return Ok(()) };
        let path = user.git_dir.join("index");
        // Read before the content: an older time only makes git look at more files.
        let Ok(modified) = path.symlink_metadata().and_then(|meta| meta.modified()) else { return Ok(()) };
        let Some(bytes) = regular::read(&path, MAX_INDEX_BYTES) else { return Ok(()) };
        let id_bytes = if self.is_sha256() { 32 } else { 20 };
        let Some(index) = Index::parse(&bytes, id_bytes) else { return Ok(()) };
        let is_plain = !index.has_ignored
            && index.entries().all(|entry| !entry.is_open && entry.mode != 0o040_000)
            && self.converts_nothing(deadline)?
            && self.has_same_sizes(&index, deadline)?;
        if !is_plain {
            return Ok(());
        }
        write_index(run, &bytes, modified)?;
        let submodules: Vec<Entry> = index.entries().filter(|entry| entry.mode == SUBMODULE).collect();
        let mut input = Vec::new();
        for entry in submodules {
            input.extend_from_slice(&entry.path);
            input.push(0);
        }
        if !input.is_empty() {
            let git = self.git.with([("GIT_INDEX_FILE", run)]);
            let args = ["update-index", "--force-remove", "-z", "--stdin"];
            git.read("remove submodules from the index", args, input, deadline)?;
        }
        Ok(())
    }

    pub(super) fn is_sha256(&self) -> bool {
        self.git_dir.as_os_str().as_encoded_bytes().ends_with(b"-sha256")
    }

    /// Whether neither the settings nor the attributes of the user's repository convert contents.
    fn converts_nothing(&self, deadline: Deadline) -> Result<bool, SnapshotError> {
        let git = Git::of_user(&self.folder)?;
        let names = r"^core\.(autocrlf|eol|sparsecheckout|splitindex)$";
        let settings = git.run(["config", "--null", "--get-regexp", names], Vec::new(), deadline)?;
        let is_harmless = |line: &[u8]| std::str::from_utf8(line).is_ok_and(|line| HARMLESS.contains(&line));
        if !matches!(settings.code, Some(0 | 1)) || !split(&settings.stdout).all(is_harmless) {
            return Ok(false);
        }
        let converted = git.run(["ls-files", "-z", "--", CONVERTED], Vec::new(), deadline)?;
        Ok(converted.code == Some(0) && converted.stdout.is_empty() && converted.stderr.is_empty())
    }

    /// Whether each file had the size of its object when git last looked. Settings that are no longer there, or an
    /// identifier that was expanded, leave other sizes.
    fn has_same_sizes(&self, index: &Index<'_>, deadline: Deadline) -> Result<bool, SnapshotError> {
        let compared = || index.entries().filter(|entry| entry.mode != SUBMODULE);
        let mut input = Vec::new();
        for entry in compared() {
            input.extend_from_slice(hex(entry.id).as_bytes());
            input.push(b'\n');
        }
        if input.is_empty() {
            return Ok(true);
        }
        let args = ["cat-file", "--batch-check=%(objecttype) %(objectsize)"];
        let output = self.git.run(args, input, deadline)?;
        if output.code != Some(0) {
            return Ok(false);
        }
        let mut lines = output.stdout.split(|byte| *byte == b'\n');
        let is_same = |entry: Entry<'_>, line: &[u8]| {
            let size = std::str::from_utf8(line).ok()?.strip_prefix("blob ")?.parse::<u64>().ok()?;
            // git reads files of the size 0 again.
            Some(entry.size == 0 || u64::from(entry.size) == size & 0xffff_ffff)
        };
        Ok(compared().all(|entry| is_same(entry, lines.next().unwrap_or_default()) == Some(true)))
    }
}

fn write_index(path: &Path, bytes: &[u8], modified: SystemTime) -> Result<(), SnapshotError> {
    let mut file = private::create_new(path).map_err(SnapshotError::file("create the index", path))?;
    file.write_all(bytes)
        .and_then(|()| file.set_modified(modified))
        .map_err(SnapshotError::file("write the index", path))
}

/// The name of a session in file names and references.
pub(super) fn session_name(session: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match session.len() {
        1..=64 if session.bytes().all(is_plain) && !session.starts_with('-') => session.to_owned(),
        _ => format!("x{}", crate::model::content_hash(session.as_bytes())),
    }
}

/// What is known of the last capture of a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Last {
    pub files: String,
    pub omitted: String,
    /// The last commit of the user: its objects are not copied.
    pub head: String,
    pub id: ObjectId,
    pub reference: String,
}

impl Last {
    fn path(snapshots: &Snapshots, session: &str) -> PathBuf {
        snapshots.sessions().join(format!("{session}.last"))
    }

    /// `None`: there is none, or it was pruned.
    pub(super) fn read(snapshots: &Snapshots, session: &str) -> Option<Self> {
        let text = regular::read_text(&Self::path(snapshots, session), 4096)?;
        let mut fields = text.split('\n').map(str::to_owned);
        let mut next = || fields.next().filter(|field| !field.is_empty());
        let last = Self {
            files: next()?,
            omitted: next()?,
            head: next()?,
            id: ObjectId::parse(&next()?)?,
            reference: next()?,
        };
        let text = regular::read_text(&snapshots.git_dir.join(&last.reference), 4096)?;
        ObjectId::parse(text.trim()).map(|_| last)
    }

    pub(super) fn write(&self, snapshots: &Snapshots, session: &str) -> Result<(), SnapshotError> {
        let Self { files, omitted, head, id, reference } = self;
        let text = format!("{files}\n{omitted}\n{head}\n{id}\n{reference}\n");
        let path = Self::path(snapshots, session);
        private::replace(&path, text.as_bytes()).map_err(SnapshotError::file("write", &path))
    }
}

/// The path that bytes of git's output name.
pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(files::from_bytes(bytes))
}
