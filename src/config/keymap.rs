//! Keys: which one does what, where.
//!
//! Duty: turns a key press into an [`Action`] (or a [`LineEdit`]) by the place that has the focus, and tells
//! the keys of an action for help, hints and palette. Not its duty: deciding which place has the focus (`ui`),
//! doing anything (`app`).
//! The defaults are `keymap.toml`, embedded; `[keys.PLACE]` tables of the configuration change them.
//! Invariants: no key is named anywhere else; a wrong binding becomes a problem and leaves the others alone.

pub mod actions;
pub mod chord;
mod merge;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

use crossterm::event::KeyEvent;

use self::actions::{all, info, name_of};
use self::chord::Chord;
use super::Origin;
use super::read::Reader;
use crate::model::{Action, LineEdit};

/// The embedded defaults.
pub const DEFAULTS: &str = include_str!("keymap/keymap.toml");

/// The place that has the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Context {
    /// The prompt and the transcript.
    Main,
    /// The same while the prompt is empty; what is not bound here is looked up in `Main`.
    EmptyPrompt,
    /// The transcript while it has the keys; what is not bound here is looked up in `Main`.
    Browse,
    /// The line of the search.
    Search,
    /// A list with a filter: keys that type a character belong to the filter.
    List,
    /// The list of sessions: keys that type a character belong to its line.
    Sessions,
    /// The agent asks for permission.
    Permission,
    /// A question of parlor's own.
    Choice,
    /// A form of the agent. While the field holds text, keys that type a character and the horizontal
    /// arrows belong to it: routing asks [`Keymap::edit`] first there.
    Form,
    /// Help, log, details of the connection; typed characters belong to the filter where there is one.
    Text,
    /// A single line to be given.
    Line,
    /// The prompts that wait.
    Queue,
    /// Text that was selected with the mouse; what is not bound here is looked up in `Main`.
    Selection,
    /// All changes of the session.
    Changes,
    /// Everywhere; looked up last from every place.
    Global,
}

impl Context {
    /// All places, in the order of the help.
    pub const ALL: &'static [Self] = &[
        Self::Main,
        Self::EmptyPrompt,
        Self::Selection,
        Self::Browse,
        Self::Search,
        Self::Global,
        Self::Permission,
        Self::Choice,
        Self::List,
        Self::Sessions,
        Self::Form,
        Self::Text,
        Self::Line,
        Self::Queue,
        Self::Changes,
    ];

    /// Its name in `[keys.NAME]`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::EmptyPrompt => "empty-prompt",
            Self::Browse => "browse",
            Self::Search => "search",
            Self::List => "list",
            Self::Sessions => "sessions",
            Self::Permission => "permission",
            Self::Choice => "choice",
            Self::Form => "form",
            Self::Text => "text",
            Self::Line => "line",
            Self::Queue => "queue",
            Self::Selection => "selection",
            Self::Changes => "changes",
            Self::Global => "global",
        }
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Main => "Prompt and transcript",
            Self::EmptyPrompt => "Empty prompt",
            Self::Browse => "Browsing the transcript",
            Self::Search => "Search",
            Self::List => "Lists",
            Self::Sessions => "Session list",
            Self::Permission => "Permission requests",
            Self::Choice => "Questions",
            Self::Form => "Forms",
            Self::Text => "Help, log and details",
            Self::Line => "Text input",
            Self::Queue => "Queued prompts",
            Self::Selection => "Selected text",
            Self::Changes => "Session changes",
            Self::Global => "Global",
        }
    }

    /// The places that are asked for a key, one after the other.
    fn chain(self) -> &'static [Self] {
        match self {
            Self::Main => &[Self::Main, Self::Global],
            Self::EmptyPrompt => &[Self::EmptyPrompt, Self::Main, Self::Global],
            Self::Browse => &[Self::Browse, Self::Main, Self::Global],
            Self::Search => &[Self::Search, Self::Global],
            Self::List => &[Self::List, Self::Global],
            Self::Sessions => &[Self::Sessions, Self::Global],
            Self::Permission => &[Self::Permission, Self::Global],
            Self::Choice => &[Self::Choice, Self::Global],
            Self::Form => &[Self::Form, Self::Global],
            Self::Text => &[Self::Text, Self::Global],
            Self::Line => &[Self::Line, Self::Global],
            Self::Queue => &[Self::Queue, Self::Global],
            // Routing goes on in `Main` by itself.
            Self::Selection => &[Self::Selection],
            Self::Changes => &[Self::Changes, Self::Global],
            Self::Global => &[Self::Global],
        }
    }

    /// Whether keys that type a character must stay free here.
    fn is_for_typing(self) -> bool {
        matches!(
            self,
            Self::Main | Self::Search | Self::List | Self::Sessions | Self::Text | Self::Line | Self::Global
        )
    }
}

