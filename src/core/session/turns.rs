//! Starts and closes turns of a session.

use std::time::Instant;

use crate::model::{ItemId, Role, ToolStatus};

use super::{messages, tools};
use crate::core::state::texts;
use crate::core::{Item, ItemBody, MessagePart, Session, TurnEnd, TurnSummary};

/// Number of items that are searched for the last visible one of a turn.
const LOOKBACK: usize = 200;

/// Starts a turn, live or of a replayed history. Ids of tool calls may be reused in it; updates of earlier turns still
/// find theirs.
pub(in crate::core) fn next_turn(session: &mut Session, now: Instant) {
    messages::close(session, now);
    tools::close_open(session, ToolStatus::Completed, now);
    session.turn_count += 1;
    session.index.begin_turn();
    session.loose.clear();
    // Approvals for one turn have expired.
    session.permissions.begin_turn();
    // A prompt sent into the running turn continues it.
    if session.turn.is_running() {
        return;
    }
    // A plan of earlier turns does not belong to this one, unless the agent updates it.
    if session.is_plan_done() {
        session.plans.clear();
    }
    session.is_plan_abandoned = true;
    // What the tab shows of an earlier turn is over.
    session.unseen = None;
    session.wait.reset();
}

/// Closes the open items of a turn, and adds its end unless it was successful.
pub(crate) fn close_items(session: &mut Session, end: Option<TurnEnd>, summary: TurnSummary, now: Instant) {
    messages::close(session, now);
    // An agent that ends its turn successfully has completed its calls, including those without a reported end.
    let status = if end.is_none() { ToolStatus::Completed } else { ToolStatus::Cancelled };
    tools::close_open(session, status, now);
    if matches!(end, Some(TurnEnd::AgentDied { .. })) {
        interrupt_compactions(session);
    }
    if let Some(end) = end {
        session.transcript.push(session.turn_count, ItemBody::TurnEnd(end));
    }
    if let Some(last) = last_visible(session) {
        session.transcript.edit(last, |item| item.end = Some(Box::new(summary)));
    }
}

/// Marks the open compactions of the turn as interrupted, because their agent has exited.
pub(in crate::core) fn interrupt_compactions(session: &mut Session) {
    let of_turn = session.transcript.items().iter().rev().take_while(|item| item.turn == session.turn_count);
    let is_open = |item: &&Item| matches!(&item.body, ItemBody::Compaction { status, .. } if status == texts::IN_PROGRESS);
    let open: Vec<ItemId> = of_turn.filter(is_open).map(|item| item.id).collect();
    for id in open {
        session.transcript.edit(id, |item| {
            if let ItemBody::Compaction { status, .. } = &mut item.body {
                "interrupted".clone_into(status);
            }
        });
    }
}

/// The last visible item of the turn, unless it is the prompt.
fn last_visible(session: &Session) -> Option<ItemId> {
    let is_empty = |part: &MessagePart| matches!(part, MessagePart::Text(text) if text.trim().is_empty());
    let items = session.transcript.items().iter().rev().take(LOOKBACK);
    let mut of_turn = items.take_while(|item| item.turn == session.turn_count);
    let last = of_turn.find(|item| match &item.body {
        ItemBody::Message(message) => !message.parts.iter().all(is_empty),
        _ => !item.is_hidden(),
    })?;
    let is_prompt = matches!(&last.body, ItemBody::Message(message) if message.role == Role::User);
    (!is_prompt).then_some(last.id)
}
