//! Counts what was received and is not yet written.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::lock::lock;
use crate::model::{Note, Record, weight};

/// Size of unwritten notes above which agents have to wait.
const MAX_BYTES: usize = 32 << 20;

/// Time after which they go on, even if the disk does not respond.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Lets agents wait for the disk, so that what they send does not fill the memory.
#[derive(Debug, Clone, Default)]
pub struct Backlog(Arc<State>);

#[derive(Debug, Default)]
struct State {
    size: Mutex<Size>,
    has_room: Notify,
}

#[derive(Debug, Default)]
struct Size {
    bytes: usize,
    /// When it became too large.
    full_since: Option<Instant>,
    /// Whether nothing can be written, so that waiting is useless.
    is_failing: bool,
}

impl Backlog {
    /// Counts notes that are to be written.
    pub(super) fn add(&self, bytes: usize) {
        let mut size = lock(&self.0.size);
        size.bytes += bytes;
        if size.bytes > MAX_BYTES && size.full_since.is_none() {
            size.full_since = Some(Instant::now());
        }
    }

    /// Notes of this size were written, or, if the disk fails, are kept for later.
    pub(super) fn remove(&self, bytes: usize, is_failing: bool) {
        let mut size = lock(&self.0.size);
        size.bytes = size.bytes.saturating_sub(bytes);
        size.is_failing = is_failing;
        if is_failing || size.bytes <= MAX_BYTES {
            size.full_since = None;
            self.0.has_room.notify_waiters();
        }
    }

    #[must_use]
    pub fn is_full(&self) -> bool {
        self.end_of_wait().is_some()
    }

    fn end_of_wait(&self) -> Option<Instant> {
        let size = lock(&self.0.size);
        let end = size.full_since.filter(|_| !size.is_failing)? + MAX_WAIT;
        (end > Instant::now()).then_some(end)
    }

    /// Waits until agents may go on.
    pub async fn wait_for_room(&self) {
        loop {
            let has_room = self.0.has_room.notified();
            let Some(end) = self.end_of_wait() else { return };
            let _ = tokio::time::timeout_at(end.into(), has_room).await;
        }
    }
}

pub(super) fn bytes_of(note: &Note) -> usize {
    /// Assumed size of what has little text.
    const OTHERS: usize = 1 << 10;
    match note {
        Note::Event { record, .. } => match &**record {
            Record::Update(update) => match update.appended_text() {
                Some((_, _, text)) => text.len(),
                None => OTHERS + weight::of_update(update),
            },
            Record::Command { output, .. } => OTHERS + output.len(),
            _ => OTHERS,
        },
        Note::Held(_, Some(file)) => OTHERS + file.size(),
        _ => OTHERS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn agents_wait_until_enough_is_written() {
        let backlog = Backlog::default();
        backlog.add(MAX_BYTES);
        assert!(!backlog.is_full());
        backlog.add(1);
        assert!(backlog.is_full());
        let waiting = tokio::spawn({
            let backlog = backlog.clone();
            async move { backlog.wait_for_room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        backlog.remove(1, false);
        assert!(!backlog.is_full());
        waiting.await.unwrap();
    }

    #[test]
    fn agents_do_not_wait_for_a_disk_that_fails() {
        let backlog = Backlog::default();
        backlog.add(2 * MAX_BYTES);
        backlog.remove(0, true);
        assert!(!backlog.is_full());
        backlog.add(MAX_BYTES);
        assert!(!backlog.is_full(), "until something is written again");
    }
}
