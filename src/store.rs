//! The session store: a log of each session, and prompts and agents by folder.
//!
//! One SQLite file (`schema`) that several parlors use at once. [`Store`] reads and manages it and blocks on the disk;
//! [`Recorder`] writes events of sessions on its own thread, in batches.
//! Invariants: the UI never waits for the disk; a failed write is reported immediately and retried; a damaged file
//! is renamed and reported, never overwritten; a session that is open in a running parlor is not opened by another;
//! an odd row hides only itself.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;

mod backlog;
mod db;
mod docs;
mod document;
mod folders;
mod forget;
mod format;
mod manage;
mod migrate;
mod orphan;
mod owner;
mod prompts;
mod read;
mod recorder;
mod rescue;
mod rows;
mod schema;
mod search;
mod serve;
mod session_writer;
mod write;

pub use backlog::Backlog;
pub use document::{Document, FORMAT, FORMAT_VERSION, pretty};
pub use forget::TextUses;
pub use manage::Imported;
pub use migrate::Migrated;
pub use read::ListFilter;
pub use recorder::Recorder;
pub use rows::{SessionRow, SessionState};
pub use search::{Hit, Search};
pub use serve::{Export, Transcript};

#[cfg(test)]
pub(crate) mod tests;

use crate::host::os::files;
use crate::host::os::private;
use crate::model::{PromptQuery, ServiceEvent, StoreJob, StoreNews};
use db::Db;
use owner::Owner;

/// How long to wait for another parlor that renames or creates files.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(2);

/// Why data could not be saved or read. `Display` is a message for the user with the remedy.
#[derive(Debug)]
pub struct StoreError {
    path: PathBuf,
    fault: Fault,
}

/// The kind of a store error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// No space on the disk.
    Full,
    /// The disk rejects writes for another reason, such as a quota; the system's message.
    Refused(String),
    /// The file is read-only.
    ReadOnly,
    /// Another process has the file locked.
    Busy,
    /// The file is damaged or not a database.
    Corrupt(String),
    /// The file was written by a newer version.
    Newer,
    /// The file is a database of another program.
    Foreign,
    /// A parlor of an older version has the file open: its process id, if known.
    Former(Option<u32>),
    /// No session has this id.
    NoSession(String),
    /// Several sessions match.
    Ambiguous(String),
    /// Another parlor has the session open: its process id, if known.
    InUse(Option<u32>),
    /// Any other error; the system's message.
    Other(String),
}

impl StoreError {
    fn new(path: &Path, fault: Fault) -> Self {
        Self { path: path.to_path_buf(), fault }
    }

    /// The kind of a store error.
    pub fn fault(&self) -> &Fault {
        &self.fault
    }
}

/// `" (process 7)"`, if the process is known.
fn process(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match &self.fault {
            Fault::Full => write!(f, "Cannot write {path}: the disk is full. Free some space."),
            Fault::Refused(why) => {
                write!(f, "Cannot write {path}: {why}. Check the disk's free space, quota and health.")
            }
            Fault::ReadOnly => write!(
                f,
                "Cannot write {path}: read-only or permission denied. Check its permissions and the disk."
            ),
            Fault::Busy => {
                write!(f, "Not saved: {path} is locked by another process. Close that process if it hangs.")
            }
            Fault::Corrupt(why) => write!(f, "{path} is damaged ({why})."),
            Fault::Newer => write!(
                f,
                "{path} was written by a newer version of parlor. Update parlor, or pass another --data-dir."
            ),
            Fault::Foreign => write!(
                f,
                "{path} is a database of another program and was not changed. Pass another --data-dir."
            ),
            Fault::Former(pid) => write!(
                f,
                "{path} has to be converted once, but an older parlor{} has it open. Close that one first.",
                process(*pid)
            ),
            Fault::NoSession(id) => {
                write!(f, "Session {id} not found. List all with `parlor sessions list --all`.")
            }
            Fault::Ambiguous(id) => write!(f, "Several session ids start with {id}. Pass more of the id."),
            Fault::InUse(pid) => {
                let process = process(*pid);
                write!(f, "The session is open in another parlor{process}. Close it there first.")
            }
            Fault::Other(why) => {
                write!(f, "Cannot use {path}: {why}. Check its permissions and the free disk space.")
            }
        }
    }
}

