//! Turns: prompts, the queue, cancellation, and the end of turns.
//!
//! `updates` handles updates during a turn, `requests` the requests of the agent.
//! Invariants: typed text is never lost; a cancelled turn is reported as cancelled whatever the agent responds; updates
//! after the end do not start a turn; the queue continues automatically only after a successful end.

pub(in crate::core) mod own;
mod summary;
mod unprocessed;

use std::time::Instant;

use crate::model::{
    Call, CallError, ConnId, Decider, FaultKind, PreparedPrompt, PromptId, Purpose, Record, Reply,
    SessionKey, Severity, StopReason, ToolStatus, TurnUsage,
};

use super::{
    archive, auth, budget, call, callbacks, conn, handover, late, open, prompt, refused, requests, review,
    secrets, shell, spool, tabs, undo,
};
use crate::core::session::{clear, messages, play, record, tools, turns};
use crate::core::state::{FlashEnd, lookup, texts};
use crate::core::{
    Consequence, Cx, Effect, Prompt, PromptState, Release, Session, SessionPhase, State, TimerId, Turn,
    TurnEnd, TurnSummary, UiRequest, UnseenKind,
};

#[derive(Debug, Clone, PartialEq)]
pub(in crate::core) enum Ending {
    /// The agent has answered the prompt.
    Replied(StopReason, Option<TurnUsage>),
    /// The prompt was answered with an error.
    Failed(FaultKind, String),
    /// The prompt was answered with an error without being processed: it is resent once the session is open.
    Unprocessed(FaultKind, String),
    AgentDied {
        cause: String,
        /// The last lines of its stderr.
        stderr_tail: Vec<String>,
    },
    /// parlor has stopped the agent.
    Abandoned,
}

/// Sends a prompt, or queues it while a turn is running or the session is not open yet. Adds it to the history. A queue
/// on hold stays so. An empty prompt sends the next queued one, or has the queue continue after the running turn.
pub fn submit(state: &mut State, key: SessionKey, text: String, cx: &mut Cx) {
    accept(state, key, text, cx);
}

/// See [`submit`]. Returns the prompt if it was queued.
fn accept(state: &mut State, key: SessionKey, text: String, cx: &mut Cx) -> Option<PromptId> {
    let session = state.sessions.get_mut(&key)?;
    if session.parent.is_some() {
        session.draft = text;
        cx.requests.push(UiRequest::DraftChanged(key));
        call::flash(state, "Subagents do not accept prompts. Use the parent session.", cx);
        return None;
    }
    if text.trim().is_empty() {
        if budget::ask_again(state, key, cx) {
            return None;
        }
        let session = state.sessions.get_mut(&key)?;
        session.outbox.release();
        let waits = session.outbox.queue_len() > 0;
        let waits_no_more = waits && spool::stop_waiting(state, key);
        let session = state.sessions.get_mut(&key)?;
        if session.can_prompt() && session.outbox.queue_len() > 0 {
            // Continuing the queue discards the failed prompt.
            session.outbox.drop_failed();
        }
        send_next(state, key, cx);
        if waits_no_more {
            call::flash(state, spool::SENT_EARLY, cx);
        }
        return None;
    }
    prompt::remember(session, &text, cx);
    if session.can_prompt() {
        session.outbox.hold();
        let id = session.outbox.enqueue(text);
        begin(state, key, id, cx);
        return None;
    }
    // A queue that was typed for a history that the agent has lost waits for a decision, not for the next prompt.
    let waits = session.outbox.held() > 0
        && session.resume.has_lost_history()
        && matches!(session.phase, SessionPhase::Opening { .. });
    if waits {
        session.outbox.hold();
        return Some(session.outbox.enqueue_on_hold(text));
    }
    if session.outbox.failed().is_some() {
        // The new prompt replaces the failed one; prompts queued after that one stay on hold.
        session.outbox.hold();
        session.outbox.drop_failed();
    }
    let id = session.outbox.enqueue(text);
    if !session.turn.is_running() {
        open_for_prompt(state, key, cx);
    }
    if spool::holds_prompts(state, key) {
        call::flash(state, "Waiting for the agent's history. Press Enter again to send now.", cx);
    }
    Some(id)
}

