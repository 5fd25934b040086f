//! The terminal in other hands: left to an editor or a sign-in, and taken back; calls to a user who looks elsewhere.

use std::time::Instant;

use super::Loop;
use super::keys::Keys;
use super::signals::Signals;
use crate::ui;

impl Loop {
    /// Calls the user, as configured. What else has the terminal is not disturbed.
    pub(super) fn announce(&mut self, line: &str) -> anyhow::Result<()> {
        if self.is_away || self.is_tty_gone {
            return Ok(());
        }
        if self.calls.notify {
            self.tty.send(&format!("\x1b]9;{}\x1b\\", ui::text::one_line(line)))?;
        }
        if self.calls.bell {
            self.tty.send("\x07")?;
        }
        Ok(())
    }

    /// Leaves the screen to something else that needs the terminal.
    pub(super) fn step_aside(&mut self) -> anyhow::Result<()> {
        self.is_away = true;
        self.input = None;
        self.tty.send(&self.pictures.leave())?;
        self.tty.leave()
    }

    /// Takes the screen again.
    pub(super) fn come_back(&mut self) -> anyhow::Result<()> {
        self.is_away = false;
        self.back_since = Some(Instant::now());
        // Signals of the meantime (Ctrl+C in a sign-in, the shell's "go on") were not meant for parlor.
        self.signals = Signals::new()?;
        self.tty.reenter()?;
        self.title.clear();
        self.input = Some(Keys::listen()?);
        self.clock.want_frame_at_once();
        Ok(())
    }
}
