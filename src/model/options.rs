//! Choices that an agent offers: modes, models, config options, slash commands.

use serde::{Deserialize, Serialize};

use super::{ModeId, ModelId};

/// A session mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mode {
    pub id: ModeId,
    pub name: String,
    pub description: Option<String>,
}

/// The modes of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Modes {
    pub current: ModeId,
    pub available: Vec<Mode>,
}

/// A model of the legacy `models` list, which many agents still send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Model {
    pub id: ModelId,
    pub name: String,
    pub description: Option<String>,
}

/// The models of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Models {
    pub current: ModelId,
    pub available: Vec<Model>,
}

/// A configuration option that the agent offers. Source: ACP v1 session-config-options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigOption {
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `mode`, `model`, `model_config`, `thought_level`, …: only a hint where to show the option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    pub kind: ConfigKind,
}

/// The type of an option, with its current value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigKind {
    Select {
        current: String,
        /// All choices, in order.
        choices: Vec<ConfigChoice>,
    },
    Boolean {
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// A new value of an option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigValue {
    Text(String),
    Bool(bool),
}

/// A choice of the user that is restored when the session is resumed. Saved on disk: names are a format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    Mode(ModeId),
    Model(ModelId),
    Option(String, ConfigValue),
}

/// A slash command; sent as prompt text `/name args`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlashCommand {
    /// Name without the slash.
    pub name: String,
    pub description: String,
    /// Placeholder for the arguments; `None` if it accepts none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
