//! What limits of the user know of a turn, and of the day.

use std::time::Instant;

use crate::model::{Limit, Used};

/// The limits of the running turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnBudget {
    /// Number of tool calls of the turn, with those of its subagents.
    pub calls: u64,
    /// The limits that are near, and known to the user.
    pub(in crate::core) warned: Vec<Limit>,
    /// The limits in spite of which the user goes on.
    pub(in crate::core) passed: Vec<Limit>,
    /// The limit that is reached, until the user decides.
    pub paused: Option<Limit>,
}

/// The limits of today.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DayBudget {
    /// What ended turns used, of all sessions.
    pub used: Used,
    /// The start of the day that the store has counted, in Unix milliseconds.
    pub(in crate::core) began_ms: Option<i64>,
    pub(in crate::core) warned: Vec<Limit>,
    pub(in crate::core) passed: Vec<Limit>,
    /// When limits of time are compared again.
    pub(in crate::core) due: Option<Instant>,
}
