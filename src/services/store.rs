//! What parlor keeps in its data folder: prompts by folder, and the last agent of each folder.
//!
//! Duty: small files that several parlors may use at once. Prompts are lines of JSON, one file per folder;
//! agents are one JSON file.
//! Not its duty: configuration (`config`), the agents' own sessions.
//! Invariants: a change happens under a lock and reaches the disk whole or not at all; a file that cannot be
//! read is moved aside and told about ([`Store::take_troubles`]), never overwritten.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

mod agents;
mod history;

#[cfg(test)]
mod tests;

use super::unix;

/// How long to wait for another parlor that changes the same file.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(2);

/// Why something could not be kept or read. Its `Display` is a sentence for the user.
#[derive(Debug)]
pub enum StoreError {
    /// The system refused something with this file.
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another parlor holds the lock for too long.
    Busy {
        /// The lock.
        path: PathBuf,
    },
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io { path, error } => {
                write!(
                    f,
                    "{} cannot be used: {error}. Check its permissions and the space on its disk.",
                    path.display()
                )
            }
            Self::Busy { path } => write!(
                f,
                "Another parlor keeps {} locked, so nothing was saved. Close it if it hangs.",
                path.display()
            ),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Busy { .. } => None,
        }
    }
}

/// The data folder. Cheap to clone; all methods block on the disk.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    troubles: Arc<Mutex<Vec<String>>>,
}

impl Store {
    /// Opens the data folder, making it (readable by its owner only) if it is missing.
    pub fn open(data_dir: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let root = data_dir.into();
        let history = root.join(history::FOLDER);
        unix::make_private_folder(&root).map_err(|error| StoreError::Io { path: root.clone(), error })?;
        unix::make_private_folder(&history).map_err(|error| StoreError::Io { path: history, error })?;
        Ok(Self { root, troubles: Arc::default() })
    }

    /// The prompts of a folder, oldest first, at most 1000. What cannot be read is told by
    /// [`Self::take_troubles`].
    pub fn history(&self, folder: &Path) -> Vec<String> {
        self.told(history::read(self, folder)).unwrap_or_default()
    }

    /// Adds a prompt to a folder's history. The same prompt twice in a row is kept once; an empty one, and
    /// one over 256 KiB, is not kept.
    pub fn append_prompt(&self, folder: &Path, text: &str) -> Result<(), StoreError> {
        history::append(self, folder, text)
    }

    /// The name of the agent that was last used in a folder.
    pub fn agent_for(&self, folder: &Path) -> Option<String> {
        self.told(agents::read(self, folder)).flatten()
    }

    /// Remembers the agent of a folder. At most 1000 folders are remembered, the latest.
    pub fn save_agent(&self, folder: &Path, agent: &str) -> Result<(), StoreError> {
        agents::save(self, folder, agent)
    }

    /// What went wrong since the last call, each a sentence for the user.
    pub fn take_troubles(&self) -> Vec<String> {
        std::mem::take(&mut *self.troubles.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn told<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        result.map_err(|error| self.tell(error.to_string())).ok()
    }

    fn tell(&self, trouble: String) {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner).push(trouble);
    }

    /// Holds others off while a file is read and replaced. The lock is a file of its own, because the data
    /// file itself is replaced.
    fn lock(&self) -> Result<File, StoreError> {
        let path = self.root.join("lock");
        let failed = |error| StoreError::Io { path: path.clone(), error };
        let file = unix::open_private(&path, false).map_err(failed)?;
        let deadline = Instant::now() + MAX_LOCK_WAIT;
        while !unix::try_lock(&file).map_err(failed)? {
            if Instant::now() >= deadline {
                return Err(StoreError::Busy { path });
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(file)
    }

    /// Gives a file that cannot be understood another name, and says so.
    fn move_aside(&self, path: &Path, why: &str) -> Result<(), StoreError> {
        let stem = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let aside = (0..u32::MAX)
            .map(|n| path.with_file_name(format!("{stem}.broken-{}-{n}", unix_seconds())))
            .find(|aside| !aside.exists())
            .unwrap_or_else(|| path.with_extension("broken"));
        fs::rename(path, &aside).map_err(|error| StoreError::Io { path: path.to_path_buf(), error })?;
        self.tell(format!(
            "{} could not be read ({why}). It was kept as {}; parlor goes on with what it understood.",
            path.display(),
            aside.display()
        ));
        Ok(())
    }
}

/// Replaces a file whole.
fn replace(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let write = || {
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        io::Write::write_all(&mut file, content)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| StoreError::Io { path: path.to_path_buf(), error })
}

/// Reads a file; a missing one as empty.
fn read_bytes(path: &Path) -> Result<Vec<u8>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(StoreError::Io { path: path.to_path_buf(), error }),
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
