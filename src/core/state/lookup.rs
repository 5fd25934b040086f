//! Finds sessions in the state: by the agent's id, by connection, by the store's id.

use std::path::{Path, PathBuf};

use crate::model::{ArchiveRow, ConfigKind, ConfigOption, ConnId, SessionId, SessionKey};

use crate::core::{OpenRequest, Reading, Session, State};

pub(in crate::core) fn session_by_id(state: &State, conn: ConnId, id: &SessionId) -> Option<SessionKey> {
    state
        .sessions
        .values()
        .find(|session| session.conn == Some(conn) && session.id.as_ref() == Some(id))
        .map(|session| session.key)
}

/// The sessions of a connection; `with_children`: including subagents.
pub(in crate::core) fn sessions_of(state: &State, conn: ConnId, with_children: bool) -> Vec<SessionKey> {
    state
        .sessions
        .values()
        .filter(|session| session.conn == Some(conn) && (with_children || session.parent.is_none()))
        .map(|session| session.key)
        .collect()
}

/// The top-level session of a subagent's session; the session itself if it has no parent.
pub(crate) fn root_of(state: &State, key: SessionKey) -> SessionKey {
    let mut root = key;
    // Parents are older than their children, so the keys descend and the loop ends.
    while let Some(parent) = state.sessions.get(&root).and_then(|session| session.parent)
        && parent < root
    {
        root = parent;
    }
    root
}

/// What cannot be saved now, of a session with its subagents or of all sessions; `None` if nothing would be lost.
pub(crate) fn unsaved(state: &State, root: Option<SessionKey>) -> Option<String> {
    let (mut turn_count, mut has_prompts) = (0, false);
    for (key, turns) in &state.unsaved.as_ref()?.turns {
        if root.is_none_or(|root| root_of(state, *key) == root) {
            turn_count += turns.len();
            has_prompts |= state.sessions.get(key).is_some_and(|session| {
                !(session.draft.trim().is_empty() && session.outbox.is_empty() && session.stash.is_empty())
            });
        }
    }
    match turn_count {
        0 => has_prompts.then(|| "Unsent prompts are not saved.".to_owned()),
        1 => Some("1 turn is not saved.".to_owned()),
        count => Some(format!("{count} turns are not saved.")),
    }
}

/// The open session with this id in the store; a read-only one if there is no other.
pub(in crate::core) fn open_as(state: &State, uid: &str) -> Option<SessionKey> {
    let is_open = |session: &&Session| session.recorder.saved_as() == Some(uid);
    let open = state.sessions.values().find(is_open).map(|session| session.key);
    open.or_else(|| read_as(state, uid))
}

/// The read-only session with this id in the store.
pub(in crate::core) fn read_as(state: &State, uid: &str) -> Option<SessionKey> {
    let is_read = |session: &&Session| session.read_only.as_ref().is_some_and(|reading| reading.uid == uid);
    state.sessions.values().find(is_read).map(|session| session.key)
}

/// Whether a session has no prompt yet and is not read-only.
pub(in crate::core) fn is_fresh(session: &Session) -> bool {
    session.parent.is_none() && session.turn_count == 0 && session.read_only.is_none()
}

/// The record that a read-only session shows.
pub(in crate::core) fn reading_of(state: &State, key: SessionKey) -> Option<&Reading> {
    state.sessions.get(&key)?.read_only.as_ref()
}

/// The last session of the user's folder, as long as the active session has no prompt yet and no other agent.
pub fn last_session(state: &State) -> Option<&ArchiveRow> {
    let row = state.last_saved.as_deref()?;
    let session = state.active_session()?;
    let is_here = session.workspace.cwd == state.setup.folder && is_fresh(session);
    let is_of_agent = state.conn_of(session.key).is_none_or(|conn| conn.spec.name == row.agent);
    (is_here && is_of_agent && open_as(state, &row.uid).is_none()).then_some(row)
}

/// The folder of a session, otherwise the one parlor was started in.
pub(crate) fn folder_of(state: &State, key: SessionKey) -> PathBuf {
    state
        .sessions
        .get(&key)
        .map_or_else(|| state.setup.folder.clone(), |session| session.workspace.cwd.clone())
}

pub(crate) fn mode_option(session: &Session) -> Option<&ConfigOption> {
    select_of(session, "mode")
}

pub(crate) fn model_option(session: &Session) -> Option<&ConfigOption> {
    select_of(session, "model")
}

fn select_of<'a>(session: &'a Session, category: &str) -> Option<&'a ConfigOption> {
    session.options.iter().find(|option| {
        option.category.as_deref() == Some(category) && matches!(option.kind, ConfigKind::Select { .. })
    })
}

pub(crate) fn has_modes(session: &Session) -> bool {
    session.modes.as_ref().is_some_and(|modes| !modes.available.is_empty())
}

pub(crate) fn has_models(session: &Session) -> bool {
    session.models.as_ref().is_some_and(|models| !models.available.is_empty())
}

/// The request that is shown when no dialog is open.
pub(crate) fn first_request(state: &State) -> Option<&OpenRequest> {
    state.active_session().and_then(|session| session.requests.front())
}

/// The worktree of parlor that a folder is in.
pub(crate) fn worktree_of(state: &State, folder: &Path) -> Option<PathBuf> {
    let all = Some(&state.setup.worktree_dir).filter(|all| !all.as_os_str().is_empty())?;
    let below: PathBuf = folder.strip_prefix(all).ok()?.components().take(2).collect();
    (below.components().count() == 2).then(|| all.join(below))
}
