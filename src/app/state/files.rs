//! File jobs of a connection: a few at a time, the others wait in order.
//!
//! Invariants: the number and bytes of waiting jobs are bounded; each job sent to the service is returned exactly once.

use std::collections::VecDeque;

use crate::model::{FileJob, FileOp};

use crate::app::Effect;

/// Maximum number of jobs served at a time.
const AT_ONCE: usize = 4;

/// Maximum number of waiting jobs.
const MOST_WAITING: usize = 1_000;

/// Maximum number of bytes of new content in waiting jobs.
const MOST_BYTES: usize = 64 << 20;

/// The file jobs of a connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileJobs {
    /// Number of jobs at the service.
    running: usize,
    waiting: VecDeque<FileJob>,
    bytes: usize,
}

impl FileJobs {
    /// Adds a job; `false`: too many are waiting.
    pub(in crate::app) fn add(&mut self, job: FileJob, fx: &mut Vec<Effect>) -> bool {
        let size = size_of_content(&job);
        // A job larger than the limit is accepted if no other is waiting.
        let is_full = self.waiting.len() >= MOST_WAITING || self.bytes + size > MOST_BYTES;
        if is_full && !self.waiting.is_empty() {
            return false;
        }
        self.bytes += size;
        self.waiting.push_back(job);
        self.start(fx);
        true
    }

    /// The service has returned a job.
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

    /// Drops the waiting jobs because the connection has ended.
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
