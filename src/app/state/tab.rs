//! What tabs there are, which is in front, and what each shows of its session.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::time::Instant;

use crate::model::{AgentSpec, ConnId, SessionKey};

use super::lookup;
use crate::app::{Conn, Modal, Session, SessionPhase, State};

/// What a tab keeps while another one is in front.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TabUi {
    /// Its dialogs, the top one last.
    pub modals: Vec<Modal>,
    /// Whether keys walked its transcript.
    pub is_browsing: bool,
}

/// What happened in a tab that nobody has looked at since.
#[derive(Debug, Clone, PartialEq)]
pub struct Unseen {
    pub what: UnseenKind,
    /// When.
    pub since: Instant,
}

/// What can be unseen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnseenKind {
    /// A turn ended well.
    Finished,
    /// A turn stopped before it was done: at a limit, or because the agent refused; as the beginning of a sentence.
    Stopped(String),
    /// A turn failed, or the agent ended; in one sentence.
    Failed(String),
}

/// The state of a tab, in one word; the later ones go before the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TabMark {
    /// Nothing to tell.
    Nothing,
    /// Something came outside a turn.
    News,
    /// A turn ended well.
    Done,
    /// Something failed or stopped early, or the agent is gone.
    Failed,
    /// A turn runs, or the agent starts.
    Working,
    /// The agent, or parlor, waits for the user.
    Waits,
}

/// The state of a tab.
pub fn mark(state: &State, session: &Session) -> TabMark {
    let is_front = session.key == front(state);
    let unseen = session.unseen.as_ref().map(|unseen| &unseen.what);
    match &session.phase {
        _ if !session.asks.is_empty() || shelved_dialog(session).is_some() => TabMark::Waits,
        SessionPhase::NeedsSignIn => TabMark::Waits,
        SessionPhase::Starting { .. } | SessionPhase::Opening { .. } => TabMark::Working,
        _ if session.turn.is_running() => TabMark::Working,
        // A session that is only read never had an agent here.
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

/// The connections whose lines are in the log of the tab in front: those that it had. With a single tab it is the log
/// of all.
pub fn log_conns(state: &State) -> Option<Vec<u64>> {
    tabs(state).nth(1)?;
    let session = state.sessions.get(&front(state))?;
    Some(session.start.conns().map(|conn| conn.0).collect())
}

/// What the screen shows of the tabs behind the front, as one number: as long as it is the same, nothing of it
/// needs to be drawn anew.
pub(in crate::app) fn face(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    (state.active, state.modals.len(), &state.flash).hash(&mut hasher);
    for session in tabs(state) {
        (session.key, mark(state, session), &session.title).hash(&mut hasher);
    }
    hasher.finish()
}

/// A dialog that opened by itself while another tab was in front, and since when it waits. That of a sign-in is
/// told by the session's phase.
pub(in crate::app) fn shelved_dialog(session: &Session) -> Option<(&str, Instant)> {
    session.shelf.modals.iter().find_map(|modal| match modal {
        Modal::Choice(dialog) => Some((dialog.title.as_str(), dialog.opened_by_itself?)),
        _ => None,
    })
}

/// The sessions that have a tab, in the order of the tabs.
pub fn tabs(state: &State) -> impl DoubleEndedIterator<Item = &Session> {
    let mut tabs: Vec<&Session> =
        state.sessions.values().filter(|session| session.parent.is_none()).collect();
    tabs.sort_by_key(|session| session.rank);
    tabs.into_iter()
}

/// The tab that is in front.
pub fn front(state: &State) -> SessionKey {
    lookup::root_of(state, state.active)
}

/// Whether both start the same agent. Variables may differ: a sign-in adds some.
pub(in crate::app) fn is_same_program(one: &AgentSpec, other: &AgentSpec) -> bool {
    let url = |spec: &AgentSpec| spec.remote.as_ref().map(|remote| remote.url.clone());
    one.command == other.command && one.args == other.args && url(one) == url(other) && one.ssh == other.ssh
}

/// The living connection that a session in this folder shares with others of the same agent.
pub(in crate::app) fn to_share(
    state: &State,
    spec: &AgentSpec,
    folder: &Path,
    except: Option<SessionKey>,
) -> Option<ConnId> {
    let is_it = |conn: &&Conn| {
        conn.is_alive()
            && is_same_program(&conn.spec, spec)
            && tabs(state).any(|session| {
                session.conn == Some(conn.id) && session.place.cwd == folder && Some(session.key) != except
            })
    };
    state.conns.values().find(is_it).map(|conn| conn.id)
}