/// Sends the reason of a rejection before the queued prompts: some agents end the turn as cancelled after it.
pub fn send_reason(state: &mut State, key: SessionKey, reason: String, cx: &mut Cx) {
    if reason.is_empty() {
        return;
    }
    if let Some(id) = accept(state, key, reason, cx)
        && let Some(session) = state.sessions.get_mut(&key)
    {
        session.outbox.put_first(id, Release::Next);
    }
}

/// Opens what the session needs before its queue can be sent.
fn open_for_prompt(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key) else { return };
    let conn = session.conn;
    if session.read_only.is_some() {
        // Sending a prompt continues a read-only session.
        archive::start_reading(state, key, cx);
        return;
    }
    match &session.phase {
        SessionPhase::NoAgent => cx.requests.push(UiRequest::AgentForPrompt),
        SessionPhase::NeedsSignIn => {
            let request = |conn| UiRequest::SignIn { conn, session: None };
            cx.requests.extend(conn.map(request));
        }
        SessionPhase::Ended { .. } | SessionPhase::Failed(_) => {
            let text = "The agent is not running. The prompt is sent after a restart.";
            call::flash_until(state, text, FlashEnd::Start, cx);
        }
        _ => {}
    }
}

/// Resends the prompt whose turn failed; starts the agent if it has exited.
pub fn send_again(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if session.turn.is_running() || session.outbox.is_preparing() {
        return;
    }
    let Some(id) = session.outbox.failed().map(|prompt| prompt.id) else { return };
    session.outbox.set_state(id, PromptState::Unsent);
    if session.can_prompt() {
        begin(state, key, id, cx);
        return;
    }
    match session.phase {
        SessionPhase::Ended { .. } | SessionPhase::Failed(_) => conn::restart_agent(state, key, cx),
        _ => call::flash(state, "The prompt is resent when the agent is ready.", cx),
    }
}

/// Sends the prompt that waited for the user's decision about the history.
pub fn send_undecided(state: &mut State, key: SessionKey, cx: &mut Cx) {
    if state.sessions.get(&key).is_some_and(|session| session.outbox.undecided().is_some()) {
        send_again(state, key, cx);
    }
}

/// The agent's commands or the templates were listed, or the time for that is over: sends the prompt that waits for them.
pub(in crate::core) fn on_commands(state: &mut State, key: SessionKey, cx: &mut Cx) {
    if let Some(session) = state.sessions.get_mut(&key) {
        session.outbox.stop_waiting_for_commands();
        send_next(state, key, cx);
    }
}

/// Sends a queued prompt next, and cancels the running turn. The others keep their order.
pub fn send_now(state: &mut State, key: SessionKey, id: PromptId, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.outbox.put_first(id, Release::Next);
    match session.turn {
        Turn::Idle if session.can_prompt() => send_next(state, key, cx),
        Turn::Idle => open_for_prompt(state, key, cx),
        Turn::Cancelling { .. } => {}
        Turn::Running { since, .. } => cancel_running(state, key, since, cx),
    }
}

/// Sends what waits, if the session can take it: a prompt that was not processed, otherwise the next one of the queue.
pub fn send_next(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key).filter(|session| session.can_prompt()) else { return };
    let Some(prompt) = session.outbox.next() else { return };
    let (id, is_unsent) = (prompt.id, prompt.state == PromptState::Unsent);
    if is_unsent && session.resume.has_lost_history() && session.resume.handover().is_none() {
        // A prompt like "continue" is not sent to an agent without the history before the user has decided.
        session.outbox.set_state(id, PromptState::Undecided);
    } else {
        begin(state, key, id, cx);
    }
}

