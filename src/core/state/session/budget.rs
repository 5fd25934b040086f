//! The state of the user's limits, for a turn and for the day.

use std::time::Instant;

use super::Session;
use crate::model::{Cost, Limit, Used};

/// The limits of the running turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnBudget {
    /// Number of tool calls of the turn, with those of its subagents.
    pub calls: u64,
    /// The limits that the user was warned about.
    pub(in crate::core) warned: Vec<Limit>,
    /// The limits that the user chose to ignore.
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

impl Session {
    /// The cost of the running turn so far. Agents report the cost of the session.
    pub(in crate::core) fn cost_of_turn(&self) -> Option<Cost> {
        let before = self.cost_before.as_ref()?;
        let now = self.usage.as_ref()?.cost.as_ref()?;
        let is_same_unit = before.currency.is_empty() || before.currency == now.currency;
        let amount = now.amount - before.amount;
        (is_same_unit && amount > 0.0).then(|| Cost { amount, currency: now.currency.clone() })
    }
}
