//! Tests of item ids: an id denotes one item or none, whatever is added or removed.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::model::Raw;

#[derive(Debug, Clone)]
enum Step {
    Push,
    Head,
    Whole(usize, usize),
    Insert(usize),
    Remove(usize),
    Edit(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => Just(Step::Push),
        1 => Just(Step::Head),
        2 => (0_usize..12, 0_usize..8).prop_map(|(upto, more)| Step::Whole(upto, more)),
        6 => any::<usize>().prop_map(Step::Insert),
        2 => any::<usize>().prop_map(Step::Remove),
        3 => any::<usize>().prop_map(Step::Edit),
    ];
    prop::collection::vec(step, 0..80)
}

fn body(tag: u64) -> ItemBody {
    ItemBody::Raw { name: tag.to_string(), raw: Raw("{}".into()) }
}

/// Each item has a turn of its own.
fn turn(tag: u64) -> u32 {
    u32::try_from(tag).unwrap_or_default()
}

fn tag_of(item: &Item) -> Option<u64> {
    match &item.body {
        ItemBody::Raw { name, .. } => name.parse().ok(),
        _ => None,
    }
}

/// A transcript with the expected items and ids.
#[derive(Default)]
struct Twin {
    transcript: Transcript,
    order: Vec<(ItemId, u64)>,
    /// All ids that were ever assigned.
    held: BTreeMap<ItemId, u64>,
    tags: u64,
}

impl Twin {
    fn tag(&mut self) -> u64 {
        self.tags += 1;
        self.tags
    }

    fn hold(&mut self, at: usize, id: ItemId, tag: u64) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.held.insert(id, tag), None, "an id was used again");
        self.order.insert(at, (id, tag));
        Ok(())
    }

    fn play(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let count = self.order.len();
        match step {
            Step::Push => {
                let tag = self.tag();
                let id = self.transcript.push(turn(tag), body(tag));
                self.hold(count, id, tag)?;
            }
            Step::Head => self.transcript.set_head("more above".into()),
            Step::Whole(upto, more) => {
                let upto = (*upto).min(count);
                let end = self.order.get(upto).map_or(self.transcript.next_id(), |(id, _)| *id);
                let ids = self.order.iter().take(upto).rev().map(|(id, _)| id.0);
                // An item that was removed is not restored.
                let are_live =
                    self.held.len() == count && self.order.iter().skip(upto).all(|(id, _)| *id >= end);
                if !are_live || !ids.zip(1..).all(|(id, back)| id == end.0 - back) {
                    return Ok(());
                }
                // The whole ends with the items that are shown.
                let mut whole = Transcript::default();
                let before: Vec<u64> = (0..*more).map(|_| self.tag()).collect();
                for tag in before.iter().copied().chain(self.order.iter().take(upto).map(|(_, tag)| *tag)) {
                    whole.push(turn(tag), body(tag));
                }
                let offset = self.transcript.replace_before(end, whole);
                for (at, tag) in before.into_iter().enumerate() {
                    self.hold(at, ItemId(i64::try_from(at).unwrap_or_default() + offset), tag)?;
                }
            }
            Step::Insert(at) if count > 0 => {
                let tag = self.tag();
                let id = self.transcript.insert_before(self.order[at % count].0, turn(tag), body(tag));
                self.hold(at % count, id, tag)?;
            }
            Step::Remove(at) if count > 0 => {
                let (_, tag) = self.order.remove(at % count);
                self.transcript.remove_turns(&(turn(tag)..turn(tag) + 1));
            }
            Step::Edit(at) if count > 0 => {
                let id = self.order[at % count].0;
                self.transcript.edit(id, |item| item.times += 1);
            }
            Step::Insert(_) | Step::Remove(_) | Step::Edit(_) => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let items = self.transcript.items();
        let shown: Vec<(ItemId, u64)> =
            items.iter().filter_map(|item| Some((item.id, tag_of(item)?))).collect();
        prop_assert_eq!(&shown, &self.order);
        prop_assert!(items.is_sorted_by_key(|item| self.transcript.rank(item.id)));
        let here: BTreeMap<ItemId, u64> = self.order.iter().copied().collect();
        for id in self.held.keys() {
            let found = self.transcript.get(*id).and_then(tag_of);
            prop_assert_eq!(found, here.get(id).copied(), "{}", id);
        }
        for (index, item) in items.iter().enumerate() {
            prop_assert_eq!(self.transcript.index_of(item.id), Some(index));
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_saved_id_denotes_the_same_item_or_none(steps in steps()) {
        let mut twin = Twin::default();
        for step in &steps {
            twin.play(step)?;
            twin.check()?;
        }
    }
}

#[test]
fn ids_are_not_reused_after_a_history_is_replaced_or_restored() {
    let mut transcript = Transcript::default();
    let first = transcript.push(1, body(1));
    let former = transcript.take();
    let second = transcript.push(1, body(2));
    assert_eq!((transcript.get(first), transcript.items().len()), (None, 1));
    transcript.restore(former);
    assert_eq!(transcript.get(first).and_then(tag_of), Some(1));
    assert_eq!(transcript.get(second), None);
    let third = transcript.push(1, body(3));
    assert!(third > second && second > first);
    assert_eq!(transcript.index_of(third), Some(1));
}

#[test]
fn the_index_of_a_removed_item_is_that_of_the_next_one() {
    let mut transcript = Transcript::default();
    let ids: Vec<ItemId> = (0..4).map(|tag| transcript.push(turn(tag), body(tag))).collect();
    transcript.remove_turns(&(1..2));
    assert_eq!(transcript.index_from(ids[1]), 1);
    transcript.remove_turns(&(0..3));
    assert_eq!((transcript.index_from(ids[0]), transcript.index_of(ids[0])), (0, None));
    assert_eq!(transcript.index_from(transcript.next_id()), 1);
}

#[test]
fn an_item_of_the_end_keeps_its_id_in_the_whole() {
    let mut transcript = Transcript::default();
    let shown = transcript.push(2, body(2));
    let (rev, live) = (transcript.get(shown).map(|item| item.rev), transcript.push(3, body(3)));
    let mut whole = Transcript::default();
    whole.push(1, body(1));
    whole.push(2, body(4));
    transcript.replace_before(live, whole);
    let item = transcript.get(shown).unwrap();
    assert_eq!(tag_of(item), Some(4));
    assert!(Some(item.rev) > rev, "it is drawn again");
    let tags: Vec<_> = transcript.items().iter().filter_map(tag_of).collect();
    assert_eq!(tags, [1, 4, 3]);
}