/// Sends a prompt. One that refers to files is sent when these were read.
fn begin(state: &mut State, key: SessionKey, id: PromptId, cx: &mut Cx) {
    let prompt = state.sessions.get(&key).and_then(|session| session.outbox.get(id));
    let Some(text) = prompt.map(|prompt| prompt.text.clone()) else { return };
    let is_strict = state.conn_of(key).is_some_and(|conn| conn.spec.wire.is_strict);
    if !is_strict && state.sessions.get(&key).is_some_and(|session| clear::is_own(session, &text)) {
        if let Some(session) = state.sessions.get_mut(&key) {
            session.outbox.remove(id);
        }
        open::start_over(state, key, cx);
        // The queue is still that of this session if it had nothing to clear.
        send_next(state, key, cx);
        return;
    }
    if budget::stops_prompt(state, key, id, cx) || prompt::waits_for_commands(state, key, &text, cx) {
        return;
    }
    if let Some(why) = shell::unfinished(state, key, &text) {
        prompt::give_back(state, key, id, cx);
        call::flash(state, why, cx);
        return;
    }
    if prompt::prepare(state, key, id, cx) {
        if let Some(session) = state.sessions.get_mut(&key) {
            session.outbox.set_state(id, PromptState::Preparing);
        }
        return;
    }
    let prepared = PreparedPrompt { text, ..PreparedPrompt::default() };
    send(state, key, id, prepared, cx);
}

/// Sends a prompt whose files were read. If that is not possible now, it stays in the outbox.
fn send(state: &mut State, key: SessionKey, prompt: PromptId, mut prepared: PreparedPrompt, cx: &mut Cx) {
    let Some((conn, id)) =
        state.sessions.get(&key).and_then(|session| Some((session.conn?, session.id.clone()?)))
    else {
        return;
    };
    if secrets::stops_prompt(state, key, prompt, &mut prepared, cx) {
        return;
    }
    let mut blocks = handover::blocks(state, conn, key, &prepared.text);
    blocks.extend(prepared.blocks.iter().cloned());
    let echo = handover::echo_of(&blocks);
    let number = call::call(state, conn, Purpose::Prompt(key), Call::Prompt(id, blocks), cx);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(number) = number else {
        // The connection has closed meanwhile: the prompt waits for the next one.
        session.outbox.stop_preparing();
        return;
    };
    spool::prompt_sent(session);
    session.cost_before = summary::cost_so_far(session);
    turns::next_turn(session, cx.now);
    let Some(Prompt { text, is_resent, .. }) = session.outbox.get(prompt).cloned() else { return };
    session.outbox.sent(prompt, number);
    let PreparedPrompt { text: sent, blocks, pasted, .. } = prepared;
    let message =
        if is_resent { play::resent() } else { play::user_message(&sent, &blocks, pasted.clone(), cx.now) };
    let typed = (text != sent).then_some(text);
    record::note(session, Record::Prompt { text: sent, is_again: is_resent, blocks, pasted, typed });
    session.transcript.push(session.turn_count, message);
    session.turn = Turn::Running { since: cx.now, last_news: cx.now };
    session.has_background_news = false;
    session.echo.expect(echo);
    session.resume.prompt_sent();
    cx.effects.push(Effect::Timer(TimerId::TurnQuiet(key), late::QUIET_LIMIT));
    undo::on_turn(state, key, cx);
    budget::on_turn(state, key, cx);
    // Another parlor may have changed grants.
    cx.effects.push(Effect::LoadGrants);
}

/// The files of a prompt were read. One that no longer waits for them is left as it is.
pub(in crate::core) fn on_prepared(
    state: &mut State,
    key: SessionKey,
    id: PromptId,
    prepared: PreparedPrompt,
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if session.outbox.get(id).is_none_or(|prompt| prompt.state != PromptState::Preparing) {
        return;
    }
    // It is in the queue until it is sent.
    session.outbox.stop_preparing();
    if prompt::is_obstructed(state, key, &prepared, cx) {
        prompt::give_back(state, key, id, cx);
    } else if state.sessions.get(&key).is_some_and(Session::can_prompt) {
        if !prepared.unread.is_empty() {
            let text = format!("Sent as text, because there is no such file: {}", prepared.unread.join(", "));
            call::flash(state, text, cx);
        }
        send(state, key, id, prepared, cx);
    }
}

