//! The list of items, in order.
//!
//! Invariants: every change goes through a method of [`Transcript`], which bumps the revisions. An item keeps its id
//! when others are added or removed; ids ascend, except those of items inserted between others.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;

use super::{Item, ItemBody};
use crate::model::{ItemId, NoticeKind, Severity};

/// All items of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    items: Vec<Item>,
    revision: u64,
    /// Bumped when items are added or removed elsewhere than at the end, which changes indices.
    order: u64,
    /// Bumped when all items are replaced by others.
    history: u64,
    next: i64,
    /// Items inserted between others: the id of the item they precede, and their position among those that precede it.
    inserted: BTreeMap<ItemId, (i64, u32)>,
    edits: Edits,
}

/// Orders the items of a transcript; valid until an item is inserted between others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Rank {
    /// The id of the item itself, or of the one it was inserted before.
    anchor: i64,
    /// Position among those inserted there; the item they precede comes last.
    nth: u32,
    pub item: ItemId,
}

/// A point in the history of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    revision: u64,
    next: i64,
}

/// The items edited last, so that a view of some items need not check all of them.
#[derive(Debug, Clone, Default)]
struct Edits {
    /// Items with the revision of their last consecutive edit, the latest last.
    last: VecDeque<(u64, ItemId)>,
    /// Edits up to this revision are not known.
    forgotten: u64,
}

/// Number of edits that are remembered: more than a turn with a few subagents changes between two frames.
const EDITS_MAX: usize = 64;

impl PartialEq for Edits {
    /// Transcripts with the same items are equal, whatever their edits were.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Edits {
    fn note(&mut self, revision: u64, id: ItemId) {
        match self.last.back_mut() {
            Some((last, same)) if *same == id => *last = revision,
            _ => self.last.push_back((revision, id)),
        }
        if self.last.len() > EDITS_MAX
            && let Some((revision, _)) = self.last.pop_front()
        {
            self.forgotten = revision;
        }
    }

    fn forget(&mut self, revision: u64) {
        self.last.clear();
        self.forgotten = revision;
    }
}

impl Transcript {
    /// All items, in order.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The items edited after this revision; `None` if not known, as after a change of positions.
    pub fn edited_since(&self, revision: u64) -> Option<impl Iterator<Item = ItemId>> {
        let edits = self.edits.last.iter().rev();
        let after = edits.take_while(move |(edit, _)| *edit > revision).map(|(_, id)| *id);
        (self.edits.forgotten <= revision).then_some(after)
    }

    /// What there is to see now, for [`Self::changed_since`].
    pub fn mark(&self) -> Mark {
        Mark { revision: self.revision, next: self.next }
    }

    /// The items that were added or edited after a mark; `None` if not known, as after a change of positions.
    pub fn changed_since(&self, mark: Mark) -> Option<impl Iterator<Item = ItemId>> {
        let added = (mark.next..self.next).map(ItemId);
        Some(self.edited_since(mark.revision)?.chain(added))
    }

    /// The last of the items that were added or edited after a mark.
    pub fn last_changed_since(&self, mark: Mark) -> Option<ItemId> {
        let added = (self.next > mark.next).then(|| ItemId(self.next - 1));
        added.or_else(|| self.edited_since(mark.revision)?.max())
    }

    /// Bumped when items are added or removed elsewhere than at the end, which invalidates saved indices.
    pub fn order(&self) -> u64 {
        self.order
    }

    /// Bumped when all items are replaced by others.
    pub fn history(&self) -> u64 {
        self.history
    }

    pub fn get(&self, id: ItemId) -> Option<&Item> {
        self.index_of(id).and_then(|index| self.items.get(index))
    }

    /// The index of the item with this id; `None`: it is not in memory.
    pub fn index_of(&self, id: ItemId) -> Option<usize> {
        let index = self.index_from(id);
        self.items.get(index).is_some_and(|item| item.id == id).then_some(index)
    }

    /// The index of the item with this id, or of the first one after it if it is not in memory.
    pub fn index_from(&self, id: ItemId) -> usize {
        // The ids of the last items usually have no gaps.
        let from_end = self.items.last().and_then(|last| usize::try_from(last.id.0.checked_sub(id.0)?).ok());
        let guess = from_end.and_then(|back| self.items.len().checked_sub(back + 1));
        if let Some(guess) = guess.filter(|at| self.items.get(*at).is_some_and(|item| item.id == id)) {
            return guess;
        }
        let rank = self.rank(id);
        self.items.partition_point(|item| self.rank(item.id) < rank)
    }

    /// Orders an item among the others.
    pub fn rank(&self, id: ItemId) -> Rank {
        let (anchor, nth) = self.inserted.get(&id).copied().unwrap_or((id.0, u32::MAX));
        Rank { anchor, nth, item: id }
    }

    pub fn next_id(&self) -> ItemId {
        ItemId(self.next)
    }

    /// Adds an item at the end. A notice equal to the previous one increments its count instead.
    pub fn push(&mut self, turn: u32, body: ItemBody) -> ItemId {
        if matches!(body, ItemBody::Notice { .. })
            && let Some(same) = self.items.last().filter(|last| last.body == body).map(|last| last.id)
        {
            self.edit(same, |item| item.times = item.times.saturating_add(1));
            return same;
        }
        let id = self.new_id();
        self.revision += 1;
        self.items.push(Item::new(id, turn, body));
        id
    }

