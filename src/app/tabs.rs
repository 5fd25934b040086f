//! Tabs: every session that is open here and works for nobody else, in the order in which they were opened, or to
//! which the user moved them.
//!
//! Duty: opening a tab, putting one in front, and keeping the dialogs of the others for when they are shown again.
//! Not its duty: closing (`close`), processes (`conn`), what the user chooses from (`user::tabs`).
//! Two tabs with the same agent in the same folder share its process: agents serve several sessions, and some ruin
//! what they keep when two of them work in one folder. In another folder an agent gets a process of its own, since
//! many read settings where they are started.
//! Invariants: a dialog of a tab takes keys only while that tab is in front; what a session is shown with for the
//! first time is its own.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::model::{AgentSpec, ConnId, RecordedSession, SessionInfo, SessionKey};

use super::{
    Conn, Effect, Modal, PickerKind, Session, SessionPhase, State, call, conn, from_list, open, restore, user,
};

/// A tab to be opened.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTab {
    /// Where it works, absolute.
    pub folder: PathBuf,
    /// Its agent; `None`: the user is asked.
    pub agent: Option<AgentSpec>,
    /// What stands in it.
    pub begin: Beginning,
}

/// What stands in a tab at first.
#[derive(Debug, Clone, PartialEq)]
pub enum Beginning {
    /// Nothing: a new session.
    New,
    /// A session that the agent keeps; its history comes from the agent.
    Listed(SessionInfo),
    /// A session that parlor kept, read and locked already. It stands on the screen at once; then its agent is
    /// asked to go on with it.
    Kept(Box<RecordedSession>),
}

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
        SessionPhase::Ended { .. } if session.ledger.reading.is_some() => TabMark::Nothing,
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
    Some(session.ledger.conns.iter().map(|conn| conn.0).collect())
}

/// What the screen shows of the tabs behind the front, as one number: as long as it is the same, nothing of it
/// needs to be drawn anew.
pub(super) fn face(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    (state.active, state.modals.len(), &state.flash).hash(&mut hasher);
    for session in tabs(state) {
        (session.key, mark(state, session), &session.title).hash(&mut hasher);
    }
    hasher.finish()
}

/// A dialog that opened by itself while another tab was in front, and since when it waits. That of a sign-in is
/// told by the session's phase.
pub(super) fn shelved_dialog(session: &Session) -> Option<(&str, Instant)> {
    session.shelf.modals.iter().find_map(|modal| match modal {
        Modal::Choice(dialog) => Some((dialog.title.as_str(), dialog.opened_by_itself?)),
        _ => None,
    })
}

/// Remembers what happened in a tab that is not in front. What is not well hides what is, and the first of several
/// successes counts: since then the user may have a look.
pub(super) fn tell_unseen(state: &mut State, key: SessionKey, what: UnseenKind, now: Instant) {
    let root = call::root_of(state, key);
    if root == front(state) {
        return;
    }
    if let Some(session) = state.sessions.get_mut(&root) {
        match (&session.unseen, &what) {
            (Some(_), UnseenKind::Finished) => {}
            _ => session.unseen = Some(Unseen { what, since: now }),
        }
    }
}

/// What a tab is called in a sentence of another one: `Tab 2`.
pub(super) fn spoken_name(state: &State, key: SessionKey) -> String {
    let root = call::root_of(state, key);
    let place = tabs(state).position(|session| session.key == root).unwrap_or(0);
    format!("Tab {}", place + 1)
}

/// A short message about a session: those of tabs behind the front say which one they mean.
pub(super) fn flash(state: &mut State, key: SessionKey, text: &str, fx: &mut Vec<Effect>) {
    if call::root_of(state, key) == front(state) {
        call::flash(state, text, fx);
    } else {
        let name = spoken_name(state, key);
        call::flash(state, format!("{name}: {text}"), fx);
    }
}

/// Calls the user, who looks at another tab or at another window: one line, and what was configured for it.
pub(super) fn announce(state: &mut State, key: SessionKey, text: &str, fx: &mut Vec<Effect>) {
    let is_front = call::root_of(state, key) == front(state);
    if is_front && state.has_focus {
        return;
    }
    let line = if is_front { text.to_owned() } else { format!("{}: {text}", spoken_name(state, key)) };
    if !is_front {
        call::flash(state, line.clone(), fx);
    }
    fx.push(Effect::Announce(line));
}

/// The sessions that have a tab, in the order of the tabs.
pub fn tabs(state: &State) -> impl DoubleEndedIterator<Item = &Session> {
    let mut tabs: Vec<&Session> =
        state.sessions.values().filter(|session| session.parent.is_none()).collect();
    tabs.sort_by_key(|session| session.rank);
    tabs.into_iter()
}

/// Moves the tab in front by one place, as far as there is one.
pub fn move_front(state: &mut State, is_right: bool) {
    let order: Vec<(SessionKey, u64)> = tabs(state).map(|session| (session.key, session.rank)).collect();
    let front = front(state);
    let place = order.iter().position(|(key, _)| *key == front);
    let other = place.and_then(|place| if is_right { place.checked_add(1) } else { place.checked_sub(1) });
    if let (Some(one), Some(other)) =
        (place.and_then(|place| order.get(place)), other.and_then(|place| order.get(place)))
    {
        for (key, rank) in [(one.0, other.1), (other.0, one.1)] {
            if let Some(session) = state.sessions.get_mut(&key) {
                session.rank = rank;
            }
        }
    }
}

