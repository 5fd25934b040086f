//! The tabs: their order, the active one, their status, and the UI state of inactive tabs.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::time::Instant;

use crate::model::{AgentSpec, ConnId, SandboxMode, SessionKey};

use super::lookup;
use crate::core::{Conn, Session, SessionPhase, State, UnseenKind};

/// The status of a tab, in ascending order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TabMark {
    Nothing,
    /// Updates were received outside a turn.
    News,
    Done,
    /// Something failed or stopped early, or the agent has exited.
    Failed,
    /// A turn is running, or the agent is starting.
    Working,
    /// The agent, or parlor, waits for the user.
    Waits,
}

pub fn mark(state: &State, session: &Session) -> TabMark {
    let is_front = session.key == front(state);
    let unseen = session.unseen.as_ref().map(|unseen| &unseen.what);
    match &session.phase {
        _ if !session.requests.is_empty() || background_question(state, session.key).is_some() => {
            TabMark::Waits
        }
        SessionPhase::NeedsSignIn => TabMark::Waits,
        SessionPhase::Starting { .. } | SessionPhase::Opening { .. } => TabMark::Working,
        _ if session.turn.is_running() => TabMark::Working,
        // A read-only session never had an agent here.
        SessionPhase::Ended { .. } if session.read_only.is_some() => TabMark::Nothing,
        SessionPhase::Failed(_) | SessionPhase::Ended { .. } => TabMark::Failed,
        SessionPhase::NoAgent | SessionPhase::Ready => match unseen {
            Some(UnseenKind::Failed(_) | UnseenKind::Stopped(_)) => TabMark::Failed,
            Some(UnseenKind::Finished) => TabMark::Done,
            None if session.has_background_news && !is_front => TabMark::News,
            None => TabMark::Nothing,
        },
    }
}

/// The status of all tabs together; a failure counts until the user has seen it.
pub fn overall(state: &State) -> TabMark {
    let status = |session: &Session| match mark(state, session) {
        TabMark::Failed if session.unseen.is_none() => TabMark::Nothing,
        mark => mark,
    };
    tabs(state).map(status).max().unwrap_or(TabMark::Nothing)
}

/// The connections shown in the protocol log of the active tab. With a single tab the log shows all (`None`).
pub fn log_conns(state: &State) -> Option<Vec<u64>> {
    tabs(state).nth(1)?;
    let session = state.sessions.get(&front(state))?;
    Some(session.start.conns().map(|conn| conn.0).collect())
}

/// A hash of what the screen shows of inactive tabs, to redraw only on changes.
pub(crate) fn face(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    (state.active, &state.flash).hash(&mut hasher);
    for session in tabs(state) {
        (session.key, mark(state, session), &session.title).hash(&mut hasher);
    }
    hasher.finish()
}

/// The question that parlor asked in an inactive tab, with its time. A sign-in is shown by the session's phase instead.
pub(in crate::core) fn background_question(state: &State, key: SessionKey) -> Option<(&str, Instant)> {
    if key == front(state) {
        return None;
    }
    state.questions.iter().find_map(|question| {
        let is_here = lookup::root_of(state, question.session) == key;
        Some((question.title.as_str(), question.asked_at.filter(|_| is_here)?))
    })
}

/// The sessions with a tab, in the order of the tabs.
pub fn tabs(state: &State) -> impl DoubleEndedIterator<Item = &Session> {
    let mut tabs: Vec<&Session> =
        state.sessions.values().filter(|session| session.parent.is_none()).collect();
    tabs.sort_by_key(|session| session.rank);
    tabs.into_iter()
}

pub fn front(state: &State) -> SessionKey {
    lookup::root_of(state, state.active)
}

/// Whether both specs start the same agent. Environment variables may differ: a sign-in adds some.
pub(in crate::core) fn is_same_program(one: &AgentSpec, other: &AgentSpec) -> bool {
    let url = |spec: &AgentSpec| spec.remote.as_ref().map(|remote| remote.url.clone());
    one.command == other.command && one.args == other.args && url(one) == url(other) && one.ssh == other.ssh
}

/// Whether the sandbox of a process, if it has one, has the folders of a session.
pub(in crate::core) fn has_room(conn: &Conn, session: &Session) -> bool {
    conn.spec.bounds.as_ref().is_none_or(|bounds| bounds.covers(&session.workspace.roots()))
}

/// The live connection of the same agent that a session in this folder can share.
pub(in crate::core) fn to_share(
    state: &State,
    spec: &AgentSpec,
    folder: &Path,
    except: Option<SessionKey>,
) -> Option<ConnId> {
    let mode = spec.sandbox.unwrap_or(state.setup.sandbox.mode);
    let is_sandboxed = mode != SandboxMode::Off && !spec.is_elsewhere();
    let wanted = except.and_then(|key| state.sessions.get(&key));
    let is_it = |conn: &&Conn| {
        conn.is_alive()
            && conn.spec.bounds.is_some() == is_sandboxed
            && wanted.is_none_or(|session| has_room(conn, session))
            && is_same_program(&conn.spec, spec)
            && tabs(state).any(|session| {
                session.conn == Some(conn.id)
                    && session.workspace.cwd == folder
                    && Some(session.key) != except
            })
    };
    state.conns.values().find(is_it).map(|conn| conn.id)
}