    fn new_id(&mut self) -> ItemId {
        let id = ItemId(self.next);
        self.next += 1;
        id
    }

    /// Inserts an item before another one, or at the end if that is not in memory. All ids stay valid.
    pub fn insert_before(&mut self, before: ItemId, turn: u32, body: ItemBody) -> ItemId {
        let index = self.index_from(before).max(usize::from(self.has_head()));
        let Some(anchor) = self.items.get(index).map(|item| self.rank(item.id).anchor) else {
            return self.push(turn, body);
        };
        let id = self.new_id();
        self.items.insert(index, Item::new(id, turn, body));
        let stands_there = |item: &Item| self.inserted.get(&item.id).filter(|(at, _)| *at == anchor);
        let before = index.checked_sub(1).and_then(|at| self.items.get(at)).and_then(stands_there);
        let mut nth = before.map_or(0, |(_, nth)| nth + 1);
        self.inserted.insert(id, (anchor, nth));
        for item in self.items.iter().skip(index + 1) {
            let Some((_, position)) = self.inserted.get_mut(&item.id).filter(|(at, _)| *at == anchor) else {
                break;
            };
            nth += 1;
            *position = nth;
        }
        self.reorder();
        id
    }

    /// Puts the items of another transcript in the place of those before `end`. Returns the offset added to their ids: the
    /// last items get the ids of the last that were replaced.
    pub(in crate::core) fn replace_before(&mut self, end: ItemId, whole: Self) -> i64 {
        let offset = end.0 - whole.next;
        let at = self.index_from(end);
        let former: HashMap<ItemId, Item> = self.items.drain(..at).map(|item| (item.id, item)).collect();
        self.inserted.retain(|id, _| !former.contains_key(id));
        let moved = |id: ItemId| ItemId(id.0 + offset);
        let items = whole.items.into_iter().map(|item| {
            let id = moved(item.id);
            match former.get(&id) {
                // A drawing of the former item is not used for another.
                Some(known) => Item { id, rev: known.rev.max(item.rev).wrapping_add(1), ..item },
                None => Item { id, ..item },
            }
        });
        self.items.splice(..0, items);
        let inserted = whole.inserted.into_iter();
        self.inserted.extend(inserted.map(|(id, (anchor, nth))| (moved(id), (anchor + offset, nth))));
        self.reorder();
        offset
    }

    pub(in crate::core) fn remove_turns(&mut self, turns: &Range<u32>) {
        let first = self.items.iter().position(|item| turns.contains(&item.turn));
        let marker = first.and_then(|first| self.items.get(first.checked_sub(1)?)).map(|item| item.id);
        let is_marker = |item: &Item| {
            Some(item.id) == marker
                && matches!(item.body, ItemBody::Notice { kind: NoticeKind::Taken(_), .. })
        };
        self.retain(|item| !turns.contains(&item.turn) && !is_marker(item));
    }

    pub(in crate::core) fn remove(&mut self, id: ItemId) {
        self.retain(|item| item.id != id);
    }

    fn retain(&mut self, is_saved: impl Fn(&Item) -> bool) {
        self.items.retain(is_saved);
        let left: HashSet<ItemId> = self.items.iter().map(|item| item.id).collect();
        self.inserted.retain(|id, _| left.contains(id));
        self.reorder();
    }

    /// Whether the first item is the line with the number of items not shown.
    pub fn has_head(&self) -> bool {
        self.items.first().is_some_and(|first| first.id == ItemId::HEAD)
    }

    /// Sets the line above all items that says how much is not shown.
    pub(in crate::core) fn set_head(&mut self, title: String) {
        let body = ItemBody::notice(Severity::Info, title, None);
        if self.has_head() {
            self.edit(ItemId::HEAD, |head| head.body = body);
            return;
        }
        let turn = self.items.first().map_or(0, |item| item.turn);
        self.items.insert(0, Item::new(ItemId::HEAD, turn, body));
        self.reorder();
    }

    fn reorder(&mut self) {
        self.revision += 1;
        self.order += 1;
        self.edits.forget(self.revision);
    }

    #[must_use]
    pub(in crate::core) fn up_to_turn(&self, turn: u32) -> Self {
        let mut copy = self.clone();
        let end = copy.items.iter().position(|item| item.turn > turn).unwrap_or(copy.items.len());
        copy.items.truncate(end);
        copy
    }

    /// Changes an item; the only way to do so.
    pub fn edit(&mut self, id: ItemId, change: impl FnOnce(&mut Item)) {
        let Some(item) = self.index_of(id).and_then(|index| self.items.get_mut(index)) else { return };
        change(item);
        item.rev = item.rev.wrapping_add(1);
        self.revision += 1;
        self.edits.note(self.revision, id);
    }

    /// All items, for changes that are not visible.
    pub(in crate::core) fn items_unchanged(&mut self) -> impl Iterator<Item = &mut Item> {
        self.items.iter_mut()
    }

    /// Removes all items (before a history is replayed).
    pub fn clear(&mut self) {
        drop(self.take());
    }

    /// Takes all items, leaving an empty transcript that does not reuse their ids.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let items = std::mem::take(&mut self.items);
        let inserted = std::mem::take(&mut self.inserted);
        let former = Self { items, inserted, edits: Edits::default(), ..*self };
        self.history += 1;
        self.reorder();
        former
    }

    pub fn restore(&mut self, former: Self) {
        self.clear();
        (self.items, self.inserted) = (former.items, former.inserted);
    }
}

#[cfg(test)]
mod tests;
