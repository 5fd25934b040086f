//! Growing delays between attempts after a failure, with jitter, until a time limit.

use std::time::Duration;

use tokio::time::Instant;

use super::http_context::Timeouts;

/// The attempts of one message or one stream.
#[derive(Debug)]
pub struct Backoff {
    timeouts: Timeouts,
    pause: Duration,
    failing_since: Option<Instant>,
}

impl Backoff {
    pub fn new(timeouts: Timeouts) -> Self {
        Self { timeouts, pause: timeouts.min_pause, failing_since: None }
    }

    pub fn reset(&mut self) {
        *self = Self::new(self.timeouts);
    }

    /// Whether the last attempt failed.
    pub fn is_failing(&self) -> bool {
        self.failing_since.is_some()
    }

    /// Records a failure; returns the delay before the next attempt (at least `wanted`); `None`: time limit.
    pub fn failed(&mut self, now: Instant, wanted: Option<Duration>) -> Option<Duration> {
        let since = *self.failing_since.get_or_insert(now);
        if now.saturating_duration_since(since) >= self.timeouts.give_up {
            return None;
        }
        let jitter = self.timeouts.jitter;
        let percent = 100 - u32::from(uuid::Uuid::new_v4().as_bytes()[0]) * jitter / 255;
        let delay = self.pause * percent / 100;
        self.pause = (self.pause * 2).min(self.timeouts.max_pause);
        Some(delay.max(wanted.unwrap_or_default().min(self.timeouts.answer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_until_the_limit() {
        let timeouts = Timeouts::default();
        let mut backoff = Backoff::new(timeouts);
        let began = Instant::now();
        let (mut now, mut expected) = (began, timeouts.min_pause);
        while let Some(delay) = backoff.failed(now, None) {
            assert!(delay >= expected * 3 / 4 && delay <= expected, "{delay:?}");
            expected = (expected * 2).min(timeouts.max_pause);
            now += delay;
        }
        assert!(now - began >= timeouts.give_up && backoff.is_failing());
        backoff.reset();
        assert!(!backoff.is_failing());
        assert!(backoff.failed(now, None).unwrap() <= timeouts.min_pause);
    }

    #[test]
    fn the_requested_delay_is_respected_up_to_a_limit() {
        let timeouts = Timeouts::default();
        let mut backoff = Backoff::new(timeouts);
        let now = Instant::now();
        let asked = Duration::from_secs(7);
        assert_eq!(backoff.failed(now, Some(asked)), Some(asked));
        assert_eq!(backoff.failed(now, Some(Duration::MAX)), Some(timeouts.answer));
    }
}
