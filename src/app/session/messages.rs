//! Messages: chunks and blocks become items.
//!
//! Duty: which item a chunk belongs to. A change of speaker or of message id, or a tool call in between,
//! begins a new one; so does any other item, for a chunk that names no message. Source: ACP v1 prompt-turn and the
//! message-id rule.
//! Invariant: a chunk costs the same however long its message is.

use std::time::Instant;

use crate::model::{ContentBlock, MessageId, Patch, Role, SessionUpdate};

use super::turns;
use crate::app::{ItemBody, Message, MessagePart, Replay, Session};

/// Appends text to a message.
pub(in crate::app) fn on_chunk(
    session: &mut Session,
    role: Role,
    message: Option<MessageId>,
    text: String,
    now: Instant,
) {
    // Some agents send empty chunks to keep a line busy.
    if text.is_empty() {
        return;
    }
    append(session, role, message, MessagePart::Text(text), now);
}

/// What is left of an update without the agent's echo of our own prompt; `None`: nothing.
pub(in crate::app) fn without_echo(session: &mut Session, update: SessionUpdate) -> Option<SessionUpdate> {
    if !session.turn.is_running() {
        return Some(update);
    }
    match update {
        SessionUpdate::Chunk { role: Role::User, message, text } => {
            let text = session.prompts.strip_echo(text)?;
            let role = Role::User;
            // Played again, what is said once more is not to be taken for the echo.
            let is_like_echo = session.prompts.running().is_some_and(|sent| {
                sent.starts_with(&text) || text.strip_prefix(sent).is_some_and(|tail| tail.trim().is_empty())
            });
            Some(if is_like_echo {
                SessionUpdate::Block { role, message, block: ContentBlock::Text(text) }
            } else {
                SessionUpdate::Chunk { role, message, text }
            })
        }
        SessionUpdate::Message { role: Role::User, message, content: Patch::Set(blocks) }
            if session.find_message(Role::User, &message).is_none() =>
        {
            let left = blocks.into_iter().filter_map(|block| match block {
                ContentBlock::Text(text) => session.prompts.strip_echo(text).map(ContentBlock::Text),
                block => Some(block),
            });
            let left: Vec<ContentBlock> = left.collect();
            let content = Patch::Set(left);
            (content != Patch::Set(Vec::new())).then_some(SessionUpdate::Message {
                role: Role::User,
                message,
                content,
            })
        }
        update => Some(update),
    }
}

/// Appends a block that is no text to a message.
pub(in crate::app) fn on_block(
    session: &mut Session,
    role: Role,
    message: Option<MessageId>,
    block: ContentBlock,
    now: Instant,
) {
    let part = match block {
        ContentBlock::Text(text) if text.is_empty() => return,
        ContentBlock::Text(text) => MessagePart::Text(text),
        other => MessagePart::Block(other),
    };
    append(session, role, message, part, now);
}

/// A whole message: its content replaces what was told of it, wherever it stands. Source: ACP v2, messages.
pub(in crate::app) fn on_message(
    session: &mut Session,
    role: Role,
    message: &MessageId,
    content: Patch<Vec<ContentBlock>>,
    now: Instant,
) {
    let blocks = match content {
        Patch::Keep => return,
        Patch::Clear => Vec::new(),
        Patch::Set(blocks) => blocks,
    };
    if let Some(id) = session.find_message(role, message) {
        let new_parts = blocks.into_iter().map(part_of).collect();
        session.transcript.edit(id, |item| {
            if let ItemBody::Message(known) = &mut item.body {
                known.parts = new_parts;
            }
        });
        return;
    }
    for block in blocks {
        match block {
            ContentBlock::Text(text) => on_chunk(session, role, Some(message.clone()), text, now),
            block => on_block(session, role, Some(message.clone()), block, now),
        }
    }
}

fn part_of(block: ContentBlock) -> MessagePart {
    match block {
        ContentBlock::Text(text) => MessagePart::Text(text),
        other => MessagePart::Block(other),
    }
}

fn append(session: &mut Session, role: Role, message: Option<MessageId>, part: MessagePart, now: Instant) {
    if let Some(id) = session.open_message
        && continues(session, id, role, message.as_ref())
    {
        session.transcript.edit(id, |item| {
            if let ItemBody::Message(open) = &mut item.body {
                match (open.parts.last_mut(), part) {
                    (Some(MessagePart::Text(text)), MessagePart::Text(more)) => text.push_str(&more),
                    (_, part) => open.parts.push(part),
                }
            }
        });
        return;
    }
    if role == Role::User && !session.turn.is_running() {
        // A replayed history: each message of the user begins a turn.
        turns::next_turn(session, now);
    } else {
        close(session, now);
    }
    let body =
        Message { role, message, parts: vec![part], is_open: true, began: now, took: None, is_local: false };
    let id = session.transcript.push(session.turn_count, ItemBody::Message(body));
    session.open_message = Some(id);
}

fn continues(session: &Session, id: crate::model::ItemId, role: Role, message: Option<&MessageId>) -> bool {
    let Some(ItemBody::Message(open)) = session.transcript.get(id).map(|item| &item.body) else {
        return false;
    };
    // Without an id, what comes behind another item is not a part of the message above that.
    let is_last = || session.transcript.items().last().is_some_and(|last| last.id == id);
    open.role == role && message.map_or_else(is_last, |message| open.message.as_ref() == Some(message))
}

/// Closes the open message: nothing more is appended to it.
pub(in crate::app) fn close(session: &mut Session, now: Instant) {
    let Some(id) = session.open_message.take() else {
        return;
    };
    // In a replay all chunks come at once; how long they took means nothing.
    let is_live = session.turn.is_running() || matches!(session.replay, Replay::None);
    session.transcript.edit(id, |item| {
        if let ItemBody::Message(open) = &mut item.body {
            open.is_open = false;
            open.took = is_live.then(|| now.saturating_duration_since(open.began));
        }
    });
}
