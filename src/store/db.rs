//! Opens the database file, and classifies its errors.
//!
//! Invariants: a damaged file is renamed and reported, never overwritten; a file of a newer version or of another
//! program is not changed; several processes may do this at once.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rusqlite::Error::{InvalidColumnName, SqlInputError};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::fault::{Fault, StoreError};
use super::schema;
use super::support::with_suffix;
use crate::host::os::files;
use crate::host::os::private;
use crate::lock::lock;

/// The file's name in the data folder.
pub(super) const FILE: &str = "record.db";

/// How long to wait for another parlor that writes.
const MAX_BUSY_WAIT: Duration = Duration::from_secs(2);

/// How long to pause where SQLite does not wait itself.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// Target size of the write-ahead log between two checkpoints.
const MAX_LOG_BYTES: i64 = 16 << 20;

/// A connection with the identity of its file.
#[derive(Debug)]
pub(super) struct Db {
    pub conn: Connection,
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl Db {
    /// Whether the path still leads to the open file.
    pub fn is_current(&self) -> bool {
        files::identity(&self.path) == self.identity
    }
}

/// Opens the file and migrates it, without repairs. A read-only file is opened for reading if no process writes to
/// it.
pub(super) fn open(root: &Path) -> Result<Db, StoreError> {
    let path = root.join(FILE);
    let conn = match open_to_write(root, &path) {
        Err(StoreError { fault: Fault::ReadOnly, path }) if path.exists() => {
            open_to_read(root).map_err(|_| StoreError::new(&path, Fault::ReadOnly))
        }
        other => other,
    }?;
    Ok(Db { conn, identity: files::identity(&path), path })
}

/// Opens a file in a read-only folder, without SQLite's log.
pub(super) fn open_to_read(root: &Path) -> rusqlite::Result<Connection> {
    let [path, log, _] = files(&root.join(FILE));
    // Changes in an existing log would be missing.
    if log.metadata().is_ok_and(|meta| meta.len() > 0) {
        return Err(rusqlite::Error::InvalidPath(log));
    }
    let conn = open_frozen(&path)?;
    // A file of another version would have to be migrated first.
    let is_known = schema::is_own(&conn)? && schema::number(&conn, "user_version")? == schema::NEWEST;
    if is_known { Ok(conn) } else { Err(rusqlite::Error::InvalidQuery) }
}

/// Opens a file for reading without any change on the disk.
pub(super) fn open_frozen(path: &Path) -> rusqlite::Result<Connection> {
    let name = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{name}?immutable=1"), flags)
}

fn open_to_write(root: &Path, path: &Path) -> Result<Connection, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::new(path, fault(&error));
    let foreign = || StoreError::new(path, Fault::Foreign);
    private::make_folder(root).map_err(|error| StoreError::new(path, io_fault(&error)))?;
    if path.exists() && open_frozen(path).and_then(|conn| schema::is_own(&conn)).is_ok_and(|is_own| !is_own) {
        return Err(foreign());
    }
    make(path).map_err(|error| StoreError::new(path, io_fault(&error)))?;
    let mut conn = connect(path).map_err(failed)?;
    if !schema::is_own(&conn).map_err(failed)? {
        return Err(foreign());
    }
    if schema::number(&conn, "user_version").map_err(failed)? > schema::NEWEST {
        return Err(StoreError::new(path, Fault::Newer));
    }
    let set_up = |conn: &mut Connection| {
        conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        // Each commit reaches the disk: a power failure loses only uncommitted changes.
        conn.pragma_update(None, "synchronous", "full")?;
        // On macOS the usual call leaves data in the disk's cache.
        conn.pragma_update(None, "fullfsync", true)?;
        conn.pragma_update(None, "journal_size_limit", MAX_LOG_BYTES)?;
        // A negative number means KiB. The operating system caches the file as well.
        conn.pragma_update(None, "cache_size", -512)?;
        conn.set_prepared_statement_cache_capacity(32);
        schema::migrate(conn)
    };
    // SQLite does not wait when two processes create a file at once.
    let until = Instant::now() + MAX_BUSY_WAIT;
    loop {
        match set_up(&mut conn) {
            Err(error) if fault(&error) == Fault::Busy && Instant::now() < until => {
                std::thread::sleep(BUSY_PAUSE);
            }
            other => return other.map(|()| conn).map_err(failed),
        }
    }
}

