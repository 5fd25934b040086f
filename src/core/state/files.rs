//! File jobs of a connection: a few of each session at a time, the others wait in order.
//!
//! Invariants: the number and bytes of waiting jobs of a session are bounded; a session does not wait for another; each
//! job sent to the service is returned exactly once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::model::{FileJob, FileOp, RequestId, SessionKey};

use crate::core::{Cx, Effect};

/// Maximum number of jobs of a session that are served at a time.
const AT_ONCE: usize = 4;

/// Maximum number of waiting jobs of a session.
const MAX_WAITING: usize = 1_000;

/// Maximum number of bytes of new content in waiting jobs of a session.
const MAX_BYTES: usize = 64 << 20;

/// The file jobs of a connection, by top-level session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileJobs {
    queues: BTreeMap<SessionKey, Queue>,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Queue {
    running: BTreeSet<RequestId>,
    waiting: VecDeque<FileJob>,
    bytes: usize,
}

impl FileJobs {
    /// Adds a job; `false`: too many of its session are waiting.
    pub(in crate::core) fn add(&mut self, job: FileJob, cx: &mut Cx) -> bool {
        let queue = self.queues.entry(job.session).or_default();
        let size = size_of_content(&job);
        // A job larger than the limit is accepted if no other is waiting.
        let is_full = queue.waiting.len() >= MAX_WAITING || queue.bytes + size > MAX_BYTES;
        if is_full && !queue.waiting.is_empty() {
            return false;
        }
        queue.bytes += size;
        queue.waiting.push_back(job);
        queue.start(cx);
        true
    }

    pub(in crate::core) fn served(&mut self, request_id: RequestId, cx: &mut Cx) {
        for queue in self.queues.values_mut().filter(|queue| queue.running.contains(&request_id)) {
            queue.running.remove(&request_id);
            queue.start(cx);
        }
        self.queues.retain(|_, queue| !queue.running.is_empty() || !queue.waiting.is_empty());
    }

    /// Stops the jobs of a session that are at the service, and drops and returns those that wait. `keeps_writes`: only
    /// reads.
    pub(crate) fn stop(&mut self, session: SessionKey, keeps_writes: bool, cx: &mut Cx) -> Vec<RequestId> {
        let Some(queue) = self.queues.get_mut(&session) else { return Vec::new() };
        let is_saved = |job: &FileJob| keeps_writes && matches!(job.op, FileOp::Write { .. });
        let (waiting, dropped) = std::mem::take(&mut queue.waiting).into_iter().partition(is_saved);
        queue.waiting = waiting;
        queue.bytes = queue.waiting.iter().map(size_of_content).sum();
        if !queue.running.is_empty() {
            cx.effects.push(Effect::StopFiles { session, keeps_writes });
        }
        let dropped: VecDeque<FileJob> = dropped;
        dropped.into_iter().map(|job| job.request_id).collect()
    }

    /// Drops the waiting jobs because the connection has ended.
    pub(in crate::core) fn clear(&mut self) {
        for queue in self.queues.values_mut() {
            queue.waiting.clear();
            queue.bytes = 0;
        }
    }
}

impl Queue {
    fn start(&mut self, cx: &mut Cx) {
        while self.running.len() < AT_ONCE
            && let Some(job) = self.waiting.pop_front()
        {
            self.bytes -= size_of_content(&job);
            self.running.insert(job.request_id);
            cx.effects.push(Effect::File(job));
        }
    }
}

fn size_of_content(job: &FileJob) -> usize {
    match &job.op {
        FileOp::Write { content } => content.len(),
        FileOp::Read { .. } => 0,
    }
}
