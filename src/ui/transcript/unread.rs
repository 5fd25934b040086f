//! What came since the reader left the end: items, and lines of the message that was being written then.
//!
//! Invariant: a frame looks only at bytes that came since the last one.

use crate::app::{ItemBody, MessagePart, Transcript};
use crate::model::ItemId;

/// What there was, and what came since.
#[derive(Default)]
pub(super) struct News {
    /// The last item that was there when the end was left.
    seen: Option<ItemId>,
    count: usize,
    /// Up to where the text of the last of them was counted: its part, its byte.
    upto: (usize, usize),
    lines: usize,
}

impl News {
    /// Follows the transcript; at the end nothing is new.
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

    /// Items that came.
    pub fn items(&self) -> usize {
        self.count
    }

    /// Lines that were added to the last item that was there.
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
