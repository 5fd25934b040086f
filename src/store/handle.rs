//! The handle of the data folder: its connection, its lock, its mark, and the problems to report.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::db::{self, Db};
use super::fault::{Fault, StoreError};
use super::owner::Owner;
use super::prompts;
use super::rows::SessionRow;
use super::support::{unix_ms, with_suffix};
use crate::host::os::files;
use crate::host::os::private;
use crate::lock::lock;
use crate::model::{PromptQuery, ServiceEvent, StoreJob, StoreNews};

/// How long to wait for another parlor that renames or creates files.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(2);

/// The data folder. Cheap to clone; all methods block on the disk.
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) root: PathBuf,
    pub(super) conn: Mutex<Option<Db>>,
    pub(super) problems: Mutex<Vec<Problem>>,
    pub(super) owner: Mutex<Option<Arc<Owner>>>,
    /// The latest search; earlier ones are obsolete.
    pub(super) newest_search: AtomicU64,
    pub(super) reopened: Mutex<Vec<SessionRow>>,
    pub(super) prompts: Mutex<Option<prompts::PromptIndex>>,
    /// Deletions in sessions that the recorder may have in memory, by id; an empty id: in any session.
    pub(super) forgotten: Mutex<Vec<(String, Forgotten)>>,
    /// Number of unreadable rows that were reported.
    pub(super) odd_count: AtomicU64,
}

/// What was deleted from a session.
#[derive(Debug, Clone)]
pub(super) enum Forgotten {
    Turns { turns: Range<u32>, first_prompt: Option<String> },
    Text(String),
}

/// A problem to report.
#[derive(Debug)]
pub(super) struct Problem {
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
        std::mem::take(&mut *lock(&self.inner.problems)).into_iter().map(|problem| problem.text).collect()
    }

    /// Reports the problems to the app: grave ones in the transcript, others as notices.
    pub fn report_problems(&self, report: &mut dyn FnMut(ServiceEvent)) {
        for Problem { text, is_serious } in std::mem::take(&mut *lock(&self.inner.problems)) {
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

    pub(super) fn value_or_report<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        result.map_err(|error| self.report(error.to_string(), false)).ok()
    }

    pub(super) fn report(&self, text: String, is_serious: bool) {
        lock(&self.inner.problems).push(Problem { text, is_serious });
    }

    /// The readable rows; reports new ones that are not.
    pub(super) fn noting_odd<T>(&self, (found, odd_count): (T, u64)) -> T {
        if odd_count > self.inner.odd_count.fetch_max(odd_count, Ordering::Relaxed) {
            let text = format!("Saved sessions that could not be read: {odd_count}.");
            self.report(text, false);
        }
        found
    }

    /// Runs a function with the connection, which is opened if necessary. A damaged file is renamed, and the function
    /// runs with a new one.
    pub(super) fn with<T>(
        &self,
        mut work: impl FnMut(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.with_faults(|conn| Ok(work(conn)?))
    }

    pub(super) fn with_faults<T>(
        &self,
        mut work: impl FnMut(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let mut slot = lock(&self.inner.conn);
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
    pub(super) fn connect(&self) -> Result<Db, StoreError> {
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
    pub(super) fn move_aside(&self, why: &str) -> Result<(), StoreError> {
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

    pub(super) fn rename_damaged(&self, path: &Path, why: &str) -> Result<(), StoreError> {
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
    pub(super) fn lock(&self, max_wait: Duration) -> Result<File, StoreError> {
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
    pub(super) fn is_own(&self, token: &str) -> bool {
        lock(&self.inner.owner).as_ref().is_some_and(|owner| owner.token == token)
    }

    /// The mark of this process for open sessions.
    pub(super) fn owner(&self) -> Result<Arc<Owner>, StoreError> {
        let failed = |error: io::Error| StoreError::new(self.root(), db::io_fault(&error));
        let mut slot = lock(&self.inner.owner);
        if let Some(owner) = &*slot {
            owner.restore().map_err(failed)?;
            return Ok(Arc::clone(owner));
        }
        Ok(Arc::clone(slot.insert(Arc::new(Owner::new(self.root()).map_err(failed)?))))
    }
}
