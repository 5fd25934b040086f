//! The items of a filtered transcript.
//!
//! Maintains the list of matching items, so that no frame visits the others, and the scroll position to
//! return to. `core::state::outline` decides which items match.
//!
//! Invariants: the list equals that of a full scan.

use crate::core::state::outline::Only;
use crate::core::{Item, Transcript};

use super::Anchor;

pub(super) struct Filter {
    pub only: Only,
    pub back: Anchor,
    /// Indexes of matching items, in order.
    shown: Vec<usize>,
    seen: usize,
    revision: u64,
}

impl Filter {
    /// A filter over all items; `back` is the scroll position to return to.
    pub fn new(only: Only, transcript: &Transcript, back: Anchor) -> Self {
        let mut this = Self { only, back, shown: Vec::new(), seen: 0, revision: transcript.revision() };
        this.render(transcript.items(), 0);
        this
    }

    /// Updates the list for edited and new items.
    pub fn follow(&mut self, transcript: &Transcript) {
        let (items, revision) = (transcript.items(), transcript.revision());
        if revision == self.revision {
            return;
        }
        match transcript.edited_since(self.revision).filter(|_| self.seen <= items.len()) {
            Some(edited) => {
                for id in edited {
                    self.look_at(transcript.index_from(id), items);
                }
                self.render(items, self.seen);
            }
            None => self.render(items, 0),
        }
        self.revision = revision;
    }

    fn look_at(&mut self, index: usize, items: &[Item]) {
        let is_shown = items.get(index).is_some_and(|item| self.only.shows(item));
        match (self.shown.binary_search(&index), is_shown && index < self.seen) {
            (Err(position), true) => self.shown.insert(position, index),
            (Ok(position), false) => drop(self.shown.remove(position)),
            _ => {}
        }
    }

    fn render(&mut self, items: &[Item], from: usize) {
        self.shown.truncate(self.shown.partition_point(|item| *item < from));
        let found = items.iter().enumerate().skip(from).filter(|(_, item)| self.only.shows(item));
        self.shown.extend(found.map(|(index, _)| index));
        self.seen = items.len();
    }

    pub fn has(&self, item: usize) -> bool {
        self.shown.binary_search(&item).is_ok()
    }

    pub fn after(&self, item: usize) -> Option<usize> {
        self.shown.get(self.shown.partition_point(|shown| *shown <= item)).copied()
    }

    pub fn before(&self, item: usize) -> Option<usize> {
        let position = self.shown.partition_point(|shown| *shown < item);
        self.shown.get(position.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;
    use crate::core::{ItemBody, ToolCall};
    use crate::model::{ItemId, ToolKind, ToolStatus};

    fn call(kind: ToolKind) -> ItemBody {
        let mut call = ToolCall::new("t".into(), Instant::now());
        call.kind = kind;
        ItemBody::Tool(Box::new(call))
    }

    fn set(transcript: &mut Transcript, index: usize, kind: ToolKind) {
        let Some(id) = transcript.items().get(index).map(|item| item.id) else { return };
        transcript.edit(id, |item| {
            if let ItemBody::Tool(call) = &mut item.body {
                call.kind = kind;
            }
        });
    }

    #[test]
    fn failures_far_above_the_end_are_added() {
        let mut transcript = Transcript::default();
        for _ in 0..2000 {
            transcript.push(1, call(ToolKind::Read));
        }
        let mut filter = Filter::new(Only::Failures, &transcript, Anchor::Follow);
        transcript.edit(ItemId(3), |item| {
            if let ItemBody::Tool(call) = &mut item.body {
                call.status = ToolStatus::Failed;
            }
        });
        filter.follow(&transcript);
        assert_eq!((filter.shown.as_slice(), filter.after(0)), (&[3][..], Some(3)));
    }

    proptest! {
        #[test]
        fn the_list_equals_a_full_scan(
            steps in prop::collection::vec((0_usize..40, any::<bool>(), 0..12_u8), 0..300),
        ) {
            let mut transcript = Transcript::default();
            let mut filter = Filter::new(Only::Edits, &transcript, Anchor::Follow);
            for (index, is_edit, what) in steps {
                let kind = if is_edit { ToolKind::Edit } else { ToolKind::Read };
                match what {
                    0..4 => drop(transcript.push(1, call(kind))),
                    4..9 => set(&mut transcript, index, kind),
                    9 if index == 0 => transcript.clear(),
                    _ => {
                        filter.follow(&transcript);
                        let whole = Filter::new(Only::Edits, &transcript, Anchor::Follow);
                        prop_assert_eq!(&filter.shown, &whole.shown);
                    }
                }
            }
        }
    }
}
