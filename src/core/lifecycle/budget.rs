//! The user's limits for a turn or a day: a warning near a limit, and a question when it is reached.
//!
//! Until it is answered, what may change files waits, as it does for a snapshot ([`super::undo::hold`]), and no prompt is
//! sent at the limit of a day. Nothing is cancelled without the user. Time and calls are counted here; tokens and cost are
//! what agents report.

use std::time::Duration;

use super::call;
use crate::core::state::lookup;
use crate::core::{Consequence, Cx, Effect, Question, Release, Session, State, TimerId, Turn};
use crate::model::{
    ItemId, Limit, LimitSpan, LimitState, PromptId, SessionKey, Severity, StoreJob, TurnOutcome, Used,
};

/// Minimum time between two checks of a limit of time.
const MIN_DELAY: Duration = Duration::from_secs(1);

/// A turn begins.
pub(in crate::core) fn on_turn(state: &mut State, key: SessionKey, cx: &mut Cx) {
    if let Some(session) = state.sessions.get_mut(&key) {
        session.budget = crate::core::TurnBudget::default();
    }
    read_day(state, cx);
}

/// Reads what was used today: other parlors use it too.
pub(in crate::core) fn read_day(state: &State, cx: &mut Cx) {
    if state.setup.saves_sessions && state.setup.budget.iter().any(|limit| limit.span == LimitSpan::Day) {
        cx.effects.push(Effect::Store(StoreJob::UsedToday));
    }
}

/// The store has counted what was used on the day that began at `day_ms`. It may lack the last turns of this parlor.
pub(in crate::core) fn on_day(state: &mut State, day_ms: i64, used: Used) {
    let day = &mut state.day;
    if day.began_ms == Some(day_ms) {
        day.used.extend_to(used);
    } else {
        let former = std::mem::take(day);
        // Before the first count, there are only turns of this day.
        day.used = if former.began_ms.is_none() { former.used } else { Used::default() };
        day.used.extend_to(used);
        day.began_ms = Some(day_ms);
    }
}

/// Counts the tool calls of a turn, also those of its subagents: the items since `next`.
pub(in crate::core) fn count_calls(state: &mut State, key: SessionKey, next: ItemId) {
    let Some(session) = state.sessions.get(&key) else { return };
    let new = session.transcript.items().iter().rev().take_while(|item| item.id >= next);
    let calls = new.filter(|item| matches!(item.body, crate::core::ItemBody::Tool(_))).count();
    if calls == 0 {
        return;
    }
    let root = lookup::root_of(state, key);
    if let Some(session) = state.sessions.get_mut(&root).filter(|it| it.turn.is_running()) {
        session.budget.calls = session.budget.calls.saturating_add(u64::try_from(calls).unwrap_or(u64::MAX));
    }
}

/// A turn has ended: it counts for the day.
pub(in crate::core) fn on_turn_end(state: &mut State, key: SessionKey, outcome: &TurnOutcome) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let used = Used { calls: session.budget.calls, ..Used::of_turn(outcome) };
    session.budget.paused = None;
    state.day.used.add(&used);
    withdraw(state, key);
}

fn withdraw(state: &mut State, key: SessionKey) {
    state.withdraw(|consequence| matches!(consequence, Consequence::PassLimit(of, ..) if *of == key));
}

/// What the running turn used so far. Agents report tokens at its end.
fn used_of_turn(session: &Session, cx: &Cx) -> Used {
    let (Turn::Running { since, .. } | Turn::Cancelling { since, .. }) = session.turn else {
        return Used::default();
    };
    let took = cx.now.saturating_duration_since(since).saturating_sub(session.wait.total(cx.now));
    let mut used = Used {
        calls: session.budget.calls,
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        ..Used::default()
    };
    used.add_cost(session.cost_of_turn().as_ref());
    used
}

fn used_today(state: &State, cx: &Cx) -> Used {
    let mut used = state.day.used.clone();
    state.sessions.values().for_each(|session| used.add(&used_of_turn(session, cx)));
    used
}

/// Compares running turns with the limits. Called after each event.
pub(in crate::core) fn watch(state: &mut State, cx: &mut Cx) {
    if state.setup.budget.is_empty() || state.is_quitting {
        return;
    }
    let is_watched = |session: &&Session| {
        matches!(session.turn, Turn::Running { .. })
            && session.parent.is_none()
            && session.budget.paused.is_none()
    };
    let running: Vec<SessionKey> = state.sessions.values().filter(is_watched).map(|it| it.key).collect();
    let mut due: Option<Duration> = None;
    for key in &running {
        let today = used_today(state, cx);
        let Some(session) = state.sessions.get(key) else { continue };
        let of_turn = used_of_turn(session, cx);
        let limits: Vec<Limit> =
            state.setup.budget.iter().filter(|limit| !is_passed(state, session, limit)).cloned().collect();
        let is_waiting = session.wait.is_open();
        for limit in limits {
            let used = if limit.span == LimitSpan::Turn { &of_turn } else { &today };
            match limit.state(used) {
                LimitState::Reached => {
                    pause(state, *key, limit, used, cx);
                    break;
                }
                LimitState::Near => warn(state, *key, &limit, used),
                LimitState::Below => {}
            }
            // Several running turns use up a day faster.
            let turns =
                if limit.span == LimitSpan::Turn { 1 } else { u32::try_from(running.len()).unwrap_or(1) };
            let next = limit.due_in(used).filter(|_| !is_waiting).map(|next| (next / turns).max(MIN_DELAY));
            due = [due, next].into_iter().flatten().min();
        }
    }
    let at = due.map(|due| cx.now + due);
    let is_known = |known| at.is_some_and(|at| known <= at && known > cx.now);
    if let (Some(due), false) = (due, state.day.due.is_some_and(is_known)) {
        state.day.due = at;
        cx.effects.push(Effect::Timer(TimerId::Budget, due));
    }
}