/// Closes open items outside a turn: after a replay, and when no more updates can be received.
pub(in crate::core) fn close_items(state: &mut State, key: SessionKey, now: Instant) {
    if let Some(session) = state.sessions.get_mut(&key)
        && !session.turn.is_running()
    {
        messages::close(session, now);
        tools::close_open(session, ToolStatus::Completed, now);
    }
}

/// Cancels the running turn: first the notification, then `cancelled` for every open permission request. Source: ACP v1
/// prompt-turn, Cancellation.
pub fn cancel_turn(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let key = lookup::root_of(state, key);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    match session.turn {
        Turn::Idle => {}
        Turn::Cancelling { is_overdue: true, .. } => late::offer_ways_out(state, key, None),
        Turn::Cancelling { .. } => {
            let text = "Cancelling. Waiting for the agent to stop.";
            call::flash_until(state, text, FlashEnd::Turn(key), cx);
        }
        Turn::Running { since, .. } => {
            session.outbox.hold();
            cancel_running(state, key, since, cx);
        }
    }
}

fn cancel_running(state: &mut State, key: SessionKey, since: Instant, cx: &mut Cx) {
    if let Some(session) = state.sessions.get_mut(&key) {
        session.turn = Turn::Cancelling { since, cancelled_at: cx.now, is_overdue: false };
    }
    break_off(state, key, Decider::TurnCancelled, cx);
    cx.effects.push(Effect::StopTimer(TimerId::TurnQuiet(key)));
    cx.effects.push(Effect::Timer(TimerId::CancelOverdue(key), late::CANCEL_LIMIT));
    if state.conn_of(key).is_some_and(|conn| conn.capabilities().deaf_in_turn) {
        call::flash(state, "Cancelling. This agent cannot be interrupted during a turn.", cx);
    }
}

fn break_off(state: &mut State, key: SessionKey, by: Decider, cx: &mut Cx) {
    conn::send_cancel(state, key, cx);
    requests::cancel_all(state, key, by, cx);
    let family: Vec<SessionKey> =
        state.sessions.keys().copied().filter(|other| lookup::root_of(state, *other) == key).collect();
    for member in family {
        if let Some(session) = state.sessions.get_mut(&member) {
            tools::close_open(session, ToolStatus::Cancelled, cx.now);
        }
    }
}

/// Ends a session's turn because it or its agent is being stopped; answers its open requests.
pub(in crate::core) fn abandon(state: &mut State, key: SessionKey, by: Decider, cx: &mut Cx) {
    match state.sessions.get(&key).map(|session| &session.turn) {
        Some(Turn::Running { .. }) => break_off(state, key, by, cx),
        Some(_) => requests::cancel_all(state, key, by, cx),
        None => return,
    }
    end(state, key, Ending::Abandoned, cx);
}

