//! File jobs of a connection: few at a time, the rest wait in order.
//!
//! Invariants: what waits is bounded in number and bytes; each job that the service got comes back exactly once.

use std::collections::VecDeque;

use crate::model::{FileJob, FileOp};

use crate::app::Effect;

/// So many jobs of a connection are served at a time.
const AT_ONCE: usize = 4;

/// The most jobs that wait.
const MOST_WAITING: usize = 1_000;

/// The most bytes of new content that wait.
const MOST_BYTES: usize = 64 << 20;

/// The jobs of a connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileJobs {
    /// How many the service has.
    running: usize,
    waiting: VecDeque<FileJob>,
    bytes: usize,
}

impl FileJobs {
    /// Takes a job; `false`: too many wait.
    pub(in crate::app) fn add(&mut self, job: FileJob, fx: &mut Vec<Effect>) -> bool {
        let size = size_of_content(&job);
        // One that is larger than all that may wait is taken alone.
        let is_full = self.waiting.len() >= MOST_WAITING || self.bytes + size > MOST_BYTES;
        if is_full && !self.waiting.is_empty() {
            return false;
        }
        self.bytes += size;
        self.waiting.push_back(job);
        self.start(fx);
        true
    }

    /// The service gave one back.
    pub(in crate::app) fn served(&mut self, fx: &mut Vec<Effect>) {
        self.running = self.running.saturating_sub(1);
        self.start(fx);
    }

    fn start(&mut self, fx: &mut Vec<Effect>) {
        while self.running < AT_ONCE
            && let Some(job) = self.waiting.pop_front()
        {
            self.bytes -= size_of_content(&job);
            self.running += 1;
            fx.push(Effect::File(job));
        }
    }

    /// The connection ended: nothing that waits is served any more.
    pub(in crate::app) fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }
}

fn size_of_content(job: &FileJob) -> usize {
    match &job.op {
        FileOp::Write { content } => content.len(),
        FileOp::Read { .. } => 0,
    }
}
