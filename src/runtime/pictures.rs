//! Pictures: which way the terminal shows them, and the way of each from base64 to its screen.
//!
//! Duty: chooses by what the terminal answers, reads and encodes one picture at a time on a thread of its own, sends
//! the terminal what it is to keep (kitty) in small pieces between frames. Not its duty: where pictures stand
//! (`ui::picture`), reading their bytes (`services::picture`).
//! Invariants: the loop never waits for a picture; what the terminal was given to keep is taken back when it is of no
//! use any more, and when parlor leaves the screen.

use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::services::picture as reader;
use crate::ui::picture::{self, Drawn, Key, Wanted};

mod encode;
mod way;

use encode::{Encoded, Encoder};
use way::Way;
pub use way::{Answers, Around, GraphicsSetting};

/// How much is sent at a time; a key pressed meanwhile waits no longer than that takes.
const SLICE_BYTES: usize = 32 * 1024;

/// All that concerns pictures.
pub struct Pictures {
    around: Around,
    answers: Answers,
    way: Way,
    /// The size of a cell in points, as the system tells it.
    cell: Option<(u16, u16)>,
    ground: [u8; 3],
    sender: UnboundedSender<Done>,
    receiver: UnboundedReceiver<Done>,
    /// A picture is being read.
    is_busy: bool,
    outgoing: Option<Outgoing>,
    /// Numbers of pictures that the terminal keeps.
    kept: Vec<u32>,
    next_number: u32,
}

/// A picture that was read, or why it was not.
pub struct Done {
    key: Key,
    outcome: Result<Encoded, String>,
}

/// What is being sent before a picture can be seen.
struct Outgoing {
    key: Key,
    drawn: Drawn,
    text: String,
    sent: usize,
}

impl Pictures {
    /// None are shown yet.
    pub fn new(around: Around) -> Self {
        let (sender, receiver) = unbounded_channel();
        Self {
            around,
            answers: Answers::default(),
            way: Way::Off,
            cell: None,
            ground: [0; 3],
            sender,
            receiver,
            is_busy: false,
            outgoing: None,
            kept: Vec::new(),
            // Other programs on the same terminal count from 1.
            next_number: 0x0050_0000 | std::process::id() & 0x000f_ffff,
        }
    }

    /// What is asked of the terminal at the start.
    pub fn questions(&self) -> String {
        self.around.questions()
    }

    /// The terminal answered, or its cells have another size, or colours others: what is shown follows.
    pub fn choose(&mut self, cell: Option<(u16, u16)>, ground: Option<[u8; 3]>) {
        let ground = ground.unwrap_or(self.ground);
        // What the system tells follows changes of the font; what the terminal told was told at the start.
        let cell = cell.or(self.answers.cell).or(self.cell);
        let way = self.around.choose(&self.answers, cell);
        if (way, cell, ground) == (self.way, self.cell, self.ground) {
            return;
        }
        (self.way, self.cell, self.ground) = (way, cell, ground);
        picture::show(way.grid(cell));
    }

    /// The terminal answered.
    pub fn note(&mut self, answer: impl FnOnce(&mut Answers)) {
        answer(&mut self.answers);
        self.choose(None, None);
    }

    /// Reads the next picture that somebody looks at. Call it after each frame.
    pub fn work(&mut self) {
        if self.is_busy || self.outgoing.is_some() {
            return;
        }
        let (Some(wanted), Some(grid)) = (picture::take_wanted(), picture::grid()) else { return };
        self.is_busy = true;
        self.next_number += 1;
        let (way, ground, number) = (self.way, self.ground, self.next_number);
        let encoder = Encoder { way, grid, ground, colors: self.around.colors, number };
        let sender = self.sender.clone();
        tokio::task::spawn_blocking(move || {
            let Wanted { key, data, cols } = wanted;
            let outcome = reader::read(&data).and_then(|picture| encoder.encode(picture, cols));
            let _ = sender.send(Done { key, outcome });
        });
    }

    /// The next picture that was read. Never ends while none is.
    pub async fn next(&mut self) -> Option<Done> {
        self.receiver.recv().await
    }

    /// A picture was read. Whether there is something new to be seen.
    pub fn take(&mut self, Done { key, outcome }: Done) -> bool {
        self.is_busy = false;
        match outcome {
            Err(why) => picture::put(key, Err(why)),
            Ok(Encoded { drawn, to_send: None }) => picture::put(key, Ok(drawn)),
            Ok(Encoded { drawn, to_send: Some(text) }) => {
                self.kept.extend(drawn.kept_as);
                self.outgoing = Some(Outgoing { key, drawn, text, sent: 0 });
                false
            }
        }
    }

    /// Whether there is something to be sent to the terminal.
    pub fn has_more_to_send(&self) -> bool {
        self.outgoing.is_some()
    }

    /// What is to be sent to the terminal next; and whether a picture can be seen after that.
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

    /// Takes back all that the terminal keeps, because the screen is left to others. All is read again afterwards.
    pub fn leave(&mut self) -> String {
        let kept = std::mem::take(&mut self.kept);
        self.outgoing = None;
        picture::show(picture::grid());
        picture::take_gone();
        self.take_back(&kept)
    }

    fn take_back(&mut self, numbers: &[u32]) -> String {
        self.kept.retain(|kept| !numbers.contains(kept));
        numbers.iter().map(|number| self.way.take_back(*number)).collect()
    }
}

/// Where the next slice ends: between two sequences, so that a frame may come in between. Inside of what passes
/// through tmux there are ends that are none.
fn slice_end(text: &[u8]) -> usize {
    let ends = memchr::memmem::find_iter(text.get(SLICE_BYTES..).unwrap_or_default(), b"\x1b\\");
    let is_between = |end: &usize| {
        let behind = text.get(*end..).unwrap_or_default();
        behind.starts_with(b"\x1b_") || behind.starts_with(b"\x1bP")
    };
    ends.map(|at| SLICE_BYTES + at + 2).find(is_between).unwrap_or(text.len())
}

/// Text that is shared between threads.
type Text = Arc<str>;

#[cfg(test)]
mod tests;
