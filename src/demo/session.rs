//! A session of the demo agent: saved state and state of the running process.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::lock::lock;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The saved state of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) id: String,
    pub(super) cwd: String,
    #[serde(default)]
    pub(super) title: Option<String>,
    pub(super) updated_at: String,
    pub(super) mode: String,
    pub(super) model: String,
    pub(super) speed: String,
    pub(super) has_thoughts: bool,
    #[serde(default)]
    pub(super) tour: usize,
    /// Counter for the ids of messages and tool calls, which are never reused.
    #[serde(default)]
    pub(super) counter: u64,
    #[serde(default)]
    pub(super) used_tokens: u64,
    #[serde(default)]
    pub(super) cost: f64,
    #[serde(default)]
    pub(super) history: Vec<Value>,
}

impl Kept {
    pub(super) fn new(id: String, cwd: String) -> Self {
        Self {
            id,
            cwd,
            title: None,
            updated_at: now(),
            mode: "ask".to_owned(),
            model: "chatty".to_owned(),
            speed: "natural".to_owned(),
            has_thoughts: true,
            tour: 0,
            counter: 0,
            used_tokens: 1200,
            cost: 0.0,
            history: Vec::new(),
        }
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// Adds an update to the history. Chunks of one message are merged; references to a client's terminal are
    /// omitted, because it does not exist in a replay.
    pub(super) fn record(&mut self, update: &Value) {
        if let Some(last) = self.history.last_mut()
            && join_chunk(last, update)
        {
            return;
        }
        let mut update = update.clone();
        if let Some(content) = update.get_mut("content").and_then(Value::as_array_mut) {
            content.retain(|item| item.get("type").and_then(Value::as_str) != Some("terminal"));
        }
        self.history.push(update);
    }

    pub(super) fn info(&self) -> Value {
        json!({"sessionId": self.id, "cwd": self.cwd, "title": self.title, "updatedAt": self.updated_at})
    }
}

/// Appends a text chunk to another one of the same message; returns false if it is not one.
fn join_chunk(last: &mut Value, update: &Value) -> bool {
    let key = |value: &Value| {
        let kind = value.get("sessionUpdate")?.as_str()?.to_owned();
        let text = value.get("content")?.get("type")?.as_str()? == "text";
        (text && kind.ends_with("_chunk")).then(|| (kind, value.get("messageId").cloned()))
    };
    let is_same = key(last).is_some_and(|last| Some(last) == key(update));
    let more = update.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
    match last.pointer_mut("/content/text") {
        Some(Value::String(text)) if is_same => {
            text.push_str(more);
            true
        }
        _ => false,
    }
}

/// An open session.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) id: String,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) saved: Kept,
    pub(super) turn: Option<Arc<Cancel>>,
    /// Kinds of actions that the user always allows.
    pub(super) always: HashSet<&'static str>,
}

impl Live {
    pub(super) fn new(saved: Kept) -> Self {
        let id = saved.id.clone();
        Self { id, state: Mutex::new(State { saved, turn: None, always: HashSet::new() }) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// The cancellation flag of a turn.
#[derive(Debug, Default)]
pub(super) struct Cancel {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Cancel {
    pub(super) fn set(&self) {
        *lock(&self.is_set) = true;
        self.changed.notify_all();
    }

    pub(super) fn is_set(&self) -> bool {
        *lock(&self.is_set)
    }

    /// Waits; returns true if the turn was cancelled.
    pub(super) fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut is_set = lock(&self.is_set);
        while !*is_set {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            is_set = self.changed.wait_timeout(is_set, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *is_set
    }
}

/// The current time in ISO 8601, with milliseconds so that it sorts.
pub(super) fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds() {
        assert_eq!(now().len(), "2026-11-21T03:00:00.000Z".len());
    }
}
