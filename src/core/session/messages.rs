//! Appends chunks and blocks to messages.
//!
//! A chunk starts a new message after a change of role or message id, or after a tool call; a chunk without a message
//! id also after any other item. Source: ACP v1 prompt-turn and the message-id rule. In version 2 a message is known by
//! its id: what is appended belongs to it whatever came between. Source: ACP v2, messages.
//! Invariant: the cost of a chunk does not depend on the length of its message.

use std::time::Instant;

use crate::model::{ContentBlock, MessageId, Patch, Role, SessionUpdate};

use super::turns;
use crate::core::{Item, ItemBody, Message, MessagePart, Replay, Session};

pub(in crate::core) fn on_chunk(
    session: &mut Session,
    role: Role,
    message: Option<MessageId>,
    text: String,
    now: Instant,
) {
    // Some agents send empty chunks to keep the connection alive.
    if text.is_empty() {
        return;
    }
    append(session, role, message, MessagePart::Text(text.into()), now);
}

/// Removes the agent's echo of the prompt from an update; `None`: nothing remains.
pub(in crate::core) fn without_echo(session: &mut Session, update: SessionUpdate) -> Option<SessionUpdate> {
    if !session.turn.is_running() {
        return Some(update);
    }
    match update {
        SessionUpdate::Chunk { role: Role::User, message, text } => {
            let text = session.echo.strip(text)?;
            let role = Role::User;
            // In a replayed record, repeated text must not be mistaken for the echo.
            let is_like_echo = session.outbox.running().is_some_and(|prompt| {
                let sent = prompt.text.as_str();
                sent.starts_with(&text) || text.strip_prefix(sent).is_some_and(|tail| tail.trim().is_empty())
            });
            Some(if is_like_echo {
                SessionUpdate::Block { role, message, block: ContentBlock::Text(text.into()) }
            } else {
                SessionUpdate::Chunk { role, message, text }
            })
        }
        SessionUpdate::Message { role: Role::User, message, content, more_content }
            if session.find_message(Role::User, &message).is_none() =>
        {
            let mut strip = |blocks: Vec<ContentBlock>| -> Vec<ContentBlock> {
                let left = blocks.into_iter().filter_map(|block| match block {
                    ContentBlock::Text(text) => {
                        session.echo.strip(text.into_string()).map(|text| ContentBlock::Text(text.into()))
                    }
                    block => Some(block),
                });
                left.collect()
            };
            let content = match content {
                Patch::Set(blocks) => Patch::Set(strip(blocks)),
                content => content,
            };
            let more_content = strip(more_content);
            let is_empty = content.as_set().is_none_or(Vec::is_empty) && more_content.is_empty();
            let role = Role::User;
            (!is_empty).then_some(SessionUpdate::Message { role, message, content, more_content })
        }
        update => Some(update),
    }
}

/// Appends a non-text block to a message.
pub(in crate::core) fn on_block(
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

/// Applies a complete message: its content replaces the known content. Source: ACP v2, messages.
pub(in crate::core) fn on_message(
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
        on_block(session, role, Some(message.clone()), block, now);
    }
}

/// Appends a block to the message with this id, wherever it is.
pub(in crate::core) fn on_more(
    session: &mut Session,
    role: Role,
    message: &MessageId,
    block: ContentBlock,
    now: Instant,
) {
    let is_open = session.open_message.is_some_and(|id| continues(session, id, role, Some(message)));
    let known = if is_open { None } else { session.find_message(role, message) };
    match known {
        Some(id) => session.transcript.edit(id, |item| {
            if let ItemBody::Message(known) = &mut item.body {
                push(known, part_of(block));
            }
        }),
        None => on_block(session, role, Some(message.clone()), block, now),
    }
}

fn part_of(block: ContentBlock) -> MessagePart {
    match block {
        ContentBlock::Text(text) => MessagePart::Text(text),
        other => MessagePart::Block(other),
    }
}

fn push(message: &mut Message, part: MessagePart) {
    match (message.parts.last_mut(), part) {
        (Some(MessagePart::Text(text)), MessagePart::Text(more)) => text.push_str(&more),
        (_, part) => message.parts.push(part),
    }
}

fn append(session: &mut Session, role: Role, message: Option<MessageId>, part: MessagePart, now: Instant) {
    if let Some(id) = session.open_message
        && continues(session, id, role, message.as_ref())
    {
        session.transcript.edit(id, |item| {
            if let ItemBody::Message(open) = &mut item.body {
                push(open, part);
            }
        });
        return;
    }
    if role == Role::User && !session.turn.is_running() {
        // In a replayed history, each message of the user starts a turn.
        turns::next_turn(session, now);
    } else {
        close(session, now);
    }
    let body = Message {
        role,
        message,
        parts: vec![part],
        is_open: true,
        began: now,
        took: None,
        is_local: false,
        pasted: Vec::new(),
    };
    let id = session.transcript.push(session.turn_count, ItemBody::Message(body));
    session.open_message = Some(id);
}

fn continues(session: &Session, id: crate::model::ItemId, role: Role, message: Option<&MessageId>) -> bool {
    let Some(ItemBody::Message(open)) = session.transcript.get(id).map(|item| &item.body) else {
        return false;
    };
    // Without an id, a chunk after another item does not continue the message before it.
    // The user's own commands do not interrupt a message.
    let is_typed = |item: &&Item| matches!(&item.body, ItemBody::Tool(call) if call.is_typed());
    let is_last = || {
        let last = session.transcript.items().iter().rev().find(|item| !is_typed(item));
        last.is_some_and(|last| last.id == id)
    };
    open.role == role && message.map_or_else(is_last, |message| open.message.as_ref() == Some(message))
}

/// Closes the open message: nothing more is appended to it.
pub(in crate::core) fn close(session: &mut Session, now: Instant) {
    let Some(id) = session.open_message.take() else { return };
    // In a replay all chunks arrive at once, so their duration is meaningless.
    let is_live =
        session.turn.is_running() || !matches!(session.replay, Replay::Armed(_) | Replay::Running(_));
    session.transcript.edit(id, |item| {
        if let ItemBody::Message(open) = &mut item.body {
            open.is_open = false;
            // A long text has grown by doubling.
            if let Some(MessagePart::Text(text)) = open.parts.last_mut() {
                text.edit(String::shrink_to_fit);
            }
            open.took = is_live.then(|| now.saturating_duration_since(open.began));
        }
    });
}
