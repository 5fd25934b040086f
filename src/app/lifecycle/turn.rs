//! Turns: prompts, the queue, cancellation, and the end of turns.
//!
//! `updates` handles updates during a turn, `requests` the requests of the agent.
//! Invariants: typed text is never lost; a cancelled turn is reported as cancelled whatever the agent responds; updates
//! after the end do not start a turn; the queue continues automatically only after a successful end.

pub(in crate::app) mod own;
mod summary;
mod unprocessed;

use std::time::Instant;

use crate::model::{
    Call, CallError, ConnId, FaultKind, PreparedPrompt, Purpose, Record, Reply, SessionKey, Severity,
    StopReason, ToolStatus, TurnUsage,
};

use super::{archive, call, callbacks, conn, handover, late, open, prompt, requests, shell, tabs};
use crate::app::session::{clear, messages, paging, play, record, replay_reconcile, tools, turns};
use crate::app::state::{FlashEnd, lookup, texts};
use crate::app::{
    Effect, FailedPrompt, Preparing, Replay, Session, SessionPhase, State, TimerId, Turn, TurnEnd,
    TurnSummary, UiRequest, UnseenKind, ViewCommand,
};

/// How a turn has ended.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::app) enum Ending {
    /// The agent has answered the prompt.
    Replied(StopReason, Option<TurnUsage>),
    /// The prompt was answered with an error.
    Failed(FaultKind, String),
    /// The agent has exited.
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
pub fn submit(state: &mut State, key: SessionKey, text: String, now: Instant, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if session.parent.is_some() {
        call::flash(state, "Subagents do not accept prompts. Use the parent session.", fx);
        fx.push(Effect::View(ViewCommand::SetDraft(text)));
        return;
    }
    if text.trim().is_empty() {
        session.release_queue();
        if session.can_prompt() {
            send_next(state, key, now, fx);
        }
        return;
    }
    session.history_index = None;
    prompt::remember(session, &text, fx);
    if session.can_prompt() {
        session.hold_queue();
        begin(state, key, text, true, now, fx);
        return;
    }
    // A queue that was typed for a history that the agent has lost waits for a decision, not for the next prompt.
    let waits = session.prompts.held() > 0
        && session.resume.has_lost_history()
        && matches!(session.phase, SessionPhase::Opening { .. });
    if waits {
        session.queue.push_back(text);
        session.hold_queue();
        return;
    }
    session.enqueue(text);
    if !session.turn.is_running() {
        send_when_open(state, key, now, fx);
    }
}

/// Has the queue sent as soon as the session is open, and opens what it needs for that.
fn send_when_open(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if session.phase == SessionPhase::Ready && !session.holds_prompts() {
        return;
    }
    session.prompts.send_when_ready(true);
    if session.phase == SessionPhase::Ready {
        return;
    }
    let conn = session.conn;
    if session.read_only.is_some() {
        // Sending a prompt continues a read-only session.
        archive::start_reading(state, key, now, fx);
        return;
    }
    match &session.phase {
        SessionPhase::NoAgent if state.modals.is_empty() => state.ui_requests.push(UiRequest::AgentPicker),
        SessionPhase::NeedsSignIn => {
            if let Some(conn) = conn
                && state.modals.is_empty()
            {
                state.ui_requests.push(UiRequest::SignIn { conn, session: None });
            }
        }
        SessionPhase::Ended { .. } | SessionPhase::Failed(_) => {
            let text = "The agent is not running. The prompt is sent after a restart.";
            call::flash_until(state, text, FlashEnd::Start, fx);
        }
        _ => {}
    }
}

/// Resends the prompt whose turn failed; starts the agent if it has exited.
pub fn send_again(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&key).filter(|session| !session.turn.is_running()) else {
        return;
    };
    let Some(FailedPrompt { text, .. }) = session.failed_prompt.take() else { return };
    if session.can_prompt() {
        begin(state, key, text, false, now, fx);
        return;
    }
    session.prompts.set_unsent(Some(text));
    match session.phase {
        SessionPhase::Ended { .. } | SessionPhase::Failed(_) => conn::restart_agent(state, key, now, fx),
        _ => call::flash(state, "The prompt is resent when the agent is ready.", fx),
    }
}

