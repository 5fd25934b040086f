//! Key bindings: maps keys in the focused context to an [`Action`] or a [`LineEdit`], and lists the keys of an
//! action for help, hints and the palette.
//!
//! The defaults are in the embedded `keymap.toml`; `[keys.CONTEXT]` tables of the configuration change them.
//! `ui` determines the focused context and collects the keys of a sequence, and `core` runs the actions.
//!
//! Invariants: no key is named elsewhere; an invalid binding is reported and does not affect the others; within
//! a context, no bound key also starts a sequence, so that no timeout is needed to distinguish them.

pub mod actions;
pub mod chord;
mod merge;
pub mod sequence;
pub mod typed;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use crossterm::event::KeyEvent;

use self::actions::{TASKS, all, info, name_of};
use self::chord::Chord;
use self::sequence::Sequence;
use super::Origin;
use super::read::Reader;
use crate::model::{Action, BindingRow, LineEdit, PaletteCommand};

pub const DEFAULTS: &str = include_str!("keymap/keymap.toml");

/// Changes of the defaults, by the name in `keys.preset`.
pub const PRESETS: &[(&str, &str)] = &[
    ("default", ""),
    ("emacs", include_str!("keymap/emacs.toml")),
    ("vim", include_str!("keymap/vim.toml")),
];

/// The focused part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    Main,
    /// `Main` while the prompt is empty; unbound keys are looked up in `Main`.
    EmptyPrompt,
    /// Editing the prompt: keys that `Main` does not bind.
    Composer,
    /// `Main` directly after deleted text was inserted; unbound keys are looked up in `Main`.
    AfterYank,
    /// The transcript while it has the focus; unbound keys are looked up in `Main`.
    Browse,
    /// A terminal that keys are typed into: unbound keys go to its command, also those of `Global`.
    Terminal,
    Search,
    /// A list with a filter: typing keys edit the filter.
    List,
    /// The list of sessions: typing keys edit its filter or search.
    Sessions,
    Permission,
    Choice,
    /// A form of the agent. In a text field, typing keys and the horizontal arrows edit the text: routing
    /// calls [`Keymap::edit`] first.
    Form,
    /// Help, log and connection details; typing keys edit the filter, if there is one.
    Text,
    /// A single-line text input.
    Line,
    Queue,
    /// Text that is selected with the mouse; unbound keys are looked up in `Main`.
    Selection,
    Changes,
    /// The files that an undo would restore; unbound keys are looked up in `Changes`.
    Restore,
    /// The review of changes; unbound keys are looked up in `Changes`.
    Review,
    /// Bindings for all contexts, looked up last.
    Global,
}

