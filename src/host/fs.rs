//! Executes the agent's file requests within the session's roots.
//!
//! Reads and replaces text files: takes a [`FileJob`], returns one [`ServiceEvent`]. For `FileAsks`, `core` asks the
//! user.
//!
//! Invariants: the policy decides about the path with all links resolved, and exactly that path is opened without
//! following links, so a link that is created after the decision leads to an error; a file is replaced completely or
//! not at all, except one with hard links, which is overwritten; a file that changed since this agent read it is not
//! written; a write that is held changes nothing on the disk; a job can be stopped, and waits for no job of another file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::host::os::links;
use crate::lock::lock;
use crate::model::policy::{self, Access, AllowedBy, AskReason, Facts, Protection, RefusedBy, Verdict};
use crate::model::{
    AskedFile, ConnId, FileJob, FileOp, RequestId, ServedFile, ServiceEvent, SessionKey, WriteChange,
};

pub(super) mod attributes;
mod change;
mod fs_error;
mod held;
mod jobs;
mod lines;
mod read;
mod rooted_path;
mod seen;
mod write;

#[cfg(test)]
mod tests;

use fs_error::FsError;
use jobs::{Jobs, Stop};
use lines::Window;
use rooted_path::RootedPath;
use seen::Seen;

/// Maximum size of a file that is read completely, and of a part of a larger one. Agents put the text into a model's
/// context, which is much smaller.
const MAX_READ_BYTES: u64 = 32 << 20;

/// Maximum number of open questions about paths outside of the roots.
const MAX_SHOWN: usize = 256;

/// Maximum size of a file for which the change of a write is shown.
const MAX_OLD_BYTES: u64 = 4 << 20;

/// Maximum number of parent folders that are checked for a repository.
const MAX_DEPTH: usize = 64;

/// How often a path is resolved again when it changes during the request.
const MAX_TRIES: usize = 3;

/// Executes file requests. Cheap to clone: clones share the state.
#[derive(Debug, Clone, Default)]
pub struct Files {
    memory: Arc<Mutex<Memory>>,
    jobs: Arc<Jobs>,
}

/// A request that can be stopped.
#[derive(Debug)]
pub struct Accepted {
    files: Files,
    job: FileJob,
    stop: Stop,
}

impl Accepted {
    /// Executes the request. Blocks on the disk.
    ///
    /// The event contains errors for the agent: `-32002` with `data.uri` for a missing file, `-32602` for a path that
    /// is not a file (a folder, a device), `-32800` if it was stopped, `-32603` for others.
    pub fn serve(self) -> ServiceEvent {
        self.files.serve(&self.job, &self.stop)
    }
}

impl Drop for Accepted {
    fn drop(&mut self) {
        self.files.jobs.remove(&self.job);
    }
}

#[derive(Debug, Default)]
struct Memory {
    /// The last known state of each file, by agent and canonical path.
    seen: HashMap<ConnId, HashMap<PathBuf, Seen>>,
    /// The canonical path that was shown to the user for an open question.
    shown: HashMap<RequestId, PathBuf>,
}

impl Files {
    /// Creates a service without state.
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts a request, which can be stopped from now on.
    pub fn accept(&self, job: FileJob) -> Accepted {
        Accepted { files: self.clone(), stop: self.jobs.add(&job), job }
    }

    /// Stops the requests of a session. `keeps_writes`: only reads.
    pub fn stop(&self, session: SessionKey, keeps_writes: bool) {
        self.jobs.stop(session, keeps_writes);
    }

