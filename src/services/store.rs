//! What parlor keeps in its data folder: sessions with all that happened in them, prompts and agents by folder.
//!
//! Duty: one SQLite file that several parlors use at once. [`Store`] reads and manages it and blocks on the
//! disk; [`Recorder`] writes what happens in sessions, on a thread of its own, in batches.
//! Not its duty: configuration (`config`), the agents' own sessions, what a session looks like (`app`).
//! Invariants: the UI never waits for the disk; what cannot be written is told at once and written when it can
//! be; a file that cannot be read is moved aside and told about, never overwritten; a session that one living
//! parlor has open is not opened by another.

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
pub use serve::Export;

#[cfg(test)]
mod tests;

use super::unix;
use crate::model::{ServiceEvent, StoreJob, StoreNews};
use crate::private;
use owner::Owner;

/// How long to wait for another parlor that moves or makes files.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(2);

/// Why something could not be kept or read. Its `Display` is a sentence for the user, with what to do next.
#[derive(Debug)]
pub struct StoreError {
    path: PathBuf,
    fault: Fault,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// No space on the disk.
    Full,
    /// The disk takes no more for another reason: over its quota, perhaps, or damaged. In the system's words.
    Refused(String),
    /// It may not be written.
    ReadOnly,
    /// Another process keeps it locked for too long.
    Busy,
    /// It is no database, or a damaged one.
    Corrupt(String),
    /// A newer parlor made it.
    Newer,
    /// There is no such session.
    NoSession(String),
    /// Several sessions fit what was given.
    Ambiguous(String),
    /// Another parlor has the session open: its process, if it is known.
    InUse(Option<u32>),
    /// Anything else, in the system's words.
    Other(String),
}

impl StoreError {
    fn new(path: &Path, fault: Fault) -> Self {
        Self { path: path.to_path_buf(), fault }
    }

