//! Settings of the configuration, as they are listed and changed on the screen.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingValue {
    Flag(bool),
    Number(u64),
    Text(String),
}

impl SettingValue {
    /// The value as text: `true`, `400`, `auto`.
    pub fn text(&self) -> String {
        match self {
            Self::Flag(flag) => flag.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// The values that a setting accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// `true` or `false`.
    Flag,
    Word(&'static [&'static str]),
    Number(u64),
    /// Any text that is not empty.
    Text,
    Theme,
    Keys,
    File,
}

/// When a changed setting applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    Now,
    /// To agents and sessions that are started or opened later.
    Later,
    /// After parlor was started again.
    NextStart,
}

/// A setting with its current value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRow {
    /// The dotted name: `ui.mouse`.
    pub name: String,
    pub group: &'static str,
    pub about: String,
    pub kind: SettingKind,
    pub applies: Applies,
    /// The value; `None`: it is not set, and has no default.
    pub value: Option<SettingValue>,
    pub shown: String,
    /// What applies if it is not set; empty if it always has a value.
    pub unset: &'static str,
    /// Where the value comes from: `default`, `config.toml:12`.
    pub origin: String,
    /// Whether the project sets another value, which is used from the next start on.
    pub is_overridden: bool,
    pub is_default: bool,
    pub line: Option<usize>,
    /// The value that lets agents do more.
    pub widening: Option<bool>,
}

impl SettingRow {
    /// Whether this value lets agents do more than the current one.
    pub fn widens(&self, value: &SettingValue) -> bool {
        self.widening.is_some_and(|widening| *value == SettingValue::Flag(widening))
            && self.value.as_ref() != Some(value)
    }
}

/// An action with its keys in a part of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingRow {
    /// The name of the table in `[keys]`: `main`.
    pub context: &'static str,
    pub title: &'static str,
    pub action: &'static str,
    pub text: &'static str,
    /// The keys for display: `Ctrl+P`.
    pub labels: Vec<String>,
    /// The keys as written in the configuration: `ctrl+p`.
    pub keys: Vec<String>,
    pub is_changed: bool,
}

/// A change of the configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingChange {
    /// Sets a value by its dotted name; `None` removes it.
    Value { name: String, value: Option<SettingValue> },
    /// Binds exactly these keys to an action; `None` restores the defaults.
    Keys { context: &'static str, action: &'static str, keys: Option<Vec<String>> },
}

impl SettingChange {
    pub fn name(&self) -> &str {
        match self {
            Self::Value { name, .. } => name,
            Self::Keys { action, .. } => action,
        }
    }
}

/// Why the configuration is read while parlor runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigJob {
    /// The file or a theme may have changed. A value that lets agents do more is reported and not applied.
    Reread,
    Accept,
    UseProject,
    /// The user changes a value, which is written to the file.
    Change(SettingChange),
}
