//! Determines from the index and the files whether tracked files are changed.
//!
//! A file with the size and time of the index is unchanged. A file with another time is read, within limits, and
//! compared with the blob that git stores; line ends may differ. Content that a filter would change is not
//! compared, because the filter is a program that the repository names.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use ring::digest::{self, Algorithm};

use super::index::{Entry, Index};
use super::{MAX_PACKED_BYTES, Repository, read_text};
use crate::host::os::files;
use crate::host::regular;

/// Time limit for checking files.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Maximum size of the index.
const MAX_INDEX_BYTES: u64 = 128 << 20;

/// Maximum number of bytes that are read to compare contents, in total and per file.
const MAX_READ_BYTES: u64 = 16 << 20;
const MAX_CONTENT_BYTES: u64 = 4 << 20;

/// Whether a tracked file is changed, or the index since the last commit.
pub(super) fn is_dirty(repository: &Repository) -> bool {
    look(repository).unwrap_or(false)
}

/// Whether the work tree is changed; `None`: unknown.
fn look(repository: &Repository) -> Option<bool> {
    let Repository { root, git_dir, common_dir } = repository;
    let config = read_text(&common_dir.join("config")).unwrap_or_default().to_ascii_lowercase();
    let has = |key: &str, value: &str| {
        config.lines().filter_map(|line| line.split_once('=')).any(|(name, reported)| {
            name.trim() == key && (value.is_empty() || reported.trim().trim_matches('"') == value)
        })
    };
    // The work tree of a `.git` folder may be elsewhere; a `.git` file is in its work tree.
    if root.join(".git").is_dir() && (has("worktree", "") || has("bare", "true")) {
        return None;
    }
    let algorithm =
        if has("objectformat", "sha256") { &digest::SHA256 } else { &digest::SHA1_FOR_LEGACY_USE_ONLY };
    let file = git_dir.join("index");
    let written = fs::metadata(&file).ok()?;
    let bytes = regular::read(&file, MAX_INDEX_BYTES)?;
    let index = Index::parse(&bytes, algorithm.output_len())?;
    // git also records a change when an entry is marked as ignored.
    let is_staged = index.is_tree_changed && !index.has_ignored;
    if is_staged || (index.entries().next().is_some() && is_unborn(git_dir, common_dir)) {
        return Some(true);
    }
    let looking = Looking {
        root,
        dir: Dir::open_ambient_dir(root, ambient_authority()).ok()?,
        algorithm,
        written: files::modified(&written),
        converting: [root.join(".gitattributes"), common_dir.join("info/attributes")]
            .iter()
            .any(|file| converts(file)),
        may_read_bytes: MAX_READ_BYTES,
        until: Instant::now() + MAX_TIME,
    };
    looking.find_change(&index)
}

/// Whether the branch has no commits.
fn is_unborn(git_dir: &Path, common_dir: &Path) -> bool {
    let Some(head) = read_text(&git_dir.join("HEAD")) else { return false };
    let Some(reference) = head.trim().strip_prefix("ref:").map(str::trim) else { return false };
    let is_plain = Path::new(reference).components().all(|part| matches!(part, Component::Normal(_)));
    let packed = common_dir.join("packed-refs");
    is_plain
        && !common_dir.join(reference).exists()
        && (!packed.exists()
            || regular::read_text(&packed, MAX_PACKED_BYTES).is_some_and(|all| !all.contains(reference)))
}

/// Whether attributes enable conversions between the work tree and the repository.
fn converts(attributes: &Path) -> bool {
    if !attributes.exists() {
        return false;
    }
    let attribute_names = ["filter", "ident", "working-tree-encoding"];
    read_text(attributes).is_none_or(|text| attribute_names.iter().any(|word| text.contains(word)))
}

struct Looking<'a> {
    root: &'a Path,
    dir: Dir,
    algorithm: &'static Algorithm,
    /// Time of the last write of the index: files with this or a later time may have changed without a new time.
    written: (i64, i64),
    converting: bool,
    may_read_bytes: u64,
    until: Instant,
}

impl Looking<'_> {
    fn find_change(mut self, index: &Index<'_>) -> Option<bool> {
        for entry in index.entries() {
            if Instant::now() >= self.until {
                return None;
            }
            if self.is_changed(&entry) {
                return Some(true);
            }
        }
        Some(false)
    }

    fn is_changed(&mut self, entry: &Entry<'_>) -> bool {
        const KIND: u32 = 0o170_000;
        const FILE: u32 = 0o100_000;
        const LINK: u32 = 0o120_000;
        if entry.is_open {
            return true;
        }
        let path = PathBuf::from(files::from_bytes(&entry.path));
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        // Submodules and folders of a sparse index are not files.
        if entry.is_ignored || !is_plain || !matches!(entry.mode & KIND, FILE | LINK) {
            return false;
        }
        let facts = match fs::symlink_metadata(self.root.join(&path)) {
            Ok(facts) => facts,
            Err(error) => return matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        let is_link = entry.mode & KIND == LINK;
        if facts.is_symlink() != is_link || (!is_link && !facts.is_file()) {
            return true;
        }
        let (seconds, nanos) = entry.modified;
        let modified = files::modified(&facts);
        let is_same_time = i64::from(seconds) == modified.0 && (nanos == 0 || i64::from(nanos) == modified.1);
        let is_late = modified >= self.written;
        // The index stores the size modulo 2^32.
        let is_same_size = u64::from(entry.size) == facts.len() & u64::from(u32::MAX);
        if is_same_size && is_same_time && !is_late {
            return false;
        }
        if is_link {
            let target = fs::read_link(self.root.join(&path)).unwrap_or_default();
            return self.id_of(files::bytes(target.as_os_str())) != entry.id;
        }
        self.is_content_changed(&path, facts.len(), is_same_size, entry)
    }

    fn is_content_changed(&mut self, path: &Path, len: u64, is_same_size: bool, entry: &Entry<'_>) -> bool {
        if self.converting
            || path.ancestors().skip(1).any(|folder| {
                !folder.as_os_str().is_empty() && converts(&self.root.join(folder).join(".gitattributes"))
            })
        {
            return false;
        }
        // git stores size 0 for files that must be compared again.
        if len > MAX_CONTENT_BYTES || len > self.may_read_bytes {
            return !is_same_size && entry.size != 0;
        }
        self.may_read_bytes -= len;
        let Some(content) = self.content(path) else { return false };
        if self.id_of(&content) == entry.id {
            return false;
        }
        let mut plain = Vec::with_capacity(content.len());
        for (position, byte) in content.iter().enumerate() {
            if *byte != b'\r' || content.get(position + 1) != Some(&b'\n') {
                plain.push(*byte);
            }
        }
        plain.len() == content.len() || self.id_of(&plain) != entry.id
    }

    /// Reads a file in the work tree, without following links out of it.
    fn content(&self, path: &Path) -> Option<Vec<u8>> {
        regular::read_below(&self.dir, path, MAX_CONTENT_BYTES)
    }

    fn id_of(&self, content: &[u8]) -> Vec<u8> {
        let mut context = digest::Context::new(self.algorithm);
        context.update(format!("blob {}\0", content.len()).as_bytes());
        context.update(content);
        context.finish().as_ref().to_vec()
    }
}