impl Context {
    /// All contexts, in the order of the help.
    pub const ALL: &'static [Self] = &[
        Self::Main,
        Self::EmptyPrompt,
        Self::Composer,
        Self::AfterYank,
        Self::Selection,
        Self::Browse,
        Self::Terminal,
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
        Self::Restore,
        Self::Review,
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|context| context.name() == name).copied()
    }

    /// The name in `[keys.NAME]`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::EmptyPrompt => "empty-prompt",
            Self::Composer => "composer",
            Self::AfterYank => "after-yank",
            Self::Browse => "browse",
            Self::Terminal => "terminal",
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
            Self::Restore => "restore",
            Self::Review => "review",
            Self::Global => "global",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Main => "Prompt and transcript",
            Self::EmptyPrompt => "Empty prompt",
            Self::Composer => "Prompt text",
            Self::AfterYank => "After inserting deleted text",
            Self::Browse => "Browsing the transcript",
            Self::Terminal => "Typing into a terminal",
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
            Self::Restore => "Undo and redo of files",
            Self::Review => "Review of changes",
            Self::Global => "Global",
        }
    }

    /// The contexts in which a key is looked up, in order.
    fn chain(self) -> &'static [Self] {
        match self {
            Self::Main => &[Self::Main, Self::Composer, Self::Global],
            Self::EmptyPrompt => &[Self::EmptyPrompt, Self::Main, Self::Composer, Self::Global],
            Self::Composer => &[Self::Composer],
            Self::AfterYank => &[Self::AfterYank, Self::Main, Self::Composer, Self::Global],
            Self::Browse => &[Self::Browse, Self::Main, Self::Global],
            Self::Terminal => &[Self::Terminal],
            Self::Search => &[Self::Search, Self::Global],
            Self::List => &[Self::List, Self::Global],
            Self::Sessions => &[Self::Sessions, Self::Global],
            Self::Permission => &[Self::Permission, Self::Global],
            Self::Choice => &[Self::Choice, Self::Global],
            Self::Form => &[Self::Form, Self::Global],
            Self::Text => &[Self::Text, Self::Global],
            Self::Line => &[Self::Line, Self::Global],
            Self::Queue => &[Self::Queue, Self::Global],
            // Routing looks it up in `Main` itself.
            Self::Selection => &[Self::Selection],
            Self::Changes => &[Self::Changes, Self::Global],
            Self::Restore => &[Self::Restore, Self::Changes, Self::Global],
            Self::Review => &[Self::Review, Self::Changes, Self::Global],
            Self::Global => &[Self::Global],
        }
    }

    /// Whether typing keys must not be bound here.
    fn is_for_typing(self) -> bool {
        matches!(
            self,
            Self::Main
                | Self::Composer
                | Self::Terminal
                | Self::AfterYank
                | Self::Search
                | Self::List
                | Self::Sessions
                | Self::Text
                | Self::Line
                | Self::Global
        )
    }

    /// Whether a sequence may start with a key that types a character: no text is ever typed here, or text
    /// fields get the key first.
    fn allows_text_prefix(self) -> bool {
        matches!(self, Self::Browse | Self::Form | Self::Queue | Self::Changes | Self::Restore | Self::Review)
    }
}

/// A key binding of a context.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    pub keys: Sequence,
    /// The action; `None` disables the key, also in later contexts of the chain.
    pub action: Option<Action>,
    pub origin: Origin,
}

/// What keys are bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    Action(Action),
    /// The start of one or more sequences.
    Prefix,
    Unbound,
}

/// A key that continues a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    pub key: String,
    /// The action; `None` if more keys follow.
    pub action: Option<Action>,
}

#[derive(Debug, Clone, PartialEq)]
struct EditBinding {
    chord: Chord,
    edit: LineEdit,
    origin: Origin,
}

/// All key bindings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Keymap {
    preset: &'static str,
    bindings: BTreeMap<Context, Vec<Binding>>,
    edits: Vec<EditBinding>,
    /// Labels of the keys per context and action, cached because hints need them in each frame.
    labels: Arc<HashMap<(Context, Action), Vec<String>>>,
}

/// A row of the help: an action with its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelpRow {
    /// The heading: a task, or the title of the context.
    pub title: &'static str,
    /// The action; numbered choices share one row under the first.
    pub action: Action,
    /// Labels of its keys: `Ctrl+P`.
    pub keys: Vec<String>,
    pub text: &'static str,
}