    fn serve(&self, job: &FileJob, stop: &Stop) -> ServiceEvent {
        // The user's permission covers only the path that was shown.
        let allowed = self.memory().shown.remove(&job.request_id).zip(job.allowed.as_ref());
        for _ in 0..MAX_TRIES {
            let rooted = match stop.check().and_then(|()| Self::locate(job)) {
                Ok(rooted) => rooted,
                Err(trouble) => return failed(job, &trouble, None),
            };
            let (access, facts) = describe(job, &rooted);
            let allowed = match (policy::decide(&job.policy, &access, &facts), &allowed) {
                (Verdict::Allow(allowed), _) => allowed,
                (Verdict::Ask(_), Some((shown, allowed))) if *shown == *rooted.real() => (*allowed).clone(),
                // The transcript names the rule.
                (Verdict::Refuse(RefusedBy::Rule), _) => {
                    let asked = Box::new(AskedFile { access, facts, why: AskReason::Rule, change: None });
                    return ServiceEvent::FileAsks { job: job.clone(), asked };
                }
                (Verdict::Ask(why), _) => {
                    self.note_shown(job.request_id, rooted.real());
                    let change = Self::preview(job, &rooted);
                    let asked = Box::new(AskedFile { access, facts, why, change });
                    return ServiceEvent::FileAsks { job: job.clone(), asked };
                }
                (Verdict::Refuse(by), _) => return failed(job, &FsError::Refused(by), None),
            };
            let is_shown = facts.protection.is_some()
                || !matches!((&job.op, allowed.by), (FileOp::Read { .. }, AllowedBy::InsideRoots));
            let served = |change, held| {
                let (access, allowed) = (access.clone(), allowed.clone());
                is_shown.then(|| Box::new(ServedFile { access, allowed, change, held }))
            };
            let known = job.holding.files.get(rooted.real());
            // The user was asked about others, and saw the change.
            let is_held =
                (job.holding.is_on || known.is_some()) && facts.is_inside && facts.protection.is_none();
            let result = match (&job.op, known) {
                (FileOp::Read { line, limit }, Some(held)) => {
                    let window = Window::new(*line, *limit);
                    self.read_held(job, rooted.real(), &held.text, window)
                        .map(|text| (Some(text), None, None))
                }
                (FileOp::Read { line, limit }, None) => {
                    self.read(job, &rooted, (*line, *limit), stop).map(|text| (Some(text), None, None))
                }
                (FileOp::Write { content }, _) if is_held => {
                    self.hold(job, &rooted, content).map(|(change, held)| (None, Some(change), Some(held)))
                }
                (FileOp::Write { content }, _) => {
                    let has_names = facts.protection.is_some();
                    let written = self.write(job, &rooted, (content, has_names), stop);
                    written.map(|change| (None, Some(change), None))
                }
            };
            return match result {
                // A link changed in between; the next round decides about its new target.
                Err(FsError::Escaped) => continue,
                Err(trouble) => failed(job, &trouble, served(None, None)),
                Ok((text, change, held)) => ServiceEvent::FileDone {
                    conn: job.conn,
                    request_id: job.request_id,
                    result: Ok(text),
                    served: served(change, held),
                },
            };
        }
        failed(job, &FsError::Unsteady, None)
    }

    /// Removes the state of an agent whose connection has ended, and stops its requests.
    pub fn forget(&self, conn: ConnId) {
        self.jobs.stop_all(conn);
        self.memory().seen.remove(&conn);
    }

    fn locate(job: &FileJob) -> Result<RootedPath, FsError> {
        if !job.path.is_absolute() {
            return Err(FsError::Relative);
        }
        rooted_path::locate(&job.path, &job.roots)
    }

    /// Records the canonical path that is shown to the user.
    fn note_shown(&self, request_id: RequestId, real: &Path) {
        let mut memory = self.memory();
        if memory.shown.len() >= MAX_SHOWN {
            memory.shown.clear();
        }
        memory.shown.insert(request_id, real.to_owned());
    }

    fn preview(job: &FileJob, rooted: &RootedPath) -> Option<WriteChange> {
        match &job.op {
            FileOp::Write { content } => Some(change_of(rooted, content)),
            FileOp::Read { .. } => None,
        }
    }

    fn read(
        &self,
        job: &FileJob,
        rooted: &RootedPath,
        (line, limit): (Option<u32>, Option<u32>),
        stop: &Stop,
    ) -> Result<String, FsError> {
        match read::read(rooted, line, limit, stop) {
            Ok((text, seen)) => {
                self.remember(job.conn, rooted.real(), seen);
                Ok(text)
            }
            Err(FsError::Missing) => {
                self.remember(job.conn, rooted.real(), Seen::Missing);
                if job.missing_reads_empty { Ok(String::new()) } else { Err(FsError::Missing) }
            }
            Err(trouble) => Err(trouble),
        }
    }

    fn write(
        &self,
        job: &FileJob,
        rooted: &RootedPath,
        (content, may_have_names): (&str, bool),
        stop: &Stop,
    ) -> Result<WriteChange, FsError> {
        // From the check that the file is unchanged until it is written, so that concurrent writes cannot interleave.
        let _writer = self.jobs.write(rooted.real(), stop)?;
        let seen = self.seen(job.conn, rooted.real());
        let change = change_of(rooted, content);
        let seen = write::write(rooted, (content, may_have_names), seen, stop)?;
        self.remember(job.conn, rooted.real(), seen);
        Ok(change)
    }

    fn seen(&self, conn: ConnId, path: &Path) -> Option<Seen> {
        self.memory().seen.get(&conn).and_then(|files| files.get(path)).copied()
    }

    fn remember(&self, conn: ConnId, path: &Path, seen: Seen) {
        self.memory().seen.entry(conn).or_default().insert(path.to_path_buf(), seen);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }
}

/// Content of a file that parlor reads for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Glance {
    Text(Vec<u8>),
    Missing,
    /// Outside of the roots, not a regular file, too large, or not readable.
    Refused,
}

/// A file or folder that the user mentions in a prompt.
#[derive(Debug)]
pub(super) struct Mentioned {
    pub real: PathBuf,
    pub is_inside: bool,
    pub content: MentionedContent,
}

