//! Accesses of an agent through parlor, as items of the transcript.
//!
//! Adds each write, command and outside read to the tool call that performs it, or to a separate item. A call that the
//! agent reports later absorbs it, so that nothing is shown twice; the same applies to approved calls with a made-up
//! id. `policy` decides about accesses, `host` performs them.
//! Invariants: items of parlor are not in the index of the agent's ids, so that agents cannot refer to them; a write is
//! shown with a call only if the call shows the same change, or none of that file.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::model::{
    Access, AccessRecord, DiffPosition, ExitInfo, Growing, ItemId, LocatedDiff, PieceStart, Record,
    TerminalId, ToolCallId, ToolContent, ToolKind, ToolStatus,
};

use super::{messages, record};
use crate::core::state::changes::{explains, plain};
use crate::core::{ItemBody, Session, ToolCall};

/// Maximum number of items of parlor that are checked when a call is reported.
const MAX_CLAIMED: usize = 64;

/// Shows and records an access, performed or refused.
pub(in crate::core) fn add(session: &mut Session, mut record: AccessRecord, now: Instant) {
    let size = record.diff().map_or(0, size_of_diff);
    if !session.loose.has_room(size) {
        record.change.iter_mut().for_each(|change| (change.diff, change.line) = (None, None));
    }
    let saved = Record::Access(Box::new(record.clone()));
    place(session, record, now);
    record::note(session, saved);
}

fn size_of_diff(diff: &crate::model::FileDiff) -> usize {
    match &diff.change {
        crate::model::DiffChange::Texts { old, new } => {
            old.as_ref().map_or(0, crate::model::body::Body::len) + new.len()
        }
        crate::model::DiffChange::Patch(text) => text.len(),
    }
}

/// Shows an access, and returns its item.
pub(in crate::core) fn place(session: &mut Session, record: AccessRecord, now: Instant) -> ItemId {
    if let Some(call) = owner_of(session, &record) {
        take_over(session, call, record);
        return call;
    }
    let is_typed = record.is_typed();
    // The agent's message continues after a command of the user.
    if !is_typed {
        messages::close(session, now);
    }
    let terminal = record.terminal.clone();
    let call = call_of(record, now);
    let id = session.transcript.push(session.turn_count, ItemBody::Tool(Box::new(call)));
    if !is_typed {
        session.loose.add_own(id);
    }
    if let Some(terminal) = terminal {
        session.index.move_terminal(terminal, id);
    }
    id
}

pub(in crate::core) fn call_of(record: AccessRecord, now: Instant) -> ToolCall {
    let name = match &record.access {
        Access::Read { path } => format!("parlor:read:{}", path.display()),
        Access::Write { path } => format!("parlor:write:{}", path.display()),
        Access::Run(command) => format!("parlor:run:{}", command.line),
        Access::SignIn { line } => format!("parlor:sign-in:{line}"),
    };
    let mut call = ToolCall::new(ToolCallId::from(name), now);
    call.is_own = true;
    call.status = match (&record.terminal, &record.error) {
        _ if record.is_refused() => ToolStatus::Cancelled,
        (_, Some(_)) => ToolStatus::Failed,
        (Some(_), None) => ToolStatus::InProgress,
        (None, None) => ToolStatus::Completed,
    };
    call.output_text = record.error.clone().map(Growing::from);
    match &record.access {
        Access::Read { path } => {
            call.kind = ToolKind::Read;
            call.title = format!("Read {}", path.display());
            call.input.path = Some(path.clone());
        }
        Access::Write { path } => {
            call.kind = ToolKind::Edit;
            call.title = format!("Write {}", path.display());
            call.input.path = Some(record.diff().map_or_else(|| path.clone(), |diff| diff.path.clone()));
        }
        Access::Run(command) => {
            call.kind = ToolKind::Execute;
            call.title.clone_from(&command.line);
            call.input.command = Some(command.line.clone());
            call.input.cwd = Some(command.cwd.clone());
        }
        Access::SignIn { line } => {
            call.kind = ToolKind::Execute;
            call.title.clone_from(line);
            call.input.command = Some(line.clone());
        }
    }
    call.content.extend(record.terminal.clone().map(ToolContent::Terminal));
    call.positions.extend(position_in_file(&record));
    call.accesses.push(record);
    call
}

/// The position of a write's change, which is known because parlor wrote the file.
fn position_in_file(record: &AccessRecord) -> Option<LocatedDiff> {
    let change = record.change.as_ref()?;
    let position = match change.line {
        None => DiffPosition::Whole,
        Some(line) => DiffPosition::Lines(vec![Some(PieceStart::at(line, !record.is_refused()))]),
    };
    Some(LocatedDiff { diff: change.diff.clone()?, position, is_done: true })
}