/// Whether the user chose to continue in spite of this limit.
fn is_passed(state: &State, session: &Session, limit: &Limit) -> bool {
    let passed = match limit.span {
        LimitSpan::Turn => &session.budget.passed,
        LimitSpan::Day => &state.day.passed,
    };
    passed.contains(limit)
}

fn warn(state: &mut State, key: SessionKey, limit: &Limit, used: &Used) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    let warned = match limit.span {
        LimitSpan::Turn => &mut session.budget.warned,
        LimitSpan::Day => &mut state.day.warned,
    };
    if !warned.contains(limit) {
        warned.push(limit.clone());
        let title = format!("Near the limit of {limit}: {} used.", limit.used_text(used));
        call::notice(state, key, Severity::Warning, title, None);
    }
}

fn pause(state: &mut State, key: SessionKey, limit: Limit, used: &Used, cx: &mut Cx) {
    let title = format!("The limit of {limit} is reached: {} used.", limit.used_text(used));
    let detail = "Press Enter in the empty prompt to decide.".to_owned();
    call::notice(state, key, Severity::Warning, title, Some(detail));
    if let Some(session) = state.sessions.get_mut(&key) {
        session.budget.paused = Some(limit);
    }
    ask_again(state, key, cx);
}

/// Asks what happens to a paused turn. Returns whether it is paused.
pub(in crate::core) fn ask_again(state: &mut State, key: SessionKey, cx: &mut Cx) -> bool {
    let Some(limit) = state.sessions.get(&key).and_then(|session| session.budget.paused.clone()) else {
        return false;
    };
    withdraw(state, key);
    let until = match limit.span {
        LimitSpan::Turn => "Continue this turn without this limit",
        LimitSpan::Day => "Continue without this limit today",
    };
    let body = vec![
        "Until you decide, the agent changes no files and runs no commands through parlor, and gets no permission."
            .to_owned(),
        "What it does without asking continues.".to_owned(),
    ];
    let answers = [
        ("Decide later", Consequence::Close),
        (until, Consequence::PassLimit(key, limit.clone(), None)),
        ("Cancel the turn", Consequence::CancelTurn(key)),
    ];
    let question = Question::new(format!("Limit of {limit} reached"), body, answers);
    state.ask(key, question.asked_at(cx.now));
    true
}

/// Puts a prompt on hold and asks the user if a daily limit is reached. Returns whether it is.
pub(in crate::core) fn stops_prompt(state: &mut State, key: SessionKey, id: PromptId, cx: &mut Cx) -> bool {
    let today = used_today(state, cx);
    let Some(session) = state.sessions.get(&key) else { return false };
    let is_reached = |limit: &&Limit| {
        limit.span == LimitSpan::Day
            && limit.state(&today) == LimitState::Reached
            && !is_passed(state, session, limit)
    };
    let Some(limit) = state.setup.budget.iter().find(is_reached).cloned() else { return false };
    if let Some(session) = state.sessions.get_mut(&key) {
        session.outbox.give_back(id);
    }
    withdraw(state, key);
    let body = vec![format!("{} used today. The prompt is in the queue, on hold.", limit.used_text(&today))];
    let answers = [
        ("Do not send it now", Consequence::Close),
        (
            "Send it, and continue without this limit today",
            Consequence::PassLimit(key, limit.clone(), Some(id)),
        ),
    ];
    state.ask(key, Question::new(format!("Limit of {limit} reached"), body, answers).asked_at(cx.now));
    true
}

/// The user continues in spite of a limit: the prompt that waits because of it is the next one.
pub(in crate::core) fn pass(state: &mut State, key: SessionKey, limit: &Limit, prompt: Option<PromptId>) {
    let Some(session) = state.sessions.get_mut(&key) else { return };
    session.budget.paused.take_if(|paused| *paused == *limit);
    let passed = match limit.span {
        LimitSpan::Turn => &mut session.budget.passed,
        LimitSpan::Day => &mut state.day.passed,
    };
    passed.push(limit.clone());
    if limit.span == LimitSpan::Day {
        // Other turns may be paused by the same limit.
        for session in state.sessions.values_mut() {
            session.budget.paused.take_if(|paused| *paused == *limit);
        }
        state.withdraw(|consequence| matches!(consequence, Consequence::PassLimit(_, of, _) if of == limit));
    }
    if let (Some(id), Some(session)) = (prompt, state.sessions.get_mut(&key))
        && session.outbox.position(id).is_some()
    {
        session.outbox.put_first(id, Release::InOrder);
    }
}