impl Fault {
    /// Why nothing can be saved, in a few words; `None` for faults of one request.
    fn why(&self) -> Option<String> {
        Some(match self {
            Self::Full => "the disk is full".to_owned(),
            Self::Refused(why) => format!("{why}; check the free disk space and your quota"),
            Self::ReadOnly => "the data folder is read-only".to_owned(),
            Self::Busy => "the file is locked by another process".to_owned(),
            Self::Newer => "the file was written by a newer version of parlor; update parlor".to_owned(),
            Self::Foreign => "the file is a database of another program".to_owned(),
            Self::Former(pid) => {
                format!("an older parlor{} has the sessions open; close that one first", process(*pid))
            }
            Self::Corrupt(why) | Self::Other(why) => why.clone(),
            Self::NoSession(_) | Self::Ambiguous(_) | Self::InUse(_) => return None,
        })
    }
}

impl std::error::Error for StoreError {}

/// The data folder. Cheap to clone; all methods block on the disk.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    conn: Mutex<Option<Db>>,
    problems: Mutex<Vec<Problem>>,
    owner: Mutex<Option<Arc<Owner>>>,
    /// The latest search; earlier ones are obsolete.
    newest_search: AtomicU64,
    reopened: Mutex<Vec<SessionRow>>,
    prompts: Mutex<Option<prompts::PromptIndex>>,
    /// Deletions in sessions that the recorder may have in memory, by id; an empty id: in any session.
    forgotten: Mutex<Vec<(String, Forgotten)>>,
    /// Number of unreadable rows that were reported.
    odd_count: AtomicU64,
}

/// What was deleted from a session.
#[derive(Debug, Clone)]
enum Forgotten {
    Turns { turns: Range<u32>, first_prompt: Option<String> },
    Text(String),
}

/// A problem to report.
#[derive(Debug)]
struct Problem {
    text: String,
    /// Whether it concerns the user's data and belongs in the transcript.
    is_serious: bool,
}

impl Store {
    /// Opens the data folder and creates it, readable by its owner only, if it is missing. Errors of the database are
    /// reported by the methods that use it.
    pub fn open(data_dir: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let root = data_dir.into();
        private::make_folder(&root).map_err(|error| StoreError::new(&root, db::io_fault(&error)))?;
        let inner = Inner {
            root,
            conn: Mutex::default(),
            problems: Mutex::default(),
            owner: Mutex::default(),
            newest_search: AtomicU64::new(0),
            reopened: Mutex::default(),
            prompts: Mutex::default(),
            forgotten: Mutex::default(),
            odd_count: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Removes and returns the problems since the last call, as messages for the user.
    pub fn take_problems(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.inner.problems)).into_iter().map(|problem| problem.text).collect()
    }