/// Sends the prompt that waited for the user's decision about the history.
pub fn send_held(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let is_held = |session: &mut Session| session.prompts.release();
    if state.sessions.get_mut(&key).is_some_and(is_held) {
        send_again(state, key, now, fx);
    }
}

/// Sends what waits once a session is open: a prompt that required a sign-in, otherwise the next queued one, if any was
/// queued meanwhile. The queue of a failed turn waits for the user.
pub(in crate::app) fn go_on(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&key).filter(|session| !session.holds_prompts()) else {
        return;
    };
    let may_send = session.prompts.take_send_when_ready();
    // The files of a prompt from before a restart are read again.
    if let Some(Preparing { text, is_steer: false, .. }) = session.prompts.take_preparing() {
        session.queue.push_front(text);
    }
    if let Some(text) = session.prompts.take_unsent() {
        if session.resume.has_lost_history() && session.resume.handover().is_none() {
            // A prompt like "continue" is not sent to an agent without the history before the user has decided.
            session.failed_prompt = Some(FailedPrompt { text, may_have_arrived: false });
            session.prompts.hold();
            return;
        }
        begin(state, key, text, false, now, fx);
    } else if may_send {
        send_next(state, key, now, fx);
    }
}

/// The agent's commands or the templates were listed, or the time for that is over: sends the prompt that waits for them.
pub(in crate::app) fn on_commands(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if session.prompts.stop_waiting_for_commands() {
        go_on(state, key, now, fx);
    }
}

/// Sends a queued prompt next, and cancels the running turn. The others keep their order.
pub fn send_now(state: &mut State, key: SessionKey, position: usize, now: Instant, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let Some(text) = session.unqueue(position) else { return };
    session.queue.push_front(text);
    match session.turn {
        Turn::Idle if session.can_prompt() => send_next(state, key, now, fx),
        Turn::Idle => send_when_open(state, key, now, fx),
        Turn::Cancelling { .. } => session.prompts.send_now(),
        Turn::Running { .. } => {
            let held = session.prompts.held();
            session.prompts.send_now();
            cancel_turn(state, key, now, fx);
            if let Some(session) = state.sessions.get_mut(&key) {
                session.prompts.set_held(held);
            }
        }
    }
}

/// Sends the first queued prompt, unless the user is editing it.
pub fn send_next(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if session.prompts.steering().is_some() {
        // The response of the agent tells whether that prompt is still to be sent.
        session.prompts.send_when_ready(true);
        return;
    }
    if !session.can_prompt() || !session.is_first_free() || session.free_prompts() == 0 {
        return;
    }
    if let Some(text) = session.queue.pop_front() {
        begin(state, key, text, true, now, fx);
    }
}

/// Sends a prompt. One that refers to files is sent when these were read.
fn begin(
    state: &mut State,
    key: SessionKey,
    text: String,
    shows_item: bool,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    if let Some(session) = state.sessions.get_mut(&key).filter(|_| !shows_item) {
        // It is resent, so that its turn has not failed.
        session.release_queue();
    }
    let is_strict = state.conn_of(key).is_some_and(|conn| conn.spec.wire.is_strict);
    if !is_strict && state.sessions.get(&key).is_some_and(|session| clear::is_own(session, &text)) {
        open::start_over(state, key, now, fx);
        // The queue is still that of this session if it had nothing to clear.
        send_next(state, key, now, fx);
        return;
    }
    if prompt::waits_for_commands(state, key, &text, now, fx) {
        if let Some(session) = state.sessions.get_mut(&key) {
            if shows_item {
                session.queue.push_front(text);
                session.prompts.send_when_ready(true);
            } else {
                session.prompts.set_unsent(Some(text));
            }
        }
        return;
    }
    if let Some(why) = shell::unfinished(state, key, &text) {
        prompt::give_back(state, key, text, fx);
        call::flash(state, why, fx);
        return;
    }
    let preparing = Preparing { text, shows_item, is_steer: false };
    let Err(Preparing { text, .. }) = prompt::prepare(state, key, preparing, fx) else { return };
    let prepared = PreparedPrompt { text: text.clone(), ..PreparedPrompt::default() };
    begin_prepared(state, key, text, prepared, shows_item, now, fx);
}

