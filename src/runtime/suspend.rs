//! Releases the terminal to the shell, an editor or a sign-in command and takes it back; shows the status outside of the screen, for a
//! user who is in another window.

use std::time::Instant;

use super::keys::Keys;
use super::{Loop, signals};
use crate::core::Effect;
use crate::core::state::tab;
use crate::host::editor::DRAFT_NAME;
use crate::model::{Location, SessionKey};
use crate::ui;
use crate::ui::Event;

impl Loop {
    /// Notifies the user, as configured, unless another program has the terminal.
    pub(super) fn announce(&mut self, session: SessionKey, text: &str, now: Instant) {
        if self.is_away {
            return;
        }
        let title = ui::session_name(&self.app.state, session);
        let announcement = self.attention.announce(&title, text, self.app.state.has_focus, now);
        if !announcement.sequences.is_empty() {
            self.tty.send(&announcement.sequences);
        }
        if let Some((title, text)) = announcement.notification {
            self.executor.notify(title, text);
        }
    }

    /// Shows the status in the window title and as the terminal's progress.
    pub(super) fn show_status(&mut self, now: Instant) {
        let progress = self.attention.progress(tab::overall(&self.app.state), now);
        if !progress.is_empty() {
            let end = self.attention.progress_end();
            let end = if progress == end { String::new() } else { end };
            self.tty.show_progress(&progress, end);
        }
        if !self.attention.sets_title() {
            return;
        }
        let changes = self.app.state.chrome_changes;
        let reported = self.title.as_ref();
        if reported.is_some_and(|(_, of)| *of == changes) {
            return;
        }
        let title = ui::terminal_title(&self.app.state, &self.view.glyphs);
        if reported.is_none_or(|(reported, _)| *reported != title) {
            self.tty.set_title(&title);
        }
        self.title = Some((title, changes));
    }

    /// Releases the screen to another program.
    pub(super) fn step_aside(&mut self) {
        self.is_away = true;
        self.input = None;
        self.tty.send(&self.pictures.leave());
        // The progress is cleared with the screen.
        self.attention.forget_progress();
        self.tty.leave();
    }

    /// Edits a draft or a pasted text in the user's editor; opens an image in the system's viewer.
    pub(super) fn edit_text(&mut self, effect: Effect, now: Instant) {
        let folder = match &effect {
            Effect::EditDraft { folder, .. } => Some(folder),
            Effect::OpenAttachment { folder, label, .. } if label.kind.is_text() => Some(folder),
            _ => None,
        };
        if let Some(folder) = folder {
            let location = Location { path: folder.join(DRAFT_NAME), line: None };
            let Some(launch) = self.executor.editor_for(&location, None) else { return };
            if !launch.is_windowed {
                self.step_aside();
            }
        }
        self.executor.carry_out(effect, &mut self.agents, now);
    }

    /// Stops the process until the shell continues it.
    pub(super) fn suspend(&mut self) {
        self.step_aside();
        signals::suspend();
        // A stopped process that is ended is not in the foreground: taking the terminal would stop it again.
        if !self.signals.has_ending() {
            self.come_back();
        }
    }

    pub(super) fn come_back(&mut self) {
        self.is_away = false;
        self.back_since = Some(Instant::now());
        // A SIGCONT that arrived in the meantime was not meant for parlor.
        self.signals.forget();
        self.tty.reenter();
        self.title = None;
        self.input = Keys::listen().ok();
        if self.input.is_none() {
            self.tty.lose();
        }
        self.apply(Event::Returned, Instant::now());
        self.clock.want_frame_at_once();
    }
}
