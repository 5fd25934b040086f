//! Locates the changes of tool calls in their files: agents often report a snippet without its line.
//!
//! Requests the positions from the service when a call reports changes, and saves its responses with the call.
//! `host::locate` reads the files, `ui::diff` numbers the lines. A response may be late: it applies only if the
//! call still has the same change.

use crate::model::{
    FileDiff, ItemId, LocateJob, LocateRequest, LocatedDiff, Record, RecordPosition, ToolCallId,
    ToolCallPatch, ToolStatus,
};

use super::record;
use crate::core::{Cx, Effect, ItemBody, Session, ToolCall};

/// Maximum number of items searched for a call whose position has changed.
const MAX_LOOKED_AT: usize = 500;

/// Maximum number of changes of one call that are located.
const MAX_ASKS: usize = 64;

/// Whether a patch may contain changes or the end of the call, so that locating is worthwhile.
pub(in crate::core) fn may_change_diffs(patch: &ToolCallPatch) -> bool {
    patch.content.as_set().is_some()
        || patch.input.as_set().is_some()
        || patch.status.as_set() == Some(&ToolStatus::Completed)
}

/// Requests the unknown positions of a call's changes. When the call has ended, those not found before are requested
/// again.
pub(in crate::core) fn locate(session: &Session, item: ItemId, cx: &mut Cx) {
    // The files of another machine are not here, and a local file of the same name is a different one.
    if session.workspace.remote.is_some() {
        return;
    }
    let Some(call) = session.tool_call(item) else { return };
    let is_done = call.status == ToolStatus::Completed;
    let wanted = call.diffs().filter(|diff| needs_position(call, diff, is_done));
    let requests: Vec<LocateRequest> =
        wanted.take(MAX_ASKS).filter_map(|diff| ask(session, call, diff)).collect();
    if requests.is_empty() {
        return;
    }
    let roots = session.workspace.roots();
    cx.effects.push(Effect::LocateDiffs(LocateJob { session: session.key, item, roots, is_done, requests }));
}

fn needs_position(call: &ToolCall, diff: &FileDiff, is_done: bool) -> bool {
    use crate::model::DiffPosition::{Gone, Lines, Unreadable, Whole};
    call.positions.iter().find(|known| known.diff == *diff).is_none_or(|known| {
        let is_found = match &known.position {
            Whole => true,
            Gone | Unreadable => false,
            Lines(lines) => lines.iter().all(Option::is_some),
        };
        !is_found && is_done && !known.is_done
    })
}

fn ask(session: &Session, call: &ToolCall, diff: &FileDiff) -> Option<LocateRequest> {
    let pieces = diff.pieces();
    if pieces.is_empty() {
        return None;
    }
    Some(LocateRequest {
        diff: diff.clone(),
        path: session.workspace.cwd.join(&diff.path),
        pieces,
        near: line_near(call, diff),
    })
}

/// The line reported for a change. If a call reports the same number of locations and changes of a file, they
/// correspond in order.
fn line_near(call: &ToolCall, diff: &FileDiff) -> Option<u32> {
    let lines: Vec<u32> = call
        .locations
        .iter()
        .filter(|position| position.path == diff.path)
        .filter_map(|position| position.line)
        .collect();
    let alike: Vec<&FileDiff> = call.diffs().filter(|other| other.path == diff.path).collect();
    if lines.len() == alike.len() {
        let position = alike.iter().position(|other| *other == diff)?;
        return lines.get(position).copied();
    }
    match lines.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

/// The call with one of these changes: the requested item, unless it was unloaded and loaded meanwhile.
fn call_with(session: &Session, item: ItemId, found: &[LocatedDiff]) -> Option<ItemId> {
    let first = &found.first()?.diff;
    let tells = |id: ItemId| session.tool_call(id).is_some_and(|call| call.diffs().any(|diff| diff == first));
    if tells(item) {
        return Some(item);
    }
    let last = session.transcript.items().iter().rev().take(MAX_LOOKED_AT);
    last.map(|item| item.id).find(|id| tells(*id))
}

/// Saves the positions found by the service.
pub(in crate::core) fn on_located(session: &mut Session, item: ItemId, found: Vec<LocatedDiff>) {
    let Some(item) = call_with(session, item, &found) else { return };
    let Some(call) = session.tool_call(item) else { return };
    let reported: Vec<FileDiff> = call.diffs().cloned().collect();
    let found: Vec<LocatedDiff> = found.into_iter().filter(|found| reported.contains(&found.diff)).collect();
    if found.is_empty() {
        return;
    }
    session.transcript.edit(item, |item| {
        if let ItemBody::Tool(call) = &mut item.body {
            let is_stale = |known: &LocatedDiff| {
                !reported.contains(&known.diff) || found.iter().any(|new| new.diff == known.diff)
            };
            call.positions.retain(|known| !is_stale(known));
            call.positions.extend(found.iter().cloned());
        }
    });
    if let Some(tool) = session.tool_call(item).map(|call| call.id.clone()) {
        let nth = |found: &LocatedDiff| reported.iter().position(|diff| *diff == found.diff);
        let saved = found.iter().filter_map(|found| {
            Some(RecordPosition {
                nth: nth(found)?,
                position: found.position.clone(),
                is_done: found.is_done,
            })
        });
        let positions = saved.collect();
        record::note(session, Record::Located { tool, positions });
    }
}

pub(crate) fn put_positions(session: &mut Session, tool: &ToolCallId, positions: Vec<RecordPosition>) {
    let Some(item) = session.tool_by_id(tool) else { return };
    session.transcript.edit(item, |item| {
        if let ItemBody::Tool(call) = &mut item.body {
            let reported: Vec<FileDiff> = call.diffs().cloned().collect();
            for RecordPosition { nth, position, is_done } in positions {
                if let Some(diff) = reported.get(nth) {
                    call.positions.retain(|known| known.diff != *diff);
                    call.positions.push(LocatedDiff { diff: diff.clone(), position, is_done });
                }
            }
        }
    });
}
