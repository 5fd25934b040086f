//! Editing with the keys of vim: a state machine over a text with a cursor.
//!
//! [`Vim::key`] receives the keys of normal, visual and replace mode, and Escape in insert mode; other keys of insert
//! mode belong to the composer. No crate does this: those that have vim keys (edtui, modalkit) bring a text storage and
//! drawing of their own. `vim/table.txt` is made with vim itself.
//!
//! Invariants: positions are on grapheme boundaries; in normal mode the cursor is on a character, unless the line is
//! empty.

mod motion;
mod object;
mod operate;
mod parse;
mod register;
pub(super) mod text;

use std::ops::Range;

use motion::{Memory, target};
use parse::{Command, Motion, Parsed, Start, Verb, parse};
use register::Registers;
use text::Text;

use super::history::Restored;

/// The key that leaves a mode.
pub(super) const ESCAPE: char = '\u{1b}';
const BACKSPACE: char = '\u{8}';

/// Maximum size of text that is inserted with a count.
const MAX_REPEATED_BYTES: usize = 1 << 20;

/// The mode, which decides what a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    Normal,
    #[default]
    Insert,
    Replace,
    Visual,
    VisualLine,
}

/// The result of a key, besides changes of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Not a key of this mode.
    Unused,
    Done,
    Undo(usize),
    Redo(usize),
    /// The cursor is already in the first or last line.
    Edge {
        is_up: bool,
    },
    Copy(String),
    /// The command needs the text of the clipboard: see [`Vim::put_clipboard`].
    ReadClipboard,
}

/// The state of vim keys besides the text.
#[derive(Debug, Clone, Default)]
pub struct Vim {
    mode: Mode,
    /// The keys of the incomplete command.
    pending: String,
    anchor: usize,
    memory: Memory,
    registers: Registers,
    /// The change that `.` repeats.
    change: Option<Change>,
    insert: Option<Inserting>,
    /// The command that needs the text of the clipboard.
    waiting: Option<Command>,
    last_insert: usize,
    /// The last selection: whether by lines, and its ends.
    last_visual: Option<(bool, usize, usize)>,
    /// What each character typed in replace mode has replaced; `None`: it was added to the line.
    overwritten: Vec<Option<String>>,
    /// The cursor position that undoing the last command restores.
    undo_at: usize,
}

/// A change that can be repeated.
#[derive(Debug, Clone)]
struct Change {
    command: Command,
    /// The text that was typed in insert or replace mode after it.
    typed: String,
    extent: Option<Extent>,
}

/// The size of a selection.
#[derive(Debug, Clone, Copy)]
struct Extent {
    is_lines: bool,
    lines: usize,
    /// Number of characters in its last line.
    chars: usize,
}

/// The command that started insert mode, and the text at that time.
#[derive(Debug, Clone)]
struct Inserting {
    command: Command,
    extent: Option<Extent>,
    before: Text,
}

impl Vim {
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The keys of the incomplete command.
    pub fn pending(&self) -> &str {
        &self.pending
    }

    /// The position of the cursor before the current change, which undo restores.
    pub fn undo_at(&self) -> usize {
        self.undo_at
    }

    /// Whether text is being selected.
    pub fn is_visual(&self) -> bool {
        matches!(self.mode, Mode::Visual | Mode::VisualLine)
    }

    /// Whether typed characters are text.
    pub fn is_inserting(&self) -> bool {
        matches!(self.mode, Mode::Insert | Mode::Replace)
    }

    pub fn selection(&self, text: &Text) -> Option<Range<usize>> {
        let (start, end) = (self.anchor.min(text.at), self.anchor.max(text.at));
        match self.mode {
            Mode::Visual => Some(text.floor(start)..text.after(end)),
            Mode::VisualLine => Some(text.line_start(start)..text.line_end(end)),
            _ => None,
        }
    }

    /// Starts insert mode without a command: for a new prompt.
    pub fn reset(&mut self) {
        *self = Self {
            mode: Mode::Insert,
            pending: String::new(),
            insert: None,
            waiting: None,
            overwritten: Vec::new(),
            ..std::mem::take(self)
        };
    }

    pub fn key(&mut self, key: char, text: &mut Text) -> Reply {
        text.at = text.floor(text.at.min(text.text.len()));
        self.anchor = text.floor(self.anchor.min(text.text.len()));
        self.waiting = None;
        match self.mode {
            Mode::Insert | Mode::Replace if key == ESCAPE => {
                self.leave_insert(text);
                return Reply::Done;
            }
            Mode::Insert => return Reply::Unused,
            Mode::Replace => return self.overwrite(key, text),
            _ if key == ESCAPE => {
                if self.is_visual() && self.pending.is_empty() {
                    self.leave_visual(text);
                } else if self.pending.is_empty() {
                    return Reply::Unused;
                }
                self.pending.clear();
                text.at = text.on_char(text.at);
                return Reply::Done;
            }
            _ => {}
        }
        let parsed = parse(&self.pending, self.is_visual());
        if key == BACKSPACE && parsed == Parsed::Searching {
            self.pending.pop();
            return Reply::Done;
        }
        self.pending.push(key);
        match parse(&self.pending, self.is_visual()) {
            Parsed::Incomplete | Parsed::Searching => Reply::Done,
            Parsed::Invalid => {
                self.pending.clear();
                Reply::Done
            }
            Parsed::Command(command) => {
                self.pending.clear();
                self.undo_at = text.at;
                let reply = self.run(command, text);
                if self.mode == Mode::Normal {
                    text.at = text.on_char(text.at);
                }
                reply
            }
        }
    }

