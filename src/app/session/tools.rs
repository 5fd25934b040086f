//! Tool calls: announcements, updates and permission requests are all the same upsert.
//!
//! Duty: finds the item of a call, merges what is told of it, closes what the agent left open.
//! Ids are unique within a turn only: an announcement of an id from an earlier turn is another call, an update of it is
//! late news of the last call of that id.
//! Invariants: a status never falls back; an update after the end of a call is taken.

use std::time::Instant;

use crate::model::{ItemId, Patch, Record, SessionUpdate, ToolCallPatch, ToolContent, ToolStatus};

use super::{access, messages, paging, terminals};
use crate::app::{Decision, ItemBody, OpenRequestKind, Session, ToolCall};

/// Where a patch comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::app) enum Origin {
    /// The agent told of the call.
    Update,
    /// The call stands in a permission request.
    Ask,
}

/// Creates or changes a call, and says where it is.
pub(in crate::app) fn upsert(
    session: &mut Session,
    mut patch: ToolCallPatch,
    origin: Origin,
    now: Instant,
) -> ItemId {
    let news = std::mem::take(&mut patch.terminals);
    let id = find(session, &patch, origin).unwrap_or_else(|| {
        // A tool call in between begins a new message.
        messages::close(session, now);
        let mut call = ToolCall::new(patch.id.clone(), now);
        call.from_ask_only = origin == Origin::Ask;
        let id = session.transcript.push(session.turn_count, ItemBody::Tool(Box::new(call)));
        session.index.add_tool(patch.id.clone(), id);
        id
    });
    for piece in patch.content.as_set().into_iter().flatten().chain(&patch.more_content) {
        if let ToolContent::Terminal(terminal) = piece {
            session.index.move_terminal(terminal.clone(), id);
        }
    }
    session.transcript.edit(id, |item| {
        if let ItemBody::Tool(call) = &mut item.body {
            merge(call, patch, origin, now);
        }
    });
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
    // Of an end that is assumed the agent did not tell.
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

/// A second announcement often says `pending` again, and late updates may say `in_progress`: neither undoes a
/// later state. Another end replaces an end, above all one that parlor had assumed.
fn may_follow(old: ToolStatus, new: ToolStatus) -> bool {
    match new {
        ToolStatus::Pending => old == ToolStatus::Pending,
        ToolStatus::InProgress => !old.is_final(),
        ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Cancelled => true,
    }
}

fn find(session: &Session, patch: &ToolCallPatch, origin: Origin) -> Option<ItemId> {
    if let Some(id) = session.index.current_tool(&patch.id) {
        // One agent asks under one made-up id for everything: each question is a call of its own.
        let is_answered =
            session.tool_call(id).is_some_and(|call| call.from_ask_only && call.decision.is_some());
        return (origin == Origin::Update || !is_answered).then_some(id);
    }
    let id = session.index.former_tool(&patch.id)?;
    let is_over = session.tool_call(id).is_none_or(|call| call.status.is_final());
    let is_another = patch.is_announcement || (origin == Origin::Ask && is_over);
    (!is_another).then_some(id)
}

/// Closes the calls of the running or last turn that the agent left open: several agents never report the end
/// of some calls. `status` is the guess; a call that the user refused was not done in any case. Calls that
/// still wait for the user are left alone.
pub(in crate::app) fn close_open(session: &mut Session, status: ToolStatus, now: Instant) {
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
        // What is kept further up ends with it.
        if let Some(call) = session.tool_call(id) {
            let mut patch = ToolCallPatch::new(call.id.clone());
            (patch.status, patch.is_assumed) = (Patch::Set(call.status), true);
            paging::keep_late(session, id, Record::Update(SessionUpdate::Tool(Box::new(patch))));
        }
    }
}

fn awaits_user(session: &Session, id: ItemId) -> bool {
    session.asks.iter().any(|ask| matches!(ask.kind, OpenRequestKind::Permission { tool, .. } if tool == id))
}

/// A call that was not done, unless it has ended.
pub(in crate::app) fn cancel(session: &mut Session, id: ItemId, now: Instant) {
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

/// Notes what was decided. Outside a turn nobody else would close a refused call.
pub(in crate::app) fn decide(session: &mut Session, id: ItemId, decision: &Decision, now: Instant) {
    let is_idle = !session.turn.is_running();
    session.transcript.edit(id, |item| {
        if let ItemBody::Tool(call) = &mut item.body {
            call.decision = Some(decision.clone());
            // The time that the user took to decide is not the call's.
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
