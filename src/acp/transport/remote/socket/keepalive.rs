//! Detects a lost WebSocket connection by unanswered pings.
//!
//! Some agents read nothing while they work and answer no pings during that time, so silence during an open request
//! counts only for agents that have answered a ping at work before.
//! Invariant: a peer that has never answered a ping is never considered lost.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

/// What is known of the other end.
#[derive(Debug)]
pub struct Keepalive {
    /// When anything came last.
    heard: Instant,
    /// Requests of ours that are not answered, by their id as JSON.
    open: BTreeSet<String>,
    /// How often work began.
    work: u64,
    /// The number of the last ping.
    number: u64,
    /// The first ping since anything came.
    unanswered: Option<Instant>,
    /// The last ping: its number, and at which work it was sent.
    last: Option<(u64, Option<u64>)>,
    /// It has answered a ping.
    answers: bool,
    /// It has answered one within the work at which it was sent.
    answers_at_work: bool,
}

impl Keepalive {
    /// Of a socket that was just opened.
    pub fn new(now: Instant) -> Self {
        Self {
            heard: now,
            open: BTreeSet::new(),
            work: 0,
            number: 0,
            unanswered: None,
            last: None,
            answers: false,
            answers_at_work: false,
        }
    }

    /// A request of ours goes off.
    pub fn asked(&mut self, id: &str) {
        self.work += u64::from(self.open.is_empty());
        self.open.insert(id.to_owned());
    }

    /// A message came; `answered`: the request of ours that it answers.
    pub fn heard(&mut self, answered: Option<&str>, now: Instant) {
        self.heard = now;
        self.unanswered = None;
        if let Some(id) = answered {
            self.open.remove(id);
        }
    }

    /// Whether requests of ours are open.
    pub fn is_at_work(&self) -> bool {
        !self.open.is_empty()
    }

    /// What the next ping says, if one is due: nothing came for a while, or it is not known yet whether pings are
    /// answered.
    pub fn ping(&mut self, quiet: Duration, now: Instant) -> Option<[u8; 8]> {
        let is_known = self.answers && (self.answers_at_work || !self.is_at_work());
        if is_known && now.duration_since(self.heard) < quiet {
            return None;
        }
        self.number += 1;
        self.last = Some((self.number, self.is_at_work().then_some(self.work)));
        self.unanswered.get_or_insert(now);
        Some(self.number.to_be_bytes())
    }

    /// A pong came.
    pub fn pong(&mut self, says: &[u8], now: Instant) {
        self.heard(None, now);
        let is_of = |(number, _): &(u64, Option<u64>)| number.to_be_bytes() == says;
        if let Some((_, work)) = self.last.filter(is_of) {
            self.answers = true;
            // Answered behind the work, it may have been read only then.
            self.answers_at_work |= self.is_at_work() && work == Some(self.work);
        }
    }

    /// For how long it has not answered, if it is to be given up.
    pub fn lost_for(&self, patience: Duration, now: Instant) -> Option<Duration> {
        let is_awaited = self.answers && (self.answers_at_work || !self.is_at_work());
        let waits = now.duration_since(self.unanswered.filter(|_| is_awaited)?);
        (waits >= patience).then(|| now.duration_since(self.heard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_secs(30);

    /// A peer that answered the first ping at rest.
    fn awake(now: Instant) -> Keepalive {
        let mut pulse = Keepalive::new(now);
        let says = pulse.ping(STEP, now).unwrap();
        pulse.pong(&says, now);
        pulse
    }

    #[test]
    fn who_answered_before_is_given_up_once_it_is_silent() {
        let now = Instant::now();
        let mut pulse = awake(now);
        assert_eq!(pulse.ping(STEP, now + STEP / 2), None, "it was heard just now");
        assert!(pulse.ping(STEP, now + STEP).is_some());
        assert_eq!(pulse.lost_for(STEP, now + STEP), None);
        assert_eq!(pulse.lost_for(STEP, now + 2 * STEP), Some(2 * STEP));
        pulse.heard(None, now + 2 * STEP);
        assert_eq!(pulse.lost_for(STEP, now + 9 * STEP), None, "any message is a sign of life");
    }

    #[test]
    fn who_never_answered_is_never_given_up() {
        let now = Instant::now();
        let mut pulse = Keepalive::new(now);
        for step in 1..9 {
            assert!(pulse.ping(STEP, now + step * STEP).is_some());
        }
        assert_eq!(pulse.lost_for(STEP, now + 99 * STEP), None);
        pulse.pong(b"of its own", now);
        assert!(pulse.ping(STEP, now + STEP).is_some());
        assert_eq!(
            pulse.lost_for(STEP, now + 99 * STEP),
            None,
            "a pong that nobody asked for proves nothing"
        );
    }

    #[test]
    fn who_reads_nothing_at_work_is_waited_for_until_the_work_is_done() {
        let now = Instant::now();
        let mut pulse = awake(now);
        pulse.asked("2");
        let says = pulse.ping(STEP, now + STEP).unwrap();
        assert_eq!(pulse.lost_for(STEP, now + 99 * STEP), None);
        // It answers the request, gets the next one, and only then reads the ping.
        pulse.heard(Some("2"), now + 100 * STEP);
        pulse.asked("3");
        pulse.pong(&says, now + 100 * STEP);
        assert!(pulse.ping(STEP, now + 101 * STEP).is_some());
        assert_eq!(pulse.lost_for(STEP, now + 199 * STEP), None, "it is still deaf at work");
        pulse.heard(Some("3"), now + 200 * STEP);
        assert!(pulse.ping(STEP, now + 201 * STEP).is_some());
        assert!(pulse.lost_for(STEP, now + 202 * STEP).is_some(), "at rest it answers");
    }

    #[test]
    fn who_answered_at_work_is_given_up_at_work_too() {
        let now = Instant::now();
        let mut pulse = awake(now);
        pulse.asked("2");
        let says = pulse.ping(STEP, now).unwrap();
        pulse.pong(&says, now);
        assert!(pulse.ping(STEP, now + STEP).is_some());
        assert!(pulse.lost_for(STEP, now + 2 * STEP).is_some());
    }
}
