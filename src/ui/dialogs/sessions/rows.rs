//! The rows of the sessions dialog: open, stored and listed sessions, joined by agent and id.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use crate::core::state::lookup;
use crate::core::state::titles::session_title;
use crate::core::{Session, SessionPhase, State};
use crate::model::{ArchiveRow, Nearness, SessionId, SessionInfo, SessionKey};
use crate::ui::App;

use super::{OpenRow, SessionEntry, SessionsDialog, Sort};

/// Updates the list after the open or listed sessions changed.
pub fn refresh(app: &mut App) {
    change(app, |_| {});
}

/// Changes the list and builds its rows again.
pub fn change(app: &mut App, change: impl FnOnce(&mut SessionsDialog)) {
    if let Some(dialog) = app.layers.find_mut::<SessionsDialog>() {
        change(dialog);
        dialog.join(&app.state);
    }
}

/// The title of a stored session changed, if given, or whether its agent does not have it.
pub fn on_title(app: &mut App, uid: &str, title: Option<&str>, owes: bool) {
    change(app, |dialog| {
        for row in dialog.saved.iter_mut().filter(|row| row.uid == uid) {
            let row = Arc::make_mut(row);
            row.owes_title = owes;
            if let Some(title) = title {
                title.clone_into(&mut row.title);
            }
        }
    });
}

impl SessionsDialog {
    /// Rebuilds the list; the selected session stays selected.
    pub fn join(&mut self, state: &State) {
        let marked = self.marked().map(identity);
        self.active = state.active;
        self.rows = joined(&self.saved, state, self.sort, self.today_ms);
        self.refilter();
        if let Some(marked) = marked.filter(|_| self.is_chosen) {
            let is_it =
                |position: &usize| self.rows.get(*position).is_some_and(|row| identity(row) == marked);
            self.selected = self.matches.iter().position(is_it).unwrap_or(0);
        }
    }
}

/// Identifies an entry after the list changed.
fn identity(row: &SessionEntry) -> (Option<SessionKey>, Option<String>, Option<SessionId>) {
    let key = row.open.as_ref().map(|open| open.key);
    let uid = row.uid().map(str::to_owned).filter(|_| key.is_none());
    let listed = row.listed.as_ref().map(|info| info.id.clone()).filter(|_| key.is_none() && uid.is_none());
    (key, uid, listed)
}

/// The sources joined in one sorted list: open sessions first, each followed by its subagents.
fn joined(saved: &[Arc<ArchiveRow>], state: &State, sort: Sort, today_ms: i64) -> Vec<SessionEntry> {
    let conn = state.active_session().and_then(|session| session.conn);
    let agent = conn.and_then(|conn| state.conns.get(&conn)).map(|conn| conn.spec.name.as_str());
    let lister: Arc<str> = agent.unwrap_or_default().into();
    let mut listed: HashMap<&str, Arc<SessionInfo>> =
        state.listed().iter().map(|info| (info.id.as_str(), Arc::new(info.clone()))).collect();
    let by_uid: HashMap<&str, &Arc<ArchiveRow>> = saved.iter().map(|row| (row.uid.as_str(), row)).collect();
    let mut shown_uids: Vec<&str> = Vec::new();
    let mut rows = Vec::with_capacity(saved.len() + listed.len());
    for session in open_sessions(state) {
        let of_agent = session.id.as_ref().filter(|_| session.conn == conn);
        let uid = session.recorder.saved_as();
        let saved_row = uid.and_then(|uid| by_uid.get(uid).copied());
        shown_uids.extend(saved_row.map(|row| row.uid.as_str()));
        rows.push(SessionEntry {
            lister: Arc::clone(&lister),
            folder: session.workspace.cwd.as_path().into(),
            nearness: saved_row.map_or(Nearness::Here, |row| row.nearness),
            updated_ms: i64::MAX,
            saved: saved_row.cloned(),
            listed: of_agent.and_then(|id| listed.remove(id.as_str())),
            open: Some(open_row(state, session)),
        });
    }
    let open_count = rows.len();
    for row in saved.iter().filter(|row| !shown_uids.contains(&row.uid.as_str())) {
        let of_agent = row.agent_session.as_ref().filter(|_| Some(row.agent.as_str()) == agent);
        rows.push(SessionEntry {
            lister: Arc::clone(&lister),
            open: None,
            listed: of_agent.and_then(|id| listed.remove(id.as_str())),
            folder: row.folder.as_path().into(),
            nearness: row.nearness,
            updated_ms: row.updated_ms,
            saved: Some(Arc::clone(row)),
        });
    }
    let here = state.active_session().map(|session| session.workspace.cwd.as_path());
    // In the agent's order, because it may not report times.
    for info in state.listed().iter().filter_map(|info| listed.remove(info.id.as_str())) {
        let is_here = info.cwd.as_os_str().is_empty() || Some(info.cwd.as_path()) == here;
        rows.push(SessionEntry {
            lister: Arc::clone(&lister),
            open: None,
            saved: None,
            folder: info.cwd.as_path().into(),
            nearness: if is_here { Nearness::Here } else { Nearness::Elsewhere },
            updated_ms: info.updated_at.as_deref().map(unix_ms).unwrap_or_default(),
            listed: Some(info),
        });
    }
    if let Some(others) = rows.get_mut(open_count..) {
        match sort {
            // They would fill the list before those that are worth resuming.
            Sort::Time => {
                others.sort_by_key(|row| (row.is_unanswered(today_ms), Reverse(row.updated_ms)));
            }
            Sort::Name => others.sort_by_cached_key(|row| row.name().to_lowercase()),
            Sort::Agent => {
                others.sort_by(|a, b| a.agent().cmp(b.agent()).then(b.updated_ms.cmp(&a.updated_ms)));
            }
            Sort::Folder => {
                others.sort_by(|a, b| a.folder().cmp(b.folder()).then(b.updated_ms.cmp(&a.updated_ms)));
            }
        }
    }
    rows
}

fn open_sessions(state: &State) -> Vec<&Session> {
    // A blank tab without an agent has nothing to show.
    let is_shown = |session: &&Session| {
        session.phase != SessionPhase::NoAgent
            || !session.transcript.items().is_empty()
            || !session.draft.is_empty()
    };
    let mut here: Vec<&Session> = state.sessions.values().filter(is_shown).collect();
    here.sort_by_key(|session| (lookup::root_of(state, session.key), session.key));
    here
}

fn open_row(state: &State, session: &Session) -> OpenRow {
    let kept_agent = session.recorder.agent().map(|(name, ..)| name.clone());
    OpenRow {
        key: session.key,
        name: session_title(session),
        agent: state
            .conn_of(session.key)
            .map(|conn| conn.spec.name.clone())
            .or(kept_agent)
            .unwrap_or_default(),
        branch: session.git.as_ref().map(|git| git.branch.clone()),
        is_child: session.parent.is_some(),
        state: open_state(session),
        owes_title: session.title_state.is_owed(),
    }
}

fn open_state(session: &Session) -> &'static str {
    if !session.requests.is_empty() {
        "answer required"
    } else if session.turn.is_running() {
        "working"
    } else if session.read_only.is_some() {
        "read-only"
    } else if session.has_background_news {
        "activity"
    } else {
        "open"
    }
}

fn unix_ms(text: &str) -> i64 {
    text.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_millisecond).unwrap_or_default()
}
