//! Limits the reported but unread output of all terminals, and the rate at which more is dropped.
//!
//! A slow screen must not fill the unbounded event queue. Credit returns when output is read, and at a fixed rate
//! that any screen can handle.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock::lock;

/// Maximum number of bytes that are reported but not received. A frame lays out all of them, and keys wait for it.
const MAX_BYTES: u64 = 1 << 20;

/// Credit per second that returns without being received.
const TRICKLE_BYTES_PER_S: u64 = 64 << 10;

/// Output per second that is read and dropped, of all commands: those that print without end must not keep all
/// processors busy while the screen waits for one.
const DROPPED_BYTES_PER_S: u64 = 16 << 20;

/// Limits the output of all terminals.
#[derive(Debug)]
pub(super) struct Backlog {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    reported_bytes: u64,
    since: Instant,
    /// Until then, no more output should be read and dropped.
    dropped_until: Instant,
}

impl Default for Backlog {
    fn default() -> Self {
        let now = Instant::now();
        Self { state: Mutex::new(State { reported_bytes: 0, since: now, dropped_until: now }) }
    }
}

impl Backlog {
    /// Whether `bytes` may be reported now; if so, they are counted.
    pub(super) fn admit(&self, bytes: usize) -> bool {
        let mut state = lock(&self.state);
        let elapsed_ms = u64::try_from(state.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let back = elapsed_ms.saturating_mul(TRICKLE_BYTES_PER_S) / 1000;
        if back > 0 {
            state.reported_bytes = state.reported_bytes.saturating_sub(back);
            state.since = Instant::now();
        }
        let after = state.reported_bytes.saturating_add(bytes as u64);
        let is_admitted = after <= MAX_BYTES;
        if is_admitted {
            state.reported_bytes = after;
        }
        is_admitted
    }

    /// Counts output that was dropped. Returns how long its reader should wait.
    pub(super) fn pace(&self, dropped: usize) -> Duration {
        let time = Duration::from_micros(dropped as u64 * 1_000_000 / DROPPED_BYTES_PER_S);
        let now = Instant::now();
        let mut state = lock(&self.state);
        state.dropped_until = state.dropped_until.max(now) + time;
        state.dropped_until - now
    }

    /// Records that `bytes` were received.
    pub(super) fn taken(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.reported_bytes = state.reported_bytes.saturating_sub(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_admitted_up_to_the_limit() {
        let backlog = Backlog::default();
        let all = usize::try_from(MAX_BYTES).unwrap();
        assert!(backlog.admit(all));
        assert!(!backlog.admit(all));
        backlog.taken(all);
        assert!(backlog.admit(all));
    }

    #[test]
    fn dropped_output_of_all_readers_is_paced_together() {
        let backlog = Backlog::default();
        let second = usize::try_from(DROPPED_BYTES_PER_S).unwrap();
        let first = backlog.pace(second);
        let next = backlog.pace(second);
        assert_eq!(first, Duration::from_secs(1));
        assert!(next > Duration::from_secs(1) && next <= Duration::from_secs(2), "{next:?}");
    }
}
