//! Prompt templates of a session: requests the list, and reports files that cannot be used.
//!
//! `host::templates` reads the files; `prompt` and `turn` send a prompt that calls one.

use crate::app::state::commands;
use crate::app::{Effect, State};
use crate::model::{SessionKey, Severity, TemplateList};

use super::call;

pub fn load_templates(state: &State, key: SessionKey, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get(&key).filter(|session| session.parent.is_none()) else { return };
    let project = commands::project_of(state, session);
    fx.push(Effect::LoadTemplates { session: key, project, answers: Vec::new(), allows: false });
}

/// The templates were listed. Problems are reported once.
pub(in crate::app) fn on_found(state: &mut State, key: SessionKey, list: TemplateList) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let is_new = !list.problems.is_empty() && list.problems != session.templates.problems;
    let detail = list.problems.join("\n");
    session.templates = list;
    if is_new {
        let title = "Some prompt templates cannot be used.";
        call::notice(state, key, Severity::Warning, title, Some(detail));
    }
}
