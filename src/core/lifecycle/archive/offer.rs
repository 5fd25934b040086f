//! Offers the agent and session last used in the folder at the start.
//!
//! Queries the store once, after the first frame; the offer is valid while the session has no prompt. `ui::welcome` and
//! the agent picker show it, `archive` opens it.
//! Invariant: a late result does not change what the user has selected or typed meanwhile.

use crate::core::state::lookup;
use std::collections::BTreeSet;

use crate::core::{Cx, Effect, State, UiRequest};
use crate::model::{ArchiveRow, StoreJob};

/// Requests the folder's last agent, and its last session if it is to be offered.
pub(in crate::core) fn ask(state: &State, cx: &mut Cx) {
    if state.setup.saves_sessions {
        let folder = state.setup.folder.clone();
        cx.effects.push(Effect::Store(StoreJob::Folder { folder, wants_session: state.setup.offers_last }));
    }
}

pub fn continue_last(state: &mut State, cx: &mut Cx) {
    let Some(uid) = lookup::last_session(state).map(|row| row.uid.clone()) else { return };
    // The saved session has an agent, so the agent picker closes.
    cx.requests.push(UiRequest::CloseAgents);
    super::open_saved(state, &uid, true, None, cx);
}

/// The agents that were used before; one chosen for the folder meanwhile takes precedence.
pub(super) fn on_agents(state: &mut State, here: Option<String>, all: BTreeSet<String>, cx: &mut Cx) {
    let setup = &mut state.setup;
    setup.used_agents = all;
    let is_chosen = setup.last_agent.is_some();
    setup.last_agent = setup.last_agent.take().or(here);
    let last = setup.last_agent.clone();
    cx.requests.push(UiRequest::AgentsUsed(last.filter(|_| !is_chosen)));
}

/// The last session of the folder.
pub(super) fn on_session(state: &mut State, row: ArchiveRow, cx: &mut Cx) {
    state.last_saved = Some(Box::new(row));
    cx.requests.push(UiRequest::LastSessionFound);
}
