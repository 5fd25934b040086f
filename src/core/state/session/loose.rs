//! Items of the running or last turn that a later tool call of the agent may absorb.

use crate::model::ItemId;

/// Maximum bytes of changes saved per turn; of later writes only the size is saved.
const MAX_TURN_BYTES: usize = 16 << 20;

/// The items that no tool call of the agent has absorbed yet.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loose {
    /// Files and commands accessed through parlor.
    own: Vec<ItemId>,
    /// Approved calls that consist of a permission request only.
    asked: Vec<ItemId>,
    /// Bytes of changes saved in this turn.
    bytes: usize,
}

impl Loose {
    pub(in crate::core) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.asked.is_empty()
    }

    pub(in crate::core) fn own(&self) -> &[ItemId] {
        &self.own
    }

    pub(in crate::core) fn asked(&self) -> &[ItemId] {
        &self.asked
    }

    pub(in crate::core) fn add_own(&mut self, item: ItemId) {
        self.own.push(item);
    }

    pub(in crate::core) fn add_asked(&mut self, item: ItemId) {
        self.asked.push(item);
    }

    /// A call of the agent has absorbed the item.
    pub(in crate::core) fn remove(&mut self, item: ItemId) {
        self.own.retain(|other| *other != item);
        self.asked.retain(|other| *other != item);
    }

    /// Whether a change of this size can be saved in this turn. If so, it is counted.
    pub(in crate::core) fn has_room(&mut self, size: usize) -> bool {
        let has_room = self.bytes + size <= MAX_TURN_BYTES;
        self.bytes += if has_room { size } else { 0 };
        has_room
    }

    pub(in crate::core) fn clear(&mut self) {
        *self = Self::default();
    }
}
