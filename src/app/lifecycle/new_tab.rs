//! Opens a tab: with a new session, one from the agent's list, or a stored one.

use std::path::PathBuf;
use std::time::Instant;

use crate::model::{AgentSpec, ConnId, RecordedSession, SessionInfo, SessionKey};

use super::tabs::activate;
use super::{conn, from_list, history};
use crate::app::recording::restore;
use crate::app::state::{lookup, tab};
use crate::app::{Effect, SessionPhase, State, UiRequest};

/// A tab to open.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTab {
    /// Absolute.
    pub folder: PathBuf,
    /// `None`: the user is asked.
    pub agent: Option<AgentSpec>,
    pub begin: Beginning,
}

/// The initial content of a tab.
#[derive(Debug, Clone, PartialEq)]
pub enum Beginning {
    New,
    /// A session of the agent; its history is replayed by the agent.
    Listed(SessionInfo),
    /// A stored session that was already read and locked. It is shown immediately; then its agent is asked to continue
    /// it.
    Kept(Box<RecordedSession>),
}

/// Opens a tab and activates it. A session that is already open in a tab is only activated.
pub fn open_tab(state: &mut State, tab: NewTab, now: Instant, fx: &mut Vec<Effect>) -> SessionKey {
    let NewTab { folder, agent, begin } = tab;
    let shared = agent.as_ref().and_then(|spec| tab::to_share(state, spec, &folder, None));
    if let Some(known) = open_already(state, &begin, shared) {
        activate(state, known, now, fx);
        return known;
    }
    let is_listed = matches!(begin, Beginning::Listed(_));
    let key = state.add_session_in(folder.clone());
    if let Some(session) = state.sessions.get_mut(&key) {
        match begin {
            Beginning::New => {}
            Beginning::Listed(info) => {
                session.place.far = agent.as_ref().and_then(|spec| spec.far_place(&folder));
                from_list::take_listed(session, info, false);
            }
            Beginning::Kept(kept) => {
                restore::restore(session, *kept, now);
                session.place.cwd.clone_from(&folder);
            }
        }
    }
    let before = tab::front(state);
    activate(state, key, now, fx);
    drop_blank(state, before);
    fx.push(Effect::ReadGit { session: key, folder });
    history::init_history(state, key, fx);
    match agent {
        // Information from the agent's list is valid for this agent only.
        Some(spec) if is_listed => conn::join_or_connect(state, key, spec, now, fx),
        Some(spec) => conn::start_agent(state, key, spec, now, fx),
        None => state.ui_requests.push(UiRequest::AgentPicker),
    }
    key
}

/// Closes a tab without an agent and without text.
fn drop_blank(state: &mut State, key: SessionKey) {
    let is_blank = state.sessions.get(&key).is_some_and(|session| {
        session.phase == SessionPhase::NoAgent
            && session.transcript.items().is_empty()
            && session.draft.is_empty()
            && session.queue.is_empty()
    });
    if is_blank {
        state.sessions.remove(&key);
    }
}

fn open_already(state: &State, begin: &Beginning, shared: Option<ConnId>) -> Option<SessionKey> {
    match begin {
        Beginning::New => None,
        Beginning::Listed(info) => lookup::session_by_id(state, shared?, &info.id),
        Beginning::Kept(kept) => {
            let uid = kept.head.kept_as.as_ref()?;
            let mut all = state.sessions.values();
            all.find(|session| session.recorder.kept_as() == Some(uid.as_str())).map(|open| open.key)
        }
    }
}
