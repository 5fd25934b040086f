//! Batches frequent updates of an agent.
//!
//! Waking up for each of a thousand small updates per second costs more than decoding them. When updates are that
//! frequent, the peer pauses after each read, and reads the accumulated messages at once.
//! Invariants: only updates are delayed, by at most [`REST`]; there is no delay while the agent waits for a
//! response, or while it writes as fast as it can (a replay).

use std::time::Duration;

use tokio::time::Instant;

/// How long updates gather; about half of what passes between two frames of a flood.
const REST: Duration = Duration::from_millis(22);
/// For so long updates are counted.
const WINDOW: Duration = Duration::from_millis(32);
/// More updates than this in a window are a flood: 500 a second.
const FLOOD: u128 = 16;
/// More updates than this in a window are a torrent, in which each read brings many by itself: 4000 a second.
const TORRENT: u128 = 128;

/// Counts updates.
#[derive(Debug)]
pub(super) struct Pace {
    since: Instant,
    messages: u128,
    is_flooded: bool,
    rest: Option<Instant>,
}

impl Pace {
    /// Nothing has come.
    pub fn new(now: Instant) -> Self {
        Self { since: now, messages: 0, is_flooded: false, rest: None }
    }

    /// Until when nothing is read; `None`: there is no rest.
    pub fn rest(&self) -> Option<Instant> {
        self.rest
    }

    /// The rest is over.
    pub fn go_on(&mut self) {
        self.rest = None;
    }

    /// A read brought so many messages, and nothing but updates or more than that.
    pub fn note(&mut self, messages: u32, only_updates: bool, now: Instant) {
        if !only_updates {
            *self = Self::new(now);
            return;
        }
        self.messages += u128::from(messages);
        let took = now.saturating_duration_since(self.since);
        if took >= WINDOW {
            let in_window = self.messages * WINDOW.as_micros() / took.as_micros();
            *self = Self { is_flooded: (FLOOD + 1..=TORRENT).contains(&in_window), ..Self::new(now) };
        }
        self.rest = self.is_flooded.then(|| now + REST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many reads of a second are followed by a rest, when so many updates come in it, evenly.
    fn rests(updates: u32) -> (u32, u32) {
        let begun = Instant::now();
        let mut pace = Pace::new(begun);
        let (mut now, mut read, mut reads, mut rests) = (begun, 0, 0, 0);
        while now < begun + Duration::from_secs(1) {
            let come = u32::try_from((now - begun).as_micros() * u128::from(updates) / 1_000_000).unwrap();
            if come > read {
                pace.note(come - read, true, now);
                (read, reads) = (come, reads + 1);
            }
            match pace.rest() {
                Some(until) => {
                    (now, rests) = (until, rests + 1);
                    pace.go_on();
                }
                None => now += Duration::from_micros(100),
            }
        }
        (reads, rests)
    }

    #[test]
    fn a_flood_is_read_in_pieces_and_all_else_as_it_comes() {
        assert_eq!(rests(400), (399, 0));
        let (reads, pauses) = rests(1000);
        assert!(reads < 80 && pauses > 40, "{reads} reads, {pauses} rests");
        assert_eq!(rests(10_000).1, 0, "a replay is not held up");
    }

    #[test]
    fn what_waits_for_an_answer_ends_a_flood() {
        let begun = Instant::now();
        let mut pace = Pace::new(begun);
        (1..=40).for_each(|ms| pace.note(1, true, begun + Duration::from_millis(ms)));
        assert!(pace.rest().is_some());
        pace.note(1, false, begun + Duration::from_millis(41));
        assert_eq!(pace.rest(), None);
        pace.note(1, true, begun + Duration::from_millis(42));
        assert_eq!(pace.rest(), None, "counted anew");
    }

    #[test]
    fn what_comes_after_a_silence_is_no_flood() {
        let begun = Instant::now();
        let mut pace = Pace::new(begun);
        (1..=40).for_each(|ms| pace.note(1, true, begun + Duration::from_millis(ms)));
        pace.note(1, true, begun + Duration::from_secs(1));
        assert_eq!(pace.rest(), None);
    }
}