/// The response to a prompt. Only that of the running turn ends it.
pub(in crate::core) fn on_reply(
    state: &mut State,
    conn: ConnId,
    key: SessionKey,
    number: u64,
    result: Result<Reply, CallError>,
    cx: &mut Cx,
) {
    let Some(session) = state.sessions.get(&key).filter(|session| session.conn == Some(conn)) else { return };
    let Some(prompt) = session.outbox.running_as(number) else { return };
    let (id, is_reopened) = (prompt.id, prompt.is_reopened);
    let is_cancelled = matches!(session.turn, Turn::Cancelling { .. });
    let info = state.conns.get(&conn).and_then(|conn| conn.info.as_ref());
    match result {
        // `Closed` follows with the reason.
        Err(CallError::Lost) => {}
        Ok(Reply::TurnEnded { reason: StopReason::Other(word), .. })
            if word == "auth_required" && !is_cancelled =>
        {
            unprocessed::on_auth_needed(state, conn, key, "The prompt was not processed.", cx);
        }
        Ok(Reply::TurnEnded { reason, usage }) => {
            // What is allowed now would not be done any more, and look as if it was.
            if reason == StopReason::Cancelled {
                requests::cancel_all(state, key, Decider::TurnCancelled, cx);
            }
            auth::on_proof(state, conn, cx);
            end(state, key, Ending::Replied(reason, usage), cx);
        }
        // The cancellation waited for the prompt, and was not sent either.
        Err(error @ CallError::Undelivered { .. }) if is_cancelled => {
            let text = "The agent may have received the prompt, but not that you cancelled it.";
            let text = format!("{} {text}", texts::error_text(&error));
            end(state, key, Ending::Failed(FaultKind::Line, text), cx);
        }
        // Agents report their own abort as an error; after a cancel this is expected.
        _ if is_cancelled => end(state, key, Ending::Replied(StopReason::Cancelled, None), cx),
        Ok(_) => {
            let message = "Invalid response to the prompt. See the protocol log.";
            end(state, key, Ending::Failed(FaultKind::Protocol, message.to_owned()), cx);
        }
        Err(error) if texts::is_auth_error(&error, info) => {
            unprocessed::on_auth_needed(state, conn, key, &texts::error_text(&error), cx);
        }
        Err(error) if texts::is_session_gone(&error) => {
            unprocessed::on_session_gone(state, key, (id, is_reopened), &texts::error_text(&error), cx);
        }
        Err(error) => {
            let fault = texts::fault_of(&error);
            end(state, key, Ending::Failed(fault, texts::error_text(&error)), cx);
            if fault == FaultKind::Unsent {
                prompt::give_back(state, key, id, cx);
            }
        }
    }
}

/// The next state of the prompt after its turn ended, unless the user cancelled it; `None`: it is done.
fn after_turn(ending: &Ending) -> Option<PromptState> {
    match ending {
        Ending::AgentDied { .. } | Ending::Failed(FaultKind::Line | FaultKind::Protocol, _) => {
            Some(PromptState::Failed { may_have_arrived: true })
        }
        Ending::Failed(..) => Some(PromptState::Failed { may_have_arrived: false }),
        Ending::Unprocessed(..) => Some(PromptState::Unsent),
        Ending::Replied(..) | Ending::Abandoned => None,
    }
}

