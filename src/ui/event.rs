//! The inputs of the front end: those of the core, and what the user does on the screen.

use std::ops::Range;
use std::path::PathBuf;

use crate::core::{self, ConfigNews};
use crate::model::{Action, Attachment, ItemId, LineEdit, Target, TerminalInput};
use crate::ui::screen::Screen;

/// An input of the front end.
#[allow(clippy::large_enum_variant, reason = "an event is used once, where it was made")]
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Core(core::Event),
    Act(Action),
    /// The text of the prompt has changed to this.
    Draft(String),
    /// The mention that is being typed: its bytes in the draft, and the path so far.
    Mention(Option<(Range<usize>, String)>),
    /// The argument of a slash command that is to be completed as a path: its bytes in the draft, and the path so far.
    Argument(Range<usize>, String),
    /// The user has copied this text in the prompt.
    Copy(String),
    /// A command in the prompt needs the text of the clipboard.
    ReadClipboard,
    /// A text was pasted of which the draft contains only the label.
    Pasted(Attachment),
    /// Files were dropped on the terminal, which pasted their paths.
    Dropped {
        text: String,
        /// The first byte of the text in the draft.
        at: usize,
        readings: Vec<Vec<PathBuf>>,
    },
    /// The cursor's byte in the draft, sent before an action that depends on it.
    Cursor(usize),
    Line(LineEdit),
    /// The user runs this command, which is the complete text of the composer and was shown.
    RunCommand(String),
    TypeIn(TerminalInput),
    /// A key of the sequence that is being pressed to bind it, as in the configuration.
    Capturing(String),
    /// The keys that were pressed to bind them: as in the configuration, and as a label.
    Captured {
        keys: String,
        label: String,
        /// The keys that have another meaning, and that meaning.
        taken: Option<(String, String)>,
    },
    Config(Box<ConfigNews>),
    /// A message of the key routing for the status line.
    Message(String),
    /// The user opens a file in the editor, or an address in the browser.
    Open(Target),
    /// The first and the last item on the screen, sent before an action that depends on them.
    Reading(ItemId, ItemId),
    /// A printable key at a question that the user did not open, with the action that is bound to it there.
    Character(char, Option<Action>),
    Backspace,
    Click(Option<Action>),
    /// A key, click, paste or turn of the wheel without an effect.
    Input,
    /// The same, of the mouse outside of the question on top.
    InputElsewhere,
    /// The same, with its effects in order.
    Key(Vec<Event>),
    /// parlor has the terminal again, which another program had.
    Returned,
    /// The theme that matches the terminal's background is known.
    Theme(String),
    /// The last frame had other room than the one before.
    Screen(Screen),
}

impl From<core::Event> for Event {
    fn from(event: core::Event) -> Self {
        Self::Core(event)
    }
}
