//! When turns end.
//!
//! A turn ends with a `done` event or with the response to its prompt. A response without a stop reason may only
//! confirm the prompt: always before the first event, and over HTTP, where both may arrive in any order, until the
//! server has shown which of the two it means.
//! Invariant: `peer` gets one response to each prompt.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::acp::codec::names::{STOP_REASONS, official};
use crate::acp::codec::replies::STOP_KEYS;
use crate::acp::codec::value::{Object, first_text, parse_object};
use crate::acp::dialects::Translation;
use crate::model::RpcError;

/// Silence after an error before it ends the turn.
const FAILING_TIME: Duration = Duration::from_secs(30);
/// Silence after a response that may only confirm a prompt, before it ends the turn.
const CONFIRMED_TIME: Duration = Duration::from_secs(2);
/// Number of ended prompts that are remembered, because their responses may follow.
const MAX_ENDED: usize = 64;

#[derive(Debug, Default)]
struct Turn {
    session: String,
    has_events: bool,
    is_answered: bool,
    error: Option<RpcError>,
    /// The response, if it may have been the end of the turn.
    presumed_end: Option<Object>,
    deadline: Option<Instant>,
}

#[derive(Debug, Default)]
pub struct Turns {
    is_remote: bool,
    running: BTreeMap<u64, Turn>,
    /// Prompts that ended without a response, which may follow.
    ended: BTreeSet<u64>,
    /// Sessions whose last turn ended with a response; `done` may follow.
    answered: BTreeSet<String>,
    /// Whether a turn ended with `done`, or with its response.
    ends_with_done: bool,
    ends_with_response: bool,
}

impl Turns {
    pub fn new(is_remote: bool) -> Self {
        Self { is_remote, ..Self::default() }
    }

    pub fn begin(&mut self, id: u64, session: &str) {
        self.running.insert(id, Turn { session: session.to_owned(), ..Turn::default() });
    }

    pub fn only_session(&self) -> Option<String> {
        let mut turns = self.running.values();
        turns.next().filter(|_| turns.next().is_none()).map(|turn| turn.session.clone())
    }

    fn of(&mut self, session: &str) -> Option<(u64, &mut Turn)> {
        self.running.iter_mut().find(|(_, turn)| turn.session == session).map(|(id, turn)| (*id, turn))
    }

    pub fn on_activity(&mut self, session: &str, now: Instant) {
        if let Some((_, turn)) = self.of(session) {
            (turn.has_events, turn.error) = (true, None);
            turn.deadline = turn.presumed_end.is_some().then(|| now + CONFIRMED_TIME);
        }
    }

    /// An error, which ends the turn unless more events follow.
    pub fn on_error(&mut self, session: &str, error: RpcError, now: Instant) {
        if let Some((_, turn)) = self.of(session) {
            (turn.has_events, turn.error) = (true, Some(error));
            turn.deadline = Some(now + FAILING_TIME);
        }
    }

    /// A `done` event. It is not about this turn if its prompt was sent between the two ends of the previous one.
    pub fn on_done(&mut self, session: &str, event: Object, out: &mut Translation) {
        self.ends_with_done = true;
        let was_answered = self.answered.remove(session);
        let Some((id, turn)) = self.of(session) else { return };
        if was_answered && !turn.has_events {
            return;
        }
        let Some(turn) = self.running.remove(&id) else { return };
        if !turn.is_answered {
            self.expect_response(id);
        }
        out.respond(id, end(turn.error, event));
    }

    /// The response to a request; false if it passes unchanged.
    pub fn on_response(&mut self, id: u64, outcome: Result<&str, &str>, out: &mut Translation) -> bool {
        if self.ended.remove(&id) {
            return true;
        }
        let Some(turn) = self.running.get_mut(&id) else { return false };
        let result = outcome.ok().map(|result| parse_object(result).unwrap_or_default());
        if let Some(result) = result.filter(|result| first_text(result, STOP_KEYS).is_none()) {
            if !turn.has_events || self.is_remote && self.ends_with_done {
                turn.is_answered = true;
                return true;
            }
            if self.is_remote && !self.ends_with_response {
                (turn.is_answered, turn.presumed_end) = (true, Some(result));
                turn.deadline = Some(out.now + CONFIRMED_TIME);
                return true;
            }
        }
        let Some(turn) = self.running.remove(&id) else { return false };
        self.answered.insert(turn.session);
        let (Some(error), Ok(result)) = (turn.error, outcome) else { return false };
        out.respond(id, end(Some(error), parse_object(result).unwrap_or_default()));
        true
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.running.values().filter_map(|turn| turn.deadline).min()
    }

    pub fn on_deadline(&mut self, out: &mut Translation) {
        let is_overdue = |turn: &Turn| turn.deadline.is_some_and(|at| at <= out.now);
        let overdue: Vec<u64> =
            self.running.iter().filter(|(_, turn)| is_overdue(turn)).map(|(id, _)| *id).collect();
        for id in overdue {
            let Some(turn) = self.running.remove(&id) else { continue };
            self.ends_with_response |= turn.error.is_none();
            if !turn.is_answered {
                self.expect_response(id);
            }
            out.respond(id, end(turn.error, turn.presumed_end.unwrap_or_default()));
        }
    }

    fn expect_response(&mut self, id: u64) {
        self.ended.insert(id);
        if self.ended.len() > MAX_ENDED {
            self.ended.pop_first();
        }
    }
}

/// The outcome of a turn. One whose last event was an error failed, unless its stop reason is unusual.
fn end(error: Option<RpcError>, result: Object) -> Result<Value, Value> {
    let reason = first_text(&result, STOP_KEYS).map(|word| official(STOP_REASONS, &word));
    let is_usual = reason.is_none_or(|reason| reason == "end_turn")
        && result.get("cancelled").or_else(|| result.get("canceled")) != Some(&Value::Bool(true));
    match error.filter(|_| is_usual) {
        Some(RpcError { code, message, data }) => {
            let cause =
                data.and_then(|data| serde_json::from_str(&data.0).ok()).unwrap_or(Value::String(message));
            let message = "The turn ended with the error above.";
            Err(json!({"code": code, "message": message, "data": {"cause": cause}}))
        }
        None => Ok(result.into()),
    }
}
