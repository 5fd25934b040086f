//! Opens a tab with a new session.

use std::path::PathBuf;

use crate::model::{AgentSpec, SessionKey};

use super::tabs::activate;
use super::{conn, history};
use crate::core::state::tab;
use crate::core::{Cx, Effect, SessionPhase, State};

/// Opens a tab with a new session in an absolute folder, and activates it.
pub fn open_tab(state: &mut State, folder: PathBuf, agent: AgentSpec, cx: &mut Cx) -> SessionKey {
    let key = state.add_session_in(folder.clone());
    let before = tab::front(state);
    activate(state, key);
    drop_blank(state, before);
    cx.effects.push(Effect::ReadGit { session: key, folder });
    history::init_history(state, key, cx);
    conn::start_agent(state, key, agent, cx);
    key
}

fn drop_blank(state: &mut State, key: SessionKey) {
    let is_blank = state.sessions.get(&key).is_some_and(|session| {
        session.phase == SessionPhase::NoAgent
            && session.transcript.items().is_empty()
            && session.draft.is_empty()
            && session.outbox.is_empty()
    });
    if is_blank {
        state.sessions.remove(&key);
    }
}
