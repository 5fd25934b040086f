//! The prompt history of a folder.

use crate::core::{Cx, Effect, State};
use crate::model::SessionKey;

/// Sets the prompt history of a session: copied from another session of the folder, otherwise read.
pub(in crate::core) fn init_history(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(folder) = state.sessions.get(&key).map(|session| session.workspace.cwd.clone()) else { return };
    let mut others =
        state.sessions.values().filter(|other| other.key != key && other.workspace.cwd == folder);
    let known = others.find(|other| !other.history.is_empty()).map(|other| other.history.clone());
    if known.is_none() {
        cx.effects.push(Effect::LoadHistory { session: key, folder });
    }
    if let Some(session) = state.sessions.get_mut(&key) {
        session.history = known.unwrap_or_default();
    }
}