#[derive(Debug)]
pub(super) enum MentionedContent {
    /// A regular file of at most the requested size.
    File(Vec<u8>),
    Large {
        size_bytes: u64,
    },
    Folder,
}

/// Reads a file for parlor itself, within the roots only. The state for the agent is not updated, and the user is not
/// asked.
pub(super) fn glance(path: &Path, roots: &[PathBuf], max_bytes: u64) -> Glance {
    match look(path, roots, max_bytes) {
        Ok(Mentioned { is_inside: true, content: MentionedContent::File(bytes), .. }) => Glance::Text(bytes),
        Err(FsError::Missing) => Glance::Missing,
        Ok(_) | Err(_) => Glance::Refused,
    }
}

/// Reads a file that the user mentions, wherever it is; `None` if it is missing, special or not readable. Blocks on the
/// disk.
pub(super) fn read_mentioned(path: &Path, roots: &[PathBuf], max_bytes: u64) -> Option<Mentioned> {
    look(path, roots, max_bytes).ok()
}

/// A file that parlor reads from a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectFile {
    Text(String),
    Missing,
    Refused(&'static str),
}

/// Reads a configuration file of a project. Links out of its folder are not followed. Blocks on the disk.
pub fn read_project_file(folder: &Path, name: &str) -> ProjectFile {
    const MAX_BYTES: u64 = 1 << 20;
    let bytes = match look(&folder.join(name), &[folder.to_owned()], MAX_BYTES) {
        Err(FsError::Missing) => return ProjectFile::Missing,
        Err(_) => return ProjectFile::Refused("it cannot be read"),
        Ok(Mentioned { is_inside: false, .. }) => {
            return ProjectFile::Refused("it is a link out of the project");
        }
        Ok(Mentioned { content: MentionedContent::Folder, .. }) => {
            return ProjectFile::Refused("it is a folder");
        }
        Ok(Mentioned { content: MentionedContent::Large { .. }, .. }) => {
            return ProjectFile::Refused("it is larger than 1 MiB");
        }
        Ok(Mentioned { content: MentionedContent::File(bytes), .. }) => bytes,
    };
    String::from_utf8(bytes).map_or(ProjectFile::Refused("it is not UTF-8 text"), ProjectFile::Text)
}

fn look(path: &Path, roots: &[PathBuf], max_bytes: u64) -> Result<Mentioned, FsError> {
    let rooted = rooted_path::locate(path, roots)?;
    let (real, is_inside) = (rooted.real().to_owned(), rooted.root().is_some());
    let content = match read::open(&rooted) {
        Err(FsError::Folder) => MentionedContent::Folder,
        Err(error) => return Err(error),
        Ok((_, meta)) if meta.len() > max_bytes => MentionedContent::Large { size_bytes: meta.len() },
        Ok((file, meta)) => match read::content(&file)? {
            Some(bytes) => MentionedContent::File(bytes),
            None => MentionedContent::Large { size_bytes: meta.len() },
        },
    };
    Ok(Mentioned { real, is_inside, content })
}

fn describe(job: &FileJob, rooted: &RootedPath) -> (Access, Facts) {
    let path = rooted.real().to_owned();
    let is_inside = rooted.root().is_some();
    match &job.op {
        FileOp::Read { .. } => (Access::Read { path }, Facts { is_inside, ..Facts::default() }),
        FileOp::Write { .. } => {
            let by_name = policy::protection_of(&path, rooted.root(), &job.policy);
            let protection = match by_name {
                None | Some(Protection::WideRoot) if is_in_repository_data(&path, rooted.root()) => {
                    Some(Protection::Git)
                }
                None | Some(Protection::WideRoot) if links::has_other_names(&path) => {
                    Some(Protection::Linked)
                }
                known => known,
            };
            (Access::Write { path }, Facts { is_inside, protection, is_covered: false })
        }
    }
}

/// Whether a file is in the data of a git repository that is not named `.git`.
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

/// The change from the current content; only the size if that cannot be read.
fn change_of(rooted: &RootedPath, content: &str) -> WriteChange {
    let old = read::open(rooted).and_then(|(file, meta)| {
        if meta.len() > MAX_OLD_BYTES {
            return Err(FsError::TooLarge { size_bytes: meta.len() });
        }
        Ok(read::content(&file)?.unwrap_or_default())
    });
    match old {
        Ok(old) => change::change(rooted.shown(), Some(&String::from_utf8_lossy(&old)), content),
        Err(FsError::Missing) => change::change(rooted.shown(), None, content),
        Err(_) => WriteChange { diff: None, line: None, size_bytes: content.len() as u64 },
    }
}

fn failed(job: &FileJob, trouble: &FsError, served: Option<Box<ServedFile>>) -> ServiceEvent {
    ServiceEvent::FileDone {
        conn: job.conn,
        request_id: job.request_id,
        result: Err(trouble.answer(&job.path)),
        served,
    }
}
