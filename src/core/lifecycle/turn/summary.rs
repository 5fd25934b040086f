//! What is recorded and shown about a turn that has ended.

use std::time::Duration;

use crate::core::{Item, ItemBody, Session, TurnEnd};
use crate::model::{Cost, StopReason, TurnOutcome, TurnUsage};

pub(super) fn outcome(
    end: Option<&TurnEnd>,
    usage: Option<TurnUsage>,
    took: Duration,
    cost: Option<Cost>,
) -> TurnOutcome {
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    match end.cloned() {
        None => TurnOutcome::Stopped { reason: StopReason::EndTurn, usage, took_ms, cost },
        Some(TurnEnd::Stopped { reason, usage, .. }) => TurnOutcome::Stopped { reason, usage, took_ms, cost },
        Some(TurnEnd::Failed { error, fault }) => TurnOutcome::Failed { error, fault, took_ms, cost },
        Some(TurnEnd::AgentDied { cause, stderr_tail }) => {
            TurnOutcome::AgentDied { cause, stderr_tail, took_ms, cost }
        }
    }
}

/// The session's cost before a turn; 0 before its first turn.
pub(super) fn cost_so_far(session: &Session) -> Option<Cost> {
    match &session.usage {
        Some(usage) => usage.cost.clone(),
        None if session.turn_count == 0 => Some(Cost { amount: 0.0, currency: String::new() }),
        None => None,
    }
}

/// The cost of the turn that ends.
pub(super) fn cost_of_turn(session: &mut Session) -> Option<Cost> {
    let cost = session.cost_of_turn();
    session.cost_before = None;
    cost
}

/// Whether nothing visible followed the prompt.
pub(super) fn is_unanswered(session: &Session) -> bool {
    let is_typed = |item: &Item| matches!(&item.body, ItemBody::Tool(call) if call.is_typed());
    let mut items = session.transcript.items().iter().rev();
    let last = items.find(|item| !item.is_hidden() && !is_typed(item));
    matches!(last.map(|item| &item.body), Some(ItemBody::Message(message)) if message.is_local)
}
