//! The review of prompt templates of a project: shows their text, and saves the user's answer.

use std::path::PathBuf;
use std::time::Instant;

use crate::app::lifecycle::tabs::open_dialog;
use crate::app::state::commands;
use crate::app::state::modal::trust_question;
use crate::app::state::tab;
use crate::app::{ChoiceOutcome, Effect, State, TrustAnswer};
use crate::escape::visible;
use crate::model::{SessionKey, UnreviewedTemplate};

/// Maximum number of lines of templates that the dialog shows.
const MOST_LINES: usize = 400;
/// Maximum number of characters of a line.
const MOST_CHARS: usize = 2_000;

/// Asks about all templates of the active session's project that the user has not decided on.
pub fn review(state: &mut State) {
    let key = state.active;
    let unreviewed = state.active_session().map(|session| session.templates.unreviewed.clone());
    ask(state, key, unreviewed.unwrap_or_default(), None);
}

/// Asks about these templates of a session's project.
pub fn ask(state: &mut State, key: SessionKey, templates: Vec<UnreviewedTemplate>, shown: Option<Instant>) {
    let is_it = |outcome: &ChoiceOutcome| matches!(outcome, ChoiceOutcome::AnswerTemplates { .. });
    if templates.is_empty() || tab::has_choice(state, is_it) {
        return;
    }
    let folder = state.sessions.get(&key).map(|session| session.workspace.cwd.clone()).unwrap_or_default();
    let mut body = vec![
        "A template is sent to the agent as your prompt when you call it. Review the text first:".to_owned(),
    ];
    let mut left = MOST_LINES;
    for template in &templates {
        body.push(String::new());
        let file = template.file.strip_prefix(&folder).unwrap_or(&template.file);
        body.push(format!("/project:{}  {}", visible(&template.name), visible(&file.to_string_lossy())));
        let mut lines = template.text.lines();
        for line in lines.by_ref().take(left) {
            let end = line.char_indices().nth(MOST_CHARS).map_or(line.len(), |(end, _)| end);
            let (shown, rest) = line.split_at(end);
            body.push(format!("· {}", visible(shown)));
            if !rest.is_empty() {
                let count = rest.chars().count();
                body.push(format!("… {count} more characters, not shown here. Read them in the file."));
            }
            left -= 1;
        }
        let hidden = lines.count();
        if hidden > 0 {
            body.push(format!("… {hidden} more lines, not shown here. Read them in the file."));
        }
    }
    let answers: Vec<(PathBuf, PathBuf)> =
        templates.into_iter().map(|template| (template.answer_file, template.file)).collect();
    let outcome = |answer| ChoiceOutcome::AnswerTemplates { session: key, answers: answers.clone(), answer };
    let (title, until) = match answers.len() {
        1 => ("Use this template of the project?", "it changes"),
        _ => ("Use these templates of the project?", "they change"),
    };
    open_dialog(state, key, trust_question(title, body, until, outcome, shown));
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
