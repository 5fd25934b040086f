//! The table of settings: name, description, type, and access to the value.
//!
//! The reader of the file, `parlor config`, the settings screen and the documentation use this table. Values with parts
//! (agents, MCP servers, folders, key bindings) have readers of their own.

mod rows;

pub use rows::rows;

use std::path::PathBuf;

use toml::de::{DeTable, DeValue};

use super::Config;
use super::nearest::advice;
use super::read::{Reader, Value};
use crate::model::{Applies, Fold, Limit, SandboxMode, SettingKind, SettingValue};

/// A setting. `get` and `set` use `None` for a value that is not set.
pub struct Setting {
    pub name: &'static str,
    pub group: &'static str,
    pub about: &'static str,
    pub kind: SettingKind,
    /// What applies if it is not set; empty if it has a default.
    pub unset: &'static str,
    pub applies: Applies,
    /// The value that lets agents do more.
    pub widening: Option<bool>,
    /// Whether the value is read like any other of its type.
    is_plain: bool,
    pub get: fn(&Config) -> Option<SettingValue>,
    pub set: fn(&mut Config, Option<SettingValue>),
}

/// The tables of the file, in the order of `parlor config`; the first is the top of the file.
pub const SECTIONS: [&str; 9] =
    ["", "callbacks", "policy", "sandbox", "ui", "fold", "handover", "sessions", "undo"];

/// The name of the list of rules, which is not a setting of the table.
pub const RULES: &str = "policy.rules";

/// The name of the section about the sandbox.
pub const SANDBOX_RULES: &str = "sandbox";

/// The name of the list of limits.
pub const BUDGET: &str = "budget";

const APPEARANCE: &str = "Appearance";
const INPUT: &str = "Keys and mouse";
const TOOL_CALLS: &str = "Tool calls";
const NOTIFICATIONS: &str = "Notifications";
const PERMISSIONS: &str = "Permissions";
const AGENTS: &str = "Agents";
const SESSIONS: &str = "Sessions";

const IMAGES: SettingKind = SettingKind::Word(&super::IMAGE_WAYS);
const NOTIFY: SettingKind = SettingKind::Word(&super::NOTIFY_WAYS);
const WIDTHS: SettingKind = SettingKind::Word(&super::WIDTHS);
const EDITING: SettingKind = SettingKind::Word(&super::EDITING_STYLES);
const SANDBOX: SettingKind = SettingKind::Word(&SandboxMode::WORDS);
const FOLD: SettingKind = SettingKind::Word(&["closed", "preview", "open"]);
const PRESET: SettingKind = SettingKind::Word(&["default", "emacs", "vim"]);

/// A field of the configuration that a setting reads and writes.
trait Field: Sized {
    fn save(&self) -> Option<SettingValue>;
    fn load(value: Option<SettingValue>) -> Option<Self>;
}

impl Field for bool {
    fn save(&self) -> Option<SettingValue> {
        Some(SettingValue::Flag(*self))
    }
    fn load(value: Option<SettingValue>) -> Option<Self> {
        if let Some(SettingValue::Flag(flag)) = value { Some(flag) } else { None }
    }
}

impl Field for String {
    fn save(&self) -> Option<SettingValue> {
        Some(SettingValue::Text(self.clone()))
    }
    fn load(value: Option<SettingValue>) -> Option<Self> {
        if let Some(SettingValue::Text(text)) = value { Some(text) } else { None }
    }
}

impl Field for Fold {
    fn save(&self) -> Option<SettingValue> {
        let word = match self {
            Self::Closed => "closed",
            Self::Preview => "preview",
            Self::Open => "open",
        };
        Some(SettingValue::Text(word.to_owned()))
    }
    fn load(value: Option<SettingValue>) -> Option<Self> {
        match String::load(value)?.as_str() {
            "closed" => Some(Self::Closed),
            "preview" => Some(Self::Preview),
            "open" => Some(Self::Open),
            _ => None,
        }
    }
}

impl Field for SandboxMode {
    fn save(&self) -> Option<SettingValue> {
        Some(SettingValue::Text(self.word().to_owned()))
    }
    fn load(value: Option<SettingValue>) -> Option<Self> {
        Self::of_word(&String::load(value)?)
    }
}