    /// What is wrong.
    pub fn fault(&self) -> &Fault {
        &self.fault
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match &self.fault {
            Fault::Full => write!(f, "{path} cannot be written: the disk is full. Make some space."),
            Fault::Refused(why) => write!(
                f,
                "{path} cannot be written: the disk takes no more ({why}). Look at its space, your quota and its health."
            ),
            Fault::ReadOnly => write!(f, "{path} may not be written. Check its permissions and its disk."),
            Fault::Busy => {
                write!(f, "Another process keeps {path} locked, so nothing was saved. Close it if it hangs.")
            }
            Fault::Corrupt(why) => write!(f, "{path} is damaged ({why})."),
            Fault::Newer => {
                write!(
                    f,
                    "{path} was written by a newer parlor. Update this one, or name another --data-dir."
                )
            }
            Fault::NoSession(id) => {
                write!(f, "There is no session {id}. `parlor sessions list --all` shows all of them.")
            }
            Fault::Ambiguous(id) => write!(f, "Several sessions begin with {id}. Write more of the id."),
            Fault::InUse(Some(pid)) => {
                write!(f, "The session is open in another parlor (process {pid}). Close it there first.")
            }
            Fault::InUse(None) => write!(f, "The session is open in another parlor. Close it there first."),
            Fault::Other(why) => {
                write!(f, "{path} cannot be used: {why}. Check its permissions and the space on its disk.")
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
    troubles: Mutex<Vec<Trouble>>,
    owner: Mutex<Option<Arc<Owner>>>,
    /// The search that was asked for last: those before it need no answer any more.
    newest_search: AtomicU64,
    /// Sessions that were opened here: where their recording goes on.
    reopened: Mutex<Vec<SessionRow>>,
}

/// Something that went wrong.
#[derive(Debug)]
struct Trouble {
    words: String,
    /// Whether it is to be read at leisure: it happened to the user's data.
    is_grave: bool,
}

impl Store {
    /// Opens the data folder, making it (readable by its owner only) if it is missing. Fails if the folder
    /// cannot be used; what is wrong with the file in it is told by the methods that need it.
    pub fn open(data_dir: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let root = data_dir.into();
        private::make_folder(&root).map_err(|error| StoreError::new(&root, db::io_fault(&error)))?;
        let inner = Inner {
            root,
            conn: Mutex::default(),
            troubles: Mutex::default(),
            owner: Mutex::default(),
            newest_search: AtomicU64::new(0),
            reopened: Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The prompts of a folder, oldest first, at most 1000. What cannot be read is told by
    /// [`Self::take_troubles`].
    pub fn history(&self, folder: &Path) -> Vec<String> {
        self.told(self.with(|conn| folders::prompts(conn, folder))).unwrap_or_default()
    }

    /// Adds a prompt to a folder's history. The same prompt twice in a row is kept once; an empty one, and
    /// one over 256 KiB, is not kept.
    pub fn append_prompt(&self, folder: &Path, text: &str) -> Result<(), StoreError> {
        if text.trim().is_empty() || text.len() > folders::MAX_PROMPT_BYTES {
            return Ok(());
        }
        self.with(|conn| folders::add_prompt(conn, folder, text, unix_ms()))
    }

    /// The name of the agent that was last used in a folder.
    pub fn agent_for(&self, folder: &Path) -> Option<String> {
        self.told(self.with(|conn| folders::agent(conn, folder))).flatten()
    }

    /// Folders that were used before, the latest first, at most 100.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.told(self.with(|conn| folders::all(conn))).unwrap_or_default()
    }

    /// Remembers the agent of a folder. At most 1000 folders are remembered, the latest.
    pub fn save_agent(&self, folder: &Path, agent: &str) -> Result<(), StoreError> {
        self.with(|conn| folders::save_agent(conn, &folder.to_string_lossy(), agent, unix_ms()))
    }

    /// What went wrong since the last call, each a sentence for the user.
    pub fn take_troubles(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.inner.troubles)).into_iter().map(|trouble| trouble.words).collect()
    }

    /// The same as news for the app: what is grave stands in the transcript, the rest passes.
    pub fn tell_troubles(&self, tell: &mut dyn FnMut(ServiceEvent)) {
        for Trouble { words, is_grave } in std::mem::take(&mut *locked(&self.inner.troubles)) {
            tell(if is_grave {
                ServiceEvent::Store(Box::new(StoreNews::Told(words)))
            } else {
                ServiceEvent::Trouble(words)
            });
        }
    }

    fn root(&self) -> &Path {
        &self.inner.root
    }

    fn told<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        result.map_err(|error| self.tell(error.to_string(), false)).ok()
    }

    fn tell(&self, words: String, is_grave: bool) {
        locked(&self.inner.troubles).push(Trouble { words, is_grave });
    }

    /// Works on the file, opening it first if need be. A damaged file is moved aside, and the work is done on
    /// a new one.
    fn with<T>(&self, mut work: impl FnMut(&mut Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.with_faults(|conn| work(conn).map_err(|error| db::fault(&error)))
    }

    /// The same for work that finds faults of its own.
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
                    // One that could only be read may be written when it is opened again.
                    if fault == Fault::ReadOnly {
                        *slot = None;
                    }
                    return Err(StoreError::new(&path, fault));
                }
                Ok(done) => return Ok(done),
            }
        }
    }

    /// A connection of one's own, on a file that was repaired if need be.
    fn connect(&self) -> Result<Connection, StoreError> {
        match db::open(self.root()) {
            Err(StoreError { fault: Fault::Corrupt(why), .. }) => {
                self.move_aside(&why)?;
                db::open(self.root())
            }
            other => other,
        }
    }

    /// Gives a damaged file another name, and says so. Another parlor may have done it meanwhile: then there is
    /// a good one.
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
        self.tell(
            format!(
                "{} could not be read ({why}). It was kept as {}; parlor goes on with a new one.",
                path.display(),
                aside.display()
            ),
            true,
        );
        Ok(())
    }

    /// Holds others off while files change their names.
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

    /// From now on only this search is worth its work. Called when a job is handed over, before it waits for its turn.
    pub fn announce(&self, job: &StoreJob) {
        if let StoreJob::Search { serial, .. } = job {
            self.inner.newest_search.fetch_max(*serial, Ordering::Relaxed);
        }
    }

    /// Whether a mark is that of this process.
    fn is_own(&self, token: &str) -> bool {
        locked(&self.inner.owner).as_ref().is_some_and(|owner| owner.token == token)
    }

    /// The mark of this process beside the sessions that it has open.
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

/// A number that no other process has: the standard library seeds its hashers from the system.
fn random() -> u64 {
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_i64(unix_ms());
    hasher.finish()
}
