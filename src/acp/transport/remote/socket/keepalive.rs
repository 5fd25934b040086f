//! Detects a lost WebSocket connection by unanswered pings.
//!
//! Some agents read nothing while they work and answer no pings during that time, so silence during an open request
//! counts only for agents that have answered a ping at work before.
//! Invariant: a peer that has never answered a ping is never considered lost.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub struct Keepalive {
    /// Time of the last message.
    heard: Instant,
    /// Unanswered requests of parlor, by id as JSON.
    open: BTreeSet<String>,
    /// Number of times that the agent began to work, which is while requests are open.
    work: u64,
    number: u64,
    /// Time of the first ping since the last message.
    unanswered: Option<Instant>,
    /// Since when a message is being written, or heard meanwhile. A peer that does not read gets no pings behind it.
    writing: Option<Instant>,
    /// The last ping: its number, and the work during which it was sent.
    last: Option<(u64, Option<u64>)>,
    answers: bool,
    /// Whether the peer has answered a ping during the work in which it was sent.
    answers_at_work: bool,
}

impl Keepalive {
    pub fn new(now: Instant) -> Self {
        Self {
            heard: now,
            open: BTreeSet::new(),
            work: 0,
            number: 0,
            unanswered: None,
            writing: None,
            last: None,
            answers: false,
            answers_at_work: false,
        }
    }

    pub fn asked(&mut self, id: &str) {
        self.work += u64::from(self.open.is_empty());
        self.open.insert(id.to_owned());
    }

    /// Records a message; `answered`: the request of parlor that it responds to.
    pub fn heard(&mut self, answered: Option<&str>, now: Instant) {
        self.heard = now;
        self.unanswered = None;
        self.writing = self.writing.map(|_| now);
        if let Some(id) = answered {
            self.open.remove(id);
        }
    }

    pub fn writing(&mut self, since: Option<Instant>) {
        self.writing = since;
    }

    pub fn is_at_work(&self) -> bool {
        !self.open.is_empty()
    }

    /// The payload of the next ping, if one is due: after silence, or if it is unknown whether the peer answers pings.
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

    pub fn pong(&mut self, says: &[u8], now: Instant) {
        self.heard(None, now);
        let is_of = |(number, _): &(u64, Option<u64>)| number.to_be_bytes() == says;
        if let Some((_, work)) = self.last.filter(is_of) {
            self.answers = true;
            // A pong after the end of the work proves nothing: the ping may have been read only then.
            self.answers_at_work |= self.is_at_work() && work == Some(self.work);
        }
    }

    /// How long the peer has been silent, if it is considered lost.
    pub fn lost_for(&self, timeouts: Duration, now: Instant) -> Option<Duration> {
        let is_awaited = self.answers && (self.answers_at_work || !self.is_at_work());
        let since = [self.unanswered, self.writing].into_iter().flatten().min();
        let waits = now.duration_since(since.filter(|_| is_awaited)?);
        (waits >= timeouts).then(|| now.duration_since(self.heard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_secs(30);

    /// A peer that answered the first ping while idle.
    fn awake(now: Instant) -> Keepalive {
        let mut keepalive = Keepalive::new(now);
        let says = keepalive.ping(STEP, now).unwrap();
        keepalive.pong(&says, now);
        keepalive
    }

    #[test]
    fn a_silent_peer_that_answered_pings_is_lost() {
        let now = Instant::now();
        let mut keepalive = awake(now);
        assert_eq!(keepalive.ping(STEP, now + STEP / 2), None, "a message was received just now");
        assert!(keepalive.ping(STEP, now + STEP).is_some());
        assert_eq!(keepalive.lost_for(STEP, now + STEP), None);
        assert_eq!(keepalive.lost_for(STEP, now + 2 * STEP), Some(2 * STEP));
        keepalive.heard(None, now + 2 * STEP);
        assert_eq!(keepalive.lost_for(STEP, now + 9 * STEP), None, "any message resets the timeout");
    }

    #[test]
    fn a_peer_that_never_answered_pings_is_not_lost() {
        let now = Instant::now();
        let mut keepalive = Keepalive::new(now);
        for step in 1..9 {
            assert!(keepalive.ping(STEP, now + step * STEP).is_some());
        }
        assert_eq!(keepalive.lost_for(STEP, now + 99 * STEP), None);
        keepalive.pong(b"of its own", now);
        assert!(keepalive.ping(STEP, now + STEP).is_some());
        assert_eq!(keepalive.lost_for(STEP, now + 99 * STEP), None, "an unsolicited pong does not count");
    }

    #[test]
    fn a_peer_that_reads_nothing_during_work_is_not_lost_until_the_work_ends() {
        let now = Instant::now();
        let mut keepalive = awake(now);
        keepalive.asked("2");
        let says = keepalive.ping(STEP, now + STEP).unwrap();
        assert_eq!(keepalive.lost_for(STEP, now + 99 * STEP), None);
        // The agent responds, gets the next request, and only then reads the ping.
        keepalive.heard(Some("2"), now + 100 * STEP);
        keepalive.asked("3");
        keepalive.pong(&says, now + 100 * STEP);
        assert!(keepalive.ping(STEP, now + 101 * STEP).is_some());
        assert_eq!(keepalive.lost_for(STEP, now + 199 * STEP), None, "it still does not read during work");
        keepalive.heard(Some("3"), now + 200 * STEP);
        assert!(keepalive.ping(STEP, now + 201 * STEP).is_some());
        assert!(keepalive.lost_for(STEP, now + 202 * STEP).is_some(), "it answers while idle");
    }

    #[test]
    fn a_peer_that_answered_during_work_can_be_lost_during_work() {
        let now = Instant::now();
        let mut keepalive = awake(now);
        keepalive.asked("2");
        let says = keepalive.ping(STEP, now).unwrap();
        keepalive.pong(&says, now);
        assert!(keepalive.ping(STEP, now + STEP).is_some());
        assert!(keepalive.lost_for(STEP, now + 2 * STEP).is_some());
    }
}
