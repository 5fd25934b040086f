//! Serves the agent's file requests, bounded by the session's roots.
//!
//! Duty: reads and replaces text files. Takes a [`FileJob`], gives back one [`ServiceEvent`].
//! Not its duty: asking the user (`app` does, on `OutsideRoots`), resolving relative paths.
//! Invariants: inside the roots every access goes through a folder handle that cannot be left, so a link
//! that is swapped in after the check leads to an error, not out; a file is replaced whole or not at all; a
//! file that changed since this agent read it is not overwritten.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::{AskId, ConnId, FileJob, FileOp, RpcError, ServiceEvent};

mod lines;
mod place;
mod read;
mod seen;
mod trouble;
mod write;

#[cfg(test)]
mod tests;

use place::{Located, Place};
use seen::Seen;
use trouble::FileTrouble;

/// The largest file that is read whole, and the largest part of a larger one. Agents put what they read
/// into a model's context, where a hundredth of this does not fit.
const MAX_READ_BYTES: u64 = 32 << 20;

/// How many questions about outside paths are remembered at most.
const MAX_SHOWN: usize = 256;

/// How often a path is resolved anew when it changes under our hands.
const MAX_TRIES: usize = 3;

/// Serves file requests. Cheap to clone: all clones share one memory of what was read.
#[derive(Debug, Clone, Default)]
pub struct Files {
    memory: Arc<Mutex<Memory>>,
    /// Held from the check "unchanged since it was read" until the file is replaced, so that two writes of
    /// ours cannot pass between each other's check and replacement.
    writing: Arc<Mutex<()>>,
}

#[derive(Debug, Default)]
struct Memory {
    /// What each agent last saw of each file, by its real path.
    seen: HashMap<ConnId, HashMap<PathBuf, Seen>>,
    /// Which real path the user was shown for an open question.
    shown: HashMap<AskId, PathBuf>,
}

impl Files {
    /// A service with an empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves one request. Blocks on the disk: call it on a thread where that is fine.
    ///
    /// Errors for the agent are in the event: `-32002` with `data.uri` for a missing file, `-32602` for what
    /// cannot be a text file (a folder, a device), `-32603` for the rest.
    pub fn serve(&self, job: FileJob) -> ServiceEvent {
        let (conn, ask) = (job.conn, job.ask);
        // Where the user's yes leads, in each round: what the user was not shown is not touched.
        let allowed = self.memory().shown.remove(&ask).filter(|_| job.outside_allowed);
        for _ in 0..MAX_TRIES {
            let place = match self.admit(&job, allowed.as_deref()) {
                Ok(Located::Inside(place)) => place,
                Ok(Located::Outside(resolved)) => return ServiceEvent::OutsideRoots { job, resolved },
                Err(trouble) => return done(conn, ask, Err(trouble.answer(&job.path))),
            };
            let result = match &job.op {
                FileOp::Read { line, limit } => self.read(&job, &place, *line, *limit).map(Some),
                FileOp::Write { content } => self.write(&job, &place, content).map(|()| None),
            };
            match result {
                // A link was swapped in between: where it leads now is for the next round to say.
                Err(FileTrouble::Escaped) => {}
                result => return done(conn, ask, result.map_err(|trouble| trouble.answer(&job.path))),
            }
        }
        done(conn, ask, Err(FileTrouble::Unsteady.answer(&job.path)))
    }

    /// Forgets what an agent has read; for when its connection ended.
    pub fn forget(&self, conn: ConnId) {
        self.memory().seen.remove(&conn);
    }

    /// Finds the file. Outside the roots it is admitted only if it still is the path that the user was shown and
    /// allowed.
    fn admit(&self, job: &FileJob, allowed: Option<&Path>) -> Result<Located, FileTrouble> {
        if !job.path.is_absolute() {
            return Err(FileTrouble::Relative);
        }
        let resolved = match place::locate(&job.path, &job.roots)? {
            Located::Inside(place) => return Ok(Located::Inside(place)),
            Located::Outside(resolved) => resolved,
        };
        if allowed == Some(&*resolved) {
            return Ok(Located::Inside(Place::outside(resolved)?));
        }
        let mut memory = self.memory();
        if memory.shown.len() >= MAX_SHOWN {
            memory.shown.clear();
        }
        memory.shown.insert(job.ask, resolved.clone());
        Ok(Located::Outside(resolved))
    }

    fn read(
        &self,
        job: &FileJob,
        place: &Place,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, FileTrouble> {
        match read::read(place, line, limit) {
            Ok((text, seen)) => {
                self.remember(job.conn, place.real(), seen);
                Ok(text)
            }
            Err(FileTrouble::Missing) => {
                self.remember(job.conn, place.real(), Seen::Missing);
                if job.missing_reads_empty { Ok(String::new()) } else { Err(FileTrouble::Missing) }
            }
            Err(trouble) => Err(trouble),
        }
    }

    fn write(&self, job: &FileJob, place: &Place, content: &str) -> Result<(), FileTrouble> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.memory().seen.get(&job.conn).and_then(|files| files.get(place.real())).copied();
        let seen = write::write(place, content, seen)?;
        self.remember(job.conn, place.real(), seen);
        Ok(())
    }

    fn remember(&self, conn: ConnId, path: &Path, seen: Seen) {
        self.memory().seen.entry(conn).or_default().insert(path.to_path_buf(), seen);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a look at a file showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Glance {
    /// Its bytes, all of them.
    Text(Vec<u8>),
    /// There is none.
    Missing,
    /// It is outside the roots, no ordinary file, too large, or cannot be read.
    Refused,
}

/// Looks at a file for parlor itself, inside the roots only. Nothing is remembered of it, and nothing asked.
pub(super) fn glance(path: &Path, roots: &[PathBuf], max_bytes: u64) -> Glance {
    let looked = || -> Result<Glance, FileTrouble> {
        let Located::Inside(place) = place::locate(path, roots)? else { return Ok(Glance::Refused) };
        let (file, meta) = read::open(&place)?;
        if meta.len() > max_bytes {
            return Ok(Glance::Refused);
        }
        Ok(read::content(file)?.map_or(Glance::Refused, Glance::Text))
    };
    match looked() {
        Ok(glance) => glance,
        Err(FileTrouble::Missing) => Glance::Missing,
        Err(_) => Glance::Refused,
    }
}

fn done(conn: ConnId, ask: AskId, result: Result<Option<String>, RpcError>) -> ServiceEvent {
    ServiceEvent::FileDone { conn, ask, result }
}
