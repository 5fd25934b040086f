//! Serves the agent's file requests, bounded by the session's roots.
//!
//! Duty: reads and replaces text files. Takes a [`FileJob`], gives back one [`ServiceEvent`].
//! Not its duty: asking the user (`app` does, on `FileAsks`), resolving relative paths.
//! Invariants: the policy decides about the path with all links followed, and exactly that path is opened, without
//! following a link, so one that is swapped in after the decision leads to an error; a file is replaced whole or not at
//! all; a file that changed since this agent read it is not overwritten.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::policy::{self, Access, AllowedBy, Facts, Protection, Verdict};
use crate::model::{AskId, AskedFile, ConnId, FileJob, FileOp, ServedFile, ServiceEvent, WriteChange};

mod change;
mod fs_error;
mod lines;
mod place;
mod read;
mod seen;
mod write;

#[cfg(test)]
mod tests;

use fs_error::FsError;
use place::Place;
use seen::Seen;

/// The largest file that is read whole, and the largest part of a larger one. Agents put what they read
/// into a model's context, where a hundredth of this does not fit.
const MAX_READ_BYTES: u64 = 32 << 20;

/// How many questions about outside paths are remembered at most.
const MAX_SHOWN: usize = 256;

/// Larger files are not read to show what a write changes.
const MAX_OLD_BYTES: u64 = 4 << 20;

/// So many folders above a file are looked at.
const MAX_DEPTH: usize = 64;

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
        // Where the user's yes leads, in each round: what the user was not shown is not touched.
        let allowed = self.memory().shown.remove(&job.ask).zip(job.allowed);
        for _ in 0..MAX_TRIES {
            let place = match Self::locate(&job) {
                Ok(place) => place,
                Err(trouble) => return failed(&job, &trouble, None),
            };
            let (access, facts) = describe(&job, &place);
            let by = match (policy::decide(&job.policy, &access, &facts), &allowed) {
                (Verdict::Allow(by), _) => by,
                (_, Some((shown, by))) if *shown == *place.real() => *by,
                (Verdict::Ask(why), _) => {
                    self.note_shown(job.ask, place.real());
                    let change = Self::preview(&job, &place);
                    let asked = Box::new(AskedFile { access, facts, why, change });
                    return ServiceEvent::FileAsks { job, asked };
                }
                (Verdict::Refuse(by), _) => return failed(&job, &FsError::Refused(by), None),
            };
            let is_shown = facts.protection.is_some()
                || !matches!((&job.op, by), (FileOp::Read { .. }, AllowedBy::InsideRoots));
            let served =
                |change| is_shown.then(|| Box::new(ServedFile { access: access.clone(), by, change }));
            let result = match &job.op {
                FileOp::Read { line, limit } => {
                    self.read(&job, &place, *line, *limit).map(|text| (Some(text), None))
                }
                FileOp::Write { content } => {
                    self.write(&job, &place, content).map(|change| (None, Some(change)))
                }
            };
            return match result {
                // A link was swapped in between: where it leads now is for the next round to say.
                Err(FsError::Escaped) => continue,
                Err(trouble) => failed(&job, &trouble, served(None)),
                Ok((text, change)) => ServiceEvent::FileDone {
                    conn: job.conn,
                    ask: job.ask,
                    result: Ok(text),
                    served: served(change),
                },
            };
        }
        failed(&job, &FsError::Unsteady, None)
    }

    /// Forgets what an agent has read; for when its connection ended.
    pub fn forget(&self, conn: ConnId) {
        self.memory().seen.remove(&conn);
    }

    fn locate(job: &FileJob) -> Result<Place, FsError> {
        if !job.path.is_absolute() {
            return Err(FsError::Relative);
        }
        place::locate(&job.path, &job.roots)
    }

    /// Remembers which real path the user is about to be shown.
    fn note_shown(&self, ask: AskId, real: &Path) {
        let mut memory = self.memory();
        if memory.shown.len() >= MAX_SHOWN {
            memory.shown.clear();
        }
        memory.shown.insert(ask, real.to_owned());
    }

    /// What a write would change, for the user to judge by.
    fn preview(job: &FileJob, place: &Place) -> Option<WriteChange> {
        match &job.op {
            FileOp::Write { content } => Some(change_of(place, content)),
            FileOp::Read { .. } => None,
        }
    }

    fn read(
        &self,
        job: &FileJob,
        place: &Place,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, FsError> {
        match read::read(place, line, limit) {
            Ok((text, seen)) => {
                self.remember(job.conn, place.real(), seen);
                Ok(text)
            }
            Err(FsError::Missing) => {
                self.remember(job.conn, place.real(), Seen::Missing);
                if job.missing_reads_empty { Ok(String::new()) } else { Err(FsError::Missing) }
            }
            Err(trouble) => Err(trouble),
        }
    }

    fn write(&self, job: &FileJob, place: &Place, content: &str) -> Result<WriteChange, FsError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.memory().seen.get(&job.conn).and_then(|files| files.get(place.real())).copied();
        let change = change_of(place, content);
        let seen = write::write(place, content, seen)?;
        self.remember(job.conn, place.real(), seen);
        Ok(change)
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
    let looked = || -> Result<Glance, FsError> {
        let place = place::locate(path, roots)?;
        if place.root().is_none() {
            return Ok(Glance::Refused);
        }
        let (file, meta) = read::open(&place)?;
        if meta.len() > max_bytes {
            return Ok(Glance::Refused);
        }
        Ok(read::content(file)?.map_or(Glance::Refused, Glance::Text))
    };
    match looked() {
        Ok(glance) => glance,
        Err(FsError::Missing) => Glance::Missing,
        Err(_) => Glance::Refused,
    }
}

