//! The session store: sessions with their transcripts, and prompts and agents by folder.
//!
//! One SQLite file that several parlors use at once. [`Store`] reads and manages it and blocks on the disk;
//! [`Recorder`] writes events of sessions on its own thread, in batches.
//! Invariants: the UI never waits for the disk; a failed write is reported immediately and retried; a damaged file
//! is renamed and reported, never overwritten; a session that is open in a running parlor is not opened by another.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;

mod db;
mod folders;
mod format;
mod manage;
mod orphan;
mod owner;
mod pages;
mod prompts;
mod read;
mod recorder;
mod rows;
mod schema;
mod search;
mod serve;
mod session_writer;
mod write;

pub use format::{FORMAT, FORMAT_VERSION};
pub use manage::Imported;
pub use read::ListFilter;
pub use recorder::Recorder;
pub use rows::{SessionRow, SessionState};
pub use search::{Hit, Search};
pub use serve::{Export, Transcript};

#[cfg(test)]
mod tests;

use super::unix;
use crate::model::{PromptQuery, ServiceEvent, StoreJob, StoreNews};
use crate::private;
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
            Fault::Newer => {
                write!(
                    f,
                    "{path} was written by a newer version of parlor. Update parlor, or pass another \
                     --data-dir."
                )
            }
            Fault::NoSession(id) => {
                write!(f, "Session {id} not found. List all with `parlor sessions list --all`.")
            }
            Fault::Ambiguous(id) => write!(f, "Several session ids start with {id}. Pass more of the id."),
            Fault::InUse(Some(pid)) => {
                write!(f, "The session is open in another parlor (process {pid}). Close it there first.")
            }
            Fault::InUse(None) => write!(f, "The session is open in another parlor. Close it there first."),
            Fault::Other(why) => {
                write!(f, "Cannot use {path}: {why}. Check its permissions and the free disk space.")
            }
        }
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
    conn: Mutex<Option<Connection>>,
    problems: Mutex<Vec<Problem>>,
    owner: Mutex<Option<Arc<Owner>>>,
    /// The latest search; earlier ones are obsolete.
    newest_search: AtomicU64,
    /// Rows of resumed sessions, for the recorder.
    reopened: Mutex<Vec<SessionRow>>,
    /// The prompts that are being searched.
    prompts: Mutex<Option<prompts::PromptIndex>>,
}

/// A problem to report.
#[derive(Debug)]
struct Problem {
    text: String,
    /// Whether it concerns the user's data and belongs in the transcript.
    is_grave: bool,
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
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The prompts of a folder, oldest first, at most 1000. Errors are reported by [`Self::take_problems`].
    pub fn history(&self, folder: &Path) -> Vec<String> {
        self.value_or_report(self.with(|conn| folders::prompts(conn, folder))).unwrap_or_default()
    }

    /// The drafts of all sessions, and their queued prompts as JSON.
    pub fn unsent_prompts(&self) -> Result<Vec<String>, StoreError> {
        self.with(|conn| {
            let mut query =
                conn.prepare("SELECT draft FROM sessions UNION ALL SELECT queue FROM sessions")?;
            query.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// Adds a prompt to a folder's history. A repeated prompt is saved once; empty prompts and those over 256 KiB are
    /// not saved.
    pub fn append_prompt(&self, folder: &Path, text: &str) -> Result<(), StoreError> {
        if text.trim().is_empty() || text.len() > folders::MAX_PROMPT_BYTES {
            return Ok(());
        }
        self.with(|conn| folders::add_prompt(conn, folder, text, unix_ms()))
    }

    /// The agent that was last used in a folder.
    pub fn agent_for(&self, folder: &Path) -> Option<String> {
        self.value_or_report(self.with(|conn| folders::agent(conn, folder))).flatten()
    }

    /// Folders that were used before, latest first, at most 100.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.value_or_report(self.with(|conn| folders::all(conn))).unwrap_or_default()
    }

    /// Saves the agent of a folder, for the latest 1000 folders.
    pub fn save_agent(&self, folder: &Path, agent: &str) -> Result<(), StoreError> {
        self.with(|conn| folders::save_agent(conn, &folder.to_string_lossy(), agent, unix_ms()))
    }

    /// The agents that spoke the draft of version 2 when they were last started, by command line.
    pub fn draft_agents(&self) -> BTreeSet<String> {
        self.value_or_report(self.with(|conn| folders::draft_agents(conn))).unwrap_or_default()
    }

    /// Saves whether an agent speaks the draft of version 2.
    pub fn save_draft_agent(&self, agent: &str, is_draft: bool) -> Result<(), StoreError> {
        self.with(|conn| folders::save_draft_agent(conn, agent, is_draft))
    }

    /// Removes and returns the problems since the last call, as messages for the user.
    pub fn take_problems(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.inner.problems)).into_iter().map(|problem| problem.text).collect()
    }

