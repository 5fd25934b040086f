//! Plans.

use serde::{Deserialize, Serialize};

use super::PlanId;

/// The body of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanBody {
    /// A list of steps.
    Entries(Vec<PlanEntry>),
    /// A Markdown text.
    Markdown(String),
    /// A file that holds the plan.
    File(String),
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEntry {
    /// What is to be done.
    pub content: String,
    /// How much it matters.
    pub priority: PlanPriority,
    /// How far it is.
    pub status: PlanStatus,
}

/// Priority of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanPriority {
    High,
    /// Medium, also when the agent says nothing.
    #[default]
    Medium,
    Low,
}

/// Status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Being done.
    InProgress,
    Completed,
}

/// A plan with its id; `None` is the one plan of v1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<PlanId>,
    pub body: PlanBody,
}
