//! Changes on the disk that an agent did not report.
//!
//! After each turn, the paths that differ between its snapshots are compared with what its calls and parlor's own services
//! say. What is left is shown with its likely cause: parlor does not see who writes a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::call;
use crate::core::session::access;
use crate::core::state::changes::plain;
use crate::core::state::lookup;
use crate::core::{ItemBody, Session, State, ToolCall};
use crate::model::snapshot::shown_paths;
use crate::model::{Access, SessionKey, Severity, ToolKind};

/// Maximum number of paths of a turn that the review marks.
const MAX_REMEMBERED: usize = 1_000;

/// Maximum number of paths that are named.
const MAX_NAMED: usize = 8;

/// The calls of a turn, with those of all subagents.
pub(super) fn calls(
    state: &State,
    root: SessionKey,
    turn: u32,
) -> impl Iterator<Item = (&Session, &ToolCall)> {
    let family = state.sessions.values().filter(move |session| lookup::root_of(state, session.key) == root);
    family.flat_map(move |session| {
        let of_turn = move |at: u32| session.key != root || at >= turn;
        let items = session.transcript.items().iter().rev().take_while(move |item| of_turn(item.turn));
        items.filter_map(move |item| match &item.body {
            ItemBody::Tool(call) => Some((session, call.as_ref())),
            _ => None,
        })
    })
}

/// The absolute paths of the files that a turn is known to have changed.
pub(super) fn reported(state: &State, root: SessionKey, turn: u32) -> BTreeSet<PathBuf> {
    let mut paths = BTreeSet::new();
    for (session, call) in calls(state, root, turn) {
        let folder = session.workspace.folder();
        paths.extend(call.diffs().map(|diff| plain(&folder.join(&diff.path))));
        paths.extend(call.accesses.iter().filter_map(|access| match &access.access {
            Access::Write { path } => Some(path.clone()),
            _ => None,
        }));
        if matches!(call.kind, ToolKind::Edit | ToolKind::Delete | ToolKind::Move) {
            paths.extend(access::named_paths(folder, call));
        }
    }
    paths
}

/// Adds a notice about the changed paths that were not reported, and remembers them for the review. They are relative to
/// the folder, whose links are resolved in `root`.
pub(super) fn tell(state: &mut State, key: SessionKey, turn: u32, root: &Path, changed: &[PathBuf]) {
    let known = reported(state, key, turn);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let folder = session.workspace.folder().to_owned();
    let is_known = |path: &&PathBuf| known.contains(&folder.join(path)) || known.contains(&root.join(path));
    let (reported, unreported): (Vec<&PathBuf>, Vec<&PathBuf>) = changed.iter().partition(is_known);
    for path in reported {
        session.undo.unreported.remove(path);
        session.undo.unseen.remove(path);
    }
    if unreported.is_empty() {
        return;
    }
    let (severity, cause) = likely_causes(state, key, turn);
    let files = match unreported.len() {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let turn = of_turn(state, key, turn);
    let title = format!(
        "{turn}{files} changed that the agent did not report, {cause}. /review-changes shows what changed."
    );
    let names = shown_paths(unreported.iter().copied(), MAX_NAMED);
    let paths: Vec<PathBuf> = unreported.into_iter().take(MAX_REMEMBERED).cloned().collect();
    let cause: Arc<str> = cause.into();
    call::notice(state, key, severity, title, Some(names));
    if let Some(session) = state.sessions.get_mut(&key) {
        session.undo.unseen.extend(paths.iter().cloned());
        session.undo.unreported.extend(paths.into_iter().map(|path| (path, Arc::clone(&cause))));
    }
}

/// The turn that a notice is about, unless it is the last one.
pub(super) fn of_turn(state: &State, key: SessionKey, turn: u32) -> String {
    let is_current = state.sessions.get(&key).is_some_and(|session| session.turn_count == turn);
    if is_current { String::new() } else { format!("Turn {turn}: ") }
}

/// What likely changed a file in a turn, and how unusual that is.
pub(super) fn likely_causes(state: &State, key: SessionKey, turn: u32) -> (Severity, String) {
    let folder = state.sessions.get(&key).map(|session| session.workspace.folder());
    let is_command = |call: &ToolCall| call.kind == ToolKind::Execute;
    let has_command = calls(state, key, turn).any(|(_, call)| is_command(call) && !call.is_typed());
    let has_own_command = calls(state, key, turn).any(|(_, call)| call.is_typed());
    let is_elsewhere = |other: &&Session| {
        other.key != key
            && other.parent.is_none()
            && Some(other.workspace.folder()) == folder
            && other.turn.is_running()
    };
    let mut causes = Vec::new();
    causes.extend(has_command.then_some("by its commands"));
    causes.extend(has_own_command.then_some("by your command"));
    causes.extend(state.sessions.values().any(|other| is_elsewhere(&other)).then_some("by another session"));
    match causes.as_slice() {
        [] => (Severity::Warning, "maybe by an editor, a build or you".to_owned()),
        causes => (Severity::Info, format!("likely {}", causes.join(" or "))),
    }
}
