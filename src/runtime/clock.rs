//! When to wake and when to draw.
//!
//! A frame is drawn when something changed: at once when the last one is old enough, else when it is. With
//! no timer set, nothing moving and nothing changed there is no deadline at all.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::app::TimerId;

/// Least time between two frames for changes that come from agents. Timers ring a millisecond late.
const STREAM_FRAME: Duration = Duration::from_millis(15);
/// The same while text comes faster than anybody reads: half the frames, half the work.
const FLOOD_FRAME: Duration = Duration::from_millis(32);
/// More changes than this in 32 ms are a flood: 500 a second.
const FLOOD_PER_32_MS: u32 = 16;
/// Least time between two frames that answer keys, which come in bursts when text is pasted or a wheel turns. Such a
/// frame never waits for one of the stream.
const INPUT_FRAME: Duration = Duration::from_millis(4);

/// For what a frame is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// Something changed.
    Change,
    /// The user did something.
    Answer,
}

/// Timers, and the pace of frames.
#[derive(Debug)]
pub struct Clock {
    timers: BTreeMap<TimerId, Instant>,
    last_frame: Instant,
    /// The last frame that answered a key.
    last_answer: Option<Instant>,
    wish: Option<Wish>,
    /// Changes since the last frame.
    changes: u32,
    is_flooded: bool,
    next_step: Option<Instant>,
}

impl Clock {
    /// A clock without timers.
    pub fn new(now: Instant) -> Self {
        Self {
            timers: BTreeMap::new(),
            last_frame: now,
            last_answer: None,
            wish: None,
            changes: 0,
            is_flooded: false,
            next_step: None,
        }
    }

    /// Sets a timer, replacing the one of the same id.
    pub fn set(&mut self, id: TimerId, at: Instant) {
        self.timers.insert(id, at);
    }

    /// Takes a timer back.
    pub fn stop(&mut self, id: TimerId) {
        self.timers.remove(&id);
    }

    /// Something changed that is to be seen.
    pub fn want_frame(&mut self) {
        self.changes = self.changes.saturating_add(1);
        self.wish.get_or_insert(Wish::Change);
    }

    /// The user did something.
    pub fn want_frame_at_once(&mut self) {
        self.wish = Some(Wish::Answer);
    }

    /// Whether a frame is to be drawn, now or when it is time.
    pub fn is_frame_wanted(&self) -> bool {
        self.wish.is_some()
    }

    /// Whether it is time to draw.
    pub fn is_frame_due(&self, now: Instant) -> bool {
        self.frame_at().is_some_and(|at| at <= now)
    }

    /// When the frame that is wanted may be drawn; a time that is over: at once.
    fn frame_at(&self) -> Option<Instant> {
        match self.wish? {
            Wish::Change => Some(self.last_frame + if self.is_flooded { FLOOD_FRAME } else { STREAM_FRAME }),
            Wish::Answer => Some(self.last_answer.map_or(self.last_frame, |at| at + INPUT_FRAME)),
        }
    }

    /// A frame was drawn.
    pub fn frame_drawn(&mut self, now: Instant) {
        let took_ms = u32::try_from(now.duration_since(self.last_frame).as_millis()).unwrap_or(u32::MAX);
        // A frame for a key comes early; what it says of the stream is too little to slow that down.
        if took_ms >= 10 {
            self.is_flooded = self.changes.saturating_mul(32) > FLOOD_PER_32_MS.saturating_mul(took_ms);
        }
        self.changes = 0;
        self.last_frame = now;
        if self.wish == Some(Wish::Answer) {
            self.last_answer = Some(now);
        }
        self.wish = None;
    }

    /// Draws every `step` while something moves by itself, and rests when nothing does.
    pub fn animate(&mut self, now: Instant, step: Option<Duration>) {
        let Some(step) = step else {
            self.next_step = None;
            return;
        };
        match self.next_step {
            Some(at) if now < at => {}
            Some(_) => {
                self.next_step = Some(now + step);
                self.want_frame();
            }
            None => self.next_step = Some(now + step),
        }
    }

    /// The timers that ran out; they are gone then.
    pub fn take_due(&mut self, now: Instant) -> Vec<TimerId> {
        let due: Vec<TimerId> = self.timers.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
        for id in &due {
            self.timers.remove(id);
        }
        due
    }

    /// When to wake at the latest; `None`: not before something happens. Frames count while they can be drawn.
    pub fn next_deadline(&self, other: Option<Instant>, can_draw: bool) -> Option<Instant> {
        let frame = self.frame_at();
        let timer = self.timers.values().min().copied();
        let [frame, step] = [frame, self.next_step].map(|at| at.filter(|_| can_draw));
        [frame, timer, step, other].into_iter().flatten().min()
    }
}

