//! Begins and closes turns within a session.

use std::time::Instant;

use crate::model::ToolStatus;

use super::{messages, tools};
use crate::app::{ItemBody, Session, TurnEnd};

/// Counts a new turn, ours or one of a replayed history. Ids of tool calls may come again in it; updates for
/// the turns before still find theirs.
pub(in crate::app) fn next_turn(session: &mut Session, now: Instant) {
    messages::close(session, now);
    tools::close_open(session, ToolStatus::Completed, now);
    session.turn_count += 1;
    session.index.begin_turn();
    session.loose.clear();
    // What was approved once is over.
    session.permissions.begin_turn();
}

/// Closes what a turn left open, and says how it ended unless that was well.
pub(in crate::app) fn close_items(session: &mut Session, end: Option<TurnEnd>, now: Instant) {
    messages::close(session, now);
    // An agent that ends its turn well is done with its calls, also with those that it never reported on.
    let status = if end.is_none() { ToolStatus::Completed } else { ToolStatus::Cancelled };
    tools::close_open(session, status, now);
    if let Some(end) = end {
        session.transcript.push(session.turn_count, ItemBody::TurnEnd(end));
    }
}