/// Sends a prompt whose files were read.
fn begin_prepared(
    state: &mut State,
    key: SessionKey,
    text: String,
    prepared: PreparedPrompt,
    shows_item: bool,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some((conn, id)) =
        state.sessions.get(&key).and_then(|session| Some((session.conn?, session.id.clone()?)))
    else {
        return;
    };
    let mut blocks = handover::blocks(state, conn, key, &prepared.text);
    blocks.extend(prepared.blocks.iter().cloned());
    let echo = handover::echo_of(&blocks);
    let prompt = Call::Prompt(id, blocks);
    let Some(number) = call::call(state, conn, Purpose::Prompt(key), prompt, fx) else {
        // The connection has closed meanwhile: the prompt waits for the next one.
        if let Some(session) = state.sessions.get_mut(&key) {
            session.queue.push_front(text);
            session.prompts.send_when_ready(true);
        }
        return;
    };
    let Some(session) = state.sessions.get_mut(&key) else { return };
    replay_reconcile::settle(session, now);
    session.cost_before = summary::cost_so_far(session);
    turns::next_turn(session, now);
    let next = session.transcript.next_id();
    paging::on_pushed(session, next);
    let PreparedPrompt { text: sent, blocks, pasted, .. } = prepared;
    let message = play::user_message(&sent, &blocks, pasted.clone(), now);
    let typed = (text != sent).then(|| text.clone());
    record::note(session, Record::Prompt { text: sent, is_again: !shows_item, blocks, pasted, typed });
    if shows_item {
        session.transcript.push(session.turn_count, message);
    }
    session.turn = Turn::Running { since: now, last_news: now };
    session.failed_prompt = None;
    session.has_background_news = false;
    session.prompts.begin(number, text, echo);
    session.resume.prompt_sent();
    session.replay = Replay::None;
    fx.push(Effect::Timer(TimerId::TurnQuiet(key), late::QUIET_LIMIT));
    // Another parlor may have changed grants.
    fx.push(Effect::LoadGrants);
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
    let Some(Preparing { text, shows_item, .. }) = session.prompts.take_preparing() else { return };
    if let Some(mut why) = prompt::obstacle(session, &prepared) {
        prompt::give_back(state, key, text, fx);
        match prepared.unreviewed.map(Box::new) {
            Some(_) if state.setup.is_plain => why += " Start parlor without --plain to review it.",
            Some(template) => state.ui_requests.push(UiRequest::ReviewTemplates(key, template)),
            None => {}
        }
        call::flash(state, why, fx);
    } else if session.can_prompt() {
        begin_prepared(state, key, text, prepared, shows_item, now, fx);
    } else {
        session.queue.push_front(text);
        session.prompts.send_when_ready(true);
    }
}

/// Closes open items outside a turn: after a replay, and when no more updates can be received.
pub(in crate::app) fn settle(state: &mut State, key: SessionKey, now: Instant) {
    if let Some(session) = state.sessions.get_mut(&key)
        && !session.turn.is_running()
    {
        messages::close(session, now);
        tools::close_open(session, ToolStatus::Completed, now);
    }
}

/// Cancels the running turn: first the notification, then `cancelled` for every open permission request. Source: ACP v1
/// prompt-turn, Cancellation.
pub fn cancel_turn(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    let key = lookup::root_of(state, key);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    match session.turn {
        Turn::Idle => {}
        Turn::Cancelling { is_overdue: true, .. } => late::offer_ways_out(state, key, None),
        Turn::Cancelling { .. } => {
            let text = "Cancelling. Waiting for the agent to stop.";
            call::flash_until(state, text, FlashEnd::Turn(key), fx);
        }
        Turn::Running { since, .. } => {
            session.turn = Turn::Cancelling { since, cancelled_at: now, is_overdue: false };
            session.hold_queue();
            break_off(state, key, now, fx);
            fx.push(Effect::StopTimer(TimerId::TurnQuiet(key)));
            fx.push(Effect::Timer(TimerId::CancelOverdue(key), late::CANCEL_LIMIT));
            if state.conn_of(key).is_some_and(|conn| conn.capabilities().deaf_in_turn) {
                call::flash(state, "Cancelling. This agent cannot be interrupted during a turn.", fx);
            }
        }
    }
}

