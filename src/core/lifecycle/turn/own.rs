//! Turns that the agent begins of its own accord. They have no prompt, and belong to the turn before in the transcript.
//!
//! An agent may begin and end many of them: one without a new item leaves no trace, and one that is over within
//! [`BRIEF`] is not announced.

use std::time::Duration;

use super::{Ending, end, send_next, summary};
use crate::core::lifecycle::{budget, late, spool, undo};
use crate::core::session::messages;
use crate::core::state::{lookup, texts};
use crate::core::{Cx, Effect, Session, SessionPhase, State, TimerId, Turn};
use crate::model::{CallError, ConnId, Reply, SessionId, StopReason};

/// A turn that is too short to be announced.
pub(super) const BRIEF: Duration = Duration::from_secs(1);

/// The agent works without a prompt.
pub(in crate::core) fn on_began(state: &mut State, conn: ConnId, id: &SessionId, cx: &mut Cx) {
    let Some(key) = lookup::session_by_id(state, conn, id) else { return };
    let Some(session) = state.sessions.get_mut(&key).filter(|session| {
        session.parent.is_none() && session.phase == SessionPhase::Ready && !session.turn.is_running()
    }) else {
        return;
    };
    spool::prompt_sent(session);
    messages::close(session, cx.now);
    session.has_background_news = false;
    // Approvals for one turn have expired.
    session.permissions.begin_turn();
    session.wait.reset();
    session.cost_before = summary::cost_so_far(session);
    session.turn = Turn::Running { since: cx.now, last_news: cx.now };
    session.own_turn = Some(session.transcript.next_id());
    cx.effects.push(Effect::Timer(TimerId::TurnQuiet(key), late::QUIET_LIMIT));
    undo::on_own_turn(state, key, cx);
    budget::on_turn(state, key, cx);
}

pub(in crate::core) fn on_ended(
    state: &mut State,
    conn: ConnId,
    id: &SessionId,
    result: Result<Reply, CallError>,
    cx: &mut Cx,
) {
    let Some(key) = lookup::session_by_id(state, conn, id) else { return };
    let is_own = |session: &&mut Session| session.turn.is_running() && session.outbox.running().is_none();
    let Some(session) = state.sessions.get_mut(&key).filter(is_own) else { return };
    let has_left_nothing = matches!(session.turn, Turn::Running { .. })
        && session.own_turn == Some(session.transcript.next_id())
        && matches!(result, Ok(Reply::TurnEnded { reason: StopReason::EndTurn, .. }));
    if has_left_nothing {
        messages::close(session, cx.now);
        session.turn = Turn::Idle;
        cx.effects.push(Effect::StopTimer(TimerId::TurnQuiet(key)));
        undo::on_turn_end(state, key, cx);
        send_next(state, key, cx);
        return;
    }
    let ending = match result {
        Ok(Reply::TurnEnded { reason, usage }) => Ending::Replied(reason, usage),
        _ if matches!(session.turn, Turn::Cancelling { .. }) => Ending::Replied(StopReason::Cancelled, None),
        Ok(_) => return,
        Err(error) => Ending::Failed(texts::fault_of(&error), texts::error_text(&error)),
    };
    end(state, key, ending, cx);
}
