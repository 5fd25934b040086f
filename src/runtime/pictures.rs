//! Pictures: the graphics protocol, and the path of a picture from base64 to the screen.
//!
//! Selects the protocol by the responses of the terminal, decodes and encodes one picture at a time on a separate
//! thread, and sends the data stored by the terminal (kitty) in small slices between frames. `ui::picture` positions
//! pictures, `host::picture` reads their bytes.
//! Invariants: the loop never waits for a picture; pictures stored by the terminal are deleted when they are no longer
//! needed, and when parlor leaves the screen.

use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::host::picture as reader;
use crate::ui::picture::{self, Drawn, Key, Wanted};

mod encode;
mod graphics;

use encode::{Encoded, Encoder};
use graphics::Graphics;
pub(super) use graphics::through_tmux;
pub use graphics::{Answers, Environment, GraphicsSetting};

/// Bytes sent at a time, which limits the delay of a key press.
const SLICE_BYTES: usize = 32 * 1024;

/// The state of all pictures.
pub struct Pictures {
    environment: Environment,
    answers: Answers,
    graphics: Graphics,
    /// The size of a cell in pixels, as reported by the system.
    cell: Option<(u16, u16)>,
    ground: [u8; 3],
    sender: UnboundedSender<Done>,
    receiver: UnboundedReceiver<Done>,
    is_busy: bool,
    outgoing: Option<Outgoing>,
    /// Ids of pictures stored by the terminal.
    saved: Vec<u32>,
    next_number: u32,
}

/// A picture that was encoded, or the error.
pub struct Done {
    key: Key,
    outcome: Result<Encoded, String>,
}

/// Data to send before a picture can be shown.
struct Outgoing {
    key: Key,
    drawn: Drawn,
    text: String,
    sent: usize,
}

impl Pictures {
    /// No pictures yet.
    pub fn new(environment: Environment) -> Self {
        let (sender, receiver) = unbounded_channel();
        Self {
            environment,
            answers: Answers::default(),
            graphics: Graphics::Off,
            cell: None,
            ground: [0; 3],
            sender,
            receiver,
            is_busy: false,
            outgoing: None,
            saved: Vec::new(),
            // Other programs on the same terminal count from 1.
            next_number: 0x0050_0000 | std::process::id() & 0x000f_ffff,
        }
    }

    /// The queries sent to the terminal at the start.
    pub fn questions(&self) -> String {
        self.environment.questions()
    }

    /// Selects the protocol again after a response of the terminal, or a change of the cell size or background.
    pub fn choose(&mut self, cell: Option<(u16, u16)>, ground: Option<[u8; 3]>) {
        let ground = ground.unwrap_or(self.ground);
        // The size reported by the system follows font changes; the terminal's response is from the start.
        let cell = cell.or(self.answers.cell).or(self.cell);
        let graphics = self.environment.choose(&self.answers, cell);
        if (graphics, cell, ground) == (self.graphics, self.cell, self.ground) {
            return;
        }
        (self.graphics, self.cell, self.ground) = (graphics, cell, ground);
        picture::show(graphics.grid(cell));
    }

    /// Changes the protocol that the user chose, and whether half blocks are one cell wide.
    pub fn set_setting(&mut self, setting: GraphicsSetting, has_rich_glyphs: bool) {
        (self.environment.setting, self.environment.has_rich_glyphs) = (setting, has_rich_glyphs);
        self.choose(None, None);
    }

    /// Saves a response of the terminal.
    pub fn note(&mut self, answer: impl FnOnce(&mut Answers)) {
        answer(&mut self.answers);
        self.choose(None, None);
    }

    /// Reads the next visible picture. Call it after each frame.
    pub fn work(&mut self) {
        if self.is_busy || self.outgoing.is_some() {
            return;
        }
        let (Some(wanted), Some(grid)) = (picture::take_wanted(), picture::grid()) else { return };
        self.is_busy = true;
        self.next_number += 1;
        let (graphics, ground, number) = (self.graphics, self.ground, self.next_number);
        let encoder = Encoder { graphics, grid, ground, colors: self.environment.colors, number };
        let sender = self.sender.clone();
        tokio::task::spawn_blocking(move || {
            let Wanted { key, data, cols } = wanted;
            let outcome = reader::read(&data).and_then(|picture| encoder.encode(picture, cols));
            let _ = sender.send(Done { key, outcome });
        });
    }

    /// The next encoded picture. Pending while there is none.
    pub async fn next(&mut self) -> Option<Done> {
        self.receiver.recv().await
    }

    /// Handles an encoded picture. Returns whether the screen changes.
    pub fn take(&mut self, Done { key, outcome }: Done) -> bool {
        self.is_busy = false;
        match outcome {
            Err(why) => picture::put(key, Err(why)),
            Ok(Encoded { drawn, to_send: None }) => picture::put(key, Ok(drawn)),
            Ok(Encoded { drawn, to_send: Some(text) }) => {
                self.saved.extend(drawn.saved_as);
                self.outgoing = Some(Outgoing { key, drawn, text, sent: 0 });
                false
            }
        }
    }

    pub fn has_more_to_send(&self) -> bool {
        self.outgoing.is_some()
    }

    /// The next data to send to the terminal, and whether a picture can be shown after that.
    pub fn next_slice(&mut self) -> (String, bool) {
        let mut out = self.take_back(&picture::take_gone());
        let Some(outgoing) = &mut self.outgoing else { return (out, false) };
        let rest = outgoing.text.get(outgoing.sent..).unwrap_or_default();
        let end = slice_end(rest.as_bytes());
        out.push_str(rest.get(..end).unwrap_or(rest));
        outgoing.sent += end;
        if outgoing.sent < outgoing.text.len() {
            return (out, false);
        }
        let is_seen = self.outgoing.take().is_some_and(|sent| picture::put(sent.key, Ok(sent.drawn)));
        (out, is_seen)
    }

    /// Deletes all pictures stored by the terminal, because the screen is left to other programs. All are read again
    /// later.
    pub fn leave(&mut self) -> String {
        let saved = std::mem::take(&mut self.saved);
        self.outgoing = None;
        picture::show(picture::grid());
        picture::take_gone();
        self.take_back(&saved)
    }

    fn take_back(&mut self, numbers: &[u32]) -> String {
        self.saved.retain(|saved| !numbers.contains(saved));
        numbers.iter().map(|number| self.graphics.take_back(*number)).collect()
    }
}

/// The end of the next slice: between two sequences, so that a frame may be sent in between. In data passed through
/// tmux some terminators are part of a sequence.
fn slice_end(text: &[u8]) -> usize {
    let ends = memchr::memmem::find_iter(text.get(SLICE_BYTES..).unwrap_or_default(), b"\x1b\\");
    let is_between = |end: &usize| {
        let after = text.get(*end..).unwrap_or_default();
        after.starts_with(b"\x1b_") || after.starts_with(b"\x1bP")
    };
    ends.map(|at| SLICE_BYTES + at + 2).find(is_between).unwrap_or(text.len())
}

/// Text shared between threads.
type Text = Arc<str>;

#[cfg(test)]
mod tests;