fn break_off(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    conn::send_cancel(state, key, fx);
    requests::cancel_all(state, key, now, fx);
    let family: Vec<SessionKey> =
        state.sessions.keys().copied().filter(|other| lookup::root_of(state, *other) == key).collect();
    for member in family {
        if let Some(session) = state.sessions.get_mut(&member) {
            tools::close_open(session, ToolStatus::Cancelled, now);
        }
    }
}

/// Ends a session's turn because its agent is being stopped; answers its open requests.
pub(in crate::app) fn abandon(state: &mut State, key: SessionKey, now: Instant, fx: &mut Vec<Effect>) {
    match state.sessions.get(&key).map(|session| &session.turn) {
        Some(Turn::Running { .. }) => break_off(state, key, now, fx),
        Some(_) => requests::cancel_all(state, key, now, fx),
        None => return,
    }
    end(state, key, Ending::Abandoned, now, fx);
}

/// The response to a prompt. Only that of the running turn ends it.
pub(in crate::app) fn on_reply(
    state: &mut State,
    conn: ConnId,
    key: SessionKey,
    number: u64,
    result: Result<Reply, CallError>,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get(&key).filter(|session| session.conn == Some(conn)) else { return };
    let Some(text) = session.prompts.running_as(number).map(str::to_owned) else { return };
    let is_cancelled = matches!(session.turn, Turn::Cancelling { .. });
    let info = state.conns.get(&conn).and_then(|conn| conn.info.as_ref());
    match result {
        Ok(Reply::TurnEnded { reason: StopReason::Other(word), .. }) if word == "auth_required" => {
            unprocessed::on_auth_needed(state, conn, key, text, "The prompt was not processed.", now, fx);
        }
        Ok(Reply::TurnEnded { reason, usage }) => {
            // What is allowed now would not be done any more, and look as if it was.
            if reason == StopReason::Cancelled {
                requests::cancel_all(state, key, now, fx);
            }
            end(state, key, Ending::Replied(reason, usage), now, fx);
        }
        // `Closed` follows with the reason.
        Err(CallError::Lost) => {}
        // Agents report their own abort as an error; after a cancel this is expected.
        _ if is_cancelled => end(state, key, Ending::Replied(StopReason::Cancelled, None), now, fx),
        Ok(_) => {
            let message = "Invalid response to the prompt. See the protocol log.";
            end(state, key, Ending::Failed(FaultKind::Protocol, message.to_owned()), now, fx);
        }
        Err(error) if texts::is_auth_error(&error, info) => {
            unprocessed::on_auth_needed(state, conn, key, text, &texts::error_text(&error), now, fx);
        }
        Err(error) if texts::is_session_gone(&error) => {
            unprocessed::on_session_gone(state, key, text, &texts::error_text(&error), now, fx);
        }
        Err(error) => {
            let fault = texts::fault_of(&error);
            if let Some(session) = state.sessions.get_mut(&key).filter(|_| fault.is_worth_resending()) {
                let may_have_arrived = fault == FaultKind::Line;
                session.failed_prompt = Some(FailedPrompt { text: text.clone(), may_have_arrived });
            }
            end(state, key, Ending::Failed(fault, texts::error_text(&error)), now, fx);
            if fault == FaultKind::Unsent {
                prompt::restore_draft(state, key, text, fx);
            }
        }
    }
}

