//! Prompts before they are sent: the prompt history, and reading the files and attachments that they refer to.
//!
//! `turn` sends them. Invariants: a prompt that cannot be sent is given back to the user; the agent's command precedes a
//! template of the same name, also if the agent lists its commands a moment after the session was opened.

use std::time::{Duration, Instant};

use super::{shell, templates};
use crate::app::state::commands;
use crate::app::{Conn, Effect, Preparing, Session, State, TimerId, ViewCommand};
use crate::model::{PreparedPrompt, PromptJob, PromptTakes, SessionKey, attachment_labels, mentions};

/// How long a prompt that calls a template waits for the commands of an agent whose session was just opened.
pub(super) const COMMANDS_LIMIT: Duration = Duration::from_secs(2);

/// Maximum number of prompts in a session's history.
const MOST_HISTORY: usize = 1_000;

/// Has the files and attachments of a prompt read, and the template that it calls. Returns the prompt if it refers to
/// nothing.
pub(super) fn prepare(
    state: &mut State,
    key: SessionKey,
    preparing: Preparing,
    fx: &mut Vec<Effect>,
) -> Result<(), Preparing> {
    let session = state.sessions.get(&key);
    let template = session.and_then(|session| commands::template_call(state, session, &preparing.text));
    if mentions(&preparing.text).is_empty()
        && attachment_labels(&preparing.text).is_empty()
        && template.is_none()
    {
        return Err(preparing);
    }
    let can = state.conn_of(key).map(Conn::capabilities).unwrap_or_default();
    let Some(session) = state.sessions.get_mut(&key) else { return Err(preparing) };
    let outputs = shell::outputs(session, &preparing.text, template.is_some());
    let workspace = &session.workspace;
    fx.push(Effect::PreparePrompt(PromptJob {
        session: key,
        text: preparing.text.clone(),
        folder: workspace.far.is_none().then(|| workspace.cwd.clone()),
        roots: workspace.roots(),
        template,
        takes: PromptTakes {
            images: can.prompt_image,
            audio: can.prompt_audio,
            embedded: can.prompt_embedded_context,
        },
        outputs,
        listed: session.prompts.listed().to_vec(),
    }));
    session.prompts.prepare(preparing);
    Ok(())
}

/// Why a prompt whose files were read is not sent. A missing file prevents it only once.
pub(super) fn obstacle(session: &mut Session, prepared: &PreparedPrompt) -> Option<String> {
    let mut problems = prepared.problems.clone();
    problems.extend(prepared.missing.iter().map(|path| format!("{path} does not exist or cannot be read.")));
    if !prepared.missing.is_empty() {
        session.prompts.forget_listed(&prepared.missing);
        problems.push("Send the prompt again to send it without the file.".to_owned());
    }
    (!problems.is_empty()).then(|| format!("Not sent. {}", problems.join(" ")))
}

/// Whether a prompt has to wait, because a template that it calls may have the name of a command that the agent has not
/// listed yet.
pub(super) fn waits_for_commands(
    state: &mut State,
    key: SessionKey,
    text: &str,
    now: Instant,
    fx: &mut Vec<Effect>,
) -> bool {
    let Some(session) = state.sessions.get(&key) else { return false };
    let Some(left) = session.prompts.commands_until().and_then(|until| until.checked_duration_since(now))
    else {
        return false;
    };
    let call = commands::template_call(state, session, text);
    if left.is_zero() || call.is_none_or(|call| call.source.is_some()) {
        return false;
    }
    if !session.templates.is_loaded {
        templates::load_templates(state, key, fx);
    }
    fx.push(Effect::Timer(TimerId::Commands(key), left));
    if let Some(session) = state.sessions.get_mut(&key) {
        session.prompts.wait_for_commands();
    }
    true
}

/// Puts a prompt into the composer, or into the queue if the composer is in use.
pub(super) fn give_back(state: &mut State, key: SessionKey, text: String, fx: &mut Vec<Effect>) {
    let is_active = state.active == key;
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if !session.draft.is_empty() {
        session.queue.push_front(text);
        return;
    }
    session.draft.clone_from(&text);
    if is_active {
        fx.push(Effect::View(ViewCommand::SetDraft(text)));
    }
}

/// Restores a prompt that was not processed to an empty composer.
pub(super) fn restore_draft(state: &mut State, key: SessionKey, text: String, fx: &mut Vec<Effect>) {
    if let Some(session) = state.sessions.get_mut(&key)
        && session.draft.is_empty()
    {
        session.draft.clone_from(&text);
        if key == state.active {
            fx.push(Effect::View(ViewCommand::SetDraft(text)));
        }
    }
}

/// Adds a text to the prompt history, unless it equals the last one.
pub fn remember(session: &mut Session, text: &str, fx: &mut Vec<Effect>) {
    if text.trim().is_empty() {
        return;
    }
    if session.history.last().is_none_or(|last| last != text) {
        session.history.push(text.to_owned());
        if session.history.len() > MOST_HISTORY {
            session.history.remove(0);
        }
    }
    fx.push(Effect::SavePrompt { folder: session.workspace.cwd.clone(), text: text.to_owned() });
}
