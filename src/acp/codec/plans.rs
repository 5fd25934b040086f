//! Decodes plans: complete plans, and plans by id (unstable).
//!
//! Invariant: an entry without a priority has medium priority.

use serde_json::{Value, json};

use crate::model::{Plan, PlanBody, PlanEntry, PlanId};

use super::decoder::Decoder;
use super::names::{PLAN_PRIORITY, PLAN_STATUS, official};
use super::value::{Object, fill, first_text, list, rename, take, take_text, typed};

const STEP_TEXT: &[&str] = &["text", "title", "step", "description", "task", "name"];
const PLAN_ID: &[&str] = &["planId", "plan_id", "id"];

pub fn decode(update: &mut Object, decoder: &mut Decoder) -> Option<Plan> {
    let entries = take(update, &["entries", "steps", "items", "plan"])?;
    let id = take_text(update, &["planId", "plan_id"]).map(PlanId::from);
    Some(Plan { id, body: PlanBody::Entries(entries_of(entries, decoder)) })
}

/// Decodes `plan_update` (unstable): one of several plans.
pub fn decode_one(update: &mut Object, decoder: &mut Decoder) -> Option<Plan> {
    let mut plan = match take(update, &["plan"]) {
        Some(Value::Object(plan)) => plan,
        _ => std::mem::take(update),
    };
    let id = take_text(&mut plan, PLAN_ID).map(PlanId::from);
    let body = if let Some(entries) = take(&mut plan, &["entries", "steps", "items"]) {
        PlanBody::Entries(entries_of(entries, decoder))
    } else if let Some(content) = take_text(&mut plan, &["content", "markdown", "text"]) {
        PlanBody::Markdown(content)
    } else {
        PlanBody::File(take_text(&mut plan, &["uri", "path", "file"])?)
    };
    Some(Plan { id, body })
}

pub fn decode_removed(update: &Object) -> Option<PlanId> {
    first_text(update, PLAN_ID).map(PlanId::from)
}

fn entries_of(entries: Value, decoder: &mut Decoder) -> Vec<PlanEntry> {
    decoder.items(list(entries), "entries", |step| typed(shape(step)).ok())
}

/// Converts an entry into the official shape, which is that of [`PlanEntry`]; unknown words become the default value.
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
