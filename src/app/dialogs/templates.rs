//! The review of prompt templates of a project: shows their text, and saves the user's answer.

use std::path::PathBuf;
use std::time::Instant;

use crate::app::lifecycle::tabs::open_dialog;
use crate::app::state::commands;
use crate::app::state::modal::trust_question;
use crate::app::state::tab;
use crate::app::{ChoiceOutcome, Effect, State, TrustAnswer};
use crate::escape::{self, visible};
use crate::model::{SessionKey, UnreviewedTemplate};

/// More consecutive blank lines are counted.
const MAX_BLANK_LINES: usize = 3;

/// Asks about all templates of the active session's project that the user has not decided on.
pub fn review(state: &mut State, now: Instant) {
    let key = state.active;
    let unreviewed = state.active_session().map(|session| session.templates.unreviewed.clone());
    ask(state, key, unreviewed.unwrap_or_default(), now);
}

/// Asks about these templates of a session's project. They are shown whole, because the end of one may say the opposite.
pub fn ask(state: &mut State, key: SessionKey, templates: Vec<UnreviewedTemplate>, now: Instant) {
    let is_it = |outcome: &ChoiceOutcome| matches!(outcome, ChoiceOutcome::AnswerTemplates { .. });
    if templates.is_empty() || tab::has_choice(state, is_it) {
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
        let is_blank =
            |line: &&str| line.chars().all(|letter| letter.is_whitespace() || escape::is_blank(letter));
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
    let outcome = |answer| ChoiceOutcome::AnswerTemplates { session: key, answers: answers.clone(), answer };
    let (title, until) = match answers.len() {
        1 => ("Use this template of the project?", "it changes"),
        _ => ("Use these templates of the project?", "they change"),
    };
    open_dialog(state, key, trust_question(title, body, until, outcome, Some(now)));
}

/// Saves the user's answer, and lists the templates again.
pub fn answer(
    state: &State,
    key: SessionKey,
    answers: &[(PathBuf, PathBuf)],
    answer: TrustAnswer,
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get(&key).filter(|_| answer != TrustAnswer::NotNow) else { return };
    fx.push(Effect::LoadTemplates {
        session: key,
        project: commands::project_of(state, session),
        answers: answers.to_vec(),
        allows: answer == TrustAnswer::Use,
    });
}
