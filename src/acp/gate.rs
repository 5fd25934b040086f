//! Delays session updates until the next frame is due.
//!
//! Updates are not visible before the next frame, so they are read together with one wake-up. Agents that wait for a
//! response, or that write as fast as they can, are read immediately.
//! Invariants: only updates are delayed; an idle connection sets no timer.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

const WINDOW: Duration = Duration::from_millis(32);
/// Maximum bytes per window. A faster agent would fill its pipe (64 KiB) before the next frame, and block.
const MAX_BYTES: u128 = 24 << 10;
/// Minimum number of reads with updates only, so that an agent that sends an update with each request is not delayed.
const STREAK: u32 = 4;

#[derive(Debug)]
pub struct GateKeeper {
    opens_at: watch::Sender<Instant>,
}

impl GateKeeper {
    pub fn new() -> (Self, Gate) {
        let (opens_at, gate) = watch::channel(Instant::now());
        (Self { opens_at }, Gate(Some(gate)))
    }

    pub fn open_at(&self, at: Instant) {
        self.opens_at.send_if_modified(|opens_at| std::mem::replace(opens_at, at) != at);
    }
}

/// A gate for updates; the default is always open.
#[derive(Debug, Clone, Default)]
pub struct Gate(Option<watch::Receiver<Instant>>);

impl Gate {
    /// Waits until the gate is open. If the time is postponed while waiting, the first time counts.
    pub async fn open(&mut self) {
        let mut latest = None;
        while let Some(gate) = &mut self.0 {
            let reported = *gate.borrow_and_update();
            let opens_at = latest.map_or(reported, |latest| reported.min(latest));
            if opens_at <= Instant::now() {
                return;
            }
            latest = Some(opens_at);
            tokio::select! {
                biased;
                () = sleep_until(opens_at) => {}
                changed = gate.changed() => if changed.is_err() { self.0 = None },
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    since: Instant,
    bytes: usize,
    reads: u32,
    is_slow: bool,
}

impl Stream {
    pub fn new(now: Instant) -> Self {
        Self { since: now, bytes: 0, reads: 0, is_slow: false }
    }

    /// Records a read, and returns whether the next updates may be delayed. `only_updates`: it contained only updates.
    pub fn may_wait(&mut self, bytes: usize, only_updates: bool, now: Instant) -> bool {
        if !only_updates {
            *self = Self::new(now);
            return false;
        }
        self.reads = self.reads.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        let took = now.saturating_duration_since(self.since);
        if took >= WINDOW {
            self.is_slow = self.bytes as u128 * WINDOW.as_micros() <= MAX_BYTES * took.as_micros();
            (self.since, self.bytes) = (now, 0);
        } else if self.bytes as u128 > MAX_BYTES {
            // A flood that begins in the middle of a window must not wait for its end.
            self.is_slow = false;
        }
        self.is_slow && self.reads >= STREAK
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_gate_opens_at_its_time_and_when_its_keeper_is_dropped() {
        let (keeper, mut gate) = GateKeeper::new();
        assert!(gate.open().now_or_never().is_some());
        let later = Instant::now() + Duration::from_secs(60);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            keeper.open_at(later);
            let opened = tokio::spawn(async move {
                gate.open().await;
                gate
            });
            tokio::task::yield_now().await;
            assert!(!opened.is_finished());
            keeper.open_at(Instant::now());
            let mut gate = opened.await.unwrap();
            keeper.open_at(later);
            assert!(gate.open().now_or_never().is_none());
            drop(keeper);
            gate.open().await;
        });
        assert!(Instant::now() < later);
    }

    /// Whether updates may be delayed after one second with this number of reads of `bytes` each.
    fn waits(reads: u32, bytes: usize) -> bool {
        let begun = Instant::now();
        let mut stream = Stream::new(begun);
        let at = |read| begun + Duration::from_secs(1) * read / reads;
        (1..=reads).fold(false, |_, read| stream.may_wait(bytes, true, at(read)))
    }

    #[test]
    fn slow_streams_are_delayed_and_fast_ones_are_not() {
        assert!(waits(10, 200));
        assert!(waits(1000, 200));
        assert!(!waits(1000, 2000));
        assert!(!waits(3, 200), "not before a streak of updates");
    }

    #[test]
    fn a_flood_after_a_pause_is_read_as_it_comes() {
        let begun = Instant::now();
        let mut stream = Stream::new(begun);
        let later = begun + Duration::from_secs(1);
        assert!((0..8).fold(false, |_, _| stream.may_wait(200, true, later)));
        assert!(!stream.may_wait(64 << 10, true, later + Duration::from_millis(1)));
    }

    #[test]
    fn agents_that_wait_for_responses_are_not_delayed() {
        let mut now = Instant::now();
        let mut stream = Stream::new(now);
        for _ in 0..50 {
            for only_updates in [true, true, false] {
                now += Duration::from_millis(40);
                assert!(!stream.may_wait(200, only_updates, now));
            }
        }
    }
}