/// Text edits that can be bound, by name.
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
    /// The default bindings of `keymap.toml`, which is parsed once.
    pub fn defaults() -> Self {
        static PARSED: LazyLock<Keymap> = LazyLock::new(|| {
            let mut keymap = Keymap { preset: "default", ..Keymap::default() };
            keymap.merge_embedded(DEFAULTS);
            keymap
        });
        PARSED.clone()
    }

    pub fn of_preset(name: &str) -> Self {
        let mut keymap = Self::defaults();
        if let Some((known, text)) = PRESETS.iter().find(|(known, _)| *known == name) {
            keymap.preset = known;
            keymap.merge_embedded(text);
        }
        keymap
    }

    pub fn preset(&self) -> &'static str {
        self.preset
    }

    fn merge_embedded(&mut self, text: &str) {
        let (mut reader, table) = Reader::parse(Path::new("keymap.toml"), text);
        if let Some(keys) = table.get_ref().get("keys").and_then(|keys| keys.get_ref().as_table()) {
            self.merge(&mut reader, keys, |_| Origin::Default);
        }
    }

    /// The action of a key press in a context. Key releases have none.
    pub fn lookup(&self, context: Context, key: &KeyEvent) -> Option<Action> {
        match self.resolve(context, &[Chord::of(key)?]) {
            Lookup::Action(action) => Some(action),
            Lookup::Prefix | Lookup::Unbound => None,
        }
    }

    /// What keys, pressed one after the other, are bound to in a context. The first context of the chain that
    /// binds them, or a sequence that starts with them, decides.
    pub fn resolve(&self, context: Context, keys: &[Chord]) -> Lookup {
        context
            .chain()
            .iter()
            .find_map(|location| self.resolve_in(*location, keys))
            .unwrap_or(Lookup::Unbound)
    }

    /// As [`Self::resolve`], without later contexts.
    fn resolve_in(&self, location: Context, keys: &[Chord]) -> Option<Lookup> {
        self.of(location).iter().find_map(|binding| {
            if binding.keys.chords() == keys {
                Some(binding.action.map_or(Lookup::Unbound, Lookup::Action))
            } else {
                (binding.action.is_some() && binding.keys.continues(keys)).then_some(Lookup::Prefix)
            }
        })
    }

    /// The keys that continue a sequence in a context: commands first, each in the order of letters and other keys.
    /// Numbered keys are one entry.
    pub fn continuations(&self, context: Context, prefix: &[Chord]) -> Vec<Continuation> {
        let mut found: Vec<Continuation> = Vec::new();
        let mut taken = HashSet::new();
        let bindings = context.chain().iter().flat_map(|location| self.of(*location));
        for keys in bindings.map(|binding| &binding.keys).filter(|keys| keys.continues(prefix)) {
            let Some(next) = keys.chords().get(prefix.len()).filter(|next| taken.insert(**next)) else {
                continue;
            };
            let all: Vec<Chord> = prefix.iter().chain([next]).copied().collect();
            let action = match self.resolve(context, &all) {
                Lookup::Action(action) => Some(first_of_numbered(action)),
                Lookup::Prefix => None,
                Lookup::Unbound => continue,
            };
            let same = found.iter_mut().find(|known| action.is_some() && known.action == action);
            match same.filter(|known| digit_of(&known.key).is_some()).zip(digit_of(&next.label())) {
                Some((known, digit)) => {
                    let first = known.key.split('…').next().unwrap_or_default();
                    known.key = format!("{first}…{digit}");
                }
                None => found.push(Continuation { key: next.label(), action }),
            }
        }
        let is_command =
            |action: Option<Action>| action.and_then(info).is_none_or(|info| info.group.is_some());
        found.sort_by_cached_key(|next| {
            let is_letter = next.key.chars().count() == 1 && next.key.chars().all(char::is_alphabetic);
            (!is_command(next.action), !is_letter, next.key.to_lowercase(), next.key.clone())
        });
        found
    }

    /// The edit of a key press in a text field, including typed text.
    pub fn edit(&self, key: &KeyEvent) -> Option<LineEdit> {
        let chord = Chord::of(key)?;
        let bound = self.edits.iter().find(|binding| binding.chord == chord);
        bound
            .map(|binding| binding.edit.clone())
            .or_else(|| chord.typed().map(|text| LineEdit::Insert(text.into())))
    }

    /// Labels of an action's keys in a context, those of the context itself first.
    pub fn keys_for(&self, context: Context, action: Action) -> &[String] {
        self.labels.get(&(context, action)).map(Vec::as_slice).unwrap_or_default()
    }

    fn of(&self, context: Context) -> &[Binding] {
        self.bindings.get(&context).map(Vec::as_slice).unwrap_or_default()
    }

    /// Rebuilds the cached labels from all bindings.
    fn label(&mut self) {
        let room = 4 * self.bindings.values().flatten().count();
        let mut labels: HashMap<(Context, Action), Vec<String>> = HashMap::with_capacity(room);
        for context in Context::ALL {
            let mut taken = HashSet::new();
            for location in context.chain() {
                for binding in self.of(*location) {
                    // The first context of the chain that binds a key, or a prefix of it, wins.
                    let chords = binding.keys.chords();
                    let is_reached = |len| {
                        let before = chords.get(..len).unwrap_or_default();
                        self.resolve(*context, before) == Lookup::Prefix
                    };
                    if let (true, Some(action)) = (taken.insert(&binding.keys), binding.action)
                        && (1..chords.len()).all(is_reached)
                    {
                        labels.entry((*context, action)).or_default().push(binding.keys.label());
                    }
                }
            }
        }
        self.labels = Arc::new(labels);
    }

    /// All bindings: those of the prompt and the transcript by task, and those of other contexts after them.
    pub fn help(&self) -> Vec<HelpRow> {
        let mut rows: Vec<(usize, HelpRow)> = Vec::new();
        for (location, context) in Context::ALL.iter().enumerate() {
            for binding in self.of(*context) {
                let Some(info) = binding.action.and_then(info) else { continue };
                let key = binding.keys.label();
                let action = first_of_numbered(info.action);
                let (order, title) = match context {
                    Context::Main | Context::Global => info.task(),
                    Context::Composer if info.group.is_some() => info.task(),
                    other => (TASKS + location, other.title()),
                };
                match rows.iter_mut().find(|(at, row)| *at == order && row.action == action) {
                    Some((_, row)) => row.keys.push(key),
                    None => rows.push((order, HelpRow { title, action, keys: vec![key], text: info.text })),
                }
            }
        }
        rows.sort_by_key(|(order, _)| *order);
        let mut rows: Vec<HelpRow> = rows.into_iter().map(|(_, row)| row).collect();
        let is_numbered = |row: &&mut HelpRow| matches!(row.action, Action::Choose(_) | Action::ShowTab(_));
        for row in rows.iter_mut().filter(is_numbered) {
            row.keys = shorten_digits(&row.keys);
        }
        rows
    }

    pub fn palette(&self) -> Vec<PaletteCommand> {
        all()
            .filter_map(|info| {
                let keys = [Context::Main, Context::EmptyPrompt]
                    .map(|location| self.keys_for(location, info.action));
                Some(PaletteCommand {
                    action: info.action,
                    text: info.text.to_owned(),
                    keys: keys.concat().first().cloned().unwrap_or_default(),
                    group: info.group?,
                    synonyms: info.synonyms,
                })
            })
            .collect()
    }

    /// The help as a Markdown table for the documentation, without the keys that all dialogs share: arrows,
    /// page keys, Home, End, Enter, Tab.
    pub fn markdown(&self) -> String {
        let mut text = "| Task or place | Keys | What |\n| --- | --- | --- |\n".to_owned();
        let mut location = None;
        for row in self.help().into_iter().filter(|row| !is_plain_motion(row.action)) {
            let title = if location == Some(row.title) { "" } else { row.title };
            location = Some(row.title);
            let keys: Vec<String> = row.keys.iter().map(|key| format!("`{key}`")).collect();
            let _ = writeln!(text, "| {title} | {} | {} |", keys.join(" "), row.text);
        }
        text
    }

    fn own_keys(&self, context: Context, action: Action) -> impl Iterator<Item = &Sequence> {
        self.of(context)
            .iter()
            .filter(move |binding| binding.action == Some(action))
            .map(|binding| &binding.keys)
    }

    /// Actions with their keys, for the list of bindings: in each context those that it binds, and in the first one the
    /// commands without a key. Numbered actions are changed in the file only.
    pub fn binding_rows(&self) -> Vec<BindingRow> {
        let defaults = Self::of_preset(self.preset);
        let bound: HashSet<Action> =
            self.bindings.values().flatten().filter_map(|binding| binding.action).collect();
        let mut rows = Vec::new();
        for context in Context::ALL {
            for info in all().filter(|info| !matches!(info.action, Action::Choose(_) | Action::ShowTab(_))) {
                let keys: Vec<&Sequence> = self.own_keys(*context, info.action).collect();
                let is_changed = !defaults.own_keys(*context, info.action).eq(keys.iter().copied());
                let is_main = *context == Context::Main;
                let is_command = is_main && info.group.is_some() && !bound.contains(&info.action);
                if keys.is_empty() && !is_changed && !is_command {
                    continue;
                }
                rows.push(BindingRow {
                    context: context.name(),
                    title: context.title(),
                    action: info.name,
                    text: info.text,
                    labels: keys.iter().map(|keys| keys.label()).collect(),
                    keys: keys.iter().map(|keys| keys.syntax()).collect(),
                    is_changed,
                });
            }
        }
        rows
    }

    /// The keys among these that already have a meaning in a context, and that meaning; `None` if they are free.
    pub fn taken_by(&self, context: Context, keys: &Sequence) -> Option<(String, String)> {
        // Keys of the prompt take precedence over these.
        let is_after = matches!(context, Context::Global | Context::Composer);
        let context = if is_after { Context::Main } else { context };
        let chords = keys.chords();
        (1..=chords.len()).find_map(|count| {
            let keys = chords.get(..count)?;
            let meaning = match self.resolve(context, keys) {
                Lookup::Action(action) => info(action).map_or("another action", |info| info.text).to_owned(),
                Lookup::Prefix if count == chords.len() => {
                    format!("sequences that start with {}", sequence::label(keys))
                }
                Lookup::Prefix | Lookup::Unbound => return None,
            };
            Some((sequence::label(keys), meaning))
        })
    }

    /// All bindings for the configuration: context, key, action (or `none`), origin.
    pub fn entries(&self) -> Vec<(&'static str, String, &'static str, Origin)> {
        let mut entries = Vec::new();
        for context in Context::ALL {
            for binding in self.of(*context) {
                let name = binding.action.and_then(name_of).unwrap_or("none");
                entries.push((context.name(), binding.keys.syntax(), name, binding.origin));
            }
        }
        for binding in &self.edits {
            let name = EDITS.iter().find(|(_, edit)| *edit == binding.edit).map_or("none", |(name, _)| *name);
            entries.push(("edit", binding.chord.syntax(), name, binding.origin));
        }
        entries
    }
}

