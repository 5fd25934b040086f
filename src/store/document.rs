//! The JSON document of an exported session, which `parlor sessions import` reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::handle::Store;
use super::rows::SessionRow;
use crate::escape;
use crate::host::attachments::Attachments;
use crate::model::{AttachmentKind, RecordedEvent, attachment_labels};

pub const FORMAT: &str = "parlor-session";

pub const FORMAT_VERSION: u64 = 1;

/// The JSON document of an export.
#[derive(Debug, Serialize, Deserialize)]
pub struct Document {
    /// Always [`FORMAT`].
    pub format: String,
    /// At most [`FORMAT_VERSION`].
    pub version: u64,
    pub session: Head,
    /// All events, oldest first.
    pub events: Vec<RecordedEvent>,
}

/// The metadata of an exported session. The agent's arguments are omitted, because they may contain tokens.
#[derive(Debug, Serialize, Deserialize)]
pub struct Head {
    pub id: String,
    pub agent: String,
    #[serde(default)]
    pub command: String,
    #[serde(default)]
    pub agent_session: Option<String>,
    pub folder: String,
    #[serde(default)]
    pub roots: Vec<String>,
    #[serde(default)]
    pub branch: Option<String>,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_own_title: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_subagent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_from: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub draft: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<String>,
    /// The drafts that were put aside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stash: Vec<String>,
    /// The unsaved writes that were held, by path; only in the file of a session that could not be saved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub held: BTreeMap<String, String>,
    /// Number of events that are omitted because this parlor could not read them.
    #[serde(default, skip_serializing_if = "crate::model::is_zero")]
    pub unreadable_count: u64,
    /// Unix milliseconds.
    pub created_ms: i64,
    /// Unix milliseconds.
    pub updated_ms: i64,
}

impl Document {
    pub fn new(store: &Store, row: &SessionRow, events: Vec<RecordedEvent>, unreadable_count: u64) -> Self {
        let with_pasted_texts = |prompt: &String| with_pasted_texts(store, prompt);
        Self {
            format: FORMAT.to_owned(),
            version: FORMAT_VERSION,
            session: Head {
                id: row.uid.clone(),
                agent: row.agent.clone(),
                command: row.command.clone(),
                agent_session: row.agent_session.clone(),
                folder: row.folder.to_string_lossy().into_owned(),
                roots: row.roots.iter().map(|root| root.to_string_lossy().into_owned()).collect(),
                branch: row.branch.clone(),
                title: row.title.clone(),
                has_own_title: row.has_own_title,
                is_subagent: row.is_child,
                came_from: row.came_from.clone(),
                draft: with_pasted_texts(&row.draft),
                queue: row.queue.iter().map(with_pasted_texts).collect(),
                stash: row.stash.iter().map(with_pasted_texts).collect(),
                held: BTreeMap::new(),
                unreadable_count,
                created_ms: row.created_ms,
                updated_ms: row.updated_ms,
            },
            events,
        }
    }

    pub fn text(&self) -> String {
        pretty(self)
    }
}

/// A prompt that was not sent, with its pasted texts in place of their labels, which mean nothing elsewhere.
fn with_pasted_texts(store: &Store, prompt: &str) -> String {
    let attachments = Attachments::new(Some(store.root()));
    let mut text = prompt.to_owned();
    for label in
        attachment_labels(prompt).into_iter().rev().filter(|label| label.kind == AttachmentKind::Text)
    {
        if let Some(pasted) = attachments.find(&label).and_then(|bytes| String::from_utf8(bytes).ok()) {
            text.replace_range(label.range, &pasted);
        }
    }
    text
}

/// Formats a value as escaped JSON.
pub fn pretty<T: Serialize>(value: &T) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    // The text may be printed, or shown by any program.
    escape::json(&text).into_owned()
}