    /// Runs the command that waits for the text of the clipboard. `None`: it cannot be read, so the text copied last is
    /// used. Returns whether there was one.
    pub fn put_clipboard(&mut self, contents: Option<&str>, text: &mut Text) -> bool {
        let Some(command) = self.waiting.take() else { return false };
        if let Some(contents) = contents {
            self.registers.set_clipboard(contents);
        }
        self.undo_at = text.at;
        self.edit(command, text);
        text.at = text.on_char(text.at);
        true
    }

    fn run(&mut self, command: Command, text: &mut Text) -> Reply {
        let count = command.count;
        match command.verb {
            Verb::Move(ref motion) => return self.travel(motion, count, text),
            Verb::Extend(object) => self.extend(object, count, text),
            Verb::Operate(..) => return self.operate(command, text),
            Verb::Insert(start) => {
                text.at = match start {
                    Start::Here => text.at,
                    Start::After if text.is_line_end(text.at) => text.at,
                    Start::After => text.after(text.at),
                    Start::FirstNonBlank => text.first_nonblank(text.at),
                    Start::LineEnd => text.line_end(text.at),
                    Start::LastInsert => text.floor(self.last_insert.min(text.text.len())),
                    Start::LineBelow | Start::LineAbove => {
                        let is_below = start == Start::LineBelow;
                        open_line(text, is_below);
                        self.enter_insert(command, None, text);
                        return Reply::Done;
                    }
                };
                self.undo_at = text.at;
                self.enter_insert(command, None, text);
            }
            Verb::Overwrite => {
                self.enter_insert(command, None, text);
                self.mode = Mode::Replace;
            }
            Verb::Put(_) if matches!(command.register, Some('+' | '*')) => {
                self.waiting = Some(command);
                return Reply::ReadClipboard;
            }
            Verb::ReplaceWith(_) | Verb::ToggleCase | Verb::Join(_) | Verb::Put(_) => {
                return self.edit(command, text);
            }
            Verb::Undo => return Reply::Undo(count.unwrap_or(1)),
            Verb::Redo => return Reply::Redo(count.unwrap_or(1)),
            Verb::Repeat => return self.repeat(count, text),
            Verb::Select(is_lines) => {
                let mode = if is_lines { Mode::VisualLine } else { Mode::Visual };
                if self.mode == mode {
                    self.leave_visual(text);
                } else {
                    if !self.is_visual() {
                        self.anchor = text.at;
                    }
                    self.mode = mode;
                }
            }
            Verb::Reselect => {
                if let Some((is_lines, anchor, at)) = self.last_visual {
                    if self.is_visual() {
                        self.remember_visual(text);
                    }
                    self.mode = if is_lines { Mode::VisualLine } else { Mode::Visual };
                    self.anchor = text.on_char(anchor);
                    text.at = text.on_char(at);
                }
            }
            Verb::OtherEnd => std::mem::swap(&mut self.anchor, &mut text.at),
        }
        Reply::Done
    }

    fn travel(&mut self, motion: &Motion, count: Option<usize>, text: &mut Text) -> Reply {
        match target(text, motion, count, false, &mut self.memory) {
            Some(target) => {
                text.at = target.at;
                // The line break can be selected.
                if self.is_visual() && *motion == Motion::LineEnd {
                    text.at = text.line_end(text.at);
                }
                Reply::Done
            }
            None if self.is_visual() => Reply::Done,
            None if *motion == Motion::Up => Reply::Edge { is_up: true },
            None if *motion == Motion::Down => Reply::Edge { is_up: false },
            None => Reply::Done,
        }
    }

    fn extend(&mut self, object: parse::Object, count: Option<usize>, text: &mut Text) {
        let selected = self.selection(text).filter(|_| self.anchor != text.at);
        let Some(found) = object::find(text, object, count.unwrap_or(1), selected.as_ref()) else { return };
        if found.range.is_empty() {
            return;
        }
        self.anchor = found.range.start;
        text.at = text.before(found.range.end);
        if found.is_lines {
            self.mode = Mode::VisualLine;
            text.at = text.line_start(found.range.end);
        }
    }

    fn leave_visual(&mut self, text: &Text) {
        if self.is_visual() {
            self.remember_visual(text);
        }
        self.mode = Mode::Normal;
    }

    fn remember_visual(&mut self, text: &Text) {
        self.last_visual = Some((self.mode == Mode::VisualLine, self.anchor, text.at));
    }

