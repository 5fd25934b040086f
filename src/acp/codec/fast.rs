//! Fast path for text chunks, which are about 90 % of all traffic.
//!
//! Messages that do not have exactly the official shape are decoded by `updates`, through a JSON tree.
//! Invariant: `updates` produces the same events for every message that is decoded here.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::acp::envelope::string;
use crate::model::{AgentEvent, MessageId, Role, SessionId, SessionUpdate};

use super::decoder::Decoder;
use super::names;

/// Decodes `params` if they hold a text chunk; `false`: they do not, and `out` is unchanged.
pub fn decode(params: &str, decoder: &mut Decoder) -> bool {
    let Ok(Params { session_id, update }) = serde_json::from_str::<Params<'_>>(params) else {
        return false;
    };
    if matches!(update.kind, ChunkKind::User) && names::is_result_of_call(&update.content.text) {
        return false;
    }
    if update.content.text.contains(names::MODE_LINE) {
        return false;
    }
    let message = match update.message_id.map(|id| string(id.get())) {
        // Not a string.
        Some(None) => return false,
        message => message.flatten(),
    };
    let session = decoder.session(&session_id);
    let message = message.map(|name| decoder.message(&name));
    let role = match update.kind {
        ChunkKind::User => Role::User,
        ChunkKind::Agent => Role::Agent,
        ChunkKind::Thought => Role::Thought,
    };
    decoder.push_text(session, role, message, update.content.text);
    true
}

impl Decoder {
    /// Appends text to the chunk at the end of `out` if it continues that one, or adds a chunk. Empty texts are ignored:
    /// some agents send them, and they would split other messages.
    pub fn push_text(
        &mut self,
        session: SessionId,
        role: Role,
        message: Option<MessageId>,
        text: Cow<'_, str>,
    ) {
        if text.is_empty() {
            return;
        }
        // Prompts without a reply follow each other, and are compared with the record one by one.
        if role != Role::User
            && let Some(AgentEvent::Update(last_session, last)) = self.out.last_mut()
            && *last_session == session
            && let Some(open) = last.text_to_grow(role, message.as_ref())
        {
            open.push_str(&text);
            return;
        }
        let text = text.into_owned();
        let update = match message {
            // In version 2, a message is known by its id.
            Some(message) if self.is_v2 => SessionUpdate::more_text(role, message, text),
            message => SessionUpdate::Chunk { role, message, text },
        };
        self.out.push(AgentEvent::Update(session, update));
    }
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, rename = "sessionId")]
    session_id: Cow<'a, str>,
    #[serde(borrow)]
    update: Update<'a>,
}

#[derive(Deserialize)]
struct Update<'a> {
    #[serde(rename = "sessionUpdate")]
    kind: ChunkKind,
    #[serde(borrow)]
    content: Text<'a>,
    #[serde(borrow, default, rename = "messageId")]
    message_id: Option<&'a RawValue>,
}

// An enum, so that deserialization of any other update fails early.
#[derive(Deserialize)]
enum ChunkKind {
    #[serde(rename = "user_message_chunk")]
    User,
    #[serde(rename = "agent_message_chunk")]
    Agent,
    #[serde(rename = "agent_thought_chunk")]
    Thought,
}

#[derive(Deserialize)]
struct Text<'a> {
    #[serde(rename = "type")]
    _kind: TextKind,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
enum TextKind {
    #[serde(rename = "text")]
    Text,
}