/// The agent's call that an access belongs to.
fn owner_of(session: &Session, record: &AccessRecord) -> Option<ItemId> {
    if record.is_refused() || record.is_typed() {
        return None;
    }
    let mut calls: Vec<ItemId> = session.index.current_tools().collect();
    calls.sort_unstable();
    calls.into_iter().rev().find(|id| {
        session.tool_call(*id).is_some_and(|call| {
            !matches!(call.status, ToolStatus::Failed | ToolStatus::Cancelled)
                && fits(session, call, record, !call.status.is_final())
        })
    })
}

/// Whether an access belongs to a call: the call shows the same, or works on that file without another change of it.
fn fits(session: &Session, call: &ToolCall, record: &AccessRecord, is_at_work: bool) -> bool {
    let folder = session.workspace.folder();
    match &record.access {
        Access::Run(_) | Access::SignIn { .. } => record.terminal.as_ref().is_some_and(|terminal| {
            call.content.iter().any(|piece| matches!(piece, ToolContent::Terminal(id) if id == terminal))
        }),
        Access::Read { path } => {
            is_at_work
                && call.kind == ToolKind::Read
                && named_paths(folder, call).iter().any(|named| named == path)
        }
        Access::Write { path } => {
            let shown = record.diff().map(|diff| plain(&folder.join(&diff.path)));
            let is_it = |named: &PathBuf| named == path || Some(named) == shown.as_ref();
            // An access that it absorbed before already covers that file.
            if call
                .accesses
                .iter()
                .any(|other| other.access == record.access && other.diff() == record.diff())
            {
                return false;
            }
            let reported: Vec<_> =
                call.reported_diffs().filter(|diff| is_it(&plain(&folder.join(&diff.path)))).collect();
            if reported.is_empty() {
                is_at_work && call.kind == ToolKind::Edit && named_paths(folder, call).iter().any(is_it)
            } else {
                record.diff().is_some_and(|diff| explains(folder, reported.into_iter(), diff))
            }
        }
    }
}

pub(in crate::core) fn named_paths(folder: &Path, call: &ToolCall) -> Vec<PathBuf> {
    let positions = call.locations.iter().map(|position| &position.path);
    positions.chain(&call.input.path).map(|path| plain(&folder.join(path))).collect()
}

fn take_over(session: &mut Session, id: ItemId, record: AccessRecord) {
    let folder = session.workspace.folder().to_owned();
    let located = position_in_file(&record);
    session.transcript.edit(id, |item| {
        if let ItemBody::Tool(call) = &mut item.body {
            call.accesses.push(record);
            update_reported(call, &folder);
            call.positions.extend(located);
        }
    });
}

fn update_reported(call: &mut ToolCall, folder: &Path) {
    let mut accesses = std::mem::take(&mut call.accesses);
    for access in &mut accesses {
        access.is_reported = access.diff().is_some_and(|diff| explains(folder, call.reported_diffs(), diff));
    }
    call.accesses = accesses;
}

/// Adds accesses shown separately to the reported call that they belong to.
pub(in crate::core) fn claim(session: &mut Session, id: ItemId) {
    let folder = session.workspace.folder().to_owned();
    let own = session.loose.own();
    let from = own.len().saturating_sub(MAX_CLAIMED);
    let candidates: Vec<ItemId> = own.get(from..).unwrap_or_default().to_vec();
    for own in candidates {
        let Some(record) = session.tool_call(own).and_then(|call| call.accesses.first()) else { continue };
        let does_fit = !record.is_refused()
            && session.tool_call(id).is_some_and(|call| fits(session, call, record, true));
        if own == id || !does_fit {
            continue;
        }
        let record = record.clone();
        if let Some(terminal) = record.terminal.clone() {
            session.index.move_terminal(terminal, id);
        }
        session.transcript.edit(own, |item| {
            if let ItemBody::Tool(call) = &mut item.body {
                call.accesses.clear();
                call.content.clear();
                call.positions.clear();
                call.status = ToolStatus::Completed;
            }
        });
        session.loose.remove(own);
        take_over(session, id, record);
    }
    if session.tool_call(id).is_some_and(|call| !call.accesses.is_empty()) {
        session.transcript.edit(id, |item| {
            if let ItemBody::Tool(call) = &mut item.body {
                update_reported(call, &folder);
            }
        });
    }
    for asked in session.loose.asked().to_vec() {
        join_asked(session, asked, id);
    }
}

