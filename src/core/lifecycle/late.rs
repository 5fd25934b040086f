//! Timeouts: a cancel without a response, a turn without updates.
//!
//! Informs the user and offers options; nothing is ended without the user.

use crate::core::state::lookup;
use std::time::{Duration, Instant};

use super::tabs;
use crate::core::{Consequence, Cx, Effect, Question, State, TimerId, Turn};
use crate::model::SessionKey;

/// Time without a response to a cancel before the user is asked.
pub(super) const CANCEL_LIMIT: Duration = Duration::from_secs(10);

/// Time without updates before a hint is shown.
pub(super) const QUIET_LIMIT: Duration = Duration::from_secs(120);

/// A cancel was not answered in time. The process is not killed automatically: the user chooses.
pub(in crate::core) fn on_cancel_overdue(state: &mut State, key: SessionKey, now: Instant) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    if let Turn::Cancelling { is_overdue, .. } = &mut session.turn
        && !*is_overdue
    {
        *is_overdue = true;
        offer_ways_out(state, key, Some(now));
    }
}

pub(in crate::core) fn offer_ways_out(state: &mut State, key: SessionKey, asked_at: Option<Instant>) {
    let Some(agent) = state.sessions.get(&key).and_then(|session| session.conn) else { return };
    state.withdraw(|consequence| *consequence == Consequence::ForceStop(agent));
    let body = vec![
        format!("The agent is still working {} s after the cancel request.", CANCEL_LIMIT.as_secs()),
        "A restart does not remove the transcript.".to_owned(),
    ];
    let answers = [
        ("Wait", Consequence::Close),
        ("Restart agent", Consequence::Restart(key)),
        ("Force-stop agent", Consequence::ForceStop(agent)),
    ];
    let question = Question::new("Agent does not respond to cancel", body, answers);
    state.ask(key, Question { asked_at, ..question });
}

/// Something happened in a turn: resets the timeout of its session and of the top-level one.
pub(in crate::core) fn note_activity(state: &mut State, key: SessionKey, now: Instant) {
    for key in [key, lookup::root_of(state, key)] {
        if let Some(Turn::Running { last_news, .. }) =
            state.sessions.get_mut(&key).map(|session| &mut session.turn)
        {
            *last_news = now;
        }
    }
}

/// Checks a running turn: shows a hint if it was quiet, and sets the next check.
pub(in crate::core) fn on_quiet(state: &mut State, key: SessionKey, cx: &mut Cx) {
    let Some(session) = state.sessions.get(&key) else { return };
    let Turn::Running { last_news, .. } = session.turn else { return };
    let quiet = cx.now.saturating_duration_since(last_news);
    if !session.requests.is_empty() {
        // The agent waits for the user.
        cx.effects.push(Effect::Timer(TimerId::TurnQuiet(key), QUIET_LIMIT));
    } else if quiet >= QUIET_LIMIT {
        let minutes = quiet.as_secs() / 60;
        let text = format!("No activity from the agent for {minutes} min.");
        tabs::flash(state, key, &text, cx);
        cx.effects.push(Effect::Timer(TimerId::TurnQuiet(key), QUIET_LIMIT));
    } else {
        cx.effects.push(Effect::Timer(TimerId::TurnQuiet(key), QUIET_LIMIT.saturating_sub(quiet)));
    }
}