/// Sleeps until a deadline, or for ever.
pub async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_has_no_deadline() {
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.animate(now, None);
        assert_eq!(clock.next_deadline(None, true), None);
        assert!(!clock.is_frame_due(now + Duration::from_secs(9)));
    }

    #[test]
    fn a_change_is_drawn_at_once_when_the_last_frame_is_old() {
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.want_frame();
        assert!(clock.is_frame_due(now + STREAM_FRAME));
    }

    #[test]
    fn a_burst_waits_for_the_pace_but_a_key_does_not() {
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.want_frame();
        assert!(!clock.is_frame_due(now + Duration::from_millis(5)));
        assert_eq!(clock.next_deadline(None, true), Some(now + STREAM_FRAME));
        clock.want_frame_at_once();
        assert!(clock.is_frame_due(now), "not even for a frame that was just drawn, as the first one was");
        // A change that follows must not slow the key's frame down again.
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
        assert!(!clock.is_frame_due(now + Duration::from_millis(1)));
        assert_eq!(clock.next_deadline(None, true), Some(now + INPUT_FRAME));
    }

    /// Frames of one second in which something changes so many times and a key comes so many times, and the longest
    /// that a change waited.
    fn frames_of_a_second(changes: u32, keys: u32) -> (u32, Duration) {
        let start = Instant::now();
        let (begin, mut clock) = (start + Duration::from_secs(1), Clock::new(start));
        let every = |count: u32| (0..count).map(move |n| begin + Duration::from_secs(1) * n / count);
        let mut events: Vec<_> = every(changes).map(|at| (at, false)).collect();
        events.extend(every(keys).map(|at| (at + Duration::from_micros(300), true)));
        events.sort();
        let (mut frames, mut longest, mut waits_since) = (0, Duration::ZERO, None);
        for (at, is_key) in events {
            let due = clock.next_deadline(None, true).filter(|due| *due <= at);
            for now in due.into_iter().chain([at]) {
                if now == at && is_key {
                    clock.want_frame_at_once();
                } else if now == at {
                    clock.want_frame();
                    waits_since.get_or_insert(at);
                }
                if clock.is_frame_due(now) {
                    clock.frame_drawn(now);
                    frames += 1;
                    longest = longest.max(waits_since.take().map_or(Duration::ZERO, |since| now - since));
                }
            }
        }
        (frames, longest)
    }

    #[test]
    fn frames_of_a_second_are_counted() {
        assert_eq!(frames_of_a_second(10, 0), (10, Duration::ZERO), "each at once");
        assert_eq!(frames_of_a_second(50, 0), (50, Duration::ZERO), "each at once");
        let (frames, longest) = frames_of_a_second(100, 0);
        assert!((50..=67).contains(&frames) && longest <= STREAM_FRAME, "{frames}, {longest:?}");
        let (frames, longest) = frames_of_a_second(5000, 0);
        assert!((31..=33).contains(&frames) && longest <= FLOOD_FRAME, "{frames}, {longest:?}");
        let (frames, longest) = frames_of_a_second(5000, 20);
        assert!((35..=60).contains(&frames) && longest <= FLOOD_FRAME, "{frames}, {longest:?}");
        let (frames, _) = frames_of_a_second(0, 1000);
        assert!((240..=260).contains(&frames), "{frames}");
    }

    #[test]
    fn frames_come_by_themselves_only_while_something_moves() {
        const STEP: Duration = Duration::from_millis(100);
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.animate(now, Some(STEP));
        assert_eq!(clock.next_deadline(None, true), Some(now + STEP));
        clock.animate(now + STEP, Some(STEP));
        assert!(clock.is_frame_due(now + STEP));
        clock.animate(now + STEP, None);
        clock.frame_drawn(now + STEP);
        assert_eq!(clock.next_deadline(None, true), None);
    }

    #[test]
    fn a_flood_is_drawn_half_as_often_until_it_ends() {
        let mut now = Instant::now();
        let mut clock = Clock::new(now);
        let mut frame_after = |changes: u32, clock: &mut Clock| {
            (0..changes).for_each(|_| clock.want_frame());
            let at = clock.next_deadline(None, true).unwrap();
            let took = at - now;
            now = at;
            clock.frame_drawn(now);
            took
        };
        assert_eq!(frame_after(2, &mut clock), STREAM_FRAME);
        assert_eq!(frame_after(15, &mut clock), STREAM_FRAME);
        assert_eq!(frame_after(33, &mut clock), FLOOD_FRAME);
        assert_eq!(frame_after(3, &mut clock), FLOOD_FRAME);
        assert_eq!(frame_after(2, &mut clock), STREAM_FRAME);
    }

    #[test]
    fn a_frame_that_cannot_be_drawn_wakes_nobody() {
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.want_frame_at_once();
        clock.animate(now, Some(Duration::from_millis(100)));
        assert_eq!(clock.next_deadline(None, false), None);
        assert!(clock.next_deadline(None, true).is_some());
    }

    #[test]
    fn timers_run_out_once() {
        let now = Instant::now();
        let mut clock = Clock::new(now);
        clock.set(TimerId::Flash, now + Duration::from_secs(1));
        assert_eq!(clock.take_due(now), Vec::new());
        assert_eq!(clock.take_due(now + Duration::from_secs(1)), vec![TimerId::Flash]);
        assert_eq!(clock.next_deadline(None, true), None);
    }
}
