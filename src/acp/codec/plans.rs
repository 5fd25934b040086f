//! Decodes plans: complete plans, plans by id (unstable), and entries that are sent one at a time.
//!
//! Invariant: an entry without a priority has medium priority.

use agent_client_protocol_schema::v1 as schema;
use serde_json::{Value, json};

use crate::model::{AgentEvent, Plan, PlanBody, PlanEntry, PlanId, PlanPriority, PlanStatus, SessionId};

use super::decoder_state::{DecoderState, Step};
use super::names::{PLAN_PRIORITY, PLAN_STATUS, official};
use super::value::{Object, fill, first, first_text, list, rename, take, take_text, typed_items, whole};

/// Maximum number of entries of a plan that is sent one entry at a time; further ones are dropped.
const MOST_STEPS: usize = 1_000;

const STEP_TEXT: &[&str] = &["text", "title", "step", "description", "task", "name"];
const PLAN_ID: &[&str] = &["planId", "plan_id", "id"];

/// Decodes `plan`, which replaces the whole plan.
pub(super) fn decode(update: &mut Object, out: &mut Vec<AgentEvent>) -> Option<Plan> {
    let entries = take(update, &["entries", "steps", "items", "plan"])?;
    let id = take_text(update, &["planId", "plan_id"]).map(PlanId::from);
    Some(Plan { id, body: PlanBody::Entries(entries_of(entries, out)) })
}

/// Decodes `plan_update` (unstable): one of several plans.
pub(super) fn decode_one(update: &mut Object, out: &mut Vec<AgentEvent>) -> Option<Plan> {
    let mut plan = match take(update, &["plan"]) {
        Some(Value::Object(plan)) => plan,
        _ => std::mem::take(update),
    };
    let id = take_text(&mut plan, PLAN_ID).map(PlanId::from);
    let body = if let Some(entries) = take(&mut plan, &["entries", "steps", "items"]) {
        PlanBody::Entries(entries_of(entries, out))
    } else if let Some(content) = take_text(&mut plan, &["content", "markdown", "text"]) {
        PlanBody::Markdown(content)
    } else {
        PlanBody::File(take_text(&mut plan, &["uri", "path", "file"])?)
    };
    Some(Plan { id, body })
}

/// Decodes `plan_removed` (unstable).
pub(super) fn decode_removed(update: &Object) -> Option<PlanId> {
    first_text(update, PLAN_ID).map(PlanId::from)
}

/// Decodes `plan_step`: one entry, identified by its position or otherwise by its text; a new one without a position
/// completes the previous one. Positions may begin at 0 or 1, and the number of steps may change.
pub(super) fn decode_step(
    update: &mut Object,
    session: &SessionId,
    memory: &mut DecoderState,
) -> Option<Plan> {
    let position = first(update, &["index", "position", "number"])
        .or_else(|| first(update, &["step", "current"]))
        .and_then(step_number);
    let status = first_text(update, &["status", "state"]).map(|word| status(&word));
    let content = ["content", "text", "description", "title", "name", "step"]
        .iter()
        .filter_map(|key| update.get(*key).filter(|value| *key != "step" || step_number(value).is_none()))
        .find_map(|value| value.as_str().map(str::to_owned));
    let mut steps = match memory.steps.take() {
        Some((of, steps)) if of == *session => steps,
        _ => Vec::new(),
    };
    // Steps without positions are numbered from 0.
    if position.is_some() && steps.iter().all(|step| step.position.is_none()) {
        for (at, step) in (0..).zip(&mut steps) {
            step.position = Some(at);
        }
    }
    let by_text = |step: &Step| Some(&step.entry.content) == content.as_ref();
    let known = match position {
        Some(_) => steps.iter().position(|step| step.position == position),
        None => steps.iter().position(by_text),
    };
    if let Some(step) = known.and_then(|at| steps.get_mut(at)) {
        step.entry.status = status.unwrap_or(step.entry.status);
        if let Some(content) = content {
            step.entry.content = content;
        }
    } else if let Some(content) = content.filter(|_| steps.len() < MOST_STEPS) {
        if position.is_none()
            && let Some(last) = steps.last_mut()
        {
            last.entry.status = PlanStatus::Completed;
        }
        let status = status.unwrap_or(PlanStatus::InProgress);
        let entry = PlanEntry { content, priority: PlanPriority::Medium, status };
        let position = position.or_else(|| Some(steps.last()?.position?.saturating_add(1)));
        // Steps may arrive out of order.
        let at = steps.iter().position(|step| position.is_some() && step.position > position);
        steps.insert(at.unwrap_or(steps.len()), Step { position, entry });
    } else {
        memory.steps = Some((session.clone(), steps));
        return None;
    }
    let entries = steps.iter().map(|step| step.entry.clone()).collect();
    memory.steps = Some((session.clone(), steps));
    Some(Plan { id: None, body: PlanBody::Entries(entries) })
}

/// The position of a step: `2`, `"2"`, `"2/5"`, `"2 of 5"`.
fn step_number(value: &Value) -> Option<i64> {
    let Some(text) = value.as_str() else { return whole(value) };
    let (number, rest) = text.split_at(text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len()));
    let rest = rest.trim_start();
    let total = rest.strip_prefix('/').or_else(|| rest.strip_prefix("of ")).unwrap_or(rest);
    if !total.trim().bytes().all(|sign| sign.is_ascii_digit()) {
        return None;
    }
    number.parse().ok()
}

fn entries_of(entries: Value, out: &mut Vec<AgentEvent>) -> Vec<PlanEntry> {
    typed_items::<schema::PlanEntry>(list(entries), "entries", out, shape)
        .into_iter()
        .map(|entry| PlanEntry {
            content: entry.content,
            priority: match entry.priority {
                schema::PlanEntryPriority::High => PlanPriority::High,
                schema::PlanEntryPriority::Low => PlanPriority::Low,
                _ => PlanPriority::Medium,
            },
            status: match entry.status {
                schema::PlanEntryStatus::InProgress => PlanStatus::InProgress,
                schema::PlanEntryStatus::Completed => PlanStatus::Completed,
                _ => PlanStatus::Pending,
            },
        })
        .collect()
}

/// Converts an entry into the official shape; unknown words become the default value.
fn shape(step: Value) -> Value {
    let mut step = match step {
        Value::Object(step) => step,
        Value::String(text) => return json!({"content": text, "priority": "medium", "status": "pending"}),
        other => return other,
    };
    rename(&mut step, "content", STEP_TEXT);
    for (key, table, known, neutral) in [
        ("priority", PLAN_PRIORITY, ["high", "medium", "low"], "medium"),
        ("status", PLAN_STATUS, ["pending", "in_progress", "completed"], "pending"),
    ] {
        if let Some(word) = step.get(key).and_then(Value::as_str) {
            let word = official(table, word);
            let word = if known.contains(&word.as_str()) { word } else { neutral.to_owned() };
            step.insert(key.to_owned(), word.into());
        }
        fill(&mut step, key, || neutral.into());
    }
    Value::Object(step)
}

fn status(word: &str) -> PlanStatus {
    match official(PLAN_STATUS, word).as_str() {
        "in_progress" => PlanStatus::InProgress,
        "completed" => PlanStatus::Completed,
        _ => PlanStatus::Pending,
    }
}