/// A list of ports, which only the configuration file can change.
impl Field for Vec<u16> {
    fn save(&self) -> Option<SettingValue> {
        let ports: Vec<String> = self.iter().map(u16::to_string).collect();
        Some(SettingValue::Text(if ports.is_empty() { "none".to_owned() } else { ports.join(", ") }))
    }
    fn load(value: Option<SettingValue>) -> Option<Self> {
        Some(String::load(value)?.split(", ").filter_map(|port| port.parse().ok()).collect())
    }
}

impl<T: Field> Field for Option<T> {
    fn save(&self) -> Option<SettingValue> {
        self.as_ref().and_then(Field::save)
    }
    fn load(value: Option<SettingValue>) -> Option<Self> {
        Some(value.and_then(|value| T::load(Some(value))))
    }
}

/// A list of folders, which only the configuration file can change.
impl Field for Vec<PathBuf> {
    fn save(&self) -> Option<SettingValue> {
        let paths: Vec<_> = self.iter().map(|path| path.to_string_lossy()).collect();
        (!paths.is_empty()).then(|| SettingValue::Text(paths.join(", ")))
    }
    fn load(value: Option<SettingValue>) -> Option<Self> {
        let Some(SettingValue::Text(text)) = value else { return Some(Self::new()) };
        Some(text.split(", ").map(PathBuf::from).collect())
    }
}

/// A list of limits, which only the configuration file can change.
impl Field for Vec<Limit> {
    fn save(&self) -> Option<SettingValue> {
        let limits: Vec<_> = self.iter().map(Limit::written).collect();
        (!limits.is_empty()).then(|| SettingValue::Text(limits.join(", ")))
    }
    fn load(value: Option<SettingValue>) -> Option<Self> {
        let Some(SettingValue::Text(text)) = value else { return Some(Self::new()) };
        text.split(", ").map(|text| Limit::parse(text).ok()).collect()
    }
}

macro_rules! number_fields {
    ($($type:ty)+) => {
        $(impl Field for $type {
            fn save(&self) -> Option<SettingValue> {
                Some(SettingValue::Number(u64::try_from(*self).unwrap_or(u64::MAX)))
            }
            fn load(value: Option<SettingValue>) -> Option<Self> {
                let Some(SettingValue::Number(number)) = value else { return None };
                Some(<$type>::try_from(number).unwrap_or(<$type>::MAX))
            }
        })+
    };
}

number_fields! { u32 u64 usize }

/// Makes the table from rows of name, group, kind, field, description and, in braces, further fields.
macro_rules! settings {
    ($(
        $name:expr, $group:ident, $kind:expr, $($field:ident).+ $([$index:literal])?, $about:literal
        $({ $($other:tt)+ })?;
    )+) => {
        &[$({
            let setting = Setting {
                name: $name,
                group: $group,
                about: $about,
                kind: $kind,
                unset: "",
                applies: Applies::Now,
                widening: None,
                is_plain: true,
                get: |config| config.$($field).+ $([$index])?.save(),
                set: |config, value| {
                    if let Some(value) = Field::load(value) {
                        config.$($field).+ $([$index])? = value;
                    }
                },
            };
            $(let setting = Setting { $($other)+, ..setting };)?
            setting
        }),+]
    };
}

const BY_CALL: &str = "depends on the tool call";

use SettingKind::{Flag, Number, Text, Theme};

