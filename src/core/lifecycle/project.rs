//! The configuration of the project in the first folder: its settings apply only if the user agrees.
//!
//! `cli::project` reads the file and applies settings that were allowed before; `host::trust` saves the answer.

use std::time::Instant;

use super::{call, conn};
use crate::core::{Consequence, Cx, Effect, ProjectRequest, Question, State, TrustAnswer, UiRequest};
use crate::escape::visible;
use crate::model::{ConfigJob, ProjectQuestion};

/// Asks about the settings. An agent whose start waits for the answer starts after it.
pub(in crate::core) fn ask(state: &mut State, request: ProjectRequest, now: Instant) {
    let ProjectQuestion { file, lines, .. } = &*request.question;
    let mut body =
        vec![format!("{} sets for this project:", visible(&file.to_string_lossy())), String::new()];
    body.extend(lines.iter().cloned());
    let title = "Use the configuration of this project?";
    let question = Question::about_files(title, body, "the file changes", Consequence::Project, now);
    state.ask(request.session, question);
    state.project = Some(Box::new(request));
}

/// Applies and saves the user's answer.
pub fn answer_project(state: &mut State, answer: TrustAnswer, cx: &mut Cx) {
    let Some(request) = state.project.take() else { return };
    let ProjectRequest { question, session, held } = *request;
    let ProjectQuestion { file, theme, agent: chosen, templates, answer_file, .. } = *question;
    let keep = |allows| Effect::KeepTrust { location: answer_file, allows, about: file };
    let mut agent = None;
    match answer {
        TrustAnswer::Use => {
            cx.effects.push(keep(true));
            cx.effects.push(Effect::Configure(ConfigJob::UseProject));
            if let Some(theme) = theme {
                state.setup.theme = theme;
                cx.effects.push(Effect::SetTheme(state.setup.theme_in_use().to_owned()));
            }
            if templates == Some(false) {
                state.setup.without_templates = Some(state.setup.folder.clone());
            }
            agent = chosen;
        }
        TrustAnswer::LeaveOut => cx.effects.push(keep(false)),
        TrustAnswer::NotNow => {
            let text = "The project's configuration is not used. You will be asked again at the next start.";
            call::flash(state, text, cx);
        }
    }
    let Some(held) = held else { return };
    match agent.or(held.map(|spec| *spec)) {
        Some(spec) => conn::start_agent(state, session, spec, cx),
        None => cx.requests.push(UiRequest::AgentPicker),
    }
}