/// One binding.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// Where it holds.
    pub context: Context,
    /// The key.
    pub chord: Chord,
    /// What it does; `None`: nothing, also not what a later place of the chain would do.
    pub action: Option<Action>,
    /// Where it comes from.
    pub origin: Origin,
}

/// A key for a line of text.
#[derive(Debug, Clone, PartialEq)]
struct EditBinding {
    chord: Chord,
    edit: LineEdit,
    origin: Origin,
}

/// All keys in force.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Keymap {
    bindings: Vec<Binding>,
    edits: Vec<EditBinding>,
    /// The keys of each action in each place, for people: hints ask for them in every frame.
    labels: HashMap<(Context, Action), Vec<String>>,
}

/// A row of the help: an action with its keys in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelpRow {
    pub context: Context,
    /// The action; choices by number share one row, under the first of them.
    pub action: Action,
    /// Its keys for people, `Ctrl+P`.
    pub keys: Vec<String>,
    pub text: &'static str,
}

/// Changes to a line of text that can be bound: name and change.
const EDITS: &[(&str, LineEdit)] = &[
    ("delete-before", LineEdit::Backspace),
    ("delete-after", LineEdit::Delete),
    ("delete-word", LineEdit::DeleteWord),
    ("delete-all", LineEdit::Clear),
    ("cursor-left", LineEdit::Left),
    ("cursor-right", LineEdit::Right),
    ("cursor-home", LineEdit::Home),
    ("cursor-end", LineEdit::End),
];

impl Keymap {
    /// The keys of `keymap.toml`.
    pub fn defaults() -> Self {
        let mut keymap = Self::default();
        let (mut reader, table) = Reader::parse(Path::new("keymap.toml"), DEFAULTS);
        if let Some(keys) = table.get_ref().get("keys").and_then(|keys| keys.get_ref().as_table()) {
            keymap.merge(&mut reader, keys, |_| Origin::Default);
        }
        keymap
    }

    /// What a key press does in a place. Releases do nothing.
    pub fn lookup(&self, context: Context, key: &KeyEvent) -> Option<Action> {
        self.find(context, Chord::of(key)?)
    }

    /// What a key press changes in a line of text; also text that it types.
    pub fn edit(&self, key: &KeyEvent) -> Option<LineEdit> {
        let chord = Chord::of(key)?;
        let bound = self.edits.iter().find(|binding| binding.chord == chord);
        bound
            .map(|binding| binding.edit.clone())
            .or_else(|| chord.typed().map(|text| LineEdit::Insert(text.into())))
    }

    /// The keys of an action in a place, for people, those of the place itself first.
    pub fn keys_for(&self, context: Context, action: Action) -> &[String] {
        self.labels.get(&(context, action)).map(Vec::as_slice).unwrap_or_default()
    }

    /// Writes down the keys of all actions, once all bindings are known.
    fn label(&mut self) {
        self.labels.clear();
        for context in Context::ALL {
            let mut taken = HashSet::new();
            for place in context.chain() {
                for binding in self.bindings.iter().filter(|binding| binding.context == *place) {
                    // A key does what the first place of the chain says.
                    if let (true, Some(action)) = (taken.insert(binding.chord), binding.action) {
                        self.labels.entry((*context, action)).or_default().push(binding.chord.label());
                    }
                }
            }
        }
    }

