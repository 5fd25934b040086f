//! What the terminal reports: its colors, its image protocols, its clipboard, and the width of ambiguous characters.

use std::time::Instant;

use super::keys::TtyEvent;
use super::{Loop, pictures};

use crate::ui;
use crate::ui::Event;
use crate::ui::render_context::Glyphs;
use crate::ui::text::WideAmbiguous;

impl Loop {
    pub(super) fn on_background(&mut self, color: [u8; 3], now: Instant) {
        let theme =
            self.theme_for.map(|choose| choose(color)).filter(|name| *name != self.app.state.setup.theme);
        if let Some(theme) = theme {
            let follows = self.theme_for;
            self.apply(Event::Theme(theme), now);
            self.theme_for = follows;
        }
    }

    /// Handles the terminal's response about its image protocols, and its name.
    pub(super) fn on_answer(&mut self, answer: TtyEvent) {
        match &answer {
            TtyEvent::Name(name) => {
                self.attention.note_name(name);
                // Older versions of kitty have the clipboard but no paste events.
                self.terminal_clipboard.is_supported |= name.starts_with("kitty(");
            }
            TtyEvent::HasClipboard(true) => self.terminal_clipboard.is_supported = true,
            TtyEvent::AmbiguousWidth(cols) => {
                self.is_wide = *cols == 2;
                self.use_width();
            }
            _ => {}
        }
        self.pictures.note(|known| match answer {
            TtyEvent::Kitty(pictures::Answers::COMPRESSED_QUESTION) => known.compressed = true,
            TtyEvent::Kitty(_) => known.kitty = true,
            TtyEvent::Sixel(does) => known.sixel = does,
            TtyEvent::CellSize(width, height) => known.cell = Some((width, height)),
            TtyEvent::Name(name) => known.name = name,
            TtyEvent::Input(_)
            | TtyEvent::Synchronizes(_)
            | TtyEvent::Background(_)
            | TtyEvent::IsDark(_)
            | TtyEvent::AmbiguousWidth(_)
            | TtyEvent::HasClipboard(_)
            | TtyEvent::Clipboard(_) => {}
        });
        self.clock.want_frame();
    }

    /// Uses the width of ambiguous characters. Where they are wide, parlor's own symbols are ASCII.
    pub(super) fn use_width(&mut self) {
        let is_wide = match self.ambiguous {
            WideAmbiguous::Measured => self.is_wide,
            WideAmbiguous::Narrow => false,
            WideAmbiguous::Wide => true,
        };
        let is_rich = self.has_rich_glyphs && !is_wide;
        self.view.glyphs = if is_rich { Glyphs::rich() } else { Glyphs::plain() };
        self.pictures.set_setting(self.images, is_rich);
        if ui::text::set_wide(is_wide) {
            self.view.forget_layouts();
            self.tty.clear();
            self.clock.want_frame_at_once();
        }
    }
}
