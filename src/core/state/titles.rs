//! Titles of sessions.

use crate::core::{ItemBody, MessagePart, Session};
use crate::model::Role;

/// The title of a session, otherwise its first prompt, otherwise `New session`.
pub fn session_title(session: &Session) -> String {
    title_of(session).unwrap_or_else(|| "New session".to_owned())
}

/// The title of a session, otherwise its first prompt.
pub fn title_of(session: &Session) -> Option<String> {
    let title = session.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    let first = || {
        session.transcript.items().iter().find_map(|item| match &item.body {
            ItemBody::Message(message) if message.role == Role::User => {
                message.parts.iter().find_map(|part| match part {
                    MessagePart::Text(text) => text.lines().find(|line| !line.trim().is_empty()),
                    MessagePart::Block(_) => None,
                })
            }
            _ => None,
        })
    };
    title.or_else(first).map(str::to_owned)
}