/// The tab that is in front.
pub fn front(state: &State) -> SessionKey {
    call::root_of(state, state.active)
}

/// Opens a tab and puts it in front. What is open in a tab already is only put in front.
pub fn open_tab(state: &mut State, tab: NewTab, now: Instant, fx: &mut Vec<Effect>) -> SessionKey {
    let NewTab { folder, agent, begin } = tab;
    let shared = agent.as_ref().and_then(|spec| to_share(state, spec, &folder, None));
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
    let before = front(state);
    activate(state, key, now, fx);
    drop_blank(state, before);
    fx.push(Effect::ReadGit { session: key, folder });
    open::take_history(state, key, fx);
    match agent {
        // What the agent told of its session holds for this agent.
        Some(spec) if is_listed => conn::join_or_connect(state, key, spec, now, fx),
        Some(spec) => conn::start_agent(state, key, spec, now, fx),
        None => user::open_agents(state),
    }
    key
}

/// A tab in which no agent was chosen and nothing was typed is not missed by anybody.
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

/// The living connection that a session in this folder shares with others of the same agent.
pub(super) fn to_share(
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

/// Whether both start the same agent. Variables may differ: a sign-in adds some.
pub(super) fn is_same_program(one: &AgentSpec, other: &AgentSpec) -> bool {
    let url = |spec: &AgentSpec| spec.remote.as_ref().map(|remote| remote.url.clone());
    one.command == other.command && one.args == other.args && url(one) == url(other) && one.ssh == other.ssh
}

fn open_already(state: &State, begin: &Beginning, shared: Option<ConnId>) -> Option<SessionKey> {
    match begin {
        Beginning::New => None,
        Beginning::Listed(info) => call::session_by_id(state, shared?, &info.id),
        Beginning::Kept(kept) => {
            let uid = kept.head.kept_as.as_ref()?;
            let mut all = state.sessions.values();
            all.find(|session| session.ledger.keeping.kept_as.as_ref() == Some(uid)).map(|open| open.key)
        }
    }
}

/// Puts a session that is open here on the screen, with the dialogs of its tab.
pub fn activate(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    if !state.sessions.contains_key(&key) {
        return;
    }
    let (from, to) = (front(state), call::root_of(state, key));
    if from != to {
        shelve(state, from, fx);
        take_down(state, to, now);
        state.user.former_tab = Some(from);
        // What was begun in one tab must not end in another.
        state.user.last_reject = None;
        state.last_interrupt = None;
        state.user.completion = 0;
    }
    state.active = key;
    for seen in [key, to] {
        if let Some(session) = state.sessions.get_mut(&seen) {
            session.has_background_news = false;
            session.unseen = None;
        }
    }
}

/// Puts the dialogs away with the tab that they belong to. What belongs to none is closed.
fn shelve(state: &mut State, from: SessionKey, fx: &mut Vec<Effect>) {
    let mut modals = std::mem::take(&mut state.modals);
    let is_browsing = std::mem::take(&mut state.user.is_browsing);
    modals.retain(|modal| match modal {
        Modal::Picker(picker) => {
            if picker.kind == PickerKind::Theme {
                fx.push(Effect::SetTheme(state.setup.theme.clone()));
            }
            matches!(picker.kind, PickerKind::Agent | PickerKind::SignIn)
        }
        Modal::Help { .. } | Modal::Attention(_) | Modal::Sessions(_) => false,
        Modal::Choice(_)
        | Modal::Queue { .. }
        | Modal::Log { .. }
        | Modal::Connection(_)
        | Modal::Inspect(_)
        | Modal::Changes(_)
        | Modal::Line(_) => true,
    });
    if let Some(left) = state.sessions.get_mut(&from) {
        left.shelf = TabUi { modals, is_browsing };
    }
}

/// Takes the dialogs of a tab from its shelf. Those that once opened by themselves come into view by themselves
/// again, so their grace period begins anew.
fn take_down(state: &mut State, to: SessionKey, now: Instant) {
    let Some(session) = state.sessions.get_mut(&to) else { return };
    let TabUi { mut modals, is_browsing } = std::mem::take(&mut session.shelf);
    for modal in &mut modals {
        match modal {
            Modal::Choice(dialog) if dialog.opened_by_itself.is_some() => dialog.opened_by_itself = Some(now),
            Modal::Picker(picker) => picker.shown_at = None,
            _ => {}
        }
    }
    state.modals = modals;
    state.user.is_browsing = is_browsing;
}

/// Opens a dialog that belongs to a session: at once if its tab is in front, else when it is.
pub(super) fn open_dialog(state: &mut State, key: SessionKey, modal: Modal) {
    let root = call::root_of(state, key);
    if root == front(state) {
        state.modals.push(modal);
    } else if let Some(session) = state.sessions.get_mut(&root) {
        session.shelf.modals.push(modal);
    }
}

/// Closes dialogs, in whichever tab they are.
pub(super) fn retain_dialogs(state: &mut State, is_kept: impl Fn(&Modal) -> bool) {
    state.modals.retain(&is_kept);
    let shelved: Vec<SessionKey> =
        tabs(state).filter(|session| !session.shelf.modals.is_empty()).map(|session| session.key).collect();
    for key in shelved {
        if let Some(session) = state.sessions.get_mut(&key) {
            session.shelf.modals.retain(&is_kept);
        }
    }
}
