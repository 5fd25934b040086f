//! Prompts before they are sent: the prompt history, and reading the files and attachments that they refer to.
//!
//! `turn` sends them. Invariant: a prompt that cannot be sent is given back to the user.

use super::shell;
use crate::app::state::commands;
use crate::app::{Conn, Effect, Preparing, Session, State, ViewCommand};
use crate::model::{PromptJob, PromptTakes, SessionKey, attachment_labels, mentions};

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
    let outputs = shell::outputs(session, &preparing.text);
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
    }));
    session.prompts.prepare(preparing);
    Ok(())
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