/// Opens an existing file for writing. Deleted data is overwritten in it.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(MAX_BUSY_WAIT)?;
    conn.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    Ok(conn)
}

/// Creates the file, or restricts the mode of an existing one; SQLite gives its other files the same mode.
///
/// An existing file is not opened: when a process closes a file, the system drops all of its locks on it, including
/// those of its other connections. Then the next process that closes the database considers itself the last one, and
/// removes the log that is still in use. Source: sqlite.org, "How To Corrupt An SQLite Database File", 2.2.
fn make(path: &Path) -> io::Result<()> {
    /// While a new file is open here, no connection to it may be opened.
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = lock(&MAKING);
    match private::create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            for path in files(path) {
                private::restrict(&path);
            }
            Ok(())
        }
        other => other.map(drop),
    }
}

/// A database with the files that SQLite creates next to it.
pub(super) fn files(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|suffix| with_suffix(path, suffix))
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        fault(&error)
    }
}

/// Classifies an error of SQLite. Its own message may contain a statement.
pub(super) fn fault(error: &rusqlite::Error) -> Fault {
    let words = |text: &str| text.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Fault::Full,
        // SQLite cannot create its other files in a read-only folder.
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => Fault::ReadOnly,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Fault::Busy,
        Some(ErrorCode::DatabaseCorrupt) => Fault::Corrupt(words("its contents are inconsistent")),
        Some(ErrorCode::NotADatabase) => Fault::Corrupt(words("it is not a database")),
        Some(ErrorCode::SystemIoFailure) if is_of_writing(error) => {
            Fault::Refused(words("the disk refuses to write"))
        }
        Some(ErrorCode::SystemIoFailure) => Fault::Other(words("the disk reports an error")),
        Some(ErrorCode::OutOfMemory) => Fault::Other(words("there is not enough memory")),
        Some(ErrorCode::TooBig) => Fault::Other(words("a text is too large")),
        Some(ErrorCode::ConstraintViolation) => Fault::Other(words("a row does not fit to the others")),
        Some(ErrorCode::Unknown) => Fault::Other(words("its tables are not those of this version")),
        None if matches!(error, SqlInputError { .. } | InvalidColumnName(_)) => {
            Fault::Other(words("its tables are not those of this version"))
        }
        None if is_odd(error) => Fault::Other(words("a row has a value of the wrong kind")),
        code => {
            let number = error.sqlite_error().map(|error| error.extended_code);
            let number = number.map(|number| format!(" ({number})")).unwrap_or_default();
            let is_known = if code.is_some() { "the database reports an error" } else { "it cannot be used" };
            Fault::Other(format!("{is_known}{number}"))
        }
    }
}

/// Whether the error concerns the values of one row.
pub(super) fn is_odd(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    matches!(
        error,
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..)
    )
}

/// Whether a write of the system failed. SQLite reports an exceeded quota as another error than a full disk.
fn is_of_writing(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi;
    let of_writing = [
        ffi::SQLITE_IOERR_WRITE,
        ffi::SQLITE_IOERR_FSYNC,
        ffi::SQLITE_IOERR_DIR_FSYNC,
        ffi::SQLITE_IOERR_TRUNCATE,
        ffi::SQLITE_IOERR_SHMSIZE,
    ];
    error.sqlite_error().is_some_and(|error| of_writing.contains(&error.extended_code))
}

/// Classifies an error of the system.
pub(super) fn io_fault(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Fault::Full,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Fault::ReadOnly,
        _ => Fault::Other(error.to_string()),
    }
}
