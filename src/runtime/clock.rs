//! Timers, and the times of frames.
//!
//! A frame is drawn when something changed: immediately if the last one is old enough, otherwise when it is. Agents are
//! polled again when the next frame may be drawn (`acp::gate`). Without timers, animations and changes there is no
//! deadline.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::core::TimerId;

/// Minimum time between two polls of the agents, each of which ends in a frame. Timers fire a
/// millisecond late, so this gives nearly 60 frames per second.
const FRAME: Duration = Duration::from_millis(16);
/// Minimum time between two frames that respond to keys, which arrive in bursts when text is pasted or a wheel is
/// turned. Such a frame does not wait for the pace of streamed text.
const INPUT_FRAME: Duration = Duration::from_millis(4);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameReason {
    Change,
    Answer,
}

/// Timers, and the time of the next frame.
#[derive(Debug)]
pub struct Clock {
    timers: BTreeMap<TimerId, Instant>,
    last_frame: Instant,
    /// The last frame that responded to a key.
    last_answer: Option<Instant>,
    wanted: Option<FrameReason>,
    /// Whether messages arrived since the last frame, and when the last ones did.
    has_messages: bool,
    last_arrival: Instant,
    /// Maximum time between two frames while something is animated.
    step: Option<Duration>,
}

impl Clock {
    /// A clock without timers.
    pub fn new(now: Instant) -> Self {
        Self {
            timers: BTreeMap::new(),
            last_frame: now,
            last_answer: None,
            wanted: None,
            has_messages: false,
            last_arrival: now,
            step: None,
        }
    }

    pub fn set(&mut self, id: TimerId, at: Instant) {
        self.timers.insert(id, at);
    }

    pub fn stop(&mut self, id: TimerId) {
        self.timers.remove(&id);
    }

    /// Requests a frame for a visible change.
    pub fn want_frame(&mut self) {
        self.wanted.get_or_insert(FrameReason::Change);
    }

    /// Notes the arrival of messages of agents or services.
    pub fn note_arrival(&mut self, now: Instant) {
        self.last_arrival = now;
        self.has_messages = true;
    }

    /// When to poll the agents again: earlier updates would have to wait for their frame anyway.
    pub fn next_poll(&self) -> Instant {
        self.last_frame.max(self.last_arrival) + FRAME
    }

    /// Requests a frame for an action of the user.
    pub fn want_frame_at_once(&mut self) {
        self.wanted = Some(FrameReason::Answer);
    }

    pub fn is_frame_due(&self, now: Instant) -> bool {
        self.frame_at().is_some_and(|at| at <= now)
    }

    /// The time of the next frame; a time in the past means immediately.
    fn frame_at(&self) -> Option<Instant> {
        let wanted = self.wanted.map(|reason| match reason {
            FrameReason::Change => self.last_frame + FRAME,
            FrameReason::Answer => self.last_answer.map_or(self.last_frame, |at| at + INPUT_FRAME),
        });
        let step = self.step.map(|step| self.last_frame + step);
        [wanted, step].into_iter().flatten().min()
    }

    /// Resets the request after a frame was drawn.
    pub fn frame_drawn(&mut self, now: Instant) {
        let is_answer = self.wanted.take() == Some(FrameReason::Answer);
        if is_answer {
            self.last_answer = Some(now);
        }
        // Messages must not wait longer because of a frame that did not show any, such as one with new highlighting.
        if self.has_messages || !is_answer {
            self.last_frame = now;
        }
        self.has_messages = false;
    }

    /// Draws at least every `step` during an animation; `None`: no animation.
    pub fn animate(&mut self, step: Option<Duration>) {
        self.step = step;
    }

    /// Removes and returns the expired timers.
    pub fn take_due(&mut self, now: Instant) -> Vec<TimerId> {
        let due: Vec<TimerId> = self.timers.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
        for id in &due {
            self.timers.remove(id);
        }
        due
    }

    /// The next wake-up time; `None`: only on an event. Frames count if they can be drawn.
    pub fn next_deadline(&self, other: Option<Instant>, can_draw: bool) -> Option<Instant> {
        let frame = self.frame_at().filter(|_| can_draw);
        let timer = self.timers.values().min().copied();
        [frame, timer, other].into_iter().flatten().min()
    }
}

