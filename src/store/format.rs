//! The format of events on disk.
//!
//! An event is a JSON object with the record's name and fields. A missing field has its default, so that newer
//! versions can add fields; events that cannot be read are counted.

use crate::model::{Record, Role, SessionUpdate, Severity};

/// Maximum size of a saved event: the limit of an agent's message.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// Encodes a record. One that is too large or cannot be encoded is replaced by a notice.
pub(super) fn encode(record: &Record) -> String {
    match serde_json::to_string(record) {
        Ok(text) if text.len() <= MAX_EVENT_BYTES => text,
        Ok(text) => notice(format!("An event of {} MiB was too large to save.", text.len() >> 20), None),
        Err(error) => notice("An event could not be saved.".to_owned(), Some(error.to_string())),
    }
}

fn notice(title: String, detail: Option<String>) -> String {
    let record = Record::notice(Severity::Warning, title, detail);
    serde_json::to_string(&record).unwrap_or_default()
}

pub(super) fn decode(text: &str) -> Option<Record> {
    serde_json::from_str(text).ok()
}

pub(super) fn kind(record: &Record) -> &'static str {
    match record {
        Record::Prompt { .. } => "prompt",
        Record::Update(update) => update_kind(update),
        Record::Asked { .. } => "asked",
        Record::Decided { .. } => "decided",
        Record::Located { .. } => "located",
        Record::Answered { .. } => "answered",
        Record::Access(_) => "access",
        Record::Command { .. } => "command",
        Record::Notice { .. } => "notice",
        Record::TurnEnded(_) => "turn_ended",
        Record::Replaced => "replaced",
        Record::Inserted { .. } => "inserted",
        Record::HandedOver { .. } => "handed_over",
        Record::Archived { .. } => "archived",
        Record::Snapshot(_) => "snapshot",
    }
}

fn update_kind(update: &SessionUpdate) -> &'static str {
    match update {
        SessionUpdate::Chunk { role, .. }
        | SessionUpdate::Block { role, .. }
        | SessionUpdate::Message { role, .. } => match role {
            Role::User => "user",
            Role::Agent | Role::SubagentMessage => "answer",
            Role::Thought => "thought",
        },
        SessionUpdate::Tool(_) => "tool",
        SessionUpdate::Plan(_) | SessionUpdate::PlanRemoved(_) => "plan",
        SessionUpdate::Unknown { .. } => "unknown",
        _ => "update",
    }
}

/// Whether a session with this record is saved; settings alone are not.
pub(super) fn is_substance(record: &Record) -> bool {
    const KINDS: [&str; 10] = [
        "prompt",
        "asked",
        "answered",
        "access",
        "command",
        "handed_over",
        "user",
        "answer",
        "thought",
        "tool",
    ];
    KINDS.contains(&kind(record))
}

/// Whether an event ends the previous message.
pub(super) fn begins_anew(record: &Record) -> bool {
    match record {
        Record::Prompt { .. } => true,
        Record::Update(SessionUpdate::Tool(patch)) => patch.is_announcement,
        _ => false,
    }
}

/// Merges a text chunk with the previous one of the same message.
pub(super) fn join(last: &mut Record, next: &Record) -> bool {
    /// Maximum size of a merged chunk.
    const MAX_JOINED_BYTES: usize = 256 << 10;
    let (Record::Update(last), Record::Update(next)) = (last, next) else { return false };
    let Some((role, message, more)) = next.appended_text() else { return false };
    match last.text_to_grow(role, message) {
        Some(text) if text.len() + more.len() <= MAX_JOINED_BYTES => {
            text.push_str(more);
            true
        }
        _ => false,
    }
}