    /// All bindings, by place, in the order of the help.
    pub fn help(&self) -> Vec<HelpRow> {
        let mut rows: Vec<HelpRow> = Vec::new();
        for context in Context::ALL {
            let first = rows.len();
            for binding in self.bindings.iter().filter(|binding| binding.context == *context) {
                let Some(info) = binding.action.and_then(info) else { continue };
                let key = binding.chord.label();
                let shown = match info.action {
                    Action::Choose(_) => Action::Choose(1),
                    Action::ShowTab(_) => Action::ShowTab(1),
                    other => other,
                };
                match rows.iter_mut().skip(first).find(|row| row.action == shown) {
                    Some(row) => row.keys.push(key),
                    None => {
                        rows.push(HelpRow {
                            context: *context,
                            action: shown,
                            keys: vec![key],
                            text: info.text,
                        });
                    }
                }
            }
        }
        let is_numbered = |row: &&mut HelpRow| matches!(row.action, Action::Choose(_) | Action::ShowTab(_));
        for row in rows.iter_mut().filter(is_numbered) {
            row.keys = shorten_digits(&row.keys);
        }
        rows
    }

    /// The actions of the palette: action, what it does, its keys in the main place (empty: none).
    pub fn palette(&self) -> Vec<(Action, String, String)> {
        all()
            .filter(|info| info.is_in_palette)
            .map(|info| {
                let keys = self.keys_for(Context::EmptyPrompt, info.action);
                (info.action, info.text.to_owned(), keys.first().cloned().unwrap_or_default())
            })
            .collect()
    }

    /// The help as a Markdown table, for the documentation. Left out is what every dialog has: arrows, page
    /// keys, Home, End, Enter, Tab.
    pub fn markdown(&self) -> String {
        let mut text = "| Where | Keys | What |\n| --- | --- | --- |\n".to_owned();
        let mut place = None;
        for row in self.help().into_iter().filter(|row| !is_plain_motion(row.action)) {
            let title = if place == Some(row.context) { "" } else { row.context.title() };
            place = Some(row.context);
            let keys: Vec<String> = row.keys.iter().map(|key| format!("`{key}`")).collect();
            let _ = writeln!(text, "| {title} | {} | {} |", keys.join(" "), row.text);
        }
        text
    }

    /// All bindings as they stand in a configuration: place, key, action (or `none`), origin.
    pub fn entries(&self) -> Vec<(&'static str, String, &'static str, Origin)> {
        let mut entries = Vec::new();
        for context in Context::ALL {
            for binding in self.bindings.iter().filter(|binding| binding.context == *context) {
                let name = binding.action.and_then(name_of).unwrap_or("none");
                entries.push((context.name(), binding.chord.syntax(), name, binding.origin));
            }
        }
        for binding in &self.edits {
            let name = EDITS.iter().find(|(_, edit)| *edit == binding.edit).map_or("none", |(name, _)| *name);
            entries.push(("edit", binding.chord.syntax(), name, binding.origin));
        }
        entries
    }

    fn find(&self, context: Context, chord: Chord) -> Option<Action> {
        let places = context.chain().iter();
        let mut found = places.filter_map(|place| self.binding(*place, chord));
        found.next().and_then(|binding| binding.action)
    }

    fn binding(&self, context: Context, chord: Chord) -> Option<&Binding> {
        self.bindings.iter().find(|binding| binding.context == context && binding.chord == chord)
    }
}

fn is_plain_motion(action: Action) -> bool {
    use Action::{Accept, Down, First, Last, Left, NextField, PageDown, PageUp, PreviousField, Right, Up};
    matches!(
        action,
        Up | Down | Left | Right | PageUp | PageDown | First | Last | Accept | NextField | PreviousField
    )
}

/// `1`, `2`, `3` as `1…3`, `Alt+1` to `Alt+9` as `Alt+1…9`; other keys stay as they are, behind it.
fn shorten_digits(keys: &[String]) -> Vec<String> {
    let mut digits: Vec<&String> = keys.iter().filter(|key| digit_of(key).is_some()).collect();
    digits.sort();
    let mut shown = match (digits.first(), digits.last().and_then(|key| digit_of(key))) {
        (Some(first), Some(last)) if digits.len() > 2 => vec![format!("{first}…{last}")],
        _ => digits.into_iter().cloned().collect(),
    };
    shown.extend(keys.iter().filter(|key| digit_of(key).is_none()).cloned());
    shown
}

/// The digit of a key, pressed with or without Alt.
fn digit_of(key: &str) -> Option<&str> {
    let digit = key.strip_prefix("Alt+").unwrap_or(key);
    (digit.len() == 1 && digit.bytes().all(|byte| byte.is_ascii_digit())).then_some(digit)
}

#[cfg(test)]
mod tests;
