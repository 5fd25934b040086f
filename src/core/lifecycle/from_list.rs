//! Opens a session from the agent's list.
//!
//! Asks about the folders reported by the agent, and creates the session. A session that parlor has stored is opened
//! from the store (`archive`). `listing` has the list, `open` the call.
//! Invariant: a folder reported by an agent is used only after the user has seen and confirmed it.

use std::path::PathBuf;
use std::time::Instant;

use crate::escape::visible;
use crate::model::{ConnId, SessionId, SessionInfo, SessionKey, StoreJob, UserRoot};

use super::{archive, call, history, open, tabs};
use crate::core::state::{lookup, tab};
use crate::core::{ConnPhase, Consequence, Cx, Effect, Question, Session, State};

/// Opens a session that the agent listed, replacing the active session if that has no prompts.
pub fn open_session(state: &mut State, id: SessionId, cx: &mut Cx) {
    let root = lookup::root_of(state, state.active);
    let Some((conn, caps)) =
        state.conn_of(root).filter(|conn| conn.phase == ConnPhase::Ready).map(|c| (c.id, c.capabilities()))
    else {
        call::flash(state, crate::core::state::texts::NOT_READY, cx);
        return;
    };
    // Agents refuse to load an open session, so it is activated.
    if let Some(open) = lookup::session_by_id(state, conn, &id) {
        tabs::activate(state, open);
        return;
    }
    if !caps.can_load && !caps.can_resume {
        call::flash(state, "This agent cannot load previous sessions.", cx);
        return;
    }
    let listed = state.listed().iter().find(|info| info.id == id).cloned();
    let listed = listed.unwrap_or(SessionInfo {
        id,
        cwd: lookup::folder_of(state, root),
        title: None,
        updated_at: None,
        additional_directories: Vec::new(),
        is_archived: false,
        is_live: None,
    });
    if state.setup.saves_sessions {
        let agent = state.conns.get(&conn).map(|conn| conn.spec.name.clone()).unwrap_or_default();
        let folder = state.setup.folder.clone();
        cx.effects.push(Effect::Store(StoreJob::OpenListed { conn, agent, info: Box::new(listed), folder }));
    } else {
        ask_or_open(state, conn, listed, cx);
    }
}

/// Opens a session from the agent, because it is not in the store.
pub(in crate::core) fn on_not_kept(state: &mut State, conn: ConnId, info: SessionInfo, cx: &mut Cx) {
    let root = lookup::root_of(state, state.active);
    if state.conn_of(root).is_some_and(|open| open.id == conn && open.phase == ConnPhase::Ready) {
        ask_or_open(state, conn, info, cx);
    }
}

fn ask_or_open(state: &mut State, conn: ConnId, info: SessionInfo, cx: &mut Cx) {
    let root = lookup::root_of(state, state.active);
    match question_of_folders(state, root, &info, cx.now) {
        Some(question) => state.ask(root, question),
        None => open_from_list(state, conn, info, false, cx),
    }
}

/// Opens a session that the agent listed, after the user has confirmed its folders.
pub fn open_listed(state: &mut State, info: &SessionInfo, with_folders: bool, cx: &mut Cx) {
    let root = lookup::root_of(state, state.active);
    match state.conn_of(root).filter(|conn| conn.phase == ConnPhase::Ready).map(|conn| conn.id) {
        Some(conn) => open_from_list(state, conn, info.clone(), with_folders, cx),
        None => call::flash(state, crate::core::state::texts::NOT_READY, cx),
    }
}

fn open_from_list(state: &mut State, conn: ConnId, info: SessionInfo, with_folders: bool, cx: &mut Cx) {
    if let Some(open) = lookup::session_by_id(state, conn, &info.id) {
        tabs::activate(state, open);
        return;
    }
    let former = tab::front(state);
    let folder = lookup::folder_of(state, lookup::root_of(state, state.active));
    let key = open::add_beside(state, conn, folder, cx);
    if let Some(session) = state.sessions.get_mut(&key) {
        take_listed(session, info, with_folders);
    }
    history::init_history(state, key, cx);
    open::open(state, key, cx);
    archive::drop_unused(state, former, cx);
}

/// The question before a session opens in folders reported by the agent; `None` if it works only in a folder that the
/// user already has a session in.
fn question_of_folders(
    state: &State,
    root: SessionKey,
    info: &SessionInfo,
    now: Instant,
) -> Option<Question> {
    let workspace = &state.sessions.get(&root)?.workspace;
    let is_known = !info.cwd.is_absolute()
        || if workspace.remote.is_some() {
            workspace.folder() == info.cwd
        } else {
            info.cwd == state.setup.folder || tab::tabs(state).any(|tab| tab.workspace.cwd == info.cwd)
        };
    let new: Vec<&PathBuf> = {
        let is_new =
            |folder: &&PathBuf| !workspace.additional_directories.iter().any(|root| **root == ***folder);
        info.additional_directories.iter().filter(|_| workspace.remote.is_none()).filter(is_new).collect()
    };
    if is_known && new.is_empty() {
        return None;
    }
    let shown = |folder: &PathBuf| visible(&folder.to_string_lossy()).into_owned();
    let mut body = vec![format!("The agent reports {} as the folder of this session.", shown(&info.cwd))];
    if !new.is_empty() {
        body.push("Additional folders:".to_owned());
        body.extend(new.into_iter().map(shown));
    }
    body.push("The agent can read and write files in the session's folders without asking.".to_owned());
    let open =
        |label: String, with_folders| (label, Consequence::OpenListed(Box::new(info.clone()), with_folders));
    let mut answers = Vec::new();
    if body.len() > 2 {
        answers.push(open(format!("Open in {} only", shown(&info.cwd)), false));
        answers.push(open("Open with all folders".to_owned(), true));
    } else {
        answers.push(open(format!("Open in {}", shown(&info.cwd)), false));
    }
    answers.push(("Do not open".to_owned(), Consequence::Close));
    let question = Question::new("Open this session in the agent's folders?", body, answers).asked_at(now);
    // A folder that the user has not chosen before is not preselected.
    Some(if is_known { question } else { question.marking_last() })
}

/// Initializes a new session with a listed one, whose history is still to be replayed. The user has confirmed its
/// folder, and the additional ones if they become roots.
pub(in crate::core) fn take_listed(session: &mut Session, info: SessionInfo, with_folders: bool) {
    session.id = Some(info.id);
    session.title = info.title;
    session.is_archived = info.is_archived;
    session.resume.begin_listed();
    // ACP v1 session-setup: a loaded session needs all its folders again.
    if with_folders && session.workspace.remote.is_none() {
        for folder in info.additional_directories {
            let root = UserRoot::given(folder);
            if !session.workspace.additional_directories.contains(&root) {
                session.workspace.additional_directories.push(root);
            }
        }
    }
    match &mut session.workspace.remote {
        _ if !info.cwd.is_absolute() => {}
        Some(remote) => remote.folder = info.cwd,
        None => session.workspace.cwd = info.cwd,
    }
}