    /// Reports the problems to the app: grave ones in the transcript, others as notices.
    pub fn report_problems(&self, report: &mut dyn FnMut(ServiceEvent)) {
        for Problem { text, is_serious } in std::mem::take(&mut *locked(&self.inner.problems)) {
            report(if is_serious {
                ServiceEvent::Store(Box::new(StoreNews::Reported(text)))
            } else {
                ServiceEvent::Problem(text)
            });
        }
    }

    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    fn value_or_report<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        result.map_err(|error| self.report(error.to_string(), false)).ok()
    }

    fn report(&self, text: String, is_serious: bool) {
        locked(&self.inner.problems).push(Problem { text, is_serious });
    }

    /// The readable rows; reports new ones that are not.
    fn noting_odd<T>(&self, (found, odd_count): (T, u64)) -> T {
        if odd_count > self.inner.odd_count.fetch_max(odd_count, Ordering::Relaxed) {
            let text = format!("Saved sessions that could not be read: {odd_count}.");
            self.report(text, false);
        }
        found
    }

    /// Runs a function with the connection, which is opened if necessary. A damaged file is renamed, and the function
    /// runs with a new one.
    fn with<T>(&self, mut work: impl FnMut(&mut Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.with_faults(|conn| Ok(work(conn)?))
    }

    fn with_faults<T>(
        &self,
        mut work: impl FnMut(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let mut slot = locked(&self.inner.conn);
        let path = self.root().join(db::FILE);
        let mut is_new = false;
        loop {
            slot.take_if(|db| !db.is_current());
            let db = match &mut *slot {
                Some(db) => db,
                none => none.insert(self.connect()?),
            };
            match work(&mut db.conn) {
                Err(Fault::Corrupt(why)) if !is_new => {
                    *slot = None;
                    self.move_aside(&why)?;
                    is_new = true;
                }
                Err(fault) => {
                    // A read-only file may be writable when it is reopened.
                    if fault == Fault::ReadOnly {
                        *slot = None;
                    }
                    return Err(StoreError::new(&path, fault));
                }
                Ok(done) => return Ok(done),
            }
        }
    }

    /// Opens a connection; a damaged file is replaced first. The sessions of an older version are converted.
    fn connect(&self) -> Result<Db, StoreError> {
        let opened = || self.migrate(&mut |_, _| ()).and_then(|_| db::open(self.root()));
        match opened() {
            Err(StoreError { fault: Fault::Corrupt(why), .. }) => {
                self.move_aside(&why)?;
                opened()
            }
            other => other,
        }
    }

    /// Renames a damaged file and reports it, unless another parlor has already done so.
    fn move_aside(&self, why: &str) -> Result<(), StoreError> {
        let _lock = self.lock(MAX_LOCK_WAIT)?;
        let is_damaged = match db::open(self.root()) {
            Err(StoreError { fault, .. }) => matches!(fault, Fault::Corrupt(_)),
            Ok(Db { conn, .. }) => {
                let check = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
                check.as_deref() != Ok("ok")
            }
        };
        if is_damaged { self.rename_damaged(&self.root().join(db::FILE), why) } else { Ok(()) }
    }

    fn rename_damaged(&self, path: &Path, why: &str) -> Result<(), StoreError> {
        let files = db::files(path);
        let suffix = (0..u32::MAX)
            .map(|n| format!(".broken-{}-{n}", unix_ms() / 1000))
            .find(|suffix| files.iter().all(|path| !with_suffix(path, suffix).exists()))
            .unwrap_or_default();
        for path in files.iter().filter(|path| path.exists()) {
            fs::rename(path, with_suffix(path, &suffix))
                .map_err(|error| StoreError::new(path, db::io_fault(&error)))?;
        }
        let aside = with_suffix(path, &suffix);
        self.report(
            format!(
                "Could not read {}: {why}. It was renamed to {}, and a new file was created.",
                path.display(),
                aside.display()
            ),
            true,
        );
        Ok(())
    }

    /// Locks the folder while files are renamed or converted.
    fn lock(&self, max_wait: Duration) -> Result<File, StoreError> {
        let path = self.root().join("lock");
        let failed = |error: io::Error| StoreError::new(&path, db::io_fault(&error));
        private::make_folder(self.root()).map_err(failed)?;
        let file = private::open_lock(&path).map_err(failed)?;
        let deadline = Instant::now() + max_wait;
        while !files::try_lock(&file).map_err(failed)? {
            if Instant::now() >= deadline {
                return Err(StoreError::new(&path, Fault::Busy));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(file)
    }

    /// Makes earlier searches obsolete. Called when a job is queued.
    pub fn announce(&self, job: &StoreJob) {
        if let StoreJob::Search { serial, .. } | StoreJob::Prompts(PromptQuery { serial, .. }) = job {
            self.inner.newest_search.fetch_max(*serial, Ordering::Relaxed);
        }
    }

    /// Whether a mark belongs to this process.
    fn is_own(&self, token: &str) -> bool {
        locked(&self.inner.owner).as_ref().is_some_and(|owner| owner.token == token)
    }

    /// The mark of this process for open sessions.
    fn owner(&self) -> Result<Arc<Owner>, StoreError> {
        let failed = |error: io::Error| StoreError::new(self.root(), db::io_fault(&error));
        let mut slot = locked(&self.inner.owner);
        if let Some(owner) = &*slot {
            owner.restore().map_err(failed)?;
            return Ok(Arc::clone(owner));
        }
        Ok(Arc::clone(slot.insert(Arc::new(Owner::new(self.root()).map_err(failed)?))))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_path_buf().into_os_string();
    name.push(suffix);
    name.into()
}

fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A random number: the standard library seeds its hashers from the system.
fn random() -> u64 {
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_i64(unix_ms());
    hasher.finish()
}
