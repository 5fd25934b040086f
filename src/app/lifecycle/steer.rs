//! Prompts that are added to the running turn, for agents that support it.
//!
//! Such a prompt stays in the queue until the agent has accepted it; one that it did not accept is sent like the others
//! of the queue.

use std::time::Instant;

use crate::model::{
    Call, CallError, ContentBlock, PreparedPrompt, Purpose, Record, Reply, Role, SessionKey, SessionUpdate,
};

use super::{call, handover, prompt, shell, turn};
use crate::app::session::{clear, messages, play, record, turns};
use crate::app::state::texts;
use crate::app::{Conn, Effect, Preparing, Session, State, Turn, UiRequest};

/// Adds a queued prompt to the running turn.
pub fn steer(state: &mut State, key: SessionKey, position: usize, fx: &mut Vec<Effect>) {
    let can_steer = state.conn_of(key).map(Conn::capabilities).is_some_and(|can| can.can_steer);
    let Some(session) = state.sessions.get(&key) else { return };
    let Some(text) = session.queue.get(position).cloned() else { return };
    let is_running = matches!(session.turn, Turn::Running { .. });
    let is_busy = session.prompts.is_preparing() || session.prompts.steering().is_some();
    if !can_steer || !is_running || is_busy || clear::is_own(session, &text) {
        call::flash(state, "This prompt cannot be sent into the running turn. It stays queued.", fx);
        return;
    }
    if let Some(why) = shell::unfinished(state, key, &text) {
        call::flash(state, why, fx);
        return;
    }
    let preparing = Preparing { text, shows_item: true, is_steer: true };
    if let Err(Preparing { text, .. }) = prompt::prepare(state, key, preparing, fx) {
        let prepared = PreparedPrompt { text: text.clone(), ..PreparedPrompt::default() };
        send(state, key, text, prepared, fx);
    }
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
    if session.prompts.steering().is_none() {
        turn::on_prepared(state, key, prepared, now, fx);
        return;
    }
    let Some(Preparing { text, .. }) = session.prompts.take_preparing() else { return };
    if let Some(why) = prompt::obstacle(session, &prepared) {
        if let Some(template) = prepared.unreviewed.map(Box::new).filter(|_| !state.setup.is_plain) {
            state.ui_requests.push(UiRequest::ReviewTemplates(key, template));
        }
        call::flash(state, why, fx);
    } else {
        send(state, key, text, prepared, fx);
    }
    go_on(state, key, now, fx);
}

/// Sends the next prompt of the queue if the turn has ended while one was to be added to it.
fn go_on(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let goes_on = |session: &mut Session| {
        session.prompts.steering().is_none() && session.prompts.take_send_when_ready()
    };
    if state.sessions.get_mut(&key).is_some_and(goes_on) {
        turn::send_next(state, key, now, fx);
    }
}

/// Sends a prompt whose files were read, if the turn is still running.
fn send(state: &mut State, key: SessionKey, text: String, prepared: PreparedPrompt, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get(&key) else { return };
    if !matches!(session.turn, Turn::Running { .. }) {
        return;
    }
    let (Some(conn), Some(id)) = (session.conn, session.id.clone()) else { return };
    let mut blocks = vec![ContentBlock::Text(prepared.text)];
    blocks.extend(prepared.blocks);
    let request = Call::Steer(id, blocks.clone());
    let number = call::call(state, conn, Purpose::Steer(key), request, fx);
    if let (Some(number), Some(session)) = (number, state.sessions.get_mut(&key)) {
        session.prompts.steer(number, text, blocks);
    }
}

/// The agent has accepted the prompt or not.
pub(super) fn on_steered(
    state: &mut State,
    key: SessionKey,
    number: u64,
    result: Result<Reply, CallError>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let position = session.steered_prompt();
    let Some((_, blocks)) = session.prompts.take_steering(number) else { return };
    if matches!(result, Ok(Reply::Steered { is_accepted: true })) {
        drop(position.and_then(|position| session.unqueue(position)));
        messages::close(session, now);
        if !session.turn.is_running() {
            turns::next_turn(session, now);
        }
        session.prompts.expect_echo(handover::echo_of(&blocks));
        let mut parts = blocks.into_iter();
        let text = parts.next();
        let rest: Vec<ContentBlock> = parts.collect();
        for block in text.iter().chain(&rest) {
            let update = SessionUpdate::Block { role: Role::User, message: None, block: block.clone() };
            record::note(session, Record::Update(update));
        }
        if let Some(ContentBlock::Text(text)) = text {
            session.transcript.push(session.turn_count, play::user_message(&text, &rest, Vec::new(), now));
        }
    } else if let Err(error) = result {
        let why = texts::error_text(&error);
        call::flash(state, format!("Not sent into the running turn: {why}"), fx);
    }
    go_on(state, key, now, fx);
}
