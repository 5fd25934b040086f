//! Prompts that refer to files: they are sent when the files have been read.
//!
//! Invariant: a prompt that cannot be sent is given back to the user.

use std::time::Instant;

use super::{call, turn};
use crate::app::{Conn, Effect, Preparing, State, ViewCommand};
use crate::model::{PreparedPrompt, PromptJob, PromptTakes, SessionKey, mentions};

/// Has the files of a prompt read. Returns false if it refers to nothing.
pub(super) fn prepare(
    state: &mut State,
    key: SessionKey,
    text: &str,
    shows_item: bool,
    fx: &mut Vec<Effect>,
) -> bool {
    if mentions(text).is_empty() {
        return false;
    }
    let can = state.conn_of(key).map(Conn::capabilities).unwrap_or_default();
    let Some(session) = state.sessions.get_mut(&key) else { return false };
    let place = &session.place;
    fx.push(Effect::PreparePrompt(PromptJob {
        session: key,
        text: text.to_owned(),
        folder: place.far.is_none().then(|| place.cwd.clone()),
        roots: place.roots(),
        takes: PromptTakes {
            images: can.prompt_image,
            audio: can.prompt_audio,
            embedded: can.prompt_embedded_context,
        },
    }));
    session.prompts.prepare(Preparing { text: text.to_owned(), shows_item });
    true
}

/// The files of a prompt were read.
pub(in crate::app) fn on_prepared(
    state: &mut State,
    key: SessionKey,
    prepared: PreparedPrompt,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(Preparing { text, shows_item }) = session.prompts.take_preparing() else { return };
    if !prepared.problems.is_empty() {
        let problems = prepared.problems.join(" ");
        give_back(state, key, text, fx);
        call::flash(state, format!("Not sent. {problems}"), fx);
    } else if session.can_prompt() {
        turn::begin_prepared(state, key, text, prepared, shows_item, now, fx);
    } else {
        session.queue.push_front(text);
        session.prompts.send_when_ready(true);
    }
}

/// Puts a prompt into the composer, or into the queue if the composer is in use.
fn give_back(state: &mut State, key: SessionKey, text: String, fx: &mut Vec<Effect>) {
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