/// What a job would do, and what is known of that.
fn describe(job: &FileJob, place: &Place) -> (Access, Facts) {
    let path = place.real().to_owned();
    let is_inside = place.root().is_some();
    match &job.op {
        FileOp::Read { .. } => (Access::Read { path }, Facts { is_inside, ..Facts::default() }),
        FileOp::Write { .. } => {
            let by_name = policy::protection_of(&path, place.root(), &job.policy);
            let protection = match by_name {
                None | Some(Protection::WideRoot) if is_in_repository_data(&path, place.root()) => {
                    Some(Protection::Git)
                }
                known => known,
            };
            (Access::Write { path }, Facts { is_inside, protection, is_covered: false })
        }
    }
}

/// Whether a file lies in the data of a git repository that is not called `.git`.
fn is_in_repository_data(path: &Path, root: Option<&Path>) -> bool {
    let mut below = path;
    for folder in path.ancestors().skip(1).take(MAX_DEPTH) {
        let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
        if policy::is_repository(has, below.file_name().unwrap_or_default()) {
            return true;
        }
        if Some(folder) == root {
            break;
        }
        below = folder;
    }
    false
}

/// The change from what is in the file now; the new content alone where that cannot be read.
fn change_of(place: &Place, content: &str) -> WriteChange {
    let old = read::open(place).and_then(|(file, meta)| {
        if meta.len() > MAX_OLD_BYTES {
            return Err(FsError::TooLarge { size_bytes: meta.len() });
        }
        Ok(read::content(file)?.unwrap_or_default())
    });
    match old {
        Ok(old) => change::change(place.shown(), Some(&String::from_utf8_lossy(&old)), content),
        Err(FsError::Missing) => change::change(place.shown(), None, content),
        Err(_) => WriteChange { diff: None, line: None, size_bytes: content.len() as u64 },
    }
}

fn failed(job: &FileJob, trouble: &FsError, served: Option<Box<ServedFile>>) -> ServiceEvent {
    ServiceEvent::FileDone { conn: job.conn, ask: job.ask, result: Err(trouble.answer(&job.path)), served }
}
