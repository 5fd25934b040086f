//! Starts and closes turns of a session.

use std::time::Instant;

use crate::model::ToolStatus;

use super::{messages, tools};
use crate::app::{ItemBody, Session, TurnEnd};

/// Starts a turn, live or of a replayed history. Ids of tool calls may be reused in it; updates of earlier turns still
/// find theirs.
pub(in crate::app) fn next_turn(session: &mut Session, now: Instant) {
    messages::close(session, now);
    tools::close_open(session, ToolStatus::Completed, now);
    session.turn_count += 1;
    session.index.begin_turn();
    session.loose.clear();
    // Approvals for one turn have expired.
    session.permissions.begin_turn();
}

/// Closes the open items of a turn, and adds its end unless it was successful.
pub(in crate::app) fn close_items(session: &mut Session, end: Option<TurnEnd>, now: Instant) {
    messages::close(session, now);
    // An agent that ends its turn successfully has completed its calls, including those without a reported end.
    let status = if end.is_none() { ToolStatus::Completed } else { ToolStatus::Cancelled };
    tools::close_open(session, status, now);
    if let Some(end) = end {
        session.transcript.push(session.turn_count, ItemBody::TurnEnd(end));
    }
}