/// All settings with a single value, in the order of the settings screen.
pub const SETTINGS: &[Setting] = settings! {
    "theme", APPEARANCE, Theme, theme,
        "Theme; `auto` is `dark` or `light` like the background of the terminal";
    "ui.images", APPEARANCE, IMAGES, images,
        "How images are shown: by a protocol of the terminal, as half blocks (`blocks`), or as a description (`off`)";
    "ui.code_line_numbers", APPEARANCE, Flag, code_line_numbers,
        "Number the lines of code blocks; numbers are never copied";
    "ui.reduced_motion", APPEARANCE, Flag, reduced_motion, "Disable animations";
    "ui.hyperlinks", APPEARANCE, Flag, hyperlinks,
        "Show links as terminal hyperlinks" { unset: "if the terminal is known to support them" };
    "ui.ambiguous_width", APPEARANCE, WIDTHS, ambiguous_width,
        "Columns of characters such as `·` and `→`, which are wide in some East Asian terminals; `auto` measures them at the start";
    "ui.plain", APPEARANCE, Flag, plain,
        "Plain-text mode instead of the screen" { applies: Applies::NextStart };
    "keys.preset", INPUT, PRESET, theme, "Default key bindings, before your own are applied" {
        is_plain: false,
        get: |config| Some(SettingValue::Text(config.keymap.preset().to_owned())),
        // A keymap is read as a whole.
        set: |_, _| {}
    };
    "ui.editing", INPUT, EDITING, editing, "Keys that edit the prompt";
    "ui.which_key_delay_ms", INPUT, Number(0), which_key_delay_ms,
        "Delay in milliseconds after which the keys that continue a sequence are listed";
    "ui.paste_lines", INPUT, Number(0), paste_lines,
        "Pasted texts of more lines, or of more than 2,000 characters, become a label; 0: only those of more than 10,000 lines";
    "ui.mouse", INPUT, Flag, mouse, "Capture the mouse; `false` leaves it to the terminal";
    "ui.copy_on_select", INPUT, Flag, copy_on_select,
        "Copy text selected with the mouse when the button is released; otherwise a key copies it";
    "editor", INPUT, Text, editor,
        "Command that opens files, with `{path}` and `{line}`" { unset: "$VISUAL, then $EDITOR, then `vi`" };
    "fold.read", TOOL_CALLS, FOLD, folds.kinds[0], "Reads of files: how much is shown" { unset: BY_CALL };
    "fold.edit", TOOL_CALLS, FOLD, folds.kinds[1], "Edits of files: how much is shown" { unset: BY_CALL };
    "fold.delete", TOOL_CALLS, FOLD, folds.kinds[2],
        "Deletions of files: how much is shown" { unset: BY_CALL };
    "fold.move", TOOL_CALLS, FOLD, folds.kinds[3], "Moved files: how much is shown" { unset: BY_CALL };
    "fold.search", TOOL_CALLS, FOLD, folds.kinds[4], "Searches: how much is shown" { unset: BY_CALL };
    "fold.run", TOOL_CALLS, FOLD, folds.kinds[5], "Commands: how much is shown" { unset: BY_CALL };
    "fold.think", TOOL_CALLS, FOLD, folds.kinds[6],
        "Reasoning of the agent as a tool call: how much is shown" { unset: BY_CALL };
    "fold.fetch", TOOL_CALLS, FOLD, folds.kinds[7], "Downloads: how much is shown" { unset: BY_CALL };
    "fold.mode", TOOL_CALLS, FOLD, folds.kinds[8],
        "Changes of the mode: how much is shown" { unset: BY_CALL };
    "fold.tool", TOOL_CALLS, FOLD, folds.kinds[9], "Other tool calls: how much is shown" { unset: BY_CALL };
    "fold.changes", TOOL_CALLS, FOLD, folds.changes,
        "Tool calls that change files, unless their kind has a rule";
    "fold.failed", TOOL_CALLS, FOLD, folds.failed, "Failed tool calls of any kind";
    "fold.open_up_to_lines", TOOL_CALLS, Number(0), folds.open_up_to_lines,
        "Expand results with up to this many lines; 0 disables the rule";
    "fold.closed_above_lines", TOOL_CALLS, Number(0), folds.closed_above_lines,
        "Collapse results with more than this many lines; 0 disables the rule";
    "fold.groups", TOOL_CALLS, Flag, folds.groups, "Show a run of reads and searches in one line";
    "ui.bell", NOTIFICATIONS, Flag, bell,
        "Ring the bell when another tab waits, or while the terminal does not have the focus";
    "ui.notify", NOTIFICATIONS, NOTIFY, notify,
        "Desktop notifications: `auto` through the terminal if it is known to support them, `system` without the terminal";
    "ui.title", NOTIFICATIONS, Flag, title, "Set the window title";
    "ui.progress", NOTIFICATIONS, Flag, progress,
        "Show progress in the tab or taskbar (OSC 9;4)" { unset: "if the terminal is known to support it" };
    "policy.ask_writes", PERMISSIONS, Flag, policy.ask_writes,
        "Ask about each write, also inside the folders of the session" { widening: Some(false) };
    "policy.hold_writes", PERMISSIONS, Flag, policy.hold_writes,
        "Hold what agents write through parlor until you have reviewed it" { widening: Some(false) };
    "policy.ask_commands", PERMISSIONS, Flag, policy.ask_commands,
        "Ask before commands run inside the folders of the session; commands of remote agents are always asked about"
        { widening: Some(false) };
    "policy.command_input", PERMISSIONS, Flag, policy.command_input,
        "Allow typing into the commands of agents, whose input is empty otherwise";
    "policy.check_secrets", PERMISSIONS, Flag, policy.check_secrets,
        "Ask before a prompt is sent that contains what looks like a secret" { widening: Some(false) };
    "sandbox.mode", PERMISSIONS, SANDBOX, sandbox.mode,
        "Run agents in a sandbox: `workspace` with what the system can enforce, `required` with all of it or not at all"
        { applies: Applies::Later };
    "sandbox.write", PERMISSIONS, SettingKind::File, sandbox.write,
        "More folders and files that agents in the sandbox can write" { is_plain: false, unset: "none", applies: Applies::Later };
    "sandbox.read", PERMISSIONS, SettingKind::File, sandbox.read,
        "Secrets that agents in the sandbox can read" { is_plain: false, unset: "none", applies: Applies::Later };
    "sandbox.ports", PERMISSIONS, SettingKind::File, sandbox.ports,
        "TCP ports that agents in the sandbox can connect to" { is_plain: false, unset: "all", applies: Applies::Later };
    "callbacks.fs_read", PERMISSIONS, Flag, callbacks.fs_read,
        "Offer agents to read files" { is_plain: false, applies: Applies::Later, widening: Some(true) };
    "callbacks.fs_write", PERMISSIONS, Flag, callbacks.fs_write,
        "Offer agents to write files" { is_plain: false, applies: Applies::Later, widening: Some(true) };
    "callbacks.terminal", PERMISSIONS, Flag, callbacks.terminal,
        "Offer agents to run commands" { is_plain: false, applies: Applies::Later, widening: Some(true) };
    BUDGET, PERMISSIONS, SettingKind::File, budget,
        "Limits for the time, tool calls, tokens or cost of a turn or a day" { is_plain: false, unset: "none" };
    "agent", AGENTS, Text, default_agent,
        "The agent to start with: configured, known, or `demo`"
        { unset: "chosen at the start", applies: Applies::NextStart };
    "registry", AGENTS, Text, registry,
        "The address of the registry of agents, or of a mirror; it is read only when you ask for it"
        { applies: Applies::NextStart };
    "handover.max_bytes", AGENTS, Number(1024), handover_bytes,
        "Maximum size of a handed-over conversation, in bytes";
    "sessions.warn_mib", SESSIONS, Number(0), sessions_warn_mib,
        "Size of all saved sessions in MiB from which parlor suggests pruning at startup; 0: never"
        { applies: Applies::NextStart };
    "undo.enabled", SESSIONS, Flag, undo.is_on,
        "Capture the files before and after each turn, so that /undo can restore them";
    "undo.off_in", SESSIONS, SettingKind::File, undo.off_in,
        "Folders whose files are not captured, with all folders in them" { is_plain: false, unset: "none" };
    "undo.network", SESSIONS, Flag, undo.allows_network,
        "Capture folders on network file systems, where it can take long";
    "undo.max_file_mib", SESSIONS, Number(1), undo.max_file_mib,
        "Size in MiB above which a file is not captured";
    "undo.max_store_mib", SESSIONS, Number(16), undo.max_store_mib,
        "Size in MiB of the snapshots of a folder above which the oldest are deleted";
    "undo.max_seconds", SESSIONS, Number(1), undo.max_seconds,
        "Time limit of a capture in seconds";
};