pub(in crate::core) fn end(state: &mut State, key: SessionKey, ending: Ending, cx: &mut Cx) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let (since, was_cancelled) = match session.turn {
        Turn::Idle => return,
        Turn::Running { since, .. } => (since, false),
        Turn::Cancelling { since, .. } => (since, true),
    };
    let took = cx.now.saturating_duration_since(since).saturating_sub(session.wait.total(cx.now));
    session.turn = Turn::Idle;
    session.echo.stop();
    let after = after_turn(&ending).filter(|_| !was_cancelled);
    let is_resent = after.is_some() && session.outbox.running().is_some();
    let is_unprocessed = after == Some(PromptState::Unsent);
    let prompt = session.outbox.end(after);
    let is_brief = prompt.is_none() && took < own::BRIEF;
    // The agent still answers prompts that were to be added to the turn.
    let may_go_on = !matches!(ending, Ending::AgentDied { .. } | Ending::Abandoned);
    if !may_go_on {
        session.outbox.stop_steering();
    }
    let has_cleared = prompt.as_deref().is_some_and(|prompt| clear::is_of_agent(session, prompt));
    session.resume.turn_ended(matches!(ending, Ending::Replied(..)));
    let stopped = |reason, usage| Some(TurnEnd::Stopped { reason, usage, took });
    let item = match ending {
        Ending::AgentDied { cause, stderr_tail } => Some(TurnEnd::AgentDied { cause, stderr_tail }),
        Ending::Abandoned => stopped(StopReason::Cancelled, None),
        Ending::Replied(_, usage) if was_cancelled => stopped(StopReason::Cancelled, usage),
        Ending::Failed(fault, _) | Ending::Unprocessed(fault, _)
            if was_cancelled && fault != FaultKind::Line =>
        {
            stopped(StopReason::Cancelled, None)
        }
        Ending::Failed(fault, error) | Ending::Unprocessed(fault, error) => {
            Some(TurnEnd::Failed { error, fault })
        }
        Ending::Replied(reason, usage) => {
            session.turn_usage = usage.or(session.turn_usage);
            if reason == StopReason::EndTurn { None } else { stopped(reason, usage) }
        }
    };
    if item.is_none() {
        session.resume.confirm();
    }
    let is_good = item.is_none();
    let unseen = match &item {
        Some(TurnEnd::Stopped { reason: StopReason::Cancelled, .. }) => None,
        None => Some(UnseenKind::Finished),
        Some(TurnEnd::Stopped { reason, .. }) => Some(UnseenKind::Stopped(reason.description())),
        Some(TurnEnd::Failed { error, .. }) => Some(UnseenKind::Failed(error.clone())),
        Some(TurnEnd::AgentDied { cause, .. }) => Some(UnseenKind::Failed(cause.clone())),
    };
    let cost = summary::cost_of_turn(session);
    let summary = TurnSummary { took: Some(took), cost: cost.clone() };
    let outcome = summary::outcome(item.as_ref(), session.turn_usage, took, cost);
    record::note(session, Record::TurnEnded(outcome.clone()));
    turns::close_items(session, item, summary, cx.now);
    if is_good && has_cleared {
        clear::mark(session);
    } else if is_good && prompt.is_some() && summary::is_unanswered(session) {
        // One agent ends its turn like this when its model fails.
        let title = "The agent returned an empty response.";
        call::notice(state, key, Severity::Info, title, None);
    }
    budget::on_turn_end(state, key, &outcome);
    callbacks::stop_files(state, key, true, cx);
    review::on_turn_end(state, key, cx);
    refused::tell(state, key);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.permissions.end_turn();
    if !may_go_on {
        session.outbox.stop_next();
    }
    // Queued prompts wait for one that will be resent. A cancel has already put the earlier prompts on hold; later ones
    // are sent.
    if !(is_resent || is_good || was_cancelled && may_go_on) {
        session.outbox.hold_others();
    }
    // An unprocessed prompt waits until the session is open again, and the queue waits for that prompt.
    let has_more = session.outbox.free() > 0 || session.outbox.unsent().is_some();
    let continues = has_more && !is_unprocessed;
    let (folder, held, agent) = (session.workspace.cwd.clone(), session.outbox.held(), session.conn);
    let is_remote = session.workspace.remote.is_some();
    if let Some(agent) = agent {
        state.withdraw(|consequence| *consequence == Consequence::ForceStop(agent));
    }
    cx.effects.push(Effect::StopTimer(TimerId::TurnQuiet(key)));
    cx.effects.push(Effect::StopTimer(TimerId::CancelOverdue(key)));
    if state.is_quitting {
        return;
    }
    if let Some(what) = unseen.filter(|_| !is_brief) {
        let message = match &what {
            UnseenKind::Finished => "turn finished.".to_owned(),
            UnseenKind::Stopped(why) => format!("turn stopped: {why}."),
            UnseenKind::Failed(_) => "turn failed.".to_owned(),
        };
        tabs::note_unseen(state, key, what, cx.now);
        // A successful end is not announced while the queue continues.
        if !continues {
            tabs::announce(state, key, &message, cx);
        }
    }
    if !is_remote && !is_brief {
        cx.effects.push(Effect::ReadGit { session: key, folder });
    }
    if was_cancelled && may_go_on && dies_on_cancel(state, key) {
        reopen(state, key, cx);
    } else if continues {
        send_next(state, key, cx);
    } else if held > 0 {
        tabs::flash_hold(state, key, cx);
    }
}

fn dies_on_cancel(state: &State, key: SessionKey) -> bool {
    state.conn_of(key).is_some_and(|conn| conn.capabilities().dies_on_cancel)
}

/// One agent drops a session whose turn was cancelled: it is reopened before the next prompt.
fn reopen(state: &mut State, key: SessionKey, cx: &mut Cx) {
    if let Some(session) = state.sessions.get_mut(&key) {
        session.resume.reopen();
        open::open(state, key, cx);
    }
}