/// Sleeps until a deadline; without one forever.
pub async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn an_idle_clock_has_no_deadline() {
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.animate(None);
        assert_eq!(clock.next_deadline(None, true), None);
        assert!(!clock.is_frame_due(now + Duration::from_secs(9)));
    }

    #[test]
    fn a_change_is_drawn_immediately_if_the_last_frame_is_old() {
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.want_frame();
        assert!(clock.is_frame_due(now + FRAME));
    }

    #[test]
    fn updates_are_paced_but_keys_are_not() {
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.want_frame();
        assert!(!clock.is_frame_due(now + 5 * MS));
        assert_eq!(clock.next_deadline(None, true), Some(now + FRAME));
        clock.want_frame_at_once();
        assert!(clock.is_frame_due(now), "even if a frame was just drawn");
        // A following change must not delay the key's frame again.
        clock.want_frame();
        assert!(clock.is_frame_due(now));
    }

    #[test]
    fn keys_in_a_burst_share_frames() {
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.want_frame_at_once();
        clock.frame_drawn(now);
        clock.want_frame_at_once();
        assert!(!clock.is_frame_due(now + MS));
        assert_eq!(clock.next_deadline(None, true), Some(now + INPUT_FRAME));
    }

    #[test]
    fn a_frame_without_messages_does_not_delay_the_next_messages() {
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.note_arrival(now);
        clock.want_frame();
        clock.frame_drawn(now);
        clock.want_frame_at_once();
        clock.frame_drawn(now + 5 * MS);
        assert_eq!(clock.next_poll(), now + FRAME);
    }

    /// Number of frames and wake-ups in a second with the given numbers of updates and keys, and the longest time from
    /// an update to its frame. Updates wait at the gate; a key opens it.
    fn second_of(updates: u32, keys: u32) -> (u32, u32, Duration) {
        let start = Instant::now();
        let begin = start + Duration::from_secs(1);
        let mut clock = Clock::new(start);
        let every = |count: u32, n: u32| begin + Duration::from_secs(1) * n / count.max(1);
        let (mut sent, mut typed, mut waits_since) = (0, 0, None);
        let (mut frames, mut wakes, mut longest) = (0, 0, Duration::ZERO);
        loop {
            let update = (sent < updates).then(|| every(updates, sent).max(clock.next_poll()));
            let key = (typed < keys).then(|| every(keys, typed) + MS / 3);
            let due = clock.next_deadline(None, true);
            let Some(now) = [update, key, due].into_iter().flatten().min() else { break };
            wakes += 1;
            if key == Some(now) {
                typed += 1;
                clock.want_frame_at_once();
            }
            let before = sent;
            while sent < updates && every(updates, sent) <= now && (key == Some(now) || update == Some(now)) {
                waits_since.get_or_insert(every(updates, sent));
                sent += 1;
            }
            if sent > before {
                clock.want_frame();
                clock.note_arrival(now);
            }
            if clock.is_frame_due(now) {
                clock.frame_drawn(now);
                frames += 1;
                longest = longest.max(waits_since.take().map_or(Duration::ZERO, |since| now - since));
            }
        }
        (frames, wakes, longest)
    }

    #[test]
    fn frames_and_wake_ups_per_second_are_limited() {
        assert_eq!(second_of(10, 0), (10, 10, Duration::ZERO), "each immediately");
        assert_eq!(second_of(50, 0), (50, 50, Duration::ZERO), "each immediately");
        for (updates, keys) in [(100, 0), (100, 20), (1000, 0), (1000, 20), (5000, 0)] {
            let (frames, wakes, longest) = second_of(updates, keys);
            assert!((50..=64 + keys * 3 / 2).contains(&frames), "{frames} of {updates} and {keys}");
            assert!(wakes == frames && longest <= FRAME, "{wakes}, {longest:?}");
        }
        let (frames, ..) = second_of(0, 1000);
        assert!((240..=260).contains(&frames), "{frames}");
    }

    #[test]
    fn an_animation_is_drawn_without_other_changes() {
        const STEP: Duration = Duration::from_millis(100);
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.animate(Some(STEP));
        assert_eq!(clock.next_deadline(None, true), Some(now + STEP));
        assert!(clock.is_frame_due(now + STEP));
        clock.frame_drawn(now + STEP / 2);
        assert!(!clock.is_frame_due(now + STEP), "another frame has drawn the animation");
        clock.animate(None);
        assert_eq!(clock.next_deadline(None, true), None);
    }

    #[test]
    fn a_frame_that_cannot_be_drawn_sets_no_deadline() {
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.want_frame_at_once();
        clock.animate(Some(Duration::from_millis(100)));
        assert_eq!(clock.next_deadline(None, false), None);
        assert!(clock.next_deadline(None, true).is_some());
    }

    #[test]
    fn timers_expire_once() {
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.set(TimerId::Flash, now + Duration::from_secs(1));
        assert_eq!(clock.take_due(now), Vec::new());
        assert_eq!(clock.take_due(now + Duration::from_secs(1)), vec![TimerId::Flash]);
        assert_eq!(clock.next_deadline(None, true), None);
    }
}
