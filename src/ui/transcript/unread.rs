//! Counts new content since the reader scrolled away from the end: items, and lines of the message that was
//! open then.
//!
//! Invariants: a frame only reads the bytes that arrived since the last one.

use crate::core::{ItemBody, MessagePart, Transcript};
use crate::model::ItemId;

/// New items and lines since a position.
#[derive(Default)]
pub(super) struct News {
    /// The last item when the reader scrolled away from the end.
    seen: Option<ItemId>,
    count: usize,
    /// The counted text of that item: part and byte offset.
    upto: (usize, usize),
    lines: usize,
}

impl News {
    /// Updates the counts; at the end they are zero.
    pub fn follow(&mut self, transcript: &Transcript, is_at_end: bool) {
        let items = transcript.items();
        if is_at_end {
            (self.seen, self.lines) = (items.last().map(|last| last.id), 0);
        }
        let last = self.seen.and_then(|id| transcript.index_of(id));
        let seen = last.map_or_else(|| self.seen.map_or(0, |id| transcript.index_from(id)), |last| last + 1);
        self.count = items.len().saturating_sub(seen);
        let last = last.and_then(|last| items.get(last));
        let Some(ItemBody::Message(message)) = last.map(|item| &item.body) else { return };
        if is_at_end {
            let part = message.parts.len().saturating_sub(1);
            self.upto = (part, message.parts.last().map_or(0, bytes_of));
            return;
        }
        let (mut part, mut from) = self.upto;
        while let Some(MessagePart::Text(text)) = message.parts.get(part) {
            let new = text.as_bytes().get(from..).unwrap_or_default();
            self.lines += memchr::memchr_iter(b'\n', new).count();
            from = text.len();
            if part + 1 >= message.parts.len() {
                break;
            }
            (part, from) = (part + 1, 0);
        }
        self.upto = (part, from);
    }

    pub fn items(&self) -> usize {
        self.count
    }

    /// Number of lines added to the item that was last.
    pub fn lines(&self) -> usize {
        self.lines
    }
}

fn bytes_of(part: &MessagePart) -> usize {
    match part {
        MessagePart::Text(text) => text.len(),
        MessagePart::Block(_) => 0,
    }
}
