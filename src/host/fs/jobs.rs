//! The jobs in progress: stops them, and lets only one at a time write a file.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::fs_error::FsError;
use crate::lock::lock;
use crate::model::{ConnId, FileJob, FileOp, RequestId, SessionKey};

/// The jobs in progress.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    state: Mutex<State>,
    /// A file was written, or a job was stopped.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: HashMap<(ConnId, RequestId), Running>,
    written: HashSet<PathBuf>,
}

#[derive(Debug)]
struct Running {
    session: SessionKey,
    is_write: bool,
    stop: Stop,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(super) fn check(&self) -> Result<(), FsError> {
        if self.0.load(Ordering::Relaxed) { Err(FsError::Stopped) } else { Ok(()) }
    }
}

/// The only writer of a file, until it is dropped.
pub(super) struct Writer<'a> {
    jobs: &'a Jobs,
    path: &'a Path,
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.jobs.state().written.remove(self.path);
        self.jobs.changed.notify_all();
    }
}

impl Jobs {
    /// Adds a job, which can be stopped until [`Self::remove`].
    pub(super) fn add(&self, job: &FileJob) -> Stop {
        let stop = Stop::default();
        let is_write = matches!(job.op, FileOp::Write { .. });
        let running = Running { session: job.session, is_write, stop: stop.clone() };
        self.state().running.insert((job.conn, job.request_id), running);
        stop
    }

    pub(super) fn remove(&self, job: &FileJob) {
        self.state().running.remove(&(job.conn, job.request_id));
    }

    /// Stops the jobs of a session. `keeps_writes`: only reads.
    pub(super) fn stop(&self, session: SessionKey, keeps_writes: bool) {
        self.stop_those(|_, running| running.session == session && !(keeps_writes && running.is_write));
    }

    pub(super) fn stop_all(&self, conn: ConnId) {
        self.stop_those(|of, _| of == conn);
    }

    fn stop_those(&self, is_meant: impl Fn(ConnId, &Running) -> bool) {
        for ((conn, _), running) in &self.state().running {
            if is_meant(*conn, running) {
                running.stop.0.store(true, Ordering::Relaxed);
            }
        }
        self.changed.notify_all();
    }

    /// Waits until no other job writes the file.
    pub(super) fn write<'a>(&'a self, path: &'a Path, stop: &Stop) -> Result<Writer<'a>, FsError> {
        let mut state = self.state();
        while state.written.contains(path) {
            stop.check()?;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.written.insert(path.to_owned());
        drop(state);
        Ok(Writer { jobs: self, path })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
