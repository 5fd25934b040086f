//! Copies and quotes the selection, and pastes from the clipboard of this machine or, where there is none, of the terminal.

pub mod terminal;

use std::time::Instant;

use super::Loop;
use crate::core::Effect;
use crate::host::{clipboard, patch};
use crate::model::{CopyContent, CopyJob, SessionKey};
use crate::ui;
use crate::ui::Event;

use terminal::{ClipboardPacket, Step};

impl Loop {
    /// Copies the selected text. If a key was required for that, the selection is cleared.
    pub(super) fn copy_selection(&mut self, now: Instant) {
        let text = ui::selected_text(&self.app, &mut self.view, &self.theme).unwrap_or_default();
        let (lines, letters) = (text.lines().count(), text.chars().count());
        let what = match (lines, letters) {
            (_, 1) => "1 character".to_owned(),
            (0 | 1, letters) => format!("{letters} characters"),
            (lines, _) => format!("{lines} lines"),
        };
        if !self.view.copies_on_select {
            self.view.clear_selection();
        }
        let job = CopyJob { what, content: CopyContent::Text(text) };
        self.executor.carry_out(Effect::Copy(job), &mut self.agents, now);
    }

    pub(super) fn quote_selection(&mut self, item: Option<CopyContent>, now: Instant) {
        let selected = ui::selected_text(&self.app, &mut self.view, &self.theme);
        let text = selected.or_else(|| item.map(|content| text_to_copy(content, now)));
        let events = if let Some(text) = text.filter(|text| !text.is_empty()) {
            ui::quote(&text, &mut self.view)
        } else {
            let text = "Nothing to quote. Select text with the mouse, or an item while browsing.";
            vec![Event::Message(text.to_owned())]
        };
        for event in events {
            self.apply(event, now);
        }
    }

    /// Reads the clipboard for a draft. `before`: the draft before the cursor; `None`: a command needs the text.
    pub(super) fn read_clipboard(&mut self, session: SessionKey, before: Option<String>, now: Instant) {
        let around = self.executor.clipboard;
        if around.has_clipboard() || !self.terminal_clipboard.is_supported {
            return self
                .executor
                .paste(session, before, move |takes_images| clipboard::read(around, takes_images));
        }
        match self.terminal_clipboard.start(session, before.clone(), now) {
            Ok(sequence) => self.tty.send(&sequence),
            Err(why) => self.executor.paste(session, before, |_| Err(why)),
        }
    }

    /// Handles a response about the terminal's clipboard.
    pub(super) fn on_clipboard(&mut self, packet: ClipboardPacket, now: Instant) {
        let step = self.terminal_clipboard.take(packet, now);
        self.follow(step, now);
    }

    /// Handles that the terminal has not sent its clipboard in time.
    pub(super) fn on_clipboard_deadline(&mut self, now: Instant) {
        let step = self.terminal_clipboard.on_deadline(now);
        self.follow(step, now);
    }

    fn follow(&mut self, step: Option<Step>, now: Instant) {
        match step {
            Some(Step::Send(sequence)) => self.tty.send(&sequence),
            Some(Step::Notice) => {
                let text = "The terminal may ask for your permission to read its clipboard.";
                self.apply(Event::Message(text.to_owned()), now);
            }
            Some(Step::Done { session, before, contents }) => {
                self.executor.paste(session, before, |_| contents);
            }
            None => {}
        }
    }
}

/// The text to copy, without characters that could control a terminal.
pub(super) fn text_to_copy(content: CopyContent, now: Instant) -> String {
    let text = match content {
        CopyContent::Text(text) => text,
        CopyContent::MarkdownAsPlain(source) => ui::markdown::plain_text(&source, now),
        CopyContent::Output { bytes, has_returns } => ui::terminal::plain_text(&bytes, has_returns),
        CopyContent::Patch { changes, folder } => patch::unified(&changes, &folder),
    };
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t' | '\r')).collect()
}
