//! The interactive replay: at the speed of the log, faster, or message by message.

use std::time::{Duration, Instant};

use super::Replay;
use crate::acp::log::Log;
use crate::config::keymap::Keymap;
use crate::runtime::clock;
use crate::runtime::keys::replay::{ReplayKey, read};
use crate::runtime::keys::{Keys, TtyEvent};
use crate::runtime::signals::{Signal, Signals};
use crate::runtime::tty::Tty;
use crate::runtime::{BUDGET, in_runtime};
use crate::ui::render_context::Glyphs;
use crate::ui::theme::Theme;
use crate::ui::{self, text};

/// The settings of an interactive replay.
#[derive(Debug, Clone)]
pub struct Screen {
    pub log: Log,
    /// Speed as a multiple of the log's; 0: no waiting.
    pub speed: f64,
    /// Whether to wait for a key before each message.
    pub is_stepping: bool,
    pub theme: Theme,
    /// Whether the terminal supports symbols beyond ASCII.
    pub has_rich_glyphs: bool,
    pub reduced_motion: bool,
}

/// Runs until the user quits. Returns the lines with requests that could not be repeated. Fails if the terminal cannot
/// be used.
pub fn run(screen: Screen) -> anyhow::Result<Vec<usize>> {
    let mut left_out = Vec::new();
    in_runtime(async {
        left_out = Box::pin(Player::new(screen)?.run()).await;
        Ok(())
    })?;
    Ok(left_out)
}

struct Player {
    replay: Replay,
    theme: Theme,
    speed: f64,
    is_playing: bool,
    /// The time of the log at a wall-clock time, when playback last started.
    anchor: (Duration, Instant),
    /// The log time of the last frame.
    at: Duration,
    tty: Tty,
    keys: Keys,
    signals: Signals,
}

impl Player {
    fn new(screen: Screen) -> anyhow::Result<Self> {
        text::link::show(false);
        // The keys of a session do nothing here, so no hint names one.
        let mut replay = Replay::new(screen.log, &Keymap::default());
        replay.view.has_motion = !screen.reduced_motion;
        if !screen.has_rich_glyphs {
            replay.view.glyphs = Glyphs::plain();
        }
        let signals = Signals::new()?;
        let mut tty = Tty::enter(false, false, "")?;
        tty.set_title("parlor");
        let at = replay.upcoming().0.map(|entry| entry.at).unwrap_or_default();
        Ok(Self {
            replay,
            theme: screen.theme,
            speed: screen.speed,
            is_playing: !screen.is_stepping,
            anchor: (at, Instant::now()),
            at,
            tty,
            keys: Keys::listen()?,
            signals,
        })
    }

    async fn run(mut self) -> Vec<usize> {
        loop {
            self.advance();
            self.draw();
            if self.tty.is_gone() {
                break;
            }
            let deadline = self.deadline();
            tokio::select! {
                biased;
                reported = self.keys.next() => match reported {
                    Some(Ok(TtyEvent::Input(event))) => {
                        if read(&event).is_some_and(|key| self.on_key(key)) {
                            break;
                        }
                    }
                    Some(Ok(TtyEvent::Synchronizes(does))) => self.tty.synchronize(does),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => break,
                },
                signal = self.signals.next() => match signal {
                    Signal::Interrupt | Signal::Terminate => {
                        self.signals.answer(true);
                        break;
                    }
                    Signal::Continue => self.tty.reenter(),
                    Signal::Resize => {}
                },
                () = clock::sleep_until(deadline) => {}
            }
        }
        self.tty.leave();
        self.replay.left_out
    }

    fn on_key(&mut self, key: ReplayKey) -> bool {
        match key {
            ReplayKey::Quit => return true,
            ReplayKey::View(command) => self.replay.view.apply(command),
            ReplayKey::Toggle => {
                self.is_playing = !self.is_playing;
                self.anchor = (self.at, Instant::now());
            }
            ReplayKey::Next => {
                if let Some(entry) = self.replay.upcoming().0 {
                    self.at = entry.at;
                    self.anchor = (self.at, Instant::now());
                    self.replay.step();
                }
            }
        }
        false
    }

    /// Plays the messages that are due.
    fn advance(&mut self) {
        if !self.is_playing {
            return;
        }
        let begun = Instant::now();
        if self.speed > 0.0 && self.replay.upcoming().0.is_some() {
            let passed = begun.saturating_duration_since(self.anchor.1).as_secs_f64() * self.speed;
            self.at = self.anchor.0 + Duration::try_from_secs_f64(passed).unwrap_or_default();
        }
        while let Some(due) = self.replay.upcoming().0.map(|entry| entry.at) {
            if self.speed > 0.0 && due > self.at || begun.elapsed() >= BUDGET {
                break;
            }
            self.at = self.at.max(due);
            self.replay.step();
        }
        self.replay.pass_time(self.at);
    }

    /// The next time to wake without a key.
    fn deadline(&self) -> Option<Instant> {
        let due = self.replay.upcoming().0?.at;
        if !self.is_playing {
            return None;
        }
        let now = Instant::now();
        if self.speed <= 0.0 {
            return Some(now);
        }
        let left = due.saturating_sub(self.anchor.0).as_secs_f64() / self.speed;
        let next = Duration::try_from_secs_f64(left).ok().and_then(|left| self.anchor.1.checked_add(left));
        let frame = ui::next_frame_in(&self.replay.app, &self.replay.view).map(|step| now + step);
        [next, frame].into_iter().flatten().min()
    }

    fn draw(&mut self) {
        let (upcoming, played) = self.replay.upcoming();
        let keys = "n next · q quit";
        let position = format!("message {played} of {}", self.replay.log.entries.len());
        let status = match upcoming {
            None => format!("Replay finished · {position} · q quit"),
            Some(_) if self.is_playing => format!("Replay · {position} · Space pause · {keys}"),
            Some(_) => format!("Replay paused · {position} · Space play · {keys}"),
        };
        let Some(canvas) = self.tty.begin() else { return };
        // The status line shows the replay, because there is no prompt to type.
        let own = self.replay.app.state.flash.replace(status);
        self.replay.draw(self.at, &self.theme, canvas);
        self.replay.app.state.flash = own;
        self.tty.finish(None);
    }
}
