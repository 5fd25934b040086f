//! Prompt templates of a session: requests the list, reports files that cannot be used, and has the user review those of
//! a project.
//!
//! `host::templates` reads the files; `prompt` and `turn` send a prompt that calls one.

use std::path::PathBuf;
use std::time::Instant;

use crate::core::state::commands;
use crate::core::{Consequence, Cx, Effect, Question, State, TrustAnswer};
use crate::escape::{self, visible};
use crate::model::{SessionKey, Severity, TemplateList, UnreviewedTemplate};

use super::call;

/// More consecutive blank lines are counted.
const MAX_BLANK_LINES: usize = 3;

pub fn load_templates(state: &State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key).filter(|session| session.parent.is_none()) else { return };
    let project = commands::project_of(state, session);
    cx.effects.push(Effect::LoadTemplates { session: key, project, answers: Vec::new(), allows: false });
}

/// The templates were listed. Problems are reported once.
pub(in crate::core) fn on_found(state: &mut State, key: SessionKey, list: TemplateList) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let is_new = !list.problems.is_empty() && list.problems != session.templates.problems;
    let detail = list.problems.join("\n");
    session.templates = list;
    if is_new {
        let title = "Some prompt templates cannot be used.";
        call::notice(state, key, Severity::Warning, title, Some(detail));
    }
}

/// Asks about all templates of the active session's project that the user has not decided on.
pub fn review_templates(state: &mut State, now: Instant) {
    let key = state.active;
    let unreviewed = state.active_session().map(|session| session.templates.unreviewed.clone());
    ask(state, key, unreviewed.unwrap_or_default(), now);
}

/// Asks about these templates of a session's project. They are shown whole, because the end of one may say the opposite.
pub(super) fn ask(state: &mut State, key: SessionKey, templates: Vec<UnreviewedTemplate>, now: Instant) {
    let is_it = |consequence: &Consequence| matches!(consequence, Consequence::Templates { .. });
    if templates.is_empty() || state.is_asked(is_it) {
        return;
    }
    let folder = state.sessions.get(&key).map(|session| session.workspace.cwd.clone()).unwrap_or_default();
    let mut body = vec![
        "A template is sent to the agent as your prompt when you call it. Review the text first:".to_owned(),
    ];
    for template in &templates {
        body.push(String::new());
        let file = template.file.strip_prefix(&folder).unwrap_or(&template.file);
        body.push(format!("/project:{}  {}", visible(&template.name), visible(&file.to_string_lossy())));
        let is_blank = |line: &&str| line.chars().all(|ch| ch.is_whitespace() || escape::is_blank(ch));
        let mut lines = template.text.lines().peekable();
        while let Some(line) = lines.next() {
            let mut blank = vec![line];
            while is_blank(&line) && lines.peek().is_some_and(is_blank) {
                blank.extend(lines.next());
            }
            if blank.len() > MAX_BLANK_LINES {
                body.push(format!("· … {} blank lines", blank.len()));
            } else {
                body.extend(blank.into_iter().map(|line| format!("· {}", visible(line))));
            }
        }
    }
    let answers: Vec<(PathBuf, PathBuf)> =
        templates.into_iter().map(|template| (template.answer_file, template.file)).collect();
    let consequence = |answer| Consequence::Templates { session: key, answers: answers.clone(), answer };
    let (title, until) = match answers.len() {
        1 => ("Use this template of the project?", "it changes"),
        _ => ("Use these templates of the project?", "they change"),
    };
    state.ask(key, Question::about_files(title, body, until, consequence, now));
}

/// Saves the user's answer, and lists the templates again.
pub(super) fn answer(
    state: &State,
    key: SessionKey,
    answers: Vec<(PathBuf, PathBuf)>,
    answer: TrustAnswer,
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get(&key).filter(|_| answer != TrustAnswer::NotNow) else { return };
    cx.effects.push(Effect::LoadTemplates {
        session: key,
        project: commands::project_of(state, session),
        answers,
        allows: answer == TrustAnswer::Use,
    });
}
