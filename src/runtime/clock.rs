//! When to wake and when to draw.
//!
//! A frame is drawn when something changed: at once when the last one is old enough, else when it is. With
//! no timer set, nothing moving and nothing changed there is no deadline at all.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::app::TimerId;

/// Least time between two frames for changes that come from agents. Timers ring a millisecond late.
const STREAM_FRAME: Duration = Duration::from_millis(15);
/// The same while text comes faster than anybody reads: a third of the frames, a third of the work.
const FLOOD_FRAME: Duration = Duration::from_millis(45);
/// What comes more often than this is a flood: 500 a second.
const FLOOD_GAP: Duration = Duration::from_millis(2);
/// What comes more seldom than a flood and at least this often (100 a second, and some grace) has a beat that frames
/// can keep. In between, waking for each would cost more than it gains.
const BEAT: std::ops::RangeInclusive<Duration> = Duration::from_millis(5)..=Duration::from_micros(10_500);
/// With a beat, a frame comes with the last one to arrive before this much has passed since the frame before...
const LATEST_BEAT: Duration = Duration::from_millis(21);
/// ...but after this.
const FIRST_BEAT: Duration = Duration::from_millis(10);
/// How much later than expected it may come.
const LATE: Duration = Duration::from_millis(1);
/// Arrivals are counted over this long at least.
const COUNTED: Duration = Duration::from_millis(48);
/// Least time between two frames that answer keys, which come in bursts when text is pasted or a wheel turns. Such a
/// frame never waits for one of the stream.
const INPUT_FRAME: Duration = Duration::from_millis(4);

/// For what a frame is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameReason {
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
    wish: Option<FrameReason>,
    /// When something came last, and the first that was not drawn yet.
    last_arrival: Instant,
    waits_since: Option<Instant>,
    /// What came since then, and how long it took from one to the next before, on average.
    counted_since: Instant,
    arrivals: u32,
    gap: Duration,
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
            last_arrival: now,
            waits_since: None,
            counted_since: now,
            arrivals: 0,
            gap: Duration::MAX,
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
        self.wish.get_or_insert(FrameReason::Change);
    }

    /// So many messages came that changed something that is to be seen.
    pub fn note_arrival(&mut self, messages: u32, now: Instant) {
        self.last_arrival = now;
        self.waits_since.get_or_insert(now);
        self.arrivals = self.arrivals.saturating_add(messages.max(1));
        let took = now.saturating_duration_since(self.counted_since);
        if took >= COUNTED {
            self.gap = took / self.arrivals;
            (self.counted_since, self.arrivals) = (now, 0);
        }
    }

    /// The user did something.
    pub fn want_frame_at_once(&mut self) {
        self.wish = Some(FrameReason::Answer);
    }

    /// Whether a frame is to be drawn, now or when it is time.
    pub fn is_frame_wanted(&self) -> bool {
        self.wish.is_some()
    }

    /// Whether a frame waits for its time, and not for what comes next.
    pub fn is_paced(&self) -> bool {
        self.wish.is_some() && self.beat().is_none()
    }

    /// With a beat, when what is the last to wait for comes or came: a frame that shows it as it arrives is better than
    /// one just before it, and fewer do.
    fn beat(&self) -> Option<Instant> {
        if self.wish != Some(FrameReason::Change) || !BEAT.contains(&self.gap) {
            return None;
        }
        let latest = (self.last_frame + LATEST_BEAT).min(self.waits_since? + STREAM_FRAME);
        let left = latest.saturating_duration_since(self.last_arrival);
        let beats = u32::try_from(left.as_micros() / self.gap.as_micros().max(1)).unwrap_or(0);
        Some(self.last_arrival + self.gap * beats).filter(|beat| *beat >= self.last_frame + FIRST_BEAT)
    }

    /// Whether it is time to draw.
    pub fn is_frame_due(&self, now: Instant) -> bool {
        self.frame_at().is_some_and(|at| at <= now)
    }

    /// When the frame that is wanted may be drawn; a time that is over: at once.
    fn frame_at(&self) -> Option<Instant> {
        match self.wish? {
            FrameReason::Change if self.gap < FLOOD_GAP => Some(self.last_frame + FLOOD_FRAME),
            FrameReason::Change => Some(match self.beat() {
                Some(beat) if beat == self.last_arrival => beat,
                Some(beat) => beat + LATE,
                None => self.last_frame + STREAM_FRAME,
            }),
            FrameReason::Answer => Some(self.last_answer.map_or(self.last_frame, |at| at + INPUT_FRAME)),
        }
    }

    /// A frame was drawn.
    pub fn frame_drawn(&mut self, now: Instant) {
        self.last_frame = now;
        if self.wish == Some(FrameReason::Answer) {
            self.last_answer = Some(now);
        }
        (self.wish, self.waits_since) = (None, None);
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
                    clock.note_arrival(1, at);
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
        assert!((49..=52).contains(&frames), "{frames}: every second one is drawn as it comes");
        assert!(longest <= STREAM_FRAME, "{longest:?}, once, before the pace is known");
        let (frames, longest) = frames_of_a_second(80, 0);
        assert!((38..=67).contains(&frames) && longest <= STREAM_FRAME, "{frames}, {longest:?}");
        let (frames, longest) = frames_of_a_second(300, 0);
        assert!((60..=67).contains(&frames) && longest <= STREAM_FRAME, "{frames}, {longest:?}");
        let (frames, longest) = frames_of_a_second(5000, 0);
        assert!((22..=26).contains(&frames) && longest <= FLOOD_FRAME, "{frames}, {longest:?}");
        let (frames, longest) = frames_of_a_second(5000, 20);
        assert!((21..=45).contains(&frames) && longest <= FLOOD_FRAME, "{frames}, {longest:?}");
        let (frames, _) = frames_of_a_second(0, 1000);
        assert!((240..=260).contains(&frames), "{frames}");
    }

    #[test]
    fn who_was_waited_for_in_vain_is_not_waited_for_longer() {
        let start = Instant::now();
        let mut clock = Clock::new(start);
        let mut at = start;
        let mut come = |clock: &mut Clock| {
            at += Duration::from_millis(10);
            clock.want_frame();
            clock.note_arrival(1, at);
            let is_drawn = clock.is_frame_due(at);
            if is_drawn {
                clock.frame_drawn(at);
            }
            (at, is_drawn)
        };
        while clock.gap == Duration::MAX || !come(&mut clock).1 {
            come(&mut clock);
        }
        let (last, is_drawn) = come(&mut clock);
        assert!(!is_drawn && !clock.is_paced() && !clock.is_frame_due(last + FIRST_BEAT / 2));
        let due = clock.next_deadline(None, true).unwrap();
        assert_eq!(due, last + Duration::from_millis(10) + LATE);
        assert!(clock.is_frame_due(due));
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
    fn a_flood_is_drawn_less_often_until_it_ends() {
        let mut now = Instant::now();
        let mut clock = Clock::new(now);
        let mut frames_of = |messages: u32, clock: &mut Clock| {
            let mut times = Vec::new();
            for _ in 0..4 {
                clock.want_frame();
                clock.note_arrival(messages, now);
                let at = clock.next_deadline(None, true).unwrap();
                times.push(at - now);
                now = at;
                clock.frame_drawn(now);
            }
            times
        };
        assert_eq!(frames_of(2, &mut clock), [STREAM_FRAME; 4]);
        assert_eq!(frames_of(40, &mut clock).last(), Some(&FLOOD_FRAME));
        assert_eq!(frames_of(2, &mut clock).last(), Some(&STREAM_FRAME));
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
