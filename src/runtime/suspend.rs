//! Releases the terminal to an editor or a sign-in command and takes it back; notifies a user who is in another window.

use std::path::PathBuf;
use std::time::Instant;

use super::Loop;
use super::keys::Keys;
use crate::model::{Location, SessionKey};
use crate::services::editor::DRAFT_NAME;
use crate::ui;

impl Loop {
    /// Notifies the user, as configured, unless another program has the terminal.
    pub(super) fn announce(&mut self, line: &str) {
        if self.is_away {
            return;
        }
        if self.calls.notify {
            self.tty.send(&format!("\x1b]9;{}\x1b\\", ui::text::one_line(line)));
        }
        if self.calls.bell {
            self.tty.send("\x07");
        }
    }

    /// Releases the screen to another program.
    pub(super) fn step_aside(&mut self) {
        self.is_away = true;
        self.input = None;
        self.tty.send(&self.pictures.leave());
        self.tty.leave();
    }

    /// Edits a draft in the user's editor.
    pub(super) fn edit_draft(&mut self, session: SessionKey, text: String, folder: PathBuf) {
        let place = Location { path: folder.join(DRAFT_NAME), line: None };
        if let Some(launch) = self.doer.editor_for(&place, None) {
            if !launch.is_windowed {
                self.step_aside();
            }
            self.doer.edit_draft(session, text, folder);
        }
    }

    /// Takes the screen back.
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
        self.clock.want_frame_at_once();
    }
}