pub fn named(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

impl Setting {
    /// The table of the file, and the key in it.
    pub fn place(&self) -> (&'static str, &'static str) {
        self.name.rsplit_once('.').unwrap_or(("", self.name))
    }
}

pub fn in_section(section: &str) -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(move |setting| setting.place().0 == section)
}

/// Reads the values of all tables. Returns the names of invalid ones, which are unchanged.
pub(super) fn read(reader: &mut Reader<'_>, table: &DeTable<'_>, config: &mut Config) -> Vec<&'static str> {
    let mut invalid = Vec::new();
    for section in SECTIONS.into_iter().filter(|name| in_section(name).any(|setting| setting.is_plain)) {
        let values = if section.is_empty() {
            Some(table)
        } else {
            table.get(section).and_then(|value| reader.table(section, value))
        };
        let Some(values) = values else { continue };
        if !section.is_empty() {
            let more = (section == "policy").then_some("rules");
            let keys: Vec<&str> = in_section(section).map(|setting| setting.place().1).chain(more).collect();
            reader.unknown_keys(values, &format!("[{section}]"), &keys);
        }
        for setting in in_section(section).filter(|setting| setting.is_plain) {
            let Some(value) = values.get(setting.place().1) else { continue };
            match read_value(reader, setting, value) {
                Some(found) => (setting.set)(config, Some(found)),
                None => invalid.push(setting.name),
            }
        }
    }
    invalid
}