/// A call that consists of an approved permission request stays, joined with the agent's call if that exists.
pub(in crate::core) fn on_approved(session: &mut Session, asked: ItemId) {
    if !session.tool_call(asked).is_some_and(|call| call.from_ask_only) {
        return;
    }
    session.loose.add_asked(asked);
    let mut calls: Vec<ItemId> = session.index.current_tools().filter(|id| *id != asked).collect();
    calls.sort_unstable();
    // A call that has ended did something else.
    let running = |id: &ItemId| session.tool_call(*id).is_some_and(|call| !call.status.is_final());
    let found = calls.into_iter().rev().find(|id| running(id) && is_same_work(session, asked, *id));
    if let Some(id) = found {
        join_asked(session, asked, id);
    }
}

/// Joins an approved call with the agent's call, if that does the same.
fn join_asked(session: &mut Session, asked: ItemId, id: ItemId) {
    if asked == id || !is_same_work(session, asked, id) {
        return;
    }
    let Some(approved) = session.tool_call(asked) else { return };
    let diffs: Vec<_> = approved.reported_diffs().cloned().collect();
    let (decision, positions) = (approved.decision.clone(), approved.positions.clone());
    let folder = session.workspace.folder().to_owned();
    session.transcript.edit(asked, |item| {
        if let ItemBody::Tool(call) = &mut item.body {
            call.is_joined = true;
        }
    });
    session.loose.remove(asked);
    session.transcript.edit(id, |item| {
        if let ItemBody::Tool(call) = &mut item.body {
            call.approved = diffs;
            call.positions.extend(positions);
            if call.decision.is_none() {
                call.decision = decision;
            }
            update_reported(call, &folder);
        }
    });
}

/// Whether an approved call and the agent's call do the same: the same command, or a change of the same file that the
/// agent's call does not show otherwise.
fn is_same_work(session: &Session, asked: ItemId, id: ItemId) -> bool {
    let (Some(approved), Some(call)) = (session.tool_call(asked), session.tool_call(id)) else {
        return false;
    };
    let turn = |id: ItemId| session.transcript.get(id).map(|item| item.turn);
    if call.is_own
        || call.from_ask_only
        || approved.is_joined
        || !call.approved.is_empty()
        || turn(asked) != turn(id)
    {
        return false;
    }
    if approved.input.command.is_some() && approved.input.command == call.input.command {
        return true;
    }
    let folder = session.workspace.folder();
    let path_of = |path: &Path| plain(&folder.join(path));
    let named = named_paths(folder, call);
    let mut approved_diffs = approved.reported_diffs().peekable();
    if approved_diffs.peek().is_none() {
        return false;
    }
    approved_diffs.all(|diff| {
        let path = path_of(&diff.path);
        let mut reported =
            call.reported_diffs().filter(|reported| path_of(&reported.path) == path).peekable();
        if reported.peek().is_none() {
            matches!(call.kind, ToolKind::Edit | ToolKind::Other | ToolKind::Delete | ToolKind::Move)
                && named.contains(&path)
        } else {
            reported.any(|reported| {
                reported == diff
                    || explains(folder, [reported].into_iter(), diff)
                    || explains(folder, [diff].into_iter(), reported)
            })
        }
    })
}

/// A command ended: ends parlor's item that shows it.
pub(crate) fn on_command_ended(session: &mut Session, terminal: &TerminalId, exit: &ExitInfo, now: Instant) {
    let Some(id) = session.index.terminal(terminal) else { return };
    if !session.tool_call(id).is_some_and(|call| call.is_own && !call.status.is_final()) {
        return;
    }
    session.transcript.edit(id, |item| {
        if let ItemBody::Tool(call) = &mut item.body {
            call.status = if exit.code == Some(0) { ToolStatus::Completed } else { ToolStatus::Failed };
            call.exit_code = exit.code;
            call.took = Some(now.saturating_duration_since(call.began));
        }
    });
}

/// Restored calls and commands are not running.
pub(in crate::core) fn close_restored(session: &mut Session, now: Instant) {
    let is_open =
        |item: &&crate::core::Item| matches!(&item.body, ItemBody::Tool(call) if !call.status.is_final());
    let open: Vec<ItemId> = session.transcript.items().iter().filter(is_open).map(|item| item.id).collect();
    for id in open {
        session.transcript.edit(id, |item| {
            if let ItemBody::Tool(call) = &mut item.body {
                call.status = ToolStatus::Cancelled;
                call.is_status_assumed = !call.is_own;
                call.took = Some(now.saturating_duration_since(call.began));
            }
        });
    }
}
