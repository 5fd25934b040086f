//! Files and folders that only their owner may read: everything that parlor writes for itself.
//!
//! All modules that write logs, records, settings or exports open their files here, so that the modes are set
//! in one place: 0600 for files, 0700 for folders. An existing file with a wider mode is restricted when it
//! is opened. Files that parlor writes for an agent belong to the user's project and get the usual modes
//! (`host::fs`).

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// The permission bits of group and others.
const OTHERS: u32 = 0o077;

/// Creates a folder and its parents. Existing folders keep their modes, because they may be the user's.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Creates a folder that only parlor uses, and restricts it if it exists.
pub fn make_own_folder(path: &Path) -> io::Result<()> {
    make_folder(path)?;
    restrict(path);
    Ok(())
}

/// Creates a temporary folder, which is removed when it is dropped.
pub fn temporary_folder() -> io::Result<tempfile::TempDir> {
    let mode = Permissions::from_mode(FOLDER_MODE);
    tempfile::Builder::new().prefix("parlor-").permissions(mode).tempdir()
}

/// Maximum size of a file that the user writes, such as the configuration.
const OWN_FILE_BYTES: u64 = 4 << 20;

/// Reads a small file that the user writes. Fails for anything but a regular file, which could block or never end.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let data = fs::metadata(path)?;
    if !data.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(OWN_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > OWN_FILE_BYTES {
        let text = format!("it is larger than {} MiB", OWN_FILE_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Opens a file for appending, and creates it if it does not exist.
pub fn append(path: &Path) -> io::Result<File> {
    opened(OpenOptions::new().create(true).append(true), path)
}

/// Creates a file. Fails if it exists.
pub fn create_new(path: &Path) -> io::Result<File> {
    opened(OpenOptions::new().write(true).create_new(true), path)
}

/// The same below a folder, with the folders of the path; links that lead out of it are not followed.
pub fn create_new_in(folder: &cap_std::fs::Dir, path: &Path) -> io::Result<cap_std::fs::File> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        folder.create_dir_all(parent)?;
    }
    let mut options = cap_std::fs::OpenOptions::new();
    cap_std::fs::OpenOptionsExt::mode(options.write(true).create_new(true), FILE_MODE);
    folder.open_with(path, &options)
}

/// Opens a lock file, and creates it if it does not exist. Its contents are not changed.
pub fn open_lock(path: &Path) -> io::Result<File> {
    opened(OpenOptions::new().write(true).create(true).truncate(false), path)
}

fn opened(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.mode(FILE_MODE).open(path)?;
    let facts = file.metadata()?;
    // This fails for files of other users and on file systems without modes.
    if facts.is_file() && facts.permissions().mode() & OTHERS != 0 {
        let _ = file.set_permissions(Permissions::from_mode(FILE_MODE));
    }
    Ok(file)
}

/// Restricts a file or folder without opening it. Ignores links, devices and missing files.
pub fn restrict(path: &Path) {
    let Ok(facts) = fs::symlink_metadata(path) else { return };
    let mode = match facts.file_type() {
        kind if kind.is_dir() => FOLDER_MODE,
        kind if kind.is_file() => FILE_MODE,
        _ => return,
    };
    if facts.permissions().mode() & OTHERS != 0 {
        let _ = fs::set_permissions(path, Permissions::from_mode(mode));
    }
}

/// Writes a file atomically, replacing an existing one. Creates its folder if needed.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    make_folder(path.parent().unwrap_or(Path::new("/")))?;
    staged(path, contents)?.persist(path).map(drop).map_err(|refused| refused.error)
}

/// A temporary file next to `path` with these contents, synced to disk and not yet renamed. Temporary files
/// have the mode 0600.
pub fn staged(path: &Path, contents: &[u8]) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(contents)?;
    file.as_file().sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_small_regular_files_of_the_user_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "text").unwrap();
        assert_eq!(read(&file).unwrap(), b"text");
        File::create(&file).unwrap().set_len(OWN_FILE_BYTES + 1).unwrap();
        assert_eq!(read(&file).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        for path in [folder.path(), Path::new("/dev/zero")] {
            assert_eq!(read(path).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        assert_eq!(
            read(&pipe).unwrap_err().kind(),
            io::ErrorKind::InvalidInput,
            "it does not wait for a writer"
        );
    }

    #[test]
    fn new_files_and_folders_are_private() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        make_folder(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        append(&at("log")).unwrap();
        create_new(&at("db")).unwrap();
        open_lock(&at("lock")).unwrap();
        replace(&at("c/config"), b"x").unwrap();
        for name in ["log", "db", "lock", "c/config"] {
            assert_eq!(mode(&at(name)), 0o600, "{name}");
        }
        for name in ["", "c", ".."] {
            assert_eq!(mode(&at(name)), 0o700, "{name}");
        }
        assert!(create_new(&at("db")).is_err());
    }

    #[test]
    fn existing_files_are_restricted_and_keep_their_contents() {
        let root = tempfile::tempdir().unwrap();
        let wide = |name: &str| {
            let path = root.path().join(name);
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
            path
        };
        let (log, lock, db, config) = (wide("log"), wide("lock"), wide("db"), wide("config"));
        append(&log).unwrap().write_all(b"!").unwrap();
        open_lock(&lock).unwrap();
        restrict(&db);
        replace(&config, b"new").unwrap();
        for (path, text) in [(&log, "old!"), (&lock, "old"), (&db, "old"), (&config, "new")] {
            assert_eq!((mode(path), fs::read_to_string(path).unwrap().as_str()), (0o600, text), "{path:?}");
        }
        let folder = root.path().join("logs");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        make_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o755, "the folder may be the user's");
        make_own_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
    }

    #[test]
    fn devices_and_link_targets_keep_their_modes() {
        let root = tempfile::tempdir().unwrap();
        let (target, link) = (root.path().join("target"), root.path().join("link"));
        fs::write(&target, "").unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        restrict(&link);
        restrict(&root.path().join("missing"));
        assert_eq!(mode(&target), 0o644);
        let before = mode(Path::new("/dev/null"));
        append(Path::new("/dev/null")).unwrap();
        assert_eq!(mode(Path::new("/dev/null")), before);
    }
}