/// The first of the numbered actions that share a row of the help.
fn first_of_numbered(action: Action) -> Action {
    match action {
        Action::Choose(_) => Action::Choose(1),
        Action::ShowTab(_) => Action::ShowTab(1),
        other => other,
    }
}

fn is_plain_motion(action: Action) -> bool {
    use Action::{Accept, Down, First, Last, Left, NextField, PageDown, PageUp, PreviousField, Right, Up};
    matches!(
        action,
        Up | Down | Left | Right | PageUp | PageDown | First | Last | Accept | NextField | PreviousField
    )
}

/// Shortens `1`, `2`, `3` to `1…3`, and `Alt+1` to `Alt+9` to `Alt+1…9`; other keys follow unchanged.
fn shorten_digits(keys: &[String]) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut others = Vec::new();
    for key in keys {
        let Some(digit) = digit_of(key) else {
            others.push(key.clone());
            continue;
        };
        let before = key.strip_suffix(digit).unwrap_or_default();
        match groups.iter_mut().find(|(known, _)| *known == before) {
            Some((_, digits)) => digits.push(digit),
            None => groups.push((before, vec![digit])),
        }
    }
    let mut shown = Vec::new();
    for (before, mut digits) in groups {
        digits.sort_unstable();
        match digits.as_slice() {
            [first, .., last] if digits.len() > 2 => shown.push(format!("{before}{first}…{last}")),
            _ => shown.extend(digits.iter().map(|digit| format!("{before}{digit}"))),
        }
    }
    shown.extend(others);
    shown
}

/// The digit that a key or sequence ends with, alone or after Alt.
fn digit_of(key: &str) -> Option<&str> {
    let last = key.rsplit(' ').next().unwrap_or(key);
    let digit = last.rsplit(['+', '…']).next().unwrap_or(last);
    (digit.len() == 1 && digit.bytes().all(|byte| byte.is_ascii_digit())).then_some(digit)
}

#[cfg(test)]
mod tests;
