//! Prompts that are added to the running turn, for agents that support it.
//!
//! Such a prompt stays in the queue until the agent has accepted it; one that it did not accept is sent like the others
//! of the queue.

use crate::model::{
    Call, CallError, ContentBlock, FaultKind, PreparedPrompt, PromptId, Purpose, Record, Reply, Role,
    SessionKey, SessionUpdate,
};

use super::{call, handover, prompt, secrets, shell, turn};
use crate::core::session::{clear, messages, play, record, turns};
use crate::core::state::texts;
use crate::core::{Conn, Cx, Handling, Prompt, PromptState, State, Turn};

/// Adds a queued prompt to the running turn.
pub fn steer(state: &mut State, key: SessionKey, prompt: PromptId, cx: &mut Cx) {
    let can_steer = state.conn_of(key).map(Conn::capabilities).is_some_and(|can| can.can_steer);
    let Some(session) = state.sessions.get(&key) else { return };
    let Some(text) = session.outbox.get(prompt).map(|prompt| prompt.text.clone()) else { return };
    let is_running = matches!(session.turn, Turn::Running { .. });
    let is_busy = session.outbox.is_preparing() || session.outbox.steered().is_some();
    if !can_steer || !is_running || is_busy || clear::is_own(session, &text) {
        call::flash(state, "This prompt cannot be sent into the running turn. It stays queued.", cx);
        return;
    }
    if let Some(why) = shell::unfinished(state, key, &text) {
        call::flash(state, why, cx);
        return;
    }
    if prompt::prepare(state, key, prompt, cx) {
        if let Some(session) = state.sessions.get_mut(&key) {
            session.outbox.set_handling(prompt, Handling::PreparingSteer);
        }
        return;
    }
    let prepared = PreparedPrompt { text, ..PreparedPrompt::default() };
    send(state, key, prompt, prepared, cx);
}

/// The files of a prompt were read.
pub(in crate::core) fn on_prepared(
    state: &mut State,
    key: SessionKey,
    id: PromptId,
    prepared: PreparedPrompt,
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let is_steer = |prompt: &Prompt| matches!(prompt.state, PromptState::Queued(_, Handling::PreparingSteer));
    if !session.outbox.get(id).is_some_and(is_steer) {
        turn::on_prepared(state, key, id, prepared, cx);
        return;
    }
    // It is an ordinary prompt of the queue until it is sent.
    session.outbox.set_handling(id, Handling::None);
    if !prompt::is_obstructed(state, key, &prepared, cx) {
        send(state, key, id, prepared, cx);
    }
    turn::send_next(state, key, cx);
}

/// Sends a prompt whose files were read, if the turn is still running.
fn send(state: &mut State, key: SessionKey, prompt: PromptId, mut prepared: PreparedPrompt, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key) else { return };
    if !matches!(session.turn, Turn::Running { .. }) {
        return;
    }
    let (Some(conn), Some(id)) = (session.conn, session.id.clone()) else { return };
    if secrets::stops_prompt(state, key, prompt, &mut prepared, cx) {
        return;
    }
    let mut blocks = vec![ContentBlock::Text(prepared.text.into())];
    blocks.extend(prepared.blocks);
    let request = Call::Steer(id, blocks.clone());
    let number = call::call(state, conn, Purpose::Steer(key), request, cx);
    if let (Some(number), Some(session)) = (number, state.sessions.get_mut(&key)) {
        session.outbox.set_handling(prompt, Handling::Steering { number, blocks });
    }
}

/// The agent has accepted the prompt or not.
pub(super) fn on_steered(
    state: &mut State,
    key: SessionKey,
    number: u64,
    result: Result<Reply, CallError>,
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some((prompt, blocks)) = session.outbox.end_steering(number) else { return };
    if matches!(result, Ok(Reply::Steered { is_accepted: true })) {
        session.unqueue(prompt);
        messages::close(session, cx.now);
        if !session.turn.is_running() {
            turns::next_turn(session, cx.now);
        }
        session.echo.expect(handover::echo_of(&blocks));
        let mut parts = blocks.into_iter();
        let text = parts.next();
        let rest: Vec<ContentBlock> = parts.collect();
        for block in text.iter().chain(&rest) {
            let update = SessionUpdate::Block { role: Role::User, message: None, block: block.clone() };
            record::note(session, Record::Update(update));
        }
        if let Some(ContentBlock::Text(text)) = text {
            session.transcript.push(session.turn_count, play::user_message(&text, &rest, Vec::new(), cx.now));
        }
    } else if let Err(error) = result {
        let why = texts::error_text(&error);
        if texts::fault_of(&error) == FaultKind::Line {
            // Sent as the next prompt, it might run twice.
            session.outbox.hold();
            call::flash(state, format!("The prompt may have been received. It is on hold. {why}"), cx);
        } else {
            call::flash(state, format!("Not sent into the running turn: {why}"), cx);
        }
    }
    turn::send_next(state, key, cx);
}