/// Ends the running turn.
pub(in crate::app) fn end(
    state: &mut State,
    key: SessionKey,
    ending: Ending,
    now: Instant,
    fx: &mut Vec<Effect>,
) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let (since, was_cancelled) = match session.turn {
        Turn::Idle => return,
        Turn::Running { since, .. } => (since, false),
        Turn::Cancelling { since, .. } => (since, true),
    };
    let took = now.saturating_duration_since(since).saturating_sub(session.wait.total(now));
    session.turn = Turn::Idle;
    // A plan panel opened to follow the turn folds again.
    if session.plan_fold == Some(false) && session.is_plan_done() {
        session.plan_fold = None;
    }
    let prompt = session.prompts.end();
    let is_brief = prompt.is_none() && took < own::BRIEF;
    if !matches!(ending, Ending::Replied(..) | Ending::Failed(..)) {
        session.prompts.stop_steering();
    }
    let has_cleared = prompt.as_deref().is_some_and(|prompt| clear::is_of_agent(session, prompt));
    if matches!(ending, Ending::AgentDied { .. }) && !was_cancelled {
        session.failed_prompt = prompt.clone().map(|text| FailedPrompt { text, may_have_arrived: true });
    }
    session.resume.turn_ended(matches!(ending, Ending::Replied(..)));
    let may_go_on = matches!(ending, Ending::Replied(..) | Ending::Failed(..));
    let sends_first = session.prompts.take_send_now() && may_go_on;
    let stopped = |reason, usage| Some(TurnEnd::Stopped { reason, usage, took });
    let item = match ending {
        Ending::AgentDied { cause, stderr_tail } => Some(TurnEnd::AgentDied { cause, stderr_tail }),
        Ending::Abandoned => stopped(StopReason::Cancelled, None),
        Ending::Replied(_, usage) if was_cancelled => stopped(StopReason::Cancelled, usage),
        Ending::Failed(..) if was_cancelled => stopped(StopReason::Cancelled, None),
        Ending::Failed(fault, error) => Some(TurnEnd::Failed { error, fault }),
        Ending::Replied(reason, usage) => {
            session.turn_usage = usage.or(session.turn_usage);
            if reason == StopReason::EndTurn { None } else { stopped(reason, usage) }
        }
    };
    if item.is_none() {
        session.resume.confirm();
        session.prompts.succeed();
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
    record::note(session, Record::TurnEnded(summary::outcome(item.as_ref(), session.turn_usage, took, cost)));
    turns::close_items(session, item, summary, now);
    if is_good && has_cleared {
        clear::mark(session);
    } else if is_good && prompt.is_some() && summary::is_unanswered(session) {
        // One agent ends its turn like this when its model fails.
        let title = "The agent returned an empty response.";
        call::notice(state, key, Severity::Info, title, None);
    }
    callbacks::stop_files(state, key, true, fx);
    let Some(session) = state.sessions.get_mut(&key) else { return };
    // A cancel holds the prompts of before; those that were typed since are sent.
    if !(is_good || was_cancelled && may_go_on) {
        // The reason of a rejection is sent: some agents end the turn as cancelled after it.
        session.hold_queue_after(usize::from(sends_first));
    }
    let continues = session.free_prompts() > 0;
    let (folder, waiting, agent) = (session.workspace.cwd.clone(), session.queue.len(), session.conn);
    let is_far = session.workspace.far.is_some();
    if let Some(agent) = agent {
        tabs::close_dialogs_of(state, agent);
    }
    fx.push(Effect::StopTimer(TimerId::TurnQuiet(key)));
    fx.push(Effect::StopTimer(TimerId::CancelOverdue(key)));
    if state.is_quitting {
        return;
    }
    if let Some(what) = unseen.filter(|_| !is_brief) {
        let message = match &what {
            UnseenKind::Finished => "turn finished.".to_owned(),
            UnseenKind::Stopped(why) => format!("turn stopped: {why}."),
            UnseenKind::Failed(_) => "turn failed.".to_owned(),
        };
        tabs::note_unseen(state, key, what, now);
        // A successful end is not announced while the queue continues.
        if !continues {
            tabs::announce(state, key, &message, fx);
        }
    }
    if !is_far && !is_brief {
        fx.push(Effect::ReadGit { session: key, folder });
    }
    if was_cancelled && may_go_on && dies_on_cancel(state, key) {
        reopen(state, key, continues, now, fx);
    } else if continues {
        send_next(state, key, now, fx);
    } else if waiting > 0 {
        tabs::flash_hold(state, key, fx);
    }
}

fn dies_on_cancel(state: &State, key: SessionKey) -> bool {
    state.conn_of(key).is_some_and(|conn| conn.capabilities().dies_on_cancel)
}

/// One agent drops a session whose turn was cancelled: it is reopened before the next prompt.
fn reopen(state: &mut State, key: SessionKey, has_new: bool, now: Instant, fx: &mut Vec<Effect>) {
    if let Some(session) = state.sessions.get_mut(&key) {
        session.resume.reopen();
        session.prompts.send_when_ready(has_new);
        open::open(state, key, now, fx);
    }
}
