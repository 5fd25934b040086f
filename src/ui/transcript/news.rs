//! What came since the reader left the end: items, and lines of the message that was being written then.
//!
//! Invariant: a frame looks only at bytes that came since the last one.

use crate::app::{Item, ItemBody, MessagePart};

/// What there was, and what came since.
#[derive(Default)]
pub(super) struct News {
    /// Items there were when the end was left.
    seen: usize,
    count: usize,
    /// Up to where the text of the last of them was counted: its part, its byte.
    upto: (usize, usize),
    lines: usize,
}

impl News {
    /// Follows the transcript; at the end nothing is new.
    pub fn follow(&mut self, items: &[Item], is_at_end: bool) {
        self.count = items.len();
        if is_at_end || items.len() < self.seen {
            (self.seen, self.lines) = (items.len(), 0);
        }
        let last = self.seen.checked_sub(1).and_then(|last| items.get(last));
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

    /// So many items were put in front of others, or taken away there: they are no news.
    pub fn shift(&mut self, came: usize, went: usize) {
        self.seen = (self.seen + came).saturating_sub(went);
    }

    /// Items that came.
    pub fn items(&self) -> usize {
        self.count.saturating_sub(self.seen)
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
