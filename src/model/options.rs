//! What an agent lets the user choose: modes, models, config options, slash commands.

use serde::{Deserialize, Serialize};

use super::{ModeId, ModelId};

/// A session mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mode {
    pub id: ModeId,
    pub name: String,
    pub description: Option<String>,
}

/// The modes of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modes {
    /// The one in force.
    pub current: ModeId,
    /// All that can be chosen.
    pub available: Vec<Mode>,
}

/// A model of the legacy `models` list, which many agents still send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    pub id: ModelId,
    pub name: String,
    pub description: Option<String>,
}

/// The models of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Models {
    /// The one in force.
    pub current: ModelId,
    /// All that can be chosen.
    pub available: Vec<Model>,
}

/// A configuration option that the agent offers. Source: ACP v1 session-config-options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigOption {
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `mode`, `model`, `model_config`, `thought_level`, …: a hint for the place, never more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Kind and value.
    pub kind: ConfigKind,
}

/// Kind and value of an option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigKind {
    /// One of several.
    Select {
        /// The chosen value.
        current: String,
        /// All choices, in order, each with its group's name if it is in one.
        choices: Vec<ConfigChoice>,
    },
    /// On or off.
    Boolean {
        /// Whether it is on.
        current: bool,
    },
}

/// A value of a select option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigChoice {
    pub value: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The group's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// A value to be set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigValue {
    /// For a select.
    Text(String),
    /// For a boolean.
    Bool(bool),
}

/// What was chosen for a session, and is to hold when it is opened again. Kept on disk: names are a format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    Mode(ModeId),
    Model(ModelId),
    /// A config option, and its value.
    Option(String, ConfigValue),
}

/// A slash command; sent as prompt text `/name args`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlashCommand {
    /// Name without the slash.
    pub name: String,
    pub description: String,
    /// What to type behind it; `None` when it takes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
