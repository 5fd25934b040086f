//! Sessions in git worktrees of their own. The host makes, lists, removes and merges them.
//!
//! A worktree is known by its path, so a resumed session needs nothing else.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::model::{SessionKey, Severity, WorktreeJob, WorktreeNews};

use super::{call, new_tab, tabs};
use crate::core::state::{lookup, tab, texts};
use crate::core::{Consequence, Cx, Effect, Question, State};

/// Makes a worktree for a session with the agent of the active tab. `name`: `None` to generate one.
pub fn new_worktree(state: &mut State, name: Option<String>, cx: &mut Cx) {
    match state.conn_of(tab::front(state)) {
        None => call::flash(state, texts::NOT_READY, cx),
        Some(conn) if conn.spec.is_elsewhere() => {
            call::flash(state, "The agent is on another machine. Make the worktree there with git.", cx);
        }
        Some(_) => {
            call::flash(state, "Making a worktree…", cx);
            worktree_job(state, WorktreeJob::Make(name), cx);
        }
    }
}

/// Starts a job with worktrees of the active tab's repository.
pub fn worktree_job(state: &State, job: WorktreeJob, cx: &mut Cx) {
    cx.effects.push(effect_of(state, job));
}

fn effect_of(state: &State, job: WorktreeJob) -> Effect {
    let session = tab::front(state);
    Effect::Worktree { session, folder: lookup::folder_of(state, session), job }
}

/// Asks whether to remove a worktree.
pub fn ask_to_remove_worktree(state: &mut State, name: &str) {
    let remove = Consequence::effect(effect_of(state, WorktreeJob::Remove(name.to_owned())));
    let body = [
        "Deletes its folder, with ignored files such as build results and local settings, and its branch.",
        "parlor refuses if it is in use, or has changes or commits that are nowhere else.",
    ];
    let answers = [("Cancel", Consequence::Close), ("Remove", remove)];
    let title = format!("Remove the worktree {name}?");
    state.ask(tab::front(state), Question::new(title, body.map(str::to_owned).to_vec(), answers));
}

pub(in crate::core) fn on_news(
    state: &mut State,
    session: SessionKey,
    news: Result<WorktreeNews, String>,
    cx: &mut Cx,
) {
    match news {
        Ok(WorktreeNews::Made(made)) => {
            state.clear_flash();
            let spec = state.conn_of(session).map(|conn| conn.spec.clone());
            let key = spec.map_or(session, |spec| new_tab::open_tab(state, made.folder, spec, cx));
            call::notice(state, key, Severity::Info, made.title, Some(made.details));
        }
        Ok(WorktreeNews::Done(text)) => tabs::flash(state, session, &text, cx),
        // The list is shown by the front end.
        Ok(WorktreeNews::Listed(_)) => {}
        Err(why) => {
            state.clear_flash();
            call::notice(state, session, Severity::Warning, why, None);
        }
    }
}

/// Shows the open session in a worktree, or starts a new one.
pub fn open_worktree(state: &mut State, folder: PathBuf, cx: &mut Cx) {
    let open = tab::tabs(state).find(|session| session.workspace.cwd == folder).map(|it| it.key);
    if let Some(key) = open {
        tabs::activate(state, key);
    } else if let Some(spec) = state.conn_of(tab::front(state)).map(|conn| conn.spec.clone()) {
        new_tab::open_tab(state, folder, spec, cx);
    } else {
        call::flash(state, texts::NOT_READY, cx);
    }
}

/// Reports the worktrees of open sessions to the host, which locks them, if they have changed.
pub(in crate::core) fn note_use(state: &mut State, cx: &mut Cx) {
    let sessions = state.sessions.values().filter(|session| session.read_only.is_none());
    let used: BTreeSet<PathBuf> =
        sessions.filter_map(|session| lookup::worktree_of(state, &session.workspace.cwd)).collect();
    if used != state.used_worktrees {
        state.used_worktrees.clone_from(&used);
        worktree_job(state, WorktreeJob::Lock(used), cx);
    }
}