fn read_value(reader: &mut Reader<'_>, setting: &Setting, value: &Value<'_>) -> Option<SettingValue> {
    let name = setting.name;
    match setting.kind {
        SettingKind::Flag => reader.boolean(name, value).map(SettingValue::Flag),
        SettingKind::Number(min) => reader.number(name, value, min).map(SettingValue::Number),
        SettingKind::Word(choices) => read_word(reader, setting, choices, value).map(SettingValue::Text),
        _ => reader.string(name, value).map(SettingValue::Text),
    }
}

/// Reads one of several words, or adds a problem.
fn read_word(
    reader: &mut Reader<'_>,
    setting: &Setting,
    choices: &[&'static str],
    value: &Value<'_>,
) -> Option<String> {
    let found = match value.get_ref() {
        // The former values of `notify`.
        DeValue::Boolean(is_on) if setting.name == "ui.notify" => {
            reader.taken(setting.name, value);
            return Some(if *is_on { "terminal" } else { "off" }.to_owned());
        }
        DeValue::Integer(number) if choices.contains(&number.as_str()) => {
            reader.taken(setting.name, value);
            number.as_str().to_owned()
        }
        _ => reader.string(setting.name, value)?,
    };
    if choices.contains(&found.as_str()) {
        return Some(found);
    }
    let otherwise = format!("use one of {}", choices.join(", "));
    let fix = advice(&found, choices.iter().copied(), &otherwise);
    let key = setting.place().1;
    reader.problem(&value.span(), format!("unknown value `{found}` for `{key}`"), fix);
    None
}

/// The names of settings whose values differ.
pub fn changed(old: &Config, new: &Config) -> Vec<&'static str> {
    let differs = |setting: &&Setting| (setting.get)(old) != (setting.get)(new);
    let rules = (old.rules != new.rules).then_some(RULES);
    SETTINGS.iter().filter(differs).map(|setting| setting.name).chain(rules).collect()
}

/// Sets the values that let agents do more back to those of `old`, except for one that the user agreed to. Returns their
/// names.
pub fn hold_back(old: &Config, new: &mut Config, except: Option<&str>) -> Vec<&'static str> {
    let mut held = Vec::new();
    for setting in SETTINGS.iter().filter(|setting| Some(setting.name) != except) {
        let widening = setting.widening.map(SettingValue::Flag);
        if widening.is_some() && (setting.get)(new) == widening && (setting.get)(old) != widening {
            keep(old, new, setting.name);
            held.push(setting.name);
        }
    }
    if except != Some(RULES) && !new.rules.is_narrower_than(&old.rules) {
        new.rules = old.rules.narrowed_by(&new.rules);
        held.push(RULES);
    }
    if except != Some("sandbox.mode") && new.sandbox.is_wider_than(&old.sandbox) {
        new.sandbox.clone_from(&old.sandbox);
        held.push(SANDBOX_RULES);
    }
    let missing = old.budget.iter().filter(|limit| !new.budget.contains(limit));
    let missing: Vec<Limit> = missing.filter(|_| except != Some(BUDGET)).cloned().collect();
    if !missing.is_empty() {
        new.budget.extend(missing);
        held.push(BUDGET);
    }
    held
}

/// Sets a value, with its origin, to that of `old`.
pub fn keep(old: &Config, new: &mut Config, name: &str) {
    let Some(setting) = named(name) else { return };
    (setting.set)(new, (setting.get)(old));
    new.origins.remove(name);
    new.origins.extend(old.origins.get(name).map(|origin| (name.to_owned(), *origin)));
}
