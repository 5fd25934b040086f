//! When updates of agents are looked at again: the loop says it, each connection keeps to it.
//!
//! Nobody sees an update before the next frame, so what comes until then is read at once, with one wake-up. An agent
//! that waits for an answer, or that writes as fast as it can, is read as it comes.
//! Invariants: only updates wait; an idle connection sets no timer.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Bytes are counted for so long.
const WINDOW: Duration = Duration::from_millis(32);
/// An agent that writes more in a window would fill its pipe (64 KiB) before the next frame, and would have to wait.
const MOST_BYTES: u128 = 24 << 10;
/// Updates wait after so many reads of nothing else: an agent that sends an update with each request is not held up.
const STREAK: u32 = 4;

/// Says when updates are looked at again.
#[derive(Debug)]
pub struct GateKeeper {
    opens_at: watch::Sender<Instant>,
}

impl GateKeeper {
    /// A keeper, and the gate that its connections get.
    pub fn new() -> (Self, Gate) {
        let (opens_at, gate) = watch::channel(Instant::now());
        (Self { opens_at }, Gate(Some(gate)))
    }

    /// Updates that come before this wait for it.
    pub fn open_at(&self, at: Instant) {
        self.opens_at.send_if_modified(|opens_at| std::mem::replace(opens_at, at) != at);
    }
}

/// Opens when updates are looked at again; the default is always open.
#[derive(Debug, Clone, Default)]
pub struct Gate(Option<watch::Receiver<Instant>>);

impl Gate {
    /// Waits until it is open: at the latest when it would open now, however often that is put off meanwhile.
    pub async fn open(&mut self) {
        let mut latest = None;
        while let Some(gate) = &mut self.0 {
            let told = *gate.borrow_and_update();
            let opens_at = latest.map_or(told, |latest| told.min(latest));
            if opens_at <= Instant::now() {
                return;
            }
            latest = Some(opens_at);
            tokio::select! {
                () = sleep_until(opens_at) => {}
                changed = gate.changed() => if changed.is_err() { self.0 = None },
            }
        }
    }
}

/// Knows whether a connection's updates may wait for the gate.
#[derive(Debug)]
pub(super) struct Stream {
    since: Instant,
    bytes: usize,
    reads: u32,
    is_slow: bool,
}

impl Stream {
    /// Nothing has come.
    pub fn new(now: Instant) -> Self {
        Self { since: now, bytes: 0, reads: 0, is_slow: false }
    }

    /// A read brought so many bytes, and nothing but updates or more than that. Whether what comes next may wait.
    pub fn may_wait(&mut self, bytes: usize, only_updates: bool, now: Instant) -> bool {
        if !only_updates {
            *self = Self::new(now);
            return false;
        }
        self.reads = self.reads.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        let took = now.saturating_duration_since(self.since);
        if took >= WINDOW {
            self.is_slow = self.bytes as u128 * WINDOW.as_micros() <= MOST_BYTES * took.as_micros();
            (self.since, self.bytes) = (now, 0);
        }
        self.is_slow && self.reads >= STREAK
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_gate_opens_when_it_is_told_and_when_nobody_keeps_it() {
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

    /// Whether updates may wait after a second in which so many reads brought so many bytes each.
    fn waits(reads: u32, bytes: usize) -> bool {
        let begun = Instant::now();
        let mut stream = Stream::new(begun);
        let at = |read| begun + Duration::from_secs(1) * read / reads;
        (1..=reads).fold(false, |_, read| stream.may_wait(bytes, true, at(read)))
    }

    #[test]
    fn a_stream_waits_and_what_fills_the_pipe_does_not() {
        assert!(waits(10, 200));
        assert!(waits(1000, 200));
        assert!(!waits(1000, 2000));
        assert!(!waits(3, 200), "not before some have come");
    }

    #[test]
    fn an_agent_that_waits_for_answers_is_not_held_up() {
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
