//! Tool calls: announcements, updates and permission requests are the same upsert.
//!
//! Finds the item of a call, merges what is reported, and closes what the agent left open. Ids are unique within a turn
//! only: an announcement with an id of an earlier turn is another call, an update of it is a late update of the last
//! call with that id.
//! Invariants: a status never regresses; updates after the end of a call are applied.

use std::time::Instant;

use crate::model::{ItemId, ToolCallPatch, ToolContent, ToolStatus};

use super::{access, messages, terminals};
use crate::core::{Decision, ItemBody, OpenRequestKind, Session, ToolCall};

/// The source of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::core) enum Origin {
    /// The agent reported the call.
    Update,
    /// A permission request contains the call.
    Ask,
}

/// Creates or changes a call, and returns its item.
pub(in crate::core) fn upsert(
    session: &mut Session,
    mut patch: ToolCallPatch,
    origin: Origin,
    now: Instant,
) -> ItemId {
    let news = std::mem::take(&mut patch.terminals);
    let id = find(session, &patch, origin).unwrap_or_else(|| {
        // A tool call starts a new message.
        messages::close(session, now);
        let mut call = ToolCall::new(patch.id.clone(), now);
        call.from_ask_only = origin == Origin::Ask;
        let id = session.transcript.push(session.turn_count, ItemBody::Tool(Box::new(call)));
        session.index.add_tool(patch.id.clone(), id);
        id
    });
    for piece in patch.content.as_set().into_iter().flatten().chain(&patch.more_content) {
        if let ToolContent::Terminal(terminal) = piece
            && !session.is_users(terminal)
        {
            session.index.move_terminal(terminal.clone(), id);
        }
    }
    let mut parent = patch.parent.clone();
    session.transcript.edit(id, |item| {
        if let ItemBody::Tool(call) = &mut item.body {
            parent.take_if(|_| call.parent.is_some());
            merge(call, patch, origin, now);
        }
    });
    if let Some(parent) = parent.and_then(|parent| session.index.current_tool(&parent)).filter(|it| *it != id)
    {
        session.transcript.edit(parent, |item| {
            if let ItemBody::Tool(call) = &mut item.body {
                call.calls += 1;
            }
        });
    }
    for piece in news {
        terminals::on_news(session, id, piece, now);
    }
    if origin == Origin::Update && (!session.loose.is_empty() || has_accesses(session, id)) {
        access::claim(session, id);
    }
    id
}

fn has_accesses(session: &Session, id: ItemId) -> bool {
    session.tool_call(id).is_some_and(|call| !call.accesses.is_empty())
}

fn merge(call: &mut ToolCall, patch: ToolCallPatch, origin: Origin, now: Instant) {
    // An assumed end was not reported by the agent.
    if origin == Origin::Update && !patch.is_assumed {
        call.from_ask_only = false;
    }
    if let Some(status) = patch.status.as_set().copied()
        && may_follow(call.status, status)
    {
        call.status = status;
        call.is_status_assumed = patch.is_assumed;
        if status.is_final() && call.took.is_none() {
            call.took = Some(now.saturating_duration_since(call.began));
        }
    }
    call.apply(patch);
}

/// Whether a status may replace another one. A second announcement often says `pending` again, and late updates may say
/// `in_progress`: neither replaces a later status. A final status may replace another final one, in particular one
/// assumed by parlor.
fn may_follow(old: ToolStatus, new: ToolStatus) -> bool {
    match new {
        ToolStatus::Pending => old == ToolStatus::Pending,
        ToolStatus::InProgress => !old.is_final(),
        ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Cancelled => true,
    }
}

fn find(session: &Session, patch: &ToolCallPatch, origin: Origin) -> Option<ItemId> {
    if let Some(id) = session.index.current_tool(&patch.id) {
        // One agent uses the same made-up id for all its permission requests: each is a separate call.
        let is_answered =
            session.tool_call(id).is_some_and(|call| call.from_ask_only && call.decision.is_some());
        return (origin == Origin::Update || !is_answered).then_some(id);
    }
    let id = session.index.former_tool(&patch.id)?;
    let is_over = session.tool_call(id).is_none_or(|call| call.status.is_final());
    let is_another = patch.is_announcement || (origin == Origin::Ask && is_over);
    (!is_another).then_some(id)
}

/// Closes the calls of the running or last turn that the agent left open: several agents never report the end of some
/// calls. `status` is assumed; a call refused by the user counts as cancelled. Calls that still wait for the user stay
/// open.
pub(in crate::core) fn close_open(session: &mut Session, status: ToolStatus, now: Instant) {
    let open: Vec<ItemId> = session
        .index
        .current_tools()
        .chain(session.loose.asked().iter().copied())
        .filter(|id| session.tool_call(*id).is_some_and(|call| !call.status.is_final()))
        .filter(|id| !awaits_user(session, *id))
        .collect();
    for id in open {
        session.transcript.edit(id, |item| {
            if let ItemBody::Tool(call) = &mut item.body {
                assume_end(call, status, now);
            }
        });
    }
}

fn awaits_user(session: &Session, id: ItemId) -> bool {
    session
        .requests
        .iter()
        .any(|request| matches!(request.kind, OpenRequestKind::Permission { tool, .. } if tool == id))
}

/// Cancels a call, unless it has ended.
pub(in crate::core) fn cancel(session: &mut Session, id: ItemId, now: Instant) {
    if session.tool_call(id).is_some_and(|call| !call.status.is_final()) {
        session.transcript.edit(id, |item| {
            if let ItemBody::Tool(call) = &mut item.body {
                assume_end(call, ToolStatus::Cancelled, now);
            }
        });
    }
}

fn assume_end(call: &mut ToolCall, status: ToolStatus, now: Instant) {
    let is_refused = call.decision.as_ref().is_some_and(|decision| !is_allowed(decision));
    call.status = if is_refused { ToolStatus::Cancelled } else { status };
    call.is_status_assumed = true;
    call.took = Some(now.saturating_duration_since(call.began));
}

fn is_allowed(decision: &Decision) -> bool {
    matches!(decision, Decision::Chosen { is_allow: true, .. })
}

/// Sets the decision about a call. Outside a turn, a refused call would otherwise stay open.
pub(in crate::core) fn decide(session: &mut Session, id: ItemId, decision: &Decision, now: Instant) {
    let is_idle = !session.turn.is_running();
    session.transcript.edit(id, |item| {
        if let ItemBody::Tool(call) = &mut item.body {
            call.decision = Some(decision.clone());
            // The duration of a call does not include the user's decision.
            if !call.status.is_final() {
                call.began = now;
            }
            if is_idle && !is_allowed(decision) && !call.status.is_final() {
                assume_end(call, ToolStatus::Cancelled, now);
            }
        }
    });
    if is_allowed(decision) {
        access::on_approved(session, id);
    }
}