    /// Reports the problems to the app: grave ones in the transcript, others as notices.
    pub fn report_problems(&self, report: &mut dyn FnMut(ServiceEvent)) {
        for Problem { text, is_grave } in std::mem::take(&mut *locked(&self.inner.problems)) {
            report(if is_grave {
                ServiceEvent::Store(Box::new(StoreNews::Told(text)))
            } else {
                ServiceEvent::Problem(text)
            });
        }
    }

    /// The data folder.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    fn value_or_report<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        result.map_err(|error| self.report(error.to_string(), false)).ok()
    }

    fn report(&self, text: String, is_grave: bool) {
        locked(&self.inner.problems).push(Problem { text, is_grave });
    }

    /// Runs a function with the connection, which is opened if necessary. A damaged file is renamed, and the function
    /// runs with a new one.
    fn with<T>(&self, mut work: impl FnMut(&mut Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.with_faults(|conn| Ok(work(conn)?))
    }

    /// The same for functions that return other faults.
    fn with_faults<T>(
        &self,
        mut work: impl FnMut(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let mut slot = locked(&self.inner.conn);
        let path = self.root().join(db::FILE);
        let mut is_new = false;
        loop {
            let conn = match &mut *slot {
                Some(conn) => conn,
                none => none.insert(self.connect()?),
            };
            match work(conn) {
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

    /// Opens a connection; a damaged file is replaced first.
    fn connect(&self) -> Result<Connection, StoreError> {
        match db::open(self.root()) {
            Err(StoreError { fault: Fault::Corrupt(why), .. }) => {
                self.move_aside(&why)?;
                db::open(self.root())
            }
            other => other,
        }
    }

    /// Renames a damaged file and reports it, unless another parlor has already done so.
    fn move_aside(&self, why: &str) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        let is_damaged = match db::open(self.root()) {
            Err(StoreError { fault: Fault::Corrupt(_), .. }) => true,
            Err(_) => false,
            Ok(conn) => {
                conn.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)).as_deref()
                    != Ok("ok")
            }
        };
        if !is_damaged {
            return Ok(());
        }
        let files = db::files(self.root());
        let suffix = (0..u32::MAX)
            .map(|n| format!(".broken-{}-{n}", unix_ms() / 1000))
            .find(|suffix| files.iter().all(|path| !with_suffix(path, suffix).exists()))
            .unwrap_or_default();
        for path in files.iter().filter(|path| path.exists()) {
            fs::rename(path, with_suffix(path, &suffix))
                .map_err(|error| StoreError::new(path, db::io_fault(&error)))?;
        }
        let [path, ..] = &files;
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

    /// Locks the folder while files are renamed.
    fn lock(&self) -> Result<File, StoreError> {
        let path = self.root().join("lock");
        let failed = |error: io::Error| StoreError::new(&path, db::io_fault(&error));
        let file = private::open_lock(&path).map_err(failed)?;
        let deadline = Instant::now() + MAX_LOCK_WAIT;
        while !unix::try_lock(&file).map_err(failed)? {
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
        let mut slot = locked(&self.inner.owner);
        if let Some(owner) = &*slot {
            return Ok(Arc::clone(owner));
        }
        let owner =
            Owner::new(self.root()).map_err(|error| StoreError::new(self.root(), db::io_fault(&error)))?;
        Ok(Arc::clone(slot.insert(Arc::new(owner))))
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
