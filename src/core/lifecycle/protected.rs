//! Protected files that appear or change during a turn.
//!
//! A sandbox protects only files that exist, and snapshots leave out git data and what git ignores. So the protected
//! files are compared before and after each turn. Invariant: parlor does not see who writes a file, and does not claim it.

use super::{call, refused, unreported};
use crate::core::{Cx, Effect, State};
use crate::model::snapshot::shown_path;
use crate::model::{ProtectedFiles, ProtectedJob, Protection, SessionKey, Severity};

/// Maximum number of files that are named.
const MAX_NAMED: usize = 12;

/// A turn begins.
pub(super) fn on_turn(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let is_here = state.conn_of(key).is_some_and(|conn| !conn.spec.is_elsewhere());
    let Some(session) = state.sessions.get_mut(&key).filter(|_| is_here) else { return };
    let turn = session.turn_count;
    if session.parent.is_none()
        && session.workspace.remote.is_none()
        && !session.protected.contains_key(&turn)
    {
        session.protected.insert(turn, None);
        let folders = session.workspace.roots();
        let job = ProtectedJob { session: key, turn, is_end: false, folders };
        // It starts before the prompt is sent, and runs beside it.
        cx.effects.insert(0, Effect::ReadProtected(job));
    }
}

/// A turn has ended.
pub(super) fn on_turn_end(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key) else { return };
    if let Some((turn, _)) = session.protected.last_key_value() {
        let folders = session.workspace.roots();
        let job = ProtectedJob { session: key, turn: *turn, is_end: true, folders };
        cx.effects.push(Effect::ReadProtected(job));
    }
}

/// Adds a notice about files that have appeared or changed, without those that the agent reported.
pub(in crate::core) fn on_read(state: &mut State, job: &ProtectedJob, files: ProtectedFiles) {
    let (key, turn) = (job.session, job.turn);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if !job.is_end {
        if let Some(before) = session.protected.get_mut(&turn) {
            *before = Some(files);
        }
        return;
    }
    let before = session.protected.remove(&turn).flatten();
    session.protected.retain(|other, _| *other > turn);
    let Some(before) = before else { return };
    let folder = session.workspace.folder().to_owned();
    let known = unreported::reported(state, key, turn);
    let is_new = |path: &std::path::Path| files.contains_key(path) && !before.contains_key(path);
    let found = files.iter().filter(|(path, now)| {
        // The content of a new folder is new.
        let is_in_new = path.ancestors().skip(1).any(is_new);
        before.get(*path) != Some(now) && !known.contains(*path) && !is_in_new
    });
    let (mut lines, mut count, mut count_new) = (Vec::new(), 0, 0);
    for (path, _) in found {
        count += 1;
        count_new += usize::from(is_new(path));
        if lines.len() < MAX_NAMED {
            let what = if is_new(path) { "Created" } else { "Changed" };
            let why = refused::protection(state, path).unwrap_or(Protection::Git).description();
            let name = shown_path(path.strip_prefix(&folder).unwrap_or(path));
            lines.push(format!("{what}: {name}. {why}"));
        }
    }
    if count == 0 {
        return;
    }
    let more = count - lines.len();
    lines.extend((more > 0).then(|| format!("{more} more")));
    let (_, cause) = unreported::likely_causes(state, key, turn);
    let turn = unreported::of_turn(state, key, turn);
    let files =
        if count == 1 { "1 protected file was".to_owned() } else { format!("{count} protected files were") };
    let what = match count_new {
        0 => "changed",
        new if new == count => "created",
        _ => "created or changed",
    };
    let title = format!(
        "{turn}{files} {what} during the turn, {cause}. Check the content before you run git, an editor or a build here."
    );
    call::notice(state, key, Severity::Warning, title, Some(lines.join("\n")));
}
