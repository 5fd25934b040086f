//! Prompts before they are sent: the prompt history, and reading the files and attachments that they refer to.
//!
//! `turn` sends them. Invariants: a prompt that cannot be sent is given back to the user; the agent's command precedes a
//! template of the same name, also if the agent lists its commands a moment after the session was opened.

use std::time::Duration;

use super::{call, shell, templates};
use crate::core::state::commands;
use crate::core::{Conn, Cx, Effect, Prompt, Session, State, TimerId, UiRequest};
use crate::model::{
    PreparedPrompt, PromptId, PromptJob, PromptTakes, SessionKey, attachment_labels, mentions,
};

/// How long a prompt that calls a template waits for the commands of an agent whose session was just opened.
pub(super) const COMMANDS_LIMIT: Duration = Duration::from_secs(2);

/// Maximum number of prompts in a session's history.
const MAX_HISTORY: usize = 1_000;

/// Has the files and attachments of a prompt read, and the template that it calls. Returns whether it refers to any.
pub(super) fn prepare(state: &mut State, key: SessionKey, prompt: PromptId, cx: &mut Cx) -> bool {
    let Some(session) = state.sessions.get(&key) else { return false };
    let Some(text) = session.outbox.get(prompt).map(|prompt| prompt.text.clone()) else { return false };
    let template = commands::template_call(state, session, &text);
    if mentions(&text).is_empty() && attachment_labels(&text).is_empty() && template.is_none() {
        return false;
    }
    let can = state.conn_of(key).map(Conn::capabilities).unwrap_or_default();
    let outputs = shell::outputs(session, &text, template.is_some());
    let workspace = &session.workspace;
    cx.effects.push(Effect::PreparePrompt(PromptJob {
        session: key,
        prompt,
        text,
        folder: workspace.remote.is_none().then(|| workspace.cwd.clone()),
        roots: workspace.roots(),
        template,
        takes: PromptTakes {
            images: can.prompt_image,
            audio: can.prompt_audio,
            embedded: can.prompt_embedded_context,
        },
        outputs,
        listed: session.listed_files.paths().to_vec(),
    }));
    true
}

/// Whether a prompt whose files were read cannot be sent: then the user is told why. A missing file prevents it only once.
pub(super) fn is_obstructed(
    state: &mut State,
    key: SessionKey,
    prepared: &PreparedPrompt,
    cx: &mut Cx,
) -> bool {
    let Some(session) = state.sessions.get_mut(&key) else { return false };
    let mut problems = prepared.problems.clone();
    problems.extend(prepared.missing.iter().map(|path| format!("{path} does not exist or cannot be read.")));
    if !prepared.missing.is_empty() {
        session.listed_files.remove(&prepared.missing);
        problems.push("Send the prompt again to send it without the file.".to_owned());
    }
    if problems.is_empty() {
        return false;
    }
    match prepared.unreviewed.clone() {
        Some(_) if state.setup.is_plain => {
            problems.push("Start parlor without --plain to review it.".to_owned());
        }
        Some(template) => templates::ask(state, key, vec![template], cx.now),
        None => {}
    }
    call::flash(state, format!("Not sent. {}", problems.join(" ")), cx);
    true
}

/// Whether a prompt has to wait, because a template that it calls may have the name of a command that the agent has not
/// listed yet.
pub(super) fn waits_for_commands(state: &mut State, key: SessionKey, text: &str, cx: &mut Cx) -> bool {
    let Some(session) = state.sessions.get(&key) else { return false };
    let Some(left) = session.outbox.commands_until().and_then(|until| until.checked_duration_since(cx.now))
    else {
        return false;
    };
    let call = commands::template_call(state, session, text);
    if left.is_zero() || call.is_none_or(|call| call.source.is_some()) {
        return false;
    }
    if !session.templates.is_loaded {
        templates::load_templates(state, key, cx);
    }
    cx.effects.push(Effect::Timer(TimerId::Commands(key), left));
    if let Some(session) = state.sessions.get_mut(&key) {
        session.outbox.wait_for_commands();
    }
    true
}

/// Gives a prompt that cannot be sent back to the user: in the composer, or first in the queue if the composer is in use.
/// The queue waits.
pub(super) fn give_back(state: &mut State, key: SessionKey, prompt: PromptId, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.outbox.give_back(prompt);
    if !session.draft.is_empty() {
        return;
    }
    let Some(Prompt { text, .. }) = session.outbox.remove(prompt) else { return };
    session.draft = text;
    cx.requests.push(UiRequest::DraftChanged(key));
}

/// Adds a text to the prompt history, unless it equals the last one.
pub fn remember(session: &mut Session, text: &str, cx: &mut Cx) {
    if text.trim().is_empty() {
        return;
    }
    if session.history.last().is_none_or(|last| last != text) {
        session.history.push(text.to_owned());
        if session.history.len() > MAX_HISTORY {
            session.history.remove(0);
        }
    }
    cx.effects.push(Effect::SavePrompt { folder: session.workspace.cwd.clone(), text: text.to_owned() });
}
