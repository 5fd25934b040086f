//! Reads files that somebody else may have put there: regular files only, up to a size, without waiting for a pipe.

use std::fs::Metadata;
use std::io::Read;
use std::path::Path;

use super::os::files;

/// Reads a file of at most `max_bytes`; `None`: it is missing, larger, not a regular file, or not readable.
pub(super) fn read(path: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    let file = files::open_at_once(path).ok()?;
    let facts = file.metadata().ok().filter(Metadata::is_file)?;
    content(file, facts.len(), max_bytes)
}

/// The same for UTF-8 text.
pub(super) fn read_text(path: &Path, max_bytes: u64) -> Option<String> {
    String::from_utf8(read(path, max_bytes)?).ok()
}

/// The same below a folder; links that lead out of it are not followed.
pub(super) fn read_below(folder: &cap_std::fs::Dir, path: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    let file = files::open_at_once_in(folder, path).ok()?;
    let facts = file.metadata().ok().filter(cap_std::fs::Metadata::is_file)?;
    content(file, facts.len(), max_bytes)
}

fn content(file: impl Read, size_bytes: u64, max_bytes: u64) -> Option<Vec<u8>> {
    if size_bytes > max_bytes {
        return None;
    }
    let mut bytes = Vec::new();
    // The size may be wrong: it is 0 for files of `/proc`.
    file.take(max_bytes + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= max_bytes).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::os::fixtures;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "four").unwrap();
        assert_eq!(read_text(&file, 4).as_deref(), Some("four"));
        assert_eq!(read(&file, 3), None);
        assert_eq!(read(&folder.path().join("missing"), 4), None);
        assert_eq!(read(folder.path(), 4), None);
        for special in ["/dev/zero", "/dev/null"] {
            assert_eq!(read(Path::new(special), 4), None);
        }
        let pipe = folder.path().join("pipe");
        fixtures::pipe(&pipe);
        assert_eq!(read(&pipe, 4), None, "a pipe without a writer");
        assert_eq!(read(Path::new("/proc/self/status"), 4), None, "a wrong size");

        let below = cap_std::fs::Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
        assert_eq!(read_below(&below, Path::new("file"), 4).as_deref(), Some(b"four".as_slice()));
        assert_eq!(read_below(&below, Path::new("pipe"), 4), None);
        fixtures::link("/etc/hostname", folder.path().join("link"));
        assert_eq!(read_below(&below, Path::new("link"), 1 << 20), None);
    }
}
