//! Plans whose entries are sent one at a time.

use serde_json::{Value, json};

use crate::acp::codec::names::{PLAN_STATUS, official};
use crate::acp::codec::value::{Object, first, first_text, into_object, whole};

const MAX_STEPS: usize = 1000;

/// The plan of the session that reported a step last.
#[derive(Debug, Default)]
pub struct Plan {
    session: String,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    /// The position in the agent's numbering, if it sends one.
    position: Option<i64>,
    content: String,
    status: String,
}

impl Plan {
    /// Adds or changes a step, and returns the whole plan as an update. A step is known by its position, otherwise by
    /// its text; a new one without a position completes the previous one. Positions may begin at 0 or 1, and the number
    /// of steps may change.
    pub fn step(&mut self, session: &str, event: &Object) -> Option<Object> {
        if self.session != session {
            *self = Self { session: session.to_owned(), steps: Vec::new() };
        }
        let position = first(event, &["index", "position", "number"])
            .or_else(|| first(event, &["step", "current"]))
            .and_then(number);
        let status = first_text(event, &["status", "state"]).map(|word| official(PLAN_STATUS, &word));
        let content = ["content", "text", "description", "title", "name", "step"]
            .iter()
            .filter_map(|key| event.get(*key).filter(|value| *key != "step" || number(value).is_none()))
            .find_map(|value| value.as_str().map(str::to_owned));
        // Steps without positions are numbered from 0.
        if position.is_some() && self.steps.iter().all(|step| step.position.is_none()) {
            for (at, step) in (0..).zip(&mut self.steps) {
                step.position = Some(at);
            }
        }
        let known = self.steps.iter_mut().find(|step| match position {
            Some(_) => step.position == position,
            None => Some(&step.content) == content.as_ref(),
        });
        if let Some(step) = known {
            step.status = status.unwrap_or_else(|| std::mem::take(&mut step.status));
            step.content = content.unwrap_or_else(|| std::mem::take(&mut step.content));
        } else {
            self.add(position, content.filter(|_| self.steps.len() < MAX_STEPS)?, status);
        }
        let entries: Vec<Value> = self
            .steps
            .iter()
            .map(|step| json!({"content": step.content, "priority": "medium", "status": step.status}))
            .collect();
        Some(into_object(json!({"sessionUpdate": "plan", "entries": entries})))
    }

    fn add(&mut self, position: Option<i64>, content: String, status: Option<String>) {
        if position.is_none()
            && let Some(last) = self.steps.last_mut()
        {
            "completed".clone_into(&mut last.status);
        }
        let status = status.unwrap_or_else(|| "in_progress".to_owned());
        let position = position.or_else(|| Some(self.steps.last()?.position?.saturating_add(1)));
        // Steps may arrive out of order.
        let at = self.steps.iter().position(|step| position.is_some() && step.position > position);
        self.steps.insert(at.unwrap_or(self.steps.len()), Step { position, content, status });
    }
}

/// The position of a step: `2`, `"2"`, `"2/5"`, `"2 of 5"`.
fn number(value: &Value) -> Option<i64> {
    let Some(text) = value.as_str() else { return whole(value) };
    let (number, rest) = text.split_at(text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len()));
    let rest = rest.trim_start();
    let total = rest.strip_prefix('/').or_else(|| rest.strip_prefix("of ")).unwrap_or(rest);
    if !total.trim().bytes().all(|sign| sign.is_ascii_digit()) {
        return None;
    }
    number.parse().ok()
}