    fn enter_insert(&mut self, command: Command, extent: Option<Extent>, text: &Text) {
        self.mode = Mode::Insert;
        self.overwritten.clear();
        self.insert = Some(Inserting { command, extent, before: text.clone() });
    }

    fn leave_insert(&mut self, text: &mut Text) {
        let was_replacing = self.mode == Mode::Replace;
        self.mode = Mode::Normal;
        if let Some(Inserting { command, extent, before }) = self.insert.take() {
            let typed = typed_since(&before, text, was_replacing);
            let times = match &command.verb {
                Verb::Insert(_) | Verb::Overwrite => command.count.unwrap_or(1) - 1,
                _ => 0,
            };
            for _ in 0..times.min(MAX_REPEATED_BYTES / typed.len().max(1)) {
                if matches!(command.verb, Verb::Insert(Start::LineBelow | Start::LineAbove)) {
                    open_line(text, true);
                }
                if was_replacing {
                    type_over(&typed, text);
                } else {
                    let at = text.at;
                    text.replace(at..at, &typed);
                    text.at += typed.len();
                }
            }
            self.change = Some(Change { command, typed, extent });
        }
        self.last_insert = text.at;
        if text.at > text.line_start(text.at) {
            text.at = text.before(text.at);
        }
        text.at = text.on_char(text.at);
    }

    fn overwrite(&mut self, key: char, text: &mut Text) -> Reply {
        if key == BACKSPACE {
            if text.at > text.line_start(text.at) {
                let (start, end) = (text.before(text.at), text.at);
                if let Some(replaced) = self.overwritten.pop() {
                    text.replace(start..end, replaced.as_deref().unwrap_or_default());
                }
                text.at = start;
            }
            return Reply::Done;
        }
        if key.is_control() {
            return Reply::Unused;
        }
        self.overwritten.push(type_over(&key.to_string(), text));
        Reply::Done
    }

    /// Repeats the last change.
    fn repeat(&mut self, count: Option<usize>, text: &mut Text) -> Reply {
        let Some(change) = self.change.clone() else { return Reply::Done };
        let mut command = change.command;
        command.count = count.or(command.count);
        if let Some(extent) = change.extent {
            self.select(extent, text);
        }
        let reply = self.run(command, text);
        if self.is_inserting() {
            if self.mode == Mode::Replace {
                type_over(&change.typed, text);
            } else {
                let at = text.at;
                text.replace(at..at, &change.typed);
                text.at += change.typed.len();
            }
            self.leave_insert(text);
        }
        reply
    }

    fn select(&mut self, extent: Extent, text: &mut Text) {
        self.mode = if extent.is_lines { Mode::VisualLine } else { Mode::Visual };
        self.anchor = text.at;
        let below = isize::try_from(extent.lines - 1).unwrap_or(isize::MAX);
        if below > 0 {
            text.at = text.line_beside(text.at, below);
        }
        for _ in 1..extent.chars {
            text.at = if text.is_line_end(text.at) { text.at } else { text.after(text.at) };
        }
        text.at = text.on_char(text.at);
    }
}

/// The text after undo or redo, with the cursor where vim has it: in the first line that changed.
pub(super) fn restored(Restored { text, from: at, start, .. }: Restored) -> Text {
    let mut text = Text { text, at: 0 };
    // Lines after a line break were removed.
    let start = if text.char_at(start) == Some('\n') { start + 1 } else { start };
    let (at, start) = (text.floor(at.min(text.text.len())), text.floor(start.min(text.text.len())));
    let (line, changed) = (text.line_start(at), text.line_start(start));
    let is_near = line == changed || text.line_beside(line, 1) == changed;
    text.at = text.on_char(if is_near { at } else { text.first_nonblank(start) });
    text
}

/// Inserts an empty line below or above that of the cursor, and moves the cursor there.
fn open_line(text: &mut Text, is_below: bool) {
    let at = if is_below { text.line_end(text.at) } else { text.line_start(text.at) };
    text.replace(at..at, "\n");
    text.at = if is_below { at + 1 } else { at };
}

/// Replaces the characters at the cursor, and moves it after them. Returns the last replaced character; `None` at the end
/// of the line.
fn type_over(typed: &str, text: &mut Text) -> Option<String> {
    let mut replaced = None;
    for ch in typed.chars() {
        let at = text.at;
        let end = if text.is_line_end(at) || ch == '\n' { at } else { text.after(at) };
        replaced = (end > at).then(|| text.slice(at..end).to_owned());
        text.replace(at..end, ch.encode_utf8(&mut [0; 4]));
        text.at += ch.len_utf8();
    }
    replaced
}

fn typed_since(before: &Text, now: &Text, was_replacing: bool) -> String {
    if was_replacing {
        return now.slice(before.at..now.at).to_owned();
    }
    let (head, tail) = (before.slice(0..before.at), before.slice(before.at..before.text.len()));
    let typed = now.text.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail));
    typed.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
